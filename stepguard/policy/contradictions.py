"""Decide whether conditions can hold together, over every order in which their terms may stand to their bounds.

A term or a sum that is compared with bounds is below, at, between or above them; every other truth value is true or
false. In each of these cases what is said of sums that have terms in common are linear inequalities, which have a
solution or none. Other terms are taken to be independent, so what holds in none of these cases holds never.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import ceil, floor
from typing import Any, Final, NamedTuple

from stepguard.language.expressions import COMPARISONS
from stepguard.policy.condition_reading import (
    Comparison,
    Joined,
    LinearSum,
    Opposite,
    Truth,
    ValueRange,
    added,
    comparisons_in,
)

# Where one of these bounds is passed nothing is claimed: a policy is only refused for what is proved.
_MOST_CASES: Final = 1024
_MOST_OF_A_TERM: Final = 5
_MOST_TOGETHER: Final = 6
_MOST_INEQUALITIES: Final = 24


class RuleConditions:
    """Conditions that hold where a demand stands; of each term the latest are looked at."""

    def __init__(self, outer: RuleConditions | None = None) -> None:
        self._outer = outer
        self._comparing: dict[str, list[Truth]] = {}

    def add(self, condition: Truth) -> None:
        for term in _terms_of(condition):
            self._comparing.setdefault(term, []).append(condition)

    def exclude(self, *conditions: Truth) -> bool:
        """Whether some conditions never hold together with these."""
        terms = list(dict.fromkeys(term for each in conditions for term in _terms_of(each)))
        met = set(terms)
        near: dict[int, Truth] = {}
        # Breadth first: what shares a term with the new condition counts before what shares one with that.
        for term in terms:  # grows by the terms of what is near
            for each in self._of(term):
                if id(each) not in near and len(near) < _MOST_TOGETHER:
                    near[id(each)] = each
                    terms += [name for name in _terms_of(each) if name not in met]
                    met.update(terms)
        return never(conditions, near.values())

    def _of(self, term: str) -> list[Truth]:
        own = self._comparing.get(term, ())[: -_MOST_OF_A_TERM - 1 : -1]
        outer = [] if self._outer is None or len(own) == _MOST_OF_A_TERM else self._outer._of(term)
        return [*own, *outer][:_MOST_OF_A_TERM]


def never(conditions: Iterable[Truth], others: Iterable[Truth] = ()) -> bool:
    """Whether conditions never hold together; beside them as many of some others as can be looked at."""
    cases = _Cases.of(list(conditions))
    if cases is None:
        return False
    for each in others:
        # One that would make too many cases is left out: fewer conditions exclude less, and never too much.
        cases = _Cases.of([*cases.conditions, each]) or cases
    return not cases.some_hold()


class _Cases(NamedTuple):
    """Every order in which the terms of conditions may stand to their bounds."""

    conditions: list[Truth]
    bounds: dict[str, list[Any]]
    places: dict[str, list[int]]
    sums: dict[str, tuple[tuple[str, Fraction], ...]]

    @classmethod
    def of(cls, conditions: list[Truth]) -> _Cases | None:
        """None where there are too many."""
        known: dict[str, set[Any]] = {}
        terms: dict[str, Comparison] = {}
        for each in (atom for condition in conditions for atom in comparisons_in(condition)):
            known.setdefault(each.term, set()).add(each.bound)
            terms[each.term] = each
        bounds = {term: sorted(each) for term, each in known.items()}
        places = {term: _places(each, terms[term].range) for term, each in bounds.items()}
        count = 1
        for each_term in places.values():
            count *= len(each_term)
        if count > _MOST_CASES:
            return None
        met: dict[str, int] = {}
        for term in terms.values():
            for part, _ in term.parts:
                met[part] = met.get(part, 0) + 1
        sums = {each.term: each.parts for each in terms.values() if any(met[part] > 1 for part, _ in each.parts)}
        return cls(conditions, bounds, places, sums)

    def some_hold(self) -> bool:
        """Whether all conditions hold in one of them."""
        for case in product(*self.places.values()):
            where = dict(zip(self.places, case, strict=True))
            if all(_holds(each, where, self.bounds) for each in self.conditions) and self.possible(where):
                return True
        return False

    def possible(self, where: Mapping[str, int]) -> bool:
        """Whether sums with terms in common can stand so."""
        found: list[_Inequality] = []
        for term, parts in self.sums.items():
            place, bounds = where[term], self.bounds[term]
            at, inside = divmod(place, 2)
            below, above = (at, at) if inside else (at - 1, at)
            if below >= 0:
                found.append(_Inequality({**dict(parts), "": -bounds[below]}, strict=not inside))
            if above < len(bounds):
                found.append(_Inequality(added({"": bounds[above]}, dict(parts), -1), strict=not inside))
        return _solvable(found)


class _Inequality(NamedTuple):
    """The constraint that a sum is positive, or where it is not `strict`, not negative."""

    sum: LinearSum
    strict: bool


def _solvable(given: list[_Inequality]) -> bool:
    """Whether inequalities hold together, by taking one term after the other out of them (Fourier and Motzkin)."""
    while (term := next((text for each in given for text in each.sum if text), None)) is not None:
        rest = [each for each in given if term not in each.sum]
        above = [each for each in given if each.sum.get(term, 0) > 0]
        below = [each for each in given if each.sum.get(term, 0) < 0]
        # Elimination grows with the product; what is not decided counts as possible.
        if len(rest) + len(above) * len(below) > _MOST_INEQUALITIES:
            return True
        given = rest + [_without(term, one, other) for one in above for other in below]
    return all(each.sum[""] > 0 or (each.sum[""] == 0 and not each.strict) for each in given)


def _without(term: str, one: _Inequality, other: _Inequality) -> _Inequality:
    total = added(added({}, one.sum, -other.sum[term]), other.sum, one.sum[term])
    return _Inequality({text: each for text, each in total.items() if each or not text}, one.strict or other.strict)


def _terms_of(condition: Truth) -> list[str]:
    names = (name for each in comparisons_in(condition) for name in ([part for part, _ in each.parts] or [each.term]))
    return list(dict.fromkeys(names))


def _places(bounds: Sequence[Any], kind: ValueRange) -> list[int]:
    """Where a term may stand: at its nth bound (2n + 1), or before, between and behind them; or be false and true."""
    # A truth value has no bounds: place 0 is false, 1 is true.
    if bounds[0] is True:
        return [0, 1]
    if kind.options and set(bounds) <= set(kind.options):
        # Options have no order: "none of these" is one place, and only where an option is left.
        others = [0] if set(bounds) < set(kind.options) else []
        return [2 * place + 1 for place in range(len(bounds))] + others
    every = range(2 * len(bounds) + 1)
    if kind == ValueRange():
        return [*every]
    return [each for each in every if _comes_there(each, bounds, kind)]


def _comes_there(place: int, bounds: Sequence[Any], kind: ValueRange) -> bool:
    """Whether a value of its kind can stand at a place."""
    at, inside = divmod(place, 2)
    if inside:
        value = bounds[at]
        fits = kind.step is None or not value % kind.step
        return fits and (kind.least is None or value >= kind.least) and (kind.most is None or value <= kind.most)
    lowest: Fraction | None = bounds[at - 1] if at else None
    highest: Fraction | None = bounds[at] if at < len(bounds) else None
    if kind.step is None:
        too_low = highest is not None and kind.least is not None and highest <= kind.least
        return not too_low and not (lowest is not None and kind.most is not None and lowest >= kind.most)
    firsts = [(floor(lowest / kind.step) + 1) * kind.step] if lowest is not None else []
    firsts += [ceil(kind.least / kind.step) * kind.step] if kind.least is not None else []
    if not firsts:
        return True
    first = max(firsts)
    return (highest is None or first < highest) and (kind.most is None or first <= kind.most)


def _holds(truth: Truth, where: Mapping[str, int], bounds: Mapping[str, list[Any]]) -> bool:
    match truth:
        case Joined(every, parts):
            truths = (_holds(each, where, bounds) for each in parts)
            return all(truths) if every else any(truths)
        case Opposite(part):
            return not _holds(part, where, bounds)
        case Comparison(term, operator, bound):
            # Places and bounds are compared in the same numbering, so the operator works on them directly.
            place = 1 if bound is True else 2 * bisect_left(bounds[term], bound) + 1
            return COMPARISONS[operator](where[term], place)
    return truth
