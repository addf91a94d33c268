"""What a person changes of a run that nobody drives: an answer, a call that is settled, an erasure."""

from __future__ import annotations

import time
from collections.abc import Mapping
from decimal import Decimal
from functools import cached_property
from typing import Any, Final, cast

from stepguard.engine.actions import OperationCall
from stepguard.errors import ConfigError
from stepguard.language.records import Record
from stepguard.language.value_json import to_data
from stepguard.language.values import Value
from stepguard.ledger.journal import KeptRun, load_run
from stepguard.ledger.records import as_json, now_text
from stepguard.ledger.store import LedgerStore, Transaction

STAYING: Final = "name, procedure, title, completed, total, calls, tokens, started"
"""What a listing still tells of a run that was erased."""


class RunChange:
    """What a person changes of a run that nobody drives."""

    status: str
    place: str | None
    reason: str | None
    _salt: bytes | None

    def __init__(self, file: LedgerStore, transaction: Transaction, run: int) -> None:
        self._file: Final = file
        self._transaction: Final = transaction
        self._run: Final = run
        facts = transaction.execute(f"select status, place, reason, salt, {STAYING} from runs where number = ?", run)
        self.status, self.place, self.reason, self._salt, *staying = facts.fetchone()
        self._staying: Final = dict(zip(STAYING.split(", "), staying, strict=True))

    def unsettled(self, step: str) -> OperationCall | None:
        """The call of a tool at a place of which nobody knows what came of it, or what was told cannot be."""
        refused = self.status == "failed" and self.place == step
        calls = self._kept.calls.values()
        return next((call for call in calls if str(call.occurrence) == step and (refused or not call.returned)), None)

    def offered(self, id: str) -> Mapping[str, Any] | None:
        """The call with an identifier that a gate let through, and of which nobody knows what came of it."""
        calls = {each["id"]: each for change in self._kept.changes for each in change.get("calls", ())}
        return calls[id] if id in calls and calls[id]["status"] == "pending" else None

    def question(self, step: str) -> str | None:
        """What a person is asked there, or was asked and has answered before in this way; None where nobody is."""
        if self.status == "waiting":
            return self.reason
        return self._kept.answers.get(step, (None,))[0]

    @cached_property
    def _kept(self) -> KeptRun:
        return load_run(self._file, self._run)

    def append(self, kind: str, body: str) -> None:
        """Add a record."""
        assert self._salt is not None
        self._transaction.append(self._run, self._salt, [(kind, body)])

    def set_status(self, status: str) -> None:
        """Say where the run stands now, and that who drove it before may not go on."""
        self._transaction.execute(
            "update runs set status = ?, epoch = epoch + 1, updated = ? where number = ?",
            *(status, time.time(), self._run),
        )

    def erase(self) -> bool:
        """Erase the run; whether there was anything."""
        if self._salt is None:
            return False
        self._transaction.execute("update records set body = null where run = ?", self._run)
        self._transaction.execute(
            "update runs set salt = null, place = null, reason = null where number = ?", self._run
        )
        self._transaction.append(self._run, b"", [("erased", as_json({"at": now_text(), **self._staying}))])
        self.set_status("erased")
        self._transaction.execute(
            "delete from procedures where digest not in (select procedure from runs where status != 'erased')"
        )
        return True


def read_answer(given: object) -> Value:
    """What a person or a host gives, as a value; its type is looked at when the run goes on.

    Raises:
        ConfigError: it is nothing that a value can be.
    """
    if isinstance(given, Mapping):
        return Record({str(name): read_answer(each) for name, each in given.items()})
    if isinstance(given, list | tuple):
        return tuple(read_answer(each) for each in given)
    if isinstance(given, float):
        given = Decimal(repr(given))
    if isinstance(given, Decimal) and not given.is_finite():
        raise ConfigError(f"an answer holds {given}, which is no number", option="value")
    try:
        to_data(cast("Value", given))
    except TypeError:
        raise ConfigError(f"an answer is text, or data as JSON has it, not {given!r:.60}", option="value") from None
    return cast("Value", given)
