"""The books of a run: a record of every completed step and of every model call."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from itertools import islice
from typing import Final

from stepguard.backends.base import Completion
from stepguard.core.usage import Usage
from stepguard.core.verdicts import FORMAL, STRENGTHS, Deviation, DeviationKind, Strength
from stepguard.results import ASSISTANCE, Assistance, Attempt, AttemptOutcome, Occurrence, StepRecord

__all__ = ["History"]

_MANY: Final = 3


class History:
    """What a result tells of a run.

    Args:
        keep: how many of the last steps and attempts are kept; None keeps all.
    """

    def __init__(self, keep: int | None) -> None:
        self._keep = keep
        self._calls = 0
        self._records: deque[StepRecord] = deque(maxlen=keep)
        self._attempts: deque[Attempt] = deque(maxlen=keep)
        self._unverified: list[str] = []
        self._assisted: Counter[Assistance] = Counter()
        self._strength: Strength | None = None
        self._kinds: Counter[DeviationKind] = Counter()

    @property
    def assisted(self) -> dict[Assistance, int]:
        """How many steps were completed with each assistance, without those that had none."""
        return {each: self._assisted[each] for each in ASSISTANCE if each != "none" and self._assisted[each]}

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
        told = ", ".join(f"{kind} {count}" for kind, count in sorted(formal.items(), key=lambda pair: -pair[1]))
        return (
            f"{refused} of {self._calls} replies were refused for their form ({told}), not for a wrong value: the "
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
    def unverified(self) -> tuple[str, ...]:
        """The first completed steps that no check vouches for."""
        return tuple(self._unverified)

    def add(self, record: StepRecord) -> None:
        """Book a completed step."""
        self._records.append(record)
        self._assisted[record.assistance] += 1
        self._strength = min(self._strength or record.strength, record.strength, key=STRENGTHS.index)
        if not record.verified and (self._keep is None or len(self._unverified) < self._keep):
            self._unverified.append(record.occurrence.step)

    def book(
        self,
        steps: Sequence[Occurrence],
        *,
        rung: str,
        outcome: AttemptOutcome,
        usage: Usage,
        seconds: float,
        committed: int = 0,
        deviations: Sequence[Deviation] = (),
        completion: Completion | None = None,
        error: str | None = None,
    ) -> None:
        """Book a model call; see `Attempt`."""
        self._calls += 1
        self._kinds.update({each.kind for each in deviations})
        self._attempts.append(
            Attempt(
                number=self._calls,
                steps=tuple(steps),
                rung=rung,
                outcome=outcome,
                committed=committed,
                deviations=tuple(deviations),
                usage=usage,
                seconds=seconds,
                finish_reason=completion.finish_reason if completion else None,
                text=_said(completion) if completion else None,
                error=error,
            )
        )


def _said(completion: Completion) -> str | None:
    """What a reply said, in whatever way it said it."""
    text = (completion.text or "").strip()  # some models end in endless white space
    if text:
        return text
    calls = "\n".join(call.arguments for call in completion.tool_calls)
    return calls or completion.refusal or completion.text
