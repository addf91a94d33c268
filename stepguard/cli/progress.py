"""Progress on stderr: a bar on a terminal, a few plain lines anywhere else."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol, Self, TextIO

from stepguard.cli.text import printable
from stepguard.engine.actions import Action, Commit, Event, Wait
from stepguard.procedure.procedure import Procedure

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["Watcher", "shows_bars", "watch"]

_LINES: Final = 10
"""How many lines a run of any length may take where there is no terminal."""


class Watcher(Protocol):
    """An observer of a guard that shows how far a run has come, from entering it to leaving it."""

    def __call__(self, action: Action, event: Event, /) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None, /
    ) -> None: ...


def watch(procedure: Procedure, model: str, *, quiet: bool = False) -> Watcher:
    """The watcher that fits stderr.

    Args:
        procedure: what is run.
        model: what to call the model.
        quiet: show nothing.
    """
    stream = sys.stderr
    if quiet:
        return _Watcher(procedure, model, stream)
    return _Bar(procedure, model, stream) if shows_bars(stream) else _Lines(procedure, model, stream)


def shows_bars(stream: TextIO) -> bool:
    """Whether a stream is a terminal that somebody looks at."""
    # Many CI systems hand out a terminal but keep a log.
    return stream.isatty() and os.environ.get("CI", "") in ("", "false", "0") and os.environ.get("TERM") != "dumb"


class _Watcher:
    """Counts, and shows nothing."""

    def __init__(self, procedure: Procedure, model: str, stream: TextIO) -> None:
        self.name = printable(procedure.name)
        self.model = printable(model)
        self.total = len(procedure)
        self.committed = 0
        self.stream = stream

    def __call__(self, action: Action, event: Event) -> None:
        if isinstance(action, Commit):
            self.committed += len(action.records)
            self.advanced()
        elif isinstance(action, Wait):
            self.waited(f"waited {action.seconds:.1f} s: {printable(action.reason)}")

    def __enter__(self) -> Self:
        self.started()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.ended()
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(f"interrupted after {self.committed} of {self.total} steps") from error

    def started(self) -> None:
        """The run starts."""

    def advanced(self) -> None:
        """Steps were committed."""

    def waited(self, message: str) -> None:
        """The run waited for the model's server."""

    def ended(self) -> None:
        """The run has ended, in whatever way."""


class _Lines(_Watcher):
    """A line at the start and at every tenth of the way; no carriage returns."""

    def started(self) -> None:
        self._shown = 0
        self._write(f"{self.name}: {self.total} step{'' if self.total == 1 else 's'}, {self.model}")

    def advanced(self) -> None:
        part = self.committed * _LINES // self.total
        if part > self._shown:
            self._shown = part
            self._write(f"{self.name}: {self.committed} of {self.total} steps")

    def waited(self, message: str) -> None:
        self._write(f"{self.name}: {message}")

    def _write(self, line: str) -> None:
        self.stream.write(line + "\n")
        self.stream.flush()


class _Bar(_Watcher):
    """A progress bar that is gone when the run has ended."""

    _progress: Progress

    def started(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(file=self.stream),
            transient=True,
        )
        self._task = self._progress.add_task(f"{self.name} on {self.model}", total=self.total)
        self._progress.start()

    def advanced(self) -> None:
        self._progress.update(self._task, completed=self.committed)

    def waited(self, message: str) -> None:
        self._progress.console.print(message, markup=False, highlight=False)

    def ended(self) -> None:
        self._progress.stop()
