"""The expression language at its edges: signs and spellings, limits, grouped digits, places of errors, printing."""

from __future__ import annotations

from fractions import Fraction

import pytest
from tables import all_rows

from stepguard.errors import ExpressionError
from stepguard.language.digits import Exact
from stepguard.language.evaluation import evaluate
from stepguard.language.expression_parsing import MAX_DEPTH, MAX_LENGTH, MAX_LITERAL_DIGITS, parse_expression
from stepguard.language.expressions import RESERVED, Chain, Name, Number, format_expression
from stepguard.language.values import Value

STATE: dict[str, Value] = {"x": 7, "y": 2, "z": 5, "half_up": 3}


def worth(text: str, *, commas_separate: bool = False) -> object:
    return evaluate(parse_expression(text, commas_separate=commas_separate), STATE)


def refused(text: str) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        parse_expression(text)
    return caught.value


@all_rows("sign, value", [*((s, 14) for s in "×·⋅∗*"), *((s, Fraction(7, 2)) for s in "÷∕/")])
@all_rows("blank", ["", " ", "\u00a0", "\u202f", "\u2009", "\n", "\t"])
def test_signs_of_multiplication_and_division(sign: str, value: Exact, blank: str) -> None:
    """All usual signs of multiplication and division are read, with any blank or none around them."""
    assert worth(f"x{blank}{sign}{blank}y") == value


@pytest.mark.parametrize("blank", [" ", "\u00a0", "\u202f", "\u2009"])
def test_a_blank_separates(blank: str) -> None:
    """Numbers and names with any blank between them do not grow together."""
    for text in ("1 2", "x y", "x 2", "1 0000"):
        assert "multiplication" in refused(text.replace(" ", blank)).message


def test_a_blank_that_breaks_no_line_may_group_digits() -> None:
    """Groups of three with a no-break or thin blank between them are one number; with an ordinary one they are two."""
    for blank in ("\u00a0", "\u202f", "\u2009"):
        assert worth(f"12{blank}000 + 7") == 12_007
    assert "multiplication" in refused("12 000 + 7").message


@pytest.mark.parametrize("sign", "-−–")
def test_signs_of_subtraction(sign: str) -> None:
    """Hyphen, minus sign and en dash all subtract."""
    assert worth(f"x {sign} y") == 5
    assert worth(f"{sign}x") == -7


@all_rows(
    "text",
    [
        "max(1,200)", "max (1,200)", "max((1,200), 3)", "max(3, (1,200))", "abs(min(1, 2) + 1,200)",
        "max(3 + (2) * 1,200)",
    ],
)  # fmt: skip
def test_grouped_digits_among_arguments_are_refused(text: str) -> None:
    """Inside a call a comma between digits could be either, and the refusal asks to leave it out."""
    assert "leave the comma out" in refused(text).message
    assert worth(text.replace(",200", "200")) == worth(text.replace("1,200", "1200"))


@all_rows(
    "text",
    [
        "12,34", "1234,567", "0,123", "01,234", "1,234,5", "1,2345", "1,234x", "1,234_", "1,234,", "x1,234", "_1,234",
        "1.1,234", ".1,234", ",123", "1 ,200", "1, 200",
    ],
)  # fmt: skip
def test_digits_that_are_not_grouped_in_threes_are_refused(text: str) -> None:
    """A comma that groups nothing in threes is no part of a number."""
    assert "," in refused(text).message or "multiplication" in refused(text).message


def test_commas_separate_the_arguments_of_working() -> None:
    """Where commas separate, they do so inside of calls only, at any depth."""
    assert worth("max(1,200)", commas_separate=True) == 200
    assert worth("1,200 + max(1,(2),300)", commas_separate=True) == 1500
    assert worth("max((1),200) * 1,000", commas_separate=True) == 200_000
    assert worth("max(abs(1),200)") == 200  # behind a bracket it can do nothing else


@pytest.mark.parametrize("wrap", ["({})", "abs({})", "2^({})", "-(-({}))"])
def test_nesting_is_limited_and_nothing_else(wrap: str) -> None:
    """Forty levels are read and one more is refused; what stands side by side is no deeper than one."""
    each = {"2^({})": 2, "-(-({}))": 2}.get(wrap, 1)
    text = "1"
    for _ in range(MAX_DEPTH // each):
        text = wrap.replace("{}", text)
    parse_expression(text)
    assert f"deeper than {MAX_DEPTH}" in refused(f"({text})").message
    parse_expression(" + ".join([wrap.replace("{}", "1")] * 100))


@pytest.mark.parametrize("shallow", ["(1)", "abs(1)", "1^1", "2^(1)"])
def test_what_stands_in_front_does_not_allow_for_more_nesting(shallow: str) -> None:
    """Forty levels are the most also behind a hundred terms that were nested themselves."""
    front = f"{shallow} + " * 100
    parse_expression(front + "(" * MAX_DEPTH + "1" + ")" * MAX_DEPTH)
    assert "deeper" in refused(front + "(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1)).message


@pytest.mark.parametrize("levels", [MAX_DEPTH, MAX_DEPTH + 1])
def test_towers_of_powers_are_limited(levels: int) -> None:
    """A tower of forty exponents is read, a higher one is refused, and powers side by side are no tower."""
    text = "^".join(["1"] * (levels + 1))
    if levels == MAX_DEPTH:
        assert worth(text) == 1
    else:
        assert "deeper" in refused(text).message
    assert worth(" * ".join(["1^1"] * 100)) == 1


@pytest.mark.parametrize("sign", ["-", "+", "- "])
def test_signs_in_a_row_are_limited(sign: str) -> None:
    """Forty signs in a row are folded into one, and one more is refused."""
    assert worth(sign * MAX_DEPTH + "x") == 7
    assert worth(sign * (MAX_DEPTH - 1) + "x") == (7 if sign == "+" else -7)
    assert "signs in a row" in refused(sign * (MAX_DEPTH + 1) + "x").message


@pytest.mark.parametrize("signed", ["x - {}", "x * {}", "2^{}", "{}"])
def test_signs_in_front_of_an_operand(signed: str) -> None:
    """Signs in front of an operand turn it around once each, wherever it stands."""
    for signs in ("-", "--", "+-", "-+-", "---", "+"):
        plain = "(-1)" if signs.count("-") % 2 else "1"
        assert worth(signed.replace("{}", f"{signs}1")) == worth(signed.replace("{}", plain))


def test_the_length_is_counted_without_blanks() -> None:
    """The longest expression is read, with three times as many blanks; a sign or a blank more is refused."""
    longest = "+".join(["1"] * (MAX_LENGTH // 2)) + "1"
    assert len(longest) == MAX_LENGTH
    assert worth(longest) == MAX_LENGTH // 2 + 10
    assert worth(longest + " " * 3 * MAX_LENGTH) == MAX_LENGTH // 2 + 10
    assert "too long" in refused(longest + "1").message
    assert "too long" in refused(longest + "1  ").message
    assert refused(longest + " " * (3 * MAX_LENGTH + 1)).position == MAX_LENGTH


def test_the_limits_of_the_language() -> None:
    """Ten thousand characters, forty levels and a thousand digits are the most that an expression has."""
    assert (MAX_LENGTH, MAX_DEPTH, MAX_LITERAL_DIGITS) == (10_000, 40, 1000)


D = MAX_LITERAL_DIGITS


@all_rows("text, value", [
    # A number that has at most a thousand digits when it is written out is read exactly.
    *(("9" * D, 10**D - 1), ("0" * D + "5", 5), ("0" * (2 * D - 1) + "5", 5), ("5." + "0" * (2 * D - 1), 5)),
        *((f"1e{D - 1}", 10 ** (D - 1)), (f"1e-{D - 1}", Fraction(1, 10 ** (D - 1)))),
        ("0." + "1" * (D - 1), Fraction(int("1" * (D - 1)), 10 ** (D - 1))),
        *(("1" * 500 + "." + "1" * 500, Fraction(int("1" * D), 10**500)), ("12.5e1", 125), ("12.5e2", 1250)),
        *(("12.5E-1", Fraction(5, 4)), ("12.50e+1", 125), ("0.05e2", 5), ("1.e2", 100), (".5e1", 5)),
        *(("1e000002", 100), ("0e9", 0)),
    # Every comparison is told apart from its neighbours, in either spelling.
    ("x ≤ 7", True), ("x ≤ 6", False), ("x <= 7", True), ("x ≥ 7", True), ("x ≥ 8", False), ("x >= 8", False),
        ("x ≠ 7", False), ("x ≠ 8", True), ("x != 7", False), ("x < 7", False), ("x > 7", False), ("x == 7", True),
        ("x > 6", True), ("x < 8", True), ("x == 8", False), ("x - 1 < y * 4", True),
    # Commas group digits in threes wherever they cannot separate arguments.
    *(("1,200 + 1", 1201), ("12,345,678", 12345678), ("1,200.5", Fraction(2401, 2)), ("(1,200)", 1200)),
        *(("((1,200) + 1,000) * 2", 4400), ("max(1, 2) * 1,200", 2400), ("(max(1, 2) + 1,200)", 1202)),
        *(("max((1), (2)) + 1,200", 1202), ("min(1200, (3 + 4)) - 1,000", -993)),
        *(("3*1,200", 3600), ("1,200^2", 1440000), ("1,200 ** 2", 1440000)),
    # The name of a rounding mode is one only behind the first argument of round; elsewhere it is a variable.
    ("round(x / y)", 4), ("round(x / y, half_even)", 4), ("round(x / y, half_down)", 3), ("round(x / y, floor)", 3),
        ("round(x / 3, 1)", Fraction(23, 10)), ("round(x / 3, 1, up)", Fraction(24, 10)),
        ("round(half_up)", 3), ("round(half_up / y)", 2), ("round(half_up, half_up)", 3), ("max(half_up, 1)", 3),
        ("round(x, -1)", 10), ("round(x, 100)", 7), ("round(x, -100)", 0), ("round(x, +1)", 7),
        ("max(x)", 7), ("min(x, y, z, 1)", 1),
])  # fmt: skip
def test_numbers_comparisons_and_arguments_are_read(text: str, value: Exact | bool) -> None:
    """What a reader would work out by hand is the value, and of its type."""
    found = worth(text)
    assert found == value
    assert type(found) is type(value)


def test_a_truth_value_among_numbers_parses() -> None:
    """It is no number, which its evaluation says."""
    parse_expression("min(x < 0, 1)")


@all_rows(
    "text",
    [
        "9" * (D + 1), "0" * 2 * D + "5", "5." + "0" * 2 * D, f"1e{D}", f"1e-{D}", "0." + "1" * D, "1e0000002",
        "1" * 500 + "." + "1" * 501, "1e999999", "1e-9999999", "12e999", "0.01e-998",
    ],
)  # fmt: skip
def test_longer_numbers_are_refused(text: str) -> None:
    """A number with more digits, or an absurd exponent, is refused where it stands."""
    error = refused(f"x + {text}")
    assert "number too long" in error.message
    assert error.position == 4


@all_rows(
    "text, position, says",
    [
        *(("2 $ 3", 2, "'$' is not allowed"), ("x   $", 4, "'$' is not allowed"), ("  @", 2, "'@' is not allowed")),
        *(("1,200 + 1,300 $", 14, "'$' is not allowed"), ("3 + 1,200 1", 10, "multiplication"), ("3 +", 3, "missing")),
        *(("3 + ", 4, "missing"), ("(3 + 4", 6, "parenthesis is not closed"), ("(3 + 4]", 6, "']' is not expected")),
        *(("[3 + 4]", 0, "'[' is not expected"), ("abs(3]", 5, "']' is not expected")),
        *(("abs(3", 5, "parenthesis is not closed"), ("3 + * 4", 4, "'*' is not expected")),
        *(("x y", 2, "multiplication"), ("x 1.5", 2, "multiplication"), ("1) + 1,200", 1, "')' is not expected")),
        *(("2 (x)", 2, "multiplication"), ("(x) 2", 4, "multiplication"), ("(x)(y)", 3, "multiplication")),
        *(("x (y)", 2, "'x' is not a function"), ("x if x > 3 else 5", 2, "there is no 'if' in arithmetic")),
        ("x > 3 and y + 1", 6, "'and' takes truth values, and 'y + 1' is none"),
        *(("not 5", 0, "'not' takes truth values, and '5' is none"), ("x > 3 and y or z", 12, "put brackets around")),
        *(("x and and y", 6, "'and' is not expected"), ("x > 3 and", 9, "something is missing")),
        *(("x > 3 ? 1 : 2", 6, "there is no '?' in arithmetic"), ("1 + x(y)", 5, "'x' is not a function")),
        *(("(x) , 2", 4, "',' is not expected"), ("[x] 2", 0, "'[' is not expected")),
        ("x [2]", 2, "'[' is not expected"),
        *(("1 < 2 < 3", 6, "chained"), ("1 + max", 4, "'max' is a function")),
        ("1 + max + 2", 4, "'max' is a function"),
        *((f"1 + {name}(2, 3)", 4, f"{name} does not take 2") for name in ("abs", "floor", "ceil", "trunc", "sqrt")),
        *(("2e + 1", 1, "multiplication"), ("2e- + 1", 1, "multiplication")),
        ("1 + round(2, 3, 4, 5)", 4, "round does not take 4 arguments"),
        ("1 + round(2, 3, 4)", 4, "third argument of round is a mode"),
        *(("1 + round(2, 101)", 4, "from -100 to 100"), ("1 + round(2, -101)", 4, "from -100 to 100")),
        *(("1 + round(2, 0.5)", 4, "whole number"), ("1 + round(2, x)", 4, "whole number")),
        *(("round(1, 2, half_up, 3)", 19, "',' is not expected"), ("max(1, 2", 8, "not closed")),
        *(("max(1,, 2)", 6, "',' is not expected"), ("", 0, "missing"), (")", 0, "')' is not expected")),
        *(("1 ××  2", 2, "'××' is not allowed"), ("1 ÷∕ 2", 2, "'÷∕' is not allowed")),
    ],
)
def test_an_error_names_its_reason_and_its_place(text: str, position: int, says: str) -> None:
    """What is wrong with an expression is said, with the offset where it stands."""
    error = refused(text)
    assert says in error.message
    assert (error.position, error.text) == (position, text)


def test_the_names_of_functions_are_reserved() -> None:
    """No variable can have the name of a function or of a word of the language."""
    words = {"mod", "and", "or", "not"}
    terms = {"if", "else", "for", "in", "where", "true", "false"}
    assert {"min", "max", "abs", "floor", "ceil", "trunc", "sqrt", "round", *words, *terms} == RESERVED


@all_rows(
    "text, shown",
    [
        *(("x+y-3", "x + y - 3"), ("x*(y)", "x * y"), ("-x", "-x"), ("-(-3)", "3"), ("-(x+y)", "-(x + y)")),
        *(("-x^2", "-x^2"), ("(-x)^2", "(-x)^2"), ("(-3)^2", "(-3)^2"), ("-abs(x)", "-abs(x)")),
        *(("x - (y - z)", "x - (y - z)"), ("(x - y) - z", "(x - y) - z"), ("x - y * z", "x - y * z")),
        *(("x + y * z", "x + y * z"), ("x + y - z * x", "x + y - z * x"), ("x * y - z", "x * y - z")),
        *(("(x * y) * z", "(x * y) * z"), ("x * (y + z)", "x * (y + z)"), ("x * -y", "x * (-y)")),
        *(("-x * y", "-x * y"), ("x - -3", "x - (-3)"), ("-3 - x", "-3 - x"), ("x - -3 * y", "x - (-3 * y)")),
        *(("x + 0", "x + 0"), ("x + -1", "x + (-1)"), ("-1 + x", "-1 + x"), ("-x + 0", "-x + 0")),
        *(("x * max(y/z, 1)", "x * max(y / z, 1)"), ("x + 0.50", "x + 0.5"), ("2^3^x", "2^3^x")),
        *(("(2^3)^x", "(2^3)^x"), ("2^(x+1)", "2^(x + 1)"), ("2^-x", "2^(-x)"), ("2^-1", "2^(-1)")),
        *(("0.5^2", "0.5^2"), ("x^max(y,z)", "x^max(y, z)"), ("x<y", "x < y")),
        *(("(x < y) == (y < x)", "(x < y) == (y < x)"), ("(x < y) + 1", "(x < y) + 1")),
        *(("round(x/y, 1, up)", "round(x / y, 1, up)"), ("round(x)", "round(x, 0, half_up)")),
        *(("x // y % z", "x // y % z"), ("x mod y", "x % y")),
    ],
)
def test_an_expression_is_printed_with_the_brackets_that_it_needs(text: str, shown: str) -> None:
    """Printing spaces an expression evenly, keeps what brackets say and adds none that a reader does not need."""
    assert format_expression(parse_expression(text)) == shown
    assert parse_expression(shown) == parse_expression(text)


@pytest.mark.parametrize(
    ("operator", "shown"), [("*", "x * (1/3)"), ("/", "x / (1/3)"), ("+", "x + 1/3"), ("-", "x - 1/3")]
)
def test_a_fraction_behind_a_sign_of_a_product_stands_in_brackets(operator: str, shown: str) -> None:
    """A number that is no decimal is printed as a fraction, with brackets where the slash would be read on its own."""
    assert format_expression(Chain((Name("x"), Number(Fraction(1, 3))), (operator,))) == shown
