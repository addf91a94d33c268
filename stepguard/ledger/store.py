"""Stores a ledger: records that are only ever added, each chained to the one before it by a hash.

A record is of a run and of a kind, and its body is JSON. Its digest is that of its body behind the salt of its run; its
hash is that of the record before it, of its own number, run and kind, and of its digest. What is erased leaves its
digest, from which nobody can tell the body without the salt, so that the chain stays whole.
"""

from __future__ import annotations

import os
import struct
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, Protocol

from stepguard.errors import LedgerError

SCHEMA: Final = 1
"""The version of the schema, the first one."""
MIGRATIONS: Final[Mapping[int, Sequence[str]]] = {}
"""What makes a ledger of an earlier version one of the next, in SQL. Records are left as they are, with their chain."""
GENESIS: Final = bytes(32)
"""What stands in the place of a hash before the first record."""
LAST_RECORD: Final = "select number, hash from records order by number desc limit 1"

BUSY_SECONDS: Final = 30.0
"""How long another one that writes is waited for."""
TABLES: Final = (
    "create table procedures (digest text primary key, name text not null, source text, operations text not null)"
    " without rowid",
    "create table runs (number integer primary key, name text not null unique, salt blob, epoch integer not null,"
    " procedure text not null, title text not null, status text not null, completed integer not null, total integer,"
    " calls integer not null, tokens integer not null, place text, reason text, started real not null, updated real"
    " not null)",
    "create table records (number integer primary key, run integer not null, kind text not null, body text,"
    " digest blob not null, hash blob not null)",
    "create index records_of_runs on records (run)",
    "create index runs_by_status on runs (status)",
    "create table turns (endpoint text primary key, free real not null) without rowid",
)
"""What there is, in the SQL of SQLite."""


def schema_fault(path: str, version: int, *, write: bool) -> str | None:
    """Why a ledger of a version cannot be used here; None where it can, once it was migrated."""
    if version == SCHEMA:
        return None
    what = f"the ledger {path} has schema {version}, and this version of stepguard reads {SCHEMA}"
    if version > SCHEMA or not MIGRATIONS.keys() >= {*range(version, SCHEMA)}:
        return f"{what}: use the version that wrote it{', or a later one' if version > SCHEMA else ''}"
    return None if write else f"{what}: it is migrated when it is first opened to write, by a run say"


def digest_of(salt: bytes, body: str) -> bytes:
    """The digest of a record's body."""
    return sha256(salt + body.encode()).digest()


def chain_hash(before: bytes, number: int, run: int, kind: str, digest: bytes) -> bytes:
    """The hash of a record behind the one with the hash `before`."""
    # All parts but the last have a fixed length, so that no two records are the same bytes.
    return sha256(before + struct.pack(">qq", number, run) + digest + kind.encode()).digest()


class SqlRows(Protocol):
    """What a statement gives."""

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""

    def fetchone(self) -> Any:
        """The next row, None behind the last."""

    def fetchall(self) -> list[Any]:
        """Every row."""


class SqlConnection(Protocol):
    """Carries out SQL with ``?`` for arguments, as SQLite has it."""

    def execute(self, sql: str, arguments: Sequence[object] = (), /) -> SqlRows:
        """Carry out one statement."""

    def executemany(self, sql: str, rows: Sequence[Sequence[object]], /) -> object:
        """Carry one out for each row of arguments."""


class Transaction:
    """What is written at once, or not at all."""

    def __init__(self, connection: SqlConnection) -> None:
        self._connection: Final = connection
        last = connection.execute(LAST_RECORD).fetchone()
        self._before = self._number = 0 if last is None else int(last[0])
        self._hash = GENESIS if last is None else bytes(last[1])

    @property
    def head(self) -> tuple[int, bytes] | None:
        """The number and the hash of the last record that it has added; None where it has added none."""
        return (self._number, self._hash) if self._number > self._before else None

    def append(self, run: int, salt: bytes, records: Sequence[tuple[str, str]]) -> None:
        """Add records of a run: pairs of a kind and a body."""
        rows = []
        for kind, body in records:
            self._number += 1
            digest = digest_of(salt, body)
            self._hash = chain_hash(self._hash, self._number, run, kind, digest)
            rows.append((self._number, run, kind, body, digest, self._hash))
        self._connection.executemany("insert into records values (?, ?, ?, ?, ?, ?)", rows)

    def execute(self, sql: str, *arguments: object) -> SqlRows:
        """Carry out another statement."""
        return self._connection.execute(sql, arguments)


class SharedSync:
    """Syncs a disk for all the threads that wait for that at the same time."""

    def __init__(self) -> None:
        self.lock: Final = threading.Lock()
        self._written = self._synced = 0

    def note(self) -> None:
        """Note that something was written; one thread calls this at a time."""
        self._written += 1

    def wait(self, sync: Callable[[], None]) -> None:
        """Wait until what was written before is synced; `sync` does that, and raises where it cannot."""
        wanted = self._written
        with self.lock:
            if self._synced < wanted:  # not by the one that was waited for
                # Read before the sync, which may miss what is written meanwhile.
                written = self._written
                sync()
                self._synced = written


class SharedWrites:
    """Writes for all the threads that wait for that at the same time, in one transaction."""

    def __init__(self) -> None:
        self._lock: Final = threading.RLock()
        self._waiting: Final[deque[_Write]] = deque()

    def write(
        self, change: Callable[[Transaction], None], writing: Callable[[], AbstractContextManager[Transaction]]
    ) -> None:
        """Carry out a change, which raises a `LedgerError` before it has written anything, or not at all.

        What fails otherwise, or is interrupted, fails alone: it is rolled back, and what the others write is written
        anew, for which a change is carried out again.
        """
        own = _Write(change)
        try:
            self._waiting.append(own)
            with self._lock:
                while not own.done:  # by the one that was waited for
                    self._write_all(own, writing)
        finally:
            own.done = True  # what was interrupted while it waited is written by nobody
        if own.error is not None:
            raise own.error

    def _write_all(self, own: _Write, writing: Callable[[], AbstractContextManager[Transaction]]) -> None:
        waiting = [self._waiting.popleft() for _ in range(len(self._waiting))]
        writes = [write for write in waiting if not write.done]
        if own not in writes:  # it was in a transaction that was rolled back
            writes.insert(0, own)
        to_blame = writes
        unsure = LedgerError("nobody can say what was written when it was interrupted: run again with the same run_id")
        try:
            with writing() as transaction:
                for write in writes:
                    to_blame, write.error = [write], None
                    try:
                        write.change(transaction)
                    except LedgerError as error:
                        write.error = error
                to_blame = writes  # what the commit raises is the fault of none alone
                for write in writes:
                    write.error = write.error or unsure  # as long as this is not committed
                    write.done = True
        except Exception as error:  # noqa: BLE001 - raised by `write`
            failure = LedgerError(str(error) or type(error).__name__)
            failure.__cause__ = error
            for write in to_blame:
                write.error = error if write is own or len(to_blame) == 1 else failure
                write.done = True
        for write in writes:
            if write.error is unsure:
                write.error = None


@dataclass(slots=True, eq=False)
class _Write:
    """What one thread has to write, and what came of it."""

    change: Callable[[Transaction], None]
    done: bool = False
    error: BaseException | None = None


class LedgerStore(ABC):
    """What keeps a ledger; it may be shared between threads. Its SQL is that which SQLite and Postgres have in common.

    Attributes:
        path: names it for people, without a password.
    """

    path: str
    _failure: type[Exception]
    """What its driver raises."""

    def __init__(self) -> None:
        self._lock: Final = threading.RLock()
        self._process: Final = os.getpid()
        self._closed = False
        self._writes: Final = SharedWrites()
        self._syncing: Final = SharedSync()

    @abstractmethod
    def writing(self) -> AbstractContextManager[Transaction]:
        """Write in one transaction, which survives the death of the process when this is left, and behind `sync` a
        loss of power; nobody else writes meanwhile.

        Raises LedgerError: it cannot be written; nothing was. Or a server was lost while it was written, and does not
        come back: then nobody can say, and what is there is read when the run goes on.
        """

    def write(self, change: Callable[[Transaction], None]) -> None:
        """Write as `writing` does, together with other threads; see `SharedWrites.write`."""
        self._writes.write(change, self.writing)

    def sync(self) -> None:
        """Have everything that was written before, by whomever, survive a loss of power. Others may write meanwhile.

        Raises LedgerError: it may be lost, and nothing more can be written here.
        """
        self._syncing.wait(self._sync_written)

    @abstractmethod
    def read(self, sql: str, *arguments: object) -> list[tuple[Any, ...]]:
        """The rows of a query. Raises LedgerError: it cannot be read."""

    @abstractmethod
    def now(self) -> float:
        """The time in seconds since 1970, by the one clock of all who share it.

        Raises LedgerError: it cannot be read.
        """

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[None]:
        """Read what is there now, whatever is written meanwhile."""

    @abstractmethod
    def reader(self) -> LedgerStore:
        """The same, opened once more to be read, so that nobody waits for that."""

    @abstractmethod
    def tidy(self) -> None:
        """Take what was erased out of the files themselves.

        Raises LedgerError: somebody is reading or writing; what was erased may still stand in them.
        """

    @abstractmethod
    def take(self, lock: int) -> bool:
        """Take a lock, that of a run by its number; whether nobody else holds it. It is free when the process dies.

        Raises LedgerError: it cannot be held.
        """

    @abstractmethod
    def free(self, lock: int) -> None:
        """Give a lock back."""

    @abstractmethod
    def held(self, locks: Iterable[int]) -> set[int]:
        """Those of the locks that anybody holds. Raises LedgerError: that cannot be found out."""

    @abstractmethod
    def close(self) -> None:
        """Close it, and give every lock back; closing twice does nothing."""

    @abstractmethod
    def _sync_written(self) -> None:
        """Sync what was written; see `sync`."""

    @abstractmethod
    def _explain(self, error: Any) -> tuple[object, str]:
        """What is wrong, with what to do about it, and the driver's name for that, which may be empty."""

    @contextmanager
    def _using(self) -> Iterator[None]:
        """Use it as the only thread, and raise what the driver does as a `LedgerError`."""
        if os.getpid() != self._process:  # connections and locks are known by their process, and a fork shares them
            raise LedgerError(
                f"the ledger {self.path} was opened before this process was forked: open one in each process"
            )
        with self._lock:
            try:
                yield
            except self._failure as error:
                what, name = self._explain(error)
                raise LedgerError(f"the ledger {self.path}: {what} ({name or type(error).__name__})") from error
