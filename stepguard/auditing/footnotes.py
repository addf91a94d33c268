"""Footnotes of a transcript: marks at numbers, and what a line below says that begins with the same mark."""

from __future__ import annotations

import re
from typing import Final

from stepguard.documents.tables import read_caption
from stepguard.language.prose.following import unread_behind
from stepguard.language.prose.mentioned import mentions_another
from stepguard.language.prose.retraction import without_zeros
from stepguard.language.prose.understanding import Understanding

_MARK: Final = r"\[\^?\w{1,12}\]|[\u00b9\u00b2\u00b3\u2070\u2074-\u2079]{1,2}|(?<!\*)\*{1,3}(?!\*)|[\u2020\u2021\u00a7]"
_NOTE: Final = re.compile(rf"^[ \t]{{0,8}}(?P<mark>{_MARK}):?[ \t]+(?P<said>[^\n]+)$", re.MULTILINE)
_AT_A_NUMBER: Final = re.compile(rf"(?<=[0-9%)])[ \t]?(?P<mark>{_MARK})(?=[\s|,;.]|\Z)")
_RAISED: Final = frozenset("\u00b2\u00b3\u2070\u2074\u2075\u2076\u2077\u2078\u2079")
_REACH: Final = 200
"""Characters of a line in front of a mark, whose numbers its footnote may say again."""
_DIGITS: Final = re.compile(r"[0-9]+(?:[.,][0-9]+)*")


def without_footnotes(text: str, understanding: Understanding, given: str) -> str:
    """The text, as long as it is, with blanks for the footnotes that are understood to change nothing, and their marks.

    Instead of the marks of another one stand question marks, so that their numbers are not read. A mark with several
    lines behind it is a bullet or a number of the list, and none of a footnote; a raised number is one only where
    another is raised to 1.

    Args:
        given: the inputs, as text: their numbers may be mentioned.
    """
    marks: dict[str, list[re.Match[str]]] = {}
    for mark in _AT_A_NUMBER.finditer(text):
        marks.setdefault(mark["mark"], []).append(mark)
    notes: dict[str, list[re.Match[str]]] = {}
    for note in _NOTE.finditer(text) if marks else ():
        notes.setdefault(note["mark"], []).append(note)
    blanks: list[tuple[int, int, str]] = []
    for written, found in notes.items():
        places = marks.get(written, [])
        if len(found) > 1 or not places or places[-1].start() > found[0].start():
            continue
        if written in _RAISED and "\u00b9" not in notes:
            continue  # a square or a cube
        said = found[0]["said"]
        starts = (place.start() for place in places)
        lines = (text[max(start - _REACH, 0) : start].rpartition("\n")[2] for start in starts)
        own = " ".join(dict.fromkeys(number for line in (given, *lines) for number in _DIGITS.findall(line)))
        foreign = mentions_another(said, {without_zeros(digits) for digits in own.split()})
        remark = f" ({said.rstrip(' .')})"
        if not (foreign or read_caption(said) or unread_behind(understanding, remark, own)):
            blanks += [(*place.span(), " ") for place in (found[0], *places)]
        else:
            blanks += [(*place.span("mark"), "?") for place in places]
    characters = list(text) if blanks else []
    for start, end, instead in blanks:
        characters[start:end] = instead * (end - start)
    return "".join(characters) if blanks else text
