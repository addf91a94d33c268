"""What becomes of a reply: what is committed, what is asked again and how, and how a run ends."""

from __future__ import annotations

from itertools import pairwise

import pytest
from harness import P2, P6, ids, start
from tables import all_rows

from stepguard import Ladder, Procedure, Step
from stepguard.core.verdicts import DeviationKind
from stepguard.repair.policy import Failures
from stepguard.repair.rungs import Resample, Rung


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
    hand = start(P2, repair=Ladder([Resample(times=10)], same=3))
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
    ("refused", "nope", "content-filter", 1),
    ("refused", None, "guardrail_intervened", 1),
    ("refused", "", "PROHIBITED_CONTENT", 1),
    ("refused", "", "RECITATION", 1),
    ("malformed", "nope", "stop", 3),
    ("truncated", '{"a": "2 *', "length", 5),
    ("truncated", '{"a": "2 *', "MAX_TOKENS", 5),
    ("truncated", '{"a": "2 *', "FinishReason.MAX_TOKENS", 5),
    ("truncated", '{"a": "2 *', "limit", 5),
    ("truncated", '{"a": "2 *', "token_limit", 5),
    ("truncated", '{"a": "2 *', "model_context_window_exceeded", 5),
    ("truncated", '{"a": "2 *', "incomplete", 5),
    ("missing_step", "{}", "stop", 3),
]


@all_rows("kind, text, finish_reason, calls", ASKED_AGAIN)
def test_how_often_a_reply_of_each_kind_is_asked_again(
    kind: DeviationKind, text: str | None, finish_reason: str, calls: int
) -> None:
    """A refusal is final, an empty reply is asked again once, an equal one twice, the rest as the retries allow."""
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


@pytest.mark.parametrize("repair", [Ladder.of(3), _Same()])
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
    assert isinstance(result.error, type(answer) if isinstance(answer, Exception) else TypeError)
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
    copy = Step("t2", "t1", type="boolean") if value is False else Step("t2", "t1", show_work=False)
    procedure = Procedure([Step("t1", expression), copy], inputs=["x"])
    shown = "false" if value is False else "0"
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


@all_rows("text", ["inf", "undefined", "0", "zoo", "1/0", "nan"])
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
    """After a wrong truth value the other one is known: what decides it is asked, as a number, or nothing more."""
    hand = start(Procedure.parse("a: boolean = 2 > 1"))
    hand.answer({"a": "2 > 1 = false"})
    assert [step.formula for step in hand.asks[0].request.steps] == ["2 - 1"]
    hand.answer({"a": "2 - 1 = 1"})
    assert hand.run.result().answer is True
    hand = start(Procedure.parse("a: boolean = 2 > 1"), repair=4)
    hand.answer({"a": "2 > 1 = false"})
    assert hand.run.result().status == "abstained"


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
