"""The guard does no harm: on short procedures it is no worse than what it guards."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from stepguard import Guard
from stepguard.evaluation.arms import ArmOptions
from stepguard.evaluation.families import Arithmetic
from stepguard.evaluation.runner import Plan, SimulatedTasks, run_plan
from stepguard.testing import SimulatedModel, Slips
from stepguard.testing.profiles import PROFILES

pytestmark = pytest.mark.once

MODELS: Mapping[str, Slips] = {
    **PROFILES,
    "stubborn": Slips(wrong_value=0.06, systematic=0.7),
    "careless": Slips(wrong_value=0.12, systematic=0.1),
    "formless": Slips(wrong_value=0.02, malformed=0.15, unfaithful_work=0.05),
    "flawless": Slips.none(),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_at_five_steps_the_guard_is_not_below_the_best_unguarded_arm(name: str) -> None:
    """Right answers of the guard are at most a point fewer than those of any arm without it."""
    arms = ("cot", "trace", "chunk", "guard")
    plan = Plan(family=Arithmetic(), cells={5: 150}, arms=arms, seed=0, options=ArmOptions())
    outcomes = asyncio.run(run_plan(plan, SimulatedTasks(slips=MODELS[name]), configuration={}, concurrency=1))
    right = {arm: sum(each.right_lenient for each in outcomes if each.arm == arm) for arm in arms}
    assert right["guard"] >= max(right.values()) - 0.01 * 150


def test_a_model_that_the_guard_makes_worse_is_told() -> None:
    """A model that is right in its own words and cannot keep to the form abstains here, and the result says why."""
    hopeless = replace(Slips.none(), malformed=0.9)
    task = Arithmetic().make(1, 5)
    result = Guard(SimulatedModel(1, slips=hopeless), seed=1).run(task.procedure, task.inputs)
    assert result.status in ("abstained", "verified")
    assert any("refused for their form" in note for note in result.notes)
    insisting = replace(Slips.none(), unfaithful_work=1.0)
    result = Guard(SimulatedModel(1, slips=insisting), seed=1).run(task.procedure, task.inputs)
    assert result.status == "verified"  # by drafts, of which the value counts
    assert any("unfaithful_work" in note for note in result.notes)
