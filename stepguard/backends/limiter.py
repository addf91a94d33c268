"""How many requests may be on their way to an endpoint at once, for all runs of a process together.

The number starts low and doubles with every round that comes through, until the endpoint asks to slow down for the
first time; from then on a rate limit halves it and four full rounds raise it by one, as congestion control does
(slow start, additive increase, multiplicative decrease; Chiu and Jain, 1989). While an endpoint says how long to wait,
nobody sends anything. Turns are given in the order in which they were asked for.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Final

from stepguard.backends.base import Backend, Completion, Request, ask
from stepguard.core.arguments import check_count
from stepguard.core.usage import Usage
from stepguard.errors import BackendTimeout, RateLimited

__all__ = ["SHARED_LIMITERS", "EndpointLimiter", "LimitedBackend", "LimiterRegistry"]

_GROWTH: Final = 0.25
_LONGEST_PAUSE: Final = 60.0
"""A pause that would be longer is left to the retry policy of each run, which gives up then."""


@dataclass(slots=True, eq=False)
class _Waiter:
    """Somebody who wants a turn.

    Attributes:
        wake: called when it is theirs, from any thread.
        granted: whether it is.
        prompt: whether they did not have to wait.
        sent: when they sent what they had to send.
    """

    wake: Callable[[], None]
    granted: bool = False
    prompt: bool = True
    sent: float | None = None


class EndpointLimiter:
    """Gives turns to send a request. It may be shared between threads and event loops, and holds none of either.

    Args:
        first: requests at the same time at first.
        most: requests at the same time at most.

    Raises:
        ConfigError: a number is no whole number of 1 or more, or `first` is above `most`.
    """

    def __init__(self, *, first: int = 8, most: int = 512) -> None:
        check_count(most, "most")
        check_count(first, "first", most=most)
        self._most: Final = most
        self._limit = float(first)
        self._active = 0
        self._not_before = 0.0
        self._slowed_at = -math.inf
        self._lock: Final = threading.Lock()
        self._queue: Final[OrderedDict[_Waiter, None]] = OrderedDict()

    @property
    def limit(self) -> int:
        """How many requests may be on their way now."""
        return int(self._limit)

    @property
    def active(self) -> int:
        """How many requests are on their way."""
        return self._active

    @contextmanager
    def turn(self, timeout: float | None = None) -> Iterator[float | None]:
        """Wait for a turn, blocking; gives the seconds that are left then.

        A `RateLimited` that leaves the block slows everybody down.

        Raises:
            BackendTimeout: the time is over before it is this request's turn.
            RateLimited: the endpoint asked for a pause that is longer than the time that is left.
        """
        until = None if timeout is None else time.monotonic() + timeout
        event = threading.Event()
        waiter = _Waiter(event.set)
        try:
            if not self._enter(waiter) and not event.wait(timeout):
                raise _late()
            while (pause := self._pause(until)) > 0:
                waiter.prompt = False
                time.sleep(pause)
            crowded, waiter.sent = self._active >= self.limit, time.monotonic()
            yield timeout if until is None or waiter.prompt else until - waiter.sent
            self._speed_up(crowded=crowded)
        except RateLimited as error:
            self._slow_down(waiter, error)
            raise
        finally:
            self._leave(waiter)

    @asynccontextmanager
    async def aturn(self, timeout: float | None = None) -> AsyncIterator[float | None]:
        """As `turn`, without blocking the event loop."""
        until = None if timeout is None else time.monotonic() + timeout
        loop = asyncio.get_running_loop()
        granted: asyncio.Future[None] = loop.create_future()

        def settle() -> None:
            if not granted.done():
                granted.set_result(None)

        def wake() -> None:
            try:
                loop.call_soon_threadsafe(settle)
            except RuntimeError:  # the loop was closed while somebody waited on it
                self._leave(waiter)

        waiter = _Waiter(wake)
        try:
            if not self._enter(waiter):
                await asyncio.wait((granted,), timeout=timeout)
                if not granted.done():
                    raise _late()
            while (pause := self._pause(until)) > 0:
                waiter.prompt = False
                await asyncio.sleep(pause)
            crowded, waiter.sent = self._active >= self.limit, time.monotonic()
            yield timeout if until is None or waiter.prompt else until - waiter.sent
            self._speed_up(crowded=crowded)
        except RateLimited as error:
            self._slow_down(waiter, error)
            raise
        finally:
            self._leave(waiter)

    def _enter(self, waiter: _Waiter) -> bool:
        """Whether it is somebody's turn at once; otherwise they are woken when it is."""
        with self._lock:
            if self._queue or self._active >= self.limit:
                self._queue[waiter], waiter.prompt = None, False
                return False
            waiter.granted = True
            self._active += 1
            return True

    def _leave(self, waiter: _Waiter) -> None:
        """Somebody is done, or waits no more: those who are next get their turns."""
        with self._lock:
            self._queue.pop(waiter, None)
            if waiter.granted:
                waiter.granted = False
                self._active -= 1
            woken = []
            while self._queue and self._active < self.limit:
                following, _ = self._queue.popitem(last=False)
                following.granted = True
                self._active += 1
                woken.append(following)
        for each in woken:
            each.wake()

    def _pause(self, until: float | None) -> float:
        """Seconds that the endpoint has asked everybody to wait for yet."""
        now = time.monotonic()
        pause = self._not_before - now
        if until is not None and pause > until - now:
            error = RateLimited(
                "the endpoint has asked for a pause that is longer than the time left", retry_after=pause
            )
            error.usage = Usage(calls=1)
            raise error
        return pause

    def _speed_up(self, *, crowded: bool) -> None:
        """A request came through; only where the limit was in use that says something about it."""
        if crowded:
            growth = 1.0 if self._slowed_at == -math.inf else _GROWTH / self._limit
            with self._lock:
                self._limit = min(float(self._most), self._limit + growth)

    def _slow_down(self, waiter: _Waiter, error: RateLimited) -> None:
        if waiter.sent is None:
            return
        with self._lock:
            now = time.monotonic()
            if waiter.sent > self._slowed_at:  # what was sent before the limit was halved says nothing about it
                self._limit = max(1.0, self._limit / 2)
                self._slowed_at = now
            if error.retry_after is not None and error.retry_after <= _LONGEST_PAUSE:
                self._not_before = max(self._not_before, now + error.retry_after)


def _late() -> BackendTimeout:
    late = BackendTimeout("the time was over before it was this request's turn: others were on their way")
    late.usage = Usage(calls=1)
    return late


class LimiterRegistry:
    """The limiters of a process, one for each endpoint and key; those that were not used for longest are forgotten.

    Args:
        most: how many are kept.
    """

    def __init__(self, *, most: int = 256) -> None:
        self._most: Final = most
        self._lock: Final = threading.Lock()
        self._limiters: Final[OrderedDict[tuple[str, str], EndpointLimiter]] = OrderedDict()

    def of(self, endpoint: str, key: str) -> EndpointLimiter:
        """The limiter of an endpoint.

        Args:
            endpoint: its address.
            key: what tells accounts apart; a digest, rather than the key itself.
        """
        with self._lock:
            limiter = self._limiters.pop((endpoint, key), None) or EndpointLimiter()
            self._limiters[endpoint, key] = limiter
            if len(self._limiters) > self._most:
                idle = next((name for name, each in self._limiters.items() if not each.active), None)
                if idle is not None:
                    del self._limiters[idle]
            return limiter


SHARED_LIMITERS: Final = LimiterRegistry()
"""The limiters that every `OpenAIBackend` of the process uses which is given none of its own."""


class LimitedBackend:
    """A backend that asks another one, never more often at once than a limiter allows.

    Args:
        backend: the model that is asked.
        most: calls at the same time at first, and at most.

    Raises:
        ConfigError: `most` is no whole number of 1 or more.
    """

    def __init__(self, backend: Backend, *, most: int) -> None:
        self._backend: Final = backend
        self._limiter: Final = EndpointLimiter(first=most, most=most)

    @property
    def limit(self) -> int:
        """How many calls may be on their way now."""
        return self._limiter.limit

    @property
    def name(self) -> str:
        """What the model is called."""
        return str(getattr(self._backend, "name", type(self._backend).__name__))

    @property
    def signature(self) -> object:
        """That of the model: how many calls run at once shapes no reply."""
        return getattr(self._backend, "signature", None)

    @property
    def can_stop(self) -> bool:
        """Whether the model can stop a reply at its first wrong step."""
        return bool(getattr(self._backend, "can_stop", False))

    async def acomplete(self, request: Request) -> Completion:
        """The model's reply, when it is this call's turn.

        Raises:
            BackendError: the model did not answer.
        """
        async with self._limiter.aturn():
            return await ask(self._backend, request)

    def session(self) -> AbstractAsyncContextManager[Any]:
        """A session of the model's, where it has such."""
        session = getattr(self._backend, "session", None)
        return nullcontext() if session is None else session()
