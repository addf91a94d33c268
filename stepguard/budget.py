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
            no more than the call in flight.
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
        remaining = self.remaining(now)
        if remaining is not None and remaining <= 0:
            return "seconds"
        return None

    def remaining(self, now: float) -> float | None:
        """Seconds left, None where there is no limit."""
        return None if self.budget.seconds is None else self._started + self.budget.seconds - now

    def reserve(self, call: str, tokens: int) -> None:
        """Set aside one call and what it is expected to cost."""
        self._reserved[call] = tokens

    def settle(self, call: str, usage: Usage) -> None:
        """Replace a reservation by what was really spent."""
        self._reserved.pop(call, None)
        self.usage = self.usage + usage
