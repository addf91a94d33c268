"""How strongly each step was verified, and a run as strongly as its weakest step."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tables import all_rows

from stepguard import Guard, Ladder, Procedure, Result, Step, Verdict
from stepguard.cli.report import print_result
from stepguard.core.verdicts import STRENGTHS, Strength
from stepguard.errors import ConfigError, RunUnverified
from stepguard.repair.rungs import Vote
from stepguard.testing import ScriptedBackend, ScriptedSteps


def saying(strength: Strength | None) -> Callable[..., Verdict]:
    return lambda *_: Verdict("pass", "mine", strength=strength)


def words(*checks: Any) -> Procedure:
    return Procedure([Step("a", "2 * 3"), Step("city", instruction="Name the city in the letter.", checks=checks)])


def run(procedure: Procedure, **options: Any) -> Result:
    return Guard(ScriptedBackend({"a": "2 * 3 = 6", "city": {"work": "it says so", "value": "Lyon"}}), **options).run(
        procedure
    )


def test_an_expression_proves_its_value() -> None:
    """A value that was worked out independently is proved; so is one with a declared tolerance, and one by code."""
    backend = ScriptedBackend({"a": "2 / 3 = 2 / 3", "b": "1 / 3 = 0.33"})
    steps = [Step("a", "2 / 3"), Step("b", "1 / 3", type="number(within 0.01)"), Step("c", "a + b", performer="code")]
    result = Guard(backend).run(Procedure(steps))
    assert [step.strength for step in result.steps] == ["proved"] * 3
    assert (result.status, result.strength) == ("verified", "proved")


@all_rows(
    "checks, strength, status",
    [
        *(((lambda *_: True,), "constrained", "checked"), ((saying(None),), "constrained", "checked")),
        *(((saying("proved"),), "proved", "verified"), ((saying("grounded"),), "grounded", "checked")),
        ((saying("grounded"), saying("constrained")), "constrained", "checked"),
        ((saying("proved"), saying("grounded")), "proved", "verified"),
        *(((saying("grounded"), lambda *_: None), "grounded", "checked"), ((saying("agreed"),), "agreed", "checked")),
        ((saying("agreed"), saying("grounded")), "grounded", "checked"),
        *(((lambda *_: None,), "unverified", "unverified"), ((), "unverified", "unverified")),
    ],
)
def test_a_step_is_as_strong_as_its_strongest_pass(checks: Any, strength: str, status: str) -> None:
    """Every check that applies has to pass; the strongest says what stands behind the value. A run is as its weakest
    step."""
    result = run(words(*checks))
    assert (result.steps[0].strength, result.steps[1].strength) == ("proved", strength)
    assert (result.status, result.strength) == (status, strength)
    assert dict(result.weak) == ({} if status == "verified" else {"city": strength})
    assert result.unverified == (("city",) if status == "unverified" else ())


def test_what_only_votes_agree_on_is_not_verified() -> None:
    """A vote makes a value agreed on, and what rests on it no stronger."""
    result = run(words(), repair=Ladder([Vote(ahead=1)]))
    assert (result.steps[1].strength, result.status) == ("agreed", "checked")


def test_a_failure_is_not_made_up_for() -> None:
    """A proof by one check is worth nothing where another one fails or cannot tell."""
    for other in (lambda *_: False, lambda *_: "odd"):
        result = run(words(saying("proved"), other), repair=0)
        assert result.status == "abstained"
        assert [step.occurrence.step for step in result.steps] == ["a"]


def test_a_run_may_be_required_to_be_stronger() -> None:
    """`raise_for_status(at_least=)` names the steps that are weaker."""
    result = run(words(lambda *_: True))
    assert result.raise_for_status(at_least="grounded") is result
    assert result.raise_for_status(at_least="constrained") is result
    with pytest.raises(RunUnverified, match="city is constrained, not proved"):
        result.raise_for_status()
    proved = run(Procedure.parse("a = 2 * 3"))
    assert proved.raise_for_status(at_least="proved") is proved
    with pytest.raises(ConfigError, match="grounded"):
        proved.raise_for_status(at_least="certain")  # type: ignore[arg-type]


def test_a_short_history_remembers_the_weakest() -> None:
    """A run that keeps few records knows how weak the others were."""
    steps = [Step("city", instruction="Name the city.", checks=[lambda *_: True]), Step("a", "2 * 3")]
    result = run(Procedure(steps), history=1)
    assert [each.occurrence.step for each in result.steps] == ["a"]
    assert result.strength == "constrained"
    with pytest.raises(RunUnverified, match="city is constrained, not proved"):
        result.raise_for_status(at_least="proved")


def test_what_rests_on_a_weak_value_is_as_weak() -> None:
    """A sum is proved in itself and no stronger than what was added up; code's work is no exception."""
    steps = [
        Step("n", instruction="How many?", type="integer", checks=[saying("grounded")]),
        Step("twice", "n * 2"),
        Step("more", "twice + 1", performer="code"),
        Step("own", "2 * 3"),
    ]
    result = Guard(ScriptedSteps({"n": "3", "twice": "3 * 2 = 6", "own": "2 * 3 = 6"})).run(Procedure(steps))
    assert [(each.strength, each.support) for each in result.steps] == [
        ("grounded", "grounded"),
        ("proved", "grounded"),
        ("proved", "grounded"),
        ("proved", "proved"),
    ]
    assert (result.status, list(result.weak)) == ("checked", ["n", "twice", "more"])


def test_nothing_stands_behind_nothing() -> None:
    """A run without a completed step has no strength, and an observed failure has none either."""
    assert run(words(lambda *_: False), repair=0).steps[0].strength == "proved"
    assert (
        Guard(ScriptedBackend({"a": "2 * 3 = 7"}), repair=0).run(Procedure.parse("a = 2 * 3")).strength == "unverified"
    )
    observed = Guard(ScriptedBackend({"a": "2 * 3 = 7"}), observe=True).run(Procedure.parse("a = 2 * 3"))
    assert (observed.steps[0].strength, observed.strength) == ("unverified", "unverified")


def test_json_tells_the_strengths() -> None:
    """They stand in the result, in every step and with every verdict."""
    told = json.loads(run(words(saying("grounded"))).to_json())
    assert told["strength"] == "grounded"
    assert [step["strength"] for step in told["steps"]] == ["proved", "grounded"]
    assert [verdict["strength"] for verdict in told["steps"][1]["verdicts"]] == ["grounded"]


def test_the_table_tells_what_is_weaker_than_a_proof(capsys: pytest.CaptureFixture[str]) -> None:
    """A step that is only constrained or agreed on is not shown as one that is proved."""
    procedure = words(saying("constrained"))
    print_result(run(procedure), procedure, model="m")
    assert "constrained" in capsys.readouterr().out
    procedure = words(saying("agreed"))
    print_result(run(procedure), procedure, model="m")
    assert "agreed" in capsys.readouterr().out


@all_rows("outcome", ["fail", "undecided", "not_applicable"])
@all_rows("strength", STRENGTHS)
def test_only_a_pass_has_a_strength(outcome: Any, strength: Strength) -> None:
    """A verdict that is no pass has none, and a pass has one of those that a check can vouch for."""
    with pytest.raises(ConfigError):
        Verdict(outcome, "mine", strength=strength)
    assert Verdict(outcome, "mine").strength is None


@pytest.mark.parametrize("strength", ["unverified", "certain", 1])
def test_a_pass_vouches_for_something(strength: Any) -> None:
    """A pass is not unverified, and the list is closed."""
    with pytest.raises(ConfigError) as refused:
        Verdict("pass", "mine", strength=strength)
    assert refused.value.option == "strength"
