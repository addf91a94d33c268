"""Lazy procedures: steps are made, and checked, when they are reached."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stepguard import Procedure, Step
from stepguard.errors import ProcedureError


def counting(made: list[int]) -> Procedure:
    """A million additions, noting which steps are made."""

    def step_at(index: int) -> Step:
        made.append(index)
        return Step(f"t{index}", "x + 1" if index == 0 else f"t{index - 1} + x")

    return Procedure.lazy(step_at, 1_000_000, look_back=1, inputs=["x"])


def test_a_lazy_procedure_makes_only_the_steps_it_is_asked_for() -> None:
    """A million steps are made when they are reached, not before."""
    made: list[int] = []
    procedure = counting(made)
    assert len(procedure) == 1_000_000
    assert procedure.answer == "t999999"
    assert procedure.steps[500_000].formula == "t499999 + x"
    assert [step.id for step in procedure.steps[10:13]] == ["t10", "t11", "t12"]
    assert procedure.steps[-1].id == "t999999"
    assert len(made) < 20
    steps: Iterator[Step] = iter(procedure.steps)
    assert next(steps).id == "t0"
    with pytest.raises(IndexError):
        procedure.steps[1_000_000]


@pytest.mark.parametrize(
    ("expression", "message"),
    [("t2 + 1", "look_back"), ("t6 + 1", "look_back"), ("t5 + 1", "its own value"), ("nowhere + 1", "look_back")],
)
def test_the_look_back_is_checked_when_a_step_is_reached(expression: str, message: str) -> None:
    """A step of a lazy procedure that reads too far back, ahead or itself is refused when it is made."""
    procedure = Procedure.lazy(
        lambda index: Step(f"t{index}", expression if index == 5 else "x"), 100, look_back=2, inputs=["x"]
    )
    assert procedure.steps[4].id == "t4"
    with pytest.raises(ProcedureError, match=message) as refused:
        procedure.steps[5]
    assert refused.value.step == "t5"


def test_a_lazy_step_is_not_named_like_an_input() -> None:
    """An id that is an input is refused when the step is reached."""
    procedure = Procedure.lazy(
        lambda index: Step("x" if index == 5 else f"t{index}", "x * 2" if index != 5 else "1"),
        10,
        look_back=2,
        inputs=["x"],
    )
    with pytest.raises(ProcedureError, match="duplicate"):
        procedure.steps[5]


@pytest.mark.parametrize(("length", "look_back"), [(0, 1), (1, 0), (-1, 1)])
def test_a_lazy_procedure_needs_a_length_and_a_look_back(length: int, look_back: int) -> None:
    """A length or look-back below one is refused."""
    with pytest.raises(ProcedureError):
        Procedure.lazy(lambda index: Step(f"t{index}", "1"), length, look_back=look_back)
