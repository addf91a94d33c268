"""Relay the upstream's response: byte by byte where it is an answer, otherwise as an error that can be read."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from stepguard.core.usage import Usage
from stepguard.serve.bodies import read_object
from stepguard.serve.call import HttpCall
from stepguard.serve.errors import HttpProblem, cut, kind_of, unreachable, unreadable
from stepguard.serve.limits import Limits
from stepguard.serve.metrics import Metrics
from stepguard.serve.shapes import Shape, usage_of
from stepguard.serve.upstream import Upstream, response_headers

_END_MARK: Final = b"[DONE]"
_READ_BYTES: Final = 2**20
"""The most of an answer, or of a line of a stream, that is kept to read the usage in it."""
_AWAITED_BYTES: Final = 2**16
"""How much of an answer that is no stream is awaited before any is handed on."""
_QUOTED: Final = 2000  # an error of the upstream is told in part: it may be a page


async def passed(call: HttpCall, upstream: Upstream, response: Any, shape: Shape | None, metrics: Metrics) -> Response:
    """A response of the upstream as it comes.

    Args:
        shape: the protocol in which something was asked; None where whatever comes is right.

    Raises:
        Problem: it is an error in a form that no SDK reads, or no response at all.
    """
    status: int = response.status_code
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if status >= 400:
        return await _error(call, upstream, response)
    if not 200 <= status < (400 if shape is None else 300) or (shape is not None and status == 204):
        raise unreadable(f"the upstream answered with status {status}")
    parts = _parts(upstream, response)
    # What breaks at once, or is short and breaks, is an error with a status of its own.
    first = await anext(parts, b"")
    while (
        shape is not None
        and kind == "application/json"
        and len(first) < _AWAITED_BYTES
        and (part := await anext(parts, b""))
    ):
        first += part
    reading = None if shape is None else _Reading(shape, events=kind == "text/event-stream")

    async def body() -> AsyncIterator[bytes]:
        part = first
        try:
            while part:
                if reading is not None:
                    reading.see(part)
                yield part
                part = await anext(parts, b"")
            if reading is not None and not reading.whole():
                raise unreachable("the stream of the upstream ended before the answer did")
        except HttpProblem:
            if reading is None or not reading.ended:  # what is missing behind the end is nothing that a caller needs
                raise
        finally:
            if reading is not None:
                metrics.tokens("passed", reading.usage)

    if reading is not None and reading.events:
        call.last_event = lambda problem: b"\n\n" + shape.error_event(problem) if shape is not None else b""
    return _response(StreamingResponse(body(), status), response, as_it_is=True)


async def composed(
    upstream: Upstream,
    response: Any,
    call: HttpCall,
    limits: Limits,
    *,
    answers: Callable[[Mapping[str, Any]], bool],
    change: Callable[[dict[str, Any]], dict[str, Any]],
) -> Response:
    """A response of the upstream with something of this server's in it.

    Raises Problem: it is no answer.
    """
    status: int = response.status_code
    if status >= 400:
        return await _error(call, upstream, response)
    answer = read_object(await _whole_body(upstream, response, limits.answer)) if 200 <= status < 300 else None
    if answer is None or not answers(answer):
        raise unreadable(f"the upstream answered with status {status} and what is no list of models")
    body = json.dumps(change(answer), ensure_ascii=False).encode("utf-8", "surrogatepass")
    return _response(Response(body, status, media_type="application/json"), response, as_it_is=False)


def _response(answer: Response, response: Any, *, as_it_is: bool) -> Response:
    ours = set(answer.headers)
    for name, value in response_headers(response, as_it_is=as_it_is):
        if name not in ours:
            answer.raw_headers.append((name.encode("latin-1"), value.encode("latin-1")))
    if as_it_is and answer.headers.get("content-type", "").startswith("text/event-stream"):
        answer.headers["cache-control"] = "no-cache"
        answer.headers["x-accel-buffering"] = "no"  # nginx holds back what it proxies, unless it is told not to
    return answer


async def _parts(upstream: Upstream, response: Any) -> AsyncIterator[bytes]:
    with upstream.failures():
        async for part in response.aiter_bytes():
            if part:
                yield part


async def _whole_body(upstream: Upstream, response: Any, most: int) -> bytes:
    body = bytearray()
    async for part in _parts(upstream, response):
        body += part
        if len(body) > most:
            raise unreadable(f"the upstream answered with more than {most:,} bytes")
    return bytes(body)


async def _error(call: HttpCall, upstream: Upstream, response: Any) -> Response:
    """An error as it came; one in a form of its own, or in none, is raised in that of the protocol."""
    status: int = response.status_code
    body = await _whole_body(upstream, response, _READ_BYTES)
    answer = read_object(body)
    if 400 <= status < 600 and answer is not None and isinstance(answer.get("error"), Mapping):
        return _response(Response(body, status), response, as_it_is=False)
    words = _words(answer) if answer is not None else None
    # A page of HTML, such as that of a gateway, tells a caller nothing.
    if words is None and body.lstrip()[:1] != b"<":
        words = body[: 2 * _QUOTED].decode("utf-8", "replace").strip()
    if words:
        # Before it is cut, or half of a key could stay.
        words = upstream.cover(words, call)
    status = status if status < 600 else 502
    raise HttpProblem(
        cut(f"the upstream answered with status {response.status_code}{f': {words}' if words else ''}"),
        status=status,
        kind=kind_of(status),
        code="upstream_error",
        retry_after=_seconds(response.headers.get("retry-after")),
    )


def _words(answer: Mapping[str, Any]) -> str | None:
    error = answer.get("error")
    for words in (
        error,
        error.get("message") if isinstance(error, Mapping) else None,
        *map(answer.get, ("message", "detail")),
    ):
        if isinstance(words, str) and words:
            return words
    return None


def _seconds(header: str | None) -> float | None:
    # More than eleven days is no wait.
    return float(header) if header is not None and header.isdecimal() and len(header) < 7 else None


class _Reading:
    """Reads an answer in passing: its usage, and whether a stream of it has ended."""

    def __init__(self, shape: Shape, *, events: bool) -> None:
        self._shape: Final = shape
        self._buffer = bytearray()
        self._lost = False
        self.events: Final = events
        self.ended = False
        self.usage = Usage()

    def see(self, part: bytes) -> None:
        """Look at a part that is handed on."""
        if not self.events:
            if len(self._buffer) + len(part) <= _READ_BYTES:
                self._buffer += part
            else:
                self._lost = True
            return
        # A line of events may end in CR, LF or both; an empty line between does no harm.
        *lines, rest = part.replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            self._see_line(bytes(self._buffer) + line)
            self._buffer.clear()
            self._lost = False
        if len(self._buffer) + len(rest) <= _READ_BYTES:
            self._buffer += rest
        else:
            self._lost = self.ended = True  # nobody here can tell what such a line is

    def whole(self) -> bool:
        """Whether nothing is missing, now that no more comes."""
        if self.events:
            self._see_line(bytes(self._buffer))
            return self.ended
        if not self._lost and (answer := read_object(bytes(self._buffer))) is not None:
            self.usage = usage_of(answer)
        return True

    def _see_line(self, line: bytes) -> None:
        if self._lost or not line.startswith(b"data:"):
            return
        data = line[5:].strip()
        if data == _END_MARK:
            self.ended = True
        elif (event := read_object(data)) is not None:
            if event.get("error") or self._shape.ends(event):
                self.ended = True
            usage = usage_of(event)
            if usage.tokens:
                self.usage = Usage(
                    # The largest: streams may repeat their usage, growing, in later events.
                    input_tokens=max(self.usage.input_tokens, usage.input_tokens),
                    output_tokens=max(self.usage.output_tokens, usage.output_tokens),
                )
