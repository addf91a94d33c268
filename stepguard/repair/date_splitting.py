"""Steps with dates as sums: what a calendar settles stands in them as numbers.

The days between two dates are those left of the first month, those of the months between and those of the last; a date
some days later is the day of the month plus these days, less the days of every month that is over. Models fail on
``2026-04-02 - 2026-01-05`` and find ``26 + 28 + 31 + 2``. Spans of whole days beside them are terms of the same sum, a
comparison is the difference whose sign decides, a span over one day is its number, and working days are whole weeks and
the days that are left.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import prod
from operator import itemgetter
from typing import cast

from stepguard.language.dates import Calendar
from stepguard.language.expressions import Chain, Compare, Expression, Name, Number
from stepguard.language.periods import Period
from stepguard.language.terms.operands import LiteralTerm, is_variable
from stepguard.language.values import Value, to_exact
from stepguard.procedure.steps import Step
from stepguard.repair.rewriting import StandIn

_MAX_MONTHS = 24
"""A sum over more months is no help."""


def split_dates(step: Step, values: Mapping[str, Value]) -> StandIn | None:
    """The sum of days that is asked in the place of a step; None where it is not about dates, or too far.

    Args:
        step: a step whose value follows from an expression with dates (`Step.exact`).
        values: what it reads.
    """
    tree = step.exact
    if isinstance(tree, Compare):  # the sign of the difference decides
        decision = Compare(tree.operator, Name(step.id), Number(0))
        return _elapsed(step, days_apart(tree, values), in_days=False, decision=decision)
    number = isinstance(tree, Chain) and tree.operators == ("/",) and _days(_value(tree.operands[1], values)) == 1
    linear = _linear(cast(Chain, tree).operands[0] if number else tree, values)
    if linear is None:
        return None
    # With one date more than is taken off, the result is a date.
    if len(linear.added) > len(linear.taken) and not number:
        return _later(step, linear)
    return _elapsed(step, _days_of(linear), in_days=not number)


@dataclass(frozen=True, slots=True)
class _Linear:
    """A sum of dates and of days.

    Attributes:
        added: the dates that are added.
        taken: those that are taken off.
        days: numbers of days and products of them, each with whether it is taken off.
        working: numbers of working days, in the order in which they are gone.
    """

    added: tuple[date, ...] = ()
    taken: tuple[date, ...] = ()
    days: tuple[tuple[bool, Expression], ...] = ()
    working: tuple[int, ...] = ()

    def plus(self, other: _Linear) -> _Linear:
        added, taken = self.added + other.added, self.taken + other.taken
        return _Linear(added, taken, self.days + other.days, self.working + other.working)

    def less(self, other: _Linear) -> _Linear:
        turned = tuple((not off, term) for off, term in other.days)
        return self.plus(_Linear(other.taken, other.added, turned, tuple(-days for days in other.working)))


def _linear(tree: Expression | None, values: Mapping[str, Value]) -> _Linear | None:
    """An expression as a sum of dates and days; None where it is none."""
    if not isinstance(tree, Chain):
        value = _value(tree, values)
        days, working = _days(value), _working(value)
        if days is not None:
            return _Linear(days=((days < 0, Number(abs(days))),))
        if working is not None:
            return _Linear(working=(working,))
        return _Linear((value,)) if isinstance(value, date) else None
    if not tree.additive:
        return _product(tree, values)
    parts = [_linear(operand, values) for operand in tree.operands]
    total = parts[0]
    for operator, part in zip(tree.operators, parts[1:], strict=True):
        if total is None or part is None:
            return None
        total = total.plus(part) if operator == "+" else total.less(part)
    return total


def _product(tree: Chain, values: Mapping[str, Value]) -> _Linear | None:
    """A number of days or working days times numbers: ``window * 1 days``."""
    if set(tree.operators) != {"*"}:
        return None
    numbers: list[int] = []
    spans = working = 0
    for value in (_value(operand, values) for operand in tree.operands):
        span = days if (days := _days(value)) is not None else _working(value)
        number = span if span is not None else None if value is None else to_exact(value)
        if type(number) is not int:
            return None
        numbers.append(number)
        spans += span is not None
        working += span is not None and days is None
    if spans != 1:
        return None
    if working:
        return _Linear(working=(prod(numbers),))
    off = sum(number < 0 for number in numbers) % 2 == 1
    # A factor of one changes nothing.
    factors = [Number(abs(number)) for number in numbers if abs(number) != 1] or [Number(1)]
    term = factors[0] if len(factors) == 1 else Chain(tuple(factors), ("*",) * (len(factors) - 1))
    return _Linear(days=((off, term),))


def _value(operand: Expression | None, values: Mapping[str, Value]) -> Value | None:
    if isinstance(operand, LiteralTerm | Number):
        return operand.value
    return values.get(operand.name) if is_variable(operand) else None


def _days(value: Value | None) -> int | None:
    """Whole days of a span."""
    if not isinstance(value, timedelta) or value % timedelta(days=1):
        return None
    return value // timedelta(days=1)


def _working(value: Value | None) -> int | None:
    """Working days of a period of nothing else."""
    if not isinstance(value, Period) or value.months or value.days:
        return None
    return value.working_days


def _sum(terms: Sequence[tuple[bool, Expression]]) -> tuple[Expression, bool] | None:
    """Terms that are added or taken off, as a sum, and whether it is of the other sign; None where nothing is added up.

    What is added stands first.
    """
    turned = all(off for off, _ in terms)
    ordered = sorted(((off != turned, term) for off, term in terms), key=itemgetter(0))
    if len(ordered) < 2:
        return None
    operators = tuple("-" if off else "+" for off, _ in ordered[1:])
    return Chain(tuple(term for _, term in ordered), operators), turned


def _numbers(terms: Sequence[int]) -> list[tuple[bool, Expression]]:
    return [(term < 0, Number(abs(term))) for term in terms]


def _elapsed(
    step: Step, days: tuple[Expression, bool] | None, *, in_days: bool, decision: Expression | None = None
) -> StandIn | None:
    if days is None:
        return None
    tree, negated = days
    return StandIn((Step(step.id, tree),), negated=negated, decision=decision, in_days=in_days)


def days_apart(tree: Compare, values: Mapping[str, Value]) -> tuple[Expression, bool] | None:
    """The days between the sides of a comparison as a sum, and whether it is that of the other sign."""
    left, right = (_linear(side, values) for side in (tree.left, tree.right))
    return None if left is None or right is None else _days_of(left.less(right))


def _days_of(linear: _Linear) -> tuple[Expression, bool] | None:
    """The days that a sum comes to, where its dates are two or none, and whether they are those of the other sign."""
    terms, turned = list(linear.days), False
    if linear.working:
        return None
    match linear.added, linear.taken:
        case (), ():
            pass
        case (last,), (first,):
            between = _between(min(first, last), max(first, last))
            if between is None:
                return None
            turned = last < first
            terms = [*_numbers(between), *((off != turned, term) for off, term in terms)]
        case _:
            return None
    made = _sum(terms)
    return None if made is None else (made[0], made[1] != turned)


def _between(first: date, last: date) -> list[int] | None:
    months = _months(first, last)
    if len(months) > _MAX_MONTHS:
        return None
    if len(months) == 1:
        return [last.day, -first.day]
    left = months[0] - first.day
    begins = [left] if left else [months[0], -first.day]  # behind a zero, the rest would be the answer
    return [*begins, *months[1:-1], last.day]


def _later(step: Step, linear: _Linear) -> StandIn | None:
    """The day of the month that a date some days away has."""
    if len(linear.added) != 1 or linear.taken or not all(isinstance(term, Number) for _, term in linear.days):
        return None
    (start,), days = linear.added, [int(cast(Number, term).value) * (-1 if off else 1) for off, term in linear.days]
    try:
        if linear.working:
            if days or len(linear.working) > 1:  # the end depends on which of them is added first
                return None
            # How many days these are depends on where they begin.
            days = _weeks(start, linear.working[0])
        end = start + timedelta(days=sum(days))
    except OverflowError:
        return None
    forward = end >= start
    months = _months(start, end) if forward else _months(end, start)
    if len(months) > _MAX_MONTHS:
        return None
    made = _sum(_numbers([start.day, *days, *(-length if forward else length for length in months[:-1])]))
    if made is None or made[1]:
        return None
    return StandIn((Step(step.id, made[0]),), in_days=True, since=end.replace(day=1))


def _weeks(start: date, working: int) -> list[int]:
    """The days of so many working days: whole weeks of seven, and those of the rest with the weekends between.

    Raises:
        OverflowError: the last of them is before the year 1 or after 9999.
    """
    days = (Calendar().add(start, working) - start).days
    weeks = abs(working) // 5 * (7 if working > 0 else -7)
    return [part for part in (weeks, days - weeks) if part]


def _months(first: date, last: date) -> list[int]:
    """The lengths of the months from that of the first date to that of the last."""
    lengths: list[int] = []
    year, month = first.year, first.month
    # One month more than the most is enough to see that it is too far.
    while (year, month) <= (last.year, last.month) and len(lengths) <= _MAX_MONTHS:
        lengths.append(monthrange(year, month)[1])
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
    return lengths
