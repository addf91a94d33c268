"""Rows of inputs from a file, one at a time: JSON lines, or a table with a header."""

from __future__ import annotations

import csv
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from stepguard.errors import ConfigError, InputError
from stepguard.language.strict_json import JsonObject, decode

_LINES: Final = (".jsonl", ".ndjson")
_TABLES: Final = {".csv": ",", ".tsv": "\t"}
ROW_FILES: Final = (*_LINES, *_TABLES)
"""How the name of a file with rows ends."""


def read_rows(path: str | Path, *, ignore: Collection[str] = ()) -> Iterator[dict[str, object] | InputError]:
    """The rows of a file, read as they are asked for.

    A line of JSON is an object whose members are the inputs; blank lines are none. In a table the first line names the
    inputs, and an empty cell is an input that is not given. What cannot be read comes as an `InputError` in the place
    of its row.

    Args:
        path: the file, UTF-8; its name ends in .jsonl, .ndjson, .csv or .tsv.
        ignore: names of fields or columns that are left out.

    Raises:
        ConfigError: the name ends otherwise.
        InputError: the file cannot be read, or a table has no usable header.
    """
    kind = Path(path).suffix.lower()
    if kind not in ROW_FILES:
        raise ConfigError(f"{path}: rows are read from a file that ends in {', '.join(ROW_FILES)}", option="inputs")
    try:
        # The readers below are generators: without this a missing file would show at the first row only.
        Path(path).open("rb").close()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    rows = _from_lines(Path(path)) if kind in _LINES else _from_table(Path(path), _TABLES[kind])
    return _without(rows, frozenset(ignore)) if ignore else rows


def count_rows(path: str | Path) -> int:
    """How many rows `read_rows` will give, without reading what is in them where they are lines.

    Raises:
        InputError: the file cannot be read.
    """
    if Path(path).suffix.lower() not in _LINES:
        return sum(1 for _ in read_rows(path))
    with Path(path).open("rb") as file:
        return sum(1 for line in file if line.strip())


def _without(
    rows: Iterator[dict[str, object] | InputError], ignore: frozenset[str]
) -> Iterator[dict[str, object] | InputError]:
    for row in rows:
        yield row if isinstance(row, InputError) else {name: cell for name, cell in row.items() if name not in ignore}


def _from_lines(path: Path) -> Iterator[dict[str, object] | InputError]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if number == 1:
                # A byte order mark, which some editors and spreadsheets write.
                line = line.removeprefix(b"\xef\xbb\xbf")
            if line.strip():
                yield _from_line(line.strip(), f"{path.name}, line {number}")


def _from_line(line: bytes, place: str) -> dict[str, object] | InputError:
    try:
        row = decode(line.decode("utf-8"))
    except UnicodeDecodeError:
        return InputError(f"{place}: it is not UTF-8 text")
    except ValueError as error:
        return InputError(f"{place}: not valid JSON: {error}")
    if not isinstance(row, JsonObject):
        return InputError(f'{place}: a JSON object is needed, such as {{"x": 12}}')
    if row.repeated:
        return InputError(f"{place}: {sorted(row.repeated)[0]!r} stands in it twice")
    return {name: value for name, value in row.items() if value is not None}


def _from_table(path: Path, delimiter: str) -> Iterator[dict[str, object] | InputError]:
    csv.field_size_limit(sys.maxsize)  # of the whole process: its default is shorter than many documents
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            header = [name.strip() for name in next(reader, [])]
            _check_header(header, path, delimiter)
            for cells in reader:
                if cells:
                    yield _from_cells(cells, header, f"{path.name}, line {reader.line_num}")
        except csv.Error as error:
            raise InputError(f"{path.name}, line {reader.line_num}: no {path.suffix[1:].upper()}: {error}") from None
        except UnicodeDecodeError:
            raise InputError(f"{path.name}, behind line {reader.line_num}: it is not UTF-8 text") from None


def _check_header(header: list[str], path: Path, delimiter: str) -> None:
    if not header:
        raise InputError(f"{path.name} is empty: its first line names the inputs")
    if repeated := [name for name, count in Counter(header).items() if count > 1]:
        raise InputError(f"{path.name}: two columns are called {repeated[0]!r}")
    if "" in header:
        raise InputError(f"{path.name}: column {header.index('') + 1} has no name")
    others = [mark for mark in (",", ";", "\t") if mark != delimiter and mark in header[0]]
    if len(header) == 1 and others:
        raise InputError(f"{path.name}: its columns are separated by {others[0]!r}, not by {delimiter!r}: write it so")


def _from_cells(cells: list[str], header: list[str], place: str) -> dict[str, object] | InputError:
    if len(cells) != len(header):
        return InputError(f"{place}: it has {len(cells)} cells, and the header {len(header)}")
    return {name: cell for name, cell in zip(header, cells, strict=True) if cell != ""}
