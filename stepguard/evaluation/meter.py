"""What a benchmark pays for calls while it runs, and a limit that it does not pass.

Only calls that are really made are counted: replies that come from a recording, and those that arms share, are paid
once. Before a call what it may cost at most is set aside, as a `Budget` does it. A call for which not enough is left
waits for those on their way, which mostly cost less than was set aside; when none is, the plan ends.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, overload

from stepguard.backends.base import Backend, Completion, Request, ask
from stepguard.backends.wrapped import WrappedBackend
from stepguard.core.usage import MoneyAmount, Price, Usage, to_amount
from stepguard.engine.asking import most_of
from stepguard.evaluation.families import Task
from stepguard.evaluation.runner import PlanStopped, TaskBackend


class Meter:
    """Counts what calls cost, and stops a plan before a limit is passed. It is for one event loop.

    Args:
        limit: how much may be spent; None is no limit.

    Attributes:
        usage: the calls and tokens so far.
        stopped: whether the limit ended the plan.

    Raises:
        ConfigError: the limit is no amount of money.
    """

    def __init__(self, price: Price | None = None, *, limit: MoneyAmount | None = None) -> None:
        self.price: Final = price
        self.limit: Final = None if limit is None else to_amount(limit, "the limit on the cost", option="max_cost")
        self.usage = Usage()
        self.stopped = False
        self._on_the_way: dict[int, Usage] = {}
        self._calls = 0
        self._settled = asyncio.Condition()

    @property
    def spent(self) -> Decimal | None:
        """The money spent so far; None without a price."""
        return None if self.price is None else self.price.of(self.usage)

    @overload
    def over(self, backend: TaskBackend) -> TaskBackend: ...
    @overload
    def over(self, backend: Backend) -> Backend: ...
    def over(self, backend: Backend | TaskBackend) -> Backend | TaskBackend:
        """The same model, with its calls counted here."""
        return _MeteredTasks(self, backend) if isinstance(backend, TaskBackend) else _Metered(self, backend)

    async def complete(self, backend: Backend, request: Request) -> Completion:
        """Make a call, as soon as what it may cost at most is there.

        Raises:
            PlanStopped: it is not, and will not be.
            BackendError: the model did not answer.
        """
        most = most_of(request)
        async with self._settled:
            while not self.stopped and not self._fits(most):
                if not self._on_the_way:
                    self.stopped = True
                    self._settled.notify_all()
                else:
                    await self._settled.wait()
            if self.stopped:
                raise PlanStopped
            self._calls = call = self._calls + 1
            self._on_the_way[call] = most
        try:
            completion = await ask(backend, request)
            self.usage = self.usage + completion.usage
            return completion
        finally:
            del self._on_the_way[call]
            async with self._settled:
                self._settled.notify_all()

    def _fits(self, most: Usage) -> bool:
        if self.limit is None or self.price is None:
            return True
        return self.price.of(sum(self._on_the_way.values(), self.usage + most)) <= self.limit


class _Metered(WrappedBackend):
    def __init__(self, meter: Meter, backend: Backend) -> None:
        super().__init__(backend)
        self._meter: Final = meter

    async def acomplete(self, request: Request) -> Completion:
        return await self._meter.complete(self._backend, request)


@dataclass(frozen=True, slots=True)
class _MeteredTasks:
    meter: Meter
    tasks: TaskBackend

    def for_task(self, task: Task) -> Backend:
        return self.meter.over(self.tasks.for_task(task))
