"""When two workings are the same work, and which numbers stand in one."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from tables import all_rows

from stepguard.language.expression_parsing import parse_expression
from stepguard.language.same_working import normal_form, operands_of
from stepguard.language.values import Value

VALUES: dict[str, Value] = {
    "x": 12, "y": 7, "n": 2, "m": -7, "zero": 0, "one": 1, "third": Fraction(1, 3), "loss": Fraction(-2, 3),
    "flag": True, "label": "blue", "blue": "red", "a": -96, "price": Decimal("2.50"), "big": 100, "bigger": 101,
}  # fmt: skip


def form(text: str) -> str:
    return normal_form(parse_expression(text), VALUES)


SAME: list[tuple[str, str]] = [
    *(("x + y - n", "-n + y + x"), ("x + y - n", "12 + 7 - 2"), ("x - (y - n)", "x - y + n")),
    *(("x - (y + n)", "x - y - n"), ("-(x - y)", "y - x"), ("-(x + y)", "-x - y"), ("x - -y", "x + y")),
    *(("x + -y", "x - y"), ("x + m", "x - 7"), ("x - m", "x + 7"), ("-(-x)", "x"), ("-(-(x + y))", "y + x")),
    *(("n * (x - y)", "-n * (y - x)"), ("n * (x - y)", "n * -(y - x)"), ("(x - y) / n", "-(y - x) / n")),
    *(("n / (x - y)", "-n / (y - x)"), ("(x - y)^2", "(y - x)^2"), ("(x - y) * (x - y)", "(y - x) * (y - x)")),
    *(("(x - y)^3", "-((y - x)^3)"), ("x * y * n", "n * (y * x)"), ("x / y / n", "x / (y * n)")),
    *(("x / (y / n)", "x * n / y"), ("x / (y / (n / m))", "x / y * n / m"), ("-x * -y", "x * y")),
    *(("-x * y", "-(x * y)"), ("-x / y", "x / -y"), ("m * x", "-7 * x"), ("m * x", "-(7 * x)"), ("m * m", "7 * 7")),
    *(("m^2", "7 * 7"), ("m^3", "-(7 * 7 * 7)"), ("x^2 * y", "x * y * x"), ("(x * y)^2", "x * y * x * y")),
    *(("(x / y)^2", "x * x / (y * y)"), ("(x * x)^2", "x^4"), ("x / y^2", "x / y / y"), ("(-x)^2", "x^2")),
    *(("(-x)^3", "-(x^3)"), ("(-x)^(n)", "x^2"), ("x^100", "*".join(["x"] * 100)), ("x^n", "x * x")),
    *(("third * x", "x / 3 * 1"), ("x / third", "x * 3 / 1"), ("loss * x", "-2 / 3 * x"), ("x + loss", "x - 2 / 3")),
    *(("loss^2", "2 * 2 / (3 * 3)"), ("x + zero", "x - zero"), ("x + 0 * y", "x - 0 * y")),
    *(("x + y * zero", "x - y * 0"), ("x + zero / y", "x - zero / y"), ("x + (y - y)", "x - (y - y)")),
    *(("x + n * (y - y)", "x - n * (y - y)"), ("-(y - y) * n", "(y - y) * n"), ("-zero", "zero"), ("x < y", "y > x")),
    *(("x <= y", "y >= x"), ("x == y", "y == x"), ("x != y", "y != x"), ("x + 1 < n * y", "y * n > 1 + x")),
    *(("min(x, y, n)", "min(n, x, y)"), ("max(x, y)", "max(7, 12)"), ("abs(x + y)", "abs(y + x)")),
    *(("round(x + y, 1, down)", "round(y + x, 1, down)"), ("(x + y) // n", "(y + x) // 2")),
    *(("x * y // n", "y * x // n"), ("(x // y) * n", "n * (x // y)"), ("-(x // y) * n", "x // y * -n")),
    *(("-(-x // y)", "-(-12 // 7)"), ("-x * -y // n", "x * y // n"), ("(x + y)^third", "(y + x)^(1 / 3)")),
    *(("x > y", "y < x"), ("x >= y", "y <= x"), ("x", "12"), ("-x", "-12"), ("--x", "x"), ("-(-(-x))", "-x")),
    *(("x - (-y)", "x + y"), ("x - -(y - n)", "x + y - n"), ("-x * y", "x * -y"), ("-x / -y", "x / y")),
    *(("n - x * y", "n + -x * y"), ("n - -x / y", "n + x / y"), ("third", "1/3"), ("loss", "-2/3")),
    *(("loss * x", "-(2/3) * x"), ("x / third", "x / (1/3)"), ("x / loss", "-x / (2/3)"), ("price", "2.5")),
    *(("price * n", "(5/2) * 2"), ("x * (y / n)", "x * y / n"), ("x^2", "x * x"), ("x^3", "x * x * x")),
    *(("n / x^2", "n / x / x"), ("(-x * y)^2", "(x * y)^2"), ("(-x / y)^3", "-(x / y)^3"), ("-flag", "-flag")),
    *(("(x^2)^3", "x^6"), ("x^y", "x^7"), ("(x - y)^3", "-(y - x)^3"), ("(x - y) * (y - x)", "-(x - y) * (x - y)")),
    *(("(x - x) * n", "-(x - x) * n"), ("x - zero * y", "x + zero * y")),
    *(("x - (zero - 0) * y", "x + (zero - 0) * y"), ("zero * -x", "zero * x"), ("x // y", "(x) // (y)")),
    *(("x // y * n", "n * (x // y)"), ("-(x // y) * n", "(x // y) * -n"), ("-x // y + n", "n + -x // y")),
    *(("x * y % n", "y * x % n"), ("x - x // y", "-(x // y) + x"), ("max(x, y, n)", "max(n, x, y)")),
    *(("min(x + 1, y)", "min(y, 1 + x)"), ("round(x * y, 1)", "round(y * x, 1)")),
    *(("round(x, 1)", "round(x, 1, half_up)"), ("abs(x - y)", "abs(-y + x)"), ("2^-1", "2^(-1)")),
    *(("x^(y + n)", "x^(n + y)"), ("flag", "flag"), ("label", "label"), ("x^big", "x^100"), ("x^bigger", "x^101")),
]


@all_rows("one, other", SAME)
def test_harmless_rewriting_is_the_same_work(one: str, other: str) -> None:
    """Order, signs, brackets and written-out powers do not make other work."""
    assert form(one) == form(other)


OTHER: list[tuple[str, str]] = [
    *(("x + y", "x - y"), ("x + y", "x * y"), ("x + y", "-(x + y)"), ("x * y", "-(x * y)"), ("x * y", "x / y")),
    *(("x / y", "1 / (x * y)"), ("x * y * y", "x * y"), ("x / y / y", "x / y"), ("x * x / y", "x / y / y")),
    *(("(x - y) * n", "(y - x) * n"), ("n / (x - y)", "n / (y - x)"), ("(x - y)^3", "(y - x)^3"), ("m^3", "7^3")),
    *(("m * x", "7 * x"), ("x + loss", "x + 2 / 3"), ("x * third", "x * 3"), ("x / third", "x / 3")),
    *(("x / zero", "-(x / zero)"), ("n - x / zero", "n + x / zero"), ("x^1", "x"), ("x^0", "1")),
    *(("x^-2", "1 / (x * x)"), ("x^101", "*".join(["x"] * 101)), ("x^third", "x / 3"), ("x^y^n", "(x^y)^n")),
    *(("x < y", "x <= y"), ("x < y", "x > y"), ("x == y", "x != y"), ("x >= y", "x > y"), ("abs(x)", "x")),
    *(("floor(x)", "ceil(x)"), ("round(x, 1)", "round(x, 0)"), ("round(x, 1, up)", "round(x, 1, down)")),
    *(("min(x, y)", "min(x, y, y)"), ("x // y", "y // x"), ("x // y", "x % y"), ("-x // y", "-(x // y)")),
    *(("-x * -y // n", "-x * y // n"), ("x % y % n", "x % (y % n)"), ("x // y * n", "x // (y * n)")),
    *(("x // y / n", "x // y * n"), ("label", "blue"), ("flag", "one")),
    *(("x <= y", "y <= x"), ("x", "-x"), ("x", "x + 0"), ("-(x + y)", "-x + y"), ("-x * y", "x * y")),
    *(("-x / -y", "-x / y"), ("loss", "2/3"), ("loss", "third"), ("x / loss", "x / (2/3)")),
    *(("x * third", "x / (1/3)"), ("x / y / n", "x / y * n"), ("x^2", "x^3"), ("x^2", "x"), ("n / x^2", "n / x")),
    *(("(x / y)^2", "x * x / y"), ("(-x)^3", "x^3"), ("x^one", "x"), ("x^zero", "x"), ("x^-2", "x^2")),
    *(("x^0.5", "x"), ("x^0.5", "y^0.5"), ("x^0.5", "x^third"), ("x^-1", "y^-1"), ("x^-1", "x^-3")),
    *(("x^-1", "x^0.5"), ("x^101", "y^101"), ("(-x * y)^3", "(x * y)^3"), ("-flag", "flag"), ("x^third", "x^3")),
    *(("-(x + y) * n", "(x + y) * n"), ("x - (x - x + 1) * n", "x + (x - x + 1) * n"), ("x - -x // y", "x + x // y")),
    *(("(x - y) // n", "(y - x) // n"), ("-x // y", "x // y"), ("-x * n // y", "x * n // y")),
    *(("x // y // n", "x // (y // n)"), ("x * (x // y)", "x / (x // y)"), ("min(x, y)", "max(x, y)")),
    *(("round(x, 1)", "round(x, 2)"), ("round(x, 1, up)", "round(x, 1)"), ("abs(x)", "floor(x)")),
    *(("abs(-x)", "abs(x)"), ("max(x, -y)", "max(x, y)"), ("x^(-y)", "x^y"), ("(-x)^y", "x^y"), ("label", "flag")),
]


@all_rows("one, other", OTHER)
def test_other_work_is_told_apart(one: str, other: str) -> None:
    """Another sign, operator, operand or order of what has an order is other work."""
    assert form(one) != form(other)


AS_TEXT: list[tuple[str, str]] = [
    *(("x", "12"), ("-x", "-12"), ("x + y - n", "(+12+7-2)"), ("x * y / n", "/2*12*7"), ("x * x * -y", "-12^2*7")),
    *(("m^3", "-7^3"), ("third * x", "/3*12"), ("x / third", "12*3"), ("-(x - y)", "(+7-12)")),
    *(("n * (y - x)", "-(+12-7)*2"), ("(x - y)^2 / (y - x)", "-(+12-7)^2*/(+12-7)"), ("x^third", "(12)^(/3)")),
    *(("x^y^n", "(12)^(7^2)"), ("(-x)^third", "(-12)^(/3)"), ("x // y", "(12//7)"), ("-x // y * n", "(-12//7)*2")),
    *(("-x * y % n", "(-12*7%2)"), ("x < y", "(12<7)"), ("y > x", "(12<7)"), ("x == y", "(12==7)")),
    *(("x >= y", "(12>=7)"), ("min(y, x)", "min(12,7)"), ("round(x, 1, down)", "round(12,1,down)")),
    *(("abs(-x)", "abs(-12)"), ("flag", "True"), ("label", "'blue'"), ("x + 0 * y - zero", "(+0+0*7+12)")),
    *(("x - 5 * (y - y)", "(+(+7-7)*5+12)"), ("zero / x", "/12*0"), ("x / zero", "/0*12"), ("-(x / zero)", "-/0*12")),
    ("x * -(1 - 0)", "-(+0+1)*12"),
]


@all_rows("expression, text", AS_TEXT)
def test_a_normal_form_can_be_read(expression: str, text: str) -> None:
    """A normal form shows sorted terms with their signs, sorted factors, divisors behind a slash, and powers."""
    assert form(expression) == text


@pytest.mark.parametrize(
    ("text", "operands"),
    [
        *(("x", ["12"]), ("5 + 5", ["5", "5"]), ("x - y * n", ["12", "2", "7"]), ("m + -x - -3", ["12", "3", "7"])),
        *(("third * loss", ["1", "2", "3", "3"]), ("0.5", ["1", "2"]), ("x^n", ["12", "2"])),
        *(("x // 5 < y", ["12", "5", "7"]), ("max(x, y, 3)", ["12", "3", "7"]), ("round(x / y, 2)", ["12", "2", "7"])),
        *(
            ("a - x", ["12", "96"]),
            ("-3 * 4", ["3", "4"]),
            ("loss + 1", ["1", "2", "3"]),
            ("price", ["2", "5"]),
            ("(x + x) * 2", ["12", "12", "2"]),
        ),
        *(("-(-(x))", ["12"]), ("flag", ["true"]), ("label", ["blue"])),
    ],
)
def test_the_operands_of_a_working(text: str, operands: list[str]) -> None:
    """The numbers of a working are its magnitudes, each as often as it stands there; a fraction has two."""
    assert operands_of(parse_expression(text), VALUES) == tuple(operands)


def test_a_variable_without_a_value_is_an_error() -> None:
    """Nothing stands in for a value that is missing."""
    tree = parse_expression("x + unknown")
    with pytest.raises(KeyError, match="unknown"):
        normal_form(tree, VALUES)
    with pytest.raises(KeyError, match="unknown"):
        operands_of(tree, VALUES)
