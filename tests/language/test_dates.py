"""Dates and durations: reading them, and the checks on them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from fractions import Fraction
from typing import Any

import pytest
from constraint_harness import guarded, judge, outcome
from hypothesis import given
from hypothesis import strategies as st
from tables import all_rows

from stepguard import Guard, Procedure
from stepguard.checks.built import BuiltCheck
from stepguard.checks.dates import DateHolds, DateIs, DaysBetween
from stepguard.checks.durations import DurationIs
from stepguard.errors import ConfigError, ValueRefused
from stepguard.language.dates import Calendar, DateOrder, add_months, find_dates, read_date, read_duration
from stepguard.testing import ScriptedBackend

pytestmark = pytest.mark.once

ERROR = "Error: tool not available"
DAYS = st.dates(date(1900, 1, 1), date(2100, 12, 31))
NOTATIONS: list[Callable[[date], str]] = [
    *(lambda day: day.isoformat(), lambda day: day.strftime("%Y/%m/%d")),
    *(lambda day: f"{day.day} {day.strftime('%B %Y')}", lambda day: f"{day.strftime('%b')} {day.day}, {day.year}"),
    *(lambda day: day.strftime("%d-%b-%Y"), lambda day: day.strftime("%A, %d %B %Y")),
    *(lambda day: day.strftime("%a %d %b. %Y"), lambda day: f"the {day.day}th of {day.strftime('%B, %Y').upper()}"),
    *(lambda day: f'"{day.isoformat()}".', lambda day: day.isoformat().replace("-", "\u2011")),
    lambda day: f"{day.day}\u202f{day.strftime('%B %Y')}",
]


@given(DAYS, st.sampled_from(NOTATIONS))
def test_notations_of_a_date(day: date, write: Callable[[date], str]) -> None:
    """A date is read from every usual notation in English."""
    assert read_date(write(day)) == day


@all_rows(
    "text, order, read",
    [
        ("03/04/2026", "dmy", date(2026, 4, 3)),
        ("03/04/2026", "mdy", date(2026, 3, 4)),
        ("3.4.2026", "dmy", date(2026, 4, 3)),
        ("28/11/2026", None, date(2026, 11, 28)),
        ("11/28/2026", None, date(2026, 11, 28)),
        ("04-04-2026", None, date(2026, 4, 4)),
        ("2026-03-04", "mdy", date(2026, 3, 4)),
    ],
)
def test_the_order_of_a_date(text: str, order: DateOrder | None, read: date) -> None:
    """Three numbers are read in the declared order, or where only one order gives a day."""
    assert read_date(text, order=order) == read


@all_rows(
    "text",
    [
        *("03/04/2026", "3.4.2026", "03-04-2026", "28/11/26", "2026-02-30", "29 February 2025", "31 April 2026"),
        *("Friday, 28 November 2026", "28 novembre 2026", "28 November", "November 2026", "2026-11-28T10:00:00Z"),
        *("2026-11-28 10:00", "20261128", "tomorrow", "2026-W48-6", "0000-01-01", "2026-13-01", "2026/11-28", ERROR),
        *("２０２６-11-28", "28 ſept 2026", "2026-11-28, 2026-11-29", "", "9" * 500, "28 " * 500),
    ],
)
def test_what_is_no_date_is_refused(text: str) -> None:
    """What could be two dates, is none, or has no whole year is refused and never guessed."""
    with pytest.raises(ValueRefused):
        read_date(text)


def test_an_order_does_not_bend_a_date() -> None:
    """A date that has no day in the declared order is refused, not turned round."""
    with pytest.raises(ValueRefused, match="no such day"):
        read_date("11/28/2026", order="dmy")


@all_rows("text, seconds", [
    ("90 minutes", 5400), ("1 h 30 min", 5400), ("1h30m", 5400), ("PT1H30M", 5400), ("PT90M", 5400),
    ("1.5 hours", 5400), ("1 hour and 30 minutes", 5400), ("3/4 hour", 2700), ("90-minute", 5400),
    ("1 day, 2 hours, and 3 minutes", 93780), ("P1DT2H", 93600), ("P1W", 604800), ("1 week", 604800),
    ("90\u2011minute", 5400), ("90\u202fmin", 5400),
    ("1,000 s", 1000), ("250 ms", Fraction(1, 4)), ("-5 min", -300), ("PT0.1S", Fraction(1, 10)), ("0 s", 0),
])  # fmt: skip
def test_notations_of_a_duration(text: str, seconds: Fraction) -> None:
    """A duration is read exactly from words and from ISO 8601."""
    assert read_duration(text) == seconds


@all_rows(
    "text",
    [
        *("1:30", "5 m", "90", "3 months", "P1M", "P1Y", "1 year", "PT", "P", "P1DT", "30 min 1 h", "1 h 2 h"),
        *("1.5 h 30 min", "1 fortnight", "h", "1 h,", "about 1 h", "1 h or 2 h", "P1.2.3D", "", ERROR, "1 h " * 100),
        "٣ h",
    ],
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    """What has no fixed length, no unit, or two readings is refused."""
    with pytest.raises(ValueRefused):
        read_duration(text)


@all_rows(
    "expression, values, expected",
    [
        ("start + 30 days", {"start": "1 November 2026"}, "2026-12-01"),
        ("start - 2 weeks", {"start": "2026-11-28"}, "2026-11-14"),
        ("start + notice days", {"start": "2026-11-28", "notice": 5}, "2026-12-03"),
        ("start + 1 month", {"start": "2026-01-31"}, "2026-02-28"),
        ("start + 1 month", {"start": "2028-01-31"}, "2028-02-29"),
        ("start - 1 month", {"start": "2026-01-15"}, "2025-12-15"),
        ("start + 1 year", {"start": "2028-02-29"}, "2029-02-28"),
        ("2026-01-31 + 1 month + 1 day", {}, "2026-03-01"),
        ("start + 3 working days", {"start": "2026-11-26"}, "2026-12-01"),
        ("start - 1 business day", {"start": "2026-11-30"}, "2026-11-27"),
        ("2026-11-28", {}, "2026-11-28"),
    ],
)
def test_date_expressions(expression: str, values: dict[str, Any], expected: str) -> None:
    """The date an expression gives passes as proved in any notation, and the days beside it fail."""
    check = DateIs(expression)
    day = date.fromisoformat(expected)
    for write in NOTATIONS:
        found = judge(check, write(day), type="text", **values)
        assert (found.outcome, found.strength) == ("pass", "proved")
        for beside in (day - timedelta(1), day + timedelta(1)):
            wrong = judge(check, write(beside), type="text", **values)
            assert (wrong.outcome, wrong.kind) == ("fail", "wrong_value")


def test_holidays_are_no_working_days() -> None:
    """Working days leave out the given holidays, and weekends, on whatever days they are."""
    check = DateIs("2026-12-24 + 2 working days", holidays=["2026-12-25", date(2026, 12, 28)])
    assert outcome(check, "2026-12-30", type="text") == "pass"
    assert outcome(check, "2026-12-28", type="text") == "fail"
    friday = DateIs("2026-12-24 + 2 working days", weekend=["Friday", "saturday"])
    assert (outcome(friday, "2026-12-28", type="text"), outcome(friday, "2026-12-26", type="text")) == ("pass", "fail")


DEADLINE = """
inputs: received: date
due: date = "The fifth working day after it, without Christmas Day." (reads received)
    check: {check}
"""


@all_rows(
    "check, days",
    [
        ('date_is("received + 5 working days", holidays=["2026-12-25"])', 29),
        ('date_is("received + 5 working days", weekend=["Friday", "Saturday"])', 28),
        ('date_is("received + 5 working days")', 28),
        ('date_holds("due == received + 5 working days", holidays=["2026-12-25"])', 29),
    ],
)
def test_a_step_that_is_a_date_has_a_calendar_in_its_check(check: str, days: int) -> None:
    """Inputs and steps of the type date are judged as texts are that hold one, with the holidays of the check."""
    procedure = Procedure.parse(DEADLINE.format(check=check).replace("\n    check", "  check"))
    claims = [f"2026-12-{day}" for day in (27, 28, 29, 30)]
    passed = []
    for claimed in claims:
        model = ScriptedBackend({"due": {"work": "", "value": claimed}})
        result = Guard(model, repair=0).run(procedure, {"received": "2026-12-21"})
        passed += [result.answer] if result.verified else []
    assert passed == [date(2026, 12, days)]


@all_rows(
    "expression",
    [
        *("", "start +", "start + 30", "start + days", "start 30 days", "30 days", "03/04/2026", "2026-02-30"),
        *("20260101", "start + 1 working month", "start + 1000000 days", "start * 2 days", "start + 1 fortnight"),
        *("max + 1 day", 3, "start + 1 day" * 200),
    ],
)
def test_a_date_expression_that_cannot_work_is_refused(expression: Any) -> None:
    """What is no date expression is refused when the check is made."""
    for make in (DateIs, lambda text: DateHolds(f"t > {text}"), lambda text: DaysBetween("start", text)):
        with pytest.raises(ConfigError):
            make(expression)


@all_rows(
    "relations, right, wrong, strength",
    [
        (["t > start"], "2026-11-29", "2026-11-28", "constrained"),
        (["t >= start", "t <= start + 1 month"], "2026-12-28", "2026-12-29", "constrained"),
        (["start < t"], "Dec 1, 2026", "Nov 1, 2026", "constrained"),
        (["t != start"], "2026-11-29", "28 Nov 2026", "constrained"),
        (["t == start + 1 week"], "2026-12-05", "2026-12-04", "proved"),
        (["start + 1 week == t"], "2026-12-05", "2026-12-04", "proved"),
        (["t + 1 month == start"], "2026-10-28", "2026-10-27", "constrained"),
    ],
)
def test_relations_between_dates(relations: list[str], right: str, wrong: str, strength: str) -> None:
    """Relations between dates are compared by value; one that leaves one date only is a proof."""
    check = DateHolds(*relations)
    found = judge(check, right, type="text", start="2026-11-28")
    assert (found.outcome, found.strength) == ("pass", strength)
    assert outcome(check, wrong, type="text", start="28 November 2026") == "fail"


@pytest.mark.parametrize("check", [DateIs("start + 1 day"), DateHolds("t > start")])
def test_what_is_no_date_never_passes(check: BuiltCheck) -> None:
    """A claim that is no date fails as malformed; where what it is compared with is none, asking again is pointless."""
    for claimed in (ERROR, "", "03/04/2026", "\ud800", "9" * 10_000):
        found = judge(check, claimed, type="text", start="2026-01-01")
        assert (found.outcome, found.kind) == ("fail", "malformed")
    for start in ("03/04/2026", "soon", 3, True):
        found = judge(check, "2026-01-02", type="text", start=start)
        assert (found.outcome, found.retry) == ("undecided", False)


@all_rows(
    "expression, values",
    [
        *(("9999-12-31 + 1 day", {}), ("9999-12-31 + 1 month", {}), ("0001-01-01 - 1 year", {})),
        *(("9999-12-31 + 5 working days", {}), ("start + n days", {"start": "2026-01-01", "n": Fraction(1, 2)})),
        ("start + n days", {"start": "2026-01-01", "n": 10**30}),
        ("start + n days", {"start": "2026-01-01", "n": True}),
        ("start + n days", {"start": "2026-01-01", "n": "five"}),
    ],
)
def test_a_date_expression_without_a_value_is_undecided(expression: str, values: dict[str, Any]) -> None:
    """Where the expression gives no date, no claim passes and asking again is pointless."""
    found = judge(DateIs(expression), "2026-01-02", type="text", **values)
    assert (found.outcome, found.retry) == ("undecided", False)


def test_a_claim_that_takes_a_date_out_of_range_is_undecided() -> None:
    """Where only the claim makes the expression impossible, another claim may be judged."""
    found = judge(DateHolds("t + 1 day > start"), "9999-12-31", type="text", start="2026-01-01")
    assert (found.outcome, found.retry) == ("undecided", True)
    lost = judge(DateHolds("t + n days > 2026-01-01"), "2026-01-01", type="text", n="some")
    assert (lost.outcome, lost.retry) == ("undecided", False)


@all_rows(
    "options, days",
    [
        ({}, 7),
        ({"inclusive": True}, 8),
        ({"working": True}, 5),
        ({"working": True, "inclusive": True}, 6),
        ({"working": True, "holidays": ["2026-11-30", "2026-11-28"]}, 4),
    ],
)
def test_days_between(options: dict[str, Any], days: int) -> None:
    """The days from Friday the 27th to Friday the 4th, counted as declared; every other number fails."""
    check = DaysBetween("start", "stop", **options)
    for claimed in range(days - 2, days + 3):
        found = judge(check, str(claimed), type="integer", start="2026-11-27", stop="4 December 2026")
        assert (found.outcome, found.strength) == (("pass", "proved") if claimed == days else ("fail", None))


def test_days_that_go_backwards() -> None:
    """A number of days is negative where the end is earlier, and undecided where both ends should count."""
    assert outcome(DaysBetween("start", "stop"), "-1", start="2026-01-02", stop="2026-01-01") == "pass"
    found = judge(DaysBetween("start", "stop", inclusive=True), "0", start="2026-01-02", stop="2026-01-01")
    assert (found.outcome, found.retry) == ("undecided", False)


@given(DAYS, st.integers(-60, 60), st.frozensets(DAYS, max_size=5), st.frozensets(st.integers(0, 6), max_size=6))
def test_working_days_are_counted_as_they_are_added(
    start: date, days: int, holidays: frozenset[date], weekend: frozenset[int]
) -> None:
    """Going so many working days on passes just that many of them, by the count of single days too."""
    calendar = Calendar(holidays, weekend)
    end = calendar.add(start, days)
    low, high = min(start, end), max(start, end)
    single = sum(
        day.weekday() not in weekend and day not in holidays
        for day in (low + timedelta(offset) for offset in range((high - low).days))
    )
    assert calendar.count(low, high) == single


@given(DAYS, st.integers(-500, 500))
def test_months_keep_the_day_or_end_the_month(start: date, months: int) -> None:
    """So many months on it is the same day, or the last one of a shorter month."""
    found = add_months(start, months)
    assert (found.year * 12 + found.month) - (start.year * 12 + start.month) == months
    assert found.day == start.day or (found.day < start.day and (found + timedelta(1)).day == 1)


@given(DAYS, DAYS)
def test_no_other_date_passes(right: date, claimed: date) -> None:
    """Where one date is right, every other one fails."""
    expected = "pass" if claimed == right else "fail"
    assert (
        outcome(DateIs("start + 1 day"), claimed.isoformat(), type="text", start=str(right - timedelta(1))) == expected
    )


@all_rows(
    "check, type, right, wrong",
    [
        (DurationIs("90 minutes"), "text", ["1 h 30 min", "PT1H30M", "1.5 hours"], ["91 minutes", "1 h 3 min"]),
        (DurationIs("setup + 30 minutes"), "text", ["1 hour 15 min"], ["1 hour 16 min"]),
        (DurationIs("setup - 30 minutes"), "text", ["15 min"], ["-15 min"]),
        (DurationIs("setup", unit="minute"), "integer", ["45"], ["46", "0"]),
        (DurationIs("setup", unit="hour"), "number", ["0.75", "3/4"], ["0.7", "45"]),
        (DurationIs("90 min", within="1 min"), "text", ["91 min", "89 min", "90 min"], ["92 min", "PT91M1S"]),
        (DurationIs("5 min", within="1 day"), "text", ["5 min 30 s"], ["5 min 31 s", "1 h"]),
    ],
)
def test_durations_are_compared_by_value(check: DurationIs, type: str, right: list[str], wrong: list[str]) -> None:
    """A duration passes in any notation, and another one fails; a tolerance is declared and never above a tenth."""
    assert [outcome(check, each, type=type, setup="45 min") for each in right] == ["pass"] * len(right)
    assert [outcome(check, each, type=type, setup="45 min") for each in wrong] == ["fail"] * len(wrong)


def test_a_tolerance_is_recorded() -> None:
    """A value that passes only within the tolerance says so in its verdict."""
    assert "within 60 s" in judge(DurationIs("90 min", within="1 min"), "91 min", type="text").reason


@all_rows("claimed", [ERROR, "90", "3 months", "5 m", ""])
def test_what_is_no_duration_never_passes(claimed: str) -> None:
    """A claim that is no duration fails as malformed, and a variable that holds none is undecided."""
    found = judge(DurationIs("90 min"), claimed, type="text")
    assert (found.outcome, found.kind) == ("fail", "malformed")
    lost = judge(DurationIs("setup"), "90 min", type="text", setup=claimed)
    assert (lost.outcome, lost.retry) == ("undecided", False)


def test_dates_are_found_where_they_stand_alone() -> None:
    """Dates are found in a text with their places, and not inside longer numbers, ids and words."""
    text = (
        "Due 2026-11-28. Logged 2026-11-27T10:00Z, seen (Nov 26, 2026) on 03/04/2026; X-2026-01-01, A2026-01-02, "
        "2026-01-03-04, 128 November 2026, 30 Feb 2026, 2026-01-05x."
    )
    found = list(find_dates(text))
    assert [(each.value.isoformat(), text[each.start : each.end]) for each in found] == [
        ("2026-11-28", "2026-11-28"),
        ("2026-11-27", "2026-11-27"),
        ("2026-11-26", "Nov 26, 2026"),
    ]
    assert date(2026, 4, 3) in [each.value for each in find_dates(text, order="dmy")]
    printed = text.replace("-", "\u2011").replace(" ", "\u202f")
    assert [(each.value, each.start) for each in find_dates(printed)] == [(each.value, each.start) for each in found]


def test_a_date_verifies_a_step_of_words() -> None:
    """Through a guard, a step is verified by its date in another notation, and the text of an error is not kept."""
    check = DateIs("start + 30 days")
    assert guarded(check, "1 December 2026", "2 December 2026", start="2026-11-02").answer == "2 December 2026"
    wrong = guarded(check, ERROR, start="2026-11-02")
    assert (wrong.status, wrong.answer) == ("abstained", None)


@all_rows("written", ["3000%", "$30", "30 EUR"])
@all_rows(
    "check",
    [DaysBetween("2026-11-01", "2026-12-01"), DurationIs("30 minutes", unit="minute"), DurationIs("30 h", unit="hour")],
)
def test_a_number_with_a_percent_sign_or_a_currency_counts_no_time(check: BuiltCheck, written: str) -> None:
    """A number of days, hours or minutes is written without another sign, whatever its value would be."""
    assert outcome(check, written, type="number") == "fail"
    assert outcome(check, "30", type="number") == "pass"
