"""Straight-line arithmetic: the family that has a formula for everything."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Final, Literal

from stepguard.core.arguments import check_count, check_flag, check_number, check_one_of
from stepguard.errors import ConfigError
from stepguard.evaluation.families.base import (
    DEMONSTRATION_SEED,
    FORMULA_SYSTEM,
    WORDS_SYSTEM,
    Demonstration,
    DraftedFamily,
    Line,
    RuleCheck,
    TaskDraft,
)
from stepguard.evaluation.families.programs import (
    Instruction,
    Program,
    ProgramOperand,
    ProgramShape,
    compute,
    make_block,
)
from stepguard.language.evaluation import evaluate
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.expressions import Expression
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value, to_exact
from stepguard.procedure.inputs import Input
from stepguard.procedure.steps import Step

SENTENCES: Final[Mapping[str, tuple[str, ...]]] = {
    "+": (
        "Add {right} to {left}.",
        "Work out the sum of {left} and {right}.",
        "Put {left} and {right} together.",
        "Increase {left} by {right}.",
    ),
    "-": (
        "Subtract {right} from {left}.",
        "Take {right} away from {left}.",
        "Work out {left} less {right}.",
        "Reduce {left} by {right}.",
    ),
    "*": (
        "Multiply {left} by {right}.",
        "Take {left} {right} times.",
        "Work out the product of {left} and {right}.",
        "Make {left} {right} times as large.",
    ),
    "/": (
        "Divide {left} by {right}.",
        "Split {left} into {right} equal parts and take one of them.",
        "Work out the quotient of {left} and {right}.",
        "Share {left} out equally among {right}.",
    ),
}
"""By operation; `left` and `right` as in ``left - right``."""


def fits_formula(claimed: Value, values: Mapping[str, Value], expression: Expression, kind: ValueType) -> bool:
    """Whether a value is that of the formula behind a sentence, rounded as the step's type declares.

    The step has no expression of its own, which a prompt would show beside the sentence.
    """
    return claimed == kind.convert(evaluate(expression, values))


_ATTEMPTS: Final = 10_000
_RESTARTS: Final = 20
"""A block may start from a value that leads nowhere."""
_BLOCK: Final = 40
"""The longest block; half of it for a look-back of two, which leaves fewer programs that pass the proof."""
_ALWAYS: Final = 128
"""Up to so many steps the integer programs that there were first are kept as they are: one block."""

# What formulas over integers were always demonstrated with: recorded outcomes hang on every byte of it.
_INTEGERS: Final = Demonstration(
    FORMULA_SYSTEM,
    "Values:\na = -14\nb = 36\nSteps:\ns1 = a + b\ns2 = s1 * 3\ns3 = a - s1\ns4 = 90 - s2\ns5 = s4 + s3\ns6 = s5 - s3",
    "s1 = a + b = -14 + 36 = 22\ns2 = s1 * 3 = 22 * 3 = 66\ns3 = a - s1 = -14 - 22 = -36\n"
    "s4 = 90 - s2 = 90 - 66 = 24\ns5 = s4 + s3 = 24 + (-36) = -12\ns6 = s5 - s3 = -12 - (-36) = 24\nAnswer: 24",
    "s1 = a + b\ns2 = s1 * 3\ns3 = a - s1\ns4 = 90 - s2\ns5 = s4 + s3\ns6 = s5 - s3",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arithmetic(DraftedFamily):
    """Programs of one operation a step, over two inputs, earlier values and constants.

    Every step feeds the answer, and no later step can erase an error (`stepguard.evaluation.families.programs` says
    how that is proved). Nothing is divided by a value, only by 2 to 9, multiplied only by 2 to 5, and no result that
    has to be rounded is a tie. Up to 128 steps the defaults make the programs that they have always made;
    longer programs are made of blocks, which only the last value of the block before enters.

    Args:
        look_back: operands are inputs or values of at most this many steps before, the inputs standing in front of
            the first step. With 1 there is one input.
        binding: every sum and difference is of the value before it and the one exactly `look_back` steps before,
            wherever there is one and the limit allows it; products are of the value before. All steps then lie on one
            chain, so that the dependency depth is the length, whatever the look-back. Not with division.
        limit: no result exceeds it in magnitude.
        input_low: the smallest input, from 0 on; constants that are added or subtracted are from the same range.
        input_high: the largest one.
        places: decimal places of inputs and results, each result rounded half up; None for integers.
        operations: which of ``+ - * /``; division needs `places`.
        form: ``"formula"``, or ``"sentence"``: the model is asked in English and sees no formula. The numbers are
            the same in both.
        distractors: the share of steps that do not feed the answer, rounded down.

    Adds the facts ``bound``, how many steps read a value exactly `look_back` steps before (inputs counted), and
    ``distractors``, how many steps do not feed the answer.

    Raises:
        ConfigError: a knob is out of range, or they do not go together.
    """

    example_steps: ClassVar[int] = 6

    look_back: int = 5
    binding: bool = False
    limit: int = 300
    input_low: int = 2
    input_high: int = 99
    places: int | None = None
    operations: str = "+-*"
    form: Literal["formula", "sentence"] = "formula"
    distractors: float = 0.0

    def __post_init__(self) -> None:
        check_count(self.look_back, "look_back", most=50)
        check_count(self.limit, "limit", least=50, most=10**9)
        check_count(self.input_low, "input_low", least=0, most=10**6)
        check_count(self.input_high, "input_high", least=max(1, self.input_low), most=10**6)
        if self.places is not None:
            check_count(self.places, "places", most=6)
        signs = self.operations
        if not isinstance(signs, str) or set(signs) - set("+-*/") or len(set(signs)) != len(signs):
            raise ConfigError(f"operations are some of + - * /, each once, not {signs!r}", option="operations")
        if not set(signs) & set("+-"):
            raise ConfigError("operations need + or -, which bring values together", option="operations")
        if "/" in signs and self.places is None:
            raise ConfigError("division needs places, to which quotients are rounded: places=2", option="operations")
        if "/" in signs and self.binding:
            raise ConfigError(
                "binding does not go with division: rounded quotients may only be brought together in ways that erase "
                "no error, and few pairs of values are left; take / out of operations",
                option="binding",
            )
        check_one_of(self.form, ("formula", "sentence"), "form")
        check_flag(self.binding, "binding")
        check_number(self.distractors, "distractors", high=0.5, what="a share")
        if self.distractors and self.look_back < 2:
            raise ConfigError("distractors need a look_back of 2 at least: with 1 they are all that could be read")

    def demonstration(self) -> Demonstration:
        """A worked example with the same knobs."""
        if self.form == "formula" and self.places is None:
            return _INTEGERS
        draft = self.draft(DEMONSTRATION_SEED, self.example_steps)
        return draft.demonstration(FORMULA_SYSTEM if self.form == "formula" else WORDS_SYSTEM)

    def draft(self, seed: int, length: int) -> TaskDraft:
        key = self._key(seed, length)
        program = self._program(random.Random(key), length)
        chance = random.Random(f"sentences:{key}")  # of their own: both forms are to have the same numbers
        places = self.places
        kind = "integer" if places is None else f"decimal({places})"
        return TaskDraft(
            name=f"arithmetic-{length}-{seed}",
            inputs=[Input(name, "number" if places is None else kind) for name in program.inputs],
            given={name: _number(value, places) for name, value in program.inputs.items()},
            lines=[self._line(each, kind, chance) for each in program.instructions],
            facts={"bound": self._bound(program), "distractors": len(program.idle)},
        )

    def _key(self, seed: int, length: int) -> str:
        key = f"arithmetic:{self.look_back}:{self.limit}:{length}:{seed}"
        default = Arithmetic()
        knobs = ("binding", "input_low", "input_high", "places", "operations", "distractors")
        if any(getattr(self, knob) != getattr(default, knob) for knob in knobs):
            key += f":{self.binding}:{self.input_low}:{self.input_high}:{self.places}:{self.operations}"
            key += f":{float(self.distractors)!r}"
        return key

    def _program(self, chance: random.Random, length: int) -> Program:
        scale = 10 ** (self.places or 0)
        shape = ProgramShape(
            look_back=self.look_back,
            binding=self.binding,
            low=self.input_low * scale,
            high=self.input_high * scale,
            limit=self.limit * scale,
            operations=self.operations,
            coherent="/" in self.operations,
        )
        ends = self._ends(length)
        for _ in range(1 if len(ends) == 1 else _RESTARTS):
            program = self._blocks(chance, shape, ends)
            if program is not None:
                return program
        raise ConfigError(
            f"{self.name}: no program of {length} steps was found; allow a larger limit, more operations or fewer "
            "distractors",
            option="task",
        )

    def _blocks(self, chance: random.Random, shape: ProgramShape, ends: list[int]) -> Program | None:
        program: Program | None = None
        done = 0
        for end in ends:
            # Spread evenly; the last step of a block always feeds the answer.
            idle = min(end - done - 1, self._distractors(end) - self._distractors(done))
            for _ in range(_ATTEMPTS if len(ends) == 1 else _ATTEMPTS // 4):
                block = make_block(chance, shape, length=end - done, distractors=idle, before=program)
                if block is not None:
                    break
            else:
                return None
            program = block if program is None else program.then(block)
            done = end
        return program

    def _distractors(self, steps: int) -> int:
        return int(self.distractors * steps + 1e-9)  # a share such as 0.29 is a little less than it says

    def _ends(self, length: int) -> list[int]:
        """Where the blocks of a program end."""
        plain = self == Arithmetic(form=self.form)
        block = _BLOCK if self.look_back > 2 else _BLOCK // 2
        if length <= (_ALWAYS if plain else block):
            return [length]
        count = -(-length // block)
        return [length * number // count for number in range(1, count + 1)]

    def _line(self, instruction: Instruction, kind: str, chance: random.Random) -> Line:
        sign = instruction.sign
        left, right = self._written(instruction.left, sign), self._written(instruction.right, sign)
        formula = f"{left} {sign} {right}"
        if self.form == "formula":
            step = Step(instruction.name, formula, type=kind)
        else:
            sentence = chance.choice(SENTENCES[sign]).format(left=left, right=right)
            check = RuleCheck("formula", fits_formula, (parse_expression(formula), ValueType.parse(kind)))
            step = Step(instruction.name, instruction=sentence, type=kind, reads=instruction.reads, checks=[check])
        operation = _Operation(instruction, self.places)
        return Line(step=step, solve=operation.solve, work=operation.work, formula=formula)

    def _written(self, operand: ProgramOperand, sign: str) -> str:
        if isinstance(operand, str):
            return operand
        return str(operand) if sign in "*/" else _constant(operand, self.places)

    def _bound(self, program: Program) -> int:
        order = [*program.inputs, *(each.name for each in program.instructions)]
        place = {name: at for at, name in enumerate(order)}
        return sum(
            any(place[each.name] - place[name] == self.look_back for name in each.reads)
            for each in program.instructions
        )


@dataclass(frozen=True, slots=True)
class _Operation:
    """One instruction over values as steps have them."""

    instruction: Instruction
    places: int | None

    def solve(self, values: Mapping[str, Value]) -> Value:
        left, right = (self._scaled(each, values) for each in (self.instruction.left, self.instruction.right))
        return _number(compute(self.instruction.sign, left, right), self.places)

    def work(self, values: Mapping[str, Value]) -> str:
        left, right = (self._operand_text(each, values) for each in (self.instruction.left, self.instruction.right))
        return f"{left} {self.instruction.sign} {f'({right})' if right.startswith('-') else right}"

    def _scaled(self, operand: ProgramOperand, values: Mapping[str, Value]) -> int:
        if isinstance(operand, int):
            return operand
        return int(Fraction(to_exact(values[operand])) * 10 ** (self.places or 0))

    def _operand_text(self, operand: ProgramOperand, values: Mapping[str, Value]) -> str:
        if isinstance(operand, str):
            return str(values[operand])
        return str(operand) if self.instruction.sign in "*/" else _constant(operand, self.places)


def _constant(scaled: int, places: int | None) -> str:
    """A scaled number as it stands in a formula: a whole one without places, as ``13.000`` may group thousands."""
    scale = 10 ** (places or 0)
    return str(_number(scaled, places) if scaled % scale else scaled // scale)


def _number(scaled: int, places: int | None) -> Value:
    if places is None:
        return scaled
    whole, part = divmod(abs(scaled), 10**places)
    return Decimal(f"{'-' if scaled < 0 else ''}{whole}.{part:0{places}d}")
