"""Numbers as models write them: read exactly, or refused with a reason."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from tables import all_rows

from stepguard.errors import ValueRefused
from stepguard.language.digits import MAX_DIGITS, Exact, format_exact
from stepguard.language.numerals import read_numeral

READ: list[tuple[str, Exact]] = [
    *(("0", 0), ("-0", 0), ("007", 7), ("+5", 5), (" 5\n", 5), ("5.", 5), (".5", Fraction(1, 2)), ("2.0", 2)),
    *(("0.0", 0), ("0.30", Fraction(3, 10)), ("0.29999999999999998", Fraction(29999999999999998, 10**17))),
    *(("9007199254740993", 9007199254740993), ("130,000", 130000), ("1,234", 1234)),
    *(("-12,345,678.90", Fraction(-1234567890, 100)), ("130\u00a0000", 130000)),
    *(("1\u202f234\u202f567.5", Fraction(12345675, 10)), ("\u22125", -5), ("\u20135", -5)),
    *((f"{minus}5", -5) for minus in "\u2010\u2011\u2012\ufe63\uff0d"),
    *(("3\u20444", Fraction(3, 4)), ("1 3\u20444", Fraction(7, 4)), ("-1\u204412", Fraction(-1, 12))),
    *(("3\u22154", Fraction(3, 4)), ("1\u22c510^3", 1000), ("\u2212 5", -5), ("\uff0d5", -5)),
    *(("1.6e\u22128", Fraction(16, 10**9)), ("1e3", 1000), ("1.0E+3", 1000), ("25e-2", Fraction(1, 4))),
    *(("10^3", 1000), ("10**3", 1000), ("10^{-2}", Fraction(1, 100)), ("1 × 10³", 1000), ("1.5x10^3", 1500)),
    *(("2 \\times 10^{3}", 2000), ("10⁻²", Fraction(1, 100)), ("-10^2", -100), ("3/4", Fraction(3, 4))),
    *(("6/8", Fraction(3, 4)), ("-3 / 4", Fraction(-3, 4)), ("¾", Fraction(3, 4)), ("1½", Fraction(3, 2))),
    *(("1 3/4", Fraction(7, 4)), ("-1 3/4", Fraction(-7, 4)), ("\\frac{3}{4}", Fraction(3, 4))),
    *(("\\frac34", Fraction(3, 4)), ("\\dfrac{3}4", Fraction(3, 4)), ("-\\frac{6}{8}", Fraction(-3, 4))),
    *(("**18**", 18), ("`18`", 18), ("\\(18\\)", 18), ("$18$", 18), ("$$18$$", 18)),
]
"""What is written, and the number it is."""

REFUSED: list[tuple[str, str]] = [
    *(("", "empty"), ("   ", "empty"), ("$", "empty"), ("%", "empty"), ("€18 USD", "two units, EUR and USD")),
    *(("€18 %", "two units"), ("18 USD USD USD", "single"), ("$$18", "single"), ("-", "not a number")),
    *(("six", "not a number"), ("1,30,000", "threes"), ("13,0000", "threes"), ("1234,567", "threes")),
    *(("0,123", "threes"), ("000,123", "threes"), ("2,34", "decimal comma")),
    *(("1.234,56", "after the decimal separator"), ("1.234.567", "more than one decimal point"), ("1,2,3", "threes")),
    *(("(1, 2)", "single"), ("1 000", "single"), ("11\u20442", "single"), ("1\u2044123", "single")),
    *(("1\u20442\u20443", "single"), ("1234\u00a0567", "single"), ("1.5\u00a0000", "single")),
    *(("2e1\u00a0000", "single"), ("1_000", "underscores"), ("1 000/4", "improper")),
    *(("1 234/1000", "group thousands"), ("1 5/4", "improper"), ("1/2/3", "single"), ("3/0", "division by zero")),
    *(("\\frac{3}{0}", "division by zero"), ("0/0", "division by zero"), ("10^2.5", "single")),
    *(("10^(3", "unbalanced"), ("10⁻", "single"), ("10⁻⁺3", "single"), ("2^3", "single"), ("NaN", "finite")),
    *(("inf", "finite"), ("-Infinity", "finite"), ("zoo", "finite"), ("undefined", "finite"), ("3!=7", "relation")),
    *(("2==2", "relation"), ("x = 5", "relation"), ("≈ 5", "single"), ("True", "truth value")),
    *(("false", "truth value"), ("٣", "another script"), ("１２", "another script"), ("--5", "single")),
    *(("3-5", "single"), ("3–5", "single"), ("5 km", "single"), ("5km", "single"), ("5 kg", "single")),
    *(("$18 EUR", "two units, $ and EUR"), ("0x10", "single"), ("__import__('os').system('touch x')", "not a")),
    *(("9" * 5000, "too long"), ("9" * (MAX_DIGITS + 1), "too long"), ("9" * (MAX_DIGITS + 1) + "½", "too long")),
    *(("1e1001", "too long"), ("1e" + "9" * 400, "too long"), ("10^99999", "too long")),
]


@all_rows("text, value", READ)
def test_reads_exactly(text: str, value: Exact) -> None:
    """A number in a usual notation is read as exactly that number, without unit."""
    numeral = read_numeral(text)
    assert (numeral.value, numeral.unit) == (value, None)
    assert type(numeral.value) is type(value)


@all_rows("text, reason", REFUSED)
def test_refuses_with_a_reason(text: str, reason: str) -> None:
    """What is no number, or has two usual readings, is refused and the reason says why."""
    with pytest.raises(ValueRefused) as refused:
        read_numeral(text)
    assert reason in refused.value.reason
    assert len(str(refused.value)) < 250


exact_numbers = st.one_of(
    st.integers(-(10**40), 10**40), st.fractions(max_denominator=10**6), st.decimals(-(10**9), 10**9).map(Fraction)
)


@given(exact_numbers)
@examples(200)
def test_formatting_and_reading_give_the_number_back(number: Exact) -> None:
    """What is printed for an exact number is read as that number."""
    assert read_numeral(format_exact(number)).value == number


@given(st.integers(-(10**15), 10**15), st.integers(0, 8))
@examples(100)
def test_grouping_does_not_change_a_number(digits: int, places: int) -> None:
    """Digits grouped in threes are the number without the groups."""
    number = Decimal(digits).scaleb(-places)
    assert read_numeral(f"{number:,f}").value == Fraction(number)


@given(
    st.text(st.sampled_from("0123456789.,/eE^*+-−x×10³⁻½%$€\\{}() \u00a0USDfrac"), max_size=14) | st.text(max_size=8)
)
@examples(300)
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever a model writes is read as a whole number or fraction, or refused; nothing else is raised."""
    try:
        value = read_numeral(text).value
    except ValueRefused:
        return
    assert type(value) is int or (type(value) is Fraction and value.denominator != 1)
