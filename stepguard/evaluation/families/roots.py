"""Whole roots of equations: checking is cheaper than solving.

A benchmark whose checker computes every step itself invites the answer that the checker might as well have done the
work. Here it cannot: it puts the claimed root into the equation and sees whether both sides agree, which takes two
multiplications, and holds no root to compare with.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from stepguard.core.arguments import check_count
from stepguard.evaluation.families.base import DraftedFamily, Line, RuleCheck, TaskDraft
from stepguard.language.values import Value, to_exact
from stepguard.procedure.inputs import Input
from stepguard.procedure.steps import Step

_LARGEST_LINEAR: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Roots(DraftedFamily):
    """Each step asks for the positive whole root of an equation that the root before it is a part of.

    ``r3``: the positive whole number x with ``x^2 + 4*x = 71*r2 - 1020``; or, in other words, two whole numbers that
    differ by 4 and have that product. The left side grows with x, so there is one such number at most. The factor on
    the right is so large that a root before it that is wrong by 1 moves this one by more than 1: no error is erased,
    not even by rounding to the next whole number.

    Args:
        largest: the largest root; the smallest is 2.
        degree: 2, or 3 for cubic equations.

    Raises:
        ConfigError: a knob is out of range.
    """

    example_steps: ClassVar[int] = 3

    largest: int = 40
    degree: int = 2

    def __post_init__(self) -> None:
        check_count(self.largest, "largest", least=5, most=10**6)
        check_count(self.degree, "degree", least=2, most=3)

    def draft(self, seed: int, length: int) -> TaskDraft:
        chance = random.Random(f"roots:{self.largest}:{self.degree}:{length}:{seed}")
        start = before = chance.randint(2, self.largest)
        lines: list[Line] = []
        for number in range(1, length + 1):
            root, linear = chance.randint(2, self.largest), chance.randint(1, _LARGEST_LINEAR)
            least = (root + 1) ** self.degree - root**self.degree + linear  # what moves the root by 1
            factor = chance.randint(least, least + 20)
            left = root**self.degree + linear * root
            equation = _Equation(
                self.degree, linear, factor, f"r{number - 1}" if number > 1 else "n", left - factor * before
            )
            step = Step(
                f"r{number}",
                instruction=equation.wording(in_words=self.degree == 2 and chance.random() < 0.5),
                type="integer",
                reads=[equation.before],
                checks=[RuleCheck("fulfils the equation", fulfils, (equation,))],
            )
            lines.append(Line(step=step, solve=equation.solve, work=equation.work))
            before = root
        return TaskDraft(
            name=f"roots-{length}-{seed}",
            inputs=[Input("n", "integer")],
            given={"n": start},
            lines=lines,
            line_tokens=200,
        )


@dataclass(frozen=True, slots=True)
class _Equation:
    """``x^degree + linear*x = factor*before + constant``."""

    degree: int
    linear: int
    factor: int
    before: str
    constant: int

    def wording(self, *, in_words: bool) -> str:
        right = self._right(self.before)
        if in_words:
            return (
                f"Two positive whole numbers differ by {self.linear}, and their product is {right}. Find the smaller."
            )
        return f"Find the positive whole number x with {self._left('x')} = {right}."

    def work(self, values: Mapping[str, Value]) -> str:
        right = self.factor * int(to_exact(values[self.before])) + self.constant
        root = self.solve(values)
        return f"{self._right(str(values[self.before]))} = {right} and {self._left(str(root))} = {right}, so x"

    def solve(self, values: Mapping[str, Value]) -> Value:
        """By halving; where there is no whole root, which only a wrong value before can bring about, the one below."""
        right = self.factor * int(to_exact(values[self.before])) + self.constant
        low, high = 0, 1
        while self._value(high) <= right:
            high *= 2
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._value(middle) <= right else (low, middle)
        return low

    def _value(self, x: int) -> int:
        power = x * x if self.degree == 2 else x * x * x
        return power + self.linear * x

    def _left(self, x: str) -> str:
        return f"{x}^{self.degree} + {'' if self.linear == 1 else f'{self.linear}*'}{x}"

    def _right(self, before: str) -> str:
        sign = "-" if self.constant < 0 else "+"
        return f"{self.factor}*{before}" + (f" {sign} {abs(self.constant)}" if self.constant else "")


def fulfils(x: Value, values: Mapping[str, Value], equation: _Equation) -> bool:
    """Whether both sides of the equation agree for a claimed root; no root is known here."""
    before = values[equation.before]
    if not isinstance(x, int) or not isinstance(before, int) or x <= 0:
        return False
    power = x * x if equation.degree == 2 else x * x * x
    return power + equation.linear * x == equation.factor * before + equation.constant
