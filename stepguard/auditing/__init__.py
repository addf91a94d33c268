"""Audits of transcripts: what went wrong in an unguarded run, step by step, and which equalities are false.

`audit` judges a transcript against a procedure; `false_links` needs none.
"""

from __future__ import annotations

from stepguard.auditing.audits import audit
from stepguard.auditing.findings import FINDING_KINDS, FinalAnswer, Finding, FindingKind, StepAudit, StepVerdict
from stepguard.auditing.lines import Span
from stepguard.auditing.links import FalseLink, Link, LinkVerdict, check_links, false_links
from stepguard.auditing.outcome import Audit

__all__ = [
    "FINDING_KINDS",
    "Audit",
    "FalseLink",
    "FinalAnswer",
    "Finding",
    "FindingKind",
    "Link",
    "LinkVerdict",
    "Span",
    "StepAudit",
    "StepVerdict",
    "audit",
    "check_links",
    "false_links",
]
