"""Progress of ``stepguard bench`` on stderr: a bar on a terminal, a few plain lines anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, TextIO

from stepguard.cli.progress import shows_bars
from stepguard.evaluation.arms import Outcome
from stepguard.evaluation.meter import Meter
from stepguard.evaluation.runner import Plan
from stepguard.evaluation.time_left import TimeLeft

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["BenchProgress", "show_progress", "span_of_time"]

_EVERY: Final = 10.0
"""Seconds between two plain lines."""


def show_progress(plan: Plan, *, concurrency: int, meter: Meter | None = None) -> BenchProgress:
    """The progress that fits stderr.

    Args:
        plan: what is run.
        concurrency: how many runs are under way at the same time.
        meter: counts what is spent; None where nobody knows.
    """
    kind = _Bar if shows_bars(sys.stderr) else _Lines
    return kind(plan, concurrency, meter, sys.stderr)


def span_of_time(seconds: float) -> str:
    """A span of time as people say it, about as exact as it is known."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes < 6000 else f"{minutes / 1440:.0f} days"


class BenchProgress:
    """Told of every run that ends, from entering it to leaving it; shows nothing by itself."""

    def __init__(self, plan: Plan, concurrency: int, meter: Meter | None, stream: TextIO) -> None:
        self.done, self.total = 0, plan.total
        self.stream: Final = stream
        self._forecast: Final = TimeLeft(plan.jobs(), concurrency=concurrency)
        self._meter: Final = meter
        self._jobs: Final = frozenset(plan.jobs())

    def taken_over(self, outcomes: Sequence[Outcome]) -> None:
        """These had ended in an earlier session."""
        for each in outcomes:
            if (each.arm, each.length, each.seed) in self._jobs:
                self._forecast.ended(each)
                self.done += 1
        if self.done:
            self.shown(last=False)

    def damaged(self, lines: int) -> None:
        """So many lines of an earlier session could not be read."""
        what = "1 line is" if lines == 1 else f"{lines} lines are"
        self.stream.write(f"{what} damaged among the outcomes that were there: what stood there is run again\n")
        self.stream.flush()

    def __call__(self, done: int, total: int, newest: Outcome) -> None:
        self._forecast.ended(newest)
        self.done, self.total = done, total
        self.shown(last=done == total)

    def __enter__(self) -> Self:
        self.started = time.monotonic()
        self.opened()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.closed()
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(f"interrupted after {self.done} of {self.total} runs") from error

    def facts(self) -> list[str]:
        """The time it has taken and will take, and what is spent, as far as they are known."""
        facts = [span_of_time(time.monotonic() - self.started)]
        left = self._forecast.seconds
        if left is not None and self.done < self.total:
            facts.append(f"about {span_of_time(left)} left")
        if self._meter is not None:
            limit = "" if self._meter.limit is None else f" of {self._meter.limit:f}"
            facts.append(f"{self._meter.spent:.4f}{limit} spent")
        return facts

    def opened(self) -> None:
        """The benchmark starts."""

    def shown(self, *, last: bool) -> None:
        """There is something new to show."""

    def closed(self) -> None:
        """The benchmark has ended, in whatever way."""


class _Lines(BenchProgress):
    """A line every ten seconds and at the end."""

    def opened(self) -> None:
        self._written = self.started

    def shown(self, *, last: bool) -> None:
        now = time.monotonic()
        if last or now - self._written >= _EVERY:
            self._written = now
            self.stream.write(", ".join([f"{self.done} of {self.total} runs", *self.facts()]) + "\n")
            self.stream.flush()


class _Bar(BenchProgress):
    """A bar that is gone when the benchmark has ended."""

    _progress: Progress

    def opened(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._progress = Progress(
            TextColumn("runs"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            console=Console(file=self.stream),
            transient=True,
        )
        self._task = self._progress.add_task("", total=self.total)
        self._progress.start()

    def shown(self, *, last: bool) -> None:
        self._progress.update(self._task, completed=self.done, description=", ".join(self.facts()))

    def closed(self) -> None:
        self._progress.stop()
