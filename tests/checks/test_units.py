"""Quantities: reading them, converting them exactly, and the checks on them."""

from __future__ import annotations

import time
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from constraint_harness import guarded, judge, outcome
from hypothesis import given
from hypothesis import strategies as st
from tables import all_rows

from stepguard.checks.built import BuiltCheck
from stepguard.errors import ValueRefused

pytest.importorskip("pint")

from stepguard.checks.units import Measured, Quantity
from stepguard.language.quantities import convert, read_amount, read_unit

ERROR = "Error: tool not available"


def text(check: BuiltCheck, claimed: str, **values: Any) -> str:
    return outcome(check, claimed, type="text", **values)


@all_rows(
    "claimed, plain, converting, assuming",
    [
        *(("5 km", "pass", "pass", "pass"), ("5km", "pass", "pass", "pass")),
        *(("5.0 kilometres", "pass", "pass", "pass"), ("5000 m", "fail", "pass", "fail")),
        *(("5,000 m", "fail", "pass", "fail"), ("500000 cm", "fail", "pass", "fail")),
        *(("5001 m", "fail", "fail", "fail"), ("5", "fail", "fail", "pass"), ("5000", "fail", "fail", "fail")),
        *(("5 kg", "fail", "fail", "fail"), ("5 km/h", "fail", "fail", "fail"), ("5 km^2", "fail", "fail", "fail")),
        *(("3.1 miles", "fail", "fail", "fail"), ("5 Mm", "fail", "fail", "fail"), (ERROR, "fail", "fail", "fail")),
    ],
)
def test_conversion_and_bare_numbers_are_policies(claimed: str, plain: str, converting: str, assuming: str) -> None:
    """Another unit passes only where conversion is on, no unit only where it is assumed, another dimension never."""
    checks = Quantity("5 km"), Quantity("5 km", convert=True), Quantity("5 km", bare="assume")
    assert [text(check, claimed) for check in checks] == [plain, converting, assuming]


@all_rows("written, value, unit", [
    ("1,234.5 kg*m/s^2", Fraction(2469, 2), "kg m s^-2"), ("1.2e3 m²", 1200, "m^2"), ("5e3 m", 5000, "m"),
    ("3/4 mile", Fraction(3, 4), "mile"), ("1 3/4 in", Fraction(7, 4), "inch"), ("½ mile", Fraction(1, 2), "mile"),
    ("10945/18 m/s", Fraction(10945, 18), "m/s"), ("1/2 mmHg", Fraction(1, 2), "mmHg"),
    ("1 1/2 mmHg", Fraction(3, 2), "mmHg"),
    ("5 x 10^3 m", 5000, "m"), ("5 eV", 5, "eV"), ("20 °C", 20, "degC"), ("−5 ℃", -5, "degC"), ("5 N·m", 5, "N m"),
    ("5 J/(kg K)", 5, "J kg^-1 K^-1"), ("5 m/s/s", 5, "m/s^2"), ("5 m3", 5, "m^3"), ("5 s⁻¹", 5, "s^-1"),
    ("5 km per hour", 5, "km/h"), ("5 square metres", 5, "m^2"), ("5 Kilometers", 5, "km"), ("5 µm", 5, "μm"),
    ("5 ft-lb", 5, "foot*lbf"), ("5 ft-kg", 5, "foot*kg"), ("`5 km`", 5, "km"), ('"5 km"', 5, "km"), ("5 km.", 5, "km"),
    ("5\u00a0km", 5, "km"), ("5 mins", 5, "minute"), ("25 degrees Celsius", 25, "degC"), ("25 ° C", 25, "degC"),
    ("25 deg. F", 25, "degF"), ("25ºC", 25, "degC"), ("300 degrees kelvin", 300, "K"), ("5 J/°C", 5, "J/degC"),
    ("5 degrees per s", 5, "degree/s"), ("5 kNm", 5, "kN m"), ("18 kmph", 18, "kph"), ("5 Ohm", 5, "ohm"),
])  # fmt: skip
def test_notations_of_a_quantity(written: str, value: Fraction, unit: str) -> None:
    """A number is read by our numerals, its unit by a small grammar, in the usual notations."""
    amount = read_amount(written)
    assert (amount.value, amount.unit) == (value, read_unit(unit))


HOSTILE = [
    "2**9**9 m", "5 m**9**9", "5 meter**999999", "5 m^99", "5 m10", "9**9**9", "5 __class__", "5 m.__class__",
    "5 lambda",
    "5 " + "m " * 90, "5 " + "m*" * 90 + "m", "9" * 300 + " m", "1e999 m", "1e100 m", "5 " + "k" * 150,
    "5 m" + "(" * 100,
    "5 (m", "5 m)", "5 m/", "5 m·", "/m", "5 m//s", "5 m\x00", "5 m\nkg", "\ud800 m", "5 \ud800", "５ km", "٣ km",
]  # fmt: skip
UNCLEAR = [
    "5 km 200 m", "5 h 30 min", "5 km (3 mi)", "about 5 km", "5'", '5"', "$5 km", "5 USD", "5%", "5 % m", "five km",
    "km",
    "5 J/kg K", "5 J/kg*K", "5 J/(kg/K)", "5 pi", "5 k", "5 c", "5 e", "5 hundred m", "5 KM", "5 MBAR", "5-6 km",
    "120/80 mmHg", "-120/80 mmHg", "5 km, 6 km", "5 or 6 km", "", ERROR, "1.2.3 km", "1,23 km", "NaN km", "inf km",
]  # fmt: skip


@all_rows("written", HOSTILE + UNCLEAR)
def test_what_is_no_quantity_never_passes(written: str) -> None:
    """Text that is hostile, or could be read in more than one way, fails and costs no time."""
    began = time.monotonic()
    for check in (Quantity("5 km", convert=True, bare="assume"), Measured("km", convert=True, bare="assume")):
        found = judge(check, written, type="text")
        assert found.outcome == "fail"
    assert time.monotonic() - began < 10


@all_rows("written", ["120/80 mmHg", "120 / 80 mmHg", "-120/80mmHg", "120/80", "120 / 80", "3/2"])
def test_two_pressures_are_no_amount(written: str) -> None:
    """A pair in mmHg is not read as its quotient, with or without its unit, as text or as a number."""
    check = Measured("mmHg", bare="assume")
    types = ["text", "number"] if written[-1].isdigit() else ["text"]
    assert [judge(check, written, type=each).kind for each in types] == ["malformed"] * len(types)
    assert [text(check, right) for right in ("1.5", "1 1/2", "1/2", "1.5 mmHg", "-1 1/2 mmHg")] == ["pass"] * 5


@given(st.text(alphabet="59.,/*^() -kmsKJ°²e%", max_size=30))
def test_reading_never_raises_anything_else(written: str) -> None:
    """Whatever stands there is an amount or refused."""
    try:
        amount = read_amount(written)
    except ValueRefused:
        return
    assert isinstance(amount.value, int | Fraction)


EXACT = [
    ("km", "m", Fraction(1000)), ("inch", "cm", Fraction(127, 50)), ("mile", "m", Fraction(201168, 125)),
    ("pound", "kg", Fraction(45359237, 10**8)), ("km/h", "m/s", Fraction(5, 18)), ("kWh", "J", Fraction(3_600_000)),
    ("liter", "m^3", Fraction(1, 1000)), ("hour", "minute", Fraction(60)), ("g/cm^3", "kg/m^3", Fraction(1000)),
    ("byte", "bit", Fraction(8)), ("hectare", "m^2", Fraction(10_000)), ("bar", "Pa", Fraction(100_000)),
    ("N", "kg*m/s^2", Fraction(1)), ("km^2", "m^2", Fraction(10**6)), ("week", "second", Fraction(604_800)),
]  # fmt: skip


@given(st.fractions(-1000, 1000, max_denominator=1000), st.sampled_from(EXACT))
def test_conversion_is_exact(value: Fraction, case: tuple[str, str, Fraction]) -> None:
    """A conversion is the factor of the unit's definition, to the last digit, and comes back unchanged."""
    unit, other, factor = read_unit(case[0]), read_unit(case[1]), case[2]
    assert convert(value, unit, other) == value * factor
    assert convert(convert(value, unit, other), other, unit) == value


@given(st.fractions(-300, 1000, max_denominator=100))
def test_temperatures_are_exact(celsius: Fraction) -> None:
    """Temperatures are converted with their offset, exactly."""
    units = [read_unit(each) for each in ("degC", "degF", "kelvin")]
    assert convert(celsius, units[0], units[1]) == celsius * 9 / 5 + 32
    assert convert(celsius, units[0], units[2]) == celsius + Fraction("273.15")


@all_rows(
    "amount, other",
    [
        ("1 kg", "m"), ("1 year", "day"), ("1 month", "year"), ("1 km/year", "km/day"), ("1 dBm", "watt"), ("3 dB",
        "bel"),
        ("1 Hz", "rpm"), ("1 Hz", "becquerel"), ("1 bit/s", "Hz"), ("1 degC^2/m", "kelvin^2/m"),
        ("5 degC^2", "kelvin^2"), ("1 radian", "m/m"), ("5 C", "degC"),
    ],
)  # fmt: skip
def test_what_has_no_exact_conversion_is_refused(amount: str, other: str) -> None:
    """Other dimensions, calendar units, logarithmic scales, angles as pure numbers: no conversion."""
    read = read_amount(amount)
    assert read.unit is not None
    with pytest.raises(ValueRefused):
        convert(read.value, read.unit, read_unit(other))
    assert text(Quantity(amount), amount) == "pass"


@all_rows(
    "check, values, right, wrong",
    [
        (Quantity("speed * hours", unit="km"), {"speed": 80, "hours": Fraction(5, 2)}, "200 km", "201 km"),
        (Quantity("given"), {"given": "1 h"}, "1 hour", "60 min"),
        (Quantity("given", convert=True), {"given": "1 h"}, "60 min", "61 min"),
        (Quantity("amount", unit="kg", convert=True), {"amount": Decimal("1.50")}, "1500 g", "1501 g"),
        (Quantity("5 km", within="0.1"), {}, "5.1 km", "5.11 km"),
        (Quantity("5 km", within="1%", convert=True), {}, "5050 m", "5051 m"),
        (Quantity("25 °C", convert=True), {}, "77 °F", "25 °F"),
    ],
)
def test_a_known_quantity_is_proved(check: Quantity, values: dict[str, Any], right: str, wrong: str) -> None:
    """The expected quantity passes as proved, whether it is written down, held by a variable or worked out."""
    found = judge(check, right, type="text", **values)
    assert (found.outcome, found.strength) == ("pass", "proved")
    assert text(check, wrong, **values) == "fail"


@all_rows(
    "check, values",
    [
        (Quantity("given"), {"given": "5"}),
        (Quantity("given"), {"given": "far"}),
        (Quantity("given"), {"given": 5}),
        (Quantity("a / b", unit="km"), {"a": 5, "b": 0}),
        (Quantity("a", unit="km"), {"a": "5"}),
        (Quantity("a", unit="km"), {"a": True}),
    ],
)
def test_an_expected_quantity_that_is_none_is_undecided(check: Quantity, values: dict[str, Any]) -> None:
    """Where what the step reads gives no quantity, no claim passes and asking again is pointless."""
    found = judge(check, "5 km", type="text", **values)
    assert (found.outcome, found.retry) == ("undecided", False)


def test_a_tolerance_is_recorded() -> None:
    """A value that passes only within the tolerance says so in its verdict, an exact one does not."""
    check = Quantity("5 km", within="0.1")
    assert judge(check, "5.05 km", type="text").reason == "within 0.1"
    assert judge(check, "5 km", type="text").reason == ""


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (Measured("km"), ["5 km", "-1 km"], ["5 m", "5 kg", "5"]),
        (Measured("km", convert=True), ["5 m", "3 miles"], ["5 s", "5"]),
        (Measured("km", least=0, most=100, convert=True), ["0 km", "100,000 m"], ["-1 m", "100,001 m"]),
        (Measured("°C", least="-273.15", convert=True), ["-273.15 °C", "0 K"], ["-274 °C", "-460 °F"]),
    ],
)
def test_a_measure_has_its_unit_and_bounds(check: Measured, right: list[str], wrong: list[str]) -> None:
    """A quantity of the unit between the bounds passes as constrained."""
    assert [judge(check, each, type="text").strength for each in right] == ["constrained"] * len(right)
    assert [text(check, each) for each in wrong] == ["fail"] * len(wrong)


def test_a_number_is_in_the_assumed_unit() -> None:
    """A step with a number is judged in the expected unit where that is assumed."""
    check = Quantity("a * 2", unit="km", bare="assume")
    assert outcome(check, "10", type="integer", a=5) == "pass"
    assert outcome(check, "11", type="integer", a=5) == "fail"


def test_a_quantity_verifies_a_step_of_words() -> None:
    """Through a guard, a step is verified by its quantity in another unit, and a wrong one is not kept."""
    check = Quantity("given", convert=True)
    assert guarded(check, "5 kg", "5000 m", given="5 km").answer == "5000 m"
    assert guarded(check, ERROR, given="5 km").status == "abstained"


@pytest.mark.parametrize("written", ["$5", "500%", "5 EUR", "5 percent"])
def test_a_number_with_a_percent_sign_or_a_currency_is_no_number_of_a_unit(written: str) -> None:
    """Where a number is taken to be in a unit, one that is written with another sign is refused, whatever its value."""
    assert outcome(Quantity("5 km", bare="assume"), written, type="number") == "fail"
    assert outcome(Measured("km", bare="assume"), written, type="number") == "fail"
    assert outcome(Quantity("5 km", bare="assume"), "5", type="number") == "pass"
