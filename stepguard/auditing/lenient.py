"""A value with words around it, and what around it makes it none.

``The total is 7 apples`` gives 7. Where the number is denied (``not 7``), is a part of more (``7 + 3``, ``7:30``), is
scaled (``7 thousand``), bounds something (``at least 7``) or is not the only one, nothing is given: which value is
meant would be a guess.
"""

from __future__ import annotations

import re
from typing import Final

from stepguard.errors import ValueRefused
from stepguard.language.currencies import compatible, without_currencies
from stepguard.language.neighbours import number_goes_on
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value

__all__ = ["bare", "find_alone", "last_side", "read_bare"]

_MARKUP: Final = " \t\r*_`\"'"
_LINK: Final = re.compile(r"(?<![<>=!:~])=(?![=>])|\u2248")
_RELATION: Final = re.compile(r"[<>~\u2260\u2264\u2265]|[!:]=|==")
_NUMBER: Final = re.compile(r"[-+]?[$€£]?(?:[0-9][0-9.,]*|\.[0-9]+)(?:/[0-9]+)?%?")
_DIGIT: Final = re.compile("[0-9]")
_ASIDE: Final = re.compile(r"\([^()]*\)")
_GROUPS: Final = re.compile(r"(?<=[0-9])(?:\{,\}|\\,)(?=[0-9]{3}(?![0-9]))")
_DENIED: Final = re.compile(
    r"\b(?:not|never|neither|nor|nothing|cannot|wrong|incorrect|false|unknown|unsure|unclear|maybe|perhaps|or|mod(?:ulo)?"
    r"|binary|octal|hex(?:adecimal)?)\b"
    r"|n['\u2019]t\b|[?\\]",
    re.IGNORECASE,
)
_BEFORE: Final = re.compile(
    r"[\w.,'^/:$\u00a2]\Z|[-+*/^=\u00d7\u00f7\u2013\u2014]\s*\Z"
    r"|\b(?:but|minus|negative|than|under|over|above|below|least|most|step|line|item"
    r"|twice|double|(?:half|third|quarter|tenth|multiple)s? of)\s+\Z",
    re.IGNORECASE,
)
_BEHIND: Final = re.compile(
    r"[A-Za-z](?![A-Za-z])|(?:bn|mn|mio|mrd|st|nd|rd|th)\b|['^:/,.]?[0-9]|[\u00b2\u00b3\u2070-\u2079\u2030]"
    r"|\s*[+*/^=\u00d7\u00f7\u2030\u00a2]|\s*[-\u2013\u2014](?!\s+[A-Za-z]{2})"
    r"|\s*(?:[kKmM]|bn|hundred|thousands?|millions?|billions?|trillions?|dozens?|times|percent|per cent|per mille"
    r"|squared|cubed|plus|minus|divided|cents?|pence)\b",
    re.IGNORECASE,
)


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
    if _DENIED.search(text):
        return None
    said, currencies = without_currencies(text)
    if kind.currency is not None and not all(compatible(each, kind.currency) for each in currencies):
        return None
    side = last_side(_ASIDE.sub(" ", said))
    numbers = [] if side is None else list(_NUMBER.finditer(side))
    if side is None or len(numbers) != 1:
        return None
    start, end = numbers[0].span()
    number = numbers[0][0].rstrip(".,")
    if number_goes_on(side, start + len(number), money=kind.currency is not None):
        return None
    if _BEFORE.search(side[:start]) or _BEHIND.match(side[start + len(number) :]) or _DIGIT.search(side[end:]):
        return None
    return read_bare(kind, number)
