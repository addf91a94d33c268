"""Other ways to write a step that keep its value: without double signs, larger number first.

Models fail on ``-96 - (-106)`` again and again and find ``106 - 96`` easy. What is asked in the place of a step is a
*stand-in*: steps that are asked and checked like any others, and from whose verified values the value of the step
itself follows. That value is checked once more, against the step as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import count
from typing import ClassVar, cast

from stepguard.core.verdicts import DeviationKind
from stepguard.errors import InexactError, StepguardError
from stepguard.language.digits import Exact
from stepguard.language.evaluation import evaluate, substitute
from stepguard.language.expressions import Chain, Expression, Name, Negate, Number, format_expression
from stepguard.language.values import Value, to_exact
from stepguard.procedure.steps import Step


@dataclass(frozen=True, slots=True)
class StandIn:
    """Steps that are asked in the place of one.

    Attributes:
        steps: the steps, in order. Of a sum all but the last have names of their own, the last one that of the step it
            stands for, and they read nothing but each other: the values stand in them as numbers.
        negated: whether the value is the last one's with the other sign.
        decision: of a truth value what it is, over the differences that the steps are: how each stands to zero.
        in_days: whether the last value is a number of days: those of a span, or the day of a month.
        since: the first day of that month.
        one_by_one: whether each step is asked in a call of its own, so that none is answered in view of another.
        given: values that the steps read beside those of the procedure, such as the parts of a document.
    """

    without_value: ClassVar[DeviationKind] = "wrong_value"
    """What is wrong where no value follows from the steps."""
    steps: tuple[Step, ...]
    negated: bool = False
    decision: Expression | None = None
    in_days: bool = False
    since: date | None = None
    one_by_one: bool = False
    given: tuple[tuple[str, Value], ...] = ()

    def behind(self, values: Mapping[str, Value]) -> tuple[Step, ...]:
        """The steps that are asked next: those whose values are not known yet, or the first of them."""
        unknown = tuple(step for step in self.steps if step.id not in values)
        return unknown[:1] if self.one_by_one else unknown

    @property
    def outcomes(self) -> int | None:
        """How many answers a guess may give, of which one is right; None where that is not limited."""
        return min((few for step in self.steps if (few := step.type.choices) is not None), default=None)

    def restore(self, values: Mapping[str, Value]) -> Value:
        """The value of the step itself, from those of all the steps. Raises EvaluationError: there is none."""
        last = self.steps[-1].id
        number = -cast(int | Decimal | Fraction, values[last]) if self.negated else values[last]
        if self.decision is None:
            return self._measured(number)
        return cast(bool, evaluate(self.decision, {**values, last: number}))

    def quotations(self, values: Mapping[str, Value]) -> tuple[str, ...]:
        """The passages of documents that the value rests on."""
        return ()

    def _measured(self, number: Value) -> Value:
        if not self.in_days:
            return number
        days = to_exact(number)
        if type(days) is not int:
            raise InexactError(f"{days} is no number of days")
        return timedelta(days=days) if self.since is None else self.since + timedelta(days=days - 1)


def part_names(*used: str, prefix: str = "p") -> Iterator[str]:
    """Names for what is asked in the place of a step, none of which is used."""
    return (name for number in count(1) if (name := f"{prefix}{number}") not in used)


def rewrite(step: Step, values: Mapping[str, Value], *, turned: bool = False) -> StandIn | None:
    """The same sum or product of numbers without what trips models; None where there is nothing to rewrite.

    A percentage that is not rounded is asked as a number: models write ``0.7%`` for what is 0.7.

    Sums: no sign is doubled and what is added comes first; of two numbers, the smaller is taken from the larger, and
    the sign of the result put back. Products and quotients: the numbers without their signs, and the sign put back.

    Args:
        step: the step.
        values: what it reads.
        turned: with the two numbers of a sum or product in the other order; what cannot be turned is as it is without.
    """
    plain = plain_form(step, values, turned=turned)
    if plain is None or not step.show_work:
        return None
    written, negated = plain
    as_it_stands = format_expression(written) == substitute(cast(Chain, step.expression), values)
    return None if as_it_stands and not is_plain_percentage(step) else stand_in(step, written, negated=negated)


def plain_form(step: Step, values: Mapping[str, Value], *, turned: bool = False) -> tuple[Chain, bool] | None:
    """How `rewrite` writes a step, and whether that is its other sign; None of what is no sum or product of numbers."""
    tree = step.expression
    if not isinstance(tree, Chain):
        return None
    numbers = [number for operand in tree.operands if (number := number_of(operand, values)) is not None]
    if len(numbers) < len(tree.operands):
        return None
    if tree.additive:
        written, negated = _plain_sum(tree, numbers)
    elif set(tree.operators) <= {"*", "/"}:
        negated = sum(number < 0 for number in numbers) % 2 == 1
        written = Chain(tuple(Number(max(number, -number)) for number in numbers), tree.operators)
    else:
        return None
    if negated and step.type.places is not None:  # not every rounding is the same on both sides of zero
        return None
    if turned and written.operators in (("+",), ("*",)):
        written = Chain(written.operands[::-1], written.operators)
    return written, negated


def stand_in(
    step: Step, written: Expression, *, negated: bool = False, before: tuple[Step, ...] = ()
) -> StandIn | None:
    try:
        # A number of the other sign need not be of the step's type, but a tolerance is the same on both sides.
        plain = (negated and step.type.kind != "number") or is_plain_percentage(step)
        last = Step(step.id, written, type="number" if plain else step.type)
    except StepguardError:
        return None
    return StandIn((*before, last), negated=negated)


def is_plain_percentage(step: Step) -> bool:
    """Whether the value is a percentage that is not rounded, and so any number with a sign behind it."""
    return step.type.kind == "percent" and step.type.places is None


def number_of(node: Expression, values: Mapping[str, Value]) -> Exact | None:
    match node:
        case Negate(operand):
            inner = number_of(operand, values)
            return None if inner is None else -inner
        case Number(value):
            return value
        case Name(name) if name in values:
            number = to_exact(values[name])
            return None if isinstance(number, bool | str) else number
    return None


def _plain_sum(tree: Chain, numbers: list[Exact]) -> tuple[Chain, bool]:
    """A sum with every sign in its operators, and whether it is that of the other sign."""
    signs = ("+", *tree.operators)
    terms = [-number if sign == "-" else number for sign, number in zip(signs, numbers, strict=True)]
    negated = all(term < 0 for term in terms) or (len(terms) == 2 and sum(terms) < 0)
    if negated:
        terms = [-term for term in terms]
    # In their order, but for what is taken away: it cannot come first.
    ordered = sorted(terms, key=lambda term: term < 0)
    operators = tuple("-" if term < 0 else "+" for term in ordered[1:])
    return Chain(tuple(Number(max(term, -term)) for term in ordered), operators), negated
