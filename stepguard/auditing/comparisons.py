"""Comparisons of two numbers that a transcript says hold, or do not, and that are otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from stepguard.language.expressions import COMPARISONS

_NUMBER: Final = r"-?[0-9]{1,30}(?:,[0-9]{3}){0,9}(?:\.[0-9]{1,30})?"
_COMPARED: Final = re.compile(
    r"(?:(?P<since>\b(?:since|because) )|(?:^[ \t>*+-]{0,12}|[.;] ))[*_`]{0,2}"
    rf"(?P<left>{_NUMBER}) ?(?P<sign><=|>=|==|[<>\u2264\u2265]) ?(?P<right>{_NUMBER})[*_`]{{0,2}}"
    r"(?:(?P<truth> is (?:true|false|not true))\b|(?=[,;.)](?!\w)|\s*\n|\s*\Z))",
    re.IGNORECASE | re.MULTILINE,
)
"""A comparison of two numbers that is said to hold, or not to."""


def false_comparisons(body: str) -> Iterator[tuple[tuple[int, int], str]]:
    """Where a comparison stands that is said to hold and does not, or the other way round, and what is wrong."""
    for match in _COMPARED.finditer(body):
        # A comparison that merely stands in a line may be a condition that is weighed, and not a claim.
        if match["since"] or match["truth"]:
            sign = match["sign"].replace("\u2264", "<=").replace("\u2265", ">=")
            left, right = (Fraction(match[side].replace(",", "")) for side in ("left", "right"))
            holds = match["truth"] in (None, " is true")
            if COMPARISONS[sign](left, right) != holds:
                reason = f"{left} {sign} {right} does {'not ' if holds else ''}hold"
                yield (match.start("left"), match.end("right")), reason
