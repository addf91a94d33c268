"""`Ledger`: the durable record of runs in one file, and what people do with it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, get_args

from stepguard.core.arguments import (
    check_flag,
    check_instance,
    check_one_of,
    check_run_id,
    check_run_ids,
    check_seconds,
)
from stepguard.core.closing import Closing
from stepguard.errors import ConfigError, RunConflict
from stepguard.language.value_json import from_data, to_data
from stepguard.language.values import Value
from stepguard.ledger.changes import read_answer
from stepguard.ledger.journal import ConversationJournal, KeptRun, RunJournal, load_run
from stepguard.ledger.register import RunRegister, RunSubject, no_run
from stepguard.ledger.sqlite_file import LedgerFile
from stepguard.ledger.store import GENESIS, LAST_RECORD, LedgerStore
from stepguard.ledger.summaries import RunSummary, read_standings, read_summaries
from stepguard.policy.policy import Policy
from stepguard.procedure.procedure import Procedure

Keep = Literal["claims", "replies", "prompts"]
"""What is kept of a model call; each holds what stands before it as well."""
_PAGE: Final = 500


class Ledger(Closing):
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
        check_flag(full_sync, "full_sync")
        check_flag(read_only, "read_only")
        check_one_of(keep, get_args(Keep), "keep")
        self._keep: Final = keep
        self.file: Final = _open(str(path), read_only=read_only)
        self.path: Final = self.file.path
        self.address: Final = str(path)
        self._register: Final = RunRegister(self.file, full_sync=full_sync)

    def __repr__(self) -> str:
        return f"Ledger({self.path!r})"

    def open(self, procedure: Procedure, inputs: Mapping[str, Value], *, run_id: str) -> RunJournal:
        """Begin a run, or go on with one, as its only writer; `stepguard.Guard` does it.

        Raises:
            RunConflict: the run is under way, or was begun with another procedure or other inputs.
            LedgerError: the file cannot be read or written.
        """
        given, register = _data_of(inputs), self._register
        row = register.row(run_id)
        if row is None:
            writer = register.begin(run_id, register.subject(procedure), "running", inputs=given)
            kept = KeptRun(inputs=given)
        else:
            register.check_procedure(procedure, row)
            writer, kept = register.go_on(row, "running", lambda kept: register.check_inputs(kept, given, run_id))
        return RunJournal(writer, kept, replies=self._keep != "claims", prompts=self._keep == "prompts")

    def queue(
        self, procedure: Procedure, inputs: Mapping[str, Value], *, run_id: str, queue: str, priority: int
    ) -> bool:
        """Begin a run that another process is to drive; one that was begun so before is left as it is.

        Args:
            procedure: its procedure.
            inputs: its inputs, as `Procedure.accept_inputs` gives them.
            run_id: its name.
            queue: the queue that it is meant for, in case that it never gets there; see `unclaimed`.
            priority: its priority there.

        Returns:
            Whether it is new.

        Raises:
            ConfigError: `run_id` names nothing.
            RunConflict: the run was begun with another procedure or other inputs.
            LedgerError: it cannot be read or written.
        """
        check_run_id(run_id)
        given, register = _data_of(inputs), self._register
        row = register.row(run_id)
        if row is None:
            try:
                facts = {"inputs": given, "queue": queue, "priority": priority}
                # Given up at once: the lock is for the worker that drives the run.
                register.begin(run_id, register.subject(procedure), "queued", **facts).give_up()
                self.file.sync()
            except RunConflict:  # somebody has just begun it
                row = register.row(run_id)
                if row is None:
                    raise
            else:
                return True
        register.check_procedure(procedure, row)
        register.check_inputs(load_run(self.file, row.number), given, run_id)
        return False

    def unclaimed(self, *, after: int, seconds: float) -> list[tuple[int, str, str, int]]:
        """Runs that were meant for a queue more than `seconds` ago, and that nobody has driven since; some at a time.

        Args:
            after: the number above which theirs are.
            seconds: how long ago they were begun at least.

        Returns:
            Of each its number, name, queue and priority, by the number.

        Raises LedgerError: it cannot be read.
        """
        rows = self.file.read(
            "select runs.number, name, body from runs join records on run = runs.number where status = 'queued'"
            f" and kind = 'begin' and runs.number > ? and updated < ? order by runs.number limit {_PAGE:d}",
            *(after, time.time() - seconds),
        )
        begun = [(number, name, json.loads(body)) for number, name, body in rows]
        return [(number, name, facts["queue"], facts["priority"]) for number, name, facts in begun]

    def take_turn(self, endpoint: str, *, calls: int, seconds: float) -> float:
        """Take the next turn to call an endpoint; all who share the ledger have `calls` of them in `seconds`.

        Returns:
            How many seconds to wait before asking again; 0 where it was taken.

        Raises LedgerError: it cannot be written.
        """
        between = seconds / calls
        with self.file.writing() as transaction:
            row = transaction.execute("select free from turns where endpoint = ?", endpoint).fetchone()
            now = self.file.now()
            if row is not None and now < row[0] <= now + between:  # a later one is of a clock that has since gone back
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
        row = self._register.row(run_id)
        if row is None:
            raise no_run(self.file, run_id)
        inputs = {name: from_data(value) for name, value in load_run(self.file, row.number).inputs.items()}
        return self._register.procedure(row, procedures), inputs

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
        row = self._register.row(run_id)
        if row is None:
            subject = RunSubject(policy.digest, policy.name, None, "[]", None)
            writer = self._register.begin(run_id, subject, "open", conversation=conversation, options=options)
            return ConversationJournal(writer, KeptRun(conversation=conversation))
        if row.procedure != policy.digest:
            raise RunConflict(
                f"the run {run_id!r} of {self.path} was begun with another policy than {policy.name!r} as it is now: "
                "go on with the one it was begun with, or use another run_id"
            )
        return ConversationJournal(*self._register.go_on(row, "open", lambda _: None, options=options))

    def runs(self) -> list[RunSummary]:
        """Every run, the one that was begun last first.

        Raises LedgerError: the file cannot be read.
        """
        return read_summaries(self.file, "order by number desc")

    def summary(self, run_id: str) -> RunSummary | None:
        """One run at a glance; None where there is none of that name.

        Raises LedgerError: the file cannot be read.
        """
        return next(iter(read_summaries(self.file, "where name = ?", run_id)), None)

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
        read = read_answer(value)
        with self._register.changing(run_id) as change:
            change.answer(step, value, read)

    def repeat(self, run_id: str, step: str) -> None:
        """Let a call of a tool, of which nobody knows what came of it, be made again when the run goes on.

        Raises:
            ConfigError: there is no such run, or no such call.
            RunConflict: the run is under way.
            LedgerError: the file cannot be written.
        """
        with self._register.changing(run_id) as change:
            change.repeat(step)

    def erase(self, run_ids: Iterable[str], *, hide: Callable[[str], bool] | None = None) -> int:
        """Take everything that runs hold out of the file: inputs, values, claims, answers, and the text of a procedure
        that no other run is of. That they were stays.

        The chain of the records stays whole. The file is rewritten, which takes as long as copying it. See
        `stepguard.ledger.erase_person` for all runs that hold something about a person.

        Args:
            run_ids: the runs.
            hide: whether a name is to go as well, that of a run or of its procedure. A run is called otherwise then,
                and one that is begun under its old name is another.

        Returns:
            How many were erased; what is erased already does not count.

        Raises:
            ConfigError: there is no such run, or `run_ids` is one text.
            RunConflict: some are under way; the others are erased.
            LedgerError: the file cannot be written, or somebody is reading it, so that what was erased still stands in
                it; erasing the same runs again takes it out.
        """
        check_run_ids(run_ids)
        named = list(run_ids)
        count, conflicts = 0, list[RunConflict]()
        try:
            for run_id in named:
                try:
                    with self._register.changing(run_id) as change:
                        count += change.erase(hide)
                except RunConflict as conflict:
                    conflicts.append(conflict)
        finally:
            if named:  # also of those erased before: that process may have been killed before this
                self._tidy()
        if conflicts:
            others = f", and so are {len(conflicts) - 1} others" if conflicts[1:] else ""
            raise RunConflict(f"{conflicts[0]}{others}; {count} erased", under_way=True)
        return count

    def _tidy(self) -> None:
        """Take what was erased out of the files, with the procedures that no run is of any more."""
        with self.file.writing() as transaction:
            of = "select procedure from runs where status != 'erased'"
            transaction.execute(f"delete from procedures where digest not in ({of})")
        self.file.tidy()

    def older_than(self, seconds: float) -> list[str]:
        """The run_ids of the runs that were not written to for so long, by the clock of this machine, for `erase`."""
        check_seconds(seconds, "seconds")
        old = "select number, name, status from runs where updated < ? and status != 'erased'"
        rows = self.file.read(old, time.time() - seconds)
        standings = read_standings(self.file, {number: status for number, _, status in rows})
        return [str(name) for number, name, _ in rows if standings[number] != "running"]

    def answered(self) -> list[str]:
        """The run_ids of the runs that waited and can go on."""
        return [str(name) for (name,) in self.file.read("select name from runs where status = 'answered'")]

    def head(self) -> str:
        """The number and the hash of the last record: kept elsewhere, or signed, it proves all records up to it."""
        rows = self.file.read(LAST_RECORD)
        number, digest = rows[0] if rows else (0, GENESIS)
        return f"{number}:{bytes(digest).hex()}"

    def close(self) -> None:
        """Close it; runs that are under way cannot be written on."""
        self.file.close()


def _data_of(inputs: Mapping[str, Value]) -> dict[str, Any]:
    return {name: to_data(value) for name, value in inputs.items()}


def _open(path: str, *, read_only: bool) -> LedgerStore:
    if path.startswith(("postgresql://", "postgres://")):
        from stepguard.ledger.postgres import LedgerDatabase  # which needs an extra

        return LedgerDatabase(path, read_only=read_only)
    return LedgerFile(path, read_only=read_only)
