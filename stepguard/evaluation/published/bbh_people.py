"""Tracking objects and webs of lies, cut into steps by plain code over their words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from stepguard.evaluation.families.base import Line, RuleCheck, TaskDraft
from stepguard.evaluation.published.bbh_checks import honest, names_option, swapped
from stepguard.evaluation.published.bbh_reader import Plausible, Solve, draft_of, line_of
from stepguard.evaluation.published.items import constant
from stepguard.language.records import Record, RecordType
from stepguard.language.value_types import TEXT, ValueType
from stepguard.language.values import Value
from stepguard.procedure.examples import Example
from stepguard.procedure.steps import Step

# Tracking objects

_HAS: Final = re.compile(r"([A-Z][a-z]+) (?:is playing|is dancing with|has an?|gets|has) (.+)")
_SWAP: Final = re.compile(r"(?:First|Then|Finally), (([A-Z][a-z]+) and ([A-Z][a-z]+) [^.]*)\.")
_QUESTION: Final = re.compile(r"At the end of [^,]*, ([A-Z][a-z]+) [^\n]*\nOptions:\n(.*)\Z", re.DOTALL)
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
        asked = _QUESTION.search(text)
        if first is None or asked is None:
            raise ValueError("the item is not of the form of tracking shuffled objects")
        start: dict[str, str] = {}
        for piece in re.split(r", and |, ", first[1]):
            has = _HAS.fullmatch(piece.strip())
            if has is None or has[1] in start:
                raise ValueError(f"{piece!r} does not say what somebody has")
            start[has[1]] = has[2]
        story = text[first.end() : asked.start()]
        swaps = tuple((match[1], match[2], match[3]) for match in _SWAP.finditer(story))
        if any(re.search(rf"\b{who}\b", _SWAP.sub("", story)) for who in start):
            raise ValueError("something else than swaps happens")
        if not all(one in start and other in start and one != other for _, one, other in swaps):
            raise ValueError("somebody swaps who has nothing, or with nobody else")
        lines = asked[2].splitlines()
        options = tuple(line.partition(") ")[2] for line in lines)
        if [line[:3] for line in lines] != [f"({chr(65 + at)})" for at in range(len(lines))]:
            raise ValueError("the options are not lettered in order")
        alike = sorted(options) == sorted(start.values()) and len(set(options)) == len(options)
        if not swaps or asked[1] not in start or not alike:
            raise ValueError("the options are not what is swapped")
        return cls(start, swaps, asked[1], options)


def tracking(text: str, name: str) -> TaskDraft:
    item = _Tracked.read(text)
    inputs: dict[str, tuple[str | ValueType, Value]] = {who: ("text", what) for who, what in item.start.items()}
    inputs["options"] = ("text", "; ".join(f"{chr(65 + at)}: {each}" for at, each in enumerate(item.options)))
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
            checks=[RuleCheck("the swap", swapped, (one, other, newest[one], newest[other]))],
            examples=[
                Example(
                    {one: "a kite", other: "a drum"},
                    {one: "a drum", other: "a kite"},
                    f"{one} had a kite, {other} a drum",
                )
            ],
        )
        lines.append(line_of(step, _after(item, number, one, other)))
        newest[one] = newest[other] = step.id
    held = newest[item.asked]
    letters = ValueType(kind="one_of", options=tuple(chr(65 + at) for at in range(len(item.options))))
    step = Step(
        "chosen",
        instruction=f"Which of the options does {item.asked} have?",
        type=letters,
        reads=[held, "options"],
        checks=[RuleCheck("the answer", names_option, (item.asked, held))],
        examples=[Example({item.asked: "a kite", "options": "A: a drum; B: a kite"}, "B", f"{item.asked} has a kite")],
    )
    lines.append(line_of(step, lambda values: _letter(item, values[held])))
    return draft_of(name, inputs, lines, _TRACKING)


def _after(item: _Tracked, number: int, one: str, other: str) -> Solve:
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


def permutes(text: str) -> Plausible:
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


def web(text: str, name: str) -> TaskDraft:
    first = _IS.match(text)
    chain = _SAYS.findall(text)
    last = re.search(r" Does ([A-Z][a-z]+) tell the truth\?\Z", text)
    if first is None or last is None or len({first[1], *(who for who, *_ in chain)}) != len(chain) + 1:
        raise ValueError("the item is not of the form of a web of lies")
    statements = {
        first[1]: f"{first[1]} {first[2]}.",
        **{who: f"{who} says {whom} {what}." for who, whom, what in chain},
    }
    if f"Question: {' '.join(statements.values())} Does {list(statements)[-1]} tell the truth?" != text:
        raise ValueError("the item says more than a web of lies does")
    inputs: dict[str, tuple[str | ValueType, Value]] = {
        f"said_{at}": ("text", each) for at, each in enumerate(statements.values())
    }
    truthful = {first[1]: first[2] == "tells the truth"}
    lines: list[Line] = []
    for at, (who, whom, what) in enumerate([(first[1], "", first[2]), *chain]):
        if whom and whom not in truthful:
            raise ValueError(f"nothing is known of {whom}")
        truthful.setdefault(who, truthful.get(whom, False) == (what == "tells the truth"))
        step = Step(
            who,
            instruction="By what is said, does who is named first tell the truth?",
            type="boolean",
            reads=[f"said_{at}", *([whom] if whom else [])],
            checks=[RuleCheck("what is said", honest, (whom, what))],
            examples=_web_examples(bool(whom)),
        )
        lines.append(line_of(step, constant(truthful[who])))
    return draft_of(name, inputs, lines, _WEB)


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
