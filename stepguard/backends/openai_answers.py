"""What an OpenAI-style client gives back: a completion, or an exception, as stepguard's own; without any secret.

Nothing here imports the SDK: fields are read where they are there, and exceptions are told by name and status.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final

from stepguard.backends.base import Completion, ToolCall
from stepguard.errors import BackendError, BackendRejected, BackendTimeout, RateLimited
from stepguard.redaction import HIDDEN
from stepguard.strict_json import decode
from stepguard.usage import Usage

__all__ = ["as_backend_error", "field", "read_completion", "refused_reply", "secrets_of", "texts_of"]

_RETRYABLE_4XX: Final = frozenset({408, 409, 425, 429})
_REFUSED_REPLY: Final = frozenset({"json_validate_failed", "tool_use_failed"})
_SHORTEST_SECRET: Final = 8
_SECRET_HEADER: Final = re.compile(r"auth|key|token|secret|password|cookie", re.IGNORECASE)


def read_completion(raw: object, say: Callable[[str], str], *, answer_in_reasoning: bool = False) -> Completion:
    choices = field(raw, "choices")
    choice = choices[0] if isinstance(choices, Sequence) and choices else None
    message = field(choice, "message")
    if message is None:
        raise _no_answer(raw, say)
    usage = field(raw, "usage")
    text = _content(field(message, "content"), say)
    reasoning = _text(field(message, "reasoning_content")) or _text(field(message, "reasoning"))
    tool_calls = tuple(_tool_call(call, say) for call in field(message, "tool_calls") or ())
    if answer_in_reasoning and not tool_calls and not (text or "").strip() and _is_json(reasoning):
        text = reasoning
    return Completion(
        text=text,
        finish_reason=_text(field(choice, "finish_reason")),
        refusal=_text(field(message, "refusal")),
        reasoning=reasoning,
        tool_calls=tool_calls,
        usage=Usage(
            calls=1,
            input_tokens=_count(field(usage, "prompt_tokens")),
            output_tokens=_count(field(usage, "completion_tokens")),
            cached_tokens=_count(field(usage, "prompt_tokens_details", "cached_tokens")),
            reasoning_tokens=_count(field(usage, "completion_tokens_details", "reasoning_tokens")),
        ),
        model=_text(field(raw, "model")),
        fingerprint=_text(field(raw, "system_fingerprint")),
    )


def _content(content: object, say: Callable[[str], str]) -> str | None:
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list):  # parts; those of another kind (thinking, say) are not the answer
        parts = [_text(field(part, "text")) for part in content if field(part, "type") == "text"]
        return "".join(part for part in parts if part is not None) or None
    raise BackendError(say(f"the content is {type(content).__name__}, not text"), retryable=False)


def _is_json(text: str | None) -> bool:
    """Whether a text is one JSON document from end to end."""
    try:
        decode((text or "").strip())
    except ValueError:
        return False
    return True


def _tool_call(call: object, say: Callable[[str], str]) -> ToolCall:
    arguments = field(call, "function", "arguments")
    if not isinstance(arguments, str | None):
        raise BackendError(say("the arguments of a tool call are not text"), retryable=False)
    return ToolCall(_text(field(call, "function", "name")) or "", arguments or "")


def _no_answer(raw: object, say: Callable[[str], str]) -> BackendError:
    """The error in a body that came with status 200."""
    error = field(raw, "error")
    words = _text(error) or _text(field(error, "message")) or _text(field(raw, "message")) or _text(raw)
    code = str(field(error, "code"))
    if code.isdecimal() and 400 <= int(code) <= 599:
        return _refusal(int(code), words or "", say)
    return BackendError(say(f"an answer without a message: {words or type(raw).__name__}"))


def field(given: object, *path: str) -> Any:
    """The value at a path of attributes or keys, None where there is none: servers leave out what they like."""
    for name in path:
        given = given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)
    return given


def _text(given: object) -> str | None:
    return given if isinstance(given, str) else None


def _count(given: object) -> int:
    return given if isinstance(given, int) and given > 0 else 0


# Errors


def secrets_of(client: object, error: BaseException | None = None) -> tuple[str, ...]:
    """What a client shows to its endpoint: its key, as it is now, and headers that hold such.

    A key may be made anew for each request, and a token may be known to the client alone: what was sent stands in the
    request of the error.
    """
    held: list[object] = [field(client, "api_key")]
    for holder, *path in (
        (client, "default_headers"),
        (error, "request", "headers"),
        (error, "response", "request", "headers"),
    ):
        with suppress(Exception):  # there may be none, and attributes of foreign objects may be code
            for name, value in field(holder, *path).items():
                if _SECRET_HEADER.search(name) and isinstance(value, str):
                    held += (value, value.rpartition(" ")[2])
    return tuple(dict.fromkeys(each for each in held if isinstance(each, str) and len(each) >= _SHORTEST_SECRET))


def refused_reply(error: Exception, secrets: Iterable[str] = ()) -> Mapping[str, Any] | None:
    """The body of a reply that the endpoint tried to read itself and does not hand on; None for any other error.

    Groq does this: status 400 where a model wrote no valid JSON or tool call, with what it wrote in the error. That is
    misbehaviour of the model, not of the request, and is judged like any other reply.
    """
    body = getattr(error, "body", None)
    body = field(body, "error") or body
    code = _text(field(body, "code"))
    if getattr(error, "status_code", None) != 400 or code not in _REFUSED_REPLY:
        return None
    written = _text(field(body, "failed_generation"))
    for secret in sorted(secrets, key=len, reverse=True):
        written = None if written is None else written.replace(secret, HIDDEN)
    return {"choices": [{"finish_reason": code, "message": {"content": written}}]}


def as_backend_error(error: Exception, say: Callable[[str], str]) -> BackendError:
    """Our exception for one that a client raised."""
    names = {cls.__name__ for cls in type(error).__mro__}
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        body = getattr(error, "body", None)
        words = _text(field(body, "message")) or _text(field(body, "error", "message")) or str(error)
        return _refusal(status, words, say, retry_after=_retry_after(error), code=getattr(error, "code", None))
    if isinstance(error, TimeoutError) or "APITimeoutError" in names:
        return BackendTimeout(say("no answer within the time-out"))
    if "APIConnectionError" in names:
        return BackendError(say(f"no connection: {error.__cause__ or error}"))
    # A client whose answer cannot be decoded may do better the next time; any other exception is a mistake somewhere.
    answered = isinstance(error, ValueError) and not isinstance(error, UnicodeEncodeError)
    return BackendError(say(f"{type(error).__name__}: {error}"), retryable=answered)


def _refusal(
    status: int, words: str, say: Callable[[str], str], *, retry_after: float | None = None, code: object = None
) -> BackendError:
    said = say(f"HTTP {status}: {words}" if words else f"HTTP {status}")
    if status == 429 or (status == 503 and retry_after is not None):
        limited = RateLimited(said, status=status, retry_after=retry_after)
        if code == "insufficient_quota":  # no waiting helps
            limited.retryable = False
        return limited
    if 400 <= status < 500 and status not in _RETRYABLE_4XX:
        return BackendRejected(said, status=status)
    return BackendError(said, status=status)


def _retry_after(error: Exception) -> float | None:
    """Seconds, from the headers of the response; a date is taken against this machine's clock."""
    headers = field(error, "response", "headers") or {}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name)
        if text is None:
            continue
        try:
            seconds = float(text) * unit
        except ValueError:
            try:
                date = parsedate_to_datetime(text)
            except ValueError:
                continue
            seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp() - time.time()
        if math.isfinite(seconds):
            return max(seconds, 0.0)
    return None


def texts_of(error: BaseException) -> Iterator[str]:
    """What a traceback of an exception would show, and the addresses it holds."""
    seen: set[int] = set()
    stack: list[BaseException | None] = [error]
    while stack:
        one = stack.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        stack += [one.__cause__, one.__context__]
        yield from (str(one), repr(one), str(getattr(getattr(one, "request", None), "url", "")))
