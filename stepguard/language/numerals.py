"""Numbers as people and models write them, read exactly or refused with a reason.

One grammar for every value that enters stepguard as text. The reading never rounds (results are `int` or
`fractions.Fraction`) and never guesses: where two readings are usual, the text is refused and the reason says why.

Read
    ``130,000``  ``-5`` (also with U+2212 and other dashes)  ``1e3``  ``1.0E+3``  ``10^3``  ``1 x 10^3``  ``3/4``
    ``1 3/4``  ``¾``  ``1\\frac{3}{4}``  ``28%``  ``$18``  ``18 USD``  ``$18 USD``  ``**18**``

Refused
    wrong grouping (``13,0000``, ``0,123``, ``1_000``), a decimal comma (``2,34``) unless `decimal=","` is given,
    division by zero (``3/0``), NaN and infinity, relations (``2==2``), digits of other scripts, anything longer than
    `MAX_DIGITS`.

A single group after a comma (``1,234``) is read as one thousand two hundred and thirty-four, as English writes it;
with ``decimal=","`` it is the decimal fraction 1.234 and ``1.234`` the whole number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from stepguard.core.patterns import lazy_pattern
from stepguard.errors import ValueRefused
from stepguard.language.currencies import CODE, CODES, SIGN, SIGNS, SURE_CODE, WORDS, compatible, other_currency
from stepguard.language.digits import MAX_DIGITS, MINUS_SIGNS, Exact, exact, read_signed, why_not
from stepguard.language.unseen import BLANKS

_SCALES: Final = {
    "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "k": 10**3, "m": 10**6, "mn": 10**6, "b": 10**9, "bn": 10**9,
    "\u4e07": 10**4, "\u842c": 10**4, "\ub9cc": 10**4, "\u5104": 10**8, "\u4ebf": 10**8, "\uc5b5": 10**8,
}  # fmt: skip
"""Scale behind an amount -> its factor; letters count only for money: `5 m` may be metres."""
_LETTERS: Final = frozenset({"k", "m", "mn", "b", "bn"})
WIDE_DIGITS: Final = "〇零一二三四五六七八九十百千万萬億亿兆壱弐参两兩壹贰叁肆伍陆柒捌玖拾佰仟半数數만억조천백십"
"""Digits and scales of Chinese, Japanese and Korean."""
_BLANK: Final = f"[{BLANKS}]"
_POINTS: Final = rf"{_BLANK}?-?(?i:points?|pts?)\b(?!{_BLANK}(?:to|at|out|towards?)\b)"
"""Percentage points, behind a percent sign: a difference of percentages is itself no percentage."""


def amount_front(*, strict: bool) -> str:
    """A regular expression for what may precede the digits of an amount: its sign and its currency.

    Args:
        strict: whether the amount is all that a text holds; among other words less may stand between its parts.
    """
    gap = f"{_BLANK}*" if strict else ""
    code = (
        rf"(?P<code>{CODE}){gap}"
        if strict
        else rf"(?P<code>\b(?:(?:{CODE})(?={_BLANK})|(?:{SURE_CODE})(?=[0-9]))){_BLANK}?"
    )
    sign = rf"(?P<currency>{SIGN}){gap or _BLANK + '?'}"
    both = rf"(?:{code})?(?:{sign})?" if strict else rf"(?:{sign}|{code})?"
    return rf"(?P<sign>[-{MINUS_SIGNS}+])?{gap}{both}(?P<inner>[-{MINUS_SIGNS}])?"


def amount_back(*, strict: bool) -> str:
    """A regular expression for what may follow the digits of an amount: its scale, and a percent sign or currency."""
    gap = f"{_BLANK}*" if strict else f"{_BLANK}?"
    percent = rf"{gap}(?P<percent>(?:\\?%|(?i:per{_BLANK}?cent|pct)\b)(?!{_POINTS}))"
    sign = rf"{gap}(?P<sign_behind>{SIGN})(?!{_BLANK}?[0-9])"
    name = rf"{gap}(?P<code_behind>{CODE})\b|{_BLANK}(?P<word>(?i:{'|'.join(WORDS)}))\b"
    units = rf"(?:{percent})?(?:{sign})?(?:{name})?" if strict else rf"(?:{percent}|{sign}|{name})?"
    return (
        rf"(?P<scale>{_BLANK}(?i:hundred|thousand|million|billion|trillion)\b"
        rf"|(?<!{_BLANK})(?:mn|bn|[kKmMbB])(?!(?!(?:{CODE})\b)\w)"
        rf"|{_BLANK}?[\u4e07\u842c\ub9cc\u5104\u4ebf\uc5b5](?![0-9{WIDE_DIGITS}]))?{units}"
    )


_PLAIN_INTEGER: Final = lazy_pattern(r"[-+]?[0-9]{1,300}\Z")
_PLAIN_DECIMAL: Final = lazy_pattern(r"[0-9.][0-9.,]*")
_PLAIN_POINT: Final = lazy_pattern(r"(?P<whole>-?[0-9]{1,150})\.(?P<part>[0-9]{1,150})\Z")
# The number is as short as can be, so that a scale, a sign or a currency behind it is no part of it.
_STRICT: Final = lazy_pattern(rf"{amount_front(strict=True)}(?P<number>.*?){amount_back(strict=True)}")
_WITH_UNIT: Final = lazy_pattern(
    r"(?P<sign>[-+]?)[^0-9]{0,15}?(?P<number>[0-9][0-9.,]*)"
    r"(?P<scale>[\u4e07\u842c\u5104\u4ebf\ub9cc\uc5b5])?"
)
# Blanks between groups only where cents leave no doubt that it is one number.
_PLAIN_GROUPS: Final = lazy_pattern(r"[1-9][0-9]{0,2}(?: [0-9]{3})+[.,][0-9]{2}")
_SIGNS: Final = str.maketrans({**dict.fromkeys(MINUS_SIGNS, "-"), "\u2215": "/", "\u22c5": "\u00b7"})
# Longer marks first: `**5**` is bold, and not `*5*` in italics.
_MARKUP: Final = (("**", "**"), ("__", "__"), ("`", "`"), ("\\(", "\\)"), ("$", "$"), ("*", "*"))


@dataclass(frozen=True, slots=True)
class Numeral:
    """A number that was read: its exact `value`, and the `unit` written with it.

    `unit` is ``"%"`` (the value is already divided by 100), a currency (an ISO code, ``"$"`` or ``"\u00a5"`` where the
    sign alone does not say which), or None.
    """

    value: Exact
    unit: str | None = None


def read_numeral(text: str, *, decimal: Literal[".", ","] = ".", named: bool = False) -> Numeral:
    """Read the one number that a text consists of.

    Args:
        text: what was written, surrounding white space and simple markup allowed.
        decimal: the decimal separator; the other one of ``.`` and ``,`` may group thousands.
        named: whether a currency may stand by its name, too: ``5 yen``, ``5\u5186``, ``RM5``.

    Raises:
        ValueRefused: the text is no number, or could be read in more than one way.
    """
    if _PLAIN_INTEGER.match(text):  # the fast paths: nearly every number is one of these two
        return Numeral(int(text))
    if decimal == "." and (plain := _PLAIN_POINT.match(text)):
        return Numeral(exact(Fraction(int(plain["whole"] + plain["part"]), 10 ** len(plain["part"]))))
    if len(text) > 4 * MAX_DIGITS:
        raise ValueRefused(f"too long for a number ({len(text)} characters)", text=text)
    body = _strip_markup(text.strip()).translate(_SIGNS)
    try:
        return _strict_numeral(body, decimal, text)
    except ZeroDivisionError:
        raise ValueRefused("undefined: division by zero", text=text) from None
    except ValueRefused:
        found = _by_name(body, decimal) if named else None
        if found is None:
            raise
        return found


def _strict_numeral(body: str, decimal: Literal[".", ","], text: str) -> Numeral:
    match = _STRICT.fullmatch(body)
    # With a sign on both sides of the currency, -$-5, one of them is a slip.
    if match is None or (match["sign"] and match["inner"]):
        raise ValueRefused(why_not(body), text=text)
    unit = one_unit(units_in_front(match) + units_behind(match), text)
    number = match["number"].strip()
    if not number and (match["sign"] or match["inner"]):
        raise ValueRefused(why_not(body), text=text)
    money = unit not in (None, "%")
    scale = scale_of(match["scale"], money=money)
    if scale is None or (match["scale"] and not (money and _PLAIN_DECIMAL.fullmatch(number))):
        raise ValueRefused(why_not(body), text=text)
    if money and _PLAIN_GROUPS.fullmatch(number):
        number = number.replace(" ", "\u00a0")
    value = Fraction(read_signed(number, decimal, text)) * scale
    value = -value if "-" in (match["sign"], match["inner"]) else value
    return Numeral(exact(value / 100 if unit == "%" else value), unit)


def _by_name(body: str, decimal: Literal[".", ","]) -> Numeral | None:
    match = _WITH_UNIT.match(body)
    name = None if match is None else other_currency(body, match.start("number"), match.end())
    if match is None or name is None or name.start > match.end("sign") or name.end < len(body):
        return None
    if not any(compatible(name.unit, code) for code in CODES):
        return None
    value = Fraction(read_signed(match["number"], decimal, body)) * (scale_of(match["scale"], money=True) or 1)
    return Numeral(exact(-value if match["sign"] == "-" else value), name.unit)


def scale_of(written: str | None, *, money: bool) -> int | None:
    """The factor of a scale, 1 where none is written; None for a letter that is a unit or a name instead."""
    scale = (written or "").strip().lower()
    return None if scale in _LETTERS and not money else _SCALES[scale] if scale else 1


def units_in_front(match: re.Match[str]) -> list[str]:
    """The units that a match of `amount_front` names."""
    return [mark for mark in (match["code"], SIGNS.get(match["currency"] or "")) if mark]


def units_behind(match: re.Match[str]) -> list[str]:
    """The units that a match of `amount_back` names."""
    marks = ("%" if match["percent"] else None, SIGNS.get(match["sign_behind"] or ""), match["code_behind"])
    return [mark for mark in (*marks, WORDS.get((match["word"] or "").lower())) if mark]


def one_unit(units: list[str], text: str) -> str | None:
    """Merge the units written around one amount (`$18 USD`): ``"%"``, a currency, or None.

    Raises ValueRefused: they contradict each other, or one stands twice.
    """
    if len(units) > 2 or (len(units) == 2 and units[0] == units[1] not in CODES):  # `$$18`
        raise ValueRefused("not a single plain number", text=text)
    if len(units) < 2:
        return units[0] if units else None
    first, second = units
    if not (compatible(first, second) or compatible(second, first)):
        raise ValueRefused(f"two units, {first} and {second}", text=text)
    # The more precise of the two: of `$18 USD` the code.
    return second if compatible(first, second) else first


def _strip_markup(body: str) -> str:
    stripped = True
    # Markup is nested in any order: **`18`**.
    while stripped:
        stripped = False
        for left, right in _MARKUP:
            if len(body) > len(left) + len(right) and body.startswith(left) and body.endswith(right):
                body, stripped = body[len(left) : -len(right)].strip(), True
    return body
