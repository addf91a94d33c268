"""The model of an agent as a backend: the guard's requests as those of the framework, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Any, Final, Literal, cast

from pydantic_ai.exceptions import ContentFilterError, ModelAPIError, UnexpectedModelBehavior
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.usage import RequestUsage

from stepguard.backends.base import RESPONSE_NAME, Completion, Request, ToolCall, about_to_send
from stepguard.backends.openai_errors import as_backend_error
from stepguard.core.redaction import redact
from stepguard.core.usage import Usage
from stepguard.errors import BackendError

Mode = Literal["native", "tool", "text"]
"""How replies are bound to their form: by a JSON schema, by one tool, or by the words of the prompt alone."""

_DOUBLES: Final = frozenset({"function", "test"})
_NOT_SENT: Final = frozenset({"parallel_tool_calls", "tool_choice"})
"""They are about tools, and a guarded request has none of the agent's."""
_LONGEST_ERROR: Final = 500


class AgentBackend:
    """Asks the model of an agent; made for one guarded request.

    Args:
        context: the request as the agent would have made it.
        mode: how replies are bound to their form; None for the best that the model can do.
    """

    def __init__(self, ctx: RunContext[Any], context: ModelRequestContext, *, mode: Mode | None) -> None:
        self.name: Final = context.model.model_name
        self.sent = 0
        """How many requests were sent."""
        self.usage: Final = RequestUsage()
        """The total cost of the requests."""
        self.last: ModelResponse | None = None
        """The last response."""
        self.failure: tuple[Exception, Exception] | None = None
        """The last error: as the guard was told, and as the framework raised it."""
        self._ctx: Final = ctx
        self._context: Final = context
        self._mode: Final = mode

    async def acomplete(self, request: Request) -> Completion:
        """Answer one request.

        Raises BackendError: the model did not answer. What is no fault of the model's is raised as it came.
        """
        # Tests forbid real requests by this call; the framework's doubles make none.
        if self._context.model.system not in _DOUBLES:
            about_to_send(self.name)
        try:
            return await self._answer(request)
        except BackendError as error:
            cause = error.__cause__
            self.failure = (error, cause if isinstance(cause, Exception) else error)
            raise
        except Exception as error:
            self.failure = (error, error)
            raise

    def charge(self) -> None:
        """Add the spending to the agent's run, where no response does."""
        self._ctx.usage.requests += self.sent
        self._ctx.usage.incr(self.usage)

    def answered(self) -> RequestUsage:
        """The usage for the response of the agent; the agent itself counts one request for it."""
        self._ctx.usage.requests += self.sent - 1
        limits = self._ctx.usage_limits
        if limits is None or limits.per_request_input_tokens_limit is None or self.last is None:
            return self.usage
        # The limit is for one request and not for their sum: the response is billed as the last one.
        rest = deepcopy(self.usage)
        for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"):
            setattr(rest, name, getattr(self.usage, name) - getattr(self.last.usage, name))
        rest.details = {
            name: count - self.last.usage.details.get(name, 0) for name, count in self.usage.details.items()
        }
        self._ctx.usage.incr(rest)
        return self.last.usage

    async def _answer(self, request: Request) -> Completion:
        if (limits := self._ctx.usage_limits) is not None:
            spent = deepcopy(self._ctx.usage)
            spent.requests += self.sent
            spent.incr(self.usage)
            # On a copy: the framework itself counts only the one request that it knows of.
            limits.check_before_request(spent)
        self.sent += 1
        try:
            # Not by the framework's handler, which can be called only once.
            response = await self._context.model.request(
                _messages(request),
                _settings(self._context.model_settings, request),
                _parameters(request, self._mode or _best_mode(self._context)),
            )
        except ContentFilterError:
            return Completion(None, finish_reason="content_filter")
        except ModelAPIError as error:
            cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
            raise as_backend_error(cause, self._say) from error
        except UnexpectedModelBehavior as error:  # its text may hold whatever the endpoint sent
            raise BackendError(f"{self.name}: {type(error).__name__}") from error
        if limits is not None and limits.cost_limit is not None and response.usage.cost is None:
            with suppress(LookupError, AssertionError):  # nobody knows the price of this model
                response.usage.cost = response.cost().total_price
        self.last = response
        self.usage.incr(response.usage)
        return _completion(response)

    def _say(self, words: str) -> str:
        return redact(f"{self.name}: {words[: 20 * _LONGEST_ERROR]}", None)[:_LONGEST_ERROR]  # cut before and after


# Requests


def _messages(request: Request) -> list[ModelMessage]:
    made: list[ModelMessage] = []
    parts: list[ModelRequestPart] = []
    for message in request.messages:
        if message.role != "assistant":
            part = SystemPromptPart if message.role == "system" else UserPromptPart
            parts.append(part(message.content))
            continue
        if parts:
            made.append(ModelRequest(parts))
            parts = []
        made.append(ModelResponse([TextPart(message.content)]))
    return [*made, ModelRequest(parts)] if parts else made


def _settings(given: ModelSettings | None, request: Request) -> ModelSettings:
    """The agent's settings, and the guard's where the agent has none; what is given as None is not sent."""
    asked = {"temperature": request.temperature, "max_tokens": request.max_tokens, "seed": request.seed}
    own = {name: value for name, value in (given or {}).items() if name not in _NOT_SENT and name != "seed"}
    sent = {name: value for name, value in ({**asked, **own}).items() if value is not None}
    caps = [cap for cap in (own.get("max_tokens"), request.max_tokens) if isinstance(cap, int)]
    if caps:
        sent["max_tokens"] = min(caps)
    return cast(ModelSettings, sent)


def _best_mode(context: ModelRequestContext) -> Mode | None:
    """The best mode of the model; None where the model that answers decides (`FallbackModel`)."""
    try:
        profile = context.model.profile
    except NotImplementedError:
        return None
    if profile.get("supports_json_schema_output", False):
        return "native"
    return "tool" if profile.get("supports_tools", True) else "text"


def _parameters(request: Request, mode: Mode | None) -> ModelRequestParameters:
    model = request.response_model
    if model is None or mode == "text":
        return ModelRequestParameters()
    schema = model.model_json_schema()
    shape = OutputObjectDefinition(json_schema=schema, name=RESPONSE_NAME, strict=True)
    tool = ToolDefinition(
        name=RESPONSE_NAME, parameters_json_schema=schema, description="Answer the steps.", strict=True, kind="output"
    )
    if mode == "native":
        return ModelRequestParameters(output_mode="native", output_object=shape)
    if mode == "tool":
        return ModelRequestParameters(output_mode="tool", output_tools=[tool], allow_text_output=False)
    return ModelRequestParameters(output_mode="auto", output_object=shape, output_tools=[tool])


def _completion(response: ModelResponse) -> Completion:
    # Text around a part of another kind must not grow together: NUL is valid nowhere in JSON.
    text = "\0".join(_runs(response.parts))
    details = response.provider_details or {}
    refusal = details.get("refusal")
    thinking = [part.content for part in response.parts if isinstance(part, ThinkingPart) and part.content]
    return Completion(
        text=text or None,
        finish_reason=response.finish_reason,
        refusal=refusal if isinstance(refusal, str) else None,
        reasoning="\n".join(thinking) or None,
        tool_calls=tuple(
            ToolCall(part.tool_name, _arguments(part)) for part in response.parts if isinstance(part, ToolCallPart)
        ),
        usage=Usage(
            calls=1,
            input_tokens=_count(response.usage.input_tokens),
            output_tokens=_count(response.usage.output_tokens),
            cached_tokens=_count(response.usage.cache_read_tokens),
            reasoning_tokens=_count(response.usage.details.get("reasoning_tokens")),
        ),
        model=response.model_name,
    )


def _runs(parts: Sequence[ModelResponsePart]) -> Iterator[str]:
    run: list[str] = []
    for part in parts:
        if isinstance(part, TextPart):
            run.append(part.content)
        elif run and not isinstance(part, ToolCallPart):
            yield "".join(run)
            run = []
    if run:
        yield "".join(run)


def _arguments(part: ToolCallPart) -> str:
    return part.args if isinstance(part.args, str) else json.dumps(part.args or {})


def _count(given: object) -> int:
    return given if type(given) is int and given > 0 else 0
