"""Serving an MCP server over stdio and HTTP so that the numbers in tool calls stay what was written.

The library reads JSON numbers into floats: 0.30000000000000001 would arrive as 0.3. Here they become text before it
sees them, in the arguments of tool calls alone. A key that stands twice in an object becomes a list of what was said,
which no tool takes, instead of the last one winning.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, Final

import anyio
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server

from stepguard.language.strict_json import JsonNumber, JsonObject, decode

_INTEGER = re.compile(r"-?[0-9]{1,1000}\Z")  # others become text: clients would round them
_MAX_BODY: Final = 4 * 1024 * 1024
"""The library refuses larger bodies itself; they are passed on unchanged."""

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


def exact_numbers(message: str) -> str:
    """A JSON-RPC message with the fractions in the arguments of a tool call as text; any other text as it is."""
    if "tools/call" not in message:
        return message
    try:
        strict = decode(message)
        plain = json.loads(message)
        arguments = strict["params"]["arguments"]  # type: ignore[index]
        plain["params"]["arguments"] = _exact(arguments)
        return json.dumps(plain, allow_nan=False)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return message  # the library says what is wrong with it


def _exact(value: object) -> object:
    if isinstance(value, JsonNumber):
        return int(value) if _INTEGER.match(value) else str(value)
    if isinstance(value, list):
        return [_exact(each) for each in value]
    if isinstance(value, JsonObject):
        return {
            key: [_exact(each) for name, each in value.pairs if name == key] if key in value.repeated else _exact(found)
            for key, found in value.items()
        }
    return value


async def serve_stdio(server: MCPServer[Any]) -> None:
    """Serve over stdin and stdout until stdin ends. What else writes to stdout meanwhile goes to stderr."""
    # A duplicate, never closed: a thread may still wait for a line when this ends.
    stream = open(os.dup(sys.stdin.fileno()), "rb", closefd=False)  # noqa: SIM115
    lines = anyio.wrap_file(io.TextIOWrapper(stream, encoding="utf-8", errors="replace"))

    class ExactLines:
        async def __aiter__(self) -> AsyncIterator[str]:
            async for line in lines:
                yield exact_numbers(line)

    given: Any = ExactLines()
    async with stdio_server(stdin=given) as (read, write):
        # As MCPServer.run_stdio_async does, which takes no streams.
        lowlevel = server._lowlevel_server
        await lowlevel.run(read, write, lowlevel.create_initialization_options())


class ExactBodies:
    """An ASGI application in front of that of an MCP server, which makes the numbers in what is posted exact.

    Args:
        app: the application behind it, such as ``server.streamable_http_app()``.
    """

    def __init__(self, app: Any) -> None:
        self._app: Final = app

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http" or scope.get("method") != "POST":
            await self._app(scope, receive, send)
            return
        body = b""
        events: list[MutableMapping[str, Any]] = []
        while True:
            event = await receive()
            if event["type"] != "http.request":
                events.append(event)
                break
            body += event.get("body", b"")
            if not event.get("more_body", False):
                break
            if len(body) > _MAX_BODY:
                events.append({"type": "http.request", "body": body, "more_body": True})
                break
        # The length has changed with the body; one that was cut off or is too large goes on as it came.
        if not events:
            sent = self._exact(body)
            headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"content-length"]
            scope = {**scope, "headers": [*headers, (b"content-length", str(len(sent)).encode())]}
            events.append({"type": "http.request", "body": sent, "more_body": False})

        async def replay() -> MutableMapping[str, Any]:
            return events.pop(0) if events else await receive()

        await self._app(scope, replay, send)

    @staticmethod
    def _exact(body: bytes) -> bytes:
        try:
            return exact_numbers(body.decode()).encode()
        except UnicodeError:
            return body
