"""Formulas whose notation was read as another number, or as a number where there is none."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from constraint_harness import outcome
from tables import all_rows

from stepguard.checks import judge_claims
from stepguard.checks.formulas.equality import Derivative, Equivalent, Integral
from stepguard.checks.formulas.matrices import SameMatrix
from stepguard.checks.formulas.solving import Solves, SolvesInequality
from stepguard.core.verdicts import Claim, Verdict
from stepguard.procedure.steps import Step

pytestmark = pytest.mark.once

MIXED = (
    r"3\frac{1}{4}", r"3 \dfrac{1}{4}", r"3\,\tfrac{1}{4}", r"3~\nicefrac{1}{4}", r"3\frac14", "3¼", "3 ¼",
    r"\left(3\frac{1}{4}\right)", r"\boxed{3\frac{1}{4}}", "3 1/4", r"3{\frac{1}{4}}", r"3\frac{2}{8}",
    r"3\displaystyle\frac{1}{4}", r"3\frac{1}{4}^1", "31⁄4",
)  # fmt: skip
INFINITE = (
    "oo", "-oo", "zoo", "nan", "NaN", "inf", "Infinity", "∞", r"\infty", r"\mathrm{inf}", "1/0", "log(0)", "0^0",
    "undefined", "sqrt(-1)", "1/(x - x)",
)  # fmt: skip


def judged(check: Any, claim: str) -> Verdict:
    step = Step("answer", instruction="Work it out.", type="text", checks=[check])
    (judgement,) = judge_claims([step], [Claim("answer", (), claim, claim)], {})
    assert judgement.verdict is not None
    return judgement.verdict


@pytest.mark.parametrize("written", MIXED, ids=lambda each: f"X01-{each}")
def test_a_whole_number_in_front_of_a_fraction_is_added_to_it(written: str) -> None:
    """A mixed number is never the product, and where it is not refused it is the sum."""
    for value in ("3/4", "13/4"):
        verdicts = (
            judged(Equivalent(value), written),
            judged(Solves(f"x = {value}", "x"), written),
            judged(SameMatrix(f"[[{value}]]"), f"[[{written}]]"),
        )
        for verdict in verdicts:
            assert verdict.outcome == ("fail" if value == "3/4" or verdict.kind == "malformed" else "pass")


@all_rows("whole, over, under, sign", [*product((1, 2, 7, 12), (1, 2, 3), (4, 9), ("", "-", "x - ", "2 \\cdot "))])
def test_mixed_numbers_of_any_size_are_sums(whole: int, over: int, under: int, sign: str) -> None:
    """A sign or a factor in front applies to the whole of a mixed number."""
    written = rf"{sign}{whole}\frac{{{over}}}{{{under}}}"
    assert (
        judged(Equivalent(f"{sign.replace(chr(92) + 'cdot', '*')}({whole} + {over}/{under})"), written).outcome
        == "pass"
    )
    assert (
        judged(Equivalent(f"{sign.replace(chr(92) + 'cdot', '*')}({whole} * {over}/{under})"), written).outcome
        == "fail"
    )


@pytest.mark.parametrize(
    ("formula", "claim"),
    [
        *(("2*sqrt(3)/2", r"2\frac{\sqrt{3}}{2}"), ("3*pi/4", r"3\frac{\pi}{4}"), ("3*x/4", r"3\frac{x}{4}")),
        *(("13*x/4", r"3\frac{1}{4}x"), ("1/8", r"\frac14\frac12"), ("x/4", r"x\frac14"), ("x^2/2", r"x²\frac12")),
        *(("3/4", r"3\cdot\frac{1}{4}"), ("3/4", r"3\left(\frac{1}{4}\right)"), ("x^(13/4)", r"x^{3\frac14}")),
    ],
)
def test_other_fractions_behind_a_factor_are_products(formula: str, claim: str) -> None:
    """A fraction with a name or a root in it, or behind a sign or brackets, is a factor."""
    assert judged(Equivalent(formula), claim).outcome == "pass"


@all_rows(
    "written",
    [r"3\frac{5}{4}", r"1/3\frac{1}{4}", r"x^3\frac{1}{4}", r"\sqrt 3\frac{1}{4}", r"0.5\frac{1}{4}", r"3\frac{1}{4}!"],
)
def test_a_fraction_behind_a_number_that_may_be_a_factor_is_refused(written: str) -> None:
    """What could be a mixed number as well as a product is neither."""
    assert judged(Equivalent("x + 1"), written).kind == "malformed"


@pytest.mark.parametrize("written", INFINITE, ids=lambda each: f"X02-{each}")
def test_what_is_no_number_is_not_calculated_with(written: str) -> None:
    """Infinities, what is undefined and what a computer algebra system has for them cancel nothing."""
    for check, claim in (
        (Equivalent("x + 0"), f"x + {written} - ({written})"),
        (Equivalent("x + 0"), f"x * ({written}) / ({written})"),
        (Equivalent("0 * x"), f"0 * ({written})"),
        (Integral("2x", "x"), f"x^2 + {written}"),
        (Derivative("x + 0", "x"), f"1 + 0 * ({written})"),
        (Solves("x = 2 * x + 1", "x"), f"x = {written}"),
        (SameMatrix("[[0]]"), f"[[0 * ({written})]]"),
    ):
        assert judged(check, claim).outcome != "pass"


def test_a_declared_symbol_may_be_called_like_an_infinity() -> None:
    """A name that the check declares is a symbol."""
    assert judged(Equivalent("x + inf", symbols=("inf",)), "inf + x").outcome == "pass"


@pytest.mark.parametrize(
    ("relation", "claim", "point", "inside"),
    [
        *(("x^2 < 4", "[-2, 2]", -2, True), ("x^2 <= 4", "(-2, 2)", -2, False), ("x < 5", "x <= 5", 5, True)),
        *(("(3*x - 1)*(x - 7) < 0", "[1/3, 7)", 1 / 3, True), ("x^2 < 2", "[-sqrt(2), sqrt(2)]", -(2**0.5), True)),
    ],
    ids=lambda each: f"X03-{each}" if isinstance(each, str) else None,
)
def test_the_number_that_refutes_a_range_is_named(relation: str, claim: str, point: float, inside: bool) -> None:
    """The number that is named is in the claim and no solution, or the other way round."""
    verdict = judged(SolvesInequality(relation, "x"), claim)
    assert verdict.outcome == "fail"
    words = verdict.reason.removeprefix("at ").removeprefix("about ").split(" ", 1)
    over, _, under = words[0].partition("/")
    assert float(over) / float(under or 1) == pytest.approx(point)
    assert words[1] == ("it does not hold" if inside else "it holds")


@pytest.mark.parametrize("claim", ["0.75...", "~3/4", "~ 0.75"])
def test_a_formula_that_goes_on_or_is_about_right_is_not_equal(claim: str) -> None:
    """Digits that go on and a sign for about are no exact value."""
    assert outcome(Equivalent("3/4"), claim, type="text") != "pass"


@pytest.mark.parametrize(
    ("claim", "found"), [("x^2 + Cx", "undecided"), ("x^2 + xC", "undecided"), ("x^2 + C1", "pass")]
)
def test_a_constant_beside_the_variable_may_be_a_product(claim: str, found: str) -> None:
    """``Cx`` is one constant or a product that is no antiderivative: nobody can tell."""
    assert outcome(Integral("2*x", "x"), claim, type="text") == found
