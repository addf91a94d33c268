"""The shortest way through the openai SDK: its client posts a request as it is, and gives the bytes of the reply.

``create`` compares every parameter with its declared type, which takes longer than all else in a call with a JSON
schema, and makes models of a reply that is read here anyhow; its module alone takes as long to import as the client.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from types import FunctionType
from typing import Any, Final

_PLACES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "chat_completions": ("/chat/completions", ("chat", "completions")),
    "responses": ("/responses", ("responses",)),
}
"""The path below the endpoint, and where the client keeps the ``create`` of it."""


def direct_sender(client: Any, api: str) -> Callable[..., Any] | None:
    """A function that posts the parameters of a request, once; an async client's is awaited. It returns the bytes of
    the body, or, where a stream was asked for, the SDK's own stream, not read yet.

    None where the client is another one than the SDK's, or where one of its methods was replaced, as tracing tools do:
    they are to see the request.
    """
    path, names = _PLACES[api]
    if not all(_is_of_sdk(client, name) for name in ("post", "request")):
        return None
    # Nobody can have replaced what was neither looked at nor imported yet.
    if not _is_of_sdk(client, names[0]) or f"openai.resources.{names[0]}" in sys.modules:
        resource = client
        for name in names:
            resource = getattr(resource, name, None)
        if not _is_of_sdk(resource, "create"):
            return None

    def send(**parameters: Any) -> Any:
        options: dict[str, Any] = {"max_retries": 0, "security": {"bearer_auth": True}}
        if "timeout" in parameters:
            options["timeout"] = parameters.pop("timeout")
        streamed = bool(parameters.get("stream"))
        return client.post(path, cast_to=bytes, body=parameters, options=options, stream=streamed)

    return send


def _is_of_sdk(owner: object, name: str) -> bool:
    """Whether a method, or a part of a client, is the one that the SDK has written."""
    method = inspect.getattr_static(owner, name, None)
    method = method.func if isinstance(method, cached_property) else method
    # Proxies claim to be instances of functions.
    return type(method) is FunctionType and method.__globals__["__name__"].partition(".")[0] == "openai"
