"""What is asked next: segments become flights, as far as steps can be read and the budget allows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from stepguard.checks import find_hopeless
from stepguard.core.redaction import error_text
from stepguard.core.verdicts import Deviation
from stepguard.engine.actions import Act, Ask
from stepguard.engine.flights import Flight
from stepguard.engine.schedule import Broken
from stepguard.engine.state import RunState
from stepguard.repair.rungs import FIRST, Rung
from stepguard.results import Occurrence

__all__ = ["Launcher"]

_CODE: Final = Rung("code", assistance="code")


class Launcher:
    """Starts the flights of a run."""

    def __init__(self, state: RunState) -> None:
        self._state = state

    def fill(self) -> None:
        """Start flights until no more can be started."""
        while (
            self._state.stop is None
            and len(self._state.outbox) < self._state.settings.parallel
            and self._start_flight()
        ):
            pass

    def _start_flight(self) -> bool:
        size = self._state.learning.size(len(self._state.procedure) - self._state.steps.completed)
        found = self._state.steps.next_segment(size, self._state.repairs.again)
        if found is None or isinstance(found, Broken):
            if not self._state.outbox and not self._state.steps.finished:
                self._end_unstartable(found)
            return False
        rung = self._state.repairs.again.get(found.indices[0], FIRST)
        code = found.steps[0].performer == "code" or rung.assistance == "code"
        spending, now = self._state.spending, self._state.now
        calls = 2 if rung.draft else 1  # a draft is worth nothing without the call that makes a reply of it
        if not code and (limit := spending.step_exceeded(found.indices[0], calls=calls)):
            reason = self._state.limit_reason(limit, per_step=True, calls=calls)
            self._state.end("exhausted", found.occurrences[0], reason)
            return False
        limit = spending.late(now) if code else spending.exceeded(now, calls=calls)
        if limit is not None:
            # What is on its way may still be accepted, and may cost less than was set aside for it.
            if not self._state.outbox:
                self._state.end("exhausted", found.occurrences[0], self._state.limit_reason(limit, calls=calls))
            return False
        hopeless = (
            None if code or self._state.settings.observe else find_hopeless(found.steps[0], self._state.steps.values)
        )
        if hopeless is not None:  # no reply could be accepted
            if not self._state.outbox:
                deviation = Deviation("undecided", found.steps[0].id, hopeless.reason)
                self._state.end("abstained", found.occurrences[0], f"undecided: {hopeless.reason}", deviation)
            return False
        self._state.steps.start(found)
        if code:
            action = Act(self._state.outbox.new_id(), found.steps[0], self._state.steps.read(found.steps))
            self._state.outbox.put(action, Flight(found, _CODE, None))
        else:
            repairs, values = self._state.repairs, self._state.steps.read(found.steps)
            attempt, parts = repairs.tries(found.indices[0]) + 1, partial(repairs.parts, found.indices[0])
            try:
                flight = self._state.asker.flight(found, rung, values, attempt=attempt, parts=parts)
            except Exception as error:  # noqa: BLE001 - a rung may be foreign code
                self._state.steps.land(found)
                reason = f"the rung {rung.name} failed: {error_text(error)}"
                self._state.end("failed", found.occurrences[0], reason, error=error)
                return False
            self.ask(flight, first=True)
        return True

    def _end_unstartable(self, broken: Broken | None) -> None:
        if broken is not None:
            where = Occurrence(broken.index, broken.error.step or f"#{broken.index + 1}")
            self._state.end("failed", where, str(broken.error), error=broken.error)
        else:  # only where a lazy procedure does not give the same step twice
            self._state.end(
                "failed", self._state.where(self._state.steps.frontier), "it reads a value that is not there"
            )

    def ask(self, flight: Flight, *, first: bool = False) -> None:
        """Ask what a flight asks; after the first time only as far as the budget allows."""
        assert flight.request is not None
        if not first and (reason := self._state.spent(flight)):
            self._state.steps.land(flight.segment)
            self._state.end("exhausted", flight.first, reason)
            return
        request = replace(flight.request, stop=self._state.asker.stop(flight))
        action = Ask(self._state.outbox.new_id(), request, flight.rung.backend, flight.segment.occurrences)
        self._state.reserve(action, flight)
        self._state.outbox.put(action, flight)
