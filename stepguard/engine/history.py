"""History: a record of every completed step and of every model call."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from itertools import islice
from typing import Final

from stepguard.backends.base import Completion
from stepguard.core.usage import Usage
from stepguard.core.verdicts import FORMAL, DeviationKind, Strength, weakest
from stepguard.engine.flights import Asking, Flight, Rejection, Reply
from stepguard.repair.fallbacks import name_of
from stepguard.results import ASSISTANCE, Assistance, Attempt, AttemptOutcome, StepRecord

_MANY: Final = 3
"""So many formal refusals, and a third of all calls, before the caller is advised: one slip is no pattern."""


class History:
    """The completed steps and the model calls of a run, as its result holds them.

    Args:
        keep: how many of the last steps and attempts are kept; None keeps all.
        prompts: whether attempts hold what was sent.
    """

    def __init__(self, keep: int | None, *, prompts: bool = False) -> None:
        self._keep = keep
        self._prompts = prompts
        self._calls = 0
        self._records: deque[StepRecord] = deque(maxlen=keep)
        self._attempts: deque[Attempt] = deque(maxlen=keep)
        self._weak: dict[str, Strength] = {}
        self._assisted: Counter[Assistance] = Counter()
        self._strength: Strength | None = None
        self._kinds: Counter[DeviationKind] = Counter()

    @property
    def calls(self) -> int:
        """How many model calls are done with."""
        return self._calls

    @property
    def assisted(self) -> dict[Assistance, int]:
        """How many steps were completed with each assistance, without those that had none."""
        return {kind: self._assisted[kind] for kind in ASSISTANCE if kind != "none" and self._assisted[kind]}

    @property
    def strength(self) -> Strength:
        """What stands behind the weakest of the completed steps."""
        return self._strength or "unverified"

    def notes(self) -> tuple[str, ...]:
        """What the caller should know: that the form of the replies costs more than their content."""
        formal = {kind: count for kind in FORMAL if (count := self._kinds[kind])}
        refused = sum(formal.values())
        if refused < _MANY or 3 * refused < self._calls:
            return ()
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(formal.items(), key=lambda pair: -pair[1]))
        return (
            f"{refused} of {self._calls} replies were refused for their form ({kinds}), not for a wrong value: the "
            "guard may cost this model more than it gains; try another reply_format, show_work=False, or a larger "
            "model",
        )

    @property
    def records(self) -> tuple[StepRecord, ...]:
        """The completed steps, in the order of the procedure."""
        return tuple(sorted(self._records, key=lambda record: record.occurrence.index))

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The model calls, in the order in which they were done with."""
        return tuple(self._attempts)

    def attempts_after(self, number: int) -> tuple[Attempt, ...]:
        """Those of `attempts` that are numbered higher; without a look at the others."""
        fresh = tuple(islice(reversed(self._attempts), max(0, self._calls - number)))
        return fresh[::-1]

    @property
    def weak(self) -> dict[str, Strength]:
        """The first completed steps that are less than proved, or rest on one that is, each with its support."""
        return dict(self._weak)

    def restore(self, attempts: Iterable[Attempt]) -> None:
        """Book the model calls of earlier processes."""
        for attempt in attempts:
            self._calls = attempt.number
            self._kinds.update({deviation.kind for deviation in attempt.deviations})
            self._attempts.append(attempt)

    def add(self, record: StepRecord) -> None:
        """Book a completed step."""
        self._records.append(record)
        self._assisted[record.assistance] += 1
        self._strength = weakest((self._strength or record.support, record.support))
        if not record.verified and (self._keep is None or len(self._weak) < self._keep):
            self._weak.setdefault(str(record.occurrence), record.support)

    def book_reply(
        self,
        flight: Flight,
        reply: Reply,
        outcome: AttemptOutcome,
        rejections: Iterable[Rejection] = (),
        *,
        committed: int = 0,
        error: str | None = None,
    ) -> None:
        """Book a model call that was answered; see `Attempt`."""
        self._calls += 1
        deviations = reply.all_deviations(rejections)
        # As a set: each kind counts once for a reply.
        self._kinds.update({deviation.kind for deviation in deviations})
        self._attempts.append(
            Attempt(
                number=self._calls,
                steps=flight.segment.occurrences,
                rung=flight.rung.name,
                outcome=outcome,
                committed=committed,
                deviations=deviations,
                usage=reply.usage,
                seconds=reply.seconds,
                finish_reason=reply.completion.finish_reason,
                text=_text_of(reply.completion),
                error=error,
                backend=name_of(reply.backend),
                prompt=self._prompt_of(flight),
            )
        )

    def book_failure(self, asking: Asking, error: str, *, usage: Usage, seconds: float) -> None:
        """Book a model call that was not answered."""
        self._calls += 1
        self._attempts.append(
            Attempt(
                number=self._calls,
                steps=asking.flight.segment.occurrences,
                rung=asking.flight.rung.name,
                outcome="error",
                committed=0,
                deviations=(),
                usage=usage,
                seconds=seconds,
                error=error,
                backend=name_of(asking.backend),
                prompt=self._prompt_of(asking.flight),
            )
        )

    def _prompt_of(self, flight: Flight) -> tuple[tuple[str, str], ...] | None:
        if not self._prompts or flight.request is None:
            return None
        return tuple((message.role, message.content) for message in flight.request.messages)


def _text_of(completion: Completion) -> str | None:
    """The text of a reply, in whatever way it came."""
    text = (completion.text or "").strip()  # some models end in endless white space
    if text:
        return text
    calls = "\n".join(call.arguments for call in completion.tool_calls)
    return calls or completion.refusal or completion.text
