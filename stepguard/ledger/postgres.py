"""A ledger in a schema of a Postgres database (``pip install "stepguard[postgres]"``).

Writers wait for each other by a lock that ends with their transaction, because every record is chained to the one
before it. The lock of a run is one of the session: the server frees it when the process or its machine dies, and where
only the connection was lost, the epoch of the run refuses the second writer.

Where a connection is lost while a transaction is committed, nobody has said whether it was. The lock of the writers is
taken anew, which waits until the server has done with the lost transaction, and then the hash of its last record is
there or not.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from importlib import import_module
from typing import Any, Final

from stepguard.errors import ConfigError, LedgerError, MissingExtraError
from stepguard.ledger import store
from stepguard.ledger.addresses import read_address, without_password
from stepguard.ledger.postgres_sql import PostgresSql, translated, typed
from stepguard.ledger.store import BUSY_SECONDS, LedgerStore, Transaction

_LOST_SECONDS: Final = 20.0
"""How long a server that was lost while something was committed is waited for."""
# Both sides notice a cut connection within a minute; a process that stops while it writes is disconnected.
_KEEPALIVES: Final = {"idle": 20, "interval": 10, "count": 3}
_CONNECTING: Final = {
    "connect_timeout": 10,
    "application_name": "stepguard",
    "client_encoding": "utf8",
    **{f"keepalives_{name}": value for name, value in _KEEPALIVES.items()},
    "tcp_user_timeout": 30_000,
}
_SESSION: Final = {
    "lock_timeout": f"{BUSY_SECONDS:.0f}s",
    "idle_in_transaction_session_timeout": "60s",
    **{f"tcp_keepalives_{name}": f"{value}" for name, value in _KEEPALIVES.items()},
    "tcp_user_timeout": "30s",
}
# By SQLSTATE.
_REMEDIES: Final = {
    "53100": "the disk of the server is full: make room, and run again with the same run_id",
    "55P03": f"another program has locked it for {BUSY_SECONDS:.0f} seconds: let it end, and try again",
    "42501": "this user may not do that: grant it what it needs on the schema (docs/how-to/workers.md)",
    "25006": "it may not be written to: it was opened to be read, or the server is a standby",
    "42P01": "its tables are gone: take them from a backup, or use another schema",
    "42703": "its tables are not those of a ledger: take them from a backup, or use another schema",
    "XX001": "it is damaged: take it from a backup (`stepguard verify` says what can be read)",
}


class LedgerDatabase(LedgerStore):
    """One schema of a Postgres database; see `stepguard.ledger.store.LedgerStore`.

    Args:
        address: ``postgresql://user@host/database``; ``schema`` among its options names the schema.
        read_only: whether it is only read; it must be there then.

    Raises:
        MissingExtraError: psycopg is not installed.
        ConfigError: it is no such address.
        LedgerError: it cannot be reached, is something else, or of a later version of stepguard.
    """

    def __init__(self, address: str, *, read_only: bool = False) -> None:
        super().__init__()
        try:
            self._psycopg: Final[Any] = import_module("psycopg")
        except ImportError:
            raise MissingExtraError("a ledger in Postgres", extra="postgres") from None
        self._failure = self._psycopg.Error
        self._address: Final = address
        self.path, self._schema, given = read_address(address)
        try:
            self._options: Final[Any] = {**_CONNECTING, **import_module("psycopg.conninfo").conninfo_to_dict(given)}
        except self._psycopg.Error as error:
            what = f"ledger is no address of a Postgres database ({without_password(address, str(error))})"
            raise ConfigError(f"{what}: postgresql://user@host/database", option="ledger") from None
        self._read_only: Final = read_only
        self._busy = 0
        self._head: tuple[int, bytes] | None = None
        self._held: Final[set[int]] = set()
        self._freed: Final[list[int]] = []
        with self._using():
            self._connection = self._connect()
            try:
                self._check_schema(make=not read_only)
            except BaseException:
                self.close()
                raise

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        begin = "begin isolation level read committed; set local synchronous_commit = off"  # `sync` waits for the disk
        with self._using():
            self._first(f"{begin}; select pg_advisory_xact_lock({self._key('writer')})")
            try:
                transaction = Transaction(PostgresSql(self._connection))
                yield transaction
            except BaseException:
                with suppress(self._psycopg.Error):
                    self._connection.execute("rollback")
                raise
            self._commit(transaction)
            self._head = transaction.head or self._head
            self._syncing.note()

    def _sync_written(self) -> None:
        """Commit something that waits for the disk: whatever was committed before it is there as well."""
        sql = "select pg_logical_emit_message(true, 'stepguard', ''), count(*) from records"
        with self._using():
            number, digest = self._head or (0, b"")
            # A server that was lost and came back may lack what it had not written yet.
            kept = self._first(f"{sql} where number = %s and hash = %s", [number, digest]).fetchone()[1]
        if self._head is not None and not kept:
            what = f"the ledger {self.path}: the server was lost, and what was written last with it"
            raise LedgerError(f"{what}: run again with the same run_id")

    def read(self, sql: str, *arguments: object) -> list[tuple[Any, ...]]:
        with self._using():
            return list(self._first(translated(sql), arguments).fetchall())

    def now(self) -> float:
        return float(self.read("select extract(epoch from clock_timestamp())::double precision")[0][0])

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._using():
            self._first("begin isolation level repeatable read read only")
            try:
                yield
            finally:
                with suppress(self._psycopg.Error):
                    self._connection.execute("rollback")

    def reader(self) -> LedgerDatabase:
        return LedgerDatabase(self._address, read_only=True)

    def tidy(self) -> None:
        warnings: list[str] = []
        with self._using():
            self._first("select 1")
            handler = lambda notice: warnings.append(str(notice.message_primary))  # noqa: E731
            self._connection.add_notice_handler(handler)
            try:
                self._connection.execute("vacuum (full) records, runs, procedures")
            finally:
                self._connection.remove_notice_handler(handler)
        if warnings:  # who may not do it is only warned
            what = f"the tables of the ledger {self.path} were not rewritten and still hold what was erased"
            raise LedgerError(f"{what} ({warnings[0]}): erase the same runs again as their owner")

    def take(self, lock: int) -> bool:
        with self._using():
            self._first("select 1")  # a connection that was lost held no locks any more
            if lock in self._held or not self._take(lock):
                return False
            self._held.add(lock)
            return True

    def free(self, lock: int) -> None:
        # The finalizer of a writer calls this at any moment, in the middle of a statement of this thread, too.
        if lock in self._held and os.getpid() == self._process:
            self._held.discard(lock)
            self._freed.append(lock)
            with self._lock:
                if not self._busy:
                    self._busy = 1  # a collection may free another one meanwhile
                    self._unlock_freed()
                    self._busy = 0

    def held(self, locks: Iterable[int]) -> set[int]:
        # Postgres lists a lock of one 64-bit key (objsubid 1) as two unsigned halves.
        wanted = {self._key(str(lock)) % 2**64: lock for lock in locks}
        if not wanted:
            return set()
        rows = self.read(
            "select classid, objid from pg_locks where locktype = 'advisory' and objsubid = 1 and granted"
            " and database = (select oid from pg_database where datname = current_database())"
        )
        return {wanted[key] for high, low in rows if (key := (high << 32) + low) in wanted}

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._held.clear()
            _close(self._connection, self._process)

    def _connect(self) -> Any:
        # Otherwise psycopg begins a transaction with every read.
        connection = self._psycopg.connect(**self._options, autocommit=True)
        weakref.finalize(self, _close, connection, os.getpid())
        try:
            for name, value in _SESSION.items():
                with suppress(self._psycopg.errors.UndefinedObject):  # of an older server
                    connection.execute(f"set {name} = '{value}'")
            if self._read_only:
                connection.execute("set default_transaction_read_only = on")
            connection.execute(f'set search_path to "{self._schema}"')
            if (encoding := connection.info.parameter_status("server_encoding")) != "UTF8":
                what = f"{self.path} is a database in {encoding}, which cannot hold every text"
                raise LedgerError(f"{what}: use one in UTF8")
        except BaseException:
            connection.close()
            raise
        return connection

    def _first(self, sql: str, arguments: Sequence[object] = ()) -> Any:
        """Carry out what may be the first statement behind a pause, in which the connection may have been lost."""
        if self._closed:
            raise LedgerError(f"the ledger {self.path} was closed")
        # Never inside of a transaction, whose first half would be missing on a new connection.
        if self._connection.closed and self._busy == 1:
            self._reconnect()
        try:
            return self._connection.execute(sql, arguments or None)
        except self._psycopg.OperationalError:
            if not self._connection.closed or self._busy > 1:
                raise
        self._reconnect()
        return self._connection.execute(sql, arguments or None)

    def _reconnect(self) -> None:
        """Connect anew, with those locks that nobody has taken meanwhile."""
        self._connection = self._connect()
        self._check_schema(make=False)
        self._freed.clear()
        self._held.intersection_update([lock for lock in self._held if self._take(lock)])

    def _commit(self, transaction: Transaction) -> None:
        try:
            self._connection.execute("commit")
        except self._psycopg.OperationalError as error:
            if not self._connection.closed:
                raise
            if not self._was_committed(transaction, error):
                what = f"the ledger {self.path}: the connection was lost, and nothing was written"
                raise LedgerError(f"{what}: run again with the same run_id") from error

    def _was_committed(self, transaction: Transaction, error: Exception) -> bool:
        """Whether a transaction was committed whose connection was lost; see the head of this module."""
        until = time.monotonic() + _LOST_SECONDS
        while True:
            try:
                self._reconnect()
                with self._connection.transaction():
                    self._connection.execute(f"select pg_advisory_xact_lock({self._key('writer')})")
                    if transaction.head is not None:
                        sql = "select 1 from records where number = %s and hash = %s"
                        return self._connection.execute(sql, transaction.head).fetchone() is not None
            except self._psycopg.OperationalError:
                if time.monotonic() < until:
                    time.sleep(0.1)
                    continue
            what = "so that nobody can say whether it was: run again with the same run_id, which reads what is there"
            lost = f"the ledger {self.path}: the server was lost while it was written"
            raise LedgerError(f"{lost}, {what}") from error

    def _check_schema(self, *, make: bool) -> None:
        connection = self._connection
        if make:
            # Another process may be making the same schema.
            connection.execute("begin")
            connection.execute(f"select pg_advisory_xact_lock({self._key('writer')})")
        sql = "select tablename from pg_tables where schemaname = %s"
        tables = {name for (name,) in connection.execute(sql, [self._schema]).fetchall()}
        if make and not tables:
            if connection.execute("select 1 from pg_namespace where nspname = %s", [self._schema]).fetchone() is None:
                connection.execute(f'create schema "{self._schema}"')
            for table in (*store.TABLES, "create table stepguard_ledger (version integer not null)"):
                connection.execute(typed(table))
            connection.execute("insert into stepguard_ledger values (%s)", [store.SCHEMA])
            tables.add("stepguard_ledger")
        if "stepguard_ledger" not in tables:
            what = f"its schema {self._schema} {'is of something else' if tables else 'is not there, or empty'}"
            raise LedgerError(f"{self.path} is no ledger: {what}")
        ((version,),) = connection.execute(f'select version from "{self._schema}".stepguard_ledger').fetchall()
        if fault := store.schema_fault(self.path, version, write=make):
            raise LedgerError(fault)
        if make:
            for earlier in range(version, store.SCHEMA):
                for statement in store.MIGRATIONS[earlier]:
                    connection.execute(typed(statement))
            if version != store.SCHEMA:
                connection.execute("update stepguard_ledger set version = %s", [store.SCHEMA])
            connection.execute("commit")

    def _take(self, lock: int) -> bool:
        return bool(self._connection.execute(f"select pg_try_advisory_lock({self._key(str(lock))})").fetchone()[0])

    def _key(self, name: str) -> int:
        """The number of a lock in the whole database."""
        digest = blake2b(f"stepguard {self._schema} {name}".encode(), digest_size=8).digest()
        return int.from_bytes(digest, signed=True)

    def _unlock_freed(self) -> None:
        while self._freed and not self._closed:
            lock = self._freed.pop()
            with suppress(self._psycopg.Error):  # a connection that was lost holds none
                self._connection.execute(f"select pg_advisory_unlock({self._key(str(lock))})")

    def _explain(self, error: Any) -> tuple[object, str]:
        state = error.sqlstate or ""
        return _REMEDIES.get(state) or without_password(self._address, str(error).strip()), state

    @contextmanager
    def _using(self) -> Iterator[None]:
        with super()._using():
            self._busy += 1
            try:
                yield
            finally:
                if self._busy == 1:
                    self._unlock_freed()
                self._busy -= 1


def _close(connection: Any, process: int) -> None:
    if os.getpid() == process:  # the connection of a process that was forked is that of the first one
        connection.close()
