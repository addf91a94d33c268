"""Policies: rules that the tool calls of an agent have to keep, and the gate that holds them.

The grammar of a policy in text is `grammar.lark` behind that of procedures, whose expressions it shares;
docs/how-to/policies.md shows it.

What a rule reads comes from results of tools, from the host and from judgements that were checked; nothing that an
agent or a user says of a value counts.
"""

from __future__ import annotations

from stepguard.policy.decisions import Decision, FactQuestion, Reason
from stepguard.policy.gate import PolicyGate
from stepguard.policy.notes import PolicyNote
from stepguard.policy.policy import Policy
from stepguard.policy.rules import (
    Binding,
    Branching,
    CallPattern,
    Confirmation,
    Done,
    Earlier,
    Exemption,
    Fact,
    Limit,
    Parameter,
    Prohibition,
    Repetition,
    Requirement,
    Rule,
    Seen,
    SeenAll,
    ToolSignature,
)

__all__ = [
    "Binding",
    "Branching",
    "CallPattern",
    "Confirmation",
    "Decision",
    "Done",
    "Earlier",
    "Exemption",
    "Fact",
    "FactQuestion",
    "Limit",
    "Parameter",
    "Policy",
    "PolicyGate",
    "PolicyNote",
    "Prohibition",
    "Reason",
    "Repetition",
    "Requirement",
    "Rule",
    "Seen",
    "SeenAll",
    "ToolSignature",
]
