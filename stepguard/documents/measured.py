"""Where a time, a duration, a period or an amount with a unit stands in a document, in whatever notation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from stepguard.core.deadlines import stop_if_given_up
from stepguard.documents.names import Words
from stepguard.documents.tables import Heads
from stepguard.errors import ValueRefused
from stepguard.language.quantities import read_unit, write_unit
from stepguard.language.values import Value

_START: Final = re.compile(  # what has no unit behind it is none, but for a time of day
    r"(?<![\w.,/:^-])(?:[-+\u2212]?[0-9][0-9.,/:]{0,30}[^\S\n]?-?(?=[A-Za-zµμΩ°º℃℉Å])|[0-9]{1,2}:[0-9]{2})"
)
_WORD: Final = re.compile(r"[^\S\n]?\S+")
_MOST_CHARACTERS: Final = 60  # no amount with its unit is longer, and each candidate is read
_CLOSING_MARKS: Final = ".,;:!?)]}\"'"
_BARE: Final = re.compile(  # all of a cell, or of what stands behind a label
    r"(?:^|[|\t;]|[^\S\n]{2}|^[^\d\n|\t;:=]{1,60}[:=])[^\S\n]{0,9}(?P<number>[-+\u2212]?[0-9][0-9.,]*)"
    r"(?=[^\S\n]{0,9}(?:[|\t;\n]|\Z)|[^\S\n]{2})",
    re.MULTILINE,
)
_NEXT_CELL: Final = re.compile(
    r"(?:[^\S\n]*[|\t;]|[^\S\n]{2,30})[^\S\n]*([^\s|\t;]{1,12})(?=[^\S\n]*(?:[|\t;\n]|\Z)|[^\S\n]{2})"
)
_HEAD_UNIT: Final = re.compile(
    r"\((?:in )?([^()]{1,30})\)\Z|\[(?:in )?([^\[\]]{1,30})\]\Z|(?: / | in |, )([^\s,]{1,30})\Z"
)
_FIRST_CELL: Final = re.compile(r"[ \t|]{0,9}(?P<label>[^\d\n|\t;:=]{1,60}?)(?:[^\S\n]?[|\t;:=]|[^\S\n]{2})")
_RATED: Final = re.compile(r"\b(?:per|each|je|pro|par|por|cada|every)\b", re.IGNORECASE)


class Measures:
    """The measures in a text.

    Args:
        text: the document, as it is seen.
        words: the same, to find names in: what stands beside a value may make it another one.
    """

    def __init__(self, text: str, words: Words) -> None:
        self._text = text
        self._words = words
        self._headed: list[tuple[tuple[int, int], str]] | None = None

    def find(
        self, read: Callable[[str], Value], same: Callable[[Value], bool], *, units: bool, most_words: int = 8
    ) -> Iterator[tuple[int, int]]:
        """The spans that are read as a value that is looked for, each as long as can be.


        Args:
            read: reads one value; raises `ValueRefused` for what is none.
            same: whether a value is the one that is looked for.
            units: whether a bare number may be one, in the unit that the head above it or the label in front of it
                names: ``Dose (mg)``.
            most_words: how many words a value has at most.
        """
        text, at = self._text, 0
        seen: set[str] = set()
        known: dict[str, Value | None] = {}

        def value_of(candidate: str) -> Value | None:
            if candidate not in known:
                known[candidate] = _value(candidate, read)
            return known[candidate]

        while (match := _START.search(text, at)) is not None:
            stop_if_given_up()
            at = match.start() + 1
            ends = [each.end() for each in islice(_WORD.finditer(text, match.start(), match.start() + 200), most_words)]
            for end in reversed(ends):
                candidate = text[match.start() : end].rstrip(_CLOSING_MARKS)
                if len(candidate) > _MOST_CHARACTERS or "\n" in candidate:
                    continue
                value = value_of(candidate)
                if value is None:
                    continue
                at = match.start() + len(candidate)
                if candidate not in seen and same(value):
                    seen.add(candidate)
                    yield from self._words.find_exactly(candidate)
                break
        if not units:
            return
        if self._headed is None:
            self._headed = list(_under_heads(text))
        for span, written in self._headed:
            value = value_of(written)
            if value is not None and same(value):
                yield span


def _under_heads(text: str) -> Iterator[tuple[tuple[int, int], str]]:
    """The bare numbers of a text with a unit in the next cell, the head or the label, each written with it."""
    heads = Heads(text)
    for match in _BARE.finditer(text):
        start, end = match.span("number")
        beside = _NEXT_CELL.match(text, end)
        if beside is not None and any(_units(beside[1])):
            yield (start, beside.end()), f"{match['number']} {beside[1]}"
            continue
        first = _FIRST_CELL.match(text, text.rfind("\n", 0, start) + 1, start)
        over: list[str] = []
        units: set[str] = set()
        for named in (heads.over(start, end), [] if first is None else [first["label"]]):
            over = [head.strip(" *_") for head in named]
            units = {unit for head in over for unit in _units(head)}
            if units:
                break
        if len(units) == 1 and not any(_RATED.search(head) for head in over):
            yield (start, end), f"{match['number']} {units.pop()}"


def _units(head: str) -> Iterator[str]:
    """The unit that a head gives: what stands in brackets or behind a word at its end, or all of it."""
    named = _HEAD_UNIT.search(head)
    try:
        yield write_unit(read_unit(head if named is None else named[named.lastindex or 0]))
    except ValueRefused:
        return


def _value(text: str, read: Callable[[str], Value]) -> Value | None:
    try:
        return read(text)
    except ValueRefused:
        return None
