"""Reading, accepting and converting values of the types date, time, duration, period and quantity."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

from stepguard.errors import InexactError, ValueRefused
from stepguard.language.dates import DateOrder, read_date
from stepguard.language.digits import Exact
from stepguard.language.periods import Period, read_period, read_time, read_timedelta
from stepguard.language.quantities import Amount, convert, read_amount, write_unit
from stepguard.language.values import Value, round_exact, show_value, to_decimal

if TYPE_CHECKING:
    from stepguard.language.value_types import ValueType

MEASURES: Final[dict[str, type]] = {
    "date": date,
    "time": time,
    "duration": timedelta,
    "period": Period,
    "quantity": Amount,
}
"""The kinds of this module, each with the class of its values."""


def read_measure(kind: ValueType, text: str, *, order: DateOrder | None = None) -> Value:
    """A value as it is written; `order` says how dates are meant, see `read_date`.

    Raises ValueRefused: it is none of this type, or could be read in more than one way.
    """
    match kind.kind:
        case "date":
            return read_date(text, order=order)
        case "time":
            return read_time(text)
        case "duration":
            return read_timedelta(text)
        case "period":
            return read_period(text)
    assert kind.unit is not None
    # Units of the user's own are kept in quotes among pint's names.
    declared = [name.strip("'") for name, _ in kind.unit if name.startswith("'")]
    amount = read_amount(text, declared=declared)
    if amount.unit is None:
        raise ValueRefused(f"an amount with its unit was expected, in {write_unit(kind.unit)}", text=text)
    return _exactly(kind, amount, text)


def accept_measure(kind: ValueType, value: object) -> Value:
    """Accept the caller's value, an object or text. Raises ValueRefused: it is none of this type."""
    if isinstance(value, str):
        return read_measure(kind, value)
    # Before the class of dates, since a datetime is a date to isinstance; its time would be lost.
    if isinstance(value, datetime):
        remedy = "give its .date()" if kind.kind == "date" else "give the part that is meant"
        raise ValueRefused(f"a value of type {kind} was expected, found a date and a time: {remedy}", text=str(value))
    if isinstance(value, time) and (value.tzinfo is not None or value.microsecond):
        raise ValueRefused("a time has no time zone and no fraction of a second here", text=str(value))
    if kind.kind == "period" and isinstance(value, timedelta):
        try:
            return Period().plus(value)
        except InexactError as error:
            raise ValueRefused(str(error), text=show_value(value)) from None
    if isinstance(value, Amount) and kind.kind == "quantity":
        return _exactly(kind, value, str(value))
    if not isinstance(value, MEASURES[kind.kind]):
        unit = ": a number needs its unit, as in '5 kg'" if kind.kind == "quantity" else ""
        found = type(value).__name__
        raise ValueRefused(f"a value of type {kind} was expected, found {found}{unit}", text=f"a {found}")
    return value  # type: ignore[return-value]  # it is one of these classes


def convert_measure(kind: ValueType, value: Value) -> Value:
    """Convert the value of an expression to this type: an amount to its unit, rounded where places are declared.

    Nothing at all (the number 0, which the sum of an empty list is) is a duration and an amount, too.

    Raises InexactError: it is of another kind.
    """
    if type(value) is int and value == 0:
        if kind.kind == "duration":
            return timedelta()
        if kind.kind == "quantity":
            return Amount(0, kind.unit)
    if kind.kind == "period" and isinstance(value, timedelta):
        return Period().plus(value)
    if kind.kind == "quantity" and isinstance(value, Amount):
        number = _in_unit(kind, value)
        if kind.places is not None:
            assert kind.rounding is not None
            number = round_exact(number, kind.places, kind.rounding)
        return Amount(number, kind.unit)
    if holds_measure(kind, value):
        return value
    raise InexactError(f"a value of type {kind} was expected, found {show_value(value)}")


def holds_measure(kind: ValueType, value: object) -> bool:
    """Whether a Python object is a value of this type."""
    if isinstance(value, Amount):
        return kind.kind == "quantity" and value.unit == kind.unit
    # By `type`, so that a datetime is no date.
    return type(value) is MEASURES[kind.kind]


def write_measure(kind: ValueType, value: Value) -> str:
    """A value as text; `read_measure` gives it back."""
    if isinstance(value, Amount) and kind.places is not None and value.unit is not None:
        return f"{show_value(to_decimal(value.value, kind.places))} {write_unit(value.unit)}"
    return show_value(value)


def _in_unit(kind: ValueType, amount: Amount) -> Exact:
    assert kind.unit is not None
    if amount.unit is None:
        raise InexactError(f"{amount} has no unit, {write_unit(kind.unit)} was expected")
    try:
        return convert(amount.value, amount.unit, kind.unit)
    except ValueRefused as error:
        raise InexactError(f"{show_value(amount)} is no amount in {write_unit(kind.unit)}: {error.reason}") from None


def _exactly(kind: ValueType, amount: Amount, text: str) -> Amount:
    try:
        number = _in_unit(kind, amount)
        if kind.places is not None:
            to_decimal(number, kind.places)
    except InexactError as error:
        raise ValueRefused(str(error), text=text) from None
    return Amount(number, kind.unit)
