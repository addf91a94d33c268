"""Reads one run of a ledger for people to look at: its result, or what happened at a gate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from stepguard.errors import ConfigError, LedgerError
from stepguard.ledger.journal import KeptRun, load_run
from stepguard.ledger.ledger import Ledger
from stepguard.ledger.procedures import procedure_digest
from stepguard.ledger.register import no_run
from stepguard.ledger.replaying import RunReplay, load_procedure
from stepguard.ledger.summaries import RunSummary
from stepguard.procedure.procedure import Procedure
from stepguard.results import COMPLETED, Problem, Result, Status


@dataclass(frozen=True, slots=True)
class RunReading:
    """One run of a ledger.

    Attributes:
        summary: the run at a glance.
        procedure: its procedure; None of a conversation at a gate.
        result: what it has come to: that of its end, or what is known of one that has not ended, whose status is
            ``failed`` then. None of a conversation.
        changes: of a conversation what has happened at the gate, in order, each with the time ``at``; see
            `stepguard.policy.journal`.
        times: when each attempt of the result was written down, in seconds since 1970 by the clock of that machine;
            None where that cannot be read.
    """

    summary: RunSummary
    procedure: Procedure | None
    result: Result | None
    changes: tuple[Mapping[str, Any], ...]
    times: tuple[float | None, ...] = ()

    @property
    def standing(self) -> str | None:
        """Where a run stands that has not ended; None of one that has, and of a conversation."""
        if self.result is None or self.result.status in COMPLETED:
            return None
        return self.summary.status if self.summary.status in ("queued", "running", "interrupted", "answered") else None


def read_run(ledger: Ledger, run_id: str, *, procedures: Iterable[Procedure] = ()) -> RunReading:
    """Read one run; no model is asked, and what it holds is not verified.

    Args:
        ledger: the ledger, which may be opened read-only.
        run_id: the run.
        procedures: procedures that the ledger does not hold as text.

    Raises:
        ConfigError: there is no such run, or it was erased.
        ProcedureError: its procedure has to be given.
        LedgerError: a record of it cannot be read, or its steps are wrong.
    """
    with closing(ledger.file.reader()) as file, file.snapshot():
        rows = file.read("select number, procedure from runs where name = ?", run_id)
        summary = ledger.summary(run_id)
        if not rows or summary is None:
            raise no_run(file, run_id)
        if summary.status == "erased":
            raise ConfigError(f"the run {run_id!r} was erased", option="run_id")
        kept = load_run(file, rows[0][0])
        if kept.conversation is not None:
            return RunReading(summary, None, None, tuple(kept.changes))
        known = {procedure_digest(given): given for given in procedures}
        procedure = known.get(rows[0][1]) or load_procedure(file, rows[0][1])
    return RunReading(summary, procedure, _result_of(kept, procedure), (), tuple(map(_seconds, kept.times)))


def _seconds(at: object) -> float | None:
    try:
        return datetime.fromisoformat(at).timestamp() if isinstance(at, str) else None
    except (ValueError, OverflowError):
        return None


def _result_of(kept: KeptRun, procedure: Procedure) -> Result:
    end = kept.end
    replay = RunReplay(kept, procedure, whole=end is not None and end["status"] in COMPLETED, history=None)
    if replay.wrong is not None:
        raise LedgerError(f"{replay.wrong[1]}: `stepguard verify` tells which record")
    result = replay.run.result()
    facts: dict[str, Any] = {
        "attempts": tuple(kept.attempts),
        "usage": kept.usage,
        "seconds": sum(attempt.seconds for attempt in kept.attempts),
    }
    if end is not None:
        facts["status"] = cast("Status", end["status"])
        facts["cost"] = end["cost"]
        if end["problem"] is not None:
            place, reason = end["problem"]
            # Where the replay stopped at the same place, it knows the site as well, which no record holds.
            stopped = replay.missing_step or (None if result.problem is None else result.problem.occurrence)
            where = stopped if stopped is not None and str(stopped) == str(place) else place
            facts["problem"] = Problem(where, reason)
    elif replay.missing_step is not None and result.problem is not None:
        facts["problem"] = replace(result.problem, occurrence=replay.missing_step)
    return replace(result, **facts)
