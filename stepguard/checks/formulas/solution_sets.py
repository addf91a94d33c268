"""What is known of the solutions of an equation: how many there are, whether two are one, in which order they stand."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, pairwise

from stepguard.checks.formulas.base import FormulaQuestion
from stepguard.formulas.canonical import TooBig
from stepguard.formulas.deciding import Deduction
from stepguard.formulas.numerics import NumericValue, Pole, Undefined, Unknown, compare, evaluate_at
from stepguard.formulas.sign_charts import SignChart
from stepguard.formulas.trees import Formula, symbols_in
from stepguard.language.digits import Exact, exact


def holds_everywhere(chart: SignChart | None) -> Deduction:
    """Whether every number is a solution."""
    if chart is None:
        return Deduction("open", "whether every number is a solution was not decided")
    try:
        everywhere = all(chart.holds("=", exact(at)) for at in chart.between())
        everywhere = everywhere and all(chart.holds_at("=", root) for root in chart.roots)
    except TooBig:
        return Deduction("open", "whether every number is a solution was not decided")
    return Deduction("yes") if everywhere else Deduction("no", "not every number is a solution")


def counted(count: int, claimed: int) -> Deduction:
    """What follows from so many solutions, of which so many were claimed and proved."""
    if count == claimed:
        return Deduction("yes")
    if count > claimed:
        return Deduction("no", f"{claimed} of {count} solutions")
    # More solutions proved than there are contradicts itself, so nothing is concluded.
    return Deduction("open", f"{claimed} solutions were proved, {count} counted")


def distinct(question: FormulaQuestion, values: Sequence[Formula]) -> Deduction:
    """Whether no solution is written twice."""
    for one, other in combinations(values, 2):
        finding = question.decider.equal(one, other)
        if finding.yes:
            return Deduction("no", "a solution is written twice")
        if finding.answer == "open":
            return Deduction("open", "whether two of the solutions are the same was not decided")
    return Deduction("yes")


def ascending(values: Sequence[Formula]) -> Deduction:
    """Whether the solutions stand in ascending order."""
    for one, other in pairwise(values):
        order = _order(one, other)
        if order == 1:
            return Deduction("no", "the solutions are not in ascending order")
        if order is None:
            return Deduction("open", "the order of the solutions was not decided")
    return Deduction("yes")


def _order(one: Formula, other: Formula) -> int | None:
    if symbols_in(one, other):
        return None
    try:
        values: list[NumericValue] = [evaluate_at(tree, {}) for tree in (one, other)]
    except (Undefined, Pole, Unknown):
        return None
    return compare(*values)


def rank_of(rows: Sequence[Sequence[Exact]]) -> int:
    """How many rows of numbers are independent, by elimination."""
    held = [[Fraction(value) for value in row] for row in rows]
    rank = 0
    for column in range(len(held[0])):
        pivot = next((row for row in range(rank, len(held)) if held[row][column]), None)
        if pivot is None:
            continue
        held[rank], held[pivot] = held[pivot], held[rank]
        for row in range(rank + 1, len(held)):
            factor = held[row][column] / held[rank][column]
            held[row] = [value - factor * above for value, above in zip(held[row], held[rank], strict=True)]
        rank += 1
    return rank
