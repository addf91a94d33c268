"""Bounds, percentages and other figures that words beside a formula state, and whether the formula has them.

``Fee, capped at 50`` beside ``amount * 2`` says what is not carried out, ``at least 50`` beside ``amount > 50`` what is
not so at 50, and ``VAT of 19%`` beside ``net * 0.07`` another rate. What stands in the rows of a table is not known
here, so words beside a lookup may say what they like.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from typing import Final

from stepguard.core.patterns import lazy_pattern
from stepguard.language.expressions import MIRRORED, Call, Chain, Compare, Expression, Number, names_in, parts_of
from stepguard.language.prose.mentioned import in_digits
from stepguard.language.terms.operands import Choice, Item, LiteralTerm, Operand, inner

_FIGURE: Final = (
    r"[$\u20ac\u00a3]?(?P<figure>[0-9]{1,30}(?:,[0-9]{3}){0,9}(?:\.[0-9]{1,30})?)(?P<percent> ?%| per ?cent\b)?"
)
_NUMBER: Final = lazy_pattern(rf"(?<![\w.,-]){_FIGURE}(?:st|nd|rd|th)?(?!\w|[.,][0-9])", re.IGNORECASE)
_STATED: Final = lazy_pattern(
    r"\b(?:(?P<most>(?:cap(?:ped)?|limit(?:ed)?)(?: (?:it|this|that|the \w+))? (?:at|to)|ceiling of|max(?:imum"
    r"|\.)?(?: of| is|:)?|at most|(?:no|not|never) (?:more|higher|larger|greater|longer) than|(?:not|never) (?:over"
    r"|above)|up to|(?:not|never) exceeds?|not (?:to )?exceed(?:ing)?)|(?P<least>min(?:imum|\.)?(?: of| is|:)?|at least"
    r"|(?:no|not|never) (?:less|fewer|lower|smaller|shorter) than|(?:not|never) (?:under|below))|(?P<more>over|above"
    r"|exceed(?:s|ing)?|(?:more|higher|larger|greater|longer|older) than)|(?P<less>under|below|(?:less|fewer|lower"
    r"|smaller|shorter|younger) than)"
    rf") {_FIGURE}(?!\w|[.,][0-9])(?! (?:and|or)\b)",
    re.IGNORECASE,
)
_CONVERTED: Final = lazy_pattern(
    r"\b(?:convert|change|turn|express)(?:s|ed|ing)?\b(?: [^\s.,;:]+){0,6}? (?:in)?to (?:cents|pence|pennies)\b",
    re.IGNORECASE,
)
_FUNCTIONS: Final = {"most": "min", "least": "max"}
"""What holds a value within a bound."""
_COMPARED: Final = {
    "most": frozenset({"<=", ">"}), "least": frozenset({">=", "<"}),
    "more": frozenset({">", "<="}), "less": frozenset({"<", ">="}),
}  # fmt: skip
"""The comparisons that draw the line where the words do: as they say, or the other way round."""


def unheld_figures(words: str, tree: Expression, known: Collection[Fraction]) -> Iterator[str]:
    """The bounds and percentages that words state and a formula does not have.

    Args:
        words: with their numbers in digits.
        known: what its constants come to, alone and together.
    """
    nodes = list(_parts(tree))
    if any(isinstance(node, Item) for node in nodes):
        return
    known = {*known, *_constants(nodes)}
    for said in _NUMBER.finditer(words):
        share = _figure(said)
        if said["percent"] and share != 1 and known.isdisjoint(_forms(share)):
            yield said[0]
    converted = _CONVERTED.search(words)
    if converted is not None and known.isdisjoint({Fraction(100), Fraction(1, 100)}) and not _multiplies_names(nodes):
        yield converted[0]
    for said in _STATED.finditer(words):
        if not _bounded(said, nodes, known):
            yield said[0]


def foreign_figures(words: str, tree: Expression, names: Iterable[str]) -> Iterator[str]:
    """The figures of words that are no constant of a formula and stand in none of the names of its step."""
    known = _constants([*_parts(tree)])
    named = {Fraction(digits) for name in names for digits in re.findall(r"[0-9]+", name)}
    for said in _NUMBER.finditer(in_digits(words)):
        figure = _figure(said)
        if known.isdisjoint(_forms(figure) if said["percent"] else {figure}) and figure not in named:
            yield said[0]


def _multiplies_names(nodes: list[Expression]) -> bool:
    """Whether a product has several variables, one of which may be what something is converted with."""
    products = [node for node in nodes if isinstance(node, Chain) and not node.additive]
    return any(sum(1 for operand in node.operands if [*names_in(operand)]) > 1 for node in products)


def _forms(share: Fraction) -> set[Fraction]:
    """The constants with which a percentage is taken, added or taken off."""
    return {share, 1 + share, 1 - share, 100 * share}


def _bounded(said: re.Match[str], nodes: list[Expression], known: Collection[Fraction]) -> bool:
    """Whether a formula keeps to a bound, or draws the line, where the words do."""
    way = next(name for name in _COMPARED if said[name])
    figures = {_figure(said), Fraction(said["figure"].replace(",", ""))}
    comparisons = [node for node in nodes if isinstance(node, Compare)]
    calls = [node for node in nodes if isinstance(node, Call) and node.function in ("min", "max")]
    if not calls and not comparisons:
        return way not in _FUNCTIONS  # `more` and `less` are words of control, which are refused by themselves
    if way in _FUNCTIONS and any(
        node.function == _FUNCTIONS[way] and figures & _constants(node.arguments) for node in calls
    ):
        return True
    if any(isinstance(node, Choice) for node in nodes):
        return not figures.isdisjoint(known)
    if comparisons:
        return any(_line(node, figures) in _COMPARED[way] for node in comparisons)
    # Which of several is the smallest is no bound, and `min(x, limit)` has one that is not known here.
    return not any(_constants(node.arguments) for node in calls) or (way not in _FUNCTIONS and bool(figures & {*known}))


def _line(node: Compare, figures: Collection[Fraction]) -> str | None:
    """The comparison with one of the figures, as if that stood on the right; None where it has none."""
    if _constants((node.right,)) & {*figures}:
        return node.operator
    return MIRRORED[node.operator] if _constants((node.left,)) & {*figures} else None


def _parts(tree: Expression) -> Iterator[Expression]:
    """An expression and all parts of it, also those of operands."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(inner(node) if isinstance(node, Operand) else parts_of(node))


def _constants(nodes: Collection[Expression]) -> set[Fraction]:
    """The numbers that stand in expressions, also in amounts and spans such as ``30 days``."""
    found = {Fraction(node.value) for node in nodes if type(node) is Number}
    for node in nodes:
        if isinstance(node, LiteralTerm) and not isinstance(node.value, str):
            found |= {_figure(said) for said in _NUMBER.finditer(node.name)}
    return {abs(each) for each in found}


def _figure(said: re.Match[str]) -> Fraction:
    figure = Fraction(said["figure"].replace(",", ""))
    return figure / 100 if said["percent"] else figure
