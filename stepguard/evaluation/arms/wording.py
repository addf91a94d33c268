"""The guard's prompts without one of the decisions they rest on: what each of them is worth.

Used by ``guard(without=...)`` and ``chunk(without=...)``. Everything else stays: the steps, the segments, the checker,
the ways of asking again, and what a simulated model reads beside the words.

==============  =====================================================================================================
instructions    what is wanted, in words, stands before everything
demonstration   one worked example stands before the question
names           the entries of a reply are keyed by the names of their steps; without, by places: ``s1``, ``s2``, ...
working         the calculation is asked before its result; without, the result alone
operands        the values that a step reads stand beside it
values          they are listed above the steps, too
excerpt         only the steps that are asked are shown; without, the whole procedure stands above them
fresh_segments  each segment is asked in a context of its own; without, the earlier ones stay, as far as accepted
fresh_retries   a refused reply is not shown; without, it stands above the next try, and is called wrong
==============  =====================================================================================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, get_args

from stepguard.backends.base import Backend, Completion, Message, Request, ask
from stepguard.core.arguments import check_one_of
from stepguard.engine.prompts import describe_steps
from stepguard.evaluation.families import Task
from stepguard.procedure.procedure import Procedure
from stepguard.replies.formats import ReplyFormat

if TYPE_CHECKING:
    from pydantic import BaseModel

    from stepguard.core.verdicts import Claim, Deviation
    from stepguard.procedure.steps import Step

PromptDecision = Literal[
    "instructions",
    "demonstration",
    "names",
    "working",
    "operands",
    "values",
    "excerpt",
    "fresh_segments",
    "fresh_retries",
]
"""What can be left out of the guard's prompts; see above."""

DECISIONS: Final[tuple[str, ...]] = get_args(PromptDecision)
_RESTATED: Final = re.compile(r"   \([^\n]*\)$", re.MULTILINE)  # the operands behind a step, as prompts write them
# The values in front of the steps, as prompts write them.
_LIST: Final = re.compile(r"\AValues:\n.*?^(?=(?:Steps|Done before):$)", re.MULTILINE | re.DOTALL)
_KEY: Final = re.compile(r'"s([0-9]+)"(?=\s*:)')


def check_decision(decision: object) -> None:
    """Refuse what is no decision. Raises ConfigError: it is none."""
    check_one_of(decision, DECISIONS, "without", optional=True)


def without_working(task: Task) -> Task:
    """The same task with no step's working asked for."""
    old = task.procedure
    steps = [step if step.expression is None else replace(step, show_work=False) for step in old.steps]
    return replace(task, procedure=Procedure(steps, inputs=old.inputs, answer=old.answer, name=old.name))


@dataclass(slots=True)
class Reworded:
    """A model that one run asks without one decision of its prompts.

    Args:
        decision: what is left out; ``working`` is not said in prompts alone, see `without_working`.
    """

    backend: Backend
    decision: PromptDecision
    procedure: Procedure
    _said: list[tuple[Request, str]] = field(default_factory=list)

    @property
    def can_stop(self) -> bool:
        """Whether the model can stop a reply at its first wrong step."""
        return bool(getattr(self.backend, "can_stop", False))

    async def acomplete(self, request: Request) -> Completion:
        """Ask with other words."""
        if request.reply_format is None:  # working in free text is asked without any of the decisions
            return await ask(self.backend, request)
        asked = replace(request, messages=self._messages(request))
        if self.decision == "names":
            asked = replace(asked, reply_format=_ByPlace(request.reply_format))
        completion = await ask(self.backend, asked)
        if self.decision in ("fresh_segments", "fresh_retries"):
            self._said.append((request, completion.text or ""))
        if self.decision == "names" and completion.text is not None:
            completion = replace(completion, text=_by_name(completion.text, request.steps))
        return completion

    def _messages(self, request: Request) -> tuple[Message, ...]:
        *prefix, question = request.messages
        match self.decision:
            case "instructions":
                return tuple(message for message in request.messages if message.role != "system")
            case "demonstration":
                return (*(each for each in prefix if each.role == "system"), question)
            case "names":
                return tuple(map(_placed, request.messages))
            case "operands":
                return tuple(_changed(message, _RESTATED) for message in request.messages)
            case "values":
                return tuple(_changed(message, _LIST) for message in request.messages)
            case "excerpt":
                whole = describe_steps(self.procedure.steps, {}).partition("\nSteps:\n")[2]
                text = f"The whole procedure:\n{whole}\n\nCarry out these steps of it now.\n{question.content}"
                return (*prefix, Message("user", text))
            case "fresh_segments":
                return (*prefix, *self._earlier(request), question)
            case "fresh_retries":
                return (*prefix, *self._refused(request))
            case "working":
                return tuple(map(_without_work, request.messages))

    def _earlier(self, request: Request) -> list[Message]:
        """The segments before this one, each with what was accepted of its last reply."""
        places = {step.id: at for at, step in enumerate(self.procedure.steps)}
        ahead = min((places[step.id] for step in request.steps if step.id in places), default=len(places))
        kept: list[Message] = []
        for before, text in reversed(self._said):
            first = min((places[step.id] for step in before.steps if step.id in places), default=ahead)
            if first >= ahead:  # asked again since
                continue
            accepted = {step.id for step in self.procedure.steps[first:ahead]}
            entries = {name: entry for name, entry in _entries(text).items() if name in accepted}
            if entries:
                kept += [Message("assistant", json.dumps(entries)), before.messages[-1]]
                ahead = first
        return kept[::-1]

    def _refused(self, request: Request) -> list[Message]:
        """The replies in which the first step that is asked was refused, with the complaint."""
        leading = request.steps[0].id
        tries: list[tuple[Request, str]] = []
        for before, text in reversed(self._said):
            if len(tries) == request.attempt - 1 or all(step.id != leading for step in before.steps):
                break
            tries.append((before, text))
        complaint = f"Your entry for {leading} was not accepted. Answer again.\n"
        kept: list[Message] = []
        for before, text in reversed(tries):
            asked = before.messages[-1].content
            kept += [Message("user", complaint + asked if kept else asked), Message("assistant", text)]
        return [*kept, Message("user", complaint + request.messages[-1].content)] if kept else [request.messages[-1]]


@dataclass(frozen=True, slots=True)
class _ByPlace:
    """A reply format whose keys are places."""

    named: ReplyFormat

    @property
    def instructions(self) -> str:
        return self.named.instructions

    def answer(self, step: Step, work: str, value: str) -> object:
        return self.named.answer(step, work, value)

    def claim(self, step: Step, field: object) -> Claim | Deviation:
        return self.named.claim(step, field)

    def response_model(self, steps: Sequence[Step]) -> type[BaseModel]:
        return self.named.response_model([replace(step, id=f"s{at}") for at, step in enumerate(steps, 1)])


def _changed(message: Message, dropped: re.Pattern[str]) -> Message:
    return replace(message, content=dropped.sub("", message.content)) if message.role == "user" else message


def _without_work(message: Message) -> Message:
    """The same with results alone in the demonstration, and asking for nothing else."""
    if message.role == "system":
        content = message.content
        for asked in ("the formula", "its formula"):  # as full and as brief prompts ask for it
            asked += " with the numbers filled in, an equals sign, the result."
            content = content.replace(asked, "the result alone.")
        return replace(message, content=content)
    if message.role == "assistant":
        entries = _entries(message.content).items()
        bare = {name: each.rpartition("= ")[2] if isinstance(each, str) else each for name, each in entries}
        return replace(message, content=json.dumps(bare))
    return message


def _placed(message: Message) -> Message:
    """The same with numbered steps and entries keyed by their numbers."""
    if message.role == "system":
        return replace(message, content=message.content.replace("the step names, in", "s1, s2, s3 and so on, in"))
    if message.role == "assistant":
        entries = _entries(message.content).values()
        return replace(message, content=json.dumps({f"s{at}": entry for at, entry in enumerate(entries, 1)}))
    above, heading, below = message.content.partition("Steps:\n")
    if not heading:  # a plain question, which names its only key
        return replace(message, content=f"{message.content.rpartition('Key: ')[0]}Key: s1")
    listed, working, draft = below.partition("\nWorking:\n")
    numbered = "\n".join(f"{at}. {each}" for at, each in enumerate(listed.split("\n"), 1))
    return replace(message, content=above + heading + numbered + working + draft)


def _by_name(text: str, steps: Sequence[Step]) -> str:
    def named(key: re.Match[str]) -> str:
        at = int(key[1])
        return json.dumps(steps[at - 1].id) if 1 <= at <= len(steps) else key[0]

    return _KEY.sub(named, text)


def _entries(text: str) -> dict[str, object]:
    """The entries of a reply; none where it cannot be read."""
    try:
        entries: object = json.loads(text)
    except ValueError:
        return {}
    return entries if isinstance(entries, dict) else {}
