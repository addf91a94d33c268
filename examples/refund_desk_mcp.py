"""The refund desk as an MCP server, with the gate of a policy before it: ``stepguard mcp-gate``.

python examples/refund_desk_mcp.py

The client starts the gate in place of the server; neither knows of it. The person at the client, here a function, is
asked for the manager's yes. No key is needed. Needs the extra ``mcp``.
"""

from __future__ import annotations

import asyncio
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ElicitResult
from refund_desk import PAID, SCRIPT
from refund_desk import get_order as old_order

from stepguard.integrations.mcp_gate import IDEMPOTENCY_KEY


def serve() -> None:
    """The server, as anybody might have written it; the key of a call is in its ``_meta``."""
    server: MCPServer[Any] = MCPServer("desk", log_level="WARNING")

    @server.tool()
    def get_order(order: str) -> dict[str, Any]:
        """An order, placed today."""
        return {**old_order(order), "placed": datetime.now(UTC).isoformat()}

    @server.tool()
    def refund(order: str, amount: float, ctx: Context[Any, Any]) -> str:
        """Pay money back."""
        PAID.append((order, amount, str(dict(ctx.request_context.meta or {})[IDEMPOTENCY_KEY])))
        return f"{amount} paid back"

    server.run("stdio")


async def manager(context: Any, params: Any) -> ElicitResult:
    """The person at the client, who is the manager and agrees."""
    print(f"the manager agrees to: {params.message}")
    return ElicitResult(action="accept", content={"answer": True})


async def main() -> None:
    """The agent wants too much, is told so, and does it the right way."""
    here = Path(__file__)
    gate = ["mcp-gate", "--policy", str(here.with_name("refund_desk.policy")), "--fact", "customer=C1"]
    command = ["-m", "stepguard.cli", *gate, "--ask", "manager", "--", sys.executable, str(here), "serve"]
    parameters = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    paid: list[tuple[object, object]] = []
    async with Client(parameters, elicitation_callback=manager) as client:
        for tool, arguments in SCRIPT:
            result = await client.call_tool(tool, arguments)
            print(f"{tool}: {getattr(result.content[0], 'text', '')}")
            if tool == "refund" and not result.is_error:
                paid.append((arguments["order"], arguments["amount"]))
    print("Done: 120.00 EUR are on their way.")
    print("paid:", paid)


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else asyncio.run(main())
