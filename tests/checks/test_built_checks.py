"""What holds for every check that stepguard brings, whatever is claimed."""

from __future__ import annotations

import pickle
from decimal import Decimal
from typing import Any

import pytest
from constraint_harness import unfit
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from tables import all_rows

from stepguard import Step, checks
from stepguard.checks.built import BuiltCheck
from stepguard.checks.constraints import Distinct, Holds, Range, Requires
from stepguard.checks.dates import DateHolds, DateIs, DaysBetween
from stepguard.checks.durations import DurationIs
from stepguard.checks.grounding import Grounded
from stepguard.checks.schema import Schema
from stepguard.checks.text import Forbidden, Length, OneOf, Pattern
from stepguard.core.verdicts import Claim
from stepguard.errors import ConfigError, ExpressionError, ValueRefused
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


REFUSED = [
    "Range()", "Range(least=2, most=1)", "Range(least=1, above=1)", "Range(most=1, below=1)",
    "Range(above=1, most=1)", "Range(least=1, below=1)", "Range(least=float('nan'))", "Range(most=float('inf'))",
    "Range(most=Decimal('NaN'))", "Range(least=True)", "Range(least='many')", "Range(least='5 USD')",
    "Range(least=[1])", "Range(least='5%', most=1)", "Distinct()", "Distinct('')", "Distinct(3)", "Grounded('')",
    "Grounded('the text')", "Grounded(3)", "Grounded('doc', kind='name')", "Grounded('doc', beside='')",
    "Grounded('doc', beside='--')", "Grounded('doc', beside=3)", "Grounded('doc', order='ymd')",
    "Grounded('doc', decimal=';')", "Quantity('5')", "Quantity('5 parsnips')", "Quantity('')", "Quantity(5)",
    "Quantity('5 km', unit='m')", "Quantity('a < b', unit='m')", "Quantity('a', unit='parsnips')",
    "Quantity('a', unit='')", "Quantity('5 km', bare='maybe')", "Quantity('5 km', within='1000')",
    "Quantity('5 km', within='-1')", "Quantity('5 km', within='nan')", "Quantity('5 km', within='50%')",
    "Measured('5 km')", "Measured('km', least=2, most=1)", "Measured('km', least='5%')",
    "Measured('km', most=float('nan'))", "DateHolds()", "DateHolds('t')", "DateHolds('start < t < stop')",
    "DateHolds('t + 1 day == t + 1 day')", "DateIs('start', order='ymd')", "DateIs('start', holidays='2026-12-25')",
    "DateIs('start', holidays=['25 December'])", "DateIs('start', holidays=[3])", "DateIs('start', weekend='Friday')",
    "DateIs('start', weekend=['Fri'])", "DateIs('start', weekend=[5])", "DurationIs('3 months')",
    "DaysBetween('start', 'stop', weekend=__import__('calendar').day_name)",
    "DurationIs('setup plus 5 min')", "DurationIs(5)", "DurationIs('5 min', unit='fortnight')",
    "DurationIs('5 min', within='0 s')", "DurationIs('5 min', within='-1 s')", "DurationIs('5 min', within='1')",
    "DurationIs('5 min', within=1)", "DurationIs('max + 5 min')", "OneOf()", "OneOf('a', 'a ')",
    "OneOf('a', 'A', ignore_case=True)", "OneOf('')", "OneOf(3)", "Forbidden()", "Forbidden('...')", "Forbidden('')",
    "Forbidden(3)", "Forbidden(patterns='abc')", "Forbidden(patterns=['a*'])", "Length(-1)", "Length(3, 2)",
    "Length(0, 0)", "Length(True)", "Length(1.5)", "Schema('{}')", "Schema(int)", "Schema(Loose)",
    "Equivalent('x +')", "Equivalent('x < 1')", "Equivalent('x', form='nice')",
    "Equivalent('y = x', form='expanded')", "Equivalent('x + 1', assume={'x': 'complex'})",
    "Equivalent('x + 1', symbols=('sin',))", "Equivalent('x + 1', reads='f')", "Equivalent('x + 1', seconds=0)",
    "Equivalent('x + 1', seconds=float('nan'))", "Equivalent('x + 1', seconds=10000)", "Equivalent(3)",
    "Derivative('2*f', 'x')", "Derivative('x^2', 'sin')", "Derivative('x^2', 'x', order=0)",
    "Derivative('x = 1', 'x')", "Integral('x^2', 'x', low='0')", "Integral('x^2', 'x', low='0', high='x')",
    "Integral('x^2', 'x', low='0', high='1', constant='required')", "Integral('x^2', 'x', constant='C')",
    "Substituted('x^2', {})", "Substituted('x^2', {'y': '1'})", "Substituted('x^2', {'x': '1 +'})",
    "Solves('x^2', 'x')", "Solves('x < 2', 'x')", "Solves('y = 2', 'x')", "Solves('x = y = 2', 'x')",
    "SolvesSystem([], ['x'])", "SolvesSystem(['x = 1'], ['x', 'x'])", "SolvesSystem(['x = 1'], ['x', 'y'])",
    "SolvesSystem('x = 1', ['x'])", "SolvesInequality('x = 2', 'x')", "SolvesInequality('x^2', 'x')",
    "SameMatrix('A*B')", "SameMatrix('[[1, 2], [3]]')", "Grounded('d', sole=True)", "Grounded('d', beside={'a': ''})",
    "Complete('a b')", "Complete('d', apart='forward')", "Cites('d', words=0)",
]  # fmt: skip
MISFITS = [
    ("Holds('x > 0')", "number", "Requires"), ("Holds('t > 0', 'x > 0')", "number", "Requires"),
    ("Holds('t == x')", "text", "type text"), ("Holds('t == unread')", "number", "'unread'"),
    ("Range(least=0)", "text", "type text"), ("Range(least=0)", "boolean", "type boolean"),
    ("Requires('t > 0')", "number", "Holds"), ("Requires('unread > 0')", "number", "'unread'"),
    ("Distinct('t')", "number", "itself"), ("Distinct('unread')", "text", "'unread'"), ("Grounded('t')", "text", ""),
    ("Grounded('unread')", "text", ""), ("Grounded('doc')", "boolean", ""),
    ("Grounded('doc', kind='date')", "integer", ""),
    ("Grounded('doc', kind='text')", "integer", ""), ("Quantity('5 km')", "number", ""),
    ("Quantity('5 km', bare='assume')", "percent", ""), ("Quantity('5 km', bare='assume')", "boolean", ""),
    ("Quantity('unread', unit='km')", "text", ""), ("Quantity('t', unit='km')", "text", ""),
    ("Measured('km')", "integer", ""), ("DateIs('d')", "integer", ""), ("DateIs('t')", "text", ""),
    ("DateIs('unread')", "text", ""), ("DateHolds('d < unread')", "text", ""), ("DateHolds('t > d')", "number", ""),
    ("DateHolds('d < 2026-01-01')", "text", ""), ("DaysBetween('d', 't')", "integer", ""),
    ("DaysBetween('d', 'd')", "text", ""), ("DaysBetween('d', 'd')", "money(USD)", ""),
    ("DurationIs('d')", "integer", ""),
    ("DurationIs('d', unit='hour')", "text", ""), ("DurationIs('t')", "text", ""), ("Pattern('[0-9]')", "integer", ""),
    ("OneOf('1')", "integer", ""), ("Forbidden('x')", "integer", ""), ("Length(1)", "integer", ""),
    ("Schema(Line)", "integer", ""),
]  # fmt: skip


class Loose(BaseModel):
    """What any object satisfies."""

    item: str = ""


def made(text: str) -> BuiltCheck:
    """The check that a text makes."""
    names = {"Decimal": Decimal, "Line": Line, "Loose": Loose}
    check: BuiltCheck = eval(text, {**{name: getattr(checks, name) for name in checks.__all__}, **names})
    return check


@all_rows("text", REFUSED)
def test_a_check_that_could_not_work_is_refused_when_it_is_made(text: str) -> None:
    """Bounds, units, dates, options, schemas and formulas that make no sense are errors of configuration."""
    with pytest.raises((ConfigError, ExpressionError)):
        made(text)


@all_rows("text, type, says", MISFITS)
def test_a_check_that_does_not_fit_its_step_never_passes(text: str, type: str, says: str) -> None:
    """It says so beforehand, where the step is made, and is undecided when it is called all the same."""
    check, step = made(text), Step("t", instruction="Say it.", type=type, reads=["x", "d", "doc"])
    misfit = check.misfit(step)
    assert misfit is not None
    assert says in misfit
    claimed = {"boolean": "true", "percent": "5%"}.get(type, "1")
    verdict = unfit(check, claimed, type=type, x=1, d="2026-01-01", doc="1 true")
    assert (verdict.outcome, verdict.retry) == ("undecided", False)


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
