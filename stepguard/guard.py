"""`Guard`: run a procedure on a model, step by verified step."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Final

from stepguard.actions import (
    Act,
    Action,
    Ask,
    Check,
    Checked,
    Clock,
    Commit,
    Committed,
    Event,
    Failed,
    Performed,
    Replied,
    Wait,
    Woke,
)
from stepguard.backends.base import Backend, SyncBackend, as_backend, ask
from stepguard.budget import Budget
from stepguard.checks import judge_claims
from stepguard.engine import Engine, Settings, Transport
from stepguard.errors import BackendError, ConfigError, EvaluationError, UsageError
from stepguard.exact import evaluate
from stepguard.procedure import Procedure
from stepguard.repair import Repair, Retries
from stepguard.reply_formats import EquationFormat, ReplyFormat
from stepguard.results import Result
from stepguard.segments import Segments
from stepguard.values import Value

__all__ = ["Guard", "Observer", "Run"]

Observer = Callable[[Action, Event], None]
"""Called by `Guard.run` and `Guard.arun` with every performed action and the event that answered it."""

_NO_LIMIT: Final = Budget()
_EQUATIONS: Final = EquationFormat()


class Run:
    """One execution, driven by whoever calls `actions` and `send`.

    ::

        run = guard.start(procedure, {"x": 12, "y": 7})
        while not run.done:
            for action in run.actions():
                if isinstance(action, Ask):
                    run.send(Replied(action.id, my_model(action.request)))
                else:
                    run.send(run.perform(action))
        run.result()
    """

    def __init__(self, engine: Engine, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._clock = clock

    @property
    def id(self) -> str:
        """The id of the run."""
        return self._engine.run_id

    @property
    def done(self) -> bool:
        """Whether the run has ended."""
        return self._engine.done

    @property
    def values(self) -> Mapping[str, Value]:
        """The verified state so far, as a copy; it stays readable after a cancellation."""
        return self._engine.values

    def actions(self) -> list[Action]:
        """What is to be done now, each action once; empty while everything is outstanding."""
        return self._engine.actions()

    def send(self, event: Event) -> None:
        """Tell the run what happened; events may come in any order.

        Raises:
            UsageError: the event answers no outstanding action of this run.
        """
        if not isinstance(event, Clock):
            self._engine.send(Clock(self._clock()))
        self._engine.send(event)

    def perform(self, action: Action) -> Event:
        """Do what needs no model: judge claims, perform code, wait (blocking), acknowledge a commit.

        Raises:
            UsageError: the action asks the model; that is the caller's to do.
        """
        match action:
            case Ask():
                raise UsageError("perform() makes no model call: answer the Ask yourself with Replied or Failed")
            case Check():
                return _check(action)
            case Act():
                return _act(action)
            case Wait():
                time.sleep(action.seconds)
                return Woke(action.id)
            case Commit():
                return Committed(action.id)

    def result(self) -> Result:
        """The result; before the end, what is known so far."""
        return self._engine.result()


class Guard:
    """Runs procedures on a model: every step checked, every deviation asked again, nothing wrong handed on.

    A guard is immutable and may be shared between threads and event loops.

    Args:
        backend: the model: a `Backend`, a callable from messages to text, an OpenAI-style client, or a name such as
            ``"openai/gpt-4.1-mini"``.
        model: the model to ask for, with a client as backend.
        segment: how many steps one call asks; a number or a `Segments`.
        repair: what is tried when a step is not accepted; a number of retries or a `Repair` policy.
        budget: what a run may spend; no limit by default.
        transport: how failures of the transport are met.
        reply_format: how replies are structured.
        parallel: how many segments may be asked at the same time where steps do not depend on each other. `run`
            performs them one after the other.
        observe: check and record, but take every claim that can be read as it stands. The result is never called
            verified. For measuring what a model does without the guard.
        history: how many of the last steps and attempts a result keeps; None keeps all.
        seed: makes sampling seeds and jitter repeatable; a new one for every run by default.
        observer: called with every performed action and its event.

    Raises:
        ConfigError: an argument cannot work.
    """

    def __init__(
        self,
        backend: object,
        *,
        model: str | None = None,
        segment: int | Segments = 10,
        repair: int | Repair = 4,
        budget: Budget | None = None,
        transport: Transport | None = None,
        reply_format: ReplyFormat | None = None,
        parallel: int = 1,
        observe: bool = False,
        history: int | None = 10_000,
        seed: int | None = None,
        observer: Observer | None = None,
    ) -> None:
        if parallel < 1:
            raise ConfigError(f"parallel is 1 or more, not {parallel!r}", option="parallel")
        if history is not None and history < 1:
            raise ConfigError(f"history is 1 or more, or None for all, not {history!r}", option="history")
        self._backend: Final[Backend] = as_backend(backend, model=model)
        self._segments: Final = segment if isinstance(segment, Segments) else Segments(segment)
        self._repair: Final[Repair] = Retries(repair) if isinstance(repair, int) else repair
        self._budget: Final = budget or _NO_LIMIT
        self._transport: Final = transport or Transport()
        self._reply_format: Final[ReplyFormat] = reply_format or _EQUATIONS
        self._parallel: Final = parallel
        self._observe: Final = observe
        self._history: Final = history
        self._seed: Final = seed
        self._observer: Final = observer

    def start(self, procedure: Procedure, inputs: Mapping[str, object] | None = None) -> Run:
        """A run for a loop of the caller's own: no call is made, and the backend is not used.

        Raises:
            InputError: the inputs do not fit the procedure.
        """
        run_id = uuid.uuid4().hex[:12]
        settings = Settings(
            segments=self._segments,
            repair=self._repair,
            budget=self._budget,
            transport=self._transport,
            reply_format=self._reply_format,
            parallel=self._parallel,
            observe=self._observe,
            history=self._history,
            seed=self._seed if self._seed is not None else uuid.uuid4().int & 0x7FFFFFFF,
        )
        accepted = procedure.accept_inputs(inputs or {})
        return Run(Engine(procedure, accepted, settings, run_id=run_id, now=time.monotonic()))

    def run(self, procedure: Procedure, inputs: Mapping[str, object] | None = None) -> Result:
        """Run a procedure and return its result, whatever its status.

        Raises:
            InputError: the inputs do not fit the procedure.
            ConfigError: the backend can only be awaited; use `arun`.
        """
        if not isinstance(self._backend, SyncBackend) or getattr(self._backend, "is_async", False):
            raise ConfigError("this backend can only be awaited: use `await guard.arun(...)`", option="backend")
        run = self.start(procedure, inputs)
        while not run.done:
            for action in run.actions():
                event = self._ask(action) if isinstance(action, Ask) else run.perform(action)
                self._finish(run, action, event)
        return run.result()

    async def arun(self, procedure: Procedure, inputs: Mapping[str, object] | None = None) -> Result:
        """Run a procedure without blocking the event loop; see `run`.

        Cancelling it cancels the calls in flight and leaves nothing behind.
        """
        run = self.start(procedure, inputs)
        tasks: dict[asyncio.Task[Event], Action] = {}
        async with AsyncExitStack() as stack:
            session = getattr(self._backend, "session", None)
            if session is not None:
                await stack.enter_async_context(session())
            try:
                while not run.done:
                    for action in run.actions():
                        if isinstance(action, Commit | Act) or (isinstance(action, Check) and not action.foreign):
                            self._finish(run, action, run.perform(action))
                        else:
                            tasks[asyncio.create_task(self._aperform(run, action))] = action
                    if tasks:
                        finished, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                        for task in finished:
                            self._finish(run, tasks.pop(task), task.result())
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        return run.result()

    def _finish(self, run: Run, action: Action, event: Event) -> None:
        run.send(event)
        if self._observer is not None:
            self._observer(action, event)

    def _ask(self, action: Ask) -> Event:
        assert isinstance(self._backend, SyncBackend)
        try:
            return Replied(action.id, self._backend.complete(action.request))
        except BackendError as error:
            return Failed(action.id, error)

    async def _aperform(self, run: Run, action: Action) -> Event:
        if isinstance(action, Ask):
            try:
                return Replied(action.id, await ask(self._backend, action.request))
            except BackendError as error:
                return Failed(action.id, error)
        if isinstance(action, Wait):
            await asyncio.sleep(action.seconds)
            return Woke(action.id)
        return await asyncio.to_thread(run.perform, action)


def _check(action: Check) -> Checked:
    return Checked(
        action.id,
        judge_claims(action.steps, action.claims, action.values, beyond_failure=action.beyond_failure),
    )


def _act(action: Act) -> Performed | Failed:
    step = action.step
    assert step.expression is not None
    try:
        return Performed(action.id, step.type.convert(evaluate(step.expression, action.values)))
    except EvaluationError as error:
        return Failed(action.id, error)
