"""Is a range that is claimed the one in which inequalities hold?

The number line is cut at every number where the inequalities can change and at every bound of the claim. On each
piece, and at each cut, both have to say the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key
from itertools import pairwise
from typing import Final

from stepguard.checks.formulas.base import FormulaQuestion
from stepguard.core.verdicts import shorten
from stepguard.formulas.canonical import TooBig
from stepguard.formulas.deciding import Deduction
from stepguard.formulas.numerics import Interval, Pole, Undefined, Unknown, enclose, evaluate_at
from stepguard.formulas.ranges import Region
from stepguard.formulas.real_roots import Coefficients, RealRoot, sign_of
from stepguard.formulas.sign_charts import SignChart, satisfies
from stepguard.formulas.trees import Formula, PowerOf, format_formula, product, symbols_in, total
from stepguard.language.digits import Exact, exact, format_exact
from stepguard.language.expressions import Number

_NARROW: Final = Fraction(1, 10**12)
_MAX_HALVINGS: Final = 200  # two roots may be as close as one likes: then nothing is decided


@dataclass(frozen=True, slots=True)
class _Boundary:
    """A point of the number line: a rational number, a root, or a bound that lies between two numbers."""

    low: Fraction
    high: Fraction
    root: RealRoot | None = None
    bounds: tuple[int, ...] = ()
    """Which bounds of the claim it is, by their place in its list of bounds."""


def compare_region(charts: Sequence[tuple[str, SignChart]], region: Region, question: FormulaQuestion) -> Deduction:
    """Whether a region is where all of the relations hold.

    Args:
        charts: the operators of the relations with the charts of the differences of their sides.
        question: what is asked, for its numbers and its decider.

    Raises:
        TooBig: it takes too much to find out.
    """
    bounds: list[Formula] = []
    for condition in (each for alternative in region.alternatives for each in alternative):
        # Equal formulas share a bound; equal numbers in different notation meet when they are placed.
        bound = question.numbered(condition.bound)
        if symbols_in(bound):
            return Deduction("no", f"the bound {shorten(format_formula(bound), 60)} is no number")
        if bound not in bounds:
            bounds.append(bound)
    cuts: list[_Boundary] = []
    for _, chart in charts:
        cuts += [_Boundary(root.low, root.high, root) for root in chart.roots]
    placed = _placed(cuts, bounds, question)
    if isinstance(placed, Deduction):
        return placed
    order = {index: place for place, cut in enumerate(placed) for index in cut.bounds}
    known = {bound: order[index] for index, bound in enumerate(bounds)}

    def claimed(place: float) -> bool:
        """Whether the claim holds at a place in the order of cuts; halves lie between two of them."""
        return any(
            all(satisfies(each.operator, _sign(place - known[question.numbered(each.bound)])) for each in alternative)
            for alternative in region.alternatives
        )

    # Between two cuts nothing changes, so one number of each stretch stands for all of it.
    for place, at in zip(range(len(placed) + 1), _between(placed), strict=True):
        holds = all(chart.holds(operator, exact(at)) for operator, chart in charts)
        if holds != claimed(place - 0.5):
            return Deduction("no", f"at {_number_text(at)} it {'holds' if holds else 'does not hold'}")
    for place, cut in enumerate(placed):
        holds = all(_holds(chart, operator, cut) for operator, chart in charts)
        if holds != claimed(place):
            return Deduction("no", f"at {_cut_text(cut)} it {'holds' if holds else 'does not hold'}")
    return Deduction("yes")


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _number_text(value: Fraction) -> str:
    return format_exact(value) if value.denominator < 1000 else f"about {format_exact(round(value, 9))}"


def _cut_text(cut: _Boundary) -> str:
    """The number that a cut is, exactly where it is a simple fraction."""
    root = None if cut.root is None else cut.root.narrowed(_NARROW)
    low, high = (cut.low, cut.high) if root is None else (root.low, root.high)
    # A simple fraction within the interval is only shown where it is the root itself.
    near = (low + high) / 2
    simple = near.limit_denominator(999)
    if low <= simple <= high and root is not None and sign_of(root.polynomial, simple) == 0:
        return _number_text(simple)
    return _number_text(near)


def _holds(chart: SignChart, operator: str, cut: _Boundary) -> bool:
    if cut.low == cut.high:
        return chart.holds(operator, exact(cut.low))
    for root in chart.roots:
        if cut.root is not None and _same_root(root, cut.root):
            return chart.holds_at(operator, root)
    # Nothing changes at a bound that is no root: what holds there holds around it.
    middle = (cut.low + cut.high) / 2
    return chart.holds(operator, exact(middle))


def _same_root(one: RealRoot, other: RealRoot) -> bool:
    """Whether two roots, perhaps of different polynomials, are the same number."""
    if one.exact:
        return other.low <= one.low <= other.high and sign_of(other.polynomial, one.low) == 0
    if other.exact:
        return _same_root(other, one)
    if one == other:
        return True
    if one.high < other.low or other.high < one.low or one.sign_at(other.polynomial) != 0:
        return False
    # `one` is a root of the other polynomial too: is it this root of it?
    for _ in range(_MAX_HALVINGS):
        if other.low <= one.low and one.high <= other.high:
            return True
        if one.high < other.low or other.high < one.low:
            return False
        one = one.refined()
    raise TooBig


def _placed(
    cuts: Sequence[_Boundary], bounds: Sequence[Formula], question: FormulaQuestion
) -> list[_Boundary] | Deduction:
    """All cuts in ascending order, each number once, with the bounds that they are."""
    merged: list[_Boundary] = []
    for cut in cuts:
        assert cut.root is not None
        if not any(each.root is not None and _same_root(each.root, cut.root) for each in merged):
            merged.append(cut)
    for index, bound in enumerate(bounds):
        found = _place(bound, index, merged, question)
        if isinstance(found, Deduction):
            return found
        merged = found
    for _ in range(_MAX_HALVINGS):
        # By the middles, since intervals may overlap before they are narrowed.
        merged.sort(key=cmp_to_key(lambda one, other: -1 if one.low + one.high < other.low + other.high else 1))
        close = {index for index in range(len(merged) - 1) if merged[index].high >= merged[index + 1].low}
        if not close:
            return merged
        touched = close | {index + 1 for index in close}
        merged = [_halved(cut) if index in touched else cut for index, cut in enumerate(merged)]
    return Deduction("open", "the order of the bounds was not decided")


def _halved(cut: _Boundary) -> _Boundary:
    if cut.root is None:
        return cut
    root = cut.root.refined()
    return _Boundary(root.low, root.high, root, cut.bounds)


def _place(
    bound: Formula, index: int, cuts: Sequence[_Boundary], question: FormulaQuestion
) -> list[_Boundary] | Deduction:
    """The cuts with one more bound among them."""
    try:
        value = evaluate_at(bound, {})
    except (Undefined, Pole):
        return Deduction("no", f"the bound {shorten(format_formula(bound), 60)} is not defined")
    except Unknown:
        return Deduction("open", "a bound could not be evaluated")
    low, high = _ends(value)
    for place, cut in enumerate(cuts):
        same = _is_cut(bound, low, high, cut, question)
        if isinstance(same, Deduction):
            return same
        if same:
            held = _Boundary(cut.low, cut.high, cut.root, (*cut.bounds, index))
            return [*cuts[:place], held, *cuts[place + 1 :]]
    return [*cuts, _Boundary(low, high, None, (index,))]


def _ends(value: Exact | Interval) -> tuple[Fraction, Fraction]:
    if not isinstance(value, Interval):
        return Fraction(value), Fraction(value)
    near = enclose(value)
    return Fraction(near.low), Fraction(near.high)


def _is_cut(
    bound: Formula, low: Fraction, high: Fraction, cut: _Boundary, question: FormulaQuestion
) -> bool | Deduction:
    """Whether a bound is the number at which there is a cut already."""
    if cut.root is None:
        if high < cut.low or cut.high < low:
            return False
        return Deduction("open", "whether two bounds are the same was not decided")
    root = cut.root.narrowed(_NARROW)
    if high < root.low or root.high < low:
        return False
    if root.exact:
        finding = question.decider.equal(bound, Number(exact(root.low)))
    else:
        if not (cut.low <= low and high <= cut.high):  # it may lie on either side of where this root was looked for
            return Deduction("open", "whether a bound is exact was not decided")
        finding = question.decider.equal(_value(root.polynomial, bound), Number(0))
    if finding.answer == "open":
        return Deduction("open", f"whether a bound is exact was not decided: {finding.reason}")
    return finding.yes


def _value(polynomial: Coefficients, at: Formula) -> Formula:
    """A polynomial with a formula in the place of its unknown."""
    return total(
        product((Number(value), PowerOf(at, Number(power)))) if power else Number(value)
        for power, value in enumerate(polynomial)
        if value
    )


def _between(cuts: Sequence[_Boundary]) -> list[Fraction]:
    if not cuts:
        return [Fraction(0)]
    middles = [(one.high + other.low) / 2 for one, other in pairwise(cuts)]
    return [cuts[0].low - 1, *middles, cuts[-1].high + 1]
