"""Transcripts as JSON: an object of steps, or a list of objects, one a step.

The reading is lenient about the shape, since nobody was asked for one, and strict about everything else: a broken
document is not repaired. Offsets are those of the text that the JSON stands in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from stepguard.strict_json import JsonNumber, JsonObject, decode_at
from stepguard.transcripts.answers import Stated
from stepguard.transcripts.claims import read_claim
from stepguard.transcripts.entries import read_entries
from stepguard.transcripts.lenient import last_side, read_bare
from stepguard.transcripts.names import Entry, Names
from stepguard.transcripts.notation import plain
from stepguard.value_types import ValueType

__all__ = ["Trace", "read_trace"]

_OPENING: Final = re.compile(r"\{(?=\s*\")|\[(?=\s*[\[{\"])")
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NAME_KEYS: Final = ("id", "step", "name", "variable", "var", "step_id", "stepid", "key", "label", "target", "number")
_VALUE_KEYS: Final = ("value", "result", "output", "res", "answer", "val")
_WORK_KEYS: Final = (
    "work", "working", "calculation", "computation", "expression", "equation", "formula", "substitution", "expr",
)  # fmt: skip
_ANSWER_KEYS: Final = frozenset({"answer", "finalanswer", "theanswer", "finalresult", "final", "solution"})
_NUMBER: Final = re.compile(r"(?:step[ _]?)?\(?([0-9]{1,9})\)?[.:]?\Z", re.IGNORECASE)
_MAX_DOCUMENTS: Final = 100
_MAX_DEPTH: Final = 4


@dataclass(frozen=True, slots=True)
class Trace:
    """What the JSON in a transcript says.

    Attributes:
        entries: its claims, in the order of the text.
        final: its final answers: the text and where it stands.
        spans: the parts of the text that are JSON.
        asks_no_answer: whether it has the form of a reply to the guard, in which no final answer is asked for.
        cut: whether it is not closed.
    """

    entries: tuple[Entry, ...]
    final: tuple[tuple[str, int, int], ...]
    spans: tuple[tuple[int, int], ...]
    asks_no_answer: bool = False
    cut: bool = False

    def answers(self, kind: ValueType) -> Iterator[Stated]:
        """The final answers, read as a type."""
        for text, start, end in self.final:
            value = read_bare(kind, (last_side(text) or "") if kind.numeric else text)
            yield Stated(text, start, end, value, value is not None)


def read_trace(text: str, names: Names) -> Trace | None:
    """The claims in the JSON of a transcript, None where no JSON in it speaks of steps."""
    reader = _Reader(text, names)
    spans: list[tuple[int, int]] = []
    at = tried = 0
    cut = False
    while (opening := _OPENING.search(text, at)) is not None and tried < _MAX_DOCUMENTS:
        tried += 1
        start = opening.start()
        before = reader.count
        try:
            end = decode_at(text, start)[1]
            reader.value(start, 0)
        except ValueError:
            with suppress(ValueError):
                reader.value(start, 0)  # what stands in front of the break is there
            if reader.count > before:
                spans.append((start, len(text)))
                cut = True
                break
            at = start + 1
            continue
        if reader.count > before:
            spans.append((start, end))
        at = end
    if not reader.count:
        return None
    return Trace(
        tuple(reader.entries),
        tuple(reader.final),
        tuple(spans),
        asks_no_answer=reader.plain_reply and not reader.final,
        cut=cut,
    )


class _Reader:
    """Walks over JSON with the offsets of everything in it."""

    def __init__(self, text: str, names: Names) -> None:
        self.text = text
        self.names = names
        self.entries: list[Entry] = []
        self.final: list[tuple[str, int, int]] = []
        self.plain_reply = False
        self.numbered = 0

    @property
    def count(self) -> int:
        """How much was found."""
        return len(self.entries)

    def members(self, start: int) -> Iterator[tuple[str, object, int, int, int]]:
        """Key, value, and the offsets of the key, of the value and behind it, of the object at `start`."""
        at = self._skip(start + 1)
        while self.text[at : at + 1] == '"':
            key_at = at
            key, at = decode_at(self.text, at)
            at = self._skip(self._skip(at) + 1)
            value_at = at
            value, at = decode_at(self.text, at)
            yield str(key), value, key_at, value_at, at
            at = self._skip(at)
            if self.text[at : at + 1] == ",":
                at = self._skip(at + 1)

    def items(self, start: int) -> Iterator[tuple[object, int, int]]:
        """Value and offsets of the list at `start`."""
        at = self._skip(start + 1)
        while self.text[at : at + 1] not in ("]", ""):
            value_at = at
            value, at = decode_at(self.text, at)
            yield value, value_at, at
            at = self._skip(at)
            if self.text[at : at + 1] == ",":
                at = self._skip(at + 1)

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        return at if found is None else found.end()

    def value(self, start: int, depth: int) -> None:
        """Read an object of steps, or a list of them."""
        if depth > _MAX_DEPTH:
            return
        if self.text[start] == "{":
            self._object(start, depth)
            return
        for item, item_at, end in self.items(start):
            if isinstance(item, JsonObject):
                self._item(item, item_at, end, depth)
            elif isinstance(item, str) and not isinstance(item, JsonNumber):
                self._text(item, item_at, end)

    def _object(self, start: int, depth: int) -> None:
        for key, value, key_at, value_at, end in self.members(start):
            name = self.names.find(key)
            number = _NUMBER.match(key)
            if name is None and number is not None:
                name = self.names.numbered(int(number[1]))
            if name in self.names.steps:
                assert name is not None
                if depth == 0:
                    self.plain_reply = True
                self._claim(name, value, key_at, value_at, end)
            elif re.sub(r"[\W_]+", "", key[:80]).lower() in _ANSWER_KEYS and not isinstance(value, list | dict):
                self.final.append((_shown(value), key_at, end))
            elif isinstance(value, JsonObject | list):
                self.value(value_at, depth + 1)
            elif name is None and (self.names.like_a_step(key) or number is not None):
                self._claim(key, value, key_at, value_at, end, known=False)

    def _item(self, item: JsonObject, start: int, end: int, depth: int) -> None:
        keys = {key.lower(): key for key in item}
        chosen = [item[keys[key]] for key in _NAME_KEYS if key in keys and not isinstance(item[keys[key]], dict | list)]
        name: str | None = None
        unknown: str | None = None
        for each in chosen:
            written = _shown(each).strip()
            found = self.names.find(written)
            number = _NUMBER.match(written)
            if found is not None:
                name = found
                break
            if number is not None:
                name = name or self.names.numbered(int(number[1]))
                unknown = unknown or f"step {number[1]}"
            elif written:
                unknown = written if self.names.like_a_step(written) else unknown
        values = [item[keys[key]] for key in _VALUE_KEYS if key in keys]
        work = [item[keys[key]] for key in _WORK_KEYS if key in keys]
        if (name in self.names.steps or (name is None and unknown is not None)) and (values or work):
            sides = [_shown(each) for each in work if isinstance(each, str)]
            shown = " = ".join([*sides, *(_shown(each) for each in values[:1])])
            self._claim(name or unknown or "", shown, start, start, end, known=name is not None)
            return
        self._object(start, depth + 1)

    def _claim(self, name: str, value: object, start: int, value_at: int, end: int, *, known: bool = True) -> None:
        if isinstance(value, JsonObject):
            lowered = {key.lower(): each for key, each in value.items()}
            sides = [_shown(lowered[key]) for key in _WORK_KEYS if isinstance(lowered.get(key), str)]
            results = [_shown(lowered[key]) for key in _VALUE_KEYS if key in lowered][:1]
            shown = " = ".join([*(side for side in sides if side), *results])
        else:
            shown = _shown(value)
        entry = self._read(name, shown)
        self.entries.append(replace(entry, name=name, known=known, start=start, end=end))

    def _read(self, name: str, shown: str) -> Entry:
        body = plain(shown)
        head, sign, _ = body.partition("=")
        begin = len(head) + 1 if sign and self.names.find(head.strip()) == name else 0
        return read_claim(body, begin, len(body), self.names, self.names.steps.get(name))

    def _text(self, item: str, start: int, end: int) -> None:
        self.entries += [replace(each, start=start, end=end) for each in read_entries(plain(item), self.names)]


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return str(value)
    return "" if value is None else json.dumps(value)
