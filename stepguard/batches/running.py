"""`run_batch`: a procedure over all rows of a file, into a file of results; a kill at any time only interrupts it."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Unpack

from stepguard.backends.base import Backend
from stepguard.backends.making import as_backend
from stepguard.backends.recorded import RecordedBackend
from stepguard.batches.ledger import BatchLedger, check_start, ledger_path
from stepguard.batches.records import record_format, record_of
from stepguard.batches.rows import read_rows
from stepguard.core.arguments import check_count
from stepguard.core.usage import Price, Usage
from stepguard.engine.batch import BatchRow, RowKey, RowResult, as_row
from stepguard.engine.journal import without_addresses
from stepguard.errors import ConfigError
from stepguard.guard import Guard
from stepguard.guard.mapping import rows_of
from stepguard.guard.options import GuardKeywords, GuardOptions, check_options, new_seed
from stepguard.ledger.procedures import procedure_digest
from stepguard.procedure.procedure import Procedure, check_procedure

_SHAPING: Final = ("segment", "repair", "budget", "fallback", "reply_format", "parallel", "stop_early", "observe")
"""The options whose change would make rows of two kinds."""
_LONGEST: Final = 80
"""An option whose text is longer is kept as its hash."""


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """The outcome of a batch.

    Attributes:
        rows: how many results there are now, with those of earlier sessions.
        taken_over: how many were there when it began.
        counts: how many rows ended with each status and strength.
        spent: what the calls cost that were made now.
        replayed: what the replies had cost that an earlier session had kept, and that were used now.
        stopped: whether it ended because its limit of money was spent.
    """

    rows: int
    taken_over: int
    counts: Mapping[tuple[str, str], int]
    spent: Usage
    replayed: Usage
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class CostLimit:
    """A limit of money for a whole batch.

    Args:
        most: once this much is spent no further row is begun; what is under way is ended.
        price: what tokens cost.
    """

    most: Any
    price: Price


def run_batch(
    procedure: Procedure,
    backend: object,
    rows: str | Path | Iterable[object],
    out: str | Path,
    *,
    resume: bool = False,
    concurrency: int = 16,
    ordered: bool = False,
    key: RowKey | None = None,
    ignore: Collection[str] = (),
    details: bool = False,
    limit: CostLimit | None = None,
    progress: Callable[[RowResult], object] | None = None,
    taken_over: Callable[[int], object] | None = None,
    **options: Unpack[GuardKeywords],
) -> BatchSummary:
    """Run a procedure on every row and write each result to a file as it comes.

    Beside `out` stands ``OUT.resume``, which holds the replies of the model as they come in and which rows are done.
    With `resume` a batch that was killed goes on: rows that are done are not run again, replies that had come are not
    paid for again, rows that ended as ``failed`` get another try, and the file holds every row once. The procedure, the
    model, the options and the rows that are done must be what they were; further rows may stand behind them. When a
    batch is complete, ``OUT.resume`` may be deleted, with ``OUT.resume-1`` of the first fallback and so on. Answers of
    persons are not kept.

    A procedure that calls tools needs a `ledger` among the options, so that no call is made twice when the batch goes
    on: each row is a run there. In a .csv a text that a spreadsheet would take for a formula has an apostrophe before
    it.

    Args:
        procedure: what to run.
        backend: the model, as `Guard` takes it.
        rows: a file that `read_rows` reads, or the rows themselves as `Guard.map` takes them, on resume the same ones
            in the same order; an `InputError` may stand in the place of one that cannot be read.
        out: the file of results, which ends in .jsonl or .csv.
        resume: go on with what is there; where nothing is there the batch begins.
        concurrency: how many rows are under way at a time.
        ordered: write results in the order of the rows; by default each is written as it comes.
        key: as `Guard.map` takes it.
        ignore: names of fields of the rows that are no inputs, and left out.
        details: write every step and attempt of each run; not for a .csv.
        limit: stops the batch once so much money is spent in this session.
        progress: called after every result was written.
        taken_over: called once with how many results were there.
        options: those of the guard.

    Raises:
        ConfigError: an argument cannot work, there are results and `resume` is not set, or they belong to something
            else.
        InputError: the file of rows cannot be read.
        OSError: the results cannot be written.
    """
    check_options(options, of="run_batch", allowed=GuardKeywords)
    check_procedure(procedure)
    check_count(concurrency, "concurrency")
    target, form = Path(out), record_format(out)
    if details and not form.nested:
        raise ConfigError(f"{out}: a table has no place for details: write them to a .jsonl", option="details")
    _check_tools(procedure, options)
    check_start(target, resume=resume)
    about = {"procedure": procedure_digest(procedure), **_shape(options), **({"details": "on"} if details else {})}
    source = read_rows(rows, ignore=ignore) if isinstance(rows, str | Path) else rows_of(rows)
    models = (as_backend(backend), *GuardOptions(**options).fallbacks())
    with ExitStack() as stack:
        recorded = [stack.enter_context(_recorded(target, model, place)) for place, model in enumerate(models)]
        # A recording makes its file only where there is none, so that the ledger, which shares the first, comes second.
        ledger = stack.enter_context(BatchLedger(target, form, about))
        options["seed"] = _seed(ledger, options.get("seed"))
        # Recorded like the model: their replies are kept, and their cost counts for the limit.
        options["fallback"] = recorded[1:]
        guard = Guard(recorded[0], **options)
        left = _OpenRows(ledger, procedure, key, limit, recorded)
        before = ledger.rows
        if taken_over is not None:
            taken_over(before)
        inputs = frozenset(declared.name for declared in procedure.inputs)
        name = _run_id(ledger) if options.get("ledger") is not None else None
        results = guard.map(
            procedure,
            left.rows(source),  # type: ignore[arg-type]
            concurrency=concurrency,
            ordered=ordered,
            run_id=name,
        )
        # Where this is left early, the runs under way are cancelled.
        with closing(results):  # type: ignore[type-var]
            for result in results:
                digest, called = left.under_way.pop(result.index)
                row = replace(result, key=called)
                strength = "unverified" if row.result is None else row.result.strength
                record = form.encode(record_of(row, inputs=inputs, details=details))
                ledger.add(row.index, digest, row.status, strength, record)
                if progress is not None:
                    progress(row)
        replayed = sum((model.replayed for model in recorded), Usage())
        return BatchSummary(ledger.rows, before, ledger.counts(), _spent(recorded), replayed, stopped=left.stopped)


def _check_tools(procedure: Procedure, options: Mapping[str, Any]) -> None:
    tools = sorted(operation.name for operation in procedure.all_operations.values() if operation.tool)
    if tools and options.get("ledger") is None:
        raise ConfigError(
            f"the procedure calls the tool {tools[0]}: give a ledger (ledger='runs.db'), so that no call is made twice",
            option="ledger",
        )


class _OpenRows:
    """The rows that are not done yet."""

    def __init__(
        self,
        ledger: BatchLedger,
        procedure: Procedure,
        key: RowKey | None,
        limit: CostLimit | None,
        recorded: Sequence[RecordedBackend],
    ) -> None:
        self._ledger: Final = ledger
        self._key: Final = key
        self._names: Final = frozenset(declared.name for declared in procedure.inputs)
        self._limit: Final = limit
        self._recorded: Final = recorded
        self.under_way: Final[dict[int, tuple[str, object]]] = {}
        """The digests and keys of the rows that are under way."""
        self.stopped = False

    def rows(self, source: Iterable[object]) -> Iterator[BatchRow]:
        """The rows to run.

        Raises:
            ConfigError: a row that is done is not what it was, or is not there any more.
        """
        last, number = self._ledger.last, -1
        for number, item in enumerate(source):
            # By its place in the source, whatever index a row brings: that is the same when the batch is resumed.
            row = replace(as_row(number, item, self._key, self._names), index=number)
            digest = _digest(row)
            known = self._ledger.digest_of(number) if number <= last else None
            if known is None:
                if self._is_spent():
                    self.stopped = True
                    return
                self.under_way[number] = digest, row.key
                yield replace(row, key=None)  # a run is named after the index: a key may stand twice
            elif known != digest:
                raise ConfigError(
                    f"row {number} is not what it was when its result was written: use another --out", option="inputs"
                )
        if number < last:
            raise ConfigError(f"there are {number + 1} rows, and results up to row {last}", option="inputs")

    def _is_spent(self) -> bool:
        limit = self._limit
        return limit is not None and limit.price.of(_spent(self._recorded)) >= limit.most


def _spent(recorded: Sequence[RecordedBackend]) -> Usage:
    return sum((model.spent for model in recorded), Usage())


def _recorded(out: Path, model: Backend, place: int) -> RecordedBackend:
    if isinstance(model, RecordedBackend):
        return model
    path = ledger_path(out)
    return RecordedBackend(path.with_name(f"{path.name}-{place}") if place else path, model, requests=False)


def _run_id(ledger: BatchLedger) -> str:
    """The name of the batch in the guard's ledger."""
    name = ledger.fact("run_id") or os.urandom(6).hex()
    ledger.note(run_id=name)
    return name


def _seed(ledger: BatchLedger, given: int | None) -> int:
    """The seed of all sessions: replies at a temperature belong to it."""
    known = ledger.fact("seed")
    if known is not None and given is not None and int(known) != given:
        raise ConfigError(f"the batch was begun with seed {known}, not {given}: use another --out", option="seed")
    if known is not None:
        return int(known)
    seed = new_seed() if given is None else given
    ledger.note(seed=seed)
    return seed


def _shape(options: Mapping[str, Any]) -> dict[str, str]:
    """What of the options shapes results, as text that is the same in every process."""
    shown = {name: without_addresses(repr(options[name])) for name in _SHAPING if options.get(name) is not None}
    return {name: text if len(text) <= _LONGEST else _hash(text) for name, text in shown.items()}


def _digest(row: BatchRow) -> str:
    facts = [str(row.key), {str(name): _stable_text(value) for name, value in row.inputs.items()}, str(row.error)]
    return _hash(json.dumps(facts, sort_keys=True))


def _stable_text(value: object) -> str:
    # An address in memory is another one in every process; a text that only looks like one is kept as it is.
    return repr(value) if isinstance(value, str) else without_addresses(repr(value))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
