"""An assertion that no real model was asked."""

from __future__ import annotations

from contextlib import AbstractContextManager
from contextvars import Token

from stepguard.backends.base import FORBIDDEN


def no_real_requests() -> AbstractContextManager[None]:
    """A ``with`` block in which no real model can be asked.

    `OpenAIBackend` (by name, or with a client of yours, wherever that points) and `LocalBackend` raise an
    `UnexpectedRequest`, which is an `AssertionError`, that names the model instead of sending anything; it passes
    through `Guard`. Leaving the block raises it once more if code in between swallowed it. Doubles and plain functions
    stay allowed: what a function of yours does is its own business. A backend of your own joins in by calling
    ``stepguard.backends.base.about_to_send(name)`` first.

    For all tests of a module or a suite::

        @pytest.fixture(autouse=True)
        def offline():
            with no_real_requests():
                yield

    It holds in this context: for what is called in the block, for tasks created in it, and for `asyncio.to_thread`.
    It does not hold for other tests that run at the same time, nor for a thread or an event loop that does not take
    over this context: enter a block there, or inside the async test.
    """
    return _NoRealRequests()


class _NoRealRequests(AbstractContextManager[None]):
    # No generator: as a decorator of an async test that would be left before the test has begun.
    def __init__(self) -> None:
        self._stopped: list[str] = []
        self._token: Token[list[str] | None] | None = None

    def __enter__(self) -> None:
        self._token = FORBIDDEN.set(self._stopped)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        assert self._token is not None
        FORBIDDEN.reset(self._token)
        if kind is None and self._stopped:
            names = ", ".join(dict.fromkeys(self._stopped))
            raise AssertionError(f"real models were about to be asked inside no_real_requests(): {names}")
