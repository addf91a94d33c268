"""What an audit says: a verdict for every step, findings with their places, and the final answer."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from stepguard.auditing.lines import Span
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


@dataclass(frozen=True, slots=True)
class Audit:
    """What went wrong in an unguarded run of a procedure.

    Attributes:
        procedure: the name of the procedure.
        steps: a verdict for every step, in the order of the procedure.
        findings: everything that is wrong, in the order of the text; what has no place stands at the end.
        answer: the final answer that counts, the last one that is marked; None where there is none.
        expected_answer: the right answer, None where no expression says it.
        answer_right: whether the marked answer is right, read strictly; None where nothing says what is right.
        answer_right_lenient: the same, with words around the number allowed, and read from the answer's own step where
            nothing is marked.
    """

    procedure: str
    steps: tuple[StepAudit, ...]
    findings: tuple[Finding, ...]
    answer: FinalAnswer | None
    expected_answer: Value | None
    answer_right: bool | None
    answer_right_lenient: bool | None

    @property
    def ok(self) -> bool:
        """Whether every step is right and nothing else is wrong."""
        return not self.findings and all(step.verdict == "right" for step in self.steps)

    @property
    def wrong(self) -> bool:
        """Whether anything is wrong; neither this nor `ok` where something could not be judged."""
        return bool(self.findings)

    @property
    def first_error(self) -> StepAudit | None:
        """The first step that is wrong or missing."""
        return next((step for step in self.steps if step.verdict in ("wrong", "missing")), None)

    def of(self, kind: FindingKind) -> tuple[Finding, ...]:
        """The findings of one kind."""
        return tuple(finding for finding in self.findings if finding.kind == kind)

    def to_dict(self) -> dict[str, Any]:
        """As JSON data; values are exact text. `json_schema` says what it looks like."""
        from stepguard.auditing.view import AuditView  # not worth the time of every import

        return AuditView.model_validate(self).model_dump()

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """The JSON Schema of what `to_dict` gives."""
        from stepguard.auditing.view import AuditView

        return AuditView.model_json_schema(mode="serialization")

    def to_json(self) -> str:
        """As a JSON document."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)
