"""Are two formulas equal? Decided in stages, the cheap and certain ones first.

1. The same tree.
2. Values at random points, drawn from a generator that the formulas seed: two that are certainly different refute.
   Agreement proves nothing.
3. The canonical form (`stepguard.formulas.canonical`) proves, and for quotients of polynomials it also refutes.
4. sympy, in a process with a limit on time and memory, may prove.
5. Otherwise it stays open.

Symbols are real numbers unless declared otherwise. Two formulas are compared where both are defined, so that
``(x^2 - 1)/(x - 1)`` equals ``x + 1``; but where only one of them is defined on a whole stretch (``log(x^2)`` and
``2*log(x)``), they differ. Nothing is proved of formulas that were not seen to be defined anywhere.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, get_args

from stepguard.core.verdicts import shorten
from stepguard.formulas.canonical import Canonical, Quotient, TooBig
from stepguard.formulas.numerics import Interval, NumericValue, Pole, Undefined, Unknown, compare, enclose, evaluate_at
from stepguard.formulas.trees import (
    MAX_NODES,
    CallOf,
    Formula,
    PowerOf,
    children,
    count_nodes,
    difference,
    format_formula,
    symbols_in,
    to_data,
)
from stepguard.formulas.worker import WorkerFailed, shared_pool
from stepguard.language.digits import Exact, exact, format_exact

Assumption = Literal["real", "positive", "integer", "natural"]
"""The domain of a symbol; a natural number is a positive whole one."""

ASSUMPTIONS: Final[tuple[str, ...]] = get_args(Assumption)

_POINTS: Final = 30  # one that differs decides; so many that agree are only a reason to ask for a proof
# Mostly small: large values overflow exponentials. A few large ones tell apart formulas that agree near zero.
_SCALES: Final = (1, 1, 3, 3, 10, 100, 10_000, Fraction(1, 2))
_WIDTH: Final = 1e-6
"""Enclosures as narrow as this that meet count as agreement."""
_AGREEING: Final = 3  # fewer say nothing: the formulas may have values nearly nowhere in common
_MAX_CONSTANT_POWER: Final = 1000  # numbers are worked out before anything is decided
_MAX_CONSTANT_FACTORIAL: Final = 100


@dataclass(frozen=True, slots=True)
class Deduction:
    """An answer, yes, no or open, with its reason."""

    answer: Literal["yes", "no", "open"]
    reason: str = ""

    @property
    def yes(self) -> bool:
        """Whether it was proved."""
        return self.answer == "yes"


_YES: Final = Deduction("yes")


class Decider:
    """Decides questions about formulas within one time limit.

    Args:
        assumptions: what symbols stand for; real numbers where nothing is said.
        seconds: how long sympy may take for all of them together.
    """

    def __init__(self, assumptions: Mapping[str, str], seconds: float) -> None:
        self.assumptions = dict(assumptions)
        self._end = time.monotonic() + seconds

    def equal(
        self, left: Formula, right: Formula, *, same_domain: bool = True, right_reaches_further: bool = False
    ) -> Deduction:
        """Whether two formulas are equal.

        Args:
            same_domain: whether they differ where only one of them is defined; otherwise such points do not count.
            right_reaches_further: points where `right` alone is defined do not count in any case.
        """
        if max(count_nodes(left), count_nodes(right)) > MAX_NODES:
            return Deduction("open", f"a formula has more than {MAX_NODES} parts")
        # Sampling goes first even for equal trees: it tells whether they have a value anywhere at all.
        sampled = self._sample(left, right, same_domain=same_domain, right_reaches_further=right_reaches_further)
        if sampled.finding is not None:
            return sampled.finding
        same = left == right
        if not same:
            forms = _forms(left, right)
            if forms is not None:
                canonical, one, other = forms
                try:
                    same = canonical.same(one, other)
                    # Only without opaque parts: sin(x)^2 + cos(x)^2 differs from 1 in form and not in value.
                    if not same and one.plain and other.plain:
                        return Deduction("no", f"{shown(left)} is not {shown(right)}")
                except TooBig:
                    pass
        if same:
            return _YES if sampled.met else _nowhere(left)
        # Without symbols there is only one point, and it is enough.
        if sampled.agreeing < min(_AGREEING, sampled.points):
            return Deduction("open", "too few points where both could be evaluated")
        return self.proved({"op": "zero", "tree": to_data(difference(left, right))}, left, right)

    def proportional(self, left: Formula, right: Formula) -> Deduction:
        """Whether one formula is a number other than zero times the other."""
        if max(count_nodes(left), count_nodes(right)) > MAX_NODES:
            return Deduction("open", f"a formula has more than {MAX_NODES} parts")
        forms = _forms(left, right)
        multiple = False
        if forms is not None:
            canonical, one, other = forms
            try:
                if not one.over and not other.over:
                    return Deduction("open", "both equations say nothing")
                multiple = canonical.ratio(one, other) is not None
                if not multiple and one.plain and other.plain:
                    return Deduction("no", "one is no multiple of the other")
            except TooBig:
                pass
        sampled = self._sample_ratio(left, right)
        if sampled.finding is not None:
            return sampled.finding
        if multiple or left == right:
            return _YES if sampled.met else _nowhere(left)
        if sampled.agreeing < _AGREEING:
            return Deduction("open", "too few points where both could be evaluated")
        return self.proved({"op": "ratio", "left": to_data(left), "right": to_data(right)}, left, right)

    def ask(self, request: Mapping[str, Any], *trees: Formula) -> dict[str, Any] | Deduction:
        """Ask a worker process; an open finding where it gives no answer."""
        for tree in trees:
            # Refused before the worker sees it: sympy works powers of numbers out as it builds them, beyond any time
            # limit.
            costly = _costly(tree)
            if costly is not None:
                return Deduction("open", f"{shown(costly)} is too large to be computed")
        names = symbols_in(*trees)
        assume = {name: kind for name, kind in self.assumptions.items() if name in names}
        try:
            answer = shared_pool().ask({**request, "assume": assume}, seconds=self._end - time.monotonic())
        except WorkerFailed as error:
            return Deduction("open", str(error))
        return Deduction("open", f"sympy failed: {answer['failed']}") if "failed" in answer else answer

    def proved(
        self, request: Mapping[str, Any], *trees: Formula, otherwise: str = "neither proved nor refuted"
    ) -> Deduction:
        """Ask a worker process for a proof; open, with the reason, where there is none."""
        answer = self.ask(request, *trees)
        if isinstance(answer, Deduction):
            return answer
        return _YES if answer.get("proved") is True else Deduction("open", otherwise)

    def points(self, *trees: Formula) -> Iterator[dict[str, Exact]]:
        """Points at which formulas are evaluated: the same ones for the same formulas."""
        names = sorted(symbols_in(*trees))
        if not names:
            yield {}
            return
        # Seeded by the formulas, so that a verdict does not change from run to run.
        draw = random.Random("\n".join(format_formula(tree) for tree in trees))
        for index in range(_POINTS):
            scale = _SCALES[index % len(_SCALES)]
            yield {
                # Every third point is positive throughout, where roots and logarithms of several symbols have values.
                name: self._drawn(draw, self.assumptions.get(name, "real"), scale, above=index % 3 == 0)
                for name in names
            }

    @staticmethod
    def _drawn(draw: random.Random, kind: str, scale: Exact, *, above: bool) -> Exact:
        if kind in ("integer", "natural"):
            number = draw.randint(1, max(6, int(scale) % 50))
            return number if kind == "natural" or above or draw.random() < 0.5 else -number
        # Denominators that exercises do not use keep points off poles and special values.
        parts = draw.choice((7, 11, 13, 97, 101))
        value = exact(Fraction(draw.randint(1, 4 * parts) * scale) / (4 * parts) * 2)
        return value if kind == "positive" or above or draw.random() < 0.5 else -value

    def _sample(self, left: Formula, right: Formula, *, same_domain: bool, right_reaches_further: bool) -> _Sample:
        sample = _Sample()
        # A pole at one drawn point may be an accident; at every one it is none.
        poles = {"left": 0, "right": 0}
        for point in self.points(left, right):
            sample.points += 1
            one, other = _status(left, point), _status(right, point)
            if isinstance(one, _Missing) and isinstance(other, _Missing):
                continue
            if isinstance(one, _Missing) or isinstance(other, _Missing):
                if not same_domain or (right_reaches_further and isinstance(one, _Missing)):
                    continue
                missing, tree, present = (one, left, right) if isinstance(one, _Missing) else (other, right, left)
                assert isinstance(missing, _Missing)
                side = "left" if tree is left else "right"
                poles[side] += missing.kind == "pole"
                # Undefined holds around the point; a single pole may be a removable gap such as that of (x^2 - 1)/(x -
                # 1).
                if missing.kind == "undefined" or poles[side] >= (_AGREEING if point else 1):
                    reason = f"{shown(tree)} is not defined{_where(point)}, {shown(present)} is"
                    return sample.ended(Deduction("no", reason))
                continue
            sample.met = True
            order = compare(one, other)
            if order == 0:
                sample.agreeing += 1
            elif order is not None:
                reason = f"{shown(left)} is {_value_text(one)}{_where(point)}, {shown(right)} is {_value_text(other)}"
                return sample.ended(Deduction("no", reason))
            elif _narrow(one) and _narrow(other):
                sample.agreeing += 1
        return sample

    def _sample_ratio(self, left: Formula, right: Formula) -> _Sample:
        sample = _Sample()
        first: NumericValue | None = None
        for point in self.points(left, right):
            sample.points += 1
            one, other = _status(left, point), _status(right, point)
            if isinstance(one, _Missing) or isinstance(other, _Missing):
                kinds = {each.kind for each in (one, other) if isinstance(each, _Missing)}
                if "undefined" in kinds and (not isinstance(one, _Missing) or not isinstance(other, _Missing)):
                    return sample.ended(Deduction("no", f"one equation is not defined{_where(point)}, the other is"))
                continue
            sample.met = True
            signs = compare(one, 0), compare(other, 0)
            if 0 in signs:
                if any(sign in (1, -1) for sign in signs):
                    return sample.ended(Deduction("no", f"one equation holds{_where(point)}, the other does not"))
                continue
            if None in signs:
                continue
            ratio = _divided(one, other)
            if ratio is None:
                continue
            first = ratio if first is None else first
            if compare(first, ratio) in (1, -1):
                return sample.ended(Deduction("no", "one is no multiple of the other"))
            sample.agreeing += _narrow(ratio)
        return sample


@dataclass(slots=True)
class _Sample:
    finding: Deduction | None = None
    points: int = 0
    met: bool = False
    """Whether both were defined at some point."""
    agreeing: int = 0

    def ended(self, finding: Deduction) -> _Sample:
        self.finding = finding
        return self


@dataclass(frozen=True, slots=True)
class _Missing:
    kind: Literal["undefined", "pole", "unknown"]


def _status(tree: Formula, point: Mapping[str, Exact]) -> NumericValue | _Missing:
    try:
        return evaluate_at(tree, point)
    except Undefined:
        return _Missing("undefined")
    except Pole:
        return _Missing("pole")
    except Unknown:
        return _Missing("unknown")


def _narrow(value: NumericValue) -> bool:
    return not isinstance(value, Interval) or value.width <= _WIDTH


def _divided(one: NumericValue, other: NumericValue) -> NumericValue | None:
    if not isinstance(one, Interval) and not isinstance(other, Interval):
        return exact(Fraction(one) / other)
    try:
        over, under = enclose(one), enclose(other)
    except Unknown:
        return None
    corners = [a / b for a in (over.low, over.high) for b in (under.low, under.high)]
    # Division rounds: a few units in the last place, relative to the largest corner.
    slack = 1e-15 * max(abs(corner) for corner in corners)
    return Interval(min(corners) - slack, max(corners) + slack)


def _forms(left: Formula, right: Formula) -> tuple[Canonical, Quotient, Quotient] | None:
    canonical = Canonical()
    try:
        return canonical, canonical.form(left), canonical.form(right)
    except (TooBig, ZeroDivisionError):
        return None


def _nowhere(tree: Formula) -> Deduction:
    return Deduction("open", f"{shown(tree)} was not seen to have a value anywhere")


def _costly(tree: Formula) -> Formula | None:
    """A part that takes more than any budget to write out: ``9^9^9``."""
    stack = [tree]
    while stack:
        node = stack.pop()
        match node:
            case PowerOf(_, exponent) if not symbols_in(exponent):
                size = _status(exponent, {})
                bounds = (_MAX_CONSTANT_POWER, -_MAX_CONSTANT_POWER)
                if isinstance(size, _Missing) or [compare(size, bound) for bound in bounds] != [-1, 1]:
                    return node
            case CallOf("factorial", argument) if not symbols_in(argument):
                size = _status(argument, {})
                if isinstance(size, _Missing) or compare(size, _MAX_CONSTANT_FACTORIAL) != -1:
                    return node
                continue
        stack += children(node)
    return None


def shown(tree: Formula) -> str:
    """A formula as messages show it."""
    return shorten(format_formula(tree), 60)


def _value_text(value: NumericValue) -> str:
    if isinstance(value, Interval):
        return f"about {(value.low + value.high) / 2:.9g}"
    return shorten(format_exact(value), 40)


def _where(point: Mapping[str, Exact]) -> str:
    if not point:
        return ""
    return " at " + ", ".join(f"{name} = {format_exact(value)}" for name, value in list(point.items())[:4])
