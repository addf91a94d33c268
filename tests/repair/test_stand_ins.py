"""What is asked in the place of a step: other orders, and smaller steps that need not be asked twice."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import all_rows

from stepguard import Guard, Ladder, Procedure
from stepguard.errors import ConfigError
from stepguard.language.evaluation import evaluate
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.values import Value
from stepguard.repair.rungs import Rewrite, Rung, Split
from stepguard.repair.splitting import SplitWay, split
from stepguard.testing import ScriptedBackend

pytestmark = pytest.mark.once

SUM = Procedure.parse("inputs: x, y\nt1 = x - y\nt2 = t1 * 3")
INPUTS = {"x": 94, "y": -2_045}
WRONG = {"t1": "94 - (-2045) = 2039"}
AFTER = {"t2": "2139 * 3 = 6417"}


def formulas(model: ScriptedBackend) -> list[list[str | None]]:
    return [[step.formula for step in request.steps] for request in model.requests]


TURNED: list[tuple[Rung, list[str], Mapping[str, str]]] = [
    (Rewrite(), ["94 + 2045"], {"t1": "94 + 2045 = 2139"}),
    (Rewrite(turned=True), ["2045 + 94"], {"t1": "2045 + 94 = 2139"}),
    (
        Split(),
        ["94 + 2000", "p1 + 40", "p2 + 5"],
        {"p1": "94 + 2000 = 2094", "p2": "2094 + 40 = 2134", "t1": "2134 + 5 = 2139"},
    ),
    (
        Split(way="round_numbers"),
        ["2045 + 60", "p1 + 30", "p2 + 4"],
        {"p1": "2045 + 60 = 2105", "p2": "2105 + 30 = 2135", "t1": "2135 + 4 = 2139"},
    ),
    (Split(way="compensation"), ["2045 + 100", "p1 - 6"], {"p1": "2045 + 100 = 2145", "t1": "2145 - 6 = 2139"}),
]


@all_rows("rung, asked, reply", TURNED)
def test_a_sum_is_written_in_another_way(rung: Rung, asked: list[str], reply: Mapping[str, str]) -> None:
    """The other number comes first, or one or both are taken apart; what is verified is the step's own value."""
    with ScriptedBackend(WRONG, reply, AFTER) as model:
        result = Guard(model, segment=1, repair=Ladder([rung])).run(SUM, INPUTS)
    assert (result.status, result.answer) == ("verified", 6417)
    assert formulas(model)[1] == asked


PLAIN: list[tuple[str, list[str] | None]] = [
    ("x + y", ["48 + 37"]),
    ("x * y", ["48 * 37"]),
    ("y - x", None),  # a difference has no other order
]


@pytest.mark.parametrize(("formula", "turned"), PLAIN)
def test_a_plain_sum_or_product_is_only_turned(formula: str, turned: list[str] | None) -> None:
    """Where nothing is to be rewritten the other order is another way of asking; a difference has none."""
    step = Procedure.parse(f"inputs: x, y\nt1 = {formula}").steps[0]
    values = {"x": 37, "y": 48}
    assert Rewrite().stand_in(step, values) is None
    found = Rewrite(turned=True).stand_in(step, values)
    assert (None if found is None else [each.formula for each in found.steps]) == turned


FINER: list[tuple[str, int, int, list[str] | None]] = [
    *(("x + y", 187, 7, ["187 + 3", "p1 + 4"]), ("x + y", 7, 187, ["187 + 3", "p1 + 4"])),
    *(("x - y", 137, 8, ["137 - 7", "p1 - 1"]), ("x - y", 220, 30, ["220 - 20", "p1 - 10"])),
    ("x - y", 217, 88, ["217 - 10", "p1 - 70", "p2 - 7", "p3 - 1"]),
    ("x * y", 85, 3, ["80 * 3", "5 * 3", "p1 + p2"]),
    ("x * y + 4", 85, 3, ["80 * 3", "5 * 3", "p1 + p2", "p3 + 4"]),
    ("x * y + 4", -85, 3, ["-85 * 3", "p1 + 4"]),
    ("x * y / 10 + 4", 85, 3, ["80 * 3", "5 * 3", "p1 + p2", "p3 / 10", "p4 + 4"]),
    ("x * 0.7 * y", 85, 3, ["5 * 0.7", "80 * 0.7", "p1 + p2", "p3 * 3"]),  # of decimals the least comes first
    ("x + y", 999, 1, None),  # it ends on the round number
    ("x + y", 45, 3, None),  # nothing carries
    ("x - y", 12, 7, None),  # one part would be 5, which is the value
    ("x - y", 105, 55, None),  # one part would be 50
]


@all_rows("formula, x, y, asked", FINER)
def test_a_carry_goes_by_way_of_the_round_number(formula: str, x: int, y: int, asked: list[str] | None) -> None:
    """A digit that carries or borrows is taken in two; never so that a part is the value itself."""
    step = Procedure.parse(f"inputs: x, y\nt1 = {formula}").steps[0]
    found = Split(way="round_numbers").stand_in(step, {"x": x, "y": y})
    assert (None if found is None else [each.formula for each in found.steps]) == asked


COMPENSATED: list[tuple[str, str, str, list[str] | None]] = [
    *(("x + y", "94", "204", ["204 + 100", "p1 - 6"]), ("x - y", "94", "-204", ["204 + 100", "p1 - 6"])),
    *(("x + y", "45", "37", ["45 + 40", "p1 - 3"]), ("x + y", "1.5", "0.25", ["1.5 + 0.3", "p1 - 0.05"])),
    *(("x + y", "220", "30", ["220 + 100", "p1 - 70"]), ("x + y", "200", "30", ["200 + 100", "p1 - 70"])),
    *(("x - y", "220", "30", ["220 - 100", "p1 + 70"]), ("x - y", "-261", "-179", ["261 - 200", "p1 + 21"])),
    ("x - y", "245", "238", ["245 - 240", "p1 + 2"]),
    ("x - y", "200", "179", ["200 - 180", "p1 + 1"]),  # not by way of 200, where 21 would be put back: the value
    ("x - y", "98", "95", None),
    ("x - y", "12", "1/3", None),  # its digits have no end
    ("x + y", "1/3", "1/7", None),
    ("x * y", "7", "19", ["7 * 20", "7 * 1", "p1 - p2"]),
    *(("x / 2 - y", "72", "28", ["72 / 2", "p1 - 28"]), ("x / 2 - y", "60", "28", ["60 / 2", "p1 - 28"])),  # 8 and 2
    ("x / 2 - y", "72", "-28", ["72 / 2", "p1 - (-28)"]),
    ("x / 4", "7", "19", None),
]


@all_rows("formula, x, y, asked", COMPENSATED)
def test_a_number_is_rounded_up_and_the_rest_put_back(formula: str, x: str, y: str, asked: list[str] | None) -> None:
    """It is the one that rounding changes least; never so that a part is the value itself."""
    procedure = Procedure.parse(f"inputs: x, y\nt1 = {formula}")
    found = Split(way="compensation").stand_in(procedure.steps[0], procedure.accept_inputs({"x": x, "y": y}))
    assert (None if found is None else [each.formula for each in found.steps]) == asked


EIGHT_DIGITS = [f"7 * {digit}{'0' * (8 - digit)}" for digit in range(1, 9)]
EIGHT_DIGITS += ["p1 + p2", *(f"p{number + 6} + p{number}" for number in range(3, 9))]
ONES = [f"p{number} + 1" for number in range(1, 15)]
TAKEN_APART: list[tuple[str, SplitWay, tuple[str, ...], list[str] | None]] = [
    # One operation on two numbers.
    ("t1 = x + y", "compensation", ("0", "95"), ["0 + 100", "p1 - 5"]),
    ("t1 = x + y", "compensation", ("45", "100"), ["100 + 50", "p1 - 5"]),
    ("t1 = x + y", "compensation", ("100", "100"), None),
    ("t1 = x * y", "compensation", ("1.5", "3"), ["3 * 2", "3 * 0.5", "p1 - p2"]),
    ("t1: decimal(2) = x * y", "digits", ("-0.5", "24.95"), None),  # not every rounding is the same below zero
    ("t1 = x * y", "digits", ("12345678", "7"), EIGHT_DIGITS),
    ("t1 = x * y", "digits", ("123456789", "7"), None),
    ("t1 = x * y", "digits", ("1.25", "0.8"), None),  # one part would be 1, which is the value
    ("t1 = x * y", "round_numbers", ("85", "0.5"), ["5 * 0.5", "80 * 0.5", "p1 + p2"]),
    ("t1 = x + y", "digits", (f"{10**29 + 1}", f"{10**29 + 1}"), [f"{10**29 + 1} + {10**29}", "p1 + 1"]),
    ("t1 = x + y", "digits", (f"{10**30 + 1}", f"{10**30 + 1}"), None),  # longer than anybody takes apart
    ("t1 = x + y", "digits", ("1", "0"), None),
    ("t1 = x + y", "round_numbers", ("199", "5"), ["199 + 1", "p1 + 4"]),
    ("t1 = x - y", "round_numbers", ("205", "13"), ["205 - 10", "p1 - 3"]),
    ("t1 = x + y", "round_numbers", ("1.75", "0.08"), ["1.75 + 0.05", "p1 + 0.03"]),
    ("t1: decimal(0, floor) = x + y", "digits", ("12.5", "5"), None),  # there is one digit to add
    # Several, of which the last is on what came before.
    ("t1 = x * y + 1", "compensation", ("123456789", "7"), ["123456789 * 7", "p1 + 1"]),
    ("t1 = x * y + 4", "round_numbers", ("-0.5", "85"), ["-0.5 * 85", "p1 + 4"]),
    ("t1 = x * y - z", "compensation", ("8", "7", "0.75"), ["8 * 7", "p1 - 1", "p2 + 0.25"]),
    ("t1 = x * y + z", "compensation", ("8", "7", "-0.75"), ["8 * 7", "p1 + (-0.75)"]),
    ("t1 = x * y + z", "compensation", ("8", "7", "12"), ["8 * 7", "p1 + 20", "p2 - 8"]),
    ("t1 = z * (x + y)", "compensation", ("8", "7", "12"), ["8 + 7", "p1 * 10", "p1 * 2", "p2 + p3"]),
    ("t1 = x + y + z", "digits", ("8", "7", "12"), ["8 + 7", "p1 + 12"]),
    ("t1: decimal(2) = 1 + x * y", "digits", ("24.95", "0.7"), ["24.95 * 0.7", "p1", "1 + p2"]),
    ("t1 = round(x + y, 1)", "digits", ("3", "4"), ["3 + 4", "round(p1, 1, half_up)"]),
    # A comparison, and its numbers.
    ("t1: boolean = x > 0", "digits", ("3",), ["3 - 0"]),
    ("t1: boolean = x > y", "digits", ("3", "-0.5"), ["3 + 0.5"]),
    ("t1: boolean = x > y", "round_numbers", ("-3", "4"), ["4 + 3"]),
    ("t1: boolean = x > y", "digits", ("1/3", "1"), None),  # its digits have no end
    ("t1: boolean = x > y", "compensation", ("3", "4"), None),
    ("t1: boolean = x > y and y > 1", "compensation", ("3", "4"), None),
    ("t1: boolean = x > y and y > 1", "round_numbers", ("3", "4"), ["4 - 3", "1 - 4"]),
    ("t1: boolean = x" + " + 1" * 15 + " > y", "digits", ("3", "4"), ["3 + 1", *ONES, "p15 - 4"]),
    ("t1: boolean = x" + " + 1" * 16 + " > y", "digits", ("3", "4"), None),
    ("t1: boolean = " + " and ".join(f"x > {n}" for n in range(16)), "digits", ("3",), [f"3 - {n}" for n in range(16)]),
    ("t1: boolean = " + " and ".join(f"x > {n}" for n in range(17)), "digits", ("3",), None),
    ("t1: boolean = not x > 1", "digits", ("3",), ["3 - 1"]),
]  # fmt: skip


@all_rows("step, way, numbers, asked", TAKEN_APART)
def test_how_a_formula_is_taken_apart(
    step: str, way: SplitWay, numbers: tuple[str, ...], asked: list[str] | None
) -> None:
    """Into at most sixteen steps, none of which calculates with an endless number or holds the value."""
    procedure = Procedure.parse(f"inputs: x, y, z\n{step}")
    found = split(
        procedure.steps[0], procedure.accept_inputs(dict(zip("xyz", (*numbers, "0", "0"), strict=False))), way=way
    )
    assert (None if found is None else [each.formula for each in found.steps]) == asked


LAST_OPERATION: list[tuple[str, list[str]]] = [
    ("t1: decimal(2) = x * y - z", ["0.5 * 80", "0.5 * 0.6", "p1 + p2", "p3 - 20", "p4 + 0.05"]),
    ("t1: decimal(1) = z + x * y", ["0.5 * 80", "0.5 * 0.6", "p1 + p2", "p3 + 20", "p4 - 0.05", "p5"]),
    ("t1 = (x + y) * z", ["80.6 + 0.5", "p1 * 10", "p1 * 9", "p1 * 0.9", "p1 * 0.05", "p2 + p3", "p6 + p4", "p7 + p5"]),
    ("t1: decimal(2) = z - x * y", ["0.5 * 80", "0.5 * 0.6", "p1 + p2", "19.95 - p3"]),  # p3 is not known yet
    ("t1: decimal(2) = (x + z) / 3", ["80.6 + 19.95", "p1 / 3"]),  # its digits have no end
    ("t1: decimal(2) = (x + z) / 4", ["80.6 + 19.95", "p1 / 4", "p2"]),
    ("t1 = x - y - 5", ["80.6 - 0.5", "p1 - 5"]),
    ("t1 = x - y - 28", ["80.6 - 0.5", "p1 - 30", "p2 + 2"]),
]


@all_rows("step, asked", LAST_OPERATION)
def test_the_last_of_several_operations_is_taken_apart(step: str, asked: list[str]) -> None:
    """Its number is rounded up, or multiplied by digit by digit, and the step's rounding stands by itself."""
    procedure = Procedure.parse(f"inputs: x, y, z\n{step}")
    inputs = procedure.accept_inputs({"x": "80.6", "y": "0.5", "z": "19.95"})
    found = Split(way="compensation").stand_in(procedure.steps[0], inputs)
    assert found is not None
    assert [each.formula for each in found.steps] == asked


@pytest.mark.parametrize(
    ("price", "way", "steps"),
    [("12345.67", "compensation", 16), ("123456.78", "digits", 3), ("1234567.89", "round_numbers", 3)],
)
def test_a_long_number_is_taken_apart_as_far_as_sixteen_steps(price: str, way: SplitWay, steps: int) -> None:
    """A price of seven digits times a rate, less a fee, is asked digit by digit; one of more digits is not."""
    procedure = Procedure.parse("inputs: x, y, z\nt1: decimal(2) = x * y - z")
    inputs = procedure.accept_inputs({"x": price, "y": "0.7", "z": "19.95"})
    found = split(procedure.steps[0], inputs, way=way)
    assert found is not None
    assert len(found.steps) == steps
    assert (split(procedure.steps[0], inputs, way="round_numbers") is None) == (way == "digits")


def test_a_result_that_is_right_but_not_rounded_is_rounded_in_a_step_of_its_own() -> None:
    """Models give all the digits of what they worked out; the exact value is verified, then its rounding asked."""
    procedure = Procedure.parse("inputs: x, y, z\nt1: decimal(2) = x * y - z")
    exact = {"p1": "360.69 * 0.4 = 144.276", "p2": "144.276 - 4.955 = 139.321"}
    with ScriptedBackend(
        {"t1": "360.69 * 0.4 - 4.955 = 139.321"}, {**exact, "t1": "139.321"}, {"t1": "139.32"}
    ) as model:
        result = Guard(model, repair=Ladder([Split()])).run(procedure, {"x": "360.69", "y": "0.4", "z": "4.955"})
    assert (result.status, str(result.answer)) == ("verified", "139.32")
    assert formulas(model)[-1] == ["p2"]


PRODUCTS = ["0.7 * 20", "0.7 * 4", "0.7 * 0.9", "0.7 * 0.05"]
ROUNDED: list[tuple[str, str, str, list[str] | None]] = [
    ("x * y", "decimal(2)", "24.95", [*PRODUCTS, "p1 + p2", "p5 + p3", "p6 + p4", "p7"]),
    ("x / 4", "money(EUR)", "24.95", ["24.95 / 4", "p1"]),
    ("x / 3", "decimal(2)", "24.95", None),  # its digits have no end
    ("x / 4", "decimal(4)", "24.95", None),  # no rounding is needed
    ("x * y - 1.5", "decimal(2)", "24.95", ["24.95 * 0.7", "p1", "p2 - 1.5"]),
    ("x * y - 1.5", "decimal(2, floor)", "24.95", ["24.95 * 0.7", "p1", "p2 - 1.5"]),
    ("20 - x * y", "decimal(2)", "24.91", ["24.91 * 0.7", "p1", "20 - p2"]),
    ("20 - x * y", "decimal(2)", "24.95", ["24.95 * 0.7", "20 - p1", "p2"]),  # a tie, which goes the other way
    ("x * y - 1.556", "decimal(2)", "24.95", ["24.95 * 0.7", "p1 - 1.556", "p2"]),
    ("x * y * 1", "decimal(2)", "24.95", ["24.95 * 0.7", "p1 * 1", "p2"]),
    ("x * y + 1", "percent(1)", "0.1234", ["0.1234 * 0.7", "p1", "p2 + 1"]),
    ("x * y + 1", "percent(1)", "0.13", ["0.13 * 0.7", "p1 + 1"]),
    ("x * y + 1", "number", "24.95", ["24.95 * 0.7", "p1 + 1"]),
]


@pytest.mark.parametrize(("formula", "kind", "x", "asked"), ROUNDED)
def test_no_small_step_both_calculates_and_rounds(formula: str, kind: str, x: str, asked: list[str] | None) -> None:
    """Rounding is a step of its own, and before the last sum where that is the same."""
    procedure = Procedure.parse(f"inputs: x: number, y: number\nt1: {kind} = {formula}")
    inputs = procedure.accept_inputs({"x": x, "y": "0.7"})
    found = split(procedure.steps[0], inputs)
    assert "/" not in formula or split(procedure.steps[0], inputs, way="round_numbers") is None
    assert (None if found is None else [each.formula for each in found.steps]) == asked
    known: dict[str, Value] = {}
    for each in () if found is None else found.steps:
        assert each.expression is not None
        known[each.id] = each.type.convert(evaluate(each.expression, known))
    result = evaluate(parse_expression(formula), inputs)
    assert known.get("t1") == (None if found is None else procedure.steps[0].type.convert(result))


@given(
    x=st.integers(-5000, 5000),
    y=st.integers(-5000, 5000),
    operator=st.sampled_from("+-*"),
    way=st.sampled_from(get_args(SplitWay)),
)
def test_small_steps_lead_to_the_value_and_do_not_hold_it(x: int, y: int, operator: str, way: SplitWay) -> None:
    """Worked out one after the other they give the value of the step, which stands in none of them."""
    step = Procedure.parse(f"inputs: x, y\nt1 = x {operator} y").steps[0]
    found = split(step, {"x": x, "y": y}, way=way)
    if found is None:
        return
    known: dict[str, Value] = {}
    for each in found.steps:
        assert each.expression is not None
        known[each.id] = evaluate(each.expression, known)
    right = {"+": x + y, "-": x - y, "*": x * y}[operator]
    assert found.restore(known) == right
    numbers = {
        int(number) for each in found.steps for number in re.findall(r"\bp?\d+", each.formula or "") if number[0] != "p"
    }
    assert abs(right) not in numbers - {abs(x), abs(y)}


def test_a_verified_small_step_is_not_asked_again() -> None:
    """The next call asks what is left, with the verified values given, also on a rung that is used once."""
    replies = [
        {"p1": "94 + 2000 = 2094", "p2": "2094 + 40 = 2034", "t1": "2034 + 5 = 2039"},
        {"p2": "2094 + 40 = 2134", "t1": "2134 + 5 = 2193"},
        {"t1": "2134 + 5 = 2139"},
    ]
    with ScriptedBackend(WRONG, *replies, AFTER) as model:
        result = Guard(model, segment=1, repair=Ladder([Split()])).run(SUM, INPUTS)
    assert result.verified
    assert formulas(model)[1:4] == [["94 + 2000", "p1 + 40", "p2 + 5"], ["p1 + 40", "p2 + 5"], ["p2 + 5"]]
    assert model.requests[3].messages[-1].content == "Steps:\nt1 = 2134 + 5"
    assert [attempt.rung for attempt in result.attempts] == ["ask", "split", "split", "split", "ask"]
    assert (result.steps[0].assistance, result.steps[0].tries) == ("split", 4)


def test_a_split_that_gets_no_further_is_given_up() -> None:
    """What stands still uses the rung up, whatever was verified before."""
    still = {"p2": "2094 + 40 = 2034", "t1": "2034 + 5 = 2039"}
    with ScriptedBackend(WRONG, {"p1": "94 + 2000 = 2094", **still}, still) as model:
        result = Guard(model, segment=1, repair=Ladder([Split()])).run(SUM, INPUTS)
    assert result.status == "abstained"
    assert len(model.requests) == 3


def test_two_ways_to_split_share_no_values() -> None:
    """Small steps of the same names stand for other sums in another way of splitting."""
    first = {"p1": "94 + 2000 = 2094", "p2": "2094 + 40 = 2034", "t1": "2034 + 5 = 2039"}
    still = {"p2": "2094 + 40 = 2034", "t1": "2034 + 5 = 2039"}
    finer = {"p1": "2045 + 60 = 2105", "p2": "2105 + 30 = 2135", "t1": "2135 + 4 = 2139"}
    with ScriptedBackend(WRONG, first, still, finer, AFTER) as model:
        result = Guard(model, segment=1, repair=Ladder([Split(), Split(way="round_numbers")])).run(SUM, INPUTS)
    assert result.verified
    assert formulas(model)[3] == ["2045 + 60", "p1 + 30", "p2 + 4"]


def test_a_wrong_value_of_a_small_step_cannot_come_back() -> None:
    """What a later reply says of a verified small step is used only where it is its value."""
    replies = [
        {"p1": "94 + 2000 = 2094", "p2": "2094 + 40 = 2034", "t1": "2034 + 5 = 2039"},
        {"p2": "2099 + 40 = 2139", "t1": "2139 + 5 = 2144"},
    ]
    with ScriptedBackend(WRONG, *replies) as model:
        result = Guard(model, segment=1, repair=Ladder([Split()])).run(SUM, INPUTS)
    assert result.status == "abstained"
    assert result.attempts[-1].deviations[0].kind == "wrong_operand"


def test_a_way_of_splitting_that_does_not_exist_is_refused() -> None:
    """It is named, with those that there are."""
    with pytest.raises(ConfigError, match=r"way is one of 'digits', 'round_numbers', .*, not 'columns'"):
        Split(way="columns")  # type: ignore[arg-type]
