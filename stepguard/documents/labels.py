"""Whether a label stands beside a value: on its line, and not as that of another field there.

::

    Net: 100.00 EUR, VAT: 19.00 EUR        {"net": 100.00, "vat": 19.00}        Net 100.00 (19 % VAT: 19.00)
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from stepguard.documents.names import Words
from stepguard.documents.view import View
from stepguard.language.currencies import CODE, SIGN

_FIELD: Final = re.compile(
    rf"(?:^|[,;|\t{{(]|[^\S\n]{{2}}|[.!?][^\S\n])[^\S\n]?(?P<label>[^,;|\t:=\n]{{1,60}}?)"
    rf"[^\S\n]?[:=][^\S\n]{{0,9}}[\"'(]?(?:(?:{SIGN}|(?:{CODE})\b)[^\S\n]?)?\Z",
    re.MULTILINE,
)
"""In front of a value, the label of its field: ``net: 5 EUR, tax: ``."""
_OF_A_FIELD: Final = re.compile(r"[\"')\]]{0,2}[^\S\n]?[:=](?![^\S\n]?[^\W\d][^\d,;|\t:=\n(]{0,40}[:=])")
"""Behind the label of a field of its own, and not of what has fields: ``Total: net: 5, gross: 6``."""
_LONGEST_LABEL: Final = 90


class FieldLabels:
    """Where a label stands in a text, by lines."""

    def __init__(self, label: str, text: str) -> None:
        self._text = text
        self._lines = [at for at, char in enumerate(text) if char == "\n"]
        self._found: dict[int, list[tuple[int, int]]] = {}
        self._apart: dict[int, list[tuple[int, int]]] = {}  # those that are no label of a field of their own
        for span in Words(text).find_exactly(View(label).text):
            line = bisect_left(self._lines, span[0])
            self._found.setdefault(line, []).append(span)
            if _OF_A_FIELD.match(text, span[1]) is None:
                self._apart.setdefault(line, []).append(span)

    def on_line(self, start: int) -> bool:
        """Whether it stands on the line of a place."""
        return bool(self._found) and bisect_left(self._lines, start) in self._found

    def beside(self, span: tuple[int, int]) -> bool:
        """Whether it stands on the line of a span and outside it: a label is not its own value.

        Where the line has several fields, it stands in that of the span, or in none.
        """
        line = bisect_left(self._lines, span[0])
        held: Sequence[tuple[int, int]] = self._found.get(line, ())
        begin = self._lines[line - 1] + 1 if line else 0
        field = _FIELD.search(self._text, max(begin, span[0] - _LONGEST_LABEL), span[0])
        if field is not None:
            at = bisect_left(held, (field.start("label"), 0))
            if at < len(held) and held[at][1] <= field.end("label"):
                return True
            held = self._apart.get(line, ())
        # Of many labels on one line the first or the last lies outside a span that is not the whole line.
        return any(end <= span[0] or start >= span[1] for start, end in (*held[:1], *held[-1:]))
