"""Symbolic checks: what passes is proved, what fails is refuted, and nothing wrong passes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from fractions import Fraction
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import all_rows

from stepguard import Guard, Input, Procedure
from stepguard.backends import Request
from stepguard.checks import Check, judge_claims
from stepguard.checks.formulas.base import SymbolicCheck
from stepguard.checks.formulas.equality import Derivative, Equivalent, Integral, Substituted
from stepguard.checks.formulas.matrices import SameMatrix
from stepguard.checks.formulas.solving import Solves, SolvesInequality, SolvesSystem
from stepguard.core.verdicts import Claim, Verdict
from stepguard.errors import ConfigError, ProcedureError
from stepguard.formulas.calculus import differentiate
from stepguard.formulas.parsing import parse_formula
from stepguard.formulas.trees import (
    CallOf,
    Formula,
    Name,
    Number,
    PowerOf,
    Product,
    Sum,
    format_formula,
    negative,
    quotient,
)
from stepguard.language.values import Value
from stepguard.procedure.steps import Step
from stepguard.testing import ScriptedBackend

pytestmark = pytest.mark.once

PASS, FAIL, OPEN = "pass", "fail", "undecided"


def judge(check: Check, claim: str, *, type: str = "text", step_id: str = "answer", **reads: Value) -> Verdict:
    """The verdict of a check on a claim of a step that reads these variables."""
    step = Step(step_id, instruction="Work it out.", type=type, reads=list(reads), checks=[check])
    (judgement,) = judge_claims([step], [Claim(step_id, (), claim, claim)], reads)
    assert judgement.verdict is not None
    return judgement.verdict


@all_rows(
    "formula, claim, outcome",
    [
        # the same value in another form
        *(("(x + 1)^2", "x^2 + 2x + 1", PASS), ("(x + y)^2", "x**2 + 2*x*y + y**2", PASS)),
        *(("(x+1)^2", "$x^{2} + 2x + 1$", PASS), ("x/2", r"\frac{1}{2}x", PASS), ("(x^2 - 1)/(x - 1)", "x + 1", PASS)),
        *(("1/x + 1/y", "(x + y)/(x y)", PASS), ("sqrt(2)/2", "1/sqrt(2)", PASS), ("sqrt(12)", "2 sqrt(3)", PASS)),
        *(("sqrt(5 + 2*sqrt(6))", "sqrt(2) + sqrt(3)", PASS), ("2", "2.0", PASS), ("1/2", "0.5", PASS)),
        *(("0", "0.0", PASS), ("x^2", "x^2.0", PASS), ("sin(x)^2 + cos(x)^2", "1", PASS)),
        *(("sin(2x)", "2 sin(x) cos(x)", PASS), ("exp(x)*exp(y)", "e^(x + y)", PASS), ("sqrt(x^2)", "|x|", PASS)),
        *(("log(6)", "ln(2) + ln(3)", PASS), ("cos(-x)", "cos(x)", PASS), ("tan(x)", "sin(x)/cos(x)", PASS)),
        *(("2^(3x)", "8^x", PASS), ("atan(1)", "pi/4", PASS)),
        # signs, coefficients, exponents
        *(("(x + 1)^2", "x^2 + 2x - 1", FAIL), ("(x + 1)^2", "x^2 + 1", FAIL), ("(x - 1)^2", "x^2 - 2x - 1", FAIL)),
        *(("-(x - 1)", "-x - 1", FAIL), ("x/(x + 1)", "1 + x", FAIL), ("(x + y)^2", "x^2 + y^2", FAIL)),
        *(("sin(2x)", "2 sin(x)", FAIL), ("1/(x + y)", "1/x + 1/y", FAIL), ("x^2 * x^3", "x^6", FAIL)),
        *(("2", "2.0001", FAIL), ("1/3", "0.333333333333333333", FAIL)),
        # branches of roots and logarithms
        *(("sqrt(x^2)", "x", FAIL), ("sqrt((x - 1000)^2)", "1000 - x", FAIL), ("log(x^2)", "2 log(x)", FAIL)),
        *(("2 log(x)", "log(x^2)", FAIL), ("asin(sin(x))", "x", FAIL), ("sqrt(x^2 + y^2)", "x + y", FAIL)),
        *(("log(x + y)", "log(x) + log(y)", FAIL), ("acos(x)", "1/cos(x)", FAIL)),
        # equal at some points only
        ("x*(x - 1)*(x - 2)", "0", FAIL),
        ("x^2", "x", FAIL),
        # no value, or one that cannot be worked out
        *(("1/0", "1/0", OPEN), ("1/(x - x)", "1/(x - x)", OPEN), ("log(-1 - x^2)", "log(-1 - x^2)", OPEN)),
        *(("9^9^9", "9^9^9", OPEN), ("1", "1/0", FAIL), ("2*x", "2*x/(y - y)", FAIL)),
        ("sin(x)", "sin(x) + 10^-40", OPEN),
        # no formulas
        *(("x + 1", "x + ", "malformed"), ("x + 1", "x + 1 = 0 or so", "malformed")),
        *(("x + 1", "__import__('os').system('touch')", "malformed"), ("x + 1", "x < 1", "malformed")),
        *(("x + 1", "", "malformed"), ("x + 1", "True", FAIL), ("1", "2 == 2", FAIL)),
    ],
)
def test_equivalent_formulas(formula: str, claim: str, outcome: str) -> None:
    """A formula of the same value passes in whatever form, another one fails, and what is neither is undecided."""
    verdict = judge(Equivalent(formula), claim)
    if outcome == "malformed":
        assert (verdict.outcome, verdict.kind) == ("fail", "malformed")
    else:
        assert verdict.outcome == outcome, verdict.reason
    assert verdict.outcome != "pass" or verdict.strength == "proved"


@pytest.mark.parametrize(
    ("equation", "claim", "outcome"),
    [
        *(("y = 2x + 1", "2x - y + 1 = 0", PASS), ("y = 2x + 1", "-4x + 2y = 2", PASS), ("n = 2", "2 = n", PASS)),
        *(("x/2 = 1", "x = 2", PASS), ("sin(x) = y", "2y = 2 sin(x)", PASS), ("n = 2", "m = 2", FAIL)),
        *(("3*x - y + 13 = 0", "3*x + 4*y + 14 = 0", FAIL), ("y = 2x + 1", "y = 2x - 1", FAIL)),
        *(("y = 2x + 1", "y = 1", FAIL), ("y = x^2", "y*x = x^3", FAIL), ("y = sin(x)", "y = cos(x)", FAIL)),
        *(("x = 1", "0 = 0", FAIL), ("0 = 0", "x = 1", FAIL), ("0 = 0", "1 = 1", OPEN)),
        *(("y = 2x + 1", "2x + 1", "malformed"), ("y = 2x + 1", "y = 2x + 1 = 3", "malformed")),
    ],
)
def test_equations_are_compared_with_both_sides(equation: str, claim: str, outcome: str) -> None:
    """Equations are the same up to a number that both sides are multiplied with, and never by one side only."""
    verdict = judge(Equivalent(equation), claim)
    assert (verdict.kind if outcome == "malformed" else verdict.outcome) == outcome, verdict.reason


@all_rows(
    "formula, form, claim, outcome",
    [
        ("(x + 1)^2", "expanded", "x^2 + 2x + 1", PASS),
        *(("(x + 1)^2", "expanded", "(x + 1)^2 = x^2 + 2x + 1", PASS), ("(x + 1)^2", "expanded", "(x + 1)^2", FAIL)),
        *(("(x + 1)^2", "expanded", "x^2 + x + x + 1", FAIL), ("(x + 1)^2", "expanded", "x*(x + 2) + 1", FAIL)),
        *(("(x + 1)^2", "expanded", "x*x + 2x + 1", FAIL), ("(x + 1)^2", "expanded", "(x + 1)^2 = x^2 + 1", FAIL)),
        ("(2x)^2/4 + sin(x)", "expanded", "x^2 + sin(x)", PASS),
        *(("x^2 - 5x + 6", "factored", "(x - 2)(x - 3)", PASS), ("x^2 - 5x + 6", "factored", "x^2 - 5x + 6", FAIL)),
        *(("2x^2 - 2", "factored", "2(x - 1)(x + 1)", PASS), ("2x^2 - 2", "factored", "(2x - 2)(x + 1)", FAIL)),
        *(("2x^2 - 2", "factored", "2(x^2 - 1)", FAIL), ("x^2 + 1", "factored", "x^2 + 1", PASS)),
        *(("x^3 - x", "factored", "x(x - 1)(x + 1)", PASS), ("x^2 - y^2", "factored", "(x - y)(x + y)", PASS)),
        *(("2*3 + 4", "number", "10", PASS), ("2*3 + 4", "number", "6 + 4", FAIL), ("3/4 + 1", "number", "7/4", PASS)),
        ("(x^2 - 1)/(x - 1)", "simplified", "x + 1", PASS),
        ("(x^2 - 1)/(x - 1)", "simplified", "(x^2 - 1)/(x - 1)", FAIL),
        *(("sin(x)^2 + cos(x)^2", "simplified", "1", PASS), ("2x + 3x", "simplified", "5x", PASS)),
        ("2x + 3x", "simplified", "2x + 3x", FAIL),
    ],
)
def test_a_form_is_asked_for(formula: str, form: Any, claim: str, outcome: str) -> None:
    """A right value that is not in the form asked for fails, above all the question itself."""
    assert judge(Equivalent(formula, form=form), claim).outcome == outcome


@pytest.mark.parametrize(
    ("formula", "claims"),
    [
        *(("6/4", "6/4, 12/8, 1 + 1/2, 6/(2*2)"), ("4/2", "4/2, 2/1"), ("3/2*x", "6x/4, 6/4*x, 3x/2/1")),
        *(("x/3 + 1/6", "(4x + 2)/12, x/3 + 2/12"), ("(3*x)/(2*y)", "6x/(4y)"), ("3*x/4", "1.5x/2")),
        *(("x + 3/2", "x + 1 + 1/2"), ("sqrt(8)", "sqrt(8), sqrt(4*2), 8^(1/2), 8^0.5"), ("sqrt(3)", "sqrt(12)/2")),
        ("cbrt(16)", "cbrt(16), 16^(1/3)"),
    ],
)
def test_what_is_simplified_has_no_numbers_left_to_work_out(formula: str, claims: str) -> None:
    """Neither a fraction that can be reduced is simplified, nor numbers that can be put together or a root to draw."""
    for claim in claims.split(", "):
        assert judge(Equivalent(formula, form="simplified"), claim).kind == "unfaithful_work", claim


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


@pytest.mark.parametrize(
    ("formula", "claim", "outcome"),
    [
        *(("2x", "x^2", PASS), ("2x", "x^2 + C", PASS), ("2x", "x^2 + 7", PASS), ("2x", "F(x) = x^2 + C", PASS)),
        *(("1/x", "log(x)", PASS), ("1/x", "ln|x| + C", PASS), ("x*exp(x)", "(x - 1) e^x + C", PASS)),
        *(("cos(x)", "sin(x)", PASS), ("1/(1 + x^2)", "arctan(x) + C", PASS), ("2x", "x^2 + C x", FAIL)),
        *(("2x", "2x^2", FAIL), ("cos(x)", "-sin(x)", FAIL), ("x^2", "x^3", FAIL)),
        ("2x/(1 + x^2)", "log(-1 - x^2)", OPEN),
        ("sqrt(x)^2", "x^2/2 + C", PASS),
        ("sqrt(x)^2", "x^2 + C", FAIL),
        ("1 + 0*x", "sqrt(x)^2 + C", FAIL),
        ("x*0/abs(x*0)", "C", OPEN),
    ],
)
def test_antiderivatives(formula: str, claim: str, outcome: str) -> None:
    """An antiderivative is right up to a constant, where the formula has a value; it may have one elsewhere, too."""
    assert judge(Integral(formula, "x"), claim).outcome == outcome


@pytest.mark.parametrize(
    ("claim", "outcome"),
    [("x^2 + C", PASS), ("x^2 + c_1", PASS), ("x^2", FAIL), ("x^2 + 7", FAIL), ("x^2 + C - C", FAIL)],
)
def test_a_constant_of_integration_can_be_required(claim: str, outcome: str) -> None:
    """Where the constant is required, an antiderivative without one fails."""
    assert judge(Integral("2x", "x", constant="required"), claim).outcome == outcome


@pytest.mark.parametrize(
    ("formula", "low", "high", "claim", "outcome"),
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


@pytest.mark.parametrize(
    ("formula", "values", "claim", "outcome"),
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


@all_rows(
    "equation, claim, outcome",
    [
        *(("x^2 - 5*x + 6 = 0", "2, 3", PASS), ("x^2 - 5*x + 6 = 0", "x = 3 or x = 2", PASS)),
        *(("x^2 - 5*x + 6 = 0", "{2, 3}", PASS), ("x^2 - 5*x + 6 = 0", "x_1 = 2, x_2 = 3", PASS)),
        *(("x^2 - 5*x + 6 = 0", "2", FAIL), ("x^2 - 5*x + 6 = 0", "2, 3, 4", FAIL)),
        *(("x^2 - 5*x + 6 = 0", "-2, -3", FAIL), ("x^2 - 5*x + 6 = 0", "2, 2", FAIL)),
        *(("x^2 - 5*x + 6 = 0", "2, 3, 4/2", FAIL), ("x^2 - 5*x + 6 = 0", "no solution", FAIL)),
        *(("x^2 - 5*x + 6 = 0", "y = 2, y = 3", "malformed"), ("x^2 - 5*x + 6 = 0", "x^2 - 5x + 6 = 0", "malformed")),
        *(("x^2 - 5*x + 6 = 0", "x", FAIL), ("x^2 = 9", "x = ±3", PASS), ("x^2 = 9", "3", FAIL)),
        *(("x^2 = 2", "±sqrt(2)", PASS), ("x^2 = 2", "±1.41421356", FAIL)),
        *(("x^2 - 2x - 1 = 0", "x = 1 ± sqrt(2)", PASS), ("x^2 - 2x - 1 = 0", "1 - sqrt(2), 1 + sqrt(2)", PASS)),
        *(("x^2 - 2x - 1 = 0", "1 + sqrt(2)", FAIL), ("x^2 + 1 = 0", "no solution", PASS)),
        *(("x^2 + 1 = 0", "x = ±1", FAIL), ("x^2 - 2x + 1 = 0", "1", PASS), ("x^2 - 2x + 1 = 0", "1, 1", FAIL)),
        *(("x^3 - x = 0", "-1, 0, 1", PASS), ("x^3 - x = 0", "-1, 1", FAIL), ("(x^2 - 1)/(x - 1) = 0", "-1", PASS)),
        *(("(x^2 - 1)/(x - 1) = 0", "-1, 1", FAIL), ("1/x = 0", "none", PASS), ("|x - 3| = 5", "-2, 8", PASS)),
        *(("|x - 3| = 5", "8", FAIL), ("|x| = -1", "no solution", PASS), ("|x| + |x - 1| = 3", "-1, 2", PASS)),
        *(("x = x", "all real numbers", PASS), ("x^2 = x", "all real numbers", FAIL), ("x = x", "0", FAIL)),
        *(("sqrt(x + 3) = x - 3", "6", PASS), ("sqrt(x + 3) = x - 3", "1, 6", FAIL), ("exp(x) = 2", "ln 2", PASS)),
        *(("exp(x) = -1", "no solution", PASS), ("2^x = 8", "x = 3", PASS), ("sin(x) = 0", "0", OPEN)),
        *(("x^3 = 2", "cbrt(2)", PASS), ("x^2 - x - 1 = 0", "(1 + sqrt(5))/2, (1 - sqrt(5))/2", PASS)),
    ],
)
def test_solutions_are_compared_as_whole_sets(equation: str, claim: str, outcome: str) -> None:
    """Every real solution has to be there, once, and nothing else."""
    verdict = judge(Solves(equation, "x"), claim)
    assert (verdict.kind if outcome == "malformed" else verdict.outcome) == outcome, verdict.reason


@pytest.mark.parametrize(
    ("claim", "outcome"),
    [("1728, 1331", PASS), ("1728", FAIL), ("1728, 1331, 9", FAIL), ("1331 and 1728", PASS), ("1331,1728", PASS)],
)
def test_multi_part_answers_are_whole_sets(claim: str, outcome: str) -> None:
    """Part of an answer, and an answer with something more, are wrong."""
    assert judge(Solves("(x - 1331)*(x - 1728) = 0", "x"), claim).outcome == outcome


@pytest.mark.parametrize(
    ("equation", "claim", "outcome"),
    [
        *(("a*x = b", "b/a", PASS), ("a*x = b", "a/b", FAIL), ("x^2 = a", "±sqrt(a)", PASS)),
        *(("x^2 = a", "sqrt(a)", OPEN), ("x^2 - (a + b)*x + a*b = 0", "a, b", PASS)),
        *(("x^2 - (a + b)*x + a*b = 0", "a", OPEN), ("x^2 - (a + b)*x + a*b = 0", "-a, -b", FAIL)),
        ("x^2 - 2*a*x + a^2 = 0", "a, a", FAIL),
    ],
)
def test_solutions_with_other_symbols(equation: str, claim: str, outcome: str) -> None:
    """With other symbols there have to be as many solutions as the degree says."""
    assert judge(Solves(equation, "x"), claim).outcome == outcome


def test_one_solution_can_be_enough() -> None:
    """Where not all solutions are asked for, one is enough, a wrong one is none, and others could be right too."""
    check = Solves("x^2 - 5*x + 6 = 0", "x", all=False)
    verdict = judge(check, "2")
    assert (verdict.outcome, verdict.strength) == ("pass", "constrained")
    assert judge(check, "2, 4").outcome == "fail"
    assert judge(check, "no solution").outcome == "fail"
    assert judge(Solves("sin(x) = 0", "x", all=False), "pi").outcome == "pass"


def test_the_order_of_solutions_can_matter() -> None:
    """Where solutions have to be in ascending order, others fail."""
    check = Solves("x^2 - 2x - 1 = 0", "x", ordered=True)
    assert judge(check, "1 - sqrt(2), 1 + sqrt(2)").outcome == "pass"
    assert judge(check, "1 + sqrt(2), 1 - sqrt(2)").outcome == "fail"


@pytest.mark.parametrize(
    ("equations", "claim", "outcome"),
    [
        *((["x + y = 3", "x - y = 1"], "x = 2, y = 1", PASS), (["x + y = 3", "x - y = 1"], "(2, 1)", PASS)),
        *((["x + y = 3", "x - y = 1"], "y = 1 and x = 2", PASS), (["x + y = 3", "x - y = 1"], "x = 1, y = 2", FAIL)),
        *((["x + y = 3", "x - y = 1"], "x = 2", "malformed"), (["x + y = 3", "x - y = 1"], "no solution", FAIL)),
        *((["x + y = 3", "x + y = 4"], "no solution", PASS), (["x + y = 3", "2x + 2y = 6"], "x = 1, y = 2", OPEN)),
        *((["x = 1", "x = 2", "y = 1"], "no solution", PASS), (["x*y = 2", "x + y = 3"], "(1, 2) or (2, 1)", OPEN)),
        (["x*y = 2", "x + y = 3"], "(1, 3)", FAIL),
    ],
)
def test_systems(equations: list[str], claim: str, outcome: str) -> None:
    """A solution of a system satisfies every equation."""
    verdict = judge(SolvesSystem(equations, ["x", "y"]), claim)
    assert (verdict.kind if outcome == "malformed" else verdict.outcome) == outcome, verdict.reason


@all_rows(
    "inequality, claim, outcome",
    [
        *(("2x - 1 < 5", "x < 3", PASS), ("2x - 1 < 5", "3 > x", PASS), ("2x - 1 < 5", "(-∞, 3)", PASS)),
        *(("2x - 1 < 5", "x <= 3", FAIL), ("2x - 1 < 5", "x > 3", FAIL), ("2x - 1 < 5", "x < 2", FAIL)),
        *(("-3x <= 9", "x >= -3", PASS), ("-3x <= 9", "x <= -3", FAIL), ("3x > 1", "x > 1/3", PASS)),
        *(("3x > 1", "x > 0.333333", FAIL), ("x^2 > 4", "x < -2 or x > 2", PASS)),
        *(("x^2 > 4", "(-∞, -2) ∪ (2, ∞)", PASS), ("x^2 > 4", "x > 2", FAIL), ("x^2 > 4", "-2 < x < 2", FAIL)),
        *(("x^2 > 4", "x > 2 and x < -2", FAIL), ("x^2 <= 2", "-sqrt(2) <= x <= sqrt(2)", PASS)),
        *(("x^2 <= 2", "[-sqrt(2), sqrt(2)]", PASS), ("x^2 <= 2", "-sqrt(2) < x < sqrt(2)", FAIL)),
        ("x^2 <= 2", "-1.4142135623730951 <= x <= 1.4142135623730951", FAIL),
        *(("x^2 >= 0", "all real numbers", PASS), ("x^2 > 0", "all real numbers", FAIL), ("x^2 > 0", "x != 0", PASS)),
        *(("x^2 > 0", "x < 0 or x > 0", PASS), ("x^2 < 0", "no solution", PASS), ("x^2 <= 0", "x = 0", PASS)),
        *(("x^2 <= 0", "no solution", FAIL), ("1/x > 0", "x > 0", PASS), ("1/x > 1", "0 < x < 1", PASS)),
        *(("1/x > 1", "x < 1", FAIL), ("(x - 1)/(x + 2) >= 0", "x < -2 or x >= 1", PASS)),
        *(("(x - 1)/(x + 2) >= 0", "x <= -2 or x >= 1", FAIL), ("|x - 3| < 5", "-2 < x < 8", PASS)),
        *(("|x - 3| < 5", "x < 8", FAIL), ("|x| >= 2", "(-∞, -2] ∪ [2, ∞)", PASS)),
        *(("1 < x^2 <= 4", "-2 <= x < -1 or 1 < x <= 2", PASS), ("1 < x^2 <= 4", "-2 <= x <= 2", FAIL)),
        *(("(x - 1)^2*(x - 3) <= 0", "x <= 3", PASS), ("(x - 1)^2*(x - 3) < 0", "x < 3 and x != 1", PASS)),
        *(("(x - 1)^2*(x - 3) < 0", "x < 3", FAIL), ("x^2 > 4", "x < -2, x > 2", "malformed")),
        *(("x^2 > 4", "y > 2", "malformed"), ("x < 5", "x < 5 or x < 3", PASS), ("exp(x) > 1", "x > 0", OPEN)),
        ("x > 5", "x > a", FAIL),
    ],
)
def test_inequalities(inequality: str, claim: str, outcome: str) -> None:
    """A range passes if it is the one in which the inequality holds, ends included."""
    verdict = judge(SolvesInequality(inequality, "x"), claim)
    assert (verdict.kind if outcome == "malformed" else verdict.outcome) == outcome, verdict.reason


A, B = "[[1, 2], [3, 4]]", "[[0, 1], [1, 0]]"


@pytest.mark.parametrize(
    ("matrix", "claim", "outcome"),
    [
        *(("A*B", "[[2, 1], [4, 3]]", PASS), ("A*B", "[[3, 4], [1, 2]]", FAIL), ("B*A", "[[3, 4], [1, 2]]", PASS)),
        *(("A + 2*B", "[[1, 4], [5, 4]]", PASS), ("A - B", "[[1, 1], [2, 4]]", PASS)),
        *(("A^T", "[[1, 3], [2, 4]]", PASS), ("transpose(A)", "[[1, 2], [3, 4]]", FAIL)),
        *(("A^2", "[[7, 10], [15, 22]]", PASS), ("A^2", "[[1, 4], [9, 16]]", FAIL)),
        *(("inverse(A)", "[[-2, 1], [3/2, -1/2]]", PASS), ("A^-1", "[[-2, 1], [1.5, -0.5]]", PASS)),
        *(("inverse(A)", "[[1, 1/2], [1/3, 1/4]]", FAIL), ("det(A)", "-2", PASS), ("det(A)", "10", FAIL)),
        *(("trace(A)*A", "[[5, 10], [15, 20]]", PASS), ("A", "[[1, 2, 3], [3, 4, 5]]", FAIL)),
        *(("A", "[[1, 2], [3]]", "malformed"), ("A", "1, 2, 3, 4", "malformed")),
        ("A", r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", PASS),
    ],
)
def test_matrices(matrix: str, claim: str, outcome: str) -> None:
    """Matrices are compared entry by entry, and their products in order."""
    verdict = judge(SameMatrix(matrix, reads=("A", "B")), claim, A=A, B=B)
    assert (verdict.kind if outcome == "malformed" else verdict.outcome) == outcome, verdict.reason


def test_a_matrix_of_formulas() -> None:
    """Entries may be formulas, equal in any form."""
    check = SameMatrix("[[(x + 1)^2, 0], [1, sin(x)^2 + cos(x)^2]]")
    assert judge(check, "[[x^2 + 2x + 1, 0], [1, 1]]").outcome == "pass"
    assert judge(check, "[[x^2 + 1, 0], [1, 1]]").outcome == "fail"


@all_rows(
    "check, claim, reads, outcome",
    [
        (Derivative("f", "x"), "2x", {"f": "x^2"}, PASS),
        (Derivative("f", "x"), "2x", {"f": "x^3"}, FAIL),
        (Derivative("f", "x"), "6x", {"f": "a*x^2", "a": 3}, PASS),
        (Derivative("f", "x"), "2 a x", {"f": "a*x^2", "a": 3}, PASS),
        (Derivative("f", "x"), "2x", {"f": "x^2", "x": 3}, PASS),
        (Derivative("f", "x"), "f", {"f": "e^x"}, FAIL),
        (Derivative("f", "x"), "1", {"f": "x = 1"}, OPEN),
        (Derivative("f", "x"), "1", {"f": "no formula at all"}, OPEN),
        (Derivative("f*g", "x", reads=("f", "g")), "3x^2", {"f": "x", "g": "x^2"}, PASS),
        (Equivalent("rate*x"), "x/4", {"rate": Fraction(1, 4)}, PASS),
        (Equivalent("rate*x"), "x/2", {"rate": Fraction(1, 4)}, FAIL),
        (Equivalent("E*I + S"), "11", {"E": 4, "I": 2, "S": 3}, PASS),
        (Equivalent("N*Q*beta"), "30", {"N": 5, "Q": 1, "beta": 6}, PASS),
        (Equivalent("gamma + lambda"), "15", {"gamma": 7, "lambda": 8}, PASS),
        (Equivalent("e*2"), "6", {"e": 3}, PASS),
        (Equivalent("e*2"), "2e", {"e": 3}, PASS),
        (Substituted("f", {"x": "a"}, reads=("f", "a")), "16", {"f": "x^2", "a": 4}, PASS),
        (Solves("q", "x"), "2, 3", {"q": "x^2 - 5x + 6 = 0"}, PASS),
        (Solves("q", "x"), "2", {"q": "x^2 - 5x + 6 = 0"}, FAIL),
        (Solves("q", "x"), "2", {"q": "x^2 - 5x + 6"}, OPEN),
        (SolvesInequality("q", "x"), "x < 3", {"q": "2x - 1 < 5"}, PASS),
        (Equivalent("q"), "2y - 4x = 2", {"q": "y = 2x + 1"}, PASS),
        (Equivalent("f"), "x", {"f": True}, OPEN),
    ],
)
def test_names_that_the_step_reads_stand_for_their_values(
    check: SymbolicCheck, claim: str, reads: dict[str, Value], outcome: str
) -> None:
    """A variable that the step reads is its value, a number or a formula; every other name is a symbol."""
    assert judge(check, claim, **cast(Any, reads)).outcome == outcome


def test_symbols_can_be_declared() -> None:
    """``e`` is Euler's number unless it is declared as a symbol; ``E`` and ``I`` are symbols."""
    assert judge(Equivalent("e^x"), "exp(x)").outcome == "pass"
    assert judge(Equivalent("e^x", symbols=("e",)), "exp(x)").outcome != "pass"
    assert judge(Equivalent("2*e", symbols=("e",)), "e + e").outcome == "pass"
    assert judge(Equivalent("E^2 + I^2"), "E^2 - 1").outcome == "fail"


def test_assumptions_about_symbols() -> None:
    """What does not hold for all real numbers may hold for positive or whole ones, where that is declared."""
    assert judge(Equivalent("log(x^2)", assume={"x": "positive"}), "2 log(x)").outcome == "pass"
    assert judge(Equivalent("sqrt(x^2)", assume={"x": "positive"}), "x").outcome == "pass"
    assert judge(Equivalent("(-1)^(2*n)", assume={"n": "integer"}), "1").outcome == "pass"
    assert judge(Equivalent("(-1)^n", assume={"n": "integer"}), "1").outcome == "fail"
    assert judge(Equivalent("(-1)^n", assume={"n": "natural"}), "-1").outcome == "fail"


def test_a_number_is_compared_too() -> None:
    """The value of a step may be of a numeric type."""
    assert judge(Integral("x^2", "x", low="0", high="3"), "9", type="number").outcome == "pass"
    assert judge(Integral("x^2", "x", low="0", high="3"), "8.99", type="number").outcome == "fail"


def test_the_steps_own_name_may_stand_in_front() -> None:
    """``answer = x + 1`` is a claim of the step `answer`; another name is no label."""
    assert judge(Equivalent("1 + x"), "answer = x + 1").outcome == "pass"
    assert judge(Equivalent("1 + x"), "other = x + 1").outcome == "fail"
    assert judge(SolvesInequality("x^2 <= 0", "x"), "x = 0", step_id="x").outcome == "pass"
    assert judge(SolvesSystem(["x + y = 3", "x - y = 1"], ["x", "y"]), "x = 2, y = 1", step_id="x").outcome == "pass"


@all_rows(
    "make",
    [
        lambda: Equivalent("x +"),
        lambda: Equivalent("x < 1"),
        lambda: Equivalent("x", form="nice"),  # type: ignore[arg-type]
        lambda: Equivalent("y = x", form="expanded"),
        lambda: Equivalent("x + 1", assume={"x": "complex"}),  # type: ignore[dict-item]
        lambda: Equivalent("x + 1", symbols=("sin",)),
        lambda: Equivalent("x + 1", reads="f"),  # type: ignore[arg-type]
        *(lambda: Equivalent("x + 1", seconds=0), lambda: Equivalent("x + 1", seconds=float("nan"))),
        lambda: Equivalent("x + 1", seconds=10_000),
        lambda: Equivalent(3),  # type: ignore[arg-type]
        *(lambda: Derivative("2*f", "x"), lambda: Derivative("x^2", "sin"), lambda: Derivative("x^2", "x", order=0)),
        *(lambda: Derivative("x = 1", "x"), lambda: Integral("x^2", "x", low="0")),
        lambda: Integral("x^2", "x", low="0", high="x"),
        lambda: Integral("x^2", "x", low="0", high="1", constant="required"),
        lambda: Integral("x^2", "x", constant="C"),  # type: ignore[arg-type]
        *(lambda: Substituted("x^2", {}), lambda: Substituted("x^2", {"y": "1"})),
        *(lambda: Substituted("x^2", {"x": "1 +"}), lambda: Solves("x^2", "x"), lambda: Solves("x < 2", "x")),
        *(lambda: Solves("y = 2", "x"), lambda: Solves("x = y = 2", "x"), lambda: SolvesSystem([], ["x"])),
        *(lambda: SolvesSystem(["x = 1"], ["x", "x"]), lambda: SolvesSystem(["x = 1"], ["x", "y"])),
        *(lambda: SolvesSystem("x = 1", ["x"]), lambda: SolvesInequality("x = 2", "x")),
        *(lambda: SolvesInequality("x^2", "x"), lambda: SameMatrix("A*B"), lambda: SameMatrix("[[1, 2], [3]]")),
    ],
)
def test_bad_configuration_is_refused_when_the_check_is_made(make: Callable[[], object]) -> None:
    """A check that could not work is refused with a `ConfigError`."""
    with pytest.raises(ConfigError):
        make()


def test_a_check_names_what_it_reads() -> None:
    """`reads` holds what is listed, and a text that is nothing but a name."""
    assert Derivative("f", "x").reads == ("f",)
    assert Derivative("x^2", "x").reads == ()
    assert Equivalent("f*g", reads=["g", "f"]).reads == ("g", "f")  # type: ignore[arg-type]
    assert Integral("f", "x", low="a", high="3").reads == ("f",)
    assert SolvesSystem(["p", "q"], ["x", "y"]).reads == ("p", "q")
    with pytest.raises(ProcedureError, match="needs 'f'"):
        judge(Derivative("f", "x"), "0", g="x")


def test_checks_are_values() -> None:
    """Checks are equal if they ask the same, can be put in sets, and cannot be changed."""
    one = Equivalent("x + 1", assume={"x": "positive"})
    assert one == Equivalent("x + 1", assume=(("x", "positive"),))
    assert one != Equivalent("x + 1")
    assert len({one, Equivalent("x + 1", assume={"x": "positive"})}) == 1
    assert "x + 1" in repr(one)
    with pytest.raises(FrozenInstanceError):
        one.formula = "x"  # type: ignore[misc]


def test_verdicts_are_reproducible() -> None:
    """The points at which formulas are looked at follow from the formulas, so that reasons are the same each time."""
    first = judge(Equivalent("sin(x)"), "cos(x)")
    random.seed(7)
    assert judge(Equivalent("sin(x)"), "cos(x)") == first


@all_rows(
    "claim",
    [
        *("(" * 3000, "(" * 900 + ")" * 900, "-" * 1900 + "x", "x" + "^x" * 900, "x" + "+x" * 900, "1" * 1900),
        *("x^" + "9" * 250, "((9**9)**9999)**9999", "(13/10)**6472416997", "factorial(10**6)", "(x+1)^900000"),
        *("(a+b+c+d+x)^200", "sin(" * 29 + "x" + ")" * 29, "10^10^10^10", "|" * 1000, "\\frac{" * 300),
        *("{" * 1000 + "," * 900, "1," * 900, "x = ±" * 300, "or " * 600, "\ud800", "x\x00", "²³" * 500),
        *("√" * 900 + "2", "." * 300_000, "x = " * 100_000, "$" * 100_000, " " * 300_000),
    ],
)
def test_foreign_text_never_raises_or_hangs(claim: str) -> None:
    """Whatever is claimed, a check answers soon, and never with a pass."""
    checks: list[SymbolicCheck] = [
        Equivalent("x^2 + 1", form="expanded", seconds=1),
        Equivalent("y = x", seconds=1),
        Derivative("x^3", "x", seconds=1),
        Integral("x^3", "x", seconds=1),
        Integral("sin(x)", "x", low="0", high="1", seconds=1),
        Solves("x^3 - x = 0", "x", seconds=1),
        SolvesSystem(["x + y = 1", "x - y = 0"], ["x", "y"], seconds=1),
        SolvesInequality("x^2 > 1", "x", seconds=1),
        SameMatrix("[[1, 2]]", seconds=1),
    ]
    for check in checks:
        assert judge(check, claim).outcome in ("fail", "undecided")


def test_a_check_that_takes_too_long_is_undecided_and_the_next_one_is_not_affected() -> None:
    """A limit of time ends one check and nothing else; what is only rewritten needs none."""
    rewritten_sign = judge(Equivalent("sin(tan(-4*x**2 - 3)**3)"), "-sin(tan(4*x**2 + 3)**3)")
    assert rewritten_sign.outcome == "pass"
    hard = "cosh((-2)*pi*tan(y))"
    verdict = judge(Equivalent(hard, seconds=0.2), "e^log(cosh((((-2)*pi*tan(y))^2)^0.5))")
    assert verdict.outcome == "undecided"
    assert "within" in verdict.reason
    assert judge(Equivalent("sin(x)^2 + cos(x)^2"), "1").outcome == "pass"


LEAVES: st.SearchStrategy[Formula] = st.one_of(
    st.integers(-5, 5).map(Number), st.sampled_from([Name("x"), Name("y")]), st.just(Number(Fraction(1, 2)))
)


def _grown(inner: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    pair = st.tuples(inner, inner)
    return st.one_of(
        pair.map(Sum),
        pair.map(Product),
        st.builds(lambda base, power: PowerOf(base, Number(power)), inner, st.integers(0, 3)),
        st.builds(CallOf, st.sampled_from(["sin", "cos", "atan", "abs"]), inner),
        st.builds(lambda over, under: quotient(over, Sum((Number(3), PowerOf(under, Number(2))))), inner, inner),
    )


FORMULAS = st.recursive(LEAVES, _grown, max_leaves=7)


@st.composite
def rewritten(draw: st.DrawFn, tree: Formula) -> Formula:
    """A formula of the same value in another form."""
    match tree:
        case Sum(terms):
            parts = [draw(rewritten(term)) for term in draw(st.permutations(terms))]
            extra = draw(LEAVES)
            return Sum((*parts, extra, negative(extra))) if draw(st.booleans()) else Sum(tuple(parts))
        case Product((Sum(terms), factor)) if draw(st.booleans()):
            return Sum(tuple(Product((term, factor)) for term in terms))
        case Product(factors):
            parts = [draw(rewritten(factor)) for factor in draw(st.permutations(factors))]
            return negative(negative(Product(tuple(parts))))
        case PowerOf(base, Number(2)) if draw(st.booleans()):
            return Product((base, draw(rewritten(base))))
        case PowerOf(base, exponent):
            return PowerOf(draw(rewritten(base)), exponent)
        case CallOf("sin" | "atan" as function, argument):
            return negative(CallOf(function, negative(draw(rewritten(argument)))))
        case CallOf(function, argument):
            return CallOf(function, draw(rewritten(argument)))
        case _:
            return draw(st.sampled_from([tree, Sum((tree, Number(0))), Product((Number(1), tree))]))


@pytest.mark.slow
@settings(max_examples=150)
@given(st.data())
def test_a_rewritten_formula_never_fails(data: st.DataObject) -> None:
    """A formula in another form passes or is undecided."""
    tree = data.draw(FORMULAS)
    other = data.draw(rewritten(tree))
    check = Equivalent(f"({format_formula(tree)})", seconds=1)
    assert judge(check, format_formula(other)).outcome != "fail"


@settings(max_examples=150)
@given(FORMULAS, st.sampled_from(["x", "1", "x*y", "10^-9", "sin(x)", "x^2/7", "x^3*(x - 1)"]), st.booleans())
def test_a_formula_and_something_more_never_passes(tree: Formula, term: str, minus: bool) -> None:
    """A formula with a term more, however small, does not pass."""
    text = format_formula(tree)
    verdict = judge(Equivalent(f"({text})", seconds=1), f"({text}) {'-' if minus else '+'} {term}")
    assert verdict.outcome != "pass"


@settings(max_examples=100)
@given(FORMULAS)
def test_a_formula_as_text_is_read_as_the_same_value(tree: Formula) -> None:
    """What is printed is read as a formula of the same value."""
    assert (
        judge(Equivalent(f"({format_formula(tree)})"), format_formula(parse_formula(format_formula(tree)))).outcome
        != "fail"
    )


@settings(max_examples=100)
@given(FORMULAS)
def test_an_antiderivative_of_the_derivative_is_the_formula(tree: Formula) -> None:
    """Every formula is an antiderivative of its derivative, and with another term it is none."""
    slope = format_formula(differentiate(tree, "x"))
    check = Integral(f"({slope}) + 0*x", "x", seconds=1)
    assert judge(check, f"{format_formula(tree)} + C").outcome != "fail"
    assert judge(check, f"{format_formula(tree)} + x").outcome != "pass"


@settings(max_examples=100)
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=4), st.integers(-9, 9))
def test_solutions_of_random_polynomials(roots: list[int], other: int) -> None:
    """The roots of a product of linear factors pass as a set, without one of them or with another one they fail."""
    equation = "*".join(f"(x - ({root}))" for root in roots) + " = 0"
    distinct = sorted(set(roots))
    check = Solves(equation, "x")
    assert judge(check, ", ".join(map(str, distinct))).outcome == "pass"
    assert judge(check, ", ".join(map(str, distinct[1:])) or "none").outcome == "fail"
    if other not in distinct:
        assert judge(check, ", ".join(map(str, [*distinct, other]))).outcome == "fail"


@settings(max_examples=100)
@given(
    st.lists(st.fractions(-4, 4, max_denominator=3), min_size=1, max_size=3),
    st.sampled_from(["<", "<=", ">", ">="]),
    st.lists(st.sampled_from(["<", "<=", ">", ">="]), min_size=1, max_size=3),
    st.data(),
)
def test_ranges_of_random_polynomials(
    roots: list[Fraction], operator: str, signs: list[str], data: st.DataObject
) -> None:
    """A range passes exactly if it and the inequality agree on a fine grid."""
    left = "*".join(f"(x - ({root}))" for root in roots)
    bounds = [data.draw(st.sampled_from(roots)) for _ in signs]
    joined = data.draw(st.sampled_from([" and ", " or "]))
    claim = joined.join(f"x {sign} {bound}" for sign, bound in zip(signs, bounds, strict=True))

    def value(at: Fraction) -> Fraction:
        found = Fraction(1)
        for root in roots:
            found *= at - root
        return found

    def satisfied(sign: str, difference: Fraction) -> bool:
        return {"<": difference < 0, "<=": difference <= 0, ">": difference > 0, ">=": difference >= 0}[sign]

    agree = True
    for step in range(-60, 61):
        at = Fraction(step, 12)
        parts = [satisfied(sign, at - bound) for sign, bound in zip(signs, bounds, strict=True)]
        held = all(parts) if joined == " and " else any(parts)
        agree &= held == satisfied(operator, value(at))
    outcome = judge(SolvesInequality(f"{left} {operator} 0", "x"), claim).outcome
    assert outcome == ("pass" if agree else "fail")


def test_a_guarded_run_is_verified_by_symbolic_checks() -> None:
    """In a run a wrong formula is asked for again, and a later step is judged by the formula that was accepted."""
    procedure = Procedure(
        [
            Step("slope", instruction="Differentiate f by x.", reads=["f"], checks=[Derivative("f", "x")]),
            Step(
                "zeros",
                instruction="Where is the slope zero?",
                reads=["slope"],
                checks=[Solves("slope = 0", "x", reads=("slope",))],
            ),
        ],
        inputs=[Input("f", "text")],
    )
    answers = {"slope": ["3x^2", "3x^2 - 3"], "zeros": ["1", "-1, 1"]}

    def answered(request: Request) -> str:
        last = request.attempt > 1
        found = {step.id: answers[step.id][last] for step in request.steps[:1]}
        later = {step.id: answers[step.id][0] for step in request.steps[1:]}
        return json.dumps({name: {"work": "", "value": value} for name, value in (found | later).items()})

    result = Guard(ScriptedBackend(*[answered] * 6)).run(procedure, {"f": "x^3 - 3x"})
    assert result.status == "verified"
    assert result.values == {"f": "x^3 - 3x", "slope": "3x^2 - 3", "zeros": "-1, 1"}
    assert [(each.kind, each.step) for attempt in result.attempts for each in attempt.deviations] == [
        ("wrong_value", "slope"),
        ("wrong_value", "zeros"),
    ]


@pytest.mark.parametrize(
    ("formula", "written", "lost"),
    [
        ("nu + 1", r"\nu + 1", "u + 1"),
        ("2*nu", r"2\nu", "2u"),
        ("tau + 1", r"\tau + 1", "au + 1"),
        ("x + nu", r"x + \nu", "x + u"),
    ],
)
def test_a_latex_command_that_json_has_eaten_is_no_other_symbol(formula: str, written: str, lost: str) -> None:
    """A single backslash makes a line break or a tab of a command; what is left of it is never read as the formula."""
    right = Procedure([Step("t", instruction="Say it.", type="text", checks=[Equivalent(formula)])])
    wrong = Procedure([Step("t", instruction="Say it.", type="text", checks=[Equivalent(lost)])])
    raw = f'{{"t": {{"work": "w", "value": "{written}"}}}}'
    escaped = json.dumps({"t": {"work": "w", "value": written}})
    assert Guard(lambda _: escaped, repair=0).run(right).status == "verified"
    assert Guard(lambda _: raw, repair=0).run(wrong).status == "abstained"


def test_a_formula_of_several_lines_is_read() -> None:
    """A line break before a name that no command ends with is a blank."""
    assert judge(Equivalent("x + v"), "x +\nv").outcome == PASS
