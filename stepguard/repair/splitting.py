"""Splits a step into smaller ones: one operation each, or the numbers of one operation a digit at a time.

Each small step is asked and checked like any other; `stepguard.repair.rewriting.StandIn` tells what becomes of their
values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Literal, cast

from stepguard.errors import EvaluationError
from stepguard.language.digits import Exact, exact
from stepguard.language.evaluation import evaluate
from stepguard.language.expressions import Chain, Compare, Expression, Logic, Name, Not, Number
from stepguard.language.values import Value
from stepguard.procedure.steps import Step
from stepguard.repair.date_splitting import days_apart, split_dates
from stepguard.repair.rewriting import StandIn, plain_form, stand_in
from stepguard.repair.small_steps import (
    MAX_PARTS,
    NoParts,
    SmallSteps,
    digits_of,
    placed_digits,
    product_of,
    rounded_up,
)
from stepguard.repair.whole_numbers import split_whole

SplitWay = Literal["digits", "round_numbers", "compensation", "whole_numbers", "thousands"]
"""How two numbers are taken apart:

* ``digits``: the second number of a sum a digit at a time; ``187 + 24`` as ``187 + 20`` and ``207 + 4``;
* ``round_numbers``: the shorter number, and where a digit carries or borrows, to the round number first; ``187 + 24``
  as ``187 + 20``, ``207 + 3`` and ``210 + 1``;
* ``compensation``: a number is rounded up, and what that is too much is put back; ``204 + 94`` as ``204 + 100`` and
  ``304 - 6``, ``261 - 179`` as ``261 - 200`` and ``61 + 21``, ``7 * 19`` as ``7 * 20``, ``7 * 1`` and ``140 - 7``;
* ``whole_numbers``: without decimal places; ``239.92 - 4.95`` as ``23992 - 495`` (`stepguard.repair.whole_numbers`);
* ``thousands``: so, and what stands before the last three digits by itself; ``52658 - 3000`` as ``52 - 3``,
  ``49 * 1000`` and ``49000 + 658``.

Of several operations ``round_numbers`` and ``compensation`` take the numbers of products apart; the latter also rounds
the number up that the last one adds or takes off, and multiplies by its digits. Where the value has to be rounded, that
is a small step of its own: small models calculate well and round well, but seldom at once.
"""


def split(step: Step, values: Mapping[str, Value], *, way: SplitWay = "digits") -> StandIn | None:
    """A step in smaller ones; None where it cannot be made smaller.

    A step of several operations becomes one step for each, with ``round_numbers`` several for a product; one operation
    on two numbers is taken apart in that way. Of a comparison the difference of its sides is asked, as a number whose
    sign decides; it has no other ways but to turn it (``round_numbers``), and so of each that ``and``, ``or`` and
    ``not`` join. Of a step with dates the sum of days is asked, with ``round_numbers`` a term at a time. No small step
    holds the value of the step as a number, unless the step itself does.

    Args:
        step: the step.
        values: what it reads.
        way: see `SplitWay`. Of two numbers that are multiplied one is taken a digit at a time: the other stands first
            with ``digits``, second with ``round_numbers``.
    """
    if way in ("whole_numbers", "thousands"):
        return split_whole(step, values, parted=way == "thousands")
    tree = step.expression or step.exact
    turned = way == "round_numbers"
    parts = SmallSteps((step.id, *step.reads), values, fine=way != "digits", turned=turned)
    if way == "compensation" and (step.expression is None or isinstance(tree, Compare | Logic | Not)):
        return None
    try:
        if isinstance(tree, Logic | Not):
            return _joined(tree, values, parts, turned=turned)
        if step.expression is None:
            days = split_dates(step, values)
            return days if days is None or way == "digits" else _term_by_term(days)
        if not step.show_work:
            return None
        if isinstance(tree, Compare):
            return _difference(step, tree, parts, turned=turned)
        last = parts.last_operation(step.expression)
        if not parts.steps:
            return _of_two_numbers(step, last, values, parts, way)
        last = parts.compensated(last) if way == "compensation" else parts.rounded_before(last, step.type)
        return _stand_in_of(step, last, parts)
    except (EvaluationError, NoParts):
        return None


def _of_two_numbers(
    step: Step, written: Expression, values: Mapping[str, Value], parts: SmallSteps, way: SplitWay
) -> StandIn | None:
    """One operation on two numbers; its own small steps are those of the numbers."""
    plain, negated = plain_form(step, values) or (written, False)
    last: Expression | None
    match plain, way:
        case Chain((Number(left), Number(right))), _ if min(left, right) < 0:
            return None
        case Chain((Number(left), Number(right)), (("+" | "-" | "*") as sign,)), "compensation":
            last = _compensated(left, sign, right, parts)
        case Chain((Number(left), Number(right)), ("*",)), _:
            last = product_of(left, right, parts, turned=way == "round_numbers")
        case Chain((Number(left), Number(right)), (("+" | "-") as sign,)), _:
            last = _by_digits(left, sign, right, parts, to_round_numbers=way == "round_numbers")
        case Chain((_, _), ("/",)) as division, "digits":
            last = division  # and its rounding by itself
        case _:
            return None
    return _stand_in_of(step, last, parts, negated=negated)


def _term_by_term(sum_of_days: StandIn) -> StandIn | None:
    """A sum whose terms are each added in a step of its own; None where there are two terms only."""
    (step,) = sum_of_days.steps
    tree = cast(Chain, step.expression)
    parts = SmallSteps((step.id,), {})
    last = parts.in_turn(tree.operands, tree.operators)
    return replace(sum_of_days, steps=(*parts.steps, Step(step.id, last))) if parts.steps else None


def _difference(step: Step, tree: Compare, parts: SmallSteps, *, turned: bool) -> StandIn | None:
    """The difference whose sign decides a comparison. Finding that sign is the step: code does not order the sides."""
    last = _subtraction(tree, parts, turned=turned)
    if len(parts.steps) >= MAX_PARTS:
        return None
    decision = Compare(tree.operator, Name(step.id), Number(0))
    return StandIn((*parts.steps, Step(step.id, last)), negated=turned, decision=decision)


def _subtraction(tree: Compare, parts: SmallSteps, *, turned: bool) -> Chain:
    """The difference of the sides of a comparison; `turned`: with the other sign."""
    left, right = parts.number_on(tree.left), parts.number_on(tree.right)
    if turned:
        left, right = right, left
    if isinstance(right, Number) and right.value < 0:  # signs are not doubled
        return Chain((left, Number(-right.value)), ("+",))
    return Chain((left, right), ("-",))


def _joined(tree: Expression, values: Mapping[str, Value], parts: SmallSteps, *, turned: bool) -> StandIn | None:
    """The differences whose signs decide comparisons that are joined; what joins their signs is code's."""

    def decision(part: Expression) -> Expression:
        match part:
            case Logic(operator, operands):
                return Logic(operator, tuple(map(decision, operands)))
            case Not(operand):
                return Not(decision(operand))
            case Compare(operator):
                days = days_apart(part, values)
                difference, other = days or (_subtraction(part, parts, turned=turned), turned)
                named = parts.named(difference)
                return Compare(operator, *((Number(0), named) if other else (named, Number(0))))
            case Name(name) if isinstance(values.get(name), bool):
                return Compare("==", Number(int(cast(bool, values[name]))), Number(1))
            case _:
                raise NoParts

    decided = decision(tree)
    return StandIn(tuple(parts.steps), decision=decided) if 0 < len(parts.steps) <= MAX_PARTS else None


def _stand_in_of(step: Step, last: Expression | None, parts: SmallSteps, *, negated: bool = False) -> StandIn | None:
    if last is None:
        return None
    places = step.type.scale
    if places is not None and parts.has_more_places(last, places):
        last = parts.named(last)
    if not 0 < len(parts.steps) < MAX_PARTS:
        return None
    return stand_in(step, last, negated=negated, before=tuple(parts.steps))


def _by_digits(left: Exact, sign: str, right: Exact, parts: SmallSteps, *, to_round_numbers: bool) -> Expression | None:
    """The second number of a sum or difference a digit at a time."""
    if to_round_numbers and sign == "+":
        left, right = max(left, right), min(left, right)
    pieces = list(_to_round_numbers(left, right, adding=sign == "+")) if to_round_numbers else digits_of(right)
    return parts.in_pieces(Number(left), [(sign, piece) for piece in pieces])


def _compensated(left: Exact, sign: str, right: Exact, parts: SmallSteps) -> Expression | None:
    """One number rounded up, the one that this changes least, and what is too much put back."""
    result = evaluate(Chain((Number(left), Number(right)), (sign,)), {})
    ways: list[tuple[Exact, Exact, Exact]] = []
    for other, number in ((left, right), (right, left)):
        for up in rounded_up(number):
            over = exact(up - Fraction(number))
            # No question may hold the value, and no difference may come out negative.
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


def _to_round_numbers(start: Exact, number: Exact, *, adding: bool) -> Iterator[Exact]:
    """What digits stand for, those that carry or borrow in two: up to the round number, and the rest."""
    for digit, place in placed_digits(number):  # the largest first: none changes a digit that a later one meets
        before = start // place % 10
        first = 10 - before if adding else before
        yield from (exact(part * place) for part in ((first, digit - first) if 0 < first < digit else (digit,)))
