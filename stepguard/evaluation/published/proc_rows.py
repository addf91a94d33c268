"""Tasks of ProcBench in which every step changes a row of letters: a step asks the change, and code puts it in."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase
from typing import Final

from stepguard.evaluation.published.proc_steps import (
    Cut,
    CutStep,
    Keeper,
    ProcState,
    Values,
    close,
    field_of,
    fields_of,
    numbered_letters,
    places_said,
    spaced,
    tuples_in,
    unnumbered,
    value_after,
)
from stepguard.language.records import Record
from stepguard.language.value_types import TEXT, ValueType
from stepguard.language.values import Value


@dataclass(frozen=True, slots=True)
class RowTask:
    """How the steps of a task change a row.

    Attributes:
        instruction: what a step asks.
        kind: the type of a change.
        change: the right one, from the row before and the number of the step, from 0.
        after: the row that a change leads to, be it right or wrong, from the same.
        form: whether something can be a change of the row at all, whatever the rule is.
        work: the working that a demonstration shows.
        shown: the row as a step reads it, and back.
    """

    instruction: str
    kind: ValueType
    change: Callable[[str, int], Value]
    after: Callable[[str, Value, int], str]
    form: Callable[[str, Value, int], bool]
    work: Callable[[str, int], str] = lambda row, at: ""
    shown: tuple[Callable[[str], str], Callable[[Value], str]] = (spaced, close)

    def cut(self, row: str, actions: Sequence[str], count: int, **extra: str) -> Cut:
        """A question that begins with a row.

        Args:
            actions: what each step does, in words; none where all do the same.
            count: how many changes.
            extra: further inputs that every step reads.
        """
        write, read = self.shown
        steps: list[CutStep] = []

        def add(at: int, before: str) -> None:
            def kept(row: Value, change: Value) -> Value:
                return write(self.after(read(row), change, at))

            name = f"change_{at + 1}"
            steps.append(
                CutStep(
                    name,
                    self.kind,
                    self.instruction,
                    (*extra, before, *([f"action_{at + 1}"] if actions else [])),
                    lambda values: self.change(read(values[before]), at),
                    lambda value, values: self.form(read(values[before]), value, at),
                    work=lambda values: self.work(read(values[before]), at),
                )
            )
            steps.append(Keeper(kept, ("row", before), ("change", name)).step(f"row_{at + 1}"))

        for at in range(count):
            add(at, f"row_{at}" if at else "start")
        named = {f"action_{at}": action for at, action in enumerate(actions, 1)}

        def states(values: Sequence[Value]) -> list[ProcState]:
            return [read(value) for value in values[1::2]]

        return Cut({**extra, "start": write(row), **named}, tuple(steps), states)


def sorting(question: str, count: int) -> Cut:
    """Short parts are put in order, then two at a time; code swaps every place with where the next letter stands."""
    row = value_after(question, "String")
    inputs: dict[str, str] = {}
    steps: list[CutStep] = []

    def add(*reads: str) -> str:
        def letters(values: Values) -> set[str]:
            return {each for read in reads for each in str(values[read]).split()}

        steps.append(
            CutStep(
                name := f"sorted_{len(steps) + 1}",
                TEXT,
                "Put them in ascending order, and leave out what comes again.",
                reads,
                lambda values: " ".join(sorted(letters(values))),
                lambda value, values: {*str(value).split()} <= letters(values),
            )
        )
        return name

    parts: list[str] = []
    size = -(-len(row) // -(-len(row) // _SORTED))
    for at, low in enumerate(range(0, len(row), size), 1):
        inputs[f"part_{at}"] = _in_alphabet(row[low : low + size])
        parts.append(add(f"part_{at}"))
    while len(parts) > 1:
        pairs = list(zip(parts[::2], parts[1::2], strict=False))
        parts = [*(add(*pair) for pair in pairs), *parts[2 * len(pairs) :]]

    def states(values: Sequence[Value]) -> list[ProcState]:
        now, rows = row, [row]
        found = str(values[-1]).split() if len(values) == len(steps) else []
        in_order = [each for one in found for each in row if each == one[-1]]
        for place, letter in enumerate(in_order[: len(row)]):
            other = now.find(letter, place)
            if other > place:
                now = now[:place] + letter + now[place + 1 : other] + now[place] + now[other + 1 :]
                rows.append(now)
        return list(rows[1:])

    return Cut(inputs, tuple(steps), states)


_SORTED: Final = 7
"""The most letters that are put in order at once."""


def _in_alphabet(row: str) -> str:
    """Letters with their numbers in the alphabet, which models put in order more surely than letters."""
    return " ".join(f"{ascii_lowercase.index(each) + 1:02}{each}" for each in row)


def merging(question: str, count: int) -> Cut:
    rules = {one + two: three for one, two, three in re.findall(r"(\w), (\w) -> (\w)", question)}
    start = re.search(r"Initial state:\s*([^\n]*)", question)
    if start is None:
        raise ValueError("the question has no initial state")

    def change(row: str, at: int) -> Value:
        pair = next((row[at : at + 2] for at in range(len(row) - 2, -1, -1) if row[at : at + 2] in rules), "")
        return Record({"pair": spaced(pair), "becomes": rules.get(pair, "-")})

    def after(row: str, change: Value, at: int) -> str:
        before, pair, behind = row.rpartition(close(field_of(change, "pair")) or " ")
        return before + close(field_of(change, "becomes")) + behind if pair else row

    task = RowTask(
        "Go through the pairs from the first one. Which is the first that has a rule, and what does it become?",
        fields_of("pair", "becomes"),
        change,
        after,
        lambda row, change, at: close(field_of(change, "pair")) in row and len(close(field_of(change, "becomes"))) == 1,
        shown=(_neighbours, _joined),
    )
    cut = task.cut(
        start[1].replace(",", "").replace(" ", ""),
        [],
        count,
        rules="; ".join(f"{spaced(pair)} becomes {three}" for pair, three in rules.items()),
    )
    return Cut(cut.inputs, cut.steps, lambda values: [list(str(state)) for state in cut.states(values)])


def _neighbours(row: str) -> str:
    """The pairs of neighbours in a row, from its end."""
    return ", ".join(spaced(row[at : at + 2]) for at in range(len(row) - 2, -1, -1)) or row


def _joined(value: Value) -> str:
    """The row that has these neighbours."""
    pairs = [close(pair) for pair in str(value).split(", ")]
    return "".join(pair[:1] for pair in reversed(pairs)) + pairs[0][1:]


_ACTIONS: Final = {
    "pop_left": "take the first letter away",
    "pop_right": "take the last letter away",
    "push_left": "put in front",
    "push_right": "add at the end",
}


def pushing(question: str, count: int) -> Cut:
    actions: list[str] = re.findall(r"pop_left|pop_right|push_left\(.\)|push_right\(.\)", question)

    def change(row: str, at: int) -> Value:
        action = actions[at]
        end = "front" if "left" in action else "end"
        popped = row[:1] if end == "front" else row[-1:]
        return Record({"where": end, "letter": action[-2] if "(" in action else spaced(popped)})

    def after(row: str, change: Value, at: int) -> str:
        letter, front = close(field_of(change, "letter")), field_of(change, "where") == "front"
        if "(" in actions[at]:
            return letter + row if front else row + letter
        return row.removeprefix(letter) if front else row.removesuffix(letter)

    def form(row: str, change: Value, at: int) -> bool:
        letter = close(field_of(change, "letter"))
        return field_of(change, "where") in ("front", "end") and len(letter) == 1

    task = RowTask(
        "Where in the row does a letter go or come (front or end), and which letter?",
        fields_of("where", "letter"),
        change,
        after,
        form,
    )
    words = [_ACTIONS[action.partition("(")[0]] + f" {action[-2:-1]}" * ("(" in action) for action in actions]
    return task.cut(value_after(question, "Initial string"), words, len(actions))


_PLACES: Final = (numbered_letters, unnumbered)


def rotating(question: str, count: int) -> Cut:
    pairs = tuples_in(question.partition("Indices")[2], 2)

    def change(row: str, at: int) -> Value:
        low, high = pairs[at]
        part = row[low:high]
        return Record({"part": numbered_letters(part, low), "last": part[-1:], "others": spaced(part[:-1])})

    def after(row: str, change: Value, at: int) -> str:
        low, high = pairs[at]
        return row[:low] + str(field_of(change, "last")) + close(field_of(change, "others")) + row[high:]

    task = RowTask(
        "Which letters stand at those places, which is the last of them, and which are the others?",
        fields_of("part", "last", "others"),
        change,
        after,
        lambda row, change, at: sorted(after(row, change, at)) == sorted(row),
        shown=_PLACES,
    )
    places = [places_said(low, high) for low, high in pairs]
    return task.cut(value_after(question, "String"), places, len(pairs))


def removing(question: str, count: int) -> Cut:
    letters = re.findall(r"\d+\. (\w)", question)

    def change(row: str, at: int) -> Value:
        place = row.find(letters[at])
        return f"{place:02}{letters[at]}" if place >= 0 else "-"

    def after(row: str, change: Value, at: int) -> str:
        return unnumbered(" ".join(each for each in numbered_letters(row).split() if each != str(change)))

    task = RowTask(
        "Which is the first place with that letter? Give place and letter as they stand in the row.",
        TEXT,
        change,
        after,
        lambda row, change, at: str(change) in numbered_letters(row).split(),
        shown=_PLACES,
    )
    return task.cut(value_after(question, "String"), letters, len(letters))


def _listed(row: str) -> str:
    """Pieces, which a stroke divides, with the numbers of the piece and the place in front of each letter."""
    pieces = [
        [f"{_piece(at)}{place:02}{letter}" for place, letter in enumerate(piece)]
        for at, piece in enumerate(row.split("|"))
    ]
    return " | ".join(map(" ".join, pieces))


def _piece(number: int) -> str:
    """A capital for the number of a piece, which is not taken for a place."""
    return ascii_uppercase[number]


def _divided(value: Value) -> str:
    return "|".join("".join(each[-1] for each in piece.split()) for piece in str(value).split(" | "))


def splitting_parts(question: str, count: int) -> Cut:
    pairs = tuples_in(question.partition("Indices")[2], 2)

    def placed(row: str, at: int) -> list[str]:
        """The letters of the piece that is cut."""
        which, pieces = pairs[at][0], _listed(row).split(" | ")
        return pieces[which].split() if which < len(pieces) else []

    def change(row: str, at: int) -> Value:
        return next(iter(placed(row, at)[pairs[at][1] :]), "-")

    def after(row: str, change: Value, at: int) -> str:
        which, pieces, letters = pairs[at][0], row.split("|"), placed(row, at)
        if change not in letters:
            return row
        place = letters.index(str(change))
        pieces[which : which + 1] = [pieces[which][:place], pieces[which][place:]]
        return "|".join(pieces)

    task = RowTask(
        "Which letter stands at that place? Give place and letter.",
        TEXT,
        change,
        after,
        lambda row, change, at: change in placed(row, at),
        shown=(_listed, _divided),
    )
    actions = [f"{_piece(which)}{place:02}" for which, place in pairs]
    cut = task.cut(value_after(question, "String"), actions, len(pairs))
    return Cut(cut.inputs, cut.steps, lambda values: [str(state).split("|") for state in cut.states(values)])
