"""The refund desk with an agent of the OpenAI Agents SDK: its tools stand behind the gate of a policy.

python examples/refund_desk_openai_agents.py

No key is needed: a double answers in the place of the model. Needs the extra ``agents``.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import agents
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage
from refund_desk import PAID, SCRIPT, desk_gate, get_order

from stepguard.integrations.openai_agents_tools import gated_tools
from stepguard.integrations.tool_gate import current_decision


def find_order(order: str) -> str:
    """An order of the shop, as JSON."""
    return json.dumps(get_order(order))


def refund(order: str, amount: float) -> str:
    """Pay money back; the key of the call is that of the decision."""
    decision = current_decision()
    assert decision is not None
    PAID.append((order, amount, decision.key or ""))
    return f"{amount} paid back"


class Double(agents.Model):  # type: ignore[misc, unused-ignore]
    """In the place of the agent's model: makes the calls of the script."""

    def __init__(self) -> None:
        self.left = list(enumerate(SCRIPT))

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> agents.ModelResponse:
        """Answer one turn."""
        said: Any
        if self.left:
            number, (name, arguments) = self.left.pop(0)
            said = ResponseFunctionToolCall(
                call_id=f"call-{number}", name=name, arguments=json.dumps(arguments), type="function_call"
            )
        else:
            text = "Done: 120.00 EUR are on their way."
            content: Any = [{"type": "output_text", "text": text, "annotations": []}]
            said = ResponseOutputMessage(id="m", content=content, role="assistant", status="completed", type="message")
        return agents.ModelResponse(output=[said], usage=agents.Usage(requests=1), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """Not needed here."""
        raise NotImplementedError


async def main() -> None:
    """The agent wants too much, is told so, and does it the right way."""
    tools = [
        agents.function_tool(find_order, name_override="get_order", failure_error_function=None),
        agents.function_tool(refund, failure_error_function=None),
    ]
    agent = agents.Agent(name="desk", model=Double(), tools=gated_tools(tools, desk_gate()))
    config = agents.RunConfig(tracing_disabled=True)
    done = await agents.Runner.run(agent, "I want 500 EUR back for order A1.", run_config=config)
    for item in done.new_items:
        if item.type == "tool_call_output_item":
            print(item.output)
    print(done.final_output)
    print("paid:", [(order, amount) for order, amount, _ in PAID])


if __name__ == "__main__":
    asyncio.run(main())
