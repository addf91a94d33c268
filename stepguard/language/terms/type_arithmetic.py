"""Which type an operation of two values gives: dates and spans, amounts with units, money; beside `measure_arithmetic`.

What has no value for any operands is refused with what to write instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stepguard.errors import ProcedureError
from stepguard.language.evaluation import shortened
from stepguard.language.expressions import Expression, Name, Number, walk
from stepguard.language.quantities import write_unit
from stepguard.language.terms.measure_arithmetic import SECOND, has_offset, multiplied_units, unit_power
from stepguard.language.terms.operands import LiteralTerm
from stepguard.language.terms.percentages import check_beside
from stepguard.language.terms.type_relations import (
    DATE,
    DURATION,
    PERIOD,
    TIME,
    convertible,
    joined_numbers,
    quantity_in,
)
from stepguard.language.terms.type_remedies import VERBS, remedy
from stepguard.language.value_types import NUMBER, ValueType

_SUMS: Final[Mapping[tuple[str, str], ValueType]] = {
    ("date", "duration"): DATE, ("date", "period"): DATE, ("time", "duration"): TIME,
    ("duration", "duration"): DURATION, ("duration", "period"): PERIOD, ("period", "duration"): PERIOD,
    ("period", "period"): PERIOD,
}  # fmt: skip
"""The kinds of a value and of what is added to it or taken off it -> the type of the result."""


def type_of_operation(
    operator: str, left: ValueType, right: ValueType, one: Expression, other: Expression, tree: Expression
) -> ValueType:
    """The type of ``one operator other``, of the types `left` and `right`, which stands in `tree`.

    Raises:
        ProcedureError: it has no value, whatever the operands are.
        TooLargeError: its unit has more or higher factors than one can have.
    """
    if left.numeric and right.numeric:
        both = joined_numbers(left, right)
        if operator in ("+", "-"):
            check_beside(one, left, other, right, added=True)
        # Divided or multiplied they may be a rate of exchange, but `/ 1 USD` only takes the currency off dollars.
        if operator in ("*", "/") and not (both is None and takes_off_currency(operator, other, right)):
            return NUMBER
        if both is None:
            raise ProcedureError(two_currencies(left, right, one, other))
        if operator == "%" and left.currency is not None:  # the rest of an amount is an amount
            return left
        return both if operator in ("+", "-") else NUMBER
    typed = _sum if operator in "+-" else _product
    found = typed(operator, left, right, one, other)
    if found is None:
        raise ProcedureError(
            f"{shortened(tree)!r} {VERBS[operator]} {shortened(one)!r}, which is {left}, and "
            f"{shortened(other)!r}, which is {right}{remedy(left, right)}"
        )
    return found


def _sum(operator: str, left: ValueType, right: ValueType, one: Expression, other: Expression) -> ValueType | None:
    kinds = left.kind, right.kind
    if left.unit is not None and right.unit is not None:
        check_offset(left, one)
        check_offset(right, other)
        if not convertible(right.unit, left.unit):
            return None
        return quantity_in(left.unit)
    if operator == "-" and kinds in (("date", "date"), ("time", "time")):
        return DURATION
    # A span may stand in front of what it is added to, and not of what it is taken off.
    return _SUMS.get(kinds) or (_SUMS.get(kinds[::-1]) if operator == "+" else None)


def _product(operator: str, left: ValueType, right: ValueType, one: Expression, other: Expression) -> ValueType | None:
    kinds = left.kind, right.kind
    if left.currency is not None or right.currency is not None:
        return None  # there is no type for an amount per day or per kilogram
    if kinds == ("duration", "duration"):
        return {"/": NUMBER, "//": NUMBER, "%": DURATION}.get(operator)
    if "period" in kinds:
        return PERIOD if operator == "*" and (left.numeric or right.numeric) else None
    if "quantity" not in kinds:
        scaled = (operator in "*/" and kinds[0] == "duration" and right.numeric) or (
            operator == "*" and left.numeric and kinds[1] == "duration"
        )
        return DURATION if scaled else None
    # In a product with a quantity a duration counts as seconds, and a number as having no unit.
    units = [
        each.unit if each.unit is not None else SECOND if each.kind == "duration" else () if each.numeric else None
        for each in (left, right)
    ]
    mine, theirs = units
    if mine is None or theirs is None:
        return None
    check_offset(left, one)
    check_offset(right, other)
    if operator == "*":
        return quantity_in(multiplied_units(mine, theirs))
    if convertible(theirs, mine):
        if operator != "/" and not (mine and theirs):
            return None
        return quantity_in(mine) if operator == "%" else NUMBER
    return quantity_in(multiplied_units(mine, unit_power(theirs, -1))) if operator == "/" else None


def type_of_negative(kind: ValueType, operand: Expression) -> ValueType:
    """The type of the same value with the other sign. Raises ProcedureError: it has none."""
    if kind.numeric:
        return kind if kind.currency is not None else NUMBER
    if kind.kind in ("duration", "period", "quantity"):
        check_offset(kind, operand)
        return kind if kind.unit is None else quantity_in(kind.unit)
    raise ProcedureError(f"{shortened(operand)!r} is {kind}, which has no negative")


def type_of_power(kind: ValueType, raised: ValueType, base: Expression, exponent: Expression) -> ValueType:
    """The type of a power. Raises ProcedureError: the base has none, or the exponent is no number."""
    if not raised.numeric:
        raise ProcedureError(f"an exponent is a number, and {shortened(exponent)!r} is {raised}")
    if kind.numeric:
        return NUMBER
    if kind.unit is None:
        raise ProcedureError(f"{shortened(base)!r} is {kind}, which has no powers")
    check_offset(kind, base)
    # A literal only: the unit of the result has to be known before there are values.
    if type(exponent) is not Number or type(exponent.value) is not int:
        raise ProcedureError(f"the power of {shortened(base)!r}, which is {kind}, is a whole number such as 2")
    return quantity_in(unit_power(kind.unit, exponent.value))


def check_offset(kind: ValueType, tree: Expression) -> None:
    """Refuse to compute with a temperature in degrees. Raises ProcedureError."""
    if kind.unit is not None and has_offset(kind.unit):
        raise ProcedureError(
            f"{shortened(tree)!r} is a temperature in {write_unit(kind.unit)}, which is compared and not computed "
            "with, since its zero is not nothing: use quantity(K)"
        )


def two_currencies(left: ValueType, right: ValueType, one: Expression, other: Expression) -> str:
    """Why two amounts in different currencies are not combined."""
    return (
        f"two currencies: {shortened(one)!r} is in {left.currency}, {shortened(other)!r} in {right.currency}. "
        "Convert one by a product in a step of its own, such as `converted: money(EUR) = amount * rate`"
    )


def takes_off_currency(operator: str, operand: Expression, kind: ValueType) -> bool:
    """Whether an operation divides by an amount of money that stands in the text, alone or computed."""
    if operator != "/" or kind.currency is None:
        return False
    return all(isinstance(node, LiteralTerm) for node in walk(operand) if isinstance(node, Name))
