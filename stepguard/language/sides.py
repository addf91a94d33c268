"""One side of an equality as an exact number, or as several where it can be read in several ways."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from stepguard.errors import EvaluationError, ExpressionError, ValueRefused
from stepguard.language.decimal_comma import with_point
from stepguard.language.digits import Exact
from stepguard.language.evaluation import evaluate
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.numerals import read_numeral
from stepguard.language.values import round_exact

SideComparison = Literal["equal", "rounded", "different", "unclear"]

_MAX_SIDE: Final = 2000
_INTEGER: Final = re.compile(r"-?[0-9]{1,60}\Z")
_CURRENCY: Final = re.compile(r"[$€£¥₹]")
_NUMERAL: Final = re.compile(r"[-+]?\(?[-+]?(?:[0-9][0-9,]*(?P<part>\.[0-9]*)?|(?P<bare>\.[0-9]+))\)?\Z")
_PERCENT: Final = re.compile(r"([0-9][0-9.,]*|\.[0-9]+) ?%(?=\s*(?:[*/)]|\Z))")
_GROUPS: Final = re.compile(r"[0-9][.,][0-9]")
# -2^2 and 2^3^2 are read in two ways, // and the remainder of negative numbers depend on the language.
_UNCLEAR: Final = re.compile(r"-\s*[0-9.]+\s*(?:\^|\*\*)|(?:\^|\*\*)[^-+*/^]{1,40}(?:\^|\*\*)|//|/\s*\*|\*\s*/")
_DATE: Final = re.compile(
    r"(?<![0-9.])(?:(?:1[5-9]|20)[0-9]{2}([-/])(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12][0-9]|3[01])(?![0-9.])"
    r"|[0-9]{1,2}([-/])[0-9]{1,2}\2(?:1[5-9]|20)[0-9]{2}(?![0-9.]))"
)
_CONVERSIONS: Final = frozenset(
    (
        *(2, 3, 4, 5, 7, 8, 10, 12, 14, 16, 20, 24, 25, 28, 30, 31, 32, 36, 48, 50, 52, 60, 64, 72, 90, 96, 100, 120),
        *(128, 144, 168, 180, 365, 366, 480, 720, 1000, 1440, 1728, 1760, 2000, 3600, 5280, 10_000, 86_400, 100_000),
        *(1_000_000, 1_000_000_000),
    )
)
"""How many of one unit usually make another."""


@dataclass(frozen=True, slots=True)
class Side:
    """A side of an equality.

    Attributes:
        text: as it was written, without what surrounds it.
        value: its value in the usual reading.
        other: its value in another reading, such as with a decimal comma; None where there is none.
        places: decimal places, where it is a single number.
        percent: whether a percent sign stands in it.
        unit: whether a currency sign, or a word behind it, may be a unit.
        single: whether it is a number and nothing more.
    """

    text: str
    value: Exact
    other: Exact | None = None
    places: int | None = None
    percent: bool = False
    unit: bool = False
    single: bool = False


def read_side(text: str, *, unit: bool = False) -> Side | None:
    """A side that holds numbers only, None where it cannot be read with certainty."""
    if _INTEGER.match(text):
        return Side(text, int(text), places=0, unit=unit, single=True)
    if len(text) > _MAX_SIDE:
        return None
    body = _CURRENCY.sub("", text).strip()
    percent = "%" in body
    if percent:
        if any(sign in body[1:] for sign in "+-"):
            return None  # 100 + 20% may mean a fifth more
        body = _PERCENT.sub(r"(\1/100)", body)
        if "%" in body:
            return None
    if _UNCLEAR.search(body) or _DATE.search(body):
        return None
    value = _value(body)
    if value is None:
        return None
    numeral = _NUMERAL.match(body)
    places = None if numeral is None else max(len(numeral["part"] or numeral["bare"] or ".") - 1, 0)
    single = numeral is not None or (percent and _NUMERAL.match(text.replace("%", "").strip()) is not None)
    comma = _comma_value(body) if _GROUPS.search(body) else None
    return Side(
        text,
        value,
        other=None if comma == value else comma,
        places=places,
        percent=percent,
        unit=unit or len(body) != len(text.strip()),
        single=single,
    )


def _value(body: str) -> Exact | None:
    try:
        found = evaluate(parse_expression(body), {})
    except (ExpressionError, EvaluationError, KeyError):
        try:
            return read_numeral(body).value  # such as 1 3/4
        except ValueRefused:
            return None
    return None if isinstance(found, bool | str) else found


def _comma_value(body: str) -> Exact | None:
    try:
        return _value(with_point(body))
    except ValueRefused:
        return None


def compare(left: Side, right: Side) -> SideComparison:
    """Whether two sides are equal in any way of reading them; ``different`` only where they are so in every way."""
    comparison = _compare(left.value, right.value, left, right)
    if comparison != "different" or (left.other is None and right.other is None):
        return comparison
    other = (
        (left.other if left.other is not None else left.value),
        (right.other if right.other is not None else right.value),
    )
    return "different" if _compare(*other, left, right) == "different" else "unclear"


def _compare(one: Exact, other: Exact, left: Side, right: Side) -> SideComparison:
    if one == other:
        return "equal"
    if _rounds(one, other, right.places) or _rounds(other, one, left.places):
        return "rounded"
    if left.percent or right.percent:
        for factor in (100, Fraction(1, 100)):
            if one * factor == other:
                return "equal"
            if _rounds(one * factor, other, right.places if not right.percent else 4):
                return "rounded"
        if right.single and right.percent:
            places = len(right.text.partition(".")[2].rstrip("% "))
            if _rounds(one * 100, other * 100, places) or _rounds(one, other * 100, places):
                return "rounded"
    if (left.unit or right.unit) and one and other:
        ratio = abs(Fraction(one) / other)
        if max(ratio, 1 / ratio) in _CONVERSIONS:
            return "unclear"
    return "different"


def _rounds(value: Exact, written: Exact, places: int | None) -> bool:
    """Whether a number with `places` decimals may be `value`, rounded or cut off; whole numbers may be rounded up."""
    if places is None:
        return False
    if places == 0:
        return type(value) is Fraction and abs(value - written) < 1
    if any(round_exact(value, places, mode) == written for mode in ("half_up", "half_even", "down")):
        return True
    # What floating point makes of an exact value.
    return places >= 10 and bool(abs(Fraction(value) - written) <= abs(Fraction(value)) / 10**9)
