"""What the tests of the MCP server share: an order, its answers, and calls of a tool."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("mcp.server.mcpserver")

from mcp import Client

from stepguard.integrations.mcp.server import create_server

ORDER = """name: order
inputs: price, quantity
subtotal = price * quantity
tax: decimal(2) = subtotal * 8.25 / 100
total: decimal(2) = subtotal + tax
"""
INPUTS = {"price": "24.90", "quantity": 3}
GOOD = {"subtotal": "24.90 * 3 = 74.70", "tax": "74.70 * 8.25 / 100 = 6.16", "total": "74.70 + 6.16 = 80.86"}
KEY = "sk-SECRET-mcp"
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
