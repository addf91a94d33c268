"""What is true: expressions, their exact values and roundings, without anything of the package under test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

__all__ = [
    "MODES",
    "Bin",
    "Cmp",
    "Fn",
    "Lit",
    "Neg",
    "Spec",
    "Tree",
    "Truth",
    "Undefined",
    "Unknown",
    "Var",
    "compute",
    "decimal_text",
    "leaves",
    "number_text",
    "rounded",
]

Truth = Fraction | bool | str
MODES = ("half_up", "half_down", "half_even", "up", "down", "ceiling", "floor")


class Undefined(Exception):
    """There is no exact value."""


class Unknown(Exception):
    """The value is too much to work out here."""


@dataclass(frozen=True, slots=True)
class Lit:
    """A number."""

    value: Fraction


@dataclass(frozen=True, slots=True)
class Var:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Neg:
    """A minus in front."""

    operand: Tree


@dataclass(frozen=True, slots=True)
class Bin:
    """One of ``+ - * / // % ^`` and its two operands."""

    operator: str
    left: Tree
    right: Tree


@dataclass(frozen=True, slots=True)
class Cmp:
    """A comparison."""

    operator: str
    left: Tree
    right: Tree


@dataclass(frozen=True, slots=True)
class Fn:
    """A function; `mode` and `places` are those of ``round``."""

    name: str
    arguments: tuple[Tree, ...]
    mode: str = ""
    places: int = 0


Tree = Lit | Var | Neg | Bin | Cmp | Fn


def compute(tree: Tree, state: Mapping[str, Truth]) -> Truth:
    """The exact value.

    Raises:
        Undefined: there is none.
        Unknown: it is too large to be worked out by these plain means.
    """
    if isinstance(tree, Var):
        return state[tree.name]
    if isinstance(tree, Cmp):
        a, b = _number(tree.left, state), _number(tree.right, state)
        ordered = {"<": a < b, ">": a > b, "<=": not a > b, ">=": not a < b, "==": not (a < b or a > b)}
        return ordered.get(tree.operator, a < b or a > b)
    return _number(tree, state)


def _number(tree: Tree, state: Mapping[str, Truth]) -> Fraction:
    match tree:
        case Lit(value):
            return value
        case Var(name):
            found = state[name]
            if not isinstance(found, Fraction):
                raise Undefined(name)
            return found
        case Neg(operand):
            return Fraction(0) - _number(operand, state)
        case Bin(operator, left, right):
            return _apply(operator, _number(left, state), _number(right, state))
        case Fn(name, arguments, mode, places):
            return _call(name, [_number(each, state) for each in arguments], mode, places)
        case Cmp():
            raise Undefined("a comparison is no number")


def _apply(operator: str, a: Fraction, b: Fraction) -> Fraction:
    if operator == "+":
        return a + b
    if operator == "-":
        return a - b
    if operator == "*":
        return a * b
    if operator == "^":
        return _power(a, b)
    if b == 0:
        raise Undefined("division by zero")
    if operator == "/":
        return Fraction(a.numerator * b.denominator, a.denominator * b.numerator)
    # The greatest whole number that is not above the quotient, and what is left.
    quotient = Fraction(math.floor(Fraction(a.numerator * b.denominator, a.denominator * b.numerator)))
    return quotient if operator == "//" else a - b * quotient


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or (base == 0 and exponent <= 0):
        raise Undefined("no exact power")
    if base in (0, 1, -1):
        return base if exponent % 2 else abs(base)
    if abs(exponent) * (base.numerator.bit_length() + base.denominator.bit_length()) > 20_000:
        raise Unknown("a large power")
    result = Fraction(1)
    for _ in range(abs(exponent.numerator)):
        result *= base
    return result if exponent > 0 else 1 / result


def _call(name: str, given: list[Fraction], mode: str, places: int) -> Fraction:
    first = given[0]
    match name:
        case "min":
            return sorted(given)[0]
        case "max":
            return sorted(given)[-1]
        case "abs":
            return first if first >= 0 else -first
        case "floor":
            return Fraction(math.floor(first))
        case "ceil":
            return Fraction(-math.floor(-first))
        case "trunc":
            return Fraction(math.floor(first) if first >= 0 else -math.floor(-first))
        case "sqrt":
            if first < 0:
                raise Undefined("the root of a negative number")
            root = Fraction(math.isqrt(first.numerator), math.isqrt(first.denominator))
            if root * root != first:
                raise Undefined("an irrational root")
            return root
        case _:
            return rounded(first, places, mode)


def rounded(number: Fraction, places: int, mode: str) -> Fraction:
    """`number` with so many decimal places, from its two neighbours there."""
    unit = Fraction(1, 10**places) if places >= 0 else Fraction(10**-places)
    steps = math.floor(number / unit)
    low = steps * unit
    if low == number:
        return number
    high = low + unit
    nearer, farther = (low, high) if number > 0 else (high, low)  # to zero
    if mode in ("up", "down", "ceiling", "floor"):
        return {"up": farther, "down": nearer, "ceiling": high, "floor": low}[mode]
    below, above = number - low, high - number
    if below != above:
        return low if below < above else high
    return {"half_up": farther, "half_down": nearer, "half_even": low if steps % 2 == 0 else high}[mode]


def leaves(tree: Tree) -> Iterator[Lit | Var]:
    """The numbers and variables of an expression, from left to right."""
    match tree:
        case Lit() | Var():
            yield tree
        case Neg(operand):
            yield from leaves(operand)
        case Bin(_, left, right) | Cmp(_, left, right):
            yield from leaves(left)
            yield from leaves(right)
        case Fn(_, arguments):
            for each in arguments:
                yield from leaves(each)


def decimal_text(number: Fraction, places: int) -> str:
    """A multiple of 10**-places with exactly so many places."""
    scaled = number * 10**places
    assert scaled.denominator == 1
    digits = str(abs(scaled.numerator)).rjust(places + 1, "0")
    sign = "-" if number < 0 else ""
    return f"{sign}{digits[:-places]}.{digits[-places:]}" if places else sign + digits


def number_text(number: Fraction) -> str:
    """A number as a careful person writes it: digits, a short decimal, or a fraction."""
    for places in range(13):
        if (number * 10**places).denominator == 1:
            return decimal_text(number, places)
    return f"{number.numerator}/{number.denominator}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """The declared type of a step, as the certification understands it."""

    kind: str = "number"
    places: int | None = None
    mode: str = "half_up"
    currency: str = ""
    within: Fraction | None = None
    relative: bool = False
    options: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """As a procedure declares it."""
        if self.options:
            return f"one_of({', '.join(self.options)})"
        if self.within is not None:
            return (
                f"number(within {number_text(self.within * 100) + '%' if self.relative else number_text(self.within)})"
            )
        inside = [each for each in (self.currency, "" if self.places is None else str(self.places)) if each]
        return f"{self.kind}({', '.join([*inside, self.mode])})" if self.places is not None else self.kind

    @property
    def scale(self) -> int | None:
        """Decimal places of the values, None where they are not rounded."""
        return None if self.places is None else self.places + 2 * (self.kind == "percent")

    @property
    def numeric(self) -> bool:
        """Whether values are numbers."""
        return self.kind not in ("boolean", "one_of", "text")

    def settle(self, exact: Truth) -> Truth:
        """The value of the step from its exact result.

        Raises:
            Undefined: the result is no value of this type.
        """
        if isinstance(exact, Fraction) and self.scale is not None:
            return rounded(exact, self.scale, self.mode)
        if self.kind == "integer" and not (isinstance(exact, Fraction) and exact.denominator == 1):
            raise Undefined("not whole")
        return exact

    def wrong(self, claimed: Truth, exact: Truth) -> bool:
        """Whether a claimed value is wrong, of this exact result."""
        if self.within is not None and isinstance(exact, Fraction) and isinstance(claimed, Fraction):
            return abs(claimed - exact) > (abs(exact) * self.within if self.relative else self.within)
        return type(claimed) is not type(exact) or claimed != self.settle(exact)

    def write(self, value: Truth) -> str:
        """A value in the plainest way."""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            return value
        shown = value * 100 if self.kind == "percent" else value
        whole = self.places is not None and (shown * 10**self.places).denominator == 1
        text = decimal_text(shown, self.places or 0) if whole else number_text(shown)
        return f"{text}%" if self.kind == "percent" else text
