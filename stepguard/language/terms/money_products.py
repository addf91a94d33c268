"""Amounts of money as dimensions: a product of two in one currency is no amount of money, and neither is a root of one.

``net * vat`` of two amounts in EUR would be in euros squared. ``part * total / whole`` is in EUR, ``part / whole`` a
number, and the product of amounts in two currencies may be a rate of exchange. Numbers have no dimension: they may be
rates.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import cast

from stepguard.errors import EvaluationError, ProcedureError
from stepguard.language.digits import Exact
from stepguard.language.evaluation import evaluate, shortened
from stepguard.language.expressions import Call, Chain, Expression, Name, Negate, Power, parts_of, walk

Powers = dict[str, Fraction]
"""Currency -> the power that it has in a value."""
CurrencyOf = Callable[[Name], str | None]


def check_products(tree: Expression, currency_of: CurrencyOf) -> Powers:
    """Refuse an expression of which a part has a currency to another power than a plain amount, or a rate, has.

    Args:
        tree: the expression.
        currency_of: the currency that a variable or an operand is in, None where it is in none.

    Returns:
        the currencies of its value.

    Raises:
        ProcedureError: two amounts are multiplied, a root is taken of one, or one is raised to an unknown power or is
            a power itself.
    """
    found = _powers(tree, currency_of)
    for currency, power in found.items():
        if abs(power) != 1:
            does = "multiplies amounts of money" if power.denominator == 1 else "takes a root of an amount of money"
            raise ProcedureError(
                f"{shortened(tree)!r} {does}, which gives no amount in {currency}: give what is only a number as one, "
                f"`amount / 1 {currency}`"
            )
    return found


def _powers(tree: Expression, currency_of: CurrencyOf) -> Powers:
    match tree:
        case Name():
            currency = currency_of(tree)
            return {} if currency is None else {currency: Fraction(1)}
        case Chain(operands, operators) if not tree.additive:
            total: Powers = {}
            for operator, operand in zip(("*", *operators), operands, strict=True):
                for currency, power in _powers(operand, currency_of).items():
                    if operator != "%":  # a remainder is part of the amount itself
                        total[currency] = total.get(currency, Fraction()) + (power if operator == "*" else -power)
            return {currency: power for currency, power in total.items() if power}
        case Power(base, exponent):
            if check_products(exponent, currency_of):
                raise ProcedureError(f"{shortened(tree)!r} has an amount of money for an exponent, which is a number")
            found = _powers(base, currency_of)
            raised = _exponent(tree) if found else 0
            return {currency: power * raised for currency, power in found.items() if raised}
        case Call("sqrt", (operand,)):
            return {currency: power / 2 for currency, power in _powers(operand, currency_of).items()}
    parts = [check_products(part, currency_of) for part in parts_of(tree)]
    return next(filter(None, parts), {}) if isinstance(tree, Chain | Negate | Call) else {}


def _exponent(tree: Power) -> Fraction:
    if not any(isinstance(part, Name) for part in walk(tree.exponent)):
        with suppress(EvaluationError):
            return Fraction(cast(Exact, evaluate(tree.exponent, {})))
    raise ProcedureError(
        f"{shortened(tree)!r} raises an amount of money to a power that is not known beforehand: multiply it by a "
        "power of a number"
    )
