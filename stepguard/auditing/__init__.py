"""Audits of transcripts: what went wrong in an unguarded run, step by step, and which equalities are false.

`audit` judges a transcript against a procedure; `false_links` needs none.
"""

from __future__ import annotations

from stepguard.auditing.audits import audit
from stepguard.auditing.findings import FINDING_KINDS, FinalAnswer, Finding, FindingKind, StepAudit, StepVerdict
from stepguard.auditing.outcome import Audit
from stepguard.language.lines import Span
from stepguard.language.links import FalseLink, Link, LinkVerdict, check_links, false_links

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
