"""Profiles of what runs have shown of a model, and the forecast that rests on them."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tables import all_rows

from stepguard import Budget, Guard, Price, Procedure, Profile, Result, Step
from stepguard.core.profile import Calls, Tries
from stepguard.engine.forecast import forecast
from stepguard.engine.step_kinds import step_kind
from stepguard.errors import ConfigError
from stepguard.evaluation.families import Arithmetic
from stepguard.language.values import Value
from stepguard.testing import ModelSlips, SimulatedModel, Slips
from stepguard.testing.profiles import PROFILES, QWEN_1_5B

pytestmark = pytest.mark.once

DEVELOPMENT = 1_000_000


def runs(slips: Slips, seeds: range, length: int, **options: Any) -> list[Result]:
    made: list[Result] = []
    for seed in seeds:
        task = Arithmetic().make(seed, length)
        guard = Guard(SimulatedModel(seed, slips=slips), seed=seed, **options)
        made.append(guard.run(task.procedure, task.inputs))
    return made


def learned(slips: Slips, count: int, length: int, **options: Any) -> Profile:
    made = runs(slips, range(DEVELOPMENT, DEVELOPMENT + count), length, **options)
    return sum((result.profile for result in made), Profile())


def test_profiles_add_up() -> None:
    """The sum of two profiles holds what both hold, in either order, and neither changes."""
    one, other = (learned(Slips(), 1, length) for length in (8, 12))
    before = one.to_dict()
    both = one + other
    assert both.to_dict() == (other + one).to_dict()
    assert both.asked == one.asked + other.asked
    assert both.first.output_tokens == one.first.output_tokens + other.first.output_tokens
    assert one.to_dict() == before
    assert (one + Profile()).to_dict() == before


def test_a_profile_can_be_kept(tmp_path: Path) -> None:
    """Written and read again, pickled or as JSON, it is the same."""
    profile = learned(Slips.all(0.05), 3, 12)
    path = tmp_path / "model.json"
    profile.save(path)
    assert Profile.load(path).to_dict() == profile.to_dict()
    assert pickle.loads(pickle.dumps(profile)).to_dict() == profile.to_dict()
    json.dumps(profile.to_dict(), allow_nan=False)


def test_a_profile_holds_counts_alone() -> None:
    """Neither values nor texts of a run are in its profile."""
    procedure = Procedure([Step("secret", "x + 4217")], inputs=["x"])
    text = json.dumps(Guard(SimulatedModel(slips=Slips.none())).run(procedure, {"x": 90210}).profile.to_dict())
    assert not any(word in text for word in ("secret", "4217", "90210", "94427"))


GOOD = learned(Slips(), 1, 8).to_dict()
BAD: list[object] = [
    None,
    [],
    {},
    {**GOOD, "version": 2},
    {**GOOD, "kinds": {"+": [1, 2]}},
    {**GOOD, "kinds": {"+": [1.0, 1.0]}},
    {**GOOD, "kinds": {"+": [10**400, 1]}},
    {**GOOD, "kinds": 3},
    {**GOOD, "rungs": {"+": {"resample": [True, False]}}},
    {**GOOD, "first": {**GOOD["first"], "calls": 1.5}},
    {**GOOD, "first": {**GOOD["first"], "seconds": float("nan")}},
    {**GOOD, "first": {**GOOD["first"], "more": 1}},
    {**GOOD, "hard": [1]},
]


@pytest.mark.parametrize("data", BAD)
def test_what_is_no_profile_is_refused(data: object, tmp_path: Path) -> None:
    """Counts that cannot be, and anything else, are refused when they are read."""
    with pytest.raises(ConfigError, match="profile"):
        Profile.from_dict(data)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(data) if data is not None else "no JSON", encoding="utf-8")
    with pytest.raises(ConfigError, match="profile"):
        Profile.load(path)
    with pytest.raises(ConfigError, match="profile"):
        Guard(SimulatedModel(), profile=data or [])  # type: ignore[arg-type]


KINDS: list[tuple[Step, dict[str, Value], str]] = [
    (Step("t", "x - y"), {"x": 1, "y": -2}, "- double"),
    (Step("t", "x - y"), {"x": 1, "y": 2}, "- crossing"),
    (Step("t", "x + 3"), {"x": Decimal(-1)}, "+ negative"),
    (Step("t", "x * y"), {"x": 1, "y": 2}, "* plain"),
    (Step("t", "x * y"), {}, "*"),
    (Step("t", "x + y + 1"), {"x": 1, "y": 2}, "formula"),
    (Step("t", "x / y", type="decimal(2)"), {"x": 1, "y": 2}, "/ plain decimal"),
    (Step("t", "x > y"), {"x": 1, "y": 2}, "comparison"),
    (Step("t", instruction="Say it."), {}, "words"),
    (Step("t", instruction="Is it?", type="boolean"), {}, "words boolean"),
]


@all_rows("step, values, kind", KINDS)
def test_steps_have_kinds(step: Step, values: dict[str, Value], kind: str) -> None:
    """What is learned of a step holds for its operation and signs, or for its form and type."""
    assert step_kind(step, values) == kind


def test_a_run_counts_what_it_has_shown() -> None:
    """Steps that were accepted at first and those that were not, calls and tokens, are those of the run."""
    (result,) = runs(Slips(wrong_value=0.2, systematic=0.0), range(3, 4), 30)
    profile = result.profile
    first_time = sum(record.tries == 1 for record in result.steps)
    assert profile.asked.well == first_time
    assert profile.hard.well == result.completed - first_time
    assert profile.first.calls + profile.again.calls == result.usage.calls
    assert profile.first.output_tokens + profile.again.output_tokens == result.usage.output_tokens
    assert profile.first.input_tokens + profile.again.input_tokens == result.usage.input_tokens


# The forecast

SLIPS: dict[str, Slips] = {
    "careful": ModelSlips(wrong_value=0.002, wrong_operand=0.0, systematic=0.0),
    "defaults": Slips(),
    "careless": Slips(wrong_value=0.12, systematic=0.2),
    "qwen": QWEN_1_5B,
}


@pytest.mark.slow
@pytest.mark.parametrize("segment", [10, None])
@pytest.mark.parametrize("name", SLIPS)
def test_what_is_forecast_is_what_is_spent(name: str, segment: int | None) -> None:
    """Learned on other programs, calls and tokens come out within a fifth, success within 12 points."""
    profile = learned(SLIPS[name], 60, 40, segment=segment)
    spent = runs(SLIPS[name], range(120), 40, segment=segment, profile=profile)
    told = Guard(SimulatedModel(), segment=segment, profile=profile).forecast(Arithmetic().make(0, 40).procedure)
    calls = sum(each.usage.calls for each in spent) / len(spent)
    output = sum(each.usage.output_tokens for each in spent) / len(spent)
    tokens = sum(each.usage.tokens for each in spent) / len(spent)
    assert told.calls == pytest.approx(calls, rel=0.2)
    assert told.output_tokens == pytest.approx(output, rel=0.2)
    assert told.tokens == pytest.approx(tokens, rel=0.2)
    assert told.success == pytest.approx(sum(each.verified for each in spent) / len(spent), abs=0.12)
    assert told.abstention == pytest.approx(1 - told.success)


def test_a_forecast_names_the_money() -> None:
    """With a price the cost is that of the tokens; without one there is none."""
    profile = learned(Slips(), 3, 20)
    procedure = Arithmetic().make(0, 20).procedure
    plain = Guard(SimulatedModel(), profile=profile).forecast(procedure)
    priced = Guard(SimulatedModel(), profile=profile, budget=Budget(price=Price(input=1, output=4))).forecast(procedure)
    assert plain.cost is None
    assert float(priced.cost or 0) == pytest.approx((plain.input_tokens + 4 * plain.output_tokens) / 1e6)


def test_a_forecast_without_experience_is_refused() -> None:
    """A guard that has seen nothing of its model cannot tell; neither can an empty profile."""
    procedure = Procedure.parse("a = 1 + 1")
    with pytest.raises(ConfigError, match="profile"):
        Guard(SimulatedModel()).forecast(procedure)
    with pytest.raises(ConfigError, match="profile"):
        forecast(procedure, Profile(kinds={"+": Tries(3, 3)}))
    with pytest.raises(ConfigError, match="profile"):
        forecast(procedure, Profile(kinds={"+": Tries(3, 3)}, first=Calls(calls=3)))


def test_a_forecast_of_a_very_long_procedure_is_made_from_its_beginning() -> None:
    """A million steps are not made to forecast them; what code performs costs nothing."""
    sure = Tries(10**9, 10**9)
    seen = learned(Slips.none(), 2, 40, segment=1)
    profile = replace(seen, kinds={"+": Tries(1000, 990)}, hard=sure, again=seen.first)
    made = 0

    def step_at(index: int) -> Step:
        nonlocal made
        made += 1
        return Step(f"s{index}", f"{f's{index - 1}' if index else 'x'} + 1")

    long = Procedure.lazy(step_at, 10**6, look_back=1, inputs=["x"])
    told = Guard(SimulatedModel(), segment=1, profile=profile).forecast(long)
    assert made < 10_000
    assert told.calls == pytest.approx(10**6, rel=0.02)
    assert told.success == pytest.approx(1, abs=0.01)


def test_what_code_performs_costs_nothing() -> None:
    """Steps by code are no part of a call, and end one."""
    profile = learned(Slips.none(), 2, 20)
    free = forecast(Procedure([Step("a", "1 + 1", performer="code")]), profile)
    assert (free.calls, free.tokens, free.success) == (0, 0, 1)
    steps = [Step(f"s{at}", "x + 1", performer="code" if at % 2 else "model") for at in range(40)]
    procedure = Procedure(steps, inputs=["x"])
    told = forecast(procedure, profile)
    spent = Guard(SimulatedModel(slips=Slips.none())).run(procedure, {"x": 1})
    assert told.calls == pytest.approx(spent.usage.calls, rel=0.15)


def test_typed_steps_are_foretold_by_steps_of_their_type() -> None:
    """A rounded product is foretold by rounded products, whatever their signs, and not by others."""
    profile = replace(
        learned(Slips.none(), 2, 20),
        kinds={"* plain decimal": Tries(1000, 100), "* negative": Tries(1000, 1000)},
        hard=Tries(1000, 1000),
        again=learned(Slips.none(), 2, 20).first,
    )
    rounded = forecast(Procedure([Step("t", "x * y", type="decimal(2)")], inputs=["x", "y"]), profile)
    plain = forecast(Procedure([Step("t", "x * y")], inputs=["x", "y"]), profile)
    assert plain.calls == pytest.approx(1, abs=0.01)
    assert rounded.calls > plain.calls


@pytest.mark.slow
def test_replies_that_cannot_be_read_are_foretold() -> None:
    """A model that often breaks the form costs what it costs."""
    slips = replace(Slips.none(), malformed=0.3)
    profile = learned(slips, 40, 20, segment=5)
    spent = runs(slips, range(40), 20, segment=5, profile=profile)
    told = Guard(SimulatedModel(), segment=5, profile=profile).forecast(Arithmetic().make(0, 20).procedure)
    assert told.calls == pytest.approx(sum(each.usage.calls for each in spent) / 40, rel=0.2)


def test_every_profile_of_the_benchmark_can_be_forecast() -> None:
    """The profiles that ship are no exception."""
    for slips in PROFILES.values():
        told = forecast(Arithmetic().make(0, 20).procedure, learned(slips, 4, 20))
        assert 0 < told.success <= 1
        assert told.calls >= 1
