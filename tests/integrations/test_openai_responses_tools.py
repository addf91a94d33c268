"""Function calls of OpenAI's responses behind a gate, with the client of the library against a server on loopback."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from conftest import ChatServer, Reply
from policy_harness import NOW, ORDER, SHOP
from responses_harness import response

from stepguard import Policy
from stepguard.errors import ConfigError
from stepguard.integrations.openai_responses_tools import aanswer_function_calls, answer_function_calls
from stepguard.integrations.tool_gate import ToolGate


def gate() -> tuple[ToolGate, list[tuple[str, float]]]:
    """A gate before the tools of a shop, and what they have paid."""
    paid: list[tuple[str, float]] = []

    def refund(order: str, amount: float) -> str:
        paid.append((order, amount))
        return "paid back"

    made: dict[str, Any] = {"get_order": lambda id: ORDER, "refund": refund}
    return ToolGate(Policy.parse(SHOP), made, facts={"customer": "C1"}, clock=lambda: NOW), paid


def call(id: str, name: str, /, status: str = "completed", **given: Any) -> dict[str, Any]:
    """An item of a response."""
    head = {"type": "function_call", "id": f"fc_{id}", "call_id": id, "status": status}
    return {**head, "name": name, "arguments": json.dumps(given)}


def test_an_agent_on_the_client_of_the_library_finishes_the_right_way(chat_server: ChatServer) -> None:
    """What is refused says what comes first, and the loop ends where nothing is called any more."""
    openai = pytest.importorskip("openai")
    script = [
        response(None, output=[call("1", "refund", order="A1", amount=500)]),
        response(None, output=[call("2", "get_order", id="A1"), call("3", "close_account", customer="C1")]),
        response(None, output=[call("4", "refund", order="A1", amount=50.5)]),
        response("Done."),
    ]
    chat_server.play([Reply(each) for each in script])
    tools, paid = gate()
    items: list[Any] = [{"role": "user", "content": "500 back, please."}]
    with openai.OpenAI(api_key="k", base_url=chat_server.url, max_retries=0) as client:
        while True:
            answered = client.responses.create(model="m", input=items)
            items += answered.output
            answers = answer_function_calls(tools, answered)
            if not answers or tools.handed_over:
                break
            items += answers
    outputs = [each for each in chat_server.requests[-1].body["input"] if each.get("type") == "function_call_output"]
    assert [each["call_id"] for each in outputs] == ["1", "2", "3", "4"]
    assert 'Call get_order(id="A1") first.' in outputs[0]["output"]
    assert json.loads(outputs[1]["output"])["paid"] == 150
    assert "Accounts are closed by the office." in outputs[2]["output"]
    assert paid == [("A1", 50.5)]


def test_what_was_cut_off_is_not_called() -> None:
    """A call that is in progress or incomplete."""
    tools, paid = gate()
    answer_function_calls(tools, {"output": [call("1", "get_order", id="A1")]})
    for status in ("incomplete", "in_progress"):
        (answer,) = answer_function_calls(tools, {"output": [call(status, "refund", status, order="A1", amount=5)]})
        assert "cut off and nothing was done" in answer["output"]
    assert paid == []


def test_async_tools_are_awaited_and_answers_given_anew() -> None:
    """By the twin; a response that is answered again repeats nothing."""
    paid: list[float] = []

    async def refund(order: str, amount: float) -> str:
        await asyncio.sleep(0)
        paid.append(amount)
        return "paid back"

    made: dict[str, Any] = {"get_order": lambda id: ORDER, "refund": refund}
    tools = ToolGate(Policy.parse(SHOP), made, facts={"customer": "C1"}, clock=lambda: NOW)
    output = [{"type": "reasoning"}, call("1", "get_order", id="A1"), call("2", "refund", order="A1", amount=5)]

    async def twice() -> list[list[dict[str, Any]]]:
        return [await aanswer_function_calls(tools, {"output": output}) for _ in range(2)]

    first, again = asyncio.run(twice())
    assert first[1] == again[1] == {"type": "function_call_output", "call_id": "2", "output": "paid back"}
    assert paid == [5]


@pytest.mark.parametrize(
    "wrong",
    [{}, {"output": None}, {"output": [{"type": "function_call", "name": "mail", "arguments": "{}"}]},
     {"output": [{"type": "function_call", "call_id": "1", "name": "mail", "arguments": {}}]}],
)  # fmt: skip
def test_what_is_no_response_is_refused_by_name(wrong: Any) -> None:
    """It is the host's mistake."""
    with pytest.raises(ConfigError, match=r"response|function call"):
        answer_function_calls(gate()[0], wrong)
