"""The gate before a real MCP server: a process on stdio, or an address over HTTP, with the client of the library."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp.server.mcpserver")

import uvicorn
from mcp import Client, StdioServerParameters
from mcp_gate_harness import POLICY, make_server
from mcp_harness import talk
from mcp_types import ElicitResult

pytestmark = pytest.mark.once

TESTS = Path(__file__).parents[1]
SERVER = [sys.executable, str(TESTS / "mcp_gate_harness.py")]
GATE = ["-W", "error", "-m", "stepguard.cli", "mcp-gate", "--fact", "customer=C1"]


@pytest.fixture
def policy(tmp_path: Path) -> str:
    """A file with the policy of the desk."""
    path = tmp_path / "desk.policy"
    path.write_text(POLICY, encoding="utf-8")
    return str(path)


def gated(policy: str, *options: str, server: list[str] | None = None) -> StdioServerParameters:
    """What a client starts: the gate, with the server behind it."""
    command = SERVER if server is None else server
    arguments = [*GATE, "--policy", policy, *options, *(["--", *command] if command else [])]
    return StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))


async def said(client: Client, tool: str, **arguments: Any) -> tuple[bool, str]:
    """Whether a call is an error, and its text."""
    result = await client.call_tool(tool, arguments)
    return bool(result.is_error), str(getattr(result.content[0], "text", ""))


async def the_right_way(client: Client) -> None:
    """An agent that wants too much is told what comes first, and finishes."""
    wrong, words = await said(client, "refund", order="A1", amount=20)
    assert wrong
    assert 'Call get_order(id="A1") first.' in words
    assert await said(client, "get_order", id="A1") == (False, '{\n  "customer": "C1",\n  "paid": "150.00"\n}')
    assert "No more than what was paid." in (await said(client, "refund", order="A1", amount=500))[1]
    wrong, words = await said(client, "refund", order="A1", amount=20)
    assert not wrong
    assert words.startswith("20.0 paid back, key ")
    assert words.endswith(", 1 in all")
    assert "Nothing is dropped here." in (await said(client, "drop_everything", sure=True))[1]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_server_on_stdio_is_as_it_was_but_for_calls_that_break_a_rule(policy: str, mode: Any) -> None:
    """Tools, progress, errors, resources, prompts and changes of the list reach the client in either version."""

    async def conversation(client: Client) -> None:
        names = {each.name for each in (await client.list_tools()).tools}
        assert {"get_order", "refund", "unknown_to_the_policy"} <= names
        await the_right_way(client)
        assert "There is no tool" in (await said(client, "unknown_to_the_policy"))[1]
        assert await said(client, "get_order", id="none") == (True, "Error executing tool get_order")
        heard: list[tuple[float, float | None, str | None]] = []

        async def report(progress: float, total: float | None, message: str | None) -> None:
            heard.append((progress, total, message))

        await client.call_tool("slow", {"seconds": 0.05}, progress_callback=report)
        assert heard == [(1.0, 2.0, "half")]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await client.call_tool("slow", {"seconds": 60})
        assert await said(client, "ask_user", what="so") == (False, "so")
        assert "late" in {each.name for each in (await client.list_tools()).tools}
        assert "9 to 5" in str(await client.read_resource("desk://hours"))
        assert "Greet Ann." in str(await client.get_prompt("greet", {"name": "Ann"}))

    talk(gated(policy), conversation, mode=mode)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_user_of_the_client_says_yes(policy: str, mode: Any) -> None:
    """The client's own question to its user lets the call through, in either version of the protocol."""
    asked: list[str] = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"answer": True})

    async def conversation(client: Client) -> None:
        await said(client, "get_order", id="A1")
        wrong, words = await said(client, "refund", order="A1", amount=120)
        assert not wrong, words

    talk(gated(policy, "--ask", "user"), conversation, mode=mode, elicitation_callback=answer)
    (question,) = asked
    assert 'refund(order="A1", amount=120)' in question


@contextmanager
def served() -> Iterator[str]:
    """The server over HTTP on loopback."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        found.listen()
        config = uvicorn.Config(make_server().streamable_http_app(), log_level="error", lifespan="on")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[found])), daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{found.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            thread.join(30)


@pytest.mark.slow
def test_a_server_over_http_stands_behind_the_same_gate(policy: str) -> None:
    """The client speaks stdio; what the server is told is the version that was agreed on."""

    async def conversation(client: Client) -> None:
        await the_right_way(client)
        assert "9 to 5" in str(await client.read_resource("desk://hours"))

    with served() as url:
        talk(gated(policy, "--url", url, server=[]), conversation)


@pytest.mark.slow
def test_a_conversation_goes_on_in_another_session(policy: str, tmp_path: Path) -> None:
    """With a ledger limits count across sessions, whose identifiers begin anew."""

    async def refund(client: Client) -> tuple[bool, str]:
        await said(client, "get_order", id="A1")
        return await said(client, "refund", order="A1", amount=20)

    kept = gated(policy, "--ledger", str(tmp_path / "runs.db"), "--run-id", "c-1")
    assert not talk(kept, refund)[0]
    assert "at most once" in talk(kept, refund)[1]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_a_gate_that_is_ended_leaves_no_server_behind(policy: str, told: signal.Signals) -> None:
    """Not even one that does not care about the end of its input."""
    server = "import os, time\nprint(os.getpid(), flush=True)\nwhile True: time.sleep(1)"
    pipe = subprocess.PIPE
    command = [sys.executable, *GATE, "--policy", policy, "--", sys.executable, "-c", server]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as gate:
        assert gate.stdout is not None
        child = int(gate.stdout.readline())
        gate.send_signal(told)
        assert gate.wait(60) in (130, 143)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


@pytest.mark.slow
def test_a_server_that_cannot_be_reached_is_named_and_nothing_hangs(policy: str) -> None:
    """Also where the client still speaks."""
    command = [sys.executable, *GATE, "--policy", policy, "--url", "http://127.0.0.1:1/mcp"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, encoding="utf-8") as gate:
        assert gate.stdin is not None
        assert gate.stderr is not None
        gate.stdin.write('{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}\n')
        gate.stdin.flush()
        assert gate.wait(60) == 2
        assert "the server at http://127.0.0.1:1/mcp cannot be reached" in gate.stderr.read()


def run(policy: str, *arguments: str, said: str = "") -> subprocess.CompletedProcess[str]:
    """The command, to its end."""
    command = [sys.executable, *GATE, "--policy", policy, *arguments]
    return subprocess.run(command, input=said, capture_output=True, encoding="utf-8", timeout=60, check=False)


def test_it_ends_with_the_client_and_with_the_server(policy: str) -> None:
    """0 where the client has gone, the server's own code where that has; what it prints is not mixed in."""
    echo = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
    done = run(policy, "--", sys.executable, "-c", echo, said='{"jsonrpc":"2.0","method":"notifications/x"}\n')
    assert (done.returncode, done.stdout) == (0, '{"jsonrpc":"2.0","method":"notifications/x"}\n')
    client = subprocess.Popen(
        [sys.executable, *GATE, "--policy", policy, "--", sys.executable, "-c", "raise SystemExit(7)"],
        stdin=subprocess.PIPE,
    )
    assert client.wait(60) == 7
    assert client.stdin is not None
    client.stdin.close()
