"""Decides when a request that got no answer is sent again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepguard.core.arguments import check_count, check_seconds
from stepguard.errors import RateLimited

if TYPE_CHECKING:
    import random

_MOST_DOUBLINGS = 30  # any longest wait is shorter than that, and no power overflows


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When a request that got no answer is sent again: the only layer that repeats requests.

    Args:
        retries: how often a request that may succeed later is sent again.
        first_wait: seconds before the first repetition; doubled for each further one, with jitter.
        longest_wait: a wait that would be longer ends the run instead (a ``Retry-After`` of a day, say).
        timeout: seconds until one request is given up; None waits forever.
    """

    retries: int = 2
    first_wait: float = 0.5
    longest_wait: float = 60.0
    timeout: float | None = 600.0

    def __post_init__(self) -> None:
        check_count(self.retries, "retry", least=0, name="the number of retries")
        check_seconds(self.first_wait, "retry", name="first_wait")
        check_seconds(self.longest_wait, "retry", name="longest_wait")
        check_seconds(self.timeout, "retry", name="a timeout", positive=True, optional=True)

    def wait(self, sent: int, error: Exception, chance: random.Random) -> float:
        """Seconds to wait before a request that was sent `sent` times is sent again.

        Never less than a ``Retry-After`` asks for; the jitter keeps many runs from coming back at the same moment.
        """
        seconds = self.first_wait * 2.0 ** min(sent - 1, _MOST_DOUBLINGS) * (1 + chance.random() / 2)
        asked = error.retry_after if isinstance(error, RateLimited) else None
        if asked is None:
            return seconds
        if not math.isfinite(asked):
            return math.inf
        # The jitter alone makes no wait longer than the longest one, which would end the run.
        later = asked * (1 + chance.random() / 10)
        return max(seconds, min(later, self.longest_wait) if asked <= self.longest_wait else later)
