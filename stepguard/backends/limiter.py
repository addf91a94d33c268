"""Limits how many requests are on their way to an endpoint, and how fast they follow, over all runs of a process.

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
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Final

from stepguard.backends.base import ASKING_RUN, Backend, Completion, Request, ask
from stepguard.backends.pacing import Bucket, Pace
from stepguard.backends.wrapped import WrappedBackend
from stepguard.core.arguments import check_count
from stepguard.core.usage import Usage
from stepguard.errors import BackendTimeout, ConfigError, RateLimited

__all__ = ["SHARED_LIMITERS", "EndpointLimiter", "LimitedBackend", "LimiterRegistry"]

_GROWTH: Final = 0.02
"""What a request that comes through adds to the limit beyond the last that failed; doubled every `_DOUBLING` such."""
_DOUBLING: Final = 50
_LONGEST_PAUSE: Final = 60.0
"""A pause that would be longer is left to the retry policy of each run, which gives up then."""


@dataclass(slots=True, eq=False)
class _Waiter:
    """A request that wants a turn.

    Attributes:
        wake: called when its turn has come, from any thread.
        tokens: what it is thought to cost.
        paced: whether it may be sent as far as the pace goes.
        granted: whether it has its turn.
        prompt: whether it did not have to wait.
        sent: when it was sent.
        beside: how many were on their way then, this one included.
        run: the run that it is of; by default one of its own.
    """

    wake: Callable[[], None]
    tokens: int = 0
    paced: bool = False
    granted: bool = False
    prompt: bool = True
    sent: float | None = None
    beside: int = 0
    run: object = field(default_factory=lambda: ASKING_RUN.get() or object())


class _Turns:
    """The requests that wait, in the order of their turns: the next one of each run, run by run."""

    def __init__(self) -> None:
        self._runs: Final[OrderedDict[object, OrderedDict[_Waiter, None]]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._runs)

    def __len__(self) -> int:
        return sum(map(len, self._runs.values()))

    def add(self, waiter: _Waiter) -> None:
        self._runs.setdefault(waiter.run, OrderedDict())[waiter] = None

    def discard(self, waiter: _Waiter) -> None:
        waiting = self._runs.get(waiter.run)
        if waiting is not None:
            waiting.pop(waiter, None)
            if not waiting:
                del self._runs[waiter.run]

    def pop(self) -> _Waiter:
        run, waiting = self._runs.popitem(last=False)
        waiter, _ = waiting.popitem(last=False)
        if waiting:
            self._runs[run] = waiting
        return waiter


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
        self._pacing: _Waiter | None = None
        self._reply_tokens = 0.0
        self.declare(requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute)
        self._lock: Final = threading.Lock()
        self._queue: Final = _Turns()

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
        waiter = _Waiter(event.set, tokens)
        try:
            if not self._enter(waiter) and not event.wait(timeout):
                raise _late()
            while (pause := self._pause(waiter, until)) > 0:
                waiter.prompt = False
                time.sleep(pause)
            crowded = waiter.beside >= self.limit
            yield timeout if until is None or waiter.prompt else until - time.monotonic()
            self._speed_up(crowded=crowded)
        except RateLimited as error:
            self._slow_down(waiter, error)
            raise
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

        waiter = _Waiter(wake, tokens)
        try:
            if not self._enter(waiter):
                await asyncio.wait((granted,), timeout=timeout)
                if not granted.done():
                    raise _late()
            while (pause := self._pause(waiter, until)) > 0:
                waiter.prompt = False
                await asyncio.sleep(pause)
            crowded = waiter.beside >= self.limit
            yield timeout if until is None or waiter.prompt else until - time.monotonic()
            self._speed_up(crowded=crowded)
        except RateLimited as error:
            self._slow_down(waiter, error)
            raise
        finally:
            self._leave(waiter)

    def _enter(self, waiter: _Waiter) -> bool:
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

    def _leave(self, waiter: _Waiter) -> None:
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

    def _grant(self) -> list[_Waiter]:
        """Give turns to the next requests; of those that the pace holds up, only one at a time waits for it."""
        woken: list[_Waiter] = []
        while self._queue and self._active < self.limit and self._pacing is None:
            following = self._queue.pop()
            following.granted = True
            self._active += 1
            woken.append(following)
            if not self._try(following):
                self._pacing = following
        return woken

    def _try(self, waiter: _Waiter) -> bool:
        """Whether a request may be sent now; it counts as sent then."""
        now = time.monotonic()
        if self._seconds(waiter, now) > 0:
            return False
        self._pace.send(now)
        if self._requests is not None:
            self._requests.spend(1, now)
        if self._tokens is not None:
            self._tokens.spend(waiter.tokens, now)
        self._sent += 1
        waiter.paced, waiter.sent, waiter.beside = True, now, self._sent
        return True

    def _seconds(self, waiter: _Waiter, now: float) -> float:
        """Seconds until a request may be sent."""
        seconds = self._pace.wait(now)
        if self._requests is not None:
            seconds = max(seconds, self._requests.wait(1, now))
        if self._tokens is not None:
            seconds = max(seconds, self._tokens.wait(waiter.tokens, now))
        return seconds

    def _pause(self, waiter: _Waiter, until: float | None) -> float:
        """Seconds that a request with its turn has yet to wait; with 0 it is on its way."""
        if waiter.paced:
            return 0.0
        with self._lock:
            now = time.monotonic()
            seconds = 0.0 if self._try(waiter) else self._seconds(waiter, now)
            woken: list[_Waiter] = []
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
            growth = 1.0 if quick else _GROWTH * 2 ** min(self._clean / _DOUBLING, 32.0)
            self._limit = min(float(self._most), self._limit + growth)

    def _slow_down(self, waiter: _Waiter, error: RateLimited) -> None:
        # The limiter refused it itself, in `_pause`: the endpoint has said nothing new.
        if waiter.sent is None:
            return
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


class LimiterRegistry:
    """The limiters of a process, one for each endpoint and key; those that were not used for longest are forgotten.

    Args:
        most: how many are kept.
    """

    def __init__(self, *, most: int = 256) -> None:
        self._most: Final = most
        self._lock: Final = threading.Lock()
        self._limiters: Final[OrderedDict[tuple[str, str], EndpointLimiter]] = OrderedDict()
        self._declared: dict[str, int | None] = {"requests_per_minute": None, "tokens_per_minute": None}

    def declare(self, *, requests_per_minute: int | None = None, tokens_per_minute: int | None = None) -> None:
        """Set what a minute may see at each endpoint; see `EndpointLimiter`."""
        with self._lock:
            limits = {"requests_per_minute": requests_per_minute, "tokens_per_minute": tokens_per_minute}
            EndpointLimiter().declare(**limits)  # what is refused is not kept
            self._declared = limits
            for limiter in self._limiters.values():
                limiter.declare(**limits)

    def _new(self) -> EndpointLimiter:
        limiter = EndpointLimiter()
        limiter.declare(**self._declared)
        return limiter

    def of(self, endpoint: str, key: str) -> EndpointLimiter:
        """The limiter of an endpoint.

        Args:
            endpoint: its address.
            key: what tells accounts apart; a digest, rather than the key itself.
        """
        with self._lock:
            # Taken out and put back, so that the order is that of the last use.
            limiter = self._limiters.pop((endpoint, key), None) or self._new()
            self._limiters[endpoint, key] = limiter
            if len(self._limiters) > self._most:
                idle = next((name for name, known in self._limiters.items() if not known.active), None)
                if idle is not None:
                    del self._limiters[idle]
            return limiter


SHARED_LIMITERS: Final = LimiterRegistry()
"""The limiters that every `OpenAIBackend` of the process uses which is given none of its own."""


class LimitedBackend(WrappedBackend):
    """A backend that asks another one, never more often at once than a limiter allows.

    Args:
        backend: the model that is asked.
        most: calls at the same time at first, and at most; None where `limiter` says so.
        limiter: the limiter, which other backends may share.

    Raises:
        ConfigError: `most` is no whole number of 1 or more, or both or neither are given.
    """

    def __init__(self, backend: Backend, *, most: int | None = None, limiter: EndpointLimiter | None = None) -> None:
        if limiter is None:
            check_count(most, "most")
            limiter = EndpointLimiter(first=most or 1, most=most or 1)
        elif most is not None:
            raise ConfigError("most goes without a limiter, which has its own", option="most")
        super().__init__(backend)
        self._limiter: Final = limiter

    @property
    def limit(self) -> int:
        """How many calls may be on their way now."""
        return self._limiter.limit

    async def acomplete(self, request: Request) -> Completion:
        """The model's reply, when it is this call's turn.

        Raises BackendError: the model did not answer.
        """
        tokens = self._limiter.estimate(request)
        async with self._limiter.aturn(tokens=tokens):
            completion = await ask(self._backend, request)
        self._limiter.settle(tokens, completion.usage)
        return completion
