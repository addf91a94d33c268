"""Bodies of OpenAI's responses for the scripted server."""

from __future__ import annotations

from typing import Any


def response(text: str | None, *, status: str = "completed", **fields: Any) -> dict[str, Any]:
    """The body of a response, with a summary of what was thought in front."""
    parts = [] if text is None else [{"type": "output_text", "text": text, "annotations": []}]
    output = [
        {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "add, then multiply"}]},
        {"id": "msg_1", "type": "message", "role": "assistant", "status": status, "content": parts},
    ]
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": "served-model",
        "output": output,
        "error": None,
        "incomplete_details": None,
        "usage": {
            "input_tokens": 40,
            "input_tokens_details": {"cached_tokens": 32},
            "output_tokens": 25,
            "output_tokens_details": {"reasoning_tokens": 9},
            "total_tokens": 65,
        },
        **fields,
    }
