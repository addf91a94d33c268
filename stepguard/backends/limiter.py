"""The limiters of a process: one for each endpoint and key, whose turns all runs share out between them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Final

from stepguard.backends.base import Backend, Completion, Request, ask
from stepguard.backends.endpoint_limiter import EndpointLimiter
from stepguard.backends.wrapped import WrappedBackend
from stepguard.core.arguments import check_count
from stepguard.errors import ConfigError

__all__ = ["SHARED_LIMITERS", "EndpointLimiter", "LimitedBackend", "LimiterRegistry"]


class LimiterRegistry:
    """The limiters of a process, one for each endpoint and key; those that were not used for longest are forgotten.

    Args:
        most: how many are kept.
    """

    def __init__(self, *, most: int = 256) -> None:
        self._most: Final = most
        self._lock: Final = threading.Lock()
        self._limiters: Final[OrderedDict[tuple[str, str], EndpointLimiter]] = OrderedDict()
        self._new: Callable[[], EndpointLimiter] = EndpointLimiter

    def declare(self, *, requests_per_minute: int | None = None, tokens_per_minute: int | None = None) -> None:
        """Set what a minute may see at each endpoint; see `EndpointLimiter`."""
        new = partial(EndpointLimiter, requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute)
        new()  # what is refused is not kept
        with self._lock:
            self._new = new
            for limiter in self._limiters.values():
                limiter.declare(requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute)

    def of(self, endpoint: str, key: str) -> EndpointLimiter:
        """The limiter of an endpoint.

        Args:
            endpoint: its address.
            key: what tells accounts apart; a digest, rather than the key itself.
        """
        with self._lock:
            # Taken out and put back, so that the order is that of the last use.
            limiter = self._limiters.pop((endpoint, key), None) or self._new()
            self._limiters[endpoint, key] = limiter
            if len(self._limiters) > self._most:
                idle = next((name for name, known in self._limiters.items() if not known.active), None)
                if idle is not None:
                    del self._limiters[idle]
            return limiter


SHARED_LIMITERS: Final = LimiterRegistry()
"""The limiters that every `OpenAIBackend` of the process uses which is given none of its own."""


class LimitedBackend(WrappedBackend):
    """A backend that asks another one, never more often at once than a limiter allows.

    Args:
        backend: the model that is asked.
        most: calls at the same time at first, and at most; None where `limiter` says so.
        limiter: the limiter, which other backends may share.

    Raises:
        ConfigError: `most` is no whole number of 1 or more, or both or neither are given.
    """

    def __init__(self, backend: Backend, *, most: int | None = None, limiter: EndpointLimiter | None = None) -> None:
        if limiter is None:
            check_count(most, "most")
            limiter = EndpointLimiter(first=most or 1, most=most or 1)
        elif most is not None:
            raise ConfigError("most goes without a limiter, which has its own", option="most")
        super().__init__(backend)
        self._limiter: Final = limiter

    @property
    def limit(self) -> int:
        """How many calls may be on their way now."""
        return self._limiter.limit

    async def acomplete(self, request: Request) -> Completion:
        """The model's reply, when it is this call's turn.

        Raises BackendError: the model did not answer.
        """
        tokens = self._limiter.estimate(request)
        async with self._limiter.aturn(tokens=tokens):
            completion = await ask(self._backend, request)
        self._limiter.settle(tokens, completion.usage)
        return completion
