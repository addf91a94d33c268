"""Dates and durations as people and models write them, read exactly or refused with a reason.

Dates read
    ``2026-11-28``  ``2026/11/28``  ``28 November 2026``  ``28th of Nov. 2026``  ``28-Nov-2026``  ``November 28, 2026``
    ``Sat, 28 Nov 2026``  ``28/NOV/2026``  ``28NOV2026``  ``28/11/2026`` (there is no month 28)

Dates refused
    ``03/04/2026``, which is in March or in April, unless the order is given; years of two digits; a date with another
    weekday than the one it falls on; days that do not exist; dates with a time; names of months in other languages.

Durations read
    ``90 minutes``  ``1 h 30 min``  ``1h30m``  ``1.5 hours``  ``2 days and 3 hours``  ``PT1H30M``  ``P1W``

Durations refused
    months and years, which have no fixed length; ``1:30``, which is hours or minutes; ``5 m``, which is minutes or
    metres. A day has 24 hours.

Nothing is guessed from the machine: no locale, no time zone, no "today".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from itertools import chain
from typing import Final, Literal

from stepguard.core.patterns import lazy_pattern
from stepguard.errors import ConfigError, ValueRefused
from stepguard.language.digits import Exact, exact
from stepguard.language.numerals import read_numeral

DateOrder = Literal["dmy", "mdy"]
"""How dates of three numbers that end in the year are written: the day first, or the month."""

_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
"""The days of the week in English, Monday first."""
_MONTH: Final = "|".join(f"{name[:3]}(?:{name[3:]})?" if len(name) > 3 else name for name in _MONTHS)
_WEEKDAY: Final = (
    "mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?"
)
# A sign between day and month has to stand again behind the month: 28/NOV/2026, 28NOV2026 has none.
_DATE: Final = lazy_pattern(
    rf"(?:(?P<weekday>{_WEEKDAY})\b\.?,?[ \u00a0]{{1,3}})?(?:the[ \u00a0])?"
    r"(?:(?P<iso_year>[0-9]{4})(?P<iso_sign>[-/.])(?P<iso_month>[0-9]{1,2})(?P=iso_sign)(?P<iso_day>[0-9]{1,2})"
    r"|(?P<one>[0-9]{1,2})(?P<sign>[-/.])(?P<two>[0-9]{1,2})(?P=sign)(?P<year>[0-9]{4})"
    r"|(?P<day>[0-9]{1,2})(?:(?P<mark>[/.]?)|(?:st|nd|rd|th|\.)?(?:[ \u00a0-](?:of[ \u00a0])?))"
    rf"(?P<month>{_MONTH}|sept)(?(mark)(?P=mark)|\.?[, \u00a0-][ \u00a0]?)(?P<day_year>[0-9]{{4}})"
    rf"|(?P<month_first>{_MONTH}|sept)\.?[ \u00a0-](?:the[ \u00a0])?(?P<second_day>[0-9]{{1,2}})(?:st|nd|rd|th)?"
    r"(?:,[ \u00a0]?|[ \u00a0-])(?P<month_year>[0-9]{4}))",
    re.IGNORECASE | re.ASCII,
)
# With points two digits each: `1.2.26` may be a version or a section.
_SHORT_DATE: Final = lazy_pattern(
    r"(?:(?P<one>[0-9]{1,2})(?P<sign>[-/]|(?<=[0-9]{2})\.(?=[0-9]{2}\.))(?P<two>[0-9]{1,2})(?P=sign)"
    rf"|(?P<day>[0-9]{{1,2}})(?P<mark>[ /.-])(?P<month>{_MONTH}|sept)(?P=mark))(?P<year>[0-9]{{2}})(?![0-9])"
    r"(?:(?<! [0-9]{2})|(?=[ \t]{0,3}(?:\r?\n|\Z|[)\]|]|[0-9]{1,2}[:.][0-9]{2})))",  # no `5 May 20 guests`
    re.IGNORECASE | re.ASCII,
)
_GLUED_WORD: Final = lazy_pattern(r"(?<![-][0-9]{4})(?<![-][0-9]{2})[A-Za-z]{3,20}(?!\w|[-/._]\w)")
"""A word run into a date, ``21/05/2018TIME``; behind hyphens it may belong to a name or a code."""
_CENTURY_TURNS: Final = 69
"""Two-digit years from here on are 19xx, the rest 20xx, as POSIX has it."""
_PRINT: Final = str.maketrans("\u2010\u2011\u2212\u2009\u202f", "---  ")
"""Hyphens and blanks of print; a dash is none of them, since it may stand between two dates."""
_AROUND: Final = " \t\r\n\"'`*."
_MAX_TEXT: Final = 100

_PART: Final = lazy_pattern(r"([0-9][0-9,]{0,20}(?:\.[0-9]{1,20})?|[0-9]{1,9}/[0-9]{1,9}) ?-?([a-z]{1,12})\.?")
_BETWEEN: Final = lazy_pattern(r"(?: ?, ?and |,? and |, ?| |)")
_ISO_DURATION: Final = lazy_pattern(
    r"P(?:(?P<w>[0-9.]{1,20})W)?(?:(?P<d>[0-9.]{1,20})D)?"
    r"(?:T(?:(?P<h>[0-9.]{1,20})H)?(?:(?P<m>[0-9.]{1,20})M)?(?:(?P<s>[0-9.]{1,20})S)?)?"
)
_UNITS: Final = {
    "week": ("w", "wk", "wks", "week", "weeks"),
    "day": ("d", "day", "days"),
    "hour": ("h", "hr", "hrs", "hour", "hours"),
    "minute": ("m", "min", "mins", "minute", "minutes"),
    "second": ("s", "sec", "secs", "second", "seconds"),
    "millisecond": ("ms", "millisecond", "milliseconds"),
}
_UNIT: Final = {spelling: unit for unit, spellings in _UNITS.items() for spelling in spellings}
_ISO_UNIT: Final = {"w": "week", "d": "day", "h": "hour", "m": "minute", "s": "second"}
_NO_LENGTH: Final = {"month", "months", "mo", "mos", "year", "years", "yr", "yrs", "y", "quarter", "quarters"}

SECONDS: Final[dict[str, Exact]] = {
    "week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1, "millisecond": Fraction(1, 1000),
}  # fmt: skip
"""The seconds in a unit of time, the largest first."""


@dataclass(frozen=True, slots=True)
class FoundDate:
    """A date in a text, from offset `start` up to `end`."""

    value: date
    start: int
    end: int


def check_order(order: object) -> None:
    """Raise `ConfigError` unless this is an order of dates, or None."""
    if order not in (None, "dmy", "mdy"):
        raise ConfigError(
            f"order is 'dmy' (3/4 is in April), 'mdy' (in March) or None (refuse it), not {order!r}", option="order"
        )


def read_date(text: str, *, order: DateOrder | None = None) -> date:
    """Read one date.

    Args:
        text: what was written; white space, quotes and a full stop around it do not matter.
        order: how ``03/04/2026`` is meant; None refuses what could be meant either way.

    Raises:
        ValueRefused: the text is no date, or could be read in more than one way.
    """
    # Cut before it is translated, since a reply may be megabytes long.
    body = text[: _MAX_TEXT + 1].translate(_PRINT).strip(_AROUND)
    if len(text) > _MAX_TEXT:
        raise ValueRefused(f"too long for a date ({len(text)} characters)", text=text)
    match = _DATE.fullmatch(body)
    if match is None:
        if re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]", body):
            raise ValueRefused("a date was expected, found a date and a time", text=text)
        if re.fullmatch(r"[0-9]{1,2}([-/.])[0-9]{1,2}\1[0-9]{2}", body):
            raise ValueRefused("the year of a date needs four digits", text=text)
        raise ValueRefused("a date was expected, such as 2026-11-28 or 28 November 2026", text=text)
    return _date_of(match, order, text)


def find_dates(text: str, *, order: DateOrder | None = None, short_years: bool = False) -> Iterator[FoundDate]:
    """Yield every date in a text that is unambiguous and stands on its own.

    Args:
        order: how ``03/04/2026`` is meant; None does not count it.
        short_years: whether ``28/11/26`` and ``28 NOV 26`` are dates, too, where the order is given: from 1969 to 2068.
    """
    text = text.translate(_PRINT)  # one character for one, so that offsets stay true
    matches = _DATE.finditer(text)
    for match in chain(matches, _SHORT_DATE.finditer(text)) if short_years and order is not None else matches:
        before, behind = text[max(match.start() - 2, 0) : match.start()], text[match.end() : match.end() + 2]
        # Part of an id or of a path, `A-2026-01-31`, is no date; behind a lone dash or point it is one.
        if before[-1:].isalnum() or (
            before[-1:] in "-/._" and before[-1:] and before[:1].isalnum() and len(before) == 2
        ):
            continue
        if behind[:1] in "-/._" and behind[1:2].isalnum():
            continue
        # In `2026-01-31T10:00` the date counts; run into anything else it may be part of a code.
        joined = behind[:1].isalnum() or behind[:1] == "_"
        if joined and not ((behind[:1] == "T" and behind[1:2].isdigit()) or _GLUED_WORD.match(text, match.end())):
            continue
        try:
            yield FoundDate(_date_of(match, order, match[0]), match.start(), match.end())
        except ValueRefused:
            continue


def _date_of(match: re.Match[str], order: DateOrder | None, text: str) -> date:
    if "iso_year" not in match.re.groupindex:  # a short year
        year = str(int(match["year"]) + (1900 if int(match["year"]) >= _CENTURY_TURNS else 2000))
        day, month = (match["one"], match["two"]) if order == "dmy" else (match["two"], match["one"])
        if match["month"]:
            day, month = match["day"], _month_number(match["month"])
        try:
            return date(int(year), int(month), int(day))
        except ValueError:
            raise ValueRefused("there is no such day", text=text) from None
    if match["iso_year"]:
        readings = [(match["iso_year"], match["iso_month"], match["iso_day"])]
    elif match["year"]:
        day_first, month_first = (
            (match["year"], match["two"], match["one"]),
            (match["year"], match["one"], match["two"]),
        )
        readings = {"dmy": [day_first], "mdy": [month_first], None: [day_first, month_first]}[order]
    elif match["month"]:
        readings = [(match["day_year"], _month_number(match["month"]), match["day"])]
    else:
        readings = [(match["month_year"], _month_number(match["month_first"]), match["second_day"])]
    found: set[date] = set()
    # Both readings are tried: 28/11 is read in any order, since only one of the two days exists.
    for year, month, day in readings:
        try:
            found.add(date(int(year), int(month), int(day)))
        except ValueError:
            continue
    if not found:
        raise ValueRefused("there is no such day", text=text)
    if len(found) > 1:
        raise ValueRefused("the day first, or the month? give the order, or write 2026-11-28", text=text)
    (value,) = found
    weekday = match["weekday"]
    # One of the two is a mistake, and nobody can say which.
    if weekday and not WEEKDAYS[value.weekday()].startswith(weekday.lower()):
        raise ValueRefused(f"{value.isoformat()} is a {WEEKDAYS[value.weekday()].capitalize()}", text=text)
    return value


def _month_number(name: str) -> str:
    short = name[:3].lower()
    return str(next(number for number, month in enumerate(_MONTHS, 1) if month.startswith(short)))


def add_months(start: date, months: int) -> date:
    """Add months to a date (negative: subtract); where the month has no such day, take its last one.

    Raises OverflowError: the result is before the year 1 or after 9999.
    """
    year, month = divmod(start.year * 12 + start.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError("the date is outside the years 1 to 9999")
    for day in (start.day, 30, 29, 28):  # a month later than the 31st is the last day of that month
        try:
            return date(year, month + 1, min(day, start.day))
        except ValueError:  # the month is shorter
            continue
    raise AssertionError("every month has 28 days")


@dataclass(frozen=True, slots=True)
class Calendar:
    """Which days are working days: those outside the weekend that are no holidays.

    Attributes:
        holidays: the days that are none, whatever day of the week they are.
        weekend: the days of the week that are none, as `datetime.date.weekday` counts them; by default Saturday and
            Sunday.
    """

    holidays: frozenset[date] = frozenset()
    weekend: frozenset[int] = frozenset({5, 6})

    @classmethod
    def of(cls, holidays: Iterable[date | str], weekend: Iterable[str]) -> Calendar:
        """A calendar as a configuration has it: holidays as dates or ISO texts, days of the week by their names.

        Raises ConfigError: one of them is no date, or no day of the week, or no day is left to work on.
        """
        named = [] if isinstance(weekend, str) else list(weekend)
        days = [each.lower() for each in named if isinstance(each, str)]
        if isinstance(weekend, str) or len(days) < len(named) or not set(days) < set(WEEKDAYS):
            raise ConfigError("a weekend is a list of days: ['Friday', 'Saturday']", option="weekend")
        return cls(_read_holidays(holidays), frozenset(map(WEEKDAYS.index, days)))

    @property
    def days_off(self) -> frozenset[str]:
        """The days of the weekend by their names."""
        return frozenset(WEEKDAYS[day].capitalize() for day in self.weekend)

    def works(self, day: date) -> bool:
        return day.weekday() not in self.weekend and day not in self.holidays

    def count(self, start: date, end: date) -> int:
        """Working days from `start` up to the day before `end`, which is not earlier."""
        weeks, rest = divmod((end - start).days, 7)  # centuries are not walked day by day
        found = (7 - len(self.weekend)) * weeks
        found += sum((start.weekday() + day) % 7 not in self.weekend for day in range(rest))
        return found - sum(start <= each < end and each.weekday() not in self.weekend for each in self.holidays)

    def add(self, start: date, days: int) -> date:
        """Count working days forward from `start` (negative: back), which may be none; 0 days give `start` itself.

        Raises OverflowError: the result is before the year 1 or after 9999.
        """
        one = timedelta(days=1 if days > 0 else -1)
        left, at = abs(days), start
        while left:
            at += one
            left -= self.works(at)
        return at


def _read_holidays(given: Iterable[date | str]) -> frozenset[date]:
    if isinstance(given, str):
        raise ConfigError("holidays are a list of dates: ['2026-12-25']", option="holidays")
    found: set[date] = set()
    for each in given:
        try:
            # Built anew from its parts: a datetime never equals a date, and would be no holiday.
            found.add(date.fromisoformat(each) if isinstance(each, str) else date(each.year, each.month, each.day))
        except (ValueError, AttributeError, TypeError):
            raise ConfigError(f"a holiday is a date such as '2026-12-25', not {each!r}", option="holidays") from None
    return frozenset(found)


def read_duration(text: str) -> Exact:
    """Read one duration, in seconds.

    Raises ValueRefused: the text is no duration, has no fixed length, or could be read in more than one way.
    """
    if len(text) > _MAX_TEXT:
        raise ValueRefused(f"too long for a duration ({len(text)} characters)", text=text)
    body = text.translate(_PRINT).strip(_AROUND).replace("\u00a0", " ")
    negative = body[:1] == "-"
    body = body[1:].lstrip() if body[:1] in ("-", "+") else body
    parts = _iso_parts(body, text) if body[:1] == "P" else _worded_parts(" ".join(body.lower().split()), text)
    order = list(SECONDS)
    places = [order.index(unit) for _, unit in parts]
    if places != sorted(set(places)):
        raise ValueRefused("the units of a duration go from large to small, each once", text=text)
    if any(type(number) is not int for number, _ in parts[:-1]):
        raise ValueRefused("only the last part of a duration may have a fraction", text=text)
    seconds = exact(sum((Fraction(number) * SECONDS[unit] for number, unit in parts), Fraction(0)))
    return -seconds if negative else seconds


def _iso_parts(body: str, text: str) -> list[tuple[Exact, str]]:
    match = _ISO_DURATION.fullmatch(body)
    if match is None and re.match(r"P[0-9.]+[YM]", body):
        raise ValueRefused("months and years have no fixed length", text=text)
    found = [(digits, _ISO_UNIT[unit]) for unit, digits in match.groupdict().items() if digits] if match else []
    if not found or body.endswith("T"):
        raise ValueRefused("a duration was expected, such as PT1H30M or 90 minutes", text=text)
    return [(read_numeral(digits).value, unit) for digits, unit in found]


def _worded_parts(body: str, text: str) -> list[tuple[Exact, str]]:
    parts: list[tuple[Exact, str]] = []
    words: list[str] = []
    at = 0
    while at < len(body):
        gap = _BETWEEN.match(body, at) if parts else None
        match = _PART.match(body, gap.end() if gap else at)
        if match is None:
            raise ValueRefused("a duration was expected, such as 90 minutes or 1 h 30 min", text=text)
        number, word = match.groups()
        if word in _NO_LENGTH:
            raise ValueRefused("months and years have no fixed length", text=text)
        if word not in _UNIT:
            raise ValueRefused(f"{word!r} is no unit of time", text=text)
        parts.append((read_numeral(number).value, _UNIT[word]))
        words.append(word)
        at = match.end()
    if not parts:
        raise ValueRefused("empty: a duration was expected", text=text)
    # Next to hours or seconds an m is minutes: `1h 30m`.
    if "m" in words and not any(unit in ("hour", "second") for _, unit in parts):
        raise ValueRefused("'m' could be minutes or metres: write min", text=text)
    return parts
