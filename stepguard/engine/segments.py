"""How many steps to ask at once.

Long segments share the overhead of a call between many steps; short ones lose less when a step fails, since what
stands behind it is asked again. The best length follows from the step error and from what calls cost. With q = 1 - p
the share of steps that are right, a segment of m steps brings in q (1 - q^m) / p steps before the first failure, which
comes with probability 1 - q^m and costs a call for that step alone. The length with the fewest tokens a step is
chosen; for small p it is near sqrt(2 h / p), where h is the overhead of a call in units of what one step costs (the
interval between checkpoints of Young, 1974, and Daly, 2006).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from stepguard.core.arguments import check_count

if TYPE_CHECKING:
    from stepguard.core.profile import Profile
    from stepguard.core.usage import Usage

_PRIOR_STEPS: Final = 5.0
_PRIOR_ERROR: Final = 0.05
"""The prior: as if 5 steps had shown an error of 5 %; so weak that a few deviations outweigh it at once."""
_MEMORY: Final = 400.0
"""About how many steps are remembered: older ones count less and less."""
_LAST_STRETCH: Final = 1.3
"""How much longer a segment may be when that saves the last call."""
_MARGIN: Final = 1.5
"""Replies differ in length: room is kept for this many times the average."""


@dataclass(frozen=True, slots=True)
class Segments:
    """The length of segments: fixed, or found while a run goes on.

    Args:
        size: the most steps that one call asks; a step whose text needs the next one's takes it along. A plain number
            stands for this object: ``Guard(..., segment=5)``. None chooses the length by what the run shows of the
            step error and of the cost of calls: shorter after deviations, longer after clean segments. The other
            arguments are for that.
        first: the length to begin with where it is chosen and nothing is known of the model yet.
        longest: the longest segment where the length is chosen.
        output: the most tokens that the model writes in one reply, None where that sets no bound.
        context: the most tokens that prompt and reply have together, None where that sets no bound.

    After a reply that was cut off, the run goes on with segments of at most half the length, also of a fixed one.

    Raises:
        ConfigError: a number is out of range.
    """

    size: int | None = None
    first: int = 20
    longest: int = 40
    output: int | None = 4096
    context: int | None = None

    def __post_init__(self) -> None:
        check_count(self.size, "segment", name="the number of steps in a segment", optional=True)
        check_count(self.first, "segment", name="first")
        check_count(self.longest, "segment", name="longest")
        check_count(self.output, "segment", name="output", optional=True)
        check_count(self.context, "segment", name="context", optional=True)


class SegmentLength:
    """How long the next segment of a run is to be."""

    def __init__(self, segments: Segments, profile: Profile | None = None) -> None:
        self._segments = segments
        self._bound = segments.longest if segments.size is None else segments.size
        self._judged, self._failed = _PRIOR_STEPS, _PRIOR_STEPS * _PRIOR_ERROR
        self._calls = self._steps = self._overhead = self._per_step = self._output = 0.0
        if profile is not None and segments.size is None:
            self._take(profile)

    def _take(self, profile: Profile) -> None:
        tries, calls = profile.asked, profile.first
        # A profile of any age weighs no more than what a run itself remembers.
        weight = min(1.0, _MEMORY / tries.made) if tries.made else 0.0
        self._judged += weight * tries.made
        self._failed += weight * (tries.made - tries.well)
        if calls.calls and calls.steps:
            self._calls, self._steps = weight * calls.calls, weight * calls.steps
            self._overhead = weight * calls.fixed_tokens
            self._output = weight * calls.output_tokens
            self._per_step = weight * (calls.input_tokens - calls.fixed_tokens)

    def size(self, remaining: int | None = None) -> int:
        """The most steps of the next segment.

        Args:
            remaining: how many steps are left. Where the length is chosen, segments are made a little longer when that
                saves the last call.
        """
        if self._segments.size is not None:
            return self._bound
        chosen, most = self._choose()
        calls = 1 if remaining is None else -(-remaining // chosen)
        if remaining is None or calls <= 1:
            return chosen
        longer = -(-remaining // (calls - 1))
        return longer if longer <= min(most, _LAST_STRETCH * chosen) else chosen

    def _choose(self) -> tuple[int, int]:
        """The length with the fewest tokens a step, and the longest that may be."""
        if not self._calls:
            return min(self._segments.first, self._bound), self._bound
        error = self._failed / self._judged
        step = max((self._per_step + self._output) / self._steps, 1e-9)
        # Rounded, so that the cache is hit while the averages hardly move.
        length = best_length(round(error, 4), round(self._overhead / self._calls / step, 2), longest=self._bound)
        most = max(1, self._fitting())
        return min(length, most), most

    def _fitting(self) -> int:
        """How many steps fit in a reply, and in a context."""
        written = _MARGIN * self._output / self._steps
        fits = self._bound
        if self._segments.output is not None and written:
            fits = min(fits, int(self._segments.output / written))
        if self._segments.context is not None and written:
            per_step = written + _MARGIN * self._per_step / self._steps
            fits = min(fits, int((self._segments.context - self._overhead / self._calls) / per_step))
        return fits

    def add_reply(self, usage: Usage, *, steps: int, accepted: int, fixed: float) -> None:
        """A reply was judged.

        Args:
            accepted: how many of them were accepted; the one behind them was not, if there is one.
            fixed: the share of the prompt that every prompt begins with.
        """
        fade = (1 - 1 / _MEMORY) ** steps
        self._judged = self._judged * fade + min(accepted + 1, steps)
        self._failed = self._failed * fade + (accepted < steps)
        if usage.tokens:
            self._calls = self._calls * fade + 1
            self._steps = self._steps * fade + steps
            self._overhead = self._overhead * fade + fixed * usage.input_tokens
            self._per_step = self._per_step * fade + (1 - fixed) * usage.input_tokens
            self._output = self._output * fade + usage.output_tokens

    def cut_off(self) -> None:
        """A reply was cut off: from now on segments are at most half as long."""
        self._bound = max(1, self.size() // 2)


@lru_cache(maxsize=4096)
def best_length(error: float, overhead: float, *, longest: int = 40) -> int:
    """The length with the fewest tokens a step; the shortest of them.

    Args:
        error: the probability that a step is not accepted.
        overhead: what a call costs beside its steps, in units of what one step costs.
        longest: the longest length to consider.
    """
    best, least = 1, float("inf")
    for length in range(1, longest + 1):
        whole = (1 - error) ** length  # every step is right
        right = length if error <= 0 else (1 - error) * (1 - whole) / error
        cost = overhead + length + (1 - whole) * (overhead + 1)  # a step that fails is asked by itself
        progress = right + (1 - whole)
        # The margin lets equal costs, which differ by rounding alone, go to the shorter length.
        if cost / progress < least * (1 - 1e-12):
            best, least = length, cost / progress
    return best
