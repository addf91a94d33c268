"""Files of cases as they stand: every case with its place, no number read yet.

By its suffix a file is

``.json``   one list of cases
``.csv``    a header, then one case a line: a column for every input, and further ones called ``expected``, ``id`` or
            like a step whose right value it holds; an empty cell says nothing
any other   JSON lines: one case a line

A case in JSON is ``{"inputs": {...}, "expected": ...}``, with ``"steps": {"tax": ...}`` and ``"id"`` where wanted.
Blank lines and a byte order mark are passed over.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final, cast

from stepguard.errors import ConfigError
from stepguard.language.strict_json import JsonObject, decode, decode_at
from stepguard.procedure.procedure import Procedure

_EXAMPLE: Final = '{"inputs": {"price": "24.90"}, "expected": "26.95"}'
_KEYS: Final = ("inputs", "expected", "steps", "id")
_BREAK: Final = re.compile(r"\r\n|\r|\n")  # not `splitlines`, which breaks at characters that JSON strings may hold
_BLANKS: Final = re.compile(r"[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class RawCase:
    """One case as it is written.

    Attributes:
        path, line: where it begins.
        inputs, steps: values by name, as they are written.
        data: the whole case: whether it has ``expected`` and ``id``, and what they are.
    """

    path: Path
    line: int
    inputs: Mapping[str, object]
    steps: Mapping[str, object]
    data: Mapping[str, object]


def refuse(path: Path, line: int | None, message: str) -> ConfigError:
    """An error in a file of cases, with its place."""
    where = str(path) if line is None else f"{path}, line {line}"
    return ConfigError(f"{where}: {message}", option="cases")


def read_cases(path: Path, procedure: Procedure) -> list[RawCase]:
    """All cases of a file, in order.

    Args:
        path: the file, in UTF-8.
        procedure: says what the columns of a ``.csv`` mean.

    Raises:
        ConfigError: the file cannot be read, or holds something else than cases, or none; it names the line.
    """
    try:
        # Line ends stay: within the quotes of a CSV they belong to the text.
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise refuse(path, None, f"cannot be read: {error.strerror or error}; give the path of the cases") from error
    except UnicodeDecodeError as error:
        raise refuse(path, None, f"is not UTF-8 text (byte {error.start}): save it as UTF-8") from error
    match path.suffix.lower():
        case ".json":
            cases = [_case(data, path, line) for line, data in _listed(text, path)]
        case ".csv":
            cases = list(_table(text, path, procedure))
        case _:
            cases = [_case(data, path, line) for line, data in _lines(text, path)]
    if not cases:
        raise refuse(path, None, f"holds no cases: write at least one, such as {_EXAMPLE}")
    return cases


def _lines(text: str, path: Path) -> Iterator[tuple[int, object]]:
    # Not `str.splitlines`: other characters that it breaks at may stand inside the strings of JSON.
    for line, written in enumerate(_BREAK.split(text), 1):
        if written.strip():
            try:
                yield line, decode(written)
            except ValueError as error:
                what = f"is no JSON: {_error_text(error)}; write one case on one line, such as {_EXAMPLE}"
                raise refuse(path, line, what) from error


def _listed(text: str, path: Path) -> Iterator[tuple[int, object]]:
    """The entries of a list in JSON, with their lines."""
    at = _skip(text, 0)
    if at == len(text):
        return
    if text[at] != "[":
        raise refuse(path, _line(text, at), f"a .json file of cases holds one list, such as [{_EXAMPLE}]")
    at = _skip(text, at + 1)
    more = not text.startswith("]", at)
    while more:
        start = at
        try:
            data, at = decode_at(text, at)
        except ValueError as error:
            place = error.pos if isinstance(error, json.JSONDecodeError) else start
            raise refuse(path, _line(text, place), f"is no JSON: {_error_text(error)}") from error
        yield _line(text, start), data
        at = _skip(text, at)
        more = text.startswith(",", at)
        if more:
            at = _skip(text, at + 1)
    if not text.startswith("]", at) or _skip(text, at + 1) != len(text):
        raise refuse(path, _line(text, at), "is no JSON: cases are separated by commas, and ] ends the list")


def _skip(text: str, at: int) -> int:
    return _BLANKS.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing, too


def _line(text: str, at: int) -> int:
    return len(_BREAK.findall(text, 0, at)) + 1


def _error_text(error: ValueError) -> str:
    return f"{error.msg} at character {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)


def _case(data: object, path: Path, line: int) -> RawCase:
    if not isinstance(data, JsonObject):
        lists = "; a list of cases goes into a file that ends in .json" if isinstance(data, list) else ""
        raise refuse(path, line, f"a case is an object such as {_EXAMPLE}{lists}")
    _check_keys(data, "a case", _KEYS, path, line)
    parts = {part: data.get(part, JsonObject([])) for part in ("inputs", "steps")}
    for part, inside in parts.items():
        if not isinstance(inside, JsonObject):
            raise refuse(path, line, f'"{part}" is an object from names to values, such as {{"price": "24.90"}}')
        _check_keys(inside, f'"{part}"', None, path, line)
    return RawCase(path, line, cast(JsonObject, parts["inputs"]), cast(JsonObject, parts["steps"]), data)


def _check_keys(data: JsonObject, what: str, allowed: Sequence[str] | None, path: Path, line: int) -> None:
    if data.repeated:
        raise refuse(path, line, f"{what}: {min(data.repeated)!r} stands twice; keep one")
    for key in data:
        if allowed is not None and key not in allowed:
            near = get_close_matches(key, allowed, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"use {', '.join(allowed)}"
            raise refuse(path, line, f"{what} has no {key[:40]!r}: {hint}")


def _table(text: str, path: Path, procedure: Procedure) -> Iterator[RawCase]:
    """The lines of a CSV below its header."""
    head: list[str] | None = None
    for line, cells in _rows(text, path):
        if not any(cell.strip() for cell in cells):
            continue
        if head is None:
            head = [cell.strip() for cell in cells]
            _check_head(head, path, line, procedure)
            continue
        if len(cells) != len(head):
            raise refuse(path, line, f"has {len(cells)} cells, the header {len(head)}: put commas in values in quotes")
        row = [(name, cell) for name, cell in zip(head, cells, strict=True) if cell.strip()]
        given = {each.name for each in procedure.inputs}
        data = {name: cell for name, cell in row if name in ("expected", "id")}
        inputs = {name: cell for name, cell in row if name in given}
        steps = {name: cell for name, cell in row if name not in data and name not in given}
        yield RawCase(path, line, inputs, steps, data)


def _rows(text: str, path: Path) -> Iterator[tuple[int, list[str]]]:
    """The records of a CSV, each with the line in which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise refuse(path, line, f"is no CSV: {error}; quotes inside a quoted value are doubled") from error
        if cells is None:
            return
        yield line, cells


def _check_head(head: Sequence[str], path: Path, line: int, procedure: Procedure) -> None:
    names = [*(each.name for each in procedure.inputs), *(step.id for step in procedure.steps)]
    meant_twice = [name for name in ("expected", "id") if name in names]
    if meant_twice:
        own = f"{procedure.name} has a variable called {meant_twice[0]!r}, as a column of every CSV may be"
        raise refuse(path, line, f"{own}: write the cases as JSON lines")
    allowed = [*names, "expected", "id"]
    for at, name in enumerate(head):
        if name in head[:at]:
            raise refuse(path, line, f"the column {name!r} stands twice; keep one")
        if name not in allowed:
            apart = "; columns are separated by commas" if ";" in name or "\t" in name else ""
            raise refuse(path, line, f"no column is called {name[:40]!r}: use {', '.join(allowed)}{apart}")
