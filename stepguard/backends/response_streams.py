"""Turns the events of OpenAI's streamed responses into the pieces of a chat completion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stepguard.backends.completion_streams import CompletionStream
from stepguard.backends.reply_forms import chat_body
from stepguard.backends.sdk_errors import field

_DELTAS: Final[Mapping[str, str]] = {
    "response.output_text.delta": "content",
    "response.refusal.delta": "refusal",
    "response.reasoning_text.delta": "reasoning_content",
    "response.reasoning_summary_text.delta": "reasoning_content",
}
_LAST: Final = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})


class ResponseStream(CompletionStream):
    """One response that comes as events; see `CompletionStream`."""

    def take(self, chunk: object) -> bool:
        """Take an event in; whether no more are needed."""
        return super().take(_as_chunk(chunk))


def _as_chunk(event: object) -> Mapping[str, Any]:
    kind = field(event, "type")
    if kind == "error" or field(event, "error"):
        return {"error": field(event, "error") or {name: field(event, name) for name in ("code", "message")}}
    if kind in _LAST:
        body = chat_body(field(event, "response"))
        return body if isinstance(body, Mapping) else {"error": "the last event of the stream holds no response"}
    delta: dict[str, Any] = {}
    if kind in _DELTAS:
        delta = {_DELTAS[kind]: field(event, "delta")}
    elif kind == "response.function_call_arguments.delta":
        delta = _call(event, arguments=field(event, "delta"))
    elif kind == "response.output_item.added" and field(event, "item", "type") == "function_call":
        delta = _call(event, name=field(event, "item", "name"))
    chunk: dict[str, Any] = {"choices": [{"index": 0, "delta": delta}]}
    if (model := field(event, "response", "model")) is not None:
        chunk["model"] = model
    return chunk


def _call(event: object, **function: object) -> dict[str, Any]:
    return {"tool_calls": [{"index": field(event, "output_index"), "function": function}]}
