"""Whole requests and replies in one SQLite file.

Every reply is durable when `ReplyStore.put` returns: a program that is killed loses only what is still on its way.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from stepguard.core.sqlite_files import find_foreign, read_only_address
from stepguard.errors import ConfigError

_TABLES: Final = (
    "create table about (name text primary key, value text not null) without rowid",
    "create table replies (key text primary key, request text not null, completion text not null, seconds real not null"
    ") without rowid",
)
_PAGE: Final = 200
_FORMAT: Final = "1"
_BUSY_SECONDS: Final = 30.0  # other processes may be writing to the same file


class ReplyStore:
    """Replies by key, with the requests they answer, and some facts about all of them.

    It may be shared between threads, and the file between processes.

    Args:
        path: the file, made where it is not there; ``":memory:"`` keeps nothing.
        read_only: whether the file is only to be read; nothing is written, not even beside it, and it must be there.

    Raises:
        ConfigError: the file is something else, or of a later version of stepguard.
        OSError: the file cannot be opened.
    """

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        self._lock: Final = threading.Lock()
        if path != ":memory:":
            if not Path(path).parent.is_dir():
                raise FileNotFoundError(f"there is no folder {Path(path).parent} for the recording")
            _check_kind(path, read_only=read_only)
        address = read_only_address(path) if read_only else path
        try:
            self._connection = sqlite3.connect(address, timeout=_BUSY_SECONDS, check_same_thread=False, uri=read_only)
        except sqlite3.Error as error:
            raise OSError(f"{path} cannot be opened: {error}") from None
        try:
            if not read_only:
                self._make()
            known = self.about("format")
            self._connection.execute("select key, completion, seconds from replies limit 1").fetchone()
        except sqlite3.DatabaseError as error:
            self.close()
            raise ConfigError(f"{path} is no recording: {error}", option="path") from None
        if known != _FORMAT:
            self.close()
            if known is None:
                raise ConfigError(f"{path} is no recording: it does not say its format", option="path")
            raise ConfigError(f"{path} is a recording of format {known}; this version reads {_FORMAT}", option="path")
        if not read_only:  # and not before it is known to be ours: this is written into the file
            self._connection.execute("pragma journal_mode = wal")
            self._connection.execute("pragma synchronous = normal")

    def _make(self) -> None:
        """Make the tables where there are none. What holds anything else is left as it is."""
        with self._connection:
            self._connection.execute("begin immediate")  # another process may be making the same file
            if self._connection.execute("select count(*) from sqlite_master").fetchone()[0] == 0:
                for table in _TABLES:
                    self._connection.execute(table)
                self._connection.execute("insert into about values ('format', ?)", (_FORMAT,))

    def about(self, name: str) -> str | None:
        """A fact about the whole, None where nothing is known."""
        with self._lock:
            row = self._connection.execute("select value from about where name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def tell(self, name: str, value: str) -> None:
        """Set a fact about the whole."""
        with self._lock, self._connection:
            self._connection.execute("insert or replace into about values (?, ?)", (name, value))

    def get(self, key: str) -> tuple[str, float] | None:
        """The completion and how many seconds it took, None where there is none."""
        with self._lock:
            row = self._connection.execute("select completion, seconds from replies where key = ?", (key,)).fetchone()
        return None if row is None else (str(row[0]), float(row[1]))

    def put(self, key: str, request: str, completion: str, seconds: float) -> None:
        """Keep a reply; the first one for a key stays."""
        with self._lock, self._connection:
            self._connection.execute(
                "insert or ignore into replies values (?, ?, ?, ?)", (key, request, completion, seconds)
            )

    def all(self) -> Iterator[tuple[str, str, float]]:
        """Key, completion and seconds of every reply, sorted by key."""
        with self._lock:
            rows = self._connection.execute("select key, completion, seconds from replies order by key").fetchall()
        yield from ((str(key), str(completion), float(seconds)) for key, completion, seconds in rows)

    def find(self, wanted: Callable[[str], bool]) -> list[str]:
        """The keys of the replies of which the request or the completion, both JSON, is wanted."""
        keys, last = list[str](), ""
        while rows := self._page(last):
            last = rows[-1][0]
            keys += [key for key, request, completion in rows if wanted(request) or wanted(completion)]
        return keys

    def _page(self, last: str) -> list[tuple[str, str, str]]:
        sql = f"select key, request, completion from replies where key > ? order by key limit {_PAGE:d}"
        with self._lock:
            return self._connection.execute(sql, (last,)).fetchall()

    def erase(self, keys: Iterable[str]) -> None:
        """Take replies out, and out of the file itself; whoever needs one asks the model again.

        Raises ConfigError: another program is reading or writing the file, so that it may still hold them.
        """
        try:
            with self._lock:
                self._connection.execute("pragma secure_delete = on")
                with self._connection:
                    self._connection.executemany("delete from replies where key = ?", [(key,) for key in keys])
                self._connection.execute("vacuum")
                if not self._connection.execute("pragma wal_checkpoint(truncate)").fetchone()[0]:
                    return
            error: object = "another program is reading it"
        except sqlite3.OperationalError as failure:
            error = failure
        raise ConfigError(f"replies were not taken out of the file itself: {error}; erase again", option="path")

    def __len__(self) -> int:
        with self._lock:
            return int(self._connection.execute("select count(*) from replies").fetchone()[0])

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        with self._lock:
            self._connection.close()


def _check_kind(path: str, *, read_only: bool) -> None:
    """Refuse a file that is no database before SQLite writes into it."""
    if why := find_foreign(path, must_exist=read_only):
        raise ConfigError(f"{path} is no recording: {why}", option="path")
