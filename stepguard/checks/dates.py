"""Checks on dates.

What counts as one, `stepguard.language.dates` says, and expressions such as ``start + 30 days`` are those of
`stepguard.language.date_expressions`. Dates are values of steps of type date or text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Final

from stepguard.checks.built import BuiltCheck, unit_claimed
from stepguard.core.arguments import check_flag
from stepguard.core.verdicts import Claim, Verdict, shorten
from stepguard.errors import ConfigError
from stepguard.language.date_expressions import (
    DateExpression,
    NoDate,
    OutOfRange,
    date_in,
    parse_date_expression,
    value_of,
)
from stepguard.language.dates import Calendar, DateOrder, check_order
from stepguard.language.expressions import COMPARISONS
from stepguard.language.values import Value, show_value, to_exact

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

_COMPARISON: Final = re.compile(r"<=|>=|==|!=|<|>")  # two characters first: `<=` is not `<` in front of `=`


WEEKEND: Final = frozenset({"Saturday", "Sunday"})
NONE: Final[frozenset[str]] = frozenset()


class _DateCheck(BuiltCheck):
    """The base of checks that count in days, some of which are no working days."""

    __slots__ = ()

    def _set_days(self, order: DateOrder | None, holidays: Iterable[date | str], weekend: Iterable[str]) -> None:
        check_order(order)
        calendar = Calendar.of(holidays, weekend)
        self._set(order=order, calendar=calendar, holidays=calendar.holidays, weekend=calendar.days_off)


def _unless_date(step: Step) -> str | None:
    return None if step.type.kind in ("date", "text") else f"a date was expected, and the step is of type {step.type}"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class DateIs(_DateCheck):
    """The value is the date that an expression gives, in whatever notation. A pass is ``"proved"``.

    Args:
        expression: a date expression over variables that the step reads.
        order: how ``03/04/2026`` is meant, in the claim and in the values; None refuses it.
        holidays: days that are no working days, as dates or ISO texts.
        weekend: days of the week that are none.

    Raises:
        ConfigError: the expression, the order, a holiday or the weekend is none.
    """

    expression: DateExpression
    order: DateOrder | None
    holidays: frozenset[date]
    weekend: frozenset[str]
    calendar: Calendar

    def __init__(
        self,
        expression: str,
        *,
        order: DateOrder | None = None,
        holidays: Iterable[date | str] = NONE,
        weekend: Iterable[str] = WEEKEND,
    ) -> None:
        self._set_days(order, holidays, weekend)
        self._set(expression=parse_date_expression(expression))

    def __repr__(self) -> str:
        return f"DateIs({str(self.expression)!r})"

    @property
    def reads(self) -> tuple[str, ...]:
        """The variables in the expression."""
        return self.expression.reads

    def _misfit(self, step: Step) -> str | None:
        if step.id in self.reads:
            return f"{self!r} is about {step.id!r} itself: use DateHolds"
        return _unless_date(step)

    def _judge(self, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        try:
            expected = value_of(self.expression, values, self.order, self.calendar)
        except NoDate as error:
            return self._undecided(str(error), retry=False)
        try:
            found = date_in(values[step.id], step.id, self.order)
        except NoDate as error:
            return self._fail(str(error), "malformed")
        if found == expected:
            return self._pass(strength="proved")
        return self._fail(f"{self.expression} is {expected.isoformat()}, not {found.isoformat()}")


@dataclass(frozen=True, slots=True, init=False, repr=False)
class DateHolds(_DateCheck):
    """Relations hold between the step's own date, under the step's id, and other dates.

    Args:
        relations: two date expressions with one of ``< <= > >= == !=`` between them; all of them must hold, and each
            must name the step: ``DateHolds("due > invoice", "due <= invoice + 2 months")``.
        order: how ``03/04/2026`` is meant, in the claim and in the values; None refuses it.
        holidays: days that are no working days, as dates or ISO texts.
        weekend: days of the week that are none.

    Raises:
        ConfigError: a relation, the order, a holiday or the weekend is none.
    """

    relations: tuple[str, ...]
    sides: tuple[tuple[DateExpression, str, DateExpression], ...]
    order: DateOrder | None
    holidays: frozenset[date]
    weekend: frozenset[str]
    calendar: Calendar

    def __init__(
        self,
        *relations: str,
        order: DateOrder | None = None,
        holidays: Iterable[date | str] = NONE,
        weekend: Iterable[str] = WEEKEND,
    ) -> None:
        self._set_days(order, holidays, weekend)
        found: list[tuple[DateExpression, str, DateExpression]] = []
        for each in relations:
            sides = _COMPARISON.split(each) if isinstance(each, str) else []
            if len(sides) != 2:
                raise ConfigError(f"{each!r} is no comparison of two dates such as 'due > start'", option="relations")
            left, right = map(parse_date_expression, sides)
            if left == right:
                raise ConfigError(f"{each!r} says nothing: both sides are the same", option="relations")
            found.append((left, _COMPARISON.findall(each)[0], right))
        if not found:
            raise ConfigError("DateHolds needs a relation: DateHolds('due > start')", option="relations")
        self._set(relations=tuple(" ".join(map(str, sides)) for sides in found), sides=tuple(found))

    def __repr__(self) -> str:
        return f"DateHolds({', '.join(map(repr, self.relations))})"

    @property
    def reads(self) -> tuple[str, ...]:
        """The variables in its relations, the step's own among them."""
        return tuple(dict.fromkeys(name for left, _, right in self.sides for name in (*left.reads, *right.reads)))

    def _misfit(self, step: Step) -> str | None:
        for left, operator, right in self.sides:
            if step.id not in (*left.reads, *right.reads):
                return f"'{left} {operator} {right}' says nothing of {step.id!r}"
        return _unless_date(step)

    def _judge(self, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        try:
            # The claim is read by itself first: what is no date is its fault, even where another date is missing.
            date_in(values[step.id], step.id, self.order)
        except NoDate as error:
            return self._fail(str(error), "malformed")
        proved = False
        undecided: Verdict | None = None
        for left, operator, right in self.sides:
            sides: list[date] = []
            for side in (left, right):
                try:
                    sides.append(value_of(side, values, self.order, self.calendar))
                except NoDate as error:
                    # The claim is a date, so only how far it is taken can be its fault.
                    retry = isinstance(error, OutOfRange) and step.id in side.reads
                    undecided = self._undecided(str(error), retry=retry)
                    break
            if len(sides) < 2:
                # A later relation may still fail.
                continue
            if not COMPARISONS[operator](*sides):
                shown = f"{sides[0].isoformat()} and {sides[1].isoformat()}"
                return self._fail(f"{left} {operator} {right} does not hold: {shown}")
            owns = [step.id in side.reads for side in (left, right)]
            plain = [side == DateExpression(step.id, ()) for side in (left, right)]
            # Only where the step's date stands alone: day == due - 1 month is true of several dates due.
            proved = proved or (operator == "==" and sum(owns) == 1 and any(plain))
        return undecided or self._pass(strength="proved" if proved else "constrained")


@dataclass(frozen=True, slots=True, init=False, repr=False)
class DaysBetween(_DateCheck):
    """The value is the number of days from one date to another. A pass is ``"proved"``.

    Args:
        first: a date expression over variables that the step reads.
        last: another one.
        inclusive: whether both ends count, as for days of leave; otherwise the day of `first` does not.
        working: count working days only: those outside the weekend that are no holidays.
        order: how ``03/04/2026`` is meant in the values; None refuses it.
        holidays: days that are no working days, as dates or ISO texts.
        weekend: days of the week that are none.

    Where `last` is earlier the number is negative; with `inclusive` or `working` there is none.

    Raises:
        ConfigError: an expression, the order, a holiday or the weekend is none.
    """

    first: DateExpression
    last: DateExpression
    inclusive: bool
    working: bool
    order: DateOrder | None
    holidays: frozenset[date]
    weekend: frozenset[str]
    calendar: Calendar

    def __init__(
        self,
        first: str,
        last: str,
        *,
        inclusive: bool = False,
        working: bool = False,
        order: DateOrder | None = None,
        holidays: Iterable[date | str] = NONE,
        weekend: Iterable[str] = WEEKEND,
    ) -> None:
        self._set_days(order, holidays, weekend)
        check_flag(inclusive, "inclusive")
        check_flag(working, "working")
        self._set(
            first=parse_date_expression(first), last=parse_date_expression(last), inclusive=inclusive, working=working
        )

    def __repr__(self) -> str:
        options = "".join(f", {option}=True" for option in ("inclusive", "working") if getattr(self, option))
        return f"DaysBetween({str(self.first)!r}, {str(self.last)!r}{options})"

    @property
    def reads(self) -> tuple[str, ...]:
        """The variables in both expressions."""
        return tuple(dict.fromkeys((*self.first.reads, *self.last.reads)))

    def _misfit(self, step: Step) -> str | None:
        if step.id in self.reads:
            return f"{step.id!r} is a number of days and no date"
        if step.type.numeric and step.type.kind not in ("percent", "money"):
            return None
        return f"a number of days is no {step.type}: let the step be an integer"

    def _judge(self, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        try:
            first, last = (value_of(each, values, self.order, self.calendar) for each in (self.first, self.last))
        except NoDate as error:
            return self._undecided(str(error), retry=False)
        if last < first and (self.inclusive or self.working):
            return self._undecided(f"{last.isoformat()} is before {first.isoformat()}", retry=False)
        if self.working:
            # Without `inclusive` the first day does not count and the last one does: from Friday to Monday is 1.
            found = self.calendar.count(first, last) + self.calendar.works(last)
            if not self.inclusive:
                found -= self.calendar.works(first)
        else:
            found = (last - first).days + self.inclusive
        # 500% reads as 5: equal to the number of days, but no number of days.
        if (written := unit_claimed(claim)) is not None:
            return self._fail(f"a number of days was expected, found {written}", "malformed")
        if to_exact(values[step.id]) == found:
            return self._pass(strength="proved")
        reason = f"there are {found} days from {first.isoformat()} to {last.isoformat()}"
        return self._fail(f"{reason}, not {shorten(show_value(values[step.id]))}")
