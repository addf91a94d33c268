"""What a run may spend: calls, tokens and seconds, also with several segments at once."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from harness import GOOD, P2, P6, PAIR, Hand, ids, reply
from tables import all_rows

from stepguard import Budget, Guard, Procedure, RetryPolicy, Step, Usage
from stepguard.backends import Completion, Request
from stepguard.engine.actions import Ask, Clock, Failed, Replied, Woke
from stepguard.errors import BackendError, BackendTimeout, BudgetExhausted
from stepguard.testing import SimulatedModel, Slips

WIDE = Procedure([Step(f"t{number}", f"x + {number}") for number in range(30)], inputs=["x"], answer="t29")


def start(procedure: Procedure, inputs: dict[str, object], **options: Any) -> Hand:
    return Hand(Guard(lambda messages: "", **options).start(procedure, inputs))


@pytest.mark.parametrize("budget", [Budget(calls=0), Budget(tokens=0), Budget(seconds=0)])
def test_a_budget_of_nothing_makes_no_call(budget: Budget) -> None:
    """With nothing to spend the run is exhausted at its first step, before any call."""
    hand = start(P2, {}, budget=budget)
    assert hand.asks == []
    assert hand.run.done
    result = hand.run.result()
    assert result.status == "exhausted"
    assert result.problem is not None
    assert result.problem.occurrence.step == "a"
    assert result.usage == Usage()
    with pytest.raises(BudgetExhausted) as caught:
        result.raise_for_status()
    assert caught.value.result is result


@pytest.mark.parametrize(("budget", "status"), [(Budget(calls=0), "verified"), (Budget(seconds=0), "exhausted")])
def test_code_costs_no_calls_but_takes_time(budget: Budget, status: str) -> None:
    """Steps that code performs need no call; a deadline holds for them as well."""
    procedure = Procedure([Step("a", "2 * 3", performer="code"), Step("b", "a + 1", performer="code")])
    assert start(procedure, {}, budget=budget).run.result().status == status


@all_rows("parallel", [1, 2, 4])
@all_rows("calls", [1, 3, 7])
def test_calls_are_never_passed(calls: int, parallel: int) -> None:
    """No more calls are made than allowed, also by segments at the same time; what they verified is kept."""
    slips = replace(Slips.all(0.1, systematic=0.0), refused=0.0, empty=0.0)
    result = Guard(
        SimulatedModel(3, slips=slips), segment=1, parallel=parallel, budget=Budget(calls=calls), repair=100, seed=1
    ).run(WIDE, {"x": 1})
    assert result.status == "exhausted"
    assert result.usage.calls == len(result.attempts) == calls
    assert result.completed == sum(attempt.committed for attempt in result.attempts)
    assert result.answer is None


class _Greedy:
    """Uses every token it may use."""

    def __init__(self) -> None:
        self.dearest = 0
        self._right = SimulatedModel(slips=Slips.none())

    def complete(self, request: Request) -> Completion:
        characters = sum(len(message.content) for message in request.messages)
        assert request.max_tokens is not None
        self.dearest = max(self.dearest, characters + request.max_tokens)
        text = self._right.complete(request).text
        return Completion(text, usage=Usage(calls=1, input_tokens=characters, output_tokens=request.max_tokens))


@all_rows("parallel", [1, 2, 5])
@all_rows("tokens", [1, 1_000, 5_000, 9_999])
def test_tokens_are_passed_by_no_more_than_one_call(tokens: int, parallel: int) -> None:
    """However many segments are asked at once, the limit is passed by less than what one call costs."""
    backend = _Greedy()
    guard = Guard(backend, segment=1, parallel=parallel, budget=Budget(tokens=tokens))
    hand = Hand(guard.start(WIDE, {"x": 1}))
    while hand.asks:
        assert len(hand.asks) <= parallel
        asks, hand.asks = hand.asks, []
        for ask in asks:
            hand.run.send(Replied(ask.id, backend.complete(ask.request)))
        hand.go()
    result = hand.run.result()
    assert result.status == "exhausted"
    assert tokens <= result.usage.tokens < tokens + backend.dearest


def test_what_was_set_aside_and_not_used_can_be_spent() -> None:
    """A run is not exhausted while calls in flight may turn out cheaper than they might have been."""
    hand = start(PAIR, {"x": 1, "y": 2}, segment=1, parallel=2, budget=Budget(tokens=400))
    assert len(hand.asks) == 1  # two could cost more than is left
    hand.answer({"t1": "1 + 1 = 2"})
    assert [ids(ask) for ask in hand.asks] == [["t2"]]
    hand.answer({"t2": "2 + 2 = 4"})
    hand.answer({"t3": "2 * 4 = 8"})
    assert hand.run.result().status == "verified"
    assert hand.run.result().usage.tokens == 45


def test_the_time_that_is_left_bounds_each_request() -> None:
    """A request gets no more time than the run has left, and no more than its retry policy allows."""
    run = Guard(lambda m: "", segment=1, budget=Budget(seconds=100), retry=RetryPolicy(timeout=30)).start(P2)
    begun = time.monotonic()
    (ask,) = run.actions()
    assert isinstance(ask, Ask)
    assert ask.request.timeout == 30
    run.send(Replied(ask.id, reply({"a": "2 * 3 = 6"})))
    run.send(Clock(begun + 90))
    hand = Hand(run)
    timeout = hand.asks[0].request.timeout
    assert timeout is not None
    assert 0 < timeout <= 10.5


def test_without_limits_a_request_waits_as_long_as_it_takes() -> None:
    """None means no limit."""
    hand = start(P2, {}, retry=RetryPolicy(timeout=None))
    assert hand.asks[0].request.timeout is None


def test_a_request_that_waited_too_long_is_not_sent() -> None:
    """A segment that is handed out after the deadline is withdrawn instead, and costs nothing."""
    run = Guard(lambda m: "", segment=1, parallel=2, budget=Budget(seconds=50)).start(PAIR, {"x": 1, "y": 2})
    first = run.next_action()
    assert isinstance(first, Ask)
    run.send(Clock(time.monotonic() + 60))
    assert run.next_action() is None
    assert not run.done
    run.send(Replied(first.id, reply({"t1": "1 + 1 = 2"})))
    hand = Hand(run)
    assert hand.asks == []
    assert run.done
    result = run.result()
    assert result.status == "exhausted"
    assert dict(result.values) == {"x": 1, "y": 2, "t1": 2}
    assert result.problem is not None
    assert result.problem.occurrence.step == "t2"


def test_a_reply_after_the_deadline_still_counts() -> None:
    """The call in flight is taken in; the step it verifies is kept, and the next one is not asked."""
    hand = start(P2, {}, segment=1, budget=Budget(seconds=50))
    hand.run.send(Clock(time.monotonic() + 60))
    hand.answer({"a": "2 * 3 = 6"})
    result = hand.run.result()
    assert result.status == "exhausted"
    assert dict(result.values) == {"a": 6}


@pytest.mark.parametrize(("later", "status"), [(10.0, "exhausted"), (60.0, "exhausted"), (-1.0, "waits")])
def test_a_wait_that_would_pass_the_deadline_is_not_begun(later: float, status: str) -> None:
    """Nothing is waited for where the next try could not be made in time."""
    hand = start(P2, {}, budget=Budget(seconds=11), retry=RetryPolicy(first_wait=1.0))
    hand.run.send(Clock(time.monotonic() + later))
    hand.run.send(Failed(hand.asks.pop().id, BackendTimeout("no answer")))
    hand.go()
    assert ("waits" if hand.waits else hand.run.result().status) == status


@pytest.mark.parametrize("budget", [Budget(seconds=100), Budget(per_step=Budget(seconds=50))])
@pytest.mark.parametrize(("later", "status"), [(99.0, "exhausted"), (40.0, "waits")])
def test_a_time_out_with_the_end_of_a_budget_is_that_end(budget: Budget, later: float, status: str) -> None:
    """Where a request was given up as the time ran out, no other one is sent with what is left of it."""
    hand = start(P2, {}, segment=2, budget=budget, retry=RetryPolicy(first_wait=0.0, timeout=None))
    asked = hand.asks.pop()
    assert asked.request.timeout == pytest.approx(100.0, abs=1.0)
    later = later / 2 if budget.per_step else later
    hand.run.send(Clock(time.monotonic() + later))
    hand.run.send(Failed(asked.id, BackendTimeout("no answer")))
    hand.go()
    assert ("waits" if hand.waits else hand.run.result().status) == status


def test_a_deadline_that_passes_while_waiting_makes_no_call() -> None:
    """Waking after the deadline ends the run."""
    hand = start(P2, {}, budget=Budget(seconds=100))
    hand.run.send(Failed(hand.asks.pop().id, BackendError("503")))
    hand.go()
    hand.run.send(Clock(time.monotonic() + 200))
    hand.run.send(Woke(hand.waits[0].id))
    hand.go()
    assert hand.asks == []
    result = hand.run.result()
    assert (result.status, result.usage.calls) == ("exhausted", 1)


def test_failed_calls_count() -> None:
    """Calls without an answer are spent; nothing is waited for when no call is left."""
    hand = start(P2, {}, budget=Budget(calls=2))
    hand.run.send(Failed(hand.asks.pop().id, BackendError("503")))
    hand.go()
    hand.run.send(Woke(hand.waits.pop().id))
    hand.go()
    hand.run.send(Failed(hand.asks.pop().id, BackendError("503")))
    hand.go()
    assert hand.waits == []
    result = hand.run.result()
    assert (result.status, result.usage.calls) == ("exhausted", 2)
    assert isinstance(result.error, BackendError)


def test_a_run_that_ends_within_its_budget_is_verified() -> None:
    """Spending exactly what is allowed is allowed."""
    hand = start(P2, {}, budget=Budget(calls=1, tokens=15))
    hand.answer(GOOD)
    assert hand.run.result().status == "verified"


def test_a_problem_names_the_first_open_step() -> None:
    """With segments in flight when the calls are spent, the earliest step that is not done is named."""
    hand = start(P6, {"x": 1}, segment=1, budget=Budget(calls=2))
    hand.answer({"t1": "1 + 1 = 2"})
    hand.answer({"t2": "2 * 2 = 5"})
    problem = hand.run.result().problem
    assert problem is not None
    assert problem.occurrence.step == "t2"
