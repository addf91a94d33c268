"""`Run`: one execution, driven by its caller."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from stepguard.checks import judge_claims
from stepguard.core.redaction import error_text
from stepguard.engine.actions import (
    Act,
    Action,
    Ask,
    CheckClaims,
    Checked,
    Clock,
    Commit,
    Committed,
    Event,
    Failed,
    Wait,
    Woke,
)
from stepguard.engine.performing import perform_step
from stepguard.errors import LedgerError, UsageError
from stepguard.language.values import Value
from stepguard.procedure.procedure import Procedure
from stepguard.results import Attempt, Result

if TYPE_CHECKING:
    from stepguard.engine.journal import Journal
    from stepguard.engine.machine import Engine


class Run:
    """One execution, driven by the caller through `actions` and `send`.

    ::

        run = guard.start(procedure, {"x": 12, "y": 7})
        while not run.done:
            for action in run.actions():
                if isinstance(action, Ask):  # with another model or a person in the ladder: action.backend first
                    run.send(Replied(action.id, my_model(action.request)))
                else:
                    run.send(run.perform(action))
        run.result()

    `Guard.drive` and `Guard.adrive` do the same with the guard's backend. A run belongs to one thread or task at a
    time.
    """

    def __init__(self, engine: Engine, *, label: str | None = None, journal: Journal | None = None) -> None:
        self._engine = engine
        self._label = label
        self._journal = journal
        self._booked = engine.calls
        self._closed = False
        self._settled = True
        # It may be over before its first action, such as a run that waits for a person.
        self._keep()
        self.settle()

    @property
    def id(self) -> str:
        """The id of the run."""
        return self._engine.run_id

    @property
    def procedure(self) -> Procedure:
        """What is run."""
        return self._engine.procedure

    @property
    def kept(self) -> bool:
        """Whether it is kept in a ledger, so that to perform a `Commit` writes to a file."""
        return self._journal is not None

    @property
    def label(self) -> str:
        """What logs and traces call the procedure: its name, unless `Guard.start` was given another."""
        return self.procedure.name if self._label is None else self._label

    @property
    def names_steps(self) -> bool:
        """Whether logs and traces may name the steps: not where they may not name the procedure."""
        return self.label == self.procedure.name

    @property
    def done(self) -> bool:
        """Whether the run has ended."""
        return self._engine.done

    @property
    def values(self) -> Mapping[str, Value]:
        """The verified state so far, as a copy; it stays readable after a cancellation."""
        return self._engine.values

    def attempts(self, *, after: int = 0) -> tuple[Attempt, ...]:
        """The model calls that are done with and are numbered above `after`, as far as the guard's history goes."""
        return self._engine.attempts_after(after)

    def actions(self) -> list[Action]:
        """What is to be done now, each action once; empty while everything is outstanding."""
        self._tick()
        actions = self._engine.actions()
        self._keep()
        self.settle()
        return actions

    def next_action(self, *, settle: bool = True) -> Action | None:
        """One of `actions`, the oldest; None while everything is outstanding.

        For loops that perform one action after the other: what is not handed out when the run ends need not be done.

        Args:
            settle: see `send`.
        """
        self._tick()
        action = self._engine.next_action()
        self._keep()
        if settle:
            self.settle()
        return action

    def send(self, event: Event, *, settle: bool = True) -> None:
        """Take in what happened; events may come in any order.

        Args:
            event: what happened.
            settle: whether to wait for the disk where the run ends by it and is kept in a ledger; otherwise call
                `settle` when it is done, in a thread where nothing else may wait for that.

        Raises:
            UsageError: the event answers no outstanding action of this run, or does not fit it. Nothing has changed.
            LedgerError: how the run has ended could not be made durable.
        """
        if not isinstance(event, Clock):
            self._tick()
        self._engine.send(event)
        self._keep()
        if settle:
            self.settle()

    def settle(self) -> None:
        """Wait until the end of a run in a ledger is durable; calling it again does nothing.

        Raises:
            LedgerError: it may not be durable.
        """
        if self._journal is None or self._settled:
            return
        try:
            self._journal.settle()
        except LedgerError:
            if not isinstance(self.result().error, LedgerError):  # the result does not say it already
                raise
        self._settled = True

    def answer(self, step: str, value: object) -> None:
        """Answer, for a person, the step at which the run waits (status ``waiting``); then drive it on.

        Args:
            step: its place, as the problem of the result names it.
            value: the answer, as text or as a value of the step's type; None where the person does not know.

        Raises:
            UsageError: the run waits for no such step.
            RunConflict: it is kept in a ledger, and another process has continued it.
        """
        self._tick()
        # Before the ledger is reopened: a wrong answer must not leave the run open there.
        self._engine.check_answer(step)
        if self._journal is not None and self._closed:
            self._journal.reopen()
            self._closed = False
        self._engine.answer(step, value)
        self._keep()
        self.settle()

    def cancel(self, reason: str = "cancelled") -> None:
        """End the run as ``failed`` here: what is outstanding is given up, what was verified stays.

        A run that is done stays as it is.
        """
        self._tick()
        self._engine.cancel(reason)
        with suppress(LedgerError):  # without an end the ledger takes it for one that was killed
            self._keep()
            self.settle()

    def _tick(self) -> None:
        """Tell the engine the time, which it cannot know by itself."""
        self._engine.send(Clock(time.monotonic()))

    def _keep(self) -> None:
        """Write the model calls that are done with, and the end, to the journal."""
        if self._journal is None or self._closed:
            return
        if fresh := self._engine.attempts_after(self._booked):
            self._booked = fresh[-1].number
            try:
                self._journal.book(fresh)
            except LedgerError as error:
                self._engine.cancel(error_text(error), error)
        if self._engine.done:
            self._closed, self._settled = True, False
            self._journal.close(self._engine.result())

    def perform(self, action: Action) -> Event:
        """Do what needs no model: judge claims, perform code, wait (blocking), acknowledge a commit.

        Raises:
            UsageError: the action asks the model; that is the caller's to do.
        """
        match action:
            case Ask():
                raise UsageError("perform() makes no model call: answer the Ask yourself with Replied or Failed")
            case CheckClaims():
                return _check(action)
            case Act():
                return perform_step(action)
            case Wait():
                time.sleep(action.seconds)
                return Woke(action.id)
            case Commit():
                return self._commit(action)

    def _commit(self, action: Commit) -> Committed | Failed:
        try:
            if self._journal is not None:
                self._journal.commit(action)
        except LedgerError as error:
            return Failed(action.id, error)
        return Committed(action.id)

    def result(self) -> Result:
        """The result; before the end, what is known so far."""
        return self._engine.result()


def _check(action: CheckClaims) -> Checked:
    return Checked(
        action.id,
        judge_claims(
            action.steps,
            action.claims,
            action.values,
            beyond_failure=action.beyond_failure,
            independent=action.independent,
            timeout=action.timeout,
            remaining=action.remaining,
        ),
    )
