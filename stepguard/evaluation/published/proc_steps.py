"""How a question of ProcBench is cut into steps: what each asks, its exact rule, and what form alone says of its value.

Where a state only grows, a step asks what is added, and code adds it: the published states are put together from the
steps' values by `Cut.states`, and every one of them is held against the file when it is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Generic, TypeVar

from stepguard.language.records import RecordType
from stepguard.language.value_types import TEXT, ValueType
from stepguard.language.values import Value

T = TypeVar("T")
Values = Mapping[str, Value]
State = object
"""A state as the file has it: a text, a number or a list of them."""

INTEGER: Final = ValueType(kind="integer")
TEXTS: Final = ValueType(kind="list", items=TEXT)
INTEGERS: Final = ValueType(kind="list", items=INTEGER)
PAIR: Final = ValueType(kind="record", record=RecordType("Found", (("letter", TEXT), ("left", INTEGER))))


@dataclass(frozen=True, slots=True)
class CutStep:
    """One step.

    Attributes:
        id, kind, instruction, reads: as those of a `Step`.
        rule: its right value from those it reads.
        form: whether another value could stand there, from the value and those it reads.
        formula: its expression, where it has one.
    """

    id: str
    kind: ValueType
    instruction: str
    reads: tuple[str, ...]
    rule: Callable[[Values], Value]
    form: Callable[[Value, Values], bool]
    formula: str | None = None


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
    states: Callable[[Sequence[Value]], list[State]]
    numbers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row(Generic[T]):
    """States that every step changes as a whole.

    Attributes:
        kind, write, read: of the values of the steps: their type, a value from a state, and a state from a value.
        text: the first state as an input.
    """

    kind: ValueType
    write: Callable[[T], Value]
    read: Callable[[Value], T]
    text: Callable[[T], str]

    def cut(
        self,
        start: T,
        operands: Sequence[str],
        instruction: str,
        change: Callable[[T, int], T],
        form: Callable[[T, T, int], bool],
        extra: Mapping[str, str] = MappingProxyType({}),
    ) -> Cut:
        """A question whose steps all change what the one before has left.

        Args:
            start: the first state.
            operands: what each step does, in words; empty texts where they are no inputs.
            change: the state after a step, from the state before and the number of the step, from 0.
            form: whether a state could follow another.
            extra: further inputs that every step reads.
        """

        def before(values: Values, at: int) -> T:
            return self.read(values[f"state_{at}"]) if at else start

        def step(at: int, operand: str) -> CutStep:
            return CutStep(
                f"state_{at + 1}",
                self.kind,
                instruction,
                (f"state_{at}" if at else "start", *extra, *([f"action_{at + 1}"] if operand else [])),
                lambda values: self.write(change(before(values, at), at)),
                lambda value, values: form(before(values, at), self.read(value), at),
            )

        actions = {f"action_{at}": operand for at, operand in enumerate(operands, 1) if operand}
        steps = tuple(step(at, operand) for at, operand in enumerate(operands))
        return Cut(
            {"start": self.text(start), **extra, **actions}, steps, lambda values: [self.read(each) for each in values]
        )


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


def numbered(items: Sequence[str]) -> str:
    return ", ".join(f"{at}: {each}" for at, each in enumerate(items))


def tuples_in(text: str, size: int) -> list[tuple[int, ...]]:
    pattern = r"\(" + r",\s*".join([r"(\d+)"] * size) + r"\)"
    return [tuple(map(int, match)) for match in re.findall(pattern, text)]


def anything(value: Value, values: Values) -> bool:
    return True


def texts_of(value: Value) -> list[str]:
    return [str(each) for each in value] if isinstance(value, tuple) else []
