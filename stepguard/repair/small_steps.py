"""Small steps that an expression is made of, and numbers that are taken apart: digits, and round numbers above them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from math import ceil
from typing import Final

from stepguard.language.digits import Exact, exact
from stepguard.language.evaluation import evaluate
from stepguard.language.expressions import Call, Chain, Compare, Expression, Name, Negate, Number, Power
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value, to_exact
from stepguard.procedure.steps import Step
from stepguard.repair.rewriting import number_of, part_names

MAX_PARTS: Final = 16
"""A step that would need more small ones is not split."""
_TOO_LONG: Final = 10**30


class NoParts(Exception):
    """A step has no smaller ones."""


class SmallSteps:
    """The small steps of an expression, each one operation; their values stand for what they work out.

    Args:
        used_names: names that no small step may have.
        values: what the expression reads.
        fine: whether products in it are taken apart by digits, too.
        turned: in which order; see `product_of`.
        prefix: what their names begin with.
    """

    def __init__(
        self,
        used_names: tuple[str, ...],
        values: Mapping[str, Value],
        *,
        fine: bool = False,
        turned: bool = False,
        prefix: str = "p",
    ) -> None:
        self.steps: list[Step] = []
        self._fine = fine
        self._turned = turned
        self._names = part_names(*used_names, prefix=prefix)
        self._values = values
        self._results: dict[str, Value] = {}

    def add(self, left: Expression, operator: str, right: Expression) -> Name:
        """One more small step; its name."""
        return self.named(Chain((left, right), (operator,)))

    def in_turn(self, operands: Iterable[Expression], operators: Sequence[str]) -> Chain:
        """Add operations from left to right, each a small step; the last one is returned, and not added."""
        remaining = iter(operands)
        whole = next(remaining)
        for operator in operators[:-1]:
            whole = self._step(Chain((whole, next(remaining)), (operator,)))
        return Chain((whole, next(remaining)), (operators[-1],))

    def sum_of(self, terms: Sequence[Expression]) -> Chain:
        """Terms that are added, as `in_turn`."""
        return self.in_turn(terms, "+" * (len(terms) - 1))

    def last_operation(self, tree: Expression) -> Expression:
        """The last operation, on what the small steps before it work out."""
        match tree:
            case Chain(operands, operators):
                return self.in_turn(map(self._leaf, operands), operators)
            case Compare(operator, left, right):
                return Compare(operator, self._leaf(left), self._leaf(right))
            case Call(function, arguments, mode):
                return Call(function, tuple(map(self._argument, arguments)), mode)
            case Negate(operand):
                return Negate(self._leaf(operand))
            case Power(base, exponent):
                return Power(self._leaf(base), self._leaf(exponent))
            case _:
                raise NoParts

    def number_on(self, tree: Expression) -> Expression:
        """One side of a comparison, as a number."""
        leaf = self._leaf(tree)
        value = leaf.value if isinstance(leaf, Number) else self._results[leaf.name]
        # The sign of a difference needs two numbers with finite decimals.
        if isinstance(value, bool | str) or not _comes_out(to_exact(value)):
            raise NoParts
        return leaf

    def _argument(self, tree: Expression) -> Expression:
        # A division inside a rounding stays there: its own digits may have no end.
        if type(tree) is Chain and "/" in tree.operators:
            return self.last_operation(tree)
        return self._leaf(tree)

    def _leaf(self, tree: Expression) -> Name | Number:
        number = number_of(tree, self._values)
        return self._step(self.last_operation(tree)) if number is None else Number(number)

    def _step(self, written: Expression) -> Name:
        match written:
            case Chain((Number(left), Number(right)), ("*",)) if self._fine and min(left, right) >= 0:
                return self.named(product_of(left, right, self, turned=self._turned) or written)
            case _:
                return self.named(written)

    def in_pieces(self, term: Expression, pieces: Sequence[tuple[str, Exact]]) -> Chain | None:
        """What is added and taken off in pieces; None where there are no two, or one would be the result."""
        operators = [sign for sign, _ in pieces]
        whole = Chain((term, *(Number(piece) for _, piece in pieces)), tuple(operators))
        # A question that holds the value could be answered by copying it.
        if len(pieces) < 2 or evaluate(whole, self._results) in [piece for _, piece in pieces]:
            return None
        return self.in_turn(whole.operands, operators)

    def compensated(self, last: Expression) -> Expression:
        """An operation on what a small step works out and a number, which is rounded up, or multiplied by its digits.

        The operation as it is where that is no other way. It follows from the number alone: what a small step comes to
        is not known as long as nobody has worked it out.
        """
        match last:
            case Chain((Name() as term, Number(number)), (("+" | "-" | "*") as sign,)):
                pass
            case Chain((Number(number), Name() as term), (("+" | "*") as sign,)):
                pass
            case _:
                return last
        pieces = digits_of(number) if number > 0 else []
        result = evaluate(last, self._results)
        # No question may hold the value; see `in_pieces`.
        if len(pieces) < 2 or result in pieces:
            return last
        if sign == "*":
            return self.sum_of([self.add(term, sign, Number(piece)) for piece in pieces])
        # To the next whole number where it has decimals, else to the next round one.
        up = ceil(number) if ceil(number) != number else next(rounded_up(number))
        over = exact(up - Fraction(number))
        if result in (up, over):
            return last
        return Chain((self.add(term, sign, Number(up)), Number(over)), ("-" if sign == "+" else "+",))

    def rounded_before(self, last: Expression, kind: ValueType) -> Expression:
        """A sum one term of which is rounded instead of the whole; the sum as it is where that is not the same.

        Models get ``387.25 - 24.9`` right more often than ``387.247 - 24.9``.
        """
        places = kind.scale
        match last:
            case Chain((Name() as term, Number()), ("+" | "-",)) | Chain((Number(), Name() as term), ("+" | "-",)):
                pass
            case _:
                return last
        if places is None or not self.has_more_places(last, places):
            return last
        rounded = ValueType(kind="decimal", places=places, rounding=kind.rounding)
        known = {term.name: rounded.convert(self._results[term.name])}
        if evaluate(last, known) != to_exact(rounded.convert(evaluate(last, self._results))):
            return last
        short = self.named(term, rounded)
        return Chain(tuple(short if operand is term else operand for operand in last.operands), last.operators)

    def has_more_places(self, written: Expression, places: int) -> bool:
        """Whether an expression comes out, and to more decimal places than these."""
        value = evaluate(written, self._results)
        if isinstance(value, bool | str) or not _comes_out(value):
            return False
        return Fraction(value * 10**places).denominator > 1

    def named(self, written: Expression, kind: ValueType | None = None) -> Name:
        """One more small step, which works out an expression; its name."""
        value = evaluate(written, self._results)
        if not _comes_out(value):  # nobody writes an endless fraction down
            raise NoParts
        name = next(self._names)
        self.steps.append(Step(name, written, type=kind))
        self._results[name] = value if kind is None else kind.convert(value)
        return Name(name)


def _comes_out(value: Exact | bool | str) -> bool:
    if isinstance(value, str):
        return True
    # Decimals end where the denominator has no prime factors but 2 and 5.
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def product_of(left: Exact, right: Exact, parts: SmallSteps, *, turned: bool) -> Expression | None:
    """One number times each digit of the other, added up; `turned`: the digit first, of numbers with decimals the last.

    Small models round away what has more places than the sum that it is added to, or add it in the wrong place.
    """
    few, many = sorted((left, right), key=lambda number: len(digits_of(number)))
    factor, other = (many, few) if len(digits_of(few)) == 1 else (few, many)
    pieces = digits_of(factor)
    # Every digit takes a product and a sum. No question may hold the value; see `in_pieces`.
    if len(pieces) < 2 or len(pieces) * 2 > MAX_PARTS or left * right in pieces:
        return None
    if turned and any(Fraction(piece * other).denominator > 1 for piece in pieces):
        pieces.reverse()
    pairs = [(piece, other) if turned else (other, piece) for piece in pieces]
    return parts.sum_of([parts.add(Number(one), "*", Number(two)) for one, two in pairs])


def rounded_up(number: Exact) -> Iterator[Exact]:
    """The numbers above it with one digit, then with more of them, and at last the next power of ten."""
    for _, first in placed_digits(number)[:1]:
        scale = first
        while number % scale:
            yield exact(ceil(number / scale) * scale)
            scale /= 10
        if number != first:
            yield exact(10 * first)


def digits_of(number: Exact) -> list[Exact]:
    """What each digit of a number stands for, the largest first: 285 is 200, 80 and 5."""
    return [exact(digit * place) for digit, place in placed_digits(number)]


def placed_digits(number: Exact) -> list[tuple[int, Fraction]]:
    """The digits of a number but for zeros, each with the power of ten of its place, the largest first.

    None of one whose digits have no end, or are more than anybody takes apart.
    """
    rest, scale = Fraction(number), Fraction(1)
    if not _comes_out(number) or max(rest.numerator, rest.denominator) >= _TOO_LONG:
        return []
    while rest.denominator != 1:
        rest, scale = rest * 10, scale / 10
    digits = enumerate(reversed(str(rest.numerator)))
    return [(int(digit), scale * 10**at) for at, digit in digits if digit != "0"][::-1]
