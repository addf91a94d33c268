"""Steps with dates as sums: what a calendar settles stands in them as numbers.

The days between two dates are those left of the first month, those of the months between and those of the last; a date
some days later is the day of the month plus these days, less the days of every month that is over. Models fail on
``2026-04-02 - 2026-01-05`` and find ``26 + 28 + 31 + 2``.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping
from datetime import date, timedelta

from stepguard.language.expressions import Chain, Compare, Expression, Number
from stepguard.language.terms import LiteralTerm, is_variable
from stepguard.language.values import Value, to_exact
from stepguard.procedure.steps import Step
from stepguard.repair.rewriting import StandIn

__all__ = ["split_dates"]

_MAX_MONTHS = 24
"""A sum over more months is no help."""


def split_dates(step: Step, values: Mapping[str, Value]) -> StandIn | None:
    """The sum of days that is asked in the place of a step; None where it is not about dates, or too far.

    Args:
        step: a step whose value follows from an expression with dates (`Step.exact`).
        values: what it reads.
    """
    tree = step.exact
    if isinstance(tree, Compare):
        return _compared(step, tree, values)
    if not isinstance(tree, Chain) or len(tree.operands) != 2 or tree.operators[0] not in "+-":
        return None
    left, right = (_value(operand, values) for operand in tree.operands)
    if isinstance(left, date) and isinstance(right, date) and tree.operators == ("-",):
        return _between(step, right, left)
    days = _days(right)
    if isinstance(left, date) and days is not None:
        return _later(step, left, days if tree.operators == ("+",) else -days)
    return None


def _value(operand: Expression, values: Mapping[str, Value]) -> Value | None:
    if isinstance(operand, LiteralTerm):
        return operand.value
    if is_variable(operand):
        return values.get(operand.name)
    return None


def _days(value: Value | None) -> int | None:
    """Whole days of a span."""
    if not isinstance(value, timedelta) or value % timedelta(days=1):
        return None
    return value // timedelta(days=1)


def _sum(terms: list[int]) -> Expression | None:
    """Terms as a sum, with those below zero taken off; None where there are not two."""
    if len(terms) < 2:
        return None
    operators = tuple("-" if term < 0 else "+" for term in terms[1:])
    return Chain((Number(terms[0]), *(Number(abs(term)) for term in terms[1:])), operators)


def _between(step: Step, first: date, last: date) -> StandIn | None:
    if last < first:
        turned = _between(step, last, first)
        return None if turned is None else StandIn(turned.steps, negated=True, measure="days")
    months = _months(first, last)
    if len(months) > _MAX_MONTHS:
        return None
    terms = [last.day, -first.day] if len(months) == 1 else [months[0] - first.day, *months[1:-1], last.day]
    tree = _sum(terms)
    return None if tree is None else StandIn((Step(step.id, tree),), measure="days")


def _later(step: Step, start: date, days: int) -> StandIn | None:
    try:
        end = start + timedelta(days=days)
    except OverflowError:
        return None
    over = _months(start, end)[:-1] if days >= 0 else _months(end, start)[:-1]
    if len(over) > _MAX_MONTHS:
        return None
    terms = [start.day, days, *(-length if days >= 0 else length for length in over)]
    tree = _sum(terms)
    if tree is None:
        return None
    return StandIn((Step(step.id, tree),), measure="date", since=end.replace(day=1))


def _months(first: date, last: date) -> list[int]:
    """The lengths of the months from that of the first date to that of the last."""
    lengths: list[int] = []
    year, month = first.year, first.month
    while (year, month) <= (last.year, last.month) and len(lengths) <= _MAX_MONTHS:
        lengths.append(monthrange(year, month)[1])
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
    return lengths


def _compared(step: Step, tree: Compare, values: Mapping[str, Value]) -> StandIn | None:
    """The difference in days whose sign decides."""
    left, right = _value(tree.left, values), _value(tree.right, values)
    if isinstance(left, date) and isinstance(right, date):
        between = _between(step, right, left)
        if between is None:
            return None
        return StandIn(between.steps, negated=between.negated, compared=tree.operator)
    one, other = _days(left), _days(right)
    if one is None or other is None:
        return None
    difference = Chain((Number(to_exact(one)), Number(to_exact(other))), ("-",))  # type: ignore[arg-type]
    return StandIn((Step(step.id, difference),), compared=tree.operator)
