"""Retrying: no reply came, so the same request is sent again later, or the run ends."""

from __future__ import annotations

import random

from stepguard.backends.base import paid_without_reply
from stepguard.backends.retry import RetryPolicy
from stepguard.core.redaction import error_text, error_words
from stepguard.core.usage import Usage
from stepguard.core.verdicts import Deviation
from stepguard.engine.actions import Wait
from stepguard.engine.budget import Spending
from stepguard.engine.ending import RunEnding
from stepguard.engine.flights import Asking, Rejection, Waiting
from stepguard.engine.history import History
from stepguard.engine.landing import Landing
from stepguard.engine.launching import Launcher, set_aside
from stepguard.engine.outbox import Outbox
from stepguard.engine.schedule import Schedule
from stepguard.errors import BackendError
from stepguard.results import Status


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
        wait = self._retry.wait(asking.sent, error, self._chance)
        stop = self._stop(asking, error, wait, now)
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

    def _stop(self, asking: Asking, error: Exception, wait: float, now: float) -> tuple[Status, str] | None:
        """Why the request is not sent again after so many seconds, None where it is."""
        flight, spending, retry = asking.flight, self._spending, self._retry
        remaining = spending.remaining(now)
        if not (isinstance(error, BackendError) and error.retryable) or flight.rung.once:
            return "failed", error_text(error)
        if late := spending.late(now):
            return "exhausted", spending.reason(late)
        if asking.sent > retry.retries:
            return "failed", error_text(error)
        if reason := spending.refusal(flight.first.index, now, calls=flight.calls):
            return "exhausted", reason
        if wait > retry.longest_wait:
            return "failed", f"{error_text(error)}; the next try would be in {wait:.0f} s"
        if remaining is not None and wait >= remaining:
            return "exhausted", f"{spending.reason('seconds')} before the next try; {error_text(error)}"
        return None

    def woke(self, id: str, waiting: Waiting, now: float) -> None:
        """The time of `Wait` `id` has passed: the next try."""
        flight = waiting.flight
        self._spending.release(id)
        self._spending.blame(flight.first.index, Usage(), now - waiting.since)
        self._launcher.ask(Asking(flight, waiting.sent), now)
