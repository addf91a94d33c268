"""Limits on what a run may spend: reserved before a call, settled after it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from stepguard.errors import ConfigError
from stepguard.usage import Usage

__all__ = ["Budget", "Limit", "Spending"]

Limit = Literal["calls", "tokens", "seconds"]


@dataclass(frozen=True, slots=True)
class Budget:
    """What one run may spend. None means no limit.

    Args:
        calls: model calls, failed ones included.
        tokens: input and output tokens together. No call is started once they are spent, so the limit is passed by
            no more than the last call. Calls at the same time are started only while what they may cost at most is
            left.
        seconds: time from the start of the run, checks and waiting included. What remains bounds each request.
    """

    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None

    def __post_init__(self) -> None:
        for name in ("calls", "tokens", "seconds"):
            value = getattr(self, name)
            if value is None:
                continue
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if (
                not number
                or not math.isfinite(value)
                or value < 0
                or (name != "seconds" and not isinstance(value, int))
            ):
                kind = "a number" if name == "seconds" else "a whole number"
                raise ConfigError(f"budget {name} is {kind} of 0 or more, or None, not {value!r}", option="budget")


class Spending:
    """What a run has spent and reserved so far."""

    def __init__(self, budget: Budget, *, started: float) -> None:
        self.budget = budget
        self.usage = Usage()
        self._started = started
        self._reserved: dict[str, int] = {}

    def exceeded(self, now: float) -> Limit | None:
        """The limit that allows no further call, None if one may be made."""
        budget, usage = self.budget, self.usage
        if budget.calls is not None and usage.calls + len(self._reserved) >= budget.calls:
            return "calls"
        if budget.tokens is not None and usage.tokens + sum(self._reserved.values()) >= budget.tokens:
            return "tokens"
        return self.late(now)

    def late(self, now: float) -> Limit | None:
        """``"seconds"`` where no time is left."""
        remaining = self.remaining(now)
        return "seconds" if remaining is not None and remaining <= 0 else None

    def remaining(self, now: float) -> float | None:
        """Seconds left, None where there is no limit."""
        return None if self.budget.seconds is None else self._started + self.budget.seconds - now

    def reserve(self, call: str, tokens: int) -> None:
        """Set aside one call and what it may cost at most."""
        self._reserved[call] = tokens

    def release(self, call: str) -> None:
        """Give a reservation back: the call is not made."""
        self._reserved.pop(call, None)

    def settle(self, call: str, usage: Usage) -> None:
        """Replace a reservation by what was really spent."""
        self.release(call)
        self.usage = self.usage + usage
