"""Whole numbers that are spelled out in English: ``forty-two``, ``one thousand two hundred and five``."""

from __future__ import annotations

from typing import Final

SMALL: Final = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
TENS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES: Final = (("million", 1_000_000), ("thousand", 1_000), ("hundred", 100))
_LONGEST: Final = 100
"""A longer text is none, in characters."""


def spelled_number(text: str) -> int | None:
    """The number that a text of words is, and nothing else; None where it is none."""
    words = text.lower().replace("-", " ").split() if len(text) <= _LONGEST else []
    negative = words[:1] in (["minus"], ["negative"])
    number = _read(words[negative:])
    return -number if negative and number is not None else number


def _read(words: list[str]) -> int | None:
    for scale, factor in _SCALES:
        if scale in words:
            at = words.index(scale)
            count, rest = _read(words[:at]), words[at + 1 :]
            rest = rest[1:] if rest[:1] == ["and"] and len(rest) > 1 else rest
            below = _read(rest) if rest else 0
            ordered = count is not None and 0 < count < (10 if factor == 100 else 1000)
            return count * factor + below if ordered and count and below is not None and below < factor else None
    match words:
        case [tens, unit] if tens in TENS and unit in SMALL[1:10]:
            return 10 * (TENS.index(tens) + 2) + SMALL.index(unit)
        case [word] if word in TENS:
            return 10 * (TENS.index(word) + 2)
        case [word] if word in SMALL:
            return SMALL.index(word)
    return None
