"""Exact arithmetic and comparison of dates, times, spans and amounts with units.

===========================  ==================================================================================
date + span                  a date; the span is a duration of whole days or a period, and may stand first
date - date, time - time     a duration
time + duration              a time of the same day
duration, amount             are added to their like, multiplied and divided by numbers; the quotient of two is a number
amount * amount              an amount in the product of the units; a duration counts as one in seconds
period + span                a period; ``period * 3``
===========================  ==================================================================================

Amounts are converted where they have different units of one dimension. Temperatures in degrees are compared and not
computed with, since 20 °C is not twice 10 °C.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from typing import Final, cast

from stepguard.errors import EvaluationError, InexactError, TooLargeError, UndefinedError, ValueRefused
from stepguard.language.digits import Exact, exact
from stepguard.language.expressions import COMPARISONS
from stepguard.language.periods import Period, add_period, duration_of, seconds_in
from stepguard.language.quantities import MAX_EXPONENT, MAX_FACTORS, Amount, Unit, convert, write_unit
from stepguard.language.records import Record
from stepguard.language.values import Value, to_exact

SECOND: Final[Unit] = (("second", 1),)
"""The unit in which a duration counts among amounts."""

NumberOperation = Callable[[str, Exact, Exact], Exact]
"""One operation on two numbers, with the limits on what it may cost."""


class MeasureArithmetic:
    """Operations where at least one value is not a number. Working days are Monday to Friday."""

    def __init__(self, number: NumberOperation) -> None:
        self._number = number

    def apply(self, operator: str, left: Value, right: Value) -> Value:
        """``left operator right``.

        Raises EvaluationError: the two cannot be combined so, or the result is outside what can be held.
        """
        found: Value | None
        if operator in "+-":
            found = self._sum(operator, left, right)
        elif isinstance(left, timedelta) or isinstance(right, timedelta):
            found = self._of_duration(operator, left, right)
        elif isinstance(left, Amount) or isinstance(right, Amount):
            found = self._of_amount(operator, left, right)
        else:
            found = self._of_period(operator, left, right)
        if found is None:
            raise InexactError(f"{named_kind(left)} {operator} {named_kind(right)} has no meaning")
        return found

    def power(self, base: Amount, exponent: Exact) -> Amount | Exact:
        """An amount to the power of a small whole number."""
        _check_offset(base)
        if type(exponent) is not int or abs(exponent) > MAX_EXPONENT:
            raise InexactError("an amount has whole powers only")
        if base.value == 0 and exponent <= 0:
            raise UndefinedError(f"zero to the power of {exponent}")
        # Step by step: each product is checked against the limits on size.
        number: Exact = 1
        for _ in range(abs(exponent)):
            number = self._number("*", number, base.value)
        number = self._number("/", 1, number) if exponent < 0 else number
        return _amount(number, unit_power(base.unit or (), exponent))

    def _sum(self, operator: str, left: Value, right: Value) -> Value | None:
        sign = 1 if operator == "+" else -1
        left, right = _with_nothing(left, right), _with_nothing(right, left)
        if isinstance(left, date):
            if isinstance(right, timedelta | Period):
                return add_period(left, right, sign)
            return left - right if isinstance(right, date) and sign < 0 else None
        if isinstance(left, time):
            if isinstance(right, time) and sign < 0:
                return duration_of(_of_day(left) - _of_day(right))
            return _later(left, sign * seconds_in(right)) if isinstance(right, timedelta) else None
        if isinstance(left, timedelta | Period) and isinstance(right, date) and sign > 0:
            return add_period(right, left)
        if isinstance(left, timedelta):
            if isinstance(right, timedelta):
                return duration_of(seconds_in(left) + sign * seconds_in(right))
            if isinstance(right, time) and sign > 0:
                return _later(right, seconds_in(left))
            return Period().plus(left).plus(right, sign) if isinstance(right, Period) else None
        if isinstance(left, Period):
            return left.plus(right, sign) if isinstance(right, Period | timedelta) else None
        if isinstance(left, Amount) and isinstance(right, Amount):
            _check_offset(left)
            _check_offset(right)
            return Amount(self._number(operator, left.value, _in_unit_of(left, right)), left.unit)
        return None

    def _of_duration(self, operator: str, left: Value, right: Value) -> Value | None:
        if isinstance(left, Amount) or isinstance(right, Amount):
            return self._of_amount(operator, _as_amount(left), _as_amount(right))
        if isinstance(left, timedelta) and isinstance(right, timedelta):
            if operator == "*":
                return None
            found = self._number(operator, exact(seconds_in(left)), exact(seconds_in(right)))
            return duration_of(found) if operator == "%" else found
        span, number = (left, right) if isinstance(left, timedelta) else (right, left)
        if not isinstance(span, timedelta) or not _is_number(number):
            return None
        if operator == "*" or (operator == "/" and span is left):
            return duration_of(self._number(operator, exact(seconds_in(span)), cast(Exact, number)))
        return None

    def _of_amount(self, operator: str, left: Value, right: Value) -> Value | None:
        one, other = (Amount(cast(Exact, each), ()) if _is_number(each) else each for each in (left, right))
        if not isinstance(one, Amount) or not isinstance(other, Amount):
            return None
        _check_offset(one)
        _check_offset(other)
        if operator == "*":
            return _amount(
                self._number("*", one.value, other.value), multiplied_units(one.unit or (), other.unit or ())
            )
        if _same_dimension(one, other):
            if operator == "/" or (one.unit and other.unit):
                found = self._number(operator, one.value, _in_unit_of(one, other))
                return _amount(found, one.unit or ()) if operator == "%" else found
            return None
        if operator != "/":
            return None
        unit = multiplied_units(one.unit or (), unit_power(other.unit or (), -1))
        return _amount(self._number("/", one.value, other.value), unit)

    def _of_period(self, operator: str, left: Value, right: Value) -> Value | None:
        span, count = (left, right) if isinstance(left, Period) else (right, left)
        if operator != "*" or not isinstance(span, Period):
            return None
        if type(count) is not int:
            raise InexactError("a period is taken so many whole times")
        return span.times(count)


def negated(value: Value) -> Value:
    """The value with the other sign. Raises InexactError: it has none."""
    if _is_number(value):
        return -cast(Exact, value)
    if isinstance(value, timedelta):
        return duration_of(-seconds_in(value))
    if isinstance(value, Period):
        return value.times(-1)
    if isinstance(value, Amount):
        _check_offset(value)
        return Amount(-value.value, value.unit)
    raise InexactError(f"{named_kind(value)} has no negative")


def compare(operator: str, left: Value, right: Value) -> bool:
    """``left operator right`` of values that can be compared.

    Raises InexactError: they cannot, or have no order.
    """
    left, right = _with_nothing(left, right), _with_nothing(right, left)
    if _is_number(left) and _is_number(right):
        return COMPARISONS[operator](left, right)
    if isinstance(left, Amount) and isinstance(right, Amount):
        return COMPARISONS[operator](left.value, _in_unit_of(left, right))
    if type(left) is type(right) and isinstance(left, date | time | timedelta):
        return COMPARISONS[operator](left, right)
    # Periods and texts are equal or not: which of two periods is longer depends on the date.
    alike = type(left) is type(right) and not isinstance(left, datetime)
    if not alike or operator not in ("==", "!="):
        other = "another one" if alike else named_kind(right)
        raise InexactError(f"{named_kind(left)} and {other} cannot be compared with {operator}")
    return same_value(left, right) == (operator == "==")


def multiplied_units(unit: Unit, other: Unit) -> Unit:
    """The product of two units. Raises TooLargeError: it has more or higher factors than a unit can have."""
    powers = dict(unit)
    for name, exponent in other:
        powers[name] = powers.get(name, 0) + exponent
    found = tuple(sorted((name, exponent) for name, exponent in powers.items() if exponent))
    if len(found) > MAX_FACTORS or any(abs(exponent) > MAX_EXPONENT for _, exponent in found):
        raise TooLargeError("a unit of too many factors, or of too high a power")
    return found


def unit_power(unit: Unit, exponent: int) -> Unit:
    """A unit to a whole power. Raises TooLargeError: an exponent is higher than a unit may have."""
    return multiplied_units(tuple((name, power * exponent) for name, power in unit), ())


def has_offset(unit: Unit) -> bool:
    """Whether zero in a unit is not nothing, as in degrees Celsius."""
    return any(name in ("degree_Celsius", "degree_Fahrenheit") for name, _ in unit)


def named_kind(value: Value) -> str:
    """Name the kind of a value for messages."""
    if isinstance(value, Amount):
        return f"an amount in {write_unit(value.unit or ())}"
    names: dict[type, str] = {
        bool: "a truth value", str: "a text", time: "a time", timedelta: "a duration", Period: "a period",
        tuple: "a list", Record: "a record",
    }  # fmt: skip
    return names.get(type(value), "a date" if isinstance(value, date) else "a number")


def same_value(left: Value, right: Value) -> bool:
    """Whether two values are equal: numbers exactly, amounts across units, lists and records by their parts."""
    left, right = cast(Value, to_exact(left)), cast(Value, to_exact(right))
    if _is_number(left) and _is_number(right):
        return left == right
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same_value, left, right))
    if isinstance(left, Record) and isinstance(right, Record):
        return left.keys() == right.keys() and all(same_value(left[key], right[key]) for key in left)
    if isinstance(left, Amount) and isinstance(right, Amount):
        try:
            return left.value == _in_unit_of(left, right)
        except EvaluationError:
            return False
    return type(left) is type(right) and left == right


def _is_number(value: object) -> bool:
    return type(value) is int or type(value) is Fraction


def _with_nothing(value: Value, other: Value) -> Value:
    """Give the number 0, the sum of an empty list, the kind of the value it is combined with."""
    if type(value) is int and value == 0:
        if isinstance(other, timedelta):
            return timedelta()
        # 0 °C is a temperature like any other, and not nothing.
        if isinstance(other, Amount) and not has_offset(other.unit or ()):
            return Amount(0, other.unit)
    return value


def _check_offset(amount: Amount) -> None:
    if has_offset(amount.unit or ()):
        raise InexactError(f"temperatures in {write_unit(amount.unit or ())} are not computed with: give them in K")


def _in_unit_of(amount: Amount, other: Amount) -> Exact:
    """The number of `other` in the unit of `amount`."""
    try:
        return other.value if amount.unit == other.unit else convert(other.value, other.unit or (), amount.unit or ())
    except ValueRefused as error:
        raise InexactError(f"{named_kind(amount)} and {named_kind(other)}: {error.reason}") from None


def _same_dimension(one: Amount, other: Amount) -> bool:
    try:
        _in_unit_of(one, other)
    except InexactError:
        return False
    return True


def _amount(number: Exact, unit: Unit) -> Amount | Exact:
    return Amount(number, unit) if unit else number


def _as_amount(value: Value) -> Value:
    return Amount(exact(seconds_in(value)), SECOND) if isinstance(value, timedelta) else value


def _of_day(value: time) -> Exact:
    return value.hour * 3600 + value.minute * 60 + value.second


def _later(start: time, seconds: Fraction) -> time:
    found = _of_day(start) + seconds
    if found.denominator != 1:
        raise InexactError("a time of day has no parts of a second")
    if not 0 <= found < 86_400:
        raise UndefinedError(f"{start.isoformat('minutes')} and that much is not on the same day")
    whole = int(found)
    return time(whole // 3600, whole // 60 % 60, whole % 60)
