"""The engine, driven by hand: what it emits, what it takes, and what it refuses."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from harness import GOOD, P2, PAIR, Hand, ids, no_model, reply, start
from tables import all_rows

import stepguard.engine
from stepguard import Budget, Guard, Procedure, Result, Step, Usage, Verdict
from stepguard.backends import Completion
from stepguard.checks import Judgement, judge_claims
from stepguard.core.verdicts import Claim
from stepguard.engine.actions import (
    Act,
    Ask,
    CheckClaims,
    Checked,
    Clock,
    Commit,
    Committed,
    Event,
    Failed,
    Performed,
    Replied,
    Wait,
    Woke,
)
from stepguard.errors import BackendError, UsageError

# Sans-IO


def test_the_engine_does_nothing_itself() -> None:
    """The engine and what it is made of import nothing that could call, wait, log or read a clock."""
    forbidden = {"time", "asyncio", "threading", "logging", "socket", "subprocess", "os", "datetime", "structlog"}
    engine = Path(stepguard.engine.__file__).parent
    repair = engine.parent / "repair"
    modules = [*engine.glob("*.py"), *repair.glob("*.py"), engine.parent / "backends" / "retry.py"]
    for path in sorted(set(modules) - {engine / "run.py", engine / "performing.py"}):  # what a caller has performed
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        found = {alias.name.split(".")[0] for node in nodes for alias in node.names if isinstance(node, ast.Import)}
        froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
        # A date is a value; only its class methods would read a clock.
        dates = {alias.name for node in froms if node.module == "datetime" for alias in node.names}
        assert dates <= {"date", "timedelta"}, path.name
        assert not re.search(r"\b(?:date|datetime)\.(?:today|now)\b", path.read_text(encoding="utf-8")), path.name
        found |= {(node.module or "").split(".")[0] for node in froms if node.module != "datetime"}
        assert not found & forbidden, path.name


def test_each_action_is_handed_out_once() -> None:
    """`actions` and `next_action` never hand out the same action again."""
    run = Guard(no_model).start(P2)
    (ask,) = run.actions()
    assert run.actions() == []
    assert run.next_action() is None
    assert isinstance(ask, Ask)
    run.send(Replied(ask.id, reply(GOOD)))
    check = run.next_action()
    assert isinstance(check, CheckClaims)
    assert run.actions() == []


def test_answers_may_come_in_any_order() -> None:
    """Two outstanding asks answered in either order give the same values, steps and usage."""
    results: list[Result] = []
    for order in ((0, 0), (1, 0)):
        hand = start(PAIR, {"x": 1, "y": 2}, parallel=2, segment=1, seed=1)
        assert [ids(ask) for ask in hand.asks] == [["t1"], ["t2"]]
        replies = {"t1": "1 + 1 = 2", "t2": "2 + 2 = 4"}
        for at in order:
            name = ids(hand.asks[at])[0]
            hand.answer({name: replies[name]}, at=at)
        assert ids(hand.asks[0]) == ["t3"]
        hand.answer({"t3": "2 * 4 = 8"})
        assert hand.run.done
        results.append(hand.run.result())
    first, second = results
    assert first.status == second.status == "verified"
    assert first.values == second.values
    assert first.steps == second.steps
    assert first.usage == second.usage == Usage(calls=3, input_tokens=30, output_tokens=15)


def test_a_step_is_asked_only_when_all_it_reads_is_verified() -> None:
    """With many segments at once the last step still waits for both that it reads."""
    hand = start(PAIR, {"x": 1, "y": 2}, parallel=8, segment=1)
    assert [ids(ask) for ask in hand.asks] == [["t1"], ["t2"]]
    hand.answer({"t1": "1 + 1 = 2"})
    assert [ids(ask) for ask in hand.asks] == [["t2"]]
    hand.answer({"t2": "2 + 2 = 5"})
    assert [ids(ask) for ask in hand.asks] == [["t2"]]
    assert dict(hand.run.values) == {"x": 1, "y": 2, "t1": 2}


WRONG_EVENTS: list[tuple[str, Callable[[str], Event]]] = [
    ("judged", lambda id: Checked(id, ())),
    ("performed", lambda id: Performed(id, 6)),
    ("woke", Woke),
    ("committed", Committed),
    ("no completion", lambda id: Replied(id, "6")),  # type: ignore[arg-type]
    ("another id", lambda id: Replied(f"{id}0", reply(GOOD))),
    ("no id", lambda _: Replied("", reply(GOOD))),
]


@all_rows("event", [each for _, each in WRONG_EVENTS])
def test_an_event_that_does_not_fit_an_ask_is_refused_and_the_ask_stays(event: Callable[[str], Event]) -> None:
    """An event of the wrong kind or id raises, changes nothing, and the right one is still taken."""
    hand = start()
    before = hand.run.result()
    with pytest.raises(UsageError, match=r"is answered by|not outstanding|not a Completion"):
        hand.run.send(event(hand.asks[0].id))
    assert replace(hand.run.result(), seconds=0) == replace(before, seconds=0)
    hand.answer(GOOD)
    assert hand.run.result().status == "verified"


def test_an_answered_action_cannot_be_answered_again() -> None:
    """The second reply to one ask is refused, and costs nothing."""
    hand = start()
    ask = hand.answer(GOOD)
    with pytest.raises(UsageError, match="not outstanding"):
        hand.run.send(Replied(ask.id, reply({"a": "2 * 3 = 7"})))
    assert hand.run.result().usage.calls == 1
    assert hand.run.values["a"] == 6


def test_an_event_of_another_run_is_refused() -> None:
    """Replies cannot land in another run of the same procedure."""
    one, other = start(), start()
    with pytest.raises(UsageError, match="not outstanding in this run"):
        one.run.send(Replied(other.asks[0].id, reply(GOOD)))
    assert dict(one.run.values) == {}


def test_an_action_that_was_not_handed_out_cannot_be_answered() -> None:
    """An id that a caller guessed is refused."""
    run = Guard(no_model).start(P2)
    with pytest.raises(UsageError, match="not outstanding"):
        run.send(Replied(f"{run.id}:1", reply(GOOD)))
    assert len(run.actions()) == 1


def _judged(check: CheckClaims) -> tuple[Judgement, ...]:
    return judge_claims(check.steps, check.claims, check.values)


MISJUDGED: dict[str, Callable[[tuple[Judgement, ...]], tuple[Judgement, ...]]] = {
    "none": lambda right: (),
    "too few": lambda right: right[:1],
    "too many": lambda right: (*right, right[-1]),
    "another order": lambda right: right[::-1],
    "another claim": lambda right: (replace(right[0], claim=Claim("a", (), "7", "7")), right[1]),
    "no value": lambda right: (replace(right[0], value=None), right[1]),
    "a float": lambda right: (replace(right[0], value=6.0), right[1]),  # type: ignore[arg-type]
    "a truth value": lambda right: (replace(right[0], value=True), right[1]),
    "behind a failure": lambda right: (replace(right[0], verdicts=(Verdict("fail", "mine"),)), right[1]),
}


@all_rows("change", MISJUDGED.values())
def test_judgements_that_do_not_fit_are_refused(
    change: Callable[[tuple[Judgement, ...]], tuple[Judgement, ...]],
) -> None:
    """Judgements of the wrong number, order or value are refused and change nothing; the right ones still count."""
    run = Guard(no_model).start(P2)
    (ask,) = run.actions()
    run.send(Replied(ask.id, reply(GOOD)))
    (check,) = run.actions()
    assert isinstance(check, CheckClaims)
    right = _judged(check)
    with pytest.raises(UsageError, match="Checked cannot answer"):
        run.send(Checked(check.id, change(right)))
    assert run.actions() == []
    assert dict(run.values) == {}
    run.send(Checked(check.id, right))
    (commit,) = run.actions()
    assert isinstance(commit, Commit)
    run.send(Committed(commit.id))
    assert run.result().status == "verified"


@all_rows("value", [6.0, "6", True, None, Fraction(13, 2)])
def test_code_hands_in_values_of_the_type_of_the_step(value: Any) -> None:
    """What code is said to have computed must be of the step's type."""
    run = Guard(no_model).start(Procedure([Step("a", "2 * 3", type="integer", performer="code")]))
    (act,) = run.actions()
    assert isinstance(act, Act)
    with pytest.raises(UsageError, match="of type integer"):
        run.send(Performed(act.id, value))
    run.send(Performed(act.id, 6))
    (commit,) = run.actions()
    run.send(Committed(commit.id))
    assert run.result().answer == 6


def test_nothing_is_used_before_its_commit_is_acknowledged() -> None:
    """A step that reads a judged value is not asked until the commit of that value is answered."""
    run = Guard(no_model, segment=1).start(P2)
    (ask,) = run.actions()
    run.send(Replied(ask.id, reply({"a": "2 * 3 = 6"})))
    (check,) = run.actions()
    run.send(run.perform(check))
    (commit,) = run.actions()
    assert isinstance(commit, Commit)
    assert [record.value for record in commit.records] == [6]
    assert run.actions() == []
    assert dict(run.values) == {}
    run.send(Committed(commit.id))
    (ask,) = run.actions()
    assert isinstance(ask, Ask)
    assert ids(ask) == ["b"]
    assert dict(run.values) == {"a": 6}


@pytest.mark.parametrize("action", ["check", "commit"])
def test_a_check_or_commit_that_fails_ends_the_run_with_its_books_in_order(action: str) -> None:
    """Where the ledger or a checker breaks, the run has failed, keeps nothing of that reply, and its call is booked."""
    run = Guard(no_model).start(P2)
    (ask,) = run.actions()
    run.send(Replied(ask.id, reply(GOOD)))
    (current,) = run.actions()
    if action == "commit":
        run.send(run.perform(current))
        (current,) = run.actions()
    error = OSError("disk full")
    run.send(Failed(current.id, error))
    assert run.done
    result = run.result()
    assert (result.status, result.error, dict(result.values)) == ("failed", error, {})
    (attempt,) = result.attempts
    assert (attempt.outcome, attempt.committed, attempt.error) == ("error", 0, "OSError: disk full")
    assert attempt.usage == result.usage == Usage(calls=1, input_tokens=10, output_tokens=5)


# Cancellation


def test_a_cancelled_run_is_done_and_its_books_are_complete() -> None:
    """Cancelling keeps what was verified, counts the calls in flight, and ignores what they bring."""
    hand = start(P2, segment=1)
    hand.answer({"a": "2 * 3 = 6"})
    (ask,) = hand.asks
    hand.run.cancel()
    hand.run.cancel("twice changes nothing")
    assert hand.run.done
    result = hand.run.result()
    assert result.status == "failed"
    assert str(result.problem) == "step b: cancelled"
    assert dict(result.values) == {"a": 6}
    assert [attempt.outcome for attempt in result.attempts] == ["accepted", "error"]
    assert (result.usage.calls, result.usage.output_tokens) == (2, 5)
    assert result.usage.input_tokens > 10  # the prompt that was on its way is paid for, by estimate
    hand.run.send(Replied(ask.id, reply({"b": "6 + 4 = 10"})))
    assert replace(hand.run.result(), seconds=0) == replace(result, seconds=0)


def test_cancelling_between_reply_and_commit_books_the_reply() -> None:
    """A reply that was not judged yet is paid for and not used."""
    run = Guard(no_model).start(P2)
    (ask,) = run.actions()
    run.send(Replied(ask.id, reply(GOOD)))
    run.cancel()
    result = run.result()
    assert run.done
    assert run.actions() == []
    assert dict(result.values) == {}
    (attempt,) = result.attempts
    assert (attempt.outcome, attempt.committed, attempt.usage.tokens) == ("error", 0, 15)
    assert attempt.text is not None


def test_cancelling_a_run_that_is_done_changes_nothing() -> None:
    """A verified run stays verified."""
    hand = start()
    hand.answer(GOOD)
    hand.run.cancel()
    assert hand.run.result().status == "verified"


# Time


def test_a_clock_never_goes_back() -> None:
    """An older time changes nothing."""
    run = Guard(no_model, budget=Budget(seconds=1000)).start(P2)
    now = time.monotonic()
    run.send(Clock(now + 400))
    run.send(Clock(now))
    (ask,) = run.actions()
    assert isinstance(ask, Ask)
    assert ask.request.timeout is not None
    assert 590 < ask.request.timeout <= 600


def test_a_completion_without_a_call_counts_as_one() -> None:
    """A backend that fills in tokens alone is still counted as one call."""
    run = Guard(no_model, budget=Budget(calls=1), segment=1).start(P2)
    (ask,) = run.actions()
    run.send(Replied(ask.id, Completion('{"a": "2 * 3 = 6"}', usage=Usage(input_tokens=3, output_tokens=2))))
    hand = Hand(run)
    assert hand.asks == []
    assert run.result().status == "exhausted"
    assert run.result().usage == Usage(calls=1, input_tokens=3, output_tokens=2)


def test_waiting_is_an_action() -> None:
    """A retryable failure asks for a wait, and says why."""
    run = Guard(no_model).start(P2)
    (ask,) = run.actions()
    run.send(Failed(ask.id, BackendError("overloaded")))
    (wait,) = run.actions()
    assert isinstance(wait, Wait)
    assert "overloaded" in wait.reason
    with pytest.raises(UsageError):
        run.send(Failed(wait.id, BackendError("again")))
    run.send(Woke(wait.id))
    assert isinstance(run.actions()[0], Ask)
