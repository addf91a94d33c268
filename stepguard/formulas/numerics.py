"""The value of a formula at a point: exact where that is cheap, otherwise between two floats that enclose it.

An enclosure can refute (two that do not meet are of different numbers); it never proves. Every operation is bounded:
a number that would grow too large, and an enclosure that says nothing, is `Unknown`.

Formulas are functions of real numbers here. The root of a negative number and its logarithm are undefined; a root of
odd degree written as a power, ``x^(1/3)``, is left open for negative numbers, where two conventions are usual
(``cbrt(x)`` is the real one).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from stepguard.formulas.trees import CallOf, Constant, Formula, PowerOf, Product, Sum
from stepguard.language.digits import Exact, bits_of, exact, exact_root
from stepguard.language.expressions import Name, Number

_MAX_BITS: Final = 3000  # longer numbers go on as intervals of floats
_MAX_FACTORIAL: Final = 170  # 171! is no float any more
_ULPS: Final = 8
"""How many units in the last place a function of the C library may be off; the usual ones are off by one."""


class Undefined(ArithmeticError):
    """The formula has no real value here, nor anywhere near."""


class Pole(ArithmeticError):
    """The formula has no value exactly here: division by zero and its kin."""


class Unknown(ArithmeticError):
    """Nothing can be said about the value here."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A number lies between two floats, both finite."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """How far the ends are apart, relative to their size where that is above 1."""
        return (self.high - self.low) / max(1.0, abs(self.low), abs(self.high))


NumericValue = Exact | Interval


# Floats are rounded to the nearest, so one unit holds a sum or a product for certain.
def _make(low: float, high: float, ulps: int = 1) -> Interval:
    """Widen an interval by a number of units in the last place on both sides."""
    for _ in range(ulps):
        low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise Unknown
    return Interval(low, high)


def enclose(value: NumericValue) -> Interval:
    if isinstance(value, Interval):
        return value
    try:
        near = float(value)
    except OverflowError:
        raise Unknown from None
    # A float holds these whole numbers exactly, so the interval need not be opened.
    if isinstance(value, int) and abs(value) < 2**53:
        return Interval(near, near)
    return _make(near, near)


def compare(left: NumericValue, right: NumericValue) -> int | None:
    """-1, 0 or 1 where the order of two values is certain, else None; 0 only of exact ones."""
    if not isinstance(left, Interval) and not isinstance(right, Interval):
        return (left > right) - (left < right)
    try:
        low, high = enclose(left), enclose(right)
    except Unknown:
        return None
    margin = (low.high - low.low) + (high.high - high.low)
    if low.high + margin < high.low:
        return -1
    return 1 if high.high + margin < low.low else None


def evaluate_at(tree: Formula, point: Mapping[str, Exact]) -> NumericValue:
    """The value of a formula where its symbols have these values.

    Raises:
        Undefined: it has none, there and nearby.
        Pole: it has none just there.
        Unknown: it could not be found out.
    """
    match tree:
        case Number(value):
            return value
        case Name(name):
            return point[name]
        case Constant(name):
            near = math.pi if name == "pi" else math.e
            return _make(near, near)
        case Sum(terms):
            return _fold(_add, terms, point)
        case Product(factors):
            return _fold(_multiply, factors, point)
        case PowerOf(Constant("e"), exponent):
            return _exp(evaluate_at(exponent, point))
        case PowerOf(base, exponent):
            return _power(evaluate_at(base, point), evaluate_at(exponent, point))
        case CallOf(function, argument):
            return _FUNCTIONS[function](evaluate_at(argument, point))


def _fold(
    operation: Callable[[NumericValue, NumericValue], NumericValue],
    parts: tuple[Formula, ...],
    point: Mapping[str, Exact],
) -> NumericValue:
    value = evaluate_at(parts[0], point)
    for part in parts[1:]:
        value = operation(value, evaluate_at(part, point))
    return value


def _small(number: Exact) -> NumericValue:
    return exact(number) if bits_of(number) <= _MAX_BITS else enclose(number)


def _add(left: NumericValue, right: NumericValue) -> NumericValue:
    if not isinstance(left, Interval) and not isinstance(right, Interval):
        return _small(Fraction(left) + right)
    one, other = enclose(left), enclose(right)
    return _make(one.low + other.low, one.high + other.high)


def _multiply(left: NumericValue, right: NumericValue) -> NumericValue:
    if not isinstance(left, Interval) and not isinstance(right, Interval):
        return _small(Fraction(left) * right)
    # An exact zero wins over any enclosure; the product of two intervals could not be seen to be zero.
    if left == 0 or right == 0:
        return 0
    one, other = enclose(left), enclose(right)
    corners = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
    return _make(min(corners), max(corners))


def _invert(value: NumericValue) -> NumericValue:
    if not isinstance(value, Interval):
        if value == 0:
            raise Pole
        return exact(Fraction(1) / value)
    # It may hold a zero or be a small number: neither a pole nor a value is certain.
    if value.low <= 0 <= value.high:
        raise Unknown
    return _make(1 / value.high, 1 / value.low)


def _float(call: Callable[[float], float], argument: float) -> float:
    try:
        return call(argument)
    except (OverflowError, ValueError):
        raise Unknown from None


def _unsigned(value: Exact) -> Exact:
    return -value if value < 0 else value


def _monotone(call: Callable[[float], float], value: Interval) -> Interval:
    return _make(_float(call, value.low), _float(call, value.high), _ULPS)


def _power(base: NumericValue, exponent: NumericValue) -> NumericValue:
    if isinstance(exponent, Interval):
        return _general_power(base, exponent)
    if isinstance(exponent, int):
        return _whole_power(base, exponent)
    if not isinstance(base, Interval):
        if base == 0:
            if exponent < 0:
                raise Pole
            return 0
        if base > 0 and exponent.denominator <= 100:
            root = exact_root(base, exponent.denominator)
            if root is not None:
                return _whole_power(root, exponent.numerator)
    near = enclose(base)
    if near.high < 0:
        # An even root of a negative number has no real value; of an odd one (x^(1/3)) two conventions are usual.
        raise Undefined if exponent.denominator % 2 == 0 else Unknown
    if near.low < 0 or (near.low == 0 and exponent < 0):
        raise Unknown
    power = float(exponent)
    ends = sorted(_float(lambda end: math.pow(end, power), end) for end in (near.low, near.high))
    # The exponent is rounded as well; its error counts with the logarithm of the base.
    logs = [abs(math.log(end)) for end in (near.low, near.high) if end > 0]
    slack = 1e-15 * max(1.0, float(abs(exponent))) * max([1.0, *logs])
    return _make(ends[0] * (1 - slack), ends[1] * (1 + slack), _ULPS)


def _whole_power(base: NumericValue, exponent: int) -> NumericValue:
    if not isinstance(base, Interval):
        if base == 0:
            if exponent <= 0:
                raise Pole
            return 0
        if base in (1, -1):
            return base if exponent % 2 else 1
        if bits_of(base) * abs(exponent) <= _MAX_BITS:
            return exact(Fraction(base) ** exponent)
    if exponent < 0:
        return _invert(_whole_power(base, -exponent))
    if exponent == 0:
        return 1
    if exponent > 10**6:
        raise Unknown
    near = enclose(base)
    ends = sorted(_float(lambda end: math.pow(end, exponent), end) for end in (near.low, near.high))
    # Even powers turn at zero, so the ends do not bound them from below.
    if near.low < 0 < near.high and exponent % 2 == 0:
        ends = [0.0, ends[1]]
    return _make(ends[0], ends[1], _ULPS)


def _general_power(base: NumericValue, exponent: Interval) -> NumericValue:
    if base == 0:
        raise Pole if exponent.high < 0 else Unknown
    if enclose(base).low <= 0:
        raise Unknown
    return _exp(_multiply(exponent, _log(base)))


def _exp(value: NumericValue) -> NumericValue:
    if value == 0:
        return 1
    interval = _monotone(math.exp, enclose(value))
    return Interval(max(interval.low, 0.0), interval.high)


def _log(value: NumericValue) -> NumericValue:
    if value == 1:
        return 0
    if value == 0:
        raise Pole
    if not isinstance(value, Interval) and value < 0:
        raise Undefined
    near = enclose(value)
    if near.high < 0:
        raise Undefined
    if near.low <= 0:
        raise Unknown
    return _monotone(math.log, near)


def _wave(call: Callable[[float], float], at_zero: int) -> Callable[[NumericValue], NumericValue]:
    """Sine or cosine: no steeper than 1, so the middle is off by no more than half the width."""

    def apply(value: NumericValue) -> NumericValue:
        if value == 0:
            return at_zero
        near = enclose(value)
        middle = near.low + (near.high - near.low) / 2
        # The middle itself is rounded: a little more than half the width, and one unit in its last place.
        spread = (near.high - near.low) * (0.5 + 1e-9) + math.ulp(middle)
        near_value = _float(call, middle)
        return _make(max(near_value - spread, -1.0), min(near_value + spread, 1.0), _ULPS)

    return apply


_sin = _wave(math.sin, 0)
_cos = _wave(math.cos, 1)


def _arc(call: Callable[[float], float], *, falling: bool) -> Callable[[NumericValue], NumericValue]:
    def apply(value: NumericValue) -> NumericValue:
        near = enclose(value)
        if near.high < -1 or near.low > 1:
            raise Undefined
        if near.low < -1 or near.high > 1:
            raise Unknown
        ends = sorted(_float(call, end) for end in (near.low, near.high))
        return 0 if value == (1 if falling else 0) else _make(ends[0], ends[1], _ULPS)

    return apply


def _odd_monotone(call: Callable[[float], float]) -> Callable[[NumericValue], NumericValue]:
    return lambda value: 0 if value == 0 else _monotone(call, enclose(value))


def _cosh(value: NumericValue) -> NumericValue:
    grown = _exp(value)
    return _multiply(Fraction(1, 2), _add(grown, _invert(grown)))


def _abs(value: NumericValue) -> NumericValue:
    if not isinstance(value, Interval):
        return _unsigned(value)
    if value.low >= 0:
        return value
    if value.high <= 0:
        return Interval(-value.high, -value.low)
    return Interval(0.0, max(-value.low, value.high))


def _cbrt(value: NumericValue) -> NumericValue:
    if not isinstance(value, Interval):
        root = exact_root(_unsigned(value), 3)
        if root is not None:
            return -root if value < 0 else root
    return _monotone(math.cbrt, enclose(value))


def _factorial(value: NumericValue) -> NumericValue:
    if isinstance(value, int) and 0 <= value <= _MAX_FACTORIAL:
        return math.factorial(value)
    raise Unknown


_FUNCTIONS: Final[Mapping[str, Callable[[NumericValue], NumericValue]]] = {
    "cbrt": _cbrt,
    "abs": _abs,
    "log": _log,
    "sin": _sin,
    "cos": _cos,
    "tan": lambda value: 0 if value == 0 else _multiply(_sin(value), _invert(_cos(value))),
    "asin": _arc(math.asin, falling=False),
    "acos": _arc(math.acos, falling=True),
    "atan": _odd_monotone(math.atan),
    "sinh": _odd_monotone(math.sinh),
    "cosh": _cosh,
    "tanh": _odd_monotone(math.tanh),
    "factorial": _factorial,
}
