"""The desk of the examples on policies: rules in `refund_desk.policy`, two tools, and an agent that wants too much.

python examples/refund_desk.py

A plain tool loop as an OpenAI client is used; the client is a double, so that no key is needed. The agent tries to pay
back what it has not looked up, then more than was paid; each time it is told what the rule is and what comes first.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from stepguard import Policy
from stepguard.integrations.tool_gate import ToolGate
from stepguard.policy import Decision

POLICY = Policy.load(Path(__file__).with_suffix(".policy"))
PAID: list[tuple[str, float, str]] = []
SCRIPT: list[tuple[str, dict[str, Any]]] = [
    ("refund", {"order": "A1", "amount": 500}),
    ("get_order", {"order": "A1"}),
    ("refund", {"order": "A1", "amount": 500}),
    ("refund", {"order": "A1", "amount": 120}),
]
"""What the agent does, one call after the other."""


def get_order(order: str) -> dict[str, Any]:
    """An order of the shop."""
    return {"customer": "C1", "paid": "120.00", "placed": "2026-03-01T10:00:00Z"}


def refund(order: str, amount: float, idempotency_key: str = "") -> str:
    """Pay money back."""
    PAID.append((order, amount, idempotency_key))
    return f"{amount} paid back"


def manager(decision: Decision, role: str) -> bool:
    """The manager, who agrees; a person would be asked here."""
    print(f"the {role} agrees to {decision.tool} {dict(decision.arguments)}")
    return True


def desk_gate(**tools: Any) -> ToolGate:
    """The gate of one conversation; who the customer is, the host knows from its own sign-in."""
    return ToolGate(
        POLICY, tools, facts={"customer": "C1"}, confirm=manager, clock=lambda: datetime(2026, 3, 10, tzinfo=UTC)
    )


def double() -> Any:
    """Something with ``chat.completions.create`` that plays the agent."""
    left = list(enumerate(SCRIPT))

    def create(*, messages: list[dict[str, Any]]) -> SimpleNamespace:
        if not left:
            return SimpleNamespace(tool_calls=None, content="Done: 120.00 EUR are on their way.")
        number, (name, arguments) = left.pop(0)
        function = SimpleNamespace(name=name, arguments=json.dumps(arguments))
        return SimpleNamespace(tool_calls=[SimpleNamespace(id=f"call-{number}", function=function)], content=None)

    return SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))


def main() -> None:
    """The loop: what the model calls goes through the gate, and what comes of it goes back to the model."""
    gate = desk_gate(get_order=get_order, refund=refund)
    client, messages = double(), [{"role": "user", "content": "I want 500 EUR back for order A1."}]
    while True:
        message = client.chat.completions.create(messages=messages)
        if not message.tool_calls or gate.handed_over:
            print(message.content)
            break
        for answer in gate.answer(message):
            print(f"{message.tool_calls[0].function.name}: {answer['content']}")
            messages.append(answer)
    print("paid:", [(order, amount) for order, amount, _ in PAID])


if __name__ == "__main__":
    main()
