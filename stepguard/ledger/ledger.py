"""`Ledger`: the durable record of runs in one file, and what people do with it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self, get_args

from stepguard.core.arguments import (
    check_flag,
    check_instance,
    check_one_of,
    check_run_id,
    check_run_ids,
    check_seconds,
)
from stepguard.errors import ConfigError, LedgerError, ProcedureError, RunConflict, StepguardError
from stepguard.language.value_json import from_data, to_data
from stepguard.language.values import Value
from stepguard.ledger.changes import RunChange, read_answer
from stepguard.ledger.journal import ConversationJournal, KeptRun, RunJournal, load_run
from stepguard.ledger.procedures import operation_facts, procedure_digest, procedure_source, read_procedure
from stepguard.ledger.records import as_json, call_record, now_text, storable
from stepguard.ledger.sqlite_file import LedgerFile
from stepguard.ledger.store import GENESIS, LedgerStore, Transaction
from stepguard.ledger.writer import RunWriter
from stepguard.policy.arguments import plain_data
from stepguard.policy.policy import Policy
from stepguard.procedure.procedure import Procedure
from stepguard.results import Status

__all__ = ["KEEPS", "KEPT_STATUSES", "Keep", "KeptStatus", "Ledger", "RunSummary"]

Keep = Literal["claims", "replies", "prompts"]
"""What is kept of a model call; each holds what stands before it as well."""
KEEPS: Final[tuple[Keep, ...]] = get_args(Keep)
"""Every `Keep`."""

KeptStatus = Status | Literal["queued", "running", "interrupted", "answered", "open", "erased"]
"""That of the result; ``queued`` where another process is to drive it, ``running`` while one does, ``interrupted``
where one was killed, ``answered`` where it waited and can go on, ``open`` for the conversation of a gate that nobody
drives, ``erased``."""
KEPT_STATUSES: Final[tuple[str, ...]] = tuple(each for part in get_args(KeptStatus) for each in get_args(part))
"""Every `KeptStatus`."""


@dataclass(frozen=True, slots=True)
class _RunRow:
    """A run that is there already."""

    number: int
    salt: bytes
    epoch: int
    procedure: str


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a run is of: a procedure or a policy."""

    digest: str
    title: str
    source: str | None
    operations: str
    total: int | None


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run of a ledger at a glance.

    Attributes:
        run_id: its name.
        procedure: the name of its procedure, or policy.
        status: how it ended or where it stands.
        completed: how many steps are durable; of a conversation, how many calls of tools were answered.
        total: how many there are; None where that is not known before its end.
        calls: model calls so far.
        tokens: tokens so far.
        place: the step at which it stopped or waits, or the last one that is durable; None before the first. Of a
            conversation, the tool that was called last.
        reason: why it stopped there; of one that waits, the question; of a conversation, why that call was not let
            through.
        started: when it was begun, in seconds since 1970 by the clock of that machine.
        updated: when it was last written to, likewise.
    """

    run_id: str
    procedure: str
    status: KeptStatus
    completed: int
    total: int | None
    calls: int
    tokens: int
    place: str | None
    reason: str | None
    started: float
    updated: float


class Ledger:
    """The durable record of runs: a file, which many processes may share on one machine, or a database for many.

    Give it to a guard: ``Guard(backend, ledger="runs.db")`` is ``Guard(backend, ledger=Ledger("runs.db"))``.

    Args:
        path: the SQLite file, made where it is not there. Beside it stand what SQLite writes first (``-wal``, ``-shm``)
            and the locks of the runs (``-locks``). Or the address of a Postgres database, as libpq has it
            (``postgresql://user@host/database``; extra ``postgres``), in which the schema ``stepguard`` is made, or
            that which ``?schema=`` names. A password may stand in it, in ``PGPASSWORD`` or in ``~/.pgpass``.
        keep: ``"claims"``, which are always kept; ``"replies"``, which keeps the texts of replies as well; or
            ``"prompts"``, which keeps those and every message that was sent. They are part of the records, and go with
            the run when it is erased. What looks like a key is taken out of both.
        full_sync: have steps, calls of tools and answers survive a loss of power, and not only the death of the
            process; it costs a sync of the disk for each segment.
        read_only: only read; the file must be there.

    Raises:
        LedgerError: the file is no ledger, is damaged, or of a later version of stepguard; or it cannot be opened.
        ConfigError: an argument cannot work.
        MissingExtraError: it is a Postgres database, and psycopg is not installed.
    """

    def __init__(
        self, path: str | Path, *, keep: Keep = "claims", full_sync: bool = True, read_only: bool = False
    ) -> None:
        check_instance(path, (str, Path), "ledger", what="the path of a file")
        for name, flag in (("full_sync", full_sync), ("read_only", read_only)):
            check_flag(flag, name)
        check_one_of(keep, KEEPS, "keep")
        self._keep: Final = keep
        self._full_sync: Final = full_sync
        self.file: Final = _open(str(path), read_only=read_only)
        self.path: Final = self.file.path
        self.address: Final = str(path)
        self._last: tuple[Procedure, _Subject] | None = None

    def __repr__(self) -> str:
        return f"Ledger({self.path!r})"

    def open(self, procedure: Procedure, inputs: Mapping[str, Value], *, run_id: str) -> RunJournal:
        """Begin a run, or go on with one, as its only writer; `stepguard.Guard` does it.

        Raises:
            RunConflict: the run is under way, or was begun with another procedure or other inputs.
            LedgerError: the file cannot be read or written.
        """
        given = {name: to_data(value) for name, value in inputs.items()}
        row = self._row(run_id)
        if row is None:
            writer = self._begin(run_id, self._subject(procedure), "running", inputs=given)
            return self._journal(writer, KeptRun(inputs=given))
        self._check_procedure(procedure, row.procedure, run_id)
        writer, kept = self._go_on(run_id, row, "running", lambda kept: self._check_inputs(kept, given, run_id))
        return self._journal(writer, kept)

    def _journal(self, writer: RunWriter, kept: KeptRun) -> RunJournal:
        return RunJournal(writer, kept, replies=self._keep != "claims", prompts=self._keep == "prompts")

    def queue(
        self, procedure: Procedure, inputs: Mapping[str, Value], *, run_id: str, queue: str, priority: int
    ) -> bool:
        """Begin a run that another process is to drive; one that was begun so before is left as it is.

        Args:
            procedure: its procedure.
            inputs: its inputs, as `Procedure.accept_inputs` gives them.
            run_id: its name.
            queue: the queue into which it is put next, for whoever finds that this has not happened; see `unclaimed`.
            priority: its priority there.

        Returns:
            Whether it is new.

        Raises:
            ConfigError: `run_id` names nothing.
            RunConflict: the run was begun with another procedure or other inputs.
            LedgerError: it cannot be read or written.
        """
        check_run_id(run_id)
        given = {name: to_data(value) for name, value in inputs.items()}
        row = self._row(run_id)
        if row is None:
            try:
                facts = {"inputs": given, "queue": queue, "priority": priority}
                self._begin(run_id, self._subject(procedure), "queued", **facts).give_up()
                self.file.sync()
            except RunConflict:  # somebody has just begun it
                row = self._row(run_id)
                if row is None:
                    raise
            else:
                return True
        self._check_procedure(procedure, row.procedure, run_id)
        self._check_inputs(load_run(self.file, row.number), given, run_id)
        return False

    def unclaimed(self, *, after: int, seconds: float, most: int = 500) -> list[tuple[int, str, str, int]]:
        """Runs that were meant for a queue longer ago than so many seconds, and that nobody has driven since.

        Args:
            after: the number above which theirs are.
            seconds: how long ago they were begun at least.
            most: how many are looked at.

        Returns:
            Of each its number, name, queue and priority, by the number.

        Raises:
            LedgerError: it cannot be read.
        """
        rows = self.file.read(
            "select runs.number, name, body from runs join records on run = runs.number where status = 'queued'"
            f" and kind = 'begin' and runs.number > ? and updated < ? order by runs.number limit {most:d}",
            *(after, time.time() - seconds),
        )
        begun = [(number, name, json.loads(body)) for number, name, body in rows]
        return [(number, name, each["queue"], each["priority"]) for number, name, each in begun]

    def take_turn(self, endpoint: str, *, calls: int, seconds: float) -> float:
        """Take the next turn to call an endpoint, of which all who share the ledger have so many in so many seconds.

        Returns:
            How many seconds to wait before asking again; 0 where it was taken.

        Raises:
            LedgerError: it cannot be written.
        """
        between = seconds / calls
        with self.file.writing() as transaction:
            row = transaction.execute("select free from turns where endpoint = ?", endpoint).fetchone()
            now = self.file.now()
            if row is not None and now < row[0] <= now + between:  # later ones are of a clock that has gone back
                return float(row[0]) - now
            sql = "insert into turns values (?, ?) on conflict (endpoint) do update set free = excluded.free"
            transaction.execute(sql, endpoint, now + between)
        return 0.0

    def queued(self, run_id: str, procedures: Iterable[Procedure] = ()) -> tuple[Procedure, dict[str, Value]]:
        """The procedure and the inputs of a run that is there.

        Args:
            run_id: the run.
            procedures: those that the ledger does not hold whole: with functions, tools or checks of one's own.

        Raises:
            ConfigError: there is no such run, or its procedure is not among these.
            RunConflict: it was erased.
            LedgerError: it cannot be read.
        """
        row = self._row(run_id)
        if row is None:
            raise ConfigError(f"the ledger {self.path} has no run {run_id!r}", option="run_id")
        rows = self.file.read(
            "select title, source, operations from runs join procedures on digest = procedure where number = ?",
            row.number,
        )
        title, source, operations = rows[0] if rows else ("", None, "[]")
        given = load_run(self.file, row.number).inputs
        inputs = {name: from_data(value) for name, value in given.items()} if isinstance(given, dict) else {}
        known = {self._subject(each).digest: each for each in procedures}
        if row.procedure in known:
            return known[row.procedure], inputs
        if source is not None and operations == "[]":
            with suppress(ProcedureError):  # what the text does not hold, such as a check of one's own
                return read_procedure(source, operations), inputs
        for each in known.values():
            if each.name == title:
                self._check_procedure(each, row.procedure, run_id)
                return each, inputs
        what = f"the procedure {title!r} of the run {run_id!r} has functions, tools or checks that are not known here"
        raise ConfigError(f"{what}: give it to the worker", option="procedures")

    def open_gate(
        self, policy: Policy, *, run_id: str, conversation: str, options: Mapping[str, Any]
    ) -> ConversationJournal:
        """Begin the conversation of a gate, or go on with one, as its only writer; `Policy.gate` does it.

        Args:
            policy: the policy.
            run_id: its name in the ledger.
            conversation: what the keys of its calls are made of; of one that was begun before, that holds.
            options: those of the gate on which depends what it says, as JSON data.

        Raises:
            RunConflict: the conversation is under way, or was begun with another policy.
            ConfigError: `run_id` names nothing.
            LedgerError: the file cannot be read or written.
        """
        check_run_id(run_id)
        row = self._row(run_id)
        if row is None:
            subject = _Subject(policy.digest, policy.name, None, "[]", None)
            writer = self._begin(run_id, subject, "open", conversation=conversation, options=options)
            return ConversationJournal(writer, KeptRun(conversation=conversation))
        if row.procedure != policy.digest:
            raise RunConflict(
                f"the run {run_id!r} of {self.path} was begun with another policy than {policy.name!r} as it is now: "
                "go on with the one it was begun with, or use another run_id"
            )
        return ConversationJournal(*self._go_on(run_id, row, "open", lambda _: None, options=options))

    def _subject(self, procedure: Procedure) -> _Subject:
        """A procedure as it is kept, worked out once for many runs of one."""
        known = self._last
        if known is None or known[0] is not procedure:
            source, operations = procedure_source(procedure), operation_facts(procedure)
            total = len(procedure) if procedure.straight else None
            subject = _Subject(procedure_digest(procedure), procedure.name, source, operations, total)
            known = self._last = procedure, subject
        return known[1]

    def _row(self, run_id: str) -> _RunRow | None:
        rows = self.file.read("select number, salt, epoch, procedure from runs where name = ?", run_id)
        if not rows:
            return None
        if rows[0][1] is None:
            raise RunConflict(f"the run {run_id!r} of {self.path} was erased: use another run_id")
        return _RunRow(*rows[0])

    def _begin(self, run_id: str, subject: _Subject, status: KeptStatus, **facts: object) -> RunWriter:
        salt, number, started = os.urandom(16), 0, time.time()
        listed = {"title": storable(subject.title), "total": subject.total, "started": started}
        begin = [("begin", _begin(run_id, subject.digest, 1, **listed, **facts))]
        try:
            with self.file.writing() as transaction:  # the sync of the first step, or call of a tool, is one of this
                created = self._create(transaction, subject, run_id, salt, status, started)
                transaction.append(created, salt, begin)
                self._take(created, run_id)
                number = created
        except BaseException:
            self.file.free(number)  # it was not written: another run may have this number
            raise
        return self._writer(run_id, number, salt, 1)

    def _go_on(
        self, run_id: str, row: _RunRow, status: KeptStatus, check: Callable[[KeptRun], None], **facts: object
    ) -> tuple[RunWriter, KeptRun]:
        self._take(row.number, run_id)
        try:
            kept, epoch = load_run(self.file, row.number), row.epoch + 1
            check(kept)
            with self.file.writing() as transaction:
                sql = "update runs set epoch = ?, status = ?, updated = ? where number = ? and epoch = ?"
                if not transaction.execute(sql, epoch, status, time.time(), row.number, row.epoch).rowcount:
                    what = f"another process has just gone on with the run {run_id!r} of {self.path}"
                    raise RunConflict(what, under_way=True)
                transaction.append(row.number, row.salt, [("begin", _begin(run_id, row.procedure, epoch, **facts))])
        except BaseException:
            self.file.free(row.number)
            raise
        return self._writer(run_id, row.number, row.salt, epoch), kept

    def _writer(self, run_id: str, number: int, salt: bytes, epoch: int) -> RunWriter:
        return RunWriter(self.file, run=number, name=run_id, salt=salt, epoch=epoch, full_sync=self._full_sync)

    def _create(
        self, transaction: Transaction, subject: _Subject, run_id: str, salt: bytes, status: KeptStatus, started: float
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
            raise RunConflict(f"another process has just begun the run {run_id!r} of {self.path}", under_way=True)
        return int(number)

    def _check_procedure(self, procedure: Procedure, digest: str, run_id: str) -> None:
        """Refuse another procedure than the run was begun with. A later version may write the same one otherwise."""
        subject = self._subject(procedure)
        if subject.digest == digest:
            return
        rows = self.file.read("select source, operations from procedures where digest = ?", digest)
        if rows and rows[0][0] is not None and rows[0][1] == subject.operations:
            with suppress(StepguardError):
                if read_procedure(*rows[0]) == procedure:
                    return
        raise RunConflict(
            f"the run {run_id!r} of {self.path} was begun with another procedure than {procedure.name!r} as it is now "
            "(or other tools): go on with the one it was begun with, or use another run_id"
        )

    def _check_inputs(self, kept: KeptRun, given: Mapping[str, object], run_id: str) -> None:
        began = kept.inputs if isinstance(kept.inputs, dict) else {}
        odd = sorted(name for name in {*began, *given} if began.get(name) != given.get(name))
        if odd:
            raise RunConflict(
                f"the run {run_id!r} of {self.path} was begun with other inputs ({', '.join(odd)}): use another run_id"
            )

    def _take(self, number: int, run_id: str) -> None:
        if not self.file.take(number):
            raise RunConflict(
                f"the run {run_id!r} of {self.path} is under way, here or elsewhere: only one may go on with it",
                under_way=True,
            )

    def runs(self) -> list[RunSummary]:
        """Every run, the one that was begun last first.

        Raises:
            LedgerError: the file cannot be read.
        """
        return self._summaries("order by number desc")

    def summary(self, run_id: str) -> RunSummary | None:
        """One run at a glance; None where there is none of that name.

        Raises:
            LedgerError: the file cannot be read.
        """
        return next(iter(self._summaries("where name = ?", run_id)), None)

    def _summaries(self, which: str, *arguments: object) -> list[RunSummary]:
        rows = self.file.read(
            "select number, name, title, status, completed, total, calls, tokens, place, reason, started, updated"
            f" from runs {which}",
            *arguments,
        )
        standing = self._standing({row[0]: row[3] for row in rows})
        return [RunSummary(row[1], row[2], standing[row[0]], *row[4:]) for row in rows]

    def _standing(self, statuses: Mapping[int, KeptStatus]) -> dict[int, KeptStatus]:
        """How runs stand: one that is under way and whose lock is free has no process any more."""
        driven = [number for number, status in statuses.items() if status in ("running", "open")]
        with suppress(LedgerError):  # nobody may write here
            held = self.file.held(driven)
            unheld: dict[int, KeptStatus] = {each: "interrupted" for each in driven if statuses[each] == "running"}
            return {**statuses, **unheld, **dict.fromkeys(held, "running")}
        return dict(statuses)

    def answer(self, run_id: str, step: str, value: object) -> None:
        """Answer, for a person, the step for which a run waits, or settle a call of a tool.

        The run goes on with it when it is run again with its run_id. The value is read as the type of the step then.

        Args:
            run_id: the run.
            step: its place, as `RunSummary.place` names it; of a conversation, the identifier of the call.
            value: the answer: text, or JSON data. Of a call of a tool that was begun and of which nobody knows what
                came of it: what it returned.

        Raises:
            ConfigError: there is no such run, or it waits for no such step.
            RunConflict: the run is under way.
            LedgerError: the file cannot be written.
        """
        if value is None:
            raise ConfigError("an answer is text, or data as JSON has it: None answers nothing", option="value")
        held = to_data(read_answer(value))
        with self._changing(run_id) as change:
            call, offered = change.unsettled(step), change.offered(step)
            if offered is not None:
                change.append(
                    "gate", as_json({"calls": [{**offered, "status": "succeeded", "result": plain_data(value)}]})
                )
                return
            if call is not None:
                change.append("call", call_record(replace(call, returned=True, value=from_data(held))))
            elif change.place == step and (question := change.question(step)) is not None:
                body = {"path": step, "question": question, "value": held, "at": now_text()}
                change.append("answer", as_json(body))
            else:
                what = f"waits for {change.place}" if change.status == "waiting" else f"is {change.status}"
                raise ConfigError(f"the run {run_id!r} has no open question {step!r}: it {what}", option="step")
            change.set_status("answered")

    def repeat(self, run_id: str, step: str) -> None:
        """Let a call of a tool, of which nobody knows what came of it, be made again when the run goes on.

        Raises:
            ConfigError: there is no such run, or no such call.
            RunConflict: the run is under way.
            LedgerError: the file cannot be written.
        """
        with self._changing(run_id) as change:
            call, offered = change.unsettled(step), change.offered(step)
            if offered is not None:
                change.append("gate", as_json({"calls": [{**offered, "status": "not_done"}]}))
                return
            if call is None:
                raise ConfigError(f"the run {run_id!r} has no open call of a tool {step!r}", option="step")
            change.append("repeat", as_json({"key": call.key, "at": now_text()}))
            change.set_status("answered")

    def erase(self, run_ids: Iterable[str]) -> int:
        """Take everything that runs hold out of the file: inputs, values, claims, answers, and the text of a procedure
        that no other run is of. That they were stays.

        The chain of the records stays whole. The file is rewritten, which takes as long as copying it.

        Returns:
            How many were erased; what is erased already does not count.

        Raises:
            ConfigError: there is no such run, or `run_ids` is one text.
            RunConflict: one is under way; those before it are erased.
            LedgerError: the file cannot be written, or somebody is reading it, so that what was erased still stands in
                it; erasing the same runs again takes it out.
        """
        check_run_ids(run_ids)
        named = list(run_ids)
        count = 0
        try:
            for run_id in named:
                with self._changing(run_id) as change:
                    count += change.erase()
        finally:
            if named:  # also of those that are erased already: somebody may have been killed before this
                self.file.tidy()
        return count

    def older_than(self, seconds: float) -> list[str]:
        """The run_ids of the runs that were not written to for so long, by the clock of this machine, for `erase`."""
        check_seconds(seconds, "seconds")
        rows = self.file.read(
            "select number, name, status from runs where updated < ? and status != 'erased'", time.time() - seconds
        )
        standing = self._standing({number: status for number, _, status in rows})
        return [str(name) for number, name, _ in rows if standing[number] != "running"]

    def answered(self) -> list[str]:
        """The run_ids of the runs that waited and can go on."""
        return [str(name) for (name,) in self.file.read("select name from runs where status = 'answered'")]

    def head(self) -> str:
        """The number and the hash of the last record: kept elsewhere, or signed, it proves all records up to it."""
        rows = self.file.read("select number, hash from records order by number desc limit 1")
        number, digest = rows[0] if rows else (0, GENESIS)
        return f"{number}:{bytes(digest).hex()}"

    @contextmanager
    def _changing(self, run_id: str) -> Iterator[RunChange]:
        rows = self.file.read("select number from runs where name = ?", run_id)
        if not rows:
            raise ConfigError(f"the ledger {self.path} has no run {run_id!r}", option="run_id")
        number = rows[0][0]
        self._take(number, run_id)
        try:
            with self.file.writing() as transaction:
                yield RunChange(self.file, transaction, number)
            self.file.sync()
        finally:
            self.file.free(number)

    def close(self) -> None:
        """Close it; runs that are under way cannot be written on."""
        self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def _open(path: str, *, read_only: bool) -> LedgerStore:
    if path.startswith(("postgresql://", "postgres://")):
        from stepguard.ledger.postgres import LedgerDatabase  # which needs an extra

        return LedgerDatabase(path, read_only=read_only)
    return LedgerFile(path, read_only=read_only)


def _begin(run_id: str, digest: str, epoch: int, **facts: object) -> str:
    """The body of a record that a run is begun, or gone on with: of what, and by which version of the checks."""
    about = {"run": run_id, "procedure": digest, "epoch": epoch, "checker": _checker(), "at": now_text()}
    return as_json({**about, **facts})


@cache
def _checker() -> str:
    try:
        return f"stepguard {version('stepguard')}"
    except PackageNotFoundError:
        return "stepguard"
