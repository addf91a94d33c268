"""How long a benchmark will still take, from the runs that have ended."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Final

from stepguard.evaluation.arms import Outcome


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

    def ended(self, outcome: Outcome) -> None:
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
