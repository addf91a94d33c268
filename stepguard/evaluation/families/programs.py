"""Straight-line programs in which every step feeds the answer and no later step can erase an error.

With ``x - x`` or a factor of zero a run can end on the right answer through wrong values, and accuracy measures luck.
Two things are therefore proved of every program when it is made.

Every step feeds the answer: a value that nothing has read yet is read before it leaves the window, and the last step
reads all that is left.

No error is erased, by one of two proofs. *Linear*: without rounding the answer is a linear function of each value, and
its coefficient is computed and must not be zero. *Coherent*: each value raises the answer along every path through
which it gets there, or lowers it along every path, and along at least one of them no step makes two values equal. A
division with rounding can do that, so a value that is divided has to be read elsewhere, too. The second proof allows
rounding, the first leaves more programs.

Random programs rarely pass where they are long. Those are made of blocks: a block starts from the last value of the
one before alone, and is proved by itself.

Numbers are held as whole multiples of ``10**-places``: nothing here rounds but `compute` where it divides.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

LARGEST_FACTOR: Final = 5
_LARGEST_DIVISOR: Final = 9
_DRAWS: Final = 50  # many draws leave the allowed range, or divide with a rest

ProgramOperand = int | str
"""A variable; or a constant: scaled like values next to ``+`` and ``-``, as it stands next to ``*`` and ``/``."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """``name = left sign right``."""

    name: str
    left: ProgramOperand
    sign: str
    right: ProgramOperand

    @property
    def reads(self) -> tuple[str, ...]:
        """Its variables."""
        return tuple(each for each in (self.left, self.right) if isinstance(each, str))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramShape:
    """What programs are to be like; see `stepguard.evaluation.families.arithmetic.Arithmetic`.

    `low`, `high` and `limit` are scaled; `coherent` chooses the proof.
    """

    look_back: int
    binding: bool
    low: int
    high: int
    limit: int
    operations: str
    coherent: bool


@dataclass(frozen=True, slots=True)
class Program:
    """Instructions, the values they start from, and the names of those that do not feed the answer."""

    inputs: Mapping[str, int]
    instructions: Sequence[Instruction]
    idle: frozenset[str]
    answer: int

    def then(self, block: Program) -> Program:
        """This program with a block behind it that starts from its answer."""
        instructions = [*self.instructions, *block.instructions]
        return Program(self.inputs, instructions, self.idle | block.idle, block.answer)


def compute(sign: str, left: int, right: int) -> int:
    """One operation; a quotient is rounded to the nearest whole number, a tie away from zero."""
    match sign:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
    quotient = (2 * abs(left) + abs(right)) // (2 * abs(right))
    return quotient if (left < 0) == (right < 0) else -quotient


def make_block(
    chance: random.Random, shape: ProgramShape, *, length: int, distractors: int, before: Program | None
) -> Program | None:
    """One attempt at a block.

    Args:
        distractors: how many of them are not to feed the answer.
        before: what it goes on from; None starts a program from inputs.

    Returns:
        None where it comes to a dead end or the proof fails.
    """
    attempt = _Attempt(chance, shape, before, distractors)
    done = 0 if before is None else len(before.instructions)
    for number in range(1, length + 1):
        if not attempt.step(f"t{done + number}", left_over=length - number):
            return None
    if attempt.idle_left:
        return None
    answer = attempt.values[attempt.names[-1]]
    block = Program(attempt.start, attempt.instructions, frozenset(attempt.idle), answer)
    if not shape.coherent:
        matter = [each.name for each in block.instructions if each.name not in block.idle]
        matter += block.inputs if before is not None else ()
        if any(each == 0 for each in _sensitivity(block, matter).values()):
            return None
    return block


@dataclass(slots=True)
class _Signs:
    """Which values move the answer in the same direction, as far as that is settled."""

    above: dict[str, tuple[str, int]] = field(default_factory=dict)

    def find(self, name: str) -> tuple[str, int]:
        """The representative of a value, and whether both move the answer alike (1) or not (-1)."""
        sign = 1
        while name in self.above:
            name, step = self.above[name]
            sign *= step
        return name, sign

    def allow(self, left: str, right: str, relation: int) -> bool:
        """Whether two values can move the answer alike (1), or against each other (-1)."""
        (one, sign), (other, second) = self.find(left), self.find(right)
        return one != other or sign * second == relation

    def relate(self, left: str, right: str, relation: int) -> None:
        """Settle it."""
        (one, sign), (other, second) = self.find(left), self.find(right)
        if one != other:
            self.above[one] = (other, sign * second * relation)


class _Attempt:
    def __init__(self, chance: random.Random, shape: ProgramShape, before: Program | None, distractors: int) -> None:
        self.chance = chance
        self.shape = shape
        if before is None:
            # With a look-back of one there is one value to read at a time.
            self.names = ["x", "y"] if shape.look_back > 1 else ["x"]
            self.values = {name: chance.randint(shape.low, shape.high) for name in self.names}
        else:
            self.names = [before.instructions[-1].name]
            self.values = {self.names[0]: before.answer}
        self.start = dict(self.values)
        self.free = frozenset(self.names if before is None else ())  # an error in an input does not matter
        self.unread = list(self.names)  # one or two: with two a step reads one at least; the last step reads all
        self.instructions: list[Instruction] = []
        self.idle: set[str] = set()
        self.idle_left = distractors
        self.signs = _Signs()

    def step(self, name: str, *, left_over: int) -> bool:
        """Add one instruction; False where none fits. `left_over` is how many come after it."""
        window = self.names[-self.shape.look_back :]
        # A value that is about to leave the window must be read now.
        due = [each for each in self.unread if each == window[0] and len(self.names) >= self.shape.look_back]
        idle = bool(self.idle_left and left_over and not due) and self.chance.random() * left_over < self.idle_left
        instruction = self._idle(name, window) if idle else self._feeding(name, window, due, last=not left_over)
        if instruction is None:
            return False
        self.values[name] = self._result(instruction)
        self.names.append(name)
        self.instructions.append(instruction)
        if idle:
            self.idle.add(name)
            self.idle_left -= 1
        else:
            self.unread = [each for each in self.unread if each not in instruction.reads or instruction.sign == "/"] + [
                name
            ]
            if self.shape.coherent:
                self._settle(instruction)
        return True

    def _idle(self, name: str, window: list[str]) -> Instruction | None:
        """A distractor: it may read anything, and nothing but other distractors reads it."""
        chance = self.chance
        for _ in range(_DRAWS):
            first, sign = chance.choice(window), chance.choice(self.shape.operations)
            others = [each for each in window if each != first]
            second: ProgramOperand = self._constant(sign)
            if sign in "+-" and others and chance.random() < 0.5:
                second = chance.choice(others)
            instruction = Instruction(name, first, sign, second)
            if self._in_range(instruction):
                return instruction
        return None

    def _feeding(self, name: str, window: list[str], due: list[str], *, last: bool) -> Instruction | None:
        chance, unread, shape = self.chance, self.unread, self.shape
        live = [each for each in window if each not in self.idle]
        if shape.binding:
            first = unread[-1]
        else:
            branches = len(unread) == 1 and not last and not due and chance.random() < 0.5
            first = due[0] if due else chance.choice(live if branches else unread)
        both = last and len(unread) == 2
        signs = "".join(each for each in shape.operations if each in "+-") if both else shape.operations
        others = [each for each in live if each != first]
        missed = [each for each in due if each != first]
        for draw in range(_DRAWS):
            sign = chance.choice(signs)
            if both:
                second: ProgramOperand = next(each for each in unread if each != first)
            elif sign in "*/":
                second = self._constant(sign)
            elif shape.binding and missed:
                second = missed[0]
            elif shape.binding:
                second = others[0] if others and draw < _DRAWS // 2 else self._constant(sign)
            elif others and chance.random() < 0.5:
                second = chance.choice(others)
            else:
                second = self._constant(sign)
            if (missed and second != missed[0]) or (sign == "/" and not self._may_divide(first, due, last)):
                continue
            keeps = sign in "*/" or chance.random() < 0.5
            instruction = Instruction(name, first, sign, second) if keeps else Instruction(name, second, sign, first)
            if self._in_range(instruction) and (not shape.coherent or self._coherent(instruction)):
                return instruction
        return None

    def _may_divide(self, first: str, due: list[str], last: bool) -> bool:
        """Whether a value may be divided now: where nothing else has read it yet, something else still has to."""
        return first not in self.unread or (len(self.unread) == 1 and not due and not last)

    def _constant(self, sign: str) -> int:
        if sign in "*/":
            return self.chance.randint(2, LARGEST_FACTOR if sign == "*" else _LARGEST_DIVISOR)
        return self.chance.randint(max(1, self.shape.low), self.shape.high)

    def _value(self, operand: ProgramOperand) -> int:
        return operand if isinstance(operand, int) else self.values[operand]

    def _result(self, instruction: Instruction) -> int:
        return compute(instruction.sign, self._value(instruction.left), self._value(instruction.right))

    def _in_range(self, instruction: Instruction) -> bool:
        """Whether the result is within the limit, and no tie whose rounding the text would leave open."""
        if instruction.sign == "/":
            divisor = self._value(instruction.right)
            if 2 * (self._value(instruction.left) % divisor) == divisor:
                return False
        return abs(self._result(instruction)) <= self.shape.limit

    def _operands(self, instruction: Instruction) -> list[tuple[str, int]]:
        """The steps that an instruction reads, and whether they raise or lower its value."""
        signed = ((instruction.left, 1), (instruction.right, -1 if instruction.sign == "-" else 1))
        return [(each, sign) for each, sign in signed if isinstance(each, str) and each not in self.free]

    def _coherent(self, instruction: Instruction) -> bool:
        read = self._operands(instruction)
        return len(read) < 2 or self.signs.allow(read[0][0], read[1][0], read[0][1] * read[1][1])

    def _settle(self, instruction: Instruction) -> None:
        for each, sign in self._operands(instruction):
            self.signs.relate(each, instruction.name, sign)


def _sensitivity(block: Program, matter: Sequence[str]) -> dict[str, int]:
    """How much the answer changes with each of these values, all later steps done right."""
    coefficient = dict.fromkeys(matter, 0)
    coefficient[block.instructions[-1].name] = 1
    for each in reversed(block.instructions):
        if each.name in block.idle:
            continue
        weight = coefficient[each.name]
        for operand, factor in ((each.left, 1), (each.right, -1 if each.sign == "-" else 1)):
            if isinstance(operand, str) and operand in coefficient:
                other = each.right if operand is each.left else each.left
                coefficient[operand] += weight * (other if each.sign == "*" and isinstance(other, int) else factor)
    return coefficient
