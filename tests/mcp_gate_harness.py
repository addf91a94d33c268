"""An MCP server of a refund desk for the tests of the gate before it; run as a script it serves on stdio or HTTP."""

from __future__ import annotations

from typing import Any

import anyio
from mcp.server.mcpserver import Context, MCPServer

POLICY = """
record Order:
  customer: text
  paid: money(EUR)
tool get_order(id: text) -> Order reads
tool refund(order: text, amount: money(EUR)) changes get_order(order)
tool slow(seconds: number) changes nothing
tool ask_user(what: text) changes nothing
tool drop_everything(sure: boolean)
fact customer: text
allow slow, ask_user
never drop_everything "Nothing is dropped here."
before refund(id, amount):
  seen get_order(id) as order
  require order.customer == customer "Only orders of this customer are paid back."
  require amount > 0 and amount <= order.paid "No more than what was paid."
  if amount > 100:
    confirmed by user
  at most once per id
"""
PAID: list[tuple[str, float, str]] = []


def make_server() -> MCPServer[Any]:
    """The server, which knows nothing of a policy."""
    server: MCPServer[Any] = MCPServer("desk", log_level="WARNING")

    @server.tool()
    def get_order(id: str) -> dict[str, Any]:
        """Look an order up."""
        if id == "none":
            raise ValueError("there is no such order")
        return {"customer": "C1", "paid": "150.00"}

    @server.tool()
    def refund(order: str, amount: float, ctx: Context[Any, Any]) -> str:
        """Pay back; says which key it was called with."""
        meta = dict(ctx.request_context.meta or {})
        PAID.append((order, amount, str(meta.get("stepguard/idempotency-key"))))
        return f"{amount} paid back, key {PAID[-1][2]}, {len(PAID)} in all"

    @server.tool()
    async def slow(seconds: float, ctx: Context[Any, Any]) -> str:
        """Take time, and say how far it has come."""
        await ctx.report_progress(1, 2, "half")
        await anyio.sleep(seconds)
        return "awake"

    @server.tool()
    async def ask_user(what: str, ctx: Context[Any, Any]) -> str:
        """Have the client's user asked, and offer a further tool."""
        server.add_tool(lambda: "late", name="late", description="Comes later.")
        await ctx.session.send_tool_list_changed()
        return what

    @server.tool()
    def drop_everything(sure: bool) -> str:
        """What nobody may do."""
        PAID.append(("everything", 0.0, ""))
        return "dropped"

    @server.tool()
    def unknown_to_the_policy() -> str:
        """A tool that no policy declares."""
        return "done"

    @server.resource("desk://hours")
    def hours() -> str:
        """When the desk is open."""
        return "9 to 5"

    @server.prompt()
    def greet(name: str) -> str:
        """A greeting."""
        return f"Greet {name}."

    return server


if __name__ == "__main__":
    make_server().run("stdio")
