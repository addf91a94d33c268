"""Runs of the MCP server: the client's own model, cancelling, many at once, and what is logged."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp.server.mcpserver")

from conftest import ChatServer, Reply
from mcp import Client
from mcp_harness import GOOD, INPUTS, KEY, ORDER, call, talk, text, told, verify
from mcp_types import CreateMessageResult, ErrorData, TextContent

from stepguard import Budget, Guard, Procedure, Result
from stepguard.backends import Completion, Request
from stepguard.backends.openai import OpenAIBackend
from stepguard.errors import ConfigError
from stepguard.integrations.mcp.server import DEFAULT_BUDGET, create_server
from stepguard.ledger import Ledger
from stepguard.testing import ScriptedBackend

pytestmark = pytest.mark.once

WRONG = {**GOOD, "tax": "74.70 * 8.25 / 100 = 6.17", "total": "74.70 + 6.17 = 80.87"}


# Runs


def run(server: Any, **more: Any) -> Any:
    return call(server, "run_procedure", {"procedure": ORDER, "inputs": INPUTS, **more})


def test_a_run_answers_with_every_step_verified_and_tells_its_progress() -> None:
    """A slip is asked again, every committed step is told, and usage is that of all attempts."""
    results: list[Result] = []
    backend = ScriptedBackend(WRONG, {"tax": GOOD["tax"]}, {"total": GOOD["total"]})
    server = create_server({"script": backend}, on_result=results.append)
    news: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        news.append((progress, total, message))

    async def said(client: Client) -> Any:
        arguments = {"procedure": ORDER, "inputs": INPUTS}
        return await client.call_tool("run_procedure", arguments, progress_callback=hear)

    result = talk(server, said)
    found = result.structured_content
    assert not result.is_error
    assert (found["status"], found["answered"], found["answer"], found["model"]) == (
        "verified",
        True,
        "80.86",
        "script",
    )
    assert found["values"] == {"subtotal": "74.7", "tax": "6.16", "total": "80.86"}
    assert found["usage"]["calls"] == 3
    assert found["usage"]["output_tokens"] == results[0].usage.output_tokens > 0
    assert text(result).endswith("answer: 80.86")
    assert news == [(1, 3, "subtotal verified"), (2, 3, "tax verified"), (3, 3, "total verified")]


def test_a_run_that_is_not_verified_is_an_error_without_answer_or_hint() -> None:
    """The step and the kind are named; the right value of the step is in nothing that the caller or a model gets."""
    asked: list[str] = []
    results: list[Result] = []

    def model(messages: list[dict[str, str]]) -> str:
        asked.append(json.dumps(messages))
        return json.dumps(WRONG)

    result = run(create_server({"m": model}, guard={"repair": 2}, on_result=results.append))
    found = result.structured_content
    assert result.is_error
    assert (found["status"], found["answered"], found["answer"]) == ("abstained", False, None)
    assert (found["step"], found["kind"]) == ("tax", "wrong_value")
    assert found["values"] == {"subtotal": "74.7"}
    assert found["usage"]["calls"] == len(asked) == 3
    assert "6.16" not in told(result) + "".join(asked)
    assert results[0].values["subtotal"] == Decimal("74.7") or results[0].completed == 1


def test_an_unverified_run_is_an_answer_only_where_the_server_says_so() -> None:
    """Steps without a check are named either way."""
    words = 'inputs: a\nt1: text = "Name the country." (reads a)'
    reply = {"t1": {"work": "as it says", "value": "France"}}
    arguments = {"procedure": words, "inputs": {"a": 1}}
    silent = ScriptedBackend()
    strict = call(create_server({"m": silent}), "run_procedure", arguments)
    lax = call(create_server({"m": ScriptedBackend(reply)}, at_least="unverified"), "run_procedure", arguments)
    assert strict.is_error
    assert "t1 can be unverified at most" in text(strict)
    assert not silent.requests
    with pytest.raises(ConfigError, match="t1 can be unverified at most"):
        create_server({"m": silent}, procedures={"words": Procedure.parse(words)})
    assert (lax.structured_content["answer"], lax.structured_content["unverified"]) == ("France", ["t1"])
    assert "not verified" in text(lax)


def test_a_budget_ends_a_run_and_there_is_one_by_default() -> None:
    """No run is without limits; what a limit ends is an error."""
    calls: list[int] = []

    def stubborn(messages: list[dict[str, str]]) -> str:
        calls.append(1)
        return json.dumps({"subtotal": f"24.90 * 3 = {len(calls)}"})

    result = run(create_server({"m": stubborn}, guard={"budget": Budget(calls=2), "repair": 90}))
    assert (result.is_error, result.structured_content["status"], len(calls)) == (True, "exhausted", 2)
    calls.clear()
    run(create_server({"m": stubborn}, guard={"repair": 90}))
    assert len(calls) == DEFAULT_BUDGET.calls == 60


def test_a_model_is_one_of_those_the_server_has() -> None:
    """The first by default, others by name; who asks for another one, or where there is none, is told how."""
    models = {"first": ScriptedBackend(GOOD), "second": ScriptedBackend(GOOD)}
    assert run(create_server(models)).structured_content["model"] == "first"
    assert run(create_server(models), model="second").structured_content["model"] == "second"
    other = run(create_server(models), model="openai/gpt-x")
    assert other.is_error
    assert "it has first, second" in text(other)
    none = run(create_server())
    assert none.is_error
    assert "--model" in text(none)


def test_a_failing_endpoint_is_asked_once_and_its_error_is_told_by_name(chat_server: ChatServer) -> None:
    """One layer repeats requests, and not those that are refused; keys and texts of the endpoint stay inside."""
    chat_server.play(Reply({"error": {"message": f"bad {KEY}"}}, status=401))
    backend = OpenAIBackend("m", base_url=chat_server.url, api_key=KEY)
    result = run(create_server({"m": backend}))
    assert (result.is_error, result.structured_content["status"]) == (True, "failed")
    assert result.structured_content["error"] == "BackendRejected"
    assert len(chat_server.requests) == 1
    assert KEY not in told(result)


# The client's own model


def sampled(answer: Callable[[Any], object]) -> tuple[Any, list[Any]]:
    asked: list[Any] = []

    async def sample(context: object, params: Any) -> Any:
        asked.append(params)
        return answer(params)

    arguments = {"procedure": ORDER, "inputs": INPUTS}
    server = create_server(guard={"repair": 1})
    return call(server, "run_procedure", arguments, mode="legacy", sampling_callback=sample), asked


def test_without_a_model_of_its_own_the_server_asks_the_clients() -> None:
    """A client that offers sampling needs no key at the server."""
    reply = TextContent(type="text", text=json.dumps(GOOD))
    result, asked = sampled(lambda _: CreateMessageResult(role="assistant", content=reply, model="own"))
    assert result.structured_content["answer"] == "80.86"
    assert result.structured_content["model"] == "the client's model"
    assert result.structured_content["usage"]["output_tokens"] > 0
    assert asked[0].max_tokens > 0
    assert "JSON object" in asked[0].system_prompt


@pytest.mark.parametrize("stop", [None, "maxTokens"])
def test_the_clients_model_is_held_to_the_same(stop: str | None) -> None:
    """A wrong or a cut off reply is no answer, and the right value is in no request."""
    reply = TextContent(type="text", text=json.dumps(WRONG)[: None if stop is None else 60])
    result, asked = sampled(
        lambda _: CreateMessageResult(role="assistant", content=reply, model="own", stop_reason=stop)
    )
    assert (result.is_error, result.structured_content["status"]) == (True, "abstained")
    assert len(asked) > 1
    assert "6.16" not in told(result) + "".join(each.model_dump_json() for each in asked)


def test_a_client_that_declines_ends_the_run() -> None:
    """A user who says no is not asked again."""
    result, asked = sampled(lambda _: ErrorData(code=-1, message="rejected by the user"))
    assert (result.is_error, result.structured_content["error"], len(asked)) == (True, "BackendRejected", 1)


# Cancellation, concurrency, logs


class Hanging:
    """A model that never answers, and notes that it is not waited for any more."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.left = asyncio.Event()

    async def acomplete(self, request: Request) -> Completion:
        self.asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()
        raise AssertionError


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_call_that_is_cancelled_ends_its_run(mode: str) -> None:
    """The request to the model is given up, and the server answers others."""
    backend = Hanging()
    results: list[Result] = []

    async def said(client: Client) -> Any:
        calling = asyncio.create_task(client.call_tool("run_procedure", {"procedure": ORDER, "inputs": INPUTS}))
        await backend.asked.wait()
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await backend.left.wait()
        while not results:
            await asyncio.sleep(0.01)
        values = {"subtotal": "74.70"}
        arguments = {"procedure": ORDER, "step": "tax", "values": values, "value": "6.16"}
        return await client.call_tool("verify_step", arguments)

    result = talk(create_server({"m": backend}, on_result=results.append), said, mode=mode)
    assert (results[0].status, results[0].usage.calls) == ("failed", 1)
    assert result.structured_content["verdict"] == "passed"


def test_only_so_many_runs_go_on_at_once() -> None:
    """A call beyond the limit is refused before it costs anything, and taken again when a run has ended."""
    backend = Hanging()
    arguments = {"procedure": ORDER, "inputs": INPUTS}

    async def said(client: Client) -> tuple[Any, Any]:
        calling = asyncio.create_task(client.call_tool("run_procedure", arguments))
        await backend.asked.wait()
        refused = await client.call_tool("run_procedure", arguments)
        calling.cancel()
        await asyncio.wait({calling})
        await backend.left.wait()
        async with asyncio.timeout(20):
            while (
                found := await client.call_tool("run_procedure", {**arguments, "model": "s"})
            ).structured_content is None:
                await asyncio.sleep(0.01)
        return refused, found

    models: dict[str, object] = {"m": backend, "s": ScriptedBackend(GOOD)}
    refused, taken = talk(create_server(models, max_runs=1), said)
    assert refused.is_error
    assert "1 runs go on already" in text(refused)
    assert taken.structured_content["answer"] == "80.86"


def test_concurrent_calls_do_not_mix() -> None:
    """Each answer is that of its own inputs, whatever the order in which a model answers (D11)."""

    async def model(messages: list[dict[str, str]]) -> str:
        asked = messages[-1]["content"]
        number = next(each for each in range(8) if f"100{each}" in asked)
        await asyncio.sleep(0.02 * (8 - number))
        return json.dumps({"t": f"100{number} + 1 = {1001 + number}"})

    async def said(client: Client) -> list[Any]:
        calls = [
            client.call_tool("run_procedure", {"procedure": "inputs: x\nt = x + 1", "inputs": {"x": 1000 + each}})
            for each in range(8)
        ]
        return list(await asyncio.gather(*calls))

    results = talk(create_server({"m": model}), said)
    assert [each.structured_content["answer"] for each in results] == [1001 + each for each in range(8)]


def test_what_is_logged_holds_no_content(caplog: pytest.LogCaptureFixture) -> None:
    """Runs are told by ids and kinds, without values, names of clients or replies (F02)."""
    caplog.set_level(logging.DEBUG, logger="stepguard")
    run(create_server({"m": ScriptedBackend(WRONG, WRONG)}, guard={"repair": 1}))
    verify("tax", "6.17")
    lines = [each.getMessage() for each in caplog.records if each.name == "stepguard"]
    assert any("chat_guarded" in line for line in lines)
    assert any("run_done" in line for line in lines)
    assert not any("74.7" in line or "6.1" in line or "24.9" in line for line in lines)


def test_a_run_with_a_name_is_kept_and_gone_on_with(tmp_path: Path) -> None:
    """The same call under the same name asks no model again, other inputs are refused, and nameless runs stay so."""
    path = tmp_path / "runs.db"
    asked: list[str] = []

    def model(messages: list[dict[str, str]]) -> str:
        asked.append(json.dumps(messages))
        return json.dumps({step: claim for step, claim in GOOD.items() if len(asked) != 1 or step == "subtotal"})

    def again(**more: Any) -> Any:
        return run(create_server({"m": model}, guard={"repair": 0}, ledger=path), **more)

    assert again(run_id="order 17").is_error
    assert again(run_id="order 17").structured_content["answer"] == "80.86"
    assert '"subtotal"' not in asked[1]
    assert again(run_id="order 17").structured_content["answer"] == "80.86"
    assert len(asked) == 2
    other = again(run_id="order 17", inputs={**INPUTS, "quantity": 4})
    assert other.is_error
    assert "used for another procedure or other inputs" in text(other)
    assert "runs.db" not in told(other)
    with Ledger(path) as ledger:
        assert [each.run_id for each in ledger.runs()] == ["order 17"]
        held = Guard(model, ledger=ledger).start(Procedure.parse(ORDER), INPUTS, run_id="order 18")
        assert "under way" in text(again(run_id="order 18"))
        held.cancel()
    assert not again().is_error
    assert "run_id is a text" in text(again(run_id=""))
    (tool,) = [each for each in talk(create_server(), lambda client: client.list_tools()).tools if "run_" in each.name]
    assert "run_id" not in tool.input_schema["properties"]
