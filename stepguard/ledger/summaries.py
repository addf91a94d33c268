"""How the runs of a ledger stand: `RunSummary`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, get_args

from stepguard.errors import LedgerError
from stepguard.ledger.store import LedgerStore
from stepguard.results import Status

KeptStatus = Status | Literal["queued", "running", "interrupted", "answered", "open", "erased"]
"""That of the result; ``queued`` where another process is to drive it, ``running`` while one does, ``interrupted``
where one was killed, ``answered`` where it waited and can go on, ``open`` for the conversation of a gate that nobody
drives, ``erased``."""
KEPT_STATUSES: Final[tuple[str, ...]] = tuple(status for part in get_args(KeptStatus) for status in get_args(part))
"""Every `KeptStatus`."""


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


def read_summaries(file: LedgerStore, which: str, *arguments: object) -> list[RunSummary]:
    """Runs at a glance.

    Args:
        file: the ledger.
        which: which runs, and in what order, in SQL.
        arguments: those of that.

    Raises:
        LedgerError: it cannot be read.
    """
    rows = file.read(
        "select number, name, title, status, completed, total, calls, tokens, place, reason, started, updated"
        f" from runs {which}",
        *arguments,
    )
    standings = read_standings(file, {row[0]: row[3] for row in rows})
    return [RunSummary(row[1], row[2], standings[row[0]], *row[4:]) for row in rows]


def read_standings(file: LedgerStore, statuses: Mapping[int, KeptStatus]) -> dict[int, KeptStatus]:
    """How runs stand that are listed so: one that is under way and whose lock is free has no process any more."""
    driven = [number for number, status in statuses.items() if status in ("running", "open")]
    with suppress(LedgerError):  # nobody may write here
        held = file.held(driven)
        unheld: dict[int, KeptStatus] = {run: "interrupted" for run in driven if statuses[run] == "running"}
        return {**statuses, **unheld, **dict.fromkeys(held, "running")}
    return dict(statuses)
