"""The JSON of an audit: one model for each part writes it, and is its schema."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from stepguard.auditing.findings import Finding, StepAudit
from stepguard.language.lines import Span
from stepguard.language.values import show_value

ValueText = Annotated[str, BeforeValidator(lambda value: value if isinstance(value, str) else show_value(value))]
"""An exact value as text."""


class _View(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class FinalAnswerView(_View):
    """A marked final answer; see `FinalAnswer`."""

    text: str
    place: Span
    value: ValueText | None
    strict: bool


class AuditSummary(_View):
    """What every report on a transcript holds; see `Audit`."""

    ok: bool
    wrong: bool
    findings: list[Finding]
    steps: list[StepAudit]
    answer_right: bool | None


class AuditView(AuditSummary):
    """Everything of an audit; see `Audit`."""

    procedure: str
    answer: FinalAnswerView | None
    expected_answer: ValueText | None
    answer_right_lenient: bool | None
