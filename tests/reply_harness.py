"""What the tests of replies share: a few steps, and a reply read against them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepguard.backends.base import Completion
from stepguard.procedure.steps import Step
from stepguard.replies.formats import EquationFormat
from stepguard.replies.reading import Reading, read_reply

FORMAT = EquationFormat()
PAIR = (Step("a", "2*3"), Step("b", "a+4"))
TRIPLE = (*PAIR, Step("c", "b*2"))
MIXED = (Step("a", "2*3"), Step("s", instruction="Name the country in a.", reads=["a"]))
GOOD = '{"a": "2 * 3 = 6", "b": "6 + 4 = 10"}'
OTHER = '{"a": "2 * 3 = 9", "b": "9 + 4 = 13"}'


def read(text: str | None, steps: Sequence[Step] = PAIR, **fields: Any) -> Reading:
    return read_reply(Completion(text, **fields), steps, FORMAT)


def values(reading: Reading) -> list[str]:
    return [claim.value for claim in reading.claims]


def kinds(reading: Reading) -> list[tuple[str, str | None]]:
    return [(deviation.kind, deviation.step) for deviation in reading.deviations]


A, B, C = '"a": "2 * 3 = 6"', '"b": "6 + 4 = 10"', '"c": "10 * 2 = 20"'
WORDS = Step("s", instruction="Name the country.")
TRUTH = Step("s", instruction="Is it so?", type="boolean")
