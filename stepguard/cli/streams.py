"""The streams of a command, and how it ends when it is told to.

Results go to stdout, and what cannot be told on stderr stops nothing. SIGTERM ends a command as Ctrl-C does: what was
paid for is kept and told.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TextIO, cast


@contextlib.contextmanager
def usable_streams() -> Iterator[None]:
    """Streams to print to, whatever the command was started with; undone at the end.

    What the encoding of a stream lacks becomes a question mark, and what stderr cannot take is lost. A stdout that is
    closed stays None.
    """
    with contextlib.ExitStack() as stack:
        for stream in (sys.stdout, sys.stderr):
            # In the C locale Python gives stdout the handler "surrogateescape", which fails on characters as "strict".
            if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
                stack.callback(_reconfigure, stream, stream.errors)
                stream.reconfigure(errors="replace")
        given: TextIO | None = sys.stderr
        stack.callback(setattr, sys, "stderr", given)
        if given is None:
            # It takes the number of the stream that is closed, so that no file gets what is meant for it.
            given = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
        sys.stderr = cast(TextIO, _Lossy(given))
        yield


def _reconfigure(stream: io.TextIOWrapper, errors: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # closed, or its reader gone
        stream.reconfigure(errors=errors)


class _Lossy:
    """A stream that loses what it cannot take: its reader has gone, or the disk is full."""

    def __init__(self, stream: TextIO) -> None:
        self._stream: Final = stream

    def write(self, text: str) -> int:
        """Write a text, or lose it and all that follows."""
        try:
            return self._stream.write(text)
        except OSError:
            drop(self._stream)
            return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts as `write` does."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush, or lose what is held back."""
        try:
            self._stream.flush()
        except OSError:
            drop(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def drop(stream: TextIO) -> None:
    """Keep the interpreter from failing at exit, when it flushes what could not be written."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@dataclass(slots=True)
class Ending:
    """Whether a command was told to end by SIGTERM."""

    terminated: bool = False


@contextlib.contextmanager
def ended_by_signals() -> Iterator[Ending]:
    """Have SIGTERM interrupt what runs, where nobody else handles it; undone at the end."""
    ending = Ending()

    def interrupt(*_: object) -> None:
        ending.terminated = True
        if not callable(signal.getsignal(signal.SIGINT)):  # ignored, as in the background jobs of a shell
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)  # an event loop has its own way of being interrupted

    ours = threading.current_thread() is threading.main_thread()  # no other may set handlers
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield ending
        return
    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield ending
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
