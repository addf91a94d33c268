"""A ledger in one SQLite file, with the locks of its runs beside it."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from stepguard.core.sqlite_files import find_foreign, read_only_address
from stepguard.errors import ConfigError, LedgerError
from stepguard.ledger import store
from stepguard.ledger.locks import RunLocks
from stepguard.ledger.store import BUSY_SECONDS, LedgerStore, Transaction

# `StLg` in ASCII: it tells a ledger from every other SQLite file.
_APPLICATION: Final = 0x5374_4C67
_LONG: Final = 16 * 2**20
"""A log of more bytes than this is brought into the file."""
_FIRST_PAUSE: Final = 0.0001
_LONGEST_PAUSE: Final = 0.005
# Where there is `fdatasync`, which leaves out the times of the file: nobody reads them.
_sync: Final[Callable[[int], None]] = getattr(os, "fdatasync", os.fsync)
_REMEDIES: Final = {
    "SQLITE_FULL": "the disk is full: make room, and run again with the same run_id",
    "SQLITE_BUSY": f"another program has locked it for {BUSY_SECONDS:.0f} seconds: let it end, or keep the ledger on "
    "a local disk",
    "SQLITE_READONLY": "it may not be written to: allow that, or use another file",
    "SQLITE_PERM": "it may not be written to: allow that, or use another file",
    "SQLITE_CANTOPEN": "it cannot be opened: see that its folder is there and may be written to",
    "SQLITE_CORRUPT": "it is damaged: take it from a backup (`stepguard verify` says what can be read)",
    "SQLITE_NOTADB": "it is no ledger, or damaged: use another file, or take it from a backup",
    "SQLITE_IOERR": "the disk does not answer: see to it, and run again with the same run_id",
}


class LedgerFile(LedgerStore):
    """One SQLite file in write-ahead mode; it may be shared between threads, and the file between processes.

    Args:
        path: the file, made where it is not there.
        read_only: whether it is only read; nothing is written then, not even beside it, and it must be there.

    Raises:
        LedgerError: the file is something else, damaged, or of a later version of stepguard; or it cannot be opened.
        ConfigError: no file can be called so.
    """

    _failure = sqlite3.Error

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        super().__init__()
        _check_path(path)
        self.path = path
        self._absolute: Final = str(Path(path).absolute())  # which is no URI, whatever the name begins with
        beside = os.path.realpath(self._absolute)
        self._files: Final = self._absolute, f"{beside}-wal", f"{beside}-shm"
        self._unsynced: OSError | None = None
        self._log: int | None = None
        self._long: int = _LONG
        self._identity: tuple[tuple[int, int] | None, ...] = ()
        self._lock_path: Final = Path(f"{beside}-locks")  # the same under every name of the file
        self._locks: Final = RunLocks(str(self._lock_path))
        try:
            foreign = find_foreign(path, must_exist=read_only)
        except OSError as error:
            raise LedgerError(f"the ledger {path} cannot be read: {error.strerror or error}") from None
        if foreign:
            raise LedgerError(f"{path} is no ledger: {foreign}")
        with self._using():
            self._connection = self._open_to_read() if read_only else _connect(self._absolute)
        self._closing: Final[list[Callable[[], object]]] = [weakref.finalize(self, self._connection.close)]
        try:
            with self._using():
                self._check_schema(make=not read_only)
                if not read_only and _write_ahead(self._connection):
                    self._open_log()
            self._identity = _identity(self._files)
        except BaseException:
            self.close()
            raise

    def _open_to_read(self) -> sqlite3.Connection:
        connection = _connect(f"{Path(self._absolute).as_uri()}?mode=ro", uri=True)
        try:
            connection.execute("select 1 from sqlite_master limit 1").fetchone()
        except sqlite3.Error as error:
            connection.close()
            if not isinstance(error, sqlite3.OperationalError) or error.sqlite_errorname.startswith("SQLITE_BUSY"):
                raise
            return _connect(read_only_address(self._absolute), uri=True)  # nothing can be made beside it
        return connection

    def _open_log(self) -> None:
        """Sync the log here from now on, and not in each commit, while the file is locked."""
        self._connection.execute("select 1 from sqlite_master limit 1").fetchone()  # which makes it
        try:
            self._log = os.open(self._files[1], os.O_RDWR | getattr(os, "O_BINARY", 0))
        except OSError as error:  # SQLite itself has opened it to be read, and would say so at the first record
            raise LedgerError(f"the ledger {self.path}: {_REMEDIES['SQLITE_READONLY']} ({error.strerror})") from error
        self._closing.insert(0, weakref.finalize(self, os.close, self._log))
        # `sync` and `_shorten_log` do what SQLite would do itself while it holds the file.
        for setting in ("synchronous = normal", "wal_autocheckpoint = 0", f"journal_size_limit = {_LONG}"):
            self._connection.execute(f"pragma {setting}")

    def _check_schema(self, *, make: bool) -> None:
        if make:
            self._connection.execute("begin immediate")  # another process may be making the same file
        application = self._pragma("application_id")
        empty = self._connection.execute("select count(*) from sqlite_master").fetchone()[0] == 0
        if make and empty and application == 0:
            for table in store.TABLES:
                self._connection.execute(table)
            self._connection.execute(f"pragma application_id = {_APPLICATION}")
            self._connection.execute(f"pragma user_version = {store.SCHEMA}")
            application = _APPLICATION
        if make:
            self._connection.execute("commit")
        if application != _APPLICATION:
            raise LedgerError(f"{self.path} is no ledger: it is a database of something else")
        version = self._pragma("user_version")
        if fault := store.schema_fault(self.path, version, write=make):
            raise LedgerError(fault)
        if version != store.SCHEMA:
            self._migrate()

    def _migrate(self) -> None:
        """Bring a file of an earlier version to this one, all of it or nothing."""
        with self.writing() as transaction:
            for earlier in range(self._pragma("user_version"), store.SCHEMA):  # another process may have begun
                for statement in store.MIGRATIONS[earlier]:
                    transaction.execute(statement)
            transaction.execute(f"pragma user_version = {store.SCHEMA}")

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"pragma {name}").fetchone()[0])

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        with self._using():
            self._check_there()
            self._check_synced()
            self._begin()
            try:
                yield Transaction(self._connection)
                self._connection.execute("commit")
                self._syncing.note()
            except BaseException:
                with suppress(sqlite3.Error):  # it may have been rolled back already
                    self._connection.execute("rollback")
                raise
            self._shorten_log()

    def _check_there(self) -> None:
        """See that what is written will be where others look for it.

        Raises LedgerError: the file, or one of those beside it, was taken away.
        """
        identity = _identity(self._files)
        if self._identity in ((), identity):
            return
        if self._identity[0] == identity[0] and identity[1] is None:  # nobody has begun another log
            with suppress(sqlite3.Error):
                self._connection.execute("pragma wal_checkpoint(passive)").fetchone()  # what it held is in the file
        name = next(path for path, now, then in zip(self._files, identity, self._identity, strict=True) if now != then)
        raise LedgerError(
            f"the ledger {self.path}: {name} was removed or replaced while it was open: what is written now would be "
            "lost; open it again"
        )

    def _begin(self) -> None:
        """Begin to write once nobody else does. SQLite itself would look again after 1, 2, 5, 10, ... 100 ms, for which
        the file is free and the cores are idle: a transaction takes a fraction of the first of them.
        """
        until, pause = time.monotonic() + BUSY_SECONDS, _FIRST_PAUSE
        self._connection.execute("pragma busy_timeout = 0")
        try:
            while True:
                try:
                    # Immediate: a transaction that began by reading may fail when it wants to write.
                    self._connection.execute("begin immediate")
                except sqlite3.OperationalError as error:
                    if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > until:
                        raise
                else:
                    return
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        finally:
            self._connection.execute(f"pragma busy_timeout = {1000 * BUSY_SECONDS:.0f}")

    def _shorten_log(self) -> None:
        """Bring a long log into the file. SQLite's own way would not come to its end while other processes write."""
        if self._log is None or os.fstat(self._log).st_size <= self._long:
            return
        self._long = os.fstat(self._log).st_size + _LONG
        with suppress(sqlite3.Error):  # on a full disk, say: what was written is durable in the log all the same
            self._connection.execute("pragma wal_checkpoint(passive)").fetchone()  # most of it, while others may write
            self._connection.execute("pragma busy_timeout = 100")
            if not self._connection.execute("pragma wal_checkpoint(restart)").fetchone()[0]:
                self._long = _LONG  # and nobody reads what was there before
        self._connection.execute(f"pragma busy_timeout = {1000 * BUSY_SECONDS:.0f}")

    def _sync_written(self) -> None:
        self._check_synced()
        if self._closed:
            raise LedgerError(f"the ledger {self.path} was closed before it was synced")
        if self._log is None:  # SQLite syncs each commit
            return
        try:
            _sync(self._log)
        except OSError as error:
            self._unsynced = error
            self._check_synced()

    def _check_synced(self) -> None:
        """See that nothing was lost: a system forgets what it could not write, and its next sync would not miss it."""
        if self._unsynced is not None:
            raise LedgerError(f"the ledger {self.path}: {_REMEDIES['SQLITE_IOERR']} ({self._unsynced})")

    def read(self, sql: str, *arguments: object) -> list[tuple[Any, ...]]:
        with self._using():
            return self._connection.execute(sql, arguments).fetchall()

    def now(self) -> float:
        return time.time()

    def tidy(self) -> None:
        with self._using():
            self._connection.execute("vacuum")
            busy = self._connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0]
        if busy:
            raise LedgerError(
                f"another program is reading the ledger {self.path}, so that its files still hold what was erased: "
                "erase the same runs again when it has ended"
            )

    def reader(self) -> LedgerFile:
        return LedgerFile(self._absolute, read_only=True)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._using():
            self._connection.execute("begin")
            try:
                yield
            finally:
                self._connection.execute("rollback")

    def take(self, lock: int) -> bool:
        try:
            return self._locks.take(lock)
        except OSError as error:
            raise LedgerError(f"the locks of the ledger {self.path} cannot be held: {error}") from None

    def free(self, lock: int) -> None:
        self._locks.free(lock)

    def held(self, locks: Iterable[int]) -> set[int]:
        if not self._lock_path.exists():  # none are held of a copy
            return set()
        try:
            return {lock for lock in locks if self._locks.is_held(lock)}
        except OSError as error:
            raise LedgerError(f"the locks of the ledger {self.path} cannot be seen: {error}") from None

    def close(self) -> None:
        # A sync under way still needs the log.
        with self._lock, self._syncing.lock:
            self._closed = True
            for close in self._closing:
                close()
        self._locks.close()

    def _explain(self, error: sqlite3.Error) -> tuple[object, str]:
        name = getattr(error, "sqlite_errorname", "") or ""
        return next((text for key, text in _REMEDIES.items() if name.startswith(key)), error), name


def _check_path(path: str) -> None:
    if path == ":memory:":
        raise ConfigError("a ledger in memory keeps nothing: give the path of a file", option="ledger")
    if "\0" in path:
        raise ConfigError("ledger is the path of a file, which holds no NUL", option="ledger")
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        reason = f"no file can be called {path!a} where names are in {sys.getfilesystemencoding()}"
        raise ConfigError(f"ledger: {reason}", option="ledger") from None


def _identity(paths: Iterable[str]) -> tuple[tuple[int, int] | None, ...]:
    """Which files paths name, None for each that is not there."""
    identities: list[tuple[int, int] | None] = []
    for path in paths:
        try:
            facts = os.stat(path)
        except OSError:
            identities.append(None)
        else:
            identities.append((facts.st_dev, facts.st_ino))
    return tuple(identities)


def _connect(address: str, *, uri: bool = False) -> sqlite3.Connection:
    # `LedgerStore._using` lets one thread in at a time.
    connection = sqlite3.connect(address, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=uri)
    try:
        connection.execute("pragma secure_delete = on")  # what is erased is overwritten
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _write_ahead(connection: sqlite3.Connection) -> bool:
    """Set the mode in which readers and the writer do not wait for each other, once for a file; whether it can be."""
    connection.execute("pragma synchronous = full")
    until = time.monotonic() + BUSY_SECONDS
    while connection.execute("pragma journal_mode").fetchone()[0] != "wal":
        try:
            if connection.execute("pragma journal_mode = wal").fetchone()[0] != "wal":
                return False  # a file system that cannot
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > until:
                raise
            time.sleep(0.01)
    return True
