"""Formulas as quotients of polynomials with exact coefficients: a form that proves two of them equal.

Everything that is no polynomial (``sin(x)``, ``2^x``, ``sqrt(x)``) is an unknown of its own, named after the canonical
form of what it is applied to; ``sin(2*x)`` and ``sin(x + x)`` are one unknown. Two quotients that are equal are equal
whatever these unknowns are, so a proof stands; two that differ may still be equal, unless there are no such unknowns.

Beyond that: odd and even functions take a minus out of their argument, a sum of exponents becomes a product, and
roots of whole numbers are roots of primes whose powers are reduced, so that ``sqrt(2)/2`` is ``1/sqrt(2)``.

A quotient is never cancelled. ``x/x`` and ``1`` are equal here: as everywhere in this package, formulas are compared
where both are defined.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from stepguard.formulas.trees import CallOf, Constant, Formula, PowerOf, Product, Sum
from stepguard.language.digits import Exact, bits_of, exact
from stepguard.language.expressions import Name, Number

Monomial = tuple[tuple[str, int], ...]
"""Unknowns with their positive exponents, sorted by name."""
Polynomial = dict[Monomial, Exact]
"""Monomials with their coefficients, none of them zero."""

_ONE: Final[Monomial] = ()
_MAX_WORK: Final = 300_000  # products of terms: what is larger is left to other ways of deciding
_MAX_TERMS: Final = 5_000
_MAX_BITS: Final = 4_000
_MAX_POWER: Final = 200
_MAX_TEXT: Final = 20_000
_MAX_PRIME: Final = 2_000  # roots are split by trial division
# F(-x) = -f(x): one of the two forms is enough.
_ODD_FUNCTIONS: Final = frozenset({"sin", "tan", "asin", "atan", "sinh", "tanh", "cbrt"})
_EVEN_FUNCTIONS: Final = frozenset({"cos", "cosh", "abs"})  # f(-x) = f(x)
_PRIME_ROOT: Final = re.compile(r"([0-9]+)\^\(1/([0-9]+)\)\Z")  # names that this module gives to roots of primes
_SYMBOL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class TooBig(ArithmeticError):
    """The form would be too large."""


@dataclass(frozen=True, slots=True)
class Quotient:
    """A quotient of polynomials. `holes` vanishes wherever a divisor that no longer shows does."""

    over: Polynomial
    under: Polynomial
    holes: Polynomial = field(default_factory=lambda: {_ONE: 1})

    @property
    def unknowns(self) -> frozenset[str]:
        """The names in it; one that is no plain name stands for something that is no polynomial."""
        return frozenset(name for part in (self.over, self.under) for monomial in part for name, _ in monomial)

    @property
    def plain(self) -> bool:
        """Whether it is a quotient of polynomials in symbols and nothing else."""
        return all(_SYMBOL.match(name) for name in self.unknowns)


class Canonical:
    """Brings formulas into this form; the work of all of them together is bounded."""

    def __init__(self) -> None:
        self._work = 0

    def form(self, tree: Formula) -> Quotient:
        """The form of a formula.

        Raises:
            TooBig: it would be too large.
            ZeroDivisionError: it divides by what is zero everywhere.
        """
        match tree:
            case Number(value):
                return Quotient(_constant(value), _constant(1))
            case Name(name):
                return Quotient({((name, 1),): 1}, _constant(1))
            case Constant("pi"):
                return _unknown("#pi")
            case Constant():
                return self._exponential(_constant(1))
            case Sum(terms):
                quotient = self.form(terms[0])
                for term in terms[1:]:
                    quotient = self.add(quotient, self.form(term))
                return quotient
            case Product(factors):
                quotient = self.form(factors[0])
                for factor in factors[1:]:
                    quotient = self.multiply(quotient, self.form(factor))
                return quotient
            case PowerOf(base, exponent):
                return self._power(base, exponent)
            case CallOf(function, argument):
                return self._call(function, self.form(argument))

    def same(self, left: Quotient, right: Quotient) -> bool:
        """Whether two quotients are equal."""
        return self.times(left.over, right.under) == self.times(right.over, left.under)

    def ratio(self, left: Quotient, right: Quotient) -> Exact | None:
        """The number k with left = k * right, None where there is none or one of them is zero."""
        one, other = self.times(left.over, right.under), self.times(right.over, left.under)
        if not one or one.keys() != other.keys():
            return None
        first = next(iter(one))
        ratio = Fraction(one[first]) / other[first]
        return exact(ratio) if all(one[key] == ratio * other[key] for key in one) else None

    def add(self, left: Quotient, right: Quotient) -> Quotient:
        """The sum of two quotients."""
        holes = self.times(left.holes, right.holes)
        if left.under == right.under:
            return Quotient(_plus(left.over, right.over), left.under, holes)
        over = _plus(self.times(left.over, right.under), self.times(right.over, left.under))
        return Quotient(over, self.times(left.under, right.under), holes)

    def multiply(self, left: Quotient, right: Quotient) -> Quotient:
        """The product of two quotients."""
        over, under = self.times(left.over, right.over), self.times(left.under, right.under)
        return Quotient(over, under, self.times(left.holes, right.holes))

    def times(self, left: Polynomial, right: Polynomial) -> Polynomial:
        """The product of two polynomials. Raises TooBig: it would be too large."""
        self._work += len(left) * len(right)
        if self._work > _MAX_WORK:
            raise TooBig
        polynomial: Polynomial = {}
        for one, factor in left.items():
            for other, second in right.items():
                monomial, number = _joined(one, other)
                value = polynomial.get(monomial, 0) + factor * second * number
                polynomial[monomial] = value
        kept = {monomial: exact(value) for monomial, value in polynomial.items() if value}
        if len(kept) > _MAX_TERMS or any(bits_of(value) > _MAX_BITS for value in kept.values()):
            raise TooBig
        return kept

    def _inverse(self, form: Quotient) -> Quotient:
        if not form.over:
            raise ZeroDivisionError
        return Quotient(form.under, form.over, self.times(form.holes, form.under))

    def _power(self, base: Formula, exponent: Formula) -> Quotient:
        if isinstance(exponent, Number) and type(exponent.value) is int:
            return self._whole(self.form(base), exponent.value)
        power = self.form(exponent)
        number = _number(power)
        # The exponent only comes to a whole number here: x^(3 - 1), x^(4/2).
        if type(number) is int:
            return self._whole(self.form(base), number)
        if isinstance(base, Constant) and base.name == "e":
            if power.under == {_ONE: 1}:
                return self._exponential(power.over)
            return _unknown(f"exp({self._text(power)})")
        held = self.form(base)
        if isinstance(number, Fraction):
            return self._root(held, number)
        return _unknown(f"({self._text(held)})^({self._text(power)})")

    def _whole(self, form: Quotient, exponent: int) -> Quotient:
        if exponent < 0:
            return self._whole(self._inverse(form), -exponent)
        if exponent == 0:
            if not form.over:
                raise ZeroDivisionError
            # x^0 is 1 but has no value where x is 0 or undefined: that goes into the holes.
            return Quotient(_constant(1), _constant(1), self.times(form.holes, self.times(form.under, form.over)))
        return Quotient(self._raised(form.over, exponent), self._raised(form.under, exponent), form.holes)

    def _raised(self, base: Polynomial, exponent: int) -> Polynomial:
        # A single term is raised at once, whatever the exponent. Not a reduced root of a prime: times() must carry its
        # powers over into the coefficient.
        if len(base) == 1:
            ((monomial, value),) = base.items()
            if bits_of(value) * exponent <= _MAX_BITS and not any(_PRIME_ROOT.match(name) for name, _ in monomial):
                return {tuple((name, power * exponent) for name, power in monomial): exact(Fraction(value) ** exponent)}
        if exponent > _MAX_POWER and base not in ({_ONE: 1}, {}):
            raise TooBig
        product = _constant(1)
        while exponent:
            if exponent & 1:
                product = self.times(product, base)
            exponent >>= 1
            if exponent:
                base = self.times(base, base)
        return product

    def _root(self, form: Quotient, exponent: Fraction) -> Quotient:
        """A root as an unknown of its own, raised to the numerator of the exponent."""
        number = _number(form)
        if number is not None:
            # Two conventions are usual for roots of negative numbers, so they stay unknowns: (-8)^(1/3) is never
            # rewritten.
            if number <= 0:
                return _unknown(f"({number})^({exponent})")
            whole = self._prime_roots(number.numerator, exponent.denominator)
            under = self._prime_roots(number.denominator, exponent.denominator)
            return self._whole(self.multiply(whole, self._inverse(under)), exponent.numerator)
        return self._whole(_unknown(f"({self._text(form)})^(1/{exponent.denominator})"), exponent.numerator)

    def _prime_roots(self, number: int, degree: int) -> Quotient:
        quotient = Quotient(_constant(1), _constant(1))
        for prime, power in _factors(number):
            whole, rest = divmod(power, degree)
            if prime.bit_length() * whole > _MAX_BITS:
                raise TooBig
            monomial: Monomial = ((f"{prime}^(1/{degree})", rest),) if rest else _ONE
            quotient = self.multiply(quotient, Quotient({monomial: prime**whole}, _constant(1)))
        return quotient

    def _exponential(self, exponent: Polynomial) -> Quotient:
        """Euler's number to a polynomial, as a product over its terms."""
        quotient = Quotient(_constant(1), _constant(1))
        for monomial, value in exponent.items():
            # e^(3x/2) is the third power of e^(x/2). Halves and wholes of one term do not meet: that costs a proof.
            unit = exact(Fraction(1, value.denominator))
            name = f"exp({_monomial_text(monomial, unit)})"
            quotient = self.multiply(quotient, self._whole(_unknown(name), value.numerator))
        return quotient

    def _call(self, function: str, argument: Quotient) -> Quotient:
        if not argument.over and function in _ODD_FUNCTIONS:
            return Quotient({}, _constant(1), argument.holes)
        sign = 1
        if function in _ODD_FUNCTIONS | _EVEN_FUNCTIONS and argument.over:
            # Of f(u) and f(-u), the one whose first coefficient is positive stands for both.
            first = min(argument.over)
            divisor = argument.under[min(argument.under)]
            if argument.over[first] * divisor < 0:
                argument = Quotient({key: -value for key, value in argument.over.items()}, argument.under)
                sign = -1 if function in _ODD_FUNCTIONS else 1
        number = _number(argument)
        if function == "abs" and number is not None:
            return Quotient(_constant(-number if number < 0 else number), _constant(1))
        if function == "log" and number == 1:
            return Quotient({}, _constant(1))
        quotient = _unknown(f"{function}({self._text(argument)})")
        return (
            quotient if sign == 1 else Quotient({key: -value for key, value in quotient.over.items()}, quotient.under)
        )

    def _text(self, form: Quotient) -> str:
        """A name for a quotient: equal only of quotients that are."""
        # Both parts are divided by one coefficient, so that x/2 and 2*x/4 get one name.
        lead = form.under[min(form.under)]
        over = {key: exact(Fraction(value) / lead) for key, value in form.over.items()}
        under = {key: exact(Fraction(value) / lead) for key, value in form.under.items()}
        text = f"{_polynomial_text(over)}|{_polynomial_text(under)}"
        self._work += len(text)
        if len(text) > _MAX_TEXT or self._work > _MAX_WORK:
            raise TooBig
        return text


def _constant(value: Exact) -> Polynomial:
    return {_ONE: value} if value else {}


def _unknown(name: str) -> Quotient:
    return Quotient({((name, 1),): 1}, _constant(1))


def _number(form: Quotient) -> Exact | None:
    """The number that a quotient is, None where it holds unknowns."""
    if form.over.keys() <= {_ONE} and form.under.keys() == {_ONE}:
        return exact(Fraction(form.over.get(_ONE, 0)) / form.under[_ONE])
    return None


def _plus(left: Polynomial, right: Polynomial) -> Polynomial:
    polynomial = dict(left)
    for monomial, value in right.items():
        polynomial[monomial] = exact(Fraction(polynomial.get(monomial, 0)) + value)
    return {monomial: value for monomial, value in polynomial.items() if value}


def _joined(left: Monomial, right: Monomial) -> tuple[Monomial, Exact]:
    """The product of two monomials, and the number that reduced roots of primes leave."""
    if not left or not right:
        return left or right, 1
    powers = dict(left)
    number = 1
    for name, power in right:
        power += powers.get(name, 0)
        match = _PRIME_ROOT.match(name)
        if match:
            whole, power = divmod(power, int(match[2]))
            number *= int(match[1]) ** whole
        powers[name] = power
    return tuple(sorted((name, power) for name, power in powers.items() if power)), number


def _factors(number: int) -> list[tuple[int, int]]:
    """A number as powers of its small primes, and of what is left without them."""
    powers: list[tuple[int, int]] = []
    for prime in range(2, _MAX_PRIME):
        power = 0
        while number % prime == 0:
            number //= prime
            power += 1
        if power:
            powers.append((prime, power))
        if prime * prime > number:
            break
    if number > 1:
        powers.append((number, 1))
    return powers


def _monomial_text(monomial: Monomial, value: Exact) -> str:
    return "*".join([str(value), *(f"{name}^{power}" for name, power in monomial)])


def _polynomial_text(polynomial: Polynomial) -> str:
    return "+".join(_monomial_text(monomial, polynomial[monomial]) for monomial in sorted(polynomial))
