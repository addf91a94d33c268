"""Landing: enters the accepted steps, books the call, and decides whether and how a rejected step is asked again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from stepguard.core.redaction import error_text
from stepguard.core.verdicts import Deviation
from stepguard.engine.asking import Asker
from stepguard.engine.budget import Spending
from stepguard.engine.ending import RunEnding
from stepguard.engine.flights import Committing, Flight, Rejection, Reply
from stepguard.engine.history import History
from stepguard.engine.learning import Learning
from stepguard.engine.schedule import Schedule
from stepguard.engine.step_kinds import step_kind
from stepguard.errors import EvaluationError
from stepguard.language.values import Value
from stepguard.procedure.steps import Step
from stepguard.repair.books import Repairs
from stepguard.repair.rungs import FIRST
from stepguard.replies.partial import is_runaway
from stepguard.replies.thinking import without_thinking
from stepguard.results import AttemptOutcome, Occurrence

_PASSED_OVER: Final = 2
"""How often a step that was refused behind another is asked as if for the first time before it climbs its ladder."""


class Landing:
    """Ends flights: the phase `Committing`, and every other that nothing comes behind."""

    def __init__(
        self,
        schedule: Schedule,
        repairs: Repairs,
        spending: Spending,
        history: History,
        learning: Learning,
        asker: Asker,
        ending: RunEnding,
    ) -> None:
        self._schedule = schedule
        self._repairs = repairs
        self._spending = spending
        self._history = history
        self._learning = learning
        self._asker = asker
        self._ending = ending

    def committed(self, committing: Committing, now: float) -> None:
        """The accepted steps are durable: they are entered, and the flight is over."""
        flight, records = committing.flight, committing.records
        # First: `settled` below forgets how often a step had failed, and what is learned depends on it.
        self._learning.accepted(flight, records, self._schedule.read(flight.segment.steps))
        for record in records:
            index = record.occurrence.index
            self._schedule.complete(record.occurrence, record.value, record.support)
            self._history.add(record)
            self._repairs.settled(index)
            self._spending.settled(index)
        self.close(committing, now)

    def close(self, committing: Committing, now: float) -> None:
        """The flight is over: book its call, and where a step was not accepted, decide how it is asked again."""
        flight, reply, rejection = committing.flight, committing.reply, committing.rejection
        self._schedule.land(flight.segment)
        if reply is not None:
            outcome: AttemptOutcome = "accepted"
            if len(committing.records) < len(flight.segment.steps):
                outcome = "partly" if committing.records or rejection is None else "rejected"
            self._history.book_reply(flight, reply, outcome, committing.rejections, committed=len(committing.records))
            self._learning.called(flight, reply, fixed=self._asker.fixed(flight), right=committing.right)
        if reply is not None and (rejection is not None or not committing.records):
            blamed = flight.first if rejection is None else rejection.where
            self._spending.blame(blamed.index, reply.usage, now - reply.sent_at)
        if rejection is None:
            return
        self.refuse(flight, reply, rejection)
        for other in committing.others:
            self._refuse_behind(flight, reply, other)

    def declined(self, flight: Flight, reply: Reply, deviation: Deviation) -> None:
        """The model declines, and another one is asked the same."""
        where = flight.first
        self._history.book_reply(flight, reply, "rejected", (Rejection(where, deviation),))
        self._spending.blame(where.index, reply.usage, reply.seconds)
        self._repairs.pass_over(where.index, deviation)

    def _refuse_behind(self, flight: Flight, reply: Reply | None, rejection: Rejection) -> None:
        """Refuse a step behind the first refused one; the first two times it is then asked as if for the first time.

        Not where it has few values: that would be one more guess.
        """
        where, segment = rejection.where, flight.segment
        step = segment.steps[segment.indices.index(where.index)]
        if step.type.choices is not None or self._repairs.passed_over(where.index) >= _PASSED_OVER:
            self.refuse(flight, reply, rejection)
            return
        self._learning.refused(flight, rejection, step_kind(step, self._schedule.read((step,))))
        self._repairs.pass_over(where.index, rejection.deviation)

    def refuse(self, flight: Flight, reply: Reply | None, rejection: Rejection) -> None:
        """A step was not accepted: decide how it is asked again, or that it is not."""
        where, deviation, segment = rejection.where, rejection.deviation, flight.segment
        self._schedule.land(segment)
        step = segment.steps[segment.indices.index(where.index)]
        values = self._schedule.read((step,))
        kind = step_kind(step, values)
        self._learning.refused(flight, rejection, kind)
        self._repairs.failed(
            where.index,
            step,
            values,
            deviation,
            # Only the first step of a flight was asked in the way of its rung; those behind it were asked plainly.
            rung=(self._repairs.rung(where.index) or flight.rung) if where == flight.first else FIRST,
            alone=len(segment.steps) == 1,
            unread=_unread(reply),
            runaway=reply is not None and (reply.runaway or _is_overlong(rejection, step, values)),
            wrong=rejection.wrong,
            advanced=rejection.advanced,
            # Code will find the same again, and a person is not asked until the answer fits.
            hopeless=rejection.hopeless or flight.request is None or step.performer == "person",
            useless=self._learning.useless(kind, deviation),
        )
        # Not after a runaway: a higher cap buys a model that writes on and on only more of that.
        cut = deviation.kind == "truncated" and flight.request is not None
        if cut and not self._repairs.has_run_away(where.index):
            self._asker.cut_off(flight)
            self._learning.cut_off(flight)
        if self._ending.stop is None:
            self._repair(where, deviation)

    def recalled(self, where: Occurrence, step: Step, rungs: Sequence[str]) -> None:
        """Claims for a step of few values were wrong in earlier processes: they count as those of this one.

        Args:
            rungs: the name of the rung of each of them.
        """
        # Otherwise every restart would allow one more guess at a value of which there are few.
        deviation = Deviation("wrong_value", step.id, "refused in an earlier process")
        values = self._schedule.read((step,))
        for number, rung in enumerate(self._repairs.named(rungs)):
            self._repairs.failed(
                where.index,
                step,
                values,
                deviation,
                rung=rung,
                alone=False,
                unread=None,
                runaway=False,
                wrong=f"#{number}",  # which value it was is not kept
                advanced=False,
                hopeless=False,
                useless=frozenset(),
            )
        self._repair(where, deviation)

    def _repair(self, where: Occurrence, deviation: Deviation) -> None:
        try:
            goes_on = self._repairs.decide(where.index)
            why = None if goes_on else self._repairs.explain(where.index)
        except Exception as error:  # noqa: BLE001 - a policy is foreign code
            self._ending.end("failed", where, f"the repair policy failed: {error_text(error)}", deviation, error=error)
            return
        if not goes_on:
            self._learning.abandoned()
            reason = f"{deviation.kind}: {deviation.reason}" + (f"; {why}" if why else "")
            self._ending.end("abstained", where, reason, deviation)

    def broken(
        self, flight: Flight, error: Exception, reply: Reply | None = None, rejections: Iterable[Rejection] = ()
    ) -> None:
        """Code, a check, the reply format or the ledger failed: nothing that asking again would mend."""
        self._schedule.land(flight.segment)
        if reply is not None:
            self._history.book_reply(flight, reply, "error", rejections, error=error_text(error))
        reason = f"the step has no exact value: {error}" if isinstance(error, EvaluationError) else error_text(error)
        self._ending.end("failed", flight.first, reason, error=error)


def _is_overlong(rejection: Rejection, step: Step, values: Mapping[str, Value]) -> bool:
    """Whether a value that cannot be read is many times longer than any of its step: it was rambled to its end."""
    return rejection.deviation.kind == "malformed" and is_runaway(rejection.wrong or "", step, values)


def _unread(reply: Reply | None) -> str | None:
    """All that a reply says, but for thinking, in which no claim could be read, so that the same is known again; None
    for any other."""
    if reply is None or reply.readable:
        return None
    completion = reply.completion
    spoken = without_thinking(completion.text or "")
    calls = (part for call in completion.tool_calls for part in (call.name, call.arguments))
    return "\0".join((spoken if isinstance(spoken, str) else spoken.mark, completion.refusal or "", *calls))
