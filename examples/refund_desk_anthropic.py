"""The refund desk with Anthropic's messages: tool uses go through the gate of a policy.

python examples/refund_desk_anthropic.py

The client is a double, so that neither a key nor the package is needed; `anthropic.Anthropic()` has the same method.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from refund_desk import PAID, SCRIPT, desk_gate, get_order, refund

from stepguard.integrations.anthropic_tools import answer_tool_uses


def double() -> Any:
    """Something with ``messages.create`` that plays the agent."""
    left = list(enumerate(SCRIPT))

    def create(*, messages: list[dict[str, Any]]) -> SimpleNamespace:
        if not left:
            return SimpleNamespace(
                content=[{"type": "text", "text": "Done: 120.00 EUR are on their way."}], stop_reason="end_turn"
            )
        number, (name, arguments) = left.pop(0)
        use = {"type": "tool_use", "id": f"use-{number}", "name": name, "input": arguments}
        return SimpleNamespace(content=[use], stop_reason="tool_use")

    return SimpleNamespace(messages=SimpleNamespace(create=create))


def main() -> None:
    """The loop: what the model uses goes through the gate, and what comes of it goes back to the model."""
    gate = desk_gate(get_order=get_order, refund=refund)
    client = double()
    messages: list[dict[str, Any]] = [{"role": "user", "content": "I want 500 EUR back for order A1."}]
    while True:
        message = client.messages.create(messages=messages)
        messages.append({"role": "assistant", "content": message.content})
        if message.stop_reason != "tool_use" or gate.handed_over:
            print(message.content[0]["text"])
            break
        messages.append(answer_tool_uses(gate, message))
        for use, answer in zip(message.content, messages[-1]["content"], strict=True):
            print(f"{use['name']}: {answer['content']}")
    print("paid:", [(order, amount) for order, amount, _ in PAID])


if __name__ == "__main__":
    main()
