"""Whole requests and replies in one SQLite file.

Every reply is durable when `ReplyStore.put` returns: a program that is killed loses only what is still on its way.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from stepguard.errors import ConfigError

__all__ = ["ReplyStore"]

_TABLES: Final = """
create table if not exists about (name text primary key, value text not null) without rowid;
create table if not exists replies (
    key text primary key, request text not null, completion text not null, seconds real not null
) without rowid;
"""
_FORMAT: Final = "1"
_BUSY_SECONDS: Final = 30.0


class ReplyStore:
    """Replies by key, with the requests they answer, and some facts about all of them.

    It may be shared between threads, and the file between processes.

    Args:
        path: the file, made where it is not there; ``":memory:"`` keeps nothing.

    Raises:
        ConfigError: the file is something else, or of a later version of stepguard.
        OSError: the file cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._path: Final = path
        self._lock: Final = threading.Lock()
        if path != ":memory:" and not Path(path).parent.is_dir():
            raise FileNotFoundError(f"there is no folder {Path(path).parent} for the recording")
        try:
            self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
            self._connection.execute("pragma journal_mode = wal")
            self._connection.execute("pragma synchronous = normal")
            self._connection.executescript(_TABLES)
        except sqlite3.DatabaseError as error:
            raise ConfigError(f"{path} is no recording: {error}", option="path") from None
        found = self.about("format")
        if found is None:
            self.tell("format", _FORMAT)
        elif found != _FORMAT:
            self.close()
            raise ConfigError(f"{path} is a recording of format {found}; this version reads {_FORMAT}", option="path")

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

    def __len__(self) -> int:
        with self._lock:
            return int(self._connection.execute("select count(*) from replies").fetchone()[0])

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        with self._lock:
            self._connection.close()
