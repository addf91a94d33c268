"""The replies of all vendors in one form: the body of a chat completion, which one reader reads.

A body is recognised by what it holds, not by who sent it: OpenAI's responses, Anthropic's messages, Gemini's
candidates, Bedrock's and Cohere's messages come through more than one client each. Fields are read where they are
there, of objects and of dictionaries alike. Counts are those of chat completions: the tokens of a prompt include those
from a cache, those of a reply include the hidden ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final

from stepguard.backends.chat_completions import token_count
from stepguard.backends.sdk_errors import field

_Body = dict[str, Any]


def chat_body(raw: object) -> object:
    """A reply in the form of a chat completion; what is of no known form is given back as it is."""
    if field(raw, "choices") is not None:
        return raw
    for read, names in _FORMS:
        if all(field(raw, name) is not None for name in names):
            return read(raw)
    return raw


def _response(raw: object) -> _Body:
    """OpenAI's responses."""
    answers: list[object] = []
    thoughts: list[object] = []
    refusals: list[object] = []
    calls: list[_Body] = []
    status = field(raw, "status")
    cut = field(raw, "incomplete_details", "reason") or "incomplete"
    # A status that is not known is a failure.
    finish = "stop" if status in (None, "completed") else cut if status == "incomplete" else "failed"
    for item in _list(field(raw, "output")):
        kind = field(item, "type")
        if kind == "message":
            parts = _list(field(item, "content"))
            refusals += [field(part, "refusal") for part in parts]
            texts = [field(part, "text") for part in parts]
            if field(item, "phase") == "commentary":
                thoughts += texts
            else:
                answers.append(_text(texts))
                finish = "incomplete" if field(item, "status") == "incomplete" and finish == "stop" else finish
        elif kind == "reasoning":
            parts = (*_list(field(item, "summary")), *_list(field(item, "content")))
            thoughts += [field(part, "text") for part in parts]
        elif kind in ("function_call", "custom_tool_call"):
            arguments = field(item, "arguments") if kind == "function_call" else field(item, "input")
            calls.append({"function": {"name": field(item, "name"), "arguments": arguments}})
    # A line end between two messages, so that no answer is put together of both.
    message = _message(_text(answers, "\n"), thoughts, calls=calls, refusal=_words(refusals))
    return _chat(raw, message, finish, field(raw, "usage"), error=field(raw, "error"))


def _anthropic(raw: object) -> _Body:
    """Anthropic's messages."""
    blocks = _list(field(raw, "content"))
    texts = [field(block, "text") for block in blocks if field(block, "type") == "text"]
    thoughts = [field(block, "thinking") or "" for block in blocks if field(block, "type") == "thinking"]
    calls = [
        {"function": {"name": field(block, "name"), "arguments": field(block, "input")}}
        for block in blocks
        if field(block, "type") == "tool_use"
    ]
    usage = field(raw, "usage")
    fresh, written, cached = (
        token_count(field(usage, f"{name}input_tokens")) for name in ("", "cache_creation_", "cache_read_")
    )
    finish = field(raw, "stop_reason")
    refusal = None
    if finish == "refusal":
        refusal = _words([field(raw, "stop_details", "explanation")]) or _words(texts) or "no reason is given"
    counts = _usage(fresh + written + cached, token_count(field(usage, "output_tokens")), cached=cached)
    return _chat(raw, _message(_text(texts), thoughts, calls=calls, refusal=refusal), finish, counts)


def _gemini(raw: object) -> _Body:
    """Gemini's candidates, of its API and of Vertex AI."""
    candidate = next(iter(_list(field(raw, "candidates"))), None)
    parts = [part for part in _list(field(candidate, "content", "parts")) if part is not None]
    thought = [bool(field(part, "thought")) for part in parts]
    written = [_part_text(part) for part in parts]
    texts = [text for text, hidden in zip(written, thought, strict=True) if text is not None and not hidden]
    thoughts = [text for text, hidden in zip(written, thought, strict=True) if text is not None and hidden]
    calls = [
        {"function": {"name": field(call, "name"), "arguments": field(call, "args")}}
        for part in parts
        if (call := field(part, "function_call"))
    ]
    usage = field(raw, "usage_metadata")
    asked = token_count(field(usage, "prompt_token_count")) + token_count(field(usage, "tool_use_prompt_token_count"))
    hidden_tokens = token_count(field(usage, "thoughts_token_count"))
    answered = token_count(field(usage, "candidates_token_count")) + hidden_tokens
    cached = token_count(field(usage, "cached_content_token_count"))
    finish = _name(field(candidate, "finish_reason"))
    blocked = _name(field(raw, "prompt_feedback", "block_reason"))
    refusal = None
    if candidate is None and blocked:
        finish, words = "content_filter", field(raw, "prompt_feedback", "block_reason_message")
        refusal = f"the prompt was blocked ({blocked.lower()})" if not words else str(words)
    body = _chat(
        raw,
        _message(_text(texts), thoughts, calls=calls, refusal=refusal),
        finish,
        _usage(asked, answered, cached=cached, hidden=hidden_tokens),
    )
    return {**body, "model": field(raw, "model_version")}


def _bedrock(raw: object) -> _Body:
    """Bedrock's converse."""
    blocks = _list(field(raw, "output", "message", "content"))
    texts = [field(block, "text") for block in blocks if field(block, "text") is not None]
    thoughts = [field(block, "reasoningContent", "reasoningText", "text") or "" for block in blocks]
    calls = [
        {"function": {"name": field(call, "name"), "arguments": field(call, "input")}}
        for block in blocks
        if (call := field(block, "toolUse"))
    ]
    usage = field(raw, "usage")
    fresh, written, cached = (
        token_count(field(usage, name)) for name in ("inputTokens", "cacheWriteInputTokens", "cacheReadInputTokens")
    )
    counts = _usage(fresh + written + cached, token_count(field(usage, "outputTokens")), cached=cached)
    body = _chat(raw, _message(_text(texts), thoughts, calls=calls), field(raw, "stopReason"), counts)
    # boto3 repeats requests by itself, where it is not told otherwise.
    return {**body, "attempts": 1 + token_count(field(raw, "ResponseMetadata", "RetryAttempts"))}


def _cohere(raw: object) -> _Body:
    """Cohere's chat, of its second version."""
    blocks = _list(field(raw, "message", "content"))
    texts = [field(block, "text") for block in blocks if field(block, "type") in (None, "text")]
    thoughts = [field(block, "thinking") or "" for block in blocks if field(block, "type") == "thinking"]
    calls = [{"function": field(call, "function")} for call in _list(field(raw, "message", "tool_calls"))]
    return _chat(
        raw, _message(_text(texts), thoughts, calls=calls), _name(field(raw, "finish_reason")), _cohere_usage(raw)
    )


def _cohere_first(raw: object) -> _Body:
    """Cohere's chat, of its first version."""
    return _chat(raw, _message(field(raw, "text"), []), _name(field(raw, "finish_reason")), _cohere_usage(raw))


def _cohere_usage(raw: object) -> _Body:
    usage = field(raw, "usage") or field(raw, "meta")
    counted = field(usage, "tokens") or field(usage, "billed_units")
    asked, answered = (token_count(field(counted, name)) for name in ("input_tokens", "output_tokens"))
    return _usage(asked, answered, cached=token_count(field(usage, "cached_tokens")))


def _xai(raw: object) -> _Body:
    """A response of xAI's own SDK."""
    calls = [{"function": field(call, "function")} for call in _list(field(raw, "tool_calls"))]
    usage = field(raw, "usage")
    hidden = token_count(field(usage, "reasoning_tokens"))
    counts = _usage(
        token_count(field(usage, "prompt_tokens")),
        token_count(field(usage, "completion_tokens")) + hidden,
        cached=token_count(field(usage, "cached_prompt_text_tokens")),
        hidden=hidden,
    )
    finish = (_name(field(raw, "finish_reason")) or "").removeprefix("REASON_").lower()
    message = _message(field(raw, "content"), [field(raw, "reasoning_content")], calls=calls)
    body = _chat(raw, message, {"max_len": "length", "max_context": "length"}.get(finish, finish), counts)
    return {**body, "model": field(raw, "proto", "model")}


_FORMS: Final[Sequence[tuple[Callable[[object], _Body], tuple[str, ...]]]] = (
    # Before responses, whose `output` it has as well.
    (_bedrock, ("output", "stopReason")),
    (_response, ("output",)),
    (_xai, ("content", "finish_reason", "proto")),
    (_anthropic, ("content", "usage", "role")),
    (_gemini, ("usage_metadata",)),
    (_gemini, ("candidates",)),
    (_gemini, ("prompt_feedback",)),
    (_cohere, ("message", "finish_reason")),
    (_cohere_first, ("text", "finish_reason")),
)
"""The readers, and the parts by which each knows its own; the first that fits reads."""


def _chat(raw: object, message: _Body, finish: object, usage: object, *, error: object = None) -> _Body:
    choice = {"finish_reason": finish, "message": message}
    fingerprint = field(raw, "system_fingerprint")
    return {
        "choices": [choice],
        "usage": usage,
        "model": field(raw, "model"),
        "system_fingerprint": fingerprint,
        "error": error,
    }


def _message(
    content: object, thoughts: Iterable[object], *, calls: Sequence[_Body] = (), refusal: str | None = None
) -> _Body:
    return {"content": content, "reasoning_content": _words(thoughts), "tool_calls": list(calls), "refusal": refusal}


def _text(texts: Iterable[object], between: str = "") -> object:
    """Texts as one, None where there are none; what is no text is given back, for the reader to refuse."""
    parts = [text for text in texts if text is not None]
    odd = next((part for part in parts if not isinstance(part, str)), None)
    return odd if odd is not None else between.join(map(str, parts)) if parts else None


def _words(texts: Iterable[object]) -> str | None:
    """Texts that are not the answer, a line each; None where there are none."""
    return "\n".join(text for text in texts if isinstance(text, str) and text) or None


def _usage(asked: int, answered: int, *, cached: int = 0, hidden: int = 0) -> _Body:
    return {
        "prompt_tokens": asked,
        "completion_tokens": answered,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": hidden},
    }


def _part_text(part: object) -> str | None:
    """The text of a part, None where it holds something else: asking Vertex AI's for it raises then."""
    try:
        text: str | None = field(part, "text")
    except (AttributeError, ValueError):
        return None
    return text


def _list(given: object) -> Sequence[Any]:
    if isinstance(given, str):
        return ({"type": "text", "text": given},)
    if given is None or isinstance(given, Mapping):
        return () if given is None else (given,)
    return list(given) if isinstance(given, Iterable) else ()


def _name(given: object) -> str | None:
    """The name of a member of an enumeration, or text as it is."""
    if isinstance(given, Enum):
        return given.name
    return given if isinstance(given, str) else None
