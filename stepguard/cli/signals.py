"""A command that is told to end (SIGTERM) ends as with Ctrl-C: what was paid for is kept and told."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass


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
