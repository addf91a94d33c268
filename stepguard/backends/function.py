"""A plain function as a model."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, cast

from stepguard.backends.base import Completion, Request
from stepguard.core.deadlines import awithin
from stepguard.core.redaction import error_text
from stepguard.errors import BackendError, StepguardError


def is_async_function(function: object) -> bool:
    """Whether a function, or an object that is called like one, gives an awaitable."""
    called = getattr(function, "__call__", None)  # noqa: B004 - it may be callable by an async method
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)


class FunctionBackend:
    """Asks a callable that takes OpenAI-style messages and returns text, or a `Completion`.

    The callable may be async; then only `Guard.arun` can use it. Whatever it raises becomes a `BackendError` that is
    not retried, with the original as its cause: the function knows its own transport, stepguard does not. Under
    `Guard.run` it is also the function that has to keep to a time-out; `Guard.arun` gives up waiting by itself,
    and leaves a plain function to its thread.

    What a call that returns text cost is estimated, at four characters a token; return a `Completion` to say it.

    Args:
        function: ``(messages: list[dict[str, str]]) -> str | Completion``, plain or async.
        name: how records call the model; the function's name by default.
    """

    def __init__(self, function: Callable[..., Any], *, name: str | None = None) -> None:
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self._function = function
        self.is_async = is_async_function(function)

    def complete(self, request: Request) -> Completion:
        """Call the function."""
        if self.is_async:
            raise BackendError(f"{self.name} is async: use `await guard.arun(...)`", retryable=False)
        return self._completion(request, self._guarded(request))

    async def acomplete(self, request: Request) -> Completion:
        """Await the function, or run a plain one in a thread of its own so that the event loop goes on."""
        if not self.is_async:
            return await awithin(None, lambda: self.complete(request), name="stepguard-function")
        try:
            given = await cast(Awaitable[object], self._function(request.chat()))
        except StepguardError:
            raise
        except Exception as error:
            raise self._failed(error) from error
        return self._completion(request, given)

    def _guarded(self, request: Request) -> object:
        try:
            return self._function(request.chat())
        except StepguardError:  # what it says in our own terms, that it is to be asked more slowly, say, holds
            raise
        except Exception as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> BackendError:
        return BackendError(f"{self.name} raised {error_text(error)}", retryable=False)

    def _completion(self, request: Request, given: object) -> Completion:
        if isinstance(given, Completion):
            return given
        if isinstance(given, str) or given is None:
            return Completion(given, usage=request.estimate(len(given or "")))
        raise BackendError(f"{self.name} returned {type(given).__name__}, not text", retryable=False)
