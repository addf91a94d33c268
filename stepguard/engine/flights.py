"""What is on its way: the segments between their question and their commit, and the actions they wait for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from stepguard.backends.base import Completion, Request
from stepguard.core.usage import Usage
from stepguard.core.verdicts import Deviation
from stepguard.engine.actions import Action, Clock, Event, misfit
from stepguard.engine.schedule import Segment
from stepguard.errors import UsageError
from stepguard.language.values import Value
from stepguard.procedure.steps import Step
from stepguard.repair.rewriting import StandIn
from stepguard.repair.rungs import Rung
from stepguard.replies.reading import Reading
from stepguard.results import Occurrence, StepRecord

__all__ = ["Flight", "Outbox"]

_NOTHING: Final = Usage()


@dataclass(slots=True)
class Flight:
    """One segment on its way from the question to the commit; without a request, a step performed by code.

    Attributes:
        stand_in: what is asked in the place of its only step, None where the steps are asked themselves.
        parts: the values of the steps of a stand-in that are verified; they are not asked again.
        advanced: whether steps of the stand-in were verified that were not before, though not all of them.
        drafting: whether the reply that is waited for is a draft.
        restored: whether what was checked last is the value that followed from the stand-in.
        right: how many steps were accepted before the first that deviated, if one did: see `deviated`.
        deviated: whether one did; where a run only observes, the steps behind it are taken all the same.
        wrong: the value that was claimed for the step to blame, None where there was none.
    """

    segment: Segment
    rung: Rung
    request: Request | None
    stand_in: StandIn | None = None
    parts: Mapping[str, Value] = field(default_factory=dict)
    advanced: bool = False
    drafting: bool = False
    restored: bool = False
    right: int = 0
    deviated: bool = False
    wrong: str | None = None
    sent: int = 0
    asked_at: float = 0.0
    waits_since: float = 0.0
    seconds: float = 0.0
    usage: Usage = _NOTHING
    completion: Completion | None = None
    reading: Reading | None = None
    records: list[StepRecord] = field(default_factory=list)
    blame: tuple[Occurrence, Deviation] | None = None
    hopeless: bool = False

    @property
    def asked(self) -> tuple[Step, ...]:
        """The steps that the model is asked."""
        return self.segment.steps if self.stand_in is None else self.stand_in.behind(self.parts)

    @property
    def calls(self) -> int:
        """How many calls are still to be made at least: a draft is worth nothing without the reply made of it."""
        return 2 if self.drafting else 1

    @property
    def first(self) -> Occurrence:
        """The step that leads it."""
        return self.segment.occurrences[0]


class Outbox:
    """The actions of a run that are to be answered, each with its flight, whether they were handed out yet or not.

    Args:
        run_id: the first part of every action id.
    """

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._count = 0
        self._outstanding: dict[str, tuple[Action, Flight]] = {}
        self._waiting: dict[str, Action] = {}  # those of them that were not handed out yet
        self._dropped: set[str] = set()  # handed out, and of no interest any more

    def __len__(self) -> int:
        return len(self._outstanding)

    def all(self) -> list[tuple[Action, Flight]]:
        """Every action that is to be answered, the oldest first."""
        return list(self._outstanding.values())

    def new_id(self) -> str:
        """An id for the next action."""
        self._count += 1
        return f"{self._run_id}:{self._count}"

    def put(self, action: Action, flight: Flight) -> None:
        """An action is to be handed out, and answered."""
        self._outstanding[action.id] = (action, flight)
        self._waiting[action.id] = action

    def take(self) -> tuple[Action, Flight] | None:
        """The oldest action that was not handed out yet; it is now."""
        if not self._waiting:
            return None
        action = self._waiting.pop(next(iter(self._waiting)))
        return action, self._outstanding[action.id][1]

    def waits(self, action: Action) -> bool:
        """Whether an action was not handed out yet."""
        return action.id in self._waiting

    def drop(self, action: Action) -> None:
        """Expect nothing of an action any more; an event that answers it all the same is ignored."""
        del self._outstanding[action.id]
        if self._waiting.pop(action.id, None) is None:
            self._dropped.add(action.id)

    def answered(self, event: Event) -> tuple[Action, Flight] | None:
        """The action that an event answers, which is done with; None where it was dropped.

        Raises:
            UsageError: the event answers no outstanding action, or does not fit it. Nothing has changed then.
        """
        assert not isinstance(event, Clock)
        if event.id in self._dropped:
            self._dropped.remove(event.id)
            return None
        if event.id not in self._outstanding or event.id in self._waiting:
            raise UsageError(f"{type(event).__name__} answers {event.id!r}, which is not outstanding in this run")
        action, flight = self._outstanding[event.id]
        reason = misfit(event, action)
        if reason is not None:
            raise UsageError(f"{type(event).__name__} cannot answer {event.id!r}: {reason}")
        del self._outstanding[event.id]
        return action, flight
