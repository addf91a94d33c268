"""What an arm is, and what it leaves behind."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Final, Protocol, Self, runtime_checkable

from stepguard.backends.base import Backend, Completion, Request, ask, paid_without_reply
from stepguard.backends.retry import RetryPolicy
from stepguard.core.usage import Usage
from stepguard.engine.segments import Segments
from stepguard.errors import BackendError
from stepguard.evaluation.families import Task
from stepguard.guard.options import GuardOptions
from stepguard.language.values import Value
from stepguard.repair.ladder import Ladder
from stepguard.repair.policy import Repair

_DOUBLINGS: Final = 4  # sixteen times the room: who needs more repeats himself


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """What one arm did on one task, with the raw text, so that another extractor needs no new calls.

    Attributes:
        arm, task, length, seed: which cell and instance.
        status: the guard's status; for unguarded arms ``completed``, ``no_answer``, ``truncated`` or ``error``.
        right: whether the answer is right, read strictly: a marked answer with nothing around the value.
        right_lenient: the same, with words around the value allowed, and read from the last step where none is marked.
        trace_right: whether every step's value is right.
        steps_right: how many steps' values are right.
        verified: whether the arm vouches for its answer: the guard does where it was `verified` or `checked`, which
            `status` tells apart.
        abstained: whether it says that it has none.
        silent_errors: 1 where it vouches for something wrong, in the answer or in any step, else 0.
        error: the error that ended it.
        calls, input_tokens, output_tokens, cached_tokens: what it cost.
        seconds: wall-clock time, with whatever ran beside it; a reply that another arm had asked for takes none.
        deviations: how often each kind was met: by the guard in the replies, by the audit in a transcript.
        stopped_at: the step it stopped at and why.
        texts: the raw replies, in order.
        steps_judged: how many steps were judged; None: all of them. Fewer where not all right values are known.
        prefix: how many steps are right before the first that is not.
        slips: how many steps are wrong in themselves: not where they follow from an earlier wrong value.
        misdone: how many of the slips name the right operation with the right operands, and a wrong result.
        claims: how many claims were judged, by an arm that checks; each of them rests on right values.
        wrong_claims: how many of them were wrong, by the truth.
        wrong_accepted: how many of these were accepted.
        assisted: how many steps were completed with each assistance; see `stepguard.results.Assistance`.
        served_by: the models that answered, with their fingerprints where the provider names one.
        authors: what the authors of a published item measure of it, by name; see `PublishedTask`.
    """

    arm: str
    task: str
    length: int
    seed: int
    status: str
    right: bool
    right_lenient: bool
    trace_right: bool
    steps_right: int
    verified: bool
    abstained: bool
    silent_errors: int
    error: str | None
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    seconds: float
    deviations: Mapping[str, int]
    stopped_at: str | None
    texts: tuple[str, ...]
    steps_judged: int | None = None
    prefix: int = 0
    slips: int = 0
    misdone: int = 0
    claims: int = 0
    wrong_claims: int = 0
    wrong_accepted: int = 0
    assisted: Mapping[str, int] = field(default_factory=dict)
    served_by: tuple[str, ...] = ()
    authors: Mapping[str, float] = field(default_factory=dict)

    @property
    def judged(self) -> int:
        """How many steps were to be judged."""
        return self.length if self.steps_judged is None else self.steps_judged

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The outcome that `to_dict` gave, also where a later attribute is missing."""
        lists = {name: tuple(data[name]) for name in ("texts", "served_by") if name in data}
        return cls(**{**data, **lists})


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmOptions(GuardOptions):
    """What the arms share: the options of the guard in the guarded ones, and `retry` in all, with these defaults.

    Args:
        segment: steps a call, 10.
        repair: what is tried when a step is not accepted, `Ladder()`.
        retry: as the guard's own, but 1800 seconds for a request: a whole transcript of a slow local model takes many
            minutes.
        history: None: outcomes are made of all steps and attempts.
        seed: None takes that of each task.
    """

    segment: int | Segments | None = 10
    repair: int | Repair = field(default_factory=Ladder)
    retry: RetryPolicy = field(default_factory=partial(RetryPolicy, timeout=1800.0))
    history: int | None = None


Neighbour = Callable[[], Task]
"""Makes another instance of the same cell, for arms that need one to compare with."""


@runtime_checkable
class Arm(Protocol):
    """One way of running tasks: a frozen dataclass whose fields are its knobs."""

    @property
    def name(self) -> str:
        """What tables call it; with other knobs it has another name."""

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> TaskOutcome:
        """Run one task; errors end in the outcome."""


def nothing(
    arm: str, task: Task, *, status: str, error: str | None = None, stopped_at: str | None = None
) -> TaskOutcome:
    """The outcome of a run in which nothing was said: all of its steps are missing."""
    return TaskOutcome(
        arm=arm, task=task.family, length=len(task.procedure), seed=task.seed, status=status,
        right=False, right_lenient=False, trace_right=False, steps_right=0,
        verified=False, abstained=status == "abstained", silent_errors=0, error=error,
        calls=0, input_tokens=0, output_tokens=0, cached_tokens=0, seconds=0.0,
        deviations={}, stopped_at=stopped_at, texts=(), steps_judged=None if task.whole else len(task.truth),
        authors=authors_scores(task, {}),
    )  # fmt: skip


def spent(usage: Usage, seconds: float) -> dict[str, Any]:
    """What a run took, as the fields of its `TaskOutcome`."""
    names = ("calls", "input_tokens", "output_tokens", "cached_tokens")
    return {**{name: getattr(usage, name) for name in names}, "seconds": round(seconds, 3)}


def authors_scores(task: Task, values: Mapping[str, Value]) -> dict[str, float]:
    """The authors' scores of the values of a task's steps; none where nobody published it."""
    return {} if task.published is None else dict(task.published.score(values))


def served_by(completions: Iterable[Completion | None]) -> tuple[str, ...]:
    """The models that gave these, each once, as far as providers name them."""
    models = {
        " ".join(part for part in (completion.model, completion.fingerprint) if part)
        for completion in completions
        if completion is not None
    }
    return tuple(sorted(models - {""}))


@dataclass(frozen=True, slots=True)
class Sent:
    """What came of one request: a completion, or why there is none."""

    completion: Completion | None
    usage: Usage
    seconds: float
    failure: str | None = None

    @property
    def text(self) -> str:
        """What was said."""
        return "" if self.completion is None else self.completion.text or ""

    @property
    def cut(self) -> bool:
        """Whether the reply was cut off."""
        return self.completion is not None and self.completion.finish_reason == "length"


async def send_with_room(backend: Backend, request: Request, retry: RetryPolicy, enough: Callable[[str], bool]) -> Sent:
    """Send one request, again with twice the room where the reply was cut off, as the guard does.

    Args:
        request: what to ask; its token limit is the first.
        enough: whether a text that was cut off says all that was asked: whatever follows is not worth a call.
    """
    sent = await send(backend, request, retry)
    usage, seconds = sent.usage, sent.seconds
    for _ in range(_DOUBLINGS):
        if not sent.cut or request.max_tokens is None or enough(sent.text):
            break
        request = replace(request, max_tokens=2 * request.max_tokens)
        again = await send(backend, request, retry)
        usage, seconds = usage + again.usage, seconds + again.seconds
        if again.completion is None:  # the reply that was cut off is better than none
            break
        sent = again
    return Sent(sent.completion, usage, seconds, sent.failure)


async def send(backend: Backend, request: Request, retry: RetryPolicy) -> Sent:
    """Send one request, again where the transport fails; whatever a backend raises ends in what is returned."""
    started = time.monotonic()
    usage = Usage()
    failure: str | None = None
    for sent in range(1, retry.retries + 2):
        try:
            async with asyncio.timeout(retry.timeout):
                completion = await ask(backend, request)
        except Exception as error:  # noqa: BLE001 - it costs one outcome, not the benchmark
            usage = usage + paid_without_reply(request, error)
            failure = f"{type(error).__name__}: {error}"
            retryable = isinstance(error, TimeoutError) or (isinstance(error, BackendError) and error.retryable)
            wait = retry.wait(sent, error, random.Random(request.seed))
            if not retryable or sent > retry.retries or wait > retry.longest_wait:
                break
            await asyncio.sleep(wait)
            continue
        return Sent(completion, usage + completion.usage, time.monotonic() - started)
    return Sent(None, usage, time.monotonic() - started, failure)
