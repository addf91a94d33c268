"""LangChain: a middleware with which an agent carries out procedures guarded (extra ``langchain``)."""

from __future__ import annotations

from stepguard.integrations.langchain.middleware import Choice, GuardedCallRefused, GuardMiddleware, GuardState

__all__ = ["Choice", "GuardMiddleware", "GuardState", "GuardedCallRefused"]
