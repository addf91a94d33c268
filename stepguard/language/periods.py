"""Spans of time: durations of fixed length, calendar periods, times of day, and working days.

A duration (``datetime.timedelta``) is so many days, hours, minutes and seconds. A `Period` is counted in months, years
or working days, whose length depends on where it begins, so that it can be added to a date and to nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, time, timedelta
from fractions import Fraction
from typing import Final

from stepguard.core.patterns import lazy_pattern
from stepguard.errors import InexactError, TooLargeError, UndefinedError, ValueRefused
from stepguard.language.dates import Calendar, add_months, read_duration
from stepguard.language.digits import Exact

_MAX_COUNT: Final = 100_000
_MICRO: Final = 10**6
_TIME: Final = lazy_pattern(
    r"(?P<hour>[0-9]{1,2})(?:(?P<sign>[:.])(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?)? ?(?P<half>(?:a|p)\.?m\.?)?",
    re.IGNORECASE,
)
_AROUND: Final = " \t\r\n\"'`*"
_PART: Final = lazy_pattern(r"(?P<count>[0-9]{1,6}) (?P<working>(?:working|business) )?(?P<unit>day|week|month|year)s?")
_UNITS: Final = ("year", "month", "week", "day", "working day")
_BETWEEN: Final = lazy_pattern(r" and |, and |, | ")


@dataclass(frozen=True, slots=True)
class Period:
    """A span to add to a date: first its months (a year is 12), then its days, then its working days."""

    months: int = 0
    days: int = 0
    working_days: int = 0

    def __post_init__(self) -> None:
        if max(map(abs, (self.months, self.days, self.working_days))) > _MAX_COUNT:
            raise TooLargeError(f"a period of more than {_MAX_COUNT} days or months")

    def __str__(self) -> str:
        years, months = divmod(abs(self.months), 12)
        counts = [(years, "year"), (months, "month"), (abs(self.days), "day"), (abs(self.working_days), "working day")]
        shown = " ".join(_counted(count, unit) for count, unit in counts if count) or "0 days"
        return f"-{shown}" if min(self.months, self.days, self.working_days) < 0 else shown

    def plus(self, other: Period | timedelta, sign: int = 1) -> Period:
        """Add another span (or with `sign=-1` subtract it).

        Raises InexactError: a duration is not of whole days, or one part goes back and another one forth.
        """
        if isinstance(other, timedelta):
            other = Period(days=_whole_days(other))
        parts = (
            self.months + sign * other.months,
            self.days + sign * other.days,
            self.working_days + sign * other.working_days,
        )
        # A period is written with one sign for all of its parts.
        if min(parts) < 0 < max(parts):
            raise InexactError("a period that goes back and forth: add its parts to a date one by one")
        return Period(*parts)

    def times(self, count: int) -> Period:
        """Multiply this period."""
        if abs(count) > _MAX_COUNT:
            raise TooLargeError(f"a period of more than {_MAX_COUNT} days or months")
        return Period(self.months * count, self.days * count, self.working_days * count)


def add_period(start: date, span: Period | timedelta, sign: int = 1) -> date:
    """Add a span to a date (or with `sign=-1` subtract it); where a month has no such day, take its last one.

    Raises:
        InexactError: a duration is not of whole days.
        UndefinedError: the result is outside the years 1 to 9999.
    """
    try:
        if isinstance(span, timedelta):
            return start + timedelta(days=sign * _whole_days(span))
        # Months first: 30 January and 1 month 1 day is 1 March; days first it would be the end of February.
        later = add_months(start, sign * span.months) + timedelta(days=sign * span.days)
        return Calendar().add(later, sign * span.working_days)
    except OverflowError:
        raise UndefinedError(f"{start.isoformat()} and {span} is outside the years 1 to 9999") from None


def _whole_days(span: timedelta) -> int:
    if span.seconds or span.microseconds:
        raise InexactError(f"a date has no time of day: {show_duration(span)} are not whole days")
    return span.days


def duration_of(seconds: Exact) -> timedelta:
    """Make a duration from a number of seconds.

    Raises:
        InexactError: it is no whole number of microseconds.
        TooLargeError: it is longer than Python's durations can be.
    """
    micro = Fraction(seconds) * _MICRO
    if micro.denominator != 1:
        raise InexactError("a duration is a whole number of microseconds, and this one is not")
    try:
        return timedelta(microseconds=micro.numerator)
    except OverflowError:
        raise TooLargeError("the duration would be too long") from None


def seconds_in(span: timedelta) -> Fraction:
    """A duration in seconds, exactly."""
    return Fraction((span.days * 86_400 + span.seconds) * _MICRO + span.microseconds, _MICRO)


def _counted(count: int | str, unit: str) -> str:
    return f"{count} {unit}" if count in (1, "1") else f"{count} {unit}s"


def show_duration(span: timedelta) -> str:
    """A duration as people write it: ``2 days 3 hours``; `read_timedelta` gives it back."""
    micro = abs((span.days * 86_400 + span.seconds) * _MICRO + span.microseconds)
    minutes, rest = divmod(micro, 60 * _MICRO)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    whole, part = divmod(rest, _MICRO)
    seconds = f"{whole}.{part:06}".rstrip("0") if part else str(whole)
    counts = [(days, "day"), (hours, "hour"), (minutes, "minute")]
    shown = [_counted(count, unit) for count, unit in counts if count]
    if rest:
        shown.append(_counted(seconds, "second"))
    return f"{'-' if span < timedelta(0) else ''}{' '.join(shown) or '0 days'}"


def read_timedelta(text: str) -> timedelta:
    """A duration as it is written; see `stepguard.language.dates`.

    Raises ValueRefused: it is none, or has no fixed length.
    """
    try:
        return duration_of(read_duration(text))
    except (InexactError, TooLargeError) as error:
        raise ValueRefused(str(error), text=text) from None


def read_period(text: str) -> Period:
    """A period as it is written: ``3 months``, ``1 year 6 months``, ``5 working days``, ``2 weeks``.

    Raises ValueRefused: it is none.
    """
    body = " ".join(text[:200].strip(_AROUND + ".").lower().split()) if len(text) <= 200 else ""
    sign = -1 if body[:1] in ("-", "\u2212") else 1
    body = body[1:].lstrip() if sign < 0 else body
    counts: dict[str, int] = {}
    at = 0
    while at < len(body) or not counts:
        gap = _BETWEEN.match(body, at) if counts else None
        match = _PART.match(body, gap.end() if gap else at)
        if match is None or (counts and gap is None) or (match["working"] and match["unit"] != "day"):
            raise ValueRefused("a period was expected, such as 3 months or 5 working days", text=text)
        unit = f"{'working ' * bool(match['working'])}{match['unit']}"
        # Months first is also the order they are added in; any other order would promise another date.
        if any(_UNITS.index(unit) <= _UNITS.index(other) for other in counts):
            raise ValueRefused("the units of a period go from large to small, each once", text=text)
        counts[unit] = int(match["count"])
        at = match.end()
    months = counts.get("year", 0) * 12 + counts.get("month", 0)
    days = counts.get("week", 0) * 7 + counts.get("day", 0)
    try:
        return Period(sign * months, sign * days, sign * counts.get("working day", 0))
    except TooLargeError as error:
        raise ValueRefused(str(error), text=text) from None


def read_time(text: str) -> time:
    """A time of day as it is written: ``14:30``, ``14:30:05``, ``2:30 pm``, ``9 am``.

    Raises ValueRefused: it is none, has a time zone, or could be read in more than one way.
    """
    match = _TIME.fullmatch(text.strip(_AROUND)) if len(text) <= 100 else None
    half = (match["half"] or "").lower() if match else ""
    # A bare `9` or `9.05` may be a number of hours.
    if match is None or not (half or match["sign"] == ":"):
        raise ValueRefused("a time was expected, such as 14:30", text=text)
    hour, minute, second = (int(match[part] or 0) for part in ("hour", "minute", "second"))
    if half:
        if not 1 <= hour <= 12:
            raise ValueRefused(f"there is no {hour} o'clock {match['half']}", text=text)
        hour = hour % 12 + (12 if half[0] == "p" else 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueRefused("there is no such time of day", text=text)
    return time(hour, minute, second)
