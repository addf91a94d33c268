"""Derivatives, integrals and substitutions: any form of the right one passes, and no other."""

from __future__ import annotations

import pytest
from symbolic_harness import FAIL, OPEN, PASS, judge
from tables import all_rows

from stepguard.checks.formulas.equality import Derivative, Integral, Substituted

pytestmark = pytest.mark.once


@all_rows(
    "formula, order, claim, outcome",
    [
        *(("x^3", 1, "3x^2", PASS), ("x^3", 2, "6x", PASS), ("x^3", 1, "f'(x) = 3x^2", PASS)),
        *(("x^3", 1, "dy/dx = 3x^2", PASS), ("x^3", 2, "f''(x) = 6x", PASS)),
        *(("x*sin(x)", 1, "sin(x) + x cos(x)", PASS), ("exp(2x)", 1, "2 e^(2x)", PASS)),
        *(("x^x", 1, "x^x (log(x) + 1)", PASS), ("1/x", 1, "-1/x^2", PASS), ("sqrt(x)", 1, "1/(2 sqrt(x))", PASS)),
        *(("a*x^2", 1, "2 a x", PASS), ("tan(x)", 1, "1/cos(x)^2", PASS), ("atan(x)", 1, "1/(1 + x^2)", PASS)),
        *(("tanh(x)", 1, "1 - tanh(x)^2", PASS), ("|x|", 1, "x/|x|", PASS), ("cbrt(x)", 1, "1/(3 cbrt(x)^2)", PASS)),
        *(("x^3", 1, "3x", FAIL), ("x^3", 2, "3x^2", FAIL), ("x^3", 2, "f'(x) = 6x", "malformed")),
        *(("x^3", 1, "diff(x^3, x)", "malformed"), ("x^3", 1, "d/dx(x^3)", FAIL), ("x*sin(x)", 1, "cos(x)", FAIL)),
        *(("cos(x)", 1, "sin(x)", FAIL), ("exp(2x)", 1, "e^(2x)", FAIL), ("x^3", 1, "3x^2 + C", FAIL)),
        ("factorial(x)", 1, "1", OPEN),
    ],
)
def test_derivatives(formula: str, order: int, claim: str, outcome: str) -> None:
    """A derivative passes in any form; a rule forgotten, another order and a derivative that is not taken do not."""
    verdict = judge(Derivative(formula, "x", order=order), claim)
    assert (verdict.kind if outcome == "malformed" else verdict.outcome) == outcome, verdict.reason


@all_rows(
    "formula, claim, outcome",
    [
        *(("2x", "x^2", PASS), ("2x", "x^2 + C", PASS), ("2x", "x^2 + 7", PASS), ("2x", "F(x) = x^2 + C", PASS)),
        *(("1/x", "log(x)", PASS), ("1/x", "ln|x| + C", PASS), ("x*exp(x)", "(x - 1) e^x + C", PASS)),
        *(("cos(x)", "sin(x)", PASS), ("1/(1 + x^2)", "arctan(x) + C", PASS), ("2x", "x^2 + C x", FAIL)),
        *(("2x", "2x^2", FAIL), ("cos(x)", "-sin(x)", FAIL), ("x^2", "x^3", FAIL)),
        *(("2x/(1 + x^2)", "log(-1 - x^2)", OPEN), ("sqrt(x)^2", "x^2/2 + C", PASS), ("sqrt(x)^2", "x^2 + C", FAIL)),
        *(("1 + 0*x", "sqrt(x)^2 + C", FAIL), ("x*0/abs(x*0)", "C", OPEN)),
    ],
)
def test_antiderivatives(formula: str, claim: str, outcome: str) -> None:
    """An antiderivative is right up to a constant, where the formula has a value; it may have one elsewhere, too."""
    assert judge(Integral(formula, "x"), claim).outcome == outcome


@all_rows(
    "claim, outcome", [("x^2 + C", PASS), ("x^2 + c_1", PASS), ("x^2", FAIL), ("x^2 + 7", FAIL), ("x^2 + C - C", FAIL)]
)
def test_a_constant_of_integration_can_be_required(claim: str, outcome: str) -> None:
    """Where the constant is required, an antiderivative without one fails."""
    assert judge(Integral("2x", "x", constant="required"), claim).outcome == outcome


@all_rows(
    "formula, low, high, claim, outcome",
    [
        *(("x^2", "0", "3", "9", PASS), ("x^2", "0", "3", "9 + C", FAIL), ("x^2", "a", "b", "(b^3 - a^3)/3", PASS)),
        *(("a*x", "0", "2", "2a", PASS), ("sin(x)", "0", "pi", "2", PASS), ("exp(x)", "0", "1", "e - 1", PASS)),
        *(("1/x", "1", "e", "1", PASS), ("1/(1 + x^2)", "0", "1", r"\frac{\pi}{4}", PASS)),
        *(("x^2", "0", "3", "27", FAIL), ("sin(x)", "0", "pi", "0", FAIL), ("sin(x)", "0", "pi", "2.0000001", OPEN)),
        *(("1/x^2", "-1", "1", "-2", OPEN), ("1/x", "-1", "1", "0", OPEN), ("exp(x)", "0", "1", "e", FAIL)),
    ],
)
def test_definite_integrals(formula: str, low: str, high: str, claim: str, outcome: str) -> None:
    """A definite integral is a value; over a pole there is none, whatever the antiderivative says."""
    assert judge(Integral(formula, "x", low=low, high=high), claim).outcome == outcome


@all_rows(
    "formula, values, claim, outcome",
    [
        *(("x^2 + y", {"x": "3"}, "9 + y", PASS), ("x^2 + y", {"x": "y", "y": "x"}, "y^2 + x", PASS)),
        *(("x^2 + y", {"x": 3, "y": -9}, "0", PASS), ("x^2 + y", {"x": "t + 1"}, "t^2 + 2t + 1 + y", PASS)),
        *(("x^2 + y", {"x": "3"}, "x^2 + y", FAIL), ("x^2 + y", {"x": "3"}, "9", FAIL)),
        *(("x^2 + y", {"x": "-3"}, "-9 + y", FAIL), ("1/x", {"x": "0"}, "0", OPEN)),
        ("x^2", {"x": "3"}, "f(3)", "malformed"),
    ],
)
def test_substitution(formula: str, values: dict[str, str | int], claim: str, outcome: str) -> None:
    """All symbols are replaced at once, and the result is compared."""
    verdict = judge(Substituted(formula, values), claim)
    if (formula, outcome) == ("1/x", OPEN):
        assert verdict.outcome != "pass"
    else:
        assert (verdict.kind if outcome == "malformed" else verdict.outcome) == outcome, verdict.reason
