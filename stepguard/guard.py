"""`Guard`: run a procedure on a model, step by verified step."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Unpack

from stepguard.backends.base import FORBIDDEN, Backend, Completion, SyncBackend, as_backend, ask
from stepguard.checks import ajudge_claims
from stepguard.core.deadlines import Overrun, awaited, gave_up
from stepguard.core.profile import Profile
from stepguard.core.verdicts import shorten
from stepguard.engine.actions import (
    Act,
    Action,
    Ask,
    CheckClaims,
    Checked,
    Commit,
    Event,
    Failed,
    Replied,
    Wait,
    Woke,
)
from stepguard.engine.machine import Engine
from stepguard.engine.performing import aperform_step
from stepguard.engine.run import Run
from stepguard.errors import BackendError, BackendTimeout, ConfigError, UnexpectedRequest, UsageError
from stepguard.options import GuardKeywords, GuardOptions, check_options, new_seed, show_options
from stepguard.procedure.procedure import Procedure, check_procedure
from stepguard.repair.ladder import Ladder
from stepguard.results import Result
from stepguard.telemetry.hooks import as_observers

if TYPE_CHECKING:
    import asyncio
    from types import TracebackType

    from stepguard.engine.forecast import Forecast
    from stepguard.telemetry.logging import Telemetry

__all__ = ["Guard"]

_BREATH: Final = 64
"""After so many actions that need no waiting the event loop gets its turn."""


class Guard:
    """Runs procedures on a model: every step checked, every deviation asked again, and no wrong value handed on.

    A guard is immutable and may be shared between threads and event loops.

    Args:
        backend: the model: a `Backend`, a callable from messages to text, an OpenAI-style client, or a name such as
            ``"openai/gpt-4.1-mini"`` or ``"ollama/qwen2.5"`` (the providers are in `stepguard.backends.providers`).
        model: the model to ask for, with a client as backend.
        options: what shapes its runs, such as ``segment=5``, ``repair=2`` or ``budget=Budget(calls=40)``; each is
            described at `stepguard.options.GuardOptions`.

    Raises:
        ConfigError: an argument cannot work.
    """

    @show_options
    def __init__(self, backend: object, *, model: str | None = None, **options: Unpack[GuardKeywords]) -> None:
        check_options(options, of="Guard", allowed=GuardKeywords)
        self._options: Final = GuardOptions(**options)
        self._settings: Final = self._options.settings()
        self._observers: Final = as_observers(self._options.observer)
        self._backend: Final[Backend] = as_backend(backend, model=model)
        if self._options.stop_early and not getattr(self._backend, "can_stop", False):
            raise ConfigError("this backend cannot stop a reply: leave stop_early out", option="stop_early")

    @property
    def options(self) -> GuardOptions:
        """What it was given."""
        return self._options

    def __repr__(self) -> str:
        return f"<Guard of {shorten(str(getattr(self._backend, 'name', type(self._backend).__name__)))}>"

    @property
    def observing(self) -> bool:
        """Whether it takes claims as they stand instead of having wrong ones mended; see `observe`."""
        return self._options.observe

    def forecast(self, procedure: Procedure) -> Forecast:
        """What a run of a procedure will probably cost, and whether it will end verified, by the guard's profile.

        Calls, tokens, seconds, success and abstention; the money, where the budget has a price.
        `stepguard.engine.forecast` has the model behind it.

        Raises:
            ConfigError: the guard has no profile, or one that has seen no calls.
        """
        from stepguard.engine.forecast import forecast

        check_procedure(procedure)
        settings = self._settings
        return forecast(
            procedure, settings.profile or Profile(), segments=settings.segments, price=settings.budget.price
        )

    def start(
        self, procedure: Procedure, inputs: Mapping[str, object] | None = None, *, label: str | None = None
    ) -> Run:
        """A run for a loop of the caller's own: no call is made, and the backend is not used.

        Args:
            procedure: what to run.
            inputs: the values of its inputs.
            label: the name that logs and traces use for the procedure instead of its own, where that is private; its
                steps are then given by their index and not by name.

        Raises:
            InputError: the inputs do not fit the procedure.
            ConfigError: `procedure` is not a `Procedure`.
        """
        started = time.monotonic()  # what is prepared counts for the run
        check_procedure(procedure)
        run_id = os.urandom(6).hex()
        settings = self._settings if self._options.seed is not None else replace(self._settings, seed=new_seed())
        accepted = procedure.accept_inputs(inputs or {})
        return Run(Engine(procedure, accepted, settings, run_id=run_id, now=started), label=label)

    def run(self, procedure: Procedure, inputs: Mapping[str, object] | None = None) -> Result:
        """Run a procedure and return its result, whatever its status.

        It blocks until the run has ended, also when it is called inside a running event loop, where `arun` is the
        better choice. Model calls are made one after the other, whatever `parallel` says.

        Raises:
            InputError: the inputs do not fit the procedure.
            ConfigError: `procedure` is not a `Procedure`, or the backend can only be awaited; use `arun` then.
        """
        self._sync_backend()
        return self.drive(self.start(procedure, inputs))

    async def arun(self, procedure: Procedure, inputs: Mapping[str, object] | None = None) -> Result:
        """Run a procedure without blocking the event loop; see `run`.

        Cancelling it cancels the calls in flight and leaves nothing behind. (A backend that can only block cannot be
        stopped: its call runs on in a thread of its own, which nothing waits for.) To read what was verified by then,
        keep the run: ``run = guard.start(...)`` and ``await guard.adrive(run)``.
        """
        return await self.adrive(self.start(procedure, inputs))

    def drive(self, run: Run) -> Result:
        """Carry a run that `start` made to its end.

        Where this is interrupted (by KeyboardInterrupt, say) the run is cancelled: `Run.values` and `Run.result` hold
        what was verified and spent.

        Raises:
            UsageError: actions of the run are outstanding that this call was not given.
            ConfigError: the backend can only be awaited; use `adrive`.
        """
        backend = self._sync_backend()
        telemetry = self._telemetry(run)
        try:
            telemetry.started()
            while not run.done:
                action = run.next_action()
                if action is None:
                    break
                with telemetry.performing(action):
                    event = self._ask(backend, action) if isinstance(action, Ask) else run.perform(action)
                run.send(event)
                telemetry.performed(action, event)
        except BaseException:
            run.cancel("interrupted")
            telemetry.done(run.result())
            raise
        return _ended(run, telemetry)

    async def adrive(self, run: Run) -> Result:
        """Carry a run that `start` made to its end without blocking the event loop; see `drive`."""
        import asyncio  # importing it takes longer than the rest of this package

        telemetry = self._telemetry(run)
        tasks: dict[asyncio.Task[Event], Action] = {}
        quick = 0

        def finish(action: Action, event: Event) -> None:
            run.send(event)
            telemetry.performed(action, event)

        async def perform(action: Action) -> Event:
            with telemetry.performing(action):
                return await self._aperform(action)

        async with AsyncExitStack() as stack:
            try:
                telemetry.started()
                session = getattr(self._backend, "session", None)
                if session is not None:
                    await _open(session(), stack, telemetry)
                while not run.done:
                    action = run.next_action()
                    if action is None and not tasks:
                        break
                    if action is None:
                        finished, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                        for task in finished:
                            finish(tasks.pop(task), task.result())
                    elif _quick(action):
                        with telemetry.performing(action):
                            event = run.perform(action)
                        finish(action, event)
                        quick += 1
                        if quick % _BREATH == 0:
                            await asyncio.sleep(0)
                    else:
                        tasks[asyncio.create_task(perform(action))] = action
            except BaseException:
                _abandon(run, tasks)
                telemetry.done(run.result())
                raise
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            return _ended(run, telemetry)

    def _telemetry(self, run: Run) -> Telemetry:
        from stepguard.telemetry.logging import Telemetry  # with logging, which importing stepguard need not pay for

        return Telemetry(run, self._observers)

    def _sync_backend(self) -> SyncBackend:
        policy = self._settings.repair
        for rung in policy.rungs if isinstance(policy, Ladder) else ():
            if rung.backend is not None:
                _sync(rung.backend, f"the rung {rung.name} can only be awaited")
        for fallback in self._settings.fallbacks:
            _sync(fallback, "a fallback can only be awaited")
        return _sync(self._backend, "this backend can only be awaited")

    def _ask(self, backend: SyncBackend, action: Ask) -> Event:
        try:
            if action.backend is not None:
                backend = _sync(action.backend, "a rung asks somebody who can only be awaited")
            return _replied(action, backend.complete(action.request))
        except (UsageError, UnexpectedRequest) as error:  # the caller is to mend it; a test double speaks to its test
            if not _ends_the_rung(action):
                raise
            return Failed(action.id, error)
        except BaseException as error:  # noqa: BLE001 - a backend may be foreign code
            return _failed(action, error)

    async def _aperform(self, action: Action) -> Event:
        if isinstance(action, Ask):
            seconds, backend = action.request.timeout, action.backend or self._backend
            try:
                return _replied(action, await awaited(seconds, ask(backend, action.request)))
            except (UsageError, UnexpectedRequest) as error:
                if not _ends_the_rung(action):
                    raise
                return Failed(action.id, error)
            except BaseException as error:  # noqa: BLE001 - as in `_ask`
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
            timeout=action.timeout,
            remaining=action.remaining,
        )
        return Checked(action.id, judgements)


def _quick(action: Action) -> bool:
    """Whether an action runs no code of the host's that may block."""
    match action:
        case Commit():
            return True
        case Act():
            return action.operation is None
        case CheckClaims():
            return not action.foreign
    return False


def _ends_the_rung(action: Ask) -> bool:
    """Whether it was somebody else who was asked, so that their fault ends a rung and not the run."""
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


def _sync(backend: Backend, refusal: str) -> SyncBackend:
    if not isinstance(backend, SyncBackend) or getattr(backend, "is_async", False):
        raise ConfigError(f"{refusal}: use `await guard.arun(...)`", option="backend")
    return backend


async def _open(session: AbstractAsyncContextManager[object], stack: AsyncExitStack, telemetry: Telemetry) -> None:
    """Hold the session of a backend until the stack is left. That it cannot be closed costs no result."""

    async def close(
        kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await session.__aexit__(kind, error, traceback)
        except Exception as failed:  # noqa: BLE001 - a backend may be foreign code
            if failed is not error:
                telemetry.unclosed(failed)

    await session.__aenter__()
    stack.push_async_exit(close)


def _abandon(run: Run, tasks: Iterable[asyncio.Task[Event]]) -> None:
    """End a run that is not carried on, with its books complete."""
    for task in tasks:
        if task.done() and not task.cancelled() and task.exception() is None:
            run.send(task.result())  # it came in at the last moment, and was paid for
    run.cancel()


def _ended(run: Run, telemetry: Telemetry) -> Result:
    if not run.done:
        telemetry.detached()
        raise UsageError(f"actions of run {run.id} are outstanding elsewhere: answer them with send()")
    result = run.result()
    telemetry.done(result)
    return result


def _replied(action: Ask, completion: object) -> Event:
    if isinstance(completion, Completion):
        return Replied(action.id, completion)
    kind = type(completion).__name__
    return Failed(action.id, BackendError(f"the backend returned {kind}, not a Completion", retryable=False))
