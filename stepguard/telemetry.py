"""Events for logs: what happened, by stable names and ids, never what was said.

=================  ==========  ===============================================================================
event              level       with
=================  ==========  ===============================================================================
``step_done``      info        run_id, procedure, step, index, verified, strength, tries, assistance, deviations (kinds)
``call_failed``    warning     run_id, procedure, steps (how many were asked), error (the name of its class)
``run_done``       info        run_id, procedure, status, completed, total, calls, tokens, seconds, step, kind
=================  ==========  ===============================================================================

Prompts, replies, values, inputs and the texts of errors are not logged: they may hold what must not be in logs. Who
wants them takes an `Observer`.

Where the application has configured structlog, events go through it, as configured at that moment. Otherwise they go
to the logger ``stepguard`` of the standard library, as one line of ``key=value``, and are dropped unless the
application handles them. Nothing here configures anything.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Literal

from stepguard.actions import Action, Ask, Commit, Event, Failed
from stepguard.results import Result

__all__ = ["Observer", "Telemetry"]

Observer = Callable[[Action, Event], None]
"""Called by `Guard.run` and `Guard.arun` with every performed action and the event that answered it."""

_NAME: Final = "stepguard"
_LEVELS: Final = {"info": logging.INFO, "warning": logging.WARNING}

logging.getLogger(_NAME).addHandler(logging.NullHandler())


class Telemetry:
    """What one run tells the outside. What a log handler or an observer raises is logged and does not stop the run.

    Args:
        run_id: the id of the run.
        procedure: the name of the procedure.
        observer: called with every performed action and its event.
    """

    def __init__(self, run_id: str, procedure: str, observer: Observer | None = None) -> None:
        self._ids: Final = {"run_id": run_id, "procedure": procedure}
        self._observer: Final = observer

    def performed(self, action: Action, event: Event) -> None:
        """An action was performed."""
        self._careful(self._log_performed, action, event)
        if self._observer is not None:
            self._careful(self._observer, action, event)

    def done(self, result: Result) -> None:
        """The run has ended."""
        self._careful(self._log_done, result)

    def _careful(self, tell: Callable[..., None], *what: object) -> None:
        try:
            tell(*what)
        except Exception:
            with suppress(Exception):  # the same handler may fail on this as well
                logging.getLogger(_NAME).exception("a log handler or observer failed on run %s", self._ids["run_id"])

    def _log_performed(self, action: Action, event: Event) -> None:
        if isinstance(action, Commit) and (log := self._logger("info")) is not None:
            for record in action.records:
                log.info(
                    "step_done",
                    step=record.occurrence.step,
                    index=record.occurrence.index,
                    verified=record.verified,
                    strength=record.strength,
                    tries=record.tries,
                    assistance=record.assistance,
                    deviations=[deviation.kind for deviation in record.deviations],
                )
        elif isinstance(action, Ask) and isinstance(event, Failed) and (log := self._logger("warning")) is not None:
            log.warning("call_failed", steps=len(action.request.steps), error=type(event.error).__name__)

    def _log_done(self, result: Result) -> None:
        if (log := self._logger("info")) is None:
            return
        problem = result.problem
        log.info(
            "run_done",
            status=result.status,
            completed=result.completed,
            total=result.total,
            calls=result.usage.calls,
            tokens=result.usage.tokens,
            seconds=round(result.seconds, 3),
            step=problem.occurrence.step if problem else None,
            kind=problem.deviation.kind if problem and problem.deviation else None,
        )

    def _logger(self, level: Literal["info", "warning"]) -> Any:
        """Where an event of this level goes now; None where nobody would see it."""
        configured: Any = sys.modules.get("structlog")  # whoever has configured it has imported it
        if configured is not None and configured.is_configured():
            return configured.get_logger(_NAME).bind(**self._ids)
        logger = logging.getLogger(_NAME)
        if not logger.isEnabledFor(_LEVELS[level]):
            return None
        import structlog

        render = structlog.processors.KeyValueRenderer(key_order=["event"])
        return structlog.wrap_logger(logger, processors=[render], wrapper_class=structlog.BoundLogger).bind(**self._ids)
