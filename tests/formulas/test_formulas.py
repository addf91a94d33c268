"""Formulas and statements: what is read, what is refused, and what is never guessed."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from tables import all_rows

from stepguard.errors import ExpressionError
from stepguard.formulas.parsing import parse_formula
from stepguard.formulas.ranges import Condition, Region, parse_region
from stepguard.formulas.statements import Relation, parse_matrix, parse_relation, parse_solutions, parse_systems
from stepguard.formulas.trees import (
    CallOf,
    Constant,
    Formula,
    PowerOf,
    Product,
    Sum,
    format_formula,
    replace_names,
    symbols_in,
)
from stepguard.language.expressions import Name, Number

pytestmark = pytest.mark.once

X = Name("x")


@all_rows(
    "text, shown",
    [
        *(("2x", "2*x"), ("3(x+1)", "3*(x + 1)"), ("(x+1)(x-2)", "(x + 1)*(x - 2)"), ("x(x+1)", "x*(x + 1)")),
        *(("2 sin(x)", "2*sin(x)"), ("x^2y", "x^2*y"), ("-x^2", "-x^2"), ("2^-x", "2^(-x)"), ("2^3^2", "2^(3^2)")),
        *(("a-(b-c)", "a - (b - c)"), ("a/b/c", "a/b/c"), ("2*-3", "2*(-3)"), ("--x", "x"), ("0.50", "0.5")),
        *((".5", "0.5"), ("½", "0.5"), ("x²", "x^2"), ("x⁻¹", "x^(-1)"), ("x × y ÷ z − 1", "x*y/z - 1")),
        *(("√2", "2^0.5"), ("√(x+1)", "(x + 1)^0.5"), ("sqrt(x)", "x^0.5"), ("cbrt(x)", "cbrt(x)"), ("exp(x)", "e^x")),
        *(("ln(x)", "log(x)"), ("arctan(x)", "atan(x)"), ("log_2(8)", "log(8)/log(2)")),
        *(("log10(x)", "log(x)/log(10)"), ("log(x, 3)", "log(x)/log(3)"), ("sin^2(x)", "sin(x)^2")),
        *(("sin x", "sin(x)"), ("sin 2x cos x", "sin(2*x)*cos(x)"), ("ln|x|", "log(abs(x))")),
        *(("|x - 3| + 1", "abs(x - 3) + 1"), ("||x| - 1|", "abs(abs(x) - 1)"), ("2|x|", "2*abs(x)")),
        *(("5!", "factorial(5)"), ("2πr", "2*pi*r"), ("e^x", "e^x"), ("θ + x₁", "theta + x_1")),
        *((r"\sqrt7", "7^0.5"), (r"\sqrt{16} x", "16^0.5*x"), ("√16", "16^0.5"), ("a∙c•2", "a*c*2")),
        *((r"\frac{1}{2}x", "1/2*x"), (r"\frac12 x", "1/2*x"), (r"\frac 1 2", "1/2"), (r"\log_2 x", "log(x)/log(2)")),
        *((r"\log_{16}(x)", "log(x)/log(16)"), (r"\log_10(x)", "log(x)/log(10)")),
        *(("(n!)!", "factorial(factorial(n))"), (r"\alpha^2(x + 1)", "alpha^2*(x + 1)")),
        *((r"\dfrac{x+1}{x-1}", "(x + 1)/(x - 1)"), (r"\sqrt{2}", "2^0.5"), (r"\sqrt[3]{x}", "cbrt(x)")),
        *((r"\left(x + 1\right) \cdot 2", "(x + 1)*2"), (r"$x^{2} + \sin(x)$", "x^2 + sin(x)")),
        *((r"\pi \times r^2", "pi*r^2"), (r"\alpha + x_{12}", "alpha + x_12"), ("`x + 1`.", "x + 1")),
        (r"$\boxed{x + 1}$", "x + 1"),
    ],
)
def test_notations(text: str, shown: str) -> None:
    """Formulas are read in the notations that people and models use."""
    assert format_formula(parse_formula(text)) == shown


@all_rows(
    "text, why",
    [
        *(("1/2x", "two ways"), ("x/y(z)", "two ways"), ("1/2(x+1)", "two ways"), ("e^2x", "two ways")),
        *(("sin x/2", "two ways"), ("sin x^2", "two ways"), ("sin x y", "two ways"), ("sin^-1(x)", "positive number")),
        *(("f(x)", "two ways"), ("n!!", "two ways"), ("3!!!", "two ways"), ("sec^2(x)", "not a function")),
        *(("sec²(x)", "not a function"), ("2 sec^{2} x", "not a function"), (r"\frac123", "expected")),
        *((r"\sqrt16", "two ways"), (r"\sqrt 1 6", "two ways"), (r"2\sqrt2.5", "two ways"), ("a•••b", "expected")),
        *((r"\frac12.5", "expected"), (r"\log_28(x)", "not a function|two ways|brackets"), ("2e3", "two ways")),
        *(("2e-3", "two ways"), ("1E5", "two ways"), ("x2 3", "write \\*"), ("(x+1)2", "write \\*")),
        *(("2 3", "write \\*"), ("the answer is x", "words"), ("foo(x)", "not a function")),
        *(("diff(f, x)", "not a function"), ("f'(x)", "not a function"), ("sin", "brackets"), ("", "missing")),
        *(("x +", "missing"), ("(x", "expected"), ("x)", "not expected"), ("1,000", "not expected")),
        *(("x = 1", "relation"), ("x; y", "not expected"), ("x.y", "not allowed"), ("x[0]", "not expected")),
        *(("'a'*10", "not expected"), ('"a"', "not allowed"), ("lambda x: x", "not allowed")),
        *(("__import__('os')", "not expected"), ("x if y else z", "words"), ("\\input{x}", "not known")),
        *(("x\x00", "not allowed"), ("１２", "not allowed"), ("det(x)", "matrices"), ("x^10000000", "too large")),
        ("((((((((((((((((((((((((((((((((((x))))))))))))))))))))))))))))))))))", "nested"),
        *(("1" * 301, "too long"), ("x+" * 1500 + "x", "too long")),
    ],
)
def test_what_is_refused(text: str, why: str) -> None:
    """What is no formula, or can be read in two ways, is refused with a reason."""
    with pytest.raises(ExpressionError, match=why):
        parse_formula(text)


def test_numbers_are_exact() -> None:
    """A decimal is the fraction that it says."""
    assert parse_formula("0.1") == Number(Fraction(1, 10))
    assert parse_formula("2.0") == Number(2)


@all_rows("name", ["E", "I", "S", "N", "Q", "O", "beta", "gamma", "lambda", "zeta", "C", "i"])
def test_names_are_symbols(name: str) -> None:
    """Names that mean something elsewhere are symbols like any other."""
    assert parse_formula(name) == Name(name)


def test_constants_are_symbols_where_they_are_declared() -> None:
    """``e`` and ``pi`` are numbers unless they are declared."""
    assert parse_formula("e") == Constant("e")
    assert parse_formula("π") == Constant("pi")
    assert parse_formula("e + pi", declared=["e", "pi"]) == Sum((Name("e"), Name("pi")))


def test_products_of_known_symbols() -> None:
    """``xy`` is a product only where x and y are known and xy is not."""
    assert parse_formula("xy") == Name("xy")
    assert parse_formula("xy", known=["x", "y"]) == Product((X, Name("y")))
    assert parse_formula("xy", known=["x", "y", "xy"]) == Name("xy")
    assert parse_formula("xe^x", known=["x"]) == Product((X, PowerOf(Constant("e"), X)))
    with pytest.raises(ExpressionError, match="exponent"):
        parse_formula("2^xy", known=["x", "y"])


def test_power_towers_are_read_and_not_computed() -> None:
    """Reading costs nothing, whatever the number would be."""
    began = time.monotonic()
    assert parse_formula("9**9**9") == PowerOf(Number(9), PowerOf(Number(9), Number(9)))
    parse_formula("factorial(10^9)")
    assert time.monotonic() - began < 1


def test_symbols_are_replaced_all_at_once() -> None:
    """What is put in is not replaced again."""
    tree = parse_formula("x + y^2")
    assert format_formula(replace_names(tree, {"x": Name("y"), "y": X})) == "y + x^2"
    assert symbols_in(tree) == {"x", "y"}


LEAVES: st.SearchStrategy[Formula] = st.one_of(
    st.fractions(-9, 9, max_denominator=9).map(lambda value: Number(int(value) if value.denominator == 1 else value)),
    st.sampled_from([X, Name("rate_1"), Constant("pi"), Constant("e")]),
)
FORMULAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Sum(tuple(parts))),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Product(tuple(parts))),
        st.builds(PowerOf, inner, st.integers(-3, 3).map(Number)),
        st.builds(PowerOf, inner, inner),
        st.builds(CallOf, st.sampled_from(["sin", "abs", "log", "cbrt"]), inner),
    ),
    max_leaves=8,
)


@pytest.mark.slow
@examples(300)
@given(FORMULAS)
def test_printed_formulas_are_read_again(tree: Formula) -> None:
    """A printed formula is read, and printed the same way again after one reading."""
    read = parse_formula(format_formula(tree))
    assert format_formula(parse_formula(format_formula(read))) == format_formula(read)


@pytest.mark.slow
@examples(300)
@given(st.text(alphabet="x2(){}[]+-*/^|,.=<>!\\'√²π_e ∞±orsin fac", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever the text is, it is read or refused with an `ExpressionError`."""
    for read in (
        parse_formula,
        parse_relation,
        parse_matrix,
        lambda found: parse_solutions(found, "x"),
        lambda found: parse_region(found, "x"),
        lambda found: parse_systems(found, ("x", "y")),
    ):
        try:
            read(text)
        except ExpressionError:
            continue


def test_relations() -> None:
    """An equation and a chain of comparisons keep their sides in order."""
    assert parse_relation("x = 1") == Relation(("=",), (X, Number(1)))
    assert parse_relation("1 < x ≤ 3") == Relation(("<", "<="), (Number(1), X, Number(3)))
    assert parse_relation("x + 1") == Sum((X, Number(1)))
    assert parse_relation(r"x \neq 2 ") == Relation(("!=",), (X, Number(2)))


@all_rows(
    "text, values",
    [
        *(("2, 3", ["2", "3"]), ("{2, 3}", ["2", "3"]), (r"\{2, 3\}", ["2", "3"]), ("x = 2 or x = 3", ["2", "3"])),
        *(("x = 2, x = 3", ["2", "3"]), (r"x = 2 \text{ or } x = 3", ["2", "3"]), ("x_1 = 2; x_2 = 3", ["2", "3"])),
        *(("x₁ = 2 and x₂ = 3", ["2", "3"]), ("x = {2, 3}", ["2", "3"]), ("x ∈ {2, 3}", ["2", "3"])),
        *(("1, 2, and 3", ["1", "2", "3"]), ("x = ±3", ["3", "-3"])),
        *((r"x = 1 \pm \sqrt{2}", ["1 + 2^0.5", "1 - 2^0.5"]), ("2 = x", ["2"]), ("1331,1728", ["1331", "1728"])),
        *(("no solution", []), ("No real solutions.", []), ("∅", []), ("{}", [])),
    ],
)
def test_solutions(text: str, values: list[str]) -> None:
    """Solutions are read in the order in which they are written."""
    assert [format_formula(value) for value in parse_solutions(text, "x").values] == values


def test_every_number_as_a_solution() -> None:
    """All real numbers are a set of solutions of their own."""
    assert parse_solutions("all real numbers", "x").everything
    assert parse_solutions("x ∈ ℝ", "x").everything
    assert not parse_solutions("0", "x").everything


@all_rows(
    "text", ["y = 2", "x < 2", "100,200", "x = ±1 ± 2", "2,, 3", "x = 2 = 3", "", "x = 2 or", "y ∈ ℝ", "x_ab = 2"]
)
def test_what_is_no_set_of_solutions(text: str) -> None:
    """Another unknown, digits that could be grouped, and half a list are refused."""
    with pytest.raises(ExpressionError):
        parse_solutions(text, "x")


@all_rows(
    "text, region",
    [
        *(("x < 3", [[("<", 3)]]), ("3 > x", [[("<", 3)]]), ("1 < x <= 3", [[(">", 1), ("<=", 3)]])),
        *(("3 >= x > 1", [[("<=", 3), (">", 1)]]), ("x < 1 or x >= 3", [[("<", 1)], [(">=", 3)]])),
        *(("x > 1 and x < 3", [[(">", 1), ("<", 3)]]), ("(1, 3]", [[(">", 1), ("<=", 3)]])),
        *(("[1; 3)", [[(">=", 1), ("<", 3)]]), ("(-∞, 1) ∪ [3, ∞)", [[("<", 1)], [(">=", 3)]])),
        *((r"(-\infty, 1] \cup (3, \infty)", [[("<=", 1)], [(">", 3)]]), ("x in (1, 3)", [[(">", 1), ("<", 3)]])),
        *(("x != 2", [[("!=", 2)]]), ("x = 2", [[("=", 2)]]), ("{2, 4}", [[("=", 2)], [("=", 4)]])),
        *(("no solution", []), ("all real numbers", [[]]), ("(-∞, ∞)", [[]])),
    ],
)
def test_ranges(text: str, region: list[list[tuple[str, int]]]) -> None:
    """Ranges are alternatives of conditions that hold together."""
    wanted = Region(tuple(tuple(Condition(sign, Number(bound)) for sign, bound in each) for each in region))
    assert parse_region(text, "x") == wanted


@pytest.mark.parametrize(
    "text",
    [
        *("x < 1, x > 3", "y < 1", "1 < x > 0", "1 < y < 3", "x", "[-∞, 1]", "(∞, 1)", "(1, 2, 3)", "1 != x < 3"),
        *("x < x", ""),
    ],
)
def test_what_is_no_range(text: str) -> None:
    """What could mean "and" as well as "or", another variable and half a range are refused."""
    with pytest.raises(ExpressionError):
        parse_region(text, "x")


def test_solutions_of_several_unknowns() -> None:
    """Values are given by name, or in the order of the unknowns."""
    one, two = Number(1), Number(2)
    for text in ("x = 1, y = 2", "y = 2 and x = 1", "(1, 2)", "(x, y) = (1, 2)", "{(1, 2)}"):
        assert parse_systems(text, ("x", "y")) == ((one, two),)
    assert parse_systems("(1, 2) or (2, 1)", ("x", "y")) == ((one, two), (two, one))
    assert parse_systems("(1, 2), (2, 1)", ("x", "y")) == ((one, two), (two, one))
    assert parse_systems("no solution", ("x", "y")) == ()
    for text in ("x = 1", "1, 2", "(1, 2, 3)", "x = 1, x = 2", "x = 1, z = 2", "x < 1, y = 2", "or"):
        with pytest.raises(ExpressionError):
            parse_systems(text, ("x", "y"))


def test_matrices() -> None:
    """A matrix has rows of one length."""
    rows = ((Number(1), X), (Number(3), Number(4)))
    assert parse_matrix("[[1, x], [3, 4]]") == rows
    assert parse_matrix(r"\begin{bmatrix} 1 & x \\ 3 & 4 \\ \end{bmatrix}") == rows
    for text in (
        *(rf"\begin{{{kind}}} 1 & x \\ 3 & 4 \end{{{kind}}}" for kind in ("vmatrix", "Vmatrix")),
        "[1, 2]", "[[1, 2], [3]]", "[[1, 2] [3, 4]]", "[[]]", "1", "[[100,200], [3, 4]]",
    ):  # fmt: skip
        with pytest.raises(ExpressionError):
            parse_matrix(text)
