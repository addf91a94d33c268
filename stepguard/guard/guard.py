"""`Guard`: run a procedure on a model, step by verified step."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Unpack

from stepguard.backends.base import Backend, SyncBackend, stopping_of
from stepguard.backends.making import as_backend
from stepguard.core.profile import Profile
from stepguard.core.run_names import run_name
from stepguard.core.verdicts import shorten
from stepguard.engine.actions import Ask
from stepguard.engine.machine import Engine
from stepguard.engine.run import Run
from stepguard.errors import ConfigError, InputError
from stepguard.guard.calls import as_sync
from stepguard.guard.driving import adrive, drive
from stepguard.guard.options import GuardKeywords, GuardOptions, check_kept, check_options, new_seed, show_options
from stepguard.procedure.procedure import Procedure, check_procedure
from stepguard.repair.ladder import Ladder
from stepguard.results import Result
from stepguard.telemetry.hooks import as_observers

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from stepguard.engine.batch import Batch, BatchRow, RowKey, RowResult
    from stepguard.engine.forecast import Forecast
    from stepguard.ledger import Ledger

_WRITERS: Final = 64
"""How many runs of an event loop may wait for a ledger at a time: one sync serves all who wait."""


class Guard:
    """Runs procedures on a model: every step checked, every deviation asked again, and no wrong value handed on.

    A guard is immutable and may be shared between threads and event loops.

    Args:
        backend: the model: a `Backend`, a callable from messages to text, an OpenAI-style client, or a name such as
            ``"openai/gpt-4.1-mini"`` or ``"ollama/qwen2.5"`` (the providers are in `stepguard.backends.providers`).
        model: the model to ask for, with a client as backend.
        options: what shapes its runs, such as ``segment=5``, ``repair=2`` or ``budget=Budget(calls=40)``; each is
            described at `stepguard.guard.options.GuardOptions`.

    Raises:
        ConfigError: an argument cannot work.
    """

    @show_options
    def __init__(self, backend: object, *, model: str | None = None, **options: Unpack[GuardKeywords]) -> None:
        check_options(options, of="Guard", allowed=GuardKeywords)
        self._options: Final = GuardOptions(**options)
        self._observers: Final = as_observers(self._options.observer)
        self._backend: Final[Backend] = as_backend(backend, model=model)
        if self._options.stop_early and not getattr(self._backend, "can_stop", False):
            kind = type(self._backend).__name__
            raise ConfigError(f"this {kind} cannot stop a reply: leave stop_early out", option="stop_early")
        self._settings: Final = replace(self._options.settings(), stopping=stopping_of(self._backend))
        self._ledger: Final = self._options.open_ledger()
        self._writers: Final = None if self._ledger is None else _writers()

    @property
    def options(self) -> GuardOptions:
        """What it was given."""
        return self._options

    @property
    def ledger(self) -> Ledger | None:
        """Where its runs are durable; None where they are not."""
        return self._ledger

    @property
    def backend(self) -> Backend:
        """The model that it asks."""
        return self._backend

    def __repr__(self) -> str:
        return f"<Guard of {shorten(str(getattr(self._backend, 'name', type(self._backend).__name__)))}>"

    @property
    def observing(self) -> bool:
        """Whether it takes claims as they stand instead of having wrong ones mended; see `observe`."""
        return self._options.observe

    def forecast(self, procedure: Procedure) -> Forecast:
        """What a run of a procedure will probably cost, and whether it will end verified, by the guard's profile.

        Calls, tokens, seconds, success and abstention; the money, where the budget has a price.
        `stepguard.engine.forecast` has the model behind it.

        Raises:
            ConfigError: the guard has no profile, or one that has seen no calls.
        """
        from stepguard.engine.forecast import forecast

        check_procedure(procedure)
        settings = self._settings
        return forecast(
            procedure, settings.profile or Profile(), segments=settings.segments, price=settings.budget.price
        )

    def start(
        self,
        procedure: Procedure,
        inputs: Mapping[str, object] | None = None,
        *,
        label: str | None = None,
        run_id: str | None = None,
    ) -> Run:
        """A run for a loop of the caller's own: no call is made, and the backend is not used.

        Args:
            procedure: what to run.
            inputs: the values of its inputs.
            run_id: see `run`.
            label: the name that logs and traces use for the procedure instead of its own, where that is private; its
                steps are then given by their index and not by name.

        Raises:
            InputError: the inputs do not fit the procedure.
            ConfigError: `procedure` is not a `Procedure`.
        """
        seed = new_seed() if self._options.seed is None else self._options.seed
        return self._start(procedure, inputs, seed, label=label, run_id=run_id)

    def _start(
        self,
        procedure: Procedure,
        inputs: Mapping[str, object] | None,
        seed: int,
        *,
        label: str | None = None,
        run_id: str | None = None,
    ) -> Run:
        started = time.monotonic()  # what is prepared counts for the run
        check_procedure(procedure)
        check_kept(run_id, kept=self._ledger is not None)
        run_id = run_name(run_id, kept=self._ledger is not None)
        # Not `random`, which a program may have seeded alike twice.
        name = os.urandom(6).hex() if run_id is None else run_id
        settings = replace(self._settings, seed=seed)
        accepted = procedure.accept_inputs({} if inputs is None else inputs)
        journal = None if self._ledger is None else self._ledger.open(procedure, accepted, run_id=name)
        engine = Engine(procedure, accepted, settings, run_id=name, now=started, journal=journal)
        return Run(engine, label=label, journal=journal)

    def run(
        self, procedure: Procedure, inputs: Mapping[str, object] | None = None, *, run_id: str | None = None
    ) -> Result:
        """Run a procedure and return its result, whatever its status.

        It blocks until the run has ended, also when it is called inside a running event loop, where `arun` is the
        better choice. Model calls are made one after the other, whatever `parallel` says.

        Args:
            procedure: what to run.
            inputs: the values of its inputs.
            run_id: the name of the run in the guard's `ledger`, where that has one; by default that of
                `stepguard.ledger.named_run` around it. A run that is there already is continued, also
                after its process was killed: what is verified is not asked again, and no tool is called twice.

        Raises:
            InputError: the inputs do not fit the procedure.
            ConfigError: `procedure` is not a `Procedure`, or the backend can only be awaited; use `arun` then.
            RunConflict: the run is under way elsewhere, or was begun with another procedure or other inputs.
            LedgerError: the ledger cannot be read or written.
        """
        self._sync_backend()
        return self.drive(self.start(procedure, inputs, run_id=run_id))

    async def arun(
        self, procedure: Procedure, inputs: Mapping[str, object] | None = None, *, run_id: str | None = None
    ) -> Result:
        """Run a procedure without blocking the event loop; see `run`.

        Cancelling it cancels the calls in flight and leaves nothing behind. (A backend that can only block cannot be
        stopped: its call runs on in a thread of its own, which nothing waits for.) To read what was verified by then,
        keep the run: ``run = guard.start(...)`` and ``await guard.adrive(run)``.
        """
        return await self.adrive(self.start(procedure, inputs, run_id=run_id))

    def map(
        self,
        procedure: Procedure,
        inputs: Iterable[Mapping[str, object]],
        *,
        concurrency: int = 16,
        ordered: bool = True,
        key: RowKey | None = None,
        run_id: str | None = None,
    ) -> Iterator[RowResult]:
        """Run a procedure on many inputs, several at a time, and yield the outcome of each.

        Inputs are read when there is room for them, at most eight rows for each run at a time before the oldest result
        is taken, so that neither they nor the results are ever held as a whole. A row that cannot be run, or whose run
        fails, costs no other: its `RowResult` says why. Runs are driven in a thread of their own, inputs are read in
        the caller's. Where the iteration is given up, the runs under way are cancelled.

        Args:
            procedure: what to run.
            inputs: the inputs of each run: an iterable of mappings, read lazily, or a DataFrame, whose empty cells
                count as not given and whose index is the key.
            concurrency: how many runs are under way at a time. What the endpoint bears is found out besides (see
                `stepguard.backends.limiter`).
            ordered: give results in the order of the inputs; False gives each as it comes.
            key: what a result calls its row (`RowResult.key`): the name of a field of the row, which need not be an
                input of the procedure, or a function of the row.
            run_id: the name of the batch in the guard's `ledger`: each row is a run ``run_id/key`` there (or its
                number, without a `key`), and is continued where it was begun before; see `run`.

        Raises:
            ConfigError: an argument cannot work; while iterating: the backend is not set up, so that no row can run.
        """
        from stepguard.guard.mapping import map_rows, rows_of

        run, batch = self._batch(procedure, run_id, concurrency=concurrency, ordered=ordered, key=key)
        rows = rows_of(inputs)
        if not isinstance(rows, Iterable):
            raise ConfigError("inputs that are awaited go with `guard.amap(...)`", option="inputs")
        return map_rows(batch, rows, run, self._backend, concurrency)

    def amap(
        self,
        procedure: Procedure,
        inputs: Iterable[Mapping[str, object]] | AsyncIterable[Mapping[str, object]],
        *,
        concurrency: int = 16,
        ordered: bool = True,
        key: RowKey | None = None,
        run_id: str | None = None,
    ) -> AsyncIterator[RowResult]:
        """As `map`, on the running event loop: ``async for row in guard.amap(procedure, rows)``.

        The inputs may be an async iterable. Leaving the loop early cancels the runs under way; where something else
        holds the iterator, close it (`contextlib.aclosing`).
        """
        from stepguard.guard.mapping import amap_rows, rows_of

        run, batch = self._batch(procedure, run_id, concurrency=concurrency, ordered=ordered, key=key)
        return amap_rows(batch, rows_of(inputs), run, self._backend, concurrency)

    def _batch(
        self, procedure: Procedure, run_id: str | None, **options: Any
    ) -> tuple[Callable[[BatchRow], Awaitable[Result]], Batch]:
        from stepguard.engine.batch import Batch

        check_kept(run_id, kept=self._ledger is not None)
        run_id = run_name(run_id, kept=self._ledger is not None)
        seed = new_seed() if self._options.seed is None else self._options.seed

        async def run(row: BatchRow) -> Result:
            name = None if run_id is None else f"{run_id}/{row.index if row.key is None else row.key}"
            try:
                # The key comes from the row: one that names no run costs that row alone.
                check_kept(name, kept=True)
            except ConfigError as error:
                raise InputError(f"the key of the row cannot name a run: {error}") from None
            return await self.adrive(self._start(procedure, row.inputs, _seed_of(seed, row.index), run_id=name))

        return run, Batch(procedure, **options)

    def drive(
        self, run: Run, *, stopped: Callable[[], bool] | None = None, asking: Callable[[Ask], None] | None = None
    ) -> Result:
        """Drive a run that `start` made to its end.

        Args:
            run: the run.
            stopped: whether it is to be cancelled, asked before each model call, each wait and each call of a tool, of
                which none is ever cut off.
            asking: called before each model call, which waits until it returns.

        Where this is interrupted (by KeyboardInterrupt, say) the run is cancelled: `Run.values` and `Run.result` hold
        what was verified and spent.

        Raises:
            UsageError: actions of the run are outstanding that this call was not given.
            ConfigError: the backend can only be awaited; use `adrive`.
        """
        return drive(run, self._sync_backend(), self._observers, stopped=stopped, asking=asking)

    async def adrive(self, run: Run) -> Result:
        """Drive a run that `start` made to its end without blocking the event loop; see `drive`."""
        return await adrive(run, self._backend, self._observers, self._writers)

    def _sync_backend(self) -> SyncBackend:
        policy = self._settings.repair
        # Checked before a run begins: an async rung would otherwise show only once a step has failed.
        for rung in policy.rungs if isinstance(policy, Ladder) else ():
            if rung.backend is not None:
                as_sync(rung.backend, f"the rung {rung.name} can only be awaited")
        for fallback in self._settings.fallbacks:
            as_sync(fallback, "a fallback can only be awaited")
        return as_sync(self._backend, "this backend can only be awaited")


def _writers() -> Executor:
    """Threads that write and wait for the disk: as many as may wait for one sync, and not as there are processors."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(_WRITERS, thread_name_prefix="stepguard ledger")


def _seed_of(seed: int, index: int) -> int:
    """The seed of a row: with one for all, the runs that an endpoint slows down would all come back at once."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{index}".encode()).digest()[:4], "big")
