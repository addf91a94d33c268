"""Formulas that are asked without decimal places: the point is put back by code, and a rounding asked afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import cast

import pytest
from tables import all_rows

from stepguard import Guard, Ladder, Procedure, Step
from stepguard.language.evaluation import evaluate
from stepguard.language.expressions import Expression
from stepguard.repair.ladder import DEFAULT_RUNGS
from stepguard.repair.rungs import Split
from stepguard.repair.splitting import Way, split
from stepguard.testing import ScriptedBackend

pytestmark = pytest.mark.once

PRODUCTS = ["7 * 20000", "7 * 6000", "7 * 300", "7 * 10", "7 * 7"]
LEAST = ["7 * 7", "10 * 7", "300 * 7", "6000 * 7", "20000 * 7"]
ADDED = ["p1 + p2", "p6 + p3", "p7 + p4", "p8 + p5"]
DOLLARS = {"x": "263.17", "y": "0.7", "z": "4.95"}
NUMBERS = {"x": "18", "y": "35", "z": "12"}
BEHIND = ["p4 + 6000", "p5 + 300", "p6 + 10", "p7 + 7"]
FIVE = (10000, 2000, 300, 40, 5)
WRITTEN: list[tuple[str, Mapping[str, str], Way, list[str] | None]] = [
    ("x - z", DOLLARS, "whole_numbers", ["26317 - 495"]),
    ("x - z", DOLLARS, "places", ["26317 - 400", "p1 - 90", "p2 - 5"]),
    ("x - z", DOLLARS, "whole_compensation", ["26317 - 500", "p1 + 5"]),
    ("z - x", DOLLARS, "whole_numbers", ["26317 - 495"]),  # and the sign put back
    ("x + (y + z)", DOLLARS, "whole_numbers", ["70 + 495", "26317 + p1"]),
    ("x + (y + z)", DOLLARS, "places", ["70 + 400", "p1 + 90", "p2 + 5", "p3 + 20000", *BEHIND]),
    ("x * y - z", DOLLARS, "whole_numbers", ["26317 * 7", "p1 - 4950"]),
    ("x * y - z", DOLLARS, "places", [*PRODUCTS, *ADDED, "p9 - 4000", "p10 - 900", "p11 - 50"]),
    ("x * y - z", DOLLARS, "whole_compensation", [*LEAST, *ADDED, "p9 - 5000", "p10 + 50"]),
    ("x - y * 0.0001", DOLLARS, "whole_numbers", ["7 * 1", "26317000 - p1"]),
    ("z + -(x - y)", DOLLARS, "whole_numbers", ["26317 - 70", "-p1", "495 + p2"]),
    ("x * y - z", NUMBERS, "whole_numbers", None),  # there is no point
    ("x * y - z", NUMBERS, "places", ["35 * 10", "35 * 8", "p1 + p2", "p3 - 10", "p4 - 2"]),
    ("x - z", NUMBERS, "places", None),  # what other ways take apart
    ("x * y - z", {**DOLLARS, "z": "4.9505"}, "whole_numbers", ["26317 * 70", "p1 - 49505"]),
    ("x // y", DOLLARS, "whole_numbers", None),
    ("x / y - z", DOLLARS, "whole_numbers", None),  # its digits may have no end
    ("x + (x + (x + (x + z)))", DOLLARS, "places", None),  # more small steps than anybody asks
    ("x * y * y * y * y", {**DOLLARS, "y": "0.001"}, "whole_numbers", ["26317 * 1", "p1 * 1", "p2 * 1", "p3 * 1"]),
    ("x * y", {**DOLLARS, "y": "0.0000000000001"}, "whole_numbers", None),  # nor does anybody write that
    ("(x + y) - z", {"x": "0.1", "y": "25", "z": "5.1"}, "whole_numbers", ["1 + 250", "p1 - 51"]),
    ("(x + y) - z", {"x": "0.1", "y": "25", "z": "5.1"}, "places", None),  # 200, of 250, is the value
    (
        "x + (x + (x + x))",
        {**DOLLARS, "x": "1234.5"},
        "places",
        ["12345 + 10000", *(f"p{number} + {digit}" for number, digit in enumerate((2000, 300, 40, 5) + 2 * FIVE, 1))],
    ),
    ("x + 1/3", DOLLARS, "whole_numbers", None),
]


@all_rows("formula, inputs, way, asked", WRITTEN)
def test_a_formula_is_asked_in_whole_numbers(
    formula: str, inputs: Mapping[str, str], way: Way, asked: list[str] | None
) -> None:
    """One operation each, then the digits of each by itself, or by way of round numbers."""
    procedure = Procedure.parse(f"inputs: x, y, z\nt1 = {formula}")
    found = split(procedure.steps[0], procedure.accept_inputs(inputs), way=way)
    assert (None if found is None else [each.formula for each in found.steps]) == asked


def test_what_shows_no_sum_has_no_whole_numbers() -> None:
    """A step in words, a comparison, and one that shows no working are left to other ways."""
    sums = Procedure.parse("inputs: x, y\nt1 = x - y\nt2: boolean = x < y")
    words = Step("t", instruction="Subtract y from x.", reads=("x", "y"), type="number")
    for step in (words, sums.steps[1], sums.steps[0].unworked()):
        assert split(step, sums.accept_inputs({"x": "1.5", "y": "0.5"}), way="places") is None


ROUNDED: list[tuple[str, str, bool]] = [
    *(("money(USD)", "263.17", True), ("money(USD)", "263.10", False), ("decimal(1)", "263.10", True)),
    *(("decimal(3)", "263.17", False), ("number", "263.17", False), ("percent(1)", "0.17", False)),
    ("decimal(0)", "0.5", True),
]


@pytest.mark.parametrize(("kind", "x", "rounded"), ROUNDED)
def test_a_rounding_is_asked_where_there_is_one(kind: str, x: str, rounded: bool) -> None:
    """It is a step of its own, of the exact value, and no other value is asked with its point."""
    procedure = Procedure.parse(f"inputs: x: number, y: number\nt1: {kind} = x * y")
    inputs = procedure.accept_inputs({"x": x, "y": "0.7"})
    found = split(procedure.steps[0], inputs, way="whole_numbers")
    assert found is not None
    (small,) = found.steps
    exact = Fraction(x) * Fraction("0.7")
    known = {small.id: evaluate(cast(Expression, small.expression), {})}
    behind = [evaluate(cast(Expression, step.expression), {}) for step in found.behind(known)]
    assert behind == ([exact] if rounded else [])
    assert rounded or found.restore(known) == exact


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
    assert [rung.way for rung in last] == ["whole_numbers", "places", "whole_compensation", "whole_compensation"]
    stuck = {"p1": "26317 * 7 = 184219", "p2": "184219 - 4950 = 180269"}
    small = ["7 * 20000 = 140000", "7 * 6000 = 42000", "7 * 300 = 2100", "7 * 10 = 70", "7 * 7 = 49"]
    small += ["140000 + 42000 = 182000", "182000 + 2100 = 184100", "184100 + 70 = 184170", "184170 + 49 = 184219"]
    small += ["184219 - 4000 = 180219", "180219 - 900 = 179319", "179319 - 50 = 179269"]
    by_places = {f"p{number}": line for number, line in enumerate(small, 1)}
    with ScriptedBackend(WRONG, stuck, {"p2": stuck["p2"]}, by_places, {"t1": "179.27"}) as model:
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
