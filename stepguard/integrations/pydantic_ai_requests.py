"""An agent's model as a backend, and its messages, settings and output types as the guard knows them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Final, Literal, cast

from pydantic_ai.exceptions import ContentFilterError, ModelAPIError, SkipModelRequest, UnexpectedModelBehavior
from pydantic_ai.messages import (
    CachePoint,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    RetryPromptPart,
    SpeechPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext, ToolDefinition
from pydantic_ai.usage import RequestUsage

from stepguard.backends.base import Completion, Request, ToolCall, about_to_send
from stepguard.backends.openai_answers import as_backend_error, redact
from stepguard.errors import BackendError, ConfigError
from stepguard.procedure import Procedure
from stepguard.reply_formats import RESPONSE_NAME
from stepguard.results import Result
from stepguard.usage import Usage

__all__ = ["AgentBackend", "AnswerShape", "Mode", "read_agent_messages"]

Mode = Literal["native", "tool", "text"]
"""How replies are bound to their form: by a JSON schema, by one tool, or by the words of the prompt alone."""

Handler = Callable[[ModelRequestContext], Awaitable[ModelResponse]]

_DOUBLES: Final = frozenset({"function", "test"})
_NOT_SENT: Final = frozenset({"parallel_tool_calls", "tool_choice"})
"""They are about tools, and a guarded request has none of the agent's."""
_LONGEST_ERROR: Final = 500
_ONE_VALUE: Final = "response"
"""What the framework calls the field that it wraps around an output which is no object of named fields."""


class AgentBackend:
    """Asks the model of an agent; made for one guarded request.

    Args:
        ctx: the context of the agent's run.
        context: the request as the agent would have made it.
        handler: what performs a request, so that capabilities inside see it; None asks the model directly. (The
            handler of a streamed request can be used only once, and streams what is not verified yet.)
        mode: how replies are bound to their form; None for the best that the model can do.
    """

    def __init__(
        self, ctx: RunContext[Any], context: ModelRequestContext, *, handler: Handler | None, mode: Mode | None
    ) -> None:
        self.name: Final = context.model.model_name
        self.sent = 0
        """How many requests were sent."""
        self.usage: Final = RequestUsage()
        """What all of them cost."""
        self.last: ModelResponse | None = None
        """The last response."""
        self.failure: tuple[Exception, Exception] | None = None
        """The last error: as the guard was told, and as the framework raised it."""
        self._ctx: Final = ctx
        self._context: Final = context
        self._handler: Final = handler
        self._mode: Final = mode

    async def acomplete(self, request: Request) -> Completion:
        """Answer one request.

        Raises:
            BackendError: the model did not answer. What is no fault of the model's is raised as it came.
        """
        if self._context.model.system not in _DOUBLES:
            about_to_send(self.name)
        try:
            return await self._answer(request)
        except BackendError as error:
            self.failure = (error, cast(Exception, error.__cause__))
            raise
        except Exception as error:
            self.failure = (error, error)
            raise

    def charge(self) -> None:
        """Book what was spent on the agent's run, where no response of it will."""
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
            limits.check_before_request(spent)
        context = replace(
            self._context,
            messages=_messages(request),
            model_settings=_settings(self._context.model_settings, request),
            model_request_parameters=_parameters(request, self._mode or _best_mode(self._context)),
            streaming=False,
        )
        self.sent += 1
        try:
            response = await self._perform(context)
        except SkipModelRequest as skipped:
            response = skipped.response
        except ContentFilterError:
            return Completion(None, finish_reason="content_filter")
        except ModelAPIError as error:
            cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
            raise as_backend_error(cause, self._say) from error
        except UnexpectedModelBehavior as error:  # its text may hold whatever the endpoint sent
            raise BackendError(f"{self.name}: {type(error).__name__}") from error
        self.last = response
        self.usage.incr(response.usage)
        return _completion(response)

    async def _perform(self, context: ModelRequestContext) -> ModelResponse:
        if self._handler is not None:
            return await self._handler(context)
        return await context.model.request(context.messages, context.model_settings, context.model_request_parameters)

    def _say(self, words: str) -> str:
        return redact(f"{self.name}: {words[: 20 * _LONGEST_ERROR]}", None)[:_LONGEST_ERROR]


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
    """The best that the model can do; None where it is to be decided by the model that answers (`FallbackModel`)."""
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


# What the agent says and wants


def read_agent_messages(context: ModelRequestContext) -> list[dict[str, object]]:
    """The messages of an agent as `stepguard.integrations.chat` reads them.

    What tools returned, and what the framework asks to be mended, is nothing that the user says.
    """
    instructions = [part.content for part in context.model_request_parameters.instruction_parts or ()]
    said: list[dict[str, object]] = []
    if instructions:
        said.append({"role": "system", "content": "\n\n".join(instructions)})
    for message in context.messages:
        if isinstance(message, ModelResponse):
            said.append({"role": "assistant", "content": message.text or ""})
            continue
        for part in message.parts:
            if isinstance(part, SystemPromptPart):
                said.append({"role": "system", "content": part.content})
            elif isinstance(part, UserPromptPart):
                said.append({"role": "user", "content": _content(part)})
            elif isinstance(part, SpeechPart):
                said.append({"role": "user", "content": [{"type": "audio"}]})
            elif isinstance(part, ToolReturnPart | RetryPromptPart):
                said.append({"role": "tool", "content": ""})
    return said


def _content(part: UserPromptPart) -> str | list[dict[str, str]]:
    if isinstance(part.content, str):
        return part.content
    texts = [item.content if isinstance(item, TextContent) else item for item in part.content]
    kept = [item for item in texts if not isinstance(item, CachePoint)]
    return [{"type": "text", "text": item} if isinstance(item, str) else {"type": "file"} for item in kept]


class AnswerShape:
    """How an agent wants its answer: as text, as JSON, or as a call of its output tool.

    Args:
        parameters: what the agent would have asked of its model.
        procedure: what is run.

    Raises:
        ConfigError: the output type wants what the procedure does not give.
    """

    def __init__(self, parameters: ModelRequestParameters, procedure: Procedure) -> None:
        self._procedure: Final = procedure
        self._tool: ToolDefinition | None = None
        self._names: tuple[str, ...] | None = None
        self._whole = False
        schemas: list[tuple[ToolDefinition | None, Mapping[str, Any]]] = []
        mode = parameters.output_mode
        if mode in ("native", "prompted") and parameters.output_object is not None:
            schemas.append((None, parameters.output_object.json_schema))
        elif mode == "auto" or not parameters.allow_text_output:
            schemas += [(tool, tool.parameters_json_schema) for tool in parameters.output_tools]
        if not schemas and parameters.allow_text_output:
            return
        for tool, schema in schemas:
            if (names := self._fillable(schema)) is not None:
                self._tool, self._names = tool, names
                return
        raise ConfigError(
            f"the output type of the agent wants what {procedure.name} does not give: use str, one value (the answer), "
            "or a type whose fields are called like steps, inputs or answer",
            option="output_type",
        )

    def parts(self, result: Result, text: str) -> list[ModelResponsePart]:
        """The parts of the response that hold an answer; `text` is the answer as text."""
        if self._names is None:
            return [TextPart(text)]
        told = result.to_dict()
        steps = {step.id: told["values"][step.id] for step in self._procedure.steps}
        values = {_ONE_VALUE: steps if self._whole else told["answer"], "answer": told["answer"], **told["values"]}
        filled = json.dumps({name: values[name] for name in self._names}, ensure_ascii=False)
        return [TextPart(filled) if self._tool is None else ToolCallPart(self._tool.name, filled)]

    def _fillable(self, schema: Mapping[str, Any]) -> tuple[str, ...] | None:
        """The properties of a schema that can be filled; None where one that is required cannot."""
        properties = list(schema.get("properties", ()))
        known = (
            {step.id for step in self._procedure.steps} | {each.name for each in self._procedure.inputs} | {"answer"}
        )
        if properties == [_ONE_VALUE]:
            kind = schema["properties"][_ONE_VALUE].get("type")
            self._whole = kind == "object"
            return None if kind == "array" else (_ONE_VALUE,)
        if not known.issuperset(schema.get("required", ())):
            return None
        return tuple(name for name in properties if name in known) or None
