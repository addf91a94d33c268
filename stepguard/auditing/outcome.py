"""What an audit comes to, as an object and as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from stepguard.auditing.findings import FinalAnswer, Finding, FindingKind, StepAudit
from stepguard.language.values import Value


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
