"""Symbolic checks on generated formulas and on foreign text: no right one fails, no wrong one passes."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from symbolic_harness import judge
from tables import all_rows

from stepguard.checks.formulas.base import SymbolicCheck
from stepguard.checks.formulas.equality import Derivative, Equivalent, Integral
from stepguard.checks.formulas.matrices import SameMatrix
from stepguard.checks.formulas.solving import Solves, SolvesInequality, SolvesSystem
from stepguard.formulas.calculus import differentiate
from stepguard.formulas.parsing import parse_formula
from stepguard.formulas.trees import CallOf, Formula, PowerOf, Product, Sum, format_formula, negative, quotient
from stepguard.language.expressions import Name, Number

pytestmark = pytest.mark.once


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


@pytest.mark.slow
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
@examples(150)
@given(st.data())
def test_a_rewritten_formula_never_fails(data: st.DataObject) -> None:
    """A formula in another form passes or is undecided."""
    tree = data.draw(FORMULAS)
    other = data.draw(rewritten(tree))
    check = Equivalent(f"({format_formula(tree)})", seconds=1)
    assert judge(check, format_formula(other)).outcome != "fail"


@examples(150)
@given(FORMULAS, st.sampled_from(["x", "1", "x*y", "10^-9", "sin(x)", "x^2/7", "x^3*(x - 1)"]), st.booleans())
def test_a_formula_and_something_more_never_passes(tree: Formula, term: str, minus: bool) -> None:
    """A formula with a term more, however small, does not pass."""
    text = format_formula(tree)
    verdict = judge(Equivalent(f"({text})", seconds=1), f"({text}) {'-' if minus else '+'} {term}")
    assert verdict.outcome != "pass"


@examples(100)
@given(FORMULAS)
def test_a_formula_as_text_is_read_as_the_same_value(tree: Formula) -> None:
    """What is printed is read as a formula of the same value."""
    assert (
        judge(Equivalent(f"({format_formula(tree)})"), format_formula(parse_formula(format_formula(tree)))).outcome
        != "fail"
    )


@examples(100)
@given(FORMULAS)
def test_an_antiderivative_of_the_derivative_is_the_formula(tree: Formula) -> None:
    """Every formula is an antiderivative of its derivative, and with another term it is none."""
    slope = format_formula(differentiate(tree, "x"))
    check = Integral(f"({slope}) + 0*x", "x", seconds=1)
    assert judge(check, f"{format_formula(tree)} + C").outcome != "fail"
    assert judge(check, f"{format_formula(tree)} + x").outcome != "pass"


@examples(100)
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


@examples(100)
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
