"""Task families: procedures with inputs and a truth that no checker had a hand in.

A family makes the same instance for the same seed and length, on every machine. `Arithmetic` is the first.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from stepguard.errors import ConfigError
from stepguard.procedure import Procedure, Step

__all__ = ["Arithmetic", "Family", "Task", "family_named"]


@dataclass(frozen=True, slots=True)
class Task:
    """One instance.

    Attributes:
        family: the name of its family.
        seed: what it was made from.
        procedure: what is to be run.
        inputs: the inputs of the run.
        truth: the right value of every step, by id, from the generator's own integer arithmetic: it shares no code
            with the checker.
    """

    family: str
    seed: int
    procedure: Procedure
    inputs: Mapping[str, int]
    truth: Mapping[str, int]

    @property
    def answer(self) -> int:
        """The right answer."""
        return self.truth[self.procedure.answer]


class Family(Protocol):
    """Makes instances of one kind of task."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    def make(self, seed: int, length: int) -> Task:
        """The instance for a seed and a number of steps."""
        ...


_OPERATIONS: Final = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_ATTEMPTS: Final = 10_000

_Operand = int | str


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Straight-line programs over integers: ``+``, ``-`` and multiplication by a small constant.

    Every step feeds the answer, and no later step can erase an error: the answer is a linear function of every
    intermediate value, and its coefficient is proved not to be zero when the instance is made. (With ``x - x`` or a
    factor of zero a run can end on the right answer through wrong values, and accuracy measures luck.)

    Args:
        look_back: operands are inputs or values of at most this many steps before.
        limit: no value exceeds it in magnitude.
    """

    look_back: int = 5
    limit: int = 300

    def __post_init__(self) -> None:
        if self.look_back < 2 or self.limit < 50:
            raise ConfigError("the arithmetic family needs look_back of at least 2 and limit of at least 50")

    @property
    def name(self) -> str:
        """What tables call it."""
        return "arithmetic"

    def make(self, seed: int, length: int) -> Task:
        """See `Family.make`."""
        if length < 1:
            raise ConfigError(f"a program has at least one step, not {length}", option="lengths")
        chance = random.Random(f"arithmetic:{self.look_back}:{self.limit}:{length}:{seed}")
        for _ in range(_ATTEMPTS):
            task = self._try(chance, seed, length)
            if task is not None:
                return task
        raise ConfigError(f"no program of {length} steps within |value| <= {self.limit} was found")

    def _try(self, chance: random.Random, seed: int, length: int) -> Task | None:
        names = ["x", "y"]
        values = {"x": chance.randint(2, 99), "y": chance.randint(2, 99)}
        inputs = dict(values)
        unread = ["x", "y"]  # one or two: with two a step reads one at least; the last step reads all
        program: list[tuple[str, _Operand, str, _Operand]] = []
        for number in range(1, length + 1):
            name = f"t{number}"
            step = self._step(chance, names, values, unread, last=number == length)
            if step is None:
                return None
            left, sign, right = step
            value = _OPERATIONS[sign](_value(left, values), _value(right, values))
            unread = [each for each in unread if each not in (left, right)] + [name]
            names.append(name)
            values[name] = value
            program.append((name, left, sign, right))
        if any(coefficient == 0 for coefficient in _sensitivity(program).values()):
            return None
        steps = [Step(name, f"{left} {sign} {right}", type="integer") for name, left, sign, right in program]
        procedure = Procedure(steps, inputs=("x", "y"), name=f"arithmetic-{length}-{seed}")
        return Task(self.name, seed, procedure, inputs, {name: values[name] for name, *_ in program})

    def _step(
        self, chance: random.Random, names: list[str], values: Mapping[str, int], unread: list[str], *, last: bool
    ) -> tuple[_Operand, str, _Operand] | None:
        window = names[-self.look_back :]
        # A value that is about to leave the window must be read now.
        due = [name for name in unread if name == window[0] and len(names) >= self.look_back]
        branches = len(unread) == 1 and not last and not due and chance.random() < 0.5
        first = due[0] if due else chance.choice(window if branches else unread)
        for _ in range(50):
            both = last and len(unread) == 2
            sign = chance.choice("+-" if both else "+-*")
            if both:
                second: _Operand = next(name for name in unread if name != first)
            elif sign == "*":
                second = chance.randint(2, 5)
            elif chance.random() < 0.5:
                second = chance.choice([name for name in window if name != first])
            else:
                second = chance.randint(2, 99)
            left, right = (first, second) if sign == "*" or chance.random() < 0.5 else (second, first)
            result = _OPERATIONS[sign](_value(left, values), _value(right, values))
            if abs(result) <= self.limit:
                return left, sign, right
        return None


def _value(operand: _Operand, values: Mapping[str, int]) -> int:
    return operand if isinstance(operand, int) else values[operand]


def _sensitivity(program: list[tuple[str, _Operand, str, _Operand]]) -> dict[str, int]:
    """How much the answer changes with each step's value, all later steps done right."""
    coefficient = {name: 0 for name, *_ in program}
    coefficient[program[-1][0]] = 1
    for name, left, sign, right in reversed(program):
        weight = coefficient[name]
        for operand, factor in ((left, 1), (right, -1 if sign == "-" else 1)):
            if isinstance(operand, str) and operand in coefficient:
                other = right if operand is left else left
                coefficient[operand] += weight * (other if sign == "*" and isinstance(other, int) else factor)
    return coefficient


_FAMILIES: Final[Mapping[str, Family]] = {"arithmetic": Arithmetic()}


def family_named(name: str) -> Family:
    """The family that `name` means on the command line.

    Raises:
        ConfigError: there is none.
    """
    if name not in _FAMILIES:
        raise ConfigError(f"unknown task {name!r}: use {', '.join(_FAMILIES)}", option="task")
    return _FAMILIES[name]
