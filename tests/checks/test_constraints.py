"""Constraints: ranges, relations between values, preconditions, uniqueness."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from constraint_harness import guarded, judge, outcome, unfit
from hypothesis import given
from hypothesis import strategies as st
from tables import all_rows

from stepguard import Guard, Procedure, Step
from stepguard.checks.constraints import Distinct, Holds, Range, Requires
from stepguard.core.verdicts import Claim
from stepguard.errors import ConfigError, ExpressionError
from stepguard.language.values import Value
from stepguard.testing import ScriptedBackend


@all_rows(
    "check, right, wrong",
    [
        (Range(least=0), ["0", "1/3", "1e20"], ["-1", "-1/1000000"]),
        (Range(0, 10), ["0", "10"], ["-0.01", "10.01"]),
        (Range(above=0), ["0.001"], ["0", "-1"]),
        (Range(below="1,000"), ["999.9"], ["1000", "1,000.5"]),
        (Range(above=0, most=Decimal("0.1")), ["0.1"], ["0", "0.11"]),
        (Range(most=0.1), ["0.1", "1/10"], ["0.1000000000000000055511151231257827"]),
        (Range(least=Fraction(1, 3)), ["1/3"], ["0.333333"]),
    ],
)
def test_a_range_has_exact_bounds(check: Range, right: list[str], wrong: list[str]) -> None:
    """A number on or inside the bounds passes as constrained, one outside by however little fails."""
    assert [(judge(check, each).outcome, judge(check, each).strength) for each in right] == [
        ("pass", "constrained")
    ] * len(right)
    assert [(judge(check, each).outcome, judge(check, each).kind) for each in wrong] == [("fail", "wrong_value")] * len(
        wrong
    )


def test_a_range_of_percentages_is_written_so() -> None:
    """A percentage is held against percentages only, never against ratios."""
    assert outcome(Range("0%", "100%"), "28%", type="percent") == "pass"
    assert outcome(Range("0%", "100%"), "128%", type="percent") == "fail"
    assert unfit(Range(0, 100), "28%", type="percent").outcome == "undecided"
    assert unfit(Range("0%", "100%"), "28").outcome == "undecided"


BALANCE: dict[str, Any] = {"subtotal": Decimal("10.00"), "tax": Decimal("0.80")}


@pytest.mark.parametrize(
    "relation",
    [
        *("t == subtotal + tax", "subtotal + tax == t", "t - tax == subtotal", "-t == -(subtotal + tax)"),
        "tax == t-subtotal",
    ],
)
def test_a_relation_that_leaves_one_value_proves_it(relation: str) -> None:
    """Where the step's value is a term of an equation and all else is known, a pass is a proof."""
    check = Holds(relation)
    found = judge(check, "10.80", type="decimal(2)", **BALANCE)
    assert (found.outcome, found.strength) == ("pass", "proved")
    assert outcome(check, "10.79", type="decimal(2)", **BALANCE) == "fail"


@pytest.mark.parametrize(
    ("relation", "claimed"),
    [
        *(("t >= subtotal", "11"), ("abs(t) == subtotal", "-10"), ("t * t == 100", "-10")),
        *(("t * 0 == subtotal - 10", "17"), ("t - t == 0", "17"), ("t != subtotal", "17")),
        *(("floor(t) == subtotal", "10.5"), ("t % 3 == 1", "10")),
    ],
)
def test_a_relation_that_leaves_several_values_only_constrains(relation: str, claimed: str) -> None:
    """Where another value could satisfy the relation, a pass is no proof."""
    found = judge(Holds(relation), claimed, **BALANCE)
    assert (found.outcome, found.strength) == ("pass", "constrained")


@all_rows(
    "relations, values, right, wrong",
    [
        (["t == round(a * p, 2) + round(b * p, 2)"], {"a": 3, "b": 5, "p": Fraction(1, 8)}, "1.01", "1"),
        *((["t == round(t, 2)"], {}, "1.25", "1.255"), (["t % 0.05 == 0"], {}, "1.35", "1.34")),
        (["abs(t - a / 3) < 0.01"], {"a": 100}, "33.34", "33.35"),
        (["t + a + b == 100"], {"a": Decimal("33.34"), "b": Decimal("33.33")}, "33.33", "33.34"),
        *((["t > a"], {"a": 5}, "5.0001", "5"), (["t < a"], {"a": 5}, "4.9999", "5")),
        *((["t + a == b"], {"a": 5, "b": 12}, "7", "7.5"), (["t >= a", "t <= b"], {"a": 5, "b": 12}, "7", "13")),
        *((["t == 0.1 + 0.2"], {}, "0.3", "0.30000000000000004"), (["t == a / 3"], {"a": 1}, "1/3", "0.3333333333")),
    ],
)
def test_recipes(relations: list[str], values: dict[str, Any], right: str, wrong: str) -> None:
    """Rounded lines, places, cash steps, shares, leftovers, monotone and conserved quantities are relations."""
    check = Holds(*relations)
    assert outcome(check, right, **values) == "pass"
    assert outcome(check, wrong, **values) == "fail"


@pytest.mark.parametrize(
    ("relation", "values", "claimed", "mode"),
    [
        ("t == round(x, 2)", {"x": Fraction(2675, 1000)}, "2.67", "half_down"),
        ("t == round(x)", {"x": Fraction(5, 2)}, "2", "half_down"),
        ("t == round(x, half_even)", {"x": Fraction(5, 2)}, "3", "half_up"),
        ("t == round(x)", {"x": Fraction(-2451625, 10)}, "-245162", "half_down"),
    ],
)
def test_another_rounding_mode_is_named(relation: str, values: dict[str, Any], claimed: str, mode: str) -> None:
    """A value that another rounding mode would give fails, and the reason says which mode."""
    found = judge(Holds(relation), claimed, **values)
    assert found.outcome == "fail"
    assert found.reason.startswith("rounding mode")
    assert mode in found.reason


@all_rows(
    "relation, values, claimed, found",
    [
        *(("a / t == 2", {"a": 4}, "0", ("fail", True)), ("a / t == 2", {"a": 4}, "2", ("pass", True))),
        ("t == a / b", {"a": 4, "b": 0}, "0", ("undecided", False)),
        ("t * a / b == 2", {"a": 4, "b": 0}, "0", ("undecided", False)),
        *(("t == a", {"a": "four"}, "4", ("undecided", False)), ("t == a", {"a": True}, "1", ("undecided", False))),
        ("t == sqrt(a)", {"a": 2}, "1.4142", ("undecided", False)),
        *(("sqrt(t) == a", {"a": 2}, "3", ("undecided", True)), ("sqrt(t) == a", {"a": 2}, "-4", ("fail", True))),
        ("t ^ a == 1", {"a": 1000}, "9" * 900, ("undecided", True)),
        *(("2 ^ t == 8", {}, "9" * 900, ("undecided", True)), ("t == 9 ^ 9 ^ 9", {}, "1", ("undecided", False))),
    ],
)
def test_a_relation_without_a_value(
    relation: str, values: dict[str, Any], claimed: str, found: tuple[str, bool]
) -> None:
    """Undefined by the claim fails, undefined anyway is not asked again, too large or inexact is undecided."""
    verdict = judge(Holds(relation), claimed, **values)
    assert (verdict.outcome, verdict.retry) == found


@all_rows("make", [Holds, Requires])
@all_rows("relations", [[], ["a + b"], ["(a < b) == c"], ["1 + (a < b) > 0"], [3], ["a == a"], ["a + 1 < a + 1"]])
def test_what_is_no_relation_is_refused(make: Any, relations: list[Any]) -> None:
    """A relation is a comparison of two numbers, at least one is needed, and each can come out either way."""
    with pytest.raises(ConfigError):
        make(*relations)
    with pytest.raises(ExpressionError):
        make("__import__('os')")


def test_a_precondition_that_fails_makes_every_claim_undecided() -> None:
    """Where the precondition does not hold, or has no value, no claim passes and asking again is pointless."""
    check = Requires("stock >= 0", "price / stock < 10")
    for stock in (-1, 0):
        found = judge(check, "5", stock=stock, price=3)
        assert (found.outcome, found.retry) == ("undecided", False)
        assert check.precondition({"stock": stock, "price": 3}) == found
    assert check.precondition({"stock": 1, "price": 3}) is None


def test_a_precondition_that_holds_supports_no_claim() -> None:
    """A precondition says nothing of the claim itself, so that a step with nothing else stays unverified."""
    assert outcome(Requires("stock >= 0"), "5", stock=1) == "not_applicable"


@all_rows(
    "type, claimed, other, found",
    [
        ("text", "Ann  LEE", "ann lee", "fail"),
        *(
            ("text", each, "Ann Lee", "fail")
            for each in ("Ann Lee.", '"Ann Lee"', "**Ann Lee**", "Ann Lee\u200b", "Ａnn Lee")
        ),
        *(("text", "Ann Lee", "Ann Leeds", "not_applicable"), ("text", "x²", "x2", "not_applicable")),
        *(("text", ".", "-", "not_applicable"), ("number", "0.50", Fraction(1, 2), "fail")),
        *(("number", "1", True, "not_applicable"), ("number", "1", "1", "not_applicable")),
        *(("decimal(2)", "1", 1, "fail"), ("text", "Error: tool not available", "Ann", "not_applicable")),
    ],
)
def test_distinct_can_only_object(type: str, claimed: str, other: Value, found: str) -> None:
    """A repeated value fails; one that is new is not thereby right."""
    assert outcome(Distinct("x"), claimed, type=type, x=other) == found


NUMBERS = st.integers(-(10**6), 10**6) | st.fractions(-1000, 1000, max_denominator=97)


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_no_other_value_passes_a_proved_relation(a: Fraction, b: Fraction, right: Fraction, wrong: Fraction) -> None:
    """Where one value passes as proved, every other one fails."""
    check = Holds("a - t == b - c")
    values: dict[str, Value] = {"a": a, "b": b, "c": b - a + right}
    step = Step("t", instruction="Say it.", type="number", reads=list(values))
    found = [check(step, {**values, "t": each}, Claim("t", (), "", "")) for each in (right, wrong)]
    assert (found[0].outcome, found[0].strength) == ("pass", "proved")
    assert found[1].outcome == ("pass" if wrong == right else "fail")


def test_a_relation_verifies_a_step_of_words() -> None:
    """Through a guard, a step that only words describe is verified by its relation, and a wrong value is not kept."""
    check = Holds("t == 10 * 1.1")
    assert guarded(check, "11.01", "11.00", type="money(USD)").status == "verified"
    wrong = guarded(check, "11.01", type="money(USD)")
    assert (wrong.status, wrong.answer) == ("abstained", None)


@pytest.mark.parametrize(("stock", "calls"), [(-1, 0), (2, 1)])
def test_a_precondition_is_looked_at_before_a_call_is_paid_for(stock: int, calls: int) -> None:
    """Where it does not hold no claim can be right: the run abstains there, and nothing is asked."""
    checks = [Requires("stock >= 0"), Range(0, 100)]
    step = Step("ordered", instruction="How many?", reads=["stock"], type="integer", checks=checks)
    backend = ScriptedBackend({"ordered": {"work": "", "value": "5"}})
    result = Guard(backend).run(Procedure([step], inputs=["stock"]), {"stock": stock})
    assert result.usage.calls == calls
    assert result.status == ("checked" if calls else "abstained")
    if not calls:
        assert result.problem is not None
        assert "the precondition stock >= 0 does not hold" in result.problem.reason


def test_a_precondition_that_falls_within_a_segment_ends_the_run() -> None:
    """The verified steps before it are kept, and the step is asked only once."""
    steps = [
        Step("t", "x - 5"),
        Step("n", instruction="How many?", reads=["t"], type="integer", checks=[Requires("t > 0"), Range(0, 9)]),
    ]
    reply = {"t": "3 - 5 = -2", "n": {"work": "", "value": "5"}}
    result = Guard(ScriptedBackend(reply)).run(Procedure(steps, inputs=["x"]), {"x": 3})
    assert (result.status, result.usage.calls, result.values["t"]) == ("abstained", 1, -2)
