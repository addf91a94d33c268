"""Replies that are still being written: which entries are complete, and whether one of them is wrong already.

A reply is of no use behind its first wrong step, so that a model that is heard while it writes can be stopped there,
and where an entry runs away (`stepguard.replies.runaway`).
Only what would be judged in the same way at the end counts: complete entries of the steps that were asked, in their
order, from the beginning of one JSON object, judged by the arithmetic alone. Checks of the user's are not called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from stepguard.checks.arithmetic import check_arithmetic
from stepguard.core.verdicts import Claim
from stepguard.errors import ValueRefused
from stepguard.language.strict_json import JsonNumber, JsonObject, decode_at
from stepguard.replies.runaway import is_runaway

if TYPE_CHECKING:
    from stepguard.language.values import Value
    from stepguard.procedure.steps import Step
    from stepguard.replies.formats import ReplyFormat

__all__ = ["PartialReply", "WrongStepWatch", "complete_entries"]

_LONGEST_ENTRY: Final = 10_000
_OPENING = re.compile(r"[\s\ufeff]{0,99}(?:```[a-z]{0,20}\s{0,9})?\{")
_KEY = re.compile(r'\s*"')
_COLON = re.compile(r"\s*:\s*")
_NEXT = re.compile(r"\s*([,}])")


class PartialReply:
    """The complete entries of a JSON object that grows."""

    def __init__(self) -> None:
        self._at = 0
        self._entered = self._first = False
        self._over = self._closed = False

    def unfinished(self, text: str) -> str:
        """What stands behind the last complete entry of a text whose entries were read; empty where none can come."""
        return "" if self._closed else text[self._at :]

    def entries(self, text: str) -> Iterator[tuple[str, object]]:
        """The entries that have become complete since the last call.

        Args:
            text: all that there is of the reply by now; it only ever grows at its end.
        """
        if not self._entered:
            opening = _OPENING.match(text)
            if opening is None:
                return
            self._at, self._entered, self._first = opening.end(), True, True
        while not self._over:
            begin = self._at
            if not self._first:
                more = _NEXT.match(text, begin)
                if more is None:
                    break
                if more[1] == "}":
                    self._over = self._closed = True
                    break
                begin = more.end()
            found = _entry(text, begin)
            if found is None:
                break
            key, value, end = found
            if isinstance(value, JsonNumber | bool | None) and _NEXT.match(text, end) is None:
                break  # more digits may follow
            self._at, self._first = end, False
            yield key, value
        # What is searched again with every piece of text has to be short.
        self._over = self._over or len(text) - self._at > _LONGEST_ENTRY


def complete_entries(text: str) -> tuple[JsonObject, str]:
    """The entries of a reply that was stopped before its end, and what had come of the next one."""
    reply = PartialReply()
    return JsonObject(list(reply.entries(text))), reply.unfinished(text)


class WrongStepWatch:
    """Says, of all the text of a reply so far, whether it may be stopped: a step in it is wrong, or runs away.

    It is called with more and more of one reply; a text that does not go on from the last one is another reply.

    Args:
        steps: the steps that are asked, in order.
        values: what they read.
        reply_format: how the reply is structured.
    """

    def __init__(self, steps: Sequence[Step], values: Mapping[str, Value], reply_format: ReplyFormat) -> None:
        self._steps = steps
        self._values = values
        self._reply_format = reply_format
        self._text = ""
        self._begin()

    def __call__(self, text: str) -> bool:
        if not text.startswith(self._text):
            self._begin()
        self._text = text
        if any(self._is_wrong(key, field) for key, field in self._reply.entries(text)):
            return True
        step = None if self._lost else next(iter(self._steps[self._count :]), None)
        return step is not None and is_runaway(self._reply.unfinished(text), step)

    def _begin(self) -> None:
        self._reply: PartialReply = PartialReply()
        self._count = 0
        self._state: dict[str, Value] = dict(self._values)
        self._lost = False

    def _is_wrong(self, key: str, field: object) -> bool:
        step = self._steps[self._count] if self._count < len(self._steps) else None
        self._count += 1
        self._lost = self._lost or step is None or step.id != key
        if step is None or self._lost:
            return False  # surplus, or another order: the end decides
        try:
            claim = self._reply_format.claim(step, field)
        except Exception:  # noqa: BLE001 - a reply format is foreign code; what it did is told at the end
            self._lost = True
            return False
        if not isinstance(claim, Claim):
            return True
        try:
            value = step.type.read(claim.value)
        except ValueRefused:
            return True
        self._lost = any(name not in self._state for name in step.reads)
        if self._lost:
            return False
        if step.expression is not None and check_arithmetic(step, self._state, claim, value).outcome != "pass":
            return True
        self._state[step.id] = value
        return False


def _entry(text: str, at: int) -> tuple[str, object, int] | None:
    """The key and the value that begin here, and where they end; None where they are not there as yet."""
    start = _KEY.match(text, at)
    if start is None:
        return None
    try:
        key, behind = decode_at(text, start.end() - 1)
        colon = _COLON.match(text, behind)
        if colon is None or not isinstance(key, str):
            return None
        value, end = decode_at(text, colon.end())
    except ValueError:
        return None
    return key, value, end
