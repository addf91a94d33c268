"""Values as JSON data and back, exactly: what is kept of a run, and compared with what it was.

Text, truth values and whole numbers stand as they are; everything else is an object with one key, which names the kind.
"""

from __future__ import annotations

from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from stepguard.language.periods import Period
from stepguard.language.quantities import Amount
from stepguard.language.records import Record
from stepguard.language.values import Value

INEXACT_IN_JSON: Final = 2**53
"""From here on readers of JSON may round a whole number."""


def to_data(value: Value) -> Any:
    """A value as JSON data; equal values of one type give equal data."""
    match value:
        case bool() | str():
            return value
        case int():
            return value if abs(value) < INEXACT_IN_JSON else {"int": hex(value)}
        case Fraction():
            return {"fraction": [hex(value.numerator), hex(value.denominator)]}
        case Decimal():
            return {"decimal": str(value)}
        case tuple():
            return [to_data(each) for each in value]
        case Record():
            return {"record": [[name, to_data(each)] for name, each in value.items()]}
        case date():
            return {"date": value.isoformat()}
        case time():
            return {"time": value.isoformat()}
        case timedelta():
            return {"span": [value.days, value.seconds, value.microseconds]}
        case Period():
            return {"period": [value.months, value.days, value.working_days]}
        case Amount():
            unit = None if value.unit is None else [list(factor) for factor in value.unit]
            return {"amount": [to_data(value.value), unit]}
    raise TypeError(f"a {type(value).__name__} is no value")


def from_data(data: Any) -> Value:
    """The value that `to_data` gave as `data`. Raises ValueError: it is none of those."""
    if isinstance(data, bool | str | int):
        return data
    if isinstance(data, list):
        return tuple(from_data(each) for each in data)
    try:
        ((kind, held),) = data.items()
        return _scalar(kind, held)
    except (AttributeError, TypeError, ArithmeticError, LookupError) as error:
        raise ValueError(f"no value: {error}") from None


def _scalar(kind: str, held: Any) -> Value:
    match kind:
        case "int":
            return int(held, 16)
        case "fraction":
            return Fraction(int(held[0], 16), int(held[1], 16))
        case "decimal":
            return Decimal(held)
        case "record":
            return Record({name: from_data(each) for name, each in held})
        case "date":
            return date.fromisoformat(held)
        case "time":
            return time.fromisoformat(held)
        case "span":
            return timedelta(*held)
        case "period":
            return Period(*held)
        case "amount":
            unit = None if held[1] is None else tuple((name, exponent) for name, exponent in held[1])
            number = from_data(held[0])
            if isinstance(number, int | Fraction) and not isinstance(number, bool):
                return Amount(number, unit)
    raise ValueError(f"{kind!r} is no kind of value")
