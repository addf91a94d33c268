"""OpenAI's responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from stepguard.integrations.chat.response_shapes import response_body, response_events
from stepguard.serve.chat_shape import read_messages, read_model
from stepguard.serve.errors import HttpProblem
from stepguard.serve.shapes import ChatRequest, Finished, Parameters, error_body, refuse, sse, unknown_parameters

_REFUSED: Final = ("previous_response_id", "conversation", "background", "prompt", "include")
_HARMLESS: Final[Mapping[str, tuple[object, ...]]] = {"background": (False,)}
_SAME: Final = ("stream", "tools", "tool_choice", "parallel_tool_calls", "top_logprobs")
"""What means the same to chat completions, and is judged there."""
_MORE: Final = (
    *("temperature", "top_p", "user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key"),
    "prompt_cache_retention",
)
"""Fields that go with every call."""
_READ_FIELDS: Final = frozenset(
    {"model", "input", "instructions", "stream_options", "text", "reasoning", "max_output_tokens"}
)
_LAST: Final = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})


class Responses:
    """``POST /v1/responses``; nothing is stored, so that no response can build on another."""

    name: Final = "responses"

    def read(self, body: Mapping[str, Any]) -> ChatRequest:
        input_items = body.get("input")
        messages = (
            [{"role": "user", "content": input_items}] if isinstance(input_items, str) else read_messages(input_items)
        )
        # Instructions stand before all items, as a system message does.
        if isinstance(words := body.get("instructions"), str):
            messages = [{"role": "system", "content": words}, *messages]
        return ChatRequest(read_model(body), messages, stream=body.get("stream") is True, include_usage=True, body=body)

    def parameters(self, body: Mapping[str, Any]) -> Parameters:
        refuse(body, _REFUSED, _HARMLESS)
        text, reasoning = (
            each if isinstance(each := body.get(name), Mapping) else {} for name in ("text", "reasoning")
        )
        arguments = {name: body[name] for name in _SAME if body.get(name) is not None}
        more = {name: body[name] for name in _MORE if body.get(name) is not None}
        for holder, name, called in (
            (body, "max_output_tokens", "max_completion_tokens"),
            (text, "format", "response_format"),
        ):
            if holder.get(name) is not None:
                arguments[called] = holder[name]
        for holder, name, called in ((reasoning, "effort", "reasoning_effort"), (text, "verbosity", "verbosity")):
            if holder.get(name) is not None:
                more[called] = holder[name]
        if more:
            arguments["extra_body"] = more
        return Parameters(arguments, unknown_parameters(body, _REFUSED, _SAME, _MORE, _READ_FIELDS))

    def answer(self, finished: Finished) -> dict[str, Any]:
        return response_body(finished.completion, id=finished.id)

    def events(self, finished: Finished) -> Iterator[bytes]:
        return (sse(event, event["type"]) for event in response_events(self.answer(finished)))

    def error(self, problem: HttpProblem) -> dict[str, Any]:
        return {"error": error_body(problem)}

    def error_event(self, problem: HttpProblem) -> bytes:
        # The event has its fields at the top; under `error` the SDK finds what makes it raise.
        body = error_body(problem)
        top = {name: body[name] for name in ("message", "code", "param")}
        return sse({"type": "error", "sequence_number": 0, **top, "error": body}, "error")

    def ends(self, event: Mapping[str, Any]) -> bool:
        return event.get("type") in _LAST
