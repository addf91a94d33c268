"""Hooks: let a host watch a run while it goes on, and do what it wants with that.

::

    class Watch(Hooks):
        def attempted(self, run: Run, attempt: Attempt) -> None:
            print(run.id, attempt.number, attempt.outcome, [each.kind for each in attempt.deviations])

    Guard(backend, observer=[Watch(), lambda action, event: ...])

Hooks are called by `Guard.run`, `Guard.arun`, `Guard.drive` and `Guard.adrive`, in the thread or task that drives
the run. One object may be given to many guards and see many runs at the same time: `run.id` tells them apart. What a
hook raises is logged and changes nothing; an exception that is no `Exception`, such as KeyboardInterrupt, ends the run.
They see everything, contents included. What they hand to a model may tell it what a checker knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from stepguard.errors import ConfigError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from stepguard.engine.actions import Action, Event
    from stepguard.engine.run import Run
    from stepguard.results import Attempt, Result

__all__ = ["Hooks", "Observer", "as_observers"]


class Hooks:
    """A base for what watches runs: override what you need, the rest does nothing.

    A hook may read the run, and may end it with `Run.cancel`; to answer its actions is the guard's.
    """

    def started(self, run: Run, /) -> None:
        """A guard begins to drive a run."""

    def performing(self, run: Run, action: Action, /) -> AbstractContextManager[object] | None:
        """An action is about to be performed; None, or a context manager to perform it in.

        The context is that of the model call or the check, also where these have a task or a thread of their own, so
        that context variables that are set in it hold there. It cannot swallow what is raised in it.
        """
        return None

    def performed(self, run: Run, action: Action, event: Event, /) -> None:
        """An action was performed, and the run has taken in the event that answers it."""

    def attempted(self, run: Run, attempt: Attempt, /) -> None:
        """A model call is done with: what came of it is known, its verdicts included.

        It follows the `performed` of the action that closed it. Where the guard's `history` is limited and more calls
        than it holds end at once, as by a cancellation, only the last of them are reported.
        """

    def done(self, run: Run, result: Result, /) -> None:
        """The run has ended, whether it finished, was cancelled or was interrupted; for each `started` once.

        It has not ended where actions of it are outstanding elsewhere, and `run.done` is false then.
        """


Observer = Hooks | Callable[["Action", "Event"], object]
"""What may watch a run: `Hooks`, or a function of every performed action and the event that answered it."""


def as_observers(observer: object) -> tuple[Observer, ...]:
    """Observers from what a caller gave: None, one, or several in a list or tuple.

    Raises:
        ConfigError: something among them is no observer.
    """
    if observer is None:
        return ()
    observers = observer if isinstance(observer, Sequence) and not isinstance(observer, str) else (observer,)
    for entry in observers:
        # A class can be called: it would be made anew with every event, and see nothing.
        if isinstance(entry, type):
            raise ConfigError(f"{entry.__name__} is a class: pass an instance of it as observer", option="observer")
        if not isinstance(entry, Hooks) and not callable(entry):
            raise ConfigError(
                f"observer is a function of action and event, an object of stepguard.telemetry.hooks.Hooks, or "
                f"a list of those, not {entry!r:.60}",
                option="observer",
            )
    return tuple(observers)
