"""Plausible wrong values: a slip of a digit, a sign or a carry, the day after, an item that is left out."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction

from stepguard.language.periods import Period
from stepguard.language.quantities import Amount
from stepguard.language.records import Record
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value


def wrong_value(kind: ValueType, value: Value, chance: random.Random) -> Value:
    """Another value of a type; the value itself only where there is no other, as of an empty list."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        others = [option for option in kind.options if option != value]
        return chance.choice(others) if others else value + "?"
    if isinstance(value, int | Fraction | Decimal):
        if value and chance.random() < 0.2:
            return -value
        return value + chance.choice([-100, -10, -2, -1, 1, 2, 10, 100])
    if isinstance(value, date):
        return value + timedelta(days=1 if value < date.max else -1)
    if isinstance(value, timedelta):
        return value + timedelta(days=chance.choice([-1, 1]))
    if isinstance(value, Period):
        return replace(value, days=value.days + (1 if min(value.months, value.working_days) >= 0 else -1))
    if isinstance(value, Amount):
        return replace(value, value=value.value + chance.choice([-10, -1, 1, 10]))
    if isinstance(value, tuple | Record):
        return _wrong_part(kind, value, chance)
    return value.replace(minute=(value.minute + 1) % 60)


def _wrong_part(kind: ValueType, value: tuple[Value, ...] | Record, chance: random.Random) -> Value:
    if isinstance(value, Record):
        assert kind.record is not None
        key, inner = chance.choice(kind.record.fields)
        return Record({**value, key: wrong_value(inner, value[key], chance)})
    if not value:
        return value
    assert kind.items is not None
    at = chance.randrange(len(value))
    changed = () if chance.random() < 0.3 else (wrong_value(kind.items, value[at], chance),)
    return (*value[:at], *changed, *value[at + 1 :])
