"""The boxes of a form, ticked and empty, and which of them is that of an option on its line.

::

    [ ] approved  [x] rejected     approved ☐  rejected ☒     approved ___  rejected _X_     \\square approved
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from stepguard.core.patterns import lazy_pattern

Mark = Literal["ticked", "empty", "unclear"]
"""What stands at an option; ``unclear`` where nobody can say whose box is whose."""

_EMPTY: Final = (
    r"[\[({]\s{1,3}[)\]}]|<\s{1,3}>|\[\]|[\[(][nN_oO]?[oO]?[)\]]|\|_\||_{2,9}|\\(?:square|Box)(?![A-Za-z])\$?"
    r"|[\u2610\u25a1\u25fb\u2b1c\u25ef\u25cb\u2717\u2718\u274c\u26aa\U0001f532\U0001f533\uf0a8\uf06f\uf071\uf072\uf0a1]"
)
_TICKED: Final = (
    r"\[(?![nNoO]\])[^\W\d_]\]|\([xXyY]\)|[{<][xX][}>]|\|[xX]\||[\[(](?:yes|ja|[*\u2022\u2713\u2714\u25cf])[)\]]|__?\s?[xX]\s?__?"
    r"|\\(?:boxtimes|boxplus|blacksquare|checkmark|XBox|CheckedBox)(?![A-Za-z])\$?"
    r"|[\u2611\u2612\u2713\u2714\u2705\u22a0\u25a0\u25fc\u25cf\u25c9\u26ab\U0001f518\uf0fe\uf0fd\uf052\uf053\uf054]"
)
BOX_PATTERN: Final = rf"(?:(?P<ticked>{_TICKED})|(?P<empty>{_EMPTY}))"
BOX: Final = lazy_pattern(BOX_PATTERN)
_LONE_LINE: Final = lazy_pattern(rf"^[^\S\n]*(?:{_TICKED}|{_EMPTY})[^\S\n]*(?P<end>\n)(?=[^\S\n]*\w)", re.MULTILINE)
_WORD: Final = lazy_pattern(r"\w")


def with_boxes_beside(text: str, names: frozenset[str]) -> str:
    """The text, as long as it is, where a box on a line of its own stands in front of what the next line says.

    Where it stands behind, on the line below an option, lines stay as they are.
    """
    first = _LONE_LINE.search(text)
    if first is None:
        return text
    above = text[: first.start()].rstrip().rpartition("\n")[2].strip()
    if above.casefold() in names:
        return text
    return _LONE_LINE.sub(lambda line: f"{line[0][:-1]} ", text)


def mark_of(line: str, option: tuple[int, int], options: Sequence[tuple[int, int]]) -> Mark | None:
    """The mark of an option on a line, None where the line has none.

    Boxes stand in front of their options, or behind: where words begin the line and a box ends it, or an option stands
    before the first box and none behind the last one.

    Args:
        line: the line, from the label on that its options stand behind.
        option: where the option stands in it.
        options: where all options stand in it.
    """
    boxes = list(BOX.finditer(line))
    if not boxes:
        return None
    first, last = boxes[0].start(), boxes[-1].end()
    leads, ends = _WORD.search(line, 0, first) is not None, _WORD.search(line, last) is not None
    if leads == ends:
        leads, ends = any(end <= first for _, end in options), any(start >= last for start, _ in options)
        if leads == ends:
            return "unclear"
    if ends:
        own = next((box for box in reversed(boxes) if box.end() <= option[0]), None)
        between = (0, 0) if own is None else (own.end(), option[0])
    else:
        own = next((box for box in boxes if box.start() >= option[1]), None)
        between = (0, 0) if own is None else (option[1], own.start())
        if own is not None and ";" in line[slice(*between)]:
            return None  # of the next field
    if own is None or any(between[0] <= start < between[1] for start, _ in options):
        return "unclear"
    return "ticked" if own["ticked"] else "empty"
