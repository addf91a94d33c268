"""A value with words around it, and what around it makes it none.

``The total is 7 apples`` gives 7. Where the number is denied (``not 7``), is a part of more (``7 + 3``, ``7:30``), is
scaled (``7 thousand``), bounds something (``at least 7``) or is not the only one, nothing is given: which value is
meant would be a guess.
"""

from __future__ import annotations

import re
from typing import Final

from stepguard.errors import ValueRefused
from stepguard.language.currencies import compatible
from stepguard.language.prose.amounts import find_numbers
from stepguard.language.prose.neighbours import amount_stands_alone
from stepguard.language.prose.retraction import contrast_length
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value

_MARKUP: Final = " \t\r*_`\"'"
_LINK: Final = re.compile(r"(?<![<>=!:~])=(?![=>])|\u2248")
_RELATION: Final = re.compile(r"[<>~\u2260\u2264\u2265]|[!:]=|==")
_DIGIT: Final = re.compile("[0-9]")
_NUMBER: Final = re.compile(r"[0-9](?:[0-9.,]*[0-9])?%?")
_MATH: Final = re.compile(r"\$([^$\n]{1,40})\$")
_ASIDE: Final = re.compile(r"\([^()]*\)")
_GROUPS: Final = re.compile(r"(?<=[0-9])(?:\{,\}|\\,)(?=[0-9]{3}(?![0-9]))")
_DENIED: Final = re.compile(
    r"\b(?:not|never|neither|nor|nothing|cannot|wrong|incorrect|false|unknown|unsure|unclear|maybe|perhaps|or"
    r"|mod(?:ulo)?"
    r"|binary|octal|hex(?:adecimal)?)\b"
    r"|n['\u2019]t\b|[?\\]",
    re.IGNORECASE,
)
_COUNTED: Final = re.compile(
    r"\b(?:but|step|line|item)\s+\Z|[-+*/^=\u00d7\u00f7\u2013\u2014'$\u00a2]\s*\Z", re.IGNORECASE
)
"""In front of a number, what it is the number of, or calculated with."""
_CALCULATED: Final = re.compile(
    r"\s*(?:[-+*/^=\u00d7\u00f7](?!\s+[A-Za-z]{2})|[A-Za-z](?![A-Za-z])|times\b|squared\b|cubed\b|plus\b|minus\b|divided\b)"
)


_RATE: Final = re.compile(r"\A\s*(?:per|an?|each|every)\s+[a-z]+", re.IGNORECASE)
"""Behind a number, what it is for: an answer of 18 a day is 18."""


def bare(text: str) -> str:
    """A text without the markup around it, the full stop behind it and the dollars of mathematics."""
    text = _ended(text)
    while len(text) > 1 and text[0] == text[-1] == "$":
        text = _ended(text[1:-1])
    return text


def _ended(text: str) -> str:
    text = text.strip(_MARKUP)
    return text if text.endswith("..") else text.rstrip(_MARKUP + ".!")  # digits that go on are no full stop


def last_side(text: str) -> str | None:
    """What stands behind the last sign of equality; None where something else is said than that sides are equal."""
    return None if _RELATION.search(text) else bare(_LINK.split(text)[-1])


def read_bare(kind: ValueType, text: str) -> Value | None:
    """A text that is a value and nothing else, None where it is not."""
    try:
        return kind.read(_GROUPS.sub(",", text)) if text else None
    except ValueRefused:
        return None


def find_alone(kind: ValueType, text: str) -> Value | None:
    """The number in a short text, None where there are several, or where what is around it makes it another."""
    text = text.replace("\\$", "$")  # as Markdown writes a dollar that begins no formula
    first = _NUMBER.search(text)
    if first is not None:
        behind = text[first.end() :]
        text = text[: first.end()] + behind[contrast_length(first[0], behind) :]
    side = None if _DENIED.search(text) else last_side(_ASIDE.sub(" ", _MATH.sub(r"\1", text)))
    numbers = [] if side is None else list(find_numbers(side))
    if side is None or len(numbers) != 1:
        return None
    (start, end), unit = (numbers[0].start, numbers[0].end), numbers[0].unit
    if kind.currency is not None and unit is not None and not compatible(unit, kind.currency):
        return None
    behind = _RATE.sub("", side[end:])
    if _DIGIT.search(side[:start] + behind) or _COUNTED.search(side[:start]) or _CALCULATED.match(behind):
        return None
    if not amount_stands_alone((side[:end] + behind).lower(), start, end):
        return None
    return read_bare(kind, side[start:end])
