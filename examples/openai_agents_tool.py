"""An agent of the OpenAI Agents SDK that leaves an order to a procedure, and reads no output that is wrong.

python examples/openai_agents_tool.py

No key is needed: doubles answer in the place of both models. Leave ``model=`` of the agent out, and give the guard a
name such as "openai/gpt-4.1-mini", to ask real ones.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import agents
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage

from stepguard import Guard, Procedure
from stepguard.integrations.openai_agents import procedure_tool, verified_output
from stepguard.testing import ScriptedSteps

ORDER = Procedure.parse("""
name: order
inputs: price, quantity: integer
subtotal = price * quantity
tax: decimal(2) = subtotal * 8.25 / 100
total: decimal(2) = subtotal + tax
""")
SLIPS = {
    "subtotal": ["24.90 * 3 = 74.70"],
    "tax": ["74.70 * 8.25 / 100 = 6.17", "74.70 * 8.25 / 100 = 6.16"],
    "total": ["74.70 + 6.16 = 80.86"],
}


class Double(agents.Model):  # type: ignore[misc, unused-ignore]
    """In the place of the agent's model: calls its first tool, and repeats what that returned."""

    async def get_response(
        self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *_: Any, **__: Any
    ) -> agents.ModelResponse:
        """Answer one turn."""
        said: Any
        if isinstance(input, list) and "output" in input[-1]:
            content: Any = [{"type": "output_text", "text": input[-1]["output"], "annotations": []}]
            said = ResponseOutputMessage(id="m", content=content, role="assistant", status="completed", type="message")
        else:
            arguments = json.dumps({"price": "24.90", "quantity": 3})
            said = ResponseFunctionToolCall(call_id="c", name=tools[0].name, arguments=arguments, type="function_call")
        return agents.ModelResponse(output=[said], usage=agents.Usage(requests=1), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        """Not needed here."""
        raise NotImplementedError


def in_my_head(price: float, quantity: int) -> str:
    """The total of an order, as somebody worked it out who forgot the tax."""
    return f"{price * quantity:.2f}"


async def main() -> None:
    """The same question to agents with a procedure as a tool, with a stubborn model, and with a checked tool."""
    config = agents.RunConfig(tracing_disabled=True)
    guessing = agents.function_tool(in_my_head, tool_output_guardrails=[verified_output(ORDER)])
    stubborn = Guard(ScriptedSteps({**SLIPS, "tax": ["74.70 * 8.25 / 100 = 6.17"] * 9}), repair=1)
    for tool in (
        procedure_tool(ORDER, Guard(ScriptedSteps(SLIPS)), on_result=lambda result: print("result:", result.status)),
        procedure_tool(ORDER, stubborn, on_result=lambda result: print("result:", result.status)),
        guessing,
    ):
        agent = agents.Agent(name="clerk", model=Double(), tools=[tool])
        done = await agents.Runner.run(agent, "What do 3 pieces cost at 24.90?", run_config=config)
        print("agent: ", done.final_output.partition(" (run ")[0])


if __name__ == "__main__":
    asyncio.run(main())
