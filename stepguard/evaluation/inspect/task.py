"""The bundled benchmark as a task of Inspect AI: its logs, caches, limits and models, and stepguard's judgement.

::

    inspect eval stepguard/bench --model openai/gpt-4.1-mini -T arm=cot -T lengths=5,20 -T n=20

There is one sample for each instance. The solver runs one of the arms, and every call of it is a call of Inspect's
model; the scorer says what `stepguard.evaluation.arms` found. What fails is repeated by Inspect, by its options
(``--max-retries``, ``--attempt-timeout``). What still fails ends in the outcome and counts as wrong.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from stepguard.backends.base import RESPONSE_NAME, Completion, Request, ToolCall, about_to_send, session_of
from stepguard.core.arguments import check_seed
from stepguard.core.usage import Usage
from stepguard.errors import BackendError, ConfigError, MissingExtraError, UsageError
from stepguard.evaluation.arms import ArmOptions, TaskOutcome, arm_named, kind_of
from stepguard.evaluation.families import family_named
from stepguard.evaluation.runner import Plan
from stepguard.repair.ladder import Ladder

try:
    from inspect_ai import Task, task
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageUser,
        GenerateConfig,
        Model,
        ModelOutput,
        ResponseSchema,
        get_model,
    )
    from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer, stderr
    from inspect_ai.solver import Generate, Solver, TaskState, solver
    from inspect_ai.util import LimitExceededError, json_schema
except ImportError as error:
    raise MissingExtraError("the benchmark as a task of Inspect's", extra="inspect") from error

OUTCOME: Final = "stepguard"
"""Where a sample's store holds the outcome, as `Outcome.to_dict` gives it but without the texts."""

_UNFINISHED: Final = "unfinished"
_LONGEST_MESSAGE: Final = 500
_MESSAGES: Final[Mapping[str, Any]] = {
    "system": ChatMessageSystem,
    "user": ChatMessageUser,
    "assistant": ChatMessageAssistant,
}
_FINISH_REASONS: Final[Mapping[str, str]] = {"max_tokens": "length", "model_length": "length"}


@task  # type: ignore[misc, untyped-decorator, unused-ignore]
def bench(
    task: str | Sequence[str] = "arithmetic",
    lengths: str | int | Sequence[str | int] = "5,20",
    n: str | int | Sequence[str | int] = 10,
    arm: str | Sequence[str] = "guard",
    seed: int = 0,
    segment: int = 10,
    retries: int | None = None,
) -> Task:
    """The benchmark with one arm: the same instances as ``stepguard bench`` has for the same numbers.

    Args:
        task: the task family, with knobs in brackets. (Inspect's command line makes a list of what holds commas.)
        lengths: numbers of steps.
        n: instances for each length, one number or one a length.
        arm: the arm, with knobs in brackets: ``guard``, ``cot``, ``chunk``, ``resample(k=5)`` ...
        seed: the first instance's seed.
        segment: steps a call, in the guarded arms.
        retries: so many plain retries a step in the guarded arms; None: their ladder.

    Raises:
        ConfigError: an argument cannot work.
    """
    sizes = _numbers(lengths, "lengths")
    counts = _numbers(n, "n")
    if len(set(sizes)) != len(sizes):
        raise ConfigError(f"every length stands once, not as in {lengths!r}", option="lengths")
    if len(counts) not in (1, len(sizes)):
        raise ConfigError(
            f"n has {len(counts)} numbers for {len(sizes)} lengths: give one, or one a length", option="n"
        )
    check_seed(seed)
    family, name = family_named(_joined(task)), _joined(arm)
    options = ArmOptions(segment=segment, repair=Ladder() if retries is None else retries)
    cells = dict(zip(sizes, counts * (1 if len(counts) > 1 else len(sizes)), strict=True))
    plan = Plan(family=family, cells=cells, arms=(name,), seed=seed, options=options)
    samples = []
    for _, length, number in plan.jobs():
        made = family.make(number, length)
        answer = next(step for step in made.procedure.steps if step.id == made.procedure.answer)
        about = {
            "family": made.family,
            "length": length,
            "seed": number,
            "neighbour": plan.neighbour(number, length).seed,
        }
        samples.append(
            Sample(input=made.statement, target=answer.type.write(made.answer), id=f"{length}-{number}", metadata=about)
        )
    return Task(
        dataset=MemoryDataset(samples, name=family.name),
        solver=run_arm(arm=plan.arms[0], segment=segment, retries=retries),
        scorer=judged(),
    )


@solver  # type: ignore[misc, untyped-decorator, unused-ignore]
def run_arm(arm: str | Sequence[str] = "guard", segment: int = 10, retries: int | None = None) -> Solver:
    """Runs an arm on the instance of a sample of `bench`, through Inspect's model, and keeps its outcome.

    Args:
        arm, segment, retries: as in `bench`.

    Raises:
        ConfigError: an argument cannot work.
    """
    chosen = arm_named(_joined(arm))
    options = ArmOptions(segment=segment, repair=Ladder() if retries is None else retries)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        _check_loop()
        about = state.metadata
        family = family_named(about["family"])
        made = family.make(about["seed"], about["length"])
        state.store.set(OUTCOME, {"arm": chosen.name, "status": _UNFINISHED})
        backend = InspectBackend(get_model())
        async with backend.session():
            outcome = await chosen.run(made, backend, options, lambda: family.make(about["neighbour"], about["length"]))
        data = outcome.to_dict()
        del data["texts"]  # every reply stands in the transcript
        state.store.set(OUTCOME, data)
        if backend.last is not None:
            state.output = backend.last
        if backend.ended_by is not None:
            raise backend.ended_by  # arms outlive every error, but this one is Inspect's to deal with
        return state

    return solve


@scorer(  # type: ignore[misc, untyped-decorator, unused-ignore]
    metrics={
        name: [accuracy(), stderr()]
        for name in ("right", "right_lenient", "every_step_right", "abstained", "silent_error", "error")
    }
)
def judged() -> Scorer:
    """What an arm came to, each as 1 or 0; what cannot be judged is left out of its metrics, as NaN.

    ``right`` reads the answer strictly, ``right_lenient`` with words around it; ``every_step_right`` is left out where
    not every step is judged. ``abstained`` is neither right nor silently wrong. ``silent_error`` is something wrong
    that the arm vouches for, and is left out in arms that vouch for nothing. ``error`` is an endpoint that failed, or
    one of Inspect's limits; such a sample counts as wrong.
    """

    async def score(state: TaskState, target: Target) -> Score:
        data = state.store.get(OUTCOME)
        if data is None:
            raise ConfigError("this sample has no outcome of an arm: leave --solver out, or use stepguard/run_arm")
        vouches = kind_of(data["arm"]) in ("guarded", "floor")
        if data["status"] == _UNFINISHED:
            values = dict.fromkeys(("right", "right_lenient", "every_step_right", "abstained", "silent_error"), 0.0)
            values |= {"error": 1.0} if vouches else {"error": 1.0, "silent_error": math.nan}
            return Score(value=values, explanation="it was ended before the arm was done", metadata=data)
        outcome = TaskOutcome(**data, texts=())
        values = {
            "right": float(outcome.right),
            "right_lenient": float(outcome.right_lenient),
            "every_step_right": float(outcome.trace_right) if outcome.judged == outcome.length else math.nan,
            "abstained": float(outcome.abstained),
            "silent_error": float(outcome.silent_errors) if vouches else math.nan,
            "error": float(outcome.error is not None),
        }
        why = outcome.error or outcome.stopped_at
        return Score(
            value=values,
            answer=state.output.completion or None,
            explanation=outcome.status if why is None else f"{outcome.status}: {why}",
            metadata=data,
        )

    return score


class InspectBackend:
    """Asks a model of Inspect's, so that Inspect logs, caches, limits and counts every call.

    A failure is not retryable here: Inspect has repeated it as often as it was told to.

    Attributes:
        last: the newest output; None before there is one.
        ended_by: one of Inspect's limits, or a misuse that every further call would meet; none is made after it.
    """

    def __init__(self, model: Model) -> None:
        self.name: Final = str(model)
        self.last: ModelOutput | None = None
        self.ended_by: Exception | None = None
        self._model: Final = model

    async def acomplete(self, request: Request) -> Completion:
        """Answer one request.

        Raises:
            BackendError: the model did not answer.
            LimitExceededError: one of Inspect's limits is reached.
            UsageError: the model is called with an option that it does not take, or has no key.
        """
        about_to_send(self.name)
        if self.ended_by is not None:
            raise self.ended_by
        form = request.response_model
        config = GenerateConfig(
            temperature=request.temperature,
            max_tokens=request.max_tokens,
            seed=request.seed,
            response_schema=None
            if form is None
            else ResponseSchema(name=RESPONSE_NAME, json_schema=json_schema(form), strict=True),
        )
        messages = [_MESSAGES[message.role](content=message.content) for message in request.messages]
        try:
            self.last = output = await self._model.generate(messages, config=config)
        except (LimitExceededError, UsageError) as error:
            self.ended_by = error
            raise
        except Exception as error:
            # Where retries are used up, what they failed by is the cause.
            cause = error.__cause__ if type(error).__name__ == "RetryError" and error.__cause__ else error
            words = str(getattr(cause, "provider_message", None) or cause)[:_LONGEST_MESSAGE]
            raise BackendError(f"{type(cause).__name__}: {words}", retryable=False) from error
        return _completion(output)

    def session(self) -> AbstractAsyncContextManager[Any]:
        """A session of the provider's, where it has such."""
        return session_of(self._model.api)


def _completion(output: ModelOutput) -> Completion:
    usage = output.usage
    cached = 0 if usage is None else usage.input_tokens_cache_read or 0
    spent = Usage(calls=1)
    if usage is not None:
        spent = Usage(
            calls=1,
            input_tokens=usage.input_tokens + cached + (usage.input_tokens_cache_write or 0),
            output_tokens=usage.output_tokens,
            cached_tokens=cached,
            reasoning_tokens=usage.reasoning_tokens or 0,
        )
    if output.empty:
        return Completion(None, None, usage=spent, model=output.model)
    reason, facts = output.stop_reason, output.metadata or {}
    parts = output.message.content_list
    texts = [part.text for part in parts if part.type == "text" and not part.refusal]
    refused = [part.text for part in parts if part.type == "text" and part.refusal]
    thought = [part.reasoning for part in parts if part.type == "reasoning"]
    known = None if reason == "unknown" else _FINISH_REASONS.get(reason, reason)
    return Completion(
        text="\n".join(texts) if texts else None,
        finish_reason=facts.get("finish_reason") or known,
        refusal="\n".join(refused) or None,
        reasoning="\n".join(thought) or None,
        tool_calls=tuple(
            ToolCall(tool_call.function, tool_call.parse_error or json.dumps(tool_call.arguments))
            for tool_call in output.message.tool_calls or ()
        ),
        usage=spent,
        model=output.model,
        fingerprint=facts.get("fingerprint"),
    )


def _check_loop() -> None:
    """Refuse trio: every call would fail there, and every sample count as wrong."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise ConfigError("stepguard's arms run on asyncio: leave INSPECT_ASYNC_BACKEND=trio out") from None


def _joined(names: str | Sequence[str]) -> str:
    return names if isinstance(names, str) else ",".join(map(str, names))


def _numbers(items: str | int | Sequence[str | int], option: str) -> list[int]:
    pieces = str(items).split(",") if isinstance(items, str | int) else items
    try:
        numbers = [int(str(piece)) for piece in pieces]
    except (TypeError, ValueError):
        numbers = []
    if not numbers or min(numbers) < 1:
        raise ConfigError(f"{option} takes whole numbers above 0, separated by commas, not {items!r}", option=option)
    return numbers
