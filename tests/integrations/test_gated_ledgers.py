"""Frameworks whose tools are behind a gate in a ledger: a turn that is answered again in another process."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepguard import Policy
from stepguard.integrations.tool_gate import ToolGate

POLICY = Policy.parse("tool pay(to: text) changes nothing\nbefore pay: at most once per to")


class Till:
    """A tool that counts what it pays, and dies in it where it should."""

    def __init__(self) -> None:
        self.paid: list[str] = []
        self.dies = False

    def pay(self, to: str) -> str:
        """Pay somebody."""
        self.paid.append(to)
        return f"paid {to}"


def _langchain(gate: ToolGate, till: Till, id: str, to: str) -> tuple[str, bool]:
    pytest.importorskip("langchain")
    messages = pytest.importorskip("langchain_core.messages")
    tools = import_module("stepguard.integrations.langchain.tools")

    class Asked:
        """What LangChain hands to a middleware, as far as that looks at it."""

        def __init__(self, tool_call: dict[str, Any]) -> None:
            self.tool_call = tool_call

        def override(self, tool_call: dict[str, Any]) -> Asked:
            """The same with another call."""
            return Asked(tool_call)

    def handle(request: Any) -> Any:
        return messages.ToolMessage(till.pay(**request.tool_call["args"]), tool_call_id=id)

    answer = tools.PolicyMiddleware(gate).wrap_tool_call(Asked({"name": "pay", "args": {"to": to}, "id": id}), handle)
    return answer.content, answer.status == "error"


def _pydantic_ai(gate: ToolGate, till: Till, id: str, to: str) -> tuple[str, bool]:
    pytest.importorskip("pydantic_ai")
    tools = import_module("stepguard.integrations.pydantic_ai.tools")

    class Wrapped:
        """The toolset behind the gate."""

        async def call_tool(self, _name: str, given: dict[str, Any], _context: Any, _tool: Any) -> str:
            """Make a call."""
            return till.pay(**given)

    context: Any = SimpleNamespace(tool_call_id=id, run_step=1)
    told = asyncio.run(tools.GatedToolset(Wrapped(), gate).call_tool("pay", {"to": to}, context, None))
    return told, "paid" not in told


def _openai_agents(gate: ToolGate, till: Till, id: str, to: str) -> tuple[str, bool]:
    agents = pytest.importorskip("agents")
    tools = import_module("stepguard.integrations.openai_agents_tools")
    (tool,) = tools.gated_tools([agents.function_tool(failure_error_function=None)(till.pay)], gate)
    context: Any = agents.tool_context.ToolContext(None, tool_name="pay", tool_call_id=id, tool_arguments="")
    told = asyncio.run(tool.on_invoke_tool(context, f'{{"to": "{to}"}}'))
    return str(told), "paid" not in str(told)


@pytest.mark.parametrize("call", [_langchain, _pydantic_ai, _openai_agents])
def test_calls_at_once_use_no_limit_up_twice(call: Any) -> None:
    """Of ten at once, each of which would be permitted alone, one is made, whatever framework makes them."""
    till, gate = Till(), ToolGate(POLICY)
    with ThreadPoolExecutor(5) as pool:
        told = list(pool.map(lambda number: call(gate, till, str(number), "a"), range(10)))
    assert till.paid == ["a"]
    assert sorted(error for _, error in told) == [False] + [True] * 9


@pytest.mark.parametrize("call", [_langchain, _pydantic_ai, _openai_agents])
def test_a_turn_that_is_answered_again_elsewhere_makes_no_call_twice(tmp_path: Path, call: Any) -> None:
    """What was done gives its result, which is no error; of a call that was cut off nobody knows, unless it may be
    repeated."""
    till = Till()

    def gate(**options: Any) -> ToolGate:
        return ToolGate(POLICY, ledger=tmp_path / "runs.db", run_id="c-17", **options)

    with gate() as first:
        assert call(first, till, "1", "a") == ("paid a", False)
        first.gate.offer("pay", {"to": "b"}, id="2")  # and dies
    with gate() as second:
        assert call(second, till, "1", "a") == ("paid a", False)
        told, error = call(second, till, "2", "b")
        assert error
        assert "not known whether this very call was made" in told
        assert call(second, till, "3", "a")[1]
    assert till.paid == ["a"]
    with gate(repeatable=["pay"]) as third:
        assert call(third, till, "2", "b") == ("paid b", False)
    assert till.paid == ["a", "b"]
