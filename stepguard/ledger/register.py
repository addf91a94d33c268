"""The register of a ledger: which runs there are, of what each is, and who may write it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from stepguard.errors import ConfigError, ProcedureError, RunConflict, StepguardError
from stepguard.ledger.changes import RunChange
from stepguard.ledger.journal import KeptRun, load_run
from stepguard.ledger.procedures import operation_facts, procedure_digest, procedure_source, read_procedure
from stepguard.ledger.records import as_json, now_text, storable
from stepguard.ledger.store import LedgerStore, Transaction
from stepguard.ledger.summaries import KeptStatus
from stepguard.ledger.writer import RunWriter
from stepguard.procedure.procedure import Procedure


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run that is there already."""

    name: str
    number: int
    salt: bytes
    epoch: int
    procedure: str


@dataclass(frozen=True, slots=True)
class RunSubject:
    """What a run is of: a procedure or a policy."""

    digest: str
    title: str
    source: str | None
    operations: str
    total: int | None


class RunRegister:
    """Begins and continues runs, each with one writer."""

    def __init__(self, file: LedgerStore, *, full_sync: bool) -> None:
        self._file: Final = file
        self._full_sync: Final = full_sync
        self._last: tuple[Procedure, RunSubject] | None = None

    def subject(self, procedure: Procedure) -> RunSubject:
        """A procedure as it is kept, worked out once for many runs of one."""
        known = self._last
        if known is None or known[0] is not procedure:
            source, operations = procedure_source(procedure), operation_facts(procedure)
            total = len(procedure) if procedure.straight else None
            subject = RunSubject(procedure_digest(procedure), procedure.name, source, operations, total)
            known = self._last = procedure, subject
        return known[1]

    def row(self, run_id: str) -> RunRow | None:
        """The run of a name, None where there is none.

        Raises:
            RunConflict: it was erased.
            LedgerError: it cannot be read.
        """
        rows = self._file.read("select number, salt, epoch, procedure from runs where name = ?", run_id)
        if not rows:
            return None
        if rows[0][1] is None:
            raise RunConflict(f"{self._named(run_id)} was erased: use another run_id")
        return RunRow(run_id, *rows[0])

    def begin(self, run_id: str, subject: RunSubject, status: KeptStatus, **facts: object) -> RunWriter:
        """Begin a run.

        Raises:
            RunConflict: somebody has just begun it.
            LedgerError: it cannot be written.
        """
        # Salted: of what is erased the digest stays, by which a body could be guessed otherwise.
        salt, number, started = os.urandom(16), 0, time.time()
        listed = {"title": storable(subject.title), "total": subject.total, "started": started}
        begin = [("begin", _begin_record(run_id, subject.digest, 1, **listed, **facts))]
        try:
            with self._file.writing() as transaction:  # the sync of the first step, or call of a tool, is one of this
                created = self._create(transaction, subject, run_id, salt, status, started)
                transaction.append(created, salt, begin)
                # Before the transaction ends: a run that others see without a lock is listed as interrupted.
                self._take(created, run_id)
                number = created
        except BaseException:
            self._file.free(number)  # it was not written: another run may have this number
            raise
        return self._writer(run_id, number, salt, 1)

    def go_on(
        self, row: RunRow, status: KeptStatus, check: Callable[[KeptRun], None], **facts: object
    ) -> tuple[RunWriter, KeptRun]:
        """Continue a run, unless `check` raises on what is kept of it; the others are as `begin` takes them.

        Raises:
            RunConflict: it is under way.
            LedgerError: it cannot be read or written.
        """
        # The lock first: what is read behind it is all that the last writer left.
        self._take(row.number, row.name)
        try:
            kept, epoch = load_run(self._file, row.number), row.epoch + 1
            check(kept)
            with self._file.writing() as transaction:
                # By its epoch as well: on a network file system the locks of other machines may not be seen.
                sql = "update runs set epoch = ?, status = ?, updated = ? where number = ? and epoch = ?"
                if not transaction.execute(sql, epoch, status, time.time(), row.number, row.epoch).rowcount:
                    what = f"another process has just gone on with {self._named(row.name)}"
                    raise RunConflict(what, under_way=True)
                record = _begin_record(row.name, row.procedure, epoch, **facts)
                transaction.append(row.number, row.salt, [("begin", record)])
        except BaseException:
            self._file.free(row.number)
            raise
        return self._writer(row.name, row.number, row.salt, epoch), kept

    def _writer(self, run_id: str, number: int, salt: bytes, epoch: int) -> RunWriter:
        return RunWriter(self._file, run=number, name=run_id, salt=salt, epoch=epoch, full_sync=self._full_sync)

    def _create(
        self,
        transaction: Transaction,
        subject: RunSubject,
        run_id: str,
        salt: bytes,
        status: KeptStatus,
        started: float,
    ) -> int:
        title = storable(subject.title)
        transaction.execute(
            "insert into procedures values (?, ?, ?, ?) on conflict (digest) do nothing",
            *(subject.digest, title, subject.source, subject.operations),
        )
        ((number,),) = transaction.execute("select coalesce(max(number), 0) + 1 from runs").fetchall()
        made = transaction.execute(
            "insert into runs (number, name, salt, epoch, procedure, title, status, completed, total, calls, tokens,"
            " started, updated) values (?, ?, ?, 1, ?, ?, ?, 0, ?, 0, 0, ?, ?) on conflict (name) do nothing",
            *(number, run_id, salt, subject.digest, title, status, subject.total, started, started),
        )
        if not made.rowcount:
            raise RunConflict(f"another process has just begun {self._named(run_id)}", under_way=True)
        return int(number)

    def check_procedure(self, procedure: Procedure, row: RunRow) -> None:
        """Refuse another procedure than the run was begun with. A later version may write the same one otherwise."""
        subject = self.subject(procedure)
        if subject.digest == row.procedure:
            return
        rows = self._file.read("select source, operations from procedures where digest = ?", row.procedure)
        if rows and rows[0][0] is not None and rows[0][1] == subject.operations:
            with suppress(StepguardError):
                if read_procedure(*rows[0]) == procedure:
                    return
        raise RunConflict(
            f"{self._named(row.name)} was begun with another procedure than {procedure.name!r} as it is now "
            "(or other tools): go on with the one it was begun with, or use another run_id"
        )

    def check_inputs(self, kept: KeptRun, given: Mapping[str, object], run_id: str) -> None:
        """Refuse other inputs than the run was begun with."""
        odd = sorted(name for name in {*kept.inputs, *given} if kept.inputs.get(name) != given.get(name))
        if odd:
            what = f"{self._named(run_id)} was begun with other inputs ({', '.join(odd)})"
            raise RunConflict(f"{what}: use another run_id")

    def procedure(self, row: RunRow, procedures: Iterable[Procedure]) -> Procedure:
        """The procedure of a run, where it is among these or the ledger holds all of it.

        Raises:
            ConfigError: it is not, and none of these has its name.
            RunConflict: one of its name is another now.
        """
        rows = self._file.read(
            "select title, source, operations from runs join procedures on digest = procedure where number = ?",
            row.number,
        )
        title, source, operations = rows[0] if rows else ("", None, "[]")
        known = {self.subject(given).digest: given for given in procedures}
        if row.procedure in known:
            return known[row.procedure]
        if source is not None and operations == "[]":
            with suppress(ProcedureError):  # what the text does not hold, such as a check of one's own
                return read_procedure(source, operations)
        for candidate in known.values():
            if candidate.name == title:
                self.check_procedure(candidate, row)
                return candidate
        what = f"the procedure {title!r} of the run {row.name!r} has functions, tools or checks that are not known here"
        raise ConfigError(f"{what}: give it to the worker", option="procedures")

    def _take(self, number: int, run_id: str) -> None:
        if not self._file.take(number):
            raise RunConflict(
                f"{self._named(run_id)} is under way, here or elsewhere: only one may go on with it", under_way=True
            )

    @contextmanager
    def changing(self, run_id: str) -> Iterator[RunChange]:
        """What a person changes of a run, written when this is left.

        Raises:
            ConfigError: there is no such run.
            RunConflict: it is under way.
            LedgerError: it cannot be written.
        """
        rows = self._file.read("select number from runs where name = ?", run_id)
        if not rows:
            raise no_run(self._file, run_id)
        number = rows[0][0]
        self._take(number, run_id)
        try:
            with self._file.writing() as transaction:
                yield RunChange(self._file, transaction, number)
            self._file.sync()
        finally:
            self._file.free(number)

    def _named(self, run_id: str) -> str:
        return f"the run {run_id!r} of {self._file.path}"


def no_run(file: LedgerStore, run_id: str) -> ConfigError:
    """Says that a ledger has no run of a name."""
    return ConfigError(f"the ledger {file.path} has no run {run_id!r}", option="run_id")


def _begin_record(run_id: str, digest: str, epoch: int, **facts: object) -> str:
    """The body of a record that begins or continues a run: of what, and by which version of the checks."""
    about = {"run": run_id, "procedure": digest, "epoch": epoch, "checker": _checker(), "at": now_text()}
    return as_json({**about, **facts})


@cache
def _checker() -> str:
    try:
        return f"stepguard {version('stepguard')}"
    except PackageNotFoundError:
        return "stepguard"
