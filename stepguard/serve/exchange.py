"""One request and its response over ASGI: read within limits, ended from outside, and never left half told."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any, Final

from stepguard.serve.errors import Problem, too_slow, wrong_request
from stepguard.serve.limits import Limits

__all__ = ["Exchange", "Gone", "Header", "Receive", "Scope", "Send"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Header = tuple[str, str]

_DRAINED: Final = 4
"""So many times the largest body is read and dropped, so that a caller that sends first and reads later is told."""
_LAST_WORDS_SECONDS: Final = 5.0


class Gone(Exception):
    """The caller has left: there is nobody to answer."""


class Exchange:
    """A request, and what is sent in return.

    Args:
        scope, receive, send: what ASGI gives to an application.
        limits: what bounds it.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, limits: Limits) -> None:
        self.method: Final[str] = scope["method"]
        self.raw_path: Final = _raw_path(scope)
        self.query: Final[str] = scope.get("query_string", b"").decode("latin-1")
        self.headers: Final[tuple[Header, ...]] = tuple(
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]
        )
        self.began: Final = time.monotonic()
        self.status: int | None = None
        """The status that was sent, None before that."""
        self.complete = False
        """Whether the whole response was sent."""
        self.last_event: Callable[[Problem], bytes] | None = None
        """What ends a streamed response that goes wrong; None where nothing can be said in it."""
        self.told: Final[dict[str, str]] = {}
        """Headers that go with every response."""
        self.facts: Callable[[], Mapping[str, Any]] | None = None
        """What the guarded run behind it has come to by now; None where there is none."""
        self._receive: Final = receive
        self._send: Final = send
        self._limits: Final = limits
        self._task: asyncio.Task[Any] | None = None
        self._interruption: Problem | Gone | None = None

    def header(self, name: str) -> str | None:
        """The first header of this name, in lower case."""
        return next((value for each, value in self.headers if each == name), None)

    # Reading

    async def read(self, *, packed: bool = False) -> bytes:
        """The body.

        Args:
            packed: whether it may be compressed, because nobody here reads it.

        Raises:
            Problem: it is too large, compressed, or comes too slowly.
            Gone: the caller left.
        """
        if not packed and (self.header("content-encoding") or "identity").strip().lower() != "identity":
            raise wrong_request("send the body without content-encoding", status=415, code="content_encoding")
        most = self._limits.body
        declared = self.header("content-length") or ""
        try:
            async with asyncio.timeout(self._limits.upload_seconds):
                if declared.isdecimal() and int(declared) > most:
                    if self.header("expect") is None:
                        await self._drain()
                    raise self._too_large()
                parts: list[bytes] = []
                size = 0
                more = True
                while more:
                    part, more = await self._part()
                    size += len(part)
                    if size > most:
                        parts.clear()
                        await self._drain()
                        raise self._too_large()
                    parts.append(part)
        except TimeoutError:
            raise Problem(
                f"the request did not come within {self._limits.upload_seconds:g} s",
                status=408,
                kind="timeout_error",
                code="request_timeout",
            ) from None
        return b"".join(parts)

    async def _part(self) -> tuple[bytes, bool]:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise Gone
        return message.get("body", b""), message.get("more_body", False)

    async def _drain(self) -> None:
        left, more = _DRAINED * self._limits.body, True
        while more and left > 0:
            part, more = await self._part()
            left -= len(part)

    def _too_large(self) -> Problem:
        return wrong_request(
            f"the request is larger than {self._limits.body:,} bytes", status=413, code="request_too_large"
        )

    # Ending it from outside

    async def attend(self, work: Awaitable[None]) -> None:
        """Do what answers the request, until it is done or interrupted: by its deadline, its caller or the server.

        Raises:
            Problem: what it was interrupted with, or what the work raised.
            Gone: the caller left.
        """
        self._task = asyncio.current_task()
        assert self._task is not None
        seconds = self._limits.seconds
        timer = None
        if seconds is not None:
            late = too_slow(f"no answer within {seconds:g} s")
            timer = asyncio.get_running_loop().call_later(seconds, self.interrupt, late)
        listener = asyncio.create_task(self._listen(), name="stepguard-listener")
        try:
            await work
        except asyncio.CancelledError:
            if self._interruption is None or self._task.uncancel() > 0:
                raise  # somebody else's
            raise self._interruption from None
        finally:
            self._task = None
            listener.cancel()
            if timer is not None:
                timer.cancel()

    def interrupt(self, problem: Problem | Gone) -> None:
        """End it with this; the first one counts."""
        if self._task is not None and self._interruption is None:
            self._interruption = problem
            self._task.cancel()

    async def _listen(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.interrupt(Gone())

    # Answering

    async def answer(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        """Send a whole response of JSON."""
        told = {"content-type": "application/json", **(headers or {})}
        await self.respond(status, tuple(told.items()), json.dumps(body, allow_nan=False).encode())

    async def respond(self, status: int, headers: Iterable[Header], body: bytes) -> None:
        """Send a whole response."""
        await self.start(status, [*headers, ("content-length", str(len(body)))])
        await self.write(b"" if self.method == "HEAD" else body, more=False)

    async def start(self, status: int, headers: Iterable[Header]) -> None:
        """Send the head of a response."""
        self.status = status
        given = [*headers, *self.told.items()]
        encoded = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in given]
        await self._send({"type": "http.response.start", "status": status, "headers": encoded})

    async def start_events(self, last_event: Callable[[Problem], bytes], headers: Iterable[Header] = ()) -> None:
        """Send the head of a response of server-sent events."""
        self.last_event = last_event
        given = [each for each in headers if each[0] not in ("content-type", "cache-control", "x-accel-buffering")]
        fixed = [("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache")]
        # nginx holds back what it proxies, unless it is told not to.
        await self.start(200, [*given, *fixed, ("x-accel-buffering", "no")])

    async def write(self, part: bytes, *, more: bool = True) -> None:
        """Send a part of the body; with `more` False the last one."""
        await self._send({"type": "http.response.body", "body": part, "more_body": more})
        self.complete = not more

    async def fail(self, problem: Problem, body: Mapping[str, Any]) -> None:
        """Say what went wrong, as far as it can still be said.

        A response that has begun gets a last event, where it is one of events; any other is left incomplete, and the
        server closes the connection, so that nobody takes it for whole.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_SECONDS):  # the caller may have stopped reading
                if self.status is None:
                    await self.answer(problem.status, body, problem.headers())
                elif self.last_event is not None and not self.complete:
                    await self.write(self.last_event(problem), more=False)


def _raw_path(scope: Scope) -> str:
    raw = scope.get("raw_path")
    if raw is None:
        from urllib.parse import quote

        return quote(scope["path"])
    return str(raw.decode("ascii", "replace")).partition("?")[0]
