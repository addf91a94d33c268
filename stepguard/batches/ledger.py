"""Keeps durably which rows of a batch are done: the file of results, and beside it what resuming needs.

A result is first appended to its file and then noted in the ledger, with where it ends and a checksum of all before it.
A kill between the two leaves one record too many, or a torn one, which is cut off when the batch is resumed; its
run is then done again from the replies that were kept. So every row stands once in the file, whenever the kill came.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from stepguard.batches.records import RecordFormat
from stepguard.core.closing import Closing
from stepguard.errors import ConfigError

_TABLES: Final = (
    "create table if not exists batch (name text primary key, value text not null) without rowid",
    "create table if not exists rows (number integer primary key, digest text not null, status text not null, "
    "strength text not null, start integer not null, finish integer not null)",
)
_BUSY_SECONDS: Final = 30.0
_CHUNK: Final = 2**20


def ledger_path(out: Path) -> Path:
    """The file beside the results that holds the ledger and the replies."""
    return out.with_name(f"{out.name}.resume")


def check_start(out: Path, *, resume: bool) -> None:
    """Refuse to overwrite results, and to resume any without the ledger that says what they are.

    Raises ConfigError: there are results and `resume` is not set, or no ledger is beside them.
    """
    path = ledger_path(out)
    known, written = path.exists(), out.exists() and out.stat().st_size > 0
    if not resume and (known or written):
        there = out if written else path
        raise ConfigError(f"{there} exists: pass --resume to go on with it, or another --out", option="out")
    if written and not known:
        raise ConfigError(f"{out} cannot be gone on with: {path.name} is not beside it", option="out")
    if not out.parent.is_dir():
        raise ConfigError(f"there is no folder {out.parent} for the results", option="out")


class BatchLedger(Closing):
    """The results that are there, and where the next one goes; failed ones are dropped, to be tried again.

    Args:
        out: the file of results.
        form: how they are written.
        about: what the results depend on; a batch can only be resumed where it is the same.

    Raises:
        ConfigError: the results were changed, are of something else, or another process is writing them.
        OSError: a file cannot be read or written.
    """

    def __init__(self, out: Path, form: RecordFormat, about: Mapping[str, str]) -> None:
        self._out: Final = out
        self._new: Final = out.with_name(f"{out.name}.new")
        self._form: Final = form
        path = ledger_path(out)
        self._connection: Final = sqlite3.connect(path, timeout=_BUSY_SECONDS)
        try:
            for table in _TABLES:
                self._connection.execute(table)
            self._connection.execute("pragma journal_mode = wal")
            # A kill loses no commit in this mode; a power cut may, and `_check` refuses what no longer fits.
            self._connection.execute("pragma synchronous = normal")
            self._agree(about)
            self._finish_swap()
            self._file = self._open()
        except BaseException as error:
            self._connection.close()
            if isinstance(error, sqlite3.DatabaseError):
                raise ConfigError(f"{path} is no ledger of a batch: {error}", option="out") from None
            raise
        try:
            self._end, self._crc = self._check()
            self._drop_failed()
        except BaseException:
            self.close()
            raise

    def fact(self, name: str) -> str | None:
        """Something that was noted for the whole batch, None where it was not."""
        row = self._connection.execute("select value from batch where name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def note(self, **facts: object) -> None:
        """Note something for the whole batch."""
        with self._connection:
            self._set(**facts)

    def digest_of(self, number: int) -> str | None:
        """What is known of the inputs of a row that is done, None where it is not."""
        row = self._connection.execute("select digest from rows where number = ?", (number,)).fetchone()
        return None if row is None else str(row[0])

    def add(self, number: int, digest: str, status: str, strength: str, record: bytes) -> None:
        """Append a result; a kill cannot lose it once this has returned."""
        written = 0
        # The file is unbuffered, and may take a part of what it is given.
        while written < len(record):
            written += self._file.write(record[written:])
        start, self._end = self._end, self._end + len(record)
        self._crc = zlib.crc32(record, self._crc)
        with self._connection:
            self._connection.execute(
                "insert into rows values (?, ?, ?, ?, ?, ?)", (number, digest, status, strength, start, self._end)
            )
            self._set(end=self._end, crc=self._crc)

    @property
    def rows(self) -> int:
        """How many rows are done."""
        return int(self._connection.execute("select count(*) from rows").fetchone()[0])

    @property
    def last(self) -> int:
        """The highest index of a row that is done, -1 where none is."""
        number = self._connection.execute("select max(number) from rows").fetchone()[0]
        return -1 if number is None else int(number)

    def counts(self) -> dict[tuple[str, str], int]:
        """How many rows have ended with each status and strength."""
        groups = self._connection.execute("select status, strength, count(*) from rows group by 1, 2 order by 1, 2")
        return {(status, strength): count for status, strength, count in groups}

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        self._connection.close()

    def _set(self, **facts: object) -> None:
        for name, value in facts.items():
            self._connection.execute("insert or replace into batch values (?, ?)", (name, str(value)))

    def _agree(self, about: Mapping[str, str]) -> None:
        known = self.fact("about")
        if known is None:
            self.note(about=json.dumps(about))
            return
        theirs: dict[str, Any] = json.loads(known)
        for name in sorted({*theirs, *about}):
            was, now = theirs.get(name), about.get(name)
            if was != now:
                change = f"its {name} has changed" if name == "procedure" else f"{name} was {was} and is {now}"
                raise ConfigError(f"{self._out} is of another batch: {change}; use another --out", option="out")

    def _open(self) -> Any:
        file = self._out.open("ab", buffering=0)
        try:
            import fcntl
        except ImportError:  # Windows
            return file
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = os.path.samestat(os.fstat(file.fileno()), self._out.stat())  # else somebody has just replaced it
        except OSError:
            alone = False
        if alone:
            return file
        file.close()
        raise ConfigError(f"{self._out} is being written by another process", option="out")

    def _check(self) -> tuple[int, int]:
        """Where the results end, and their checksum; what a kill has left behind their end is cut off."""
        known, size = self.fact("end"), os.fstat(self._file.fileno()).st_size
        if known is None:
            if size > len(self._form.head):
                raise ConfigError(f"{self._out} holds something that this batch has not written", option="out")
            self._file.truncate(0)  # a part of the head
            self._file.write(self._form.head)
            end, crc = len(self._form.head), zlib.crc32(self._form.head)
            self.note(end=end, crc=crc)
            return end, crc
        end, crc = int(known), 0
        with self._out.open("rb") as file:
            left = end
            while left and (piece := file.read(min(left, _CHUNK))):
                crc, left = zlib.crc32(piece, crc), left - len(piece)
            # No kill leaves less than is noted, other bytes, or more than one record behind them.
            if left or str(crc) != self.fact("crc") or not self._form.is_torn(file.read()):
                raise ConfigError(
                    f"{self._out} is not what this batch has written: it was changed since; use another --out",
                    option="out",
                )
        if size > end:
            self._file.truncate(end)
        return end, crc

    def _drop_failed(self) -> None:
        """Take the failed rows out of the file: what failed them, an outage say, may be over."""
        if self._connection.execute("select 1 from rows where status = 'failed' limit 1").fetchone() is None:
            return
        # Copied, not edited in place: a kill leaves the old file whole.
        with self._out.open("rb") as old, self._new.open("wb") as new, self._connection:
            new.write(self._form.head)
            self._crc = zlib.crc32(self._form.head)
            self._connection.execute("delete from rows where status = 'failed'")
            kept = self._connection.execute("select number, start, finish from rows order by start").fetchall()
            for number, start, finish in kept:
                old.seek(start)
                record = old.read(finish - start)
                place = (new.tell(), new.tell() + len(record), number)
                self._connection.execute("update rows set start = ?, finish = ? where number = ?", place)
                self._crc = zlib.crc32(record, self._crc)
                new.write(record)
            # Before the commit, from which on the new file is the one that counts.
            new.flush()
            self._end = new.tell()
            self._set(end=self._end, crc=self._crc, swap=1)
        self._file.close()
        self._finish_swap()
        self._file = self._open()

    def _finish_swap(self) -> None:
        """Put the file without failed rows in the place of the old one, also after a kill."""
        if self.fact("swap") != "1":
            return
        # A kill may also have come between the replacement and the note.
        if self._new.exists():
            self._new.replace(self._out)
        self.note(swap=0)
