"""An agent of pydantic-ai, in two ways: its requests run guarded, or its structured output is checked.

python examples/pydantic_ai_agent.py

No key is needed: the model is pydantic-ai's own double, which slips once. Give the agent ``"openai:gpt-4.1-mini"`` to
ask a real one. Needs the extra ``pydantic-ai``.
"""

from __future__ import annotations

import json
from decimal import Decimal

from pydantic import BaseModel
from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from stepguard import Procedure
from stepguard.integrations.pydantic_ai import GuardedProcedures, NotVerified, VerifiedOutput, result_of

INVOICE = Procedure.parse("""
name: invoice
inputs: price, quantity
subtotal = price * quantity
tax: decimal(2) = subtotal * 8.25 / 100
total: decimal(2) = subtotal + tax
""")
ORDER = {"price": "24.90", "quantity": 3}


class Invoice(BaseModel):
    """What the agent is to give: a field for each step."""

    subtotal: Decimal
    tax: Decimal
    total: Decimal


def double(*replies: dict[str, str]) -> FunctionModel:
    """A model that gives these replies, the last one again and again."""
    left = list(replies)

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        reply = left.pop(0) if len(left) > 1 else left[0]
        tools = info.output_tools
        return ModelResponse([ToolCallPart(tools[0].name, dict(reply)) if tools else TextPart(json.dumps(reply))])

    return FunctionModel(answer)


def main() -> None:
    """A guarded request, one that cannot be verified, and an output that is mended."""
    slip = {"subtotal": "24.90 * 3 = 74.70", "tax": "74.70 * 8.25 / 100 = 6.17", "total": "74.70 + 6.17 = 80.87"}
    mended = ({"tax": "74.70 * 8.25 / 100 = 6.16"}, {"total": "74.70 + 6.16 = 80.86"})
    guarded = GuardedProcedures(procedure=INVOICE, inputs=ORDER, repair=2)

    agent = Agent(double(slip, *mended), output_type=Invoice, capabilities=[guarded])
    answer = agent.run_sync("What does this order cost?")
    result = result_of(answer)
    assert result is not None
    print("guarded:", answer.output, result.status, "after", answer.usage.requests, "calls")

    try:
        Agent(double(slip), capabilities=[guarded]).run_sync("What does this order cost?")
    except NotVerified as error:
        print("no answer:", str(error).partition(" (run")[0])

    checked = VerifiedOutput(INVOICE, inputs=ORDER)
    wrong = {"subtotal": "74.70", "tax": "6.17", "total": "80.87"}
    model = double(wrong, {"subtotal": "74.70", "tax": "6.16", "total": "80.86"})
    answer = Agent(model, output_type=Invoice, capabilities=[checked]).run_sync("Price 24.90, quantity 3: what is due?")
    print("checked:", answer.output, "after", answer.usage.requests, "calls")


if __name__ == "__main__":
    main()
