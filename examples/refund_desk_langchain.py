"""The refund desk with an agent of LangChain: its tools stand behind the gate of a policy.

python examples/refund_desk_langchain.py

No key is needed: the model is a double. Needs the extra ``langchain``.
"""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from refund_desk import PAID, SCRIPT, desk_gate, get_order

from stepguard.integrations.langchain.tools import PolicyMiddleware
from stepguard.integrations.tool_gate import current_decision


class Double(GenericFakeChatModel):  # type: ignore[misc, unused-ignore]
    """A model that plays the agent, whatever tools it is offered."""

    def bind_tools(self, tools: Any, **_: Any) -> Double:
        """Itself: what it calls is in its script."""
        return self


def refund(order: str, amount: float) -> str:
    """Pay money back; the key of the call is that of the decision."""
    decision = current_decision()
    assert decision is not None
    PAID.append((order, amount, decision.key or ""))
    return f"{amount} paid back"


def main() -> None:
    """The agent wants too much, is told so, and does it the right way."""
    calls = [
        AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{number}", "type": "tool_call"}])
        for number, (name, arguments) in enumerate(SCRIPT)
    ]
    model = Double(messages=iter([*calls, AIMessage("Done: 120.00 EUR are on their way.")]))
    agent = create_agent(model, tools=[get_order, refund], middleware=[PolicyMiddleware(desk_gate())])
    question: Any = {"messages": [("user", "I want 500 EUR back for order A1.")]}
    state = agent.invoke(question)
    for message in state["messages"]:
        if isinstance(message, ToolMessage):
            print(f"{message.name}: {message.content}")
    print(state["messages"][-1].content)
    print("paid:", [(order, amount) for order, amount, _ in PAID])


if __name__ == "__main__":
    main()
