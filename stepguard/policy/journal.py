"""Where a conversation is made durable: what has changed at its gate is written before anything is done with it.

A change is part of what `PolicyGate.to_dict` gives: new ``facts`` and ``decisions``, each of the ``calls`` that is new
or has changed with its ``number``, and ``yeses``, ``refused`` and ``handed_over`` as they are now, where they changed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from stepguard.policy.policy import Policy

__all__ = ["GateJournal", "GateLedger"]


class GateJournal(Protocol):
    """Where one conversation is made durable.

    What it raises is a `stepguard.errors.LedgerError`.
    """

    @property
    def conversation(self) -> str:
        """What the keys of its calls are made of."""
        ...

    @property
    def changes(self) -> Sequence[Mapping[str, Any]]:
        """What has happened in earlier processes, in order."""
        ...

    def write(self, change: Mapping[str, Any]) -> None:
        """Make a change durable."""
        ...

    def close(self) -> None:
        """Nothing more is written: another process may go on."""
        ...


class GateLedger(Protocol):
    """What keeps conversations, such as `stepguard.ledger.Ledger`."""

    def open_gate(self, policy: Policy, *, run_id: str, conversation: str) -> GateJournal:
        """Begin a conversation, or go on with one."""
        ...
