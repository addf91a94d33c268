"""What the upstream answers, handed on: unchanged where it is an answer, as an error where it is none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from stepguard.core.usage import Usage
from stepguard.serve.errors import Problem, cut, kind_of, unreachable, unreadable
from stepguard.serve.exchange import Exchange
from stepguard.serve.limits import Limits
from stepguard.serve.shapes import Shape, usage_of
from stepguard.serve.upstream import Upstream, response_headers

__all__ = ["read_object", "relay", "relay_raw", "take_whole"]

_BOUNDARY: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE: Final = re.compile(r"\r\n|\n|\r")
_DONE: Final = "[DONE]"


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


def read_object(body: bytes) -> dict[str, Any] | None:
    """The JSON object that a body is, None where it is none."""
    try:
        found = json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError):  # a number of too many digits is a ValueError, too
        return None
    return found if isinstance(found, dict) else None


async def relay_raw(exchange: Exchange, upstream: Upstream, response: Any) -> None:
    """Hand a response on as it comes, whatever it is.

    Raises:
        Problem: the upstream went away in the middle of it, or its status is none.
    """
    if not 200 <= response.status_code < 600:
        raise unreadable(f"the upstream answered with status {response.status_code}")
    await exchange.start(response.status_code, response_headers(response, decoded=False))
    with upstream.failures():
        async for part in response.aiter_raw():
            await exchange.write(part)
    await exchange.write(b"", more=False)


async def take_whole(upstream: Upstream, response: Any, limits: Limits) -> bytes:
    """The body of a response, decoded.

    Raises:
        Problem: the upstream went away in the middle of it, or it is too large.
    """
    parts: list[bytes] = []
    size = 0
    with upstream.failures():
        async for part in response.aiter_bytes():
            size += len(part)
            if size > limits.answer:
                raise unreadable(f"the upstream answered with more than {limits.answer:,} bytes")
            parts.append(part)
    return b"".join(parts)


async def relay(
    exchange: Exchange,
    upstream: Upstream,
    response: Any,
    *,
    answers: Callable[[Mapping[str, Any]], bool],
    shape: Shape,
    limits: Limits,
    change: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> Usage:
    """Hand a response on once it is seen to be an answer, or an error, that the caller's SDK can read.

    Args:
        exchange: the request.
        upstream: who answered.
        response: the response, open.
        answers: whether an object is an answer.
        shape: the protocol.
        limits: what bounds it.
        change: what becomes of an answer before it is handed on.

    Returns:
        the tokens that it tells.

    Raises:
        Problem: it is neither.
    """
    status: int = response.status_code
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if 200 <= status < 300 and kind == "text/event-stream":
        return await _relay_events(exchange, upstream, response, shape, limits)
    body = await take_whole(upstream, response, limits)
    found = read_object(body)
    if 400 <= status < 600:
        if found is None or not isinstance(found.get("error"), Mapping):
            raise _refusal(status, response, found, body)
    elif not 200 <= status < 300:
        raise unreadable(f"the upstream answered with status {status}")
    elif found is None:
        raise unreadable("the upstream answered with what is no JSON object")
    elif not answers(found):
        words = _words(found)
        raise unreadable(f"the upstream answered with no {shape.name} answer{f': {words}' if words else ''}")
    elif change is not None:
        body = json.dumps(change(found), ensure_ascii=False).encode("utf-8", "surrogatepass")
    headers = [each for each in response_headers(response, decoded=True) if each[0] != "content-type"]
    await exchange.respond(status, [*headers, ("content-type", "application/json")], body)
    return usage_of(found)


def _refusal(status: int, response: Any, found: Mapping[str, Any] | None, body: bytes) -> Problem:
    """An error that came in a form of its own, or in none."""
    words = _words(found) if found is not None else None
    if words is None and body.lstrip()[:1] != b"<":
        words = body[:2000].decode("utf-8", "replace").strip()
    return Problem(
        cut(f"the upstream answered with status {status}{f': {words}' if words else ''}"),
        status=status,
        kind=kind_of(status),
        code="upstream_error",
        retry_after=_seconds(response.headers.get("retry-after")),
    )


def _words(found: Mapping[str, Any]) -> str | None:
    error = found.get("error")
    for words in (
        error,
        error.get("message") if isinstance(error, Mapping) else None,
        *map(found.get, ("message", "detail")),
    ):
        if isinstance(words, str) and words:
            return words
    return None


def _seconds(told: str | None) -> float | None:
    return float(told) if told is not None and told.isdecimal() and len(told) < 7 else None


# Streams


async def _relay_events(exchange: Exchange, upstream: Upstream, response: Any, shape: Shape, limits: Limits) -> Usage:
    events = _Events(shape, limits)
    await exchange.start_events(shape.error_event, response_headers(response, decoded=True))
    try:
        with upstream.failures():
            async for part in response.aiter_bytes():
                if whole := events.take(part):
                    await exchange.write(whole)
                if events.problem is not None:
                    raise events.problem
        if rest := events.rest():
            await exchange.write(rest)
        if not events.ended:
            raise unreachable("the stream of the upstream ended before the answer did")
    except Problem:
        if not events.ended:  # what is missing behind the end is nothing that a caller needs
            raise
    await exchange.write(b"", more=False)
    return events.usage


class _Events:
    """Server-sent events on their way: only whole ones, only such as can be read, and whether the last has come."""

    def __init__(self, shape: Shape, limits: Limits) -> None:
        self._shape: Final = shape
        self._most: Final = limits.answer
        self._held = bytearray()
        self.problem: Problem | None = None
        self.ended = False
        self.usage = Usage()

    def take(self, part: bytes) -> bytes:
        """The whole events that have come by now; those before the first that cannot be read (`problem`)."""
        searched = max(0, len(self._held) - 3)
        self._held += part
        end = 0
        for boundary in _BOUNDARY.finditer(self._held, searched):
            try:
                self._see(self._held[end : boundary.end()])
            except Problem as problem:
                self.problem = problem
                break
            end = boundary.end()
        whole = bytes(self._held[:end])
        del self._held[:end]
        if self.problem is None and len(self._held) > self._most:
            self.problem = unreadable(f"an event of the upstream's stream is larger than {self._most:,} bytes")
        return whole

    def rest(self) -> bytes:
        """What stands behind the last boundary, once no more comes: an event that only lacks its end, or nothing."""
        rest = bytes(self._held).rstrip()
        self._held.clear()
        if not rest:
            return b""
        try:
            self._see(rest)
        except Problem:
            return b""
        return rest + b"\n\n"

    def _see(self, event: bytes | bytearray) -> None:
        for data in _data(event):
            if data.strip() == _DONE:
                self.ended = True
                continue
            found = read_object(data.encode("utf-8", "surrogatepass"))
            if found is None:
                raise unreadable("an event of the upstream's stream is no JSON object")
            if found.get("error") or self._shape.ends(found):
                self.ended = True
            told = usage_of(found)
            if told.tokens:
                self.usage = Usage(
                    input_tokens=max(self.usage.input_tokens, told.input_tokens),
                    output_tokens=max(self.usage.output_tokens, told.output_tokens),
                )


def _data(event: bytes | bytearray) -> Iterator[str]:
    lines = [
        line[5:].removeprefix(" ") for line in _LINE.split(event.decode("utf-8", "replace")) if line[:5] == "data:"
    ]
    if lines:
        yield "\n".join(lines)
