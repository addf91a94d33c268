"""Limits on what a run may spend, and on what one step may: reserved before a call, settled after it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from stepguard.core.arguments import check_count, check_instance, check_seconds
from stepguard.core.usage import MoneyAmount, Price, Usage, to_amount
from stepguard.errors import ConfigError

BudgetLimit = Literal["calls", "tokens", "cost", "seconds"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What one run may spend. None means no limit.

    No call is started once a limit is reached, so that tokens and cost are passed by no more than the last call. Calls
    at the same time are started only while what they may cost at most is left.

    Args:
        calls: model calls, failed ones included.
        tokens: input and output tokens together.
        cost: money, in the unit of `price`; exact. Needs a `price`.
        seconds: time from the start of the run, checks and waiting included. What remains bounds each request.
        price: what tokens cost. Without a limit on the cost it only makes the result say what the run cost.
        per_step: what the calls that stop at one step may spend: calls that did not bring it in, with their tokens,
            their cost and the time until they were checked, and waits before such calls. Calls that bring in what they
            asked for count for no step. A request that asks several steps has the time of all of them.

    Raises:
        ConfigError: a limit is no number or negative, a cost has no price, or `per_step` is no budget for a step.
    """

    calls: int | None = None
    tokens: int | None = None
    cost: MoneyAmount | None = None
    seconds: float | None = None
    price: Price | None = None
    per_step: Budget | None = None

    def __post_init__(self) -> None:
        check_count(self.calls, "budget", name="budget calls", least=0, optional=True)
        check_count(self.tokens, "budget", name="budget tokens", least=0, optional=True)
        check_seconds(self.seconds, "budget", name="budget seconds", optional=True)
        check_instance(self.price, Price, "budget", name="price", what="a Price(input=..., output=...)", optional=True)
        if self.cost is not None:
            to_amount(self.cost, "budget cost", option="budget")
            if self.price is None:
                raise ConfigError(
                    "a limit on the cost needs to know what tokens cost: add price=Price(input=..., output=...)",
                    option="budget",
                )
        if self.per_step is not None and (not isinstance(self.per_step, Budget) or self.per_step.per_step is not None):
            raise ConfigError("per_step is a Budget without a per_step of its own", option="budget")

    def cost_of(self, usage: Usage) -> Decimal | None:
        """What calls cost, None where no price is declared."""
        return None if self.price is None else self.price.of(usage)

    def spent(self, usage: Usage) -> BudgetLimit | None:
        """The limit that `usage` reaches, None where it leaves something."""
        if self.calls is not None and usage.calls >= self.calls:
            return "calls"
        if self.tokens is not None and usage.tokens >= self.tokens:
            return "tokens"
        cost = self.cost_of(usage)
        if self.cost is not None and cost is not None and cost >= to_amount(self.cost, "budget cost", option="budget"):
            return "cost"
        return None


class Spending:
    """What a run has spent and reserved so far, and what was spent on steps that are not done."""

    def __init__(self, budget: Budget, *, started: float) -> None:
        self.budget = budget
        self.usage = Usage()
        self._started = started
        self._reserved: dict[str, Usage] = {}
        self._steps: dict[int, tuple[Usage, float]] = {}

    @property
    def cost(self) -> Decimal | None:
        """What the run cost, None where no price is declared."""
        return self.budget.cost_of(self.usage)

    def restore(self, usage: Usage) -> None:
        """Count what earlier processes have spent."""
        self.usage = self.usage + usage

    # Reservations count as spent: calls that are under way together cannot pass a limit that each alone would keep.
    def exceeded(self, now: float, *, calls: int = 1) -> BudgetLimit | None:
        """The limit that does not allow `calls` further calls, None if they may be made."""
        # `spent` refuses where nothing is left for one more call; the others are added here.
        return self.budget.spent(sum(self._reserved.values(), self.usage + Usage(calls - 1))) or self.late(now)

    def late(self, now: float, *, least: float = 0.0) -> BudgetLimit | None:
        """``"seconds"`` where no more time is left than `least`."""
        remaining = self.remaining(now)
        return "seconds" if remaining is not None and remaining <= least else None

    def remaining(self, now: float) -> float | None:
        """Seconds left, None where there is no limit."""
        return None if self.budget.seconds is None else self._started + self.budget.seconds - now

    def reserve(self, call: str, most: Usage) -> None:
        """Set aside one call and what it may cost at most."""
        self._reserved[call] = most

    def release(self, call: str) -> None:
        """Give a reservation back: the call is not made."""
        self._reserved.pop(call, None)

    def settle(self, call: str, usage: Usage) -> None:
        """Replace a reservation by what was really spent."""
        self.release(call)
        self.usage = self.usage + usage

    def blame(self, step: int, usage: Usage, seconds: float) -> None:
        """Count what was spent without bringing in a step, by its index, against it."""
        if self.budget.per_step is not None:
            before, so_far = self._steps.get(step, (Usage(), 0.0))
            self._steps[step] = before + usage, so_far + seconds

    def settled(self, step: int) -> None:
        """Forget what was spent on a step that is done."""
        self._steps.pop(step, None)

    def refusal(self, step: int, now: float, *, calls: int = 1, least: float = 0.0) -> str | None:
        """Why a step may not be asked again, by calls that take more than `least` seconds; None if it may."""
        if limit := self.exceeded(now, calls=calls):
            return self.reason(limit, calls=calls)
        limit = self.step_exceeded(step, calls=calls, least=least)
        return None if limit is None else self.reason(limit, per_step=True, calls=calls)

    def reason(self, limit: BudgetLimit, *, per_step: bool = False, calls: int = 1) -> str:
        """What is spent, in words, or does not suffice for `calls` calls."""
        budget = self.budget.per_step if per_step else self.budget
        ends = "is spent" if calls == 1 or limit != "calls" else f"leaves less than the {calls} that a draft takes"
        return f"the budget of {getattr(budget, limit)} {limit}{' for one step' if per_step else ''} {ends}"

    def step_exceeded(self, step: int, *, calls: int = 1, least: float = 0.0) -> BudgetLimit | None:
        """The limit that does not allow `calls` further calls for a step, None if they may be made; see `refusal`."""
        limits = self.budget.per_step
        if limits is None:
            return None
        usage, seconds = self._steps.get(step, (Usage(), 0.0))
        late: BudgetLimit | None = (
            "seconds" if limits.seconds is not None and seconds + least >= limits.seconds else None
        )
        return limits.spent(usage + Usage(calls - 1)) or late

    def step_seconds(self, steps: Iterable[int]) -> float | None:
        """The time that one request for these steps may take, None where there is no limit."""
        limit = self.budget.per_step.seconds if self.budget.per_step is not None else None
        if limit is None:
            return None
        return sum(max(0.0, limit - self._steps.get(step, (None, 0.0))[1]) for step in steps)
