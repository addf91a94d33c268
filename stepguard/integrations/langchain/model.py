"""The model of a LangChain agent as a backend: each request of a guard is one call of the agent's own model.

A request takes the road that the agent's own calls take, through all middleware that stands behind the guard's, with
the callbacks, the tracing and the model settings of the agent. It is tagged ``nostream``: replies that nobody has
checked yet are not streamed as messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from pydantic import SecretStr

from stepguard.backends.base import Completion, Request, ToolCall
from stepguard.backends.chat_completions import read_completion
from stepguard.backends.openai_errors import as_backend_error, refused_reply, texts_of
from stepguard.backends.request_shapes import chat_form
from stepguard.backends.sdk_errors import field
from stepguard.core.deadlines import within
from stepguard.core.redaction import redact, redacted_start
from stepguard.core.usage import Usage
from stepguard.errors import BackendError, MissingExtraError, StepguardError

try:
    from langchain.agents.middleware import ModelRequest, ModelResponse
    from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage
    from langchain_core.runnables.config import ensure_config, var_child_runnable_config
    from langgraph.constants import TAG_NOSTREAM
    from langgraph.errors import GraphBubbleUp
except ImportError as error:
    raise MissingExtraError("the LangChain middleware", extra="langchain") from error

ModelSettings = Callable[[Request], Mapping[str, Any]]
"""The settings that a guarded request binds to the model, by LangChain's names: ``temperature``, ``max_tokens`` ..."""

_ROLES: Final[Mapping[str, str]] = {"human": "user", "ai": "assistant"}
_FINISH: Final = ("finish_reason", "stop_reason", "done_reason")
_LONGEST_MESSAGE: Final = 500
_SHORTEST_SECRET: Final = 8  # shorter ones would black out words that are no secrets


class _Common:
    """The base of both backends.

    Args:
        settings: what each request binds to the model; None for `openai_settings` where it is of that family.
    """

    def __init__(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Any],
        settings: ModelSettings | None = None,
    ) -> None:
        self.name: Final = model_name(request.model) or type(request.model).__name__
        self.speaker: str | None = None
        """The name that the agent's messages bear; known once the model has answered."""
        self._request: Final = request
        self._handler: Final = handler
        self._settings: Final = settings or (openai_settings(request.model) if _is_openai(request.model) else None)
        self._secrets: Final = tuple(_secrets(request.model))

    def _agent_request(self, request: Request) -> ModelRequest[Any]:
        """The request of the guard as one of the agent: its messages alone, no tools and no schema of an answer."""
        pairs = [(message.role, message.content) for message in request.messages]
        system = pairs.pop(0)[1] if pairs and pairs[0][0] == "system" else None
        messages: list[Any] = [_KINDS[role](content) for role, content in pairs]
        settings = {} if self._settings is None else self._settings(request)
        return self._request.override(
            system_message=None if system is None else SystemMessage(system),
            messages=messages,
            tools=[],
            tool_choice=None,
            response_format=None,
            model_settings={**self._request.model_settings, **settings},
        )

    def _completion(self, request: Request, response: ModelResponse[Any]) -> Completion:
        messages: list[BaseMessage] = response.result
        message = messages[0] if len(messages) == 1 else None
        if not isinstance(message, AIMessage):
            found = ", ".join(type(each).__name__ for each in messages[:5]) or "nothing"
            raise BackendError(f"{self.name}: one AIMessage was expected, found {found}", retryable=False)
        self.speaker = message.name
        completion = _completion_of(message)
        if message.usage_metadata is None:  # nobody has counted
            asked = sum(len(each.content) for each in request.messages)
            return replace(completion, usage=Usage.estimate(asked, len(completion.text or "")))
        return completion

    def _reply_behind(self, error: Exception, request: Request) -> Completion:
        """The reply that an exception carries; without one, raise it or the backend error that it means."""
        asked = sum(len(each.content) for each in request.messages)
        if isinstance(error, StepguardError):
            raise error
        if isinstance(error, GraphBubbleUp):  # an interrupt, say: no failure at all, and raised again behind the run
            raise BackendError("the graph takes over", retryable=False) from error
        # By name: the openai package need not be installed here.
        names = {cls.__name__ for cls in type(error).__mro__}
        if "LengthFinishReasonError" in names:
            return read_completion(getattr(error, "completion", None), self._say, asked=asked)
        if "ContentFilterFinishReasonError" in names:
            return Completion(None, finish_reason="content_filter")
        if (raw := refused_reply(error)) is not None:
            return read_completion(raw, self._say, asked=asked)
        failure = as_backend_error(error, self._say)
        # A cause is printed with the error: one that quotes a key must not be kept.
        if all(redact(text, *self._secrets) == text for text in texts_of(error)):
            failure.__cause__ = error
        raise failure

    def _say(self, words: str) -> str:
        return redacted_start(f"{self.name}: {words}", _LONGEST_MESSAGE, *self._secrets)


class ModelBackend(_Common):
    """The agent's model, blocking."""

    def complete(self, request: Request) -> Completion:
        """Answer one request, within its time-out; a call that is given up runs on in its thread.

        Raises BackendError: the model did not answer.
        """

        def call() -> ModelResponse[Any]:
            with _unstreamed():
                response: ModelResponse[Any] = self._handler(self._agent_request(request))
                return response

        try:
            response = within(request.timeout, call, name="stepguard-request")
        except Exception as error:  # noqa: BLE001 - whatever a model or middleware raises
            failure = error
        else:
            return self._completion(request, response)
        return self._reply_behind(failure, request)  # outside of the `except` block, or it would be the context


class AsyncModelBackend(_Common):
    """The agent's model, awaited; see `ModelBackend`."""

    is_async: Final = True

    async def acomplete(self, request: Request) -> Completion:
        """Answer one request; the guard bounds how long it is waited for.

        Raises BackendError: the model did not answer.
        """
        try:
            with _unstreamed():
                response = await self._handler(self._agent_request(request))
        except Exception as error:  # noqa: BLE001 - whatever a model or middleware raises
            failure = error
        else:
            return self._completion(request, response)
        return self._reply_behind(failure, request)  # outside of the `except` block, or it would be the context


def openai_settings(model: object) -> ModelSettings:
    """The settings that a guarded request binds to `ChatOpenAI` and its kin.

    The schema of the reply, which OpenAI then holds it to, and its longest length; the guard's temperature where the
    model has none of its own and is not known to refuse any.
    """
    profile = getattr(model, "profile", None) or {}
    # Models that reason refuse a temperature, and their profile says so.
    own = getattr(model, "temperature", None) is not None or profile.get("temperature") is False

    def settings(request: Request) -> Mapping[str, Any]:
        bound: dict[str, Any] = {"max_tokens": request.max_tokens}
        if not own:
            bound["temperature"] = request.temperature
        shape = request.response_model
        if shape is not None:
            bound |= chat_form(shape, "json_schema", True)
        return {name: value for name, value in bound.items() if value is not None}

    return settings


def as_chat(messages: Iterable[BaseMessage]) -> list[dict[str, Any]]:
    """LangChain's messages as `stepguard.integrations.chat.requests` reads them."""
    return [{"role": _role(message), "content": _parts(message.content)} for message in messages]


def model_name(model: object) -> str | None:
    """The model as its provider names it; None where it does not say."""
    names = (getattr(model, name, None) for name in ("model_name", "model", "model_id"))
    return next((name for name in names if isinstance(name, str) and name), None)


_KINDS: Final[Mapping[str, Callable[[str], BaseMessage]]] = {
    "system": SystemMessage,
    "user": HumanMessage,
    "assistant": AIMessage,
}


def _role(message: BaseMessage) -> str:
    if isinstance(message, ChatMessage):
        return str(message.role)
    return _ROLES.get(message.type, message.type)


def _parts(content: str | Sequence[str | Mapping[str, Any]]) -> object:
    if isinstance(content, str):
        return content
    return [{"type": "text", "text": part} if isinstance(part, str) else part for part in content]


def _completion_of(message: AIMessage) -> Completion:
    """A reply, as it came; nothing in it is parsed or mended."""
    facts = message.response_metadata
    finish = next((facts[name] for name in _FINISH if isinstance(facts.get(name), str)), None)
    blocks = [block for block in message.content if isinstance(block, Mapping)] if message.content else []
    refusals = [message.additional_kwargs.get("refusal"), *(block.get("refusal") for block in blocks)]
    thoughts = [message.additional_kwargs.get("reasoning_content")]
    thoughts += [block.get(name) for block in blocks for name in ("reasoning", "thinking")]
    model, fingerprint = (facts.get(name) for name in ("model_name", "system_fingerprint"))
    return Completion(
        text=str(message.text),
        finish_reason=finish,
        refusal="\n".join(each for each in refusals if isinstance(each, str)) or None,
        reasoning="\n".join(each for each in thoughts if isinstance(each, str)) or None,
        # LangChain has parsed the arguments, and lost what is not exact in them. No tool was offered: the name will do.
        tool_calls=tuple(ToolCall(str(each.get("name") or ""), "") for each in _calls(message)),
        usage=_usage(message.usage_metadata),
        model=model if isinstance(model, str) else None,
        fingerprint=fingerprint if isinstance(fingerprint, str) else None,
    )


def _calls(message: AIMessage) -> list[Mapping[str, Any]]:
    return [*message.tool_calls, *message.invalid_tool_calls]


def _usage(counted: object) -> Usage:
    def count(*path: str) -> int:
        found = field(counted, *path)
        return found if isinstance(found, int) and found > 0 else 0

    return Usage(
        calls=1,
        input_tokens=count("input_tokens"),
        output_tokens=count("output_tokens"),
        cached_tokens=count("input_token_details", "cache_read"),
        reasoning_tokens=count("output_token_details", "reasoning"),
    )


def _is_openai(model: object) -> bool:
    return any(cls.__name__ == "BaseChatOpenAI" for cls in type(model).__mro__)


def _secrets(model: object) -> Iterator[str]:
    for value in vars(model).values():
        if isinstance(value, SecretStr) and len(secret := value.get_secret_value()) >= _SHORTEST_SECRET:
            yield secret


@contextmanager
def _unstreamed() -> Iterator[None]:
    """Keep requests made in this context out of the agent's stream of messages."""
    config = ensure_config()  # that of the node
    token = var_child_runnable_config.set({**config, "tags": [*(config.get("tags") or ()), TAG_NOSTREAM]})
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)
