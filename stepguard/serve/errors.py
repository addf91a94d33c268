"""The errors that a caller may get instead of an answer.

==================  ==========================================================================
status              why
==================  ==========================================================================
400                 the request cannot be read, or asks for what a guarded run cannot give
401, 403            the upstream refuses the key, or this server does where it has its own
404                 no such path or procedure; no such model at the upstream
408                 the caller took too long to send the request
413, 415            the request is too large, or compressed
422                 a step could not be verified, a budget was spent, or nothing vouches for a step
429                 too many requests here, or at the upstream
502                 the upstream cannot be reached, or what it answers cannot be read
503                 the server stops, or the upstream says so
504                 the upstream, or the whole request, took too long
other               as the upstream said, where it is the status of an error; 502 where it is not
==================  ==========================================================================

A request that already cost money is not to be sent again by the caller's SDK: it is told so by ``x-should-retry``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Final

from stepguard.core.redaction import redacted_start
from stepguard.errors import BackendError, BackendTimeout, RateLimited
from stepguard.results import Result, Status

_LONGEST: Final = 500


@dataclass(eq=False)
class HttpProblem(Exception):
    """Why a request gets no answer. It never leaves the application: it becomes the body of a response.

    Attributes:
        message: for people; holds no key.
        status: the HTTP status.
        kind: the ``type`` of an OpenAI-shaped error.
        code: its ``code``.
        param: the parameter to blame.
        retry_after: seconds, where it is known when to come again.
        retry: whether the caller's SDK is to send the request again; None leaves it to its own rules.
        facts: what a guarded run had by then, for the field ``stepguard``.
    """

    message: str
    _: KW_ONLY
    status: int
    kind: str
    code: str | None = None
    param: str | None = None
    retry_after: float | None = None
    retry: bool | None = None
    facts: Mapping[str, Any] | None = None

    def headers(self) -> dict[str, str]:
        """The headers that belong to it."""
        headers: dict[str, str] = {}
        if self.retry_after is not None:
            headers["retry-after"] = str(math.ceil(self.retry_after))
        if self.retry is not None:
            headers["x-should-retry"] = "true" if self.retry else "false"
        return headers


def wrong_request(message: str, *, status: int = 400, code: str | None = None, param: str | None = None) -> HttpProblem:
    """A mistake in the request, for the caller to mend."""
    return HttpProblem(message, status=status, kind="invalid_request_error", code=code, param=param)


def busy() -> HttpProblem:
    """Too many requests are here."""
    return HttpProblem(
        "this server has as many requests as it takes on: send it again later",
        status=429,
        kind="rate_limit_error",
        code="server_busy",
        retry_after=1,
    )


def stopping() -> HttpProblem:
    """The server stops."""
    return HttpProblem(
        "this server is stopping", status=503, kind="server_error", code="server_stopping", retry_after=1
    )


def too_slow(message: str) -> HttpProblem:
    """Something took too long."""
    return HttpProblem(message, status=504, kind="timeout_error", code="timeout")


def unreachable(message: str) -> HttpProblem:
    """The upstream cannot be reached, or broke the connection."""
    return HttpProblem(cut(message), status=502, kind="upstream_error", code="upstream_unreachable")


def unreadable(message: str) -> HttpProblem:
    """The upstream's answer cannot be handed on."""
    return HttpProblem(cut(message), status=502, kind="upstream_error", code="upstream_unreadable")


def cut(message: str) -> str:
    """A foreign message, redacted and shortened."""
    return redacted_start(message, _LONGEST)


# Runs

_KINDS: Final[Mapping[Status, str]] = {
    "abstained": "step_not_verified",
    "checked": "run_unverified",
    "unverified": "run_unverified",
    "waiting": "run_waiting",
    "exhausted": "budget_exhausted",
    "failed": "run_failed",
}


def from_result(result: Result, completion: Mapping[str, Any]) -> HttpProblem:
    """The problem of a run that is no answer."""
    facts = completion["stepguard"]
    if result.status == "failed" and isinstance(result.error, BackendError):
        return _from_backend(result.error, facts)
    return HttpProblem(
        cut(completion["choices"][0]["message"]["refusal"]),
        status=500 if result.status == "failed" else 422,
        kind=_KINDS.get(result.status, "run_failed"),
        code=result.status,
        param=result.problem.occurrence.step if result.problem is not None else None,
        retry=False,
        facts=facts,
    )


def _from_backend(error: BackendError, facts: Mapping[str, Any]) -> HttpProblem:
    status, kind, code, retry_after = 502, "upstream_error", "upstream_unreachable", None
    if isinstance(error, BackendTimeout):
        status, kind, code = 504, "timeout_error", "upstream_timeout"
    elif error.status is not None:
        # A redirection without an address, or a number that is no status, means nothing to the caller.
        status = error.status if 400 <= error.status < 600 else 502
        kind, code = kind_of(status), "upstream_error"
        retry_after = error.retry_after if isinstance(error, RateLimited) else None
    return HttpProblem(
        cut(str(error)),
        status=status,
        kind=kind,
        code=code,
        # An infinite wait, which an endpoint may ask for, can be written in no header.
        retry_after=retry_after if retry_after is not None and math.isfinite(retry_after) else None,
        # The guard has repeated what may be repeated.
        retry=False,
        facts=facts,
    )


def kind_of(status: int) -> str:
    """The type of an error that the upstream answered with this status."""
    known = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
    return known.get(status, "invalid_request_error" if 400 <= status < 500 else "upstream_error")
