"""The expression language: what parses, how it prints, what it is worth, and what it costs."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from tables import all_rows

from stepguard.errors import EvaluationError, ExpressionError, TooLargeError
from stepguard.language.digits import Exact, exact
from stepguard.language.evaluation import evaluate
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.expressions import (
    Call,
    Chain,
    Compare,
    Expression,
    Name,
    Negate,
    Number,
    Power,
    format_expression,
    names_in,
)
from stepguard.language.values import Rounding, Value

STATE: dict[str, Value] = {
    "E": 4, "I": 2, "S": 3, "N": 5, "Q": 1, "beta": 6, "gamma": 7, "lambda": 8, "x": 3, "half": Fraction(1, 2),
    "yes": True, "word": "hello",
}  # fmt: skip

VALUES: list[tuple[str, Exact | bool]] = [
    *(("E*I + S", 11), ("S+1", 4), ("E*2", 8), ("N - Q", 4), ("beta+1", 7), ("gamma * lambda", 56), ("2^3", 8)),
    *(("2**3", 8), ("2^3^2", 512), ("-2^2", -4), ("(-2)^2", 4), ("2^-1", Fraction(1, 2)), ("3×4", 12)),
    *(("10÷4", Fraction(5, 2)), ("3 · 4", 12), ("7 − 9", -2), ("5 - -3", 8), ("5 − (−3)", 8), ("--3", 3)),
    *(("0.1*3", Fraction(3, 10)), ("0.1+0.2", Fraction(3, 10)), ("1/3", Fraction(1, 3))),
    *(("7/2", Fraction(7, 2)), ("-7 // 2", -4), ("trunc(-7 / 2)", -3), ("-7 % 3", 2), ("7 % -3", -2)),
    *(("-(7 // 2)", -3), ("7 // 2 * 2", 6), ("100 / 10 / 5", 2), ("10 - 3 - 2", 5), ("1,200 * 3", 3600)),
    *(("1,234.50 * 2", 2469), ("(1,000 + 1)", 1001), ("1e3 + 1", 1001), ("1.5e-2", Fraction(3, 200))),
    *(("max(1, 200)", 200), ("min(x, half, 2)", Fraction(1, 2)), ("abs(-5) + floor(-0.5) + ceil(0.2)", 5)),
    *(("sqrt(9/4)", Fraction(3, 2)), ("round(2.675, 2)", Fraction(268, 100))),
    *(("round(2.675, 2, half_down)", Fraction(267, 100)), ("round(2.5)", 3), ("round(2.5, half_even)", 2)),
    *(("round(-245162.5)", -245163), ("round(-245162.5, half_even)", -245162), ("round(1250, -2)", 1300)),
    *(("x < 4", True), ("x ≤ 2", False), ("x ≠ 3", False), ("2 == 2.0", True), ("yes", True)),
]

NOT_IN_THE_LANGUAGE: list[tuple[str, str]] = [
    *(("   ", "missing"), ("5!", "not allowed"), ("2(3+4)", "multiplication"), ("1.2.3", "not expected")),
    *(("2 ×* 3", "not allowed"), ("6 ÷÷ 4", "not allowed"), ("6 ÷/ 4", "not allowed"), ("1 & 2", "not allowed")),
    *(("__import__('os').system('touch x')", "not a"), ("print(1)", "not a function"), ("{1}", "not allowed")),
    *(("[1 for _ in range(10**9)]", "not expected"), ("lambda x: x", "not allowed"), ("'a'*10**9", "not allowed")),
    *(('f"{x}"', "not allowed"), ("x.real", "not allowed"), ("x := 1", "not allowed"), ("x = 1", "not allowed")),
    *(("max[1, 2]", "needs its arguments"), ("28 % * 50", "a percentage is written"), ("٣ + 1", "not allowed")),
    *(("π * 2", "not allowed"), ("max()", "not expected"), ("round(half_up)(2)", "multiplication")),
    *(("(" * 5000, "deeper"), ("2^" * 4000 + "1", "deeper"), ("-" * 9000 + "1", "signs"), ("abs(" * 2000, "deeper")),
    ("x()+" + "+".join(["1,111"] * 1500), "not a function"),
]

TOO_LARGE = [
    *("9**9**9", "((9**9)**9999)**9999", "(13/10)**6472416997", "2^(10^900)", "(1/3)^-99999"),
    *("*".join(["99999"] * 1600), "+".join(f"1/{number}" for number in range(1, 1200))),
    "%".join(["(7^2000/3^700)"] * 600),
]


@all_rows("text, value", VALUES)
def test_value_of_an_expression(text: str, value: Exact | bool) -> None:
    """An expression is worth its exact value; names mean variables only."""
    found = evaluate(parse_expression(text), STATE)
    assert found == value
    assert type(found) is type(value)


@all_rows("text, reason", NOT_IN_THE_LANGUAGE)
def test_refuses_what_is_not_in_the_language(text: str, reason: str) -> None:
    """Whatever the grammar does not list is refused, with the reason and the place."""
    with pytest.raises(ExpressionError) as refused:
        parse_expression(text)
    assert reason in refused.value.message
    assert 0 <= refused.value.position <= len(text)
    assert len(str(refused.value)) < 250


@all_rows("text", TOO_LARGE)
def test_too_large_a_result_is_not_computed(text: str) -> None:
    """Where a result or the work would be too large, evaluation stops before it."""
    with pytest.raises(TooLargeError):
        evaluate(parse_expression(text), {})


@pytest.mark.parametrize("terms", [5000])
def test_long_flat_chains(terms: int) -> None:
    """A sum of thousands of terms is no deeper than a short one: it parses, prints, reads and evaluates."""
    tree = parse_expression("+".join(["1"] * terms))
    assert evaluate(tree, {}) == terms
    assert parse_expression(format_expression(tree)) == tree
    assert names_in(tree) == ()


def test_names_in_order_of_appearance() -> None:
    """The variables of an expression are listed once each, in the order they first appear."""
    assert names_in(parse_expression("b * a + max(c, b) ^ d < e")) == ("b", "a", "c", "d", "e")
    assert names_in(parse_expression("-b * a - -c")) == ("b", "a", "c")


MODES: tuple[Rounding, ...] = ("half_up", "half_down", "half_even", "up", "down", "ceiling", "floor")
NAMES = ["x", "y", "t1", "E", "I", "half_up", "_"]
literals = st.one_of(
    st.integers(0, 10**12),
    st.builds(lambda digits, places: exact(Fraction(digits, 10**places)), st.integers(0, 10**6), st.integers(0, 6)),
)
leaves: st.SearchStrategy[Expression] = st.one_of(
    literals.map(Number), literals.map(lambda value: Number(-value)), st.sampled_from(NAMES).map(Name)
)


def chains(operands: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def build(first: Expression, rest: list[tuple[str, Expression]]) -> Expression:
        return Chain((first, *(operand for _, operand in rest)), tuple(operator for operator, _ in rest))

    return st.one_of(
        *(
            st.builds(build, operands, st.lists(st.tuples(st.sampled_from(level), operands), min_size=1, max_size=4))
            for level in (["+", "-"], ["*", "/", "//", "%"])
        )
    )


def composed(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        chains(inner),
        st.builds(Power, inner, inner),
        # The parser makes a negative number of a sign in front of a literal.
        inner.filter(lambda tree: type(tree) is not Number).map(Negate),
        st.builds(Compare, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), inner, inner),
        st.builds(
            lambda name, one: Call(name, (one,)), st.sampled_from(["abs", "floor", "ceil", "trunc", "sqrt"]), inner
        ),
        st.builds(
            lambda name, some: Call(name, tuple(some)),
            st.sampled_from(["min", "max"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(
            lambda one, places, mode: Call("round", (one, Number(places)), mode),
            inner,
            st.integers(-9, 9),
            st.sampled_from(MODES),
        ),
    )


trees = st.recursive(leaves, composed, max_leaves=12)


@given(trees)
@examples(200)
def test_parsing_what_is_printed_gives_the_tree_back(tree: Expression) -> None:
    """Printing and parsing are inverse for every tree that the parser can make."""
    assert parse_expression(format_expression(tree)) == tree


soup = st.lists(
    st.sampled_from(
        [*"0123456789+-*/%^()[]<>=!,. ", "**", "//", "max(", "round(", "x", "1,234", "half_up", "1e9", "^-"]
    ),
    max_size=25,
).map("".join)


@given(soup | st.text(max_size=12))
@examples(300)
def test_any_text_parses_and_evaluates_or_is_refused(text: str) -> None:
    """Arbitrary text raises nothing but the errors of the language, whatever it holds."""
    try:
        tree = parse_expression(text)
    except ExpressionError:
        return
    assert parse_expression(format_expression(tree)) == tree
    with suppress(EvaluationError):
        evaluate(tree, dict.fromkeys(names_in(tree), 3))
