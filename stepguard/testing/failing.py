"""Replies in free text that fail as a whole, however short they are."""

from __future__ import annotations

import random
from dataclasses import dataclass

from stepguard.testing.slips import WAYS, ModelSlips


@dataclass(frozen=True, slots=True)
class Failure:
    """How one reply fails: the way (see `stepguard.testing.slips.WAYS`), and the 0-based place of the step."""

    way: str
    place: int

    def ends_before(self, place: int) -> bool:
        """Whether the steps end before this one."""
        return self.way in ("stopping", "premature_answer") and place >= self.place

    def leaves_out(self, place: int) -> bool:
        """Whether this step is skipped."""
        return self.way == "missing_step" and place == self.place

    def makes_up_after(self, place: int) -> bool:
        """Whether the result of this step gives way to that of a step that is made up."""
        return self.way == "extra_step" and place == self.place


def draw_failure(slips: ModelSlips, steps: int, chance: random.Random) -> Failure | None:
    """Whether and how a reply in free text fails as a whole.

    Args:
        slips: how often, and in which ways.
        steps: how many steps are asked.
        chance: decides.
    """
    if not steps or not slips.failing or chance.random() >= slips.failing:
        return None
    ways, weights = zip(*(slips.failing_ways or [(way, 1.0) for way in WAYS]), strict=True)
    (way,) = chance.choices(ways, weights)
    # Whoever stops early has begun, where there is more than one step to begin with.
    first = min(1, steps - 1) if way == "stopping" else 0
    return Failure(way, chance.randrange(first, steps))
