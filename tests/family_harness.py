"""What the tests of task families share: a recomputation that uses no code of the package."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import lru_cache
from types import CodeType

from stepguard.backends.base import Backend
from stepguard.evaluation.arms import ArmOptions, TaskOutcome, arm_named
from stepguard.evaluation.families import PublishedTask, Task
from stepguard.evaluation.published import FixedFamily
from stepguard.evaluation.runner import SimulatedTasks
from stepguard.language.values import Value, to_exact
from stepguard.procedure.steps import Step
from stepguard.testing import Slips


def run_arm(arm: str, task: Task, backend: Backend) -> TaskOutcome:
    """One run of an arm, with all options as they are by default."""
    return asyncio.run(arm_named(arm).run(task, backend, ArmOptions(), lambda: task))


def check_arms(family: FixedFamily, arms: Sequence[str], scores: Mapping[str, float]) -> None:
    """Assert that a model that never slips solves every item in these arms, by the authors' scores, too."""
    for seed, length in enumerate(family.lengths):
        task = family.make(seed, length)
        model = SimulatedTasks(slips=Slips.none()).for_task(task)
        for arm in arms:
            outcome = run_arm(arm, task, model)
            assert (outcome.right, outcome.trace_right, outcome.authors) == (True, True, scores), arm


def published_of(task: Task) -> PublishedTask:
    """What the authors of an item ask and measure."""
    assert task.published is not None
    return task.published


def rerun(task: Task, changed: Mapping[str, Value] | None = None) -> dict[str, Value]:
    """The values of all steps, some of them replaced on the way: formulas by Python, words by the family's solvers."""
    state: dict[str, Value] = {}
    for name, value in task.inputs.items():
        percent = isinstance(value, str) and value.endswith("%")
        state[name] = Fraction(str(value)[:-1]) / 100 if percent else value
    for step in task.procedure.steps:
        if changed is not None and step.id in changed:
            state[step.id] = changed[step.id]
        else:
            state[step.id] = by_formula(step, state) if step.formula else task.solvers[step.id](state)
    return {name: state[name] for name in task.truth}


def by_formula(step: Step, state: Mapping[str, Value]) -> Value:
    """What a formula gives, by Python's own arithmetic, rounded half up."""
    assert step.formula is not None
    names = {name: Fraction(to_exact(state[name])) for name in step.reads}
    found = eval(_compiled(step.formula), {"Fraction": Fraction}, names)
    if step.type.kind == "boolean":
        return bool(found)
    if step.type.places is None:
        assert found == int(found)
        return int(found)
    shown = Decimal(found.numerator) / Decimal(found.denominator)
    return shown.quantize(Decimal(1).scaleb(-step.type.places), rounding=ROUND_HALF_UP)


@lru_cache(maxsize=10_000)
def _compiled(formula: str) -> CodeType:
    exact = [f"Fraction('{part}')" if part[0].isdigit() else part for part in formula.split()]
    return compile(" ".join(exact), "formula", "eval")


def feeding(task: Task) -> set[str]:
    """The steps that the answer rests on, inputs included."""
    reads = {step.id: step.reads for step in task.procedure.steps}
    found: set[str] = set()
    todo = [task.procedure.answer]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += reads.get(name, ())
    return found
