"""Stops a reply while it is written, as soon as the rest of it can be of no use.

A reply is of no use behind its first wrong step, or where claims are kept that do not rest on one (`judge_claims`),
behind that on which all the others rest. A model that is heard while it writes can be stopped there, and where an entry
runs away (`stepguard.replies.partial`). Only what would be judged in the same way at the end counts: complete entries
of the steps that were asked, in their order, from the beginning of one JSON object, judged by the arithmetic alone.
Checks of the user's are not called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stepguard.checks.arithmetic import check_arithmetic
from stepguard.core.verdicts import Claim
from stepguard.errors import ValueRefused
from stepguard.language.values import Value
from stepguard.procedure.steps import Step
from stepguard.replies.formats import ReplyFormat
from stepguard.replies.partial import PartialReply, is_runaway


class WrongStepWatch:
    """Decides, from the text of a reply so far, whether to stop it: a step in it is wrong, or runs away.

    It is called with more and more of one reply; a text that does not go on from the last one is another reply.

    Args:
        independent: whether claims behind a wrong one are judged that do not rest on it.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        values: Mapping[str, Value],
        reply_format: ReplyFormat,
        *,
        independent: bool = False,
    ) -> None:
        self._independent = independent
        self._steps = steps
        self._values = values
        self._reply_format = reply_format
        self._text = ""
        self._begin()

    def __call__(self, text: str) -> bool:
        # The request was sent again, and this is another reply.
        if not text.startswith(self._text):
            self._begin()
        self._text = text
        if any(self._is_wrong(key, field) for key, field in self._reply.entries(text)):
            return True
        step = None if self._lost else next(iter(self._steps[self._count :]), None)
        return step is not None and is_runaway(self._reply.unfinished(text), step, self._state)

    def _begin(self) -> None:
        self._reply: PartialReply = PartialReply()
        self._count = 0
        self._state: dict[str, Value] = dict(self._values)
        self._lost = False  # once true, only the whole reply can tell what is wrong
        self._open: set[str] = set()  # steps that are wrong, or rest on one that is

    def _is_wrong(self, key: str, field: object) -> bool:
        step = self._steps[self._count] if self._count < len(self._steps) else None
        self._count += 1
        self._lost = self._lost or step is None or step.id != key
        if step is None or self._lost:
            return False  # surplus, or another order: the end decides
        try:
            claim = self._reply_format.claim(step, field)
        except Exception:  # noqa: BLE001 - a reply format is foreign code; reading the whole reply reports it
            self._lost = True
            return False
        if not isinstance(claim, Claim):
            return True
        if not self._open.isdisjoint(step.reads):
            self._open.add(step.id)
            return False
        try:
            value = step.read(claim.value)
        except ValueRefused:
            return self._ends_at(step)
        self._lost = any(name not in self._state for name in step.reads)
        if self._lost:
            return False
        if step.expression is not None and check_arithmetic(step, self._state, claim, value).outcome != "pass":
            return self._ends_at(step)
        self._state[step.id] = value
        return False

    def _ends_at(self, wrong: Step) -> bool:
        """Whether nothing behind a wrong step is of use."""
        self._open.add(wrong.id)
        resting = set(self._open)
        for step in self._steps[self._count :] if self._independent else ():
            if resting.isdisjoint(step.reads):
                return False
            resting.add(step.id)
        return True
