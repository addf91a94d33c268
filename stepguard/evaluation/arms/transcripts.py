"""Arms without a guard that ask the whole procedure in one call.

``direct``    the final value only, working forbidden
``cot``       free chain of thought with a fitting demonstration, then a line ``Answer: ...``
``trace``     the lines of the chain of thought as one JSON object, one entry a step
``authors``   of published items: the prompt of the benchmark's own authors, scored as they score it
``resample``  several chains of thought, the first one greedy, and the answer that most of them give; or with
              ``checked=true`` the first chain in which the audit finds nothing wrong, and none where there is no such
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from stepguard.backends.base import Backend, Message, Request
from stepguard.core.arguments import check_count
from stepguard.core.usage import Usage
from stepguard.evaluation.arms import base
from stepguard.evaluation.arms.base import (
    ArmOptions,
    Neighbour,
    Sent,
    TaskOutcome,
    authors_scores,
    nothing,
    send_with_room,
)
from stepguard.evaluation.arms.reading import TranscriptReading, read_run, same
from stepguard.evaluation.families import Demonstration, Task
from stepguard.evaluation.knobs import Named
from stepguard.procedure.steps import Step
from stepguard.replies.formats import EquationFormat
from stepguard.replies.response_models import FieldKind
from stepguard.replies.thinking import without_thinking

_DIRECT: Final = (
    "Carry out the procedure in your head, exactly as written. Do not write any working. Reply with one line and "
    "nothing else: Answer: and "
)
_TRACE: Final = (
    "Carry out the procedure step by step, in order, exactly as written. Reply with one JSON object. Its keys are the "
    "step names, in order, every step once and nothing else. The entry of a step is one line of text: {line}, and the "
    "result, joined by equals signs. Do not skip, add or change any step."
)
_FORMULA_LINE: Final = "its formula, the formula with the numbers filled in"
_WORDS_LINE: Final = "its working in short"
_WARM: Final = 0.8  # chains that are to differ; the first one is greedy


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct(Named):
    """The final value alone."""

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> TaskOutcome:
        shown = task.demonstration
        answer = shown.answer.rpartition("\n")[2]
        # Where the answer is not the last step, the family says so there.
        wanted = shown.system.rpartition("Answer: and ")[2]
        system = _DIRECT + (wanted if wanted != shown.system else "the value of the last step.")
        request = request_like(replace(shown, system=system, answer=answer), task, options)
        sent = await _ask_for_transcript(task, backend, replace(request, max_tokens=256), options)
        # No step is asked for, so none is judged.
        made = outcome_of(self.name, task, [sent], read_run(task, sent.text))
        return replace(
            made, steps_judged=0, steps_right=0, trace_right=False, prefix=0, slips=0, misdone=0, deviations={}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainOfThought(Named):
    """A free transcript."""

    word: ClassVar[str] = "cot"

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> TaskOutcome:
        sent = await _ask_for_transcript(task, backend, request_like(task.demonstration, task, options), options)
        return outcome_of(self.name, task, [sent], read_run(task, sent.text))


class _LineFormat(EquationFormat):
    """Every step is one line of text, those that only words describe as well."""

    def kind(self, step: Step) -> FieldKind:
        return "equation"


@dataclass(frozen=True, slots=True, kw_only=True)
class StructuredTrace(Named):
    """One structured reply with the working that the chain of thought may show."""

    word: ClassVar[str] = "trace"

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> TaskOutcome:
        shown = task.demonstration
        rows = [line.partition(" = ") for line in shown.answer.splitlines()[:-1]]
        line = _WORDS_LINE if any(step.expression is None for step in task.procedure.steps) else _FORMULA_LINE
        example = Demonstration(
            _TRACE.format(line=line), shown.question, json.dumps({name: rest for name, _, rest in rows})
        )
        request = replace(request_like(example, task, options), reply_format=_LineFormat())
        sent = await _ask_for_transcript(task, backend, request, options)
        return outcome_of(self.name, task, [sent], read_run(task, sent.text))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResampledChains(Named):
    """Several chains of thought: the answer of most of them, or of the first that the checker finds right.

    Args:
        k: how many chains. The first is greedy, the others are drawn at temperature 0.8.
        checked: whether chains are chosen by the audit, which checks each step as the guard does, instead of by vote.
            Chains are then asked one after the other until one is right.
    """

    word: ClassVar[str] = "resample"

    k: int = 5
    checked: bool = False

    def __post_init__(self) -> None:
        check_count(self.k, "k", most=1000)

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> TaskOutcome:
        request = request_like(task.demonstration, task, options)
        sent: list[Sent] = []
        chains: list[TranscriptReading] = []
        for number in range(self.k):
            drawn = replace(request, temperature=_WARM, seed=task.seed * 1000 + number) if number else request
            sent.append(await _ask_for_transcript(task, backend, drawn, options))
            chains.append(chain := read_run(task, sent[-1].text))
            if self.checked and chain.sound:
                made = outcome_of(self.name, task, sent, chain)
                if not chain.proved:  # some of its steps have no check
                    return replace(made, status="unverified")
                return replace(made, status="verified", verified=True, silent_errors=int(not all(chain.right(task))))
        if self.checked:
            last = outcome_of(self.name, task, sent, chains[-1])
            failed = last.error is not None
            status = "error" if failed else "abstained"
            return replace(
                last, right=False, right_lenient=False, abstained=not failed, status=status,
                authors=authors_scores(task, {}),
            )  # fmt: skip
        chosen = _most(chains)
        return outcome_of(self.name, task, sent, chains[chosen], chosen=chosen)


def _most(chains: Sequence[TranscriptReading]) -> int:
    """The first chain with the answer that most chains give."""
    votes = Counter(repr(chain.lenient) for chain in chains if chain.lenient is not None)
    if not votes:
        return 0
    chosen = votes.most_common(1)[0][0]  # of those that are equally often the first one
    return next(at for at, chain in enumerate(chains) if repr(chain.lenient) == chosen)


async def _ask_for_transcript(task: Task, backend: Backend, request: Request, options: ArmOptions) -> Sent:
    """Ask for a transcript, with as much room as it needs: some go on behind the last step, which needs none."""

    def enough(text: str) -> bool:
        return len(read_run(task, text).values) == len(task.procedure)

    return await base.send_with_room(backend, request, options.retry, enough)


def request_like(shown: Demonstration, task: Task, options: ArmOptions) -> Request:
    """The greedy request for the whole of a task in the form of an example, with room for a transcript."""
    return Request(
        messages=(
            Message("system", shown.system),
            Message("user", shown.question),
            Message("assistant", shown.answer),
            Message("user", task.statement),
        ),
        steps=tuple(task.procedure.steps),
        values=task.procedure.accept_inputs(task.inputs),
        temperature=0.0,
        max_tokens=200 + task.line_tokens * len(task.procedure),
        seed=task.seed,
        timeout=options.retry.timeout,
    )


def outcome_of(
    arm: str, task: Task, sent: Sequence[Sent], reading: TranscriptReading, *, chosen: int = -1
) -> TaskOutcome:
    """The outcome of an arm that vouches for nothing: `found` is what counts of what was sent, `chosen` its place.

    A call that failed makes an error of the whole: with fewer chains it would be another arm.
    """
    usage, seconds = sum((each.usage for each in sent), Usage()), sum(each.seconds for each in sent)
    failure = next((each.failure for each in sent if each.completion is None), None)
    status = "completed"
    if failure is not None:
        status = "error"
    elif sent[chosen].cut:
        status = "truncated"
    elif reading.lenient is None or (reading.strict is None and reading.deviations.get("missing_answer")):
        status = "no_answer"
    right = reading.right(task)
    answered = {} if reading.strict is None else {task.procedure.answer: reading.strict}
    return replace(
        base.nothing(arm, task, status=status, error=failure),
        right=same(reading.strict, task.answer),
        right_lenient=same(reading.lenient, task.answer),
        trace_right=task.whole and all(right),
        steps_right=sum(right),
        **base.spent(usage, seconds),
        deviations=dict(reading.deviations),
        texts=tuple(each.text for each in sent),
        prefix=reading.prefix(task),
        slips=len(reading.slips),
        misdone=reading.misdone,
        served_by=base.served_by(each.completion for each in sent),
        authors=authors_scores(task, {**reading.values, **answered}),
    )


_UNREAD = TranscriptReading(None, None, {}, {}, {}, sound=False, proved=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorsPrompt(Named):
    """The item as its authors ask it. Tasks that nobody published have no such prompt.

    No step is judged: right is what counts as solved by the authors' own reading of the reply.
    """

    word: ClassVar[str] = "authors"

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> TaskOutcome:
        if task.published is None:
            return nothing(self.name, task, status="error", error=f"{task.family} has no prompt of its authors")
        request = replace(
            request_like(task.demonstration, task, options),
            messages=(Message("user", task.published.prompt),),
            max_tokens=400 + task.line_tokens * len(task.procedure),
        )
        sent = await send_with_room(backend, request, options.retry, lambda text: False)
        # Their prompts are full of marks in brackets, which a reply may go on with: no thinking that never ends.
        spoken = without_thinking(sent.text)
        scores = task.published.read(spoken if isinstance(spoken, str) else sent.text)
        solved = next(iter(scores.values())) == 1.0
        outcome = outcome_of(self.name, task, [sent], _UNREAD)
        status = "completed" if outcome.status == "no_answer" else outcome.status
        return replace(
            outcome, status=status, right=solved, right_lenient=solved, authors=dict(scores),
            steps_judged=0, steps_right=0, trace_right=False, prefix=0,
        )  # fmt: skip
