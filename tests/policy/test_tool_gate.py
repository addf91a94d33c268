"""Tools behind a gate: a forbidden call is refused, the agent is told what to do, and finishes the right way."""

from __future__ import annotations

import asyncio
import json
import logging
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from policy_harness import NOW, ORDER, SHOP

from stepguard import Guard, Policy, Procedure
from stepguard.errors import ConfigError, ProcedureError
from stepguard.integrations.tool_gate import NothingDone, ToolGate, current_decision
from stepguard.policy import Decision, FactQuestion
from stepguard.procedure import Tool
from stepguard.testing import SimulatedModel


class Shop:
    """The tools of a shop, which remember what was paid back."""

    def __init__(self) -> None:
        self.paid: list[tuple[float, str]] = []

    def get_order(self, id: str) -> dict[str, Any]:
        """Look an order up."""
        return {**ORDER, "refunded": sum(amount for amount, _ in self.paid)}

    def refund(self, order: str, amount: float, idempotency_key: str) -> dict[str, Any]:
        """Pay back."""
        if amount == 13:
            raise NothingDone("the till is closed")
        if amount == 66:
            raise TimeoutError("no answer")
        self.paid.append((amount, idempotency_key))
        return self.get_order(order)

    def gate(self, **options: Any) -> ToolGate:
        """A gate before them."""
        tools: dict[str, Any] = {"get_order": self.get_order, "refund": Tool(self.refund, retries=1)}
        return ToolGate(Policy.parse(SHOP), tools, facts={"customer": "C1"}, clock=lambda: NOW, **options)


PROCEDURE = """
record Order:
  id: text
  customer: text
  paid: number
  placed: text
  colour: text
  refunded: number
inputs:
  amount: money(EUR)
{look}order: Order = tool refund(order="A1", amount=amount)
answer: order.colour
"""


@pytest.mark.parametrize("use_async", [False, True])
def test_the_steps_of_a_procedure_are_judged_by_the_same_gate(use_async: bool) -> None:
    """The order is given, and the rules hold all the same: a step that is refused fails with what is missing."""

    class AsyncShop(Shop):
        async def refund(self, order: str, amount: float, idempotency_key: str) -> dict[str, Any]:  # type: ignore[override]
            return super().refund(order, amount, idempotency_key)

    for look, amount, agrees, said in [
        ("", "20", False, "Call get_order"), ("seen", "20", False, ""), ("seen", "500", False, "No more than"),
        ("seen", "120", False, "waiting for approval"), ("seen", "120.50", True, ""),
        ("seen", "66", False, "what came of it is not known"), ("seen", "13", False, "the till is closed"),
    ]:  # fmt: skip
        shop = AsyncShop() if use_async else Shop()
        gate = shop.gate(confirm=lambda decision, role, agrees=agrees: agrees)
        line = 'seen: Order = tool get_order(id="A1")\n' if look else ""
        called = ("get_order", "refund") if look else ("refund",)
        procedure = Procedure.parse(PROCEDURE.format(look=line)).with_operations(tools=gate.operations(*called))
        guard, inputs = Guard(SimulatedModel()), {"amount": amount}
        result = asyncio.run(guard.arun(procedure, inputs)) if use_async else guard.run(procedure, inputs)
        assert said in str(result.error)
        assert (result.status == "verified") is (said == "")
        assert [Decimal(str(paid)) for paid, _ in shop.paid] == ([Decimal(amount)] if said == "" else [])
        assert len({key for _, key in shop.paid}) == len(shop.paid)
    wrong = Procedure.parse(PROCEDURE.format(look="").replace("order=", "id="))
    with pytest.raises(ProcedureError, match="cannot call refund"):
        wrong.with_operations(tools=shop.gate().operations("refund"))
    with pytest.raises(ConfigError, match="no function for pay"):
        shop.gate().operations("pay")
    with pytest.raises(ConfigError, match="confirmed by"):
        ToolGate(Policy.parse(SHOP), {"refund": Tool(shop.refund, approval=True)})


def test_the_tools_of_a_graph() -> None:
    """A `ToolNode` of LangGraph makes no call that the gate refuses, and the model is told what comes first."""
    pytest.importorskip("langchain")
    graph, prebuilt = pytest.importorskip("langgraph.graph"), pytest.importorskip("langgraph.prebuilt")
    from langchain_core.tools import StructuredTool

    from stepguard.integrations.langchain.tools import PolicyMiddleware

    shop = Shop()

    def refund(order: str, amount: float) -> str:
        """Pay back."""
        shop.paid.append((amount, ""))
        return json.dumps(shop.get_order(order))

    tools = [StructuredTool.from_function(each) for each in (shop.get_order, refund)]
    asked = [("refund", {"order": "A1", "amount": 20}), ("get_order", {"id": "A1"}),
             ("refund", {"order": "A1", "amount": 500}), ("refund", {"order": "A1", "amount": 20})]  # fmt: skip

    def model(state: dict[str, Any]) -> dict[str, Any]:
        number = len(state["messages"]) // 2
        calls = [{"name": name, "args": args, "id": f"c{number}"} for name, args in asked[number : number + 1]]
        return {"messages": [{"role": "assistant", "content": "", "tool_calls": calls}]}

    built = graph.StateGraph(graph.MessagesState)
    built.add_node("model", model)
    built.add_node("tools", prebuilt.ToolNode(tools, wrap_tool_call=PolicyMiddleware(shop.gate()).wrap_tool_call))
    built.add_edge(graph.START, "model")
    built.add_edge("tools", "model")
    built.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else graph.END)
    messages = built.compile().invoke({"messages": []})["messages"]
    assert [each.status for each in messages[1::2]] == ["error", "success", "error", "success"]
    assert 'Call get_order(id="A1") first.' in messages[1].content
    assert shop.paid == [(20, "")]


def test_a_loop_of_ones_own() -> None:
    """Messages of OpenAI's, as objects or as mappings, are answered; what is refused is never called."""
    shop = Shop()
    gate = shop.gate()

    def turn(number: int, tool: str, **arguments: Any) -> str:
        function = {"name": tool, "arguments": json.dumps(arguments)}
        call: Any = {"id": f"c{number}", "function": function}
        if number % 2:
            call = SimpleNamespace(id=call["id"], function=SimpleNamespace(**function))
        (message,) = gate.answer({"role": "assistant", "tool_calls": [call]})
        assert (message["role"], message["tool_call_id"]) == ("tool", f"c{number}")
        return str(message["content"])

    assert 'Call get_order(id="A1") first.' in turn(1, "refund", order="A1", amount=20)
    assert json.loads(turn(2, "get_order", id="A1"))["paid"] == 150
    assert json.loads(turn(3, "refund", order="A1", amount=20))["refunded"] == 20
    assert "No more than what was paid." in turn(4, "refund", order="A1", amount=131)
    assert "is waiting for approval by the manager" in turn(5, "refund", order="A1", amount=110)
    assert "the till is closed. Nothing was done." in turn(6, "refund", order="A1", amount=13)
    assert "It may have taken effect all the same." in turn(7, "refund", order="A1", amount=66)
    assert [amount for amount, _ in shop.paid] == [20]
    assert gate.answer({"role": "assistant", "content": "Done."}) == []


def test_who_has_to_be_asked_is_asked() -> None:
    """A yes and a fact are fetched from the host's functions; a no leaves the call undone."""
    asked: list[object] = []

    def confirm(decision: Decision, role: str) -> bool:
        asked.append((role, dict(decision.arguments)))
        return bool(decision.arguments["amount"] == 120)

    def answer(decision: Decision, question: FactQuestion) -> object:
        asked.append((question.fact, question.keys))
        return True

    shop = Shop()
    gate = shop.gate(confirm=confirm, answer=answer)
    gate.gate.offer("get_order", '{"id": "A1"}', id="look", now=NOW)
    gate.gate.result("look", {**ORDER, "placed": "2025-01-01T00:00:00Z"})
    assert "is waiting for" in gate.call("refund", '{"order": "A1", "amount": 140}', id="1")
    assert "refunded" in gate.call("refund", '{"order": "A1", "amount": 120}', id="2")
    assert asked == [
        ("damaged", ("A1",)),
        ("manager", {"order": "A1", "amount": 140}),
        ("manager", {"order": "A1", "amount": 120}),
    ]


def test_logs_and_the_host_are_told_of_every_decision(caplog: pytest.LogCaptureFixture) -> None:
    """The event names policy, tool, outcome, kinds of reasons and rules, and no argument; a host that fails stops
    nothing, and a tool that nobody has declared is not named."""
    told: list[Decision] = []

    def tell(decision: Decision) -> None:
        told.append(decision)
        raise RuntimeError("the host fails")

    gate = Shop().gate(on_decision=tell)
    with caplog.at_level(logging.INFO, logger="stepguard"):
        gate.call("refund", '{"order": "SECRET", "amount": 20}', id="1")
        gate.call("get_order", '{"id": "A1"}', id="2")
        gate.call("SECRET", "{}", id="3")
        asyncio.run(gate.acall("refund", '{"order": "A1", "amount": 20}', id="4"))
    events = [record.getMessage() for record in caplog.records if "call_judged" in record.getMessage()]
    assert [decision.outcome for decision in told] == ["refuse", "allow", "refuse", "allow"]
    assert len(events) == 4
    assert "outcome='refuse'" in events[0]
    assert "tool='refund'" in events[0]
    assert "tool='(undeclared)'" in events[2]
    assert "SECRET" not in "".join(events)


def test_a_turn_that_is_answered_again_repeats_nothing() -> None:
    """After a crash the last message is answered again: what was done gives its result, what was not is done once."""
    shop = Shop()
    gate = shop.gate()
    gate.call("get_order", '{"id": "A1"}', id="0")
    first = gate.call("refund", '{"order": "A1", "amount": 20}', id="1")
    waiting = gate.gate.offer("get_order", '{"id": "A1"}', id="2", now=NOW)
    state = json.loads(json.dumps(gate.gate.to_dict()))
    again = ToolGate(
        gate.gate.policy.gate(state=state), {"get_order": shop.get_order, "refund": shop.refund}, clock=lambda: NOW
    )
    assert json.loads(again.call("refund", '{"amount": 20, "order": "A1"}', id="1")) == json.loads(first)
    assert again.gate.pending == (waiting,)
    assert json.loads(again.call("get_order", '{"id": "A1"}', id="2"))["refunded"] == 20
    assert len(shop.paid) == 1


def test_async_tools() -> None:
    """`acall` awaits them; `call` does not start them, and a call that is cancelled may have been done."""
    policy = Policy.parse("tool pay(to: text) changes nothing\nbefore pay: at most once per to")
    keys: list[str | None] = []

    async def pay(to: str) -> str:
        decision = current_decision()
        keys.append(None if decision is None else decision.key)
        if to == "slow":
            await asyncio.sleep(60)
        return "paid"

    gate = ToolGate(policy, {"pay": pay})
    assert "use `acall`" in gate.call("pay", {"to": "a"}, id="1")

    async def run() -> None:
        assert await gate.acall("pay", {"to": "a"}, id="2") == "paid"
        call = {"id": "5", "function": {"name": "pay", "arguments": '{"to": "c"}'}}
        (message,) = await gate.aanswer({"tool_calls": [call]})
        assert (message["tool_call_id"], message["content"]) == ("5", "paid")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(gate.acall("pay", {"to": "slow"}, id="3"), 0.01)
        told = await asyncio.gather(*(gate.acall("pay", {"to": "b"}, id=f"p{each}") for each in range(2)))
        assert sorted(each == "paid" for each in told) == [False, True]
        assert "at most once" in await gate.acall("pay", {"to": "slow"}, id="4")

    asyncio.run(run())
    assert len(set(keys)) == 4


def test_tools_that_no_policy_knows_are_refused_at_once() -> None:
    """A function without a declaration is a mistake of the host's; a declared tool without a function does nothing."""
    with pytest.raises(ConfigError, match="declares no tool 'drop'"):
        ToolGate(Policy.parse(SHOP), {"drop": print})
    gate = ToolGate(Policy.parse(SHOP), facts={"customer": "C1"})
    assert "there is no function for mail" in gate.call("mail", {"to": "a", "words": "b"}, id="1")


def test_a_provider_that_uses_identifiers_again() -> None:
    """With `reused_ids` one that was answered is a new call, and what was refused is never told an old result."""
    shop = Shop()
    once, again = shop.gate(), shop.gate(reused_ids=True)
    for gate in (once, again):
        gate.call("get_order", '{"id": "A1"}', id="0")
        assert "refunded" in gate.call("refund", '{"order": "A1", "amount": 20}', id="1")
    shop.paid.append((30, ""))
    assert json.loads(once.call("get_order", '{"id": "A1"}', id="0"))["refunded"] == 0
    assert json.loads(again.call("get_order", '{"id": "A1"}', id="0"))["refunded"] == 70
    assert "already made" in once.call("refund", '{"order": "A1", "amount": 5}', id="1")
    assert "refunded" in again.call("refund", '{"order": "A1", "amount": 20}', id="1")
    assert "at most 2 times" in again.call("refund", '{"order": "A1", "amount": 20}', id="1")
    assert "reused_ids=True" in str(once.gate.decisions[-1]["reasons"])
    resumed = shop.gate().gate.policy.gate(state=json.loads(json.dumps(again.gate.to_dict())), reused_ids=True)
    assert not resumed.offer("refund", '{"order": "A1", "amount": 1}', id="1", now=NOW).allowed


def test_a_call_that_is_offered_again_in_another_spelling_is_the_same_one() -> None:
    """Numbers are compared by their worth: it is not made twice, on its way or answered; other values are another."""
    shop = Shop()
    gate = shop.gate()
    gate.call("get_order", '{"id": "A1"}', id="0")
    first = gate.gate.offer("refund", '{"order": "A1", "amount": 20}', id="1", now=NOW)
    for spelling in ('"20"', "20.00", "2e1", '"20.0"'):
        assert gate.gate.offer("refund", f'{{"amount": {spelling}, "order": "A1"}}', id="1", now=NOW) == first
    assert "already made" in gate.call("refund", '{"order": "A1", "amount": 21}', id="1")
    gate.gate.result("1", {"id": "A1"})
    for spelling in ('"20"', "20.00", "2e1"):
        assert gate.call("refund", f'{{"amount": {spelling}, "order": "A1"}}', id="1") == '{"id": "A1"}'
    assert "already made" in gate.call("refund", '{"order": "A1", "amount": 2}', id="1")
    assert shop.paid == []


def test_a_call_that_is_known_to_have_done_nothing_is_made_again() -> None:
    """Under the same identifier, too."""
    shop = Shop()
    gate = shop.gate()
    gate.call("get_order", '{"id": "A1"}', id="0")
    for _ in range(3):
        assert "the till is closed" in gate.call("refund", '{"order": "A1", "amount": 13}', id="1")
