"""One call with the prompt of the benchmark's own authors, scored as they score it: the baseline that others know."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from stepguard.backends.base import Backend, Message
from stepguard.evaluation.arms.base import ArmOptions, Neighbour, Outcome, nothing, send_with_room
from stepguard.evaluation.arms.reading import TranscriptReading
from stepguard.evaluation.arms.transcripts import outcome_of, request_like
from stepguard.evaluation.families import Task
from stepguard.evaluation.knobs import Named
from stepguard.replies.thinking import without_thinking

_UNREAD = TranscriptReading(None, None, {}, {}, {}, sound=False, proved=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorsPrompt(Named):
    """The item as its authors ask it. Tasks that nobody published have no such prompt.

    No step is judged: right is what counts as solved by the authors' own reading of the reply.
    """

    word: ClassVar[str] = "authors"

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> Outcome:
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
