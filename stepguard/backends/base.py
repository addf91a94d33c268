"""Requests, completions and the protocol between the guard and a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, runtime_checkable

from stepguard.core.completions import Completion, ToolCall
from stepguard.core.deadlines import awithin
from stepguard.core.usage import Usage
from stepguard.errors import BackendError, BackendTimeout, CircuitOpen, UnexpectedRequest
from stepguard.language.values import Value

if TYPE_CHECKING:
    from pydantic import BaseModel

    from stepguard.core.verdicts import Claim, Deviation
    from stepguard.procedure.steps import Step

__all__ = [
    "AsyncBackend",
    "Backend",
    "Completion",
    "Message",
    "ReplyFormat",
    "Request",
    "Stopping",
    "SyncBackend",
    "ToolCall",
    "about_to_send",
    "ask",
    "counted",
    "endpoint_of",
    "find_flaw",
    "paid_without_reply",
]

_ONE_CALL: Final = Usage(calls=1)
_MOST_COUNTED: Final = 10**15
"""A completion that says it cost more counts something else."""

FORBIDDEN: Final[ContextVar[list[str] | None]] = ContextVar("stepguard_forbidden_requests", default=None)
"""Inside `stepguard.testing.no_real_requests`: the models that were about to be asked. None outside of it."""

ASKING_RUN: Final[ContextVar[object | None]] = ContextVar("stepguard_asking_run", default=None)
"""The run of a guard that asks in this context, between which a limiter shares out turns; None outside of any."""

RESPONSE_NAME: Final = "Steps"
"""The name of every response model: providers that answer by a tool call call the tool so."""

Role = Literal["system", "user", "assistant"]

Stopping = Literal["always", "slips", "never"]
"""Whether a guard stops replies at wrong steps by itself, the `stopping` of a backend: ``always`` where that costs
nothing and every token is counted; ``slips`` where it pays once a model is known to slip; ``never`` where nobody knows
that it saves anything, and where a backend says nothing."""


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: Role
    content: str


class ReplyFormat(Protocol):
    """How steps are asked to be answered, and how the answer is read."""

    @property
    def instructions(self) -> str:
        """What the model is told about the format; part of the stable prefix of every prompt."""
        ...

    def answer(self, step: Step, work: str, value: str) -> object:
        """The field of a right answer, as JSON data: for demonstrations and test doubles."""
        ...

    def claim(self, step: Step, field: object) -> Claim | Deviation:
        """Read one field of a reply."""
        ...

    def response_model(self, steps: Sequence[Step]) -> type[BaseModel]:
        """A pydantic model called `RESPONSE_NAME` with exactly these steps as required fields, in order."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """One model call.

    Attributes:
        messages: what to send.
        steps: the steps that are asked, in order. The messages say the same in words; a test double or a tool-using
            backend may read it from here.
        values: the verified values that the steps read, by name.
        reply_format: how the reply is to be structured; None for free text.
        temperature: sampling temperature; None leaves the model's default.
        max_tokens: the longest reply; None leaves the model's default.
        seed: sampling seed, for providers that take one.
        timeout: seconds until the call is to be given up; None waits forever.
        attempt: 1 for the first time the leading step is asked, counted up with every further try.
        shared: how many characters of the last message come again in every request of the run that reads the same
            documents: those and what stands before them are for a provider's cache to keep.
        stop: says, of all the text of the reply so far, whether it may be stopped: what comes behind would not be
            used. It is for one reply, and called with more and more of it; the completion's finish reason is then
            `stepguard.core.completions.STOPPED_EARLY`. A backend that cannot stop a reply gives the whole.
    """

    messages: tuple[Message, ...]
    steps: tuple[Step, ...] = ()
    values: Mapping[str, Value] = field(default_factory=dict)
    reply_format: ReplyFormat | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    timeout: float | None = None
    attempt: int = 1
    shared: int = 0
    stop: Callable[[str], bool] | None = field(default=None, repr=False, compare=False)

    @property
    def response_model(self) -> type[BaseModel] | None:
        """The pydantic model of the reply: exactly the asked steps, in order. None for free text."""
        return None if self.reply_format is None else self.reply_format.response_model(self.steps)

    def estimate(self, answered: int = 0) -> Usage:
        """What asking this costs where nobody counts tokens, with so many characters of a reply."""
        return Usage.estimate(sum(len(message.content) for message in self.messages), answered)

    def chat(self) -> list[dict[str, str]]:
        """The messages as OpenAI-style dictionaries."""
        return [{"role": message.role, "content": message.content} for message in self.messages]


def find_flaw(completion: Completion) -> str | None:
    """What is wrong with the parts of a completion that a foreign backend made, None where nothing is."""
    for name in ("text", "finish_reason", "refusal", "reasoning"):
        part: object = getattr(completion, name)
        if not isinstance(part, str | None):
            return f"its {name} is {type(part).__name__}, not text"
    calls: object = completion.tool_calls
    if not isinstance(calls, tuple | list) or not all(
        isinstance(call, ToolCall) and isinstance(call.name, str) and isinstance(call.arguments, str) for call in calls
    ):
        return "its tool_calls are no ToolCalls of text"
    return None if _counts(completion.usage) else "its usage is no Usage of whole numbers from 0 to 10**15"


def counted(completion: Completion) -> Usage:
    """What a completion cost: at least one call, and nothing more where its usage is wrong."""
    usage = completion.usage
    return replace(usage, calls=max(1, usage.calls)) if _counts(usage) else _ONE_CALL


def paid_without_reply(request: Request, error: Exception | None = None) -> Usage:
    """What a call cost that brought no reply: what its error says, else the prompt where it was given up on its way.

    Args:
        request: what was asked.
        error: why there is no reply; None where the call was cancelled.
    """
    if isinstance(error, CircuitOpen):  # nothing was sent
        return Usage()
    usage = error.usage if isinstance(error, BackendError) else None
    if usage is not None and _counts(usage):
        return replace(usage, calls=max(1, usage.calls))
    return request.estimate() if error is None or isinstance(error, BackendTimeout | TimeoutError) else _ONE_CALL


def _counts(usage: object) -> bool:
    counts = [getattr(usage, name) for name in Usage.__slots__] if isinstance(usage, Usage) else [None]
    # By the very type: True would count as 1.
    return all(type(count) is int and 0 <= count <= _MOST_COUNTED for count in counts)


@runtime_checkable
class SyncBackend(Protocol):
    """Answers requests, blocking."""

    def complete(self, request: Request, /) -> Completion:
        """Answer one request, or raise a `BackendError`."""
        ...


@runtime_checkable
class AsyncBackend(Protocol):
    """Answers requests, awaited."""

    async def acomplete(self, request: Request, /) -> Completion:
        """Answer one request, or raise a `BackendError`."""
        ...


Backend = SyncBackend | AsyncBackend


def about_to_send(model: str) -> None:
    """What every backend that reaches a real model calls before anything else.

    Raises:
        UnexpectedRequest: no real request may be made here; see `stepguard.testing.no_real_requests`.
    """
    stopped = FORBIDDEN.get()
    if stopped is not None:
        # Noted as well: where other code swallows the error, leaving `no_real_requests` raises it.
        stopped.append(model)
        raise UnexpectedRequest(
            f"the model {model!r} was about to be asked inside no_real_requests(): give the guard a double from "
            "stepguard.testing, or a plain function"
        )


async def ask(backend: Backend, request: Request) -> Completion:
    """Answer a request without blocking the event loop; a backend that can only block runs in a thread of its own.

    Raises:
        BackendError: the model did not answer.
    """
    if isinstance(backend, AsyncBackend):
        return await backend.acomplete(request)
    return await awithin(None, lambda: backend.complete(request), name="stepguard-request")


def session_of(backend: object) -> AbstractAsyncContextManager[Any]:
    """A session of a backend, which keeps its clients open; one of nothing where it has none."""
    session = getattr(backend, "session", None)
    return nullcontext() if session is None else session()


def stopping_of(backend: object) -> Stopping:
    """Whether a guard stops replies of a backend by itself."""
    stopping: Stopping = getattr(backend, "stopping", "never")
    return stopping


def endpoint_of(backend: Backend) -> str:
    """What a rate of calls to a backend is about: its model and where that is asked; empty where nothing is counted."""
    endpoint = getattr(backend, "endpoint", None)
    return str(getattr(backend, "name", type(backend).__name__) if endpoint is None else endpoint)
