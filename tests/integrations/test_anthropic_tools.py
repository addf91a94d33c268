"""Anthropic's tool uses behind a gate, with the client of its library against a server on loopback."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from conftest import ChatServer, Reply
from policy_harness import NOW, ORDER, SHOP
from tables import all_rows

from stepguard import Policy
from stepguard.errors import ConfigError
from stepguard.integrations.anthropic_tools import aanswer_tool_uses, answer_tool_uses
from stepguard.integrations.tool_gate import NothingDone, ToolGate


def gate(**tools: Any) -> tuple[ToolGate, list[tuple[str, object]]]:
    """A gate before the tools of a shop, and what they have paid."""
    paid: list[tuple[str, object]] = []

    def refund(order: str, amount: float) -> str:
        if amount == 13:
            raise NothingDone("the till is closed")
        paid.append((order, amount))
        return "paid back"

    made: dict[str, Any] = {"get_order": lambda id: ORDER, "refund": refund, **tools}
    return ToolGate(Policy.parse(SHOP), made, facts={"customer": "C1"}, clock=lambda: NOW), paid


def use(id: str, name: str, /, **given: Any) -> dict[str, Any]:
    """A block of a message."""
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def message(*blocks: dict[str, Any], stop: str = "tool_use") -> dict[str, Any]:
    """A message of the API."""
    head = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "stop_sequence": None}
    return {**head, "content": list(blocks), "stop_reason": stop, "usage": {"input_tokens": 1, "output_tokens": 1}}


def test_an_agent_on_the_client_of_the_library_finishes_the_right_way(chat_server: ChatServer) -> None:
    """What is refused is an error to the model, which says what comes first; two uses have one message of answers."""
    anthropic = pytest.importorskip("anthropic")
    script = [
        message({"type": "text", "text": "At once."}, use("1", "refund", order="A1", amount=500)),
        message(use("2", "get_order", id="A1"), use("3", "close_account", customer="C1")),
        message(use("4", "refund", order="A1", amount=50.5)),
        message({"type": "text", "text": "Done."}, stop="end_turn"),
    ]
    chat_server.play([Reply(each) for each in script])
    tools, paid = gate()
    messages: list[Any] = [{"role": "user", "content": "500 back, please."}]
    with anthropic.Anthropic(api_key="k", base_url=chat_server.url.removesuffix("/v1"), max_retries=0) as client:
        while True:
            said = client.messages.create(model="claude", max_tokens=100, messages=messages)
            messages.append({"role": "assistant", "content": said.content})
            if said.stop_reason != "tool_use" or tools.handed_over:
                break
            messages.append(answer_tool_uses(tools, said))
    asked = [each.body for each in chat_server.requests]
    (refused,) = asked[1]["messages"][-1]["content"]
    assert (refused["tool_use_id"], refused["is_error"]) == ("1", True)
    assert 'Call get_order(id="A1") first.' in refused["content"]
    seen, never = asked[2]["messages"][-1]["content"]
    assert (json.loads(seen["content"])["paid"], seen["is_error"]) == (150, False)
    assert "Accounts are closed by the office." in never["content"]
    assert asked[3]["messages"][-1]["content"][0]["content"] == "paid back"
    assert paid == [("A1", 50.5)]


def test_what_was_cut_off_is_not_called() -> None:
    """Its arguments may be cut off, too."""
    tools, paid = gate()
    answer_tool_uses(tools, message(use("1", "get_order", id="A1")))
    for stop in ("max_tokens", "model_context_window_exceeded"):
        answer = answer_tool_uses(tools, message(use(stop, "refund", order="A1", amount=5), stop=stop))
        assert "cut off and nothing was done" in answer["content"][0]["content"]
        assert answer["content"][0]["is_error"]
    assert paid == []


def test_a_tool_that_fails_is_an_error_and_a_use_that_is_answered_again_is_not() -> None:
    """Of one that was made already the result is given anew."""
    tools, paid = gate()
    first = answer_tool_uses(tools, message(use("1", "get_order", id="A1"), use("2", "refund", order="A1", amount=5)))
    assert answer_tool_uses(tools, message(use("2", "refund", order="A1", amount=5.0)))["content"] == [
        first["content"][1]
    ]
    failed = answer_tool_uses(tools, message(use("3", "get_order", id="A1"), use("4", "refund", order="A1", amount=13)))
    assert failed["content"][1]["is_error"]
    assert "Nothing was done." in failed["content"][1]["content"]
    assert paid == [("A1", 5)]


def test_async_tools_are_awaited() -> None:
    """By the twin."""

    async def get_order(id: str) -> object:
        await asyncio.sleep(0)
        return ORDER

    tools, _ = gate(get_order=get_order)
    answer = asyncio.run(aanswer_tool_uses(tools, message(use("1", "get_order", id="A1"))))
    assert json.loads(answer["content"][0]["content"])["customer"] == "C1"


@all_rows(
    "wrong",
    [
        message({"type": "text", "text": "Hello."}, stop="end_turn"),
        message({"type": "server_tool_use", "id": "1", "name": "web_search", "input": {}}),
        message({"type": "tool_use", "id": "", "name": "refund", "input": {}}),
        message({"type": "tool_use", "id": "1", "name": "refund", "input": "{}"}),
        message({"type": "tool_use", "id": "1", "input": {}}),
        {"content": "refund"},
        {},
    ],
)
def test_a_message_without_tool_uses_of_ours_is_refused_by_name(wrong: Any) -> None:
    """It is the host's mistake to answer it."""
    with pytest.raises(ConfigError, match="tool use"):
        answer_tool_uses(gate()[0], wrong)
