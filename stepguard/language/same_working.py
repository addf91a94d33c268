"""Compares a working with an expression, up to harmless rewriting.

Two expressions are the same working when their normal forms are equal: values stand for names, signs are folded
into terms and factors, sums and products are unordered, brackets around sums and products are dissolved, ``x^2`` is
``x * x``, and a factor of one is none. So ``-96 + 106`` is the working of ``-96 - (-106)``, and ``5 + 5`` is not,
although all three are 10. Nothing is computed: no term is merged, no factor cancelled, no product multiplied out.

A normal form is text: cheap to build, to compare and to read in a test.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import islice
from typing import Final, cast

from stepguard.language.digits import Exact, exact
from stepguard.language.evaluation import evaluate
from stepguard.language.expressions import (
    MIRRORED,
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
    walk,
)
from stepguard.language.values import Value, show_value, to_exact

_UNORDERED: Final = frozenset({"min", "max"})
_MAX_REPEATED: Final = 100  # the largest exponent that is written out as a product
_MAX_SETTLED: Final = 64  # the ways multiply with every function in an expression
_SETTLING: Final = frozenset({"min", "max", "abs", "floor", "ceil", "trunc", "round"})

_Factors = dict[tuple[str, bool], int]  # (text, whether it divides) -> how many times


def normal_form(tree: Expression, values: Mapping[str, Value], *, in_hundredths: bool = False) -> str:
    """The normal form of `tree` with `values` in place of its variables.

    Args:
        in_hundredths: whether ratios among them, 3/20 and ``15%``, are written as ``15 / 100``.

    Raises:
        KeyError: a variable has no value.
    """
    return _Form(values, in_hundredths=in_hundredths).text(tree)


def settled_forms(tree: Expression, values: Mapping[str, Value]) -> Iterator[str]:
    """Yield the normal forms of `tree` with functions replaced by what they came to, at most `_MAX_SETTLED` of them.

    Of ``max(0, h - 40) * rate`` with 46.5 for h these are ``max(0, 6.5) * 18.2``, ``(46.5 - 40) * 18.2`` and
    ``6.5 * 18.2``: the arguments that were worked out, the one that was taken, and its value. The value of the
    expression as a whole is none of its workings.
    """
    if any(type(node) is Call and node.function in _SETTLING for node in walk(tree)):
        # From 1: the first way is the tree itself.
        ways = islice(_Settled(values).ways(tree, whole=True), 1, _MAX_SETTLED)
        yield from (normal_form(each, values) for each in ways)


class _Settled:
    """Writes an expression with the functions in it replaced."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self.values = values

    def ways(self, tree: Expression, *, whole: bool = False) -> Iterator[Expression]:
        """Yield the ways of writing an expression, starting with itself.

        Args:
            whole: whether it is all that is worked out, so that its value would be no working.
        """
        match tree:
            case Chain(operands, operators):
                yield from (Chain(each, operators) for each in self.all(operands))
            case Negate(operand):
                yield from map(Negate, self.ways(operand, whole=whole))
            case Power(base, exponent):
                yield from (Power(*each) for each in self.all((base, exponent)))
            case Compare(operator, left, right):
                yield from (Compare(operator, *each) for each in self.all((left, right)))
            case Call(function, arguments, mode):
                yield from (Call(function, each, mode) for each in self.all(arguments))
                if function in _SETTLING:
                    settled = (Number(cast(Exact, evaluate(each, self.values))) for each in arguments)
                    yield Call(function, tuple(settled), mode)
                    taken = self.taken(tree)
                    yield from (each for each in taken if not (whole and _is_leaf(each)))
                    if not whole:
                        yield Number(cast(Exact, evaluate(tree, self.values)))
            case _:
                yield tree

    def all(self, parts: tuple[Expression, ...]) -> Iterator[tuple[Expression, ...]]:
        """Yield the combinations of the ways of writing several expressions."""
        if not parts:
            yield ()
            return
        for rest in self.all(parts[1:]) if len(parts) > 1 else [()]:
            for first in self.ways(parts[0]):
                yield (first, *rest)

    def taken(self, tree: Call) -> Iterator[Expression]:
        """Yield the arguments that min, max or abs came to."""
        if tree.function in ("min", "max"):
            value = evaluate(tree, self.values)
            for argument in tree.arguments:
                if evaluate(argument, self.values) == value:
                    yield from self.ways(argument)
        elif tree.function == "abs":
            (argument,) = tree.arguments
            negative = cast(Exact, evaluate(argument, self.values)) < 0
            yield from map(Negate, self.ways(argument)) if negative else self.ways(argument)


def operands_of(tree: Expression, values: Mapping[str, Value]) -> tuple[str, ...]:
    """The magnitudes of the numbers in an expression, sorted: two workings differ in operands when these differ."""
    found: list[str] = []
    stack = [tree]
    while stack:
        node = stack.pop()
        match node:
            case Number() | Name():
                value = _leaf(node, values)
                if isinstance(value, bool | str):
                    found.append(show_value(value))
                else:  # a fraction counts as the two numbers that it is written with
                    found.append(str(abs(value.numerator)))
                    found += [str(value.denominator)] if value.denominator != 1 else []
            case Negate(operand) | Not(operand):
                stack.append(operand)
            case Chain(operands, _) | Call(_, operands, _) | Logic(_, operands):
                stack.extend(operands)
            case Power(base, exponent):
                stack += [base, exponent]
            case Compare(_, left, right):
                stack += [left, right]
    return tuple(sorted(found))


def _leaf(tree: Number | Name, values: Mapping[str, Value]) -> Exact | bool | str:
    return tree.value if type(tree) is Number else to_exact(values[tree.name])  # type: ignore[union-attr]


def _is_ratio(tree: Number | Name, values: Mapping[str, Value]) -> bool:
    return tree.percent if type(tree) is Number else type(values[tree.name]) is Fraction  # type: ignore[union-attr]


class _Form:
    def __init__(self, values: Mapping[str, Value], *, in_hundredths: bool = False) -> None:
        self.values = values
        self.in_hundredths = in_hundredths
        self.zeros = {"0"}  # texts that are zero whatever stands around them, and so have no sign

    def text(self, tree: Expression) -> str:
        negative, text = self.signed(tree)
        return f"-{text}" if negative else text

    def signed(self, tree: Expression) -> tuple[bool, str]:
        """Whether a minus leads, and the text without it."""
        if _is_sum(tree):
            return False, f"({''.join(sorted(self.terms(tree)))})"
        factors: _Factors = {}
        negative = self.multiply(tree, 1, factors)
        return self.render(factors, negative)

    def render(self, factors: _Factors, negative: bool) -> tuple[bool, str]:
        shown = sorted(
            f"{'/' if divides else ''}{text}{f'^{times}' if times > 1 else ''}"
            for (text, divides), times in factors.items()
        )
        text = "*".join(shown) or "1"
        if any(not divides and factor in self.zeros for factor, divides in factors):
            self.zeros.add(text)
        return negative and text not in self.zeros, text

    def terms(self, tree: Expression) -> list[str]:
        found: list[str] = []
        self.add(tree, False, found)
        return found

    def add(self, tree: Expression, negative: bool, found: list[str]) -> None:
        """Add the signed terms of `tree`, or of its negative, to those found."""
        if type(tree) is Chain and tree.additive:
            self.add(tree.operands[0], negative, found)
            for operator, operand in zip(tree.operators, tree.operands[1:], strict=True):
                self.add(operand, negative ^ (operator == "-"), found)
        elif type(tree) is Negate:
            self.add(tree.operand, not negative, found)
        else:
            sign, text = self.signed(tree)
            # Zero has no sign: 5 - 0 and 5 + 0 are the same working.
            found.append(f"+{text}" if sign == negative or text in self.zeros else f"-{text}")

    def multiply(self, tree: Expression, times: int, found: _Factors) -> bool:
        """Multiply `tree` in, to the power of `times`, negative for a divisor; return whether a minus is left over."""
        odd = times % 2 == 1
        match tree:
            case Number() | Name():
                value = _leaf(tree, self.values)
                if isinstance(value, bool | str):
                    _put(repr(value), times, found)
                    return False
                if self.in_hundredths and _is_ratio(tree, self.values):
                    value = exact(Fraction(value) * 100)
                    _put("100", -times, found)
                _put(str(abs(value.numerator)), times, found)
                if value.denominator != 1:
                    # The product that a division would give: 1/3 and `1 / 3` are the same working.
                    _put(str(value.denominator), -times, found)
                return odd and value < 0
            case Negate(operand):
                return odd ^ self.multiply(operand, times, found)
            case Chain():
                return self.multiply_sum(tree, times, found) if tree.additive else self.chain(tree, times, found)
            case Power(base, exponent):
                repeated = self.repeated(exponent)
                if repeated:
                    return self.multiply(base, times * repeated, found)
                _put(f"({self.text(base)})^({self.text(exponent)})", times, found)
            case Compare(operator, left, right):
                sides = self.text(left), self.text(right)
                # `a < b` and `b > a` are the same working.
                ways = f"({sides[0]}{operator}{sides[1]})", f"({sides[1]}{MIRRORED[operator]}{sides[0]})"
                _put(min(ways), times, found)
            case Call(function, arguments, mode):
                shown = [self.text(argument) for argument in arguments]
                if function in _UNORDERED:
                    shown.sort()
                _put(f"{function}({','.join(shown)}{f',{mode}' if mode else ''})", times, found)
            case Logic(operator, operands):
                _put(f"{operator}({','.join(sorted(map(self.text, operands)))})", times, found)
            case Not(operand):
                _put(f"not({self.text(operand)})", times, found)
        return False

    def multiply_sum(self, tree: Chain, times: int, found: _Factors) -> bool:
        """Multiply a sum in, in the one of its two signs that makes `a - b` and `-(b - a)` the same factor."""
        terms = self.terms(tree)
        opposite = [each if each[1:] in self.zeros else f"{'-+'[each[0] == '-']}{each[1:]}" for each in terms]
        terms.sort()
        opposite.sort()
        text = f"({''.join(min(terms, opposite))})"
        if terms == opposite:  # such as 5 - 5
            self.zeros.add(text)
        _put(text, times, found)
        return times % 2 == 1 and opposite < terms

    def chain(self, tree: Chain, times: int, found: _Factors) -> bool:
        factors: _Factors = {}
        negative = self.multiply(tree.operands[0], 1, factors)
        for operator, operand in zip(tree.operators, tree.operands[1:], strict=True):
            if operator in ("*", "/"):
                negative ^= self.multiply(operand, 1 if operator == "*" else -1, factors)
            else:  # not a product: what stands left of it is one operand
                sign, text = self.render(factors, negative)
                factors = {(f"({'-' if sign else ''}{text}{operator}{self.text(operand)})", False): 1}
                negative = False
        for (text, divides), count in factors.items():
            _put(text, -count * times if divides else count * times, found)
        return negative and times % 2 == 1

    def repeated(self, exponent: Expression) -> int:
        """The exponent of a power that could as well be written out as a product, otherwise 0."""
        value = _leaf(exponent, self.values) if type(exponent) in (Number, Name) else 0  # type: ignore[arg-type]
        return value if type(value) is int and 2 <= value <= _MAX_REPEATED else 0


def _is_leaf(tree: Expression) -> bool:
    while type(tree) is Negate:
        tree = tree.operand
    return type(tree) in (Number, Name)


def _is_sum(tree: Expression) -> bool:
    while type(tree) is Negate:
        tree = tree.operand
    return type(tree) is Chain and tree.additive


def _put(text: str, times: int, found: _Factors) -> None:
    if text == "1":  # changes nothing, as 100% does not
        return
    key = text, times < 0
    found[key] = found.get(key, 0) + abs(times)
