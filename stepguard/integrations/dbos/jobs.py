"""Queue runs with DBOS, and read their state from its workflows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from stepguard.core.arguments import check_instance, check_run_id, check_run_ids
from stepguard.core.closing import Closing
from stepguard.errors import ConfigError, LedgerError, MissingExtraError, StepguardError
from stepguard.ledger import Ledger
from stepguard.procedure.procedure import Procedure, check_procedure

WORKFLOW: Final = "stepguard.run"
VERSION: Final = "1"
"""The version of the workflow, not of stepguard: workers of different versions share a queue; the ledger decides."""
USUAL_PRIORITY: Final = 100
"""The default priority."""
_DEATHS: Final = 100
"""How many workers may die in a run before it is given up as their cause."""
ACTIVE: Final = ("ENQUEUED", "DELAYED", "PENDING")


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """A run in a queue.

    Attributes:
        run_id: its name.
        status: that of DBOS for its newest workflow: ``ENQUEUED``, ``DELAYED``, ``PENDING`` while a worker drives it,
            ``SUCCESS`` where it has ended or waits for a person, ``ERROR`` where it could not be driven, or
            ``CANCELLED``, as one is that has killed very many workers.
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


class Jobs(Closing):
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
        self._dbos: Final = load_dbos()
        check_instance(ledger, (str, Path, Ledger), "ledger", what="the path of a file, an address, or a Ledger")
        self._own: Final = not isinstance(ledger, Ledger)
        self.ledger: Final = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        url, schema = queues_of(self.ledger)
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
                f"the queues beside the ledger {self.ledger.path} cannot be opened: {one_line(error)}"
            ) from error

    def enqueue(
        self,
        procedure: Procedure,
        inputs: Mapping[str, object] | None = None,
        *,
        run_id: str,
        queue: str = "stepguard",
        priority: int = USUAL_PRIORITY,
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
        given = procedure.accept_inputs({} if inputs is None else inputs)
        # The ledger first: a process that dies here leaves a run that a worker claims, not a job without a run.
        new = self.ledger.queue(procedure, given, run_id=run_id, queue=queue, priority=priority)
        newest = None if new else self._newest(run_id)
        if newest is None or newest.status not in ACTIVE:
            self._next(run_id, queue, priority, after=0 if newest is None else number_of(newest))

    def job(self, run_id: str) -> QueuedRun | None:
        """A run as the queues know it; None where it was never queued."""
        newest = self._newest(run_id)
        if newest is None:
            return None
        error = None if newest.error is None else one_line(newest.error)
        return QueuedRun(run_id, newest.status, newest.executor_id, newest.queue_name, newest.priority, error)

    def cancel(self, run_id: str) -> bool:
        """Take a run out of the queue, or have its worker end it before its next model call or call of a tool.

        Returns:
            Whether it was queued or under way. One that waits for a person is neither: leave it unanswered.
        """
        newest = self._newest(run_id)
        if newest is None or newest.status not in ACTIVE:
            return False
        with explained(self.ledger.path):
            self._client.cancel_workflow(newest.workflow_id)
        return True

    def forget(self, run_ids: Iterable[str]) -> None:
        """Take what the queues know of runs out of them, their names that is; `Ledger.erase` does the rest."""
        check_run_ids(run_ids)
        with explained(self.ledger.path):
            for run_id in run_ids:
                self._client.delete_workflows([each.workflow_id for each in self._workflows(run_id)])

        url = queues_of(self.ledger)[0]
        if (file := url.removeprefix("sqlite:///")) != url:  # whose rows are gone, and not what they were written in
            with explained(self.ledger.path), closing(sqlite3.connect(file)) as connection:
                connection.execute("vacuum")
                connection.execute("pragma wal_checkpoint(truncate)").fetchone()

    def close(self) -> None:
        """Close the connections."""
        if (client := getattr(self, "_client", None)) is not None:
            client.destroy()
        if self._own:
            self.ledger.close()

    def _claim(self, left: Iterable[tuple[int, str, str, int]]) -> None:
        """Queue runs whose process died before it had; what `Ledger.unclaimed` gives of them."""
        first = {f"{run_id}#1": (run_id, queue, priority) for _, run_id, queue, priority in left}
        if not first:
            return
        with explained(self.ledger.path):
            rows = self._client.list_workflows(workflow_ids=[*first], load_input=False, load_output=False)
        for workflow in first.keys() - {each.workflow_id for each in rows}:
            self._next(*first[workflow], after=0)

    def _take_over(self, workflow: Any) -> None:
        """Queue a run anew whose worker is dead, behind the workflow that this one has left."""
        run_id = workflow.workflow_id.rpartition("#")[0]
        # Each dead worker leaves a cancelled workflow: a run that kills every process would go round for ever.
        left = sum(each.status == "CANCELLED" for each in self._workflows(run_id))
        if left < _DEATHS:
            self._next(run_id, workflow.queue_name, workflow.priority, after=number_of(workflow))
        with explained(self.ledger.path):  # behind the next one, so that it is not lost where this process dies here
            self._client.cancel_workflow(workflow.workflow_id)

    def _next(self, run_id: str, queue: str, priority: int, *, after: int, delay: float = 0.0) -> None:
        """Queue the workflow of a run behind one; whoever does it at the same time queues the same one."""
        options: dict[str, Any] = {
            "workflow_name": WORKFLOW,
            # Derived, not random: two workers that queue the same next workflow at once queue one.
            "workflow_id": f"{run_id}#{after + 1}",
            "queue_name": queue,
            "priority": priority,
            "app_version": VERSION,
            "serialization_type": self._dbos.WorkflowSerializationFormat.PORTABLE,
        }
        if delay:
            options["delay_seconds"] = delay
        with explained(self.ledger.path):
            self._client.enqueue(options, run_id, after + 1)

    def _workflows(self, run_id: str) -> list[Any]:
        with explained(self.ledger.path):
            rows = self._client.list_workflows(workflow_id_prefix=f"{run_id}#", load_input=False)
            return [each for each in rows if each.workflow_id.rpartition("#")[0] == run_id]

    def _newest(self, run_id: str) -> Any:
        return max(self._workflows(run_id), key=number_of, default=None)


def forget_queued(ledger: Ledger, run_ids: Iterable[str]) -> None:
    """Take what the queues beside a ledger know of runs out of them, where there are queues; see `Jobs.forget`."""
    url, schema = queues_of(ledger)
    if (file := url.removeprefix("sqlite:///")) != url:
        there = Path(file).exists()
    else:
        there = bool(ledger.file.read("select 1 from pg_namespace where nspname = ?", schema))
    if there:
        with Jobs(ledger) as jobs:
            jobs.forget(run_ids)


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Turn every error of the database of the queues into an error of the ledger beside it."""
    try:
        yield
    except StepguardError:
        raise
    except Exception as error:
        raise LedgerError(f"the queues beside the ledger {path}: {one_line(error)}") from error


def load_dbos() -> Any:
    """DBOS, imported when it is used."""
    try:
        return import_module("dbos")
    except ImportError:
        raise MissingExtraError("a worker, or a queue for one,", extra="dbos") from None


def queues_of(ledger: Ledger) -> tuple[str, str]:
    """The database of DBOS beside a ledger, and its schema there."""
    address = ledger.address
    if "://" not in address:
        return f"sqlite:///{Path(address).absolute()}_queue", "stepguard_queue"
    parts = urlsplit(address)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    schema = options.pop("schema", "stepguard")
    return parts._replace(scheme="postgresql", query=urlencode(options)).geturl(), f"{schema}_queue"


def number_of(workflow: Any) -> int:
    """Which workflow of its run it is, from 1."""
    return int(workflow.workflow_id.rpartition("#")[2])


def one_line(error: BaseException) -> str:
    """Describe an error in one line, without the SQL statement and its values."""
    text = str(getattr(error, "orig", None) or error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else ''}"
