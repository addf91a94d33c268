"""A second opinion on whether a set of solutions is complete: a scan of the number line for changes of sign.

It can only cast doubt. Sets of solutions that a computer algebra system finds are sometimes too small.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final

from stepguard.formulas.numerics import Pole, Undefined, Unknown, compare, enclose, evaluate_at
from stepguard.formulas.trees import Formula
from stepguard.language.digits import exact

_REACH: Final = 30  # solutions of exercises are small numbers
_PER_UNIT: Final = 16
_HALVINGS: Final = 40  # far below the tolerance
_TOLERANCE: Final = 1e-6  # a zero this near to a known one is that one


def missed_solution(tree: Formula, variable: str, known: Sequence[Formula]) -> float | None:
    """About where a formula seems to be zero besides the known places, None where it does not seem to be."""
    places = [place for formula in known if (place := _place(formula)) is not None]
    # An odd shift keeps the grid off the numbers that solutions usually are.
    grid = [Fraction(step, _PER_UNIT) + Fraction(1, 1009) for step in range(-_REACH * _PER_UNIT, _REACH * _PER_UNIT)]
    signs = [(at, _sign(tree, variable, at)) for at in grid]
    for (low, before), (high, behind) in pairwise(signs):
        # A root that only touches zero is missed; the scan may only cast doubt, so that is no harm.
        if before is None or behind is None or before * behind >= 0:
            continue
        found = _narrowed(tree, variable, low, high, before)
        if found is not None and not any(abs(found - place) < _TOLERANCE for place in places):
            return found
    return None


def _place(tree: Formula) -> float | None:
    try:
        value = enclose(evaluate_at(tree, {}))
    except (KeyError, Undefined, Pole, Unknown):
        return None
    return (value.low + value.high) / 2


def _sign(tree: Formula, variable: str, at: Fraction) -> int | None:
    try:
        return compare(evaluate_at(tree, {variable: exact(at)}), 0)
    except (Undefined, Pole, Unknown):
        return None


def _narrowed(tree: Formula, variable: str, low: Fraction, high: Fraction, before: int) -> float | None:
    """Where the sign changes, None where that is a pole."""
    start = _size(tree, variable, low)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        sign = _sign(tree, variable, middle)
        if not sign:  # exactly zero, or too near to tell
            return float(middle)
        low, high = (middle, high) if sign == before else (low, middle)
    # At a pole the value grows as the interval shrinks, at a root it does not.
    return float(low) if _size(tree, variable, low) <= start else None


def _size(tree: Formula, variable: str, at: Fraction) -> float:
    try:
        value = enclose(evaluate_at(tree, {variable: exact(at)}))
    except (Undefined, Pole, Unknown):
        return 0.0
    return max(abs(value.low), abs(value.high))
