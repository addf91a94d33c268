"""Replies that are still being written, or were stopped: which of their entries are complete."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from stepguard.language.strict_json import JsonNumber, JsonObject, decode_at

_LONGEST_ENTRY: Final = 10_000
_OPENING = re.compile(r"[\s\ufeff]{0,99}(?:```[a-z]{0,20}\s{0,9})?\{")
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
