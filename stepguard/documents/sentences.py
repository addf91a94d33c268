"""Where a passage is cut out of a sentence or a line: what stands before or behind it there may turn its meaning.

A sentence ends with its sign before white space and anything but a small letter. A line ends it as well, but where the
next one begins with a small letter, and is no item, labelled or a row of values: then the sentence goes on.
"""

from __future__ import annotations

import re
from typing import Final

_REACH: Final = 400
"""Characters to either side; a sentence that is longer is cut there, and no whole one."""
_CLOSED: Final = r"[.!?\u3002\uff01\uff1f][\"'\u2019\u201d\u00bb)\]*_]*"
# A blank line ends a sentence whatever its sign, a full-width stop without a blank.
_BREAK: Final = re.compile(rf"{_CLOSED}\s+|\n\s*\n\s*|\n\s*|\u3002\s*")
_MARKER: Final = re.compile(r"(?:[\W\d_]|(?<![^\W_])(?:[A-Za-z]|[ivxlc]{2,5})[.)](?!\w))*")
"""Bullets, numbers and letters in front of an item."""
_ITEM: Final = re.compile(
    r"(?:[A-Za-z]|[ivxlc]{1,5})[.)]\s|[\w-]{1,20}(?:[ .][\w-]{1,20}){0,2} ?[:=](?!\w)|[\w-]{1,20}[,;\t|]\S"
)
"""What begins a line of its own with a small letter: an item, a label, a row of values."""
_ABBREVIATION: Final = re.compile(
    r"(?<!\w)(?:[^\W\d_]|Mrs?|Ms|Drs?|Prof|St|Nr|Art|Sec|Fig|vs|cf|approx|e\.g|i\.e|z\.B|bzw|ca)\.\s+\Z"
)
# Over the border of a cell: a table goes on there.
_NEXT_WORD: Final = re.compile(r"[^\w\n|]*(?:\|[^\w\n]*)?(?P<line>\n\s*)?(?P<next>\w?)")
_BULLET: Final = re.compile(r"\s*(?:[-*+\u2022\u2013]|\(?(?:[0-9]{1,2}|[a-z]|[ivx]{1,4})[.)])\s")
_DENIED: Final = re.compile(
    r"\b(?:not|no|never|none|without|except(?:ions?)?|exclu\w+|unless|if|void|repealed|obsolete|outdated|false|wrong)\b"
    r"|n['\u2019]t\b",
    re.IGNORECASE,
)
_ENDED: Final = re.compile(rf"{_CLOSED}\Z")


def begun_before(text: str, start: int) -> str:
    """What stands before a place in its sentence or line, on one line; empty where that or an item begins there."""
    first = max(start - _REACH, 0)
    window = text[first : start + 70]
    at = 0
    for match in _BREAK.finditer(window, 0, start - first):
        lines = match[0].count("\n") + (not match[0].isspace())
        if _ABBREVIATION.search(window, max(match.start() - 9, 0), match.end()):
            continue
        if lines > 1 or not _goes_on(window, match.end()):  # a blank line, or one that ended with a sign
            at = match.end()
    before = " ".join(text[first + at : start].split())
    return "" if _MARKER.fullmatch(before) else before


def is_whole(text: str, start: int, end: int) -> bool:
    """Whether a part of a text is whole sentences or lines, but for the signs at its edges."""
    if begun_before(text, start):
        return False
    behind = text[end : end + _REACH]
    match = _NEXT_WORD.match(behind)
    assert match is not None
    ended = _ENDED.search(text[max(end - 9, 0) : end]) is not None
    lines = (match["line"] or "").count("\n")
    if not match["next"] or lines + ended > 1:
        return True
    return (ended or lines > 0) and not _goes_on(behind, match.start("next"))


def _goes_on(text: str, at: int) -> bool:
    """Whether a sentence goes on at a place: a small letter stands there, that is no item's."""
    return text[at : at + 1].islower() and _ITEM.match(text, at) is None


def governed_by_denial(text: str, start: int) -> bool:
    """Whether the line of a place stands in a list, or right, under a label that denies what is below it.

    ``Not covered:`` over the items of a list, ``No longer valid:`` over a line.
    """
    window = text[max(start - _REACH, 0) : start]
    lines = [line.strip() for line in window.split("\n")[:-1]]
    item = _BULLET.match(text, text.rfind("\n", 0, start) + 1) is not None
    while lines and item and (not lines[-1] or _BULLET.match(lines[-1])):
        lines.pop()
    return bool(lines) and lines[-1].endswith((":", ":**")) and _DENIED.search(lines[-1]) is not None
