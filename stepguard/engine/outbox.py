"""The actions that are to be answered, each with the phase of the flight that waits for it."""

from __future__ import annotations

from stepguard.engine.actions import Action, Clock, Event, misfit
from stepguard.engine.flights import Phase
from stepguard.errors import UsageError


class Outbox:
    """The outstanding actions of a run, whether they were handed out yet or not.

    Args:
        run_id: the name of the run, the first part of every action id.
    """

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self._count = 0
        self._outstanding: dict[str, tuple[Action, Phase]] = {}
        self._waiting: dict[str, Action] = {}  # those of them that were not handed out yet
        self._dropped: set[str] = set()  # handed out, then called back: a late answer is no error

    def __len__(self) -> int:
        return len(self._outstanding)

    def all(self) -> list[tuple[Action, Phase]]:
        """Every action that is to be answered, the oldest first."""
        return list(self._outstanding.values())

    def new_id(self) -> str:
        """An id for the next action."""
        self._count += 1
        return f"{self.run_id}:{self._count}"

    def put(self, action: Action, phase: Phase) -> None:
        """Queue an action to be handed out, and answered."""
        self._outstanding[action.id] = (action, phase)
        self._waiting[action.id] = action

    def take(self) -> tuple[Action, Phase] | None:
        """Hand out the oldest action that was not handed out yet."""
        if not self._waiting:
            return None
        action = self._waiting.pop(next(iter(self._waiting)))
        return action, self._outstanding[action.id][1]

    def update(self, action: Action, phase: Phase) -> None:
        """The phase that waits for an outstanding action has changed."""
        self._outstanding[action.id] = (action, phase)

    def waits(self, action: Action) -> bool:
        """Whether an action was not handed out yet."""
        return action.id in self._waiting

    def drop(self, action: Action) -> None:
        """Expect nothing of an action any more; an event that answers it all the same is ignored."""
        del self._outstanding[action.id]
        if self._waiting.pop(action.id, None) is None:
            self._dropped.add(action.id)

    def answered(self, event: Event) -> tuple[Action, Phase] | None:
        """The action that an event answers, which is done with; None where it was dropped.

        Raises UsageError: the event answers no outstanding action, or does not fit it. Nothing has changed then.
        """
        assert not isinstance(event, Clock)
        if event.id in self._dropped:
            self._dropped.remove(event.id)
            return None
        if event.id not in self._outstanding or event.id in self._waiting:
            raise UsageError(f"{type(event).__name__} answers {event.id!r}, which is not outstanding in this run")
        action, phase = self._outstanding[event.id]
        reason = misfit(event, action)
        if reason is not None:
            raise UsageError(f"{type(event).__name__} cannot answer {event.id!r}: {reason}")
        del self._outstanding[event.id]
        return action, phase
