"""Real roots of polynomials with rational coefficients, exactly: each as an interval that holds it and no other.

Roots are counted with Sturm's theorem (Cohen, A Course in Computational Algebraic Number Theory, section 4.1.2).
Polynomials are lists of whole coefficients, that of the constant first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Final

from stepguard.formulas.canonical import TooBig
from stepguard.language.digits import Exact

Coefficients = tuple[int, ...]

_MAX_DEGREE: Final = 40  # Sturm chains grow fast, with the degree and with the digits
_MAX_BITS: Final = 20_000
_MAX_STEPS: Final = 2_000


@dataclass(frozen=True, slots=True)
class RealRoot:
    """One root: it lies between `low` and `high`, which are no roots, or is both of them.

    `polynomial` has no double roots.
    """

    polynomial: Coefficients
    low: Fraction
    high: Fraction

    @property
    def exact(self) -> bool:
        """Whether its value is rational and known."""
        return self.low == self.high

    def refined(self) -> RealRoot:
        """The root in half the interval."""
        if self.exact:
            return self
        middle = (self.low + self.high) / 2
        sign = sign_of(self.polynomial, middle)
        if sign == 0:
            return replace(self, low=middle, high=middle)
        return replace(self, high=middle) if sign == sign_of(self.polynomial, self.high) else replace(self, low=middle)

    def sign_at(self, polynomial: Sequence[int]) -> int:
        """The sign of another polynomial at this root: -1, 0 or 1. Raises TooBig: it takes too much to find out."""
        held = primitive(polynomial)
        if len(held) <= 1:
            return 0 if not held else (1 if held[0] > 0 else -1)
        if self.exact:
            return sign_of(held, self.low)
        common = _gcd(self.polynomial, held)
        # A change of sign says that the common factor vanishes inside, and the only root in there is this one.
        if len(common) > 1 and sign_of(common, self.low) != sign_of(common, self.high):
            return 0
        chain = _sturm(_squarefree(held))
        root = self
        for _ in range(_MAX_STEPS):
            if root.exact:
                return sign_of(held, root.low)
            if _count(chain, root.low, root.high) == 0:
                return sign_of(held, root.high)
            root = root.refined()
        raise TooBig

    def narrowed(self, width: Fraction) -> RealRoot:
        """The root in an interval no wider than this."""
        root = self
        while root.high - root.low > width:
            root = root.refined()
        return root


def primitive(polynomial: Sequence[Exact]) -> Coefficients:
    """A polynomial with whole coefficients that have no common factor, of the same sign; empty where it is zero.

    Raises TooBig: its degree or its coefficients pass the limit.
    """
    coefficients = list(polynomial)
    while coefficients and coefficients[-1] == 0:
        coefficients.pop()
    if not coefficients:
        return ()
    scale = math.lcm(*(value.denominator for value in coefficients))
    whole = [value.numerator * (scale // value.denominator) for value in coefficients]
    divisor = math.gcd(*whole)
    if len(whole) > _MAX_DEGREE + 1 or max(value.bit_length() for value in whole) > _MAX_BITS:
        raise TooBig
    return tuple(value // divisor for value in whole)


def multiply(left: Sequence[int], right: Sequence[int]) -> Coefficients:
    """The product of two polynomials, without the common factor of its coefficients.

    Raises TooBig: it passes the limit.
    """
    if not left or not right:
        return ()
    product = [0] * (len(left) + len(right) - 1)
    for index, one in enumerate(left):
        for other_index, other in enumerate(right):
            product[index + other_index] += one * other
    return primitive(product)


def sign_of(polynomial: Sequence[int], at: Fraction) -> int:
    """The sign of a polynomial at a number."""
    # Horner's scheme with whole numbers: the value times a power of the denominator.
    value, power = 0, 1
    for coefficient in reversed(polynomial):
        value = value * at.numerator + coefficient * power
        power *= at.denominator
    return (value > 0) - (value < 0)


def isolate_roots(polynomial: Sequence[int]) -> tuple[RealRoot, ...]:
    """The real roots of a polynomial that is not zero, each once, in ascending order.

    Raises TooBig: it takes too much to find them.
    """
    held = _squarefree(primitive(polynomial))
    if len(held) < 2:
        return ()
    chain = _sturm(held)
    # Cauchy's bound, 1 + max|a| / |lead|. The division rounds down, hence one more: every root lies strictly inside.
    bound = Fraction(1 + max(abs(value) for value in held[:-1]) // abs(held[-1]) + 1)
    real_roots: list[RealRoot] = []
    pending = [(-bound, bound)]
    steps = 0
    while pending:
        low, high = pending.pop()
        steps += 1
        if steps > _MAX_STEPS:
            raise TooBig
        count = _count(chain, low, high)
        if count == 0:
            continue
        if count == 1 and sign_of(held, high) == 0:
            real_roots.append(RealRoot(held, high, high))
        # Sturm counts the half-open (low, high]; an interval whose ends are no roots is what RealRoot promises.
        elif count == 1 and sign_of(held, low) != 0:
            real_roots.append(RealRoot(held, low, high))
        else:
            middle = (low + high) / 2
            pending += [(middle, high), (low, middle)]
    return tuple(real_roots)


def _count(chain: Sequence[Coefficients], low: Fraction, high: Fraction) -> int:
    """How many roots lie above `low` and up to `high`."""
    return _variations(chain, low) - _variations(chain, high)


def _variations(chain: Sequence[Coefficients], at: Fraction) -> int:
    signs = [sign for coefficients in chain if (sign := sign_of(coefficients, at))]
    return sum(one != other for one, other in pairwise(signs))


def _sturm(polynomial: Coefficients) -> list[Coefficients]:
    chain = [polynomial, _derivative(polynomial)]
    while chain[-1]:
        chain.append(tuple(-value for value in _remainder(chain[-2], chain[-1])))
    return chain[:-1]


def _derivative(polynomial: Coefficients) -> Coefficients:
    return primitive([index * value for index, value in enumerate(polynomial)][1:])


def _remainder(left: Sequence[int], right: Coefficients) -> Coefficients:
    """The remainder of a division, times a positive number."""
    held: list[Exact] = list(left)
    lead = right[-1]
    while len(held) >= len(right):
        if held[-1]:
            # Multiplied by the square of what it is divided by, the sign stays.
            factor, shift = held[-1], len(held) - len(right)
            sign = 1 if lead > 0 else -1
            held = [value * abs(lead) for value in held]
            for index, value in enumerate(right):
                held[shift + index] -= factor * sign * value
        held.pop()
        # Made primitive after every step: otherwise the digits double with each one.
        reduced = primitive(held)
        held = [*reduced, *([0] * (len(held) - len(reduced)))]
    return primitive(held)


def _gcd(left: Coefficients, right: Coefficients) -> Coefficients:
    while right:
        left, right = right, _remainder(left, right)
    return left


def _squarefree(polynomial: Coefficients) -> Coefficients:
    if len(polynomial) < 3:
        return polynomial
    common = _gcd(polynomial, _derivative(polynomial))
    return polynomial if len(common) < 2 else _divided(polynomial, common)


def _divided(left: Coefficients, right: Coefficients) -> Coefficients:
    """A quotient that leaves no remainder."""
    held = [Fraction(value) for value in left]
    quotient = [Fraction(0)] * (len(left) - len(right) + 1)
    for shift in reversed(range(len(quotient))):
        factor = held[shift + len(right) - 1] / right[-1]
        quotient[shift] = factor
        for index, value in enumerate(right):
            held[shift + index] -= factor * value
    return primitive(quotient)
