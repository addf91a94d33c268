"""OpenAI's responses: function calls behind the gate of a policy, in a plain loop. It needs no package of its own.

::

    gate = ToolGate(policy, {"get_order": get_order, "refund": refund}, facts={"customer": "C1"}, confirm=ask_the_user)
    while True:
        response = client.responses.create(model=..., input=items, tools=schemas)
        items += response.output
        answers = answer_function_calls(gate, response)
        if not answers or gate.handed_over:
            break
        items += answers

Tools that OpenAI calls itself (web search, its connector of MCP servers) do not come by here, and calls that are no
functions (a shell, a computer) are yours.
"""

from __future__ import annotations

from typing import Any

from stepguard.errors import ConfigError
from stepguard.integrations.tool_gate import AskedCall, CallAnswer, ToolGate, part_of

__all__ = ["aanswer_function_calls", "answer_function_calls"]


def answer_function_calls(gate: ToolGate, response: Any) -> list[dict[str, Any]]:
    """The items that answer the function calls of a response, an object of the library or a mapping; none for none.

    A call that is marked as incomplete is not made, and the model is told so.

    Raises:
        ConfigError: a call has no identifier, no name or no arguments.
    """
    calls = _function_calls(response)
    return list(map(_item, calls, gate.answers(calls)))


async def aanswer_function_calls(gate: ToolGate, response: Any) -> list[dict[str, Any]]:
    """The twin of `answer_function_calls` for async tools."""
    calls = _function_calls(response)
    return list(map(_item, calls, await gate.aanswers(calls)))


def _function_calls(response: Any) -> list[AskedCall]:
    output = part_of(response, "output")
    if not isinstance(output, list):
        raise ConfigError("a response with its output was expected", option="response")
    calls: list[AskedCall] = []
    for item in output:
        if part_of(item, "type") != "function_call":
            continue
        id, name, arguments = (part_of(item, key) for key in ("call_id", "name", "arguments"))
        if not (isinstance(id, str) and id and isinstance(name, str) and isinstance(arguments, str)):
            raise ConfigError("a function call has a call_id, a name and arguments", option="response")
        calls.append(AskedCall(id, name, arguments, part_of(item, "status") in (None, "completed")))
    return calls


def _item(call: AskedCall, answer: CallAnswer) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call.id, "output": answer.text}
