"""The ways of running a task that the benchmark compares.

``cot``    free chain of thought with a fitting demonstration, then a line ``Answer: ...``; nothing is checked
``chunk``  the guard's own segments and prompts with the checker off: every claim that can be read is taken as it
           stands. Only what cannot be read at all (no JSON, a step left out) is asked again, as the guard would
``guard``  the guard

All arms see the same instances at temperature 0 (the guard's retries apart), and are judged alike.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol

from stepguard.backends.base import Backend, Message, Request, ask
from stepguard.errors import BackendError, ConfigError, ValueRefused
from stepguard.evaluation.families import Task
from stepguard.guard import Guard
from stepguard.numerals import read_numeral
from stepguard.repair import Repair, Retries
from stepguard.results import Result
from stepguard.segments import Segments
from stepguard.transport import Transport
from stepguard.usage import Usage
from stepguard.value_types import NUMBER, ValueType

__all__ = ["ARMS", "Arm", "ArmOptions", "Outcome", "make_arm", "read_transcript"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one arm did on one task, with the raw text, so that another extractor needs no new calls.

    Attributes:
        arm, task, length, seed: which cell and instance.
        status: the guard's status; for unguarded arms ``completed``, ``no_answer``, ``truncated`` or ``error``.
        right: whether the answer is right, read strictly (for ``cot``, from its answer line alone).
        right_lenient: the same, also read from the last step's line where the answer line is missing.
        trace_right: whether every step's value is right; False where not all right values are known.
        steps_right: how many steps' values are right, of those whose right value is known.
        verified: whether the arm vouches for its answer.
        abstained: whether it says that it has none.
        silent_errors: 1 where it vouches for something wrong, in the answer or in any step, else 0.
        error: the error that ended it.
        calls, input_tokens, output_tokens, cached_tokens: what it cost.
        seconds: wall-clock time, with whatever ran beside it; a reply that another arm had asked for takes none.
        deviations: how often each kind was met.
        stopped_at: the step it stopped at and why.
        texts: the raw replies, in order.
        steps_judged: of how many steps the right value is known; None of all.
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

    @property
    def judged(self) -> int:
        """Of how many steps the right value is known."""
        return self.length if self.steps_judged is None else self.steps_judged

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmOptions:
    """What the arms share.

    Args:
        segment: steps a call, in the guarded arms.
        repair: retries a step, or a policy, in the guarded arms.
        timeout: seconds until one request is given up; a whole transcript of a slow local model takes many minutes.
    """

    segment: int = 10
    repair: int | Repair = 4
    timeout: float = 1800.0

    def __post_init__(self) -> None:
        Segments(self.segment)
        Transport(timeout=self.timeout)
        if isinstance(self.repair, int):
            Retries(self.repair)


class Arm(Protocol):
    """One way of running tasks."""

    async def run(self, task: Task, backend: Backend) -> Outcome:
        """Run one task; errors end in the outcome."""
        ...


ARMS: Final = ("cot", "chunk", "guard")


def make_arm(name: str, options: ArmOptions) -> Arm:
    """The arm called `name`.

    Raises:
        ConfigError: there is none.
    """
    match name:
        case "cot":
            return _ChainOfThought(Transport(timeout=options.timeout))
        case "chunk":
            return _Guarded("chunk", options, observe=True)
        case "guard":
            return _Guarded("guard", options, observe=False)
        case _:
            raise ConfigError(f"unknown arm {name!r}: use {', '.join(ARMS)}", option="arms")


class _Guarded:
    def __init__(self, name: str, options: ArmOptions, *, observe: bool) -> None:
        self._name = name
        self._options = options
        self._observe = observe

    async def run(self, task: Task, backend: Backend) -> Outcome:
        guard = Guard(
            backend,
            segment=self._options.segment,
            repair=self._options.repair,
            observe=self._observe,
            history=None,
            transport=Transport(timeout=self._options.timeout),
            seed=task.seed,
        )
        started = time.monotonic()
        result = await guard.arun(task.procedure, task.inputs)
        return self._outcome(task, result, time.monotonic() - started)

    def _outcome(self, task: Task, result: Result, seconds: float) -> Outcome:
        values = {record.occurrence.step: record.value for record in result.steps}
        right = {name: value == task.truth[name] for name, value in values.items() if name in task.truth}
        answered = result.answer is not None and result.answer == task.answer
        wrong_vouched = any(record.verified and not right.get(record.occurrence.step, True) for record in result.steps)
        counts: dict[str, int] = {}
        found = [each for attempt in result.attempts for each in attempt.deviations]
        if self._observe:
            found += [each for record in result.steps for each in record.deviations]
        for deviation in found:
            counts[deviation.kind] = counts.get(deviation.kind, 0) + 1
        return Outcome(
            arm=self._name,
            task=task.family,
            length=len(task.procedure),
            seed=task.seed,
            status=result.status,
            right=answered,
            right_lenient=answered,
            trace_right=task.whole and result.completed == result.total and all(right.values()),
            steps_right=sum(right.values()),
            verified=result.verified,
            abstained=result.status in ("abstained", "exhausted"),
            silent_errors=int(wrong_vouched or (result.verified and not answered)),
            error=str(result.problem) if result.status == "failed" else None,
            calls=result.usage.calls,
            input_tokens=result.usage.input_tokens,
            output_tokens=result.usage.output_tokens,
            cached_tokens=result.usage.cached_tokens,
            seconds=round(seconds, 3),
            deviations=counts,
            stopped_at=None if result.problem is None else str(result.problem),
            texts=tuple(attempt.text or "" for attempt in result.attempts),
            steps_judged=None if task.whole else len(task.truth),
        )


class _ChainOfThought:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def run(self, task: Task, backend: Backend) -> Outcome:
        procedure = task.procedure
        values = procedure.accept_inputs(task.inputs)
        shown = task.demonstration
        request = Request(
            messages=(
                Message("system", shown.system),
                Message("user", shown.question),
                Message("assistant", shown.answer),
                Message("user", task.statement),
            ),
            steps=tuple(procedure.steps),
            values=values,
            temperature=0.0,
            max_tokens=200 + task.line_tokens * len(procedure),
            seed=task.seed,
            timeout=self._transport.timeout,
        )
        started = time.monotonic()
        usage = Usage()
        text: str | None = None
        status, failure = "completed", None
        transport = self._transport
        for sent in range(1, transport.retries + 2):
            try:
                async with asyncio.timeout(transport.timeout):
                    completion = await ask(backend, request)
            except Exception as error:  # noqa: BLE001 - whatever a backend raises costs one outcome, not the benchmark
                usage = usage + Usage(calls=1)
                status, failure = "error", f"{type(error).__name__}: {error}"
                retryable = isinstance(error, TimeoutError) or (isinstance(error, BackendError) and error.retryable)
                wait = transport.wait(sent, error, random.Random(task.seed))
                if not retryable or sent > transport.retries or wait > transport.longest_wait:
                    break
                await asyncio.sleep(wait)
                continue
            usage = usage + completion.usage
            text, status, failure = completion.text, "completed", None
            if completion.finish_reason == "length":
                status = "truncated"
            break
        return self._outcome(task, text or "", usage, time.monotonic() - started, status, failure)

    def _outcome(
        self, task: Task, text: str, usage: Usage, seconds: float, status: str, failure: str | None
    ) -> Outcome:
        types = {step.id: step.type for step in task.procedure.steps}
        answer, trace = read_transcript(text, list(task.truth), types=types)
        right = {name: trace.get(name) == value for name, value in task.truth.items()}
        lenient = answer if answer is not None else trace.get(task.procedure.answer)
        if status == "completed" and answer is None:
            status = "no_answer"
        return Outcome(
            arm="cot",
            task=task.family,
            length=len(task.procedure),
            seed=task.seed,
            status=status,
            right=answer == task.answer,
            right_lenient=lenient == task.answer,
            trace_right=task.whole and all(right.values()),
            steps_right=sum(right.values()),
            verified=False,
            abstained=False,
            silent_errors=0,
            error=failure,
            calls=usage.calls,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            seconds=round(seconds, 3),
            deviations={},
            stopped_at=None,
            texts=(text,),
            steps_judged=None if task.whole else len(task.truth),
        )


_ANSWER: Final = re.compile(r"^[\s*#_]*answer\s*[*_]*\s*[:=][\s*_]*(.+?)\s*$", re.IGNORECASE | re.MULTILINE)
_LINE: Final = re.compile(r"^[\s*\-\u2022`]*([A-Za-z_]\w*)[\s*`]*[:=](.+?)\s*$", re.MULTILINE)


def read_transcript(
    text: str, ids: list[str], *, types: Mapping[str, ValueType] | None = None
) -> tuple[object, dict[str, object]]:
    """The answer and the step values of a free-text transcript.

    The answer is what the last line starting with ``Answer:`` holds, None where there is no such line or no value of
    the last step's type in it; an assignment in it (``t5 = 7``) counts by its right side. A step's value is the right
    end of the line that starts with its name; a step that is given two different values has none.

    Args:
        text: the transcript.
        ids: the steps, in order.
        types: their types; a step without one, as every step by default, is a number.
    """
    answers = _ANSWER.findall(text)
    wanted, known = types or {}, frozenset(ids)
    trace: dict[str, object] = {}
    for name, rest in _LINE.findall(text):
        if name in known:
            value = _value(rest, wanted.get(name, NUMBER))
            trace[name] = value if name not in trace or trace[name] == value else None
    return (_value(answers[-1], wanted.get(ids[-1], NUMBER)) if answers else None), trace


def _value(text: str, kind: ValueType) -> object:
    end = text.rsplit("=", 1)[-1].strip(" \t*_`.")
    try:
        if kind.kind in ("number", "integer"):
            return read_numeral(end).value
        return kind.read(end.strip("\"'") if kind.kind == "text" else end)
    except ValueRefused:
        return None
