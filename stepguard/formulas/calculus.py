"""Derivatives of formulas, by the rules of the table, and integrals between limits.

Nothing is simplified beyond what is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Final

from stepguard.errors import InexactError, TooLargeError
from stepguard.formulas.canonical import Canonical, TooBig
from stepguard.formulas.deciding import Decider, Deduction
from stepguard.formulas.numerics import Interval, Pole, Undefined, Unknown, enclose, evaluate_at
from stepguard.formulas.trees import (
    MAX_NODES,
    CallOf,
    Constant,
    Formula,
    PowerOf,
    Product,
    Sum,
    count_nodes,
    difference,
    negative,
    product,
    quotient,
    symbols_in,
    to_data,
    total,
)
from stepguard.language.digits import exact
from stepguard.language.expressions import Name, Number


def differentiate(tree: Formula, variable: str, *, order: int = 1) -> Formula:
    """The derivative of a formula.

    Args:
        variable: the symbol it is taken by; every other one is a constant.
        order: how often it is taken.

    Raises:
        InexactError: the variable stands inside a function that has no derivative here (``factorial``).
        TooLargeError: the derivative would have more parts than a check works with.
    """
    for _ in range(order):
        tree = _derivative(tree, variable)
        if count_nodes(tree) > MAX_NODES:
            raise TooLargeError("the derivative would be too large")
    return tree


def _derivative(tree: Formula, variable: str) -> Formula:
    if variable not in symbols_in(tree):
        return Number(0)
    match tree:
        case Sum(terms):
            return _sum(_derivative(term, variable) for term in terms)
        case Product(factors):
            return _sum(
                _times(*factors[:index], _derivative(factor, variable), *factors[index + 1 :])
                for index, factor in enumerate(factors)
                if variable in symbols_in(factor)
            )
        case PowerOf(base, exponent):
            return _power(base, exponent, variable)
        case CallOf(function, argument):
            rule = _RULES.get(function)
            if rule is None:
                raise InexactError(f"{function} has no derivative here")
            return _times(rule(argument), _derivative(argument, variable))
        case _:  # the variable itself
            return Number(1)


def _power(base: Formula, exponent: Formula, variable: str) -> Formula:
    # The power rule; kept apart from the general case below, which would bring in a logarithm of the base.
    if variable not in symbols_in(exponent):
        if isinstance(exponent, Number):
            lower: Formula = Number(exponent.value - 1)
        else:
            lower = total((exponent, Number(-1)))
        outer = Number(1) if lower == Number(0) else base if lower == Number(1) else PowerOf(base, lower)
        return _times(exponent, outer, _derivative(base, variable))
    whole = PowerOf(base, exponent)
    if isinstance(base, Constant) and base.name == "e":
        return _times(whole, _derivative(exponent, variable))
    # d(u^v) = u^v * (v' log u + v u'/u), whose second term vanishes where the base is constant.
    log = CallOf("log", base)
    if variable not in symbols_in(base):
        return _times(whole, log, _derivative(exponent, variable))
    inner = _sum(
        (
            _times(_derivative(exponent, variable), log),
            _times(exponent, _derivative(base, variable), PowerOf(base, Number(-1))),
        )
    )
    return _times(whole, inner)


def _sum(terms: Iterable[Formula]) -> Formula:
    return total(term for term in terms if term != Number(0))


def _times(*factors: Formula) -> Formula:
    if any(factor == Number(0) for factor in factors):
        return Number(0)
    return product(factor for factor in factors if factor != Number(1))


def _square(tree: Formula) -> Formula:
    return PowerOf(tree, Number(2))


def _arc(tree: Formula) -> Formula:
    return PowerOf(total((Number(1), negative(_square(tree)))), Number(Fraction(-1, 2)))


_RULES: Final[Mapping[str, Callable[[Formula], Formula]]] = {
    "cbrt": lambda u: quotient(Number(Fraction(1, 3)), _square(CallOf("cbrt", u))),
    "abs": lambda u: quotient(u, CallOf("abs", u)),
    "log": lambda u: PowerOf(u, Number(-1)),
    "sin": lambda u: CallOf("cos", u),
    "cos": lambda u: negative(CallOf("sin", u)),
    "tan": lambda u: PowerOf(CallOf("cos", u), Number(-2)),
    "asin": _arc,
    "acos": lambda u: negative(_arc(u)),
    "atan": lambda u: PowerOf(total((Number(1), _square(u))), Number(-1)),
    "sinh": lambda u: CallOf("cosh", u),
    "cosh": lambda u: CallOf("sinh", u),
    "tanh": lambda u: PowerOf(CallOf("cosh", u), Number(-2)),
}


# Two panel counts without a common divisor: their nodes differ, so both missing the same spike is unlikely.
_PANELS: Final = (64, 99)
_CLOSE: Final = 1e-8
"""How near two quadratures must be to count."""
_FAR: Final = 1e-5
"""How far from them, relative to their size, a claim is refuted."""
# Gauss-Legendre with five points on [-1, 1] (Abramowitz and Stegun, table 25.4).
_NODES: Final = (
    (0.0, 0.5688888888888889),
    (0.5384693101056831, 0.4786286704993665),
    (-0.5384693101056831, 0.4786286704993665),
    (0.9061798459386640, 0.2369268850561891),
    (-0.9061798459386640, 0.2369268850561891),
)


def check_definite(
    tree: Formula, variable: str, low: Formula, high: Formula, claim: Formula, decider: Decider
) -> Deduction:
    """Whether a claim is the integral of a formula from one limit to another.

    A formula that is no polynomial in the variable must be defined on the whole range, and its limits be numbers.
    """
    # Exact, and works with further symbols in the coefficients; the quadrature below needs numbers everywhere.
    antiderivative = _polynomial(tree, variable)
    if antiderivative is not None:
        ends = [_at(antiderivative, limit) for limit in (high, low)]
        return decider.equal(difference(ends[0], ends[1]), claim)
    if symbols_in(low, high) or symbols_in(tree) - {variable}:
        return Deduction("open", "with symbols besides the variable, only polynomials are integrated between limits")
    estimate = _quadrature(tree, variable, low, high)
    if isinstance(estimate, Deduction):
        return estimate
    try:
        value = enclose(evaluate_at(claim, {})) if not symbols_in(claim) else None
    except (Undefined, Pole, Unknown):
        value = None
    if value is None:
        return Deduction(
            "no" if symbols_in(claim) else "open", "the integral is a number, the claim is not seen to be one"
        )
    allowed = _FAR * max(1.0, abs(estimate))
    if value.low > estimate + allowed or value.high < estimate - allowed:
        return Deduction("no", f"the integral is about {estimate:.9g}")
    # The enclosure reaches the estimate but is too wide to say that the claim is near it.
    if abs(value.low - estimate) > allowed or abs(value.high - estimate) > allowed:
        return Deduction("open", "the claim could not be evaluated")
    # A quadrature can refute but not prove: agreement only makes it worth asking sympy.
    request = {"op": "definite", "variable": variable, "tree": to_data(tree), "value": to_data(claim)}
    limits = {"low": to_data(low), "high": to_data(high)}
    near = f"near {estimate:.9g}, but not proved"
    return decider.proved({**request, **limits}, tree, low, high, claim, otherwise=near)


def _polynomial(tree: Formula, variable: str) -> Mapping[int, Formula] | None:
    """The coefficients of an antiderivative by their exponents, None where the formula is no polynomial."""
    try:
        form = Canonical().form(tree)
    except (TooBig, ZeroDivisionError):
        return None
    # `holes` too: 1/(1/x) shows no divisor any more, but has no value at 0.
    divided = any(name == variable for key in (*form.under, *form.holes) for name, _ in key)
    if not form.plain or divided:
        return None
    under = total(_term(key, Fraction(value)) for key, value in form.under.items())
    terms_by_power: dict[int, list[Formula]] = {}
    for key, value in form.over.items():
        power = dict(key).get(variable, 0)
        rest = tuple((name, each) for name, each in key if name != variable)
        terms_by_power.setdefault(power + 1, []).append(_term(rest, Fraction(value) / (power + 1)))
    return {power: product((total(terms), PowerOf(under, Number(-1)))) for power, terms in terms_by_power.items()}


def _term(key: tuple[tuple[str, int], ...], value: Fraction) -> Formula:
    return product((Number(exact(value)), *(PowerOf(Name(name), Number(power)) for name, power in key)))


def _at(antiderivative: Mapping[int, Formula], limit: Formula) -> Formula:
    terms = [product((factor, PowerOf(limit, Number(power)))) for power, factor in antiderivative.items()]
    return total(terms)


def _quadrature(tree: Formula, variable: str, low: Formula, high: Formula) -> float | Deduction:
    try:
        ends = [_middle(enclose(evaluate_at(limit, {}))) for limit in (low, high)]
    except (Undefined, Pole, Unknown):
        return Deduction("open", "a limit is no number")
    estimates = []
    for panels in _PANELS:
        width = (ends[1] - ends[0]) / panels
        estimate = 0.0
        for index in range(panels):
            middle = ends[0] + (index + 0.5) * width
            for node, weight in _NODES:
                place = middle + node * width / 2
                try:
                    value = _middle(enclose(evaluate_at(tree, {variable: exact(Fraction(place))})))
                except Unknown:
                    return Deduction("open", f"the integrand could not be evaluated at {place:.6g}")
                # An improper integral may still converge, so this refutes nothing.
                except (Undefined, Pole):
                    return Deduction("open", f"the integrand is not defined at {place:.6g}")
                estimate += weight * value * width / 2
        estimates.append(estimate)
    if abs(estimates[0] - estimates[1]) > _CLOSE * max(1.0, abs(estimates[0])):
        return Deduction("open", "the integrand is too steep, or not defined everywhere")
    return estimates[1]


def _middle(value: Interval) -> float:
    return (value.low + value.high) / 2
