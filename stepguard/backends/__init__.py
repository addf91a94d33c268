"""Backends: what a model call is, and the ways to make one.

A backend is an object with ``complete(request) -> Completion``, or ``async acomplete(request) -> Completion``, or
both. `as_backend` makes one from a plain callable, an OpenAI-style client or a model name.
"""

from __future__ import annotations

from stepguard.backends.base import AsyncBackend, Backend, Completion, Message, Request, SyncBackend, ToolCall
from stepguard.backends.function import FunctionBackend
from stepguard.backends.making import as_backend

__all__ = [
    "AsyncBackend",
    "Backend",
    "Completion",
    "FunctionBackend",
    "Message",
    "Request",
    "SyncBackend",
    "ToolCall",
    "as_backend",
]
