"""Conditions and figures in the words of a line that is imported (`stepguard.procedure.importing`)."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from typing import Final

from stepguard.errors import ExpressionError, ProcedureError
from stepguard.language.expressions import Expression
from stepguard.language.prose.stated_figures import foreign_figures
from stepguard.language.terms.operands import variables_in
from stepguard.procedure.notation import parse_term
from stepguard.procedure.steps import Step

IF: Final = re.compile(
    r"(?:if|when|in case)\s+(?P<condition>(?:[^,:]|,(?=[0-9]{3}(?![0-9])))+?)(?:\s*[,:](?![0-9])\s*|\s+(?=then\b))"
    r"(?:then\b[,:]?\s*)?(?P<rest>.*)\Z",
    re.IGNORECASE,
)
ELSE: Final = re.compile(r"(?:otherwise|else|in all other cases|if not)\s*[,:]?\s*(?P<rest>.*)\Z", re.IGNORECASE)
_BY_NUMBER: Final = re.compile(
    r"\bsteps? [0-9]{1,9}\b(?:(?:,| and|, and| or| to|-|\u2013) ?[0-9]{1,9}\b)*|\Astep \w+\Z", re.IGNORECASE
)
# What names a document, or a place in one, by its number says nothing of values.
_DOCUMENT: Final = re.compile(
    r"\b(?:Form|ISO|IEC|DIN|RFC|[Pp]ages?|[Cc]hapter|[Aa]ppendix|[Aa]nnex) [0-9]{1,9}(?![\w%]|[.,][0-9])"
)
_MORE: Final = "(?:more|greater|higher|larger|longer)"
_LESS: Final = "(?:less|fewer|lower|smaller|shorter)"
_COMPARED: Final = tuple(
    (re.compile(rf"\s+{words}\s+", re.IGNORECASE), sign)
    for words, sign in (
        (rf"(?:is\s+)?{_MORE} than or equal to|is at least|is (?:not|no) {_LESS} than", " >= "),
        (rf"(?:is\s+)?{_LESS} than or equal to|is at most|is (?:not|no) {_MORE} than", " <= "),
        (rf"(?:is\s+)?{_MORE} than|exceeds|is over|is above", " > "),
        (rf"(?:is\s+)?{_LESS} than|is under|is below", " < "),
        (r"is not equal to|is not", " != "),
        (r"is equal to|equals|is", " == "),
    )
)


def read_condition(words: str, names: Container[str]) -> Expression:
    """A condition in words as an expression.

    Raises ProcedureError: it is none that can be worked out, or reads a variable that is none of `names`.
    """
    for pattern, sign in _COMPARED:
        # The table is ordered: "is not more than" must not be read as "is not".
        plain, count = pattern.subn(sign, words, count=1)
        if count:
            words = plain
            break
    try:
        tree = parse_term(words)
    except ExpressionError:
        raise ProcedureError(
            f"the condition {words[:60]!r} is none that can be worked out: write it as `if days > 3:`, over values "
            "that are known"
        ) from None
    unknown = [name for name in variables_in(tree) if name not in names]
    if unknown:
        raise ProcedureError(f"the condition reads {unknown[0]!r}, which is no input and set by no step above")
    return tree


def check_figures(step: Step, words: str, tree: Expression, labelled: Mapping[int, str]) -> None:
    """Refuse figures in words that a formula does not have, and steps named by a number that it does not read.

    Args:
        labelled: what the step with a number sets.

    Raises ProcedureError.
    """
    for said in _BY_NUMBER.finditer(words):
        for number in re.findall(r"[0-9]+\b", said[0]) or ("0",):
            named = labelled.get(int(number))
            if named not in step.reads:
                remedy = "leave that out" if named is None else f"write the formula with {named!r}"
                raise ProcedureError(f"the words name {said[0]!r}, which the formula does not read: {remedy}")
    figure = next(foreign_figures(_DOCUMENT.sub(" ", _BY_NUMBER.sub(" ", words)), tree, (step.id, *step.reads)), None)
    if figure is not None:
        raise ProcedureError(
            f"{figure!r} in the words {words[:60]!r} is no figure of the formula: write it there, or leave it out"
        )
