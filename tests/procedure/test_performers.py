"""Steps performed by code, runs that only observe, and procedures made on the way."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import pytest
from harness import GOOD, P2, Hand, ids, start
from tables import all_rows

from stepguard import Procedure, Step, Usage
from stepguard.core.verdicts import Claim
from stepguard.errors import ProcedureError
from stepguard.language.evaluation import evaluate, substitute


def count_on(hand: Hand) -> None:
    """Answer every step with one more than the step before it, until nothing is asked any more."""
    value = 0
    while hand.asks:
        entries: dict[str, str] = {}
        for name in ids(hand.asks[0]):
            entries[name] = f"{value} + 1 = {value + 1}"
            value += 1
        hand.answer(entries)


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


@pytest.mark.slow
def test_a_lazy_procedure_runs_with_flat_memory() -> None:
    """After many steps only the last values, steps and attempts are held."""
    hand = start(_counting(2_000, performer="code"), {"x": 0}, history=10)
    result = hand.run.result()
    assert result.status == "verified"
    assert result.answer == result.completed == 2_000
    assert len(result.steps) == 10
    assert len(result.values) <= 3


@all_rows("parallel", [1, 3])
@all_rows("mistake", ["look-back", "raises", "no step", "duplicate"])
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
    count_on(hand)
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
        count_on(hand)
        assert hand.run.result().status == "verified"
        assert hand.run.result().answer == 40


def test_an_id_that_is_used_again_waits_for_the_step_that_has_it_first() -> None:
    """With parallel segments no later step of the same name is asked before, which would bar the first from the run."""
    steps = ["m = x + 1", "a = m + 10", "b = a + 1", "c = x + 2", "d = x + 3", "a = x + 100", "e = a + 1"]
    made = [Step(*line.split(" = ")) for line in steps]
    procedure = Procedure.lazy(made.__getitem__, len(made), look_back=3, inputs=["x"])
    hand = start(procedure, {"x": 1}, segment=1, parallel=2)
    while hand.asks:  # what reads nothing but the input is answered before m
        ask = hand.asks[-1].request
        tree = ask.steps[0].expression
        assert tree is not None
        hand.answer({ask.steps[0].id: f"{substitute(tree, ask.values)} = {evaluate(tree, ask.values)}"}, at=-1)
    result = hand.run.result()
    assert (result.status, result.answer, result.completed) == ("verified", 102, 7)


def test_a_run_makes_each_step_of_a_lazy_procedure_once() -> None:
    """Beside those that the demonstration and the name of the answer follow from."""
    made: list[int] = []

    def step_at(index: int) -> Step:
        made.append(index)
        return Step(f"t{index}", f"t{index - 1} + 1" if index else "x + 1", performer="code")

    hand = start(Procedure.lazy(step_at, 80, look_back=1, inputs=["x"]), {"x": 0})
    assert hand.run.result().status == "verified"
    assert [made.count(index) for index in range(50, 78)] == [1] * 28


def test_a_lazy_procedure_whose_last_step_changes_its_name_fails_there() -> None:
    """Nothing is raised, and what was done is kept: the answer was named when the procedure was made."""
    made: list[int] = []

    def step_at(index: int) -> Step:
        made.append(index)
        return Step(f"t{index}" if len(made) == 1 or index < 2 else "other", "x + 1", performer="code")

    result = start(Procedure.lazy(step_at, 3, look_back=1, inputs=["x"]), {"x": 0}).run.result()
    assert (result.status, result.completed) == ("failed", 2)
    assert "'t2'" in str(result.problem)
