"""Formulas without decimal places, and long numbers in two: what stands before their last three digits, and these.

Small models find ``184170 + 49`` where they write ``184.17 + 0.049 = 184.22``: they round where nothing says so, and
add in the wrong place. What is asked is multiplied by a power of ten, and code puts the point back; a rounding is asked
afterwards, of the exact value. They write ``52658 - 3000 = 52358``, and find ``52 - 3 = 49``, ``49 * 1000 = 49000`` and
``49000 + 658``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, cast

from stepguard.errors import EvaluationError
from stepguard.language.digits import Exact, exact
from stepguard.language.evaluation import evaluate
from stepguard.language.expressions import Chain, Expression, Negate, Number, walk
from stepguard.language.values import Value
from stepguard.procedure.steps import Step
from stepguard.repair.rewriting import StandIn, number_of, plain_form
from stepguard.repair.small_steps import MAX_PARTS, NoParts, SmallSteps

_MOST_PLACES: Final = 12
"""Numbers of more decimal places are none that people calculate with."""
_TOO_LONG: Final = 10**12
"""What stands before the last three digits of a longer number is no shorter to speak of."""

_SHORT: Final = 10_000
"""Sums of smaller numbers are not parted again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeNumbers(StandIn):
    """A formula in whole numbers.

    Attributes:
        scale: what its value is multiplied by.
        rounding: the step itself, where its value is rounded: it is asked when the exact value is known.
        parted: whether a sum of long numbers in it that was not right either is parted, too, once they are known.
    """

    scale: int
    rounding: Step | None = None
    parted: bool = False

    def behind(self, values: Mapping[str, Value]) -> tuple[Step, ...]:
        """See `StandIn.behind`."""
        unknown = StandIn.behind(self, values)
        if self.parted and 0 < len(unknown) < len(self.steps):  # what stands before the first of them was right
            used = () if self.rounding is None else (self.rounding.id,)
            return (*_sum_in_thousands(unknown[0], values, used), *unknown[1:])
        if unknown or self.rounding is None or self.rounding.id in values:
            return unknown
        kind = self.rounding.type
        return (Step(self.rounding.id, Number(self._with_point(values), percent=kind.kind == "percent"), type=kind),)

    def restore(self, values: Mapping[str, Value]) -> Value:
        """See `StandIn.restore`."""
        return self._with_point(values) if self.rounding is None else values[self.rounding.id]

    def _with_point(self, values: Mapping[str, Value]) -> Exact:
        value = Fraction(cast(Fraction, values[self.steps[-1].id])) / self.scale
        return exact(-value if self.negated else value)


def split_whole(step: Step, values: Mapping[str, Value], *, parted: bool) -> StandIn | None:
    """A formula of sums and products in whole numbers, one operation each; None where there is nothing to gain.

    Args:
        step: the step.
        values: what it reads.
        parted: its numbers in two, too, and its products by digits; of a formula of whole numbers as well.
    """
    tree, negated = plain_form(step, values) or (step.expression, False)
    if tree is None or not step.show_work:
        return None
    try:
        decimals = _decimals(tree, values)
        if not decimals and not parted:
            return None
        whole = _whole(tree, values, decimals)
        result = evaluate(whole, {})
        parts = SmallSteps((step.id, *step.reads), {}, fine=parted)
        parts.named(_in_thousands(whole, parts) if parted else parts.last_operation(whole))
    except (EvaluationError, NoParts):
        return None
    held = {number for part in parts.steps for number in _numbers_in(cast(Expression, part.expression))}
    # No question may hold the value, unless the step itself does.
    if len(parts.steps) > MAX_PARTS or result in held - _numbers_in(whole):
        return None
    value, places = Fraction(cast(Fraction, result)) / 10**decimals, step.type.scale
    return WholeNumbers(
        steps=tuple(parts.steps),
        negated=negated,
        scale=10**decimals,
        rounding=step if places is not None and (value * 10**places).denominator > 1 else None,
        parted=parted,
    )


def _in_thousands(tree: Expression, parts: SmallSteps) -> Expression:
    """The last operation of a formula whose long numbers are parted in two, each half worked out by itself.

    What is taken off is rounded up, and what that is too much put back to the other half, so that nothing is borrowed:
    ``52258 - 2450`` is ``52 - 3`` thousands and ``258 + 550``. So no half hangs on how a small step comes out.
    """
    every = _terms_of(tree)
    longest = max(term.number for term in every)
    terms = sorted((term for term in every if term.number), key=lambda term: term.taken_off)
    # A number by itself is no work.
    if longest >= _TOO_LONG or (len(terms) == 1 and not any(term.factors for term in terms)):
        raise NoParts
    # Numbers of fewer than six digits are cut in the middle.
    scale = 10 ** min(3, (len(str(longest)) + 1) // 2)
    halves = [divmod(-term.number if term.taken_off else term.number, scale) for term in terms]
    front = [replace(term, number=abs(above)) for term, (above, _) in zip(terms, halves, strict=True)]
    behind = [replace(term, number=below, taken_off=False) for term, (_, below) in zip(terms, halves, strict=True)]
    above, below = _sum_of(front, parts), _sum_of(behind, parts)
    if above is None:  # a single digit has no halves
        raise NoParts
    whole = Chain((above, Number(scale)), ("*",))
    return whole if below is None else Chain((parts.named(whole), below), ("+",))


def _sum_in_thousands(step: Step, values: Mapping[str, Value], used: tuple[str, ...]) -> tuple[Step, ...]:
    """A small step that adds long numbers, as further ones that are not known yet; itself where it has none."""
    tree = step.expression
    if not isinstance(tree, Chain) or not tree.additive:
        return (step,)
    try:
        whole = _whole(tree, values, 0)
        parts = SmallSteps(used, {}, prefix=f"{step.id}_")
        last = Step(step.id, _in_thousands(whole, parts))
    except (EvaluationError, NoParts):
        return (step,)
    held = {number for part in (*parts.steps, last) for number in _numbers_in(cast(Expression, part.expression))}
    if max(_numbers_in(whole)) < _SHORT or evaluate(whole, {}) in held:
        return (step,)
    return (*(part for part in parts.steps if part.id not in values), last)


@dataclass(frozen=True, slots=True)
class _Term:
    """A term of a sum: a whole number, which may be parted, times whatever `factors` are."""

    number: int
    taken_off: bool
    factors: tuple[Expression, ...] = ()


def _terms_of(tree: Expression, *, taken_off: bool = False) -> list[_Term]:
    """The terms of a formula of whole numbers; of a product the longest number is the one that is parted."""
    match tree:
        case Number(value):
            return [_Term(abs(int(value)), taken_off != (value < 0))]
        case Negate(operand):
            return _terms_of(operand, taken_off=not taken_off)
        case Chain(operands, operators) if tree.additive:
            signs = (taken_off, *(taken_off != (operator == "-") for operator in operators))
            pairs = zip(operands, signs, strict=True)
            return [term for operand, sign in pairs for term in _terms_of(operand, taken_off=sign)]
    operands = cast(Chain, tree).operands
    numbers = [operand for operand in operands if isinstance(operand, Number)]
    if not numbers:
        raise NoParts
    longest = max(numbers, key=lambda number: abs(Fraction(number.value)))
    at = operands.index(longest)
    (term,) = _terms_of(longest, taken_off=taken_off)
    return [replace(term, factors=(*operands[:at], *operands[at + 1 :]))]


def _sum_of(terms: list[_Term], parts: SmallSteps) -> Expression | None:
    """What terms come to, the first operations as small steps; None where nothing is left of them."""
    kept = [term for term in terms if term.number]
    if not kept:
        return None
    # A sum cannot begin with what is taken off, and no half may come out negative.
    if kept[0].taken_off:
        raise NoParts
    written = [
        Chain((*term.factors, Number(term.number)), ("*",) * len(term.factors)) if term.factors else Number(term.number)
        for term in kept
    ]
    if len(kept) == 1:
        return parts.number_on(written[0])
    total = Chain(tuple(written), tuple("-" if term.taken_off else "+" for term in kept[1:]))
    if Fraction(cast(Fraction, evaluate(total, {}))) < 0:
        raise NoParts
    return parts.named(parts.last_operation(total))


def _numbers_in(tree: Expression) -> set[Exact]:
    return {part.value for part in walk(tree) if isinstance(part, Number)}


def _places_of(number: Exact) -> int:
    """The decimal places of a number."""
    places = 0
    while Fraction(number * 10**places).denominator > 1:
        if places == _MOST_PLACES:
            raise NoParts
        places += 1
    return places


def _decimals(tree: Expression, values: Mapping[str, Value]) -> int:
    """How many decimal places the value of an expression has at most."""
    number = number_of(tree, values)
    if number is not None:
        return _places_of(number)
    match tree:
        case Negate(operand):
            return _decimals(operand, values)
        case Chain(operands, operators) if tree.additive or set(operators) == {"*"}:
            places = [_decimals(operand, values) for operand in operands]
            return max(places) if tree.additive else sum(places)
        case _:
            raise NoParts


def _whole(tree: Expression, values: Mapping[str, Value], decimals: int) -> Expression:
    """The same times a power of ten; of a product the last factor takes what the others leave."""
    number = number_of(tree, values)
    if number is not None:
        return Number(exact(Fraction(number) * 10**decimals))
    if isinstance(tree, Negate):
        return Negate(_whole(tree.operand, values, decimals))
    chain = cast(Chain, tree)
    places = [decimals] * len(chain.operands)
    if not chain.additive:
        places = [_decimals(operand, values) for operand in chain.operands]
        places[-1] += decimals - sum(places)
    operands = zip(chain.operands, places, strict=True)
    return Chain(tuple(_whole(operand, values, count) for operand, count in operands), chain.operators)
