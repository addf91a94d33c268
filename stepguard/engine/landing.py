"""What becomes of a flight: a reply is read, its claims are judged, and what was accepted is committed.

The verified prefix of a reply is committed. The step behind it is to blame for the rest, and its repair policy says
how it is asked again, or that it is not.
"""

from __future__ import annotations

from dataclasses import replace

from stepguard.backends.base import Completion, counted, find_flaw
from stepguard.checks import Judgement
from stepguard.core.redaction import error_text, error_words
from stepguard.core.usage import Usage
from stepguard.core.verdicts import Claim, Deviation, Strength
from stepguard.engine.actions import Check, Commit, Wait, deviation_of
from stepguard.engine.flights import Flight
from stepguard.engine.launching import Launcher
from stepguard.engine.state import RunState
from stepguard.engine.step_kinds import kind_of
from stepguard.errors import BackendError, EvaluationError
from stepguard.language.values import Value, show_value, to_exact
from stepguard.procedure.steps import Step
from stepguard.repair.rewriting import StandIn
from stepguard.repair.rungs import FIRST
from stepguard.replies.reading import read_draft, read_reply
from stepguard.results import AttemptOutcome, Occurrence, Status, StepRecord

__all__ = ["Landing"]


class Landing:
    """Takes in what happens to the flights of a run."""

    def __init__(self, state: RunState, launcher: Launcher) -> None:
        self._state = state
        self._launcher = launcher

    def replied(self, id: str, flight: Flight, completion: Completion) -> None:
        """The model answered."""
        flight.usage = counted(completion)
        self._state.spending.settle(id, flight.usage)
        flight.seconds = self._state.now - flight.asked_at
        flaw = find_flaw(completion)
        flight.completion = Completion(None, None) if flaw else completion
        if flaw:
            error = BackendError(f"the backend made a wrong Completion: {flaw}", retryable=False)
            if flight.rung.backend is None:
                self.broken(flight, error)
                return
            self._state.book(flight, "error", flight.usage, error=error_text(error))
            self._state.spending.blame(flight.first.index, flight.usage, flight.seconds)
            flight.blame = flight.first, Deviation("empty", flight.first.step, str(error))
            self._refuse(flight, *flight.blame)
            return
        if flight.drafting:
            self._drafted(flight, completion)
            return
        try:
            reading = flight.reading = read_reply(completion, flight.asked, self._state.settings.reply_format)
        except Exception as error:  # noqa: BLE001 - a reply format is foreign code
            self.broken(flight, error)
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
        self._state.learning.called(flight, fixed=self._state.asker.fixed(flight))
        self._state.spending.blame(flight.first.index, flight.usage, self._state.now - flight.asked_at)
        self._state.book(flight, "draft", flight.usage)
        flight.completion = None
        if self._state.stop is not None:
            self._state.steps.land(flight.segment)
            return
        self._state.asker.after_draft(flight, text)
        self._launcher.ask(flight)

    def _check(self, flight: Flight, claims: tuple[Claim, ...], asked: tuple[Step, ...]) -> None:
        steps = asked[: len(claims)]
        foreign = any(step.checks for step in steps)
        stand_in = flight.stand_in is not None and not flight.restored
        read = flight.parts if stand_in else self._state.steps.read(steps)
        observe = self._state.settings.observe
        action = Check(self._state.outbox.new_id(), steps, claims, read, foreign, observe, stand_in=stand_in)
        self._state.outbox.put(action, flight)

    def checked(self, flight: Flight, judgements: tuple[Judgement, ...]) -> None:
        """The claims were judged."""
        if flight.stand_in is not None and not flight.restored:
            self._stood_in(flight, flight.stand_in, judgements)
            return
        observe = self._state.settings.observe
        for where, judgement in zip(flight.segment.occurrences, judgements, strict=False):
            deviation = deviation_of(judgement)
            if self._is_put_to_the_vote(flight, judgement):
                assert judgement.value is not None
                elected = self._state.repairs.elects(where.index, show_value(judgement.value))
                deviation = None if elected else Deviation("undecided", where.step, "no check decides: one vote")
            if deviation is not None:
                if not observe or judgement.value is None:
                    flight.blame = (where, deviation)
                    flight.hopeless = judgement.verdict is not None and not judgement.verdict.retry
                    flight.wrong = judgement.claim.value if judgement.value is None else show_value(judgement.value)
                    break
                self._state.repairs.note(where.index, deviation)
                flight.deviated = True
            flight.right += not flight.deviated
            assert judgement.value is not None
            flight.records.append(self._record(flight, where, judgement.value, judgement))
        self._commit(flight)

    def _is_put_to_the_vote(self, flight: Flight, judgement: Judgement) -> bool:
        if self._state.repairs.vote is None or self._state.settings.observe or judgement.value is None:
            return False
        if flight.request is None or flight.rung.independent:  # code, another model or a person is not outvoted
            return False
        verdict = judgement.verdict
        return verdict is None or (verdict.outcome == "undecided" and verdict.retry)

    def _stood_in(self, flight: Flight, stand_in: StandIn, judgements: tuple[Judgement, ...]) -> None:
        """What was asked in the place of a step was judged: judge the value that follows for the step itself."""
        failed = next((found for each in judgements if (found := deviation_of(each)) is not None), None)
        if failed is not None:
            passed = [each for each in judgements if deviation_of(each) is None]
            well = {each.claim.step: each.value for each in passed if each.value is not None}
            flight.advanced = self._state.repairs.advance(flight.first.index, stand_in, well)
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

    def performed(self, flight: Flight, value: Value) -> None:
        """Code found the value."""
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
        sound = self._state.steps.sound(reads) and not any(
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
            verified=passed and sound and not self._state.settings.observe,
            strength=strength,
            verdicts=() if judgement is None else judgement.verdicts,
            claim=None if code or judgement is None else judgement.claim.text,
            tries=self._state.repairs.tries(where.index) + (0 if code else 1),
            # Those behind it were asked plainly.
            assistance=flight.rung.assistance if where == flight.first else "none",
            deviations=self._state.repairs.deviations(where.index),
        )

    def _commit(self, flight: Flight) -> None:
        if flight.records:
            self._state.outbox.put(Commit(self._state.outbox.new_id(), tuple(flight.records)), flight)
        else:
            self._close(flight)

    def committed(self, flight: Flight) -> None:
        """The accepted steps are durable."""
        self._state.learning.accepted(flight, self._state.steps.read(flight.segment.steps))
        for record in flight.records:
            self._state.steps.complete(record.occurrence, record.value, verified=record.verified)
            self._state.history.add(record)
            self._state.repairs.settled(record.occurrence.index)
            self._state.spending.settled(record.occurrence.index)
        self._close(flight)

    def _close(self, flight: Flight) -> None:
        """The flight has landed: book it, and where a step was not accepted, decide how it is asked again."""
        self._state.steps.land(flight.segment)
        if flight.request is not None:
            missing = len(flight.segment.steps) - len(flight.records)
            outcome: AttemptOutcome = "accepted"
            if missing:
                outcome = "partly" if flight.records else "rejected"
            self._state.book(flight, outcome, flight.usage)
            self._state.learning.called(flight, fixed=self._state.asker.fixed(flight))
        if flight.blame is None:
            return
        where, deviation = flight.blame
        if flight.request is not None:
            self._state.spending.blame(where.index, flight.usage, self._state.now - flight.asked_at)
        self._refuse(flight, where, deviation)

    def _refuse(self, flight: Flight, where: Occurrence, deviation: Deviation) -> None:
        """A step was not accepted: decide how it is asked again, or that it is not."""
        self._state.steps.land(flight.segment)
        hopeless = flight.hopeless or flight.request is None  # code will find the same again
        step = flight.segment.steps[flight.segment.indices.index(where.index)]
        values = self._state.steps.read((step,))
        kind = kind_of(step, values)
        self._state.learning.refused(flight, where.index, deviation, kind)
        self._state.repairs.failed(
            where.index,
            step,
            values,
            deviation,
            rung=flight.rung if where == flight.first else FIRST,
            alone=len(flight.segment.steps) == 1,
            unread=_unread(flight),
            wrong=flight.wrong,
            advanced=flight.advanced,
            hopeless=hopeless,
            useless=self._state.learning.useless(kind, deviation),
        )
        if deviation.kind == "truncated" and flight.request is not None:
            self._state.asker.cut_off(flight)
            self._state.learning.cut_off(flight)
        if self._state.stop is None:
            self._repair(where, deviation)

    def _repair(self, where: Occurrence, deviation: Deviation) -> None:
        try:
            again = self._state.repairs.decide(where.index)
        except Exception as error:  # noqa: BLE001 - a policy is foreign code
            self._state.end("failed", where, f"the repair policy failed: {error_text(error)}", deviation, error=error)
            return
        if not again:
            self._state.learning.given_up()
            self._state.end("abstained", where, f"{deviation.kind}: {deviation.reason}", deviation)

    def broken(self, flight: Flight, error: Exception) -> None:
        """Code, a check, the reply format or the ledger failed: nothing that asking again would mend."""
        self._state.steps.land(flight.segment)
        if flight.completion is not None:
            flight.records.clear()
            self._state.book(flight, "error", flight.usage, error=error_text(error))
        reason = f"the step has no exact value: {error}" if isinstance(error, EvaluationError) else error_text(error)
        self._state.end("failed", flight.first, reason, error=error)

    def unanswered(self, id: str, flight: Flight, error: Exception) -> None:
        """There is no reply: try the same request later, or end."""
        self._state.spending.settle(id, Usage(calls=1))
        flight.seconds = self._state.now - flight.asked_at
        self._state.spending.blame(flight.first.index, Usage(calls=1), flight.seconds)
        self._state.book(flight, "error", Usage(calls=1), error=error_text(error))
        retry, remaining = self._state.settings.retry, self._state.spending.remaining(self._state.now)
        seconds = retry.wait(flight.sent, error, self._state.chance)
        stop: tuple[Status, str] | None = None
        if not (isinstance(error, BackendError) and error.retryable) or flight.rung.once:
            stop = "failed", error_text(error)
        elif late := self._state.spending.late(self._state.now):
            stop = "exhausted", self._state.limit_reason(late)
        elif flight.sent > retry.retries:
            stop = "failed", error_text(error)
        elif reason := self._state.spent(flight):
            stop = "exhausted", reason
        elif seconds > retry.longest_wait:
            stop = "failed", f"{error_text(error)}; the next try would be in {seconds:.0f} s"
        elif remaining is not None and seconds >= remaining:
            stop = "exhausted", f"{self._state.limit_reason('seconds')} before the next try; {error_text(error)}"
        if self._state.stop is not None or stop is not None:
            if stop is not None and stop[0] == "failed" and flight.rung.backend is not None:
                # Somebody else does not answer: that ends the rung, not the run.
                flight.blame = flight.first, Deviation("empty", flight.first.step, stop[1])
                self._refuse(flight, *flight.blame)
                return
            self._state.steps.land(flight.segment)
            if stop is not None:
                self._state.end(stop[0], flight.first, stop[1], error=error)
            return
        wait = Wait(self._state.outbox.new_id(), seconds, error_words(error))
        flight.waits_since = self._state.now
        self._state.reserve(wait, flight)
        self._state.outbox.put(wait, flight)


def _unread(flight: Flight) -> tuple[object, ...] | None:
    """All that a reply says in which no claim could be read, so that the same is known again; None for any other."""
    completion = flight.completion
    if completion is None or (flight.reading is not None and flight.reading.claims):
        return None
    return completion.text or "", completion.refusal or "", *completion.tool_calls
