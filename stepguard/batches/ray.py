"""Rows of a Ray dataset: a procedure is run on each, by guards in the workers of a cluster (extra: ``ray``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from functools import partial
from importlib import import_module
from math import isnan
from typing import Any, Final

from stepguard.batches.records import flat_record, record_of
from stepguard.core.arguments import check_count, check_instance
from stepguard.errors import ConfigError, MissingExtraError
from stepguard.guard import Guard
from stepguard.procedure.procedure import Procedure

WorkerSetup = Callable[[], tuple[Guard, Procedure]]
"""Makes what a worker needs, in the worker: its guard, and the procedure with its tools."""

_TEXTS: Final = ("status", "strength", "answer", "problem", "error", "values", "cost")
_COUNTS: Final = ("calls", "input_tokens", "output_tokens")
_RESULTS: Final = (*_TEXTS, *_COUNTS, "seconds")


def map_dataset(
    dataset: Any,
    setup: WorkerSetup,
    *,
    key: str,
    run_id: str | None = None,
    ignore: Collection[str] = (),
    workers: int = 1,
    concurrency: int = 16,
    batch_size: int = 64,
    **options: Any,
) -> Any:
    """Run a procedure on every row of a Ray dataset.

    A row whose run fails, or that is no inputs, costs no other: its status and its ``error`` or ``problem`` say why.
    What would fail for every row, such as a missing API key, ends the dataset's execution.

    Ray carries a batch out again when its worker has died. Where the guard has a ledger and `run_id` is given, each row
    is a run there: what was verified and the calls of tools are taken from it, and nothing is paid twice. All workers
    have to reach the same ledger.

    Args:
        dataset: a `ray.data.Dataset` with a column for each input; an empty cell is an input that is not given.
        setup: called once in each worker. It is sent there, so that it must not refer to a guard or a procedure that
            was made outside of it.
        key: the column that names the rows, each once: a dataset has no other order.
        run_id: the first part of the names of the runs, as `Guard.map` takes it.
        ignore: names of columns that are no inputs, and left out.
        workers: how many workers there are, each in a process of its own.
        concurrency: how many rows of a worker are under way at a time.
        batch_size: how many rows a worker is given at a time, and takes up again when it has died.
        options: further ones of `ray.data.Dataset.map_batches`, such as ``num_cpus``.

    Returns:
        A dataset with a row for each of `dataset`: the key, ``status``, ``strength``, ``answer``, ``problem``,
        ``error``, ``values`` (as JSON, as are lists and records in ``answer``), ``calls``, ``input_tokens``,
        ``output_tokens``, ``cost`` and ``seconds``.

    Raises:
        ConfigError: an argument cannot work.
        MissingExtraError: Ray is not installed.
    """
    try:
        data: Any = import_module("ray.data")
    except ImportError:
        raise MissingExtraError("map_dataset", extra="ray") from None
    check_instance(dataset, data.Dataset, "dataset", what="a dataset of Ray")
    check_instance(key, str, "key", what="the name of a column")
    check_count(workers, "workers")
    if key in _RESULTS:
        raise ConfigError(f"the column {key!r} is one of the results as well: rename it", option="key")
    if not callable(setup):
        raise ConfigError("setup is a function that makes a guard and a procedure", option="setup")
    if isinstance(ignore, str):
        raise ConfigError("ignore is a list of names of columns", option="ignore")
    facts = {"key": key, "run_id": run_id, "ignore": frozenset(ignore), "concurrency": concurrency}
    return dataset.map_batches(
        _RowMapper,
        fn_constructor_args=(setup,),
        fn_constructor_kwargs=facts,
        batch_format="pyarrow",
        batch_size=batch_size,
        compute=data.ActorPoolStrategy(size=workers),
        **options,
    )


class _RowMapper:
    """What Ray makes in each worker, and calls with each batch."""

    def __init__(
        self, setup: WorkerSetup, *, key: str, run_id: str | None, ignore: Collection[str], concurrency: int
    ) -> None:
        guard, procedure = setup()
        self._inputs: Final = frozenset(declared.name for declared in procedure.inputs)
        self._key: Final = key
        self._ignored: Final = frozenset(ignore) - {key}
        self._run: Final = partial(guard.map, procedure, key=key, run_id=run_id, concurrency=concurrency)

    def __call__(self, batch: Any) -> Any:
        """The results of the rows of a table of Arrow, as another one.

        Raises ConfigError: there is no such column as the key.
        """
        arrow: Any = import_module("pyarrow")
        if self._key not in batch.column_names:
            raise ConfigError(f"the dataset has no column {self._key!r}: {', '.join(batch.column_names)}", option="key")
        records = [flat_record(record_of(row, inputs=self._inputs)) for row in self._run(self._rows(batch))]
        # Named, not left to Arrow: of a batch in which every cell is empty it would make a column of another type.
        kinds = {**dict.fromkeys(_TEXTS, arrow.string()), **dict.fromkeys(_COUNTS, arrow.int64())}
        columns = {name: [_text(record[name]) for record in records] for name in _TEXTS}
        columns |= {name: [record[name] for record in records] for name in (*_COUNTS, "seconds")}
        made = {name: arrow.array(cells, kinds.get(name, arrow.float64())) for name, cells in columns.items()}
        return arrow.table({self._key: batch.column(self._key), **made})

    def _rows(self, batch: Any) -> Iterator[dict[str, object]]:
        for row in batch.to_pylist():
            yield {name: cell for name, cell in row.items() if not _is_empty(cell) and name not in self._ignored}


def _is_empty(cell: object) -> bool:
    # What pandas has read into a dataset has NaN in its empty cells.
    return cell is None or (isinstance(cell, float) and isnan(cell))


def _text(cell: object) -> str | None:
    return cell if cell is None or isinstance(cell, str) else json.dumps(cell)
