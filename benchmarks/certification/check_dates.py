"""Claims about dates, days between them and durations; judged with Python's calendar and with seconds."""

from __future__ import annotations

import calendar
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

from certification.check_constraints import written
from certification.families import Family, Problem, Said
from certification.truth import number_text
from stepguard.checks.dates import DateHolds, DateIs, DaysBetween
from stepguard.checks.durations import DurationIs

__all__ = ["date_text", "some_date"]

_MONTHS = list(calendar.month_name)
_ONE = timedelta(days=1)


def some_date(chance: random.Random) -> date:
    """A date; ends of months and of Februaries more often than others."""
    year = chance.choice([1900, 1999, 2000, 2023, 2024, 2024, 2025, 2026, 2027, 2028, 2100])
    if chance.random() < 0.4:
        month = chance.choice([1, 2, 2, 2, 3, 12])
        return date(year, month, calendar.monthrange(year, month)[1] - chance.randint(0, 2))
    return date(year, 1, 1) + timedelta(days=chance.randrange(364))


def date_text(chance: random.Random, day: date) -> str:
    """A date in one of the ways that say it in one way only."""
    month, number, year = _MONTHS[day.month], day.day, day.year
    suffix = "th" if 10 < number < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    ways = [
        day.isoformat(),
        f"{year}/{day.month:02}/{number:02}",
        f"{number} {month} {year}",
        f"{number:02}-{month[:3]}-{year}",
        f"{number}{suffix} of {month[:3]}. {year}",
        f"{number}{suffix} {month} {year}",
        f"{month} {number}, {year}",
        f"{month[:3]} {number}, {year}",
        f"{calendar.day_name[day.weekday()]}, {number} {month} {year}",
        f"{calendar.day_abbr[day.weekday()]}, {month} {number}, {year}",
        f"**{day.isoformat()}**",
        f"`{day.isoformat()}`.",
        f'"{number} {month.upper()} {year}"',
    ]
    if number > 12:
        ways.append(f"{number}/{day.month}/{year}")
        ways.append(f"{day.month:02}/{number:02}/{year}")
    return chance.choice(ways)


def _add_months(day: date, months: int) -> date:
    total = day.year * 12 + day.month - 1 + months
    year, month = total // 12, total % 12 + 1
    return date(year, month, min(day.day, calendar.monthrange(year, month)[1]))


def _working(day: date, count: int, holidays: set[date]) -> date:
    step = _ONE if count > 0 else -_ONE
    while count:
        day += step
        if day.weekday() not in (5, 6) and day not in holidays:
            count -= 1 if count > 0 else -1
    return day


@dataclass(frozen=True, slots=True)
class _Due:
    day: date
    start: date
    near: tuple[date, ...]
    order: str | None = None


def _shifted(chance: random.Random, start: date) -> tuple[str, date, tuple[date, ...], set[date]]:
    """An expression with its date, dates that slips lead to, and holidays."""
    sign, count = chance.choice([("+", 1), ("-", -1)]), chance.randint(1, 60)
    word, factor = sign
    unit = chance.choice(["days", "weeks", "months", "years", "working days"])
    text = f"start {word} {count} {unit}"
    holidays: set[date] = set()
    near: tuple[date, ...]
    match unit:
        case "days":
            day = start + factor * count * _ONE
            near = (start - factor * count * _ONE, _add_months(start, factor))
        case "weeks":
            day = start + factor * 7 * count * _ONE
            near = (start + factor * 5 * count * _ONE, start + factor * count * _ONE, day + 7 * _ONE)
        case "months":
            day = _add_months(start, factor * count)
            near = (start + factor * 30 * count * _ONE, start + factor * 28 * count * _ONE, _add_months(day, 1))
        case "years":
            day = _add_months(start, factor * 12 * count)
            near = (start + factor * 365 * count * _ONE, start + factor * 366 * count * _ONE, _add_months(day, 12))
        case _:
            holidays = {start + each * factor * _ONE for each in chance.sample(range(1, 20), 2)}
            day = _working(start, factor * count, holidays)
            near = (
                _working(start, factor * count, set()),
                start + factor * count * _ONE,
                _working(start, factor * (count - 1), holidays) if count > 1 else start,
            )
    return text, day, near, holidays


def _date_is(chance: random.Random) -> Problem:
    start = some_date(chance)
    text, day, near, holidays = _shifted(chance, start)
    order: Any = chance.choice([None, None, "dmy", "mdy"])
    check = DateIs(text, order=order, holidays=holidays)
    return Problem((check,), _Due(day, start, near, order), {"start": start.isoformat()})


DATE_IS = Family("DateIs", _date_is, lambda problem, value: value == problem.truth.day)


@DATE_IS.put("right", "in one of many ways")
def _right(chance: random.Random, problem: Problem) -> Said | None:
    return Said(_in_order(chance, problem.truth.day, problem.truth.order), problem.truth.day)


def _in_order(chance: random.Random, day: date, order: str | None) -> str:
    if order is None or chance.random() < 0.5:
        text = date_text(chance, day)
        if order is not None and text[:1].isdigit() and text.count("/") == 2 and len(text.split("/")[0]) < 4:
            return day.isoformat()
        return text
    numbers = (day.day, day.month) if order == "dmy" else (day.month, day.day)
    sign = chance.choice("/.-")
    return f"{numbers[0]:02}{sign}{numbers[1]:02}{sign}{day.year}"


def _date_kind(name: str, change: Callable[[random.Random, _Due], date | None]) -> None:
    @DATE_IS.put("wrong", name)
    def kind(chance: random.Random, problem: Problem) -> Said | None:
        found = change(chance, problem.truth)
        return None if found is None else Said(_in_order(chance, found, problem.truth.order), found)


def _replaced(day: date, /, **parts: int) -> date | None:
    try:
        return day.replace(**parts)
    except ValueError:
        return None


_date_kind("off by one day", lambda chance, due: due.day + chance.choice([-1, 1]) * _ONE)
_date_kind("off by two days, or a week", lambda chance, due: due.day + chance.choice([-2, 2, -7, 7]) * _ONE)
_date_kind("off by one month", lambda chance, due: _add_months(due.day, chance.choice([-1, 1])))
_date_kind("off by one year", lambda chance, due: _add_months(due.day, chance.choice([-12, 12])))
_date_kind("what a slip leads to", lambda chance, due: chance.choice(due.near))
_date_kind("the date before it is moved", lambda chance, due: due.start)
_date_kind(
    "day and month swapped",
    lambda chance, due: _replaced(due.day, day=due.day.month, month=due.day.day) if due.day.day <= 12 else None,
)
_date_kind("another century", lambda chance, due: _replaced(due.day, year=due.day.year + 100))


@DATE_IS.put("wrong", "written in the other order")
def _other_order(chance: random.Random, problem: Problem) -> Said | None:
    due: _Due = problem.truth
    if due.order is None or due.day.day > 12:
        return None
    said = _replaced(due.day, day=due.day.month, month=due.day.day)
    if said is None:
        return None
    return Said(_in_order(chance, said, due.order), said)


@DATE_IS.put("wrong", "another weekday")
def _weekday(chance: random.Random, problem: Problem) -> Said | None:
    day: date = problem.truth.day
    name = calendar.day_name[(day.weekday() + chance.randint(1, 6)) % 7]
    return Said(f"{name}, {day.day} {_MONTHS[day.month]} {day.year}")


@DATE_IS.put("wrong", "a day that does not exist")
def _no_day(chance: random.Random, problem: Problem) -> Said | None:
    year = chance.choice([1900, 2023, 2025, 2100])
    texts = [f"{year}-02-29", f"29 February {year}", f"{year}-04-31", f"{year}-13-01", f"{year}-00-10", f"{year}-02-30"]
    return Said(chance.choice(texts))


@DATE_IS.put("wrong", "several dates, or none")
def _several(chance: random.Random, problem: Problem) -> Said | None:
    day: date = problem.truth.day
    other = day + _ONE
    texts = [
        f"{day.isoformat()} or {other.isoformat()}",
        f"{day.isoformat()} - {other.isoformat()}",
        f"not {day.isoformat()}",
        f"start {day.isoformat()}, end {other.isoformat()}",
        "start + 30 days",
        "tomorrow",
        "",
        f"{day.year}",
        f"{_MONTHS[day.month]} {day.year}",
        f"{day.isoformat()}{day.day}",
    ]
    return Said(chance.choice(texts))


@DATE_IS.put("refused", "the day first or the month, not said which")
def _either(chance: random.Random, problem: Problem) -> Said | None:
    due: _Due = problem.truth
    if due.order is not None or due.day.day > 12 or due.day.day == due.day.month:
        return None
    return Said(f"{due.day.day:02}/{due.day.month:02}/{due.day.year}", due.day)


@DATE_IS.put("refused", "a date in a sentence, with a time, or with a short year")
def _sentence(chance: random.Random, problem: Problem) -> Said | None:
    day: date = problem.truth.day
    ways = [f"It is due on {day.isoformat()}", f"{day.isoformat()}T10:00", f"{day.day}/{day.month}/{day.year % 100:02}"]
    return Said(chance.choice(ways), day)


# Relations of dates


@dataclass(frozen=True, slots=True)
class _Between:
    low: date
    high: date


def _date_holds(chance: random.Random) -> Problem:
    start = some_date(chance)
    days = chance.randint(2, 90)
    months = chance.randint(1, 4)
    cases = [
        (("t > start", f"t <= start + {days} days"), start + _ONE, start + days * _ONE),
        (("t >= start", f"t < start + {months} months"), start, _add_months(start, months) - _ONE),
        (
            (f"start + {days} days <= t", f"t <= start + {days + 20} days"),
            start + days * _ONE,
            start + (days + 20) * _ONE,
        ),
        ((f"t == start + {months} months",), _add_months(start, months), _add_months(start, months)),
        ((f"t - {days} days == start",), start + days * _ONE, start + days * _ONE),
    ]
    relations, low, high = chance.choice(cases)
    return Problem((DateHolds(*relations),), _Between(low, high), {"start": start.isoformat()})


DATE_HOLDS = Family("DateHolds", _date_holds, lambda problem, value: problem.truth.low <= value <= problem.truth.high)


def _holds_kind(where: str, name: str, pick: Callable[[random.Random, _Between], date]) -> None:
    @DATE_HOLDS.put(where, name)
    def kind(chance: random.Random, problem: Problem) -> Said | None:
        found = pick(chance, problem.truth)
        return Said(date_text(chance, found), found)


_holds_kind("right", "the first day", lambda chance, span: span.low)
_holds_kind("right", "the last day", lambda chance, span: span.high)
_holds_kind("right", "between", lambda chance, span: span.low + chance.randint(0, (span.high - span.low).days) * _ONE)
_holds_kind("wrong", "the day before", lambda chance, span: span.low - _ONE)
_holds_kind("wrong", "the day behind", lambda chance, span: span.high + _ONE)
_holds_kind(
    "wrong", "a year too early or too late", lambda chance, span: _add_months(span.low, chance.choice([-12, 12]))
)
_holds_kind("wrong", "far away", lambda chance, span: date(chance.choice([1, 1582, 9999]), 2, 28))


@DATE_HOLDS.put("wrong", "no date")
def _undated(chance: random.Random, problem: Problem) -> Said | None:
    return Said(chance.choice(["", "start", "soon", "2026", "2026-02-30", "31 April 2026", "within 30 days", "N/A"]))


# Days between dates


@dataclass(frozen=True, slots=True)
class _Days:
    count: int
    near: tuple[int, ...]


def _days(chance: random.Random) -> Problem:
    start = some_date(chance)
    end = start + chance.randint(0, 800) * _ONE
    inclusive, working = chance.random() < 0.5, chance.random() < 0.5
    if not (inclusive or working) and chance.random() < 0.3:
        start, end = end, start
    holidays = {start + each * _ONE for each in chance.sample(range(0, 30), 3)} if working else set()
    count = (end - start).days + inclusive
    weekdays = count
    if working:
        span = [start + each * _ONE for each in range((end - start).days + 1)][0 if inclusive else 1 :]
        weekdays = sum(each.weekday() < 5 for each in span)
        count, plain = sum(each.weekday() < 5 and each not in holidays for each in span), len(span)
    else:
        plain = count
    months = (end.year - start.year) * 12 + end.month - start.month
    thirty = months * 30 + end.day - start.day
    check = DaysBetween("a", "b", inclusive=inclusive, working=working, holidays=holidays)
    near = (plain, weekdays, thirty, (end - start).days, -count, count * 5 // 7, end.day - start.day)
    return Problem((check,), _Days(count, near), {"a": start.isoformat(), "b": end.isoformat()}, type="integer")


DAYS = Family("DaysBetween", _days, lambda problem, value: value == problem.truth.count)


@DAYS.put("right", "the number")
def _count(chance: random.Random, problem: Problem) -> Said | None:
    return Said(written(chance, Fraction(problem.truth.count)), problem.truth.count)


@DAYS.put("wrong", "off by one")
def _off(chance: random.Random, problem: Problem) -> Said | None:
    found = problem.truth.count + chance.choice([-1, 1])
    return Said(written(chance, Fraction(found)), found)


@DAYS.put("wrong", "what a slip leads to")
def _slip(chance: random.Random, problem: Problem) -> Said | None:
    found = chance.choice(problem.truth.near)
    return Said(written(chance, Fraction(found)), found)


@DAYS.put("wrong", "a week off, or a leap year too many")
def _week(chance: random.Random, problem: Problem) -> Said | None:
    found = problem.truth.count + chance.choice([-7, 7, -2, 2, 365, -365])
    return Said(written(chance, Fraction(found)), found)


@DAYS.put("wrong", "no whole number")
def _not_whole(chance: random.Random, problem: Problem) -> Said | None:
    count = problem.truth.count
    return Said(
        chance.choice([f"{count}.5", f"{count} to {count + 1}", f"about {count}", "", "a week", f"{count}/7/1"])
    )


# Durations

_SECONDS = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}


def _duration_text(chance: random.Random, seconds: int) -> str:
    sign = "-" if seconds < 0 else ""
    hours, rest = divmod(abs(seconds), 3600)
    minutes, left = divmod(rest, 60)
    parts = [(hours, "h", "hours", "hr"), (minutes, "min", "minutes", "mins"), (left, "s", "seconds", "sec")]
    used = [each for each in parts if each[0]] or [parts[1]]
    ways = [" ".join(f"{count} {short}" for count, short, _, _ in used)]
    ways.append(" and ".join(f"{count} {long if count != 1 else long[:-1]}" for count, _, long, _ in used))
    ways.append(", ".join(f"{count} {other}" for count, _, _, other in used))
    ways.append("".join(f"{count}{short}" for count, short, _, _ in used))
    iso = "".join(f"{count}{letter}" for (count, *_), letter in zip(parts, "HMS", strict=True) if count)
    ways.append(f"PT{iso or '0M'}")
    for unit in ("hour", "minute", "second", "day"):
        value = Fraction(abs(seconds), _SECONDS[unit])
        text = number_text(value)
        if "/" not in text and len(text) < 9:
            ways.append(f"{text} {unit}{'' if value == 1 else 's'}")
    return sign + chance.choice(ways)


@dataclass(frozen=True, slots=True)
class _Length:
    seconds: int
    unit: str | None
    near: tuple[int, ...]
    within: Fraction = Fraction(0)


def _duration(chance: random.Random) -> Problem:
    a, b = 60 * chance.randint(20, 900), 60 * chance.randint(1, 300)
    unit = chance.choice([None, None, "minute", "hour"])
    within = chance.choice([None, None, None, "1 min"])
    sign = chance.choice([1, 1, -1])
    text = f"a {'+' if sign > 0 else '-'} {b // 60} minutes"
    total = a + sign * b
    # Minutes taken for hundredths of an hour, days of eight hours, the other sign.
    near = (a - sign * b, a, b, total * 60, total // 60, total // 3 if total % 3 == 0 else total * 3, total + 40 * 60)
    allowed = min(Fraction(60), Fraction(abs(total), 10)) if within else Fraction(0)
    check = DurationIs(text, unit=unit, within=within)
    truth = _Length(total, unit, near, allowed)
    return Problem((check,), truth, {"a": _duration_text(chance, a)}, type="text" if unit is None else "number")


DURATION = Family(
    "DurationIs", _duration, lambda problem, value: abs(value - problem.truth.seconds) <= problem.truth.within
)


def _long(chance: random.Random, problem: Problem, seconds: int) -> Said:
    unit = problem.truth.unit
    if unit is None:
        return Said(_duration_text(chance, seconds), seconds)
    return Said(written(chance, Fraction(seconds, _SECONDS[unit])), seconds)


DURATION.put("right", "in one of many ways")(lambda chance, problem: _long(chance, problem, problem.truth.seconds))


@DURATION.put("right", "as far off as is allowed")
def _allowed(chance: random.Random, problem: Problem) -> Said | None:
    within = int(problem.truth.within)
    return _long(chance, problem, problem.truth.seconds + chance.choice([-within, within])) if within else None


def _long_kind(name: str, pick: Callable[[random.Random, _Length], int]) -> None:
    DURATION.put("wrong", name)(lambda chance, problem: _long(chance, problem, pick(chance, problem.truth)))


_long_kind("a minute too many or too few", lambda chance, length: length.seconds + chance.choice([-60, 60]))
_long_kind("a second more than is allowed", lambda chance, length: length.seconds + int(length.within) + 1)
_long_kind("an hour off", lambda chance, length: length.seconds + chance.choice([-3600, 3600]))
_long_kind("a day off", lambda chance, length: length.seconds + 86_400)
_long_kind("what a slip leads to", lambda chance, length: chance.choice(length.near))
_long_kind("the sign", lambda chance, length: -length.seconds)


@DURATION.put("wrong", "minutes written as hundredths of an hour")
def _hundredths(chance: random.Random, problem: Problem) -> Said | None:
    hours, minutes = divmod(problem.truth.seconds // 60, 60)
    said = Fraction(hours) + Fraction(minutes, 100)
    text = number_text(said)
    unit = problem.truth.unit
    if unit is None:
        return Said(f"{text} hours", said * 3600)
    return Said(text, said * 3600) if unit == "hour" else None


@DURATION.put("wrong", "no duration, or several")
def _no_duration(chance: random.Random, problem: Problem) -> Said | None:
    if problem.truth.unit is not None:
        return Said(chance.choice(["", "1:30", "1 h 30", "about 90", "90 to 95"]))
    right = _duration_text(chance, problem.truth.seconds)
    return Said(
        chance.choice(["", f"{right} or 5 min", f"{right} or so?", "30 minutes 1 hour", "1 month", "a while", "90"])
    )


@DURATION.put("refused", "hours and minutes with a colon")
def _colon(chance: random.Random, problem: Problem) -> Said | None:
    hours, minutes = divmod(problem.truth.seconds // 60, 60)
    fits = problem.truth.unit is None and problem.truth.seconds > 0
    return Said(f"{hours}:{minutes:02}", problem.truth.seconds) if fits else None
