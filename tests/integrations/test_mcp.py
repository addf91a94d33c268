"""The MCP server through the library's own client: in memory, over stdio as a subprocess, and over HTTP."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import math
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp.server.mcpserver")

from conftest import ChatServer, Reply, completion_body
from mcp import Client, StdioServerParameters
from mcp_types import CreateMessageResult, ErrorData, TextContent

from stepguard import Budget, Procedure, Result
from stepguard.backends import Completion, Request
from stepguard.backends.openai import OpenAIBackend
from stepguard.errors import ConfigError, MissingExtraError
from stepguard.integrations.mcp.server import DEFAULT_BUDGET, create_server
from stepguard.integrations.mcp.wire import ExactBodies, exact_numbers
from stepguard.testing import ScriptedBackend

pytestmark = pytest.mark.once

ORDER = """name: order
inputs: price, quantity
subtotal = price * quantity
tax: decimal(2) = subtotal * 8.25 / 100
total: decimal(2) = subtotal + tax
"""
INPUTS = {"price": "24.90", "quantity": 3}
GOOD = {"subtotal": "24.90 * 3 = 74.70", "tax": "74.70 * 8.25 / 100 = 6.16", "total": "74.70 + 6.16 = 80.86"}
WRONG = {**GOOD, "tax": "74.70 * 8.25 / 100 = 6.17", "total": "74.70 + 6.17 = 80.87"}
KEY = "sk-SECRET-mcp"
COMMAND = (
    "import argparse, sys\n"
    "from stepguard.cli import mcp\n"
    "parser = argparse.ArgumentParser()\n"
    "mcp.add_arguments(parser)\n"
    "sys.exit(mcp.main(parser.parse_args()))\n"
)

Talk = Callable[[Client], Awaitable[Any]]


def talk(server: Any, said: Talk, **options: Any) -> Any:
    """What a conversation of a client with a server gives."""

    async def main() -> Any:
        async with asyncio.timeout(60), Client(server, **options) as client:
            return await said(client)

    return asyncio.run(main())


def call(server: Any, tool: str, arguments: dict[str, Any], **options: Any) -> Any:
    """One call of a tool."""
    return talk(server, lambda client: client.call_tool(tool, arguments), **options)


def verify(step: str, value: object, values: dict[str, object] | None = None, **more: object) -> Any:
    given = {"price": "24.90", "quantity": 3, "subtotal": "74.70"} if values is None else values
    arguments = {"procedure": ORDER, "step": step, "values": given, "value": value, **more}
    return call(create_server(), "verify_step", arguments)


def told(result: Any) -> str:
    """All that a caller is told."""
    return str(result.model_dump_json())


def text(result: Any) -> str:
    return "\n".join(each.text for each in result.content)


# One step


@pytest.mark.parametrize(
    ("step", "value", "values"),
    [
        ("subtotal", "74.70", {"price": "24.90", "quantity": 3}),
        ("subtotal", 74.7, {"price": 24.90, "quantity": 3}),
        ("subtotal", "747/10", {"price": 24.9, "quantity": "3"}),
        ("subtotal", 0.3, {"price": 0.1, "quantity": 3}),
        ("tax", "6.16", {"subtotal": "74.70"}),
        ("tax", 6.16, {"subtotal": 74.7, "price": "24.90", "quantity": 3}),
    ],
)
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_right_step_passes_whatever_way_its_numbers_are_written(
    mode: str, step: str, value: object, values: dict[str, object]
) -> None:
    """Text or JSON numbers, whole or not: they are what was written, and nothing is rounded on the way."""
    arguments = {"procedure": ORDER, "step": step, "values": values, "value": value}
    result = call(create_server(), "verify_step", arguments, mode=mode)
    assert not result.is_error
    assert result.structured_content["verdict"] == "passed"
    assert result.structured_content["strength"] == "proved"


@pytest.mark.parametrize(
    ("value", "working", "kind"),
    [
        *(("6.17", None, "wrong_value"), ("6.1600001", None, "malformed"), ("6.16 = 6.16", None, "malformed")),
        *(("about six", None, "malformed"), ("6.17", "74.70 * 8.25 / 100", "wrong_value")),
        *(("6.16", "74.60 * 8.25 / 100", "wrong_operand"), ("6.16", "74.70 + 8.25 / 100", "unfaithful_work")),
        *(("6.16", "6 + 0.16", "wrong_operand"), ("5 = 6.17", "74.70 * 8.25 / 100", "malformed")),
    ],
)
def test_a_wrong_step_fails_with_its_kind_and_no_hint(value: str, working: str | None, kind: str) -> None:
    """What is wrong is named, and nothing the caller is told holds the right value that it did not write itself."""
    result = verify("tax", value, working=working)
    assert (result.structured_content["verdict"], result.structured_content["kind"]) == ("failed", kind)
    assert result.structured_content["strength"] == "unverified"
    assert "6.16" not in told(result)
    assert "passed" not in text(result)


def test_a_value_alone_passes_and_it_is_said_that_the_working_was_not_checked() -> None:
    """Working is checked where it is given."""
    alone = verify("tax", "6.16").structured_content
    shown = verify("tax", "6.16", working="74.70 * 8.25 / 100 = 6.16275").structured_content
    assert (alone["working_checked"], shown["working_checked"]) == (False, True)
    assert "the working was not checked" in alone["told"]
    assert shown["verdict"] == "passed"


def test_what_cannot_be_checked_is_undecided_and_no_pass() -> None:
    """A step in words, and one that has no value, pass with no claim at all."""
    words = 'inputs: a\nt1: text = "Name the country." (reads a)\nt2 = a / 0'
    for step, value in (("t1", "France"), ("t2", "0")):
        arguments = {"procedure": words, "step": step, "values": {"a": 1}, "value": value}
        result = call(create_server(), "verify_step", arguments)
        assert result.structured_content["verdict"] == "undecided"
        assert "not a pass" in text(result)


def test_a_step_does_not_pass_on_an_earlier_one_that_is_seen_to_be_wrong() -> None:
    """Earlier values are checked as far as what they rest on is given; what cannot be checked so is named."""
    wrong = verify("total", "80.85", {**INPUTS, "subtotal": "74.70", "tax": "6.15"}).structured_content
    assert (wrong["verdict"], wrong["kind"]) == ("failed", "wrong_operand")
    assert "tax" in wrong["told"]
    right = verify("total", "80.86", {**INPUTS, "subtotal": "74.70", "tax": "6.16"}).structured_content
    assert (right["verdict"], right["taken_as_given"]) == ("passed", [])
    alone = verify("tax", "6.16", {"subtotal": "74.70"}).structured_content
    assert (alone["verdict"], alone["taken_as_given"]) == ("passed", ["subtotal"])
    assert "taken as given and not checked here: subtotal" in alone["told"]


# Arguments


@pytest.mark.parametrize(
    ("change", "said"),
    [
        *(({"step": "nope"}, "no step 'nope'"), ({"values": {}}, "reads 'subtotal'")),
        ({"values": {"subtotal": "74.70", "other": 1}}, "'other' is no input"),
        ({"values": {"subtotal": "74.70", "total": 1}}, "'total' is no input and no step before tax"),
        *(({"values": {"subtotal": "much"}}, "'subtotal'"), ({"values": {"subtotal": math.nan}}, "values")),
        *(({"values": {"subtotal": math.inf}}, "values"), ({"values": {"subtotal": 0.1 + 0.2}}, "give it as text")),
        *(({"values": {"subtotal": ["74.70"]}}, "value"), ({"values": {"subtotal": None}}, "value")),
        *(({"value": math.nan}, "value"), ({"value": {}}, "value")),
        ({"procedure": "no procedure of this name"}, "no procedure is named"),
        ({"procedure": "inputs: x\nt = x +"}, "line 2"),
        ({"procedure": "inputs: x\n" + "t = x + 1 # long\n" * 10_000}, "too long"),
        *(({"value": "1" * 200_000}, "too long"), ({"step": 7}, "step")),
    ],
)
def test_an_argument_that_cannot_work_is_a_clear_error_of_the_tool(change: dict[str, Any], said: str) -> None:
    """The error says what is wrong; the server goes on."""
    good = {"procedure": ORDER, "step": "tax", "values": {"subtotal": "74.70"}, "value": "6.16"}

    async def said_to(client: Client) -> tuple[Any, Any]:
        return await client.call_tool("verify_step", {**good, **change}), await client.call_tool("verify_step", good)

    # The in-memory transport hands floats over as they are, NaN among them.
    wrong, right = talk(create_server(), said_to)
    assert wrong.is_error
    assert said in text(wrong)
    assert right.structured_content["verdict"] == "passed"


def test_a_transcript_that_is_too_long_is_refused() -> None:
    """Sizes are limited, and the limit is an option."""
    arguments = {"procedure": ORDER, "inputs": INPUTS, "transcript": "x" * 1001}
    result = call(create_server(max_transcript=1000), "audit_transcript", arguments)
    assert result.is_error
    assert "at most 1000" in text(result)


@pytest.mark.parametrize(
    "options",
    [
        *({"max_procedure": 0}, {"max_transcript": True}, {"max_runs": "9"}, {"models": "openai/gpt-4.1-mini"}),
        *({"models": {"a": 5}}, {"guard": {"observe": True}}, {"guard": {"segment": 0}}),
        {"procedures": "/no/such/folder"},
    ],
)
def test_options_that_cannot_work_are_refused_at_once(options: dict[str, Any]) -> None:
    """Configuration is checked when the server is made."""
    with pytest.raises(ConfigError):
        create_server(**options)


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who has not installed it is told what to install."""
    name = "stepguard.integrations.mcp.server"
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    with pytest.raises(MissingExtraError, match=r"stepguard\[mcp\]"):
        importlib.import_module(name)


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


# Audits and procedures


TRANSCRIPT = (
    "subtotal = 24.90 * 3 = 74.70\ntax = 74.70 * 8.25 / 100 = 6.17\ntotal = 74.70 + 6.17 = 80.87\nAnswer: 80.87"
)


def test_an_audit_names_what_is_wrong_and_where_without_a_hint() -> None:
    """Kinds, steps and lines; neither reasons nor right values."""
    arguments = {"procedure": ORDER, "inputs": INPUTS, "transcript": TRANSCRIPT}
    result = call(create_server(), "audit_transcript", arguments)
    found = result.structured_content
    assert (found["ok"], found["wrong"], found["answer_right"]) == (False, True, False)
    assert [(each["kind"], each["step"], each["line"]) for each in found["findings"]][:2] == [
        ("wrong_value", "tax", 2),
        ("inherited", "total", 3),
    ]
    assert "line 2: wrong_value at tax" in text(result)
    assert not any(each in told(result) for each in ("6.16", "80.86"))


def test_reasons_are_told_where_the_server_says_so() -> None:
    """People may want to know what is right."""
    arguments = {"procedure": ORDER, "inputs": INPUTS, "transcript": TRANSCRIPT}
    result = call(create_server(tell_reasons=True), "audit_transcript", arguments)
    assert "6.16" in text(result)
    assert result.structured_content["steps"][1]["expected"] == "6.16"


def test_procedures_of_a_folder_are_listed_and_named(tmp_path: Path) -> None:
    """A caller finds what it can name, and names it in every tool; without any there is no such tool."""
    (tmp_path / "order.txt").write_text(ORDER, encoding="utf-8")
    server = create_server({"m": ScriptedBackend(GOOD)}, procedures=tmp_path)

    async def said(client: Client) -> tuple[Any, Any]:
        ran = await client.call_tool("run_procedure", {"procedure": "order", "inputs": INPUTS})
        return await client.call_tool("list_procedures", {}), ran

    listed, ran = talk(server, said)
    (order,) = listed.structured_content["procedures"]
    assert (order["name"], order["answer"]) == ("order", "total")
    assert [each["name"] for each in order["inputs"]] == ["price", "quantity"]
    assert order["steps"][1] == {
        "id": "tax",
        "type": "decimal(2, half_up)",
        "reads": ["subtotal"],
        "text": "tax = subtotal * 8.25 / 100",
    }
    assert ran.structured_content["answer"] == "80.86"
    names = [each.name for each in talk(create_server(), lambda client: client.list_tools()).tools]
    assert names == ["verify_step", "run_procedure", "audit_transcript"]


def test_a_server_with_procedures_of_its_own_takes_no_others() -> None:
    """What a caller writes may have stood anywhere: it is run where the host says so, or has named none."""
    own, text_given = {"order": Procedure.parse(ORDER)}, {"procedure": ORDER, "inputs": INPUTS}
    refused = call(create_server({"m": ScriptedBackend(GOOD)}, procedures=own), "run_procedure", text_given)
    assert refused.is_error
    assert "its own procedures alone, by name: order" in text(refused)
    for options in ({"procedures": own, "accept_texts": True}, {}):
        server = create_server({"m": ScriptedBackend(GOOD)}, **options)  # type: ignore[arg-type]
        assert not call(server, "run_procedure", text_given).is_error
    assert call(create_server(accept_texts=False), "run_procedure", text_given).is_error


def test_a_run_without_an_answer_tells_texts_by_their_size() -> None:
    """What was read from a document is not echoed in an error."""
    text_read = "Dear Sir, the sum of 80.86 EUR is due."
    steps = 'inputs: n\nletter: text = "Copy the letter." (reads n)\nt1 = n * 2'
    reply = {"letter": {"work": "", "value": text_read}, "t1": "3 * 2 = 7"}
    server = create_server({"m": ScriptedBackend(*[reply] * 9)}, guard={"repair": 0}, at_least="unverified")
    result = call(server, "run_procedure", {"procedure": steps, "inputs": {"n": 3}})
    assert result.is_error
    assert result.structured_content["values"] == {"letter": f"(a text of {len(text_read)} characters)"}
    assert "Dear Sir" not in told(result)


# On the wire


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("0.30000000000000001", '"0.30000000000000001"'),
        ("24.90", '"24.90"'),
        ("1e2", '"1e2"'),
        ("12345678901234567890", "12345678901234567890"),
        ("[1, 2.50]", '[1, "2.50"]'),
    ],
)
def test_numbers_in_arguments_stay_what_was_written(written: str, read: str) -> None:
    """No float stands between a message and its tool; the rest of the message is as it was."""
    message = f'{{"id": 1.5, "method": "tools/call", "params": {{"arguments": {{"v": {written}}}}}}}'
    arguments = message[message.index("arguments") :].replace(written, read)
    assert exact_numbers(message) == message[: message.index("arguments")] + arguments
    other = message.replace("tools/call", "tools/list")
    assert exact_numbers(other) == other


@pytest.mark.parametrize("message", ["", "{", "[1]", '{"tools/call": NaN}', '"tools/call"', '{"params": "tools/call"}'])
def test_what_is_no_tool_call_is_handed_on_as_it_is(message: str) -> None:
    """The library says what is wrong with it."""
    assert exact_numbers(message) == message


def test_a_key_that_stands_twice_is_no_value() -> None:
    """Neither of two values wins."""
    message = '{"method": "tools/call", "params": {"arguments": {"x": 1, "x": 2}}}'
    assert json.loads(exact_numbers(message))["params"]["arguments"] == {"x": [1, 2]}


def test_posted_bodies_are_made_exact_in_whatever_pieces_they_come() -> None:
    """The application behind gets one body, of the length that its header says."""
    body = b'{"method": "tools/call", "params": {"arguments": {"v": 0.30000000000000001}}}'
    got: list[tuple[Any, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        got.append((scope, await receive()))

    async def post(pieces: list[bytes]) -> None:
        events = [
            {"type": "http.request", "body": piece, "more_body": index + 1 < len(pieces)}
            for index, piece in enumerate(pieces)
        ]

        async def receive() -> Any:
            return events.pop(0)

        scope = {"type": "http", "method": "POST", "headers": [(b"content-length", str(len(body)).encode())]}
        await ExactBodies(app)(scope, receive, receive)  # type: ignore[arg-type]

    asyncio.run(post([body]))
    asyncio.run(post([body[:20], body[20:], b""]))
    for scope, event in got:
        assert b'"0.30000000000000001"' in event["body"]
        assert dict(scope["headers"])[b"content-length"] == str(len(event["body"])).encode()


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command in a process of its own."""
    command = [sys.executable, "-W", "error", "-c", COMMAND, *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8") as made:
        killer = threading.Timer(60, made.kill)
        killer.start()
        try:
            yield made
        finally:
            killer.cancel()
            if made.poll() is None:
                made.kill()


@pytest.mark.slow
def test_over_stdio_the_client_of_the_library_is_served(tmp_path: Path, chat_server: ChatServer) -> None:
    """The command serves a client over a pipe: a check, a run at an endpoint, and a procedure of the folder."""
    (tmp_path / "order.txt").write_text(ORDER, encoding="utf-8")
    chat_server.play(Reply(completion_body(json.dumps(GOOD))))
    options = ["--model", "m", "--base-url", chat_server.url, "--procedures", str(tmp_path), "--max-calls", "5"]
    server = StdioServerParameters(
        command=sys.executable, args=["-c", COMMAND, *options], env={"OPENAI_API_KEY": KEY}, cwd=Path.cwd()
    )

    async def said(client: Client) -> tuple[Any, Any]:
        values = {"subtotal": 74.7}
        asked = {"procedure": "order", "step": "tax", "values": values, "value": 6.16}
        checked = await client.call_tool("verify_step", asked)
        return checked, await client.call_tool("run_procedure", {"procedure": "order", "inputs": INPUTS})

    checked, ran = talk(server, said)
    assert checked.structured_content["verdict"] == "passed"
    assert (ran.structured_content["answer"], ran.structured_content["model"]) == ("80.86", "m")


@pytest.mark.slow
def test_over_stdio_a_client_that_leaves_does_not_hang_the_server(chat_server: ChatServer) -> None:
    """stdout holds the protocol alone, numbers are exact, rubbish is survived, and the end of stdin ends a run."""
    chat_server.play(Reply(completion_body("late"), delay=120))
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    values = '{"price": 0.30000000000000001, "quantity": 1}'
    asked = f'{{"procedure": {json.dumps(ORDER)}, "step": "subtotal", "values": {values}, "value": 0.3}}'
    job = json.dumps({"procedure": ORDER, "inputs": INPUTS})
    with process("--model", "m", "--base-url", chat_server.url) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None

        def send(line: str) -> None:
            assert server.stdin is not None
            server.stdin.write(line + "\n")
            server.stdin.flush()

        send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}))
        assert json.loads(server.stdout.readline())["id"] == 1
        send('{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        send("rubbish")
        send(f'{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"verify_step","arguments":{asked}}}}}')
        send(f'{{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"run_procedure","arguments":{job}}}}}')
        answers = {}
        while 2 not in answers:
            found = json.loads(server.stdout.readline())
            answers[found.get("id")] = found
        assert answers[2]["result"]["structuredContent"]["verdict"] == "failed"
        while not chat_server.requests:
            assert server.poll() is None
        server.stdin.close()
        assert server.wait(30) == 0
        for line in server.stdout.read().splitlines():
            assert json.loads(line)["jsonrpc"] == "2.0"
        assert "Traceback" not in server.stderr.read()


def test_over_http_the_client_of_the_library_is_served() -> None:
    """With --http the address is told on stdout, on loopback, and a signal ends it."""
    with process("--http", "--port", "0") as server:
        assert server.stdout is not None
        url = server.stdout.readline().split()[-1]
        arguments = {"procedure": ORDER, "step": "tax", "values": {"subtotal": 74.7}, "value": "6.16"}
        assert call(url, "verify_step", arguments).structured_content["verdict"] == "passed"
        server.terminate()
        assert server.wait(30) == 0


def test_the_command_listens_on_loopback_alone() -> None:
    """It asks for no key, so nobody else is to reach it."""
    with process("--http", "--host", "0.0.0.0") as server:
        _, said = server.communicate(timeout=60)
    assert server.returncode != 0
    assert "127.0.0.1" in said


def test_tools_say_what_they_take_and_give() -> None:
    """Every tool has a description and the schemas of its arguments and its answer."""
    server = create_server(procedures={"order": Procedure.parse(ORDER)})
    for tool in talk(server, lambda client: client.list_tools()).tools:
        assert tool.description
        assert tool.output_schema["type"] == "object"
        assert "ctx" not in tool.input_schema.get("properties", {})


def test_an_unknown_tool_is_an_error() -> None:
    """The server survives what it does not have."""

    async def said(client: Client) -> tuple[Any, Any]:
        return await client.call_tool("nope", {}), await client.list_tools()

    wrong, listed = talk(create_server(), said)
    assert wrong.is_error
    assert listed.tools
