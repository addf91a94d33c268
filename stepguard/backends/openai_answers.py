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
from stepguard.core.redaction import HIDDEN
from stepguard.core.usage import Usage
from stepguard.errors import BackendError, BackendRejected, BackendTimeout, RateLimited
from stepguard.language.strict_json import decode

__all__ = ["as_backend_error", "field", "read_completion", "refused_reply", "secrets_of", "texts_of"]

_RETRYABLE_4XX: Final = frozenset({408, 409, 425, 429})
_SPENT: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
"""What stands as code or type where the account has run out: no waiting helps."""
_REFUSED_REPLY: Final = frozenset({"json_validate_failed", "tool_use_failed"})
_WRITTEN_CALL: Final = re.compile(
    r"\s*<function[=(](?P<name>\w{1,80})\)?>?\s*(?P<arguments>\{.*\})\s*(?:</function>)?\s*", re.DOTALL
)
_SHORTEST_SECRET: Final = 8
_SECRET_HEADER: Final = re.compile(r"auth|key|token|secret|password|cookie", re.IGNORECASE)


def read_completion(
    raw: object, say: Callable[[str], str], *, asked: int, answer_in_reasoning: bool = False
) -> Completion:
    """The answer in the body of a response.

    Args:
        raw: the body.
        say: makes the text of an error of these words.
        asked: how many characters were sent, for where nobody counts tokens.
        answer_in_reasoning: see `OpenAIBackend`.

    Raises:
        BackendError: there is no answer in it.
    """
    choices = field(raw, "choices")
    choice = choices[0] if isinstance(choices, Sequence) and choices else None
    message = field(choice, "message")
    if message is None:
        raise _no_answer(raw, say)
    text = _content(field(message, "content"), say)
    reasoning = _text(field(message, "reasoning_content")) or _text(field(message, "reasoning"))
    tool_calls = tuple(_tool_call(call, say) for call in field(message, "tool_calls") or ())
    written = [text, reasoning, *(call.arguments for call in tool_calls)]
    if answer_in_reasoning and not tool_calls and not (text or "").strip() and _is_json(reasoning):
        text = reasoning
    return Completion(
        text=text,
        finish_reason=_text(field(choice, "finish_reason")),
        refusal=_text(field(message, "refusal")),
        reasoning=reasoning,
        tool_calls=tool_calls,
        usage=_usage(field(raw, "usage"), Usage.estimate(asked, sum(len(each or "") for each in written))),
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
    hopeless = _spent(error)
    if (status := _status(error)) is not None:
        return _refusal(status, words or "", say, hopeless=hopeless)
    return BackendError(say(f"an answer without a message: {words or type(raw).__name__}"), retryable=not hopeless)


def _status(error: object) -> int | None:
    """The HTTP status that stands in an error as its code, None where it has another or none."""
    code = str(field(error, "code"))
    return int(code) if len(code) == 3 and code.isdecimal() and 400 <= int(code) <= 599 else None


def _spent(error: object) -> bool:
    """Whether an error says that the account has run out."""
    return any(str(field(error, name)) in _SPENT for name in ("code", "type"))


def field(given: object, *path: str) -> Any:
    """The value at a path of attributes or keys, None where there is none: servers leave out what they like."""
    for name in path:
        given = given.get(name) if isinstance(given, Mapping) else getattr(given, name, None)
    return given


def _text(given: object) -> str | None:
    return given if isinstance(given, str) else None


def _usage(told: object, estimate: Usage) -> Usage:
    """The tokens that an endpoint tells; what it leaves out is estimated, or a limit on them would hold nothing."""
    read, written, total = (
        next((count for name in names if (count := _count(field(told, name)))), 0)
        for names in (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"), ("total_tokens",))
    )
    read = read or (max(0, total - written) if written else min(total, estimate.input_tokens)) or estimate.input_tokens
    written = written or max(0, total - read) or estimate.output_tokens
    return Usage(
        calls=1,
        input_tokens=read,
        output_tokens=written,
        cached_tokens=_detail(told, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens"),
        reasoning_tokens=_detail(told, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens"),
    )


def _detail(told: object, places: Sequence[str], name: str) -> int:
    return next((count for place in places if (count := _count(field(told, place, name)))), 0)


def _count(given: object) -> int:
    return given if type(given) is int and given > 0 else 0


# Errors


def secrets_of(client: object, error: BaseException | None = None) -> tuple[str, ...]:
    """What a client shows to its endpoint: its key, as it is now, and headers that hold such.

    A key may be made anew for each request, and a token may be known to the client alone: what was sent stands in the
    request of the error.
    """
    held: list[object] = [field(client, name) for name in ("api_key", "admin_api_key", "_azure_ad_token")]
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
    message: dict[str, Any] = {"content": written}
    if (call := _WRITTEN_CALL.fullmatch(written or "")) is not None:
        message = {"tool_calls": [{"function": {"name": call["name"], "arguments": call["arguments"]}}]}
    return {"choices": [{"finish_reason": code, "message": message}]}


def as_backend_error(error: Exception, say: Callable[[str], str], *, begun: bool = False) -> BackendError:
    """Our exception for one that a client raised.

    Args:
        error: the exception.
        say: makes the text of ours of these words.
        begun: whether a streamed answer had begun to come. The SDK hands on what breaks it as it is.
    """
    names = {cls.__name__ for cls in type(error).__mro__}
    body = getattr(error, "body", None)
    inner = field(body, "error")
    hopeless = _spent(error) or _spent(body) or _spent(inner) or _header(error, "x-should-retry") == "false"
    status = getattr(error, "status_code", None)
    if not isinstance(status, int):  # an error in the middle of a stream tells it as its code
        status = _status(body) or _status(inner)
    if status is not None:
        words = _text(field(body, "message")) or _text(field(inner, "message")) or str(error)
        return _refusal(status, words, say, retry_after=_retry_after(error), hopeless=hopeless)
    if isinstance(error, TimeoutError) or "APITimeoutError" in names:
        return BackendTimeout(say("no answer within the time-out"))
    if "APIConnectionError" in names:
        cause = error.__cause__ or error
        return BackendError(say(f"no connection: {cause}"), retryable=not _unsendable(cause))
    # A client whose answer cannot be decoded may do better the next time; any other exception is a mistake somewhere.
    answered = begun or (isinstance(error, ValueError) and not isinstance(error, UnicodeEncodeError))
    return BackendError(say(f"{type(error).__name__}: {error}"), retryable=answered and not hopeless)


def _unsendable(error: BaseException) -> bool:
    """Whether it was the HTTP library that refused to send a request, which it would do again."""
    names = {cls.__name__ for cls in type(error).__mro__}
    # A broken connection may be a LocalProtocolError, too.
    illegal = "LocalProtocolError" in names and "illegal header" in str(error).lower()
    return illegal or not names.isdisjoint({"InvalidURL", "UnsupportedProtocol"})


def _refusal(
    status: int, words: str, say: Callable[[str], str], *, retry_after: float | None = None, hopeless: bool
) -> BackendError:
    said = say(f"HTTP {status}: {words}" if words else f"HTTP {status}")
    made = BackendError(said, status=status)
    if status == 429 or (status == 503 and retry_after is not None):
        made = RateLimited(said, status=status, retry_after=retry_after)
    elif 400 <= status < 500 and status not in _RETRYABLE_4XX:
        made = BackendRejected(said, status=status)
    if hopeless:
        made.retryable = False
    return made


def _header(error: Exception, name: str) -> str | None:
    """A header of the response behind an exception."""
    return _text((field(error, "response", "headers") or {}).get(name))


def _retry_after(error: Exception) -> float | None:
    """Seconds, from the headers of the response; a date is taken against this machine's clock."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = _header(error, name)
        if text is None:
            continue
        try:
            seconds = max(float(each) for each in text.split(",")) * unit  # proxies add a second one
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
