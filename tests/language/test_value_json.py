"""Values as JSON data and back."""

from __future__ import annotations

import json
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import all_rows

from stepguard.language.periods import Period
from stepguard.language.quantities import Amount
from stepguard.language.records import Record
from stepguard.language.value_json import from_data, to_data
from stepguard.language.values import Value

_SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.booleans(),
    st.integers(),
    st.text(),
    st.fractions(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.dates(),
    st.times(),
    st.timedeltas(),
    st.builds(Period, st.integers(-99, 99), st.integers(-99, 99), st.integers(-99, 99)),
    st.builds(Amount, st.fractions(), st.sampled_from([None, (("kilogram", 1), ("second", -2))])),
)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner).map(tuple), st.dictionaries(st.sampled_from(["a", "b", "c"]), inner).map(Record)
    ),
    max_leaves=8,
)


@given(_VALUES)
def test_values_come_back_as_they_were(value: Value) -> None:
    """Every value survives JSON exactly: its type, its digits and its places."""
    again = from_data(json.loads(json.dumps(to_data(value))))
    assert (again, type(again), to_data(again)) == (value, type(value), to_data(value))


@all_rows(
    "data",
    [
        *(None, 1.5, {}, {"x": 1}, {"int": "zz"}, {"int": 5}, {"decimal": "x"}, {"fraction": ["0x1", "0x0"]}, [None]),
        *({"date": "2024-13-01"}, {"time": 5}, {"amount": [True, None]}, {"amount": ["x", None]}, {"span": ["a"]}),
        *({"period": [10**9, 0, 0]}, {"record": [["a", None]]}, {"record": 5}, {"int": "0x1", "date": "2024-01-01"}),
    ],
)
def test_what_is_no_value_is_refused(data: Any) -> None:
    """Data that no value gave are an error, whatever they are."""
    with pytest.raises(ValueError, match=r"\w"):
        from_data(data)


def test_equal_numbers_of_different_kinds_are_told_apart() -> None:
    """Places and kinds count: 2.50 is not 2.5, and a day is not its text."""
    values: list[Value] = [1, True, "1", Decimal("1.0"), Decimal("1.00"), (1,), date(2024, 1, 1), "2024-01-01"]
    values += [time(1), timedelta(hours=1), Fraction(1, 2), Decimal("0.5")]
    assert len({json.dumps(to_data(value)) for value in values}) == len(values)
