"""What the parts of the engine share: the settings of a run, its state, and how it ends."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from stepguard.backends.retry import RetryPolicy
from stepguard.core.profile import Profile
from stepguard.core.usage import Usage
from stepguard.core.verdicts import Deviation
from stepguard.engine.actions import Act, Action, Ask, Wait
from stepguard.engine.asking import Asker, most_of
from stepguard.engine.budget import Budget, Limit, Spending
from stepguard.engine.flights import Flight, Outbox
from stepguard.engine.history import History
from stepguard.engine.learning import Learning
from stepguard.engine.schedule import Schedule
from stepguard.engine.segments import Segments
from stepguard.errors import ProcedureError
from stepguard.language.values import Value
from stepguard.procedure.procedure import Procedure
from stepguard.repair.policy import Repair, Repairs
from stepguard.replies.formats import ReplyFormat
from stepguard.results import AttemptOutcome, Occurrence, Problem, Result, Status

__all__ = ["RunState", "Settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that shapes a run; `Guard` makes it from its arguments."""

    segments: Segments
    repair: Repair
    budget: Budget
    retry: RetryPolicy
    reply_format: ReplyFormat
    parallel: int
    check_timeout: float | None
    stop_early: bool
    observe: bool
    history: int | None
    seed: int
    profile: Profile | None


class RunState:
    """Everything that is known of one run.

    Attributes:
        procedure: what is run.
        run_id: the name of the run.
        settings: what shapes it.
        steps: which steps are done and which can be asked.
        spending: what was spent, and what may still be.
        repairs: how steps have failed.
        history: the books.
        asker: makes requests.
        learning: what the run has shown of the model.
        outbox: the actions that are to be answered.
        chance: draws seeds and jitter.
        started: when it started, on the clock of `now`.
        now: the time.
        stop: why the run ended before its last step; None where it did not.
    """

    def __init__(
        self, procedure: Procedure, inputs: Mapping[str, Value], settings: Settings, *, run_id: str, now: float
    ) -> None:
        self.procedure = procedure
        self.run_id = run_id
        self.settings = settings
        self.steps = Schedule(procedure, inputs, parallel=settings.parallel)
        self.spending = Spending(settings.budget, started=now)
        self.repairs = Repairs(settings.repair)
        self.history = History(settings.history)
        self.started = self.now = now
        self.chance = random.Random(settings.seed)
        stop_early = settings.stop_early and not settings.observe
        self.asker = Asker(procedure, settings.reply_format, self.chance, stop_early=stop_early)
        self.learning = Learning(settings.segments, settings.profile, self.repairs)
        self.outbox = Outbox(run_id)
        self.stop: tuple[Status, Problem, Exception | None] | None = None

    def result(self) -> Result:
        """The outcome so far; final when `done`."""
        problem: Problem | None = None
        error: Exception | None = None
        unverified = self.history.unverified
        if self.stop is not None:
            status, problem, error = self.stop
        elif not self.steps.finished:
            status, problem = "failed", Problem(self.where(self.steps.frontier), "the run has not ended")
        else:
            status = "unverified" if unverified or self.settings.observe else "verified"
        completed = self.steps.finished and problem is None
        return Result(
            status=status,
            answer=self.steps.values[self.procedure.answer] if completed else None,
            values=MappingProxyType(dict(self.steps.values)),
            steps=self.history.records,
            attempts=self.history.attempts,
            usage=self.spending.usage,
            cost=self.spending.cost,
            seconds=self.now - self.started,
            procedure=self.procedure.name,
            run_id=self.run_id,
            completed=self.steps.completed,
            total=len(self.procedure),
            strength=self.history.strength,
            unverified=unverified,
            assisted=self.history.assisted,
            profile=self.learning.profile,
            profiled=self.settings.profile is not None,
            notes=self.history.notes(),
            problem=problem,
            error=error,
        )

    def end(
        self,
        status: Status,
        where: Occurrence,
        reason: str,
        deviation: Deviation | None = None,
        *,
        error: Exception | None = None,
    ) -> None:
        """Start nothing more; the first reason stays."""
        if self.stop is not None:
            return
        self.stop = (status, Problem(where, reason, deviation), error)
        for action, flight in self.outbox.all():
            if isinstance(action, Wait) or (isinstance(action, Ask | Act) and self.outbox.waits(action)):
                self.take_back(action, flight)

    def where(self, index: int) -> Occurrence:
        """The step at an index, also where a lazy procedure is wrong there."""
        try:
            return Occurrence(index, self.procedure.steps[index].id)
        except ProcedureError as broken:
            return Occurrence(index, broken.step or f"#{index + 1}")

    def reserve(self, action: Action, flight: Flight) -> None:
        """Set aside what the calls of a flight may cost at most, from the next one on."""
        assert flight.request is not None
        self.spending.reserve(action.id, most_of(flight.request) + Usage(flight.calls - 1))

    def take_back(self, action: Action, flight: Flight) -> None:
        """Expect nothing of an action any more."""
        self.outbox.drop(action)
        self.spending.release(action.id)
        self.steps.land(flight.segment)

    def book(
        self,
        flight: Flight,
        outcome: AttemptOutcome,
        usage: Usage,
        *,
        error: str | None = None,
    ) -> None:
        """Book the call of a flight."""
        deviations = flight.reading.deviations if flight.reading is not None else ()
        if flight.blame is not None and flight.blame[1] not in deviations:
            deviations = (*deviations, flight.blame[1])
        self.history.book(
            flight.segment.occurrences,
            rung=flight.rung.name,
            outcome=outcome,
            usage=usage,
            seconds=flight.seconds,
            committed=0 if error is not None else len(flight.records),
            deviations=deviations,
            completion=flight.completion,
            error=error,
        )

    def spent(self, flight: Flight) -> str | None:
        """Why a flight may not ask again, None where it may."""
        calls = flight.calls
        if limit := self.spending.exceeded(self.now, calls=calls):
            return self.limit_reason(limit, calls=calls)
        limit = self.spending.step_exceeded(flight.first.index, calls=calls)
        return None if limit is None else self.limit_reason(limit, per_step=True, calls=calls)

    def limit_reason(self, limit: Limit, *, per_step: bool = False, calls: int = 1) -> str:
        """What is spent, in words, or what is not enough for so many calls."""
        budget = self.settings.budget.per_step if per_step else self.settings.budget
        ends = "is spent" if calls == 1 or limit != "calls" else f"leaves less than the {calls} that a draft takes"
        return f"the budget of {getattr(budget, limit)} {limit}{' for one step' if per_step else ''} {ends}"
