"""Which of several options a document chooses: it may name them all.

::

    [ ] approved  [x] rejected      approved ☐  rejected ☒      approved: no      "approved": false
    pending: approved or rejected   approved -> rejected        very high, where the option is high

An option is not chosen beside an empty box, with a no behind it, as a part of another one, or in one sentence with
another one that is not denied; each in a field of its own (``status: approved; before: rejected``) are two questions.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from itertools import takewhile
from typing import Final

from stepguard.core.deadlines import stop_if_given_up
from stepguard.core.patterns import lazy_pattern
from stepguard.core.verdicts import shorten
from stepguard.documents.names import Words

_EMPTY: Final = (
    r"[\[(]\s{1,3}[)\]]|\[\]|[\[(][nN][oO]?[)\]]|_{2,9}|[\u2610\u25a1\u25fb\u2b1c\u25ef\u25cb\u2717\u2718\u274c]"
)
_TICKED: Final = (
    r"\[[^\W\d_]\]|\([xXyY]\)|[\[(](?:yes|ja|[*\u2713\u2714\u2022])[)\]]"
    r"|[\u2611\u2612\u2713\u2714\u2705\u22a0\u25a0\u25fc\u25cf\u25c9]"
)
_BOX: Final = lazy_pattern(rf"(?P<empty>{_EMPTY})|(?P<ticked>{_TICKED})")
_NO: Final = lazy_pattern(
    r"[\"']?\s{0,3}(?:[:=?|\t(]|->|\.{3,}|(?<=\s)[-\u2013\u2014](?=\s))\s{0,3}[\"']?"
    r"(?P<no>no|not|false|none|nein|falsch|non|faux|falso|n|0)(?=\s{0,3}(?:[\"',;.|)}\n]|\Z))",
    re.IGNORECASE,
)
_NAME: Final = lazy_pattern(r"[\"'(\[{|\s]*(?P<name>[^:=?\"'|(;,]+)")
_LABEL: Final = lazy_pattern(r"[\w)]\s?:(?=\s)")
"""What the options of a field stand behind."""


_FIELD: Final = lazy_pattern(r"[\w\"')]\s?[:=]\s?[\"']?\Z")
_ENDED: Final = lazy_pattern(r"[.!?](?=\s)|\n")
_CORRECTED: Final = lazy_pattern(
    r"[.!?\s]{1,9}(?:correction|corrected|edit|update|erratum|sorry|no|actually|rather|instead|wait)\b", re.IGNORECASE
)
_UNMET: Final = lazy_pattern(
    r"\b(?:(?:yet )?to be|hardly|barely|scarcely|awaiting|(?:without|before|instead of)(?: being)?|should have been)"
    r"\s\Z",
    re.IGNORECASE,
)
_FUNCTION_WORDS: Final = frozenset({"yes", "no", "none", "other", "not", "any", "all"})
"""Options that stand in many sentences without being one."""
_REACH: Final = 400
"""Characters to either side: what stands farther off says nothing of an option, and the work stays linear."""


class Options:
    """The options of a type in a text.

    Args:
        text: the document, as it is seen.
        words: the same, to find names in.
        names: the options.
    """

    def __init__(self, text: str, words: Words, names: Iterable[str]) -> None:
        self._text = text
        found = [(span, name) for name in names for span in words.find(name)]
        self._spans = sorted(found)

    def against(self, start: int, end: int, *, several: bool = False) -> str:
        """Why an option that is named at a place is not chosen there, empty where it is.

        Args:
            several: whether others may be chosen in the same sentence, for lists.
        """
        stop_if_given_up()
        denied = _said_no(self._text, start, end)
        if denied:
            return denied
        unmet = _UNMET.search(self._text, max(start - 24, 0), start)
        if unmet is not None:
            return f"behind {unmet[0].strip()!r}"
        first, last = self._sentence(start, end)
        at = bisect_left(self._spans, ((first, 0), ""))
        for (begin, finish), name in takewhile(lambda each: each[0][0] < last, self._spans[at : at + _REACH]):
            if (begin, finish) == (start, end):
                continue
            if begin <= start and end <= finish:
                return f"as part of {shorten(name, 40)!r}"
            within = start <= begin and finish <= end
            if (
                not several
                and not within
                and name.casefold() not in _FUNCTION_WORDS
                and self._rivals(start, begin, finish)
            ):
                return f"beside {shorten(name, 40)!r}, which is another option"
        return ""

    def _rivals(self, start: int, begin: int, finish: int) -> bool:
        """Whether another option stands there as one that may be chosen, and not in a field of its own."""
        fields = all(_FIELD.search(self._text, max(at - 9, 0), at) for at in (start, begin))
        return not fields and not _said_no(self._text, begin, finish)

    def _sentence(self, start: int, end: int) -> tuple[int, int]:
        """The sentence or line around a place, with a next one that corrects it."""
        first = max((each.end() for each in _ENDED.finditer(self._text, max(start - _REACH, 0), start)), default=0)
        last = end
        while (closed := _ENDED.search(self._text, last, end + _REACH)) is not None:
            last = closed.end()
            if _CORRECTED.match(self._text, closed.start()) is None:
                return max(first, start - _REACH), closed.start()
        return max(first, start - _REACH), min(end + _REACH, len(self._text))


def _said_no(text: str, start: int, end: int) -> str:
    """How the line of an option says that it is not chosen; empty where it does not."""
    name = _NAME.match(text, start, end)  # found as whole words, `approved:` or `"approved":false`
    start, end = (start, end) if name is None else name.span("name")
    denied = _NO.match(text, end)
    if denied is not None:
        return f"with {denied['no']!r} behind it"
    first = text.rfind("\n", max(start - _REACH, 0), start) + 1
    cut = first == 0 and start > _REACH
    first = start - _REACH if cut else first
    last = text.find("\n", end, end + _REACH)
    line = text[first : end + _REACH if last < 0 else last]
    at = max((label.end() for label in _LABEL.finditer(line, 0, start - first)), default=0)
    boxes = list(_BOX.finditer(line, at))
    if not boxes:
        return ""
    if cut and not at:  # where the boxes of a line stand, its beginning says
        return "on a line that is too long to tell its boxes apart"
    in_front = not line[at : boxes[0].start()].strip(" \t-*|")
    if in_front and len(boxes) > 1 and not line[boxes[-1].end() :].strip(" \t|."):
        return "between boxes that may be those of other options"
    before = [box for box in boxes if box.end() <= start - first]
    behind = [box for box in boxes if box.start() >= end - first]
    own = (before[-1:] if in_front else behind[:1]) or boxes[:1]
    apart = not in_front and ";" in line[end - first : own[0].start()]
    return "beside an empty box" if own[0]["empty"] and not apart else ""
