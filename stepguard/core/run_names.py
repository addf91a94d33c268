"""Names the run that a drop-in starts: its caller has no argument to pass a name by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from stepguard.core.arguments import check_run_id

_NAME: Final[ContextVar[str | None]] = ContextVar("stepguard_run_name", default=None)


@contextmanager
def named_run(run_id: str) -> Iterator[None]:
    """Name the run that a guard with a ledger starts inside without a ``run_id``, through whichever drop-in.

    A decorated function, a node of a graph, a tool or a model of an agent then goes on with the run of this name where
    it was begun before, in this process or another one: ``with named_run("refund 17"): agent.run_sync(...)``. One name
    is of one procedure with its inputs: a second run inside that is of another one raises `RunConflict`. Rows of
    `Guard.map` are called ``run_id/key``. Tasks and threads that copy the context have the name, too.

    Args:
        run_id: the name, a text of at most 200 characters on one line.

    Raises:
        ConfigError: it cannot name a run.
    """
    check_run_id(run_id)
    token = _NAME.set(run_id)
    try:
        yield
    finally:
        _NAME.reset(token)


def run_name(given: str | None, *, kept: bool) -> str | None:
    """The name of a run: that which was given, else that of the context where the run is kept."""
    return _NAME.get() if given is None and kept else given
