"""LangChain and LangGraph: the tools of an agent behind the gate of a policy (extra ``langchain``).

::

    gate = ToolGate(policy, facts={"customer": "C1"}, confirm=ask_the_manager)
    agent = create_agent("openai:gpt-4.1-mini", tools=[get_order, refund], middleware=[PolicyMiddleware(gate)])

A call that is not let through is answered by what the model is to do first. One agent may serve many conversations:
`gate` may be a function of the request of the call, which has the state and the runtime.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from stepguard.errors import MissingExtraError
from stepguard.integrations.tool_gate import ToolGate
from stepguard.policy.decisions import Decision

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain.agents.middleware.types import ToolCallRequest
    from langchain_core.messages import ToolMessage
except ImportError as error:
    raise MissingExtraError("gating the tools of LangChain", extra="langchain") from error

__all__ = ["PolicyMiddleware"]


class PolicyMiddleware(AgentMiddleware):  # type: ignore[misc, unused-ignore]
    """A middleware that lets the policy decide on every call of a tool.

    Args:
        gate: the gate of the conversation, or what gives it for a call.
    """

    def __init__(self, gate: ToolGate | Callable[[ToolCallRequest], ToolGate]) -> None:
        super().__init__()
        self._gate = gate

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Make a call if the policy lets it through."""
        gate = self._gate_of(request)
        call = request.tool_call
        decision = gate.decide(call["name"], call["args"], id=call["id"] or "")
        if not decision.allowed:
            return _refusal(gate, decision)
        with gate.making(decision):
            answer = handler(_as_decided(request, decision))
        return _booked(gate, decision, answer)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Make a call if the policy lets it through."""
        gate = self._gate_of(request)
        call = request.tool_call
        decision = await gate.adecide(call["name"], call["args"], id=call["id"] or "")
        if not decision.allowed:
            return _refusal(gate, decision)
        with gate.making(decision):
            answer = await handler(_as_decided(request, decision))
        return _booked(gate, decision, answer)

    def _gate_of(self, request: ToolCallRequest) -> ToolGate:
        return self._gate if isinstance(self._gate, ToolGate) else self._gate(request)


def _as_decided(request: ToolCallRequest, decision: Decision) -> ToolCallRequest:
    return request.override(tool_call={**request.tool_call, "args": dict(decision.arguments)})


def _refusal(gate: ToolGate, decision: Decision) -> ToolMessage:
    answer = gate.unmade(decision)
    status = "error" if answer.error else "success"  # of a call that was made already, its result
    return ToolMessage(answer.text, tool_call_id=decision.call, name=decision.tool, status=status)


def _booked(gate: ToolGate, decision: Decision, answer: Any) -> Any:
    """Tell the gate what came of a call; a tool that LangChain has answered for failed."""
    # Anything else (a Command, an error message) is no result that rules may read.
    if isinstance(answer, ToolMessage) and answer.status != "error":
        gate.finished(decision, answer.content if isinstance(answer.content, str) else list(answer.content))
    else:
        gate.failed(decision)
    return answer
