"""Whether conditions can hold at all: decided over every order in which what they compare may stand to its bounds.

A term that is compared with constants is below, at, between or above them; two terms that are compared with one another
are less, equal or greater; every other truth value is true or false. Terms are taken to be independent, so what holds
in none of these cases holds never.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from fractions import Fraction
from itertools import product
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from stepguard.language.expressions import COMPARISONS, Compare, Expression, Logic, Not, Number
from stepguard.language.terms import LiteralTerm

_MOST_CASES: Final = 1024
_MOST_TOGETHER: Final = 5
_NAME: Final = re.compile(r"\bName\(name='([^']*)'\)")
_KINDS: Final = (str, date, time, timedelta)
_MIRRORED: Final = {">": "<", "<": ">", ">=": "<=", "<=": ">=", "==": "==", "!=": "!="}


class _Comparison(NamedTuple):
    """A term and one of its bounds, as places in an order; `options` are the only texts that the term may be."""

    term: str
    operator: str
    bound: Any
    options: tuple[str, ...] = ()


class _Joined(NamedTuple):
    every: bool
    parts: tuple[_Truth, ...]


class _Opposite(NamedTuple):
    part: _Truth


_Truth = bool | _Comparison | _Joined | _Opposite


@dataclass(frozen=True, slots=True)
class RuleCondition:
    """A condition that has to hold, or must not."""

    truth: _Truth
    holds: bool = True

    @classmethod
    def read(
        cls,
        tree: Expression,
        *,
        named: Mapping[str, str] = MappingProxyType({}),
        options: Callable[[Expression], tuple[str, ...]] = lambda _: (),
    ) -> RuleCondition:
        """A condition that has to hold.

        Args:
            tree: the condition.
            named: names that mean something else than in the conditions that it is held against, and what they mean.
            options: the only texts that a term may be; none where there are others.
        """
        return cls(_read(tree, named, options))

    def comparisons(self) -> Iterator[_Comparison]:
        """What it is joined of."""
        stack = [self.truth]
        while stack:
            match stack.pop():
                case _Joined(_, parts):
                    stack.extend(parts)
                case _Opposite(part):
                    stack.append(part)
                case _Comparison() as atom:
                    yield atom


class RuleConditions:
    """Conditions that have to hold together, as far as the latest that compare something in common show it."""

    def __init__(self) -> None:
        self._comparing: dict[str, list[RuleCondition]] = {}

    def contradict(self, condition: RuleCondition) -> bool:
        """Add a condition; whether it never holds together with those before it."""
        terms = dict.fromkeys(each.term for each in condition.comparisons())
        alike = {id(each): each for term in terms for each in self._comparing.get(term, ())[-_MOST_TOGETHER:]}
        for term in terms:
            self._comparing.setdefault(term, []).append(condition)
        return always([*alike.values(), condition]) is False


def always(conditions: Sequence[RuleCondition]) -> bool | None:
    """Whether conditions hold together in every case (True), or in none (False); None where it depends."""
    known: dict[str, set[Any]] = {}
    options: dict[str, tuple[str, ...]] = {}
    for atom in (atom for each in conditions for atom in each.comparisons()):
        known.setdefault(atom.term, set()).add(atom.bound)
        options[atom.term] = atom.options
    bounds = {term: sorted(each) for term, each in known.items()}
    places = {term: _places(each, options[term]) for term, each in bounds.items()}
    cases = 1
    for each in places.values():
        cases *= len(each)
    if cases > _MOST_CASES:
        return None
    found: set[bool] = set()
    for case in product(*places.values()):
        where = dict(zip(places, case, strict=True))
        found.add(all(_holds(each.truth, where, bounds) is each.holds for each in conditions))
        if len(found) > 1:
            return None
    return found.pop()


def _places(bounds: list[Any], options: tuple[str, ...]) -> list[int]:
    """Where a term may stand: at its nth bound (2n + 1), or before, between and behind them; or be false and true."""
    if bounds[0] is True:
        return [0, 1]
    if options and set(bounds) <= set(options):
        others = [0] if set(bounds) < set(options) else []
        return [2 * place + 1 for place in range(len(bounds))] + others
    return list(range(2 * len(bounds) + 1))


def _holds(truth: _Truth, where: Mapping[str, int], bounds: Mapping[str, list[Any]]) -> bool:
    match truth:
        case _Joined(every, parts):
            truths = (_holds(each, where, bounds) for each in parts)
            return all(truths) if every else any(truths)
        case _Opposite(part):
            return not _holds(part, where, bounds)
        case _Comparison(term, operator, bound):
            place = 1 if bound is True else 2 * bisect_left(bounds[term], bound) + 1
            return COMPARISONS[operator](where[term], place)
    return truth


def _read(tree: Expression, named: Mapping[str, str], options: Callable[[Expression], tuple[str, ...]]) -> _Truth:
    match tree:
        case Logic(operator, operands):
            return _Joined(operator == "and", tuple(_read(each, named, options) for each in operands))
        case Not(operand):
            return _Opposite(_read(operand, named, options))
        case Compare(operator, left, right):
            bounds = [_constant(left), _constant(right)]
            if (bounds[0] is None) == (bounds[1] is None):
                texts = [_text(each, named) for each in (left, right)]
                if texts[0] == texts[1]:
                    return COMPARISONS[operator](0, 0)
                mirrored = texts[0] > texts[1]
                return _Comparison(" ? ".join(sorted(texts)), _MIRRORED[operator] if mirrored else operator, 0)
            term, bound, sign = (
                (left, bounds[1], operator) if bounds[0] is None else (right, bounds[0], _MIRRORED[operator])
            )
            kind = next((each.__name__ for each in _KINDS if isinstance(bound, each)), "number")
            texts_of = options(term) if isinstance(bound, str) else ()
            return _Comparison(f"{kind} {_text(term, named)}", sign, bound, texts_of)
    return _Comparison(_text(tree, named), "==", True)


def _constant(tree: Expression) -> object | None:
    value = tree.value if isinstance(tree, Number | LiteralTerm) else None
    return value if isinstance(value, (int, Fraction, *_KINDS)) and not isinstance(value, bool) else None


def _text(tree: Expression, named: Mapping[str, str]) -> str:
    return _NAME.sub(lambda match: named.get(match[1], match[1]), repr(tree))
