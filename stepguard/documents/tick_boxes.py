"""Whether a form says no to an option that it names: by an empty box beside it, or by a no behind its name.

::

    [ ] approved  [x] rejected      approved ☐  rejected ☒      approved: no      "approved": false
"""

from __future__ import annotations

import re
from typing import Final

from stepguard.core.patterns import lazy_pattern

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


def said_no(text: str, start: int, end: int) -> str:
    """How the line of an option says that it is not chosen; empty where it does not."""
    name = _NAME.match(text, start, end)  # found as whole words, `approved:` or `"approved":false`
    start, end = (start, end) if name is None else name.span("name")
    denied = _NO.match(text, end)
    if denied is not None:
        return f"with {denied['no']!r} behind it"
    first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    line = text[first : len(text) if last < 0 else last]
    at = max((label.end() for label in _LABEL.finditer(line, 0, start - first)), default=0)
    boxes = list(_BOX.finditer(line, at))
    if not boxes:
        return ""
    in_front = not line[at : boxes[0].start()].strip(" \t-*|")
    if in_front and len(boxes) > 1 and not line[boxes[-1].end() :].strip(" \t|."):
        return "between boxes that may be those of other options"
    before = [box for box in boxes if box.end() <= start - first]
    behind = [box for box in boxes if box.start() >= end - first]
    own = (before[-1:] if in_front else behind[:1]) or boxes[:1]
    apart = not in_front and ";" in line[end - first : own[0].start()]
    return "beside an empty box" if own[0]["empty"] and not apart else ""
