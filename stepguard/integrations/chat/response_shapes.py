"""A guarded answer in the form of OpenAI's responses: whole, or as the events of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any, Final

_PIECE: Final = 400  # nothing is gained by smaller ones: the answer is complete


def response_body(completion: Mapping[str, Any], *, id: str) -> dict[str, Any]:
    """The body of a response.

    Args:
        completion: the answer as `stepguard.integrations.chat.answers.completion_body` makes it. One without content
            becomes a response that is incomplete, with its refusal.
        id: what the response and its message are called by.
    """
    (choice,) = completion["choices"]
    message, usage = choice["message"], completion["usage"]
    refusal = message.get("refusal")
    cut = "max_output_tokens" if choice["finish_reason"] == "length" else "content_filter"
    part = _text(message["content"]) if refusal is None else {"type": "refusal", "refusal": refusal}
    status = "completed" if refusal is None else "incomplete"
    return {
        "id": f"resp_{id}",
        "object": "response",
        "created_at": completion["created"],
        "status": status,
        "model": completion["model"],
        "output": [{"id": f"msg_{id}", "type": "message", "role": "assistant", "status": status, "content": [part]}],
        "error": None,
        "incomplete_details": None if refusal is None else {"reason": cut},
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
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {**usage["prompt_tokens_details"], "cache_write_tokens": 0},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": usage["completion_tokens_details"],
            "total_tokens": usage["total_tokens"],
        },
        "stepguard": completion["stepguard"],
    }


def response_events(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The events of a stream that ends with a response of `response_body`."""
    numbers = count()
    (message,) = body["output"]
    (part,) = message["content"]
    at = {"output_index": 0}
    where = {"item_id": message["id"], "content_index": 0, **at}
    begun = {name: value for name, value in body.items() if name not in ("stepguard", "usage")}
    begun |= {"status": "in_progress", "output": [], "incomplete_details": None}

    def event(kind: str, **fields: Any) -> dict[str, Any]:
        return {"type": f"response.{kind}", "sequence_number": next(numbers), **fields}

    yield event("created", response=begun)
    yield event("in_progress", response=begun)
    yield event("output_item.added", item={**message, "status": "in_progress", "content": []}, **at)
    if part["type"] == "refusal":
        yield event("content_part.added", part={**part, "refusal": ""}, **where)
        yield event("refusal.delta", delta=part["refusal"], **where)
        yield event("refusal.done", refusal=part["refusal"], **where)
    else:
        text = part["text"]
        yield event("content_part.added", part=_text(""), **where)
        for place in range(0, len(text), _PIECE):
            yield event("output_text.delta", delta=text[place : place + _PIECE], logprobs=[], **where)
        yield event("output_text.done", text=text, logprobs=[], **where)
    yield event("content_part.done", part=part, **where)
    yield event("output_item.done", item=message, **at)
    yield event(body["status"], response=body)


def _text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}
