"""The OpenAI Agents SDK: function tools behind the gate of a policy (extra ``agents``).

::

    gate = ToolGate(policy, facts={"customer": "C1"}, confirm=ask_the_manager)
    agent = Agent(name="desk", tools=gated_tools([get_order, refund], gate))

A call that is not let through is answered by what the model is to do first. One agent may serve many conversations:
`gate` may be a function of the context of the call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from stepguard.errors import ConfigError, MissingExtraError
from stepguard.integrations.tool_gate import ToolGate, failure_text

try:
    from agents import FunctionTool, Tool
    from agents.tool_context import ToolContext
except ImportError as error:
    raise MissingExtraError("gating the tools of the OpenAI Agents SDK", extra="agents") from error

__all__ = ["gated_tools"]


def gated_tools(tools: Iterable[FunctionTool], gate: ToolGate | Callable[[ToolContext[Any]], ToolGate]) -> list[Tool]:
    """The same tools, whose calls go through a gate.

    Args:
        tools: the tools, made with ``function_tool(failure_error_function=None)``: what the SDK would say of one that
            raises could not be told from a result. The agent is told of the failure all the same.
        gate: the gate of the conversation, or what gives it for a call.

    Raises:
        ConfigError: a tool turns what it raises into a result.
    """
    return [_gated(each, gate) for each in tools]


def _gated(tool: FunctionTool, gate: ToolGate | Callable[[ToolContext[Any]], ToolGate]) -> FunctionTool:
    if (
        # Private: the SDK offers no other way to see how a tool treats its exceptions.
        getattr(tool, "_use_default_failure_error_function", False)
        or getattr(tool, "_failure_error_function", None) is not None
    ):
        raise ConfigError(
            f"{tool.name} turns what it raises into a result, so that a failed call would count as done: make it with "
            "`function_tool(failure_error_function=None)`",
            option="tools",
        )

    async def invoke(context: ToolContext[Any], arguments: str) -> Any:
        chosen = gate if isinstance(gate, ToolGate) else gate(context)
        decision = await chosen.adecide(tool.name, arguments, id=context.tool_call_id)
        if not decision.allowed:
            return chosen.refusal(decision)
        try:
            with chosen.making(decision):
                value = await tool.on_invoke_tool(context, json.dumps(decision.arguments))
        except Exception as error:  # noqa: BLE001 - the agent is told of it, whatever it is
            return failure_text(decision, error)
        chosen.finished(decision, value)
        return value

    return replace(tool, on_invoke_tool=invoke)
