"""A LangChain agent that carries out the procedures it is given, guarded, and chats as ever otherwise.

python examples/langchain_agent.py            (needs ``pip install "stepguard[langchain]"``)

No key is needed: the model is LangChain's own double, and slips once. Put ``"openai:gpt-4.1-mini"`` in its place to ask
a real one.
"""

from __future__ import annotations

import json
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from stepguard import Procedure
from stepguard.integrations.langchain import GuardedCallRefused, GuardMiddleware

INVOICE = Procedure.parse("""
name: invoice
inputs: price, quantity
subtotal = price * quantity
tax: decimal(2) = subtotal * 8.25 / 100
total: decimal(2) = subtotal + tax
""")
SLIPS = {"subtotal": "24.90 * 3 = 74.70", "tax": "74.70 * 8.25 / 100 = 6.17", "total": "74.70 + 6.17 = 80.87"}
MENDED = ({"tax": "74.70 * 8.25 / 100 = 6.16"}, {"total": "74.70 + 6.16 = 80.86"})


def double(*replies: dict[str, str] | str) -> Any:
    """A chat model that gives these replies, one after the other."""
    texts = [each if isinstance(each, str) else json.dumps(each) for each in replies]
    return GenericFakeChatModel(messages=iter([AIMessage(text) for text in texts]))


def main() -> None:
    """The same agent asked for an order, and for something else; and one whose model insists on a wrong step."""

    def order(request: Any) -> Any:
        return request.runtime.context

    def guard(**options: Any) -> Any:
        """What runs where there is an order; the application says so, and no message."""
        return GuardMiddleware(procedure=lambda request: INVOICE if order(request) else None, inputs=order, **options)

    def ask(agent: Any, words: str, **more: Any) -> Any:
        return agent.invoke({"messages": [{"role": "user", "content": words}]}, **more)

    agent: Any = create_agent(double(SLIPS, *MENDED, "Good morning."), middleware=[guard()], context_schema=dict)
    state = ask(agent, "What does this order cost?", context={"price": "24.90", "quantity": 3})
    print(state["messages"][-1].content)
    result = state["stepguard"]
    print(result.status, "after", result.usage.calls, "calls;", "caught:", result.attempts[0].deviations[0].kind)
    print("passed on:", ask(agent, "Hello!")["messages"][-1].content)

    stubborn: Any = create_agent(double(*[SLIPS] * 3), middleware=[guard(repair=2)], context_schema=dict)
    try:
        ask(stubborn, "What does this order cost?", context={"price": "24.90", "quantity": 3})
    except GuardedCallRefused as error:
        result = error.result
        print(f"no answer: {result.problem}; verified: {', '.join(each.occurrence.step for each in result.steps)}")


if __name__ == "__main__":
    main()
