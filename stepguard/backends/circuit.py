"""A circuit breaker before a model: once it has failed several times in a row, nobody waits for it for a while.

A run asks its fallback where a model does not answer (`Guard(fallback=...)`), but every new run asks the dead one first
and waits for it through its retries. Between many runs a breaker remembers: its circuit *opens* after some failures in
a row, and all calls are refused at once without being sent, so that their runs go to the fallback. After a pause one
call tries the model: where it answers the circuit closes, else the pause begins anew. It also holds a limit of its own
on what one model may spend over all runs, beside the budget of each run.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from stepguard.backends.base import Completion, Request, ask, counted, paid_without_reply
from stepguard.backends.making import as_backend
from stepguard.backends.wrapped import WrappedBackend
from stepguard.core.arguments import check_count, check_instance, check_seconds
from stepguard.core.usage import MoneyAmount, Price, Usage, to_amount
from stepguard.errors import BackendError, CircuitOpen, ConfigError, RateLimited

__all__ = ["CircuitBreaker"]

_REFUSED: Final = (400, 413, 422)
"""How an endpoint refuses one request: too long, or with a parameter that it does not take."""


class CircuitBreaker(WrappedBackend):
    """A backend that asks another one as long as that answers, and as long as its own limits allow.

    One breaker may stand in several guards, threads and event loops; they share its circuit and its limits.

    Args:
        backend: the model that is asked, as a guard's own is given.
        model: which model to ask for; goes with a client.
        failures: how many calls in a row have to fail before the circuit opens. A request to slow down (429) is no
            failure: the limiter of the endpoint waits for it. Nor is one that was refused for what it is (400, 413,
            422): another one may be answered.
        pause: how many seconds it stays open, before one call tries the model again.
        calls: how many calls may be sent in all; None for no limit.
        tokens: how many tokens, input and output together, may be spent in all; None for no limit. It is passed by no
            more than the calls that are under way at the same time.
        cost: how much money may be spent in all, at `price`; None for no limit. It is passed as `tokens` is.
        price: what its tokens cost.

    Raises:
        ConfigError: an argument is none of those, or the backend cannot be asked.
    """

    def __init__(
        self,
        backend: object,
        *,
        model: str | None = None,
        failures: int = 3,
        pause: float = 30.0,
        calls: int | None = None,
        tokens: int | None = None,
        cost: MoneyAmount | None = None,
        price: Price | None = None,
    ) -> None:
        check_count(failures, "failures")
        check_seconds(pause, "pause")
        check_count(calls, "calls", least=0, optional=True)
        check_count(tokens, "tokens", least=0, optional=True)
        check_instance(price, Price, "price", what="a Price(input=..., output=...)", optional=True)
        if cost is not None and price is None:
            raise ConfigError("a limit on the cost needs price=Price(input=..., output=...)", option="cost")
        super().__init__(as_backend(backend, model=model))
        self._failures: Final = failures
        self._pause: Final = pause
        self._calls: Final = calls
        self._tokens: Final = tokens
        self._cost: Final = None if cost is None else to_amount(cost, "the limit on the cost", option="cost")
        self._price: Final = price
        self._lock: Final = threading.Lock()
        self._failed = self._sent = 0  # failures in a row, and calls in all
        self._opened = 0.0
        self._last = ""
        self._trying = False
        self._spent = Usage()

    @property
    def open(self) -> bool:
        """Whether the circuit is open: the model has failed, and has not answered since."""
        with self._lock:
            return self._failed >= self._failures

    @property
    def spent(self) -> Usage:
        """What the calls of all runs have cost, as far as they are over."""
        with self._lock:
            return self._spent

    def complete(self, request: Request) -> Completion:
        """The model's reply.

        Raises:
            CircuitOpen: nothing was sent: the circuit is open, or a limit is spent.
            BackendError: the model did not answer.
            ConfigError: the model can only be awaited.
        """
        backend = self._blocking()
        with self._call(request) as usages:
            completion = backend.complete(request)
            usages.append(counted(completion))
        return completion

    async def acomplete(self, request: Request) -> Completion:
        with self._call(request) as usages:
            completion = await ask(self._backend, request)
            usages.append(counted(completion))
        return completion

    @contextmanager
    def _call(self, request: Request) -> Iterator[list[Usage]]:
        """One call; it puts what it has cost into the list."""
        trial = self._begin()
        usages: list[Usage] = []
        try:
            yield usages
        except BackendError as error:
            usages.append(paid_without_reply(request, error))
            if not isinstance(error, RateLimited) and error.status not in _REFUSED:  # an endpoint that says so is alive
                with self._lock:
                    self._failed, self._opened, self._last = self._failed + 1, time.monotonic(), str(error)
            raise
        else:
            with self._lock:
                self._failed = 0
        finally:
            with self._lock:
                self._spent = sum(usages, self._spent)
                if trial:  # also one that was cancelled
                    self._trying = False

    def _begin(self) -> bool:
        """Whether a call that may be sent now is the one that tries the model again.

        Raises CircuitOpen: it may not be sent.
        """
        with self._lock:
            for limit, most, spent in (
                ("calls", self._calls, self._sent),
                ("tokens", self._tokens, self._spent.tokens),
                ("of cost", self._cost, 0 if self._price is None else self._price.of(self._spent)),
            ):
                if most is not None and spent >= most:
                    raise CircuitOpen(f"{self.name} was not asked: its {most} {limit} are spent")
            trial = self._failed >= self._failures
            if trial:
                left = self._opened + self._pause - time.monotonic()
                if left > 0 or self._trying:
                    when = f"it is tried again in {left:.0f} s" if left > 0 else "it is being tried again"
                    raise CircuitOpen(
                        f"{self.name} was not asked: {self._failed} calls in a row have failed, {when} ({self._last})"
                    )
                self._trying = True
            self._sent += 1
            return trial
