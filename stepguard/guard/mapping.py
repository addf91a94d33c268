"""Drives a `Batch`: its runs share one event loop, which the blocking way has in a thread of its own."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any, Final, Protocol, Self, runtime_checkable

from stepguard.backends.base import session_of
from stepguard.engine.batch import Batch, BatchRow, RowResult
from stepguard.errors import ConfigError, InputError, UnexpectedRequest, UsageError
from stepguard.results import Result
from stepguard.telemetry.logging import log_fault

RowRunner = Callable[[BatchRow], Awaitable[Result]]

_BREATH: Final = 64
"""After how many rows without any waiting the event loop gets a turn."""


@runtime_checkable
class _Frame(Protocol):
    """A DataFrame, as pandas has it."""

    @property
    def columns(self) -> Any: ...
    @property
    def index(self) -> Any: ...
    def itertuples(self, index: bool = True, name: str | None = "Pandas") -> Iterator[tuple[Any, ...]]: ...


def rows_of(inputs: object) -> Iterable[object] | AsyncIterable[object]:
    """The rows of what was given, one at a time: those of a DataFrame are called what its index calls them.

    Raises ConfigError: it has no rows, or a DataFrame two columns of one name.
    """
    if isinstance(inputs, _Frame):
        names = [str(column) for column in inputs.columns]
        if len({*names}) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ConfigError(f"two columns are called {twice!r}: which one is the input?", option="inputs")
        return _frame_rows(inputs, names)
    # These can be iterated, but what they give is no row.
    if isinstance(inputs, str | bytes | dict) or not isinstance(inputs, Iterable | AsyncIterable):
        raise ConfigError(
            f"inputs are an iterable of mappings, one for each run, or a DataFrame, not a {type(inputs).__name__}",
            option="inputs",
        )
    return inputs


def _frame_rows(frame: _Frame, names: list[str]) -> Iterator[BatchRow]:
    for number, (label, *cells) in enumerate(frame.itertuples(name=None)):
        inputs = {name: _cell_value(cell) for name, cell in zip(names, cells, strict=True) if not _is_missing(cell)}
        yield BatchRow(number, label, inputs)


def _cell_value(cell: Any) -> object:
    """A cell as a value: pandas has no dates, and writes one as the midnight it begins with."""
    if type(cell).__name__ == "Timestamp" and cell.tzinfo is None and cell == cell.normalize():
        return cell.date()
    return cell


def _is_missing(cell: object) -> bool:
    """Whether a cell of a DataFrame is empty: None, NaN, NaT or NA."""
    # NaN is not equal to itself. By the name of the class, so that pandas need not be imported.
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


async def amap_rows(
    batch: Batch, rows: object, run: RowRunner, backend: object, concurrency: int
) -> AsyncIterator[RowResult]:
    """The results of a batch. Where the iteration is given up, the runs under way are cancelled."""
    gate, wake = asyncio.Semaphore(concurrency), asyncio.Event()
    source, tasks, faults = _Source(rows, wake), set[asyncio.Task[None]](), list[BaseException]()

    async def work(number: int, row: BatchRow) -> None:
        async with gate:
            outcome = await _outcome(run, row)
        if isinstance(outcome, RowResult):
            batch.finish(number, outcome)
        else:
            faults.append(outcome)

    def ended(task: asyncio.Task[None]) -> None:
        tasks.discard(task)
        wake.set()

    async with _session(backend):
        try:
            for turn in count(1):
                if turn % _BREATH == 0:
                    await asyncio.sleep(0)
                # Before looking for anything to do: what comes in from here on sets it again.
                wake.clear()
                while batch.wants_row and not faults and (item := source.next()) is not _NOT_YET:
                    if item is _END:
                        batch.end()
                    elif (admitted := batch.admit(item)) is not None:
                        task = asyncio.create_task(work(*admitted))
                        tasks.add(task)
                        task.add_done_callback(ended)
                if (ready := batch.take()) is not None:
                    yield ready
                elif faults:
                    raise faults[0]
                elif batch.done:
                    break
                else:
                    await wake.wait()
        finally:
            source.close()
            await _cancel(tasks)
    source.raise_fault()


def map_rows(batch: Batch, rows: object, run: RowRunner, backend: object, concurrency: int) -> Iterator[RowResult]:
    """As `amap_rows`, blocking: rows are read in the caller's thread, and runs are driven in one of their own."""
    source, fault = _Source(rows), None
    with _LoopThread(run, backend, concurrency) as worker:
        while True:
            while batch.wants_row and fault is None:
                if (item := source.next()) is _END:
                    batch.end()
                elif (admitted := batch.admit(item)) is not None:
                    worker.start(*admitted)
            if (ready := batch.take()) is not None:
                yield ready
                continue
            if fault is not None:
                raise fault
            if batch.done:
                break
            number, outcome = worker.finished.get()
            if isinstance(outcome, RowResult):
                batch.finish(number, outcome)
            else:
                fault = outcome
    source.raise_fault()


@asynccontextmanager
async def _session(backend: object) -> AsyncIterator[None]:
    """Keep the clients of a backend open for all runs. That they cannot be closed costs no result."""
    opened = session_of(backend)
    await opened.__aenter__()
    try:
        yield
    finally:
        try:
            await opened.__aexit__(None, None, None)
        except Exception as error:  # noqa: BLE001 - a backend may be foreign code
            log_fault("the session of the backend could not be closed after a batch", error)


async def _outcome(run: RowRunner, row: BatchRow) -> RowResult | BaseException:
    """Run a row; an error after which every other row would fail, too, is returned as it is."""
    try:
        return RowResult(row.index, row.key, await run(row))
    except InputError as error:
        return RowResult(row.index, row.key, error=error)
    except (UsageError, UnexpectedRequest) as error:
        return error
    except Exception as error:  # noqa: BLE001 - whatever it is, the other rows go on
        return RowResult(row.index, row.key, error=error)


async def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    tasks = list(tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


_END: Final = object()
_NOT_YET: Final = object()


class _Source:
    """The rows that are left. What reading them raises is raised once all results of earlier rows were given.

    Args:
        rows: an iterable, or an async one.
        wake: set where an async one has given a row that `next` had to do without.
    """

    def __init__(self, rows: object, wake: asyncio.Event | None = None) -> None:
        self._rows: Final[Iterator[object] | None] = iter(rows) if isinstance(rows, Iterable) else None
        self._arows: Final[AsyncIterator[object] | None] = aiter(rows) if isinstance(rows, AsyncIterable) else None
        self._wake: Final = wake
        self._reading: asyncio.Task[object] | None = None
        self._fault: Exception | None = None

    def next(self) -> object:
        """The next row, `_END` where there is none, `_NOT_YET` where it is being waited for."""
        try:
            if self._rows is not None:
                return next(self._rows, _END)
            return self._next_awaited()
        except Exception as error:  # noqa: BLE001 - the code of the caller
            self._fault = error
            return _END

    def _next_awaited(self) -> object:
        assert self._arows is not None
        assert self._wake is not None
        if self._reading is None:
            self._reading = asyncio.ensure_future(anext(self._arows, _END))
            self._reading.add_done_callback(lambda _: self._wake.set())  # type: ignore[union-attr]
        if not self._reading.done():
            return _NOT_YET
        done, self._reading = self._reading, None
        return done.result()

    def close(self) -> None:
        """Stop reading."""
        if self._reading is not None:
            self._reading.cancel()

    def raise_fault(self) -> None:
        """Raise what ended the reading, if not the last row."""
        if self._fault is not None:
            raise self._fault


class _LoopThread:
    """A thread with an event loop on which runs are driven, from entering it to leaving it."""

    def __init__(self, run: RowRunner, backend: object, concurrency: int) -> None:
        self.finished: Final[queue.SimpleQueue[tuple[int, RowResult | BaseException]]] = queue.SimpleQueue()
        self._run: Final = run
        self._backend: Final = backend
        self._concurrency: Final = concurrency
        self._tasks: Final[set[asyncio.Task[None]]] = set()
        self._open: Final[Future[asyncio.AbstractEventLoop]] = Future()

    def start(self, number: int, row: BatchRow) -> None:
        """Run a row when its turn comes."""
        self._tell(self._start, number, row)

    def _tell(self, callback: Callable[..., object], *arguments: object) -> None:
        with suppress(RuntimeError):  # the loop has ended, and `finished` says why
            self._loop.call_soon_threadsafe(callback, *arguments)

    def _start(self, number: int, row: BatchRow) -> None:
        task = asyncio.create_task(self._work(number, row))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, number: int, row: BatchRow) -> None:
        async with self._gate:
            outcome = await _outcome(self._run, row)
        self.finished.put((number, outcome))

    async def _serve(self) -> None:
        # Made here, on the loop of this thread.
        self._gate, self._stop = asyncio.Semaphore(self._concurrency), asyncio.Event()
        async with _session(self._backend):
            self._open.set_result(asyncio.get_running_loop())
            await self._stop.wait()
            await _cancel(self._tasks)

    def _drive(self) -> None:
        """The life of the thread. What ends the loop itself, a SystemExit in a tool say, is the caller's to see."""
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - nobody else would hear of it
            if self._open.done():
                # The caller waits for `finished`, and would wait for ever.
                self.finished.put((-1, error))
            else:
                self._open.set_exception(error)

    def __enter__(self) -> Self:
        # The caller's `named_run`, `no_real_requests` and traces hold for the runs, too.
        context = contextvars.copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._drive,), name="stepguard-batch", daemon=True)
        self._thread.start()
        self._loop = self._open.result()
        return self

    def __exit__(self, *_: object) -> None:
        self._tell(self._stop.set)
        self._thread.join()
