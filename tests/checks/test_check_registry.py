"""Checks by name: those of other packages, their options, and procedures in files that use them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from tables import all_rows

from stepguard import Claim, Guard, Procedure, Step
from stepguard.checks.constraints import Holds, Range
from stepguard.checks.dates import DateHolds, DateIs
from stepguard.checks.text import OneOf
from stepguard.errors import ConfigError, ProcedureError
from stepguard.language.values import Value
from stepguard.procedure.check_registry import CHECKS, make_check
from stepguard.procedure.yaml_format import parse_yaml
from stepguard.testing import ScriptedBackend


@dataclass(frozen=True)
class Between:
    """A check with options, as another package may bring it."""

    least: Any = None
    most: Any = None
    strict: bool = False

    def __post_init__(self) -> None:
        if self.least == "wrong":
            raise ConfigError("'wrong' is no number", option="least")
        if self.least == "broken":
            raise KeyError("broken")

    def __call__(self, step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
        value = values[step.id]
        assert isinstance(value, int)
        return bool(self.least <= value <= self.most)


def small(step: Step, values: Mapping[str, Value], claim: Claim) -> bool:
    """A check without options."""
    return values[step.id] in range(10)


class Nothing:
    """No check."""


DATA = 5


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Entry points as other packages would bring them."""

    def add(**points: str) -> None:
        found = [EntryPoint(name.rstrip("_"), value, "stepguard.checks") for name, value in points.items()]
        monkeypatch.setattr("stepguard.core.plugins._brought", lambda group: found)

    here = __name__
    add(between=f"{here}:Between", small=f"{here}:small", data=f"{here}:DATA", nothing=f"{here}:Nothing", gone="no:way")
    return add


def load(checks: str) -> Procedure:
    indented = "".join(f"      {line}\n" for line in checks.splitlines())
    return parse_yaml(f"steps:\n  - id: n\n    instruction: Count.\n    type: integer\n    checks:\n{indented}")


@all_rows(
    "checks, expected",
    [
        ("- small", [small]),
        ("- between", [Between()]),
        ("- between: 3", [Between(3)]),
        ("- between: {least: 3, most: 7}", [Between(3, 7)]),
        ("- between:\n    least: -3\n    most: 7.50", [Between(-3, Decimal("7.50"))]),
        ("- between: {strict: true}", [Between(strict=True)]),
        ("- between: {strict: True, least: FALSE}", [Between(strict=True, least=False)]),
        ("- between: {least: '3', most: \"true\"}", [Between("3", "true")]),
        ("- between: {least: no, most: 1e5}", [Between("no", "1e5")]),
        ("- between: [1, two, [3]]", [Between([1, "two", [3]])]),
        ("- between: {least: {a: 1, b: [x]}}", [Between({"a": 1, "b": ["x"]})]),
        ("- small\n- between: 3", [small, Between(3)]),
    ],
)
def test_a_file_names_checks(checks: str, expected: list[Any]) -> None:
    """A check stands under its name, alone, with one value, or with options by name."""
    assert list(load(checks).steps[0].checks) == expected


@all_rows(
    "checks, told",
    [
        *(
            ("- smal", "unknown check 'smal'"),
            ("- __init__", "unknown check '__init__'"),
            ("- small: 3", "takes no options"),
        ),
        ("- between: {leest: 3}", "no option 'leest': it takes least, most, strict"),
        ("- between: {least: wrong}", "'wrong' is no number"),
        ("- between: {least: broken}", "cannot be made: KeyError"),
        ("- between: {least: 1, least: 2}", "'least' stands twice"),
        *(("- {between: 3, small: 4}", "one name with its options"), ("- [between]", "one name with its options")),
        *(("- data", "is no check"), ("- nothing", "is no check"), ("- gone", "cannot be made")),
        *(("- between: {least: }", "is text"), ("small", "a list is needed")),
    ],
)
def test_what_is_wrong_with_a_check_is_told_with_its_line(checks: str, told: str) -> None:
    """A check that cannot be had is refused when the file is read."""
    with pytest.raises(ProcedureError) as refused:
        load(checks)
    assert told in str(refused.value)
    assert refused.value.line is not None
    assert refused.value.line >= 5


MANY: list[tuple[str, str, Any]] = [
    (
        'one_of: {"options": ["a", "b c"], "ignore_case": true}',
        'one_of(a, "b c", ignore_case=true)',
        OneOf("a", "b c", ignore_case=True),
    ),
    ('one_of: {"options": ["a"]}', "one_of(a)", OneOf("a")),
    (
        'date_holds: {"relations": ["n > m", "n < m + 1 week"], "weekend": ["Friday"]}',
        'date_holds("n > m", "n < m + 1 week", weekend=[Friday])',
        DateHolds("n > m", "n < m + 1 week", weekend=["friday"]),
    ),
    (
        'date_is: {"expression": "m + 1 working day", "holidays": ["2026-12-25"]}',
        'date_is("m + 1 working day", holidays=["2026-12-25"])',
        DateIs("m + 1 working day", holidays=[date(2026, 12, 25)]),
    ),
]


@all_rows("setting, written, check", MANY)
def test_a_check_of_any_number_of_values_has_options_beside_them(setting: str, written: str, check: Any) -> None:
    """In YAML its values stand under their name, in text before the options; text prints as it was read."""
    text = f'inputs: m: text\nn: text = "Name it." (reads m)  check: {written}\n'
    procedure = Procedure.parse(text)
    assert procedure.steps[0].checks == (check,)
    assert str(procedure) == text
    name, _, options = setting.partition(": ")
    assert make_check(name, json.loads(options)) == check


def test_a_check_from_a_file_decides() -> None:
    """It is asked like any other."""
    procedure = load("- between: {least: 3, most: 7}")
    for value, status in (("5", "checked"), ("8", "abstained")):
        backend = ScriptedBackend({"n": {"work": "", "value": value}})
        assert Guard(backend, repair=0).run(procedure).status == status


def test_two_packages_with_one_name_are_refused(installed: Callable[..., None]) -> None:
    """Which one is meant is not guessed."""
    installed(small="a:b", small_="c:d")
    with pytest.raises(ConfigError, match="brought twice"):
        make_check("small")


def test_every_check_of_this_package_has_a_name() -> None:
    """Whatever stands in the modules of checks can be named in a file, and the name is that of its verdicts."""
    for name in CHECKS.bundled():
        assert getattr(CHECKS.own(name), "name") == name  # noqa: B009 - it is a class of checks


def test_checks_of_this_package_stand_in_files() -> None:
    """One value, several, and options by name."""
    checks = (
        load("- range: {least: 0, most: 9}\n- holds: [n < 10, n % 2 == 1]\n- holds: n > 1\n- range: 3").steps[0].checks
    )
    assert list(checks) == [Range(0, 9), Holds("n < 10", "n % 2 == 1"), Holds("n > 1"), Range(3)]
    with pytest.raises(ProcedureError, match="missing"):
        load("- holds: n >")


FLAGS: list[tuple[str, dict[str, object]]] = [
    ("quantity", {"expected": "5 km", "convert": "no"}),
    ("measured", {"unit": "km", "convert": "false"}),
    ("pattern", {"pattern": "[a-z]+", "veto": "no"}),
    ("schema", {"schema": {"type": "integer"}, "veto": 0}),
    ("days_between", {"first": "a", "last": "b", "inclusive": "no"}),
    ("days_between", {"first": "a", "last": "b", "working": None}),
    ("solves", {"equation": "x^2 = 4", "variable": "x", "all": "False"}),
    ("solves", {"equation": "x^2 = 4", "variable": "x", "ordered": "no"}),
    ("solves_system", {"equations": ["x = 1"], "variables": ["x"], "all": "off"}),
]


@pytest.mark.parametrize(("name", "options"), FLAGS)
def test_an_option_that_is_true_or_false_is_nothing_else(name: str, options: dict[str, object]) -> None:
    """A text such as `no` would count as true, and turn an option round."""
    pytest.importorskip({"quantity": "pint", "measured": "pint", "schema": "jsonschema"}.get(name, "json"))
    option = list(options)[-1]
    with pytest.raises(ConfigError, match=f"{option} is true or false, not"):
        make_check(name, options)
    assert getattr(make_check(name, {**options, option: False}), {"convert": "converts"}.get(option, option)) is False


def test_numbers_of_a_file_are_numbers_of_an_option() -> None:
    """A plain decimal number in a file is a tolerance, a bound in a schema, or seconds, exactly."""
    pytest.importorskip("pint")
    pytest.importorskip("jsonschema")
    quantity = make_check("quantity", {"expected": "5 km", "within": Decimal("0.01")})
    assert quantity == make_check("quantity", {"expected": "5 km", "within": "0.01"})
    assert make_check("equivalent", {"formula": "x + 1", "seconds": Decimal("2.5")}).seconds == 2.5  # type: ignore[attr-defined]
    assert make_check("schema", {"schema": {"minimum": Decimal("0.1"), "type": "number"}}) == make_check(
        "schema", {"schema": {"minimum": 0.1, "type": "number"}}
    )
    with pytest.raises(ConfigError, match="cannot stand in JSON"):
        make_check("schema", {"schema": {"type": "number", "minimum": Decimal("0.12345678901234567890123")}})
