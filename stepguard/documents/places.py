"""Where a value stands in a document."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_SNIPPET: Final = 30  # enough to recognise the place, and too little to quote the document


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a document.

    Attributes:
        offset: its first character, from 0.
        length: its length in characters.
        line: its line, from 1.
        snippet: what stands there, with something around it.
    """

    offset: int
    length: int
    line: int
    snippet: str

    @classmethod
    def all_of(cls, document: str, spans: Iterable[tuple[int, int]]) -> tuple[Place, ...]:
        """The places of spans of a document, in their order."""
        lines = [at for at, char in enumerate(document) if char == "\n"]
        places: list[Place] = []
        for start, end in spans:
            around = document[max(start - _SNIPPET, 0) : min(end, start + 10 * _SNIPPET) + _SNIPPET]
            places.append(cls(start, end - start, bisect_left(lines, start) + 1, " ".join(around.split())))
        return tuple(places)

    def __str__(self) -> str:
        return f"line {self.line}, character {self.offset}: {self.snippet!r}"
