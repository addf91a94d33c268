"""A step with dates that a model gets wrong is asked as a sum of days, and the date or span follows from it."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import all_rows

from stepguard import Guard, Input, Ladder, Procedure, Step
from stepguard.backends import Completion, Request
from stepguard.language.expressions import Chain, Compare, Expression, Name
from stepguard.language.terms.operands import LiteralTerm
from stepguard.language.values import show_value
from stepguard.repair.rungs import Split
from stepguard.testing import ScriptedBackend, SimulatedModel, Slips

DATES = st.dates(date(1990, 1, 1), date(2040, 12, 31))
SPANS = st.integers(min_value=-600, max_value=600)


class NoCalendar:
    """A model that works out every sum, and no date."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._right = SimulatedModel(slips=Slips.none())

    def complete(self, request: Request) -> Completion:
        """The right reply to a formula; nonsense to a step with dates."""
        self.asked.append(request.messages[-1].content)
        if request.steps[0].expression is not None:
            return self._right.complete(request)
        wrong = {"date": "1901-02-03", "duration": "1 day", "boolean": "true"}[request.steps[0].type.kind]
        return Completion(f'{{"t": {{"work": "as I see it", "value": "{wrong}"}}}}')


def worked_out(tree: Expression, kind: str, inputs: dict[str, Any]) -> tuple[Any, list[str]]:
    """What a guarded run comes to with that model, and what it was asked."""
    types = {"a": "date", "b": "date"}
    procedure = Procedure(
        [Step("t", tree, type=kind)], inputs=[Input(name, types[name]) for name in inputs], name="dates"
    )
    model = NoCalendar()
    result = Guard(model, repair=Ladder([Split()])).run(procedure, inputs)
    assert result.status in ("verified", "abstained"), result.problem
    return result.answer, model.asked


@given(DATES, st.integers(min_value=0, max_value=600))
def test_the_days_between_two_dates_are_a_sum(first: date, days: int) -> None:
    """It is right for every pair, also across leap days and years, and holds no date."""
    last = first + timedelta(days=days)
    answer, asked = worked_out(Chain((Name("b"), Name("a")), ("-",)), "duration", {"a": first, "b": last})
    if days != 1:  # what the model claims is right then
        assert answer == timedelta(days=days)
        assert first.isoformat() not in asked[-1]


@given(DATES, st.integers(min_value=2, max_value=60))
def test_no_sum_is_the_answer_and_nothing(first: date, days: int) -> None:
    """Also where the first date ends its month, two numbers at least have to be added up."""
    first = (first.replace(day=1) + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    inputs = {"a": first, "b": first + timedelta(days=days)}
    answer, asked = worked_out(Chain((Name("b"), Name("a")), ("-",)), "duration", inputs)
    assert answer == timedelta(days=days)
    assert " 0 + " not in asked[-1]


@given(DATES, SPANS)
def test_a_date_some_days_away_is_a_sum(start: date, days: int) -> None:
    """The day of the month is asked; the month follows from the calendar."""
    tree = Chain((Name("a"), LiteralTerm(timedelta(days=abs(days)))), ("+" if days >= 0 else "-",))
    answer, _ = worked_out(tree, "date", {"a": start})
    assert answer == start + timedelta(days=days)


@given(DATES, st.integers(min_value=760, max_value=5000), st.sampled_from(["+", "-"]))
def test_a_date_years_away_is_no_sum(start: date, days: int, sign: str) -> None:
    """Of more months than a sum may have none is left out."""
    _, asked = worked_out(Chain((Name("a"), LiteralTerm(timedelta(days=days))), (sign,)), "date", {"a": start})
    assert len(asked) == 1


@given(DATES, SPANS)
def test_an_order_of_dates_is_decided_by_a_difference(start: date, days: int) -> None:
    """No second guess of a truth value: the days between are asked, and their sign decides."""
    other = start + timedelta(days=days)
    answer, _ = worked_out(Compare("<=", Name("a"), Name("b")), "boolean", {"a": start, "b": other})
    assert answer is (start <= other)


SUMS = {
    text: Procedure.parse(f"inputs:\n  a: date\n  b: date\n  n: integer\n  k: integer\n\nt: boolean = {text}\n")
    for text in ("b - a <= n * k * 1 days", "a + k * 1 days >= b - n * 1 days", "k * 7 days > n * 1 days + 2 days")
}


@given(DATES, SPANS, st.integers(min_value=0, max_value=60), st.integers(min_value=1, max_value=9))
def test_spans_and_dates_are_terms_of_one_sum(start: date, days: int, n: int, k: int) -> None:
    """Products of spans, spans added to dates, two dates on one side: the difference decides all of them."""
    truths = (days <= n * k, start + timedelta(days=k) >= start + timedelta(days=days - n), k * 7 > n + 2)
    inputs = {"a": start, "b": start + timedelta(days=days), "n": n, "k": k}
    for (text, procedure), truth in zip(SUMS.items(), truths, strict=True):
        for rungs in ([Split()], [Split(way="round_numbers"), Split()]):
            result = Guard(NoCalendar(), repair=Ladder(rungs)).run(procedure, inputs)
            assert result.answer is truth, (text, result.problem)


WORKING = Procedure.parse("inputs:\n  a: date\n  n: integer\n\nt: date = a + n * 1 working days\n")


@given(DATES, st.integers(min_value=-70, max_value=70))
def test_working_days_are_whole_weeks_and_the_rest(start: date, n: int) -> None:
    """Counted one by one they come to the same day, from every weekday, forth and back."""
    at, left = start, abs(n)
    while left:
        at += timedelta(days=1 if n > 0 else -1)
        left -= at.weekday() < 5
    result = Guard(NoCalendar(), repair=Ladder([Split()])).run(WORKING, {"a": start, "n": n})
    assert result.answer == at or (n == 0 and result.status == "abstained"), result.problem


def test_a_step_that_needs_a_calendar_is_asked_as_a_sum_at_once() -> None:
    """A model without a calendar is not asked for what it does not have, whatever repairs there are."""
    model = NoCalendar()
    procedure = Procedure.parse("inputs:\n  a: date\n  b: date\n\nt: duration = b - a\n")
    result = Guard(model).run(procedure, {"a": date(2025, 6, 26), "b": date(2025, 8, 3)})
    assert (result.status, result.usage.calls) == ("verified", 1)
    assert dict(result.assisted) == {"split": 1}
    assert Guard(NoCalendar(), repair=0).run(procedure, {"a": date(2025, 6, 26), "b": date(2025, 8, 3)}).verified


CHAIN = """
inputs:
  a: date
  n: integer

days: integer = n + 3
due: date = a + days * 1 days
if due > a:
  over: duration = due - a
  twice: duration = over + over
else:
  twice: duration = 0 days
answer: twice
"""


def test_a_sum_of_days_waits_for_the_values_in_it() -> None:
    """A date that hangs on a step of its own segment is asked when that is verified, and what reads it behind it."""
    replies = ({"days": "4 + 3 = 7"}, {"due": "30 + 7 - 31 = 6"}, {"over": "1 + 6 = 7"}, {"twice": "7 + 7 = 14"})
    model = ScriptedBackend(*replies)
    with model:
        result = Guard(model).run(Procedure.parse(CHAIN), {"a": date(2026, 1, 30), "n": 4})
    assert (result.status, result.answer) == ("verified", timedelta(days=14))
    assert [record.value for record in result.steps][1:3] == [date(2026, 2, 6), timedelta(days=7)]


AMOUNTS = "inputs:\n  a: date\n  b: date\n  s: duration\n  w: quantity(kg)\n\n"


class Asked:
    """A model that is right, and remembers what it was asked."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._right = SimulatedModel(slips=Slips.none())

    def complete(self, request: Request) -> Completion:
        """The right reply."""
        self.steps += request.steps
        return self._right.complete(request)


@pytest.mark.parametrize(
    ("text", "asked", "answer"),
    [
        ("over: duration = b - a\nfee: money(EUR) = min(over / 1 days * 2.50, 60)", ["11 + 28 + 5", None], "60.00"),
        ("d: integer = (b - a) / 1 day", ["11 + 28 + 5"], "44"),
        ("d: integer = (a - b) / 1 day", ["11 + 28 + 5"], "-44"),
        ("d: number = s / 1 day", [], "1.5"),
        ("d: decimal(1) = s / 1 hour", [], "36.0"),
        ("d: number = 3 * s / 1 day", ["3 * s_in_day"], "4.5"),
        ("d: number = w / 1 kg * 3 + 2", ["w_in_kg * 3 + 2"], "9.5"),
        ("d: number = w / 1 g", [], "2500"),
        ("d: number = s / 7 days", [None], "3/14"),
        ("d: boolean = s / 1 day > 1", ["s_in_day > 1"], "true"),
        ("d: quantity(kg/h) = w / 1 h", [None], "2.5 kg/h"),
        ("d: number = s % s / 1 hour", [None], "0"),
        ("d: number = 2 * w % w / 1 kg", [None], "0"),
    ],
)
def test_an_amount_over_one_unit_is_a_number_that_nobody_works_out(
    text: str, asked: list[str | None], answer: str
) -> None:
    """Only what is a mere conversion is looked up: what is left is plain arithmetic, and asked as that."""
    pytest.importorskip("pint")
    inputs = {"a": date(2026, 1, 20), "b": date(2026, 3, 5), "s": "36 hours", "w": "2.5 kg"}
    model = Asked()
    result = Guard(model).run(Procedure.parse(AMOUNTS + text), inputs)
    assert result.status == "verified", result.problem
    assert result.answer is not None
    assert show_value(result.answer) == answer
    assert all(formula in (None, step.formula) for step, formula in zip(model.steps, asked, strict=True))


MONTHS = " 28 31 30 31 30 31 31 30 31 30 31 31 28 31 30 31 30 31 31 30 31 30 "
SUMS_OF_DAYS: list[tuple[str, dict[str, object], str | None]] = [
    # Two dates: what is left of the first month, the months between, and the days of the last.
    ("duration = b - a", {}, "11 + 28 + 5"),
    ("duration = a - b", {}, "11 + 28 + 5"),
    ("duration = b - a", {"a": "2026-01-31"}, "31 + 28 + 5 - 31"),
    ("duration = b - a", {"a": "2026-03-02"}, "5 - 2"),
    ("duration = b - a", {"a": "2026-03-05"}, "5 - 5"),
    ("duration = b - a", {"a": "2025-12-30"}, "1 + 31 + 28 + 5"),
    ("duration = b - a", {"b": "2027-12-05"}, f"11{MONTHS}5".replace(" ", " + ")),
    ("duration = b - a", {"b": "2028-01-05"}, None),  # over two years
    ("duration = b - a + s", {}, "11 + 28 + 5 + 5"),
    ("duration = b - a + s", {"a": "2026-03-05"}, "5 + 5 - 5"),
    ("duration = a - b + s", {}, "11 + 28 + 5 - 5"),
    ("duration = s - (b - a)", {}, "11 + 28 + 5 - 5"),
    ("duration = b - a + (b - a)", {}, None),
    ("integer = (b - a + s) / 1 days", {}, "11 + 28 + 5 + 5"),
    ("number = (b - a) / 2 days", {}, None),
    # A date some days away: the day of the month, less the months that are over.
    ("date = a + 5 days", {}, "20 + 5"),
    ("date = s + a", {}, "20 + 5"),
    ("date = a - 5 days", {}, "20 - 5"),
    ("date = a + 40 days", {}, "20 + 40 - 31 - 28"),
    ("date = a - 40 days", {}, "20 + 31 - 40"),
    ("date = a + 690 days", {}, f"20 + 690 - 31{MONTHS.rstrip().replace(' ', ' - ')}"),
    ("date = a + 720 days", {}, None),
    ("date = b - 780 days", {}, None),
    ("date = a + s + 2 days", {}, "20 + 5 + 2"),
    ("date = a - s + 2 days", {}, "20 + 2 - 5"),
    ("date = a + 0 days", {}, "20 + 0"),
    ("date = a + n * 2 days", {}, None),
    ("date = b + (b - a)", {}, None),
    ("date = a + 1 months", {}, None),
    # Spans, and products of them.
    ("date = a + n * 1 days", {}, "20 + 3"),
    ("date = a + n * 1 days", {"n": -4}, "20 - 4"),
    ("duration = s + n * 2 days", {}, "5 + 3 * 2"),
    ("duration = s + n * 2 days", {"n": 0}, "5 + 0 * 2"),
    ("duration = s - n * 2 days", {"n": -1}, "5 + 2"),
    ("duration = n * s + 1 days", {"n": -2}, "1 - 2 * 5"),
    ("duration = 1 days * n + s", {"n": 1}, "1 + 5"),
    ("duration = n * n * s + s", {"n": -2}, "2 * 2 * 5 + 5"),
    ("duration = n * s * n * n + s", {"n": -2}, "5 - 2 * 5 * 2 * 2"),
    ("duration = 2 days - s - s", {}, "2 - 5 - 5"),
    ("duration = n * 2 days", {}, None),  # nothing is added up
    ("duration = -s + 2 days", {}, None),
    ("duration = s + 36 hours", {}, None),
    ("duration = s / 2 + 1 days", {}, None),
    ("duration = 1 days + s / 2", {}, None),
    ("number = (s + 2 days) / 1 days", {}, "5 + 2"),
    ("number = s / s", {}, None),
    # Working days: whole weeks, and the days that are left with the weekends between.
    ("date = a + n * 1 working days", {}, "20 + 3"),
    ("date = a + n * 1 working days", {"n": 5}, "20 + 7"),
    ("date = a + n * 1 working days", {"n": 9}, "20 + 7 + 6 - 31"),
    ("date = a - n * 1 working days", {"n": 8}, "20 - 7 - 5"),
    ("date = a + 6 working days", {}, "20 + 7 + 1"),
    ("date = a + n * 1 working days", {"n": 0}, None),
    ("date = a + 2 working days + 1 days", {}, None),  # the end depends on which is added first
    ("date = a + 2 working days + 3 working days", {}, None),
    ("duration = a + 2 working days - b", {}, None),
]


@all_rows("formula, inputs, asked", SUMS_OF_DAYS)
def test_how_days_are_added_up(formula: str, inputs: dict[str, object], asked: str | None) -> None:
    """What a calendar settles stands in the sum as numbers; what is no such sum is asked as it stands."""
    procedure = Procedure.parse(f"inputs:\n  a: date\n  b: date\n  s: duration\n  n: integer\n\nt: {formula}")
    model = Asked()
    given = {"a": "2026-01-20", "b": "2026-03-05", "s": "5 days", "n": 3, **inputs}
    assert Guard(model, repair=0).run(procedure, given).verified
    assert [step.formula for step in model.steps] == [asked]


@all_rows("formula", ["date = a + n * 1 days", "date = a + n * 1 working days"])
def test_a_day_that_no_calendar_has_is_no_sum(formula: str) -> None:
    """The run ends at the step, and nobody is asked."""
    procedure = Procedure.parse(f"inputs: a: date, n: integer\nt: {formula}")
    model = Asked()
    result = Guard(model).run(procedure, {"a": "2026-01-20", "n": 4_000_000})
    assert (result.status, model.steps) == ("abstained", [])


def test_a_part_of_a_day_is_no_span_also_where_a_run_only_observes() -> None:
    """No value follows from it, so that the step is asked again."""
    procedure = Procedure.parse("inputs:\n  a: date\n  b: date\n\nt: duration = b - a\n")
    with ScriptedBackend({"t": "5 + 3 = 8.5"}, {"t": {"work": "5 + 3", "value": "8 days"}}) as model:
        result = Guard(model, observe=True).run(procedure, {"a": date(2025, 6, 25), "b": date(2025, 7, 3)})
    assert (result.answer, result.usage.calls) == (timedelta(days=8), 2)


def test_an_observed_sum_of_days_is_taken_as_it_stands() -> None:
    """Where a run only observes, a wrong sum gives a wrong date, and nobody is asked again."""
    procedure = Procedure.parse("inputs:\n  a: date\n  b: date\n\nt: duration = b - a\n")
    with ScriptedBackend({"t": "5 + 3 = 9"}) as model:
        result = Guard(model, observe=True).run(procedure, {"a": date(2025, 6, 25), "b": date(2025, 7, 3)})
    assert (result.status, result.answer, result.usage.calls) == ("unverified", timedelta(days=9), 1)
    assert [each.kind for each in result.steps[0].deviations] == ["wrong_value"]


def test_a_sum_of_two_terms_has_no_smaller_steps() -> None:
    """It would be asked just as it was."""
    model = ScriptedBackend({"t": "5 - 2 = 4"})
    ladder = Ladder([Split(way="round_numbers"), Split(way="compensation")])
    procedure = Procedure.parse("inputs:\n  a: date\n  b: date\n\nt: duration = b - a\n")
    result = Guard(model, repair=ladder).run(procedure, {"a": date(2026, 3, 2), "b": date(2026, 3, 5)})
    assert (result.status, result.usage.calls) == ("abstained", 1)


def test_a_sum_of_days_that_fails_is_added_up_a_term_at_a_time() -> None:
    """Before the step is asked as it stands again."""
    procedure = Procedure.parse("inputs:\n  a: date\n  b: date\n\nt: duration = b - a\n")
    model = ScriptedBackend(
        {"t": "8 + 31 + 10 = 59"},
        {"p1": "8 + 31 = 39", "t": "39 + 10 = 59"},
        {"p1": "8 + 31 = 39", "t": "39 + 10 = 49"},
    )
    with model:
        result = Guard(model).run(procedure, {"a": date(2025, 11, 22), "b": date(2026, 1, 10)})
    assert (result.status, result.answer) == ("verified", timedelta(days=49))


def test_a_constant_that_was_copied_wrongly_is_asked_again() -> None:
    """A choice of few values gets no second guess; what stands in the step is no choice."""
    model = ScriptedBackend({"t": {"work": "", "value": "small"}}, {"t": {"work": "", "value": "large"}})
    procedure = Procedure.parse('inputs:\n  n: integer\n\nt: one_of(small, large) = "large" if n > 3 else "small"\n')
    result = Guard(model).run(procedure, {"n": 5})
    assert (result.status, result.answer) == ("verified", "large")


def test_a_difference_without_working_is_asked_once_more() -> None:
    """The number says nothing of the decision, so that the next one is no guess at it."""
    replies = ['{"t": {"work": "90 is more than 90", "value": "false"}}', '{"t": "0"}', '{"t": "90 - 90 = 0"}']
    model = ScriptedBackend(*replies)
    procedure = Procedure.parse("inputs:\n  a: duration\n\nt: boolean = a <= 90 days\n")
    result = Guard(model).run(procedure, {"a": "90 days"})
    assert (result.status, result.answer) == ("verified", True)
    assert [attempt.rung for attempt in result.attempts] == ["ask", "split", "split"]


def test_a_difference_is_not_asked_without_end() -> None:
    """Two replies of their own kind each, and the step is given up by name."""
    model = ScriptedBackend('{"t": {"work": "it is", "value": "false"}}', '{"t": "0"}', '{"t": "1"}')
    procedure = Procedure.parse("inputs:\n  a: duration\n\nt: boolean = a <= 90 days\n")
    result = Guard(model).run(procedure, {"a": "90 days"})
    assert result.status == "abstained"
    assert result.problem is not None
    assert result.problem.occurrence is not None
