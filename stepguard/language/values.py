"""Values in the state of a run, and how they are rounded and shown.

Values are plain Python objects: `int` and `fractions.Fraction` (a fraction only where the number is not whole),
`decimal.Decimal` where places are declared, `bool` and `str`; ``datetime.date``, ``time`` and ``timedelta``, a `Period`
of the calendar, an `Amount` with a unit, a tuple of values, and a `Record` of them. Which of them a step has, its
`ValueType` says (`stepguard.language.value_types`).

Rounding modes are those of the `decimal` module, in lower case. The default, ``half_up``, rounds a tie away from
zero, as trade and school do.
"""

from __future__ import annotations

import json
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Final, Literal, cast, get_args

from stepguard.errors import InexactError
from stepguard.language.digits import Exact, exact, format_exact
from stepguard.language.periods import Period, show_duration
from stepguard.language.quantities import Amount, write_amount
from stepguard.language.records import Record

Scalar = int | Fraction | Decimal | bool | str | date | time | timedelta | Period | Amount
"""A value that has no parts."""

Value = Scalar | tuple["Value", ...] | Record
"""A value in the state of a run."""

Rounding = Literal["half_up", "half_down", "half_even", "up", "down", "ceiling", "floor"]

ROUNDINGS: Final[tuple[str, ...]] = get_args(Rounding)

LONG_TEXT: Final = 200
"""Text of more characters is a document. A shorter one costs hardly more than its name and the words around it, and is
nearer at hand beside a step; two lines and more, which every step would repeat, are what a call costs."""


def encodable(text: str) -> bool:
    """Whether a text can be sent and written: a lone surrogate, half of a character, cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def round_exact(value: Exact, places: int, rounding: Rounding) -> Exact:
    """`value` rounded to `places` decimal places (negative: to tens, hundreds), exactly."""
    scale = Fraction(10) ** places
    scaled = Fraction(value) * scale
    whole, rest = divmod(scaled.numerator, scaled.denominator)  # floor, and 0 <= rest < denominator
    if rest:
        twice = 2 * rest
        tie = twice == scaled.denominator
        negative = scaled < 0
        above = twice > scaled.denominator
        match rounding:
            case "half_up":
                up = above or (tie and not negative)
            case "half_down":
                up = above or (tie and negative)
            case "half_even":
                up = above or (tie and whole % 2 == 1)
            case "up":
                up = not negative
            case "down":
                up = negative
            case "ceiling":
                up = True
            case "floor":
                up = False
        whole += up
    return exact(whole / scale)


def to_decimal(value: Exact, places: int) -> Decimal:
    """A whole multiple of 10**-places as a `Decimal` with exactly that many places; never rounds."""
    scaled = Fraction(value) * 10**places
    if scaled.denominator != 1:
        raise InexactError(f"{format_exact(value)} has more than {places} decimal places")
    digits = tuple(int(digit) for digit in str(abs(scaled.numerator)))
    # Built from its parts: arithmetic on Decimal would round to the context's precision.
    return Decimal((1 if scaled.numerator < 0 else 0, digits, -places))


def is_document(value: Value) -> bool:
    """Whether a value is text, a list or a record longer than one would say again beside each step that reads it."""
    if type(value) is int:
        return False
    if isinstance(value, tuple | Record):
        return len(value) > LONG_TEXT or len(show_value(value)) > LONG_TEXT
    return type(value) is str and len(value) > LONG_TEXT


def to_exact(value: Value) -> Exact | bool | str:
    """A state value as expressions compute with it."""
    if type(value) is Decimal:
        return exact(Fraction(value))
    return cast("Exact | bool | str", value)


def show_value(value: Value) -> str:
    """A value as it stands in prompts, tables and JSON: exact, in the notation a reader expects."""
    if type(value) is int:
        return str(value)
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is Decimal:
        return f"{value:f}"
    if type(value) is Fraction:
        return format_exact(value)
    if type(value) is str:
        return value
    if isinstance(value, tuple | Record):
        return _as_json(value)
    return _show_measure(value)


def _show_measure(value: Value) -> str:
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, time):
        return value.isoformat("seconds" if value.second else "minutes")
    if isinstance(value, timedelta):
        return show_duration(value)
    return write_amount(value) if isinstance(value, Amount) else str(value)


def _as_json(value: Value) -> str:
    """A value as JSON on one line: numbers and truth values as they are shown, everything else as text."""
    if isinstance(value, Record):
        return f"{{{', '.join(f'{json.dumps(key)}: {_as_json(each)}' for key, each in value.items())}}}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_as_json, value))}]"
    shown = show_value(value)
    bare = type(value) in (int, bool, Decimal) or (type(value) is Fraction and "/" not in shown)
    return shown if bare else json.dumps(shown, ensure_ascii=False)
