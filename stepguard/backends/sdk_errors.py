"""Reads what the exceptions of many SDKs hold: the HTTP status, the headers, the body and the words of a refusal.

SDKs made with one generator (OpenAI, Anthropic, Groq, Writer ...) say it in the same attributes; those of Google,
Amazon, Mistral and Cohere in attributes of their own, and what speaks gRPC in methods. None of them is imported here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

_STATUS_OF_WORDS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("rate_limit_exceeded", "rate_limit_error", "too_many_requests", "resource_exhausted"), 429),
    **dict.fromkeys(("throttlingexception", "toomanyrequestsexception"), 429),
    **dict.fromkeys(("invalid_request_error", "invalid_argument", "failed_precondition"), 400),
    **dict.fromkeys(("authentication_error", "invalid_api_key", "unauthenticated"), 401),
    **dict.fromkeys(("permission_error", "permission_denied"), 403),
    **dict.fromkeys(("not_found_error", "model_not_found"), 404),
}
"""The refusals that stand as words, in an error without a number."""
_GRPC: Final[Mapping[str, int]] = {
    **dict.fromkeys(("ABORTED", "DATA_LOSS", "INTERNAL", "UNKNOWN"), 500),
    "CANCELLED": 499,
    "DEADLINE_EXCEEDED": 408,
    "NOT_FOUND": 404,
    "OUT_OF_RANGE": 400,
    "UNAVAILABLE": 503,
    "UNIMPLEMENTED": 501,
}
"""The codes of gRPC that are no words of a body, as HTTP statuses."""


def field(given: object, *path: str) -> Any:
    """The value at a path of attributes or keys, None where there is none: servers leave out what they like."""
    for name in path:
        known = type(given) is dict or isinstance(given, Mapping)
        given = given.get(name) if known else getattr(given, name, None)  # type: ignore[attr-defined]
    return given


def status_of(error: Exception) -> int | None:
    """The HTTP status of a refusal, None where an exception names none."""
    for path in (
        ("status_code",),
        ("response", "ResponseMetadata", "HTTPStatusCode"),  # Amazon's
        ("code",),  # Google's
    ):
        status = field(error, *path)
        # True is a whole number to Python.
        if isinstance(status, int) and not isinstance(status, bool) and 400 <= status <= 599:
            return int(status)
    code = field(error, "code")
    if callable(code):  # of gRPC
        with suppress(Exception):  # foreign code
            name = str(getattr(code(), "name", ""))
            return _GRPC.get(name) or named_status(name)
    return None


def named_status(name: str) -> int | None:
    """The status that a word means, None for one that is not known."""
    return _STATUS_OF_WORDS.get(name.lower())


def headers_of(error: Exception) -> Mapping[str, Any]:
    """The headers of the response behind an exception, empty where there are none."""
    for path in (("response", "headers"), ("headers",), ("response", "ResponseMetadata", "HTTPHeaders")):
        headers = field(error, *path)
        if callable(getattr(headers, "get", None)):
            found: Mapping[str, Any] = headers
            # A plain dictionary finds a name only as it is written.
            return {str(name).lower(): value for name, value in headers.items()} if type(headers) is dict else found
    return {}


def response_text(error: Exception) -> str | None:
    """The text of the response behind an exception, None where there is none or it was not read."""
    with suppress(Exception):  # foreign code
        text = field(error, "response", "text")
        return text if isinstance(text, str) else None
    return None


def body_of(error: Exception) -> object:
    """The body of the refusal as data, None where an exception does not hold it."""
    body = field(error, "body")
    if body is None:
        body = field(error, "details")  # Google's
        if callable(body):  # that of gRPC
            with suppress(Exception):
                body = {"message": str(body())}
    if body is None or callable(body):
        body = field(error, "response", "Error")  # Amazon's
        if isinstance(body, Mapping):
            body = {"message": body.get("Message"), "code": body.get("Code")}
    if isinstance(body, str | bytes):
        with suppress(ValueError, RecursionError):
            body = json.loads(body)
    if isinstance(body, list) and body:  # Google sends a list of one error
        body = body[0]
    return body
