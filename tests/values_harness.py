"""Random types with values of theirs, for property tests."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction

from hypothesis import strategies as st

from stepguard.language.periods import Period
from stepguard.language.quantities import Amount, read_unit
from stepguard.language.records import Record, RecordType
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value

UNITS = ("kg", "g", "ml", "mol/l", "km/h", "J/(mol*K)", "m^-1", "°C")

_numbers = st.fractions(max_denominator=60, min_value=-(10**6), max_value=10**6)
_texts = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=12)  # what JSON loses is refused
_periods = st.builds(
    lambda sign, *parts: Period(*(sign * part for part in parts)), st.sampled_from([1, -1]), *[st.integers(0, 40)] * 3
)
_QUANTITIES = [ValueType(kind="quantity", unit=read_unit(unit)) for unit in UNITS]


def _plain(number: Fraction) -> Value:
    return number.numerator if number.denominator == 1 else number


def _amount(kind: ValueType, number: Fraction) -> Value:
    return kind.convert(Amount(number.numerator if number.denominator == 1 else number, kind.unit))


def _scalars() -> st.SearchStrategy[tuple[ValueType, Value]]:
    def of(text: str, values: st.SearchStrategy[Value]) -> st.SearchStrategy[tuple[ValueType, Value]]:
        kind = ValueType.parse(text)
        return values.map(lambda value: (kind, kind.convert(value)))

    quantities = st.tuples(st.sampled_from(_QUANTITIES), _numbers).map(lambda pair: (pair[0], _amount(*pair)))
    return st.one_of(
        of("number", _numbers.map(_plain)),
        of("integer", st.integers(-(10**20), 10**20)),
        of("decimal(2)", _numbers.map(_plain)),
        of("percent(1)", _numbers.map(_plain)),
        of("money(EUR)", _numbers.map(_plain)),
        of('one_of(low, "very high")', st.sampled_from(["low", "very high"])),
        of("boolean", st.booleans()),
        of("text", _texts),
        of("date", st.dates()),
        of("time", st.times().map(lambda value: value.replace(microsecond=0))),
        of("duration", st.timedeltas(timedelta(days=-4000), timedelta(days=4000))),
        of("period", _periods),
        quantities,
    )


def _of_one_type(pair: tuple[ValueType, Value]) -> st.SearchStrategy[tuple[ValueType, Value]]:
    kind, value = pair
    return st.integers(0, 4).map(lambda count: (ValueType(kind="list", items=kind), (value,) * count))


def _in_record(pairs: list[tuple[ValueType, Value]]) -> tuple[ValueType, Value]:
    names = [f"f{index}" for index in range(len(pairs))]
    record = RecordType("Item", tuple(zip(names, (kind for kind, _ in pairs), strict=True)))
    return ValueType(kind="record", record=record), Record(dict(zip(names, (value for _, value in pairs), strict=True)))


typed_values: st.SearchStrategy[tuple[ValueType, Value]] = st.recursive(
    _scalars(),
    lambda inner: st.one_of(inner.flatmap(_of_one_type), st.lists(inner, min_size=1, max_size=4).map(_in_record)),
    max_leaves=8,
).filter(lambda pair: pair[0].depth <= 6)
"""A type, and a value of it."""

# The library of units reads its definitions at the first conversion, which would count as slow generation.
_QUANTITIES[0].read("1 g")
