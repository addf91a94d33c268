"""Percentages beside other numbers: a percentage has its sign, and is a percentage of something.

``rate > 10`` is never true of a rate of 20%, which is 1/5; ``price + rate`` of 5 EUR and 10% is 5.10 for arithmetic and
5.50 for a reader; ``price * rate / 100`` divides by 100 a second time. Numbers up to 1 may be ratios, ``1 - rate``.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

from stepguard.errors import ProcedureError
from stepguard.language.digits import exact, format_exact
from stepguard.language.evaluation import shortened
from stepguard.language.expressions import Chain, Expression, Negate, Number
from stepguard.language.terms.operands import Choice, ListTerm, RecordTerm
from stepguard.language.value_types import ValueType

_HUNDRED: Final = Number(100)


def check_value(tree: Expression, kind: ValueType) -> None:
    """Refuse a bare number above 1 that would become a percentage. Raises ProcedureError."""
    bare = _bare(tree, kind)
    if bare is not None:
        raise ProcedureError(f"is a percentage, and {_as_percentage(bare)}")


def check_beside(
    one: Expression, kind: ValueType, other: Expression, theirs: ValueType, *, added: bool = False
) -> None:
    """Refuse to add a percentage to, or to compare it with, what is none. Raises ProcedureError."""
    if is_percentage(other, theirs):
        one, kind, other, theirs = other, theirs, one, kind
    if not is_percentage(one, kind) or is_percentage(other, theirs):
        return
    if (bare := _large(other)) is not None:
        raise ProcedureError(f"{shortened(one)!r} is a percentage, and {_as_percentage(bare)}")
    if theirs.currency is not None or theirs.kind == "integer":
        part, whole = shortened(one), shortened(other)
        remedy = f"{whole} + {whole} * {part}" if added else f"{whole} * {part}"
        raise ProcedureError(f"{part!r} is a percentage, and {whole!r} is {theirs}: of what? write `{remedy}`")


def is_percentage(tree: Expression, kind: ValueType) -> bool:
    """Whether an expression of a type is one, by its type or as it is written."""
    return kind.kind == "percent" or (type(tree) is Number and tree.percent)


def check_hundredths(tree: Chain, type_of: Callable[[Expression], ValueType]) -> None:
    """Refuse a product with a percentage that is divided by 100 behind it, as if it had no sign yet.

    Raises ProcedureError.
    """
    for at, (operator, operand) in enumerate(zip(tree.operators, tree.operands[1:], strict=True), 1):
        if operator != "/" or operand != _HUNDRED or (type(operand) is Number and operand.percent):
            continue
        for part in tree.operands[:at]:
            if type_of(part).kind == "percent":
                raise ProcedureError(
                    f"{shortened(part)!r} is a percentage, 5% and not 5: leave `/ 100` out, or write it in front of "
                    f"{shortened(part)!r}"
                )


def _bare(tree: Expression, kind: ValueType) -> Number | None:
    match tree:
        case Number() | Negate():
            return _large(tree) if kind.kind == "percent" else None
        case Choice(then, _, otherwise):
            parts = [(then, kind), (otherwise, kind)]
        case ListTerm(items) if kind.items is not None:
            parts = [(each, kind.items) for each in items]
        case RecordTerm(fields) if kind.record is not None:
            parts = [(each, found) for key, each in fields if (found := kind.record.get(key)) is not None]
        case _:
            return None
    return next((bare for each, part in parts if (bare := _bare(each, part)) is not None), None)


def _large(tree: Expression) -> Number | None:
    if type(tree) is Negate:
        tree = tree.operand
    return tree if type(tree) is Number and not (-1 <= tree.value <= 1 or tree.percent) else None


def _as_percentage(bare: Number) -> str:
    shown = format_exact(bare.value)
    return f"{shown} is {format_exact(exact(Fraction(bare.value) * 100))}%: write {shown}%"
