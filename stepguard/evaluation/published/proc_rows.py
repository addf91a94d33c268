"""Tasks of ProcBench in which every step changes a row of letters: a step asks the change, and code puts it in."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Final

from stepguard.evaluation.published.proc_steps import (
    Cut,
    CutStep,
    Keeper,
    ProcState,
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
        part = numbered_letters(row[low:high], low)
        others, _, last = part.rpartition(" ")
        return Record({"part": part, "last": last, "others": others or "-"})

    def after(row: str, change: Value, at: int) -> str:
        low, high = pairs[at]
        return row[:low] + unnumbered(f"{field_of(change, 'last')} {field_of(change, 'others')}") + row[high:]

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
        return next(iter(found(row, at)), "-")

    def found(row: str, at: int) -> list[str]:
        return [each for each in _lettered(row).split() if each[0] == letters[at]]

    def after(row: str, change: Value, at: int) -> str:
        return _unlettered(" ".join(each for each in _lettered(row).split() if each != str(change)))

    task = RowTask(
        "Which is the first of the row with that letter? Give letter and place.",
        TEXT,
        change,
        after,
        lambda row, change, at: str(change) in _lettered(row).split(),
        lambda row, at: " ".join(found(row, at)),
        shown=(_lettered, _unlettered),
    )
    return task.cut(value_after(question, "String"), letters, len(letters))


def _lettered(row: str) -> str:
    """Letters with their places behind them: a model that looks for a letter goes on with what follows it."""
    return " ".join(f"{letter}{at:02}" for at, letter in enumerate(row)) or "-"


def _unlettered(value: Value) -> str:
    return "".join(each[0] for each in str(value).split() if each != "-")


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
