"""How items of BIG-Bench-Hard are cut into steps, and what is right at each: plain code over their words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from stepguard.evaluation.families.base import Line, TaskDraft
from stepguard.evaluation.published.bbh_checks import CountCheck, FoundCheck, MoveCheck, SaysCheck, SwapCheck
from stepguard.evaluation.published.bbh_things import kind_of_thing
from stepguard.language.records import Record, RecordType
from stepguard.language.value_types import TEXT, ValueType
from stepguard.language.values import Value
from stepguard.procedure.examples import Example
from stepguard.procedure.steps import Input, Step

__all__ = ["PARTS", "BbhReader", "Plausible"]

Plausible = Callable[[str, Value, Mapping[str, Value]], bool]
_Solve = Callable[[Mapping[str, Value]], Value]


@dataclass(frozen=True, slots=True)
class BbhReader:
    """One task.

    Attributes:
        name: as the file has it.
        shown: a small item of our own.
        draft: an item as steps.
        written: the answer as the file writes it, from the value of the last step.
        plausible: what a checker of the form knows, from the item; see `PublishedTask`.
    """

    name: str
    shown: str
    draft: Callable[[str, str], TaskDraft]
    written: Callable[[Value], str]
    plausible: Callable[[str], Plausible] | None = None


def _draft(
    name: str, given: Mapping[str, tuple[str | ValueType, Value]], lines: Sequence[Line], rules: str
) -> TaskDraft:
    return TaskDraft(
        name=name,
        inputs=[Input(each, kind) for each, (kind, _) in given.items()],
        given={each: value for each, (_, value) in given.items()},
        lines=lines,
        material=f"{rules}\n",
        line_tokens=100,
    )


def _line(step: Step, solve: _Solve, brief: str | None = None) -> Line:
    def work(values: Mapping[str, Value]) -> str:
        return "; ".join(f"{name} is {_told(values[name])}" for name in step.reads)

    return Line(step=step, solve=solve, work=work, brief=brief)


def _told(value: Value) -> str:
    if isinstance(value, Record):
        return ", ".join(f"{key} {_told(each)}" for key, each in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)


# Tracking objects

_HAS: Final = re.compile(r"([A-Z][a-z]+) (?:is playing|is dancing with|has an?|gets|has) (.+)")
_SWAP: Final = re.compile(r"(?:First|Then|Finally), (([A-Z][a-z]+) and ([A-Z][a-z]+) [^.]*)\.")
_ASKED: Final = re.compile(r"At the end of [^,]*, ([A-Z][a-z]+) [^\n]*\nOptions:\n(.*)\Z", re.DOTALL)
_TRACKING: Final = "Who has what changes hands step by step; give what both have after the swap."


@dataclass(frozen=True, slots=True)
class _Tracked:
    """An item: what everybody has, who swaps, who is asked for, what the options are."""

    start: Mapping[str, str]
    swaps: tuple[tuple[str, str, str], ...]
    asked: str
    options: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> _Tracked:
        first = re.search(r": ([^:\n]*)\.\n", text)
        asked = _ASKED.search(text)
        if first is None or asked is None:
            raise ValueError("the item is not of the form of tracking shuffled objects")
        start: dict[str, str] = {}
        for piece in re.split(r", and |, ", first[1]):
            has = _HAS.fullmatch(piece.strip())
            if has is None or has[1] in start:
                raise ValueError(f"{piece!r} does not say what somebody has")
            start[has[1]] = has[2]
        swaps = tuple((match[1], match[2], match[3]) for match in _SWAP.finditer(text))
        options = tuple(line.partition(") ")[2] for line in asked[2].splitlines())
        if not swaps or asked[1] not in start or sorted(options) != sorted(start.values()):
            raise ValueError("the options are not what is swapped")
        return cls(start, swaps, asked[1], options)


def _tracking(text: str, name: str) -> TaskDraft:
    item = _Tracked.read(text)
    given: dict[str, tuple[str | ValueType, Value]] = {who: ("text", what) for who, what in item.start.items()}
    given["options"] = ("text", "; ".join(f"{chr(65 + at)}: {each}" for at, each in enumerate(item.options)))
    newest = {who: who for who in item.start}
    lines: list[Line] = []
    for number, (words, one, other) in enumerate(item.swaps, 1):
        reads = tuple(dict.fromkeys((newest[one], newest[other])))
        kind = ValueType(kind="record", record=RecordType("Both", ((one, TEXT), (other, TEXT))))
        step = Step(
            f"swap_{number}",
            instruction=f"{words}. What do {one} and {other} have then?",
            type=kind,
            reads=reads,
            checks=[SwapCheck(one, other, newest[one], newest[other])],
            examples=[
                Example(
                    {one: "a kite", other: "a drum"},
                    {one: "a drum", other: "a kite"},
                    f"{one} had a kite, {other} a drum",
                )
            ],
        )
        lines.append(_line(step, _after(item, number, one, other)))
        newest[one] = newest[other] = step.id
    held = newest[item.asked]
    letters = ValueType(kind="one_of", options=tuple(chr(65 + at) for at in range(len(item.options))))
    step = Step(
        "chosen",
        instruction=f"Which of the options does {item.asked} have?",
        type=letters,
        reads=[held, "options"],
        checks=[FoundCheck(item.asked, held)],
        examples=[Example({item.asked: "a kite", "options": "A: a drum; B: a kite"}, "B", f"{item.asked} has a kite")],
    )
    lines.append(_line(step, lambda values: _letter(item, values[held])))
    return _draft(name, given, lines, _TRACKING)


def _after(item: _Tracked, number: int, one: str, other: str) -> _Solve:
    """What two people have after so many swaps, from the start: it looks at no value of a step."""

    def solve(values: Mapping[str, Value]) -> Value:
        people = list(item.start)
        held = list(item.start.values())
        for _, first, second in item.swaps[:number]:
            a, b = people.index(first), people.index(second)
            held[a], held[b] = held[b], held[a]
        return Record({one: held[people.index(one)], other: held[people.index(other)]})

    return solve


def _letter(item: _Tracked, value: Value) -> Value:
    what = value[item.asked] if isinstance(value, Record) else value
    return chr(65 + item.options.index(str(what)))


def _permutes(text: str) -> Plausible:
    """A swap leaves the two things with the two people, in whichever order."""
    item = _Tracked.read(text)

    def plausible(step: str, value: Value, accepted: Mapping[str, Value]) -> bool:
        if not isinstance(value, Record):
            return True
        held = dict(item.start)
        for number in range(1, int(step.rpartition("_")[2])):
            record = accepted[f"swap_{number}"]
            if isinstance(record, Record):
                held |= {who: str(what) for who, what in record.items()}
        return sorted(map(str, value.values())) == sorted(held[who] for who in value)

    return plausible


# Web of lies

_SAYS: Final = re.compile(r"([A-Z][a-z]+) says ([A-Z][a-z]+) (tells the truth|lies)\.")
_IS: Final = re.compile(r"Question: ([A-Z][a-z]+) (tells the truth|lies)\.")
_WEB: Final = "Whoever says of somebody what is so tells the truth, and whoever says what is not so lies."


def _web(text: str, name: str) -> TaskDraft:
    first = _IS.match(text)
    chain = _SAYS.findall(text)
    last = re.search(r" Does ([A-Z][a-z]+) tell the truth\?\Z", text)
    if first is None or last is None or len({first[1], *(who for who, *_ in chain)}) != len(chain) + 1:
        raise ValueError("the item is not of the form of a web of lies")
    said = {first[1]: f"{first[1]} {first[2]}.", **{who: f"{who} says {whom} {what}." for who, whom, what in chain}}
    if f"Question: {' '.join(said.values())} Does {list(said)[-1]} tell the truth?" != text:
        raise ValueError("the item says more than a web of lies does")
    given: dict[str, tuple[str | ValueType, Value]] = {
        f"said_{at}": ("text", each) for at, each in enumerate(said.values())
    }
    honest = {first[1]: first[2] == "tells the truth"}
    lines: list[Line] = []
    for at, (who, whom, what) in enumerate([(first[1], "", first[2]), *chain]):
        if whom and whom not in honest:
            raise ValueError(f"nothing is known of {whom}")
        honest.setdefault(who, honest.get(whom, False) == (what == "tells the truth"))
        step = Step(
            who,
            instruction="By what is said, does who is named first tell the truth?",
            type="boolean",
            reads=[f"said_{at}", *([whom] if whom else [])],
            checks=[SaysCheck(whom, what)],
            examples=_web_examples(bool(whom)),
        )
        lines.append(_line(step, _constant(honest[who])))
    return _draft(name, given, lines, _WEB)


def _web_examples(about: bool) -> list[Example]:
    if not about:
        return [
            Example({"said": "Nora lies."}, False, "Nora lies"),
            Example({"said": "Nora tells the truth."}, True, "so it is"),
        ]
    return [
        Example({"said": "Nora says Ben lies.", "Ben": True}, False, "Ben tells the truth, Nora says that he lies"),
        Example({"said": "Nora says Ben lies.", "Ben": False}, True, "Ben lies, and Nora says so"),
        Example({"said": "Nora says Ben tells the truth.", "Ben": True}, True, "Ben tells the truth, and Nora says so"),
        Example(
            {"said": "Nora says Ben tells the truth.", "Ben": False}, False, "Ben lies, Nora says that he does not"
        ),
    ]


def _constant(value: Value) -> _Solve:
    return lambda _: value


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
_QUESTION: Final = "If you follow these instructions, do you return to the starting point? "
_FORWARD: Final = "Always face forward."
_MOVE: Final = re.compile(r"Take (\d+) steps?(?: (forward|backward|left|right))?\.|Turn (left|right|around)\.")


def _navigate(text: str, name: str) -> TaskDraft:
    body, _, options = text.removeprefix(_QUESTION).partition("\n")
    moves = [each for each in re.split(r"(?<=\.) ", body) if each != _FORWARD]
    if not text.startswith(_QUESTION) or options != "Options:\n- Yes\n- No" or not all(map(_MOVE.fullmatch, moves)):
        raise ValueError("the item is not of the form of navigate")
    given: dict[str, tuple[str | ValueType, Value]] = {"start": ("text", "x 0, y 0, facing north")}
    given |= {f"move_{number}": ("text", move) for number, move in enumerate(moves, 1)}
    lines: list[Line] = []
    before = "start"
    for number, move in enumerate(moves, 1):
        step = Step(
            f"at_{number}",
            instruction="Make the move: where are you then, and which way do you face?",
            type=_AT,
            reads=[f"move_{number}", before],
            checks=[MoveCheck(move, before)],
            examples=_MOVES,
        )
        lines.append(_line(step, _reached(moves[:number])))
        before = step.id
    step = Step(
        "returned",
        instruction="Is that the starting point, x = 0 and y = 0?",
        type="one_of(Yes, No)",
        reads=[before],
        checks=[FoundCheck("", before)],
        examples=[Example({"at": Record({"x": 0, "y": 4, "facing": "west"})}, "No", "y is 4")],
    )
    lines.append(_line(step, _returned(moves)))
    return _draft(name, given, lines, _NAVIGATE)


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


def _reached(moves: Sequence[str]) -> _Solve:
    place, facing = _walked(moves)
    point = {1j: "north", 1: "east", -1j: "south", -1: "west"}[facing]
    return _constant(Record({"x": round(place.real), "y": round(place.imag), "facing": point}))


def _returned(moves: Sequence[str]) -> _Solve:
    return _constant("Yes" if _walked(moves)[0] == 0 else "No")


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


def _counting(text: str, name: str) -> TaskDraft:
    match = _HAVE.fullmatch(text)
    pieces = [] if match is None else re.split(r", and |, | and ", match[1])
    if match is None or not all(piece.partition(" ")[0] in _SIZES and " " in piece for piece in pieces):
        raise ValueError("the item is not of the form of counting objects")
    wanted = match[2]
    given: dict[str, tuple[str | ValueType, Value]] = {
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
            checks=[CountCheck(piece, wanted)],
            examples=_counted(wanted),
        )
        lines.append(_line(step, _constant(counts)))
    names = [line.step.id for line in lines]
    total = Step("total", " + ".join(names), type="integer")
    lines.append(
        Line(step=total, solve=_sum(names), work=lambda values: " + ".join(str(values[each]) for each in names))
    )
    return _draft(name, given, lines, _COUNT)


def _sum(names: Sequence[str]) -> _Solve:
    def solve(values: Mapping[str, Value]) -> Value:
        return sum(int(str(values[each])) for each in names)

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


PARTS: Final[Mapping[str, BbhReader]] = {
    "tracking": BbhReader(
        "tracking_shuffled_objects_seven_objects",
        "Ada, Bo, and Cy hold cards. At the start, they each have one: Ada has a star card, Bo has a moon card, and Cy "
        "has a sun card.\nFirst, Ada and Cy swap cards. Finally, Cy and Bo swap cards. At the end of the game, Bo has "
        "the\nOptions:\n(A) star card\n(B) moon card\n(C) sun card",
        _tracking,
        lambda value: f"({value})",
        _permutes,
    ),
    "web_of_lies": BbhReader(
        "web_of_lies",
        "Question: Ada lies. Bo says Ada lies. Cy says Bo lies. Does Cy tell the truth?",
        _web,
        lambda value: "Yes" if value is True else "No",
    ),
    "navigate": BbhReader(
        "navigate",
        f"{_QUESTION}Take 2 steps. Turn right. Take 3 steps. Turn around. Take 3 steps left.\nOptions:\n- Yes\n- No",
        _navigate,
        str,
    ),
    "object_counting": BbhReader(
        "object_counting",
        "I have a kiwi, two vases, and three mangoes. How many fruits do I have?",
        _counting,
        str,
    ),
}
"""The tasks by the names of the knob."""
