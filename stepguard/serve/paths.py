"""Allow each path in one spelling only, and only if it is served or on the list of what is passed on.

What is routed by is what the upstream is asked at. The key of the operator, and every caller's, goes nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final
from unicodedata import normalize
from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from stepguard.errors import ConfigError
from stepguard.serve.errors import HttpProblem, wrong_request

GUARDED: Final = {"/v1/chat/completions": "chat", "/v1/responses": "responses", "/v1/messages": "messages"}
"""Guarded path -> the name of its endpoint."""

PASSED: Final = (
    "POST /audio/speech",
    "POST /audio/transcriptions",
    "POST /audio/translations",
    "POST /completions",
    "POST /embeddings",
    "POST /images/edits",
    "POST /images/generations",
    "POST /images/variations",
    "POST /messages/count_tokens",
    "POST /moderations",
    "POST /rerank",
    "POST /responses/input_tokens",
)
"""What is passed on beside chat completions, responses, messages and models: what asks a model and keeps nothing.

Files, batches, assistants, stored responses and the like belong to the account behind a key.
"""

_ROUTE: Final = re.compile(r"(GET|POST|PUT|PATCH|DELETE) ((?:/(?:[A-Za-z0-9._~-]+|\{[a-z_]+\}))+)")
# Their input is data and no conversation, so that no procedure can be asked for in it.
_SILENT: Final = ("/v1/audio/", "/v1/embeddings", "/v1/images/", "/v1/moderations", "/v1/rerank")


class OnePath:
    """An application that sees each path written in one way, and none that could be read in two."""

    def __init__(self, app: ASGIApp, refusal: Callable[[Request, HttpProblem], Response]) -> None:
        self._app: Final = app
        self._refusal: Final = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            raw = scope.get("raw_path")
            given = quote(scope["path"]) if raw is None else raw.decode("latin-1").partition("?")[0]
            try:
                path = one_path(given)
            except HttpProblem as problem:
                await self._refusal(Request(scope), problem)(scope, receive, send)
                return
            scope = {**scope, "path": path, "raw_path": encode(path).encode("ascii")}
        await self._app(scope, receive, send)


def one_path(written: str) -> str:
    """A path as it is routed and passed on: its escapes read once, a slash between any two words.

    A slash may be escaped in the name of a model alone.

    Raises Problem: others could read it as another path.
    """
    if not written.startswith("/"):
        raise _refused("a slash comes first")
    # Split before unescaping, so that %2F stays within its word; once only, so that %252F is refused below.
    words = [unquote(word, errors="surrogateescape") for word in written.split("/") if word]
    path = "/" + "/".join(words)
    # Full-width letters become plain ones in some servers: that would be another path behind this one.
    if not path.isprintable() or normalize("NFKC", path) != path:
        raise _refused("no character is unseen, or another in disguise")
    # Proxies and frameworks disagree on these: `;` begins parameters for some, `\` is a slash for others.
    if any(sign in path for sign in "%\\;?#"):
        raise _refused("there are no parameters, and what is escaped is so once")
    if any(not part.strip(". ") for part in path[1:].split("/") if path != "/"):
        raise _refused("no word is empty or of dots alone")
    if not path.startswith("/v1/models/") and any("/" in word for word in words):
        raise _refused("a slash is written as one, but in the name of a model")
    return path


def encode(path: str) -> str:
    """Escape a path of `one_path` for sending."""
    return quote(path, safe="/:@!$&'()*+,=~")


def _refused(rule: str) -> HttpProblem:
    return wrong_request(
        f"this path can be read in more than one way: in a path {rule}", status=404, code="unknown_path"
    )


def read_route(text: str) -> tuple[str, str]:
    """The method and the path of a route as the operator writes it, such as ``GET /files/{id}``.

    Raises ConfigError: this is none.
    """
    route = _ROUTE.fullmatch(text.strip())
    if route is None or any(word.strip(".") == "" for word in route[2].split("/")[1:]):
        raise ConfigError(
            f"{text!r} is no route: write a method and what stands behind /v1, such as 'GET /files/{{id}}'",
            option="passed",
        )
    return route[1], route[2]


def says_nothing(path: str) -> bool:
    """Whether a POST to a path reaches no model that answers in words."""
    return path.startswith(_SILENT)
