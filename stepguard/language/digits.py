"""The digits of a number, without sign or unit: decimals, groups, powers of ten, fractions and mixed numbers, exactly.

`stepguard.language.numerals` says what is read and what is refused.
"""

from __future__ import annotations

import re
from fractions import Fraction
from math import isqrt
from typing import Final
from unicodedata import normalize

from stepguard.core.patterns import lazy_pattern
from stepguard.errors import ValueRefused

Exact = int | Fraction
"""An exact number; a `Fraction` only where the denominator is not 1 (see `exact`)."""

MAX_DIGITS = 1000
"""The longest numeral that is read, in digits, and the largest decimal exponent."""

MINUS_SIGNS = "\u2212\u2010\u2011\u2012\u2013\ufe63\uff0d"
"""Characters used as a minus besides ``-``: dashes, hyphens and the mathematical sign."""

GROUPING: Final = "\u00a0\u2000-\u200a\u202f\u205f"
"""Blanks that may group digits, for a character class of a regular expression."""

VULGAR = "\u00bc-\u00be\u2150-\u215e"
"""Fraction signs such as ``½``, for a character class of a regular expression."""

_SMALL_FRACTION = lazy_pattern(r"(?<![0-9.,])([0-9])\u2044(?=[0-9]{1,2}\Z)")  # in `11⁄2` a whole one may have grown on
_SPACED = lazy_pattern(rf"(?P<sign>[-+]? ?)(?P<digits>[1-9][0-9]{{0,2}}(?:[{GROUPING}][0-9]{{3}})+)(?![0-9{GROUPING}])")
_PLACES = re.compile(r"[.,][0-9]{1,2}")
_NUMERATOR = lazy_pattern(r"[1-9][0-9]*\Z")
_VULGAR = lazy_pattern(f"[{VULGAR}]\\Z")
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_POWER = lazy_pattern(
    r"(?:(?P<mantissa>[^ ]+) ?(?:\*|x|×|·|\\times|\\cdot) ?)?10"
    r"(?:(?:\^|\*\*)(?P<open>[({]?)(?P<exponent>[-+]?[0-9]+)(?P<close>[)}]?)|(?P<raised>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+))\Z"
)
_LATEX_FRACTION = lazy_pattern(
    r"(?:([0-9]+)(?:[ ~]|\\[,;: ])?)?\\(?:[dtcs]|nice)?frac ?(?:\{([^{}]*)\}|([0-9])) ?(?:\{([^{}]*)\}|([0-9]))\Z"
)
_UNSIGNED = lazy_pattern(r"(?:[0-9][0-9.,]*|[.,][0-9]+)(?:[eE][-+]?[0-9]+)?\Z")


def exact(value: Exact) -> Exact:
    """The same number, as an `int` where it is whole."""
    if type(value) is Fraction and value.denominator == 1:
        return value.numerator
    return value


def bits_of(value: Exact) -> int:
    """The size of a number: the bits of its numerator and its denominator."""
    return value.numerator.bit_length() + value.denominator.bit_length()


def exact_root(value: Exact, degree: int) -> Exact | None:
    """The root of a number that is not negative, None where it is irrational."""
    over, under = _whole_root(value.numerator, degree), _whole_root(value.denominator, degree)
    return None if over is None or under is None else exact(Fraction(over, under))


def _whole_root(number: int, degree: int) -> int | None:
    if number < 2:
        return number
    if degree == 2:
        root = isqrt(number)
    else:
        # Below 2^(degree - 1), the root lies strictly between 1 and 2.
        if number.bit_length() < degree:
            return None
        low, high = 1, 1 << (number.bit_length() // degree + 1)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
        root = low
    return root if root**degree == number else None


def format_exact(value: Exact) -> str:
    """Write a number exactly: digits, a finite decimal short enough to be read again, or ``numerator/denominator``."""
    value = exact(value)
    if type(value) is int:
        return str(value)
    numerator, denominator = value.numerator, value.denominator
    twos = fives = 0
    rest = denominator
    # A decimal is finite only where the denominator has no other factors than 2 and 5.
    while rest % 2 == 0:
        rest //= 2
        twos += 1
    while rest % 5 == 0:
        rest //= 5
        fives += 1
    places = max(twos, fives)
    if rest == 1 and places < MAX_DIGITS:
        digits = str(abs(numerator) * 10**places // denominator).rjust(places + 1, "0")
        if len(digits) <= MAX_DIGITS:
            return f"{'-' if numerator < 0 else ''}{digits[:-places]}.{digits[-places:]}"
    return f"{numerator}/{denominator}"


def vulgar_fraction(sign: str) -> Fraction:
    """The value of a sign such as ``½``."""
    over, _, under = normalize("NFKC", sign).partition("\u2044")
    return Fraction(int(over), int(under))


def _join_spaced(body: str, decimal: str) -> str:
    """Join digits grouped by no-break or thin blanks; not in a fraction, where a blank may mean "and".

    Behind such groups a comma or a point with one or two digits can only be the decimal separator.
    """
    spaced = None if "/" in body else _SPACED.match(body)
    if spaced is None:
        return body
    part = body[spaced.end() :]
    if _PLACES.fullmatch(part):
        part = decimal + part[1:]
    return spaced["sign"] + re.sub("[^0-9]", "", spaced["digits"]) + part


def read_signed(body: str, decimal: str, text: str) -> Exact:
    """Read digits with an optional sign in front.

    Args:
        decimal: the decimal separator.
        text: what was written, for the reason of a refusal.

    Raises:
        ValueRefused: it is no number.
        ZeroDivisionError: it is a fraction with nothing below it.
    """
    body = _join_spaced(body, decimal)
    if not body:
        raise ValueRefused("empty: a number was expected", text=text)
    negative = body[0] == "-"
    if body[0] in "+-":
        body = body[1:].lstrip()
    value = _magnitude(body, decimal, text)
    return -value if negative else value


def _magnitude(body: str, decimal: str, text: str) -> Exact:
    body = _SMALL_FRACTION.sub(r"\1/", body)
    latex = _LATEX_FRACTION.match(body)
    if latex:
        over, under = (latex[2] or latex[3] or ""), (latex[4] or latex[5] or "")
        part = Fraction(read_signed(over.strip(), decimal, text)) / read_signed(under.strip(), decimal, text)
        if latex[1] is None:
            return part
        # A proper fraction of plain digits makes `3\frac{1}{4}` a mixed number; `3\frac{5}{4}` looks like a product.
        if not 0 < part < 1 or not (over + under).strip().isdigit():
            raise ValueRefused("a mixed number, or a product with a fraction", text=text)
        return _whole_part(latex[1], text) + part
    if _VULGAR.search(body):
        part = vulgar_fraction(body[-1])
        whole = body[:-1].strip()
        return part if not whole else part + _whole_part(whole, text)
    power = _POWER.match(body)
    if power:
        if (power["open"] or "") + (power["close"] or "") not in ("", "()", "{}"):
            raise ValueRefused("unbalanced brackets in the exponent", text=text)
        exponent = power["exponent"] or power["raised"].translate(_SUPERSCRIPT)
        mantissa = _decimal(power["mantissa"], decimal, text) if power["mantissa"] else 1
        return mantissa * _ten_to(exponent, text)
    if "/" in body:
        over, _, under = body.partition("/")
        whole, gap, numerator = over.strip().rpartition(" ")
        fraction = Fraction(_decimal(numerator, decimal, text)) / Fraction(_decimal(under.strip(), decimal, text))
        if not gap:
            return fraction
        if fraction >= 1 or not _NUMERATOR.match(numerator):
            raise ValueRefused("two numbers, or a mixed number with an improper fraction", text=text)
        # `1 234/5`: one thousand two hundred and thirty-four fifths, or one and 234 fifths.
        if len(numerator) == 3:
            raise ValueRefused("the blank could group thousands or separate a mixed number", text=text)
        return _whole_part(whole.strip(), text) + fraction
    return _decimal(body, decimal, text)


def _whole_part(body: str, text: str) -> int:
    if not (body.isascii() and body.isdigit()):
        raise ValueRefused("the whole part of a mixed number must be plain digits", text=text)
    if len(body) > MAX_DIGITS:
        raise ValueRefused(f"number too long: {len(body)} digits, at most {MAX_DIGITS} are read", text=text)
    return int(body)


def _ten_to(exponent: str, text: str) -> Exact:
    if len(exponent) > 5 or abs(int(exponent)) > MAX_DIGITS:  # the length first: converting many digits takes long
        raise ValueRefused(f"number too long: the exponent {exponent[:12]} passes {MAX_DIGITS}", text=text)
    power = int(exponent)
    return 10**power if power >= 0 else Fraction(1, 10**-power)


def _decimal(body: str, decimal: str, text: str) -> Exact:
    """Digits with optional grouping, decimal part and exponent; no sign."""
    if not _UNSIGNED.match(body):
        raise ValueRefused(why_not(body), text=text)
    mantissa, _, exponent = body.replace("E", "e").partition("e")
    group = "," if decimal == "." else "."
    if mantissa.count(decimal) > 1:
        if group not in mantissa and decimal == ".":
            raise ValueRefused("more than one decimal point (groups are separated by commas)", text=text)
        raise ValueRefused(f"more than one {decimal!r}", text=text)
    whole, _, part = mantissa.partition(decimal)
    if group in part:
        raise ValueRefused(f"{group!r} after the decimal separator {decimal!r}: which one is it?", text=text)
    if group in whole:
        first, *groups = whole.split(group)
        # Nobody groups behind a zero: ``0,123`` is a decimal in the other notation.
        if not first or first[0] == "0" or len(first) > 3 or any(len(each) != 3 for each in groups):
            hint = "a decimal comma?" if decimal == "." else "a decimal point?"
            raise ValueRefused(f"digits are not grouped in threes ({hint})", text=text)
        whole = first + "".join(groups)
    digits = whole + part
    if len(digits) > MAX_DIGITS:
        raise ValueRefused(f"number too long: {len(digits)} digits, at most {MAX_DIGITS} are read", text=text)
    value: Exact = int(digits)
    if part:
        value = Fraction(value, 10 ** len(part))
    return value * _ten_to(exponent, text) if exponent else value


def why_not(body: str) -> str:
    """Say why a text is not a number."""
    lowered = body.lower()
    if lowered in {"nan", "inf", "infinity", "∞", "zoo", "undefined"}:
        return "not a finite number"
    if any(sign in body for sign in "=<>≠≤≥"):
        return "a relation is not a value"
    if lowered in {"true", "false", "yes", "no"}:
        return "a truth value is not a number"
    if any(char.isdigit() and not char.isascii() for char in body):
        return "digits of another script"
    if "_" in body and not body.strip("0123456789_.,"):
        return "underscores do not group digits"
    if any(char.isdigit() for char in body):
        return "not a single plain number"
    return "not a number"
