"""Launching: the next steps that can be asked become a flight, as far as the budget allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from stepguard.checks import find_hopeless
from stepguard.core.redaction import error_text
from stepguard.core.usage import Usage
from stepguard.core.verdicts import Deviation
from stepguard.engine.actions import Act, Action, Ask, Commit, OperationCall
from stepguard.engine.asking import Asker, most_of
from stepguard.engine.budget import Spending
from stepguard.engine.control import Halt
from stepguard.engine.ending import RunEnding
from stepguard.engine.flights import Asking, Checking, Computing, Flight, Recording
from stepguard.engine.journal import KeptStep, call_digest
from stepguard.engine.judging import ClaimJudge
from stepguard.engine.landing import Landing
from stepguard.engine.learning import Learning
from stepguard.engine.outbox import Outbox
from stepguard.engine.recalling import CallState, Recall
from stepguard.engine.schedule import Broken, Schedule, Segment
from stepguard.errors import EvaluationError, UnsettledCall, ValueRefused
from stepguard.procedure.operations import Operation
from stepguard.procedure.steps import Step
from stepguard.repair.books import Repairs
from stepguard.repair.fallbacks import Fallbacks
from stepguard.repair.policy import way_at_first
from stepguard.repair.rungs import FIRST, Rung, person
from stepguard.results import Occurrence

_CODE: Final = Rung("code", assistance="code")
_NEEDS_PERSON: Final = "a person has to answer it"
_UNSETTLED: Final[Mapping[CallState, str]] = {
    "other": "the call of the tool {call} was made before with other arguments: nothing may be called with its "
    "idempotency key {key!r} again; use another run_id",
    "unsettled": "the call of the tool {call} was begun, and nobody knows what came of it (key {key!r}): find out, and "
    "tell the ledger what it returned (`stepguard answer`), or that it may be made again (`--repeat`)",
}


class Launcher:
    """Starts the flights of a run.

    Args:
        person: how a person is asked, None where there is nobody.
        recall: what is durable of the run, None where it is not kept.
        parallel: how many flights may be on their way at the same time.
        observe: whether the run only observes, so that also what no reply could satisfy is asked.
    """

    def __init__(
        self,
        schedule: Schedule,
        repairs: Repairs,
        learning: Learning,
        asker: Asker,
        spending: Spending,
        outbox: Outbox,
        ending: RunEnding,
        fallbacks: Fallbacks,
        person: Rung | None,
        judge: ClaimJudge,
        landing: Landing,
        recall: Recall | None,
        operations: Mapping[str, Operation],
        *,
        parallel: int,
        observe: bool,
    ) -> None:
        self._schedule = schedule
        self._repairs = repairs
        self._learning = learning
        self._asker = asker
        self._spending = spending
        self._outbox = outbox
        self._ending = ending
        self._fallbacks = fallbacks
        self._person = person
        self._judge = judge
        self._landing = landing
        self._recall = recall
        self._answers: dict[int, Rung] = {}
        self._operations = operations
        self._parallel = parallel
        self._observe = observe

    def fill(self, now: float) -> None:
        """Start flights until no more can be started."""
        while self._ending.stop is None and len(self._outbox) < self._parallel and self._start(now):
            pass

    def answer(self, index: int, answer: Rung) -> None:
        """A person has answered the step for which the run waits."""
        self._answers[index] = answer

    def _start(self, now: float) -> bool:
        """Start one flight; whether there was one to start."""
        segment = self._schedule.next_segment(self._learning.size(self._schedule.remaining), self._way)
        if segment is None or isinstance(segment, Broken):
            # While anything is under way, its answer may still make a step startable.
            if not self._outbox and not self._schedule.finished:
                self._end_unstartable(segment)
            return False
        if self._recall is not None:
            # First of all: what is durable costs nothing, whatever is left of the budget.
            segment, kept = self._recall.match(segment)
            if kept:
                self._reuse(segment, kept, now)
                return True
            segment, guesses = self._recall.guesses(segment)
            if guesses:
                self._landing.recalled(segment.occurrences[0], segment.steps[0], guesses)
                return self._ending.stop is None
        rung = self._way(segment.indices[0], segment.steps[0]) or FIRST
        performer = segment.steps[0].performer
        code = performer in ("code", "function", "tool") or rung.assistance == "code"
        if performer == "person" or rung.waits:
            question = segment.steps[0].instruction or segment.steps[0].formula or _NEEDS_PERSON
            asked = self._answer(segment, question, again=rung.waits)
            if asked is None:
                self._ending.end("waiting", segment.occurrences[0], question)
                return False
            rung = asked
        if not self._affordable(segment, rung, now, code=code) or not (code or self._satisfiable(segment)):
            return False
        self._schedule.start(segment)
        if code:
            self._perform(Flight(segment, _CODE, None), now)
            return True
        return self._ask_segment(segment, rung, now)

    def _way(self, index: int, step: Step) -> Rung | None:
        """How a step is asked that was not accepted, or that is not asked as it stands; None for any other."""
        return self._repairs.rung(index) or way_at_first(step, self._schedule.values)

    def _answer(self, segment: Segment, question: str, *, again: bool) -> Rung | None:
        """How a person is asked for the only step of a segment, None where there is nobody.

        `again`: whether another answer may be asked for where this one is refused.
        """
        index, where = segment.indices[0], segment.occurrences[0]
        if index in self._answers:
            # A rung may be refused and ask for another answer; a step of a person is performed by the one answer it
            # has.
            return self._answers.pop(index) if again else self._answers[index]
        given = None if self._recall is None else self._recall.answer(segment.steps[0], where, question)
        return self._person if given is None else person(lambda *_: given)

    def _reuse(self, segment: Segment, kept: tuple[KeptStep, ...], now: float) -> None:
        """Let what is durable take the place of asking: what was claimed is judged again."""
        self._schedule.start(segment)
        if kept[0].claim is not None:
            claims = tuple(entry.claim for entry in kept if entry.claim is not None)
            self._judge.check(Checking(Flight(segment, FIRST, None), None, kept=kept), segment.steps, claims)
        # A function may cost or have changed: its durable value is used. Code is exact and free: it computes again.
        elif segment.steps[0].performer == "function":
            self._judge.performed(Computing(Flight(segment, _CODE, None)), kept[0].value, now)
        else:  # code found it
            self.act(Computing(Flight(segment, _CODE, None)))

    def _perform(self, flight: Flight, now: float) -> None:
        """Have the only step of a flight performed; of a call of a tool it is made durable first that it begins."""
        step, where = flight.segment.steps[0], flight.first
        operation = self._operation(step)
        if self._recall is None or operation is None or not operation.tool:
            self.act(Computing(flight))
            return
        try:
            digest = call_digest(step, self._schedule.read((step,)))
        except (EvaluationError, ValueRefused):  # performing it says so, and calls nothing
            self.act(Computing(flight))
            return
        state, call = self._recall.call(OperationCall(self._key(where), operation.name, where, digest), operation)
        computing = Computing(flight, call=call)
        if state == "returned":
            self._returned(computing, step, call, now)
        elif state == "new":
            self.record(computing)
        else:
            self._schedule.land(flight.segment)
            error = UnsettledCall(_UNSETTLED[state].format(call=f"{call.operation} for {where}", key=call.key))
            self._ending.end("failed", where, str(error), error=error)

    def _returned(self, computing: Computing, step: Step, call: OperationCall, now: float) -> None:
        """Use what a call has returned, or what a person says that it has."""
        value = call.value
        assert value is not None
        try:
            if not step.type.holds(value):
                value = step.type.read(value) if isinstance(value, str) else step.type.accept(value)
        except ValueRefused as error:
            self._schedule.land(computing.flight.segment)
            self._ending.end("failed", call.occurrence, f"what {call.operation} has returned: {error}", error=error)
            return
        self._judge.performed(computing, value, now)

    def record(self, computing: Computing) -> None:
        """Have what is known of the call of a tool made durable."""
        self._outbox.put(Commit(self._outbox.new_id(), call=computing.call), Recording(computing))

    def recorded(self, computing: Computing, now: float) -> None:
        """It is durable: make the call, or use what it has given."""
        assert computing.call is not None
        if computing.call.value is not None:
            self._judge.performed(computing, computing.call.value, now)
        # Where the run has ended meanwhile, the call is not made, though it is recorded.
        elif self._ending.stop is None:
            self.act(computing)
        else:
            self._schedule.land(computing.flight.segment)

    def act(self, computing: Computing) -> None:
        """Have the only step of a flight performed."""
        segment = computing.flight.segment
        step = segment.steps[0]
        operation = self._operation(step)
        key = "" if operation is None else self._key(segment.occurrences[0])
        action = Act(self._outbox.new_id(), step, self._schedule.read(segment.steps), operation, key)
        self._outbox.put(action, computing)

    def _operation(self, step: Step) -> Operation | None:
        return None if step.operation is None else self._operations.get(step.operation)

    def _key(self, where: Occurrence) -> str:
        return f"{self._outbox.run_id}:{where}"

    def perform_again(self, computing: Computing) -> bool:
        """Call a function or tool that has failed once more, where that is declared; whether it is."""
        operation = self._operation(computing.flight.segment.steps[0])
        if operation is None or computing.tries >= operation.retries or self._ending.stop is not None:
            return False
        self.act(replace(computing, tries=computing.tries + 1))
        return True

    def _affordable(self, segment: Segment, rung: Rung, now: float, *, code: bool) -> bool:
        """Whether the budget allows a segment; the run ends where it never will."""
        spending, first = self._spending, segment.occurrences[0]
        calls = 2 if rung.draft else 1  # a draft is worth nothing without the call that makes a reply of it
        if not code and (limit := spending.step_exceeded(first.index, calls=calls)):
            self._ending.end("exhausted", first, spending.reason(limit, per_step=True, calls=calls))
            return False
        limit = spending.late(now) if code else spending.exceeded(now, calls=calls)
        # What is on its way may still be accepted, and may cost less than was set aside for it.
        if limit is not None and not self._outbox:
            self._ending.end("exhausted", first, spending.reason(limit, calls=calls))
        return limit is None

    def _satisfiable(self, segment: Segment) -> bool:
        """Whether any reply about the first step could be accepted; the run ends there where none could."""
        step, first = segment.steps[0], segment.occurrences[0]
        verdict = None if self._observe else find_hopeless(step, self._schedule.values)
        # While others are under way, the run does not end here: what they bring in is kept.
        if verdict is not None and not self._outbox:
            deviation = Deviation("undecided", step.id, verdict.reason)
            self._ending.end("abstained", first, f"undecided: {verdict.reason}", deviation)
        return verdict is None

    def _ask_segment(self, segment: Segment, rung: Rung, now: float) -> bool:
        index = segment.indices[0]
        attempt, parts = self._repairs.tries(index) + 1, partial(self._repairs.parts, index)
        values = self._schedule.read(segment.steps)
        try:
            flight = self._asker.flight(segment, rung, values, attempt=attempt, parts=parts)
        except Exception as error:  # noqa: BLE001 - a rung may be foreign code
            self._schedule.land(segment)
            reason = f"the rung {rung.name} failed: {error_text(error)}"
            self._ending.end("failed", segment.occurrences[0], reason, error=error)
            return False
        self.ask(Asking(flight), now, first=True)
        return True

    def _end_unstartable(self, broken: Broken | None) -> None:
        if broken is None:  # only where a lazy procedure does not give the same step twice
            where = self._schedule.where(self._schedule.frontier)
            self._ending.end("failed", where, "it reads a value that is not there")
            return
        path, site = broken.place
        if isinstance(error := broken.error, Halt):
            self._ending.end(error.status, Occurrence(broken.index, error.path, "", site), str(error))
        else:
            step = getattr(error, "step", None) or path or f"#{broken.index + 1}"
            self._ending.end("failed", Occurrence(broken.index, step, path, site), str(error), error=error)

    def ask(self, asking: Asking, now: float, *, first: bool = False) -> None:
        """Ask what a flight asks; after the first time only as far as the budget allows."""
        flight = asking.flight
        assert flight.request is not None
        if not first and (reason := self._spending.refusal(flight.first.index, now, calls=flight.calls)):
            self._schedule.land(flight.segment)
            self._ending.end("exhausted", flight.first, reason)
            return
        independent = self._repairs.vote is None and self._schedule.separable(flight.segment.steps)
        backend = self._fallbacks.current if flight.rung.backend is None else flight.rung.backend
        stop = self._asker.stop(flight, backend, independent=independent)
        request = flight.request if stop is None else replace(flight.request, stop=stop)
        action = Ask(self._outbox.new_id(), request, backend, flight.segment.occurrences)
        set_aside(self._spending, action, flight)
        self._outbox.put(action, Asking(flight, asking.sent, asking.sent_at, backend, watched=stop is not None))

    def ask_fallback(self, asking: Asking, now: float) -> bool:
        """Ask the next fallback the same, after the one that was asked did not answer; False where there is none."""
        if falls_back := self.falls_back(asking):
            self.ask(Asking(asking.flight), now)
        return falls_back

    def falls_back(self, asking: Asking, *, declined: bool = False) -> bool:
        """Move on to the next fallback, where the one that was asked did not answer, or declined; whether there is one.

        An observing run shows that a model declines, and asks nobody else.
        """
        # Another model or a person of the ladder has no fallback: their failure ends the rung.
        if asking.flight.rung.backend is not None or self._ending.stop is not None or (declined and self._observe):
            return False
        return self._fallbacks.move_on(asking.backend)


def set_aside(spending: Spending, action: Action, flight: Flight) -> None:
    """Set aside what the calls of a flight may cost at most, from the next one on."""
    assert flight.request is not None
    spending.reserve(action.id, most_of(flight.request) + Usage(flight.calls - 1))
