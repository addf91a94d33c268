"""The refund desk with an agent of pydantic-ai: its tools stand behind the gate of a policy.

python examples/refund_desk_pydantic_ai.py

No key is needed: the model is pydantic-ai's own double. Needs the extra ``pydantic-ai``.
"""

from __future__ import annotations

from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset
from refund_desk import PAID, SCRIPT, desk_gate, get_order

from stepguard.integrations.pydantic_ai.tools import GatedToolset
from stepguard.integrations.tool_gate import current_decision


def refund(order: str, amount: float) -> str:
    """Pay money back; the key of the call is that of the decision."""
    decision = current_decision()
    assert decision is not None
    PAID.append((order, amount, decision.key or ""))
    return f"{amount} paid back"


def main() -> None:
    """The agent wants too much, is told so, and does it the right way."""
    left = list(SCRIPT)

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if not left:
            return ModelResponse([TextPart("Done: 120.00 EUR are on their way.")])
        return ModelResponse([ToolCallPart(*left.pop(0))])

    tools = GatedToolset(FunctionToolset([get_order, refund]), desk_gate())
    result = Agent(FunctionModel(answer), toolsets=[tools]).run_sync("I want 500 EUR back for order A1.")
    for message in result.all_messages():
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                print(f"{part.tool_name}: {part.content}")
    print(result.output)
    print("paid:", [(order, amount) for order, amount, _ in PAID])


if __name__ == "__main__":
    main()
