"""Policies: rules that the tool calls of an agent have to keep, and the gate that holds them.

A policy in text (its grammar is `grammar.lark` behind that of procedures, whose expressions it shares)::

    record Order:
      customer: text
      paid: money(EUR)
    tool get_order(id: text) -> Order reads
    tool refund(order: text, amount: money(EUR)) changes get_order(order)
    fact customer: text
    before refund(id, amount):
      seen get_order(id) as order
      require order.customer == customer "Only orders of this customer are paid back."
      require amount <= order.paid
      confirmed by user
      at most once per id

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
