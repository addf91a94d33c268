"""Paths by their words: what is guarded is guarded, with however many slashes its path was written.

Many upstreams answer at ``/v1/chat/completions/`` what they answer at ``/v1/chat/completions``. A procedure that was
passed on there would be answered unguarded.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

from stepguard.serve.exchange import Receive, Scope, Send

__all__ = ["GUARDED", "Tidied", "speaks"]

GUARDED: Final = {"/v1/chat/completions": "chat", "/v1/responses": "responses", "/v1/messages": "messages"}
"""The paths of what is guarded, and the names of their endpoints."""
_SPOKEN: Final = re.compile(
    r"/(?:completions|responses/compact|conversations(?:/[^/]+/items)?|assistants(?:/[^/]+)?"
    r"|threads(?:/runs|/[^/]+/(?:messages|runs))?)\Z"
)


class Tidied:
    """An application that finds what is guarded at every way of writing its path.

    What is passed on goes to the path that was written: only the path that is routed by is another.
    """

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._app: Final = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith("/v1/") and (path := _tidy(scope["path"])) in GUARDED:
            scope = {**scope, "path": path}
        await self._app(scope, receive, send)


def speaks(path: str) -> bool:
    """Whether something can be said to a model at a path: one of completions, such as ``/v1/completions`` or that of
    an Azure deployment, or one of conversations, or of assistants and their threads.
    """
    return _SPOKEN.search(_tidy(path)) is not None


def _tidy(path: str) -> str:
    return "".join(f"/{word}" for word in path.lower().split("/") if word)
