"""The audit of a transcript, of a list of steps or of a procedure with branches and loops."""

from __future__ import annotations

from collections.abc import Mapping

from stepguard.auditing.branching import BranchingAuditor
from stepguard.auditing.judging import Auditor
from stepguard.auditing.outcome import Audit
from stepguard.core.arguments import check_seconds
from stepguard.errors import ConfigError
from stepguard.procedure.procedure import Procedure, check_procedure


def audit(
    procedure: Procedure, inputs: Mapping[str, object], transcript: str, *, check_timeout: float | None = 60.0
) -> Audit:
    """Say what went wrong in an unguarded run of a procedure.

    Every step gets a verdict with its place in the text. Each claim is judged twice: against the true values, and
    against those that the transcript itself claims before it, so that a step that follows an earlier error
    (``inherited``) is told from one that makes its own.

    No transcript makes this raise: what cannot be read is not judged, and never called right.

    Args:
        procedure: what was to be carried out.
        inputs: the inputs of the run.
        transcript: what the model wrote: lines, lists, a table, prose, LaTeX or JSON.
        check_timeout: seconds that one check of the user's may take.

    Raises:
        InputError: the inputs are not those of the procedure.
        ConfigError: `procedure` is not a `Procedure`; the transcript is not text.
    """
    check_procedure(procedure)
    if not isinstance(transcript, str):  # it may hold a caller's data
        raise ConfigError(f"transcript is text, not a {type(transcript).__name__}", option="transcript")
    check_seconds(check_timeout, "check_timeout", positive=True, optional=True)
    values = procedure.accept_inputs(inputs)
    auditor = Auditor if procedure.straight else BranchingAuditor
    return auditor(procedure, values, transcript, check_timeout).audit()
