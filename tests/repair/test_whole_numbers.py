"""Formulas that are asked without decimal places: the point is put back by code, and a rounding asked afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import cast

import pytest
from tables import all_rows

from stepguard import Guard, Ladder, Procedure, Step
from stepguard.language.evaluation import evaluate
from stepguard.language.expressions import Expression
from stepguard.language.values import Value
from stepguard.repair.ladder import DEFAULT_RUNGS
from stepguard.repair.rungs import Split
from stepguard.repair.splitting import SplitWay, split
from stepguard.testing import ScriptedBackend

pytestmark = pytest.mark.once

DOLLARS = {"x": "263.17", "y": "0.7", "z": "4.95"}
NUMBERS = {"x": "18", "y": "35", "z": "12"}
LONG = {"x": "52658", "y": "3000", "z": "2450"}
TOTAL = ["317 + 70", "p1 + 495", "26 * 1000", "p3 + p2"]
IN_TURN = ["26 + 26", "p1 + 26", "p2 + 26", "317 + 317", "p4 + 317", "p5 + 317", "p6 + 495", "p3 * 1000", "p8 + p7"]
FRONT = ["7 * 20", "7 * 6", "p1 + p2", "p3 - 5"]
BEHIND = ["7 * 300", "7 * 10", "7 * 7", "p5 + p6", "p8 + p7", "p9 + 50"]
SHORT = ["3 * 10", "3 * 8", "p1 + p2", "p3 - 2", "5 * 10", "5 * 8", "p5 + p6", "p7 + 8", "p4 * 10", "p9 + p8"]
MINUS_ONE = ["6 * 10", "6 * 2", "p1 + p2", "p3 - 1", "6 * 300", "6 * 40", "6 * 5", "p5 + p6", "p8 + p7", "p9 + 999"]
NEGATIVE = ["3000 + 2450", "-p1", "p2 * 52", "3000 + 2450", "-p4", "p5 * 658", "p3 * 1000", "p7 + p6"]
WRITTEN: list[tuple[str, Mapping[str, str], SplitWay, list[str] | None]] = [
    ("x - z", DOLLARS, "whole_numbers", ["26317 - 495"]),
    ("z - x", DOLLARS, "whole_numbers", ["26317 - 495"]),  # and the sign put back
    ("x + (y + z)", DOLLARS, "whole_numbers", ["70 + 495", "26317 + p1"]),
    ("x * y - z", DOLLARS, "whole_numbers", ["26317 * 7", "p1 - 4950"]),
    ("x - y * 0.0001", DOLLARS, "whole_numbers", ["7 * 1", "26317000 - p1"]),
    ("z + -(x - y)", DOLLARS, "whole_numbers", ["26317 - 70", "-p1", "495 + p2"]),
    ("x * y - z", NUMBERS, "whole_numbers", None),  # there is no point
    ("x * y - z", {**DOLLARS, "z": "4.9505"}, "whole_numbers", ["26317 * 70", "p1 - 49505"]),
    ("x // y", DOLLARS, "whole_numbers", None),
    ("x / y - z", DOLLARS, "whole_numbers", None),  # its digits may have no end
    ("x * y * y * y * y", {**DOLLARS, "y": "0.001"}, "whole_numbers", ["26317 * 1", "p1 * 1", "p2 * 1", "p3 * 1"]),
    ("x * y", {**DOLLARS, "y": "0.000000000001"}, "whole_numbers", ["26317 * 1"]),
    ("x * y", {**DOLLARS, "y": "0.0000000000001"}, "whole_numbers", None),  # nor does anybody write that
    (" + ".join("x" * 17), {**DOLLARS, "x": "0.5"}, "whole_numbers", ["5 + 5", *(f"p{n} + 5" for n in range(1, 16))]),
    (" + ".join("x" * 18), {**DOLLARS, "x": "0.5"}, "whole_numbers", None),
    ("(x + y) - z", {"x": "0.1", "y": "25", "z": "5.1"}, "whole_numbers", ["1 + 250", "p1 - 51"]),
    ("x + 1/3", DOLLARS, "whole_numbers", None),
    ("x - y", LONG, "thousands", ["52 - 3", "p1 * 1000", "p2 + 658"]),
    ("y - x", LONG, "thousands", ["52 - 3", "p1 * 1000", "p2 + 658"]),
    ("-x - y", LONG, "thousands", ["52 + 3", "p1 * 1000", "p2 + 658"]),
    ("x + y", LONG, "thousands", ["52 + 3", "p1 * 1000", "p2 + 658"]),
    ("x - z", LONG, "thousands", ["52 - 3", "658 + 550", "p1 * 1000", "p3 + p2"]),  # nothing is borrowed
    ("x - y - z", LONG, "thousands", ["52 - 3", "p1 - 3", "658 + 550", "p2 * 1000", "p4 + p3"]),
    ("x + y", {**LONG, "x": "52000"}, "thousands", ["52 + 3", "p1 * 1000"]),
    (
        "x - y",
        {**LONG, "x": "1234567", "y": "345678"},
        "thousands",
        ["1234 - 346", "567 + 322", "p1 * 1000", "p3 + p2"],
    ),
    ("x - y", {**LONG, "x": "3999", "y": "450"}, "thousands", ["39 - 5", "99 + 50", "p1 * 100", "p3 + p2"]),
    ("x - y", {**LONG, "x": "52999", "y": "52001"}, "thousands", None),  # it would be 52 - 53
    ("z - x * y", DOLLARS, "thousands", None),
    ("x - z", DOLLARS, "thousands", ["26 - 1", "317 + 505", "p1 * 1000", "p3 + p2"]),
    ("x + (y + z)", DOLLARS, "thousands", TOTAL),
    ("z + -(y - x)", DOLLARS, "thousands", ["26 - 1", "495 + 317", "p2 + 930", "p1 * 1000", "p4 + p3"]),
    ("x + (x + (x + (x + z)))", DOLLARS, "thousands", IN_TURN),
    ("x * y - z", DOLLARS, "thousands", [*FRONT, *BEHIND, "p4 * 1000", "p11 + p10"]),
    ("x * y - z", NUMBERS, "thousands", SHORT),
    ("x * (y + z)", LONG, "thousands", ["3000 + 2450", "p1 * 52", "3000 + 2450", "p3 * 658", "p2 * 1000", "p5 + p4"]),
    ("(x + y) * (x + z)", LONG, "thousands", None),  # there is no number to part
    (
        "(x + y) - z",
        {"x": "0.1", "y": "25", "z": "5.1"},
        "thousands",
        ["2 - 1", "1 + 50", "p2 + 49", "p1 * 100", "p4 + p3"],
    ),
    ("x + y", {**NUMBERS, "x": "7", "y": "8"}, "thousands", None),
    ("x + y", {**NUMBERS, "x": "10", "y": "5"}, "thousands", ["1 * 10", "p1 + 5"]),
    ("x + y", {**NUMBERS, "x": "71", "y": "22"}, "thousands", ["7 + 2", "1 + 2", "p1 * 10", "p3 + p2"]),
    ("x + y", {**LONG, "x": "999999999999"}, "thousands", ["999999999 + 3", "p1 * 1000", "p2 + 999"]),
    ("x + y", {**LONG, "x": "1000000000000"}, "thousands", None),  # what stands before three digits is as long
    ("x - y", {**LONG, "y": "51500"}, "thousands", ["52 - 52", "658 + 500", "p1 * 1000", "p3 + p2"]),
    ("x * y + z", {**LONG, "x": "12345", "y": "6", "z": "-1"}, "thousands", [*MINUS_ONE, "p4 * 1000", "p11 + p10"]),
    ("x * -(y + z)", LONG, "thousands", NEGATIVE),
    ("x + 0", LONG, "thousands", None),
    ("0 + 0", LONG, "thousands", None),
    ("x - y", {**LONG, "x": "4000", "y": "3900"}, "thousands", None),  # 100, by which it is multiplied, is the value
    ("x * x * x * x", {**LONG, "x": "12345"}, "thousands", None),  # more small steps than anybody asks
]


@all_rows("formula, inputs, way, asked", WRITTEN)
def test_a_formula_is_asked_in_whole_numbers(
    formula: str, inputs: Mapping[str, str], way: SplitWay, asked: list[str] | None
) -> None:
    """One operation each, then what stands before the last digits of its numbers by itself.

    Wherever it went wrong, what is left is asked in steps that lead to the value.
    """
    procedure = Procedure.parse(f"inputs: x, y, z\nt1 = {formula}")
    values = procedure.accept_inputs(inputs)
    found = split(procedure.steps[0], values, way=way)
    assert (None if found is None else [each.formula for each in found.behind({})]) == asked
    for right in range(0 if found is None else len(found.steps)):
        assert found is not None
        known = worked_out(found.steps[:right], {})
        while left := found.behind(known):
            known = worked_out(left, known)
        assert found.restore(known) == evaluate(cast(Expression, procedure.steps[0].expression), values)


def worked_out(steps: Iterable[Step], known: Mapping[str, Value]) -> dict[str, Value]:
    """The values with those of steps that are carried out rightly."""
    values = dict(known)
    for step in steps:
        assert step.id not in values
        values[step.id] = step.type.convert(evaluate(cast(Expression, step.expression), values))
    return values


@all_rows("x, y, asked", [("7158", "2900", ["p3_1 = 10 * 1000", "p3 = p3_1 + 58"]), ("7058", "2900", ["p3 = p2 + 58"])])
def test_a_sum_is_parted_where_it_adds_a_number_of_five_digits(x: str, y: str, asked: list[str]) -> None:
    """A shorter one is asked as it was."""
    procedure = Procedure.parse("inputs: x, y\nt1 = x + y")
    found = split(procedure.steps[0], procedure.accept_inputs({"x": x, "y": y}), way="thousands")
    assert found is not None
    left = found.behind(worked_out(found.steps[:-1], {}))
    assert [f"{step.id} = {step.formula}" for step in left] == asked


def test_no_small_step_is_named_as_the_step() -> None:
    """The value of one would be taken for the step's own."""
    procedure = Procedure.parse("inputs: x, y\np3_1: decimal(1) = x + y")
    found = split(procedure.steps[0], procedure.accept_inputs({"x": "71.58", "y": "29.00"}), way="thousands")
    assert found is not None
    left = found.behind(worked_out(found.steps[:-1], {}))
    assert [step.id for step in left] == ["p3_2", "p3"]


def test_what_shows_no_sum_has_no_whole_numbers() -> None:
    """A step in words, a comparison, and one that shows no working are left to other ways."""
    sums = Procedure.parse("inputs: x, y\nt1 = x - y\nt2: boolean = x < y")
    words = Step("t", instruction="Subtract y from x.", reads=("x", "y"), type="number")
    for step in (words, sums.steps[1], sums.steps[0].unworked()):
        assert split(step, sums.accept_inputs({"x": "1.5", "y": "0.5"}), way="thousands") is None


ROUNDED: list[tuple[str, str, str]] = [
    *(("money(USD)", "263.17", "184.219"), ("money(USD)", "263.10", ""), ("decimal(1)", "263.10", "184.17")),
    *(("decimal(3)", "263.17", ""), ("number", "263.17", ""), ("percent(1)", "0.17", "")),
    *(("decimal(0)", "0.5", "0.35"), ("decimal(0)", "5", "3.5"), ("percent(0)", "0.17", "0.119")),
]


@pytest.mark.parametrize(("kind", "x", "rounded"), ROUNDED)
def test_a_rounding_is_asked_where_there_is_one(kind: str, x: str, rounded: str) -> None:
    """It is a step of its own, of the exact value, and no other value is asked with its point."""
    procedure = Procedure.parse(f"inputs: x: number, y: number\nt1: {kind} = x * y")
    inputs = procedure.accept_inputs({"x": x, "y": "0.7"})
    found = split(procedure.steps[0], inputs, way="whole_numbers")
    assert found is not None
    (small,) = found.steps
    known = worked_out([small], {})
    assert [step.formula for step in found.behind(known)] == ([rounded] if rounded else [])
    assert rounded or found.restore(known) == Fraction(x) * Fraction("0.7")


REFUND = Procedure.parse("inputs: x, y, z\nt1: money(USD) = x * y - z")
WRONG = {"t1": "263.17 * 0.7 - 4.95 = 182.2"}
WHOLE = {"p1": "26317 * 7 = 184219", "p2": "184219 - 4950 = 179269"}


def asked(model: ScriptedBackend) -> list[str]:
    return [request.messages[-1].content for request in model.requests]


def test_the_exact_value_is_rounded_in_a_step_of_its_own() -> None:
    """Once it is verified in whole numbers, the model is asked to round it with its point."""
    with ScriptedBackend(WRONG, WHOLE, {"t1": "179.27"}) as model:
        result = Guard(model, repair=Ladder([Split(way="whole_numbers")])).run(REFUND, DOLLARS)
    assert (result.status, str(result.answer), result.steps[0].assistance) == ("verified", "179.27", "split")
    assert asked(model)[1].endswith("Steps:\np1 = 26317 * 7\np2 = p1 - 4950")
    assert asked(model)[2].endswith("Steps:\nt1 = 179.269, in USD, rounded to 2 decimal places")


def test_a_value_that_is_not_rounded_follows_at_once() -> None:
    """The point is put where it belongs, and so is the sign of a difference that was turned."""
    procedure = Procedure.parse("inputs: x, z\nt1 = z - x")
    replies = [{"t1": "4.95 - 263.17 = -258.12"}, {"p1": "26317 - 495 = 25822"}]
    with ScriptedBackend(*replies) as model:
        result = Guard(model, repair=Ladder([Split(way="whole_numbers")])).run(procedure, {"x": "263.17", "z": "4.95"})
    assert (result.status, result.answer) == ("verified", Fraction("-258.22"))


WRONGLY: list[tuple[dict[str, str], ...]] = [
    (WHOLE, {"t1": "179.26"}),
    ({"p1": "26317 * 7 = 184219", "p2": "184219 - 4950 = 179279"},) * 2,
    ({"p1": "263.17 * 0.7 = 184.219", "p2": "184.219 - 4.95 = 179.269"},),
]


@pytest.mark.parametrize("replies", WRONGLY)
def test_nothing_wrong_in_whole_numbers_is_accepted(replies: tuple[dict[str, str], ...]) -> None:
    """Neither a wrong digit, nor the numbers with their point, nor a wrong rounding of what was right."""
    with ScriptedBackend(WRONG, *replies) as model:
        result = Guard(model, repair=Ladder([Split(way="whole_numbers")])).run(REFUND, DOLLARS)
    assert (result.status, result.answer) == ("abstained", None)
    assert len(model.requests) == 1 + len(replies)


def test_whole_numbers_come_when_every_other_way_has_failed() -> None:
    """What the other ways cure is asked as it was; these cure what a model rounds where it stands."""
    last = [rung for rung in DEFAULT_RUNGS[-4:] if isinstance(rung, Split)]
    assert [rung.way for rung in last] == ["whole_numbers", "thousands", "thousands", "thousands"]
    stuck = {"p1": "26317 * 7 = 184219", "p2": "184219 - 4950 = 180269"}
    small = ["7 * 20 = 140", "7 * 6 = 42", "140 + 42 = 182", "182 - 5 = 177", "7 * 300 = 2100", "7 * 10 = 70"]
    small += ["7 * 7 = 49", "2100 + 70 = 2170", "2170 + 49 = 2219", "2219 + 50 = 2269", "177 * 1000 = 177000"]
    parted = {f"p{number}": line for number, line in enumerate([*small, "177000 + 2269 = 179269"], 1)}
    with ScriptedBackend(WRONG, stuck, {"p2": stuck["p2"]}, parted, {"t1": "179.27"}) as model:
        result = Guard(model, repair=Ladder(last)).run(REFUND, DOLLARS)
    assert (result.status, str(result.answer)) == ("verified", "179.27")


def test_small_steps_are_asked_as_plain_questions_one_by_one() -> None:
    """Each in a call of its own, as a question holds one step; what is verified is not asked again."""
    ladder = Ladder([Split(way="whole_numbers"), Split(way="whole_numbers", wording="question")])
    replies = [{"p1": "26317 * 7 = 184229", "p2": "184229 - 4950 = 179279"}, {"p1": "26317 * 7 = 184219"}]
    with ScriptedBackend(WRONG, *replies, {"p2": "184219 - 4950 = 179269"}, {"t1": "179.27"}) as model:
        result = Guard(model, repair=ladder).run(REFUND, DOLLARS)
    assert (result.status, str(result.answer)) == ("verified", "179.27")
    assert [[step.id for step in request.steps] for request in model.requests[2:]] == [["p1"], ["p2"], ["t1"]]
    assert asked(model)[2].startswith("Multiply 26317 by 7.")
    assert asked(model)[4].startswith("How much is 179.269? Give the result in USD, rounded to 2 decimal places.")


def test_a_sum_of_long_numbers_that_went_wrong_is_parted_as_well() -> None:
    """Once the numbers are verified that it adds; sums of short ones, and what was not reached, are asked as before."""
    front = ["7 * 50 = 350", "7 * 2 = 14", "350 + 14 = 364", "364 - 5 = 359", "7 * 600 = 4200", "7 * 50 = 350"]
    behind = ["7 * 8 = 56", "4200 + 350 = 4550", "4550 + 56 = 4606", "4606 + 50 = 4656", "359 * 1000 = 359000"]
    right = {f"p{number}": line for number, line in enumerate([*front, *behind], 1)}
    right["p12"] = "359000 + 4656 = 364656"
    first = {**right, "p9": "4550 + 56 = 4506"}
    second = {name: right[name] for name in ("p9", "p10", "p11", "p12")}
    third = {"p12_1": "359 + 4 = 363", "p12_2": "363 * 1000 = 363000", "p12": "363000 + 656 = 363565"}
    replies = [first, second, third, {"p12": "363000 + 656 = 363656"}, {"t1": "363.66"}]
    with ScriptedBackend(WRONG, *replies) as model:
        result = Guard(model, repair=Ladder([Split(way="thousands")])).run(
            REFUND, {**DOLLARS, "x": "526.58", "z": "4.95"}
        )
    assert (result.status, str(result.answer)) == ("verified", "363.66")
    lines = [[f"{step.id} = {step.formula}" for step in request.steps] for request in model.requests]
    assert lines[2] == ["p9 = p8 + p7", "p10 = p9 + 50", "p11 = p4 * 1000", "p12 = p11 + p10"]
    assert lines[3] == ["p12_1 = 359 + 4", "p12_2 = p12_1 * 1000", "p12 = p12_2 + 656"]
    assert lines[4] == ["p12 = p12_2 + 656"]
