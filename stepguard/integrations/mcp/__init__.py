"""MCP: a server with which agents verify steps, run procedures and audit transcripts (extra ``mcp``)."""

from __future__ import annotations

from stepguard.integrations.mcp.server import DEFAULT_BUDGET, create_server

__all__ = ["DEFAULT_BUDGET", "create_server"]
