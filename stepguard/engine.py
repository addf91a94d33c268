"""The machine in the middle: what to do next, given everything that has happened.

The engine performs nothing. It emits actions with ids and accepts events (see `stepguard.actions`), so that the sync
driver, the async driver, a loop of the caller's and the tests all drive the same code. It never calls a model,
sleeps, reads a clock, logs or writes.

The way of one segment, called a flight: ask -> (wait -> ask)* -> check -> commit. The verified prefix of a reply is
committed; a step that was not accepted leads the next segment, asked in the way its repair policy names. With
`parallel` flights, steps that read nothing unverified may be asked at the same time. `stepguard.schedule` knows which
steps those are, `stepguard.flights` what is on its way, `stepguard.budget` what may still be spent, and
`stepguard.history` keeps the books.

A run ends at the first step that cannot be had. What has been sent by then is still taken in, so that no usage and no
verified value is lost; what has not been sent is not.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, assert_never

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
    deviation_of,
)
from stepguard.asking import Asker, most_of
from stepguard.backends.base import Completion, counted, find_flaw
from stepguard.budget import Budget, Limit, Spending
from stepguard.checks import Judgement
from stepguard.checks.arithmetic import check_defined
from stepguard.errors import BackendError, EvaluationError, ProcedureError
from stepguard.flights import Flight, Outbox
from stepguard.history import History
from stepguard.learning import Learning
from stepguard.procedure import Procedure, Step
from stepguard.profile import Profile
from stepguard.repair import Repair, Repairs
from stepguard.replies import read_draft, read_reply
from stepguard.reply_formats import ReplyFormat
from stepguard.results import AttemptOutcome, Occurrence, Problem, Result, Status, StepRecord
from stepguard.rewriting import StandIn
from stepguard.rungs import FIRST, Rung
from stepguard.schedule import Broken, Schedule
from stepguard.segments import Segments
from stepguard.situations import kind_of
from stepguard.transport import Transport
from stepguard.usage import Usage
from stepguard.values import Value, show_value, to_exact
from stepguard.verdicts import Claim, Deviation, Strength

__all__ = ["Engine", "Settings"]

_CODE: Final = Rung("code", assistance="code")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that shapes a run; `Guard` makes it from its arguments."""

    segments: Segments
    repair: Repair
    budget: Budget
    transport: Transport
    reply_format: ReplyFormat
    parallel: int
    check_timeout: float | None
    stop_early: bool
    observe: bool
    history: int | None
    seed: int
    profile: Profile | None


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
        self._settings = settings
        self._steps = Schedule(procedure, inputs, parallel=settings.parallel)
        self._spending = Spending(settings.budget, started=now)
        self._repairs = Repairs(settings.repair)
        self._history = History(settings.history)
        self._started = self._now = now
        self._random = random.Random(settings.seed)
        stop_early = settings.stop_early and not settings.observe
        self._asker = Asker(procedure, settings.reply_format, self._random, stop_early=stop_early)
        self._learning = Learning(settings.segments, settings.profile, self._repairs)
        self._outbox = Outbox(run_id)
        self._stop: tuple[Status, Problem, Exception | None] | None = None
        self._fill()

    @property
    def done(self) -> bool:
        """Whether the run has ended: `result` may be called, and no event is expected."""
        return not self._outbox and (self._stop is not None or self._steps.finished)

    @property
    def values(self) -> Mapping[str, Value]:
        """A copy of the verified state."""
        return MappingProxyType(dict(self._steps.values))

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
        while (taken := self._outbox.take()) is not None:
            action, flight = taken
            remaining = self._spending.remaining(self._now)
            if isinstance(action, Check) and action.foreign:
                return replace(action, timeout=self._settings.check_timeout, remaining=remaining)
            if not isinstance(action, Ask):
                return action
            if remaining is not None and remaining <= 0:  # spent while other actions were performed
                self._take_back(action, flight)
                self._fill()
                continue
            flight.sent += 1
            flight.asked_at = self._now
            bounds = (
                self._settings.transport.timeout if action.backend is None else flight.rung.timeout,
                remaining,
                self._spending.step_seconds(flight.segment.indices),
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
            self._now = max(self._now, event.now)
            return
        answered = self._outbox.answered(event)
        if answered is None:
            return
        action, flight = answered
        match event:
            case Replied(id, completion):
                self._replied(id, flight, completion)
            case Failed(id, error):
                if isinstance(action, Ask):
                    self._unanswered(id, flight, error)
                else:
                    self._broken(flight, error)
            case Checked(_, judgements):
                self._checked(flight, judgements)
            case Performed(_, value):
                self._performed(flight, value)
            case Woke(id):
                self._spending.release(id)
                self._spending.blame(flight.first.index, Usage(), self._now - flight.waits_since)
                self._ask(flight)
            case Committed():
                self._committed(flight)
            case _:
                assert_never(event)
        self._fill()

    def cancel(self, reason: str = "cancelled") -> None:
        """End the run here. What is outstanding is given up and booked as it stands; its events are ignored."""
        if self.done:
            return
        self._end("failed", self._where(self._steps.frontier), reason)
        for action, flight in self._outbox.all():
            self._take_back(action, flight)
            if isinstance(action, Ask):
                flight.seconds = self._now - flight.asked_at
                self._spending.settle(action.id, Usage(calls=1))
                self._book(flight, "error", Usage(calls=1), error=reason)
            elif flight.completion is not None:
                self._book(flight, "error", flight.usage, error=reason)

    # What to start

    def _fill(self) -> None:
        """Start flights until no more can be started."""
        while self._stop is None and len(self._outbox) < self._settings.parallel and self._start_flight():
            pass

    def _start_flight(self) -> bool:
        size = self._learning.size(len(self.procedure) - self._steps.completed)
        found = self._steps.next_segment(size, self._repairs.again)
        if found is None or isinstance(found, Broken):
            if not self._outbox and not self._steps.finished:
                self._end_unstartable(found)
            return False
        rung = self._repairs.again.get(found.indices[0], FIRST)
        code = found.steps[0].performer == "code" or rung.assistance == "code"
        if not code and (limit := self._spending.step_exceeded(found.indices[0])):
            self._end("exhausted", found.occurrences[0], self._limit_reason(limit, per_step=True))
            return False
        limit = self._spending.late(self._now) if code else self._spending.exceeded(self._now)
        if limit is not None:
            # What is on its way may still be accepted, and may cost less than was set aside for it.
            if not self._outbox:
                self._end("exhausted", found.occurrences[0], self._limit_reason(limit))
            return False
        undefined = None if code or self._settings.observe else check_defined(found.steps[0], self._steps.values)
        if undefined is not None:  # no reply could be accepted
            if not self._outbox:
                deviation = Deviation("undecided", found.steps[0].id, undefined.reason)
                self._end("abstained", found.occurrences[0], f"undecided: {undefined.reason}", deviation)
            return False
        self._steps.start(found)
        if code:
            action = Act(self._outbox.new_id(), found.steps[0], self._steps.read(found.steps))
            self._outbox.put(action, Flight(found, _CODE, None))
        else:
            attempt = self._repairs.tries(found.indices[0]) + 1
            values = self._steps.read(found.steps)
            self._ask(self._asker.flight(found, rung, values, attempt=attempt), first=True)
        return True

    def _end_unstartable(self, broken: Broken | None) -> None:
        if broken is not None:
            where = Occurrence(broken.index, broken.error.step or f"#{broken.index + 1}")
            self._end("failed", where, str(broken.error), error=broken.error)
        else:  # only where a lazy procedure does not give the same step twice
            self._end("failed", self._where(self._steps.frontier), "it reads a value that is not there")

    def _ask(self, flight: Flight, *, first: bool = False) -> None:
        assert flight.request is not None
        if not first and (reason := self._spent(flight)):
            self._steps.land(flight.segment)
            self._end("exhausted", flight.first, reason)
            return
        action = Ask(self._outbox.new_id(), flight.request, flight.rung.backend)
        self._spending.reserve(action.id, most_of(flight.request))
        self._outbox.put(action, flight)

    # What has happened

    def _replied(self, id: str, flight: Flight, completion: Completion) -> None:
        flight.usage = counted(completion)
        self._spending.settle(id, flight.usage)
        flight.seconds = self._now - flight.asked_at
        flaw = find_flaw(completion)
        flight.completion = Completion(None, None) if flaw else completion
        if flaw:
            error = BackendError(f"the backend made a wrong Completion: {flaw}", retryable=False)
            if flight.rung.backend is None:
                self._broken(flight, error)
                return
            self._book(flight, "error", flight.usage, error=_told(error))
            flight.blame = flight.first, Deviation("empty", flight.first.step, str(error))
            self._refuse(flight, *flight.blame)
            return
        if flight.drafting:
            self._drafted(flight, completion)
            return
        try:
            reading = flight.reading = read_reply(completion, flight.asked, self._settings.reply_format)
        except Exception as error:  # noqa: BLE001 - a reply format is foreign code
            self._broken(flight, error)
            return
        if reading.failed is not None and flight.stand_in is not None:
            self._blame_stand_in(flight, reading.failed)
            return
        if reading.failed is not None:
            flight.blame = (flight.segment.occurrences[len(reading.claims)], reading.failed)
        if reading.claims:
            self._check(flight, reading.claims, flight.asked)
        else:
            self._close(flight)

    def _drafted(self, flight: Flight, completion: Completion) -> None:
        """Working in free text has come: ask for the reply that is made from it."""
        text = read_draft(completion)
        if isinstance(text, Deviation):
            flight.blame = flight.first, replace(text, step=flight.first.step)
            self._close(flight)
            return
        self._learning.called(flight, fixed=self._asker.fixed(flight))
        self._spending.blame(flight.first.index, flight.usage, self._now - flight.asked_at)
        self._book(flight, "draft", flight.usage)
        flight.completion = None
        if self._stop is not None:
            self._steps.land(flight.segment)
            return
        self._asker.after_draft(flight, text)
        self._ask(flight)

    def _check(self, flight: Flight, claims: tuple[Claim, ...], asked: tuple[Step, ...]) -> None:
        steps = asked[: len(claims)]
        foreign = any(step.checks for step in steps)
        stand_in = flight.stand_in is not None and not flight.restored
        read = MappingProxyType({}) if stand_in else self._steps.read(steps)
        observe = self._settings.observe
        action = Check(self._outbox.new_id(), steps, claims, read, foreign, observe, stand_in=stand_in)
        self._outbox.put(action, flight)

    def _checked(self, flight: Flight, judgements: tuple[Judgement, ...]) -> None:
        if flight.stand_in is not None and not flight.restored:
            self._stood_in(flight, flight.stand_in, judgements)
            return
        observe = self._settings.observe
        for where, judgement in zip(flight.segment.occurrences, judgements, strict=False):
            deviation = deviation_of(judgement)
            if self._is_put_to_the_vote(flight, judgement):
                assert judgement.value is not None
                elected = self._repairs.elects(where.index, show_value(judgement.value))
                deviation = None if elected else Deviation("undecided", where.step, "no check decides: one vote")
            if deviation is not None:
                if not observe or judgement.value is None:
                    flight.blame = (where, deviation)
                    flight.hopeless = judgement.verdict is not None and not judgement.verdict.retry
                    flight.wrong = judgement.claim.value if judgement.value is None else show_value(judgement.value)
                    break
                self._repairs.note(where.index, deviation)
                flight.deviated = True
            flight.right += not flight.deviated
            assert judgement.value is not None
            flight.records.append(self._record(flight, where, judgement.value, judgement))
        self._commit(flight)

    def _is_put_to_the_vote(self, flight: Flight, judgement: Judgement) -> bool:
        if self._repairs.vote is None or self._settings.observe or judgement.value is None:
            return False
        if flight.request is None or flight.rung.independent:  # code, another model or a person is not outvoted
            return False
        verdict = judgement.verdict
        return verdict is None or (verdict.outcome == "undecided" and verdict.retry)

    def _stood_in(self, flight: Flight, stand_in: StandIn, judgements: tuple[Judgement, ...]) -> None:
        """What was asked in the place of a step was judged: judge the value that follows for the step itself."""
        failed = next((found for each in judgements if (found := deviation_of(each)) is not None), None)
        if failed is not None:
            self._blame_stand_in(flight, failed)
            return
        step, value = flight.segment.steps[0], judgements[-1].value
        assert value is not None
        assert step.formula is not None
        try:
            shown = step.type.write(step.type.convert(to_exact(stand_in.restore(value))))
        except EvaluationError as error:
            self._blame_stand_in(flight, Deviation("wrong_value", step.id, str(error)))
            return
        flight.restored = True
        text = "; ".join(each.claim.text for each in judgements)
        self._check(flight, (Claim(step.id, (step.formula,), shown, text),), flight.segment.steps)

    def _blame_stand_in(self, flight: Flight, failed: Deviation) -> None:
        where = flight.first
        if flight.reading is not None:  # it is told below, as one of the step that was stood for
            others = tuple(each for each in flight.reading.deviations if each is not failed)
            flight.reading = replace(flight.reading, deviations=others)
        if failed.step is not None and failed.step != where.step:
            failed = replace(failed, step=where.step, reason=f"{failed.step}: {failed.reason}")
        flight.blame = (where, failed)
        self._close(flight)

    def _performed(self, flight: Flight, value: Value) -> None:
        step = flight.segment.steps[0]
        if step.checks:  # they apply to what code computes as well
            assert step.formula is not None
            shown = step.type.write(value)
            claim = Claim(step.id, (step.formula,), shown, f"{step.formula} = {shown}")
            self._check(flight, (claim,), flight.segment.steps)
            return
        flight.records.append(self._record(flight, flight.first, value, None))
        self._commit(flight)

    def _record(self, flight: Flight, where: Occurrence, value: Value, judgement: Judgement | None) -> StepRecord:
        code = flight.request is None
        # What rests on an unverified value is not verified, however right it is in itself.
        reads = flight.segment.steps[len(flight.records)].reads
        sound = self._steps.sound(reads) and not any(
            not r.verified and r.occurrence.step in reads for r in flight.records
        )
        strength: Strength = "proved"
        if judgement is not None:
            strength = judgement.strength
            if strength == "unverified" and self._is_put_to_the_vote(flight, judgement):  # and was elected
                strength = "agreed"
        passed = strength not in ("unverified", "agreed")
        return StepRecord(
            occurrence=where,
            value=value,
            verified=passed and sound and not self._settings.observe,
            strength=strength,
            verdicts=() if judgement is None else judgement.verdicts,
            claim=None if code or judgement is None else judgement.claim.text,
            tries=self._repairs.tries(where.index) + (0 if code else 1),
            # Those behind it were asked plainly.
            assistance=flight.rung.assistance if where == flight.first else "none",
            deviations=self._repairs.deviations(where.index),
        )

    def _commit(self, flight: Flight) -> None:
        if flight.records:
            self._outbox.put(Commit(self._outbox.new_id(), tuple(flight.records)), flight)
        else:
            self._close(flight)

    def _committed(self, flight: Flight) -> None:
        self._learning.accepted(flight, self._steps.read(flight.segment.steps))
        for record in flight.records:
            self._steps.complete(record.occurrence, record.value, verified=record.verified)
            self._history.add(record)
            self._repairs.settled(record.occurrence.index)
            self._spending.settled(record.occurrence.index)
        self._close(flight)

    def _close(self, flight: Flight) -> None:
        """The flight has landed: book it, and where a step was not accepted, decide how it is asked again."""
        self._steps.land(flight.segment)
        if flight.request is not None:
            missing = len(flight.segment.steps) - len(flight.records)
            outcome: AttemptOutcome = "accepted"
            if missing:
                outcome = "partly" if flight.records else "rejected"
            self._book(flight, outcome, flight.usage)
            self._learning.called(flight, fixed=self._asker.fixed(flight))
        if flight.blame is None:
            return
        where, deviation = flight.blame
        if flight.request is not None:
            self._spending.blame(where.index, flight.usage, self._now - flight.asked_at)
        self._refuse(flight, where, deviation)

    def _refuse(self, flight: Flight, where: Occurrence, deviation: Deviation) -> None:
        """A step was not accepted: decide how it is asked again, or that it is not."""
        self._steps.land(flight.segment)
        hopeless = flight.hopeless or flight.request is None  # code will find the same again
        step = flight.segment.steps[flight.segment.indices.index(where.index)]
        values = self._steps.read((step,))
        kind = kind_of(step, values)
        self._learning.refused(flight, where.index, deviation, kind)
        self._repairs.failed(
            where.index,
            step,
            values,
            deviation,
            rung=flight.rung if where == flight.first else FIRST,
            alone=len(flight.segment.steps) == 1,
            wrong=flight.wrong,
            hopeless=hopeless,
            useless=self._learning.useless(kind, deviation),
        )
        if deviation.kind == "truncated" and flight.request is not None:
            self._asker.cut_off(flight)
            self._learning.cut_off(flight)
        if self._stop is None:
            self._repair(where, deviation)

    def _repair(self, where: Occurrence, deviation: Deviation) -> None:
        try:
            again = self._repairs.decide(where.index)
        except Exception as error:  # noqa: BLE001 - a policy is foreign code
            self._end("failed", where, f"the repair policy failed: {_told(error)}", deviation, error=error)
            return
        if not again:
            self._learning.given_up()
            self._end("abstained", where, f"{deviation.kind}: {deviation.reason}", deviation)

    def _broken(self, flight: Flight, error: Exception) -> None:
        """Code, a check, the reply format or the ledger failed: nothing that asking again would mend."""
        self._steps.land(flight.segment)
        if flight.completion is not None:
            flight.records.clear()
            self._book(flight, "error", flight.usage, error=_told(error))
        reason = f"the step has no exact value: {error}" if isinstance(error, EvaluationError) else _told(error)
        self._end("failed", flight.first, reason, error=error)

    def _unanswered(self, id: str, flight: Flight, error: Exception) -> None:
        """There is no reply: try the same request later, or end."""
        self._spending.settle(id, Usage(calls=1))
        flight.seconds = self._now - flight.asked_at
        self._spending.blame(flight.first.index, Usage(calls=1), flight.seconds)
        self._book(flight, "error", Usage(calls=1), error=_told(error))
        transport, remaining = self._settings.transport, self._spending.remaining(self._now)
        seconds = transport.wait(flight.sent, error, self._random)
        stop: tuple[Status, str] | None = None
        if not (isinstance(error, BackendError) and error.retryable) or flight.rung.once:
            stop = "failed", _told(error)
        elif late := self._spending.late(self._now):
            stop = "exhausted", self._limit_reason(late)
        elif flight.sent > transport.retries:
            stop = "failed", _told(error)
        elif reason := self._spent(flight):
            stop = "exhausted", reason
        elif seconds > transport.longest_wait:
            stop = "failed", f"{_told(error)}; the next try would be in {seconds:.0f} s"
        elif remaining is not None and seconds >= remaining:
            stop = "exhausted", f"{self._limit_reason('seconds')} before the next try; {_told(error)}"
        if self._stop is not None or stop is not None:
            if stop is not None and stop[0] == "failed" and flight.rung.backend is not None:
                # Somebody else does not answer: that ends the rung, not the run.
                flight.blame = flight.first, Deviation("empty", flight.first.step, stop[1])
                self._refuse(flight, *flight.blame)
                return
            self._steps.land(flight.segment)
            if stop is not None:
                self._end(stop[0], flight.first, stop[1], error=error)
            return
        assert flight.request is not None
        wait = Wait(self._outbox.new_id(), seconds, str(error))
        flight.waits_since = self._now
        self._spending.reserve(wait.id, most_of(flight.request))
        self._outbox.put(wait, flight)

    # Bookkeeping

    def _take_back(self, action: Action, flight: Flight) -> None:
        """Expect nothing of an action any more."""
        self._outbox.drop(action)
        self._spending.release(action.id)
        self._steps.land(flight.segment)

    def _book(
        self,
        flight: Flight,
        outcome: AttemptOutcome,
        usage: Usage,
        *,
        error: str | None = None,
    ) -> None:
        deviations = flight.reading.deviations if flight.reading is not None else ()
        if flight.blame is not None and flight.blame[1] not in deviations:
            deviations = (*deviations, flight.blame[1])
        self._history.book(
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

    def _spent(self, flight: Flight) -> str | None:
        """Why a flight may not ask again, None where it may."""
        if limit := self._spending.exceeded(self._now):
            return self._limit_reason(limit)
        limit = self._spending.step_exceeded(flight.first.index)
        return None if limit is None else self._limit_reason(limit, per_step=True)

    def _limit_reason(self, limit: Limit, *, per_step: bool = False) -> str:
        budget = self._settings.budget
        if per_step:
            return f"the budget of {getattr(budget.per_step, limit)} {limit} for one step is spent"
        return f"the budget of {getattr(budget, limit)} {limit} is spent"

    def _where(self, index: int) -> Occurrence:
        try:
            return Occurrence(index, self.procedure.steps[index].id)
        except ProcedureError as broken:
            return Occurrence(index, broken.step or f"#{index + 1}")

    def _end(
        self,
        status: Status,
        where: Occurrence,
        reason: str,
        deviation: Deviation | None = None,
        *,
        error: Exception | None = None,
    ) -> None:
        """Start nothing more; the first reason stays."""
        if self._stop is not None:
            return
        self._stop = (status, Problem(where, reason, deviation), error)
        for action, flight in self._outbox.all():
            if isinstance(action, Wait) or (isinstance(action, Ask | Act) and self._outbox.waits(action)):
                self._take_back(action, flight)

    def result(self) -> Result:
        """The outcome so far; final when `done`."""
        problem: Problem | None = None
        error: Exception | None = None
        unverified = self._history.unverified
        if self._stop is not None:
            status, problem, error = self._stop
        elif not self._steps.finished:
            status, problem = "failed", Problem(self._where(self._steps.frontier), "the run has not ended")
        else:
            status = "unverified" if unverified or self._settings.observe else "verified"
        completed = self._steps.finished and problem is None
        return Result(
            status=status,
            answer=self._steps.values[self.procedure.answer] if completed else None,
            values=self.values,
            steps=self._history.records,
            attempts=self._history.attempts,
            usage=self._spending.usage,
            cost=self._spending.cost,
            seconds=self._now - self._started,
            procedure=self.procedure.name,
            run_id=self.run_id,
            completed=self._steps.completed,
            total=len(self.procedure),
            strength=self._history.strength,
            unverified=unverified,
            assisted=self._history.assisted,
            profile=self._learning.profile,
            profiled=self._settings.profile is not None,
            notes=self._history.notes(),
            problem=problem,
            error=error,
        )


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
