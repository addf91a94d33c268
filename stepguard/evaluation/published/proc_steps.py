"""How a question of ProcBench is cut into steps: what each asks, its exact rule, and what form alone says of its value.

Where a state only grows, a step asks what is added, and code adds it: the published states are put together from the
steps' values by `Cut.states`, and every one of them is held against the file when it is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from stepguard.language.records import Record, RecordType
from stepguard.language.value_types import TEXT, ValueType
from stepguard.language.values import Value

Values = Mapping[str, Value]
ProcState = object
"""A state as the file has it: a text, a number or a list of them."""

INTEGER: Final = ValueType(kind="integer")


@dataclass(frozen=True, slots=True)
class CutStep:
    """One step.

    Attributes:
        id, kind, instruction, reads: as those of a `Step`.
        rule: its right value from those it reads.
        form: whether another value could stand there, from the value and those it reads.
        formula: its expression, where it has one.
        work: the working that a demonstration of it shows.
        keeper: the code that performs it, where no model is asked.
    """

    id: str
    kind: ValueType
    instruction: str
    reads: tuple[str, ...]
    rule: Callable[[Values], Value]
    form: Callable[[Value, Values], bool]
    formula: str | None = None
    work: Callable[[Values], str] = lambda values: ""
    keeper: Keeper | None = None


@dataclass(frozen=True, slots=True)
class Keeper:
    """Code that puts a change into a state, so that the model need not write the state again.

    Attributes:
        function: the state after the change.
        reads: the arguments that it is called with, each with the variable that is its value.
    """

    function: Callable[..., Value]
    reads: tuple[tuple[str, str], ...]

    def __init__(self, function: Callable[..., Value], *reads: tuple[str, str]) -> None:
        object.__setattr__(self, "function", function)
        object.__setattr__(self, "reads", reads)

    def step(self, name: str, kind: ValueType = TEXT) -> CutStep:
        """The step that it performs."""
        return CutStep(
            name,
            kind,
            "Put the change in.",
            (),
            lambda values: self.function(**{word: values[read] for word, read in self.reads}),
            anything,
            keeper=self,
        )


@dataclass(frozen=True, slots=True)
class Cut:
    """A question cut into steps.

    Attributes:
        inputs: texts by name.
        steps: in order.
        states: the published states, the final one last, from the values of the steps.
        numbers: inputs that are whole numbers.
    """

    inputs: Mapping[str, str]
    steps: tuple[CutStep, ...]
    states: Callable[[Sequence[Value]], list[ProcState]]
    numbers: Mapping[str, int] = field(default_factory=dict)


def spaced(text: str) -> str:
    """Letters with blanks between them, which models tell apart; a dash where there is none."""
    return " ".join(text) or "-"


def close(value: Value) -> str:
    text = str(value)
    return "" if text == "-" else text.replace(" ", "")


def listed_behind(text: str, head: str) -> list[str]:
    """The items of a line such as ``Strings: [a, b]`` or ``Candidate: a, b``."""
    match = re.search(rf"{head}:\s*\[?([^\]\n]*)\]?", text)
    if match is None:
        raise ValueError(f"the question has no {head!r}")
    return [piece.strip() for piece in match[1].split(",") if piece.strip()]


def value_after(text: str, head: str) -> str:
    match = re.search(rf"{head}:\s*(\S+)", text)
    if match is None:
        raise ValueError(f"the question has no {head!r}")
    return match[1]


def numbered(items: Sequence[str], first: int = 0) -> str:
    return ", ".join(f"{at}: {each}" for at, each in enumerate(items, first))


def tuples_in(text: str, size: int) -> list[tuple[int, ...]]:
    pattern = r"\(" + r",\s*".join([r"(\d+)"] * size) + r"\)"
    return [tuple(map(int, match)) for match in re.findall(pattern, text)]


def anything(value: Value, values: Values) -> bool:
    return True


def fields_of(*names: str, **kinds: ValueType) -> ValueType:
    """A record of texts, and of what else is named with its type."""
    fields = (*((name, TEXT) for name in names), *kinds.items())
    return ValueType(kind="record", record=RecordType("Found", fields))


def field_of(value: Value, name: str) -> Value:
    """A field of a record; a value that is none stands for itself."""
    return value[name] if isinstance(value, Record) else value


def numbered_letters(row: str, first: int = 0) -> str:
    """Letters with their places, all of two digits: asked for place 4, a model takes 24 for it."""
    return " ".join(f"{at:02}{letter}" for at, letter in enumerate(row, first)) or "-"


def places_said(low: int, high: int) -> str:
    return f"places {', '.join(f'{at:02}' for at in range(low, high))}"


def unnumbered(value: Value) -> str:
    """The letters of a row without their places."""
    return "".join(each[2:] for each in str(value).split() if each != "-")
