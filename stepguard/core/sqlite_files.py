"""SQLite files: what is one, and how to read one without writing to it."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

_SMALLEST: Final = 512
"""The smallest page of SQLite, in bytes: no database is smaller."""


def find_foreign(path: str, *, must_exist: bool) -> str | None:
    """Why a file is no database; None where it may be one, which SQLite will say, or is still to be made.

    SQLite takes a very short file for an empty database, and writes into it. The file is not opened here: to close it
    would free the locks that another connection of this process holds on it, and a second process would take the log
    away under that one.

    Raises OSError: the file may not be read, or is not there although it must.
    """
    try:
        facts = os.stat(path)
    except FileNotFoundError:
        if must_exist:
            raise
        return None
    if not stat.S_ISREG(facts.st_mode):  # to read a pipe would wait for ever
        return "it is no file"
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    if facts.st_size == 0:
        return "it is empty" if must_exist else None
    return "it is no database" if facts.st_size < _SMALLEST else None


def read_only_address(path: str) -> str:
    """The address under which SQLite reads a file, and writes nothing.

    Beside a file in write-ahead mode it would make two others, which fails in a folder that cannot be written to;
    ``immutable`` says that nobody changes the file, and it makes none. Where somebody writes it now, or was killed, the
    log beside it holds what is newest.
    """
    log = Path(f"{path}-wal")
    unchanging = not log.exists() or log.stat().st_size == 0
    return f"{Path(path).absolute().as_uri()}?{'immutable=1' if unchanging else 'mode=ro'}"
