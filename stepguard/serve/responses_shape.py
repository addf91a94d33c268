"""OpenAI's responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from stepguard.core.usage import Usage
from stepguard.serve.errors import HttpProblem
from stepguard.serve.openai_shapes import read_messages, read_model
from stepguard.serve.shapes import (
    ChatRequest,
    Finished,
    Parameters,
    error_body,
    pieces,
    refuse,
    sse,
    unknown_parameters,
)

__all__ = ["Responses"]

_REFUSED: Final = ("previous_response_id", "conversation", "background", "prompt", "include")
_HARMLESS: Final[Mapping[str, tuple[object, ...]]] = {"background": (False,)}
_SAME: Final = ("stream", "tools", "tool_choice", "parallel_tool_calls", "top_logprobs")
"""What means the same to chat completions, and is judged there."""
_MORE: Final = (
    *("temperature", "top_p", "user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key"),
    "prompt_cache_retention",
)
"""What goes with every call."""
_READ: Final = frozenset({"model", "input", "instructions", "stream_options", "text", "reasoning", "max_output_tokens"})
_LAST: Final = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})


class Responses:
    """``POST /v1/responses``; nothing is stored, so that no response can build on another."""

    name: Final = "responses"

    def read(self, body: Mapping[str, Any]) -> ChatRequest:
        given = body.get("input")
        messages = [{"role": "user", "content": given}] if isinstance(given, str) else read_messages(given)
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
        return Parameters(arguments, unknown_parameters(body, _REFUSED, _SAME, _MORE, _READ))

    def answer(self, finished: Finished) -> dict[str, Any]:
        return {
            **self._response(finished, "completed", [self._message(finished, "completed", finished.text)]),
            "usage": _usage(finished.usage),
            "stepguard": finished.facts,
        }

    def events(self, finished: Finished) -> Iterator[bytes]:
        number = -1

        def event(kind: str, **fields: Any) -> bytes:
            nonlocal number
            number += 1
            return sse({"type": kind, "sequence_number": number, **fields}, kind)

        at = {"output_index": 0}
        where = {"item_id": f"msg_{finished.id}", "content_index": 0, **at}
        begun = self._response(finished, "in_progress", [])
        yield event("response.created", response=begun)
        yield event("response.in_progress", response=begun)
        empty = {**self._message(finished, "in_progress", ""), "content": []}
        yield event("response.output_item.added", item=empty, **at)
        yield event("response.content_part.added", part=_part(""), **where)
        for piece in pieces(finished.text):
            yield event("response.output_text.delta", delta=piece, logprobs=[], **where)
        yield event("response.output_text.done", text=finished.text, logprobs=[], **where)
        yield event("response.content_part.done", part=_part(finished.text), **where)
        yield event("response.output_item.done", item=self._message(finished, "completed", finished.text), **at)
        yield event("response.completed", response=self.answer(finished))

    def error(self, problem: HttpProblem) -> dict[str, Any]:
        return {"error": error_body(problem)}

    def error_event(self, problem: HttpProblem) -> bytes:
        # The event has its fields at the top; under `error` the SDK finds what makes it raise.
        told = error_body(problem)
        top = {name: told[name] for name in ("message", "code", "param")}
        return sse({"type": "error", "sequence_number": 0, **top, "error": told}, "error")

    def ends(self, event: Mapping[str, Any]) -> bool:
        return event.get("type") in _LAST

    def _response(self, finished: Finished, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "id": f"resp_{finished.id}",
            "object": "response",
            "created_at": finished.created,
            "status": status,
            "model": finished.model,
            "output": output,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "parallel_tool_calls": False,
            "previous_response_id": None,
            "store": False,
            "temperature": None,
            "text": {"format": {"type": "text"}},
            "tool_choice": "none",
            "tools": [],
            "top_p": None,
        }

    def _message(self, finished: Finished, status: str, text: str) -> dict[str, Any]:
        return {
            "id": f"msg_{finished.id}",
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": [_part(text)],
        }


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.tokens,
    }
