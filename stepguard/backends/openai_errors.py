"""Turns what an SDK's client raises, or gives in the place of an answer, into our own errors, without any secret.

Nothing here imports an SDK: fields are read where they are there, and exceptions are known by name and status; see
`stepguard.backends.sdk_errors`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from stepguard.backends.retry_delays import asked_delay
from stepguard.backends.sdk_errors import body_of, field, headers_of, named_status, response_text, status_of
from stepguard.core.redaction import HIDDEN
from stepguard.errors import BackendError, BackendRejected, BackendTimeout, RateLimited

# Too late, in conflict, too early, too many: whatever else is refused will be refused again.
_RETRYABLE_4XX: Final = frozenset({408, 409, 425, 429})
_SPENT: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
"""What stands as code or type where the account has run out: no waiting helps."""
# Groq's codes for a reply that it failed to read.
_REFUSED_REPLY: Final = frozenset({"json_validate_failed", "tool_use_failed"})
# A tool call as some models write it, which the endpoint then failed to read itself.
_WRITTEN_CALL: Final = re.compile(
    r"\s*<function[=(](?P<name>\w{1,80})\)?>?\s*(?P<arguments>\{.*\})\s*(?:</function>)?\s*", re.DOTALL
)
_SHORTEST_SECRET: Final = 8  # shorter ones would black out words that are no secrets
# By how names end: variables with KEY or TOKEN elsewhere in them hold paths and numbers, too.
_SECRET_VARIABLE: Final = re.compile(r"(?:API_?KEY|ACCESS_KEY|SECRET|SECRET_KEY|AUTH_TOKEN|ACCESS_TOKEN|API_TOKEN)\Z")
_SECRET_PATHS: Final = (
    *(("api_key",), ("auth_token",), ("admin_api_key",), ("_azure_ad_token",)),
    *(
        ("kwargs", "api_key"),
        ("_api_client", "api_key"),
        ("sdk_configuration", "security", "api_key"),
        ("_client_wrapper", "_token"),
    ),
    *(("_request_signer", "_credentials", name) for name in ("secret_key", "token")),
)
"""Where the clients of vendors hold their keys."""
_LATE: Final = frozenset(
    {"APITimeoutError", "ConnectTimeout", "ConnectTimeoutError", "ReadTimeout", "ReadTimeoutError", "TimeoutException"}
)
_UNCONNECTED: Final = frozenset(
    {"APIConnectionError", "ClientConnectionError", "ClientPayloadError", "ConnectionError", "HTTPClientError"}
    | {"TransportError"}
)
"""The names of exceptions, or of their bases, of the SDKs and of the HTTP libraries that some of them show."""
_SECRET_HEADER: Final = re.compile(r"auth|key|token|secret|password|cookie", re.IGNORECASE)


def body_error(error: object, raw: object, say: Callable[[str], str], *, finish: str | None = None) -> BackendError:
    """Our exception for a body with status 200 that holds no answer.

    Args:
        error: the error in it, None where it names none.
        raw: the body.
        say: makes the text of ours of these words.
        finish: the finish reason, where it is that which tells of a failure.
    """
    # OpenRouter quotes the provider behind it in the metadata.
    words = _text(error) or _text(field(error, "message")) or _text(field(error, "metadata", "raw"))
    hopeless = _spent(error)
    if (status := _status(error)) is not None:
        delay = asked_delay({}, error, words or "")
        return _refusal(status, words or "", say, retry_after=delay, hopeless=hopeless)
    if error is not None:
        return BackendError(say(words or f"an error in the place of an answer: {error!s:.200}"), retryable=not hopeless)
    if finish is not None:
        return BackendError(say(f"the server broke off its answer (finish_reason {finish!r})"))
    shown = next(
        (text for name in ("message", "detail", "msg") if (text := _text(field(raw, name)))),
        _text(raw) or _text(field(raw, "base_resp", "status_msg")) or (f"{raw!s:.200}" if raw else "it is empty"),
    )
    return BackendError(say(f"an answer without a message: {shown}"))


def _status(error: object) -> int | None:
    """The HTTP status that stands in an error as its code, None where it has another or none."""
    for name in ("code", "status", "status_code"):
        code = str(field(error, name))
        if len(code) == 3 and code.isdecimal() and 400 <= int(code) <= 599:
            return int(code)
    return next(filter(None, (named_status(str(field(error, name))) for name in ("code", "type", "status"))), None)


def _spent(error: object) -> bool:
    """Whether an error says that the account has run out."""
    return any(str(field(error, name)) in _SPENT for name in ("code", "type"))


def _text(given: object) -> str | None:
    return given if isinstance(given, str) else None


def secrets_of(client: object, error: BaseException | None = None) -> tuple[str, ...]:
    """The secrets that a client shows to its endpoint: its key, as it is now, and headers that hold one.

    A key may be made anew for each request, and a token may be known to the client alone: what was sent stands in the
    request of the error.
    """
    held: list[object] = []
    for names in _SECRET_PATHS:
        with suppress(Exception):
            held.append(field(client, *names))
    for holder, *path in (
        (client, "default_headers"),
        (error, "request", "headers"),
        (error, "response", "request", "headers"),
    ):
        with suppress(Exception):  # there may be none, and attributes of foreign objects may be code
            for name, value in field(holder, *path).items():
                if _SECRET_HEADER.search(name) and isinstance(value, str):
                    # Of `Bearer KEY`, also the key alone.
                    held += (value, value.rpartition(" ")[2])
    return tuple(dict.fromkeys(text for text in held if isinstance(text, str) and len(text) >= _SHORTEST_SECRET))


def environment_secrets() -> tuple[str, ...]:
    """The keys in the environment, which an SDK may have read by itself and shows nowhere else."""
    return tuple(
        value for name, value in os.environ.items() if _SECRET_VARIABLE.search(name) and len(value) >= _SHORTEST_SECRET
    )


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
    # The longest first: one may be a part of another.
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
    body, headers = body_of(error), headers_of(error)
    inner = field(body, "error")
    # ``x-should-retry`` is how OpenAI's servers overrule the retries of its SDK.
    hopeless = _spent(error) or _spent(body) or _spent(inner) or headers.get("x-should-retry") == "false"
    # An error in the middle of a stream tells the status as its code.
    status = status_of(error) or _status(body) or _status(inner)
    if status is not None:
        words = _text(field(body, "message")) or _text(field(inner, "message")) or str(error)
        # The SDK keeps only what stands below "error" of a body, and the delay may stand beside it.
        delay = asked_delay(headers, [body, response_text(error)], words)
        return _refusal(status, words, say, retry_after=delay, hopeless=hopeless)
    if isinstance(error, TimeoutError) or names & _LATE:
        return BackendTimeout(say("no answer within the time-out"))
    if names & _UNCONNECTED:
        cause = error.__cause__ or error
        return BackendError(say(f"no connection: {cause}"), retryable=not _unsendable(cause))
    # A client whose answer cannot be decoded may do better the next time; any other exception is a mistake somewhere.
    answered = begun or (isinstance(error, ValueError) and not isinstance(error, UnicodeEncodeError))
    answered = answered or field(error, "status_code") in range(200, 300) or "ResponseParserError" in names
    return BackendError(say(f"{type(error).__name__}: {error}"), retryable=answered and not hopeless)


def was_sent(error: BaseException) -> bool:
    """Whether a request that failed without a status had reached the endpoint, as far as anybody can say."""
    chain = (error, error.__cause__ or error)
    names = {cls.__name__ for link in chain for cls in type(link).__mro__}
    reached = names & {"ReadError", "ReadTimeout", "RemoteProtocolError", "APITimeoutError", "TimeoutError"}
    reached |= names & {"ClientPayloadError", "ConnectionClosedError", "ReadTimeoutError", "ServerDisconnectedError"}
    return bool(reached) and not names & {"ConnectTimeout", "ConnectTimeoutError", "PoolTimeout", "ConnectError"}


def _unsendable(error: BaseException) -> bool:
    """Whether it was the HTTP library that refused to send a request, which it would do again."""
    names = {cls.__name__ for cls in type(error).__mro__}
    # A broken connection may be a LocalProtocolError, too.
    illegal = "LocalProtocolError" in names and "illegal header" in str(error).lower()
    return illegal or not names.isdisjoint({"InvalidURL", "UnsupportedProtocol"})


def _refusal(
    status: int, words: str, say: Callable[[str], str], *, retry_after: float | None = None, hopeless: bool
) -> BackendError:
    message = say(f"HTTP {status}: {words}" if words else f"HTTP {status}")
    made = BackendError(message, status=status)
    passes = status >= 500 or status in _RETRYABLE_4XX
    if status == 429 or (passes and retry_after is not None):
        made = RateLimited(message, status=status, retry_after=retry_after)
    elif not passes:
        made = BackendRejected(message, status=status)
    if hopeless:
        made.retryable = False
    return made


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
