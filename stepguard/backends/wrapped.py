"""A base for backends that stand before another one, have its name and can do what it can."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

from stepguard.backends.base import Backend, Stopping, SyncBackend, endpoint_of, session_of, stopping_of
from stepguard.errors import ConfigError


class WrappedBackend:
    """A base for backends that ask another one, and shape neither its requests nor its replies."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def _blocking(self) -> SyncBackend:
        """The model, to be asked without an event loop. Raises ConfigError: it can only be awaited."""
        if self.is_async or not isinstance(self._backend, SyncBackend):
            raise ConfigError("this backend can only be awaited: use `await guard.arun(...)`", option="backend")
        return self._backend

    @property
    def name(self) -> str:
        """What the model is called."""
        return str(getattr(self._backend, "name", type(self._backend).__name__))

    @property
    def endpoint(self) -> str:
        return endpoint_of(self._backend)

    @property
    def is_async(self) -> bool:
        """Whether the model can only be awaited."""
        return not hasattr(self._backend, "complete") or bool(getattr(self._backend, "is_async", False))

    @property
    def signature(self) -> object:
        """What shapes the replies of the model, None where that is not known."""
        return getattr(self._backend, "signature", None)

    @property
    def can_stop(self) -> bool:
        """Whether the model can stop a reply at its first wrong step."""
        return bool(getattr(self._backend, "can_stop", False))

    @property
    def stopping(self) -> Stopping:
        """Whether a guard stops replies of the model by itself."""
        return stopping_of(self._backend)

    def session(self) -> AbstractAsyncContextManager[Any]:
        """A session of the model, where it has one."""
        return session_of(self._backend)
