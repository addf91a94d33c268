"""The expressions of a procedure, as they are given: as text, or parsed."""

from __future__ import annotations

from stepguard.errors import ExpressionError, ProcedureError
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.expression_tokens import check_grouping
from stepguard.language.expressions import Expression
from stepguard.language.terms.operands import TERM_SIGNS


def as_expression(given: str | Expression) -> Expression:
    """An expression of a procedure, from its text or as it is. Raises ProcedureError: it is none."""
    if not isinstance(given, str | Expression):
        raise ProcedureError(f"an expression is text such as 'x + 1', not {given!r:.60}")
    return read_expression(given) if isinstance(given, str) else given


def read_expression(text: str) -> Expression:
    """An expression as it is written, with operands (`stepguard.language.terms.operands`) or without.

    Raises:
        ExpressionError: it is not in the language.
    """
    check_grouping(text)
    try:
        return parse_expression(text)
    # The error of plain arithmetic is the better one unless the text holds signs of terms.
    except ExpressionError:
        if TERM_SIGNS.search(text) is None:
            raise
        from stepguard.procedure.notation.parsing import parse_term

        return parse_term(text)
