"""What a formula does, whichever way it is written: what it adds, by what it multiplies, to which powers it raises.

``a - -5`` adds 5, ``a * 0.5`` and ``a / 2`` halve, ``a + a`` doubles, and ``a * 80 / 100`` takes off 20%.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from typing import Final

from stepguard.language.expressions import Call, Chain, Expression, Name, Negate, Number, Power, walk

_CARRIED_OUT: Final = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
MOST: Final = 20


@dataclass
class Effect:
    """What a formula does."""

    added: set[Fraction] = field(default_factory=set)
    factors: set[Fraction] = field(default_factory=set)
    powers: set[Fraction] = field(default_factory=set)
    sums: list[list[tuple[Expression, bool]]] = field(default_factory=list)
    products: list[list[tuple[Expression, bool]]] = field(default_factory=list)
    """The operands of each, with whether they are added, or multiply."""

    @classmethod
    def of(cls, tree: Expression) -> Effect:
        effect = cls()
        for node in walk(tree):
            if type(node) is Chain:
                if node.additive:
                    effect._sum(node)
                else:
                    effect._product(node)
            elif type(node) is Negate:
                effect.factors.add(Fraction(-1))
                effect.sums.append([(node.operand, False)])
            elif type(node) is Power and (power := constant(node.exponent)) is not None:
                effect.powers.add(power)
            elif type(node) is Call and node.function == "sqrt":
                effect.powers.add(Fraction(1, 2))
        return effect

    def _sum(self, node: Chain) -> None:
        signs = ("+", *node.operators)
        terms = [(each, (sign == "+") is not _negative(each)) for each, sign in zip(node.operands, signs, strict=True)]
        self.sums.append(terms)
        numbers = [
            abs(number) if more else -abs(number) for each, more in terms if (number := constant(each)) is not None
        ]
        self.added |= {*numbers, sum(numbers, Fraction())}
        self._repeated(node, self.factors)

    def _product(self, node: Chain) -> None:
        signs = ("*", *node.operators)
        self.products.append([(each, sign == "*") for each, sign in zip(node.operands, signs, strict=True)])
        # Words may name any run of numbers: `a * 80 / 100` is 80% of a, and divides by 100.
        numbers = [
            number if sign == "*" else 1 / number
            for each, sign in zip(node.operands[:MOST], signs, strict=False)
            if (number := constant(each)) or (number is not None and sign == "*")
        ]
        self.factors |= {
            prod(numbers[first:last], start=Fraction(1))
            for first in range(len(numbers))
            for last in range(first + 1, len(numbers) + 1)
        }
        self._repeated(node, self.powers)

    @staticmethod
    def _repeated(node: Chain, counts: set[Fraction]) -> None:
        if set(node.operators) <= {"+"} or set(node.operators) <= {"*"}:
            counts |= {Fraction(node.operands.count(each)) for each in node.operands[:MOST] if type(each) is Name}


def _negative(tree: Expression) -> bool:
    """Whether an operand is written below zero."""
    if type(tree) is Negate:
        return not _negative(tree.operand)
    if type(tree) is Chain and not tree.additive:
        return sum(map(_negative, tree.operands)) % 2 == 1
    number = constant(tree)
    return number is not None and number < 0


def constant(tree: Expression) -> Fraction | None:
    """What an expression comes to without names; None where it has some, or is no simple sum or product."""
    if type(tree) is Number:
        return Fraction(tree.value)
    if type(tree) is Negate:
        inner = constant(tree.operand)
        return None if inner is None else -inner
    if type(tree) is not Chain or len(tree.operands) > MOST:
        return None
    total = constant(tree.operands[0])
    for sign, operand in zip(tree.operators, tree.operands[1:], strict=True):
        number = constant(operand)
        if total is None or number is None or sign in ("//", "%") or (sign == "/" and not number):
            return None
        total = _CARRIED_OUT[sign](total, number)
    return total
