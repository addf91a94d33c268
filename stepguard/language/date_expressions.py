"""Expressions over dates: ``start + 30 days``.

A date expression is a date or a variable, and what is added to it or taken from it, from left to right::

    start + 30 days          2026-01-31 + 1 month        due - 2 weeks
    start + notice days      invoice + 5 working days

Adding months or years ends on the last day of a month that has no such day (31 January + 1 month is 28 or 29
February), as databases and calendars do. Working days are Monday to Friday without the holidays that are given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from stepguard.core.patterns import lazy_pattern
from stepguard.errors import ConfigError, ValueRefused
from stepguard.language.dates import Calendar, DateOrder, add_months, read_date
from stepguard.language.expressions import RESERVED
from stepguard.language.values import Value, to_exact

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_]*"
_BASE: Final = lazy_pattern(rf"\s*(?:(?P<literal>[0-9][^\s+]*)|(?P<name>{_NAME}))\s*")
_OFFSET: Final = lazy_pattern(
    rf"(?P<sign>[-+])\s*(?:(?P<count>[0-9]+)|(?P<name>{_NAME}))\s+(?P<working>(?:working|business)\s+)?"
    r"(?P<unit>day|week|month|year)s?\s*"
)
_MAX_COUNT: Final = 100_000  # of days it is 270 years: more is a slip, and no date
_MAX_EXPRESSION: Final = 1000
_EXAMPLE: Final = "such as 'start + 30 days' or '2026-11-28'"


class NoDate(Exception):
    """A date expression has no value; the text says why."""


class OutOfRange(NoDate):
    """The value would be before the year 1 or after 9999."""


@dataclass(frozen=True, slots=True)
class _Offset:
    count: int | str
    sign: int
    unit: str


@dataclass(frozen=True, slots=True)
class DateExpression:
    """A date expression: a date or a variable, and what is added to it in turn."""

    base: date | str
    offsets: tuple[_Offset, ...]

    @property
    def reads(self) -> tuple[str, ...]:
        """The variables in it."""
        return tuple(each for each in (self.base, *(offset.count for offset in self.offsets)) if isinstance(each, str))

    def __str__(self) -> str:
        pieces = [self.base if isinstance(self.base, str) else self.base.isoformat()]
        for offset in self.offsets:
            unit = offset.unit if offset.count == 1 else f"{offset.unit}s"
            pieces += ["+" if offset.sign > 0 else "-", str(offset.count), unit]
        return " ".join(pieces)


def parse_date_expression(text: object) -> DateExpression:
    """Read a date expression. Raises ConfigError: the text is none; the message says what is not understood."""
    if not isinstance(text, str) or len(text) > _MAX_EXPRESSION:
        raise ConfigError(f"a date expression is text {_EXAMPLE}, not {text!r:.60}", option="expression")
    match = _BASE.match(text)
    base: date | str
    if match is None:
        raise ConfigError(f"{text!r} is no date expression: write one {_EXAMPLE}", option="expression")
    if match["name"]:
        base = _variable(match["name"], text)
    else:
        try:
            base = date.fromisoformat(match["literal"]) if re.fullmatch(r"[0-9-]{10}", match["literal"]) else _no(text)
        except ValueError:
            base = _no(text)
    at, offsets = match.end(), list[_Offset]()
    while at < len(text):
        found = _OFFSET.match(text, at)
        if found is None:
            raise ConfigError(
                f"{text!r} is no date expression: {text[at : at + 20]!r} is not understood; add or take off days, "
                "weeks, months, years or working days, such as '+ 30 days'",
                option="expression",
            )
        if found["working"] and found["unit"] != "day":
            raise ConfigError(f"{text!r}: only days can be working days", option="expression")
        count: int | str = _variable(found["name"], text) if found["name"] else _count(found["count"])
        if isinstance(count, int) and count > _MAX_COUNT:
            raise ConfigError(f"{text!r} adds more than {_MAX_COUNT} {found['unit']}s", option="expression")
        offsets.append(
            _Offset(count, 1 if found["sign"] == "+" else -1, ("working " * bool(found["working"])) + found["unit"])
        )
        at = found.end()
    return DateExpression(base, tuple(offsets))


def _count(digits: str) -> int:
    """The number that digits are, or one above the limit."""
    plain = digits.lstrip("0")
    return int(plain or "0") if len(plain) <= len(str(_MAX_COUNT)) else _MAX_COUNT + 1


def _no(text: str) -> date:
    raise ConfigError(f"{text!r} is no date expression: a date in it is written as 2026-11-28", option="expression")


def _variable(name: str, text: str) -> str:
    if name in RESERVED:
        raise ConfigError(f"{text!r}: {name!r} cannot be a variable", option="expression")
    return name


def date_in(value: Value, name: str, order: DateOrder | None) -> date:
    """The date that the value of a variable holds. Raises NoDate: it holds none."""
    if isinstance(value, date):
        return value
    if not isinstance(value, str):
        raise NoDate(f"{name} is no date, and no text that holds one")
    try:
        return read_date(value, order=order)
    except ValueRefused as error:
        raise NoDate(f"{name} is no date: {error}") from None


def value_of(tree: DateExpression, values: Mapping[str, Value], order: DateOrder | None, calendar: Calendar) -> date:
    """The date that an expression gives.

    Raises:
        NoDate: a variable holds no date, or no number of days.
        OutOfRange: the result is outside the years 1 to 9999.
    """
    found = tree.base if isinstance(tree.base, date) else date_in(values[tree.base], tree.base, order)
    for offset in tree.offsets:
        count = offset.count if isinstance(offset.count, int) else to_exact(values[offset.count])
        if type(count) is not int or abs(count) > _MAX_COUNT:
            raise NoDate(f"{offset.count} is no whole number of {offset.unit}s up to {_MAX_COUNT}")
        count *= offset.sign
        try:
            match offset.unit:
                case "day" | "week":
                    found += timedelta(days=count * (7 if offset.unit == "week" else 1))
                case "working day":
                    found = calendar.add(found, count)
                case _:
                    found = add_months(found, count * (12 if offset.unit == "year" else 1))
        except OverflowError:
            raise OutOfRange(f"{tree} is outside the years 1 to 9999") from None
    return found
