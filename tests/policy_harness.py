"""A shop's policy and its gate, for tests."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from stepguard import Policy
from stepguard.policy import Decision, PolicyGate

SHOP: Final = """
name: shop

record Order:
  id: text
  customer: text
  paid: money(EUR)
  refunded: money(EUR) = 0
  placed: moment
  status: one_of(open, sent, cancelled) = "open"

tool get_order(id: text) -> Order reads
tool refund(order: text, amount: money(EUR)) -> Order changes get_order(order)
tool mail(to: text, words: text) changes nothing
tool close_account(customer: text)
fact customer: text
fact damaged[order: text]: boolean "Does the picture show damage?"

allow mail
never close_account "Accounts are closed by the office."
before refund(id, amount):
  seen get_order(id) as order
  require order.customer == customer "Only orders of this customer are paid back."
  require amount > 0
  require amount <= order.paid - order.refunded "No more than what was paid."
  if amount > 100:
    confirmed by manager
  require now.at - order.placed.at <= 30 days unless damaged[id] "After 30 days only what is damaged."
  at most 2 times per id
"""
NOW: Final = datetime(2026, 3, 10, 12, tzinfo=UTC)
ORDER: Final = {"id": "A1", "customer": "C1", "paid": 150, "placed": "2026-03-01T10:00:00Z", "colour": "red"}


class Desk:
    """An agent's desk: the gate of one conversation, and what its calls come to."""

    def __init__(self, policy: Policy | str = SHOP, **options: Any) -> None:
        self.policy = Policy.parse(policy) if isinstance(policy, str) else policy
        options.setdefault("conversation", "c")
        facts = {"customer": "C1"} if "customer" in self.policy.facts else {}
        self.gate: PolicyGate = self.policy.gate(**({"facts": facts} | options))
        self.count = 0

    def offer(self, tool: str, arguments: Any = None, *, now: datetime | None = NOW, **given: Any) -> Decision:
        """What becomes of a call under a new identifier."""
        self.count += 1
        text = arguments if isinstance(arguments, str) else json.dumps(given if arguments is None else arguments)
        return self.gate.offer(tool, text, id=f"call-{self.count}", now=now)

    def do(self, tool: str, result: Any = None, *, now: datetime | None = NOW, **given: Any) -> Decision:
        """A call that is let through, and its result."""
        decision = self.offer(tool, now=now, **given)
        assert decision.allowed, decision
        self.gate.result(decision.call, json.dumps(result))
        return decision

    def see(self, **changed: Any) -> None:
        """Look the order up."""
        self.do("get_order", {**ORDER, **changed}, id=changed.get("id", "A1"))


def kinds(decision: Decision) -> list[str]:
    """Why a call was not let through."""
    return [each.kind for each in decision.reasons]


def days(number: int) -> timedelta:
    """So many days."""
    return timedelta(days=number)
