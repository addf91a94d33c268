"""Remarks at the end of a value or a side of working that say nothing of it but that it is right, or rounded.

Understood are a tick, one word in brackets that affirms (``30 (verified)``) and the words of the rounding that the step
declares (``3.33 (rounded to 2 decimals)``). Whatever else stands there is left, so that the value is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, cast

from stepguard.language.expressions import Call, Expression, Number

if TYPE_CHECKING:
    from stepguard.language.value_types import ValueType

_AFFIRMED: Final = re.compile(
    r" {0,3}(?:[\u2713\u2714\u2705\u2611]\ufe0f?|\\checkmark|\((?P<word>verified|checked|correct|korrekt|gepr\u00fcft"
    r"|v\u00e9rifi\u00e9|verificado|correcto|[\u2713\u2714\u2705\u2611]\ufe0f?)\))\Z",
    re.IGNORECASE,
)
_ROUNDED: Final = re.compile(
    r",?(?: in (?P<currency>[A-Z]{3}),?)? (?P<open>\()?(?i:rounded(?: to (?P<places>[0-9]{1,3}) decimal(?:s| places?))?"
    r"|gerundet|arrondi|redondeado)(?(open)\))\s*\Z"
)


def without_affirmation(text: str, instruction: str | None = None) -> str:
    """A text without the remark at its end that only affirms it.

    Args:
        text: a value or a whole entry.
        instruction: the words of the step; a remark that is one of them may say what was asked, and stays.
    """
    if text[-1:].isalnum() or (remark := _AFFIRMED.search(text, max(len(text) - 20, 0))) is None:
        return text
    word = remark["word"]
    asked = word is not None and instruction is not None and word.lower() in instruction.lower()
    return text if asked else text[: remark.start()]


def without_rounding(text: str, kind: ValueType, tree: Expression | None) -> str:
    """A text without the words at its end that say how the step rounds; with them where it rounds otherwise, or never.

    Args:
        text: a value, or a side of working, which need not be rounded yet.
        kind: the type of the step.
        tree: its expression, whose outermost ``round`` counts where the type rounds nothing.
    """
    words = _ROUNDED.search(text)
    if words is None:
        return text
    places = kind.places
    if places is None and type(tree) is Call and tree.mode is not None:
        places = cast(int, cast(Number, tree.arguments[1]).value)
    declared = places is not None and words["currency"] in (None, kind.currency)
    return text[: words.start()] if declared and words["places"] in (None, str(places)) else text
