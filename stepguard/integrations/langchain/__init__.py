"""LangChain: a middleware with which an agent carries out procedures guarded (extra ``langchain``)."""

from __future__ import annotations

from stepguard.integrations.langchain.middleware import GuardedCallRefused, GuardMiddleware, GuardState, ProcedureChoice

__all__ = ["GuardMiddleware", "GuardState", "GuardedCallRefused", "ProcedureChoice"]
