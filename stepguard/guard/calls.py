"""Performs the actions of a run: asks the model, awaits checks, functions and waits, and says what came of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from stepguard.backends.base import FORBIDDEN, Backend, Completion, ask
from stepguard.checks import ajudge_claims
from stepguard.core.deadlines import Overrun, awaited, gave_up
from stepguard.engine.actions import Act, Action, Ask, CheckClaims, Checked, Commit, Event, Failed, Replied, Wait, Woke
from stepguard.engine.performing import aperform_step
from stepguard.errors import BackendError, BackendTimeout, ConfigError, UnexpectedRequest, UsageError

if TYPE_CHECKING:
    from stepguard.backends.base import SyncBackend


def ask_model(backend: SyncBackend, action: Ask) -> Event:
    """Ask the model, blocking; the event says what came of it."""
    try:
        if action.backend is not None:
            backend = as_sync(action.backend, "a rung asks somebody who can only be awaited")
        return _replied(action, backend.complete(action.request))
    except (UsageError, UnexpectedRequest) as error:  # the caller is to mend it; a test double speaks to its test
        if not _ends_the_rung(action):
            raise
        return Failed(action.id, error)
    except BaseException as error:  # noqa: BLE001 - a backend may be foreign code
        return _failed(action, error)


async def aperform(backend: Backend, action: Action) -> Event:
    """Perform an action that may wait; `backend` is asked where the action names no other."""
    if isinstance(action, Ask):
        # Not by its truth: a backend may have a length.
        seconds, asked = action.request.timeout, backend if action.backend is None else action.backend
        try:
            return _replied(action, await awaited(seconds, ask(asked, action.request)))
        except (UsageError, UnexpectedRequest) as error:
            if not _ends_the_rung(action):
                raise
            return Failed(action.id, error)
        except BaseException as error:  # noqa: BLE001 - as in `ask_model`
            if isinstance(error, Overrun):
                error = BackendTimeout(f"no answer within {round(seconds or 0, 2):g} s")
            return _failed(action, error)
    if isinstance(action, Act):
        return await aperform_step(action)
    if isinstance(action, Wait):
        import asyncio

        await asyncio.sleep(action.seconds)
        return Woke(action.id)
    assert isinstance(action, CheckClaims)
    judgements = await ajudge_claims(
        action.steps,
        action.claims,
        action.values,
        beyond_failure=action.beyond_failure,
        independent=action.independent,
        timeout=action.timeout,
        remaining=action.remaining,
    )
    return Checked(action.id, judgements)


def is_quick(action: Action, *, kept: bool = False) -> bool:
    """Whether an action runs no code of the host's that may block, and writes to no file, as those of a `kept` run."""
    match action:
        case Commit():
            return not kept
        case Act():
            return action.operation is None
        case CheckClaims():
            return not action.foreign
    return False


def as_sync(backend: Backend, refusal: str) -> SyncBackend:
    """The backend, which can be asked without an event loop. Raises ConfigError: it cannot, as `refusal` says."""
    if not hasattr(backend, "complete") or getattr(backend, "is_async", False):  # isinstance() takes much longer
        raise ConfigError(f"{refusal}: use `await guard.arun(...)`", option="backend")
    return cast("SyncBackend", backend)


def _ends_the_rung(action: Ask) -> bool:
    """Whether a backend of the ladder was asked, whose fault ends its rung and not the run."""
    # A test that forbids real requests fails, whoever they were for.
    return action.backend is not None and FORBIDDEN.get() is None


def _failed(action: Ask, error: BaseException) -> Failed:
    """A backend, which may be foreign code, has raised: what asks the program or this task to end passes through."""
    if gave_up(error):
        failure = BackendError("the backend cancelled its own call")
        failure.__cause__ = error
        return Failed(action.id, failure)
    if not isinstance(error, Exception):
        raise error
    return Failed(action.id, error)


def _replied(action: Ask, completion: object) -> Event:
    if isinstance(completion, Completion):
        return Replied(action.id, completion)
    kind = type(completion).__name__
    return Failed(action.id, BackendError(f"the backend returned {kind}, not a Completion", retryable=False))
