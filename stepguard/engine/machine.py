"""The engine itself: it takes events in, and hands actions out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import assert_never

from stepguard.core.usage import Usage
from stepguard.engine.actions import (
    Action,
    Ask,
    Check,
    Checked,
    Clock,
    Committed,
    Event,
    Failed,
    Performed,
    Replied,
    Woke,
)
from stepguard.engine.landing import Landing
from stepguard.engine.launching import Launcher
from stepguard.engine.state import RunState, Settings
from stepguard.language.values import Value
from stepguard.procedure.procedure import Procedure
from stepguard.results import Attempt, Result

__all__ = ["Engine"]


class Engine:
    """One run of a procedure.

    Args:
        procedure: what to run.
        inputs: its inputs, already accepted by `Procedure.accept_inputs`.
        settings: everything that shapes the run.
        run_id: a name for the run, part of every action id.
        now: the time it starts, on the clock that later `Clock` events follow.
    """

    def __init__(
        self, procedure: Procedure, inputs: Mapping[str, Value], settings: Settings, *, run_id: str, now: float
    ) -> None:
        self.procedure = procedure
        self.run_id = run_id
        self._state = RunState(procedure, inputs, settings, run_id=run_id, now=now)
        self._launcher = Launcher(self._state)
        self._landing = Landing(self._state, self._launcher)
        self._launcher.fill()

    @property
    def done(self) -> bool:
        """Whether the run has ended: `result` may be called, and no event is expected."""
        return not self._state.outbox and (self._state.stop is not None or self._state.steps.finished)

    @property
    def values(self) -> Mapping[str, Value]:
        """A copy of the verified state."""
        return MappingProxyType(dict(self._state.steps.values))

    def attempts_after(self, number: int) -> tuple[Attempt, ...]:
        """The model calls that are done with and are numbered higher, as far as the history holds them."""
        return self._state.history.attempts_after(number)

    def actions(self) -> list[Action]:
        """The actions that have come up since the last call, each to be performed once."""
        actions: list[Action] = []
        while (action := self.next_action()) is not None:
            actions.append(action)
        return actions

    def next_action(self) -> Action | None:
        """The oldest action that was not handed out yet, None if there is none now.

        What is not handed out when the run ends is never performed.
        """
        while (taken := self._state.outbox.take()) is not None:
            action, flight = taken
            remaining = self._state.spending.remaining(self._state.now)
            if isinstance(action, Check) and action.foreign:
                return replace(action, timeout=self._state.settings.check_timeout, remaining=remaining)
            if not isinstance(action, Ask):
                return action
            if remaining is not None and remaining <= 0:  # spent while other actions were performed
                self._state.take_back(action, flight)
                self._launcher.fill()
                continue
            flight.sent += 1
            flight.asked_at = self._state.now
            bounds = (
                self._state.settings.retry.timeout if action.backend is None else flight.rung.timeout,
                remaining,
                self._state.spending.step_seconds(flight.segment.indices),
            )
            timeout = min((bound for bound in bounds if bound is not None), default=None)
            return replace(action, request=replace(action.request, timeout=timeout))
        return None

    def send(self, event: Event) -> None:
        """Take in what has happened.

        Raises:
            UsageError: the event answers no outstanding action of this run, or does not fit it. Nothing has changed
                then: the action is still to be answered.
        """
        if isinstance(event, Clock):
            self._state.now = max(self._state.now, event.now)
            return
        answered = self._state.outbox.answered(event)
        if answered is None:
            return
        action, flight = answered
        match event:
            case Replied(id, completion):
                self._landing.replied(id, flight, completion)
            case Failed(id, error):
                if isinstance(action, Ask):
                    self._landing.unanswered(id, flight, error)
                else:
                    self._landing.broken(flight, error)
            case Checked(_, judgements):
                self._landing.checked(flight, judgements)
            case Performed(_, value):
                self._landing.performed(flight, value)
            case Woke(id):
                self._state.spending.release(id)
                self._state.spending.blame(flight.first.index, Usage(), self._state.now - flight.waits_since)
                self._launcher.ask(flight)
            case Committed():
                self._landing.committed(flight)
            case _:
                assert_never(event)
        self._launcher.fill()

    def cancel(self, reason: str = "cancelled") -> None:
        """End the run here. What is outstanding is given up and booked as it stands; its events are ignored."""
        if self.done:
            return
        self._state.end("failed", self._state.where(self._state.steps.frontier), reason)
        for action, flight in self._state.outbox.all():
            self._state.take_back(action, flight)
            if isinstance(action, Ask):
                flight.seconds = self._state.now - flight.asked_at
                self._state.spending.settle(action.id, Usage(calls=1))
                self._state.book(flight, "error", Usage(calls=1), error=reason)
            elif flight.completion is not None:
                self._state.book(flight, "error", flight.usage, error=reason)

    def result(self) -> Result:
        """The outcome so far; final when `done`."""
        return self._state.result()
