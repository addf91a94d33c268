"""One request: read within limits, interruptible, and never answered halfway in silence."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from stepguard.serve.admission import Charge, address_of
from stepguard.serve.errors import HttpProblem, wrong_request
from stepguard.serve.limits import Limits

_LAST_WORDS_SECONDS: Final = 5.0


class HttpCall:
    """A request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, limits: Limits) -> None:
        self.request: Final = Request(scope, receive)
        self.client = address_of(scope.get("client"))
        """The client that sent it."""
        self.body = b""
        self.began: Final = time.monotonic()
        self.status: int | None = None
        """The status that was sent, None before that."""
        self.complete = False
        """Whether the whole response was sent."""
        self.last_event: Callable[[HttpProblem], bytes] | None = None
        """The event that ends a failed stream; None where the protocol has none."""
        self.answer_headers: Final[dict[str, str]] = {}
        """Headers that go with every response."""
        self.facts: Callable[[], Mapping[str, Any]] | None = None
        """The current state of the guarded run behind it; None where there is none."""
        self.resources: Final = AsyncExitStack()
        """Release what the call holds, once the response was sent or has failed."""
        self._receive: Final = receive
        self._send: Final = send
        self._limits: Final = limits
        self._task: asyncio.Task[Any] | None = None
        self._interruption: Exception | None = None

    async def read(self, charge: Charge, *, packed: bool = False) -> None:
        """Read the body.

        Args:
            charge: told of every byte.
            packed: whether it may be compressed, because nobody here reads it.

        Raises:
            Problem: it is too large, compressed, or comes too slowly; or there is no room for it.
            ClientDisconnect: the caller left.
        """
        headers, limits = self.request.headers, self._limits
        if not packed and headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise wrong_request("send the body without content-encoding", status=415, code="content_encoding")
        # Refused by its header before any of it is read; what lies about its size is caught below.
        declared = headers.get("content-length", "")
        if declared.isdecimal() and (len(declared) > 15 or int(declared) > limits.body):  # a header may be all digits
            raise self._too_large()
        body = bytearray()
        clock = asyncio.get_running_loop().time
        end = clock() + limits.upload_seconds
        try:
            async with asyncio.timeout_at(min(end, clock() + limits.silence_seconds)) as timer:
                async for part in self.request.stream():
                    if len(body) + len(part) > limits.body:
                        raise self._too_large()
                    charge.resize(len(body) + len(part))
                    body += part
                    timer.reschedule(min(end, clock() + limits.silence_seconds))
        except TimeoutError:
            raise HttpProblem(
                f"the request did not come within {limits.upload_seconds:g} s, or paused for "
                f"{limits.silence_seconds:g} s",
                status=408,
                kind="timeout_error",
                code="request_timeout",
            ) from None
        self.body = bytes(body)

    def _too_large(self) -> HttpProblem:
        return wrong_request(
            f"the request is larger than {self._limits.body:,} bytes", status=413, code="request_too_large"
        )

    async def attend(self, work: Awaitable[None]) -> None:
        """Do what answers the request, until it is done or interrupted: by its caller, who leaves, or the server.

        Raises:
            Problem: what it was interrupted with, or what the work raised.
            ClientDisconnect: the caller left.
        """
        self._task = asyncio.current_task()
        assert self._task is not None
        listener = asyncio.create_task(self._listen(), name="stepguard-listener")
        try:
            await work
        except asyncio.CancelledError:
            # Cancelled by somebody else, perhaps as well: only our own cancellation may be turned into an answer.
            if self._interruption is None or self._task.uncancel() > 0:
                raise  # somebody else's
            raise self._interruption from None
        finally:
            self._task = None
            listener.cancel()

    def interrupt(self, problem: Exception) -> None:
        """End it with this, unless it is answered; the first one counts."""
        if self._task is not None and self._interruption is None and not self.complete:
            self._interruption = problem
            self._task.cancel()

    async def _listen(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.interrupt(ClientDisconnect())

    async def respond(self, response: Response) -> None:
        """Send a response, with the headers that go with all of them.

        Raises ClientDisconnect: the caller does not read it.
        """
        response.headers.update(self.answer_headers)
        await response(self.request.scope, _nothing, self.send)

    async def send(self, message: Message) -> None:
        """Send what ASGI calls a message. Raises ClientDisconnect: the caller does not read it."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        try:
            # A caller that does not read would hold its slot for as long as it likes.
            async with asyncio.timeout(self._limits.send_seconds):
                await self._send(message)
        except TimeoutError:
            raise ClientDisconnect from None
        self.complete = message["type"] == "http.response.body" and not message.get("more_body", False)

    async def fail(self, problem: HttpProblem, response: Response) -> None:
        """Say what went wrong, as far as it can still be said.

        A response that has begun gets a last event, where it is one of events; any other is left incomplete, and the
        server closes the connection, so that nobody takes it for whole.
        """
        with suppress(TimeoutError, ClientDisconnect):
            async with asyncio.timeout(_LAST_WORDS_SECONDS):  # the caller may have stopped reading
                if self.status is None:
                    await self.respond(response)
                elif self.last_event is not None and not self.complete:
                    await self.send({"type": "http.response.body", "body": self.last_event(problem)})


async def _nothing() -> Message:
    """The `receive` of a response, which never reports a disconnect: that is watched elsewhere."""
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")
