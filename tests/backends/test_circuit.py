"""The circuit breaker: a model that fails again and again is left alone by all runs, and has limits of its own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stepguard import Guard, Price, Procedure, Result, RetryPolicy, Usage
from stepguard.backends import Completion, Message, Request
from stepguard.backends.circuit import CircuitBreaker
from stepguard.errors import BackendError, BackendRejected, BackendTimeout, CircuitOpen, ConfigError, RateLimited
from stepguard.testing import SimulatedModel, Slips

HELLO = Request(messages=(Message("user", "hello"),))
PROCEDURE = Procedure.parse("inputs: a\nb = a + 1\nc = b * 2")
DAY = 86_400.0


class Endpoint:
    """Answers, or fails as it is told."""

    name = "main"

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.calls = 0

    def complete(self, request: Request) -> Completion:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return Completion("hi", usage=Usage(1, 10, 5))


def run_many(main: CircuitBreaker, runs: int) -> list[Result]:
    spare = SimulatedModel(seed=1, slips=Slips.none())
    guard = Guard(main, fallback=spare, retry=RetryPolicy(retries=0))
    return [guard.run(PROCEDURE, {"a": number}) for number in range(runs)]


@pytest.mark.parametrize("error", [BackendError("down"), BackendTimeout("late"), BackendError("no", retryable=False)])
def test_runs_behind_some_failures_in_a_row_ask_their_fallback_at_once(error: Exception) -> None:
    """Nothing more is sent to the model that is down, and what was not sent costs nothing."""
    endpoint = Endpoint(error)
    results = run_many(CircuitBreaker(endpoint, failures=2, pause=DAY), 5)
    assert [result.status for result in results] == ["verified"] * 5
    assert endpoint.calls == 2
    last = results[-1]
    assert "main was not asked: 2 calls in a row have failed" in str(last.attempts[0].error)
    assert (last.attempts[0].usage, last.usage.calls) == (Usage(), len(last.attempts) - 1)


def test_one_call_tries_the_model_again_behind_the_pause() -> None:
    """Where it fails the pause begins anew, where it answers the circuit closes."""
    endpoint = Endpoint(BackendError("down"))
    breaker = CircuitBreaker(endpoint, failures=2, pause=0)
    for _ in range(4):  # no pause: each call behind the second is a trial
        with pytest.raises(BackendError, match="down"):
            breaker.complete(HELLO)
    assert breaker.open
    endpoint.error = None
    assert breaker.complete(HELLO).text == "hi"
    assert not breaker.open


def test_others_are_refused_while_one_call_tries_the_model() -> None:
    """A model that may be back is not met by all that waited, and a cancelled trial lets the next one try."""
    released = asyncio.Event()

    class Slow:
        name = "slow"
        up = False

        async def acomplete(self, request: Request) -> Completion:
            if not self.up:
                raise BackendError("down")
            await released.wait()
            return Completion("hi")

    async def main() -> None:
        slow = Slow()
        breaker = CircuitBreaker(slow, failures=1, pause=0)
        with pytest.raises(BackendError):
            await breaker.acomplete(HELLO)
        slow.up = True
        trial = asyncio.create_task(breaker.acomplete(HELLO))
        await asyncio.sleep(0)
        with pytest.raises(CircuitOpen, match="being tried again"):
            await breaker.acomplete(HELLO)
        trial.cancel()
        await asyncio.gather(trial, return_exceptions=True)
        released.set()
        assert (await breaker.acomplete(HELLO)).text == "hi"
        assert not breaker.open

    asyncio.run(main())


def test_a_request_to_slow_down_opens_no_circuit() -> None:
    """The limiter waits for it; the model lives."""
    endpoint = Endpoint(RateLimited("slow down"))
    breaker = CircuitBreaker(endpoint, failures=1, pause=DAY)
    for _ in range(3):
        with pytest.raises(RateLimited):
            breaker.complete(HELLO)
    assert not breaker.open


def test_failures_count_only_in_a_row() -> None:
    """An answer between them begins the count anew."""
    endpoint = Endpoint()
    breaker = CircuitBreaker(endpoint, failures=2, pause=DAY)
    for error in (BackendError("down"), None, BackendError("down"), None):
        endpoint.error = error
        if error is None:
            breaker.complete(HELLO)
        else:
            with pytest.raises(BackendError):
                breaker.complete(HELLO)
    assert not breaker.open
    assert breaker.spent == Usage(4, 20, 10)


PRICE = Price(input="100", output="200")


@pytest.mark.parametrize(
    ("limits", "sent"),
    [({"calls": 2}, 2), ({"tokens": 30}, 2), ({"calls": 0}, 0), ({"cost": "0.003", "price": PRICE}, 2)],
)
def test_limits_of_a_model_hold_over_all_runs(limits: dict[str, Any], sent: int) -> None:
    """Behind them nothing is sent; the runs go to the next model."""
    endpoint = Endpoint()
    breaker = CircuitBreaker(endpoint, **limits)
    for _ in range(sent):
        breaker.complete(HELLO)
    with pytest.raises(CircuitOpen, match="are spent"):
        breaker.complete(HELLO)
    assert endpoint.calls == sent
    assert run_many(breaker, 1)[0].status == "verified"


def test_a_model_that_can_only_be_awaited_stays_one() -> None:
    """Asked without an event loop it says what to use instead."""

    class Awaited:
        async def acomplete(self, request: Request) -> Completion:
            raise BackendError("down")

    with pytest.raises(ConfigError, match=r"await guard\.arun"):
        Guard(CircuitBreaker(Awaited())).run(PROCEDURE, {"a": 1})


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_request_that_is_refused_for_what_it_is_opens_no_circuit(status: int) -> None:
    """A document that is too long for the model says nothing about the next one."""
    breaker = CircuitBreaker(Endpoint(BackendRejected("too long", status=status)), failures=1, pause=DAY)
    for _ in range(3):
        with pytest.raises(BackendRejected):
            breaker.complete(HELLO)
    assert not breaker.open


@pytest.mark.parametrize("options", [{"failures": 0}, {"pause": -1}, {"calls": -1}, {"tokens": "many"}, {"cost": 1}])
def test_options_that_are_none_are_named(options: dict[str, Any]) -> None:
    """Which of them, and what it takes."""
    with pytest.raises(ConfigError) as caught:
        CircuitBreaker(Endpoint(), **options)
    assert caught.value.option == next(iter(options))
