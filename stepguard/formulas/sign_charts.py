"""Where a relation in one unknown holds: on which stretches of the real line, and at which points between them.

It is worked out exactly for quotients of polynomials with rational coefficients, and for absolute values of them: the
line is cut at every number where something could change, and on each piece the signs say what holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from itertools import product as combinations
from typing import Final

from stepguard.formulas.canonical import Canonical, Polynomial, Quotient, TooBig
from stepguard.formulas.numerics import Pole, Undefined, Unknown, compare, evaluate_at
from stepguard.formulas.real_roots import Coefficients, RealRoot, isolate_roots, multiply, primitive
from stepguard.formulas.trees import CallOf, Formula, difference, negative, rebuilt, symbols_in, walk
from stepguard.language.digits import Exact, exact
from stepguard.language.expressions import COMPARISONS

_MAX_ABSOLUTES: Final = 4  # each doubles the number of cases


def satisfies(operator: str, sign: int) -> bool:
    """Whether a number of this sign stands in a relation to zero."""
    return COMPARISONS["==" if operator == "=" else operator](sign, 0)


@dataclass(frozen=True, slots=True)
class _Part:
    """A quotient of polynomials in one unknown; it has no value where `holes` or `under` is zero."""

    over: Coefficients
    under: Coefficients
    holes: Coefficients

    def sign(self, root: RealRoot) -> int | None:
        """Its sign at a root, None where it has no value there."""
        if root.sign_at(self.holes) == 0:
            return None
        under = root.sign_at(self.under)
        return None if under == 0 else root.sign_at(self.over) * under


@dataclass(frozen=True, slots=True)
class SignChart:
    """The difference of the two sides of a relation along the real line.

    Attributes:
        roots: every point at which its sign can change, in ascending order.
    """

    roots: tuple[RealRoot, ...]
    _tree: Formula
    _variable: str
    _absolutes: tuple[_Part, ...]
    _cases: Mapping[tuple[int, ...], _Part]

    def holds(self, operator: str, at: Exact) -> bool:
        """Whether the relation holds at a number; where it has no value it does not.

        Raises TooBig: it could not be evaluated.
        """
        try:
            sign = compare(evaluate_at(self._tree, {self._variable: at}), 0)
        except (Pole, Undefined):
            return False
        except Unknown:
            raise TooBig from None
        if sign is None:
            raise TooBig
        return satisfies(operator, sign)

    def holds_at(self, operator: str, root: RealRoot) -> bool:
        """Whether the relation holds at one of the roots."""
        if root.exact:
            return self.holds(operator, exact(root.low))
        signs = [part.sign(root) for part in self._absolutes]
        if None in signs:
            return False
        # Where an argument is zero both cases agree, so zero goes with the positive one.
        sign = self._cases[tuple(-1 if sign == -1 else 1 for sign in signs)].sign(root)
        return sign is not None and satisfies(operator, sign)

    def between(self) -> tuple[Fraction, ...]:
        """A number of each stretch between the roots, also before the first and behind the last."""
        if not self.roots:
            return (Fraction(0),)
        roots = self.separated()
        middles = [(one.high + other.low) / 2 for one, other in pairwise(roots)]
        return roots[0].low - 1, *middles, roots[-1].high + 1

    def separated(self) -> list[RealRoot]:
        """The roots in intervals that leave room between them. Raises TooBig: they lie too close together."""
        roots = list(self.roots)
        for index in range(len(roots) - 1):
            for _ in range(2_000):
                if roots[index].high < roots[index + 1].low:
                    break
                roots[index], roots[index + 1] = roots[index].refined(), roots[index + 1].refined()
            else:
                raise TooBig
        return roots


def make_chart(left: Formula, right: Formula, variable: str) -> SignChart | None:
    """The chart of a relation, None where it is not made of polynomials in this unknown alone.

    Raises TooBig: it takes too much to work out.
    """
    tree = difference(left, right)
    if not symbols_in(tree) <= {variable}:
        return None
    inner = {node.argument for node in walk(tree) if isinstance(node, CallOf) and node.function == "abs"}
    # By repr: any fixed order does, so that the same relation gives the same chart.
    absolutes = sorted((each for each in inner if symbols_in(each)), key=repr)
    if len(absolutes) > _MAX_ABSOLUTES:
        raise TooBig
    parts: list[_Part] = []
    for absolute in absolutes:
        part = _part(absolute, variable)
        if part is None:
            return None
        parts.append(part)
    cases: dict[tuple[int, ...], _Part] = {}
    for signs in combinations((1, -1), repeat=len(absolutes)):
        part = _part(_without(tree, dict(zip(absolutes, signs, strict=True))), variable)
        if part is None:
            return None
        cases[signs] = part
    # The sign can only change where one of these polynomials is zero.
    critical: Coefficients = (1,)
    for piece in {piece for part in (*parts, *cases.values()) for piece in (part.over, part.under, part.holes)}:
        if piece:
            critical = multiply(critical, piece)
    return SignChart(isolate_roots(critical), tree, variable, tuple(parts), cases)


def _without(tree: Formula, signs: Mapping[Formula, int]) -> Formula:
    """A formula with every absolute value replaced by its argument or minus that."""
    if isinstance(tree, CallOf) and tree.function == "abs" and tree.argument in signs:
        return tree.argument if signs[tree.argument] > 0 else negative(tree.argument)
    return rebuilt(tree, lambda node: _without(node, signs))


def _part(tree: Formula, variable: str) -> _Part | None:
    try:
        form: Quotient = Canonical().form(tree)
    except ZeroDivisionError:
        return None
    if not form.unknowns <= {variable}:
        return None
    return _Part(_listed(form.over), _listed(form.under), _listed(form.holes))


def _listed(polynomial: Polynomial) -> Coefficients:
    if not polynomial:
        return ()
    powers = {sum(power for _, power in key): value for key, value in polynomial.items()}
    if max(powers) > 100:
        raise TooBig
    return primitive([powers.get(index, 0) for index in range(max(powers) + 1)])
