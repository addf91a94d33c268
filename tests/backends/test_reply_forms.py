"""Replies in every vendor's form: what is no text is refused, and no answer is put together of two."""

from __future__ import annotations

from typing import Any

import pytest
from responses_harness import response
from tables import all_rows

from stepguard.backends import Completion
from stepguard.backends.chat_completions import read_completion
from stepguard.backends.reply_forms import chat_body
from stepguard.errors import BackendError


def read(body: object) -> Completion:
    return read_completion(chat_body(body), lambda words: words, asked=40)


def message(*texts: object, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "content": [{"type": "output_text", "text": text} for text in texts], **fields}


def of_gemini(*parts: dict[str, Any], finish: str | None = "STOP") -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(parts)}, "finish_reason": finish}], "usage_metadata": {}}


ENDS: list[tuple[str, Any, str | None, str | None]] = [
    ("two messages", response(None, output=[message('{"t1": "1'), message('+ 1"}')]), '{"t1": "1\n+ 1"}', "stop"),
    ("two parts", response(None, output=[message("A", "B")]), "AB", "stop"),
    ("a cut message", response(None, output=[message("A", status="incomplete")]), "A", "incomplete"),
    ("no reason", response("A", status="incomplete"), "A", "incomplete"),
    ("odd items", response(None, output=[None, 3, {"type": "message", "content": None}]), None, "stop"),
    (
        "odd reasoning",
        response(None, output=[{"type": "reasoning", "summary": [{"text": 5}]}, message("A")]),
        "A",
        "stop",
    ),
    ("anthropic", {"role": "assistant", "content": "A", "stop_reason": "end_turn", "usage": {}}, "A", "end_turn"),
    ("two of gemini", of_gemini({"text": "A"}, {"text": "B"}), "AB", "STOP"),
    ("thoughts of gemini", of_gemini({"text": "B", "thought": True}), None, "STOP"),
    ("nothing of gemini", {"candidates": [], "usage_metadata": {}}, None, None),
    ("bedrock", {"output": {"message": {"content": [{"text": "A"}]}}, "stopReason": "end_turn"}, "A", "end_turn"),
    ("cohere, first", {"text": "A", "finish_reason": "COMPLETE"}, "A", "COMPLETE"),
]


@all_rows("body, text, finish", [row[1:] for row in ENDS])
def test_what_is_read(body: Any, text: str | None, finish: str | None) -> None:
    """The text is that of the answer alone, and the end is what the vendor says."""
    completion = read(body)
    assert (completion.text, completion.finish_reason) == (text, finish)


FAILED: list[tuple[str, Any, bool]] = [
    ("an odd status", response("A", status="archived"), True),
    ("no text", response(None, output=[message(5)]), False),
    ("no text of gemini", of_gemini({"text": 5}), False),
    ("a number that was read", response(None, output=[{"type": "function_call", "arguments": {"a": 1.5}}]), False),
    ("cohere", {"message": {"content": [{"type": "text", "text": "A"}]}, "finish_reason": "TIMEOUT"}, True),
    ("an overload", {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, True),
    ("nothing", None, True),
    ("another form", {"generation": "A"}, True),
]


@all_rows("body, retryable", [row[1:] for row in FAILED])
def test_what_is_no_reply(body: Any, retryable: bool) -> None:
    """A failure of the vendor's may pass, a text that is none does not."""
    with pytest.raises(BackendError) as caught:
        read(body)
    assert caught.value.retryable == retryable


def test_a_blocked_prompt() -> None:
    """A prompt that Gemini blocks is a refusal, with its reason."""
    assert read({"prompt_feedback": {"block_reason": "SAFETY"}}).refusal == "the prompt was blocked (safety)"


@pytest.mark.parametrize(("total", "output"), [(65, 16), (74, 25), (70, 16)])
def test_hidden_tokens_counted_apart(total: int, output: int) -> None:
    """What was thought is output, also where an endpoint counts it beside the reply; the sum tells which it does."""
    usage = {"prompt_tokens": 49, "completion_tokens": 16, "total_tokens": total}
    usage["completion_tokens_details"] = {"reasoning_tokens": 9}  # type: ignore[assignment]
    body = {"choices": [{"finish_reason": "stop", "message": {"content": "A"}}], "usage": usage}
    assert (read(body).usage.output_tokens, read(body).usage.reasoning_tokens) == (output, 9)
