"""Other ways to write a step that keep its value: without double signs, larger number first, or in smaller steps.

Models fail on ``-96 - (-106)`` again and again and find ``106 - 96`` easy. What is asked in the place of a step is a
*stand-in*: steps that are asked and checked like any others, and from whose verified values the value of the step
itself follows. That value is checked once more, against the step as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import count
from typing import Final, cast

from stepguard.errors import EvaluationError, StepguardError
from stepguard.exact import evaluate, substitute
from stepguard.expressions import Call, Chain, Compare, Expression, Name, Negate, Number, format_expression
from stepguard.numerals import Exact
from stepguard.procedure import Step
from stepguard.values import Value, to_exact

__all__ = ["StandIn", "rewrite", "split"]

_MAX_PARTS: Final = 12
"""A step that would need more small ones is not split."""
_TOO_LONG: Final = 10**30


@dataclass(frozen=True, slots=True)
class StandIn:
    """Steps that are asked in the place of one.

    Attributes:
        steps: the steps, in order; all but the last have names of their own, the last one that of the step it
            stands for. They read nothing but each other: the values stand in them as numbers.
        negated: whether the value is the last one's with the other sign.
    """

    steps: tuple[Step, ...]
    negated: bool = False

    def behind(self, values: Mapping[str, Value]) -> tuple[Step, ...]:
        """The steps whose values are not known yet."""
        return tuple(step for step in self.steps if step.id not in values)

    def restore(self, value: Value) -> Value:
        """The value of the step itself, from that of the last stand-in."""
        return -cast(int | Decimal | Fraction, value) if self.negated else value


def rewrite(step: Step, values: Mapping[str, Value], *, turned: bool = False) -> StandIn | None:
    """The same sum or product of numbers without signs that trip models; None where there is nothing to rewrite.

    Sums: no sign is doubled and what is added comes first; of two numbers, the smaller is taken from the larger, and
    the sign of the result put back. Products and quotients: the numbers without their signs, and the sign put back.

    Args:
        step: the step.
        values: what it reads.
        turned: with the two numbers of a sum or product in the other order; what cannot be turned is as it is without.
    """
    tree, leaves = step.expression, _leaves(step, values)
    if not isinstance(tree, Chain) or leaves is None or not step.show_work:
        return None
    if tree.additive:
        written, negated = _plain_sum(tree, leaves)
    elif set(tree.operators) <= {"*", "/"}:
        negated = sum(leaf < 0 for leaf in leaves) % 2 == 1
        written = Chain(tuple(Number(_size(leaf)) for leaf in leaves), tree.operators)
    else:
        return None
    if negated and step.type.places is not None:  # not every rounding is the same on both sides of zero
        return None
    if turned and isinstance(written, Chain) and written.operators in (("+",), ("*",)):
        written = Chain(written.operands[::-1], written.operators)
    if format_expression(written) == substitute(tree, values):
        return None
    return _stand_in(step, written, negated=negated)


def split(step: Step, values: Mapping[str, Value], *, finer: bool = False) -> StandIn | None:
    """A step in smaller ones: one operation each, or one digit at a time; None where it cannot be made smaller.

    No small step holds the value of the step as a number, unless the step itself does.

    Args:
        step: the step.
        values: what it reads.
        finer: the shorter number of a sum digit by digit, and where a digit carries or borrows, to the round number
            first: ``187 + 7`` as ``187 + 3`` and ``190 + 4``.
    """
    tree = step.expression
    if tree is None or not step.show_work:
        return None
    try:
        parts = _Parts((step.id, *step.reads), values)
        last = parts.top(tree)
        if not parts.steps:  # one operation on two numbers
            simpler = rewrite(step, values)
            plain = step if simpler is None else simpler.steps[-1]
            negated = simpler is not None and simpler.negated
            digits = _by_digits(plain, _leaves(plain, values), parts, finer=finer)
            return None if digits is None else _stand_in(step, digits, negated=negated, before=tuple(parts.steps))
        return _stand_in(step, last, before=tuple(parts.steps))
    except (EvaluationError, _NoParts):
        return None


class _NoParts(Exception):
    """A step has no smaller ones."""


def _stand_in(
    step: Step, written: Expression, *, negated: bool = False, before: tuple[Step, ...] = ()
) -> StandIn | None:
    if len(before) >= _MAX_PARTS:
        return None
    try:
        # A number of the other sign need not be of the step's type, but a tolerance is the same on both sides.
        last = Step(step.id, written, type="number" if negated and step.type.kind != "number" else step.type)
    except StepguardError:
        return None
    return StandIn((*before, last), negated=negated)


def _leaves(step: Step, values: Mapping[str, Value]) -> list[Exact] | None:
    """The numbers of a flat sum or product, None where its operands are anything else."""
    if not isinstance(step.expression, Chain):
        return None
    leaves = [_number(operand, values) for operand in step.expression.operands]
    return None if None in leaves else cast("list[Exact]", leaves)


def _number(node: Expression, values: Mapping[str, Value]) -> Exact | None:
    if type(node) is Negate:
        inner = _number(node.operand, values)
        return None if inner is None else -inner
    if type(node) is Number:
        return node.value
    found = to_exact(values[node.name]) if type(node) is Name and node.name in values else None
    return None if isinstance(found, bool | str) else found


def _size(number: Exact) -> Exact:
    return -number if number < 0 else number


def _plain_sum(tree: Chain, leaves: list[Exact]) -> tuple[Chain | Number, bool]:
    """A sum with every sign in its operators, and whether it is that of the other sign."""
    signs = (False, *(operator == "-" for operator in tree.operators))
    terms = [(-leaf if minus else leaf) for leaf, minus in zip(leaves, signs, strict=True)]
    negated = sum(terms) < 0 and len(terms) == 2
    if negated:
        terms = [-term for term in terms]
    # In their order, but for what is taken away: it cannot come first.
    ordered = [term for term in terms if term >= 0] + [term for term in terms if term < 0]
    if ordered[0] < 0:  # all are taken away
        ordered, negated = [-term for term in ordered], not negated
    operators = tuple("-" if term < 0 else "+" for term in ordered[1:])
    return Chain(tuple(Number(_size(term)) for term in ordered), operators), negated


class _Parts:
    """The small steps of an expression, each one operation; their values stand for what they work out."""

    def __init__(self, taken: tuple[str, ...], values: Mapping[str, Value]) -> None:
        self.steps: list[Step] = []
        self._names = (f"p{number}" for number in count(1) if f"p{number}" not in taken)
        self._values = values
        self._known: dict[str, Value] = {}

    def add(self, written: Expression) -> Name:
        """One more small step; its name."""
        name = next(self._names)
        self.steps.append(Step(name, written))
        return Name(name)

    def top(self, tree: Expression) -> Expression:
        """The last operation, on what the small steps before it work out."""
        match tree:
            case Chain(operands, operators):
                whole: Expression = self._leaf(operands[0])
                for operator, operand in zip(operators[:-1], operands[1:-1], strict=True):
                    whole = self._step(Chain((whole, self._leaf(operand)), (operator,)))
                return Chain((whole, self._leaf(operands[-1])), operators[-1:])
            case Compare(operator, left, right):
                return Compare(operator, self._leaf(left), self._leaf(right))
            case Call(function, arguments, mode):
                return Call(function, tuple(map(self._argument, arguments)), mode)
            case Negate(operand):
                return Negate(self._leaf(operand))
            case _:
                raise _NoParts

    def _argument(self, tree: Expression) -> Expression:
        # A division inside a rounding stays there: its own digits may have no end.
        if type(tree) is Chain and "/" in tree.operators:
            return self.top(tree)
        return self._leaf(tree)

    def _leaf(self, tree: Expression) -> Expression:
        number = _number(tree, self._values)
        return self._step(self.top(tree)) if number is None else Number(number)

    def _step(self, written: Expression) -> Expression:
        value = evaluate(written, self._known)
        if not _comes_out(value):  # nobody writes an endless fraction down
            raise _NoParts
        name = self.add(written)
        self._known[name.name] = value
        return name


def _comes_out(value: Exact | bool | str) -> bool:
    if isinstance(value, bool | str):
        return True
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def _by_digits(step: Step, leaves: list[Exact] | None, parts: _Parts, *, finer: bool) -> Expression | None:
    """One number of an operation taken digit by digit; None where that makes nothing smaller."""
    tree = step.expression
    if not isinstance(tree, Chain) or leaves is None or len(leaves) != 2 or min(leaves) < 0:
        return None
    left, right = leaves
    if tree.operators[0] == "*":
        few, many = sorted((left, right), key=lambda number: len(list(_digits(number))))
        pieces = list(_digits(many if len(list(_digits(few))) == 1 else few))
        other = few if len(list(_digits(few))) == 1 else many
        if len(pieces) < 2 or len(pieces) * 2 > _MAX_PARTS or left * right in pieces:
            return None
        pairs = [(Number(piece), Number(other)) if finer else (Number(other), Number(piece)) for piece in pieces]
        products = [parts.add(Chain(pair, ("*",))) for pair in pairs]
        whole: Expression = products[0]
        for product in products[1:-1]:
            whole = parts.add(Chain((whole, product), ("+",)))
        return Chain((whole, products[-1]), ("+",))
    if tree.operators[0] not in "+-":
        return None
    if finer and tree.operators[0] == "+" and right > left:
        left, right = right, left
    pieces = list(_digits(right))
    if finer:
        pieces = list(_to_round_numbers(left, pieces, 1 if tree.operators[0] == "+" else -1))
    result = left + right if tree.operators[0] == "+" else left - right
    if len(pieces) < 2 or len(pieces) > _MAX_PARTS or result in pieces:
        return None
    whole = Number(left)
    for piece in pieces[:-1]:
        whole = parts.add(Chain((whole, Number(piece)), tree.operators))
    return Chain((whole, Number(pieces[-1])), tree.operators)


def _to_round_numbers(start: Exact, pieces: list[Exact], sign: int) -> Iterator[Exact]:
    """The same pieces, with those that carry or borrow in two: up to the round number, and what is left."""
    at = Fraction(start)
    for piece in pieces:
        scale = next(scale for scale in _scales(Fraction(piece)) if Fraction(piece) / scale < 10)
        digit = at // scale % 10
        first = (10 - digit if sign > 0 else digit) * scale
        if 0 < first < piece:
            for part in (first, piece - first):
                yield part.numerator if part.denominator == 1 else part
        else:
            yield piece
        at += sign * piece


def _scales(number: Fraction) -> Iterator[Fraction]:
    """The powers of ten from the last digit of a number on."""
    scale = Fraction(1)
    while (number / scale).denominator != 1:
        scale /= 10
    while True:
        yield scale
        scale *= 10


def _digits(number: Exact) -> Iterator[Exact]:
    """What each digit of a number stands for, the largest first: 285 is 200, 80 and 5."""
    scale = Fraction(1)
    left = Fraction(number)
    if not _comes_out(number) or max(left.numerator, left.denominator) >= _TOO_LONG:
        return
    while left.denominator != 1:
        left, scale = left * 10, scale / 10
    digits = str(left.numerator)
    for at, digit in enumerate(digits):
        if digit != "0":
            part = int(digit) * 10 ** (len(digits) - at - 1) * scale
            yield part.numerator if part.denominator == 1 else part
