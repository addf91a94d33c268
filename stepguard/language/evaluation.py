"""Exact evaluation of expressions, with a limit on the size of every result.

`evaluate` computes with integers and fractions only. Whether a result would be too large is decided from the sizes
of the operands, before it is computed, so that ``9^9^9`` costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil, floor, trunc
from typing import Final

from stepguard.errors import InexactError, TooLargeError, UndefinedError
from stepguard.language.digits import Exact, exact, exact_root
from stepguard.language.expressions import (
    COMPARISONS,
    TRUTHS,
    Call,
    Chain,
    Compare,
    Expression,
    Logic,
    Name,
    Negate,
    Not,
    Number,
    Power,
    format_expression,
    format_value,
    map_parts,
)
from stepguard.language.values import Value, round_exact, to_exact

MAX_BITS: Final = 6644
"""The largest result, in bits: 2000 decimal digits. Larger ones raise `TooLargeError` before they are computed."""

_MAX_WORK: Final = 800 * MAX_BITS  # no mutate: far above what any calculation takes
_SLACK: Final = 2  # no mutate: an estimate of sizes may be a little too large
_GCD: Final = 8  # no mutate: about how many times the work of integers that of fractions is, for their common divisors


def evaluate(tree: Expression, values: Mapping[str, Value]) -> Exact | bool | str:
    """The exact value of an expression.

    Raises:
        UndefinedError: division by zero, or zero to the power of zero or less.
        InexactError: an irrational root or power, or an operand of the wrong kind.
        TooLargeError: a result would pass `MAX_BITS`.
        KeyError: a variable has no value.
    """
    if type(tree) is Name:  # a plain copy may have any type, text included
        return to_exact(values[tree.name])
    evaluation = Evaluation(values)
    return evaluation.truth(tree) if isinstance(tree, TRUTHS) else evaluation.number(tree)


def _leaf(tree: Expression, values: Mapping[str, Value]) -> Value | None:
    if type(tree) is Name:
        return values[tree.name]
    return tree.value if type(tree) is Number else None  # no mutate: where there is none, it is only slower


def substitute(tree: Expression, values: Mapping[str, Value]) -> str:
    """Write the formula with its numbers filled in, as a careful person would: ``-96 - (-106)``.

    Parsed again, the text is this expression with these values. Truth values and text stay names.

    Raises KeyError: a variable has no value.
    """
    if type(tree) is Chain:  # no mutate: only faster, the text is the same below
        pieces: list[str] = []
        for operand in tree.operands:
            value = _leaf(operand, values)
            if pieces:
                pieces.append(tree.operators[len(pieces) // 2])
            if type(value) is int:  # no mutate: likewise
                pieces.append(f"({value})" if value < 0 and len(pieces) > 1 else str(value))
            elif type(operand) is Name and type(value) is str:  # no mutate: likewise
                pieces.append(operand.name)
            else:
                break
        else:
            return " ".join(pieces)
    return format_expression(_filled(tree, values))


def _filled(tree: Expression, values: Mapping[str, Value]) -> Expression:
    if isinstance(tree, Name):
        value = to_exact(values[tree.name])
        return tree if isinstance(value, bool | str) else Number(value)
    return map_parts(tree, lambda part: _filled(part, values))


def _bits(number: Exact) -> int:
    if type(number) is int:
        return number.bit_length()
    return number.numerator.bit_length() + number.denominator.bit_length()


def _cost(number: Exact) -> int:
    return number.bit_length() if type(number) is int else _GCD * _bits(number)


def _result_bits(operator: str, left: Exact, right: Exact) -> int:
    """An upper bound on the bits of a result, numerator and denominator together."""
    if type(left) is int and type(right) is int and operator in ("+", "-", "*"):  # no mutate: only faster
        over, right_over = left.bit_length(), right.bit_length()
        return (over + right_over if operator == "*" else max(over, right_over)) + _SLACK
    over, under = left.numerator.bit_length(), left.denominator.bit_length() - 1
    right_over, right_under = right.numerator.bit_length(), right.denominator.bit_length() - 1
    match operator:
        case "+" | "-":
            size = max(over + right_under, right_over + under) + _SLACK
        case "*" | "/":
            return over + right_over + under + right_under + _SLACK
        case "//":
            return over + right_under + _SLACK
        case _:
            size = right_over + under + _SLACK
    return size + under + right_under + _SLACK if under or right_under else size


class Evaluation:
    """One evaluation, with a limit on what all its operations may cost together."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self.values = values
        self.work = 0

    def truth(self, tree: Expression) -> bool:
        match tree:
            case Compare():
                return self.compare(tree)
            case Logic(operator, operands):
                truths = map(self.truth, operands)  # lazy, so that `n > 0 and total / n > 5` has a value for 0
                return all(truths) if operator == "and" else any(truths)
            case Not(operand):
                return not self.truth(operand)
            case Name(name) if type(value := to_exact(self.values[name])) is bool:
                return value
        raise InexactError(f"{shortened(tree)} is not a truth value")

    def number(self, tree: Expression) -> Exact:
        if type(tree) is Number:
            return tree.value
        if type(tree) is Name:
            value = self.values[tree.name]
            if type(value) is int:
                return value
            value = to_exact(value)
            # Compared by `type`: a truth value is an int to isinstance.
            if type(value) is not int and type(value) is not Fraction:
                raise InexactError(f"{tree.name} is not a number")
            return value
        if type(tree) is Chain:
            total = self.number(tree.operands[0])
            for operator, operand in zip(tree.operators, tree.operands[1:], strict=True):
                total = self.apply(operator, total, self.number(operand), tree)
            return total
        if type(tree) is Negate:
            return -self.number(tree.operand)
        if type(tree) is Power:
            return self.power(self.number(tree.base), self.number(tree.exponent), tree)
        if type(tree) is Call:
            return self.call(tree.function, [self.number(argument) for argument in tree.arguments], tree)
        raise InexactError(f"a comparison is not a number: {shortened(tree)}")

    def apply(self, operator: str, left: Exact, right: Exact, tree: Expression) -> Exact:
        self.charge(_cost(left) + _cost(right), tree)
        # Before anything is computed: the product itself is what would cost too much.
        if _result_bits(operator, left, right) > MAX_BITS:
            raise TooLargeError(f"the result would be too large: {shortened(tree)}")
        if operator == "+":
            return exact(left + right)
        if operator == "-":
            return exact(left - right)
        if operator == "*":
            return exact(left * right)
        if right == 0:
            raise UndefinedError(f"division by zero: {shortened(tree)}")
        if operator == "/":
            return exact(Fraction(left) / right)
        if operator == "//":
            return left // right
        return exact(left % right)

    def power(self, base: Exact, exponent: Exact, tree: Expression) -> Exact:
        if type(exponent) is not int:
            raise InexactError(f"only whole exponents are exact: {shortened(tree)}")
        if base == 0 and exponent <= 0:
            raise UndefinedError(f"zero to the power of {exponent if exponent else 'zero'}: {shortened(tree)}")
        # Before the size is estimated: (-1)^n is small however large n is.
        if base in (1, -1):
            return base if exponent % 2 else 1
        size = _bits(base) * abs(exponent)
        if size > MAX_BITS:
            raise TooLargeError(f"the result would be too large: {shortened(tree)}")
        self.charge(size, tree)
        return exact(Fraction(base) ** exponent)

    def charge(self, cost: int, tree: Expression) -> None:
        """Count the work done, in bits of whole numbers."""
        self.work += cost
        if self.work > _MAX_WORK:
            raise TooLargeError(f"too much to compute: {shortened(tree)}")

    def compare(self, tree: Compare) -> bool:
        left, right = self.number(tree.left), self.number(tree.right)
        return COMPARISONS[tree.operator](left, right)

    def call(self, function: str, arguments: list[Exact], tree: Call) -> Exact:
        first = arguments[0]
        for argument in arguments:
            self.charge(_cost(argument), tree)
        match function:
            case "min":
                return min(arguments)
            case "max":
                return max(arguments)
            case "abs":
                return max(first, -first)
            case "floor":
                return floor(first)
            case "ceil":
                return ceil(first)
            case "trunc":
                return trunc(first)
            case "sqrt":
                return _root(first, tree)
            case _:
                assert tree.mode is not None
                assert type(arguments[1]) is int
                return round_exact(first, arguments[1], tree.mode)


def _root(number: Exact, tree: Call) -> Exact:
    if number < 0:
        raise UndefinedError(f"the root of a negative number: {shortened(tree)}")
    root = exact_root(number, 2)
    if root is None:
        raise InexactError(f"the root is irrational: {shortened(tree)}")
    return root


def shortened(tree: Expression) -> str:
    """An expression as text, cut where it is long."""
    text = format_value(tree)
    return text if len(text) <= 60 else f"{text[:57]}..."
