"""The journal of a conversation: each change at its gate is made durable before anything is done with it.

A change is part of what `PolicyGate.to_dict` gives: new ``facts`` and ``decisions``, each of the ``calls`` that is new
or has changed with its ``number``, and ``refused`` and ``handed_over`` as they are now, where they changed; of yeses
those that were ``given`` and those that were ``used`` or taken back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from stepguard.errors import LedgerError
from stepguard.policy.history import LetThrough

if TYPE_CHECKING:
    from stepguard.policy.policy import Policy


class GateJournal(Protocol):
    """Where one conversation is made durable.

    What it raises is a `stepguard.errors.LedgerError`.
    """

    @property
    def conversation(self) -> str:
        """The name of the conversation, which goes into the keys of its calls."""
        ...

    @property
    def changes(self) -> Sequence[Mapping[str, Any]]:
        """The changes of earlier processes, in order."""
        ...

    def write(self, change: Mapping[str, Any]) -> None:
        """Make a change durable."""
        ...

    def close(self) -> None: ...


class GateLedger(Protocol):
    """A store of conversations, such as `stepguard.ledger.Ledger`."""

    def open_gate(self, policy: Policy, *, run_id: str, conversation: str, options: Mapping[str, Any]) -> GateJournal:
        """Begin a conversation, or go on with one; `options` are those of the gate that what it says depends on."""
        ...


class GateChanges:
    """The changes at a gate since they were last made durable."""

    def __init__(self, journal: GateJournal, facts: Sequence[object], decisions: Sequence[object]) -> None:
        self.journal: Final = journal
        self._facts: Final = facts
        self._decisions: Final = decisions
        self._before = len(facts), len(decisions)
        self._latest: dict[str, Any] = {}
        self._calls: dict[int, LetThrough] = {}
        self._yeses: dict[str, bool] = {}
        self._lost = False

    def call(self, call: LetThrough) -> None:
        """Note a new or changed call."""
        self._calls[call.number] = call

    def yes(self, yes: str, *, given: bool) -> None:
        """Note a yes that was given, used or taken back."""
        self._yeses[yes] = given

    def write(self, **latest: Any) -> None:
        """Make it durable, with the `latest` of what is written as it is; where that fails nothing is written any more.

        Raises LedgerError: it did not become durable, now or earlier.
        """
        if self._lost:
            raise LedgerError("a change of this gate did not become durable: close it, and open it with its run_id")
        change: dict[str, Any] = {name: now for name, now in latest.items() if self._latest.get(name, now) != now}
        facts, decisions = self._before
        parts = {
            "facts": self._facts[facts:],
            "decisions": self._decisions[decisions:],
            "calls": [{"number": number, **call.to_dict()} for number, call in sorted(self._calls.items())],
            "given": [yes for yes, given in self._yeses.items() if given],
            "used": [yes for yes, given in self._yeses.items() if not given],
        }
        change |= {name: part for name, part in parts.items() if part}
        if change:
            # Until the write has returned: after an error nobody knows whether it is durable, so the gate must not go
            # on.
            self._lost = True
            self.journal.write(change)
            self._lost = False
        self._latest = latest
        self._before = len(self._facts), len(self._decisions)
        self._calls.clear()
        self._yeses.clear()
