"""Formulas among the words of a step: what looks like a formula would be asked as words, and nothing would check it.

Only a formula that reads an input or an earlier step is one: ``Find the slope of y = 2 * z + 1`` and ``Take pi = 3.14``
are words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from typing import Final

from stepguard.core.patterns import lazy_pattern
from stepguard.errors import ExpressionError
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.expressions import TRUTHS, Compare, Expression, names_in, walk

_ASSIGNED: Final = lazy_pattern(
    r"(?<![A-Za-z0-9_.])[A-Za-z_][A-Za-z0-9_]*\s*(?:[:\uff1a]\s*[A-Za-z_]+\s?\([^()=]*\)\s*)?"
    r"(?:[:\uff1a]?[=\uff1d](?!=)|\u2190)\s*(?=\S)"
)
_NEXT: Final = lazy_pattern(r"(?<![<>=!])[=\uff1d\u2190](?!=)")  # a chain of equations is read link by link
_AROUND: Final = "`$* .,;!\u3002"


def assigns(words: str) -> bool:
    """Whether something like ``name = ...`` stands in a text."""
    return _ASSIGNED.search(words) is not None


def find_hidden(words: str, known: Collection[str]) -> str | None:
    """What is wrong with words that hold a formula, and what to write; None where they hold none."""
    words = _ascii(words)
    bare = words.strip(_AROUND)
    tree = _parsed(bare)
    if tree is not None and not _words_only(tree) and (_reads(tree, known) or not names_in(tree)):
        name = "ok" if isinstance(tree, TRUTHS) else "result"
        return f"{bare[:60]!r} is a formula without a name, and would not be checked: write `{name} = {bare[:60]}`"
    for found in _ASSIGNED.finditer(words):
        end = _NEXT.search(words, found.end())
        formula = _formula_at(words[found.end() : end.start() if end else len(words)])
        if formula is not None and _reads(formula[1], known):
            name = found[0].strip().rstrip(":=\uff1a\uff1d\u2190").rstrip()
            shown = f"{name} = {formula[0].strip()}"[:60]
            return (
                f"the words hold a formula that would not be checked: write it with a colon in front, such as "
                f'`Work it out: {shown}`; words that mean none stand in quotes, such as `result: text = "..."`'
            )
    return None


def _ascii(words: str) -> str:
    """Full-width and other typeset letters, digits and signs as the plain ones that a reader takes them for."""
    if words.isascii():
        return words
    return "".join(
        each if each.isascii() or unicodedata.category(each) == "No" else unicodedata.normalize("NFKC", each)
        for each in words
    )


def _words_only(tree: Expression) -> bool:
    """Whether words only look like an expression, such as ``income and tax``."""
    return isinstance(tree, TRUTHS) and not any(isinstance(node, Compare) for node in walk(tree))


def _parsed(text: str) -> Expression | None:
    try:
        return parse_expression(text)
    except ExpressionError:
        return None


def _formula_at(text: str) -> tuple[str, Expression] | None:
    """The expression that a text begins with: the text up to where it is none any more."""
    while True:
        try:
            return text, parse_expression(text)
        except ExpressionError as error:
            if error.position >= len(text):
                return None
            text = text[: error.position]


def _reads(tree: Expression, known: Collection[str]) -> bool:
    return any(name in known for name in names_in(tree))
