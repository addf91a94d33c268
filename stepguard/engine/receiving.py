"""Ends the phase `Asking`: has the claims of a reply checked, or tries again where none came."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Final

from stepguard.backends.base import Completion, counted, find_flaw, paid_without_reply
from stepguard.backends.retry import RetryPolicy
from stepguard.core.redaction import error_text, error_words
from stepguard.core.usage import Usage
from stepguard.core.verdicts import Deviation
from stepguard.engine.actions import Wait
from stepguard.engine.asking import Asker
from stepguard.engine.budget import Spending
from stepguard.engine.ending import RunEnding
from stepguard.engine.flights import Asking, Checking, Committing, Flight, Rejection, Reply, Waiting
from stepguard.engine.history import History
from stepguard.engine.judging import ClaimJudge, reject_stand_in
from stepguard.engine.landing import Landing
from stepguard.engine.launching import Launcher, set_aside
from stepguard.engine.learning import Learning
from stepguard.engine.outbox import Outbox
from stepguard.engine.schedule import Schedule
from stepguard.errors import BackendError, BackendTimeout, RateLimited
from stepguard.replies.formats import ReplyFormat
from stepguard.replies.reading import read_draft, read_reply
from stepguard.results import Status

_NO_COMPLETION = Completion(None, None)
_SHORT: Final = 20
"""After a time-out the request is sent again only if more than a twentieth of the time that was too short is left."""


class Receiver:
    """Ends the phase `Asking` with a reply.

    Args:
        words: the words of the procedure that are understood around a reply, beside those of the steps asked.
        answer: the step, or the expression, that is the procedure's answer.
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
        answer: str,
    ) -> None:
        self._reply_format = reply_format
        self._words, self._answer = words, answer
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
        """Handle a reply nobody can use, by no fault of the model: ask a fallback, or end the run or the rung."""
        flight = asking.flight
        self._history.book_reply(flight, reply, "error", error=error_text(error))
        self._spending.blame(flight.first.index, reply.usage, reply.seconds)
        if flight.rung.backend is None:
            if not self._launcher.ask_fallback(asking, now):
                self._landing.broken(flight, error)
            return
        self._landing.refuse(flight, reply, Rejection(flight.first, Deviation("empty", flight.first.step, str(error))))

    def _drafted(self, flight: Flight, reply: Reply, now: float) -> None:
        """Ask for the reply that is made of a draft, now that it has come."""
        text = read_draft(reply.completion)
        if isinstance(text, Deviation):
            reply = replace(reply, runaway=text.kind == "truncated")  # free text has no length that it needs
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
                reply.completion,
                flight.questions,
                self._reply_format,
                flight.request.values,
                words=self._words,
                answer=self._answer,
            )
        except BackendError as error:
            self._unusable(asking, reply, error, now)
            return
        except Exception as error:  # noqa: BLE001 - a reply format is foreign code
            self._landing.broken(flight, error, reply)
            return
        reply = replace(reply, deviations=reading.deviations, readable=bool(reading.claims), runaway=reading.runaway)
        rejection = None
        failed = reading.failed
        # A refusal is the model's, not the step's: a fallback is asked before anything is held against the step.
        if failed is not None and failed.kind == "refused" and self._launcher.falls_back(asking, declined=True):
            self._landing.declined(flight, reply, failed)
            self._launcher.ask(Asking(flight), now)
            return
        if reading.failed is not None and flight.stand_in is not None:
            self._landing.close(reject_stand_in(flight, reply, reading.failed), now)
            return
        if reading.failed is not None:
            rejection = Rejection(flight.segment.occurrences[len(reading.claims)], reading.failed)
        if reading.claims:
            self._judge.check(Checking(flight, reply, rejection), flight.questions, reading.claims)
        else:
            self._landing.close(Committing(flight, reply, rejection=rejection), now)


class Retrier:
    """Ends the phase `Asking` without a reply: the flight waits for the next try, or is over."""

    def __init__(
        self,
        retry: RetryPolicy,
        chance: random.Random,
        schedule: Schedule,
        spending: Spending,
        history: History,
        outbox: Outbox,
        asker: Asker,
        launcher: Launcher,
        landing: Landing,
        ending: RunEnding,
    ) -> None:
        self._retry = retry
        self._chance = chance
        self._schedule = schedule
        self._spending = spending
        self._history = history
        self._outbox = outbox
        self._asker = asker
        self._launcher = launcher
        self._landing = landing
        self._ending = ending

    def failed(self, id: str, asking: Asking, error: Exception, now: float) -> None:
        """The call that `Ask` `id` made has failed."""
        flight, seconds = asking.flight, now - asking.sent_at
        assert flight.request is not None
        usage = paid_without_reply(flight.request, error)
        self._spending.settle(id, usage)
        self._spending.blame(flight.first.index, usage, seconds)
        self._history.book_failure(asking, error_text(error), usage=usage, seconds=seconds)
        streamed = asking.watched and not isinstance(error, RateLimited) and self._asker.ask_whole(asking.backend)
        if streamed and isinstance(error, BackendError) and not error.retryable and self._ending.stop is None:
            # A server that takes no such request, or cannot end a stream, may well answer in one piece.
            self._launcher.ask(Asking(flight), now)
            return
        wait = self._retry.wait(asking.sent, error, self._chance)
        # A call that was given up with the end of a budget, or a moment before, left no time for another one.
        least = seconds / _SHORT if isinstance(error, BackendTimeout) else 0.0
        stop = self._stop(asking, error, wait, now, least)
        if stop is not None and stop[0] == "failed" and flight.rung.backend is not None:
            # Somebody else does not answer: that ends the rung, not the run.
            deviation = Deviation("empty", flight.first.step, stop[1])
            self._landing.refuse(flight, None, Rejection(flight.first, deviation))
        elif stop is not None and stop[0] == "failed" and self._falls_back(asking, error, now):
            return
        elif stop is not None or self._ending.stop is not None:
            self._schedule.land(flight.segment)
            if stop is not None:
                self._ending.end(stop[0], flight.first, stop[1], error=error)
        else:
            action = Wait(self._outbox.new_id(), wait, error_words(error))
            set_aside(self._spending, action, flight)
            self._outbox.put(action, Waiting(flight, asking.sent, since=now))

    def _falls_back(self, asking: Asking, error: Exception, now: float) -> bool:
        return isinstance(error, BackendError) and self._launcher.ask_fallback(asking, now)

    def _stop(
        self, asking: Asking, error: Exception, wait: float, now: float, least: float
    ) -> tuple[Status, str] | None:
        """Why the request is not sent again after a wait, None where it is; `least` seconds are not enough for it."""
        flight, spending, retry = asking.flight, self._spending, self._retry
        remaining = spending.remaining(now)
        if not (isinstance(error, BackendError) and error.retryable) or flight.rung.once:
            return "failed", error_text(error)
        # Before the retries: a time-out at the end of the budget is that end, and no failure of the model.
        if late := spending.late(now, least=least):
            return "exhausted", spending.reason(late)
        if asking.sent > retry.retries:
            return "failed", error_text(error)
        if reason := spending.refusal(flight.first.index, now, calls=flight.calls, least=least):
            return "exhausted", reason
        if wait > retry.longest_wait:
            return "failed", f"{error_text(error)}; the next try would be in {wait:.0f} s"
        if remaining is not None and wait + least >= remaining:
            return "exhausted", f"{spending.reason('seconds')} before the next try; {error_text(error)}"
        return None

    def woke(self, id: str, waiting: Waiting, now: float) -> None:
        """The time of `Wait` `id` has passed: the next try."""
        flight = waiting.flight
        self._spending.release(id)
        self._spending.blame(flight.first.index, Usage(), now - waiting.since)
        self._launcher.ask(Asking(flight, waiting.sent), now)
