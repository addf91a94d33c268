"""Limits how many requests are on their way to one endpoint, and how fast they follow.

The number at once starts low and doubles with every round that comes through, until the endpoint asks to slow down for
the first time; from then on a rate limit halves it. It goes back quickly to just below what was on its way when the
limit came, and slowly beyond it, the faster the longer nothing happens (slow start, additive increase, multiplicative
decrease; Chiu and Jain, 1989). How fast requests follow each other is found out in the same way, see
`stepguard.backends.pacing`, and may be declared. While an endpoint says how long to wait, nobody sends anything. Runs
take turns: one that wants to ask many things at once waits, after each, for every other one that wants to ask.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from stepguard.backends.base import Request
from stepguard.backends.pacing import Bucket, Pace
from stepguard.backends.turns import Waiter, WaitingTurns
from stepguard.core.arguments import check_count
from stepguard.core.usage import Usage
from stepguard.errors import BackendTimeout, RateLimited

_GROWTH: Final = 0.02
"""What a request that comes through adds to the limit beyond the last that failed; doubled every `_DOUBLING` such."""
_DOUBLING: Final = 50
_LONGEST_PAUSE: Final = 60.0
"""A pause that would be longer is left to the retry policy of each run, which gives up then."""


class EndpointLimiter:
    """Gives turns to send a request. It may be shared between threads and event loops, and holds none of either.

    Args:
        first: requests at the same time at first.
        most: requests at the same time at most.
        requests_per_minute: requests in a minute at most; None: as many as the endpoint is found to bear.
        tokens_per_minute: tokens in a minute at most, those of prompts and of replies together. What a request will
            cost is estimated, and put right when it is known.

    Raises:
        ConfigError: a number is no whole number of 1 or more, or `first` is above `most`.
    """

    def __init__(
        self,
        *,
        first: int = 8,
        most: int = 512,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
    ) -> None:
        check_count(most, "most")
        check_count(first, "first", most=most)
        self._most: Final = most
        self._limit = float(first)
        self._active = self._sent = 0
        self._ceiling = math.inf
        self._clean = 0
        self._slowed_at = -math.inf
        self._pace: Final = Pace()
        # The one request with a turn that the pace holds up: behind it nobody else is asked to wait for the same.
        self._pacing: Waiter | None = None
        self._reply_tokens = 0.0
        self.declare(requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute)
        self._lock: Final = threading.Lock()
        self._queue: Final = WaitingTurns()

    @property
    def limit(self) -> int:
        """How many requests may be on their way now."""
        return int(self._limit)

    @property
    def active(self) -> int:
        """How many requests are on their way."""
        return self._active

    @property
    def rate(self) -> float:
        """How many requests a second may follow each other now, by what rate limits have shown; infinite before any."""
        return self._pace.rate

    def declare(self, *, requests_per_minute: int | None = None, tokens_per_minute: int | None = None) -> None:
        """Set what may be sent in a minute, None for no such limit.

        Raises ConfigError: a number is no whole number of 1 or more.
        """
        check_count(requests_per_minute, "requests_per_minute", optional=True)
        check_count(tokens_per_minute, "tokens_per_minute", optional=True)
        self._requests = None if requests_per_minute is None else Bucket(requests_per_minute)
        self._tokens = None if tokens_per_minute is None else Bucket(tokens_per_minute)

    def estimate(self, request: Request) -> int:
        """The tokens that a request will probably cost; 0 where no limit counts them."""
        if self._tokens is None:
            return 0
        reply = self._reply_tokens if request.max_tokens is None else min(self._reply_tokens, request.max_tokens)
        return request.estimate().input_tokens + round(reply)

    def settle(self, estimated: int, usage: Usage) -> None:
        """Correct the estimate for a request by what it has really cost."""
        if self._tokens is not None:
            with self._lock:
                spent = usage.input_tokens + usage.output_tokens
                self._tokens.spend(spent - estimated, time.monotonic())
                # A running average, over about the last eight replies.
                self._reply_tokens += (usage.output_tokens - self._reply_tokens) / 8

    @contextmanager
    def turn(self, timeout: float | None = None, *, tokens: int = 0) -> Iterator[float | None]:
        """Wait for a turn, blocking; gives the seconds that are left then.

        A `RateLimited` that leaves the block slows everybody down.

        Args:
            timeout: seconds that there are for it.
            tokens: what the request is thought to cost, as `estimate` says.

        Raises:
            BackendTimeout: the time is over before it is this request's turn.
            RateLimited: the endpoint asked for a pause that is longer than the time that is left.
        """
        until = None if timeout is None else time.monotonic() + timeout
        event = threading.Event()
        waiter = Waiter(event.set, tokens)
        try:
            if not self._enter(waiter) and not event.wait(timeout):
                raise _late()
            while (pause := self._pause(waiter, until)) > 0:
                waiter.prompt = False
                time.sleep(pause)
            with self._on_its_way(waiter):
                yield timeout if until is None or waiter.prompt else until - time.monotonic()
        finally:
            self._leave(waiter)

    @asynccontextmanager
    async def aturn(self, timeout: float | None = None, *, tokens: int = 0) -> AsyncIterator[float | None]:
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

        waiter = Waiter(wake, tokens)
        try:
            if not self._enter(waiter):
                await asyncio.wait((granted,), timeout=timeout)
                if not granted.done():
                    raise _late()
            while (pause := self._pause(waiter, until)) > 0:
                waiter.prompt = False
                await asyncio.sleep(pause)
            with self._on_its_way(waiter):
                yield timeout if until is None or waiter.prompt else until - time.monotonic()
        finally:
            self._leave(waiter)

    @contextmanager
    def _on_its_way(self, waiter: Waiter) -> Iterator[None]:
        """A request that is sent: what comes of it moves the limit."""
        # Asked before it is answered: others may have left meanwhile, or the limit have moved.
        crowded = waiter.beside >= self.limit
        try:
            yield
        except RateLimited as error:
            self._slow_down(waiter, error)
            raise
        self._speed_up(crowded=crowded)

    def _enter(self, waiter: Waiter) -> bool:
        """Queue a request; whether it has its turn at once. Otherwise it is woken when it has."""
        with self._lock:
            self._queue.add(waiter)
            woken = self._grant()
            waiter.prompt = waiter.granted
        # Outside of the lock, which what is woken may want itself.
        for other in woken:
            if other is not waiter:
                other.wake()
        return waiter.prompt

    def _leave(self, waiter: Waiter) -> None:
        """Let go of a request that is done, or waits no more: the next ones get their turns."""
        with self._lock:
            self._queue.discard(waiter)
            if waiter.granted:
                waiter.granted = False
                self._active -= 1
                self._sent -= waiter.sent is not None
            if self._pacing is waiter:
                self._pacing = None
            woken = self._grant()
        for other in woken:
            other.wake()

    def _grant(self) -> list[Waiter]:
        """Give turns to the next requests; of those that the pace holds up, only one at a time waits for it."""
        woken: list[Waiter] = []
        while self._queue and self._active < self.limit and self._pacing is None:
            following = self._queue.pop()
            following.granted = True
            self._active += 1
            woken.append(following)
            if not self._try(following):
                self._pacing = following
        return woken

    def _try(self, waiter: Waiter) -> bool:
        """Whether a request may be sent now; it counts as sent then."""
        now = time.monotonic()
        if self._seconds(waiter, now) > 0:
            return False
        self._pace.send(now)
        for bucket, amount in self._spending(waiter):
            bucket.spend(amount, now)
        self._sent += 1
        waiter.paced, waiter.sent, waiter.beside = True, now, self._sent
        return True

    def _seconds(self, waiter: Waiter, now: float) -> float:
        """Seconds until a request may be sent."""
        return max([self._pace.wait(now), *(bucket.wait(amount, now) for bucket, amount in self._spending(waiter))])

    def _spending(self, waiter: Waiter) -> list[tuple[Bucket, int]]:
        """What a request takes of each limit that is declared."""
        declared = ((self._requests, 1), (self._tokens, waiter.tokens))
        return [(bucket, amount) for bucket, amount in declared if bucket is not None]

    def _pause(self, waiter: Waiter, until: float | None) -> float:
        """Seconds that a request with its turn has yet to wait; with 0 it is on its way."""
        if waiter.paced:
            return 0.0
        with self._lock:
            now = time.monotonic()
            seconds = 0.0 if self._try(waiter) else self._seconds(waiter, now)
            woken: list[Waiter] = []
            if waiter.paced:
                self._pacing = None
                woken = self._grant()
        for other in woken:
            other.wake()
        if seconds and until is not None and seconds > until - now:
            error = RateLimited(
                "the endpoint has asked for a pause that is longer than the time left", retry_after=seconds
            )
            error.usage = Usage(calls=1)
            raise error
        return seconds

    def _speed_up(self, *, crowded: bool) -> None:
        """Count a request that came through; it says something about the limit only where that was in use."""
        with self._lock:
            self._pace.accepted()
            if not crowded:
                return
            self._clean += 1
            # Quickly back to what was on its way when the last limit came, and slowly beyond it.
            quick = self._limit + 1 < self._ceiling
            # Bounded: the power would overflow after some fifty thousand requests without a rate limit.
            # Bounded: the power would overflow after some days without a rate limit.
            growth = 1.0 if quick else _GROWTH * 2 ** min(self._clean / _DOUBLING, 32.0)
            self._limit = min(float(self._most), self._limit + growth)

    def _slow_down(self, waiter: Waiter, error: RateLimited) -> None:
        assert waiter.sent is not None
        with self._lock:
            now = time.monotonic()
            asked = 0.0 if error.retry_after is None or error.retry_after > _LONGEST_PAUSE else error.retry_after
            if waiter.sent > self._slowed_at:  # what was sent before the limit was halved says nothing about it
                self._ceiling = float(max(2, waiter.beside))
                self._limit = max(1.0, self._limit / 2)
                self._slowed_at, self._clean = now, 0
                self._pace.slow_down(now, asked)
            else:
                self._ceiling = min(self._ceiling, float(max(2, waiter.beside)))
                self._pace.pause(now, asked)


def _late() -> BackendTimeout:
    late = BackendTimeout("the time was over before it was this request's turn: others were on their way")
    late.usage = Usage(calls=1)
    return late
