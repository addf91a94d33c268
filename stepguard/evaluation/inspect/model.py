"""A model provider for Inspect AI: ``stepguard/NAME`` is asked through `OpenAIBackend`.

Inspect's own provider for OpenAI-style endpoints refuses some releases of the openai package that stepguard bears.
A name is read as ``stepguard bench --model`` reads it: with an endpoint of yours it is the model's name there, without
one ``stepguard/groq/llama-3.3-70b-versatile`` names a provider in `stepguard.backends.providers`, too::

    inspect eval stepguard/bench --model stepguard/my-model --model-base-url http://127.0.0.1:8080/v1

``-M`` takes the other options of `OpenAIBackend`: ``-M mode=json``, ``-M 'extra={"top_p": 0.9}'``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from stepguard.backends.base import Completion, Message, Request
from stepguard.backends.openai import OpenAIBackend
from stepguard.core.usage import Usage
from stepguard.errors import BackendError, ConfigError, MissingExtraError, RateLimited
from stepguard.replies.formats import EquationFormat

try:
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        ContentReasoning,
        ContentText,
        GenerateConfig,
        ModelAPI,
        ModelOutput,
        ModelUsage,
        RetryDecision,
    )
    from inspect_ai.tool import ToolCall
except ImportError as error:
    raise MissingExtraError("Inspect's model provider", extra="inspect") from error

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage
    from inspect_ai.tool import ToolChoice, ToolInfo

    from stepguard.procedure.steps import Step

_LONGEST_WAIT: Final = 1800.0
"""Seconds until one request is given up, where Inspect sets no limit: slow local models take minutes for a reply."""

_FORWARDED: Final = frozenset({"max_tokens", "temperature", "seed", "response_schema"})
_INSPECTS_OWN: Final = frozenset(
    {
        *("max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections"),
        *("adaptive_connections", "system_message", "cache", "cache_prompt", "fail_on_refusal", "max_tool_output"),
        *("parallel_tool_calls", "internal_tools", "reasoning_history"),
    }
)
_STOP_REASONS: Final[Mapping[str, str]] = {
    "stop": "stop",
    "length": "max_tokens",
    "content_filter": "content_filter",
    "tool_calls": "tool_calls",
}


class EndpointModel(ModelAPI):  # type: ignore[misc, unused-ignore]
    """A model at an OpenAI-style endpoint, for Inspect.

    Inspect repeats what failed, by its own options; the backend sends every request once. Tools are not offered.

    Args:
        model_name: the model, as the endpoint names it; or provider and model, where no endpoint is given.
        base_url: the endpoint, up to and without ``/chat/completions``.
        api_key: the key; None reads it from the environment, see `OpenAIBackend`.
        config: Inspect's, with which it was made; what counts is given with every request.
        model_args: further options of `OpenAIBackend`.

    Raises:
        ConfigError: the backend has no such option or not that value of it, or the name names nothing.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own signature
        **model_args: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        make: Any = OpenAIBackend.from_name if base_url is None and "/" in model_name else OpenAIBackend
        try:
            self._backend: OpenAIBackend = make(model_name, base_url=base_url, api_key=self.api_key, **model_args)
        except TypeError as error:
            raise ConfigError(f"-M takes the options of OpenAIBackend: {error}", option="model_args") from error

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """Answer one request.

        Raises:
            BackendError: the endpoint did not answer.
            ConfigError: tools are offered, or an option that is not sent is set.
        """
        if tools:
            raise ConfigError("models called stepguard/... take no tools: use another provider of Inspect's")
        if odd := sorted(config.model_dump(exclude_none=True).keys() - _FORWARDED - _INSPECTS_OWN):
            raise ConfigError(
                f"models called stepguard/... are not sent {odd[0]!r}: leave it out, or give the endpoint's own "
                "parameter by -M extra={...}",
                option=odd[0],
            )
        schema = config.response_schema
        request = Request(
            messages=tuple(_message(chat_message) for chat_message in input),
            reply_format=None if schema is None else _Schema(name=schema.name, text=_schema_text(schema)),
            temperature=config.temperature,
            max_tokens=config.max_tokens,
            seed=config.seed,
            timeout=config.attempt_timeout or config.timeout or _LONGEST_WAIT,
        )
        completion = await self._backend.acomplete(request)
        return _output(completion, None if schema is None else schema.name)

    def session(self) -> AbstractAsyncContextManager[Any]:
        """One client for all requests in it; see `OpenAIBackend.session`."""
        return self._backend.session()

    def connection_key(self) -> str:
        """Models at one endpoint share its connections."""
        return str(self.base_url or self.model_name)

    def should_retry(self, ex: Exception) -> RetryDecision:
        """Whether, and as what, Inspect is to repeat a request."""
        if isinstance(ex, RateLimited) and ex.retryable:
            return RetryDecision.rate_limit(ex.retry_after)
        if isinstance(ex, BackendError) and ex.retryable:
            return RetryDecision.transient()
        return RetryDecision.no()


def _message(chat_message: ChatMessage) -> Message:
    if chat_message.role not in ("system", "user", "assistant") or any(
        each.type != "text" for each in chat_message.content_list
    ):
        raise ConfigError(
            f"models called stepguard/... are sent text only, not a {chat_message.role} message with more"
        )
    return Message(chat_message.role, chat_message.text)


# The form of a reply


def _schema_text(schema: Any) -> str:
    return json.dumps({**schema.json_schema.model_dump(exclude_none=True), "title": schema.name})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Schema(EquationFormat):
    """A schema that is there already. A request of Inspect's names no steps, so no reply is read by it."""

    name: str
    text: str

    def response_model(self, steps: Sequence[Step]) -> type[BaseModel]:
        return _model_of(self.name, self.text)


@lru_cache(maxsize=512)
def _model_of(name: str, text: str) -> type[BaseModel]:
    """A model whose schema is this one; kept, since the shape of a request is kept by its model."""

    class GivenSchema(BaseModel):
        @classmethod
        def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
            return dict(json.loads(text))

    GivenSchema.__name__ = name
    return GivenSchema


# The reply


def _output(completion: Completion, schema_name: str | None) -> ModelOutput:
    text, calls = completion.text, completion.tool_calls
    if len(calls) == 1 and calls[0].name == schema_name and not (text or "").strip():
        # With mode="tools" the structured reply is a call; Inspect knows it as text, which is also what stays exact.
        text, calls = calls[0].arguments, ()
    content: list[Any] = []
    if completion.reasoning:
        content.append(ContentReasoning(reasoning=completion.reasoning))
    if completion.refusal:
        content.append(ContentText(text=completion.refusal, refusal=True))
    elif text is not None:
        content.append(ContentText(text=text))
    message = ChatMessageAssistant(
        content=content,
        tool_calls=[_tool_call(at, each.name, each.arguments) for at, each in enumerate(calls)] or None,
        model=completion.model,
        source="generate",
    )
    reason: Any = _STOP_REASONS.get(completion.finish_reason or "", "unknown")
    return ModelOutput(
        model=completion.model or "",
        choices=[ChatCompletionChoice(message=message, stop_reason=reason)],
        usage=_usage(completion.usage),
        metadata={"finish_reason": completion.finish_reason, "fingerprint": completion.fingerprint},
    )


def _usage(usage: Usage) -> ModelUsage:
    # Inspect counts the cached part of the prompt apart; some endpoints do so already.
    fresh = max(0, usage.input_tokens - usage.cached_tokens)
    return ModelUsage(
        input_tokens=fresh,
        input_tokens_cache_read=usage.cached_tokens or None,
        output_tokens=usage.output_tokens,
        total_tokens=fresh + usage.cached_tokens + usage.output_tokens,
        reasoning_tokens=usage.reasoning_tokens or None,
    )


def _tool_call(at: int, name: str, arguments: str) -> ToolCall:
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError):
        parsed = None
    if isinstance(parsed, dict):
        return ToolCall(id=f"call_{at + 1}", function=name, arguments=parsed)
    return ToolCall(id=f"call_{at + 1}", function=name, arguments={}, parse_error=arguments)
