"""Units are read from a list of names: nothing is guessed off a word, and what is missing can be declared."""

from __future__ import annotations

import pytest
from constraint_harness import outcome
from tables import all_rows

from stepguard.errors import ConfigError, ValueRefused

pytest.importorskip("pint")

from stepguard.checks.units import Measured, Quantity
from stepguard.language.quantities import read_amount

CASES = [
    ("U01-Min", "30 Min", "30 min", True), ("U01-fl-oz", "8 fl oz", "8 fluid ounces", True),
    ("U01-cu-ft", "2 cu ft", "2 cubic feet", True), ("U01-kilos", "5 kilos", "5 kg", True),
    ("U01-Mb", "10 Mb/s", "10 megabits per second", True), ("U01-not-bytes", "10 Mb/s", "10 MB/s", False),
    ("U02-mph", "60 mph", "60 miles per hour", True), ("U02-kph", "60 kph", "60 km/h", True),
    ("U02-cc", "5 cc", "5 cm^3", True), ("U02-cc-mL", "5 cc", "5 mL", True), ("U02-kWh", "5 kW·h", "5 kWh", True),
    ("U02-kgs", "5 kgs", "5 kg", True), ("U02-gms", "5 gms", "5 g", True), ("U02-sqft", "5 sqft", "5 sq ft", True),
    ("U02-RPM", "90 RPM", "90 rpm", True), ("U02-mls", "5 mls", "5 mL", True),
    ("U02-mm-Hg", "120 mm Hg", "120 mmHg", True), ("U02-ft-lb", "5 foot-pounds", "5 ft*lbf", True),
    ("U02-mM", "5 mM", "5 mmol/L", True), ("U02-other", "60 mph", "60 km/h", False),
    ("U01-capital", "5 Milligrams", "5 mg", True), ("U01-Mins", "5 Mins", "5 min", True),
    ("U03-tons", "16,000 metric tons", "16000 t", True), ("U03-short", "16,000 tons", "16000 t", False),
]  # fmt: skip
UNKNOWN = [
    "10 units", "10 items", "5 exams", "5 kb", "5 mb", "5 Kg", "5 KM", "5 pc", "5 pcs", "5 cents", "5 dads", "5 at",
    "5 nits", "5 teabags", "5 mins.x", "5 peaks", "5 Cal", "5 bbl", "5 U", "5 IU", "5 mEq", "20 gtt", "5 pH", "5 mice",
    "5 damps", "5 hats", "5 pets", "5 mads", "5 Tin", "5 cyd", "5 kft", "5 Moz", "5 mlb", "5 kmin", "5 dh", "5 mday",
    "8 fl", "5 Gm", "5 Mmol", "5 Mrad", "5 Pmol",
]  # fmt: skip


@pytest.mark.parametrize(("claimed", "expected", "same"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_unit_is_the_usual_one_under_all_its_names(claimed: str, expected: str, same: bool) -> None:
    """Synonyms pass for each other without a conversion, other units do not."""
    assert (outcome(Quantity(expected), claimed, type="text") == "pass") is same
    assert (outcome(Quantity(claimed), expected, type="text") == "pass") is same


@all_rows("written", UNKNOWN)
def test_no_prefix_is_guessed_off_a_word(written: str) -> None:
    """What is in no list is no unit, whatever it begins and ends with."""
    with pytest.raises(ValueRefused):
        read_amount(written)


@all_rows(
    "amount, other",
    [("8 furlongs", "1 mile"), ("3 fathoms", "18 ft"), ("1 square mile", "640 acres"), ("1 acre-foot", "43560 cu ft"),
     ("9 °F/h", "5 °C/h"), ("3 W/(m^2*K)", "3 W/(m^2*°C)"), ("50 °F", "10 °C"), ("2000000 TJ", "2 EJ")],
)  # fmt: skip
def test_conversions_come_out_as_people_write_them(amount: str, other: str) -> None:
    """Feet are those of today in every unit of length and land, and a degree beside other units is a difference."""
    for given, wanted in ((amount, other), (other, amount)):
        assert outcome(Quantity(wanted, convert=True), given, type="text") == "pass"


def test_units_can_be_declared() -> None:
    """U03: a check can declare units of its own; each measures something of its own, and prefixes are not guessed."""
    check = Quantity("400 IU", units=["IU", "mEq"])
    assert outcome(check, "400 IU", type="text") == "pass"
    assert [outcome(check, other, type="text") for other in ("400 mEq", "400 mg", "400 mIU", "401 IU")] == ["fail"] * 4
    rate = Measured("IU/L", least=1, most=6000, convert=True, units=["IU"])
    assert [outcome(rate, each, type="text") for each in ("5 IU/mL", "7 IU/mL", "5 mol/mL")] == ["pass", "fail", "fail"]
    for names in ("IU", ["km"], ["I U"], [5]):
        with pytest.raises(ConfigError):
            Quantity("5 kg", units=names)  # type: ignore[arg-type]
