"""A step in smaller ones: one operation each, or the numbers of one operation a digit at a time.

Each small step is asked and checked like any other; `stepguard.repair.rewriting.StandIn` tells what becomes of their
values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count
from typing import Final, Literal, cast

from stepguard.errors import EvaluationError
from stepguard.language.digits import Exact, exact
from stepguard.language.evaluation import evaluate
from stepguard.language.expressions import Call, Chain, Compare, Expression, Logic, Name, Negate, Not, Number, Power
from stepguard.language.values import Value, to_exact
from stepguard.procedure.steps import Step
from stepguard.repair.date_splitting import days_apart, split_dates
from stepguard.repair.rewriting import StandIn, leaves_of, number_of, rewrite, stand_in

Way = Literal["digits", "round_numbers", "compensation"]
"""How two numbers are taken apart:

* ``digits``: the second number of a sum a digit at a time; ``187 + 24`` as ``187 + 20`` and ``207 + 4``;
* ``round_numbers``: the shorter number, and where a digit carries or borrows, to the round number first; ``187 + 24``
  as ``187 + 20``, ``207 + 3`` and ``210 + 1``;
* ``compensation``: a number is rounded up, and what that is too much is put back; ``204 + 94`` as ``204 + 100`` and
  ``304 - 6``, ``261 - 179`` as ``261 - 200`` and ``61 + 21``, ``7 * 19`` as ``7 * 20``, ``7 * 1`` and ``140 - 7``.

Of several operations ``round_numbers`` takes the numbers of products apart; ``compensation`` rounds the number up that
the last one adds or takes off, and multiplies by its digits. Where the step rounds, that is a small step of its own.
"""

_MAX_PARTS: Final = 12
"""A step that would need more small ones is not split."""
_TOO_LONG: Final = 10**30


def split(step: Step, values: Mapping[str, Value], *, way: Way = "digits") -> StandIn | None:
    """A step in smaller ones; None where it cannot be made smaller.

    A step of several operations becomes one step for each, with ``round_numbers`` several for a product; one operation
    on two numbers is taken apart in that way. Of a comparison the difference of its sides is asked, as a number whose
    sign decides; it has no other ways but to turn it (``round_numbers``), and so of each that ``and``, ``or`` and
    ``not`` join. Of a step with dates the sum of days is asked, with ``round_numbers`` a term at a time. No small step
    holds the value of the step as a number, unless the step itself does.

    Args:
        step: the step.
        values: what it reads.
        way: see `Way`. Of two numbers that are multiplied one is taken a digit at a time: the other stands first with
            ``digits``, second with ``round_numbers``.
    """
    tree = step.expression or step.exact
    joined = isinstance(tree, Logic | Not)
    if step.expression is None and not joined:
        return None if way == "compensation" else split_dates(step, values, one_by_one=way == "round_numbers")
    if tree is None or (not step.show_work and not joined):
        return None
    try:
        parts = _Parts((step.id, *step.reads), values, fine=way == "round_numbers")
        if joined:
            return None if way == "compensation" else _differences(tree, values, parts, turned=way == "round_numbers")
        if isinstance(tree, Compare):
            return _difference(step, tree, parts, way)
        several = parts.top(tree)
        if parts.steps:
            return _stand_in_of(step, _finer(step, several, parts) if way == "compensation" else several, parts)
        last: Expression | None
        simpler = rewrite(step, values)  # one operation on two numbers
        plain = step if simpler is None else simpler.steps[-1]
        negated = simpler is not None and simpler.negated
        tree, leaves = plain.expression, leaves_of(plain, values)
        if not isinstance(tree, Chain) or leaves is None or len(leaves) != 2 or min(leaves) < 0:
            return None
        left, right = leaves
        match tree.operators[0], way:
            case ("+" | "-" | "*") as sign, "compensation":
                last = _compensated(left, sign, right, parts)
            case "*", _:
                last = _product(left, right, parts, turned=way == "round_numbers")
            case ("+" | "-") as sign, _:
                last = _by_digits(left, sign, right, parts, to_round_numbers=way == "round_numbers")
            case _:
                return None
        return _stand_in_of(step, last, parts, negated=negated)
    except (EvaluationError, _NoParts):
        return None


def _difference(step: Step, tree: Compare, parts: _Parts, way: Way) -> StandIn | None:
    """The difference whose sign decides a comparison. Finding that sign is the step: code does not order the sides."""
    turned = way == "round_numbers"
    last = _taken_off(tree, parts, turned=turned)
    if way == "compensation" or len(parts.steps) >= _MAX_PARTS:
        return None
    decision = Compare(tree.operator, Name(step.id), Number(0))
    return StandIn((*parts.steps, Step(step.id, last)), negated=turned, decision=decision)


def _taken_off(tree: Compare, parts: _Parts, *, turned: bool) -> Chain:
    """The difference of the sides of a comparison; `turned`: with the other sign."""
    left, right = parts.side(tree.left), parts.side(tree.right)
    if turned:
        left, right = right, left
    if isinstance(right, Number) and right.value < 0:  # signs are not doubled
        return Chain((left, Number(-right.value)), ("+",))
    return Chain((left, right), ("-",))


def _differences(tree: Expression, values: Mapping[str, Value], parts: _Parts, *, turned: bool) -> StandIn | None:
    """The differences whose signs decide comparisons that are joined; what joins their signs is code's."""

    def decision(part: Expression) -> Expression:
        match part:
            case Logic(operator, operands):
                return Logic(operator, tuple(map(decision, operands)))
            case Not(operand):
                return Not(decision(operand))
            case Compare(operator):
                days = days_apart(part, values)
                difference, other = days or (_taken_off(part, parts, turned=turned), turned)
                named = parts.named(difference)
                return Compare(operator, *((Number(0), named) if other else (named, Number(0))))
            case Name(name) if isinstance(values.get(name), bool):
                return Compare("==", Number(int(cast(bool, values[name]))), Number(1))
            case _:
                raise _NoParts

    decided = decision(tree)
    return StandIn(tuple(parts.steps), decision=decided) if 0 < len(parts.steps) <= _MAX_PARTS else None


def _finer(step: Step, last: Expression, parts: _Parts) -> Expression:
    """The last of several operations in another way (`_Parts.finer`), and without the rounding of the step."""
    exact_result = isinstance(last, Chain) and "/" not in last.operators
    match last:
        case Chain((Name() as known, Number(number)), (("+" | "-" | "*") as sign,)):
            last = parts.finer(known, sign, number) or last
        case Chain((Number(number), Name() as known), (("+" | "*") as sign,)):
            last = parts.finer(known, sign, number) or last
    return parts.named(last) if step.type.places is not None and exact_result else last


class _NoParts(Exception):
    """A step has no smaller ones."""


def _stand_in_of(step: Step, last: Expression | None, parts: _Parts, *, negated: bool = False) -> StandIn | None:
    if last is None or not 0 < len(parts.steps) < _MAX_PARTS:
        return None
    return stand_in(step, last, negated=negated, before=tuple(parts.steps))


class _Parts:
    """The small steps of an expression, each one operation; their values stand for what they work out.

    Args:
        used_names: names that no small step may have.
        values: what the expression reads.
        fine: whether products in it are taken apart by digits, too.
    """

    def __init__(self, used_names: tuple[str, ...], values: Mapping[str, Value], *, fine: bool = False) -> None:
        self.steps: list[Step] = []
        self._fine = fine
        self._names = (f"p{number}" for number in count(1) if f"p{number}" not in used_names)
        self._values = values
        self._results: dict[str, Value] = {}

    def add(self, left: Expression, operator: str, right: Expression) -> Name:
        """One more small step; its name."""
        return self.named(Chain((left, right), (operator,)))

    def sum_of(self, terms: Sequence[Expression], operator: str = "+") -> Expression:
        """All but the last operation as small steps; the last one is given back."""
        whole = terms[0]
        for term in terms[1:-1]:
            whole = self.add(whole, operator, term)
        return Chain((whole, terms[-1]), (operator,))

    def finer(self, known: Name, sign: str, number: Exact) -> Expression | None:
        """An operation on what a small step works out and a number, which is rounded up, or multiplied by its digits.

        None where that is no other way. It follows from the number alone: what a small step comes to is not known as
        long as nobody has found it.
        """
        pieces = list(_digits(number)) if number > 0 else []
        result = evaluate(Chain((known, Number(number)), (sign,)), self._results)
        if len(pieces) < 2 or result in pieces:
            return None
        if sign == "*":
            return self.sum_of([self.add(known, sign, Number(piece)) for piece in pieces])
        whole = exact(Fraction(-(-Fraction(number) // 1)))
        up = whole if whole != number else next(_rounded_up(number))
        over = exact(up - Fraction(number))
        if result in (up, over):
            return None
        return Chain((self.add(known, sign, Number(up)), Number(over)), ("-" if sign == "+" else "+",))

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
            case Power(base, exponent):
                return Power(self._leaf(base), self._leaf(exponent))
            case _:
                raise _NoParts

    def side(self, tree: Expression) -> Expression:
        """One side of a comparison, as a number."""
        leaf = self._leaf(tree)
        value = leaf.value if isinstance(leaf, Number) else self._results[leaf.name] if isinstance(leaf, Name) else None
        if isinstance(value, bool | str | None) or not _comes_out(to_exact(value)):
            raise _NoParts
        return leaf

    def _argument(self, tree: Expression) -> Expression:
        # A division inside a rounding stays there: its own digits may have no end.
        if type(tree) is Chain and "/" in tree.operators:
            return self.top(tree)
        return self._leaf(tree)

    def _leaf(self, tree: Expression) -> Expression:
        number = number_of(tree, self._values)
        return self._step(self.top(tree)) if number is None else Number(number)

    def _step(self, written: Expression) -> Expression:
        return self.named((self._fine and self._digits_of(written)) or written)

    def _digits_of(self, written: Expression) -> Expression | None:
        match written:
            case Chain((Number(left), Number(right)), ("*",)) if min(left, right) >= 0:
                return _product(left, right, self, turned=True)
        return None

    def named(self, written: Expression) -> Name:
        """One more small step, which works out an expression; its name."""
        value = evaluate(written, self._results)
        if not _comes_out(value):  # nobody writes an endless fraction down
            raise _NoParts
        name = next(self._names)
        self.steps.append(Step(name, written))
        self._results[name] = value
        return Name(name)


def _comes_out(value: Exact | bool | str) -> bool:
    if isinstance(value, bool | str):
        return True
    rest = value.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    return rest == 1


def _product(left: Exact, right: Exact, parts: _Parts, *, turned: bool) -> Expression | None:
    """One number times each digit of the other, added up."""
    few, many = sorted((left, right), key=lambda number: len(list(_digits(number))))
    factor, other = (many, few) if len(list(_digits(few))) == 1 else (few, many)
    pieces = list(_digits(factor))
    if len(pieces) < 2 or len(pieces) * 2 > _MAX_PARTS or left * right in pieces:
        return None
    pairs = [(piece, other) if turned else (other, piece) for piece in pieces]
    return parts.sum_of([parts.add(Number(one), "*", Number(two)) for one, two in pairs])


def _by_digits(left: Exact, sign: str, right: Exact, parts: _Parts, *, to_round_numbers: bool) -> Expression | None:
    """The second number of a sum or difference a digit at a time."""
    if to_round_numbers and sign == "+" and right > left:
        left, right = right, left
    pieces = list(_digits(right))
    if to_round_numbers:
        pieces = list(_to_round_numbers(left, pieces, 1 if sign == "+" else -1))
    result = left + right if sign == "+" else left - right
    if not 2 <= len(pieces) <= _MAX_PARTS or result in pieces:
        return None
    return parts.sum_of([Number(left), *map(Number, pieces)], sign)


def _compensated(left: Exact, sign: str, right: Exact, parts: _Parts) -> Expression | None:
    """One number rounded up, the one that this changes least, and what is too much put back."""
    result = left + right if sign == "+" else left - right if sign == "-" else left * right
    ways: list[tuple[Exact, Exact, Exact]] = []
    for other, number in [(left, right)] if sign == "-" else [(left, right), (right, left)]:
        for up in _rounded_up(number):
            over = exact(up - Fraction(number))
            if result not in (up, over) and (sign != "-" or up <= left):
                ways.append((over, other, up))
                break
    if not ways:
        return None
    over, other, up = min(ways)
    whole = parts.add(Number(other), sign, Number(up))
    if sign == "*":
        return Chain((whole, parts.add(Number(other), "*", Number(over))), ("-",))
    return Chain((whole, Number(over)), ("-" if sign == "+" else "+",))


def _rounded_up(number: Exact) -> Iterator[Exact]:
    """The numbers above it with one digit, then with more of them, and at last the next power of ten."""
    if number <= 0 or not list(_digits(number)):
        return
    first = scale = _scale(next(_digits(number)))
    while number % scale:
        yield exact(-(-Fraction(number) // scale) * scale)
        scale /= 10
    if number != first:
        yield exact(10 * first)


def _to_round_numbers(start: Exact, pieces: list[Exact], sign: int) -> Iterator[Exact]:
    """The same pieces, with those that carry or borrow in two: up to the round number, and what is left."""
    at = Fraction(start)
    for piece in pieces:
        scale = _scale(piece)
        digit = at // scale % 10
        first = (10 - digit if sign > 0 else digit) * scale
        yield from (exact(first), exact(piece - first)) if 0 < first < piece else (piece,)
        at += sign * piece


def _scale(digit: Exact) -> Fraction:
    """The power of ten of a digit's place: 100 of 200."""
    scale, rest = Fraction(1), Fraction(digit)
    while (rest / scale).denominator != 1:
        scale /= 10
    while rest / scale >= 10:
        scale *= 10
    return scale


def _digits(number: Exact) -> Iterator[Exact]:
    """What each digit of a number stands for, the largest first: 285 is 200, 80 and 5."""
    scale = Fraction(1)
    rest = Fraction(number)
    if not _comes_out(number) or max(rest.numerator, rest.denominator) >= _TOO_LONG:
        return
    while rest.denominator != 1:
        rest, scale = rest * 10, scale / 10
    digits = str(rest.numerator)
    for at, digit in enumerate(digits):
        if digit != "0":
            yield exact(int(digit) * 10 ** (len(digits) - at - 1) * scale)
