"""Every notation of a number that is read, its limits, and what stands just beside it and is refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from tables import all_rows

from stepguard.errors import ValueRefused
from stepguard.language.digits import MAX_DIGITS, Exact, exact, format_exact
from stepguard.language.numerals import read_numeral

M = MAX_DIGITS


def read(text: str, value: Exact, unit: str | None = None, *, comma: bool = False) -> None:
    numeral = read_numeral(text, decimal="," if comma else ".")
    assert (numeral.value, numeral.unit) == (value, unit)
    assert type(numeral.value) is type(value)


def refused(text: str, *, comma: bool = False) -> str:
    with pytest.raises(ValueRefused) as caught:
        read_numeral(text, decimal="," if comma else ".")
    assert len(str(caught.value)) < 250
    return caught.value.reason


@all_rows(
    "char, over, under",
    [
        ("¼", 1, 4), ("½", 1, 2), ("¾", 3, 4), ("⅐", 1, 7), ("⅑", 1, 9), ("⅒", 1, 10), ("⅓", 1, 3), ("⅔", 2, 3),
        ("⅕", 1, 5), ("⅖", 2, 5), ("⅗", 3, 5), ("⅘", 4, 5), ("⅙", 1, 6), ("⅚", 5, 6), ("⅛", 1, 8), ("⅜", 3, 8),
        ("⅝", 5, 8), ("⅞", 7, 8),
    ],
)  # fmt: skip
def test_fractions_of_one_character(char: str, over: int, under: int) -> None:
    """Each fraction that is one character is read, alone and behind a whole part."""
    read(char, Fraction(over, under))
    read(f"-{char}", Fraction(-over, under))
    read(f"2{char}", 2 + Fraction(over, under))
    read(f"-2 {char}", -2 - Fraction(over, under))


@all_rows("text, value", [
    *(("0", 0), ("-0", 0), ("007", 7), ("+5", 5), (" 5\n", 5), ("5.", 5), (".5", Fraction(1, 2)), ("2.0", 2)),
    *(("0.29999999999999998", Fraction(29999999999999998, 10**17)), ("9007199254740993", 9007199254740993)),
    *(("-12,345,678.90", Fraction(-1234567890, 100)), ("1\u202f234\u202f567.5", Fraction(12345675, 10))),
    *(("3\u20444", Fraction(3, 4)), ("1 3\u20444", Fraction(7, 4)), ("-1\u204412", Fraction(-1, 12))),
    *(("3\u22154", Fraction(3, 4)), ("1\u22c510^3", 1000), ("1.6e\u22128", Fraction(16, 10**9)), ("1.0E+3", 1000)),
    *(("10^{-2}", Fraction(1, 100)), ("1.5x10^3", 1500), ("-10^2", -100), ("6/8", Fraction(3, 4))),
    *(("2 \\times 10^{3}", 2000), ("-1 3/4", Fraction(-7, 4)), ("\\frac34", Fraction(3, 4)), ("$$18$$", 18)),
    *(("\\dfrac{3}4", Fraction(3, 4)), ("-\\frac{6}{8}", Fraction(-3, 4))),
    *((f"2.5{sign}10^3", 2500) for sign in ("*", "x", "×", "·", "\\times", "\\cdot")),
    *((f"2.5 {sign} 10^3", 2500) for sign in ("*", "x", "×", "·", "\\times", "\\cdot")),
    ("-2 x 10^3", -2000),
    ("1,500 x 10^-2", 15),
    ("10^(3)", 1000),
    ("10^{3}", 1000),
    ("10**+3", 1000),
    ("10^-3", Fraction(1, 1000)),
    ("10^-1", Fraction(1, 10)),
    ("1e-1", Fraction(1, 10)),
    ("10^0", 1),
    ("10^00003", 1000),
    (f"10^{M}", 10**M),
    (f"10^+{M}", 10**M),
    (f"10^-{M}", Fraction(1, 10**M)),
    ("1e0", 1),
    ("1.5e3", 1500),
    ("1.5E-3", Fraction(3, 2000)),
    (".5e1", 5),
    ("5.e1", 50),
    ("1,234e1", 12340),
    (f"1e{M}", 10**M),
    ("1e00003", 1000),
    *(("3/4", Fraction(3, 4)), ("3 / 4", Fraction(3, 4)), ("8/4", 2), ("1,000/3", Fraction(1000, 3))),
        *(("1.5/2", Fraction(3, 4)), ("1e2/3", Fraction(100, 3)), ("-3/4", Fraction(-3, 4))),
        *(("1 3/4", Fraction(7, 4)), ("0 3/4", Fraction(3, 4)), ("-2  1/2", Fraction(-5, 2))),
        *(("1 12/100", Fraction(112, 100)), ("1 1234/10000", Fraction(11234, 10000))),
        *(("\\frac{3}{4}", Fraction(3, 4)), ("\\tfrac{3}{4}", Fraction(3, 4)), ("\\dfrac 34", Fraction(3, 4))),
        *(("\\frac3{4}", Fraction(3, 4)), ("\\frac{3} 4", Fraction(3, 4)), ("\\frac{ -3 }{ 4 }", Fraction(-3, 4))),
        *(("\\frac{3}{-4}", Fraction(-3, 4)), ("-\\frac{1,000}{3}", Fraction(-1000, 3))),
        ("\\(\\frac{3}{4}\\)", Fraction(3, 4)),
    ("9" * M, 10**M - 1), ("-" + "9" * M, 1 - 10**M), ("1" * (M - 2) + ".11", Fraction(int("1" * M), 100)),
        ("9" * M + "½", 10**M - 1 + Fraction(1, 2)), ("5" + " " * (4 * M - 1), 5), ("1" * 301, int("1" * 301)),
])  # fmt: skip
def test_reads_exactly(text: str, value: Exact) -> None:
    """Plain, grouped, scientific and mixed numbers and fractions are read exactly, up to a thousand digits."""
    read(text, value)


@all_rows("text, says", [
    *(("", "empty"), ("   ", "empty"), ("$", "empty"), ("%", "empty"), ("$$18", "single"), ("-", "not a number")),
    *(("1,30,000", "threes"), ("13,0000", "threes"), ("000,123", "threes"), ("2,34", "decimal comma")),
    *(("(1, 2)", "single"), ("11\u20442", "single"), ("1\u2044123", "single"), ("1\u20442\u20443", "single")),
    *(("1234\u00a0567", "single"), ("1.5\u00a0000", "single"), ("2e1\u00a0000", "single"), ("1 000/4", "improper")),
    *(("1 234/1000", "group thousands"), ("3/0", "division by zero"), ("\\frac{3}{0}", "division by zero")),
    *(("10^(3", "unbalanced"), ("10⁻", "single"), ("10⁻⁺3", "single"), ("2^3", "single"), ("≈ 5", "single")),
    *(("3!=7", "relation"), ("2==2", "relation"), ("--5", "single"), ("3-5", "single"), ("3–5", "single")),
    *(("5km", "single"), ("0x10", "single"), ("__import__('os').system('touch x')", "not a"), ("9" * 5000, "too long")),
    *(("18 USD USD USD", "single"), ("1e" + "9" * 400, "too long"), ("10^99999", "too long")),
    ("10^(3}", "unbalanced"), ("10^{3)", "unbalanced"), ("10^3)", "unbalanced"), ("10^{3", "unbalanced"),
    ("2 10^3", "single"), ("10^3 x 2", "single"), ("2 + 10^3", "single"), ("10^", "single"), ("10^x", "not a"),
    ("10^3.5", "single"), ("100^3", "single"), (f"10^{M + 1}", "too long"), (f"10^-{M + 1}", "too long"),
    ("10^000003", "too long"), ("1e000003", "too long"), (f"1e-{M + 1}", "too long"), ("1e", "single"),
    ("1e5.5", "single"), ("e5", "single"), ("--2 x 10^3", "single"),
    ("3/", "not a number"), ("/4", "not a number"), ("3/-4", "single"), ("1/2/3", "single"),
    ("1 4/4", "improper"), ("1 5/4", "improper"), ("1 0/4", "improper"), ("1 03/4", "improper"),
    ("1 1.5/2", "improper"), ("1.5 1/2", "plain digits"), ("1,000 1/2", "plain digits"),
    ("x 1/2", "plain digits"),
    ("1 2 1/2", "plain digits"), ("1 123/1000", "could group"), ("1\u00a0000/4", "single"),
    ("1,000½", "plain digits"),
    ("x½", "plain digits"), ("½½", "plain digits"), ("²½", "plain digits"), ("½1", "single"),
    ("1 3/0", "division by zero"),
    ("\\frac{}{4}", "empty"), ("\\frac{3}{}", "empty"), ("\\frac{3}{4}5", "single"), ("\\frac{3}", "single"),
    ("\\frac{{3}}{4}", "single"), ("1\\frac{5}{4}", "mixed"), ("\\frac{0}{0}", "division by zero"),
    ("9" * (M + 1), f"{M + 1} digits"), ("1" * (M - 1) + ".11", f"{M + 1} digits"), ("0" * (M + 1), "digits"),
        ("9" * (M + 1) + "½", f"{M + 1} digits"), ("9" * (M + 1) + " 1/2", f"{M + 1} digits"),
        ("5" + " " * 4 * M, f"{4 * M + 1} characters"),
    *((word, "finite") for word in ("nan", "INF", "Infinity", "-∞", "zoo", "Undefined")),
        *((f"x {sign} 5", "relation") for sign in "=<>≠≤≥"),
        *((word, "truth value") for word in ("true", "FALSE", "Yes", "no")),
        *((word, "another script") for word in ("٣", "३४", "１２")),
        *((word, "underscores") for word in ("1_000", "1_000.5", "1_0,5", "_1")),
        *((word, "single plain number") for word in ("5 km", "5 6", "a_5", "1 000")),
        *((word, "not a number") for word in ("five", "?", "x", "a_b")),
])  # fmt: skip
def test_refuses_with_a_reason(text: str, says: str) -> None:
    """What is no number, has two usual readings, or is too long, is refused, and the reason says what was found."""
    assert says in refused(text)


@all_rows("sign", ["-", "\u2212", "\u2013", "\u2012", "\u2011", "\u2010", "\ufe63", "\uff0d"])
def test_every_minus(sign: str) -> None:
    """Hyphens, dashes and minus signs in front of a number are a minus."""
    for text in (f"{sign}5", f"{sign} 5", f"**{sign}5**", f"+{sign}5"):
        if text[0] == "+":
            assert "single" in refused(text)
        else:
            read(text, -5)


@all_rows("digit", range(10))
def test_raised_digits(digit: int) -> None:
    """Raised digits are exponents."""
    raised = "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]
    read(f"10{raised}", 10**digit)
    read(f"3 × 10⁺¹{raised}", 3 * 10 ** (10 + digit))
    read(f"10⁻¹{raised}", Fraction(1, 10 ** (10 + digit)))


@pytest.mark.parametrize("blank", ["\u00a0", "\u2009", "\u202f"])
def test_digits_grouped_by_blanks(blank: str) -> None:
    """No-break and thin blanks group digits in threes, with a sign, decimals and an exponent around them."""
    read(f"1{blank}234", 1234)
    read(f"-12{blank}345{blank}678", -12345678)
    read(f"+ 1{blank}000.5", Fraction(2001, 2))
    read(f"1{blank}234,5", Fraction(2469, 2), comma=True)
    read(f"100{blank}000e1", 1000000)
    read(f"$1{blank}234", 1234, "$")
    for text in ("0 123", "1 23", "1 2345", "1234 567", "1 234 5", "1 234 56", "x1 234", "1 234 abc", "01 234"):
        refused(text.replace(" ", blank))


@all_rows("text, value, unit", [
    ("18%", Fraction(9, 50), "%"), ("-18 %", Fraction(-9, 50), "%"), ("18\\%", Fraction(9, 50), "%"),
    ("18 percent", Fraction(9, 50), "%"), ("18 Per Cent", Fraction(9, 50), "%"), ("1/2 %", Fraction(1, 200), "%"),
    ("- 18%", Fraction(-9, 50), "%"), ("+18%", Fraction(9, 50), "%"),
    ("18 dollars", 18, "$"), ("1 dollar", 1, "$"), ("18 euros", 18, "EUR"), ("18 EURO", 18, "EUR"),
    ("18 pounds", 18, "GBP"), ("-18 dollars", -18, "$"),
    ("18 USD", 18, "USD"), ("18USD", 18, "USD"), ("USD 18", 18, "USD"), ("USD18", 18, "USD"),
    ("CHF -18", -18, "CHF"),
    ("-CHF 18", -18, "CHF"), ("- 18 CHF", -18, "CHF"), ("+18 CHF", 18, "CHF"), ("+$18", 18, "$"),
    ("+ CHF 18", 18, "CHF"),
    ("$18", 18, "$"), ("$ 18", 18, "$"), ("18$", 18, "$"), ("18 $", 18, "$"), ("-$18", -18, "$"),
    ("- $18", -18, "$"),
    ("$-18", -18, "$"), ("\\$18", 18, "$"), ("18 \\$", 18, "$"), ("US$18", 18, "USD"), ("18 US$", 18, "USD"),
    ("€18", 18, "EUR"), ("18€", 18, "EUR"), ("-€18", -18, "EUR"), ("¥18", 18, "¥"),
    ("CA$18", 18, "CAD"), ("18 AU$", 18, "AUD"), ("NZ$ 18", 18, "NZD"), ("18 HK$", 18, "HKD"), ("R$18", 18, "BRL"),
    ("£18", 18, "GBP"), ("₹18", 18, "INR"), ("₩18", 18, "KRW"), ("18₽", 18, "RUB"), ("18 ₺", 18, "TRY"),
    ("18₫", 18, "VND"), ("₪18", 18, "ILS"), ("18 euro", 18, "EUR"),
    ("$18 USD", 18, "USD"), ("USD $18", 18, "USD"), ("€18 EUR", 18, "EUR"), ("¥18 JPY", 18, "JPY"),
    ("JPY ¥18", 18, "JPY"), ("-$18 CAD", -18, "CAD"), ("USD 18 USD", 18, "USD"), ("US$18 USD", 18, "USD"),
    ("**$18.50**", Fraction(37, 2), "$"), ("US$18 dollars", 18, "USD"), ("¥18 CNY", 18, "CNY"),
    ("$18 dollars", None, "single"), ("$18 EUR", None, "two units, $ and EUR"),
    ("€18 USD", None, "two units, EUR and USD"), ("USD 18 EUR", None, "two units, USD and EUR"),
    ("$18%", None, "two units, $ and %"), ("18%%", None, "single"), ("%18", None, "single"),
    ("18 QQQ", None, "single"),
    ("18dollars", None, "single"), ("dollars", None, "not a number"), ("18 usd", None, "single"),
    ("USD", None, "empty"),
    ("18 % USD", None, "two units"), ("€", None, "empty"), ("percent 18", None, "single"),
    ("--$18", None, "single"),
    ("-$-18", None, "single"), ("18 dollarss", None, "single"),
])  # fmt: skip
def test_units(text: str, value: Exact | None, unit: str) -> None:
    """A percent sign or a currency is taken off either end, twice only where both mean the same currency."""
    if value is None:
        assert unit in refused(text)
    else:
        read(text, value, unit)


@all_rows(
    "left, right", [("**", "**"), ("__", "__"), ("`", "`"), ("\\(", "\\)"), ("$", "$"), ("*", "*"), ("**`", "`**")]
)
def test_markup_around_a_number(left: str, right: str) -> None:
    """Marks that set a number off are taken away in pairs, with blanks inside, and never without a number."""
    read(f"{left}18{right}", 18)
    read(f" {left} -18 {right}\n", -18)
    read(f"{left}5%{right}", Fraction(1, 20), "%")
    for text in (f"{left}{right}", f"{left} {right}"):
        refused(text)
    if left != "$":  # which alone is a currency
        refused(f"{left}18")
        refused(f"18{right}")


@all_rows(
    "text, value, comma",
    [
        ("1,234.5", Fraction(2469, 2), False), ("12,345", 12345, False), ("123,456", 123456, False),
        ("1,000,000", 10**6, False), ("1.", 1, False), ("0.5", Fraction(1, 2), False),
        ("00.50", Fraction(1, 2), False),
        ("1.000", 1, False), ("12.3456", Fraction(123456, 10**4), False), ("1,000.", 1000, False),
        ("1.234,5", Fraction(2469, 2), True), (",5", Fraction(1, 2), True), ("0,123", Fraction(123, 1000), True),
        ("1,234", Fraction(1234, 1000), True), ("12.345", 12345, True), ("1,", 1, True), ("1,5e2", 150, True),
        ("1,5/2", Fraction(3, 4), True), ("1,5 × 10^2", 150, True), ("1,5%", Fraction(3, 200), True), ("5", 5, True),
        ("\\frac{1,5}{2}", Fraction(3, 4), True),
    ],
)  # fmt: skip
def test_grouped_and_decimal(text: str, value: Exact, comma: bool) -> None:
    """One separator groups in threes, the other starts the decimals, whichever way round is configured."""
    read(text, value, "%" if "%" in text else None, comma=comma)


@all_rows(
    "text, comma, says",
    [
        ("1,23", False, "a decimal comma?"), ("1.23", True, "a decimal point?"), ("0.123", True, ""), (".5", True, ""),
        ("1,234,567", True, ""), ("1,5.000", True, ""), ("1234,567", False, "threes"),
        ("0,123", False, "threes"), ("012,345", False, "threes"), (",123", False, "threes"),
        ("1,,234", False, "threes"),
        ("1,234,", False, "threes"), ("1,2345", False, "threes"), ("1,23,456", False, "threes"),
        ("1,234,56", False, "threes"),
        ("1.234,5", False, "after the decimal separator"), ("1,234.5", True, "after the decimal separator"),
        ("1.2.3", False, "more than one decimal point"), ("1,2,3", True, "more than one ','"),
        ("1,234.5.6", False, "more than one '.'"), (".", False, "not a number"), ("1.5.", False, "more than one"),
    ],
)  # fmt: skip
def test_wrong_groups_and_separators(text: str, comma: bool, says: str) -> None:
    """Digits in other groups, a second decimal separator and a group among the decimals are refused."""
    assert says in refused(text, comma=comma)


def test_a_thousand_digits_are_the_most() -> None:
    """A thousand digits, or an exponent of a thousand, are read, and one more is not."""
    read("9" * 1000, 10**1000 - 1)
    read("1e1000", 10**1000)
    assert "at most 1000 are read" in refused("9" * 1001)
    assert "passes 1000" in refused("1e1001")


@all_rows("value, text", [
    (0, "0"), (-12, "-12"), (Fraction(1, 2), "0.5"), (Fraction(-1, 2), "-0.5"), (Fraction(7, 2), "3.5"),
    (Fraction(1, 8), "0.125"), (Fraction(1, 5), "0.2"), (Fraction(1, 25), "0.04"), (Fraction(1, 20), "0.05"),
    (Fraction(-1, 100), "-0.01"), (Fraction(123, 10), "12.3"), (Fraction(1, 3), "1/3"), (Fraction(-5, 6), "-5/6"),
    (Fraction(1, 15), "1/15"), (Fraction(1, 14), "1/14"), (Fraction(3, 1), "3"), (Fraction(-30, 1), "-30"),
    (Fraction(1, 10 ** (M - 1)), "0." + "0" * (M - 2) + "1"),
    (Fraction(1, 10**M), f"1/{10**M}"),
    (Fraction(1, 2**M), f"1/{2**M}"), (Fraction(1, 5**M), f"1/{5**M}"), (Fraction(1, 2**5000), f"1/{2**5000}"),
    (12 + Fraction(1, 2 ** (M - 2)), "12." + str(5 ** (M - 2)).rjust(M - 2, "0")),
    (12 + Fraction(1, 2 ** (M - 1)), f"{12 * 2 ** (M - 1) + 1}/{2 ** (M - 1)}"),
])  # fmt: skip
def test_exact_numbers_as_text(value: Exact, text: str) -> None:
    """A number is shown with its decimals where these are finitely many and can be read again, else as a fraction."""
    assert format_exact(value) == text
    if len(text) <= M + 1:
        read(text, exact(value))


def test_a_whole_number_is_an_integer() -> None:
    """A fraction with denominator one becomes an integer, and nothing else changes."""
    assert type(exact(Fraction(6, 3))) is int
    assert exact(Fraction(6, 3)) == 2
    assert exact(Fraction(1, 3)) == Fraction(1, 3)
    assert exact(5) == 5


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
