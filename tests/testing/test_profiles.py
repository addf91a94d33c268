"""The slips of particular models: what rates hang on, a study's averages, and a fit to a recording."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tables import all_rows

from stepguard import Procedure, Step, audit
from stepguard.auditing import false_links
from stepguard.backends import Message, Request
from stepguard.engine.step_kinds import arithmetic_kind, rate_in
from stepguard.errors import ConfigError
from stepguard.evaluation.arms import ArmOptions, TaskOutcome
from stepguard.evaluation.families import Arithmetic, Task
from stepguard.evaluation.runner import Plan, SimulatedTasks, run_plan
from stepguard.evaluation.statistics import wilson
from stepguard.replies.formats import EquationFormat
from stepguard.testing import ModelSlips, SimulatedModel, Slips
from stepguard.testing.profiles import PROFILES, QWEN_1_5B, STUDY
from stepguard.testing.slips import WAYS

pytestmark = pytest.mark.once

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FORMULAS = "inputs: x, y\nt1 = x + y\nt2 = t1 - y\nt3 = t2 + t1\nt4 = t3 + t2\nt5 = t4 - t1"
STEPS = Procedure.parse(FORMULAS)
INPUTS: Mapping[str, Any] = {"x": 12, "y": 7}
RIGHT = {"t1": 19, "t2": 12, "t3": 31, "t4": 43, "t5": 24}
NEVER = ModelSlips.none()


def asked(*, structured: bool, steps: Procedure = STEPS, at: int = 0) -> Request:
    """A request for all steps; `at` makes it another one."""
    reply_format = EquationFormat() if structured else None
    return Request((Message("user", f"carry this out ({at})"),), tuple(steps.steps), INPUTS, reply_format)


def told(slips: Slips, *, structured: bool = False, at: int = 0) -> str:
    text = SimulatedModel(slips=slips).complete(asked(structured=structured, at=at)).text
    assert text is not None
    return text


# What rates hang on


@all_rows(
    "formula, x, y, kind",
    [
        *(("x + y", 2, 3, "+ plain ones"), ("x + y", 5, 5, "+ plain tens"), ("x - y", 20, 30, "- crossing tens")),
        *(("x - y", 20, -30, "- double tens"), ("x + y", 250, -30, "+ double hundreds")),
        *(("x + y", -250, 30, "+ negative hundreds"), ("x * y", 50, -30, "* negative thousands")),
        *(("x / y", 70_000, 7, "/ plain thousands"), ("x * 3", 4, 0, "* plain tens"), ("x + y + 1", 4, 0, None)),
        *(("abs(x)", 4, 0, None), ("x / y", 4, 0, None)),
    ],
)
def test_a_kind_is_the_operation_the_signs_and_the_size(formula: str, x: int, y: int, kind: str | None) -> None:
    """One operation on two numbers has a kind; any other step, and one without a value, has none."""
    assert arithmetic_kind(Step("t", formula), {"x": x, "y": y}) == kind


def test_the_entry_with_most_words_counts() -> None:
    """A rate holds for all kinds that begin with its words, unless another entry says more."""
    rates = (("+", 0.1), ("+ double", 0.2), ("+ double tens", 0.3))
    found = [rate_in(rates, each, 0.9) for each in ("+ plain ones", "+ double ones", "+ double tens", "- plain ones")]
    assert found == [0.1, 0.2, 0.3, 0.9]
    assert rate_in(rates, None, 0.9) == 0.9


def test_a_slip_comes_where_its_kind_is() -> None:
    """Only the sums are wrong for a model that errs in sums."""
    text = told(replace(NEVER, by_kind=(("+", 1.0),)))
    wrong = {line.split()[0] for line in text.splitlines() if false_links(line)}
    assert wrong == {"t1", "t3", "t4"}


@pytest.mark.parametrize(("structured", "origin"), [(True, "structured"), (False, "free")])
def test_a_wrong_operand_comes_where_the_right_one_stands(structured: bool, origin: str) -> None:
    """What the request holds is told from what stands in a structured reply or in a free text."""
    none = {told(replace(NEVER, by_origin=((origin, 0.0),)), structured=structured, at=at) for at in range(9)}
    some = {told(replace(NEVER, by_origin=((origin, 1.0),)), structured=structured, at=at) for at in range(9)}
    assert len(none) == 1
    assert len(some) > 1
    assert all("12 + 7" in text for text in some)


def test_wrong_values_bring_more_wrong_values() -> None:
    """Behind a wrong value each further one is likelier, and never before one."""
    slips = replace(NEVER, by_kind=(("+", 1.0),), self_conditioning=10.0)
    differences = Procedure.parse("inputs: x, y\nt1 = x - y\nt2 = t1 - y\nt3 = x + t2\nt4 = x - y")
    text = SimulatedModel(slips=slips).complete(asked(structured=False, steps=differences)).text or ""
    first, second, third, fourth, _ = text.splitlines()
    assert (first, second) == ("t1 = 12 - 7 = 5", "t2 = 5 - 7 = -2")
    assert not third.endswith(" = 10")
    assert not fourth.endswith(" = 5")


@pytest.mark.parametrize("structured", [True, False])
def test_a_reply_can_end_before_any_step(structured: bool) -> None:
    """A model that stops is short of the last steps, and of nothing else."""
    texts = [told(replace(NEVER, stopping=0.3), structured=structured, at=at) for at in range(40)]
    whole = list(RIGHT)
    if structured:
        kept = [list(json.loads(text)) for text in texts]
    else:
        kept = [[line.split()[0] for line in text.splitlines() if line.startswith("t")] for text in texts]
    assert all(names == whole[: len(names)] for names in kept)
    assert {len(names) for names in kept} == {0, 1, 2, 3, 4, 5}


@pytest.mark.parametrize("way", WAYS)
def test_a_free_text_that_fails_as_a_whole_ends_wrong(way: str) -> None:
    """Whatever the way, the answer is not right; structured replies do not fail so."""
    slips = replace(NEVER, failing=1.0, failing_ways=((way, 1.0),))
    right = told(NEVER)
    for at in range(60):
        text = told(slips, at=at)
        assert text != right
        answer = audit(STEPS, INPUTS, text).answer
        assert answer is None or answer.value != RIGHT["t5"]
    assert told(slips, structured=True) == told(NEVER, structured=True)


def test_the_defaults_change_nothing() -> None:
    """Without anything that rates hang on a model slips as it always did."""
    plain, model = (SimulatedModel(2, slips=kind.all(0.1)) for kind in (Slips, ModelSlips))
    for request in (asked(structured=structured, at=at) for at in range(40) for structured in (True, False)):
        assert plain.complete(request) == model.complete(request)


@all_rows(
    "given, message",
    [
        ({"by_kind": (("sum", 0.1),)}, "no kind of step is called 'sum'"),
        ({"by_kind": (("+ tens", 0.1),)}, "no kind of step is called"),
        ({"by_kind": (("+", 1.1),)}, "by_kind for '\\+' is a probability"),
        ({"by_kind": {"+": 0.1}}, "is a tuple of pairs"),
        ({"by_kind": (("+", 0.1), ("+", 0.2))}, "gives '\\+' twice"),
        ({"by_origin": (("elsewhere", 0.1),)}, "given, structured, free"),
        ({"by_origin": (("given", -0.1),)}, "by_origin for 'given' is a probability"),
        ({"failing_ways": (("laziness", 1.0),)}, "no way is called 'laziness'; use stopping"),
        ({"failing_ways": (("stopping", -1.0),)}, "failing_ways is a number of 0 or more"),
        ({"failing_ways": (("stopping", 0.0),)}, "at least one weight is above 0"),
        ({"self_conditioning": -0.1}, "self_conditioning is a number of 0 or more"),
        ({"failing": 1.5}, "failing is a probability"),
        ({"stopping": True}, "stopping is a probability"),
        ({"wrong_value": 2}, "wrong_value is a probability"),
    ],
)
def test_wrong_slips_of_a_model_are_named(given: dict[str, Any], message: str) -> None:
    """What is no rate, kind or way is refused, by name and with what there is."""
    with pytest.raises(ConfigError, match=message):
        ModelSlips(**given)


# Profiles


class FewPrograms:
    """Arithmetic that makes only some programs, again and again: long ones take long to make."""

    name = "arithmetic"

    def __init__(self, count: int) -> None:
        self._count = count
        self._made: dict[tuple[int, int], Task] = {}

    def make(self, seed: int, length: int) -> Task:
        key = seed % self._count, length
        if key not in self._made:
            self._made[key] = Arithmetic().make(*key)
        return replace(self._made[key], seed=seed)


class ManyModels:
    """Another seed of the simulated model for each program."""

    def __init__(self, slips: Slips) -> None:
        self._slips = slips

    def for_task(self, task: Task) -> SimulatedModel:
        return SimulatedModel(task.seed, slips=self._slips)


def run(slips: Slips, arm: str, length: int, n: int, *, programs: int) -> list[TaskOutcome]:
    plan = Plan(family=FewPrograms(programs), cells={length: n}, arms=(arm,), seed=0, options=ArmOptions())
    return asyncio.run(run_plan(plan, ManyModels(slips), configuration={}, concurrency=1))


@pytest.mark.slow
@pytest.mark.parametrize(("length", "n", "low", "high"), [(5, 1200, 0.61, 0.65), (95, 500, 0.16, 0.24)])
def test_the_study_is_right_as_often_as_published(length: int, n: int, low: float, high: float) -> None:
    """Without the guard 0.67 * 0.9873^n of the answers are right: 63 % at 5 steps, 20 % at 95."""
    right = sum(each.right for each in run(STUDY, "cot", length, n, programs=2))
    interval = wilson(right, n)
    assert interval[0] < 0.67 * 0.9873**length < interval[1]
    assert low < right / n < high


@pytest.mark.slow
def test_the_guard_recovers_nearly_all_of_the_study() -> None:
    """On the same model 90 % and more of the programs of 95 steps end verified, and none is wrong in silence."""
    outcomes = run(STUDY, "guard", 95, 40, programs=2)
    assert sum(each.right for each in outcomes) >= 36
    assert not any(each.silent_errors for each in outcomes)


@pytest.fixture
def fitting(monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, ModuleType]:
    """The benchmark that fits profiles, and the one that observes steps."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import fit_profile
    import observed_steps

    return fit_profile, observed_steps


@pytest.mark.slow
def test_the_fitted_profile_is_what_its_command_prints(fitting: tuple[ModuleType, ModuleType]) -> None:
    """The profile in the package follows from the recording beside it, digit by digit."""
    fit_profile, observed_steps = fitting
    outcomes, meta = observed_steps.read_recording(fit_profile.RECORDING)
    repeats = observed_steps.read_repeats(fit_profile.RUNGS)
    found = fit_profile.fit(observed_steps.observe(outcomes, meta, repeats=repeats))
    assert found.slips == QWEN_1_5B
    assert (len(found.seen.steps), found.seen.skipped) == (3392, 0)


@pytest.mark.slow
def test_the_fitted_profile_slips_as_the_model_did(fitting: tuple[ModuleType, ModuleType]) -> None:
    """Simulated runs of the recorded programs, judged in the same way, have rates within the recorded intervals."""
    fit_profile, observed_steps = fitting
    recorded, meta = observed_steps.read_recording(fit_profile.RECORDING)
    expected = fit_profile.fit(observed_steps.observe(recorded, meta))
    plan = Plan(
        family=Arithmetic(),
        cells={5: 20, 20: 20},
        arms=("cot", "chunk", "guard"),
        seed=0,
        options=ArmOptions(prompts="full"),
    )
    seen = observed_steps.Observations()
    for seed in range(4):
        tasks = SimulatedTasks(seed=seed, slips=QWEN_1_5B)
        outcomes = asyncio.run(run_plan(plan, tasks, configuration={}, concurrency=1))
        seen.steps += observed_steps.observe(outcomes, meta).steps
    found = fit_profile.fit(seen)
    for cells, others in ((expected.values, found.values), (expected.operands, found.operands)):
        simulated = {cell.name: cell for cell in others}
        for cell in cells:
            if cell.events >= 5:
                low, high = wilson(cell.events, cell.n)
                assert low <= simulated[cell.name].events / simulated[cell.name].n <= high, cell.name


def test_profiles_are_named() -> None:
    """Both profiles can be chosen by name, the fitted one being the first."""
    assert list(PROFILES) == ["qwen2.5-coder-1.5b", "study"]
    assert PROFILES["study"] is STUDY
