"""Derivatives of formulas, by the rules of the table; nothing is simplified beyond what is zero."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Final

from stepguard.errors import InexactError, TooLargeError
from stepguard.formulas.trees import (
    MAX_NODES,
    CallOf,
    Constant,
    Formula,
    PowerOf,
    Product,
    Sum,
    count_nodes,
    negative,
    product,
    quotient,
    symbols_in,
    total,
)
from stepguard.language.expressions import Number


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
