"""What a request is called by each vendor whose client instructor has wrapped: parameters, forms and marks of a cache.

instructor turns messages into those of a vendor. The parameters around them are given here, because each vendor takes
others: what one does not take is left out. Nothing of instructor's own prompts is added: a schema goes where a vendor
binds replies to it, and nowhere else, so that the beginning of a prompt stays what it was for the vendor's cache.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from stepguard.backends.anthropic_streams import AnthropicStream
from stepguard.backends.base import Message, Request
from stepguard.backends.completion_streams import OPTIONS, CompletionStream
from stepguard.backends.request_shapes import chat_form, longest_silence

if TYPE_CHECKING:
    from pydantic import BaseModel

ReplyBinding = Literal["json_schema", "json"]

_SHORTEST_KEPT: Final = 4096
"""Characters of a prompt that are worth keeping: some 1,024 tokens, below which no vendor keeps any."""
_USUAL: Final = MappingProxyType({name: name for name in ("temperature", "max_tokens", "seed", "timeout")})

_Parameters = dict[str, Any]


def _messages(request: Request, mark: _Parameters | None) -> _Parameters:
    return {"messages": request.chat()}


def _no_form(response_model: type[BaseModel]) -> _Parameters:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """How a vendor is asked through instructor.

    Attributes:
        mode: the mode of instructor's whose request handler writes the messages.
        schema_mode: that which also binds the reply to a schema by a parameter of the vendor's; None where none does.
        binding: how replies are bound by default.
        names: the vendor's names of temperature, max_tokens, seed and timeout; what is not there, it does not take.
        messages: writes the messages, with a mark behind what a cache is to keep.
        mark: that mark; None where a vendor keeps prompts by itself.
        schema: parameters that bind the reply to a schema, where no mode of instructor's does.
        any_object: parameters that ask for some JSON object.
        finish: a last look at the parameters.
        least_tokens: what is asked for where a request limits no reply and the vendor insists.
        stream: what puts a reply together that comes as events; None where they come by another method of the SDK.
        stream_options: the parameters that ask for them.
    """

    mode: str = "JSON_SCHEMA"
    schema_mode: str | None = "JSON_SCHEMA"
    binding: ReplyBinding = "json_schema"
    names: Mapping[str, str] = field(default_factory=lambda: _USUAL)
    messages: Callable[[Request, _Parameters | None], _Parameters] = _messages
    mark: Mapping[str, Any] | None = None
    schema: Callable[[type[BaseModel]], _Parameters] = _no_form
    any_object: Mapping[str, Any] = field(default_factory=lambda: {"response_format": {"type": "json_object"}})
    finish: Callable[[_Parameters], _Parameters] = dict
    least_tokens: int | None = None
    stream: type[CompletionStream] | None = None
    stream_options: Mapping[str, object] = field(default_factory=lambda: OPTIONS)

    def parameters(
        self, request: Request, binding: ReplyBinding, *, marked: bool, extra: Mapping[str, object]
    ) -> _Parameters:
        """The parameters of a request, as instructor takes them.

        Args:
            request: what is asked.
            binding: how its reply is bound to its form.
            marked: whether a cache is told what to keep.
            extra: further parameters, which win; a mapping is merged, None drops one.
        """
        given = {
            "temperature": request.temperature,
            "max_tokens": self.least_tokens if request.max_tokens is None else request.max_tokens,
            "seed": request.seed,
            "timeout": longest_silence(request.timeout),
        }
        mark = dict(self.mark) if marked and self.mark is not None else None
        parameters = self.messages(request, mark)
        parameters |= {called: given[name] for name, called in self.names.items() if given[name] is not None}
        if (response_model := request.response_model) is not None:
            form = self.any_object if binding == "json" else self.schema(response_model)
            parameters |= form
        if request.stop is not None:
            parameters |= self.stream_options
        parameters = self.finish(parameters)
        for name, value in extra.items():
            before = parameters.get(name)
            both = isinstance(before, Mapping) and isinstance(value, Mapping)
            parameters[name] = {**before, **value} if both else value  # type: ignore[dict-item]
        return {name: value for name, value in parameters.items() if value is not None}


def taken_by(send: Callable[..., Any], parameters: _Parameters) -> _Parameters:
    """Those of some parameters that a method takes, where it says so."""
    try:
        known = inspect.signature(send).parameters
    except (TypeError, ValueError):
        return parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in known.values()):
        return parameters
    # Nothing else is dropped in silence: without its form, say, a reply would be free text.
    may_lack = {*_USUAL, "stream_options"}
    return {name: value for name, value in parameters.items() if name in known or name not in may_lack}


# The vendors


def cached_part(request: Request) -> tuple[int, str, str] | None:
    """Where a mark goes: the place of the last message that is kept, its text up to there and the rest of it.

    None where too little comes again to be worth it. What comes again with every request of a run are all messages but
    the last one, and the documents in front of that.
    """
    before = sum(len(message.content) for message in request.messages[:-1])
    if not request.messages or before + request.shared < _SHORTEST_KEPT:
        return None
    last = len(request.messages) - 1
    if request.shared:
        text = request.messages[last].content
        return last, text[: request.shared], text[request.shared :]
    return (last - 1, request.messages[last - 1].content, "") if last else None


def _in_blocks(message: Message, place: int, mark: _Parameters | None, cut: tuple[int, str, str] | None) -> _Parameters:
    """A message of Anthropic's: its text, or blocks of it with a mark on the one that ends what is kept."""
    if mark is None or cut is None or cut[0] != place:
        return {"role": message.role, "content": message.content}
    blocks = [{"type": "text", "text": cut[1], **mark}, *([{"type": "text", "text": cut[2]}] if cut[2] else [])]
    return {"role": message.role, "content": blocks}


def _anthropic_messages(request: Request, mark: _Parameters | None) -> _Parameters:
    cut = None if mark is None else cached_part(request)
    return {"messages": [_in_blocks(message, place, mark, cut) for place, message in enumerate(request.messages)]}


def _bedrock_messages(request: Request, mark: _Parameters | None) -> _Parameters:
    cut = None if mark is None else cached_part(request)
    messages: list[_Parameters] = []
    for place, message in enumerate(request.messages):
        content: object = message.content
        if mark is not None and cut is not None and cut[0] == place and message.role != "system":
            content = [{"text": cut[1]}, mark, *([{"text": cut[2]}] if cut[2] else [])]
        messages.append({"role": message.role, "content": content})
    return {"messages": messages}


def _google_messages(request: Request, mark: _Parameters | None) -> _Parameters:
    turns = [
        {"role": "model" if message.role == "assistant" else "user", "content": message.content}
        for message in request.messages
        if message.role != "system"
    ]
    system = "\n\n".join(message.content for message in request.messages if message.role == "system")
    return {"messages": turns, "system": system or None}


def _google_config(parameters: _Parameters) -> _Parameters:
    """Everything but the messages and the model stands in one object; one request is one request."""
    ours = {name: parameters.pop(name) for name in list(parameters) if name not in ("messages", "system", "model")}
    transport: _Parameters = {"retry_options": {"attempts": 1}}
    if (seconds := ours.pop("timeout", None)) is not None:
        transport["timeout"] = max(1, round(1000 * seconds))
    return {**parameters, "config": {**ours, "http_options": transport}}


def _google_schema(response_model: type[BaseModel]) -> _Parameters:
    return {"response_mime_type": "application/json", "response_json_schema": response_model.model_json_schema()}


def _older_google_messages(request: Request, mark: _Parameters | None) -> _Parameters:
    """Messages of Google's SDKs before the present one, which take no system message with a request."""
    contents: list[_Parameters] = []
    for message in request.messages:
        role, part = "model" if message.role == "assistant" else "user", {"text": message.content}
        if contents and contents[-1]["role"] == role:
            contents[-1]["parts"].append(part)
        else:
            contents.append({"role": role, "parts": [part]})
    return {"contents": contents}


def _older_google_config(parameters: _Parameters) -> _Parameters:
    return {"contents": parameters.pop("contents"), "generation_config": parameters}


def _anthropic_schema(response_model: type[BaseModel]) -> _Parameters:
    form = {"type": "json_schema", "schema": response_model.model_json_schema()}
    return {"output_config": {"format": form}}


def _cohere_options(parameters: _Parameters) -> _Parameters:
    options: _Parameters = {"max_retries": 0}
    if (seconds := parameters.pop("timeout", None)) is not None:
        options["timeout_in_seconds"] = max(1, round(seconds))
    return {**parameters, "request_options": options}


def _mistral_options(parameters: _Parameters) -> _Parameters:
    if (seconds := parameters.pop("timeout", None)) is not None:
        parameters["timeout_ms"] = max(1, round(1000 * seconds))
    return parameters


def _chat_schema(response_model: type[BaseModel]) -> _Parameters:
    return dict(chat_form(response_model, "json_schema", True))


def _renamed(**names: str) -> Mapping[str, str]:
    """The usual names with some changed; an empty one is not taken."""
    return {name: called for name, called in {**_USUAL, **names}.items() if called}


_NO_OPTIONS: Final[Mapping[str, Any]] = {}

_USUAL_WIRE: Final = Wire(mode="TOOLS", schema_mode=None, schema=_chat_schema, stream=CompletionStream)
_LOOSE_WIRE: Final = replace(_USUAL_WIRE, binding="json")

_OLDER_GOOGLE_WIRE: Final = Wire(
    mode="MD_JSON",
    schema_mode=None,
    binding="json",
    names=_renamed(max_tokens="max_output_tokens", seed="", timeout=""),
    messages=_older_google_messages,
    schema=lambda response_model: {"response_mime_type": "application/json"},
    any_object={"response_mime_type": "application/json"},
    finish=_older_google_config,
)

# `binding` is the strongest that a vendor documents for all of its models, not for the newest alone.
_WIRES: Final[Mapping[str, Wire]] = {
    "anthropic": Wire(
        mode="JSON",
        schema_mode=None,
        binding="json",
        names=_renamed(seed=""),
        messages=_anthropic_messages,
        mark={"cache_control": {"type": "ephemeral"}},
        schema=_anthropic_schema,
        any_object=_NO_OPTIONS,
        least_tokens=4096,
        stream=AnthropicStream,
        stream_options={"stream": True},
    ),
    "genai": Wire(
        mode="JSON",
        schema_mode=None,
        names=_renamed(max_tokens="max_output_tokens"),
        messages=_google_messages,
        schema=_google_schema,
        any_object={"response_mime_type": "application/json"},
        finish=_google_config,
    ),
    "bedrock": Wire(
        mode="TOOLS",
        binding="json",
        names=_renamed(seed="", timeout=""),
        messages=_bedrock_messages,
        mark={"cachePoint": {"type": "default"}},
        any_object=_NO_OPTIONS,
    ),
    "cohere": Wire(finish=_cohere_options),
    "mistral": Wire(names=_renamed(seed="random_seed"), finish=_mistral_options),
    "writer": Wire(names=_renamed(seed=""), any_object=_NO_OPTIONS),
    **dict.fromkeys(("vertexai", "gemini"), _OLDER_GOOGLE_WIRE),
    "xai": Wire(names=_renamed(timeout=""), any_object=_NO_OPTIONS),
    "perplexity": replace(_USUAL_WIRE, mode="MD_JSON"),
    "openrouter": Wire(stream=CompletionStream),
    **dict.fromkeys(("groq", "deepseek", "anyscale"), _LOOSE_WIRE),
}


def wire_of(provider: str) -> Wire:
    """How the clients of a provider of instructor's are asked; those of others speak chat completions."""
    return _WIRES.get(provider, _USUAL_WIRE)
