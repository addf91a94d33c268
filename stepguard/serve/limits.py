"""What the server takes on: the size of a request, how many at once, how long; and how it stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from typing import Final, Protocol

from stepguard.core.deadlines import is_seconds
from stepguard.errors import ConfigError
from stepguard.serve.errors import Problem, busy, stopping

__all__ = ["Gate", "Interruptible", "Limits"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one server takes on. None is no limit, where it is allowed.

    Args:
        body: the largest request, in bytes; a larger one gets status 413.
        answer: the largest answer of the upstream that is held whole, in bytes, and the largest event of a streamed
            one; beyond it the caller gets status 502. What the server does not read it passes on at any size.
        concurrent: how many requests are worked on at once.
        waiting: how many more may wait for their turn; the next one gets status 429 at once.
        wait_seconds: how long one waits for its turn before it gets status 429.
        upload_seconds: how long a caller may take to send a request; then it gets status 408.
        seconds: how long a request may take from then on, its wait not counted; then it gets status 504, and what
            runs for it is cancelled. None sets no limit.
        connect_seconds: how long it may take to reach the upstream.
        upstream_seconds: how long the upstream may be silent. None sets no limit.
        keep_alive_seconds: after so long without a word a streamed answer of the guard gets a comment, so that what
            stands between does not cut it. Until then nothing is sent, and an error still has a status of its own.
        grace_seconds: how long requests may go on once the server is to stop; then they get status 503, and what runs
            for them is cancelled.

    Raises:
        ConfigError: a limit is no number above 0.
    """

    body: int = 16 * 2**20
    answer: int = 64 * 2**20
    concurrent: int = 100
    waiting: int = 1000
    wait_seconds: float = 30.0
    upload_seconds: float = 60.0
    seconds: float | None = 600.0
    connect_seconds: float = 10.0
    upstream_seconds: float | None = 300.0
    keep_alive_seconds: float = 10.0
    grace_seconds: float = 30.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            least_is_zero = each.name in ("waiting", "grace_seconds")
            if value is None and each.name in ("seconds", "upstream_seconds"):
                continue
            whole = not each.name.endswith("seconds")
            number = is_seconds(value) and (isinstance(value, int) or not whole)
            if not number or (value == 0 and not least_is_zero):
                kind = "a whole number" if whole else "a number of seconds"
                bound = "of 0 or more" if least_is_zero else "above 0"
                raise ConfigError(f"{each.name} is {kind} {bound}, not {value!r}", option=each.name)


class Interruptible(Protocol):
    """A request that can be ended from outside."""

    def interrupt(self, problem: Problem) -> None:
        """End it with this problem; the first one counts."""
        ...


class Gate:
    """Lets requests in, so many at a time, and none any more once the server is to stop.

    A gate belongs to one event loop.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits: Final = limits
        self._slots: Final = asyncio.Semaphore(limits.concurrent)
        self._inside: Final[set[Interruptible]] = set()
        self._empty: Final = asyncio.Event()
        self._empty.set()
        self.waiting = 0
        self.closed = False

    @property
    def in_flight(self) -> int:
        """How many requests are worked on now."""
        return len(self._inside)

    @asynccontextmanager
    async def admit(self, request: Interruptible) -> AsyncIterator[None]:
        """Wait for the turn of a request, and hold its place.

        Raises:
            Problem: too many are waiting, it has waited too long, or the server is to stop.
        """
        if self.closed:
            raise stopping()
        await self._take_slot()
        try:
            if self.closed:  # meanwhile
                raise stopping()
            self._inside.add(request)
            self._empty.clear()
            yield
        finally:
            self._inside.discard(request)
            if not self._inside:
                self._empty.set()
            self._slots.release()

    async def _take_slot(self) -> None:
        if not self._slots.locked():
            await self._slots.acquire()
            return
        if self.waiting >= self._limits.waiting:
            raise busy()
        self.waiting += 1
        try:
            async with asyncio.timeout(self._limits.wait_seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise busy() from None
        finally:
            self.waiting -= 1

    async def close(self) -> None:
        """Let no request in any more, and return when the last one has left.

        After the seconds of grace those that are still here are interrupted.
        """
        self.closed = True
        try:
            async with asyncio.timeout(self._limits.grace_seconds):
                await self._empty.wait()
        except TimeoutError:
            for request in tuple(self._inside):
                request.interrupt(stopping())
            await self._empty.wait()
