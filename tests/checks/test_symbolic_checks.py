"""Symbolic checks: what passes is proved, what fails is refuted, and nothing wrong passes."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError
from fractions import Fraction
from typing import Any, cast

import pytest
from symbolic_harness import FAIL, OPEN, PASS, judge
from tables import all_rows

from stepguard import Guard, Input, Procedure
from stepguard.backends import Request
from stepguard.checks.formulas.base import SymbolicCheck
from stepguard.checks.formulas.equality import Derivative, Equivalent, Integral, Substituted
from stepguard.checks.formulas.solving import Solves, SolvesInequality, SolvesSystem
from stepguard.errors import ProcedureError
from stepguard.language.values import Value
from stepguard.procedure.steps import Step
from stepguard.testing import ScriptedBackend

pytestmark = pytest.mark.once


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
        *(("x*(x - 1)*(x - 2)", "0", FAIL), ("x^2", "x", FAIL)),
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


@all_rows(
    "equation, claim, outcome",
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
        *(("-3/4", "number", "-3/4", PASS), ("-3/4", "number", "-(3/4)", PASS), ("-3/4", "number", "-1*3/4", FAIL)),
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
        *(("nu + 1", r"\nu + 1", "u + 1"), ("2*nu", r"2\nu", "2u"), ("tau + 1", r"\tau + 1", "au + 1")),
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
