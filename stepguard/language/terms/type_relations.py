"""How types relate: which one two values share, and which values may be set where a type is declared."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from stepguard.errors import ValueRefused
from stepguard.language.periods import Period
from stepguard.language.quantities import Amount, Unit, convert
from stepguard.language.records import RecordType
from stepguard.language.value_types import NUMBER, TEXT, ValueType
from stepguard.language.values import Value

BOOLEAN: Final = ValueType(kind="boolean")
DATE: Final = ValueType(kind="date")
TIME: Final = ValueType(kind="time")
DURATION: Final = ValueType(kind="duration")
PERIOD: Final = ValueType(kind="period")
TEXTS: Final = frozenset({"text", "one_of"})
"""The kinds whose values are texts."""


def joined(left: ValueType, right: ValueType) -> ValueType | None:
    """The type of a value that has the one type or the other, None where there is none."""
    if left == right:
        return left
    if left.numeric and right.numeric:
        return joined_numbers(left, right)
    if left.kind in TEXTS and right.kind in TEXTS:
        return TEXT
    if {left.kind, right.kind} == {"duration", "period"}:
        return PERIOD
    if left.unit is not None and right.unit is not None:
        return quantity_in(left.unit) if convertible(left.unit, right.unit) else None
    if left.items is not None and right.items is not None:
        items = joined(left.items, right.items)
        return None if items is None else ValueType(kind="list", items=items)
    if left.record is not None and right.record is not None:
        return _joined_records(left.record, right.record)
    return None


def fits(source: ValueType, target: ValueType) -> bool:
    """Whether a value of one type can be one of another: as it stands, rounded, or in another unit."""
    if source.numeric and target.numeric:
        if target.kind == "percent" and (source.currency is not None or source.kind == "integer"):
            return False  # 15 is not 15%
        if source.kind == "percent" and target.currency is not None:
            return False
        return None in (source.currency, target.currency) or source.currency == target.currency
    if source.options and target.options:
        return not set(source.options).isdisjoint(target.options)
    if source.kind in TEXTS and target.kind in TEXTS:
        return True
    if source.unit is not None and target.unit is not None:
        return convertible(source.unit, target.unit)
    if source.items is not None and target.items is not None:
        return fits(source.items, target.items)
    if source.record is not None and target.record is not None:
        given = dict(source.record.fields)
        wanted = dict(target.record.fields)
        return given.keys() == wanted.keys() and all(fits(given[key], wanted[key]) for key in wanted)
    return source.kind == target.kind or (source.kind, target.kind) == ("duration", "period")


def in_currencies(declared: ValueType, given: ValueType) -> ValueType:
    """A declared type, in the currencies of the value that is set there, where it names none itself."""
    if declared.items is not None and given.items is not None:
        return ValueType(kind="list", items=in_currencies(declared.items, given.items))
    if declared.record is not None and given.record is not None:
        theirs = dict(given.record.fields)
        fields = tuple((key, in_currencies(kind, theirs[key])) for key, kind in declared.record.fields)
        return ValueType(kind="record", record=replace(declared.record, fields=fields))
    return given if declared.currency is None and given.currency is not None else declared


def joined_numbers(left: ValueType, right: ValueType) -> ValueType | None:
    """What adding two numbers gives: money where one is, and none where they are in two currencies."""
    currencies = {left.currency, right.currency} - {None}
    if len(currencies) > 1:
        return None
    if not currencies:
        return NUMBER
    money = [each for each in (left, right) if each.currency is not None]
    return max(money, key=lambda each: each.places or 0)


def _joined_records(left: RecordType, right: RecordType) -> ValueType | None:
    if [key for key, _ in left.fields] != [key for key, _ in right.fields]:
        return None
    fields: list[tuple[str, ValueType]] = []
    for (key, mine), (_, theirs) in zip(left.fields, right.fields, strict=True):
        both = joined(mine, theirs)
        if both is None:
            return None
        fields.append((key, both))
    return ValueType(kind="record", record=RecordType(left.name, tuple(fields)))


def quantity_in(unit: Unit) -> ValueType:
    """Amounts in a unit; numbers where it is none."""
    return ValueType(kind="quantity", unit=unit) if unit else NUMBER


def convertible(unit: Unit, other: Unit) -> bool:
    """Whether two units measure the same."""
    try:
        convert(1, unit, other)
    except ValueRefused:
        return False
    return True


def literal_type(value: Value) -> ValueType:
    """The type of a value that stands in an expression."""
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, str):
        return TEXT
    if isinstance(value, Amount):
        return quantity_in(value.unit or ())
    if isinstance(value, Period):
        return PERIOD
    for kind in (DATE, TIME, DURATION):
        if kind.holds(value):
            return kind
    return NUMBER
