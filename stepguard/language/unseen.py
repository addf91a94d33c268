"""What a reader sees of a text: no character that is not shown, full-width signs as the plain ones.

Characters of many classes are shown as nothing at all (soft hyphens, joiners, variation selectors, fillers, marks of
direction, controls). A reader passes over them, so nothing that compares or reads text may stop at one.
"""

from __future__ import annotations

import re
from typing import Final

UNSEEN: Final = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001345f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters that are shown as nothing, for a character class of a regular expression.

Those that Unicode calls ignorable by default, all that format text without a shape of their own, and the controls that
are no white space.
"""

BLANKS: Final = "\t \u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000"
"""Blanks within a line, for a character class."""

_UNSEEN: Final = re.compile(f"[{UNSEEN}]+")


def has_unseen(text: str) -> bool:
    """Whether a text holds a character that is not shown."""
    return _UNSEEN.search(text) is not None


def without_unseen(text: str) -> str:
    """A text without the characters that are not shown."""
    return _UNSEEN.sub("", text)
