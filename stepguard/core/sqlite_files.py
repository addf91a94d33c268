"""SQLite files: what is one, and how one is read that nobody may write to."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_MAGIC: Final = b"SQLite format 3\0"


def find_foreign(path: str, *, must_exist: bool) -> str | None:
    """Why a file is no database, None where it is one, or is still to be made.

    SQLite takes a very short file for an empty database, and writes into it.

    Raises:
        OSError: the file cannot be read, or is not there although it must.
    """
    if Path(path).exists() and not Path(path).is_file():  # to read a pipe would wait for ever
        return "it is no file"
    try:
        with Path(path).open("rb") as file:
            begins = file.read(len(_MAGIC))
    except FileNotFoundError:
        if must_exist:
            raise
        return None
    if begins != _MAGIC and (begins or must_exist):
        return "it is no database" if begins else "it is empty"
    return None


def read_only_address(path: str) -> str:
    """The address under which SQLite reads a file, and writes nothing.

    Beside a file in write-ahead mode it would make two others, which fails in a folder that cannot be written to, so
    that it is told that nobody changes the file. Where somebody writes it now, or was killed, there is a log beside it
    that holds what is newest.
    """
    log = Path(f"{path}-wal")
    unchanging = not log.exists() or log.stat().st_size == 0
    return f"{Path(path).absolute().as_uri()}?{'immutable=1' if unchanging else 'mode=ro'}"
