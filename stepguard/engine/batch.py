"""Decides, for many runs of one procedure, which row to read and which result to yield next; performs nothing.

`Guard.map` and `Guard.amap` drive the same `Batch`: they read a row where it `wants_row`, run what `admit` returns,
hand the outcome to `finish`, and yield what `take` returns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from stepguard.core.arguments import check_count, check_flag
from stepguard.errors import ConfigError, InputError
from stepguard.procedure.procedure import Procedure, check_procedure
from stepguard.results import Result, Status

__all__ = ["READ_AHEAD", "Batch", "BatchRow", "RowKey", "RowResult", "RowStatus", "as_row"]

RowKey = str | Callable[[Mapping[str, object]], object]
RowStatus = Status | Literal["invalid"]
"""That of the run; where there was none ``invalid``, the row is no inputs of the procedure, or ``failed``."""

READ_AHEAD: Final = 8
"""Rows held for each concurrent run (read, running or finished, but not taken): memory stays bounded, however slow the
consumer or the oldest row."""


@dataclass(frozen=True, slots=True)
class BatchRow:
    """The inputs of one run in a batch.

    Attributes:
        index: counts the rows from 0.
        key: what the caller calls the row, None where that is only its index.
        inputs: the values of the procedure's inputs, by name.
        error: why it cannot be run, None where it can.
    """

    index: int
    key: object
    inputs: Mapping[str, object]
    error: InputError | None = None


@dataclass(frozen=True, slots=True)
class RowResult:
    """The outcome of one row.

    Attributes:
        index: that of the row.
        key: that of the row.
        result: the run's, None where there was no run.
        error: why there was none: an `InputError` that names the input, or what kept the run from beginning.
    """

    index: int
    key: object
    result: Result | None = None
    error: Exception | None = None

    @property
    def status(self) -> RowStatus:
        """How it ended."""
        if self.result is not None:
            return self.result.status
        return "invalid" if isinstance(self.error, InputError) else "failed"

    def raise_for_status(self) -> Result:
        """The result of a run that is verified.

        Raises:
            Exception: `error`, where there was no run.
            RunError: as `Result.raise_for_status` does.
        """
        if self.result is None:
            assert self.error is not None
            raise self.error
        return self.result.raise_for_status()


def as_row(index: int, item: object, key: RowKey | None, names: Collection[str]) -> BatchRow:
    """The row that an item stands for.

    Args:
        index: of the row.
        item: a mapping, an `InputError` in its place, or a row that has an index already.
        key: as `Batch` takes it.
        names: those of the procedure's inputs.
    """
    if isinstance(item, BatchRow):
        # A row of a DataFrame is called by its index already, unless a key is asked for.
        return item if key is None or item.error is not None else as_row(item.index, item.inputs, key, names)
    if isinstance(item, InputError):
        return BatchRow(index, None, {}, item)
    if not isinstance(item, Mapping):
        kind = type(item).__name__
        return BatchRow(index, None, {}, InputError(f"a row is a mapping from names of inputs to values, not a {kind}"))
    if not isinstance(key, str):
        return BatchRow(index, None if key is None else key(item), item)
    if key not in item:
        return BatchRow(index, None, item, InputError(f"the row has no {key!r}, which is its key", name=key))
    inputs = item if key in names else {name: value for name, value in item.items() if name != key}
    return BatchRow(index, item[key], inputs)


class Batch:
    """The rows of one batch between being read and being given on as results.

    Args:
        procedure: what is run.
        concurrency: how many runs are under way at a time.
        ordered: give results in the order of the rows, not as they come.
        key: what a row is called: the name of one of its fields, which is left out of the inputs where the procedure
            has no such input, or a function of the row.

    Raises:
        ConfigError: an argument cannot work.
    """

    def __init__(self, procedure: Procedure, *, concurrency: int, ordered: bool, key: RowKey | None) -> None:
        check_procedure(procedure)
        check_count(concurrency, "concurrency")
        check_flag(ordered, "ordered")
        if key is not None and not isinstance(key, str) and not callable(key):
            raise ConfigError("key is the name of a field, or a function of a row", option="key")
        self._inputs: Final = frozenset(declared.name for declared in procedure.inputs)
        self._most: Final = READ_AHEAD * concurrency
        self._concurrency: Final = concurrency
        self._ordered: Final = ordered
        self._key: Final = key
        self._admitted = self._taken = self._unfinished = 0
        self._ended = False
        self._early: Final[dict[int, RowResult]] = {}
        """With `ordered`: the results that wait for an earlier row, by number."""
        self._ready: Final[deque[RowResult]] = deque()
        self._next = 0

    @property
    def wants_row(self) -> bool:
        """Whether another row is to be read now: few are under way, and the oldest result is not too far behind."""
        if self._ended or self._admitted - self._taken >= self._most:
            return False
        return not self._ready or self._unfinished < self._concurrency

    @property
    def done(self) -> bool:
        """Whether no row will be read any more, and every result was taken."""
        return self._ended and self._admitted == self._taken

    def admit(self, item: object) -> tuple[int, BatchRow] | None:
        """Take what was read: a mapping, a `BatchRow` with an index of its own, or an `InputError` in a row's place.

        Returns:
            The row to run with the number that `finish` takes, None where nothing is to be run.
        """
        number, self._admitted = self._admitted, self._admitted + 1
        self._unfinished += 1
        row = as_row(number, item, self._key, self._inputs)
        if row.error is None:
            return number, row
        self.finish(number, RowResult(row.index, row.key, error=row.error))
        return None

    def end(self) -> None:
        """There are no more rows."""
        self._ended = True

    def finish(self, number: int, outcome: RowResult) -> None:
        """What `admit` gave under this number has come to an end."""
        self._unfinished -= 1
        if not self._ordered:
            self._ready.append(outcome)
            return
        self._early[number] = outcome
        while self._next in self._early:
            self._ready.append(self._early.pop(self._next))
            self._next += 1

    def take(self) -> RowResult | None:
        """The next result, None where there is none yet."""
        if not self._ready:
            return None
        self._taken += 1
        return self._ready.popleft()
