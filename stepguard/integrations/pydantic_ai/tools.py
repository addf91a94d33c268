"""pydantic-ai: the tools of an agent behind the gate of a policy (extra ``pydantic-ai``).

::

    gate = ToolGate(policy, facts={"customer": "C1"}, confirm=ask_the_manager)
    agent = Agent("openai:gpt-4.1-mini", toolsets=[GatedToolset(FunctionToolset([get_order, refund]), gate)])

A call that is not let through is answered by what the model is to do first. One toolset may serve many conversations:
`gate` may be a function of the run's context.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stepguard.errors import MissingExtraError
from stepguard.integrations.tool_gate import ToolGate
from stepguard.policy.arguments import plain_data

try:
    from pydantic_ai.tools import AgentDepsT, RunContext
    from pydantic_ai.toolsets import ToolsetTool, WrapperToolset
except ImportError as error:
    raise MissingExtraError("gating the tools of pydantic-ai", extra="pydantic-ai") from error

__all__ = ["GatedToolset"]


@dataclass
class GatedToolset(WrapperToolset[AgentDepsT]):  # type: ignore[misc, unused-ignore]
    """A toolset whose calls go through a gate.

    Attributes:
        wrapped: the toolset.
        gate: the gate of the conversation, or what gives it for a run.
    """

    gate: ToolGate | Callable[[RunContext[AgentDepsT]], ToolGate]

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[AgentDepsT], tool: ToolsetTool[AgentDepsT]
    ) -> Any:
        """Make a call if the policy lets it through."""
        gate = self.gate if isinstance(self.gate, ToolGate) else self.gate(ctx)
        decision = await gate.adecide(name, plain_data(tool_args), id=ctx.tool_call_id or f"{ctx.run_step}.{name}")
        if not decision.allowed:
            return gate.refusal(decision)
        with gate.making(decision):
            # What was validated of the arguments is what the gate has read of them.
            value = await self.wrapped.call_tool(name, tool_args, ctx, tool)
        gate.finished(decision, value)
        return value
