"""Replies that run away: an entry that is many times longer than its step needs, or repeats itself without end.

A reply that hits its cap usually needs a higher one. Where a model rambles inside one entry instead, every cap is hit,
and each costs more than the last.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from stepguard.language.values import Value, show_value

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

_EQUATION: Final = 200
_TIMES_FORMULA: Final = 8
_PER_VALUE: Final = 20
"""An equation is the formula, the formula with its numbers filled in, perhaps some links more, and the result: eight
times both, with 20 characters for a number that is not known, and 200 more leave room for all styles that were seen."""
_WORDS: Final = 2000
"""Working in words for a value that is no text; a draft of the whole step takes about as much."""
_TAIL: Final = 400
_REPEATED: Final = 60
"""Of text that says something 400 characters take 200 bytes and more, packed; of a loop hardly more than one turn."""


def is_runaway(text: str, step: Step, values: Mapping[str, Value]) -> bool:
    """Whether an entry that is not complete will not become so, however much more of it comes.

    Args:
        text: what there is of the entry.
        step: the step that it answers. Where its value is text, that may be as long as it likes, unless it loops.
        values: what it reads, as far as that is known.
    """
    if step.expression is not None and step.type.kind != "text":
        numbers = sum(len(show_value(values[name])) if name in values else _PER_VALUE for name in step.reads)
        return len(text) > _EQUATION + _TIMES_FORMULA * (len(step.formula or "") + numbers)
    short = step.type.kind != "text" and not step.type.structured
    return (short and len(text) > _WORDS) or _is_looping(text)


def _is_looping(text: str) -> bool:
    """Whether a text ends in the same few words, or blanks, again and again."""
    if len(text) < _TAIL:
        return False
    tail = text[-_TAIL:]
    return len(zlib.compress(tail.encode("utf-8", "replace"))) <= _REPEATED
