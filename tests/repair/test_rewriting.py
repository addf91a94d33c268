"""Stand-ins: other ways to write a step, which keep its value and name no result."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tables import all_rows

from stepguard import Step
from stepguard.language.evaluation import evaluate
from stepguard.language.expressions import Chain, Compare, Name, Number
from stepguard.language.values import Value, to_exact
from stepguard.repair.rewriting import StandIn, rewrite
from stepguard.repair.splitting import SplitWay, split


def worked(stand_in: StandIn) -> Value:
    """The value that follows where every step of a stand-in is carried out rightly."""
    return stand_in.restore(worked_out(stand_in))


def worked_out(stand_in: StandIn) -> dict[str, Value]:
    known: dict[str, Value] = {}
    while asked := stand_in.behind(known):
        for step in asked:
            assert step.expression is not None
            assert set(step.reads) <= set(known)
            known[step.id] = step.type.convert(evaluate(step.expression, known))
    return known


def formulas(stand_in: StandIn | None) -> list[str | None] | None:
    return None if stand_in is None else [step.formula for step in stand_in.steps]


REWRITTEN: list[tuple[str, dict[str, Value], list[str] | None, bool]] = [
    ("x - y", {"x": -96, "y": -106}, ["106 - 96"], False),
    ("x - y", {"x": 0, "y": -295}, ["0 + 295"], False),
    ("x - y", {"x": 122, "y": 257}, ["257 - 122"], True),
    ("x + y", {"x": -19, "y": 16}, ["19 - 16"], True),
    ("x + y", {"x": -19, "y": -16}, ["19 + 16"], True),
    ("x + y", {"x": 48, "y": 1}, None, False),
    ("x - y", {"x": 5, "y": 3}, None, False),
    ("x * y", {"x": -21, "y": 3}, ["21 * 3"], True),
    ("x * y", {"x": -21, "y": -3}, ["21 * 3"], False),
    ("-x + y", {"x": -3, "y": 4}, ["3 + 4"], False),
    ("x - y + 5", {"x": -3, "y": -4}, ["4 + 5 - 3"], False),
    ("x * y * z", {"x": -21, "y": -3, "z": -2}, ["21 * 3 * 2"], True),
    ("x - y - 1", {"x": -3, "y": 4}, ["3 + 4 + 1"], True),
    ("x - y", {"x": 5, "y": 0}, ["5 + 0"], False),
    ("x / 4", {"x": -10}, ["10 / 4"], True),
    ("x // 4", {"x": -10}, None, False),
    ("x * y", {"x": 0, "y": -7}, ["0 * 7"], True),
    ("x * y", {"x": Decimal("-0.5"), "y": 3}, ["0.5 * 3"], True),
    ("x + y", {"x": -5, "y": 5}, ["5 - 5"], False),
    ("x - y", {"x": 0, "y": 5}, ["0 + 5"], True),
    ("x - y", {"x": 0, "y": 0}, ["0 + 0"], False),
    ("-(x + 1) * y", {"x": 1, "y": 2}, None, False),
    ("x", {"x": -10}, None, False),
    ("x > 3", {"x": -10}, None, False),
]


@all_rows("formula, values, written, negated", REWRITTEN)
def test_signs_that_trip_models_are_folded(
    formula: str, values: dict[str, Value], written: list[str] | None, negated: bool
) -> None:
    """No double sign, the larger number first, the sign of the result put back; nothing where nothing is to be done."""
    step = Step("t", formula)
    found = rewrite(step, values)
    assert formulas(found) == written
    if found is not None:
        assert found.negated is negated
        assert worked(found) == evaluate(step.expression, values)  # type: ignore[arg-type]


SPLIT: list[tuple[str, str, dict[str, Value], list[str] | None]] = [
    ("x + y", "number", {"x": 137, "y": 285}, ["137 + 200", "p1 + 80", "p2 + 5"]),
    ("x - y", "number", {"x": 122, "y": 257}, ["257 - 100", "p1 - 20", "p2 - 2"]),
    ("x * y", "number", {"x": 47, "y": 6}, ["6 * 40", "6 * 7", "p1 + p2"]),
    ("x * y", "number", {"x": -47, "y": 36}, ["36 * 40", "36 * 7", "p1 + p2"]),
    ("x + y", "number", {"x": 48, "y": 1}, None),
    ("x - y + 5", "number", {"x": 3, "y": 4}, ["3 - 4", "p1 + 5"]),
    ("(x + y) * 2", "number", {"x": 3, "y": 4}, ["3 + 4", "p1 * 2"]),
    ("x * y / 12", "decimal(2)", {"x": 1000, "y": Decimal("0.05")}, ["1000 * 0.05", "p1 / 12"]),
    ("round(x * y / 3, 2)", "number", {"x": 10, "y": 2}, ["10 * 2", "round(p1 / 3, 2, half_up)"]),
    ("x / 3 + y", "number", {"x": 10, "y": 2}, None),
    ("x + 1 > y", "boolean", {"x": 3, "y": 4}, ["3 + 1", "p1 - 4"]),
    ("x > y", "boolean", {"x": 3, "y": 4}, ["3 - 4"]),
    ("x^2 > y", "boolean", {"x": -3, "y": -4}, ["(-3)^2", "p1 + 4"]),
    ("x^2 + y", "number", {"x": 3, "y": 4}, ["3^2", "p1 + 4"]),
    ("x^2", "number", {"x": 3}, None),
    ("x + y", "number", {"x": Decimal("1.5"), "y": Decimal("12.75")}, ["1.5 + 10", "p1 + 2", "p2 + 0.7", "p3 + 0.05"]),
    ("x / y", "decimal(2)", {"x": 10, "y": 3}, None),
    ("x == y", "boolean", {"x": True, "y": False}, None),
    ("x and y > 3", "boolean", {"x": True, "y": 4}, ["4 - 3"]),
    ("x and y > 3", "boolean", {"x": 3, "y": 4}, None),
    ("x and y", "boolean", {"x": True, "y": False}, None),
    ("y > 3 and x > abs(y)", "boolean", {"x": 3, "y": 4}, ["4 - 3", "abs(4)", "3 - p2"]),
    ("x", "number", {"x": 3}, None),
]


@all_rows("formula, kind, values, written", SPLIT)
def test_a_step_is_split_into_single_operations_or_digits(
    formula: str, kind: str, values: dict[str, Value], written: list[str] | None
) -> None:
    """Compound expressions become one operation a step, single operations one digit at a time."""
    step = Step("t", formula, type=kind)
    found = split(step, values)
    assert formulas(found) == written
    if found is not None:
        assert found.steps[-1].id == "t" or " and " in formula
        assert worked(found) == step.type.convert(evaluate(step.expression, values))  # type: ignore[arg-type]


def test_parts_have_names_of_their_own() -> None:
    """A part is never called like the step, or like what the step reads."""
    found = split(Step("p2", "(p1 + 2) * 3 - 4"), {"p1": 5})
    assert found is not None
    assert [step.id for step in found.steps] == ["p3", "p4", "p2"]
    assert found.steps[0].formula == "5 + 2"


def test_a_tolerance_holds_on_the_other_sign() -> None:
    """What may be off by a cent may be so without its sign; a rounding is left where it stands, and other types go."""
    turned = rewrite(Step("t", "a - b", type="integer"), {"a": 5, "b": 7})
    assert turned is not None
    assert turned.steps[0].type.kind == "number"
    found = rewrite(Step("t", "a / b", type="number(within 0.01)"), {"a": -58, "b": 7})
    assert found is not None
    assert found.steps[0].type.within is not None
    assert rewrite(Step("t", "a * b", type="decimal(1, floor)"), {"a": -5, "b": 7}) is None


@pytest.mark.parametrize("value", [Fraction(1, 2**6600), 10**400, Fraction(1, 3)])
def test_numbers_that_nobody_takes_apart_are_not(value: Value) -> None:
    """A number without an end, or longer than a line, is not split, and breaks nothing."""
    step = Step("t", "x * y")
    for made in (split(step, {"x": value, "y": value}), rewrite(step, {"x": value, "y": value})):
        assert made is None


NUMBERS = st.one_of(
    st.integers(-9999, 9999), st.decimals(-999, 999, places=2, allow_nan=False), st.fractions(-9, 9, max_denominator=8)
)
FORMULAS = st.sampled_from([
    "x + y", "x - y", "x * y", "x - y - z", "x * y + z", "(x + y) * z", "-x + y", "x / 4 - y", "x - (y - z)", "x / 8",
    "x < y + z",
])  # fmt: skip
KINDS = st.sampled_from(["number", "decimal(2)", "decimal(0, floor)", "percent(1)"])


@example("x * y", "percent(1)", "whole_numbers", Decimal("1.01"), Decimal("1.01"), 0)  # more than 100%
@given(formula=FORMULAS, kind=KINDS, way=st.sampled_from(get_args(SplitWay)), x=NUMBERS, y=NUMBERS, z=NUMBERS)
def test_every_stand_in_keeps_the_value(formula: str, kind: str, way: SplitWay, x: Value, y: Value, z: Value) -> None:
    """Carried out rightly, a stand-in gives exactly what the step gives; no operation in a split is rounded as well."""
    step = Step("t", formula, type="boolean" if "<" in formula else kind)
    values: Mapping[str, Value] = {"x": x, "y": y, "z": z}
    assert step.expression is not None
    value = step.type.convert(evaluate(step.expression, values))
    for made in (rewrite(step, values), split(step, values, way=way)):
        if made is not None:
            assert worked(made) == value
    if made is not None and made.decision is None and not any(map(_is_endless, (x, y, z))):
        for small in made.steps:
            known = {name: number for name, number in worked_out(made).items() if name != small.id}
            assert small.expression is not None
            result = evaluate(small.expression, known)
            rounded = to_exact(small.type.convert(result)) != result
            assert not rounded or isinstance(small.expression, Name) or _is_endless(result)


def _is_endless(number: Value) -> bool:
    return (Fraction(to_exact(number)) * 10**20).denominator > 1


def _numbers(stand_in: StandIn) -> list[Fraction]:
    found: list[Fraction] = []
    for step in stand_in.steps:
        tree = step.expression
        operands = (
            tree.operands if isinstance(tree, Chain) else (tree.left, tree.right) if isinstance(tree, Compare) else ()
        )
        found += [abs(Fraction(each.value)) for each in operands if isinstance(each, Number)]
    return found


@given(
    formula=st.sampled_from(["x + y", "x - y", "x * y", "(x + y) * z"]),
    way=st.sampled_from(["digits", "whole_numbers"]),
    x=NUMBERS,
    y=NUMBERS,
    z=NUMBERS,
)
def test_no_stand_in_holds_a_result(formula: str, way: SplitWay, x: Value, y: Value, z: Value) -> None:
    """The numbers in a stand-in are operands or what single digits of them stand for, never what is to be found."""
    step = Step("t", formula)
    values: dict[str, Value] = {"x": x, "y": y, "z": z}
    operands = {_digits(abs(Fraction(to_exact(each)))) for each in (x, y, z)}
    for made in (rewrite(step, values), split(step, values, way=way)):
        for number in [] if made is None else _numbers(made):
            assert _digits(number) in operands or len(_digits(number)) <= 1


def _digits(number: Fraction) -> str:
    return str(number.numerator if number.denominator == 1 else float(number)).replace(".", "").strip("0")
