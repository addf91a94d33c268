"""Locks of runs: one byte of a file for each run under way, which the system frees when its process ends."""

from __future__ import annotations

import os
import struct
import sys
import threading
import weakref
from typing import Final


class RunLocks:
    """The locks that one ledger holds in this process.

    A process that is killed holds none any more, so that its runs can be continued at once. (On a network file
    system locks may not be seen by other machines; the epoch of a run refuses the second writer there.)

    Args:
        path: the file, made where it is not there. It holds nothing.
    """

    def __init__(self, path: str) -> None:
        self._path: Final = path
        self._process: Final = os.getpid()
        self._guard: Final = threading.Lock()
        self._held: Final[set[int]] = set()
        self._file: int | None = None
        self._closing: weakref.finalize[[int], RunLocks] | None = None

    def take(self, run: int) -> bool:
        """Take the lock of a run, by its number; whether nobody else holds it.

        Raises OSError: the file cannot be made.
        """
        with self._guard:
            if run in self._held:
                return False
            # `_held` is asked first: where a lock is the process's, the system grants it twice.
            if not _lock(self._opened(), run):
                return False
            self._held.add(run)
            return True

    def is_held(self, run: int) -> bool:
        """Whether anybody holds the lock of a run. Raises OSError: the file cannot be opened."""
        with self._guard:
            if run in self._held:
                return True
            return _is_locked(self._opened(), run)

    def free(self, run: int) -> None:
        """Give the lock of a run back."""
        with self._guard:
            if run in self._held and self._file is not None:
                self._held.remove(run)
                if os.getpid() != self._process:  # a forked process may not free what the first one holds
                    return
                _unlock(self._file, run)

    def close(self) -> None:
        """Give everything back."""
        with self._guard:
            self._held.clear()
            if self._closing is not None:
                self._closing()
                self._file = self._closing = None

    def _opened(self) -> int:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            self._closing = weakref.finalize(self, os.close, self._file)
        return self._file


if sys.platform == "win32":
    import msvcrt

    def _lock(file: int, at: int) -> bool:
        os.lseek(file, at, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(file: int, at: int) -> None:
        os.lseek(file, at, os.SEEK_SET)
        msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

    def _is_locked(file: int, at: int) -> bool:
        if _lock(file, at):
            _unlock(file, at)
            return False
        return True

else:
    import fcntl

    # Of Linux: held by the open file and not by the process, so that two ledgers in one process see each other.
    _OF_FILE: Final = getattr(fcntl, "F_OFD_SETLK", None) if sys.platform == "linux" else None

    def _lock(file: int, at: int) -> bool:
        try:
            if _OF_FILE is not None:
                # The C struct flock: type, whence, start, length, pid (0 for these locks).
                fcntl.fcntl(file, _OF_FILE, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, at, 1, 0))
            else:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, at)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _unlock(file: int, at: int) -> None:
        if _OF_FILE is not None:
            fcntl.fcntl(file, _OF_FILE, struct.pack("hhqqi4x", fcntl.F_UNLCK, os.SEEK_SET, at, 1, 0))
        else:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, at)

    def _is_locked(file: int, at: int) -> bool:
        if _OF_FILE is not None:
            asked = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, at, 1, 0)
            kind: int = struct.unpack_from("h", fcntl.fcntl(file, fcntl.F_OFD_GETLK, asked))[0]
            return kind != fcntl.F_UNLCK
        if _lock(file, at):
            _unlock(file, at)
            return False
        return True
