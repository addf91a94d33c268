"""Writes one run into a ledger, as its only writer."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from stepguard.errors import LedgerError, RunConflict
from stepguard.ledger.store import LedgerStore, Transaction


class RunWriter:
    """The only writer of one run, until it gives that up.

    Args:
        file: the ledger, which holds the lock of the run.
        run: the number of the run.
        name: its run_id.
        salt: the salt of its records.
        epoch: counts who has taken it: a writer of an earlier one is refused.
        full_sync: whether what is to be synced survives a loss of power.
    """

    def __init__(self, file: LedgerStore, *, run: int, name: str, salt: bytes, epoch: int, full_sync: bool) -> None:
        self.name: Final = name
        self._file: Final = file
        self._run: Final = run
        self._salt: Final = salt
        self._epoch: Final = epoch
        self._full_sync: Final = full_sync
        self._open = True
        self._last: Callable[[Transaction], None] | None = None
        self._freeing = weakref.finalize(self, file.free, run)  # of a run that nobody drives to its end

    def write(
        self,
        records: Sequence[tuple[str, str]],
        listed: Mapping[str, object] = MappingProxyType({}),
        *,
        synced: bool = True,
        last: bool = False,
    ) -> None:
        """Add records, pairs of a kind and a body, and change how the run is listed.

        Args:
            records: the records.
            listed: the changes, in SQL with a mark for the value.
            synced: whether it is to survive a loss of power, where anything is.
            last: nothing is written behind it, even by a thread that has been waiting for it.

        Raises:
            LedgerError: nothing was written.
        """

        def change(transaction: Transaction) -> None:
            # A change is carried out again after a rollback (`SharedWrites`): the last one may follow itself.
            if not self._open or self._last not in (None, change):
                raise LedgerError(f"the run {self.name!r} has ended: nothing more is written to {self._file.path}")
            changes = {**listed, "updated = ?": time.time()}
            update = f"update runs set {', '.join(changes)} where number = ? and epoch = ?"
            if not transaction.execute(update, *changes.values(), self._run, self._epoch).rowcount:
                what = f"the run {self.name!r} has been taken over by another process, which goes on with it"
                raise RunConflict(what, under_way=True)
            transaction.append(self._run, self._salt, records)
            if last:
                self._last = change

        self._file.write(change)
        if synced:
            self.settle()

    def settle(self) -> None:
        """Make what was written survive a loss of power, where anything is to. Raises LedgerError: it may not."""
        if self._full_sync:
            self._file.sync()

    def reopen(self) -> None:
        """Go on, in this process, where it was given up.

        Raises LedgerError: another process has continued it, or it cannot be written.
        """
        if not self._file.take(self._run):
            raise RunConflict(f"the run {self.name!r} has been gone on with elsewhere", under_way=True)
        self._open, self._last = True, None
        self._freeing = weakref.finalize(self, self._file.free, self._run)
        try:
            # Without a record: `journal` takes a run that waits for one that may be running.
            self.write([], {"status = ?": "running"})
        except LedgerError:
            self.give_up()
            raise

    def give_up(self) -> None:
        """Let others write the run from here on."""
        self._open, self._last = False, None
        self._freeing()
