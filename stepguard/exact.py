"""Exact evaluation of expressions, with a limit on the size of every result.

`evaluate` computes with integers and fractions only. Whether a result would be too large is decided from the sizes
of the operands, before it is computed, so that ``9^9^9`` costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import isqrt
from typing import Final, cast

from stepguard.errors import InexactError, TooLargeError, UndefinedError
from stepguard.expressions import Call, Chain, Compare, Expression, Name, Negate, Number, Power, format_expression
from stepguard.numerals import Exact, exact
from stepguard.values import Value, round_exact, to_exact

__all__ = ["MAX_BITS", "evaluate", "substitute"]

MAX_BITS: Final = 6644
"""The largest result: 2000 decimal digits. Larger ones raise `TooLargeError` before they are computed."""

_MAX_WORK: Final = 100 * MAX_BITS
_FREE: Final = 128


def evaluate(tree: Expression, values: Mapping[str, Value]) -> Exact | bool | str:
    """The exact value of an expression.

    Args:
        tree: a parsed expression.
        values: the value of every variable in it.

    Raises:
        UndefinedError: division by zero, or zero to the power of zero or less.
        InexactError: an irrational root or power, or an operand of the wrong kind.
        TooLargeError: a result would pass `MAX_BITS`.
        KeyError: a variable has no value.
    """
    if type(tree) is Name:  # a plain copy may be of any type
        return to_exact(values[tree.name])
    if type(tree) is Chain and len(tree.operands) == 2:
        found = _small(tree, values)
        if found is not None:
            return found
    return _Evaluation(values).value(tree)


def _small(tree: Chain, values: Mapping[str, Value]) -> int | None:
    """A sum, difference or product of two small integers, which most steps are, without ceremony; None for others."""
    numbers: list[int] = []
    for operand in tree.operands:
        value = _leaf(operand, values)
        if type(value) is not int or value.bit_length() > _FREE:
            return None
        numbers.append(value)
    match tree.operators[0]:
        case "+":
            return numbers[0] + numbers[1]
        case "-":
            return numbers[0] - numbers[1]
        case "*":
            return numbers[0] * numbers[1]
    return None


def _leaf(tree: Expression, values: Mapping[str, Value]) -> Value | None:
    if type(tree) is Name:
        return values[tree.name]
    return tree.value if type(tree) is Number else None


def substitute(tree: Expression, values: Mapping[str, Value]) -> str:
    """The formula with numbers filled in, as a careful person would write it: ``-96 - (-106)``.

    Parsed again, the text is this expression with these values. Truth values and text stay names.

    Raises:
        KeyError: a variable has no value.
    """
    if type(tree) is Chain:
        pieces: list[str] = []
        for operand in tree.operands:
            value = _leaf(operand, values)
            if type(value) is not int:
                break
            if pieces:
                pieces.append(tree.operators[len(pieces) // 2])
            pieces.append(f"({value})" if value < 0 and pieces else str(value))
        else:
            return " ".join(pieces)
    return format_expression(_filled(tree, values))


def _filled(tree: Expression, values: Mapping[str, Value]) -> Expression:
    match tree:
        case Name(name):
            found = to_exact(values[name])
            return tree if isinstance(found, bool | str) else Number(found)
        case Number():
            return tree
        case Negate(operand):
            return Negate(_filled(operand, values))
        case Chain(operands, operators):
            return Chain(tuple(_filled(each, values) for each in operands), operators)
        case Power(base, exponent):
            return Power(_filled(base, values), _filled(exponent, values))
        case Compare(operator, left, right):
            return Compare(operator, _filled(left, values), _filled(right, values))
        case Call(function, arguments, mode):
            return Call(function, tuple(_filled(each, values) for each in arguments), mode)


def _bits(number: Exact) -> int:
    if type(number) is int:
        return number.bit_length()
    return number.numerator.bit_length() + number.denominator.bit_length()


def _cost(number: Exact) -> int:
    # Arithmetic with fractions takes greatest common divisors, about eight times the work.
    return number.bit_length() // 8 if type(number) is int else _bits(number)


def _result_bits(operator: str, left: Exact, right: Exact) -> int:
    """At most how many bits the numerator and the denominator of a result have together."""
    over, under = left.numerator.bit_length(), left.denominator.bit_length() - 1
    right_over, right_under = right.numerator.bit_length(), right.denominator.bit_length() - 1
    match operator:
        case "+" | "-":
            size = max(over + right_under, right_over + under) + 2
        case "*" | "/":
            return over + right_over + under + right_under + 2
        case "//":
            return over + right_under + 2
        case _:
            size = right_over + under + 1
    return size + under + right_under + 2 if under or right_under else size


class _Evaluation:
    def __init__(self, values: Mapping[str, Value]) -> None:
        self.values = values
        self.work = 0

    def value(self, tree: Expression) -> Exact | bool:
        kind = type(tree)
        if kind is Compare:
            return self.compare(cast(Compare, tree))
        return self.number(tree)

    def number(self, tree: Expression) -> Exact:
        match tree:
            case Number(value):
                return value
            case Name(name):
                found = to_exact(self.values[name])
                if type(found) is bool or isinstance(found, str):
                    raise InexactError(f"{name} is not a number")
                return found
            case Chain(operands, operators):
                total = self.number(operands[0])
                for operator, operand in zip(operators, operands[1:], strict=True):
                    total = self.apply(operator, total, self.number(operand), tree)
                return total
            case Negate(operand):
                return -self.number(operand)
            case Power(base, exponent):
                return self.power(self.number(base), self.number(exponent), tree)
            case Call(function, arguments, _):
                return self.call(function, [self.number(argument) for argument in arguments], tree)
            case Compare():
                raise InexactError(f"a comparison is not a number: {_short(tree)}")

    def apply(self, operator: str, left: Exact, right: Exact, tree: Expression) -> Exact:
        self.charge(_cost(left) + _cost(right), tree)
        if _result_bits(operator, left, right) > MAX_BITS:
            raise TooLargeError(f"the result would be too large: {_short(tree)}")
        if operator == "+":
            return exact(left + right)
        if operator == "-":
            return exact(left - right)
        if operator == "*":
            return exact(left * right)
        if right == 0:
            raise UndefinedError(f"division by zero: {_short(tree)}")
        if operator == "/":
            return exact(Fraction(left) / right)
        if operator == "//":
            return left // right
        return exact(left % right)

    def power(self, base: Exact, exponent: Exact, tree: Expression) -> Exact:
        if type(exponent) is not int:
            raise InexactError(f"only whole exponents are exact: {_short(tree)}")
        if base == 0 and exponent <= 0:
            raise UndefinedError(f"zero to the power of {exponent if exponent else 'zero'}: {_short(tree)}")
        if base in (0, 1):
            return base
        if base == -1:
            return 1 if exponent % 2 == 0 else -1
        size = _bits(base) * abs(exponent)
        if size > MAX_BITS:
            raise TooLargeError(f"the result would be too large: {_short(tree)}")
        self.charge(size // 8, tree)
        return exact(Fraction(base) ** exponent)

    def charge(self, cost: int, tree: Expression) -> None:
        """Count the work done; small numbers are free, their number is limited by the length of an expression."""
        if cost > _FREE:
            self.work += cost
            if self.work > _MAX_WORK:
                raise TooLargeError(f"too much to compute: {_short(tree)}")

    def compare(self, tree: Compare) -> bool:
        left, right = self.number(tree.left), self.number(tree.right)
        match tree.operator:
            case "<":
                return left < right
            case "<=":
                return left <= right
            case ">":
                return left > right
            case ">=":
                return left >= right
            case "==":
                return left == right
            case _:
                return left != right

    def call(self, function: str, arguments: list[Exact], tree: Call) -> Exact:
        first = arguments[0]
        for argument in arguments:
            self.charge(_cost(argument), tree)
        match function:
            case "min" | "max":
                best = first
                for other in arguments[1:]:
                    if (other < best) == (function == "min"):
                        best = other
                return best
            case "abs":
                return first if first >= 0 else -first
            case "floor":
                return first // 1
            case "ceil":
                return -(-first // 1)
            case "trunc":
                return first // 1 if first >= 0 else -(-first // 1)
            case "sqrt":
                return _root(first, tree)
            case _:
                assert tree.mode is not None
                assert type(arguments[1]) is int
                return round_exact(first, arguments[1], tree.mode)


def _root(number: Exact, tree: Call) -> Exact:
    if number < 0:
        raise UndefinedError(f"the root of a negative number: {_short(tree)}")
    over, under = isqrt(number.numerator), isqrt(number.denominator)
    if over * over != number.numerator or under * under != number.denominator:
        raise InexactError(f"the root is irrational: {_short(tree)}")
    return exact(Fraction(over, under))


def _short(tree: Expression) -> str:
    if type(tree) is Chain and len(tree.operands) > 30:
        tree = Chain(tree.operands[:30], tree.operators[:29])
    text = format_expression(tree)
    return text if len(text) <= 60 else f"{text[:57]}..."
