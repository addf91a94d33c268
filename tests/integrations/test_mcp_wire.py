"""The MCP server on the wire: exact numbers, over stdio as a subprocess, and over HTTP."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tables import all_rows

pytest.importorskip("mcp.server.mcpserver")

from conftest import ChatServer, Reply, completion_body
from mcp import Client, StdioServerParameters
from mcp_harness import GOOD, INPUTS, KEY, ORDER, call, talk

from stepguard import Procedure
from stepguard.integrations.mcp.server import create_server
from stepguard.integrations.mcp.wire import ExactBodies, exact_numbers

pytestmark = pytest.mark.once

COMMAND = (
    "import argparse, sys\n"
    "from stepguard.cli import mcp\n"
    "parser = argparse.ArgumentParser()\n"
    "mcp.add_arguments(parser)\n"
    "sys.exit(mcp.main(parser.parse_args()))\n"
)


# On the wire


@pytest.mark.parametrize(
    ("written", "read"),
    [
        *(("0.30000000000000001", '"0.30000000000000001"'), ("24.90", '"24.90"'), ("1e2", '"1e2"')),
        *(("12345678901234567890", "12345678901234567890"), ("[1, 2.50]", '[1, "2.50"]')),
    ],
)
def test_numbers_in_arguments_stay_what_was_written(written: str, read: str) -> None:
    """No float stands between a message and its tool; the rest of the message is as it was."""
    message = f'{{"id": 1.5, "method": "tools/call", "params": {{"arguments": {{"v": {written}}}}}}}'
    arguments = message[message.index("arguments") :].replace(written, read)
    assert exact_numbers(message) == message[: message.index("arguments")] + arguments
    other = message.replace("tools/call", "tools/list")
    assert exact_numbers(other) == other


@all_rows("message", ["", "{", "[1]", '{"tools/call": NaN}', '"tools/call"', '{"params": "tools/call"}'])
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
