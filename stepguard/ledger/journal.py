"""The journal of one run in a ledger: what is read when the run is begun or gone on with, and what is written."""

from __future__ import annotations

import json
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from stepguard.core.usage import Usage
from stepguard.engine.actions import Commit, OperationCall
from stepguard.engine.journal import KeptStep
from stepguard.errors import LedgerError, RunConflict
from stepguard.language.value_json import from_data
from stepguard.language.values import Value
from stepguard.ledger.locks import RunLocks
from stepguard.ledger.records import (
    attempt_record,
    call_record,
    end_record,
    read_attempt,
    read_call,
    read_end,
    read_step,
    step_records,
    storable,
)
from stepguard.ledger.store import LedgerFile, Transaction
from stepguard.results import Attempt, Result

__all__ = ["KeptRun", "RunJournal", "load_run"]


@dataclass(slots=True)
class KeptRun:
    """What the records of one run come to.

    Attributes:
        run_id: its name.
        inputs: its inputs, as JSON data; None where they were erased.
        steps: the verified steps by their places, the newest of each.
        calls: the calls of tools by their keys.
        answers: what persons have answered while it was parked: question and value, by the text of the place.
        attempts: the model calls.
        usage: what they cost.
        end: how it ended last, None while it is under way or was killed.
        numbers: the numbers of the records of the steps, by their places, and of the ``end``.
    """

    run_id: str = ""
    inputs: object = None
    steps: dict[str, KeptStep] = field(default_factory=dict)
    calls: dict[str, OperationCall] = field(default_factory=dict)
    answers: dict[str, tuple[str, Value]] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    end: Mapping[str, Any] | None = None
    numbers: dict[str, int] = field(default_factory=dict)


def load_run(file: LedgerFile, run: int) -> KeptRun:
    """Everything that is durable of a run.

    Raises:
        LedgerError: a record cannot be read; it is named. Or no record says that the run was begun.
    """
    kept = KeptRun()
    rows = file.read("select number, kind, body from records where run = ? order by number", run)
    if all(kind != "begin" for _, kind, _ in rows):
        raise LedgerError(f"no record of the ledger {file.path} says that the run was begun: they were taken out")
    for number, kind, body in rows:
        if body is None:
            continue
        try:
            _take_in(kept, kind, json.loads(body), number)
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
            raise LedgerError(
                f"record {number} of the ledger {file.path} cannot be read ({type(error).__name__}: {error}): "
                "`stepguard verify` tells what was altered"
            ) from error
    return kept


def _take_in(kept: KeptRun, kind: str, body: Mapping[str, Any], number: int) -> None:
    match kind:
        case "begin":
            kept.run_id, kept.end = body["run"], None
            kept.inputs = body.get("inputs", kept.inputs)  # they stand where it was begun first
        case "step":
            place, step = read_step(body)
            kept.steps[place], kept.numbers[place] = step, number
        case "call":
            call = read_call(body)
            kept.calls[call.key] = call
        case "repeat":
            kept.calls.pop(str(body["key"]), None)
        case "answer":
            kept.answers[str(body["path"])] = str(body["question"]), from_data(body["value"])
        case "attempt":
            attempt = read_attempt(body)
            kept.attempts.append(attempt)
            kept.usage += attempt.usage
        case "end":
            kept.end, kept.numbers["end"] = read_end(body), number


class RunJournal:
    """Writes one run into a ledger, as its only writer; see `stepguard.engine.journal.Journal`.

    Args:
        file: the ledger.
        locks: holds the lock of the run.
        run: the number of the run.
        name: its run_id.
        salt: the salt of its records.
        epoch: counts who has taken it: a writer of an earlier one is refused.
        kept: what is durable of it.
        texts: whether the texts of replies are kept.
        full_sync: whether steps, answers and calls of tools survive a loss of power.
    """

    def __init__(
        self,
        file: LedgerFile,
        locks: RunLocks,
        *,
        run: int,
        name: str,
        salt: bytes,
        epoch: int,
        kept: KeptRun,
        texts: bool,
        full_sync: bool,
    ) -> None:
        self.name: Final = name
        self._file: Final = file
        self._locks: Final = locks
        self._run: Final = run
        self._salt: Final = salt
        self._epoch: Final = epoch
        self._kept: Final = kept
        self._texts: Final = texts
        self._full_sync: Final = full_sync
        self._open = True
        self._freeing = weakref.finalize(self, locks.free, run)  # of a run that nobody drives to its end

    @property
    def steps(self) -> Mapping[str, KeptStep]:
        """See `Journal.steps`."""
        return self._kept.steps

    @property
    def calls(self) -> Mapping[str, OperationCall]:
        """See `Journal.calls`."""
        return self._kept.calls

    @property
    def answers(self) -> Mapping[str, tuple[str, Value]]:
        """See `Journal.answers`."""
        return self._kept.answers

    @property
    def attempts(self) -> Sequence[Attempt]:
        """See `Journal.attempts`."""
        return self._kept.attempts

    @property
    def usage(self) -> Usage:
        """See `Journal.usage`."""
        return self._kept.usage

    def commit(self, commit: Commit) -> None:
        """See `Journal.commit`."""
        if commit.call is not None:
            self._write([("call", call_record(commit.call))], synced=self._full_sync)
            return
        bodies = step_records(commit, self._kept.steps)
        if not bodies:
            return
        fresh = sum(place not in self._kept.steps for place, _ in bodies)
        update = "completed = completed + ?, place = ?"
        last = str(commit.records[-1].occurrence)
        self._write([("step", body) for _, body in bodies], update, fresh, last, synced=self._full_sync)

    def book(self, attempts: Sequence[Attempt]) -> None:
        """See `Journal.book`."""
        usage = sum((each.usage for each in attempts), Usage())
        records = [("attempt", attempt_record(each, texts=self._texts)) for each in attempts]
        update = "calls = calls + ?, tokens = tokens + ?"
        self._write(records, update, usage.calls, usage.tokens, synced=False)

    def close(self, result: Result) -> None:
        """See `Journal.close`."""
        problem = result.problem
        place, reason = (None, None) if problem is None else (str(problem.occurrence), storable(problem.reason))
        update = "status = ?, completed = ?, total = ?, place = ?, reason = ?"
        facts = (result.status, result.completed, result.total, place, reason)
        try:
            self._write([("end", end_record(result))], update, *facts, synced=self._full_sync)
        except LedgerError:
            if not isinstance(result.error, LedgerError):  # the result does not say it already
                raise
        finally:
            self._give_up()

    def reopen(self) -> None:
        """See `Journal.reopen`."""
        if not self._locks.take(self._run):
            raise RunConflict(f"the run {self.name!r} has been gone on with elsewhere")
        self._open = True
        self._freeing = weakref.finalize(self, self._locks.free, self._run)
        try:
            self._write([], "status = 'running'", synced=self._full_sync)
        except LedgerError:
            self._give_up()
            raise

    def _give_up(self) -> None:
        """Somebody else may write the run from here on."""
        self._open = False
        self._freeing()

    def _write(self, records: list[tuple[str, str]], update: str = "", *facts: object, synced: bool) -> None:
        if not self._open:
            raise LedgerError(f"the run {self.name!r} has ended: nothing more is written to {self._file.path}")
        with self._file.writing(synced=synced) as transaction:
            self._check_epoch(transaction)
            transaction.append(self._run, self._salt, records)
            changes = f"{update}, updated = ?" if update else "updated = ?"
            transaction.execute(f"update runs set {changes} where number = ?", *facts, time.time(), self._run)

    def _check_epoch(self, transaction: Transaction) -> None:
        ((epoch,),) = transaction.execute("select epoch from runs where number = ?", self._run).fetchall()
        if epoch != self._epoch:
            raise RunConflict(f"the run {self.name!r} has been taken over by another process, which goes on with it")
