"""How a run ends before its last step: nothing more is started, and what was not sent yet is called back."""

from __future__ import annotations

from dataclasses import dataclass

from stepguard.core.verdicts import Deviation
from stepguard.engine.actions import Act, Action, Ask, Wait
from stepguard.engine.budget import Spending
from stepguard.engine.flights import Flight
from stepguard.engine.outbox import Outbox
from stepguard.engine.schedule import Schedule
from stepguard.results import Occurrence, Problem, Status


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a run ended: its status, the step and the reason, and the exception behind a failure."""

    status: Status
    problem: Problem
    error: Exception | None


class RunEnding:
    """Ends a run.

    Attributes:
        stop: why it ended before its last step; None where it did not.
    """

    def __init__(self, schedule: Schedule, spending: Spending, outbox: Outbox) -> None:
        self.stop: Stop | None = None
        self._schedule = schedule
        self._spending = spending
        self._outbox = outbox

    def end(
        self,
        status: Status,
        where: Occurrence,
        reason: str,
        deviation: Deviation | None = None,
        *,
        error: Exception | None = None,
    ) -> None:
        """Start nothing more. The first reason stays; what was sent by then is still taken in."""
        if self.stop is not None:
            return
        self.stop = Stop(status, Problem(where, reason, deviation), error)
        for action, phase in self._outbox.all():
            # Not what was sent: its tokens are paid for, and a tool may have had its effect. Nor commits: they are
            # verified.
            if isinstance(action, Wait) or (isinstance(action, Ask | Act) and self._outbox.waits(action)):
                self.call_back(action, phase.flight)

    def go_on(self) -> None:
        """What the run waited for is there."""
        assert self.stop is not None
        assert self.stop.status == "waiting"
        self.stop = None

    def call_back(self, action: Action, flight: Flight) -> None:
        """Expect nothing of an action any more: its steps can be asked again, and what was set aside is free."""
        self._outbox.drop(action)
        self._spending.release(action.id)
        self._schedule.land(flight.segment)
