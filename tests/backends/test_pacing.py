"""How fast requests follow each other: tried out in a time of its own, without waiting."""

from __future__ import annotations

import asyncio
import random

import pytest
from tables import all_rows

from stepguard.backends import Completion, Message, Request
from stepguard.backends.limiter import EndpointLimiter, LimitedBackend, LimiterRegistry
from stepguard.backends.pacing import Bucket, Pace
from stepguard.core.usage import Usage
from stepguard.errors import ConfigError

HELLO = Request(messages=(Message("user", "hello"),))


@all_rows("limit", [1, 3, 19, 60, 500, 90_000])
def test_no_minute_sees_more_than_is_declared(limit: int) -> None:
    """Requests sent as soon as they may be, one at a time or some at once, stay within the limit of any minute."""
    bucket, now, sent = Bucket(limit), 0.0, list[float]()
    chance = random.Random(limit)
    for _ in range(min(3 * limit, 3000)):
        now += bucket.wait(1, now) * (1 + 1e-9)
        bucket.spend(1, now)
        sent.append(now)
        if chance.random() < 0.05:
            now += chance.random() * 60 / limit
    first = 0
    for last, moment in enumerate(sent):
        while sent[first] <= moment - 60 * (1 + 1e-6):
            first += 1
        assert last - first + 1 <= max(limit, 1) + 1
    if len(sent) == 3000:  # and most of it can be used
        assert len(sent) / (sent[-1] - sent[0]) >= 0.9 * limit / 60


def test_tokens_are_put_right() -> None:
    """A request larger than a minute allows at once is sent when all is there; what it did not cost is given back."""
    bucket = Bucket(6000)
    assert bucket.wait(10_000, 0.0) == 0.0
    bucket.spend(10_000, 0.0)
    assert bucket.wait(1, 0.0) > 60
    bucket.spend(-10_000, 0.0)
    assert bucket.wait(1, 0.0) == 0.0


class Hidden:
    """An endpoint that bears so many requests a second, with so many at once, and says how long to wait."""

    def __init__(self, rate: float, burst: float) -> None:
        self.rate, self.burst = rate, burst
        self.level, self.at = burst, 0.0

    def takes(self, now: float) -> bool:
        self.level, self.at = min(self.burst, self.level + (now - self.at) * self.rate), now
        if self.level < 1:
            return False
        self.level -= 1
        return True


@all_rows(
    "rate, burst, pause",
    [(50, 50, 0.0), (50, 50, 1.0), (50, 5, 0.0), (3, 3, 0.0), (3, 3, 1.0), (1000, 200, 0.0), (500, 500, 1.0)],
)
def test_the_pace_finds_a_hidden_rate(rate: float, burst: float, pause: float) -> None:
    """Sent as fast as the pace allows, at least nine tenths of the rate come through, and a twentieth is refused."""
    pace, server, now = Pace(), Hidden(rate, burst), 0.0
    refused, total = 0, round(max(6000, 40 * rate))
    for _ in range(total):
        now += max(pace.wait(now), 1e-4)
        pace.send(now)
        if server.takes(now):
            pace.accepted()
        else:
            refused += 1
            pace.slow_down(now, pause)
    assert refused <= total / 20
    assert (total - refused) / now >= 0.9 * rate


def test_late_refusals_of_one_burst_lower_the_pace_once() -> None:
    """What was sent before the endpoint asked to slow down says nothing about what it bears from then on."""
    paces = [Pace(), Pace()]
    for pace, late in zip(paces, (0, 7), strict=True):
        for _ in range(8):
            pace.send(0.0)
        pace.slow_down(0.1, 1.0)
        for _ in range(late):
            pace.pause(0.1, 1.0)
        for second in range(2, 8):
            pace.send(float(second))
        pace.slow_down(8.0, 1.0)
    assert paces[0].rate == paces[1].rate > 1


def test_a_client_that_is_slow_to_start_lowers_no_pace() -> None:
    """Seconds that pass before the first requests leave say nothing about what the endpoint bears."""
    pace = Pace()
    for _ in range(8):
        pace.send(0.0)
    pace.slow_down(10.0, 1.0)
    assert pace.rate > 50


def test_a_rate_that_grew_is_found() -> None:
    """Where an endpoint bears twenty times as much as before, the pace follows within some hundred requests."""
    pace, server, now = Pace(), Hidden(10, 1), 0.0
    for number in range(4000):
        if number == 1500:
            server.rate, then = 200, now
        now += max(pace.wait(now), 1e-4)
        pace.send(now)
        if server.takes(now):
            pace.accepted()
        else:
            pace.slow_down(now, 0.0)
    assert pace.rate > 100
    assert now - then < 60


def test_declared_limits_hold_for_all_who_share_them() -> None:
    """Two backends with one limiter together send no more than is declared; a reply settles what was estimated."""

    class Model:
        name = "model"

        async def acomplete(self, request: Request) -> Completion:
            return Completion("hi", usage=Usage(calls=1, input_tokens=5, output_tokens=1))

    limiter = EndpointLimiter(requests_per_minute=60, tokens_per_minute=100_000)
    assert limiter.estimate(HELLO) > 0
    one, other = (LimitedBackend(Model(), limiter=limiter) for _ in range(2))

    async def main() -> int:
        sent = 0
        for backend in (one, other) * 20:
            try:
                async with asyncio.timeout(0.05):
                    await backend.acomplete(HELLO)
            except TimeoutError:
                break
            sent += 1
        return sent

    assert 1 <= asyncio.run(main()) <= 6


def test_a_registry_declares_for_all_endpoints() -> None:
    """What is declared holds for limiters that are there and for those that come."""
    registry = LimiterRegistry()
    early = registry.of("here", "key")
    assert early.estimate(HELLO) == 0
    registry.declare(tokens_per_minute=1000)
    assert early.estimate(HELLO) > 0
    assert registry.of("there", "key").estimate(HELLO) > 0
    with pytest.raises(ConfigError, match="requests_per_minute"):
        registry.declare(requests_per_minute=0)
    with pytest.raises(ConfigError, match="most"):
        LimitedBackend(object(), most=2, limiter=early)  # type: ignore[arg-type]
