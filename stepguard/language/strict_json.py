"""JSON as it stands: nothing repaired, nothing rounded, nothing that silently wins.

Numbers stay text, NaN and infinity are refused, and an object remembers which of its keys stood in it twice.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from operator import itemgetter
from typing import Final, cast

LATEX_LOST: Final = re.compile(r"\t[A-Za-z]|\n(?:u|eq?|eg|abla|ot|otin)(?![A-Za-z])")
"""What JSON makes of a LaTeX command behind a single backslash: of tau and tan a tab, of nu and ne a line break."""


class JsonNumber(str):
    """The digits of a JSON number, unread: no float stands between a reply and its check."""

    __slots__ = ()


class JsonObject(dict[str, object]):
    """A decoded object.

    Attributes:
        pairs: its keys and values as they were written, repetitions included.
        repeated: the keys that stand in it more than once.
    """

    __slots__ = ("pairs", "repeated")

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs
        self.repeated: frozenset[str] = frozenset()
        if len(self) != len(pairs):
            counts = Counter(key for key, _ in pairs)
            self.repeated = frozenset(key for key, count in counts.items() if count > 1)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=JsonObject, parse_int=JsonNumber, parse_float=JsonNumber, parse_constant=_refuse_constant
)


def decode(text: str) -> object:
    """Decode a whole JSON document. Raises ValueError: the text is no JSON, or nested too deeply."""
    try:
        return cast(object, _DECODER.decode(text))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def decode_at(text: str, start: int) -> tuple[object, int]:
    """Decode the JSON value that begins at `start`, and say where it ends.

    Raises ValueError: no JSON value begins there, or it is nested too deeply.
    """
    try:
        return _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def encode(value: object) -> str:
    """A decoded value as JSON again, on one line, with the repetitions of its keys.

    Raises ValueError: it is nested too deeply.
    """
    try:
        return _encode(value)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _encode(value: object) -> str:
    if isinstance(value, JsonObject):
        shown = (f"{json.dumps(key, ensure_ascii=False)}: {_encode(each)}" for key, each in value.pairs)
        return f"{{{', '.join(shown)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_encode, value))}]"
    return str(value) if isinstance(value, JsonNumber) else json.dumps(value, ensure_ascii=False)


def same(one: object, other: object) -> bool:
    """Whether two decoded values say the same, with the same repetitions and in any order of keys, at any depth."""
    stack = [(one, other)]
    while stack:
        left, right = stack.pop()
        if type(left) is not type(right):
            return False
        match left, right:
            case JsonObject(), JsonObject():
                mine, theirs = (sorted(each.pairs, key=itemgetter(0)) for each in (left, right))
                if [key for key, _ in mine] != [key for key, _ in theirs]:
                    return False
                stack += [(one, other) for (_, one), (_, other) in zip(mine, theirs, strict=True)]
            case list(), list():
                if len(left) != len(right):
                    return False
                stack += zip(left, right, strict=True)
            case _ if left != right:
                return False
    return True
