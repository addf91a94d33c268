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

from stepguard.auditing.answers import Stated, without_answers
from stepguard.auditing.claims import disowned, read_claim, words_behind
from stepguard.auditing.entries import read_entries
from stepguard.auditing.lenient import last_side, read_bare
from stepguard.auditing.names import Entry, Names
from stepguard.core.verdicts import shorten
from stepguard.language.currencies import SIGNS
from stepguard.language.prose.following import unread_behind
from stepguard.language.strict_json import JsonNumber, JsonObject, decode_at
from stepguard.language.typeset import plain
from stepguard.language.value_types import NUMBER, ValueType

_OPENING: Final = re.compile(r"\{(?=\s*\")|\[(?=\s*[\[{\"])")
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NAME_KEYS: Final = ("id", "step", "name", "variable", "var", "step_id", "stepid", "key", "label", "target", "number")
_VALUE_KEYS: Final = ("value", "result", "output", "res", "answer", "val")
_WORK_KEYS: Final = (
    "work", "working", "calculation", "computation", "expression", "equation", "formula", "substitution", "expr",
)  # fmt: skip
_ANSWER_KEYS: Final = frozenset({"answer", "finalanswer", "theanswer", "finalresult", "final", "solution"})
_NUMBER: Final = re.compile(r"(?:step[ _]?)?\(?([0-9]{1,9})\)?[.:]?\Z", re.IGNORECASE)
_STEP_KEYS: Final = frozenset({"step", "step_id", "stepid"})
_UNIT_KEYS: Final = ("unit", "units", "currency")
_PLAIN_NUMBER: Final = re.compile(r"[-+]?[0-9][0-9.,]*")
_FENCE_LINE: Final = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[^\n]*", re.MULTILINE)
_MAX_BROKEN: Final = 100
_MAX_DEPTH: Final = 8


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
    while (opening := _OPENING.search(text, at)) is not None and tried < _MAX_BROKEN:
        start = opening.start()
        before, finals = reader.count, len(reader.final)
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
            tried += 1
            continue
        if reader.count > before:
            spans.append((start, end))
            front = _FENCE_LINE.sub("", text[at:start]).rstrip().rpartition("\n")[2]
            following = _OPENING.search(text, end)
            behind = _FENCE_LINE.sub("", text[end : len(text) if following is None else following.start()])
            if words := names.understanding.unread_before(front):
                reader.withdraw(
                    before, finals, f"the words in front, {names.understanding.shown(words)}, are not understood"
                )
            elif words := unread_behind(names.understanding, without_answers(behind, behind), text[start:end]):
                reader.withdraw(
                    before, finals, f"what is said behind it, {names.understanding.shown(words)}, is not understood"
                )
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

    def withdraw(self, first: int, final: int, reason: str) -> None:
        """Take the value from the claims and answers that came since: what stands around them denies it."""
        self.entries[first:] = [entry.without_value(reason) for entry in self.entries[first:]]
        del self.final[final:]

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
        match = _SPACE.match(self.text, at)
        return at if match is None else match.end()

    def value(self, start: int, depth: int) -> None:
        """Read an object of steps, or a list of them."""
        if depth > _MAX_DEPTH:
            return
        if self.text[start] == "{":
            if not self._line(start):
                self._object(start, depth)
            return
        for item, item_at, end in self.items(start):
            if isinstance(item, JsonObject):
                if not self._one_step(item, item_at, end):
                    self._object(item_at, depth + 1)
            elif isinstance(item, str) and not isinstance(item, JsonNumber):
                self._text(item, item_at, end)

    def _line(self, start: int) -> bool:
        """Read an object outside of a list that is about one step, as in JSON Lines."""
        try:
            item, end = decode_at(self.text, start)
        except ValueError:
            return False  # what stands in front of the break may still be read
        if not isinstance(item, JsonObject) or any(self.names.find(key) in self.names.steps for key in item):
            return False
        if any(isinstance(each, JsonObject | list) for each in item.values()):
            return False
        return self._one_step(item, start, end, sure=True)

    def _object(self, start: int, depth: int) -> None:
        for key, value, key_at, value_at, end in self.members(start):
            name = self.names.label(key)
            number = _NUMBER.match(key)
            if name is None and number is not None:
                name = self.names.numbered(int(number[1]))
            if name in self.names.steps and not (isinstance(value, JsonObject) and self._of_steps(value)):
                assert name is not None
                if depth == 0:
                    self.plain_reply = True
                self._claim(name, value, key_at, end)
            elif re.sub(r"[\W_]+", "", key[:80]).lower() in _ANSWER_KEYS and not isinstance(value, list | dict):
                self.final.append((_value_text(value), key_at, end))
            elif isinstance(value, JsonObject | list):
                before, final = self.count, len(self.final)
                self.value(value_at, depth + 1)
                if not self.names.understanding.is_own_head(key[:80]):
                    self.withdraw(before, final, f"the key above, {shorten(key)!r}, is not understood")
            elif name is None and (self.names.like_a_step(key) or number is not None):
                self._claim(key, value, key_at, end, known=False)

    def _of_steps(self, item: JsonObject) -> bool:
        """Whether an object under the name of a call holds steps."""
        keys_of_one = {*_NAME_KEYS, *_VALUE_KEYS, *_WORK_KEYS}
        return any(key.lower() not in keys_of_one and self.names.find(key) in self.names.steps for key in item)

    def _one_step(self, item: JsonObject, start: int, end: int, *, sure: bool = False) -> bool:
        """Read an object about one step: its name or number under one key, and its working or value under others.

        Args:
            sure: whether only a step's name, or a number that is called one of a step, says that it is such an object.
        """
        members = _by_key(item)
        names: dict[str, None] = {}
        numbered: str | None = None
        unknown: str | None = None
        for key in _NAME_KEYS:
            for each in members.get(key, ()):
                written = "" if isinstance(each, dict | list) else _value_text(each).strip()
                found = self.names.find(written)
                number = _NUMBER.match(written)
                if found is not None:
                    names[found] = None
                elif number is not None:
                    if not sure or key in _STEP_KEYS:
                        numbered = numbered or self.names.numbered(int(number[1]))
                        unknown = unknown or f"step {number[1]}"
                elif written and self.names.like_a_step(written):
                    unknown = written
        if not any(key in members for key in (*_VALUE_KEYS, *_WORK_KEYS)):
            return False
        steps = [name for name in names if name in self.names.steps]
        if len(steps) > 1:  # which of them is meant cannot be told
            self.entries += [
                Entry(name, True, start, end, unread=f"named {' and '.join(steps)}", doubt=True) for name in steps
            ]
            return True
        name = steps[0] if steps else None if names else numbered
        if name is None and (names or unknown is None):
            return False
        self._claim(name or unknown or "", item, start, end, known=name is not None)
        return True

    def _claim(self, name: str, value: object, start: int, end: int, *, known: bool = True) -> None:
        entry = self._about_step(name, value) if isinstance(value, JsonObject) else self._read(name, _value_text(value))
        self.entries.append(replace(entry, name=name, known=known, start=start, end=end))

    def _about_step(self, name: str, item: JsonObject) -> Entry:
        """What an object says about a step; without a value where it says several."""
        members = _by_key(item)
        sides = [
            side
            for key in _WORK_KEYS
            for each in members.get(key, ())
            if isinstance(each, str) and (side := _value_text(each))
        ]
        results = list(dict.fromkeys(_value_text(each) for key in _VALUE_KEYS for each in members.get(key, ())))
        results = [result for result in results if result] or results[:1]
        unit = next(
            (_value_text(each) for key in _UNIT_KEYS for each in members.get(key, ()) if isinstance(each, str)), ""
        )
        if (unit.isalpha() and len(unit) > 1) or unit == "%" or unit in SIGNS:
            results = [f"{result} {unit}" if _PLAIN_NUMBER.fullmatch(result) else result for result in results]
        for key, said in item.pairs:
            known = key.lower() in (*_NAME_KEYS, *_VALUE_KEYS, *_WORK_KEYS, *_UNIT_KEYS)
            if not known and self.names.understanding.takes_back(key[:80], _value_text(said)):
                shown = shorten(f"{key}: {_value_text(said)}", 60)
                return Entry(name, True, 0, 0, unread=shown, doubt=True, strange=f"{shown!r} stands beside it")
        step = self.names.steps.get(name)
        kind = NUMBER if step is None else step.type
        values = {read_bare(kind, self._read(name, result).value or "") for result in results}
        if len(results) > 1 and (len(values) > 1 or None in values):
            return Entry(name, True, 0, 0, unread=" and ".join(results), doubt=True)
        return self._read(name, " = ".join([*sides, *results[:1]]))

    def _read(self, name: str, shown: str) -> Entry:
        body = plain(shown)
        head, sign, _ = body.partition("=")
        begin = len(head) + 1 if sign and self.names.find(head.strip()) == name else 0
        claim = read_claim(body, begin, len(body), self.names, self.names.steps.get(name))
        claim = replace(claim, name=name)
        return disowned(claim, words_behind(claim, body[claim.end :], self.names), self.names)

    def _text(self, item: str, start: int, end: int) -> None:
        self.entries += [replace(each, start=start, end=end) for each in read_entries(plain(item), self.names)]


def _by_key(item: JsonObject) -> dict[str, list[object]]:
    """Every value under its key in small letters, those of repeated keys included."""
    values: dict[str, list[object]] = {}
    for key, value in item.pairs:
        values.setdefault(key.lower(), []).append(value)
    return values


def _value_text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return str(value)
    return "" if value is None else json.dumps(value)
