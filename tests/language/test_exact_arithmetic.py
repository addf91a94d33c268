"""What expressions are worth near the edges: sizes, signs, kinds of operands, and the formula with its numbers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from tables import all_rows

from stepguard.errors import EvaluationError, InexactError, TooLargeError, UndefinedError
from stepguard.language.digits import Exact
from stepguard.language.evaluation import MAX_BITS, evaluate, substitute
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.values import Value

STATE: dict[str, Value] = {
    "x": 12, "y": 7, "a": -96, "b": -106, "zero": 0, "half": Fraction(1, 2), "lost": Fraction(-7, 2),
    "price": Decimal("2.50"), "even": Decimal("4.00"), "flag": True, "label": "blue", "third": Fraction(1, 3),
    "huge": 2**200,
}  # fmt: skip


def worth(text: str, **values: Value) -> Exact | bool | str:
    return evaluate(parse_expression(text), {**STATE, **values})


@all_rows("text, value", [
    ("x + y", 19), ("x - y", 5), ("x * y", 84), ("x / y", Fraction(12, 7)), ("x / 4", 3), ("-x / 4", -3),
    ("x / -4", -3), ("x // y", 1), ("x % y", 5), ("-x // y", -2), ("-x % y", 2), ("x % -y", -2), ("x // -y", -2),
    ("lost // 1", -4), ("lost % 2", Fraction(1, 2)), ("half + half", 1), ("half * 2", 1),
    ("half / 2", Fraction(1, 4)),
    ("x / half", 24), ("half - lost", 4), ("x // half", 24), ("price * 2", 5), ("even", 4), ("even + 1", 5),
    ("huge + huge", 2**201), ("huge - huge", 0), ("huge * huge", 2**400), ("huge / huge", 1),
    ("1 + huge", 2**200 + 1),
    ("x + y + a", -77), ("x - y * 2", -2), ("-half", Fraction(-1, 2)), ("flag", True), ("label", "blue"),
    ("price", Fraction(5, 2)), ("2^10", 1024), ("2^-2", Fraction(1, 4)), ("half^2", Fraction(1, 4)),
    ("half^-2", 4),
    ("lost^3", Fraction(-343, 8)), ("x^0", 1), ("half^0", 1), ("1^9999999", 1), ("0^9999999", 0),
    ("(-1)^9999999", -1),
    ("(-1)^9999998", 1), ("(-1)^-3", -1), ("1^-9999999", 1), ("x^even", 20736),
    ("min(x, y)", 7), ("max(x, y)", 12), ("min(y, x)", 7), ("max(y, x)", 12), ("min(a, b, zero)", -106),
    ("max(a, b, zero)", 0), ("max(half, third, lost)", Fraction(1, 2)), ("min(x)", 12), ("max(x)", 12),
    ("abs(a)", 96), ("abs(x)", 12), ("abs(-half)", Fraction(1, 2)), ("abs(-1)", 1), ("abs(zero)", 0),
    ("abs(lost)", Fraction(7, 2)),
    ("floor(lost)", -4), ("ceil(lost)", -3), ("trunc(lost)", -3), ("floor(-lost)", 3), ("ceil(-lost)", 4),
    ("trunc(-lost)", 3), ("floor(x)", 12), ("ceil(x)", 12), ("trunc(a)", -96), ("trunc(zero)", 0),
    ("ceil(a)", -96),
    ("trunc(-half)", 0), ("sqrt(zero)", 0), ("sqrt(1)", 1), ("sqrt(144)", 12), ("sqrt(1/4)", Fraction(1, 2)),
    ("sqrt(9/4)", Fraction(3, 2)), ("round(lost)", -4), ("round(third, 2)", Fraction(33, 100)),
])  # fmt: skip
def test_the_value_of_small_expressions(text: str, value: Exact | bool | str) -> None:
    """Every operator and function gives its exact value, an integer wherever that is whole."""
    found = worth(text)
    assert found == value
    assert type(found) is type(value)


@all_rows("left", ["<", "<=", ">", ">=", "==", "!="])
def test_comparisons_of_less_equal_and_more(left: str) -> None:
    """A comparison holds for exactly the orders that it names."""
    holds = {"<": (1, 0, 0), "<=": (1, 1, 0), ">": (0, 0, 1), ">=": (0, 1, 1), "==": (0, 1, 0), "!=": (1, 0, 1)}[left]
    for text, expected in zip(("y {} x", "x {} 24 / 2", "x {} y"), holds, strict=True):
        assert worth(text.replace("{}", left)) is bool(expected)


@all_rows(
    "text, error, says",
    [
        ("x / zero", UndefinedError, "division by zero: x / zero"),
        *((text, UndefinedError, "division by zero") for text in ("x / zero - x / zero", "0 * (1/0)", "max(1, 1/0)")),
        *(("half / zero", UndefinedError, "division by zero"), ("x // zero", UndefinedError, "division by zero")),
        *(("x % zero", UndefinedError, "division by zero"), ("zero / zero", UndefinedError, "division by zero")),
        ("zero^zero", UndefinedError, "zero to the power of zero"),
        *(("zero^-2", UndefinedError, "zero to the power of -2"), ("sqrt(a)", UndefinedError, "root of a negative")),
        *(("sqrt(-1/4)", UndefinedError, "root of a negative"), ("sqrt(2)", InexactError, "irrational")),
        *(("sqrt(4/3)", InexactError, "irrational"), ("sqrt(3/4)", InexactError, "irrational")),
        *(("x^half", InexactError, "whole exponents"), ("x^price", InexactError, "whole exponents")),
        *(("flag + 1", InexactError, "flag is not a number"), ("1 * label", InexactError, "label is not a number")),
        *(("-flag", InexactError, "flag is not a number"), ("label < 1", InexactError, "label is not a number")),
        ("max(flag, 1)", InexactError, "flag is not a number"),
        ("(x < y) + 1", InexactError, "a comparison is not a number"),
        ("(x < y) < 1", InexactError, "a comparison is not a number"),
        *(("flag == 1", InexactError, "flag is not a number"), ("2^99999", TooLargeError, "too large: 2^99999")),
        *(("2^-99999", TooLargeError, "too large"), ("half^99999", TooLargeError, "too large")),
    ],
)
def test_why_there_is_no_value(text: str, error: type[EvaluationError], says: str) -> None:
    """An expression without an exact value says why, and which part of it has none."""
    with pytest.raises(error) as caught:
        worth(text)
    assert says in str(caught.value)


def _of(bits: int) -> int:
    return (1 << bits) - 1


L = MAX_BITS


@all_rows(
    "operator, left, right, fits",
    [
        *(("+", _of(L - 4), _of(L - 4), True), ("+", _of(L - 2), 1, True), ("+", 1, _of(L - 2), True)),
        *(("+", _of(L + 1), 1, False), ("+", 1, _of(L + 1), False), ("+", _of(200), _of(L - 4), True)),
        *(("-", _of(L - 4), -_of(L - 4), True), ("-", 1, _of(L + 1), False), ("-", _of(L + 1), 1, False)),
        *(("*", _of(L // 2 - 3), _of(L // 2 - 3), True), ("*", _of(L // 2 + 2), _of(L // 2 + 2), False)),
        *(("*", _of(L // 2 - 1), _of(L // 2 - 1), True), ("*", _of(L // 2 + 1), _of(L // 2 + 1), False)),
        *(("*", _of(L - 200), _of(150), True), ("*", _of(L - 200), _of(250), False)),
        *(("/", _of(L // 2 - 3), _of(L // 2 - 3) - 1, True), ("/", _of(L - 200), _of(250), False)),
        *(("//", _of(L - 4), 3, True), ("//", _of(L - 4), _of(L - 4), True), ("//", _of(L + 1), 3, False)),
        *(("%", _of(200), _of(L - 4), True), ("%", _of(L - 4), 3, True), ("%", 5, _of(L + 1), False)),
        ("+", Fraction(1, _of(L // 3)), Fraction(1, _of(L // 3) - 2), True),
        ("+", Fraction(1, _of(L // 2 - 150)), _of(200), True),
        ("+", Fraction(_of(L // 2), 3), Fraction(1, _of(L // 2)), False),
        ("+", Fraction(1, _of(L // 2)), Fraction(_of(L // 2), 3), False),
        ("*", Fraction(1, _of(L // 2 + 5)), Fraction(1, _of(L // 2 + 5) - 2), False),
        ("*", Fraction(1, _of(L // 4)), Fraction(1, _of(L // 4) - 2), True),
        ("*", Fraction(_of(L // 4), 2), Fraction(_of(L // 4), 4), True),
        ("/", Fraction(1, _of(L // 4)), Fraction(_of(L // 5), 2), True),
        *(("/", _of(300), Fraction(1, _of(L - 200)), False), ("/", Fraction(1, 2**300), _of(L - 200), False)),
        *(("/", 1, Fraction(1, _of(L - 200)), True), ("//", Fraction(_of(L // 2), 3), Fraction(1, _of(L // 4)), True)),
        ("//", Fraction(_of(L // 2 + 5), 4), Fraction(1, _of(L // 2 + 5)), False),
        ("%", Fraction(_of(L // 4), 3), Fraction(1, _of(L // 4)), True),
        ("%", Fraction(1, _of(L // 2)), _of(L // 2), False),
    ],
)
def test_the_size_of_a_result_is_limited(operator: str, left: Exact, right: Exact, fits: bool) -> None:
    """A result of up to two thousand digits is computed; one that could pass them is not, for every operator."""
    text = f"left {operator} right"
    if fits:
        found = worth(text, left=left, right=right)
        assert isinstance(found, int | Fraction)
        a, b = Fraction(left), Fraction(right)
        expected = {"+": a + b, "-": a - b, "*": a * b, "/": a / b, "//": Fraction(a // b), "%": a % b}[operator]
        assert found == expected
    else:
        with pytest.raises(TooLargeError, match="result would be too large"):
            worth(text, left=left, right=right)


@all_rows(
    "text, fits",
    [
        ("10^1600", True), ("10^-1600", True), ("10^2100", False), ("10^-2100", False), ("(-10)^1601", True),
        ("(2/3)^1500", True), ("(2/3)^2500", False), ("(2/3)^-2500", False), ("2^3000", True), ("2^7000", False),
        ("2^3322", True),
    ],
)  # fmt: skip
def test_the_size_of_a_power_is_limited(text: str, fits: bool) -> None:
    """Powers are computed up to the same size, whatever the sign of their exponent."""
    if fits:
        base, _, exponent = text.partition("^")
        assert worth(text) == Fraction(base.strip("()")) ** int(exponent)
    else:
        with pytest.raises(TooLargeError):
            worth(text)


@pytest.mark.parametrize("term", ["large - large", "0 * large", "max(large, 1) - large", "0 * floor(large)"])
def test_the_work_is_limited(term: str) -> None:
    """Operations on large fractions are counted: twenty are computed, and hundreds are too much."""
    large = Fraction(2**1600, 3**800)
    assert worth(" + ".join([term] * 20), large=large) == 0
    with pytest.raises(TooLargeError, match="too much to compute"):
        worth(" + ".join([term] * 400), large=large)


def test_the_largest_result_has_about_two_thousand_digits() -> None:
    """A result just below two thousand decimal digits is computed, one just above is not."""
    assert worth("most + 1", most=10**1999 - 1) == 10**1999
    with pytest.raises(TooLargeError):
        worth("most + 1", most=10**2000)


def test_powers_are_counted_as_work() -> None:
    """Dozens of large powers in one expression are computed, hundreds of them are too much."""
    assert worth(" - ".join(["2^3000"] * 30)) == -28 * 2**3000
    with pytest.raises(TooLargeError, match="too much to compute"):
        worth(" - ".join(["2^3000"] * 600))


def test_small_numbers_are_no_work() -> None:
    """However many numbers of usual size an expression has, it is computed."""
    assert worth(" + ".join(["small"] * 1500), small=2**100) == 1500 * 2**100
    assert worth(" + ".join(["small"] * 1500), small=Fraction(1, 2**60)) == Fraction(1500, 2**60)


def test_a_long_expression_is_named_by_its_beginning() -> None:
    """An error quotes an expression of up to sixty characters as it stands, and of a longer one the beginning."""
    for text, shown in (
        ("1 / zero", "1 / zero"),
        ("1 + 22 / zero", "22 / zero"),
        ("10000000 * 200000 * 300000 * 400000 * 500000 * 600000 / zero", None),
        ("10000000 * 200000 * 300000 * 400000 * 500000 * 6000000 / zero", None),
        ("1 * " * 29 + "1 / zero", "1 * " * 14 + "1..."),
        ("1 * " * 2000 + "1 / zero", "1 * " * 14 + "1..."),
    ):
        with pytest.raises(UndefinedError) as caught:
            worth(text)
        expected = shown or (text if len(text) <= 60 else f"{text[:57]}...")
        assert str(caught.value) == f"division by zero: {expected}"


@all_rows(
    "text, shown",
    [
        *(("a - b", "-96 - (-106)"), ("x + y", "12 + 7"), ("x + y - a * 2", "12 + 7 - (-96 * 2)")),
        *(("x - a - y + b", "12 - (-96) - 7 + (-106)"), ("x - zero", "12 - 0"), ("zero - -1", "0 - (-1)")),
        *(("x + -1 + 0 + 1", "12 + (-1) + 0 + 1"), ("a * b / 2", "-96 * (-106) / 2")),
        *(("x * (y + a)", "12 * (7 + (-96))"), ("half + x", "0.5 + 12"), ("x / third", "12 / (1/3)")),
        *(("third * x", "1/3 * 12"), ("price * x", "2.5 * 12"), ("-a", "-(-96)"), ("-x", "-12"), ("a^2", "(-96)^2")),
        *(("2^a", "2^(-96)"), ("third^2", "(1/3)^2"), ("x < a", "12 < -96"), ("max(a, x, -y)", "max(-96, 12, -7)")),
        *(("round(x / y, 2, up)", "round(12 / 7, 2, up)"), ("flag", "flag"), ("label", "label")),
        *(("flag + 1", "flag + 1"), ("x", "12"), ("5", "5"), ("5 + 6", "5 + 6"), ("x % y // 2", "12 % 7 // 2")),
    ],
)
def test_the_formula_with_its_numbers(text: str, shown: str) -> None:
    """A formula is shown with the values of its variables, in brackets where a sign or a slash would mislead."""
    tree = parse_expression(text)
    assert substitute(tree, STATE) == shown
    if text not in ("flag", "label", "flag + 1"):
        assert evaluate(parse_expression(shown), {}) == evaluate(tree, STATE)


def test_a_formula_needs_all_its_values() -> None:
    """A variable without a value is named, wherever it stands."""
    for text in ("missing", "missing + 1", "1 - missing", "max(1, missing)", "2^missing", "missing < 1", "-missing"):
        for use in (substitute, evaluate):
            with pytest.raises(KeyError, match="missing"):
                use(parse_expression(text), STATE)
