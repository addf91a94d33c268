"""A gate before any MCP server: calls of its tools go through a policy, everything else passes untouched.

``stepguard mcp-gate --policy refunds.policy -- python server.py`` is started by an MCP client in place of the server.
"""

from __future__ import annotations

from stepguard.integrations.mcp_gate.session import IDEMPOTENCY_KEY, GatedSession, Routed
from stepguard.integrations.mcp_gate.stdio import serve_command

__all__ = ["IDEMPOTENCY_KEY", "GatedSession", "Routed", "serve_command"]
