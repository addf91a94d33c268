"""An agent that checks its own steps with the tools of stepguard's MCP server.

python examples/mcp_client.py

Needs `pip install "stepguard[mcp]"`, and no key: server and client are in one process, and the model behind
``run_procedure`` is a double that slips once. Agents that speak MCP start ``stepguard mcp`` instead.
"""

from __future__ import annotations

import asyncio
from typing import Any

from mcp import Client

from stepguard.integrations.mcp import create_server
from stepguard.testing import ScriptedBackend

ORDER = """name: order
inputs: price, quantity
subtotal = price * quantity
tax: decimal(2) = subtotal * 8.25 / 100
total: decimal(2) = subtotal + tax
"""
INPUTS = {"price": "24.90", "quantity": 3}
DOUBLE = ScriptedBackend(
    {"subtotal": "24.90 * 3 = 74.70", "tax": "74.70 * 8.25 / 100 = 6.17", "total": "74.70 + 6.17 = 80.87"},
    {"tax": "74.70 * 8.25 / 100 = 6.16"},
    {"total": "74.70 + 6.16 = 80.86"},
)


async def main() -> None:
    """Check a step that is wrong and one that is right, have the whole run, and look over a transcript."""
    async with Client(create_server({"double": DOUBLE})) as client:

        async def use(tool: str, **arguments: Any) -> None:
            result = await client.call_tool(tool, {"procedure": ORDER, **arguments})
            print(f"{tool}: {getattr(result.content[0], 'text', '')}")

        for value in ("6.17", "6.16"):
            await use("verify_step", step="tax", values={"subtotal": "74.70"}, value=value)
        await use("audit_transcript", inputs=INPUTS, transcript="subtotal = 74.70, tax = 6.17, total = 80.87")
        await use("run_procedure", inputs=INPUTS)


if __name__ == "__main__":
    asyncio.run(main())
