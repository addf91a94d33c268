"""The engine itself: takes in events, and hands out actions."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from stepguard.backends.base import paid_without_reply
from stepguard.core.verdicts import Strength
from stepguard.engine.actions import (
    Act,
    Action,
    Ask,
    CheckClaims,
    Checked,
    Clock,
    Committed,
    Event,
    Failed,
    OperationCall,
    Performed,
    Replied,
    Woke,
)
from stepguard.engine.asking import Asker
from stepguard.engine.budget import Spending
from stepguard.engine.ending import RunEnding
from stepguard.engine.flights import Asking, Checking, Committing, Computing, Phase, Recording, Waiting
from stepguard.engine.history import History
from stepguard.engine.journal import Journal
from stepguard.engine.judging import ClaimJudge
from stepguard.engine.landing import Landing
from stepguard.engine.launching import Launcher
from stepguard.engine.learning import Learning
from stepguard.engine.outbox import Outbox
from stepguard.engine.recalling import Recall
from stepguard.engine.receiving import Receiver, Retrier
from stepguard.engine.schedule import Schedule
from stepguard.engine.settings import Settings
from stepguard.errors import UsageError
from stepguard.language.values import Value
from stepguard.procedure.operations import WrongResult
from stepguard.procedure.procedure import Procedure
from stepguard.repair.books import Repairs
from stepguard.repair.fallbacks import Fallbacks
from stepguard.repair.rungs import person
from stepguard.results import Attempt, Occurrence, Problem, Result, Status

_STATUS: Final[Mapping[Strength, Status]] = {
    "proved": "verified",
    "constrained": "checked",
    "grounded": "checked",
    "agreed": "checked",
    "unverified": "unverified",
}
"""How a completed run ends, by its weakest step."""


class Engine:
    """One run of a procedure.

    Args:
        inputs: its inputs, already accepted by `Procedure.accept_inputs`.
        run_id: a name for the run, part of every action id.
        now: the time it starts, on the clock that later `Clock` events follow.
        journal: what is durable of the run, which is then made durable on; None where it is not kept.
    """

    def __init__(
        self,
        procedure: Procedure,
        inputs: Mapping[str, Value],
        settings: Settings,
        *,
        run_id: str,
        now: float,
        journal: Journal | None = None,
    ) -> None:
        self.procedure = procedure
        self.run_id = run_id
        self._settings = settings
        self._started = self._now = now
        self._outbox = outbox = Outbox(run_id)
        self._schedule = schedule = Schedule(procedure, inputs, parallel=settings.parallel)
        self._spending = spending = Spending(settings.budget, started=now)
        self._history = history = History(settings.history, prompts=journal is not None and journal.prompts)
        self._ending = ending = RunEnding(schedule, spending, outbox)
        self._recall = recall = None if journal is None else Recall(journal, schedule)
        if journal is not None:
            spending.restore(journal.usage)
            history.restore(journal.attempts)
        observe, chance = settings.observe, random.Random(settings.seed)
        fallbacks = Fallbacks(settings.fallbacks, timeout=settings.retry.timeout)
        # An observing run shows what the model does by itself: it asks nobody else, and hears every reply to its end.
        repairs = Repairs(settings.repair, Fallbacks((), timeout=None) if observe else fallbacks)
        self._learning = learning = Learning(settings.segments, settings.profile, repairs)
        asker = Asker(
            procedure,
            settings.reply_format,
            chance,
            wording=settings.prompts,
            learning=learning,
            stop_early=False if observe else settings.stop_early,
            stopping=settings.stopping,
        )
        # The way of a flight, from its start to its end.
        self._landing = landing = Landing(schedule, repairs, spending, history, learning, asker, ending)
        self._judge = judge = ClaimJudge(schedule, repairs, outbox, landing, recall, observe=observe)
        self._launcher = launcher = Launcher(
            schedule,
            repairs,
            learning,
            asker,
            spending,
            outbox,
            ending,
            fallbacks,
            settings.person,
            judge,
            landing,
            recall,
            procedure.all_operations,
            parallel=settings.parallel,
            observe=observe,
        )
        self._receiver = Receiver(
            settings.reply_format,
            schedule,
            spending,
            history,
            learning,
            asker,
            launcher,
            judge,
            landing,
            ending,
            # Those of a lazy procedure are never all made.
            words=(*procedure.words, *(procedure.names if procedure.look_back is None else ())),
            answer=procedure.answer,
        )
        self._retrier = Retrier(
            settings.retry, chance, schedule, spending, history, outbox, asker, launcher, landing, ending
        )
        launcher.fill(now)

    @property
    def done(self) -> bool:
        """Whether the run has ended: `result` may be called, and no event is expected."""
        return not self._outbox and (self._ending.stop is not None or self._schedule.finished)

    @property
    def values(self) -> Mapping[str, Value]:
        """A copy of the verified state."""
        return MappingProxyType(self._schedule.source.variables())

    @property
    def refused(self) -> Sequence[Occurrence]:
        """The durable steps that no longer pass their checks, or are not what they were."""
        return () if self._recall is None else tuple(self._recall.refused)

    @property
    def calls(self) -> int:
        """How many model calls are done with."""
        return self._history.calls

    def attempts_after(self, number: int) -> tuple[Attempt, ...]:
        """The model calls that are done with and are numbered higher, as far as the history holds them."""
        return self._history.attempts_after(number)

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
        while (entry := self._outbox.take()) is not None:
            action, phase = entry
            remaining = self._spending.remaining(self._now)
            if isinstance(action, CheckClaims) and action.foreign:
                # Deadlines are set when an action is handed out, not when it comes up: others may have run in between.
                return replace(action, timeout=self._settings.check_timeout, remaining=remaining)
            if isinstance(action, Act) and action.operation is not None:
                return replace(action, remaining=remaining)
            if not isinstance(action, Ask):
                return action
            assert isinstance(phase, Asking)
            if remaining is not None and remaining <= 0:  # spent while other actions were performed
                self._ending.call_back(action, phase.flight)
                self._launcher.fill(self._now)
                continue
            self._outbox.update(action, phase.handed_out(self._now))
            timeout = self._timeout(phase, remaining)
            request = replace(action.request, timeout=timeout)
            return Ask(action.id, request, action.backend, action.occurrences)
        return None

    def _timeout(self, asking: Asking, remaining: float | None) -> float | None:
        """The seconds that one request may take: those of who is asked, of the run and of its steps."""
        flight = asking.flight
        bounds = (
            self._settings.retry.timeout if flight.rung.backend is None else flight.rung.timeout,
            remaining,
            self._spending.step_seconds(flight.segment.indices),
        )
        return min((bound for bound in bounds if bound is not None), default=None)

    def send(self, event: Event) -> None:
        """Take in what has happened.

        Raises UsageError: the event answers no outstanding action of this run, or does not fit it. Nothing has changed
        then: the action is still to be answered.
        """
        if isinstance(event, Clock):
            self._now = max(self._now, event.now)
            return
        answered = self._outbox.answered(event)
        if answered is None:
            return
        self._end_phase(answered[1], event)
        self._launcher.fill(self._now)

    def _end_phase(self, phase: Phase, event: Event) -> None:
        """A flight leaves the phase that waited for this event; `Outbox.answered` has seen that it fits."""
        now = self._now
        match phase, event:
            case Asking(), Replied(id, completion):
                self._receiver.replied(id, phase, completion, now)
            case Asking(), Failed(id, error):
                self._retrier.failed(id, phase, error, now)
            case Waiting(), Woke(id):
                self._retrier.woke(id, phase, now)
            # Before the plain `Computing` below: what a tool returned is durable before it is used, so that it is
            # called once.
            case Computing(_, _, OperationCall() as call), Performed(_, value):
                self._launcher.record(replace(phase, call=replace(call, returned=True, value=value)))
            case Recording(computing), Committed():
                self._launcher.recorded(computing, now)
            case Recording(computing), Failed(_, error):
                self._landing.broken(computing.flight, error)
            case Computing(), Performed(_, value):
                self._judge.performed(phase, value, now)
            case Checking(), Checked(_, judgements):
                self._judge.checked(phase, judgements, now)
            case Committing(), Committed():
                self._landing.committed(phase, now)
            case Computing(), Failed(_, error):
                # A tool that returned something of the wrong type has had its effect: calling it again would double it.
                if isinstance(error, WrongResult) or not self._launcher.perform_again(phase):
                    self._landing.broken(phase.flight, error)
            case Checking() | Committing(), Failed(_, error):
                self._landing.broken(phase.flight, error, phase.reply, phase.rejections)
            case _:
                raise AssertionError(f"{type(event).__name__} ends no {type(phase).__name__}")

    def answer(self, step: str, value: object) -> None:
        """A person answers the step for which the run waits. Raises UsageError: it waits for no such step."""
        where = self.check_answer(step)
        self._launcher.answer(where.index, person(lambda *_: value))
        self._ending.go_on()
        self._launcher.fill(self._now)

    def check_answer(self, step: str) -> Occurrence:
        """The place of this step, for which the run waits. Raises UsageError: it waits for no such step."""
        stop = self._ending.stop
        if stop is None or stop.status != "waiting" or str(stop.problem.occurrence) != step:
            waits = stop.problem.occurrence if stop is not None and stop.status == "waiting" else "nobody"
            raise UsageError(f"run {self.run_id} has no question {step!r}: it waits for {waits}")
        return stop.problem.occurrence

    def cancel(self, reason: str = "cancelled", error: Exception | None = None) -> None:
        """End the run here; what is outstanding is given up and booked as it stands, and its events are ignored.

        `error` is why, where it is not the caller who wants it.
        """
        if self.done:
            return
        self._ending.end("failed", self._schedule.where(self._schedule.frontier), reason, error=error)
        for action, phase in self._outbox.all():
            self._ending.call_back(action, phase.flight)
            match phase:
                case Asking():
                    assert phase.flight.request is not None
                    # The prompt was sent, and will be billed.
                    usage = paid_without_reply(phase.flight.request)
                    self._spending.settle(action.id, usage)
                    self._history.book_failure(phase, reason, usage=usage, seconds=self._now - phase.sent_at)
                case Checking() | Committing() if phase.reply is not None:
                    self._history.book_reply(phase.flight, phase.reply, "error", phase.rejections, error=reason)

    def result(self) -> Result:
        """The outcome so far; final when `done`."""
        schedule, history, stop = self._schedule, self._history, self._ending.stop
        # Without a step nothing can be wrong; but an observing run never vouches for anything.
        nothing_to_do = schedule.finished and not schedule.completed and not self._settings.observe
        strength: Strength = "proved" if nothing_to_do else history.strength
        status = _STATUS[strength]
        problem: Problem | None = None
        if stop is not None:
            status, problem = stop.status, stop.problem
        elif not schedule.finished:
            status, problem = "failed", Problem(schedule.where(schedule.frontier), "the run has not ended")
        completed = schedule.finished and problem is None
        return Result(
            status=status,
            answer=schedule.source.answer() if completed else None,
            output=schedule.source.output() if completed else None,
            values=MappingProxyType(schedule.source.variables()),
            steps=history.records,
            attempts=history.attempts,
            usage=self._spending.usage,
            cost=self._spending.cost,
            seconds=self._now - self._started,
            procedure=self.procedure.name,
            run_id=self.run_id,
            completed=schedule.completed,
            total=schedule.source.known,
            strength=strength,
            weak=history.weak,
            assisted=history.assisted,
            profile=self._learning.profile,
            profiled=self._settings.profile is not None,
            notes=(*history.notes(), *(() if self._recall is None else self._recall.notes())),
            ways=schedule.source.ways,
            problem=problem,
            error=None if stop is None else stop.error,
        )
