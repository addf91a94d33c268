"""Types of values: what they read, how they round and what they show."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from tables import all_rows

from stepguard.errors import InexactError, ValueRefused
from stepguard.language.value_types import ValueType
from stepguard.language.values import ROUNDINGS, Rounding, Value, round_exact, show_value, to_decimal, to_exact

MODES: list[Rounding] = ["half_up", "half_down", "half_even", "up", "down", "ceiling", "floor"]


def test_a_float_is_read_as_its_number() -> None:
    """A float of a class that prints itself in its own way is the number that it is."""

    class Celsius(float):
        def __repr__(self) -> str:
            return f"{float(self)} degrees"

    assert ValueType.parse("number").accept(Celsius(0.5)) == Fraction(1, 2)


@all_rows(
    "type_, given_",
    [
        *(("number", True), ("number", None), ("number", 1j), ("number", math.nan), ("number", math.inf)),
        *(("number", Decimal("NaN")), ("number", Decimal("1E+5000")), ("number", 10**1000)),
        *(("number", Fraction(1, 10**1000)), ("number", 10**5000), ("boolean", 10**5000), ("boolean", 1), ("text", 5)),
        *(("integer", 2.5), ("integer", Fraction(1, 3)), ("decimal(2)", Decimal("2.675"))),
        ("decimal(2)", Fraction(1, 3)),
    ],
)
def test_does_not_accept_what_would_have_to_be_guessed(type_: str, given_: object) -> None:
    """A value of another kind, one that is not finite, too long or would be rounded, is refused."""
    with pytest.raises(ValueRefused):
        ValueType.parse(type_).accept(given_)


@all_rows(
    "value, places, mode, rounded",
    [
        *(("2.675", 2, "half_up", "2.68"), ("2.675", 2, "half_down", "2.67"), ("2.5", 0, "half_up", "3")),
        *(("2.5", 0, "half_even", "2"), ("-2.5", 0, "half_up", "-3"), ("-2.5", 0, "half_down", "-2")),
        *(("-245162.5", 0, "half_up", "-245163"), ("-245162.5", 0, "half_even", "-245162"), ("-2.1", 0, "up", "-3")),
        *(("-2.9", 0, "down", "-2"), ("-2.1", 0, "floor", "-3"), ("-2.9", 0, "ceiling", "-2")),
        *(("1250", -2, "half_even", "1200"), ("1250", -2, "half_up", "1300")),
    ],
)
def test_rounding_modes(value: str, places: int, mode: Rounding, rounded: str) -> None:
    """Each mode treats ties and signs as the decimal module names it."""
    assert round_exact(Fraction(value), places, mode) == Fraction(rounded)


@given(st.integers(-(10**12), 10**12), st.integers(0, 6), st.integers(0, 4), st.sampled_from(ROUNDINGS))
@examples(200)
def test_rounding_agrees_with_the_decimal_module(digits: int, behind: int, places: int, mode: Rounding) -> None:
    """Rounding is what the decimal module does under the same name."""
    number = Decimal(digits).scaleb(-behind)
    expected = number.quantize(Decimal(1).scaleb(-places), rounding=f"ROUND_{mode.upper()}")
    assert round_exact(Fraction(number), places, mode) == Fraction(expected)


def test_rounding_does_not_depend_on_the_decimal_context() -> None:
    """A caller's low decimal precision changes nothing."""
    value = Fraction(10**50 + 1, 8)
    with decimal.localcontext(prec=3):
        found = ValueType.parse("decimal(3)").convert(value)
    assert isinstance(found, Decimal)
    assert Fraction(found) == value


def test_a_decimal_that_does_not_fit_is_never_rounded_silently() -> None:
    """Making a decimal of a number with more places fails."""
    with pytest.raises(InexactError):
        to_decimal(Fraction(1, 3), 5)


@all_rows(
    "value, places, text",
    [
        (0, 2, "0.00"),
        (Fraction(1, 100), 2, "0.01"),
        (Fraction(-1, 100), 2, "-0.01"),
        (Fraction(-7, 2), 1, "-3.5"),
        *((12, 0, "12"), (-12, 1, "-12.0")),
    ],
)
def test_a_decimal_has_the_sign_and_the_places_of_its_number(value: int | Fraction, places: int, text: str) -> None:
    """A decimal has exactly so many places, and zero has no sign."""
    assert str(to_decimal(value, places)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((True, "true"), (False, "false"), (12, "12"), (Fraction(1, 4), "0.25"), (Fraction(-1, 3), "-1/3")),
        *((Decimal("2.50"), "2.50"), (Decimal("0.0000000"), "0.0000000"), ("as it is", "as it is")),
    ],
)
def test_a_value_is_shown_as_a_reader_expects_it(value: Value, text: str) -> None:
    """Truth values are in lower case, decimals have all their places, and nothing is in powers of ten."""
    assert show_value(value) == text


@all_rows(
    "value, number",
    [(Decimal("2.50"), Fraction(5, 2)), (Decimal("4.00"), 4), (7, 7), (Fraction(1, 3), Fraction(1, 3)), (True, True)],
)
def test_expressions_compute_with_exact_numbers(value: Value, number: int | Fraction) -> None:
    """A decimal is a whole number or a fraction to an expression, anything else what it is."""
    found = to_exact(value)
    assert found == number
    assert type(found) is type(number)


@all_rows("type_, value", [("integer", Fraction(1, 2)), ("boolean", 1), ("number", True), ("text", 1), ("number", "1")])
def test_converts_only_values_of_its_kind(type_: str, value: int | Fraction | bool | str) -> None:
    """A truth value is no number, a number no truth value, half no integer."""
    with pytest.raises(InexactError):
        ValueType.parse(type_).convert(value)


def test_why_a_value_is_not_converted() -> None:
    """A number that is not whole is told apart from a value of another kind."""
    with pytest.raises(InexactError, match=r"0\.5 is not an integer"):
        ValueType.parse("integer").convert(Fraction(1, 2))
    with pytest.raises(InexactError, match="of type integer was expected, found true"):
        ValueType.parse("integer").convert(True)


@pytest.mark.parametrize(
    ("type_", "value", "found"),
    [
        *(("text", "as it is", "as it is"), ("one_of(a, b)", "b", "b"), ("boolean", False, False), ("integer", 3, 3)),
        ("number", Fraction(1, 3), Fraction(1, 3)),
        ("percent", Fraction(1, 3), Fraction(1, 3)),
        ("decimal(1)", Fraction(1, 4), Decimal("0.3")),
    ],
)
def test_what_an_expression_gives_becomes_a_value(type_: str, value: int | Fraction | bool | str, found: Value) -> None:
    """A value of the type's own kind is kept, and a number rounded only where places are declared."""
    assert ValueType.parse(type_).convert(value) == found


numbers = st.one_of(st.integers(-(10**30), 10**30), st.fractions(max_denominator=10**5))


@given(numbers, st.sampled_from(["number", "decimal(0)", "decimal(3, floor)", "decimal(20)"]))
@examples(150)
def test_what_is_shown_is_read_as_the_same_value(number: Fraction | int, type_: str) -> None:
    """A value survives being shown in a prompt and read from a reply."""
    kind = ValueType.parse(type_)
    value = kind.convert(number if type(number) is int or number.denominator != 1 else number.numerator)
    assert kind.read(show_value(value)) == value
