"""Runs on many machines: `Jobs` queues them, a `Worker` on each machine carries them out (extra ``dbos``).

::

    guard = Guard("openai/gpt-4.1-mini", ledger="postgresql://stepguard@db/work")
    Worker(guard, [refund], runs=8, rate=(60, 60.0)).serve()          # on each machine, or ``stepguard worker``

    with Jobs("postgresql://stepguard@db/work") as jobs:              # anywhere, or ``stepguard enqueue``
        jobs.enqueue(refund, {"price": 70, "fee": 8}, run_id="refund 17", priority=2)

Queues, priorities, rates and what becomes of the workflows of a dead process are DBOS's. One of its workflows drives
one run from where the ledger says that it stands, to its end or until it waits for a person; no worker is held then,
and when the answer comes, by whatever way, the next workflow of the run is queued. Its workflows hold the name of a run
and nothing else: inputs, values and answers are in the ledger alone.

Every worker holds a lock in the ledger that is free when its process is gone. What DBOS knows to be under way on a
worker whose lock is free is handed to DBOS to be queued again.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from stepguard.core.arguments import check_count, check_instance, check_run_id, check_seconds
from stepguard.errors import ConfigError, LedgerError, MissingExtraError, RunConflict, StepguardError
from stepguard.guard.guard import Guard
from stepguard.ledger import Ledger
from stepguard.procedure.procedure import Procedure, check_procedure

__all__ = ["Jobs", "QueuedRun", "Worker"]

_WORKFLOW: Final = "stepguard.run"
_VERSION: Final = "1"
"""That of the workflow, not of stepguard: workers of several versions share a queue, and the ledger says what fits."""
_USUAL: Final = 100
"""The priority of a run of which nothing is said."""
_ACTIVE: Final = ("ENQUEUED", "DELAYED", "PENDING")
_AGAIN_SECONDS: Final = 15.0
"""After what time a run is tried again whose ledger did not answer, or that somebody else was driving."""
_RECOVERIES: Final = 1_000
"""So often a run is taken over before it counts as one that kills its workers."""
_log = logging.getLogger("stepguard")


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """A run in a queue.

    Attributes:
        run_id: its name.
        status: that of DBOS for its newest workflow: ``ENQUEUED``, ``DELAYED``, ``PENDING`` while a worker drives it,
            ``SUCCESS`` where it has ended or waits for a person, ``ERROR`` where it could not be driven, ``CANCELLED``,
            or ``MAX_RECOVERY_ATTEMPTS_EXCEEDED`` where it has killed very many workers.
        worker: the worker that drives or drove it; None before the first.
        queue: the name of its queue.
        priority: 1 comes first.
        error: why it could not be driven.
    """

    run_id: str
    status: str
    worker: str | None
    queue: str
    priority: int
    error: str | None


class Jobs:
    """Runs in queues, for those who want them done; it carries out none.

    Args:
        ledger: the ledger of the runs: an address of Postgres, or the path of a file for workers on one machine. The
            queues are beside it: in the same database in a schema whose name ends with ``_queue``, or in a file whose
            name does.

    Raises:
        MissingExtraError: DBOS is not installed.
        LedgerError: the ledger, or the database of the queues, cannot be opened.
    """

    def __init__(self, ledger: str | Path | Ledger) -> None:
        self._dbos: Final = _library()
        check_instance(ledger, (str, Path, Ledger), "ledger", what="the path of a file, an address, or a Ledger")
        self._own: Final = not isinstance(ledger, Ledger)
        self.ledger: Final = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        url, schema = _queues_of(self.ledger)
        try:
            self._dbos.DBOS.migrate(url, schema=schema)
            self._client: Final = self._dbos.DBOSClient(
                system_database_url=url,
                dbos_system_schema=schema,
                application_name="stepguard",
                retry_connection_errors=False,
            )
        except Exception as error:
            self.close()
            raise LedgerError(
                f"the queues beside the ledger {self.ledger.path} cannot be opened: {_text(error)}"
            ) from error

    def enqueue(
        self,
        procedure: Procedure,
        inputs: Mapping[str, object] | None = None,
        *,
        run_id: str,
        queue: str = "stepguard",
        priority: int = _USUAL,
    ) -> None:
        """Have a run done. The same again does nothing while it is queued or under way; otherwise it is gone on with.

        Args:
            procedure: what to run. Its text is kept in the ledger; a worker needs its functions, tools and own checks.
            inputs: the values of its inputs.
            run_id: its name in the ledger.
            queue: which workers are to do it, by the endpoint that they ask, say.
            priority: from 1, which comes first.

        Raises:
            InputError: the inputs do not fit the procedure.
            ConfigError: an argument cannot work.
            RunConflict: a run of this name was begun with another procedure or other inputs, or was erased.
            LedgerError: the ledger or the queue cannot be reached: whether it is queued shows when it is tried again.
        """
        check_procedure(procedure)
        check_run_id(queue, "queue")
        if isinstance(priority, bool) or not isinstance(priority, int) or not 1 <= priority < 2**31:
            raise ConfigError(f"priority is a whole number from 1 on, not {priority!r:.60}", option="priority")
        new = self.ledger.queue(procedure, procedure.accept_inputs(inputs or {}), run_id=run_id)
        newest = None if new else self._newest(run_id)
        if newest is None or newest.status not in _ACTIVE:
            self._next(run_id, queue, priority, after=0 if newest is None else _number(newest))

    def job(self, run_id: str) -> QueuedRun | None:
        """A run as the queues know it; None where it was never queued."""
        newest = self._newest(run_id)
        if newest is None:
            return None
        error = None if newest.error is None else _text(newest.error)
        return QueuedRun(run_id, newest.status, newest.executor_id, newest.queue_name, newest.priority, error)

    def cancel(self, run_id: str) -> bool:
        """Take a run out of the queue, or have its worker end it before its next model call or call of a tool.

        Returns:
            Whether it was queued or under way. One that waits for a person is neither: leave it unanswered.
        """
        newest = self._newest(run_id)
        if newest is None or newest.status not in _ACTIVE:
            return False
        with self._explained():
            self._client.cancel_workflow(newest.workflow_id)
        return True

    def forget(self, run_ids: Iterable[str]) -> None:
        """Take what the queues know of runs out of them, their names that is; `Ledger.erase` does the rest."""
        with self._explained():
            for run_id in run_ids:
                self._client.delete_workflows([each.workflow_id for each in self._workflows(run_id)])

    def close(self) -> None:
        """Close the connections."""
        if (client := getattr(self, "_client", None)) is not None:
            client.destroy()
        if self._own:
            self.ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _next(self, run_id: str, queue: str, priority: int, *, after: int, delay: float = 0.0) -> None:
        """Queue the workflow of a run behind one; whoever does it at the same time queues the same one."""
        options: dict[str, Any] = {
            "workflow_name": _WORKFLOW,
            "workflow_id": f"{run_id}#{after + 1}",
            "queue_name": queue,
            "priority": priority,
            "app_version": _VERSION,
            "serialization_type": self._dbos.WorkflowSerializationFormat.PORTABLE,
        }
        if delay:
            options["delay_seconds"] = delay
        with self._explained():
            self._client.enqueue(options, run_id, after + 1)

    def _workflows(self, run_id: str) -> list[Any]:
        with self._explained():
            rows = self._client.list_workflows(workflow_id_prefix=f"{run_id}#", load_input=False)
            return [each for each in rows if each.workflow_id.rpartition("#")[0] == run_id]

    def _newest(self, run_id: str) -> Any:
        return max(self._workflows(run_id), key=_number, default=None)

    def _explained(self) -> _Explained:
        return _Explained(self.ledger.path)


class Worker:
    """Carries out the runs of a queue, several at a time, in this process; one for each process.

    Args:
        guard: how they are run, with the `ledger` that all workers and `Jobs` share.
        procedures: those that a ledger does not hold whole: with functions, tools or checks of one's own.
        queue: the queue. One for each endpoint keeps the limits below for that endpoint.
        runs: how many runs this worker carries out at a time.
        total: how many all workers of the queue may carry out at a time; None: no limit.
        rate: how many runs may begin, over all workers, in how many seconds; None: no limit.
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
        self._library: Final = _library()
        check_instance(guard, Guard, "guard", what="a Guard with a ledger")
        if guard.ledger is None:
            raise ConfigError("a worker needs a guard with a ledger: Guard(..., ledger=...)", option="guard")
        check_run_id(queue, "queue")
        check_count(runs, "runs")
        check_count(total, "total", optional=True)
        check_seconds(poll, "poll", positive=True)
        if rate is not None:
            check_instance(rate, tuple, "rate", what="a number of runs and of seconds")
            check_count(rate[0], "rate")
            check_seconds(rate[1], "rate", positive=True)
        if total is not None and total < runs:
            runs = total
        self.name: Final = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._guard: Final = guard
        self._ledger: Final[Ledger] = guard.ledger
        self._procedures: Final = tuple(procedures)
        for each in self._procedures:
            check_procedure(each)
        self._queue: Final = queue
        self._limits: Final = {
            "worker_concurrency": runs,
            "global_concurrency": total,
            "limiter": None if rate is None else {"limit": rate[0], "period": rate[1]},
            "polling_interval_sec": poll,
        }
        self._poll: Final = poll
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
            self._ledger.file.take(_lock_of(self.name))
            url, schema = _queues_of(self._ledger)
            dbos(
                config={
                    "name": "stepguard",
                    "system_database_url": url,
                    "dbos_system_schema": schema,
                    "application_version": _VERSION,
                    "executor_id": self.name,
                    "log_level": "ERROR",
                }
            )
            # Without steps of DBOS: carried out again it goes on from the ledger, which knows more than a result.
            portable = self._library.WorkflowSerializationFormat.PORTABLE
            dbos.workflow(name=_WORKFLOW, max_recovery_attempts=_RECOVERIES, serialization_type=portable)(
                self._workflow()
            )
            dbos.listen_queues([self._queue])
            with _Explained(self._ledger.path):
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

        Raises:
            ConfigError, LedgerError: as `start`.
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
            result = self._guard.drive(run, stopped=lambda: workflow in self._cancelled)
        except RunConflict as conflict:
            if not conflict.under_way:
                raise
            return self._again(run_id, number, workflow, str(conflict))
        except LedgerError as error:
            return self._again(run_id, number, workflow, str(error))
        if isinstance(result.error, LedgerError):
            return self._again(run_id, number, workflow, str(result.error))
        return result.status

    def _again(self, run_id: str, number: int, workflow: str, reason: str) -> str:
        """Have the run tried once more in a while."""
        _log.warning("the run %r is tried again in %g seconds: %s", run_id, _AGAIN_SECONDS, reason)
        assert self._jobs is not None
        job = self._jobs.job(run_id)
        priority = _USUAL if job is None else job.priority
        if workflow not in self._cancelled:
            self._jobs._next(run_id, self._queue, priority, after=number, delay=_AGAIN_SECONDS)
        return "again"

    def _look(self) -> None:
        while not self._ending.wait(self._poll):
            try:
                self._look_once()
            except Exception as error:  # noqa: BLE001 - the next look may fare better
                if not self._ending.is_set():
                    _log.warning("the queue %r could not be looked at: %s", self._queue, _text(error))

    def _look_once(self) -> None:
        """See which runs were answered, which were cancelled, and which belong to workers that are dead."""
        jobs = self._jobs
        if jobs is None:
            return
        for run_id in self._ledger.answered():
            newest = jobs._newest(run_id)
            if newest is not None and newest.queue_name == self._queue and newest.status not in _ACTIVE:
                jobs._next(run_id, self._queue, newest.priority, after=_number(newest))
        if driven := [*self._driven]:
            gone = jobs._client.list_workflows(workflow_ids=driven, status="CANCELLED", load_input=False)
            self._cancelled.update(each.workflow_id for each in gone)
        pending = jobs._client.list_workflows(status="PENDING", load_input=False, load_output=False)
        workers = {each.executor_id for each in pending} - {self.name, None}
        locks = {_lock_of(each): each for each in workers}
        held = self._ledger.file.held(locks)
        if dead := [name for lock, name in locks.items() if lock not in held]:
            _log.warning("what %s left is queued again", ", ".join(sorted(dead)))
            self._library.DBOS._recover_pending_workflows(dead)


_alone: Final = threading.Lock()


class _Explained:
    """Whatever goes wrong with the database of the queues is an error of the ledger that they are beside."""

    def __init__(self, path: str) -> None:
        self._path: Final = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, Exception) and not isinstance(error, StepguardError):
            raise LedgerError(f"the queues beside the ledger {self._path}: {_text(error)}") from error


def _library() -> Any:
    try:
        return import_module("dbos")
    except ImportError:
        raise MissingExtraError("a worker, or a queue for one,", extra="dbos") from None


def _queues_of(ledger: Ledger) -> tuple[str, str]:
    """The database of DBOS that is beside a ledger, and its schema there."""
    address = ledger.address
    if "://" not in address:
        return f"sqlite:///{Path(address).absolute()}_queue", "stepguard_queue"
    parts = urlsplit(address)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    schema = options.pop("schema", "stepguard")
    return parts._replace(scheme="postgresql", query=urlencode(options)).geturl(), f"{schema}_queue"


def _lock_of(worker: str) -> int:
    """The lock of a worker in the ledger, far behind those of all runs."""
    return 2**61 + int.from_bytes(blake2b(worker.encode(), digest_size=7).digest())


def _number(workflow: Any) -> int:
    return int(workflow.workflow_id.rpartition("#")[2])


def _text(error: BaseException) -> str:
    """What went wrong, in one line, without the statement and its values."""
    text = str(getattr(error, "orig", None) or error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"
