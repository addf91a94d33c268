"""The lines of a transcript: what may stand in front of one, and where something stands."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

LABEL: Final = re.compile(
    r"[ ]{0,40}(?:>[ ]?){0,3}(?:\#{1,6} )?(?:[-*+\u2022] +)?"
    r"(?:(?:\*\*|__)?"
    r"(?:(?:step|line|no\.?|number) ?\#?(?P<step>[0-9]{1,9})(?:\*\*|__)?[ ]{0,3}(?:[:.)=\u2014]|- |(?=\n)|\Z)"
    r"|\((?P<round>[0-9]{1,9})\)(?![-+/^(0-9])|\[(?P<square>[0-9]{1,9})\]"
    r"|(?P<number>[0-9]{1,9})(?:[.)](?=[ *_]|[A-Za-z])|:(?= )))"
    r"(?:\*\*|__)?[ ]*)?",
    re.IGNORECASE,
)
"""What may stand in front of a line: quotation marks, headings, bullets, ``Step 3:``, ``**3.**``, ``(3)``."""

_CONTINUED: Final = re.compile(r"[ &]*=(?![=>])")


@dataclass(frozen=True, slots=True)
class Span:
    """Where something stands in a text: the offsets of its first character and behind its last, its 1-based line."""

    start: int
    end: int
    line: int


class Lines:
    """The lines of a text, as an editor counts them."""

    def __init__(self, text: str) -> None:
        self.starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
        self._end = len(text)

    def place(self, start: int, end: int) -> Span:
        """The place of a part of the text."""
        return Span(start, end, bisect_right(self.starts, start))

    def spans(self) -> list[tuple[int, int]]:
        """Start and end of every line, its break included."""
        return list(zip(self.starts, [*self.starts[1:], self._end], strict=True))


def logical_lines(body: str) -> Iterator[tuple[int, int]]:
    """Lines, each together with those behind it that go on with an equals sign."""
    start: int | None = None
    end = 0
    for first, last in Lines(body).spans():
        if start is not None and not _CONTINUED.match(body, first, last):
            yield start, end
            start = None
        if start is None:
            start = first
        end = last
    if start is not None:
        yield start, end
