"""What ``stepguard bench`` shows while it runs: runs that have ended, steps verified, calls, time and money."""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Self

from stepguard.cli.progress import ProgressContext, make_display
from stepguard.cli.text import printable
from stepguard.engine.actions import Action, Commit, Event
from stepguard.evaluation.arms import TaskOutcome
from stepguard.evaluation.meter import Meter
from stepguard.evaluation.runner import Plan


class TimeLeft:
    """Weighs what is outstanding by arm and length.

    A run of an arm takes as long for each step as the ended runs of that arm did, whatever their lengths, so that the
    short ones, which come first, tell of the long ones. An arm of which none has ended takes what all arms together do.

    Args:
        jobs: (arm, length, seed) of every run.
        concurrency: how many runs are under way at the same time.
    """

    def __init__(self, jobs: Iterable[tuple[str, int, int]], *, concurrency: int) -> None:
        self._left: Final = Counter((arm, length) for arm, length, _ in jobs)
        self._seconds: Final[defaultdict[str, float]] = defaultdict(float)
        self._steps: Final[Counter[str]] = Counter()
        self._concurrency: Final = concurrency

    def ended(self, outcome: TaskOutcome) -> None:
        """A run has ended, now or in an earlier session."""
        self._left[outcome.arm, outcome.length] -= 1
        self._seconds[outcome.arm] += outcome.seconds
        self._steps[outcome.arm] += outcome.length

    @property
    def seconds(self) -> float | None:
        """Seconds until the last run will have ended; None as long as none has."""
        if not self._steps:
            return None
        waiting = [(arm, length, count) for (arm, length), count in self._left.items() if count > 0]
        if not waiting:
            return 0.0
        work = sum(self._of(arm, length) * count for arm, length, count in waiting)
        # No run is done by several workers: the longest one takes its time.
        return max(work / self._concurrency, *(self._of(arm, length) for arm, length, _ in waiting))

    def _of(self, arm: str, length: int) -> float:
        seconds, steps = self._seconds[arm], self._steps[arm]
        if not steps:
            seconds, steps = sum(self._seconds.values()), self._steps.total()
        return length * seconds / steps


def span_of_time(seconds: float) -> str:
    """A span of time as people say it, about as exact as it is known."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min" if minutes < 6000 else f"{minutes / 1440:.0f} days"


class BenchProgress(ProgressContext):
    """Told of every call and every run that ends, from entering it to leaving it."""

    def __init__(self, plan: Plan, model: str, *, concurrency: int, meter: Meter) -> None:
        title = f"{plan.family.name} on {printable(model)}"
        super().__init__(make_display(title, plan.total, "run", facts=self.facts), plan.total, "run")
        self._steps = 0
        self._forecast: Final = TimeLeft(plan.jobs(), concurrency=concurrency)
        self._meter: Final = meter
        self._jobs: Final = frozenset(plan.jobs())

    def taken_over(self, outcomes: Sequence[TaskOutcome]) -> None:
        """These had ended in an earlier session."""
        for outcome in outcomes:
            if (outcome.arm, outcome.length, outcome.seed) in self._jobs:
                self._forecast.ended(outcome)
                self.done += 1
        if self.done:
            self._display.advance(self.done)

    def damaged(self, lines: int) -> None:
        """So many lines of an earlier session could not be read."""
        what = "1 line is" if lines == 1 else f"{lines} lines are"
        sys.stderr.write(f"{what} damaged among the outcomes that were there: what stood there is run again\n")
        sys.stderr.flush()

    def performed(self, action: Action, event: Event) -> None:
        """A guarded run has gone on: its steps are counted as they are accepted."""
        if isinstance(action, Commit):
            self._steps += len(action.records)

    def __call__(self, done: int, total: int, newest: TaskOutcome) -> None:
        self._forecast.ended(newest)
        self.total = total
        self.advance(done)

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        return super().__enter__()

    def facts(self) -> list[str]:
        """Steps verified, calls, the time it has taken and will take, and what is spent, as far as they are known."""
        calls, spent = self._meter.usage.calls, time.monotonic() - self._started
        facts = [f"{self._steps} steps verified"] if self._steps else []
        if calls:
            facts.append(f"{calls} calls")
        facts.append(span_of_time(spent))
        left = self._forecast.seconds
        if left is not None and (self.total is None or self.done < self.total):
            facts.append(f"about {span_of_time(left)} left")
        if self._meter.spent is not None:
            limit = "" if self._meter.limit is None else f" of {self._meter.limit:f}"
            facts.append(f"{self._meter.spent:.4f}{limit} spent")
        return facts
