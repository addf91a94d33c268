"""Formulas without decimal places: the same digits as whole numbers, in whose value code puts the point back.

Small models find ``184170 + 49`` where they write ``184.17 + 0.049 = 184.22``: they round where nothing says so, and
add in the wrong place. What is asked is multiplied by a power of ten; a rounding is asked afterwards, of the exact
value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, cast

from stepguard.errors import EvaluationError
from stepguard.language.digits import Exact, exact
from stepguard.language.evaluation import evaluate
from stepguard.language.expressions import Chain, Expression, Negate, Number, walk
from stepguard.language.values import Value
from stepguard.procedure.steps import Step
from stepguard.repair.rewriting import StandIn, number_of, rewrite
from stepguard.repair.small_steps import MAX_PARTS, NoParts, SmallSteps

_MOST_PLACES: Final = 12
"""Numbers of more decimal places are none that people calculate with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeNumbers(StandIn):
    """A formula in whole numbers.

    Attributes:
        scale: what its value is multiplied by.
        rounding: the step itself, where its value is rounded: it is asked when the exact value is known.
    """

    scale: int
    rounding: Step | None = None

    def behind(self, values: Mapping[str, Value]) -> tuple[Step, ...]:
        """See `StandIn.behind`."""
        unknown = StandIn.behind(self, values)
        if unknown or self.rounding is None or self.rounding.id in values:
            return unknown
        return (Step(self.rounding.id, Number(self._with_point(values)), type=self.rounding.type),)

    def restore(self, values: Mapping[str, Value]) -> Value:
        """See `StandIn.restore`."""
        return self._with_point(values) if self.rounding is None else values[self.rounding.id]

    def _with_point(self, values: Mapping[str, Value]) -> Exact:
        value = Fraction(cast(Fraction, values[self.steps[-1].id])) / self.scale
        return exact(-value if self.negated else value)


def split_whole(step: Step, values: Mapping[str, Value], *, by_places: bool, turned: bool = False) -> StandIn | None:
    """A formula of sums and products in whole numbers, one operation each; None where there is nothing to gain.

    Args:
        step: the step.
        values: what it reads.
        by_places: the numbers of each operation a digit at a time, too; of a formula of whole numbers as well, where
            it has more than one.
        turned: products from the last digit, and sums by way of the number rounded up.
    """
    simpler = rewrite(step, values)
    tree = step.expression if simpler is None else simpler.steps[-1].expression
    if tree is None or not step.show_work:
        return None
    try:
        decimals = _decimals(tree, values)
        whole = _whole(tree, values, decimals)
        result = evaluate(whole, {})
        parts = SmallSteps((step.id, *step.reads), {}, fine=by_places, finest=by_places, turned=turned)
        last = parts.last_operation(whole)
        if not decimals and not (by_places and parts.steps):
            return None
        parts.named(parts.taken_apart(last))
    except (EvaluationError, NoParts):
        return None
    held = {number for each in parts.steps for number in _numbers_in(cast(Expression, each.expression))}
    if len(parts.steps) > MAX_PARTS or result in held - _numbers_in(whole):
        return None
    value, places = Fraction(cast(Fraction, result)) / 10**decimals, step.type.scale
    return WholeNumbers(
        steps=tuple(parts.steps),
        negated=simpler is not None and simpler.negated,
        scale=10**decimals,
        rounding=step if places is not None and (value * 10**places).denominator > 1 else None,
    )


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
            each = [_decimals(operand, values) for operand in operands]
            return max(each) if tree.additive else sum(each)
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
    each = [decimals] * len(chain.operands)
    if not chain.additive:
        each = [_decimals(operand, values) for operand in chain.operands]
        each[-1] += decimals - sum(each)
    operands = zip(chain.operands, each, strict=True)
    return Chain(tuple(_whole(operand, values, places) for operand, places in operands), chain.operators)
