"""Results as a DataFrame of pandas, which is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

from stepguard.batches.records import record_of
from stepguard.engine.batch import RowResult
from stepguard.errors import MissingExtraError


def to_frame(rows: Iterable[RowResult]) -> Any:
    """The results of a batch as a DataFrame, with the keys of the rows as its index where they have any.

    Its columns are the status, the strength, the answer, every value by its name, the problem or error in words, and
    what the row cost.

    Raises:
        MissingExtraError: pandas is not installed.
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
