"""The parts common to the protocols of the server; each protocol has a module of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from starlette.responses import JSONResponse

from stepguard.core.usage import Usage
from stepguard.serve.errors import HttpProblem, wrong_request

_PIECE: Final = 400
"""Characters of one chunk of a streamed answer."""


class AsciiJSON(JSONResponse):
    """A response of JSON in ASCII: half a surrogate pair, which JSON can hold, is no UTF-8."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False).encode()


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request, whatever its shape.

    Attributes:
        model: as it was written; empty where none was.
        messages: the conversation, each with its role and its content.
        stream: whether the answer is to be streamed.
        include_usage: whether a streamed answer is to tell what it cost, where that has to be asked for.
        body: the request.
    """

    model: str
    messages: Sequence[Mapping[str, Any]]
    stream: bool
    include_usage: bool
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parameters:
    """The other parameters of a request, as they apply to a guarded run.

    Attributes:
        arguments: the same as arguments of ``chat.completions.create``; what they mean to a guarded call is in
            `stepguard.integrations.openai.calls`.
        set_aside: the names of those that it has no use for; the caller is told.
    """

    arguments: Mapping[str, Any]
    set_aside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """A run that is an answer.

    Attributes:
        id: of the run.
        model: as it was asked.
        completion: the answer as a chat completion.
        usage: the sum over all attempts.
        include_usage: as it was asked.
    """

    id: str
    model: str
    completion: Mapping[str, Any]
    usage: Usage
    include_usage: bool

    @property
    def text(self) -> str:
        """The text of the answer."""
        return str(self.completion["choices"][0]["message"]["content"])

    @property
    def facts(self) -> dict[str, Any]:
        """The field ``stepguard``."""
        return dict(self.completion["stepguard"])


class Shape(Protocol):
    """One protocol."""

    @property
    def name(self) -> str:
        """For metrics and logs."""

    def read(self, body: Mapping[str, Any]) -> ChatRequest:
        """Read a request, as far as it can be understood."""

    def parameters(self, body: Mapping[str, Any]) -> Parameters:
        """Read its other parameters for a guarded run.

        Raises Problem: one of them asks for what such a run cannot give; the message names it.
        """

    def answer(self, finished: Finished) -> dict[str, Any]:
        """The body of a response."""

    def events(self, finished: Finished) -> Iterator[bytes]:
        """The same as server-sent events."""

    def error(self, problem: HttpProblem) -> dict[str, Any]:
        """The body of an error."""

    def error_event(self, problem: HttpProblem) -> bytes:
        """The event that ends a stream which went wrong."""

    def ends(self, event: Mapping[str, Any]) -> bool:
        """Whether a stream is whole once this event has come."""


def sse(data: Mapping[str, Any] | str, event: str | None = None) -> bytes:
    """One server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, allow_nan=False, separators=(",", ":"))
    return (f"event: {event}\n" if event else "").encode() + f"data: {text}\n\n".encode()


def pieces(text: str) -> Iterator[str]:
    """A text in the pieces in which it is streamed."""
    return (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))


def error_body(problem: HttpProblem) -> dict[str, Any]:
    """The object under ``error`` in OpenAI's shape."""
    body: dict[str, Any] = {
        "message": problem.message,
        "type": problem.kind,
        "param": problem.param,
        "code": problem.code,
    }
    return body if problem.facts is None else {**body, "stepguard": dict(problem.facts)}


def refuse(body: Mapping[str, Any], names: Iterable[str], harmless: Mapping[str, tuple[object, ...]]) -> None:
    """Refuse parameters that ask for what a guarded run cannot give.

    Raises Problem: one does.
    """
    for name in names:
        value = body.get(name)
        # The type too: False == 0 in Python.
        if value in (None, [], {}) or any(value == one and type(value) is type(one) for one in harmless.get(name, ())):
            continue
        raise wrong_request(
            f"a guarded run cannot do what {name!r} asks for: leave it out", code="unsupported_parameter", param=name
        )


def unknown_parameters(body: Mapping[str, Any], *known: Iterable[str]) -> tuple[str, ...]:
    """The names of the parameters that say something and are not known."""
    names = {name for each in known for name in each}
    return tuple(sorted(name for name, value in body.items() if name not in names and value is not None))


def usage_of(body: Mapping[str, Any]) -> Usage:
    """The tokens that a body or an event of the upstream tells, by the names of any of the protocols."""
    usage = body.get("usage")
    for holder in ("message", "response"):
        if usage is None and isinstance(inner := body.get(holder), Mapping):
            usage = inner.get("usage")
    if not isinstance(usage, Mapping):
        return Usage()
    return Usage(
        input_tokens=_count(usage, "prompt_tokens", "input_tokens"),
        output_tokens=_count(usage, "completion_tokens", "output_tokens"),
    )


def _count(usage: Mapping[str, Any], *names: str) -> int:
    counts = (usage.get(name) for name in names)
    return next((count for count in counts if isinstance(count, int) and count > 0), 0)
