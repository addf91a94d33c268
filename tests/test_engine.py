"""The engine, driven by hand: what it asks for, what it takes, and what it refuses."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from harness import GOOD, P2, P6, PAIR, Hand, ids, reply

import stepguard.engine
from stepguard import Budget, Guard, Procedure, Result, Retries, Step, Transport, Usage, Verdict
from stepguard.actions import (
    Act,
    Ask,
    Check,
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
from stepguard.backends import Completion
from stepguard.checks import Judgement, judge_claims
from stepguard.errors import BackendError, BackendRejected, ProcedureError, RateLimited, UsageError
from stepguard.repair import Failures, Rung
from stepguard.verdicts import Claim, DeviationKind


def no_model(_: object) -> str:
    """A backend for guards whose runs are driven by hand."""
    raise NotImplementedError


def start(procedure: Procedure = P2, inputs: Mapping[str, object] | None = None, **options: Any) -> Hand:
    return Hand(Guard(no_model, **options).start(procedure, inputs))


# Sans-IO


def test_the_engine_does_nothing_itself() -> None:
    """The engine and what it is made of import nothing that could call, wait, log or read a clock."""
    forbidden = {"time", "asyncio", "threading", "logging", "socket", "subprocess", "os", "datetime", "structlog"}
    folder = Path(stepguard.engine.__file__).parent
    for name in ("engine", "schedule", "history", "budget", "transport", "repair", "segments", "prompts", "actions"):
        tree = ast.parse((folder / f"{name}.py").read_text(encoding="utf-8"))
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
        found = {alias.name.split(".")[0] for node in nodes for alias in node.names if isinstance(node, ast.Import)}
        found |= {(node.module or "").split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
        assert not found & forbidden, name


def test_each_action_is_handed_out_once() -> None:
    """`actions` and `next_action` never hand out the same action again."""
    run = Guard(no_model).start(P2)
    (ask,) = run.actions()
    assert run.actions() == []
    assert run.next_action() is None
    assert isinstance(ask, Ask)
    run.send(Replied(ask.id, reply(GOOD)))
    check = run.next_action()
    assert isinstance(check, Check)
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


@pytest.mark.parametrize("event", [each for _, each in WRONG_EVENTS], ids=[name for name, _ in WRONG_EVENTS])
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


def _judged(check: Check) -> tuple[Judgement, ...]:
    return judge_claims(check.steps, check.claims, check.values)


PASS = Verdict("pass", "mine")
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


@pytest.mark.parametrize("change", MISJUDGED.values(), ids=MISJUDGED)
def test_judgements_that_do_not_fit_are_refused(
    change: Callable[[tuple[Judgement, ...]], tuple[Judgement, ...]],
) -> None:
    """Judgements of the wrong number, order or value are refused and change nothing; the right ones still count."""
    run = Guard(no_model).start(P2)
    (ask,) = run.actions()
    run.send(Replied(ask.id, reply(GOOD)))
    (check,) = run.actions()
    assert isinstance(check, Check)
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


@pytest.mark.parametrize("value", [6.0, "6", True, None, Fraction(13, 2)])
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


# Protocol


def test_the_verified_prefix_is_kept_and_the_rest_asked_again() -> None:
    """A missing step ends the prefix; it leads the next request, and what stood behind it is not used."""
    hand = start(P6, {"x": 1}, segment=3)
    hand.answer({"t1": "1 + 1 = 2", "t3": "4 - 3 = 1"})
    assert dict(hand.run.values) == {"x": 1, "t1": 2}
    assert ids(hand.asks[0]) == ["t2"]
    hand.answer({"t2": "2 * 2 = 4"})
    assert ids(hand.asks[0]) == ["t3", "t4", "t5"]
    result = hand.run.result()
    assert [(a.outcome, a.committed, [d.kind for d in a.deviations]) for a in result.attempts] == [
        ("partly", 1, ["missing_step"]),
        ("accepted", 1, []),
    ]


def test_what_was_not_asked_is_never_used() -> None:
    """Steps ahead of the segment and a final answer are recorded and thrown away."""
    hand = start(P6, {"x": 1}, segment=3)
    ahead = {"t1": "1 + 1 = 2", "t2": "2 * 2 = 4", "t3": "4 - 3 = 1", "t4": "1 + 2 = 3", "final_answer": "4"}
    hand.answer(ahead)
    assert dict(hand.run.values) == {"x": 1, "t1": 2, "t2": 4, "t3": 1}
    assert ids(hand.asks[0]) == ["t4", "t5", "t6"]
    (attempt,) = hand.run.result().attempts
    assert [(each.kind, each.step) for each in attempt.deviations] == [
        ("extra_step", "t4"),
        ("premature_answer", "final_answer"),
    ]


def test_replies_are_mapped_by_id() -> None:
    """Values under each other's ids are wrong; the order of right ones does not matter."""
    hand = start(P2, repair=0)
    hand.answer({"a": "6 + 4 = 10", "b": "2 * 3 = 6"})
    assert hand.run.result().status == "abstained"
    hand = start(P2)
    hand.answer({"b": "6 + 4 = 10", "a": "2 * 3 = 6"})
    assert hand.run.result().status == "verified"
    assert [each.kind for each in hand.run.result().attempts[0].deviations] == ["wrong_order"]


@pytest.mark.parametrize("limit", [0, 1, 2, 5])
def test_retries_are_bounded_for_each_step(limit: int) -> None:
    """A step is asked once and then again as often as allowed; then the run abstains there and names it."""
    hand = start(P2, repair=limit)
    hand.answer({"a": "2 * 3 = 6", "b": "6 + 4 = 900"})
    asked = 0
    while not hand.run.done:
        asked += 1
        hand.answer({"b": f"6 + 4 = {asked}"})
    result = hand.run.result()
    assert asked == limit
    assert result.status == "abstained"
    assert result.answer is None
    assert result.problem is not None
    assert (result.problem.occurrence.step, result.problem.occurrence.index) == ("b", 1)
    assert result.problem.deviation is not None
    assert result.problem.deviation.kind == "wrong_value"
    assert dict(result.values) == {"a": 6}
    assert [attempt.number for attempt in result.attempts] == list(range(1, limit + 2))


def test_the_same_wrong_value_ends_early() -> None:
    """What repeats is systematic: after the same wrong value three times nothing more is asked."""
    hand = start(P2, repair=Retries(10, same=3))
    calls = 0
    while not hand.run.done:
        calls += 1
        hand.answer({"a": "2 * 3 = 5"})
    assert calls == 3


ASKED_AGAIN: list[tuple[DeviationKind, str | None, str, int]] = [
    ("empty", "", "stop", 2),
    ("empty", None, "stop", 2),
    ("empty", "  \n", "stop", 2),
    ("refused", "", "content_filter", 1),
    ("malformed", "nope", "stop", 5),
    ("truncated", '{"a": "2 *', "length", 5),
    ("missing_step", "{}", "stop", 5),
]


@pytest.mark.parametrize(("kind", "text", "finish_reason", "calls"), ASKED_AGAIN)
def test_how_often_a_reply_of_each_kind_is_asked_again(
    kind: DeviationKind, text: str | None, finish_reason: str, calls: int
) -> None:
    """A refusal is final, an empty reply is asked again once, the rest as often as the retries allow."""
    hand = start(P2, repair=4)
    made = 0
    while not hand.run.done:
        made += 1
        hand.answer(text, finish_reason=finish_reason)
    result = hand.run.result()
    assert made == calls == len(result.attempts) == result.usage.calls
    assert {each.kind for attempt in result.attempts for each in attempt.deviations} == {kind}
    assert result.usage.tokens == 15 * calls


def test_a_reply_that_says_nothing_is_asked_again_as_a_whole() -> None:
    """Where no step is to blame the segment is asked again once, and then its first step alone."""
    hand = start(P2)
    hand.answer("nope")
    assert ids(hand.asks[0]) == ["a", "b"]
    hand.answer("nope")
    assert ids(hand.asks[0]) == ["a"]
    hand.answer({"a": "2 * 3 = 6"})
    hand.answer({"b": "6 + 4 = 10"})
    assert hand.run.result().status == "verified"
    assert [attempt.outcome for attempt in hand.run.result().attempts] == [
        "rejected",
        "rejected",
        "accepted",
        "accepted",
    ]


class _Same:
    """A policy that asks the same way for ever."""

    def next(self, failures: Failures) -> Rung | None:
        return Rung("again")


@pytest.mark.parametrize("repair", [Retries(3), _Same()])
def test_a_request_that_was_cut_off_is_never_repeated(repair: object) -> None:
    """After a reply that was cut off the next request asks fewer steps or allows a longer reply."""
    hand = start(P6, {"x": 1}, segment=4, repair=repair)
    sizes: list[tuple[int, int]] = []
    while not hand.run.done:
        ask = hand.answer('{"t1": "1 + 1 = 2", "t2', finish_reason="length")
        assert ask.request.max_tokens is not None
        sizes.append((len(ids(ask)), ask.request.max_tokens))
    assert len(set(sizes)) == len(sizes) <= 5
    for (steps, cap), (later_steps, later_cap) in pairwise(sizes):
        assert later_steps < steps or later_cap > cap
    assert hand.run.result().status == "abstained"
    assert {each.kind for a in hand.run.result().attempts for each in a.deviations} == {"truncated"}


class _Broken:
    def __init__(self, answer: object) -> None:
        self.answer = answer

    def next(self, failures: Failures) -> Rung | None:
        failures.kinds.clear()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]


@pytest.mark.parametrize("answer", [ZeroDivisionError("a fault"), "again", 3])
def test_a_repair_policy_that_fails_ends_the_run_with_nothing_lost(answer: object) -> None:
    """A policy that raises, or returns no rung, fails the run at its step; what was verified and spent is kept."""
    hand = start(P2, repair=_Broken(answer))
    hand.answer({"a": "2 * 3 = 6", "b": "6 + 4 = 11"})
    result = hand.run.result()
    assert hand.run.done
    assert result.status == "failed"
    assert isinstance(result.error, Exception)
    assert result.problem is not None
    assert result.problem.occurrence.step == "b"
    assert "repair policy" in result.problem.reason
    assert dict(result.values) == {"a": 6}
    assert [each.kind for each in result.attempts[0].deviations] == ["wrong_value"]


def test_a_repair_policy_is_asked_once_for_each_failure() -> None:
    """A policy may count its calls: it is asked exactly once for every reply that was not accepted."""
    seen: list[list[DeviationKind]] = []

    class Counting:
        def next(self, failures: Failures) -> Rung | None:
            seen.append(list(failures.kinds))
            return Rung("again") if len(failures.kinds) < 3 else None

    hand = start(P6, {"x": 1}, segment=6, repair=Counting())
    while not hand.run.done:
        hand.answer({"t1": f"1 + 1 = {9 + len(seen)}"})
    assert seen == [["wrong_value"], ["wrong_value"] * 2, ["wrong_value"] * 3]


@pytest.mark.parametrize(("expression", "value"), [("x - x", 0), ("x > 9", False), ("x * 0", 0)])
def test_falsy_values_are_values(expression: str, value: object) -> None:
    """Zero and false are accepted in one call, kept, and read by later steps."""
    procedure = Procedure([Step("t1", expression), Step("t2", "t1", show_work=False)], inputs=["x"])
    shown = "false" if value is False else "0"
    if value is False:
        procedure = Procedure([Step("t1", expression), Step("t2", "t1", type="boolean")], inputs=["x"])
    hand = start(procedure, {"x": 5}, segment=1)
    hand.answer({"t1": f"{expression.replace('x', '5')} = {shown}"})
    assert f"t1 = {shown}" in hand.asks[0].request.messages[-1].content
    hand.answer({"t2": shown})
    result = hand.run.result()
    assert result.status == "verified"
    assert result.answer is value or result.answer == value
    assert result.usage.calls == 2


def test_empty_text_is_a_value() -> None:
    """A step in words may be answered with empty text, and a later step sees it."""
    words = Step("w", instruction="Repeat nothing.", checks=[lambda step, values, claim: claim.value == ""])
    hand = start(Procedure([words, Step("copy", "w", type="text")]), segment=1)
    hand.answer({"w": {"work": "", "value": ""}})
    assert 'w = ""' in hand.asks[0].request.messages[-1].content
    hand.answer({"copy": ""})
    assert dict(hand.run.values).get("w") == ""


def test_a_step_without_a_check_is_never_verified() -> None:
    """Any text passes for a step that nothing checks, but the run says so and names it."""
    hand = start(Procedure([Step("w", instruction="Name the tool."), Step("n", "2 + 2")]))
    hand.answer({"w": {"work": "", "value": "Error: tool not available"}, "n": "2 + 2 = 4"})
    result = hand.run.result()
    assert result.status == "unverified"
    assert result.unverified == ("w",)
    assert [record.verified for record in result.steps] == [False, True]


@pytest.mark.parametrize("text", ["inf", "undefined", "0", "zoo", "1/0", "nan"])
def test_a_step_without_a_value_abstains_after_one_call(text: str) -> None:
    """Nothing passes for a division by zero, and asking again cannot help."""
    hand = start(Procedure.parse("z = 3 - 3\na = 1 / z"), repair=4)
    hand.answer({"z": "3 - 3 = 0", "a": f"1 / 0 = {text}"})
    assert hand.run.result().status == "abstained"
    assert hand.run.result().completed == 1
    assert "a" not in hand.run.values


def test_a_step_that_is_known_to_have_no_value_is_not_asked() -> None:
    """Where the verified values already say that a step divides by zero, no call is made for it."""
    hand = start(Procedure.parse("inputs: x\na = 1 / x"), {"x": 0})
    assert hand.run.done
    result = hand.run.result()
    assert result.status == "abstained"
    assert result.problem is not None
    assert result.problem.occurrence.step == "a"
    assert "division by zero" in result.problem.reason
    assert result.usage.calls == 0


def test_what_rests_on_an_unverified_value_is_not_verified() -> None:
    """A right sum of an unchecked value is not called verified, in the same segment, a later one, or by code."""
    text = 'n: integer = "How many?"\na = n * 3\nb = a + 1\nc = 2 + 2\nd = by code b + c'
    hand = start(Procedure.parse(text), segment=2)
    hand.answer({"n": {"work": "", "value": "7"}, "a": "7 * 3 = 21"})
    hand.answer({"b": "21 + 1 = 22", "c": "2 + 2 = 4"})
    result = hand.run.result()
    assert result.status == "unverified"
    assert result.unverified == ("n", "a", "b", "d")
    assert [record.verified for record in result.steps] == [False, False, False, True, False]


def test_a_yes_or_no_gets_no_second_guess() -> None:
    """After a wrong truth value the other one is known, so the step is not asked again."""
    hand = start(Procedure.parse("a: boolean = 2 > 1"))
    hand.answer({"a": "2 > 1 = false"})
    result = hand.run.result()
    assert result.status == "abstained"
    assert result.usage.calls == 1


def test_a_cap_that_cut_a_reply_is_not_used_again() -> None:
    """After a reply was cut off every later cap of the run is at least twice as high, although segments shrink."""
    hand = start(P6, {"x": 1}, segment=4)
    caps = [hand.asks[-1].request.max_tokens]
    hand.answer('{"t1": "1 + ', finish_reason="length")
    caps.append(hand.asks[-1].request.max_tokens)
    assert caps[0] is not None
    assert caps[1] is not None
    assert caps[1] >= 2 * caps[0]
    assert len(hand.asks[-1].request.steps) == 2
    assert hand.asks[-1].request.temperature == 0


# Transport


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


@pytest.mark.parametrize(("error", "requests", "status"), [e[1:] for e in _errors()], ids=[e[0] for e in _errors()])
def test_how_often_a_failing_request_is_sent(error: Exception, requests: int, status: str) -> None:
    """Errors that may pass are tried three times in all, others once; every request is in the books."""
    hand = start(P2, transport=Transport(retries=2))
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
        hand = start(P2, transport=Transport(retries=4, first_wait=1.0), seed=seed)
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
    """The transport repeats a request byte for byte; the step's own tries do not count up."""
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
    assert result.usage == Usage(calls=2, input_tokens=10, output_tokens=5)
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


# Code


def test_code_steps_make_no_call() -> None:
    """A step that code performs is computed, verified, and asked of nobody."""
    procedure = Procedure([Step("a", "x / 4", performer="code"), Step("b", "a + 1")], inputs=["x"])
    hand = start(procedure, {"x": 3})
    assert ids(hand.asks[0]) == ["b"]
    assert "0.75" in hand.asks[0].request.messages[-1].content
    hand.answer({"b": "0.75 + 1 = 1.75"})
    result = hand.run.result()
    assert result.status == "verified"
    first = result.steps[0]
    assert (first.assistance, first.tries, first.claim) == ("code", 0, None)
    assert result.values["a"] == Fraction(3, 4)
    assert result.usage.calls == 1


def test_code_that_divides_by_zero_fails_the_run_at_its_step() -> None:
    """A code step without a value ends the run as failed, names the step and keeps the verified part."""
    procedure = Procedure([Step("a", "x - 3", performer="code"), Step("b", "1 / a", performer="code")], inputs=["x"])
    result = start(procedure, {"x": 3}).run.result()
    assert result.status == "failed"
    assert result.problem is not None
    assert result.problem.occurrence.step == "b"
    assert "division by zero" in result.problem.reason
    assert dict(result.values) == {"x": 3, "a": 0}
    assert result.usage == Usage()
    assert result.attempts == ()


@pytest.mark.parametrize(("limit", "status"), [(100, "verified"), (5, "abstained")])
def test_checks_of_a_code_step_apply(limit: int, status: str) -> None:
    """A code step with a check of the user's is committed only if that passes; code is not asked twice."""
    calls: list[str] = []

    def small(step: Step, values: Mapping[str, object], claim: Claim) -> bool:
        calls.append(claim.value)
        return int(claim.value) <= limit

    hand = start(Procedure([Step("a", "2 * 3", performer="code", checks=[small])]))
    result = hand.run.result()
    assert hand.run.done
    assert result.status == status
    assert calls == ["6"]
    assert (result.answer == 6) == (status == "verified")


# Observing


def test_an_observing_run_takes_claims_as_they_stand() -> None:
    """A wrong value is recorded and used, nothing is asked again, and the run is never verified."""
    hand = start(P2, observe=True)
    hand.answer({"a": "2 * 3 = 7", "b": "7 + 4 = 11"})
    result = hand.run.result()
    assert result.status == "unverified"
    assert result.answer == 11
    assert result.usage.calls == 1
    assert [record.verified for record in result.steps] == [False, False]
    assert [verdict.outcome for record in result.steps for verdict in record.verdicts] == ["fail", "pass"]
    assert [each.kind for each in result.steps[0].deviations] == ["wrong_value"]
    hand = start(P2, observe=True)
    hand.answer(GOOD)
    assert hand.run.result().status == "unverified"


def test_an_observing_run_asks_again_what_cannot_be_read() -> None:
    """A step without a readable value is asked again, as often as the retries allow."""
    hand = start(P2, observe=True, repair=1)
    hand.answer({"a": "2 * 3 = 7"})
    assert ids(hand.asks[0]) == ["b"]
    hand.answer({"b": "7 + 4 = many"})
    result = hand.run.result()
    assert result.status == "abstained"
    assert dict(result.values) == {"a": 7}


# Lazy procedures


def _counting(length: int, **step: Any) -> Procedure:
    return Procedure.lazy(
        lambda index: Step(f"t{index}", f"t{index - 1} + 1" if index else "x + 1", **step),
        length,
        look_back=1,
        inputs=["x"],
    )


def test_a_lazy_procedure_runs_with_flat_memory() -> None:
    """After many steps only the last values, steps and attempts are held."""
    hand = start(_counting(5_000, performer="code"), {"x": 0}, history=10)
    result = hand.run.result()
    assert result.status == "verified"
    assert result.answer == result.completed == 5_000
    assert len(result.steps) == 10
    assert len(result.values) <= 3


@pytest.mark.parametrize("parallel", [1, 3])
@pytest.mark.parametrize("mistake", ["look-back", "raises", "no step", "duplicate"])
def test_a_lazy_procedure_that_is_wrong_on_the_way_fails_at_that_step(mistake: str, parallel: int) -> None:
    """What stands before the broken step is carried out and kept; the step is named."""

    def step_at(index: int) -> Step:
        if index == 7:
            if mistake == "look-back":
                return Step("t7", "t1 + 1")
            if mistake == "raises":
                raise KeyError("no such row")
            if mistake == "no step":
                return None  # type: ignore[return-value]
            return Step("t6", "t5 + 1")
        return Step(f"t{index}", f"t{index - 1} + 1" if index else "x + 1")

    procedure = Procedure.lazy(step_at, 20, look_back=2, inputs=["x"])
    hand = start(procedure, {"x": 0}, segment=5, parallel=parallel)
    value = 0
    while hand.asks:
        entries: dict[str, str] = {}
        for name in ids(hand.asks[0]):
            entries[name] = f"{value} + 1 = {value + 1}"
            value += 1
        hand.answer(entries)
    result = hand.run.result()
    assert hand.run.done
    assert result.status == "failed"
    assert isinstance(result.error, ProcedureError)
    assert result.completed == 7
    assert result.values["t6"] == 7
    assert result.problem is not None
    assert result.problem.occurrence.index == 7


def test_a_step_that_is_asked_again_late_still_finds_its_values() -> None:
    """With parallel segments, values are kept for the first open step however far others have come."""
    length = 60

    def step_at(index: int) -> Step:
        return Step(f"t{index}", "t0 + 1" if index == 1 else f"x + {index}")

    procedure = Procedure.lazy(step_at, length, look_back=1, inputs=["x"])
    hand = start(procedure, {"x": 0}, segment=2, parallel=2)
    held = None
    while hand.asks:
        at = 0
        if "t1" in ids(hand.asks[0]) and held is None:
            held = hand.asks[0]
        if held is not None and len(hand.asks) > 1 and hand.asks[0] is held:
            at = 1
        values = hand.asks[at].request.values
        entries = {
            name: f"{values.get('t0', 0)} + 1 = 1" if name == "t1" else f"0 + {name[1:]} = {name[1:]}"
            for name in ids(hand.asks[at])
        }
        hand.answer(entries, at=at)
    assert hand.run.done
    assert hand.run.result().status == "verified"


def test_ids_that_a_lazy_procedure_uses_again_are_never_confused() -> None:
    """A step reads the value of the step before it, not that of an older one of the same name."""
    procedure = Procedure.lazy(
        lambda index: Step(f"s{index % 4}", f"s{(index - 1) % 4} + 1" if index else "x + 1"),
        40,
        look_back=1,
        inputs=["x"],
    )
    for parallel in (1, 3):
        hand = start(procedure, {"x": 0}, segment=3, parallel=parallel)
        value = 0
        while hand.asks:
            entries: dict[str, str] = {}
            for name in ids(hand.asks[0]):
                entries[name] = f"{value} + 1 = {value + 1}"
                value += 1
            hand.answer(entries)
        assert hand.run.result().status == "verified"
        assert hand.run.result().answer == 40


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
