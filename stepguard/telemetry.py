"""Events for logs: what happened, by stable names and ids, never what was said.

=================  ==========  ===============================================================================
event              level       with
=================  ==========  ===============================================================================
``step_done``      info        run_id, procedure, step, index, verified, strength, tries, assistance, deviations (kinds)
``call_failed``    warning     run_id, procedure, steps (how many were asked), error (the name of its class)
``run_done``       info        run_id, procedure, status, completed, total, calls, tokens, seconds, step, kind
``chat_guarded``   info        run_id, procedure, found, left_out; of a chat call that became a run
``chat_passed``    info        of a chat call that was passed on as it came
``output_judged``  info        procedure, verified, step, kind; of the output of an agent or a tool
``request_done``   info        endpoint, handling, outcome, seconds, run_id; of a request to ``stepguard serve``
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

__all__ = ["Observer", "Telemetry", "careful", "tell"]

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
        self._about: Final = f"run {run_id}"
        self._observer: Final = observer

    def performed(self, action: Action, event: Event) -> None:
        """An action was performed."""
        careful(self._log_performed, action, event, about=self._about)
        if self._observer is not None:
            careful(self._observer, action, event, about=self._about)

    def done(self, result: Result) -> None:
        """The run has ended."""
        careful(self._log_done, result, about=self._about)

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
        log = _logger(level)
        return None if log is None else log.bind(**self._ids)


def careful(tell: Callable[..., object], *what: object, about: str) -> None:
    """Call what may be foreign code; what it raises is logged and changes nothing."""
    try:
        tell(*what)
    except Exception:
        with suppress(Exception):  # the same handler may fail on this as well
            logging.getLogger(_NAME).exception("a log handler or observer failed on %s", about)


def tell(event: str, **facts: object) -> None:
    """An event outside of a run, of level info."""

    def log() -> None:
        if (found := _logger("info")) is not None:
            found.info(event, **facts)

    careful(log, about=event)


def _logger(level: Literal["info", "warning"]) -> Any:
    """Where an event of this level goes now; None where nobody would see it."""
    configured: Any = sys.modules.get("structlog")  # whoever has configured it has imported it
    if configured is not None and configured.is_configured():
        return configured.get_logger(_NAME)
    logger = logging.getLogger(_NAME)
    if not logger.isEnabledFor(_LEVELS[level]):
        return None
    import structlog

    render = structlog.processors.KeyValueRenderer(key_order=["event"])
    return structlog.wrap_logger(logger, processors=[render], wrapper_class=structlog.BoundLogger)
