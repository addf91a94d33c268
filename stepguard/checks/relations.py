"""Relations between values, as the checks of constraints read and decide them.

They are of the arithmetic core where that has them, and of the language of procedures otherwise: with fields, sums of
lists, dates. All of them are computed exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from stepguard.core.verdicts import shorten
from stepguard.errors import ConfigError, EvaluationError, ExpressionError, UsageError
from stepguard.language.evaluation import evaluate
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.expression_tokens import check_grouping
from stepguard.language.expressions import (
    Call,
    Chain,
    Compare,
    Expression,
    Name,
    Negate,
    format_expression,
    inner_comparison,
    map_parts,
    parts_of,
    walk,
)
from stepguard.language.terms.evaluation import evaluate_term
from stepguard.language.terms.operands import operands_in, variables_in
from stepguard.language.values import ROUNDINGS, Rounding, Value


def read_relations(relations: Iterable[object], what: str) -> tuple[Compare, ...]:
    """The relations that a check is given, as text or as trees; `what` is the check, for messages.

    Raises:
        ConfigError: one is no comparison, or none is given.
        ExpressionError: one is not in the language.
    """
    compares: list[Compare] = []
    for relation in relations:
        tree = _parsed(relation) if isinstance(relation, str) else relation
        if not isinstance(tree, Compare):
            raise ConfigError(f"{what} takes comparisons such as 'a <= b + c', not {relation!r}", option="relations")
        if inner_comparison(tree) is not None:
            raise ConfigError(
                f"{relation!r} compares a comparison: give each as a relation of its own", option="relations"
            )
        # `x == x` would pass every claim, and as a proof.
        if tree.left == tree.right:
            raise ConfigError(f"{format_expression(tree)!r} says nothing: both sides are the same", option="relations")
        compares.append(tree)
    if not compares:
        raise ConfigError(f"{what} needs a relation: {what}('a <= b + c')", option="relations")
    return tuple(compares)


def _parsed(text: str) -> Expression:
    """A relation of the arithmetic core, or of the language of procedures: with fields, sums of lists, dates."""
    try:
        # 1.000 may be a thousand or one.
        check_grouping(text)
        return parse_expression(text)
    except ExpressionError as error:
        from stepguard.procedure.notation.parsing import parse_term  # its grammar is read when it is first needed

        try:
            return parse_term(text)
        except UsageError:
            raise error from None


def names_in_relations(relations: tuple[Compare, ...]) -> tuple[str, ...]:
    """The variables in some relations, each once."""
    return tuple(dict.fromkeys(name for tree in relations for name in variables_in(tree)))


def has_operands(tree: Expression) -> bool:
    """Whether an expression reads fields, lists, dates or the like."""
    return next(operands_in(tree), None) is not None


def value_of(tree: Expression, values: Mapping[str, Value]) -> Value:
    """Evaluate an expression, with or without operands."""
    return evaluate_term(tree, values) if has_operands(tree) else evaluate(tree, values)


def _mentions(tree: Expression, own: str) -> bool:
    return own in variables_in(tree)


def determines(tree: Compare, own: str) -> bool:
    """Whether at most one value of `own` makes an equation true: it is a single term of one side."""
    # On both sides (x == 2 * x - 4) the value may cancel, and any claim would do.
    if tree.operator != "==" or _mentions(tree.left, own) == _mentions(tree.right, own):
        return False
    side = tree.left if _mentions(tree.left, own) else tree.right
    while True:
        if type(side) is Negate:
            side = side.operand
        elif type(side) is Chain and side.additive:
            within = [operand for operand in side.operands if _mentions(operand, own)]
            if len(within) != 1:
                return False
            side = within[0]
        else:
            # A product is no single term: 0 * x == 0 holds for every x.
            return type(side) is Name


def undefined_anyway(tree: Expression, own: str, values: Mapping[str, Value]) -> str | None:
    """Why an expression has no value whatever `own` is; None where that cannot be said."""
    if not _mentions(tree, own):
        try:
            value = value_of(tree, values)
        except EvaluationError as error:
            return str(error)
        return f"{format_expression(tree)} is not a number" if isinstance(value, bool | str) else None
    for part in parts_of(tree):
        cause = undefined_anyway(part, own, values)
        if cause is not None:
            return cause
    if type(tree) is Chain:
        for operator, divisor in zip(tree.operators, tree.operands[1:], strict=True):
            if operator in ("/", "//", "%") and not _mentions(divisor, own) and value_of(divisor, values) == 0:
                return f"division by zero: {shorten(format_expression(tree), 60)}"
    return None


def other_mode(tree: Compare, values: Mapping[str, Value]) -> Rounding | None:
    """The mode that would make a relation hold in place of those it declares, None where there is none."""
    if not any(type(node) is Call and node.mode is not None for node in walk(tree)):
        return None
    for mode in cast("tuple[Rounding, ...]", ROUNDINGS):
        try:
            if value_of(_with_mode(tree, mode), values):
                return mode
        except EvaluationError:  # rounded otherwise, a divisor may be zero
            continue
    return None


def _with_mode(tree: Expression, mode: Rounding) -> Expression:
    changed = map_parts(tree, lambda part: _with_mode(part, mode))
    return replace(changed, mode=mode) if isinstance(changed, Call) and changed.mode else changed
