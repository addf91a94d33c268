"""Progress on stderr, of a run and of a benchmark: a bar on a terminal, a few plain lines anywhere else."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TextIO

from stepguard.cli.text import printable
from stepguard.engine.actions import Action, Commit, Event, Wait
from stepguard.procedure.procedure import Procedure

if TYPE_CHECKING:
    from rich.progress import Progress

_LINES: Final = 10
"""How many lines a run of any length takes where there is no terminal, unless it takes long."""
_SILENCE: Final = 30.0
"""Seconds after which a line is written though nothing was finished: somebody may be waiting."""


class Display(Protocol):
    """Shows how much of something is done."""

    def open(self) -> None:
        """It starts."""

    def advance(self, done: int) -> None:
        """So much is done."""

    def note(self, message: str) -> None:
        """Something is to be known meanwhile."""

    def close(self) -> None:
        """It has ended, in whatever way."""


def make_display(
    title: str,
    total: int | None,
    unit: str,
    *,
    facts: Callable[[], Sequence[str]] = tuple,
    quiet: bool = False,
    silence: float = _SILENCE,
) -> Display:
    """The display that fits stderr.

    Args:
        total: how much there is to do, None where that shows as it goes.
        unit: what it is counted in, in the singular.
        facts: what else is to be told with each line: time, cost.
        silence: seconds after which a plain line is written though nothing was finished.
    """
    stream = sys.stderr
    if quiet:
        return _Silent()
    # Many CI systems hand out a terminal but keep a log.
    looked_at = stream.isatty() and os.environ.get("CI", "") in ("", "false", "0") and os.environ.get("TERM") != "dumb"
    if looked_at:
        return _Bar(title, total, unit, facts, stream)
    return _Lines(title, total, unit, facts, stream, silence=silence)


class _Silent:
    def open(self) -> None: ...
    def advance(self, done: int) -> None: ...
    def note(self, message: str) -> None: ...
    def close(self) -> None: ...


class _Shown:
    """What a display shows."""

    def __init__(
        self, title: str, total: int | None, unit: str, facts: Callable[[], Sequence[str]], stream: TextIO
    ) -> None:
        self._title: Final = title
        self._total: Final = total
        self._unit: Final = unit if total == 1 else f"{unit}s"
        self._facts: Final = facts
        self._stream: Final = stream


class _Lines(_Shown):
    """A line at the start, at every tenth of the way, and where nothing was said for a while; no carriage returns."""

    def __init__(self, *shown: Any, silence: float) -> None:
        super().__init__(*shown)
        self._silence: Final = silence
        self._done = self._tenths = 0
        self._lock: Final = threading.Lock()
        self._spoken: Final = threading.Event()
        self._closed = False

    def open(self) -> None:
        self._write(f"{self._title}: {self._unit}" if self._total is None else f"{self._title}: {self._of()}")
        threading.Thread(target=self._keep_talking, name="stepguard-progress", daemon=True).start()

    def advance(self, done: int) -> None:
        self._done = done
        # Where the end is not known, a line for twice as much each time.
        tenths = done.bit_length() if self._total is None else done * _LINES // self._total
        if tenths > self._tenths:
            self._tenths = tenths
            self._write(self._state())

    def note(self, message: str) -> None:
        self._write(f"{self._title}: {message}")

    def close(self) -> None:
        self._closed = True
        self._spoken.set()

    def _state(self) -> str:
        done = f"{self._done} {self._unit}" if self._total is None else f"{self._done} of {self._of()}"
        return f"{self._title}: " + ", ".join([done, *self._facts()])

    def _of(self) -> str:
        return f"{self._total} {self._unit}"

    def _write(self, line: str) -> None:
        with self._lock:
            self._stream.write(line + "\n")
            self._stream.flush()
        self._spoken.set()

    def _keep_talking(self) -> None:
        while not self._closed:
            self._spoken.clear()
            if not self._spoken.wait(self._silence) and not self._closed:
                try:
                    self._write(self._state())
                except (OSError, ValueError):  # nobody reads it any more; whoever else writes there is told
                    return


class _Bar(_Shown):
    """A bar that is gone when everything is done."""

    _progress: Progress

    def open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            TextColumn("{task.fields[title]}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=Console(file=self._stream),
            transient=True,
        )
        self._task = self._progress.add_task(self._unit, total=self._total, title=self._title)
        self._progress.start()

    def advance(self, done: int) -> None:
        words = ", ".join([self._unit, *self._facts()])
        self._progress.update(self._task, completed=done, description=words)

    def note(self, message: str) -> None:
        self._progress.console.print(message, markup=False, highlight=False)

    def close(self) -> None:
        self._progress.stop()


class ProgressContext:
    """What is shown from entering it to leaving it; an interrupt then says how far it has come."""

    def __init__(self, display: Display, total: int | None, unit: str) -> None:
        self._display: Final = display
        self.done, self.total = 0, total
        self._unit: Final = unit

    def advance(self, done: int) -> None:
        """So much is done."""
        self.done = done
        self._display.advance(done)

    def __enter__(self) -> Self:
        self._display.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._display.close()
        if isinstance(error, KeyboardInterrupt):
            of = "" if self.total is None else f"of {self.total} "
            raise KeyboardInterrupt(f"interrupted after {self.done} {of}{self._unit}s") from error


class RunProgress(ProgressContext):
    """An observer of a guard that shows how far a run has come, from entering it to leaving it."""

    def __init__(self, procedure: Procedure, model: str, *, quiet: bool = False) -> None:
        title = f"{printable(procedure.name)} on {printable(model)}"
        total = len(procedure) if procedure.straight else None
        super().__init__(make_display(title, total, "step", quiet=quiet), total, "step")

    def __call__(self, action: Action, event: Event) -> None:
        if isinstance(action, Commit):
            self.advance(self.done + len(action.records))
        elif isinstance(action, Wait):
            self._display.note(f"waited {action.seconds:.1f} s: {printable(action.reason)}")
