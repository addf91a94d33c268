"""Navigating and counting, cut into steps by plain code over their words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from stepguard.evaluation.families.base import Line, RuleCheck, TaskDraft
from stepguard.evaluation.published.bbh_checks import counted, kind_of_thing, moved, returns
from stepguard.evaluation.published.bbh_reader import Solve, draft_of, line_of
from stepguard.evaluation.published.items import constant
from stepguard.language.records import Record, RecordType
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value
from stepguard.procedure.examples import Example
from stepguard.procedure.steps import Step

# Navigate

_POINTS: Final = ("north", "east", "south", "west")
_AT: Final = ValueType(
    kind="record",
    record=RecordType(
        "At",
        (
            ("x", ValueType(kind="integer")),
            ("y", ValueType(kind="integer")),
            ("facing", ValueType(kind="one_of", options=_POINTS)),
        ),
    ),
)
_NAVIGATE: Final = (
    "You start at x = 0, y = 0, facing north. North is y up, east is x up. Steps without a direction go forward; steps "
    "left, right and backward do not turn you."
)
QUESTION: Final = "If you follow these instructions, do you return to the starting point? "
_FORWARD: Final = "Always face forward."
_MOVE: Final = re.compile(r"Take (\d+) steps?(?: (forward|backward|left|right))?\.|Turn (left|right|around)\.")


def navigate(text: str, name: str) -> TaskDraft:
    body, _, options = text.removeprefix(QUESTION).partition("\n")
    moves = [each for each in re.split(r"(?<=\.) ", body) if each != _FORWARD]
    if not text.startswith(QUESTION) or options != "Options:\n- Yes\n- No" or not all(map(_MOVE.fullmatch, moves)):
        raise ValueError("the item is not of the form of navigate")
    inputs: dict[str, tuple[str | ValueType, Value]] = {"start": ("text", "x 0, y 0, facing north")}
    inputs |= {f"move_{number}": ("text", move) for number, move in enumerate(moves, 1)}
    lines: list[Line] = []
    before = "start"
    for number, move in enumerate(moves, 1):
        step = Step(
            f"at_{number}",
            instruction="Make the move: where are you then, and which way do you face?",
            type=_AT,
            reads=[f"move_{number}", before],
            checks=[RuleCheck("the move", moved, (move, before))],
            examples=_MOVES,
        )
        lines.append(line_of(step, _reached(moves[:number])))
        before = step.id
    step = Step(
        "returned",
        instruction="Is that the starting point, x = 0 and y = 0?",
        type="one_of(Yes, No)",
        reads=[before],
        checks=[RuleCheck("the answer", returns, (before,))],
        examples=[Example({"at": Record({"x": 0, "y": 4, "facing": "west"})}, "No", "y is 4")],
    )
    lines.append(line_of(step, constant("Yes" if _walked(moves)[0] == 0 else "No")))
    return draft_of(name, inputs, lines, _NAVIGATE)


def _walked(moves: Sequence[str]) -> tuple[complex, complex]:
    """Place and direction in the plane of complex numbers, where turning left is times i."""
    turns = {"left": 1j, "right": -1j, "around": -1, "backward": -1, "forward": 1, None: 1}
    place, facing = 0j, 1j
    for move in moves:
        match = _MOVE.fullmatch(move)
        assert match is not None
        if match[3]:
            facing *= turns[match[3]]
        else:
            place += int(match[1]) * facing * turns[match[2]]
    return place, facing


def _reached(moves: Sequence[str]) -> Solve:
    place, facing = _walked(moves)
    point = {1j: "north", 1: "east", -1j: "south", -1: "west"}[facing]
    return constant(Record({"x": round(place.real), "y": round(place.imag), "facing": point}))


def _moved(move: str, x: int, y: int, facing: str, after: tuple[int, int, str], why: str) -> Example:
    value = dict(zip(("x", "y", "facing"), after, strict=True))
    return Example({"move": move, "at": Record({"x": x, "y": y, "facing": facing})}, value, why)


_MOVES: Final = (
    _moved("Turn left.", 2, 5, "north", (2, 5, "west"), "left of north is west"),
    _moved("Turn right.", 2, 5, "west", (2, 5, "north"), "right of west is north"),
    _moved("Turn around.", -1, 3, "east", (-1, 3, "west"), "the opposite of east is west"),
    _moved("Take 4 steps.", 2, 5, "south", (2, 1, "south"), "south is y down: 5 - 4 = 1"),
    _moved("Take 4 steps forward.", 2, 5, "north", (2, 9, "north"), "north is y up: 5 + 4 = 9"),
    _moved("Take 3 steps left.", 2, 5, "north", (-1, 5, "north"), "left of north is west, x down: 2 - 3 = -1"),
    _moved("Take 3 steps right.", 2, 5, "north", (5, 5, "north"), "right of north is east, x up: 2 + 3 = 5"),
    _moved("Take 6 steps backward.", 2, 5, "north", (2, -1, "north"), "back of north is y down: 5 - 6 = -1"),
)


# Counting objects

_NUMBERS: Final = ("a", "an", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SIZES: Final = {word: max(at - 1, 1) for at, word in enumerate(_NUMBERS)}
_HAVE: Final = re.compile(r"I have (.*)\. How many (animals|fruits|vegetables|musical instruments|objects) do I have\?")
_COUNT: Final = "Count only what is of the kind that is asked for; add up how many there are."


def counting(text: str, name: str) -> TaskDraft:
    match = _HAVE.fullmatch(text)
    pieces = [] if match is None else re.split(r", and |, | and ", match[1])
    if match is None or not all(piece.partition(" ")[0] in _SIZES and " " in piece for piece in pieces):
        raise ValueError("the item is not of the form of counting objects")
    wanted = match[2]
    inputs: dict[str, tuple[str | ValueType, Value]] = {
        f"item_{at}": ("text", piece) for at, piece in enumerate(pieces, 1)
    }
    lines: list[Line] = []
    for at, piece in enumerate(pieces, 1):
        size, _, thing = piece.partition(" ")
        kind = kind_of_thing(thing)
        if kind is None:
            raise ValueError(f"we do not know what kind of thing {thing!r} is")
        counts = _SIZES[size] if wanted in ("objects", kind) else 0
        step = Step(
            f"count_{at}",
            instruction=f"How many {wanted} are that? 0 if it is something else.",
            type="integer",
            reads=[f"item_{at}"],
            checks=[RuleCheck("the count", counted, (piece, wanted))],
            examples=_counted(wanted),
        )
        lines.append(line_of(step, constant(counts)))
    names = [line.step.id for line in lines]
    total = Step("total", " + ".join(names), type="integer")
    lines.append(
        Line(step=total, solve=_sum(names), work=lambda values: " + ".join(str(values[each]) for each in names))
    )
    return draft_of(name, inputs, lines, _COUNT)


def _sum(names: Sequence[str]) -> Solve:
    def solve(values: Mapping[str, Value]) -> Value:
        return sum(int(str(values[name])) for name in names)

    return solve


def _counted(wanted: str) -> list[Example]:
    own = {
        "animals": "camels",
        "fruits": "kiwis",
        "vegetables": "radishes",
        "musical instruments": "harps",
        "objects": "vases",
    }
    shown = [Example({"item": f"three {own[wanted]}"}, 3, f"{own[wanted]} are {wanted}: three")]
    if wanted != "objects":
        shown.append(Example({"item": "two vases"}, 0, f"vases are no {wanted}"))
    return shown
