"""Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from stepguard.serve.chat_shape import read_messages, read_model
from stepguard.serve.errors import HttpProblem
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

_REFUSED: Final = ("mcp_servers", "container", "output_config", "output_format")
_SAME: Final[Mapping[str, str]] = {
    "stream": "stream",
    "tools": "tools",
    "tool_choice": "tool_choice",
    "stop_sequences": "stop",
    "max_tokens": "max_tokens",
}
"""What means the same to chat completions, by its name there, and is judged there."""
_READ_FIELDS: Final = frozenset({"model", "messages", "system", "metadata", "temperature", "top_p"})
_KINDS: Final = {
    400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error",
    413: "request_too_large", 429: "rate_limit_error", 503: "overloaded_error", 504: "timeout_error",
}  # fmt: skip


class Messages:
    """``POST /v1/messages``."""

    name: Final = "messages"

    def read(self, body: Mapping[str, Any]) -> ChatRequest:
        messages = read_messages(body.get("messages"))
        if system := body.get("system"):
            # Anthropic keeps the system prompt outside the messages; as one of them, it is trusted by its role.
            messages = [{"role": "system", "content": system}, *messages]
        return ChatRequest(read_model(body), messages, stream=body.get("stream") is True, include_usage=True, body=body)

    def parameters(self, body: Mapping[str, Any]) -> Parameters:
        refuse(body, _REFUSED, {})
        arguments = {called: body[name] for name, called in _SAME.items() if body.get(name) not in (None, [])}
        more = {name: body[name] for name in ("temperature", "top_p") if body.get(name) is not None}
        # Anthropic's name for what OpenAI calls `user`.
        if isinstance(about := body.get("metadata"), Mapping) and about.get("user_id") is not None:
            more["user"] = about["user_id"]
        if more:
            arguments["extra_body"] = more
        return Parameters(arguments, unknown_parameters(body, _REFUSED, _SAME, _READ_FIELDS))

    def answer(self, finished: Finished) -> dict[str, Any]:
        usage = _input(finished) | {"output_tokens": finished.usage.output_tokens}
        return {
            **_head(finished),
            "content": [{"type": "text", "text": finished.text}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": usage,
            "stepguard": finished.facts,
        }

    def events(self, finished: Finished) -> Iterator[bytes]:
        def event(kind: str, **fields: Any) -> bytes:
            return sse({"type": kind, **fields}, kind)

        usage = _input(finished) | {"output_tokens": 0}
        empty = {**_head(finished), "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        yield event("message_start", message=empty)
        yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for piece in pieces(finished.text):
            yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
        yield event("content_block_stop", index=0)
        yield event(
            "message_delta",
            delta={"stop_reason": "end_turn", "stop_sequence": None},
            usage={"output_tokens": finished.usage.output_tokens},
            stepguard=finished.facts,
        )
        yield event("message_stop")

    def error(self, problem: HttpProblem) -> dict[str, Any]:
        body: dict[str, Any] = {"type": _kind(problem), "message": problem.message}
        if problem.facts is not None:
            body["stepguard"] = error_body(problem)["stepguard"]
        return {"type": "error", "error": body}

    def error_event(self, problem: HttpProblem) -> bytes:
        return sse(self.error(problem), "error")

    def ends(self, event: Mapping[str, Any]) -> bool:
        return event.get("type") in ("message_stop", "error")


def _kind(problem: HttpProblem) -> str:
    if problem.status == 422:
        return problem.kind  # a run that is not verified has no name of theirs
    return _KINDS.get(problem.status, "invalid_request_error" if problem.status < 500 else "api_error")


def _head(finished: Finished) -> dict[str, Any]:
    return {"id": f"msg_{finished.id}", "type": "message", "role": "assistant", "model": finished.model}


def _input(finished: Finished) -> dict[str, Any]:
    """The tokens of the prompt; those from a cache stand apart from the others in this protocol."""
    usage = finished.usage
    return {
        "input_tokens": max(0, usage.input_tokens - usage.cached_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
    }
