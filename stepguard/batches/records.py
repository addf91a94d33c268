"""Results as they stand in a file (a JSON object on a line, or a row of a table) or in a DataFrame of pandas."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from stepguard.core.redaction import error_words
from stepguard.engine.batch import RowResult
from stepguard.errors import ConfigError, MissingExtraError
from stepguard.language.strict_json import JsonNumber
from stepguard.language.value_json import INEXACT_IN_JSON

_RESULT_FIELDS: Final = ("status", "strength", "answer", "values", "problem", "error", "usage", "cost", "seconds")
_COLUMNS: Final = (
    *("index", "key", "status", "strength", "answer", "problem", "error", "values"),
    *("calls", "input_tokens", "output_tokens", "cost", "seconds"),
)
_INTEGER: Final = re.compile(r"-?[0-9]{1,16}")
_FORMULA: Final = re.compile(r"[=@\t\r]|[+-](?![\d ().,/-]*\Z)")
"""How a cell begins that a spreadsheet would compute, and that is no number, date or telephone number."""


def record_of(row: RowResult, *, inputs: Collection[str] = (), details: bool = False) -> dict[str, Any]:
    """A row's result as JSON data.

    Args:
        inputs: the names of the inputs, which are left out of the values: documents are among them.
        details: with every step and attempt, as `Result.to_dict` has them.
    """
    head: dict[str, Any] = {"index": row.index, "key": _plain_key(row.key), "status": row.status}
    if row.result is None:
        assert row.error is not None
        return {**head, "error": {"type": type(row.error).__name__, "message": error_words(row.error)}}
    whole = row.result.to_dict()
    whole["values"] = {name: value for name, value in whole["values"].items() if name not in inputs}
    return {**head, **(whole if details else {name: whole[name] for name in _RESULT_FIELDS})}


def _plain_key(key: object) -> object:
    # A larger number would come back rounded from readers that take it for a float: it stays text.
    if isinstance(key, JsonNumber) and _INTEGER.fullmatch(key) and abs(int(key)) < INEXACT_IN_JSON:
        return int(key)
    if key is None or isinstance(key, bool | str) or (type(key) is int and abs(key) < INEXACT_IN_JSON):
        return key
    return str(key)


class RecordFormat:
    """How results are written to a file.

    Attributes:
        head: what stands before the first one.
        nested: whether a record may hold lists of records, as those of steps.
    """

    def __init__(self, head: bytes, encode: Callable[[Mapping[str, Any]], bytes], count: Callable[[str], int]) -> None:
        self.head: Final = head
        self.nested: Final = not head
        self._encode: Final = encode
        self._count: Final = count

    def encode(self, record: Mapping[str, Any]) -> bytes:
        """A record with the end of its line."""
        return self._encode(record)

    def is_torn(self, tail: bytes) -> bool:
        """Whether this can be what a kill left of the one record that was being written."""
        return self._count(tail.decode("utf-8", "replace")) <= 1


def record_format(path: str | Path) -> RecordFormat:
    """The format that the name of a file asks for. Raises ConfigError: it asks for none."""
    match Path(path).suffix.lower():
        case ".jsonl" | ".ndjson":
            return RecordFormat(b"", _as_line, lambda tail: len(tail.splitlines()))
        case ".csv":
            return RecordFormat(
                _as_cells(_COLUMNS), lambda record: _as_cells(map(_as_text, flat_record(record).values())), _count_cells
            )
    raise ConfigError(f"{path}: results are written to a file that ends in .jsonl or .csv", option="out")


def _as_line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, allow_nan=False).encode() + b"\n"


def flat_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record as one row of a table: its columns by their names, lists and records among them as JSON."""
    usage = record.get("usage") or {}
    flat = {**record, **{name: usage.get(name) for name in ("calls", "input_tokens", "output_tokens")}}
    for name in ("problem", "error"):
        about = record.get(name)
        if about:
            where = f"step {about['path']}: {about['reason']}" if name == "problem" else about["message"]
            flat[name] = where
    for name in ("answer", "values"):
        if isinstance(flat.get(name), dict | list):
            flat[name] = json.dumps(flat[name])
    return {name: flat.get(name) for name in _COLUMNS}


def _as_text(cell: object) -> object:
    """A cell that a spreadsheet shows as it is: nobody's document or reply is to be computed there."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def _as_cells(cells: Any) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    # Lone surrogates, which a model may write, cannot be encoded.
    return text.getvalue().encode("utf-8", "replace")


def _count_cells(tail: str) -> int:
    try:
        return sum(1 for _ in csv.reader(io.StringIO(tail, newline="")))
    except csv.Error:
        return 1


def to_frame(rows: Iterable[RowResult]) -> Any:
    """The results of a batch as a DataFrame, with the keys of the rows as its index where they have any.

    Its columns are the status, the strength, the answer, every value by its name, the problem or error in words, and
    what the row cost.

    Raises MissingExtraError: pandas is not installed.
    """
    try:
        pandas: Any = import_module("pandas")
    except ImportError:
        raise MissingExtraError("to_frame", extra="pandas") from None
    keys: list[object] = []
    records = []
    for row in rows:
        keys.append(row.index if row.key is None else row.key)
        records.append(_flat(row))
    return pandas.DataFrame(records, index=pandas.Index(keys))


def _flat(row: RowResult) -> dict[str, object]:
    record = record_of(row)
    error, problem, usage = record.get("error"), record.get("problem"), record.get("usage") or {}
    return {
        **{f"value_{name}": value for name, value in (record.get("values") or {}).items()},
        "status": record["status"],
        "strength": record.get("strength"),
        "answer": record.get("answer"),
        "problem": error["message"] if error else problem["reason"] if problem else None,
        **{name: usage.get(name) for name in ("calls", "input_tokens", "output_tokens")},
        "seconds": record.get("seconds"),
    }
