"""What holds for every check that stepguard brings, whatever is claimed."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from tables import all_rows

from stepguard import Step
from stepguard.checks.built import BuiltCheck
from stepguard.checks.constraints import Distinct, Holds, Range, Requires
from stepguard.checks.dates import DateHolds, DateIs, DaysBetween
from stepguard.checks.durations import DurationIs
from stepguard.checks.grounding import Grounded
from stepguard.checks.schema import Schema
from stepguard.checks.text import Forbidden, Length, OneOf, Pattern
from stepguard.core.verdicts import Claim
from stepguard.errors import ValueRefused
from stepguard.language.values import Value

pytest.importorskip("pint")
pytest.importorskip("jsonschema")

from stepguard.checks.units import Measured, Quantity

TEXT_CHECKS: list[BuiltCheck] = [
    *(DateIs("d + 1 day"), DateHolds("t > d"), DurationIs("90 min"), Grounded("doc"), Grounded("doc", kind="number")),
    *(Grounded("doc", kind="date", beside="Total"), Quantity("5 km", convert=True, bare="assume")),
    *(Measured("km", least=0), Pattern("[0-9]+"), OneOf("a", "b", ignore_case=True), Forbidden("a", patterns=["b+"])),
    Length(1, 10),
    Schema({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "multipleOf": 0.1}}}),
    Distinct("d"),
]
NUMBER_CHECKS: list[BuiltCheck] = [
    *(Range(0, 10), Holds("t * t / (t - n) <= n"), Holds("t == n + 1"), Requires("n > 0")),
    *(DaysBetween("d", "d + 3 days"), DurationIs("90 min", unit="hour"), Grounded("doc")),
    *(Quantity("n", unit="km", bare="assume"), Distinct("n")),
]
LINE: dict[str, Any] = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}


class Line(BaseModel):
    """A line of JSON."""

    a: int


HOLDS: dict[str, Value] = {"d": "2026-11-28", "doc": "Total 5 km, 28 November 2026: a", "n": 7}
PIECES = st.sampled_from([
    "5", "km", " ", "-", "/", "^", "(", ")", ".", ",", "Nov", "2026", "28", "1e9", "°", "−", "½", "%", "€", "PT", "H",
    "{", "}", '"a"', ":", "[", "]", "\\", "�", "\x00", "１", "é", "h", "m", "and", "null", "T", "²", "'", "\n",
])  # fmt: skip
CLAIMS = st.text(max_size=40) | st.lists(PIECES, max_size=12).map("".join)


@pytest.mark.slow
@given(CLAIMS, st.sampled_from(TEXT_CHECKS))
def test_no_text_makes_a_check_raise(claimed: str, check: BuiltCheck) -> None:
    """Whatever text is claimed, a check gives a verdict, and its reason can be written."""
    step = Step("t", instruction="Say it.", reads=list(HOLDS))
    verdict = check(step, {**HOLDS, "t": claimed}, Claim("t", (), claimed, claimed))
    assert verdict.outcome in ("pass", "fail", "not_applicable")
    verdict.reason.encode()
    assert len(verdict.reason) < 2000


@pytest.mark.slow
@given(CLAIMS | st.from_regex(r"\A-?[0-9]{1,60}(?:\.[0-9]{1,20})?\Z"), st.sampled_from(NUMBER_CHECKS))
def test_no_number_makes_a_check_raise(claimed: str, check: BuiltCheck) -> None:
    """Whatever number is claimed, a check gives a verdict, and its reason can be written."""
    step = Step("t", instruction="Say it.", type="number", reads=list(HOLDS))
    try:
        value = step.type.read(claimed)
    except ValueRefused:
        return
    verdict = check(step, {**HOLDS, "t": value}, Claim("t", (), claimed, claimed))
    assert verdict.outcome in ("pass", "fail", "not_applicable")
    assert len(verdict.reason) < 2000


@all_rows("check", [*TEXT_CHECKS, *NUMBER_CHECKS])
def test_every_check_says_what_it_reads(check: BuiltCheck) -> None:
    """A check names the variables it needs, and fits no step that does not read them."""
    assert isinstance(check.reads, tuple)
    others = [name for name in check.reads if name != "t"]
    type_ = "text" if check in TEXT_CHECKS else "number"
    assert check.misfit(Step("t", instruction="Say it.", type=type_, reads=others)) is None
    for name in others:
        left = [each for each in others if each != name]
        assert check.misfit(Step("t", instruction="Say it.", type=type_, reads=left))


@all_rows("check", [*TEXT_CHECKS, *NUMBER_CHECKS, DateIs("d", holidays=["2026-12-25"]), Schema(Line)])
def test_checks_are_values(check: BuiltCheck) -> None:
    """Checks with the same configuration are equal, hash alike and survive pickling."""
    other = pickle.loads(pickle.dumps(check))
    assert (other, hash(other)) == (check, hash(check))


@pytest.mark.parametrize(
    ("check", "shown", "same", "another"),
    [
        (Holds("t==a+b"), "Holds('t == a + b')", Holds("t == a + b"), Holds("t == a")),
        (Range(0, 1), None, Range(0, most="1.0"), Range(0, 2)),
        (Pattern("a"), "Pattern(pattern='a', veto=False)", Pattern("a"), Pattern("b")),
        (Schema(LINE), None, Schema(dict(reversed(LINE.items()))), Schema(Line)),
        (Quantity("5km", convert=True), "Quantity('5 kilometer', convert=True)", None, Quantity("5 km")),
        (Quantity("5 km"), None, Quantity("5 kilometers"), Quantity("6 km")),
        (DateIs("start+30 days"), "DateIs('start + 30 days')", DateIs("start + 30 days"), DateIs("start")),
        (DateIs("start"), None, DateIs("start"), DateIs("start", order="dmy")),
        (DateHolds("t>start + 1 working day"), "DateHolds('t > start + 1 working day')", None, DateHolds("t > start")),
        (Grounded("doc", beside="Total"), None, Grounded("doc", beside="Total"), Grounded("doc")),
        (Distinct("a", "b"), None, Distinct("a", "b"), Distinct("a")),
    ],
)
def test_a_check_shows_what_it_checks(
    check: BuiltCheck, shown: str | None, same: BuiltCheck | None, another: BuiltCheck
) -> None:
    """What is printed is the configuration as it is understood, and other notations of it are the same check."""
    assert shown in (None, repr(check))
    assert same in (None, check)
    assert check != another


def test_heavy_libraries_are_not_imported_before_they_are_used() -> None:
    """The modules of the checks import neither pint, jsonschema nor sympy."""
    modules = ["constraints", "dates", "durations", "grounding", "schema", "text", "units"]
    code = "; ".join(f"import stepguard.checks.{each}" for each in modules)
    code += "; import sys; print([each for each in ('pint', 'jsonschema', 'sympy', 'openai') if each in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
