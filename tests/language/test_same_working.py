"""Which workings are the same up to harmless rewriting, and which numbers a working reads."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from tables import all_rows

from stepguard.language.expression_parsing import parse_expression
from stepguard.language.same_working import normal_form, operands_of
from stepguard.language.values import Value

STATE: dict[str, Value] = {
    "x": 12, "y": 7, "a": -96, "zero": 0, "n": 2, "third": Fraction(1, 3), "lost": Fraction(-2, 3),
    "price": Decimal("2.50"), "flag": True, "label": "blue", "big": 100, "bigger": 101, "one": 1,
}  # fmt: skip

SAME: list[tuple[str, str]] = [
    *(("x < y", "y > x"), ("x > y", "y < x"), ("x <= y", "y >= x"), ("x >= y", "y <= x"), ("x == y", "y == x")),
    *(("x != y", "y != x"), ("x", "12"), ("-x", "-12"), ("--x", "x"), ("-(-(-x))", "-x"), ("-(x + y)", "-x - y")),
    *(("x - (-y)", "x + y"), ("x + -y", "x - y"), ("-(x - y)", "y - x"), ("x - (y - n)", "x - y + n")),
    *(("x - -(y - n)", "x + y - n"), ("-x * -y", "x * y"), ("-x * y", "x * -y"), ("-x * y", "-(x * y)")),
    *(("-x / y", "x / -y"), ("-x / -y", "x / y"), ("n - x * y", "n + -x * y"), ("n - -x / y", "n + x / y")),
    *(("third", "1/3"), ("lost", "-2/3"), ("lost * x", "-(2/3) * x"), ("x / third", "x / (1/3)")),
    *(("x / lost", "-x / (2/3)"), ("price", "2.5"), ("price * n", "(5/2) * 2"), ("x / y / n", "x / (y * n)")),
    *(("x / (y / n)", "x * n / y"), ("x * (y / n)", "x * y / n"), ("x^2", "x * x"), ("x^3", "x * x * x")),
    *(("(x * y)^2", "x * y * x * y"), ("(x / y)^2", "x * x / (y * y)"), ("n / x^2", "n / x / x"), ("(-x)^2", "x^2")),
    *(("(-x)^3", "-(x^3)"), ("(-x * y)^2", "(x * y)^2"), ("(-x / y)^3", "-(x / y)^3"), ("-flag", "-flag")),
    *(("(x^2)^3", "x^6"), ("x^y", "x^7"), ("(x - y)^2", "(y - x)^2"), ("(x - y)^3", "-(y - x)^3")),
    *(("(x - y) / n", "-(y - x) / n"), ("n / (x - y)", "-n / (y - x)"), ("(x - y) * (y - x)", "-(x - y) * (x - y)")),
    *(("(x - x) * n", "-(x - x) * n"), ("x - zero", "x + zero"), ("x - zero * y", "x + zero * y")),
    *(("x - zero / y", "x + zero / y"), ("x - (zero - 0) * y", "x + (zero - 0) * y"), ("-zero", "zero")),
    *(("zero * -x", "zero * x"), ("x // y", "(x) // (y)"), ("x // y * n", "n * (x // y)")),
    *(("-(x // y) * n", "(x // y) * -n"), ("-x // y + n", "n + -x // y"), ("x * y % n", "y * x % n")),
    *(("x - x // y", "-(x // y) + x"), ("max(x, y, n)", "max(n, x, y)"), ("min(x + 1, y)", "min(y, 1 + x)")),
    *(("round(x * y, 1)", "round(y * x, 1)"), ("round(x, 1)", "round(x, 1, half_up)"), ("abs(x - y)", "abs(-y + x)")),
    *(("2^-1", "2^(-1)"), ("x^(y + n)", "x^(n + y)"), ("flag", "flag"), ("label", "label")),
]

OTHER: list[tuple[str, str]] = [
    *(("x < y", "x > y"), ("x <= y", "x < y"), ("x <= y", "y <= x"), ("x == y", "x != y"), ("x", "-x")),
    *(("x", "x + 0"), ("x - y", "x + y"), ("-(x + y)", "-x + y"), ("-x * y", "x * y"), ("-x / -y", "-x / y")),
    *(("lost", "2/3"), ("lost", "third"), ("x / lost", "x / (2/3)"), ("x * third", "x / (1/3)")),
    *(("x / y / n", "x / y * n"), ("x^2", "x^3"), ("x^2", "x"), ("n / x^2", "n / x"), ("(x / y)^2", "x * x / y")),
    *(("(-x)^3", "x^3"), ("(x - y)^3", "(y - x)^3"), ("n / (x - y)", "n / (y - x)"), ("x^one", "x"), ("x^zero", "x")),
    *(("x^-2", "x^2"), ("x^0.5", "x"), ("x^0.5", "y^0.5"), ("x^0.5", "x^third"), ("x^-1", "y^-1"), ("x^-1", "x^-3")),
    *(("x^-1", "x^0.5"), ("x^101", "y^101"), ("(-x * y)^3", "(x * y)^3"), ("-flag", "flag"), ("x^third", "x^3")),
    *(("-(x + y) * n", "(x + y) * n"), ("x - (x - x + 1) * n", "x + (x - x + 1) * n")),
    *(("n - x / zero", "n + x / zero"), ("x - -x // y", "x + x // y"), ("(x - y) // n", "(y - x) // n")),
    *(("-x // y", "x // y"), ("-x * n // y", "x * n // y"), ("x // y // n", "x // (y // n)"), ("x // y", "x % y")),
    *(("x // y", "y // x"), ("x * (x // y)", "x / (x // y)"), ("min(x, y)", "max(x, y)")),
    *(("round(x, 1)", "round(x, 2)"), ("round(x, 1, up)", "round(x, 1)"), ("abs(x)", "floor(x)")),
    *(("abs(-x)", "abs(x)"), ("max(x, -y)", "max(x, y)"), ("x^(-y)", "x^y"), ("(-x)^y", "x^y"), ("label", "flag")),
]


@all_rows("one, other", SAME)
def test_signs_order_and_brackets_make_no_other_working(one: str, other: str) -> None:
    """Folding signs, reordering, dissolving brackets and writing powers out leave the normal form as it is."""
    assert normal_form(parse_expression(one), STATE) == normal_form(parse_expression(other), STATE)


@all_rows("one, other", OTHER)
def test_another_sign_operator_or_operand_is_another_working(one: str, other: str) -> None:
    """Two workings that compute something else have different normal forms."""
    assert normal_form(parse_expression(one), STATE) != normal_form(parse_expression(other), STATE)


def test_a_power_is_written_out_up_to_a_hundred_factors() -> None:
    """A power and its factors are the same working up to a hundred of them, and the limit costs no right working."""
    for exponent, name, same in ((100, "big", True), (101, "bigger", False)):
        factors = parse_expression("*".join(["x"] * exponent))
        assert (normal_form(factors, STATE) == normal_form(parse_expression(f"x^{exponent}"), STATE)) is same
        assert normal_form(parse_expression(f"x^{name}"), STATE) == normal_form(
            parse_expression(f"x^{exponent}"), STATE
        )


def test_every_use_of_a_variable_needs_its_value() -> None:
    """A variable without a value is a KeyError that names it, for the form and for the operands."""
    for read in (normal_form, operands_of):
        with pytest.raises(KeyError, match="missing"):
            read(parse_expression("x + missing"), STATE)


@pytest.mark.parametrize(
    ("text", "operands"),
    [
        *(("x + y", ("12", "7")), ("a - x", ("12", "96")), ("-3 * 4", ("3", "4")), ("-(x)", ("12",))),
        *(("x^n", ("12", "2")), ("x < y", ("12", "7")), ("max(x, y, 3)", ("12", "3", "7")), ("third", ("1", "3"))),
        *(("lost + 1", ("1", "2", "3")), ("price", ("2", "5")), ("flag", ("true",)), ("label", ("blue",))),
        ("(x + x) * 2", ("12", "12", "2")),
    ],
)
def test_the_operands_are_the_magnitudes_of_all_numbers(text: str, operands: tuple[str, ...]) -> None:
    """Every number of an expression is an operand, a variable by its value, a fraction by its two numbers."""
    assert operands_of(parse_expression(text), STATE) == operands
