"""What an audit finds: a verdict for every step, findings with their places, and the final answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from stepguard.language.lines import Span
from stepguard.language.values import Value

StepVerdict = Literal["right", "wrong", "missing", "not_judged"]

FindingKind = Literal[
    "missing_step",
    "missing_answer",
    "premature_answer",
    "self_correction",
    "extra_step",
    "duplicate_step",
    "wrong_order",
    "wrong_operand",
    "wrong_value",
    "unfaithful_work",
    "inherited",
    "wrong_answer",
    "malformed",
    "truncated",
]
"""What can be wrong with a transcript; most words are those of `stepguard.core.verdicts.DeviationKind`.

=================  ===========================================================================================
missing_step       a step of the procedure is not carried out (under-executed)
missing_answer     no final answer is marked
premature_answer   a final answer is given before the steps are done
self_correction    something is taken back, or a step gets a second value
extra_step         a step that the procedure does not have
duplicate_step     a step is carried out twice, with the same value
wrong_order        a step stands before an earlier one
wrong_operand      the working uses another value than the step names
wrong_value        the value is wrong although the values it rests on are the transcript's own
unfaithful_work    the value is right, but the working shown is not this step's
inherited          the value is wrong, and right given the transcript's own wrong earlier values
wrong_answer       the marked answer is not the right one
malformed          a step is there, but no value can be read from it
truncated          the transcript ends in the middle of a step
=================  ===========================================================================================
"""

FINDING_KINDS: Final[tuple[str, ...]] = get_args(FindingKind)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: its kind, the step it concerns (None: the transcript as a whole), where, and why."""

    kind: FindingKind
    step: str | None
    place: Span | None
    reason: str


@dataclass(frozen=True, slots=True)
class StepAudit:
    """What a transcript says about one step.

    Attributes:
        step: the id of the step.
        index: its 0-based place in the procedure.
        verdict: right, wrong, missing or not judged.
        kind: why it is wrong, None where it is not.
        claimed: the value as it was written, None where none could be found.
        expected: the right value as text, None where there is none to compare with.
        reason: what the verdict rests on.
        place: where it stands, None where it is missing.
    """

    step: str
    index: int
    verdict: StepVerdict
    kind: FindingKind | None = None
    claimed: str | None = None
    expected: str | None = None
    reason: str = ""
    place: Span | None = None


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """A marked final answer.

    Attributes:
        text: what stands behind the marker.
        place: where it stands.
        value: the value, None where it cannot be read.
        strict: whether the value is all that stands there.
    """

    text: str
    place: Span
    value: Value | None
    strict: bool
