"""The retry policy: what is sent again, after which wait, and what ends the run."""

from __future__ import annotations

import pytest
from harness import GOOD, P2, PAIR, no_model, start
from tables import all_rows

from stepguard import Guard, Procedure, RetryPolicy, Usage
from stepguard.engine.actions import Ask, Failed, Woke
from stepguard.errors import BackendError, BackendRejected, RateLimited, UsageError


def _errors() -> list[tuple[str, Exception, int, str]]:
    return [
        ("retryable", BackendError("503"), 3, "failed"),
        ("rate limit", RateLimited("429"), 3, "failed"),
        ("rejected", BackendRejected("401"), 1, "failed"),
        ("a day", RateLimited("429", retry_after=86_400), 1, "failed"),
        ("for ever", RateLimited("429", retry_after=float("inf")), 1, "failed"),
        ("no number", RateLimited("429", retry_after=float("nan")), 1, "failed"),
        ("no backend error", ValueError("a bug"), 1, "failed"),
    ]


@all_rows("error, requests, status", [e[1:] for e in _errors()])
def test_how_often_a_failing_request_is_sent(error: Exception, requests: int, status: str) -> None:
    """Errors that may pass are tried three times in all, others once; every request is in the books."""
    hand = start(P2, retry=RetryPolicy(retries=2))
    while not hand.run.done:
        if hand.waits:
            hand.run.send(Woke(hand.waits.pop().id))
        else:
            hand.run.send(Failed(hand.asks.pop().id, error))
        hand.go()
    result = hand.run.result()
    assert result.status == status
    assert result.error is error
    assert result.problem is not None
    assert result.problem.occurrence.step == "a"
    assert [(a.number, a.outcome, a.usage) for a in result.attempts] == [
        (number, "error", Usage(calls=1)) for number in range(1, requests + 1)
    ]
    assert result.usage == Usage(calls=requests)


def test_waits_grow_are_jittered_and_honour_retry_after() -> None:
    """Each wait is at least twice the first one before it, differs between runs, and is never below `Retry-After`."""
    firsts: set[float] = set()
    for seed in range(20):
        hand = start(P2, retry=RetryPolicy(retries=4, first_wait=1.0), seed=seed)
        for _ in range(4):
            hand.run.send(Failed(hand.asks.pop().id, BackendError("503")))
            hand.go()
            hand.run.send(Woke(hand.waits[-1].id))
            hand.go()
        for number, wait in enumerate(hand.waits):
            assert 2**number <= wait.seconds <= 1.5 * 2**number
        firsts.add(hand.waits[0].seconds)
    assert len(firsts) == 20
    hand = start(P2)
    hand.run.send(Failed(hand.asks.pop().id, RateLimited("429", retry_after=7.0)))
    hand.go()
    assert 7.0 <= hand.waits[0].seconds < 9.0


def test_a_repeated_request_is_the_same_request() -> None:
    """A retry repeats a request byte for byte; the step's own tries do not count up."""
    hand = start(P2)
    first = hand.asks.pop()
    hand.run.send(Failed(first.id, BackendError("503")))
    hand.go()
    hand.run.send(Woke(hand.waits[0].id))
    hand.go()
    assert hand.asks[0].request == first.request
    assert hand.asks[0].id != first.id
    hand.answer(GOOD)
    result = hand.run.result()
    assert result.status == "verified"
    assert [record.tries for record in result.steps] == [1, 1]
    assert [attempt.outcome for attempt in result.attempts] == ["error", "accepted"]


def test_what_was_not_sent_when_the_run_ends_is_never_sent() -> None:
    """With several segments waiting, one fatal error withdraws those that were not handed out, and ends waiting."""
    wide = Procedure.parse("inputs: x\nt1 = x + 1\nt2 = x + 2\nt3 = x + 3\nt4 = x + 4")
    run = Guard(no_model, segment=1, parallel=4).start(wide, {"x": 1})
    first, second = run.next_action(), run.next_action()
    assert isinstance(first, Ask)
    assert isinstance(second, Ask)
    run.send(Failed(first.id, RateLimited("429", retry_after=5.0)))
    run.send(Failed(second.id, BackendRejected("401")))
    assert run.done
    assert run.actions() == []
    assert run.result().usage.calls == 2
    assert run.result().problem is not None


def test_a_wait_that_ends_after_the_run_is_ignored() -> None:
    """A driver that wakes after another segment has ended the run is not to blame: nothing happens."""
    hand = start(PAIR, {"x": 1, "y": 2}, parallel=2, segment=1)
    hand.run.send(Failed(hand.asks[0].id, BackendError("503")))
    hand.go()
    (wait,) = hand.waits
    hand.run.send(Failed(hand.asks[1].id, BackendRejected("401")))
    assert hand.run.done
    hand.run.send(Woke(wait.id))
    hand.go()
    assert hand.run.result().usage.calls == 2
    with pytest.raises(UsageError):
        hand.run.send(Woke(wait.id))


def test_what_is_in_flight_when_the_run_ends_is_still_taken_in() -> None:
    """A reply that arrives after another segment failed is checked, committed and paid for; nothing new is asked."""
    hand = start(PAIR, {"x": 1, "y": 2}, parallel=2, segment=1)
    hand.run.send(Failed(hand.asks.pop(0).id, BackendRejected("401")))
    assert not hand.run.done
    hand.answer({"t2": "2 + 2 = 4"})
    assert hand.run.done
    result = hand.run.result()
    assert result.status == "failed"
    assert dict(result.values) == {"x": 1, "y": 2, "t2": 4}
    assert result.usage == Usage(calls=2, input_tokens=10, output_tokens=5)
    assert hand.asks == []
