"""Changes that a person makes to a run that nobody drives: an answer, a settled call, an erasure."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from typing import Any, Final, cast

from stepguard.engine.actions import OperationCall
from stepguard.errors import ConfigError
from stepguard.language.records import Record
from stepguard.language.value_json import to_data
from stepguard.language.values import Value
from stepguard.ledger.journal import KeptRun, load_run
from stepguard.ledger.records import as_json, call_record, now_text
from stepguard.ledger.store import LedgerStore, Transaction
from stepguard.policy.arguments import plain_data

STAYING: Final = "name, procedure, title, completed, total, calls, tokens, started"
"""What a listing still tells of a run that was erased."""


class RunChange:
    """Changes that a person makes to a run that nobody drives."""

    _status: str
    _place: str | None
    _reason: str | None
    _salt: bytes | None

    def __init__(self, file: LedgerStore, transaction: Transaction, run: int) -> None:
        self._file: Final = file
        self._transaction: Final = transaction
        self._run: Final = run
        facts = transaction.execute(f"select status, place, reason, salt, {STAYING} from runs where number = ?", run)
        self._status, self._place, self._reason, self._salt, *staying = facts.fetchone()
        self._name: Final[str] = staying[0]
        self._staying: Final = dict(zip(STAYING.split(", "), staying, strict=True))

    def answer(self, step: str, value: object, read: Value) -> None:
        """Answer the question at a place, or settle a call of a tool.

        Raises ConfigError: nothing waits for it.
        """
        call, offered = self._unsettled(step), self._offered(step)
        if offered is not None:
            settled = {**offered, "status": "succeeded", "result": plain_data(value)}
            self._append("gate", as_json({"calls": [settled]}))
            return
        if call is not None:
            self._append("call", call_record(replace(call, returned=True, value=read)))
        elif self._place == step and (question := self._question(step)) is not None:
            body = {"path": step, "question": question, "value": to_data(read), "at": now_text()}
            self._append("answer", as_json(body))
        else:
            what = f"waits for {self._place}" if self._status == "waiting" else f"is {self._status}"
            raise ConfigError(f"the run {self._name!r} has no open question {step!r}: it {what}", option="step")
        self._set_status("answered")

    def repeat(self, step: str) -> None:
        """Let a call of a tool, of which nobody knows what came of it, be made again.

        Raises ConfigError: there is no such call.
        """
        call, offered = self._unsettled(step), self._offered(step)
        if offered is not None:
            self._append("gate", as_json({"calls": [{**offered, "status": "not_done"}]}))
            return
        if call is None:
            raise ConfigError(f"the run {self._name!r} has no open call of a tool {step!r}", option="step")
        self._append("repeat", as_json({"key": call.key, "at": now_text()}))
        self._set_status("answered")

    def _unsettled(self, step: str) -> OperationCall | None:
        """The call of a tool at a place whose outcome nobody knows, or of which what was reported cannot be."""
        # A person reported what is no value of the step, and the run failed there: that may be put right.
        refused = self._status == "failed" and self._place == step
        calls = self._kept.calls.values()
        return next((call for call in calls if str(call.occurrence) == step and (refused or not call.returned)), None)

    def _offered(self, id: str) -> Mapping[str, Any] | None:
        """The call with an identifier that a gate let through, and of which nobody knows what came of it."""
        calls = {call["id"]: call for change in self._kept.changes for call in change.get("calls", ())}
        return calls[id] if id in calls and calls[id]["status"] == "pending" else None

    def _question(self, step: str) -> str | None:
        """What a person is asked there, or was asked and has answered before in this way; None where nobody is."""
        if self._status == "waiting":
            return self._reason
        return self._kept.answers.get(step, (None,))[0]

    @cached_property
    def _kept(self) -> KeptRun:
        return load_run(self._file, self._run)

    def _append(self, kind: str, body: str) -> None:
        assert self._salt is not None
        self._transaction.append(self._run, self._salt, [(kind, body)])

    def _set_status(self, status: str) -> None:
        """Set where the run stands now; the new epoch bars whoever drove it before."""
        self._transaction.execute(
            "update runs set status = ?, epoch = epoch + 1, updated = ? where number = ?",
            *(status, time.time(), self._run),
        )

    def erase(self, hide: Callable[[str], bool] | None = None) -> bool:
        """Erase the run; whether there was anything. `hide` says which names go as well, see `Ledger.erase`."""
        hidden = {name for name in ("name", "title") if hide is not None and hide(self._staying[name])}
        if self._salt is None and not hidden:
            return False
        others = {"name": f"erased {secrets.token_hex(8)}", "title": "erased"}
        staying = {**self._staying, **{name: others[name] for name in hidden}}
        # The salt keeps the digest from giving these names away once this record is erased itself.
        facts = {"at": now_text(), "salt": secrets.token_hex(16), **staying}
        # Digests and hashes stay, so that the chain holds without the bodies.
        self._transaction.execute("update records set body = null where run = ?", self._run)
        self._transaction.execute(
            "update runs set salt = null, place = null, reason = null, name = ?, title = ? where number = ?",
            *(staying["name"], staying["title"], self._run),
        )
        self._transaction.append(self._run, b"", [("erased", as_json(facts))])
        self._set_status("erased")
        return self._salt is not None


def read_answer(given: object) -> Value:
    """What a person or a host gives, as a value; its type is looked at when the run goes on.

    Raises ConfigError: it is nothing that a value can be.
    """
    if isinstance(given, Mapping):
        return Record({str(name): read_answer(item) for name, item in given.items()})
    if isinstance(given, list | tuple):
        return tuple(read_answer(item) for item in given)
    if isinstance(given, float):
        given = Decimal(repr(given))
    if isinstance(given, Decimal) and not given.is_finite():
        raise ConfigError(f"an answer holds {given}, which is no number", option="value")
    try:
        to_data(cast("Value", given))
    except TypeError:
        raise ConfigError(f"an answer is text, or data as JSON has it, not {given!r:.60}", option="value") from None
    return cast("Value", given)
