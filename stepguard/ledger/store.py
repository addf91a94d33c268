"""The file of a ledger: records that are only ever added, each chained to the one before it by a hash.

A record is of a run and of a kind, and its body is JSON. Its digest is that of its body behind the salt of its run; its
hash is that of the record before it, of its own number, run and kind, and of its digest. What is erased leaves its
digest, from which nobody can tell the body without the salt, so that the chain stays whole.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from stepguard.core.sqlite_files import find_foreign, read_only_address
from stepguard.errors import LedgerError

__all__ = ["GENESIS", "MIGRATIONS", "SCHEMA", "LedgerFile", "Transaction", "chain_hash", "digest_of"]

SCHEMA: Final = 1
"""The version of the schema, the first one."""
MIGRATIONS: Final[Mapping[int, Sequence[str]]] = {}
"""What makes a file of each earlier version one of the next, in SQL. Records are left as they are, with their chain."""
GENESIS: Final = bytes(32)
"""What stands in the place of a hash before the first record."""

_APPLICATION: Final = 0x5374_4C67
_BUSY_SECONDS: Final = 30.0
_TABLES: Final = (
    "create table procedures (digest text primary key, name text not null, source text, operations text not null)"
    " without rowid",
    "create table runs (number integer primary key, name text not null unique, salt blob, epoch integer not null,"
    " procedure text not null, title text not null, status text not null, completed integer not null, total integer,"
    " calls integer not null, tokens integer not null, place text, reason text, started real not null, updated real"
    " not null)",
    "create table records (number integer primary key, run integer not null, kind text not null, body text,"
    " digest blob not null, hash blob not null)",
    "create index records_of_runs on records (run)",
)
_REMEDIES: Final = {
    "SQLITE_FULL": "the disk is full: make room, and run again with the same run_id",
    "SQLITE_BUSY": f"another program has locked it for {_BUSY_SECONDS:.0f} seconds: let it end, or keep the ledger on "
    "a local disk",
    "SQLITE_READONLY": "it may not be written to: allow that, or use another file",
    "SQLITE_PERM": "it may not be written to: allow that, or use another file",
    "SQLITE_CANTOPEN": "it cannot be opened: see that its folder is there and may be written to",
    "SQLITE_CORRUPT": "it is damaged: take it from a backup (`stepguard verify` says what can be read)",
    "SQLITE_NOTADB": "it is no ledger, or damaged: use another file, or take it from a backup",
    "SQLITE_IOERR": "the disk does not answer: see to it, and run again with the same run_id",
}


def digest_of(salt: bytes, body: str) -> bytes:
    """The digest of a record's body."""
    return sha256(salt + body.encode()).digest()


def chain_hash(before: bytes, number: int, run: int, kind: str, digest: bytes) -> bytes:
    """The hash of a record behind the one with the hash `before`."""
    return sha256(before + struct.pack(">qq", number, run) + digest + kind.encode()).digest()


class Transaction:
    """What is written at once, or not at all."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection: Final = connection
        last = connection.execute("select number, hash from records order by number desc limit 1").fetchone()
        self._number, self._hash = (0, GENESIS) if last is None else (int(last[0]), bytes(last[1]))

    def append(self, run: int, salt: bytes, records: Sequence[tuple[str, str]]) -> None:
        """Add records of a run: pairs of a kind and a body."""
        rows = []
        for kind, body in records:
            self._number += 1
            digest = digest_of(salt, body)
            self._hash = chain_hash(self._hash, self._number, run, kind, digest)
            rows.append((self._number, run, kind, body, digest, self._hash))
        self._connection.executemany("insert into records values (?, ?, ?, ?, ?, ?)", rows)

    def execute(self, sql: str, *arguments: object) -> sqlite3.Cursor:
        """Carry out another statement."""
        return self._connection.execute(sql, arguments)


class LedgerFile:
    """One SQLite file in write-ahead mode; it may be shared between threads, and the file between processes.

    Args:
        path: the file, made where it is not there.
        read_only: whether it is only read; nothing is written then, not even beside it, and it must be there.

    Raises:
        LedgerError: the file is something else, damaged, or of a later version of stepguard; or it cannot be opened.
    """

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        self.path: Final = path
        self._absolute: Final = str(Path(path).absolute())  # which is no URI, whatever the name begins with
        self._lock: Final = threading.RLock()
        self._synced = True
        self._identity: tuple[int, int] | None = None
        self._process: Final = os.getpid()
        try:
            foreign = find_foreign(path, must_exist=read_only)
        except OSError as error:
            raise LedgerError(f"the ledger {path} cannot be read: {error.strerror or error}") from None
        if foreign:
            raise LedgerError(f"{path} is no ledger: {foreign}")
        with self._explained():
            self._connection = self._open_to_read() if read_only else _connect(self._absolute)
        weakref.finalize(self, self._connection.close)
        try:
            with self._explained():
                self._check_schema(make=not read_only)
                if not read_only:
                    _write_ahead(self._connection)
            self._identity = _identity(self._absolute)
        except BaseException:
            self.close()
            raise

    def _open_to_read(self) -> sqlite3.Connection:
        connection = _connect(f"{Path(self._absolute).as_uri()}?mode=ro", uri=True)
        try:
            connection.execute("select 1 from sqlite_master limit 1").fetchone()
        except sqlite3.Error as error:
            connection.close()
            if not isinstance(error, sqlite3.OperationalError):
                raise
            return _connect(read_only_address(self._absolute), uri=True)  # nothing can be made beside it
        return connection

    def _check_schema(self, *, make: bool) -> None:
        if make:
            self._connection.execute("begin immediate")  # another process may be making the same file
        application = self._pragma("application_id")
        empty = self._connection.execute("select count(*) from sqlite_master").fetchone()[0] == 0
        if make and empty and application == 0:
            for table in _TABLES:
                self._connection.execute(table)
            self._connection.execute(f"pragma application_id = {_APPLICATION}")
            self._connection.execute(f"pragma user_version = {SCHEMA}")
            application = _APPLICATION
        if make:
            self._connection.execute("commit")
        if application != _APPLICATION:
            raise LedgerError(f"{self.path} is no ledger: it is a database of something else")
        if (version := self._pragma("user_version")) != SCHEMA:
            self._migrate(version, write=make)

    def _migrate(self, version: int, *, write: bool) -> None:
        """Bring a file of an earlier version to this one, all of it or nothing."""
        what = f"the ledger {self.path} has schema {version}, and this version of stepguard reads {SCHEMA}"
        if version > SCHEMA or not MIGRATIONS.keys() >= {*range(version, SCHEMA)}:
            raise LedgerError(f"{what}: use the version that wrote it{', or a later one' if version > SCHEMA else ''}")
        if not write:
            raise LedgerError(f"{what}: it is migrated when it is first opened to write, by a run say")
        with self.writing() as transaction:
            for earlier in range(self._pragma("user_version"), SCHEMA):  # another process may have begun
                for statement in MIGRATIONS[earlier]:
                    transaction.execute(statement)
            transaction.execute(f"pragma user_version = {SCHEMA}")

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"pragma {name}").fetchone()[0])

    @contextmanager
    def writing(self, *, synced: bool = True) -> Iterator[Transaction]:
        """Write in one transaction, which is durable when this is left.

        Args:
            synced: whether it is to survive a loss of power, and not only the death of the process.

        Raises:
            LedgerError: it cannot be written; nothing was.
        """
        with self._lock, self._explained():
            if self._identity is not None and _identity(self._absolute) != self._identity:
                raise LedgerError(
                    f"the ledger {self.path} was removed or replaced while it was open: what is written now would be "
                    "lost; open it again"
                )
            if synced != self._synced:
                self._connection.execute(f"pragma synchronous = {'full' if synced else 'normal'}")
                self._synced = synced
            self._connection.execute("begin immediate")
            try:
                yield Transaction(self._connection)
                self._connection.execute("commit")
            except BaseException:
                with suppress(sqlite3.Error):  # it may have been rolled back already
                    self._connection.execute("rollback")
                raise

    def read(self, sql: str, *arguments: object) -> list[tuple[Any, ...]]:
        """The rows of a query.

        Raises:
            LedgerError: the file cannot be read.
        """
        with self._lock, self._explained():
            return self._connection.execute(sql, arguments).fetchall()

    def tidy(self) -> None:
        """Take what was erased out of the file itself, and out of what SQLite keeps beside it.

        Raises:
            LedgerError: somebody is reading or writing the file; what was erased may still stand in it.
        """
        with self._lock, self._explained():
            self._connection.execute("vacuum")
            busy = self._connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0]
        if busy:
            raise LedgerError(
                f"another program is reading the ledger {self.path}, so that its files still hold what was erased: "
                "erase the same runs again when it has ended"
            )

    def reader(self) -> LedgerFile:
        """The same file, opened once more to be read, so that nobody waits for that."""
        return LedgerFile(self._absolute, read_only=True)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read what is there now, whatever is written meanwhile."""
        with self._lock, self._explained():
            self._connection.execute("begin")
            try:
                yield
            finally:
                self._connection.execute("rollback")

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        if os.getpid() != self._process:  # SQLite and the locks know a process by its files, which a fork shares
            raise LedgerError(
                f"the ledger {self.path} was opened before this process was forked: open one in each process"
            )
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "") or ""
            remedy = next((text for key, text in _REMEDIES.items() if name.startswith(key)), None)
            raise LedgerError(f"the ledger {self.path}: {remedy or error} ({name or type(error).__name__})") from error


def _identity(path: str) -> tuple[int, int] | None:
    """Which file a path names, None where there is none."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def _connect(address: str, *, uri: bool = False) -> sqlite3.Connection:
    connection = sqlite3.connect(address, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=uri)
    try:
        connection.execute("pragma secure_delete = on")  # what is erased is overwritten
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Set the mode in which readers and the writer do not wait for each other, once for a file."""
    until = time.monotonic() + _BUSY_SECONDS
    while connection.execute("pragma journal_mode").fetchone()[0] != "wal":
        try:
            if connection.execute("pragma journal_mode = wal").fetchone()[0] != "wal":
                break  # a file system that cannot
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > until:
                raise
            time.sleep(0.01)
    connection.execute("pragma synchronous = full")
