"""Judging: sends claims to be checked, and turns the verdicts into records and rejections."""

from __future__ import annotations

from dataclasses import replace

from stepguard.checks import Judgement
from stepguard.core.verdicts import Claim, Deviation, Strength, weakest
from stepguard.engine.actions import CheckClaims, Commit, deviation_of
from stepguard.engine.flights import Checking, Committing, Computing, Flight, Rejection, Reply
from stepguard.engine.landing import Landing
from stepguard.engine.outbox import Outbox
from stepguard.engine.recalling import Recall, holds
from stepguard.engine.schedule import Schedule
from stepguard.errors import EvaluationError
from stepguard.language.expressions import format_expression
from stepguard.language.values import Value, show_value, to_exact
from stepguard.procedure.steps import Step
from stepguard.repair.books import Repairs
from stepguard.repair.rewriting import StandIn
from stepguard.results import Occurrence, StepRecord


class ClaimJudge:
    """Begins and ends the phase `Checking`, and ends `Computing`.

    Args:
        recall: what is durable of the run, None where it is not kept.
        observe: whether every claim that can be read is taken as it stands.
    """

    def __init__(
        self,
        schedule: Schedule,
        repairs: Repairs,
        outbox: Outbox,
        landing: Landing,
        recall: Recall | None,
        *,
        observe: bool,
    ) -> None:
        self._schedule = schedule
        self._repairs = repairs
        self._outbox = outbox
        self._landing = landing
        self._recall = recall
        self._observe = observe

    def check(self, checking: Checking, expected: tuple[Step, ...], claims: tuple[Claim, ...]) -> None:
        """Have claims judged, which are about the first of the steps that were asked."""
        flight, steps = checking.flight, expected[: len(claims)]
        if flight.rung.draft:  # the working stands in the draft
            steps = tuple(step.unworked() for step in steps)
        stand_in = flight.stand_in is not None and not checking.restored
        values = self._schedule.read(steps) if not stand_in or flight.request is None else flight.request.values
        # Checks of the user's may block: the engine gives those a deadline when the action is handed out.
        foreign = any(step.checks for step in steps)
        # What does not rest on a step that is not accepted is as right without it. A vote is about a reply as a whole.
        independent = self._repairs.vote is None and not self._observe and not stand_in
        independent = independent and self._schedule.separable(steps)
        action = CheckClaims(
            self._outbox.new_id(), steps, claims, values, foreign, self._observe, independent, stand_in=stand_in
        )
        self._outbox.put(action, checking)

    def performed(self, computing: Computing, value: Value, now: float) -> None:
        """Code found the value of a step."""
        flight = computing.flight
        step = flight.segment.steps[0]
        if step.checks:  # they apply to what code computes as well
            self.check(Checking(flight, None), (step,), (_claim_of(step, step.type.write(value)),))
            return
        record = self._record(flight, 0, value, None, {})
        self._commit(Committing(flight, None, (record,)), (None,), now)

    def checked(self, checking: Checking, judgements: tuple[Judgement, ...], now: float) -> None:
        """Turn judgements into records and rejections, and have the records committed."""
        flight, reply = checking.flight, checking.reply
        if checking.kept:
            self._rechecked(checking, judgements, now)
            return
        if flight.stand_in is not None and not checking.restored:
            assert reply is not None
            self._judge_restored(flight, reply, flight.stand_in, judgements, now)
            return
        rejection, right, deviated = checking.rejection, 0, False
        refused: list[Rejection] = []
        records: dict[str, StepRecord] = {}
        accepted: list[Claim | None] = []
        for place, (where, judgement) in enumerate(zip(flight.segment.occurrences, judgements, strict=False)):
            value = judgement.value
            if value is None and not judgement.verdicts:  # it rests on what was not accepted
                continue
            deviation = self._deviation(flight, where, judgement)
            if deviation is not None and (not self._observe or value is None):
                refused.append(_reject(where, deviation, judgement))
                deviated = True
                continue
            if deviation is not None:
                self._repairs.note(where.index, deviation)
                deviated = True
            # An observing run takes what comes behind a deviation too; the length of segments is learned from what is
            # before it.
            right += not deviated
            assert value is not None
            records[where.step] = self._record(flight, place, value, judgement, records)
            accepted.append(None if flight.request is None else judgement.claim)
        first = refused[0] if refused else rejection
        committing = Committing(flight, reply, tuple(records.values()), first, right, tuple(refused[1:]))
        self._commit(committing, tuple(accepted), now)

    def _rechecked(self, checking: Checking, judgements: tuple[Judgement, ...], now: float) -> None:
        """Durable steps were judged again: those that still pass are completed, the first other one is asked."""
        assert self._recall is not None
        flight = checking.flight
        records: dict[str, StepRecord] = {}
        for place, (where, judgement, kept) in enumerate(
            zip(flight.segment.occurrences, judgements, checking.kept, strict=False)
        ):
            passes = holds(kept, judgement)
            # Dropped either way: what fails is asked, and would otherwise be matched, and fail, again.
            self._recall.drop(where, refused=not passes)
            if not passes:
                break
            record = self._record(flight, place, kept.value, judgement, records, agreed=kept.strength == "agreed")
            assert kept.claim is not None
            records[where.step] = replace(
                record, claim=kept.claim.text, tries=kept.tries, assistance=kept.assistance, deviations=kept.deviations
            )
        self._landing.committed(Committing(flight, None, tuple(records.values())), now)

    def _deviation(self, flight: Flight, where: Occurrence, judgement: Judgement) -> Deviation | None:
        """Why a claim is not accepted, None where it is: by a check, or by enough votes where none decides."""
        if not self._needs_votes(flight, judgement):
            return deviation_of(judgement)
        assert judgement.value is not None
        elected = self._repairs.elects(where.index, show_value(judgement.value))
        return None if elected else Deviation("undecided", where.step, "no check decides: one vote")

    def _needs_votes(self, flight: Flight, judgement: Judgement) -> bool:
        if self._repairs.vote is None or self._observe or judgement.value is None:
            return False
        if flight.request is None or flight.rung.independent:  # code, another model or a person is not outvoted
            return False
        verdict = judgement.verdict
        return verdict is None or (verdict.outcome == "undecided" and verdict.retry)

    def _judge_restored(
        self, flight: Flight, reply: Reply, stand_in: StandIn, judgements: tuple[Judgement, ...], now: float
    ) -> None:
        """What was asked in the place of a step was judged: judge the value that follows for the step itself.

        Where the steps are asked one by one and others are left, the next one is asked.
        """
        deviations = [
            None if self._observe and judgement.value is not None else deviation_of(judgement)
            for judgement in judgements
        ]
        failed = next((deviation for deviation in deviations if deviation is not None), None)
        accepted = {
            judgement.claim.step: judgement.value
            for judgement, deviation in zip(judgements, deviations, strict=True)
            if deviation is None and judgement.value is not None
        }
        values = {**flight.parts, **accepted}
        # What passed is kept, also where another part failed: the next try asks for what is left.
        if failed is not None or stand_in.behind(values):
            advanced = self._repairs.advance(flight.first.index, stand_in, accepted)
            rejected = None if failed is None else reject_stand_in(flight, reply, failed, advanced=advanced)
            self._landing.close(rejected or Committing(flight, reply), now)
            return
        step = flight.segment.steps[0]
        try:
            written = step.type.write(step.type.convert(to_exact(stand_in.restore(values))))
        except EvaluationError as error:
            deviation = Deviation(stand_in.without_value, step.id, str(error))
            self._landing.close(reject_stand_in(flight, reply, deviation), now)
            return
        text = "; ".join(judgement.claim.text for judgement in judgements)
        work = tuple(map(_in_quotes, stand_in.quotations(values))) or judgements[-1].claim.work
        in_words = step.expression is None and step.exact is None
        claim = Claim(step.id, work, written, text) if in_words else _claim_of(step, written, text)
        self.check(Checking(flight, reply, restored=True), (step,), (claim,))

    def _record(
        self,
        flight: Flight,
        place: int,
        value: Value,
        judgement: Judgement | None,
        before: dict[str, StepRecord],
        *,
        agreed: bool = False,
    ) -> StepRecord:
        """The record of an accepted step, by its place in the segment; `before` are those of the steps before it."""
        code, where, step = flight.request is None, flight.segment.occurrences[place], flight.segment.steps[place]
        strength: Strength = "proved"
        if judgement is not None:
            strength = judgement.strength
            if strength == "unverified" and (agreed or self._needs_votes(flight, judgement)):  # and was elected
                strength = "agreed"
            if step.performer == "person" and judgement.verdict is None:  # what the person says is the value
                strength = "proved"
        # What rests on a weak value is as weak, however right it is in itself.
        below = [before[name].support for name in step.reads if name in before]
        control = self._schedule.control(where.index)
        support = weakest((strength, control, self._schedule.support(step.reads), *below))
        return StepRecord(
            occurrence=where,
            value=value,
            strength=strength,
            support="unverified" if self._observe else support,
            verdicts=() if judgement is None else judgement.verdicts,
            claim=None if code or judgement is None else judgement.claim.text,
            tries=self._repairs.refusals(where.index) + (0 if code else 1),
            # Those behind it were asked plainly.
            assistance=flight.rung.assistance if place == 0 else "none",
            deviations=self._repairs.deviations(where.index),
        )

    def _commit(self, committing: Committing, claims: tuple[Claim | None, ...], now: float) -> None:
        if committing.records:
            segment, done = committing.flight.segment, {record.occurrence.index for record in committing.records}
            pairs = zip(segment.indices, segment.steps, strict=True)
            steps = tuple(step for index, step in pairs if index in done)
            values = self._schedule.read(steps)
            self._outbox.put(Commit(self._outbox.new_id(), committing.records, steps, claims, values), committing)
        else:
            self._landing.close(committing, now)


def reject_stand_in(flight: Flight, reply: Reply, failed: Deviation, *, advanced: bool = False) -> Committing:
    """What is wrong with the steps that were asked in the place of one becomes a deviation of that one."""
    where = flight.first
    reply = replace(reply, deviations=tuple(deviation for deviation in reply.deviations if deviation is not failed))
    if failed.step is not None and failed.step != where.step:
        failed = replace(failed, step=where.step, reason=f"{failed.step}: {failed.reason}")
    return Committing(flight, reply, rejection=Rejection(where, failed, advanced=advanced))


def _reject(where: Occurrence, deviation: Deviation, judgement: Judgement) -> Rejection:
    wrong = judgement.claim.value if judgement.value is None else show_value(judgement.value)
    hopeless = judgement.verdict is not None and not judgement.verdict.retry
    return Rejection(where, deviation, wrong=wrong, hopeless=hopeless)


def _in_quotes(passage: str) -> str:
    """A passage in quotation marks that do not stand in it."""
    # Checks of citations read what stands between marks: one inside would end it.
    marks = next((pair for pair in ('""', "\u201c\u201d", "\u00ab\u00bb") if not set(pair) & set(passage)), '""')
    return f"{marks[0]}{passage}{marks[1]}"


def _claim_of(step: Step, value: str, text: str | None = None) -> Claim:
    """A claim about a value that the guard itself wrote down."""
    formula = step.formula if step.exact is None else format_expression(step.exact)
    work = () if formula is None else (formula,)
    return Claim(step.id, work, value, f"{formula} = {value}" if text is None else text)
