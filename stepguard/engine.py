"""The machine in the middle: what to do next, given everything that has happened.

The engine performs nothing. It emits actions with ids and accepts events (see `stepguard.actions`), so that the sync
driver, the async driver, a loop of the caller's and the tests all drive the same code. It never calls a model,
sleeps, reads a clock, logs or writes.

The way of one segment, called a flight: ask -> (wait -> ask)* -> check -> commit. The verified prefix of a reply is
committed; a step that was not accepted leads the next segment, asked in the way its repair policy names. With
`parallel` flights, steps that read nothing unverified may be asked at the same time; the committed set stays closed
under what steps read.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, assert_never

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
)
from stepguard.backends.base import Completion, Request
from stepguard.budget import Budget, Limit, Spending
from stepguard.checks import Judgement
from stepguard.errors import BackendError, EvaluationError, ProcedureError, RateLimited, UsageError
from stepguard.procedure import Procedure, Step
from stepguard.prompts import Prompter
from stepguard.repair import FIRST, Failures, Repair, Rung
from stepguard.replies import Reading, read_reply
from stepguard.reply_formats import ReplyFormat
from stepguard.results import Attempt, Occurrence, Problem, Result, Status, StepRecord
from stepguard.segments import Segments
from stepguard.usage import Usage
from stepguard.values import Value, show_value
from stepguard.verdicts import Deviation

__all__ = ["Engine", "Settings", "Transport"]

_CHARACTERS_PER_TOKEN: Final = 3.5
_TOKENS_PER_STEP: Final = 96


@dataclass(frozen=True, slots=True)
class Transport:
    """How failures of the transport are met: the only layer that repeats requests.

    Args:
        retries: how often a request that may succeed later is sent again.
        first_wait: seconds before the first repetition; doubled for each further one, with jitter.
        longest_wait: a wait that would be longer ends the run instead (a ``Retry-After`` of a day, say).
        timeout: seconds until one request is given up; None waits forever.
    """

    retries: int = 2
    first_wait: float = 0.5
    longest_wait: float = 60.0
    timeout: float | None = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that shapes a run; `Guard` makes it from its arguments."""

    segments: Segments
    repair: Repair
    budget: Budget
    transport: Transport
    reply_format: ReplyFormat
    parallel: int
    observe: bool
    history: int | None
    seed: int


@dataclass(slots=True)
class _Flight:
    """One segment on its way from the question to the commit."""

    indices: list[int]
    steps: tuple[Step, ...]
    rung: Rung
    request: Request | None
    asked_at: float = 0.0
    sent: int = 0
    completion: Completion | None = None
    reading: Reading | None = None
    blame: tuple[int, Deviation] | None = None
    hopeless: bool = False
    records: list[StepRecord] = field(default_factory=list)


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
        self._values: dict[str, Value] = dict(inputs)
        self._prompter = Prompter(procedure, settings.reply_format)
        self._prefix_length = sum(len(message.content) for message in self._prompter.prefix)
        self._spending = Spending(settings.budget, started=now)
        self._started = self._now = now
        self._random = random.Random(settings.seed)
        self._frontier = 0  # every step before it is completed
        self._ahead: set[int] = set()  # completed steps behind the frontier
        self._flying: set[int] = set()
        self._flights: dict[str, _Flight] = {}  # by the id of the action that is outstanding
        self._outbox: list[Action] = []
        self._failures: dict[int, Failures] = {}
        self._deviations: dict[int, list[Deviation]] = {}
        self._size = settings.segments.size
        self._actions = 0
        self._stop: tuple[Status, Problem | None, Exception | None] | None = None
        self._completed = 0
        self._records: deque[StepRecord] = deque(maxlen=settings.history)
        self._attempts: deque[Attempt] = deque(maxlen=settings.history)
        self._calls = 0
        self._unverified: list[str] = []
        self._recent: deque[tuple[int, str]] = deque()
        self._schedule()

    @property
    def done(self) -> bool:
        """Whether the run has ended: `result` may be called, and no event is expected."""
        return not self._flights and (self._stop is not None or self._completed == len(self.procedure))

    @property
    def values(self) -> Mapping[str, Value]:
        """A copy of the verified state."""
        return MappingProxyType(dict(self._values))

    def actions(self) -> list[Action]:
        """The actions that have come up since the last call, each to be performed once."""
        actions, self._outbox = self._outbox, []
        return actions

    def send(self, event: Event) -> None:
        """Take in what has happened.

        Raises:
            UsageError: the event answers no outstanding action of this run, or one of another kind.
        """
        if isinstance(event, Clock):
            self._now = max(self._now, event.now)
            return
        flight = self._flights.pop(event.id, None)
        if flight is None:
            raise UsageError(f"{type(event).__name__} answers {event.id!r}, which is not outstanding in this run")
        match event:
            case Replied(id, completion):
                self._replied(id, flight, completion)
            case Failed(id, error):
                self._failed(id, flight, error)
            case Checked(_, judgements):
                self._checked(flight, judgements)
            case Performed(_, value):
                self._performed(flight, value)
            case Woke():
                self._ask(flight)
            case Committed():
                self._committed(flight)
            case _:
                assert_never(event)
        self._schedule()

    # Scheduling

    def _schedule(self) -> None:
        """Start flights until nothing more can be started."""
        try:
            while self._stop is None and len(self._flights) < self._settings.parallel:
                if not self._start_flight():
                    break
        except ProcedureError as error:  # a lazy procedure can turn out wrong on the way
            self._end("failed", self._frontier, str(error), error=error)

    def _start_flight(self) -> bool:
        indices, steps = self._next_segment()
        if not indices:
            return False
        if steps[0].performer == "code":
            flight = _Flight(indices, tuple(steps), Rung("code"), None)
            self._emit(Act(self._new_id(), steps[0], self._read(steps)), flight)
        else:
            limit = self._spending.exceeded(self._now)
            if limit is not None:
                self._end("exhausted", indices[0], self._limit_reason(limit))
                return False
            flight = _Flight(indices, tuple(steps), self._rung(indices[0]), None)
            flight.request = self._request(flight)
            self._ask(flight)
        self._flying.update(indices)
        return True

    def _next_segment(self) -> tuple[list[int], list[Step]]:
        """The next steps that can be asked together: their reads are verified, or set by a step before them."""
        procedure, size = self.procedure, self._size
        end = len(procedure)
        strict = self._settings.parallel == 1
        if not strict:
            end = min(end, self._frontier + 4 * size * self._settings.parallel)
        indices: list[int] = []
        steps: list[Step] = []
        ids: set[str] = set()
        for index in range(self._frontier, end):
            if index in self._flying or index in self._ahead:
                continue
            step = procedure.steps[index]
            readable = all(name in ids or name in self._values for name in step.reads)
            # A step that is asked again leads its segment, and code performs one step at a time.
            joins = readable and not (indices and (step.performer == "code" or index in self._failures))
            if not joins:
                if strict or (indices and readable):
                    break
                continue
            indices.append(index)
            steps.append(step)
            ids.add(step.id)
            if len(indices) == size or step.performer == "code" or self._rung(indices[0]).alone:
                break
        return indices, steps

    def _rung(self, index: int) -> Rung:
        failures = self._failures.get(index)
        if failures is None:
            return FIRST
        return self._settings.repair.next(failures) or FIRST

    def _request(self, flight: _Flight) -> Request:
        steps, first = flight.steps, flight.indices[0]
        values = self._read(steps)
        tries = len(self._failures[first].kinds) if first in self._failures else 0
        return Request(
            messages=self._prompter.messages(steps, values),
            steps=steps,
            values=values,
            reply_format=self._settings.reply_format,
            temperature=flight.rung.temperature,
            max_tokens=self._max_tokens(first, len(steps)),
            seed=self._random.getrandbits(31),
            attempt=tries + 1,
        )

    def _max_tokens(self, first: int, steps: int) -> int:
        cap = 64 + _TOKENS_PER_STEP * steps
        failures = self._failures.get(first)
        # The same cap again would cut the reply again.
        return cap * 2 ** min(failures.kinds.count("truncated"), 4) if failures else cap

    def _read(self, steps: tuple[Step, ...] | list[Step]) -> Mapping[str, Value]:
        names = dict.fromkeys(name for step in steps for name in step.reads)
        return MappingProxyType({name: self._values[name] for name in names if name in self._values})

    def _ask(self, flight: _Flight) -> None:
        limit = self._spending.exceeded(self._now)
        if limit is not None:
            self._land(flight)
            self._end("exhausted", flight.indices[0], self._limit_reason(limit))
            return
        assert flight.request is not None
        remaining = self._spending.remaining(self._now)
        bounds = [bound for bound in (self._settings.transport.timeout, remaining) if bound is not None]
        request = flight.request
        if bounds:
            request = _with_timeout(request, min(bounds))
        flight.asked_at = self._now
        flight.sent += 1
        action = Ask(self._new_id(), request)
        characters = self._prefix_length + len(request.messages[-1].content)
        expected = int(characters / _CHARACTERS_PER_TOKEN) + _TOKENS_PER_STEP * len(flight.steps) // 3
        self._spending.reserve(action.id, expected)
        self._emit(action, flight)

    def _limit_reason(self, limit: Limit) -> str:
        return f"the budget of {getattr(self._settings.budget, limit)} {limit} is spent"

    # Events

    def _replied(self, ask: str, flight: _Flight, completion: Completion) -> None:
        self._spending.settle(ask, completion.usage)
        flight.completion = completion
        reading = flight.reading = read_reply(completion, flight.steps, self._settings.reply_format)
        if reading.failed is not None:
            flight.blame = (flight.indices[len(reading.claims)], reading.failed)
        if not reading.claims:
            self._rejected(flight)
            return
        steps = flight.steps[: len(reading.claims)]
        foreign = any(step.checks for step in steps)
        read = self._read(steps)
        self._emit(Check(self._new_id(), steps, reading.claims, read, foreign, self._settings.observe), flight)

    def _checked(self, flight: _Flight, judgements: tuple[Judgement, ...]) -> None:
        observe = self._settings.observe
        for position, judgement in enumerate(judgements):
            verdict = judgement.verdict
            accepted = verdict is None or verdict.outcome == "pass"
            if not accepted:
                assert verdict is not None
                kind = verdict.kind if verdict.outcome == "fail" and verdict.kind else "undecided"
                if verdict.outcome == "fail" and verdict.kind is None:
                    kind = "wrong_value"
                deviation = Deviation(kind, judgement.claim.step, verdict.reason)
                if not observe or judgement.value is None:
                    flight.blame = (flight.indices[position], deviation)
                    flight.hopeless = not verdict.retry
                    self._remember_wrong(flight.indices[position], judgement)
                    break
                self._deviations.setdefault(flight.indices[position], []).append(deviation)
            assert judgement.value is not None
            index = flight.indices[position]
            flight.records.append(
                StepRecord(
                    occurrence=Occurrence(index, judgement.claim.step),
                    value=judgement.value,
                    verified=verdict is not None and accepted and not observe,
                    verdicts=judgement.verdicts,
                    claim=judgement.claim.text,
                    tries=1 + (len(self._failures[index].kinds) if index in self._failures else 0),
                    deviations=tuple(self._deviations.get(index, ())),
                )
            )
        if flight.records:
            self._emit(Commit(self._new_id(), tuple(flight.records)), flight)
        else:
            self._rejected(flight)

    def _remember_wrong(self, index: int, judgement: Judgement) -> None:
        wrong = judgement.claim.value if judgement.value is None else show_value(judgement.value)
        self._failures.setdefault(index, Failures()).wrong.append(wrong)

    def _performed(self, flight: _Flight, value: Value) -> None:
        occurrence = Occurrence(flight.indices[0], flight.steps[0].id)
        flight.records.append(StepRecord(occurrence, value, verified=True, tries=0, assistance="code"))
        self._emit(Commit(self._new_id(), tuple(flight.records)), flight)

    def _committed(self, flight: _Flight) -> None:
        for record in flight.records:
            index, step_id = record.occurrence.index, record.occurrence.step
            self._values[step_id] = record.value
            self._ahead.add(index)
            self._completed += 1
            self._failures.pop(index, None)
            self._deviations.pop(index, None)
            self._records.append(record)
            self._forget(index, step_id)
            if not record.verified and (
                self._settings.history is None or len(self._unverified) < self._settings.history
            ):
                self._unverified.append(step_id)
        while self._frontier in self._ahead:
            self._ahead.remove(self._frontier)
            self._frontier += 1
        if flight.request is not None:
            self._rejected(flight)
        else:
            self._land(flight)

    def _forget(self, index: int, step_id: str) -> None:
        """A lazy procedure is too long to keep every value: drop those that no later step may read."""
        look_back = self.procedure.look_back
        if look_back is None:
            return
        self._recent.append((index, step_id))
        while len(self._recent) > look_back + 2 * self._size * self._settings.parallel:
            _, old = self._recent.popleft()
            if old not in {recent for _, recent in self._recent}:
                self._values.pop(old, None)

    def _rejected(self, flight: _Flight) -> None:
        """Book the attempt; where a step was not accepted, decide whether it is asked again."""
        self._land(flight)
        assert flight.completion is not None and flight.reading is not None
        committed = len(flight.records)
        deviations = flight.reading.deviations
        if flight.blame is not None and flight.blame[1] not in deviations:
            deviations = (*deviations, flight.blame[1])
        outcome: Literal["accepted", "partly", "rejected"] = "accepted"
        if committed < len(flight.steps):
            outcome = "partly" if committed else "rejected"
        self._book(flight, outcome, deviations, flight.completion.usage)
        if flight.blame is None:
            return
        index, deviation = flight.blame
        failures = self._failures.setdefault(index, Failures())
        failures.kinds.append(deviation.kind)
        failures.hopeless = flight.hopeless
        self._deviations.setdefault(index, []).append(deviation)
        if deviation.kind == "truncated":
            self._size = max(1, self._size // 2)
        if self._settings.repair.next(failures) is None:
            self._end("abstained", index, f"{deviation.kind}: {deviation.reason}", deviation)

    def _failed(self, action: str, flight: _Flight, error: Exception) -> None:
        if flight.request is None or flight.completion is not None:  # code, a check or the ledger failed
            if flight.completion is not None:
                self._book(flight, "error", (), flight.completion.usage, error)
            self._land(flight)
            reason = f"{type(error).__name__}: {error}"
            if isinstance(error, EvaluationError):
                reason = f"the step has no exact value: {error}"
            self._end("failed", flight.indices[0], reason, error=error)
            return
        self._spending.settle(action, Usage(calls=1))
        self._book(flight, "error", (), Usage(calls=1), error)
        transport = self._settings.transport
        remaining = self._spending.remaining(self._now)
        if remaining is not None and remaining <= 0:
            self._land(flight)
            self._end("exhausted", flight.indices[0], self._limit_reason("seconds"))
            return
        retryable = isinstance(error, BackendError) and error.retryable
        if not retryable or flight.sent > transport.retries or self._stop is not None:
            self._land(flight)
            self._end("failed", flight.indices[0], f"{type(error).__name__}: {error}", error=error)
            return
        seconds = transport.first_wait * 2 ** (flight.sent - 1) * (1 + self._random.random() / 2)
        if isinstance(error, RateLimited) and error.retry_after is not None:
            seconds = max(error.retry_after * (1 + self._random.random() / 10), seconds)
        if seconds > transport.longest_wait or (remaining is not None and seconds >= remaining):
            self._land(flight)
            status: Status = "failed" if seconds > transport.longest_wait else "exhausted"
            self._end(status, flight.indices[0], f"{error}; the next try would be in {seconds:.0f} s", error=error)
            return
        self._emit(Wait(self._new_id(), seconds, str(error)), flight)

    # Bookkeeping

    def _new_id(self) -> str:
        self._actions += 1
        return f"{self.run_id}:{self._actions}"

    def _emit(self, action: Action, flight: _Flight) -> None:
        self._flights[action.id] = flight
        self._outbox.append(action)

    def _land(self, flight: _Flight) -> None:
        self._flying.difference_update(flight.indices)

    def _book(
        self,
        flight: _Flight,
        outcome: Literal["accepted", "partly", "rejected", "error"],
        deviations: tuple[Deviation, ...],
        usage: Usage,
        error: Exception | None = None,
    ) -> None:
        self._calls += 1
        completion = flight.completion
        self._attempts.append(
            Attempt(
                number=self._calls,
                steps=tuple(Occurrence(i, s.id) for i, s in zip(flight.indices, flight.steps, strict=True)),
                rung=flight.rung.name,
                outcome=outcome,
                committed=len(flight.records) if error is None else 0,
                deviations=deviations,
                usage=usage,
                seconds=self._now - flight.asked_at,
                finish_reason=completion.finish_reason if completion else None,
                text=completion.text if completion else None,
                error=None if error is None else f"{type(error).__name__}: {error}",
            )
        )

    def _end(
        self,
        status: Status,
        index: int,
        reason: str,
        deviation: Deviation | None = None,
        *,
        error: Exception | None = None,
    ) -> None:
        """Start nothing more. What is in flight is still taken in, so that no usage is lost; the first reason stays."""
        if self._stop is None:
            try:
                step_id = self.procedure.steps[index].id
            except ProcedureError as broken:
                step_id = broken.step or f"#{index + 1}"
            self._stop = (status, Problem(Occurrence(index, step_id), reason, deviation), error)

    def result(self) -> Result:
        """The outcome so far; final when `done`."""
        if self._stop is not None:
            status, problem, error = self._stop
        elif self._completed < len(self.procedure):
            index = self._frontier
            where = Occurrence(index, self.procedure.steps[index].id)
            status, problem, error = "failed", Problem(where, "the run has not ended"), None
        else:
            problem = error = None
            status = "unverified" if self._unverified or self._settings.observe else "verified"
        completed = self._stop is None and self._completed == len(self.procedure)
        return Result(
            status=status,
            answer=self._values[self.procedure.answer] if completed else None,
            values=self.values,
            steps=tuple(sorted(self._records, key=lambda record: record.occurrence.index)),
            attempts=tuple(self._attempts),
            usage=self._spending.usage,
            seconds=self._now - self._started,
            procedure=self.procedure.name,
            run_id=self.run_id,
            completed=self._completed,
            total=len(self.procedure),
            unverified=tuple(self._unverified),
            problem=problem,
            error=error,
        )


def _with_timeout(request: Request, timeout: float) -> Request:
    return Request(
        request.messages,
        request.steps,
        request.values,
        request.reply_format,
        request.temperature,
        request.max_tokens,
        request.seed,
        timeout,
        request.attempt,
    )
