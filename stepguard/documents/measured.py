"""Where a time, a duration, a period or an amount with a unit stands in a document, in whatever notation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from stepguard.core.deadlines import stop_if_given_up
from stepguard.documents.names import Words
from stepguard.errors import ValueRefused
from stepguard.language.values import Value

_START: Final = re.compile(  # what has no unit behind it is none, but for a time of day
    r"(?<![\w.,/:^-])(?:[-+\u2212]?[0-9][0-9.,/:]{0,30}[^\S\n]?-?(?=[A-Za-zµμΩ°º℃℉Å])|[0-9]{1,2}:[0-9]{2})"
)
_WORD: Final = re.compile(r"[^\S\n]?\S+")
_MOST_CHARACTERS: Final = 60  # no amount with its unit is longer, and each candidate is read
_CLOSING_MARKS: Final = ".,;:!?)]}\"'"


def find_measures(
    text: str, words: Words, read: Callable[[str], Value], same: Callable[[Value], bool], *, most_words: int = 8
) -> Iterator[tuple[int, int]]:
    """The spans of a text that are read as a value that is looked for, each as long as can be.

    Args:
        text: the document, as it is seen.
        words: the same, to find names in: what stands beside a value may make it another one.
        read: reads one value; raises `ValueRefused` for what is none.
        same: whether a value is the one that is looked for.
        most_words: how many words a value has at most.
    """
    at = 0
    seen: set[str] = set()
    known: dict[str, Value | None] = {}
    while (match := _START.search(text, at)) is not None:
        stop_if_given_up()
        at = match.start() + 1
        ends = [each.end() for each in islice(_WORD.finditer(text, match.start(), match.start() + 200), most_words)]
        for end in reversed(ends):
            candidate = text[match.start() : end].rstrip(_CLOSING_MARKS)
            if len(candidate) > _MOST_CHARACTERS or "\n" in candidate:
                continue
            value = known[candidate] if candidate in known else _value(candidate, read)
            known[candidate] = value
            if value is None:
                continue
            at = match.start() + len(candidate)
            if candidate not in seen and same(value):
                seen.add(candidate)
                yield from words.find(candidate)
            break


def _value(text: str, read: Callable[[str], Value]) -> Value | None:
    try:
        return read(text)
    except ValueRefused:
        return None
