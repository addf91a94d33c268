"""A step with dates that a model gets wrong is asked as a sum of days, and the date or span follows from it."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepguard import Guard, Input, Ladder, Procedure, Step
from stepguard.backends import Completion, Request
from stepguard.language.expressions import Chain, Compare, Expression, Name
from stepguard.language.terms import LiteralTerm
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


def test_an_observed_sum_of_days_is_taken_as_it_stands() -> None:
    """Where a run only observes, a wrong sum gives a wrong date, and nobody is asked again."""
    procedure = Procedure.parse("inputs:\n  a: date\n  b: date\n\nt: duration = b - a\n")
    with ScriptedBackend({"t": "5 + 3 = 9"}) as model:
        result = Guard(model, observe=True).run(procedure, {"a": date(2025, 6, 25), "b": date(2025, 7, 3)})
    assert (result.status, result.answer, result.usage.calls) == ("unverified", timedelta(days=9), 1)
    assert [each.kind for each in result.steps[0].deviations] == ["wrong_value"]


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
