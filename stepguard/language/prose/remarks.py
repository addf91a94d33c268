"""Words around a working and at the end of a value that say nothing of it but that it is right, counted, or rounded.

Understood are words that only lead to an equation (``So we get 6 * 5 = 30``), a tick, one word in brackets that affirms
(``30 (verified)``), of a plain number the word for what it counts (``30 units``) and the words of the rounding that the
step declares (``3.33 (rounded to 2 decimals)``). Whatever else stands there is left, so that the value is refused.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import TYPE_CHECKING, Final, cast

from stepguard.core.patterns import lazy_pattern
from stepguard.language.currencies import CODES, WORDS
from stepguard.language.expressions import Call, Expression, Number
from stepguard.language.prose.vocabulary import CONTROL, DOUBTFUL, NAMING, word_set
from stepguard.language.unit_names import factors_of

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
_OPENING: Final = (
    word_set(
        "so thus hence therefore then now first next finally ok okay well let me us we i have to the this result answer"
    )
    | NAMING
) - word_set("estimate average test check see look note decide measure name state convert")
"""Words of which an equation says no more than that it comes."""
_OPENING_WORD: Final = lazy_pattern(r"([^\W\d_]{1,20})(?:[,:]? +|: *)")
_COUNTED: Final = lazy_pattern(r"(?<=[0-9]) (?P<word>[^\W\d_]{2,30})\.?\Z")
_ANYTHING: Final = word_set("unit units item items piece pieces")
"""What a number without a unit may count, whatever it is of."""


def without_opening(text: str, name: str, reads: Container[str]) -> str:
    """A line with an equation without the words in front that only lead to it.

    Args:
        text: the line.
        name: the name of its step, of which the words may say what it is that comes.
        reads: the names that the step reads: with one of them the equation has begun.
    """
    own = {"result", "answer", *name.lower().split("_")}
    at, before = 0, ""
    while (word := _OPENING_WORD.match(text, at)) is not None:
        said = word[1].lower()
        known = said in _OPENING or said in own or (said == "is" and before in own)
        if word[1] in reads or not known or text.startswith("=", word.end()):
            break
        at, before = word.end(), said
    return text[at:]


def without_counted(text: str, name: str, kind: ValueType) -> str:
    """A plain number without the word for what it counts: its step's name, or that it is units of whatever it is."""
    found = None if kind.kind not in ("number", "integer", "decimal") else _COUNTED.search(text)
    if found is None:
        return text
    word = found["word"].lower()
    if word in _ANYTHING:
        return text[: found.start()]
    turns = word in CONTROL | DOUBTFUL or word in WORDS or word.upper() in CODES or factors_of(word) is not None
    return text if turns or word not in name.lower().split("_") else text[: found.start()]


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
