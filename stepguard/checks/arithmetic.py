"""The check of steps with an expression: is the value right, and is the working this step's?

The value must equal the expression, computed exactly from the verified values and rounded as the step declares.
Where the step asks for working, the first link must be the step's expression up to harmless rewriting (see
`stepguard.normal_form`), it may only name what the step reads, and every link of the chain must be true. Following
a procedure and being right are different things, and this check asks for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, cast

from stepguard.errors import EvaluationError, ExpressionError
from stepguard.exact import evaluate
from stepguard.expressions import Call, Expression, Name, Number, format_expression, names_in, parse_expression
from stepguard.normal_form import normal_form, operands_of
from stepguard.numerals import Exact
from stepguard.values import ROUNDINGS, Rounding, Value, ValueType, round_exact, show_value, to_decimal, to_exact
from stepguard.verdicts import Claim, DeviationKind, Verdict

if TYPE_CHECKING:
    from stepguard.procedure import Step

__all__ = ["check_arithmetic"]

_NAME = "arithmetic"
_PASS = Verdict("pass", _NAME)


def check_arithmetic(step: Step, values: Mapping[str, Value], claim: Claim, value: Value) -> Verdict:
    """Check one claim of a step that has an expression.

    Args:
        step: the step; its expression must not be None.
        values: the value of every variable it reads.
        claim: what the reply says.
        value: the claimed value, already read as the step's type.
    """
    tree = step.expression
    assert tree is not None
    try:
        exact_value = evaluate(tree, values)
        expected = step.type.convert(exact_value)
    except EvaluationError as error:
        # No claim can be right, so asking again cannot help.
        return Verdict("undecided", _NAME, "undecided", f"the step has no exact value: {error}", retry=False)
    right = type(value) is type(expected) and value == expected
    work = _check_work(step, values, claim, exact_value) if step.show_work else None
    if right:
        return _fail(*work) if work is not None else _PASS
    if work is not None and work[0] in ("wrong_operand", "malformed"):
        return _fail(*work)
    return _fail("wrong_value", _wrong_value(step.type, tree, exact_value, expected, value))


def _fail(kind: DeviationKind, reason: str) -> Verdict:
    return Verdict("fail", _NAME, kind, reason)


def _wrong_value(kind: ValueType, tree: Expression, exact_value: object, expected: Value, value: Value) -> str:
    reason = f"{format_expression(tree)} is {show_value(expected)}, not {show_value(value)}"
    if kind.kind == "decimal" and type(value) is Decimal and isinstance(exact_value, int | Fraction):
        assert kind.places is not None
        for mode in ROUNDINGS:
            if to_decimal(round_exact(exact_value, kind.places, cast(Rounding, mode)), kind.places) == value:
                return f"rounding mode: {reason} ({kind.rounding} is declared, {mode} would give it)"
    return reason


def _check_work(
    step: Step, values: Mapping[str, Value], claim: Claim, exact_value: Exact | bool | str
) -> tuple[DeviationKind, str] | None:
    """What is wrong with the working, None if nothing is."""
    tree = step.expression
    assert tree is not None
    if not claim.work:
        if type(tree) in (Name, Number):
            return None  # copying a value takes no working
        return "unfaithful_work", "no working is shown"
    inner = _unrounded(tree)
    rounded = step.type.kind == "decimal" or inner is not tree
    for index, link in enumerate(claim.work):
        try:
            written = parse_expression(link)
        except ExpressionError as error:
            return "malformed", f"the working cannot be read: {error}"
        foreign = [name for name in names_in(written) if name not in step.reads]
        if foreign:
            return "wrong_operand", f"the working reads {foreign[0]!r}, which this step does not"
        if index == 0:
            found = normal_form(written, values)
            if found != normal_form(tree, values) and (inner is tree or found != normal_form(inner, values)):
                kind: DeviationKind = "unfaithful_work"
                if operands_of(written, values) != operands_of(inner, values):
                    kind = "wrong_operand" if not _equals(written, values, exact_value) else kind
                return kind, f"the working {link.strip()!r} is not {format_expression(tree)!r}"
        if not _true_link(written, values, exact_value, inner if rounded else None):
            return "unfaithful_work", f"{link.strip()!r} is not equal to {format_expression(tree)!r}"
    return None


def _unrounded(tree: Expression) -> Expression:
    """What stands inside an outermost ``round``: working may show the division and then its rounded result."""
    return tree.arguments[0] if type(tree) is Call and tree.function == "round" else tree


def _equals(tree: Expression, values: Mapping[str, Value], wanted: Exact | bool | str) -> bool:
    try:
        found = evaluate(tree, values)
    except EvaluationError:
        return False
    if isinstance(wanted, bool) or isinstance(found, bool):  # True == 1 in Python, not in a procedure
        return found is wanted
    return found == wanted


def _true_link(
    tree: Expression, values: Mapping[str, Value], wanted: Exact | bool | str, rounded: Expression | None
) -> bool:
    if _equals(tree, values, wanted):
        return True
    if rounded is None:
        return False
    # Before a declared rounding, a link may be the unrounded value, or its digits as far as they are written.
    unrounded = to_exact(evaluate(rounded, values))
    if _equals(tree, values, unrounded):
        return True
    if type(tree) is not Number or isinstance(unrounded, bool | str):
        return False
    places = len(format_expression(tree).partition(".")[2])
    return abs(tree.value - unrounded) < Fraction(1, 10**places)
