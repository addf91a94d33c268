"""Currencies that layout sets apart from their amounts: on another line, in the next cell, in brackets, behind a colon.

::

    EUR            Total (EUR): 50.00       | 50.00 | EUR |       EUR    50.00       $50.00 (CAD)
    50.00

What stands right beside an amount, `stepguard.language.amounts` reads itself.
"""

from __future__ import annotations

import re
from typing import Final

from stepguard.language.currencies import CODES, SIGNS, WORD_CODES, WORDS

__all__ = ["currencies_apart"]

_CURRENCY: Final = (
    rf"(?P<code>{'|'.join(sorted(CODES - {code.upper() for code in WORD_CODES}))})(?!\w)"
    rf"|(?P<sign>{'|'.join(map(re.escape, sorted(SIGNS, key=len, reverse=True)))})"
    rf"|(?<!\w)(?P<name>RM|RMB|Rs)(?!\w)|(?P<word>(?i:{'|'.join(WORDS)}))(?!\w)"
)
_GAP: Final = r"[\s|()\[\]*_]"
# `20.00 | EUR` in front belongs to the 20.00, and USD/EUR is a rate.
_IN_FRONT: Final = re.compile(rf"(?<![\w/.])(?:{_CURRENCY})(?:{_GAP}|[:=]){{1,12}}\Z")
_TAKEN: Final = re.compile(r"[0-9][^\S\n]?(?:[|(\[*_][^\S\n]?){0,3}\Z")
_BEHIND: Final = re.compile(rf"(?:{_GAP}|[,;]){{1,12}}(?:in )?(?:{_CURRENCY})[^\S\n]*(?:[|)\].,;*_\n]|\Z)")
_REACH: Final = 24


def currencies_apart(text: str, start: int, end: int, *, across: bool = True) -> frozenset[str]:
    """What may say in which currency an amount in a text is: codes or signs before and behind it, with layout between.

    Two where it could be either: the amount stands between them.

    Args:
        text: the text.
        start: the first character of the amount.
        end: the character behind its last one.
        across: whether other lines count.
    """
    found: set[str] = set()
    offset = max(start - _REACH, 0 if across else text.rfind("\n", max(start - _REACH, 0), start) + 1)
    front = _IN_FRONT.search(text[offset:start])
    if front is not None and not _TAKEN.search(text[max(offset + front.start() - _REACH, 0) : offset + front.start()]):
        found.add(_meant(front))
    reach = text[end : end + _REACH]
    behind = _BEHIND.match(reach if across else reach.partition("\n")[0])
    if behind is not None:
        found.add(_meant(behind))
    return frozenset(found)


def _meant(mark: re.Match[str]) -> str:
    if mark["code"] or mark["name"]:
        return mark["code"] or mark["name"].lower()
    return SIGNS[mark["sign"]] if mark["sign"] else WORDS[mark["word"].lower()]
