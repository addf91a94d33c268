"""Reads replies while they are written, or as they were stopped: which entries are complete, and which never will be.

A reply that hits its cap usually needs a higher one. Where a model rambles inside one entry instead, every cap is hit,
and each costs more than the last: an entry runs away that is many times longer than its step needs, or loops.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from stepguard.language.strict_json import JsonNumber, JsonObject, decode_at
from stepguard.language.values import Value, show_value

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step


_LONGEST_ENTRY: Final = 10_000  # it is searched again with every piece of text that comes
_OPENING = re.compile(r"[\s\ufeff]{0,99}(?:```[a-z]{0,20}\s{0,9})?\{")  # models open with a fence or a byte order mark
_KEY = re.compile(r'\s*"')
_COLON = re.compile(r"\s*:\s*")
_NEXT = re.compile(r"\s*([,}])")


class PartialReply:
    """The complete entries of a JSON object that grows."""

    def __init__(self) -> None:
        self._at = 0
        self._entered = self._first = False
        self._over = self._closed = False

    def unfinished(self, text: str) -> str:
        """What stands behind the last complete entry of a text whose entries were read; empty where none can come."""
        return "" if self._closed else text[self._at :]

    def entries(self, text: str) -> Iterator[tuple[str, object]]:
        """The entries that have become complete since the last call.

        Args:
            text: all that there is of the reply by now; it only ever grows at its end.
        """
        if not self._entered:
            opening = _OPENING.match(text)
            if opening is None:
                return
            self._at, self._entered, self._first = opening.end(), True, True
        while not self._over:
            begin = self._at
            if not self._first:
                more = _NEXT.match(text, begin)
                if more is None:
                    break
                if more[1] == "}":
                    self._over = self._closed = True
                    break
                begin = more.end()
            found = _entry(text, begin)
            if found is None:
                break
            key, value, end = found
            if isinstance(value, JsonNumber | bool | None) and _NEXT.match(text, end) is None:
                break  # more digits may follow
            self._at, self._first = end, False
            yield key, value
        # What is searched again with every piece of text has to be short.
        self._over = self._over or len(text) - self._at > _LONGEST_ENTRY


def complete_entries(text: str) -> tuple[JsonObject, str]:
    """The entries of a reply that was stopped before its end, and what had come of the next one."""
    reply = PartialReply()
    return JsonObject(list(reply.entries(text))), reply.unfinished(text)


def _entry(text: str, at: int) -> tuple[str, object, int] | None:
    """The key and the value that begin here, and where they end; None where they are not there as yet."""
    start = _KEY.match(text, at)
    if start is None:
        return None
    try:
        key, behind = decode_at(text, start.end() - 1)
        colon = _COLON.match(text, behind)
        if colon is None or not isinstance(key, str):
            return None
        value, end = decode_at(text, colon.end())
    except ValueError:
        return None
    return key, value, end


_EQUATION: Final = 200
_TIMES_FORMULA: Final = 8
_PER_VALUE: Final = 20
"""An equation is the formula, the formula with its numbers filled in, perhaps some links more, and the result: eight
times both, with 20 characters for a number that is not known, and 200 more leave room for all styles that were seen."""
_WORDS: Final = 2000
"""Working in words for a value that is no text; a draft of the whole step takes about as much."""
_TAIL: Final = 400
_REPEATED: Final = 60
"""Of text that says something 400 characters take 200 bytes and more, packed; of a loop hardly more than one turn."""


def is_runaway(text: str, step: Step, values: Mapping[str, Value]) -> bool:
    """Whether an entry that is not complete will not become so, however much more of it comes.

    Args:
        step: the step that it answers. Where its value is text, that may be as long as it likes, unless it loops.
        values: what it reads, as far as that is known.
    """
    if step.expression is not None and step.type.kind != "text":
        numbers = sum(len(show_value(values[name])) if name in values else _PER_VALUE for name in step.reads)
        return len(text) > _EQUATION + _TIMES_FORMULA * (len(step.formula or "") + numbers)
    short = step.type.kind != "text" and not step.type.structured
    return (short and len(text) > _WORDS) or is_looping(text)


def is_looping(text: str) -> bool:
    """Whether a text ends in the same few words, or blanks, again and again."""
    if len(text) < _TAIL:
        return False
    tail = text[-_TAIL:]
    return len(zlib.compress(tail.encode("utf-8", "replace"))) <= _REPEATED
