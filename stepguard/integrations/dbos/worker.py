"""A worker process, which carries out the runs of a queue."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from hashlib import blake2b
from typing import Final

from stepguard.backends.base import endpoint_of
from stepguard.core.arguments import check_count, check_instance, check_run_id, check_seconds
from stepguard.engine.actions import Ask
from stepguard.errors import ConfigError, LedgerError, RunConflict
from stepguard.guard.guard import Guard
from stepguard.integrations.dbos.jobs import (
    ACTIVE,
    USUAL_PRIORITY,
    VERSION,
    WORKFLOW,
    Jobs,
    explained,
    load_dbos,
    number_of,
    one_line,
    queues_of,
)
from stepguard.ledger import Ledger
from stepguard.ledger.rates import check_rate
from stepguard.procedure.procedure import Procedure, check_procedure

_AGAIN_SECONDS: Final = 15.0
"""When to retry a run whose ledger did not answer, or that another process was driving."""
_UNCLAIMED_SECONDS: Final = 15.0
"""When a run that was begun for a queue but is in none counts as left by a process that died in between."""
_log = logging.getLogger("stepguard")
_alone: Final = threading.Lock()
"""DBOS is one for each process, and so is its worker."""


class Worker:
    """Carries out the runs of a queue, several at a time, in this process; one for each process.

    Args:
        guard: how they are run, with the `ledger` that all workers and `Jobs` share.
        procedures: those that a ledger does not hold whole: with functions, tools or checks of one's own.
        queue: the queue.
        runs: how many runs this worker carries out at a time.
        total: how many all workers of the queue may carry out at a time; None: no limit.
        rate: how many calls may be made of one endpoint, over all workers that share the ledger, in how many seconds;
            they are spread evenly. The guard's model, each fallback and each other model of its ladder is an endpoint
            by itself; one that is to have another rate is given as a `stepguard.ledger.RatedBackend`. None: no limit.
        poll: how often it is looked, in seconds, whether there is something to do, and whether another worker is dead.

    Raises:
        MissingExtraError: DBOS is not installed.
        ConfigError: an argument cannot work, or this process has a worker already.
        LedgerError: the ledger, or the database of the queue, cannot be opened.
    """

    def __init__(
        self,
        guard: Guard,
        procedures: Iterable[Procedure] = (),
        *,
        queue: str = "stepguard",
        runs: int = 8,
        total: int | None = None,
        rate: tuple[int, float] | None = None,
        poll: float = 1.0,
    ) -> None:
        self._library: Final = load_dbos()
        check_instance(guard, Guard, "guard", what="a Guard with a ledger")
        if guard.ledger is None:
            raise ConfigError("a worker needs a guard with a ledger: Guard(..., ledger=...)", option="guard")
        check_run_id(queue, "queue")
        check_count(runs, "runs")
        check_count(total, "total", optional=True)
        check_seconds(poll, "poll", positive=True)
        if rate is not None:
            check_rate(rate)
        if total is not None and total < runs:
            runs = total
        self.name: Final = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._guard: Final = guard
        self._ledger: Final[Ledger] = guard.ledger
        self._procedures: Final = tuple(procedures)
        for each in self._procedures:
            check_procedure(each)
        self._queue: Final = queue
        self._limits: Final = {"worker_concurrency": runs, "global_concurrency": total, "polling_interval_sec": poll}
        self._poll: Final = poll
        self._rate: Final = rate
        self._turns: Final[dict[str, threading.Lock]] = {}
        self._claimed = 0
        self._cancelled: Final[set[str]] = set()
        self._driven: Final[set[str]] = set()
        self._ending: Final = threading.Event()
        self._looking: threading.Thread | None = None
        self._jobs: Jobs | None = None

    def start(self) -> None:
        """Begin to carry out runs, in threads of this process.

        Raises:
            ConfigError: this process has a worker already.
            LedgerError: the database of the queue cannot be opened.
        """
        dbos = self._library.DBOS
        if not _alone.acquire(blocking=False):
            raise ConfigError("this process has a worker already: start one for each process")
        try:
            self._jobs = Jobs(self._ledger)
            # The database frees the lock when this process dies, which is how the others learn of it.
            self._ledger.file.take(_lock_of(self.name))
            url, schema = queues_of(self._ledger)
            dbos(
                config={
                    "name": "stepguard",
                    "system_database_url": url,
                    "dbos_system_schema": schema,
                    "application_version": VERSION,
                    "executor_id": self.name,
                    "log_level": "ERROR",
                }
            )
            # Without steps of DBOS: carried out again it goes on from the ledger, which knows more than a result.
            portable = self._library.WorkflowSerializationFormat.PORTABLE
            dbos.workflow(name=WORKFLOW, serialization_type=portable)(self._workflow())
            dbos.listen_queues([self._queue])
            with explained(self._ledger.path):
                dbos.launch()
                dbos.register_queue(self._queue, on_conflict="always_update", **self._limits)
        except BaseException:
            self.stop()
            raise
        self._looking = threading.Thread(target=self._look, name="stepguard worker", daemon=True)
        self._looking.start()

    def serve(self, *, seconds: int = 30) -> None:
        """Carry out runs until SIGINT or SIGTERM, then give those under way so many seconds to end.

        Where one has not ended by then, the process should: another worker goes on with it.

        Raises ConfigError, LedgerError: as `start`.
        """
        ended = threading.Event()
        before = {each: signal.signal(each, lambda *_: ended.set()) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            self.start()
            while not ended.wait(1.0):  # without a time a signal would not be noticed on Windows
                pass
            self.stop(seconds=seconds)
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    @property
    def driving(self) -> bool:
        """Whether a run is under way in this process."""
        return bool(self._driven)

    def stop(self, *, seconds: int = 0) -> None:
        """Take no more runs, and give those under way so many seconds; another worker goes on with what is left."""
        self._ending.set()
        with suppress(Exception):
            self._library.DBOS.destroy(workflow_completion_timeout_sec=seconds, destroy_registry=True)
        if self._looking is not None:
            self._looking.join()
        if self._jobs is not None:
            self._jobs.close()
            self._jobs = None
        self._ledger.file.free(_lock_of(self.name))
        if _alone.locked():
            _alone.release()

    def _workflow(self) -> Callable[[str, int], str]:
        def run(run_id: str, number: int) -> str:
            workflow = f"{run_id}#{number}"
            self._driven.add(workflow)
            try:
                return self._drive(run_id, number, workflow)
            finally:
                self._driven.discard(workflow)
                self._cancelled.discard(workflow)

        return run

    def _drive(self, run_id: str, number: int, workflow: str) -> str:
        """Carry a run on as far as it goes; its status."""
        try:
            procedure, inputs = self._ledger.queued(run_id, self._procedures)
            run = self._guard.start(procedure, inputs, run_id=run_id)
            cancelled = lambda: workflow in self._cancelled  # noqa: E731
            result = self._guard.drive(run, stopped=cancelled, asking=lambda ask: self._wait_for_turn(ask, cancelled))
        except RunConflict as conflict:
            if not conflict.under_way:
                raise
            return self._again(run_id, number, workflow, str(conflict))
        except LedgerError as error:
            return self._again(run_id, number, workflow, str(error))
        if isinstance(result.error, LedgerError):
            return self._again(run_id, number, workflow, str(result.error))
        return result.status

    def _wait_for_turn(self, ask: Ask, cancelled: Callable[[], bool]) -> None:
        """Wait until the model may be called; of each endpoint one thread of a worker asks for that at a time."""
        endpoint = endpoint_of(self._guard.backend if ask.backend is None else ask.backend)
        if self._rate is None or not endpoint:
            return
        calls, seconds = self._rate
        turns = self._turns.setdefault(endpoint, threading.Lock())
        while not cancelled():
            if self._ending.is_set():
                raise LedgerError("this worker ends")
            # With a timeout, so that a cancelled run or an ending worker is noticed while it waits.
            if not turns.acquire(timeout=1.0):
                continue
            try:
                wait = self._ledger.take_turn(endpoint, calls=calls, seconds=seconds)
                if not wait:
                    return
                self._ending.wait(min(wait, 1.0))
            finally:
                turns.release()

    def _again(self, run_id: str, number: int, workflow: str, reason: str) -> str:
        """Have the run tried once more in a while."""
        _log.warning("the run %r is tried again in %g seconds: %s", run_id, _AGAIN_SECONDS, reason)
        assert self._jobs is not None
        job = self._jobs.job(run_id)
        priority = USUAL_PRIORITY if job is None else job.priority
        if workflow not in self._cancelled:
            self._jobs._next(run_id, self._queue, priority, after=number, delay=_AGAIN_SECONDS)
        return "again"

    def _look(self) -> None:
        while not self._ending.wait(self._poll):
            try:
                self._look_once()
            except Exception as error:  # noqa: BLE001 - the next look may fare better
                if not self._ending.is_set():
                    _log.warning("the queue %r could not be looked at: %s", self._queue, one_line(error))

    def _look_once(self) -> None:
        """See which runs were answered, which were cancelled, and which belong to workers that are dead."""
        jobs = self._jobs
        if jobs is None:
            return
        for run_id in self._ledger.answered():
            newest = jobs._newest(run_id)
            if newest is not None and newest.queue_name == self._queue and newest.status not in ACTIVE:
                jobs._next(run_id, self._queue, newest.priority, after=number_of(newest))
        if driven := [*self._driven]:
            gone = jobs._client.list_workflows(workflow_ids=driven, status="CANCELLED", load_input=False)
            self._cancelled.update(each.workflow_id for each in gone)
        pending = jobs._client.list_workflows(status="PENDING", load_input=False, load_output=False)
        workers = {each.executor_id for each in pending} - {self.name, None}
        locks = {_lock_of(each): each for each in workers}
        held = self._ledger.file.held(locks)
        if dead := {name for lock, name in locks.items() if lock not in held}:
            _log.warning("what %s left is queued again", ", ".join(sorted(dead)))
            for each in pending:
                if each.executor_id in dead:
                    jobs._take_over(each)
        if left := self._ledger.unclaimed(after=self._claimed, seconds=_UNCLAIMED_SECONDS):
            jobs._claim(each for each in left if each[2] == self._queue)
            self._claimed = left[-1][0]


def _lock_of(worker: str) -> int:
    """The number of a worker's lock in the ledger, far above the numbers of all runs."""
    return 2**61 + int.from_bytes(blake2b(worker.encode(), digest_size=7).digest())
