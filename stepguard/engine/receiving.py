"""Receiving: a reply has come; its claims are read, and go to be checked."""

from __future__ import annotations

from dataclasses import replace

from stepguard.backends.base import Completion, counted, find_flaw
from stepguard.core.redaction import error_text
from stepguard.core.verdicts import Deviation
from stepguard.engine.asking import Asker
from stepguard.engine.budget import Spending
from stepguard.engine.ending import RunEnding
from stepguard.engine.flights import Asking, Checking, Committing, Flight, Rejection, Reply
from stepguard.engine.history import History
from stepguard.engine.judging import ClaimJudge, reject_stand_in
from stepguard.engine.landing import Landing
from stepguard.engine.launching import Launcher
from stepguard.engine.learning import Learning
from stepguard.engine.schedule import Schedule
from stepguard.errors import BackendError
from stepguard.replies.formats import ReplyFormat
from stepguard.replies.reading import read_draft, read_reply

_NO_COMPLETION = Completion(None, None)


class Receiver:
    """Ends the phase `Asking` with a reply.

    Args:
        words: the words of the procedure that are understood around a reply, beside those of the steps asked.
    """

    def __init__(
        self,
        reply_format: ReplyFormat,
        schedule: Schedule,
        spending: Spending,
        history: History,
        learning: Learning,
        asker: Asker,
        launcher: Launcher,
        judge: ClaimJudge,
        landing: Landing,
        ending: RunEnding,
        *,
        words: tuple[str, ...],
    ) -> None:
        self._reply_format = reply_format
        self._words = words
        self._schedule = schedule
        self._spending = spending
        self._history = history
        self._learning = learning
        self._asker = asker
        self._launcher = launcher
        self._judge = judge
        self._landing = landing
        self._ending = ending

    def replied(self, id: str, asking: Asking, completion: Completion, now: float) -> None:
        """The model answered `Ask` `id`."""
        flight, flaw = asking.flight, find_flaw(completion)
        usage = counted(completion)
        self._spending.settle(id, usage)
        came = _NO_COMPLETION if flaw else completion
        reply = Reply(came, usage, asking.sent_at, now - asking.sent_at, backend=asking.backend)
        if flaw:
            error = BackendError(f"the backend made a wrong Completion: {flaw}", retryable=False)
            self._unusable(asking, reply, error, now)
        elif flight.drafting:
            self._drafted(flight, reply, now)
        else:
            self._read(asking, reply, now)

    def _unusable(self, asking: Asking, reply: Reply, error: BackendError, now: float) -> None:
        """Nobody can use the reply, by no fault of the model: another one is asked, or the run or the rung ends."""
        flight = asking.flight
        self._history.book_reply(flight, reply, "error", error=error_text(error))
        self._spending.blame(flight.first.index, reply.usage, reply.seconds)
        if flight.rung.backend is None:
            if not self._launcher.ask_fallback(asking, now):
                self._landing.broken(flight, error)
            return
        self._landing.refuse(flight, reply, Rejection(flight.first, Deviation("empty", flight.first.step, str(error))))

    def _drafted(self, flight: Flight, reply: Reply, now: float) -> None:
        """Working in free text has come: ask for the reply that is made from it."""
        text = read_draft(reply.completion)
        if isinstance(text, Deviation):
            rejection = Rejection(flight.first, replace(text, step=flight.first.step))
            self._landing.close(Committing(flight, reply, rejection=rejection), now)
            return
        self._learning.called(flight, reply, fixed=self._asker.fixed(flight))
        self._spending.blame(flight.first.index, reply.usage, reply.seconds)
        self._history.book_reply(flight, reply, "draft")
        if self._ending.stop is not None:
            self._schedule.land(flight.segment)
            return
        self._launcher.ask(Asking(self._asker.after_draft(flight, text)), now)

    def _read(self, asking: Asking, reply: Reply, now: float) -> None:
        flight = asking.flight
        assert flight.request is not None
        try:
            reading = read_reply(
                reply.completion, flight.questions, self._reply_format, flight.request.values, words=self._words
            )
        except BackendError as error:
            self._unusable(asking, reply, error, now)
            return
        except Exception as error:  # noqa: BLE001 - a reply format is foreign code
            self._landing.broken(flight, error, reply)
            return
        reply = replace(reply, deviations=reading.deviations, readable=bool(reading.claims), runaway=reading.runaway)
        rejection = None
        if reading.failed is not None and flight.stand_in is not None:
            self._landing.close(reject_stand_in(flight, reply, reading.failed), now)
            return
        if reading.failed is not None:
            rejection = Rejection(flight.segment.occurrences[len(reading.claims)], reading.failed)
        if reading.claims:
            self._judge.check(Checking(flight, reply, rejection), flight.questions, reading.claims)
        else:
            self._landing.close(Committing(flight, reply, rejection=rejection), now)
