"""Replies in pieces, as servers of chat completions send them, and requests that may be stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from conftest import Received, Reply
from openai_harness import REQUEST

from stepguard.backends import Request
from stepguard.engine.stopping import WrongStepWatch
from stepguard.replies.formats import EquationFormat


def stopping(request: Request = REQUEST) -> Request:
    """The request, as the engine makes it where its reply may be stopped."""
    return replace(request, stop=WrongStepWatch(request.steps, request.values, EquationFormat()))


def chunk(content: str | None = None, *, finish: str | None = None, **delta: object) -> dict[str, Any]:
    said = {**({} if content is None else {"content": content}), **delta}
    choice = {"index": 0, "delta": said, "finish_reason": finish}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "served",
        "choices": [choice],
        "usage": None,
    }


USAGE = {
    "id": "c1",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "served",
    "choices": [],
    "usage": {"prompt_tokens": 70, "completion_tokens": 30, "total_tokens": 100},
}


def events(text: str, *, size: int = 4, finish: str | None = "stop", tool: bool = False) -> list[object]:
    """The chunks of a reply, as servers send them."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    if tool:
        first = {"index": 0, "id": "t", "type": "function", "function": {"name": "Response", "arguments": ""}}
        made = [chunk(None, role="assistant", tool_calls=[first])]
        made += [chunk(tool_calls=[{"index": 0, "function": {"arguments": piece}}]) for piece in pieces]
    else:
        made = [chunk("", role="assistant"), *(chunk(piece) for piece in pieces)]
    ending: list[object] = [chunk(finish=finish), USAGE, "[DONE]"] if finish else []
    return [*made, *ending]


def answering(text: Callable[[Sequence[str]], dict[str, str]], **options: Any) -> Callable[[Received], Reply]:
    """Streams the entries of the steps that are asked."""

    def script(received: Received) -> Reply:
        asked = received.body["response_format"]["json_schema"]["schema"]["required"]
        body = json.dumps(text(asked))
        if received.body.get("stream"):
            return Reply(events=events(body), **options)
        choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": body}}
        return Reply({"choices": [choice], "usage": USAGE["usage"]})

    return script
