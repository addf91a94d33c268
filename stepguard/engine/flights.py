"""A flight: one segment on its way from its question to its commit, and the phases that it passes through.

    Asking  -> Waiting                no reply came, and the same request is sent again later
            -> Asking                 a draft came: the reply that is made of it is asked for
            -> Checking               claims were read
    Waiting -> Asking                 the time has passed
    Recording -> Computing, Checking, Committing   a call of a tool is durable, before it and with what it gave
    Computing -> Recording            a tool has returned
    Computing -> Checking             code found the value of a step that has checks of its own
    Checking -> Checking              the steps that stood in for one were accepted: that one is judged itself
    Checking, Computing -> Committing what was accepted is made durable

Every phase waits for the event that answers one action, and is over with it. A flight has landed when nothing is left
to wait for: from `Committing`, or earlier where nothing was accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from stepguard.backends.base import Backend, Completion, Request
from stepguard.core.usage import Usage
from stepguard.core.verdicts import Deviation
from stepguard.engine.actions import OperationCall
from stepguard.engine.journal import KeptStep
from stepguard.engine.schedule import Segment
from stepguard.language.values import Value
from stepguard.procedure.steps import Step
from stepguard.repair.rewriting import StandIn
from stepguard.repair.rungs import Rung
from stepguard.results import Occurrence, StepRecord


@dataclass(frozen=True, slots=True)
class Flight:
    """What one flight asks, and how; constant through its phases, but for the second request of a draft.

    Attributes:
        segment: the steps of the procedure.
        rung: the way in which they are asked.
        request: what is sent to the model; None for a step that code performs.
        stand_in: what is asked in the place of its only step, None where the steps are asked themselves.
        parts: the values of the steps of a stand-in that are verified; they are not asked again.
        drafting: whether the request is for a draft, of which the next one makes a reply.
    """

    segment: Segment
    rung: Rung
    request: Request | None
    stand_in: StandIn | None = None
    parts: Mapping[str, Value] = field(default_factory=dict)
    drafting: bool = False

    @property
    def questions(self) -> tuple[Step, ...]:
        """The steps that the model is asked."""
        return self.segment.steps if self.stand_in is None or self.request is None else self.request.steps

    @property
    def calls(self) -> int:
        """How many calls are still to be made at least: a draft is worth nothing without the reply made of it."""
        return 2 if self.drafting else 1

    @property
    def first(self) -> Occurrence:
        """The step that leads it."""
        return self.segment.occurrences[0]


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back from the model.

    Attributes:
        completion: as it came, or an empty one where what came is no completion.
        usage: what the call cost.
        sent_at: when the request was handed out.
        seconds: how long the reply took from then.
        deviations: what is wrong with the reply itself.
        readable: whether a claim could be read in it.
        runaway: whether it ran on and on (see `stepguard.replies.partial`).
        backend: who replied; None for the guard's own model.
    """

    completion: Completion
    usage: Usage
    sent_at: float
    seconds: float
    deviations: tuple[Deviation, ...] = ()
    readable: bool = False
    runaway: bool = False
    backend: Backend | None = None

    def all_deviations(self, rejections: Iterable[Rejection]) -> tuple[Deviation, ...]:
        """What is wrong with the reply, and with the steps that were not accepted."""
        refused = (item.deviation for item in rejections if item.deviation not in self.deviations)
        return (*self.deviations, *refused)


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a step was not accepted.

    Attributes:
        where: the step.
        deviation: what is wrong about it.
        wrong: the value that was claimed for it, None where there was none.
        hopeless: whether a check said that no other claim can fare better.
        advanced: whether steps that stood in for it were verified that were not before, though not all of them.
    """

    where: Occurrence
    deviation: Deviation
    wrong: str | None = None
    hopeless: bool = False
    advanced: bool = False


@dataclass(frozen=True, slots=True)
class Computing:
    """Code, a function or a tool performs the only step: `Act` is to be answered.

    Attributes:
        flight: the step.
        tries: how often that has failed before.
        call: the call of a tool, where it is made durable.
    """

    flight: Flight
    tries: int = 0
    call: OperationCall | None = None


@dataclass(frozen=True, slots=True)
class Recording:
    """The call of a tool that `computing` is about is made durable: `Commit` is to be answered."""

    computing: Computing

    @property
    def flight(self) -> Flight:
        """The step."""
        return self.computing.flight


@dataclass(frozen=True, slots=True)
class Asking:
    """The model is asked: `Ask` is to be answered.

    Attributes:
        flight: what is asked.
        sent: how often this request was sent, this time included.
        sent_at: when it was handed out; before that of no meaning.
        backend: who is asked; None for the guard's own model.
        watched: whether the reply may be stopped.
    """

    flight: Flight
    sent: int = 0
    sent_at: float = 0.0
    backend: Backend | None = None
    watched: bool = False

    def handed_out(self, now: float) -> Asking:
        """The same once the request is sent."""
        return replace(self, sent=self.sent + 1, sent_at=now)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The last try failed, the next one comes when `Wait` is answered; see `Asking`."""

    flight: Flight
    sent: int
    since: float


@dataclass(frozen=True, slots=True)
class Checking:
    """Claims are judged: `CheckClaims` is to be answered.

    Attributes:
        flight: what was asked.
        reply: what the model replied, None where code found the value.
        rejection: the step for which no claim could be read, None where every step has one.
        restored: whether it is the value that followed from a stand-in which is judged.
        kept: what is durable of the steps; it is judged again, and nobody was asked.
    """

    flight: Flight
    reply: Reply | None
    rejection: Rejection | None = None
    restored: bool = False
    kept: tuple[KeptStep, ...] = ()

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """The step for which no claim could be read."""
        return () if self.rejection is None else (self.rejection,)


@dataclass(frozen=True, slots=True)
class Committing:
    """What was accepted is made durable: `Commit` is to be answered, unless nothing was accepted.

    Attributes:
        flight: what was asked.
        reply: what the model replied, None where code found the value.
        records: the accepted steps.
        rejection: the first step that was not accepted, None where all were.
        right: how many steps were accepted before the first that deviated; where a run only observes, steps behind it
            are taken all the same.
        others: the further steps whose claim was wrong.
    """

    flight: Flight
    reply: Reply | None
    records: tuple[StepRecord, ...] = ()
    rejection: Rejection | None = None
    right: int = 0
    others: tuple[Rejection, ...] = ()

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """The steps that were not accepted, in order."""
        return () if self.rejection is None else (self.rejection, *self.others)


Phase = Computing | Recording | Asking | Waiting | Checking | Committing
