"""Turns the events of Anthropic's streamed messages into the pieces of a chat completion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stepguard.backends.base import Request
from stepguard.backends.completion_streams import CompletionStream
from stepguard.backends.reply_forms import chat_body
from stepguard.backends.sdk_errors import field

_PARTS: Final[Mapping[object, tuple[str, str]]] = {
    "text_delta": ("content", "text"),
    "thinking_delta": ("reasoning_content", "thinking"),
}
_COUNTS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


class AnthropicStream(CompletionStream):
    """One message that comes as events; see `CompletionStream`.

    The first event counts the tokens of the prompt, the last but one those of the reply: of one that is broken off the
    reply alone is estimated.
    """

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self._counts: dict[str, object] = {}
        self._prompt: dict[str, Any] = {}

    def take(self, chunk: object) -> bool:
        """Take an event in; whether no more are needed."""
        return super().take(self._as_chunk(chunk))

    def _as_chunk(self, event: object) -> Mapping[str, Any]:
        kind, delta = field(event, "type"), field(event, "delta")
        if kind == "error":
            return {"error": field(event, "error") or "the stream brought an error without words"}
        if kind == "message_start":
            counted = self._counted(field(event, "message", "usage"), None)
            self._prompt = {name: counted["usage"][name] for name in ("prompt_tokens", "prompt_tokens_details")}
            return {"model": field(event, "message", "model")}
        if kind == "message_delta":
            return self._counted(field(event, "usage"), delta)
        piece: dict[str, Any] = {}
        if kind == "content_block_delta" and field(delta, "type") in _PARTS:
            name, part = _PARTS[field(delta, "type")]
            piece = {name: field(delta, part)}
        elif kind == "content_block_delta" and field(delta, "type") == "input_json_delta":
            piece = _call(event, arguments=field(delta, "partial_json"))
        elif kind == "content_block_start" and field(event, "content_block", "type") == "tool_use":
            piece = _call(event, name=field(event, "content_block", "name"))
        elif kind == "content_block_start":
            piece = {"content": field(event, "content_block", "text")}
        return {"choices": [{"index": 0, "delta": piece}]}

    def _counted(self, usage: object, ending: object) -> dict[str, Any]:
        """How the message ends, as far as it does, and what it has cost so far: the counts of an event are of all."""
        self._counts |= {name: count for name in _COUNTS if (count := field(usage, name)) is not None}
        text = {"type": "text", "text": "".join(self._texts["content"])}
        reason = {name: field(ending, name) for name in ("stop_reason", "stop_details")}
        body: Any = chat_body({"role": "assistant", "content": [text], "usage": self._counts, **reason})
        choice = body["choices"][0]
        refusal = {"refusal": choice["message"]["refusal"]}
        return {**body, "choices": [{"index": 0, "delta": refusal, "finish_reason": choice["finish_reason"]}]}

    def _estimate(self) -> Mapping[str, Any]:
        return {**super()._estimate(), **self._prompt}


def _call(event: object, **function: object) -> dict[str, Any]:
    return {"tool_calls": [{"index": field(event, "index"), "function": function}]}
