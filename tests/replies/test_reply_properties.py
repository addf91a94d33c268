"""Replies that are generated: nothing raises, and no part of an answer is one."""

from __future__ import annotations

import json
from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from reply_harness import GOOD, MIXED, OTHER, PAIR, TRIPLE, TRUTH, WORDS, read

from stepguard.backends.base import ToolCall
from stepguard.core.verdicts import DEVIATION_KINDS
from stepguard.procedure.steps import Step
from stepguard.replies.reading import TOOL_NAME

PIECES = st.sampled_from([
    GOOD, OTHER, GOOD[:-1], '{"a": ',
    '"b"', "}", "{", "[", "]", '"', "\\", ",", ":", "<think>", "</think>", "```json\n",
    "```", "<|channel|>final<|message|>", "\ufeff", "\ud800", "\x00", "NaN", "1e9", "true", "no, wait", "=", "answer",
    "\n", " ", "\\ud800", "\\u0000", '{"a": "2 * 3 = 6", "a": 1}', '{"s": {"work": "x", "value": "y"}, "a": "1=1"}',
])  # fmt: skip
HOSTILE = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=12).map("".join))
STEP_SETS = st.sampled_from([PAIR, TRIPLE, MIXED, (WORDS,), (TRUTH,), (Step("t", "name", type="text"),)])


@given(
    text=st.none() | HOSTILE,
    steps=STEP_SETS,
    finish=st.sampled_from(["stop", "length", "content_filter", "tool_calls", None]),
    refusal=st.none() | st.text(max_size=9),
    reasoning=st.none() | st.text(max_size=9),
    calls=st.lists(st.builds(ToolCall, st.sampled_from([TOOL_NAME, "x\ud800"]), HOSTILE), max_size=2),
)
@examples(500)
def test_nothing_a_model_writes_raises(
    text: str | None,
    steps: tuple[Step, ...],
    finish: str | None,
    refusal: str | None,
    reasoning: str | None,
    calls: list[ToolCall],
) -> None:
    """Every completion gives claims for a first part of the steps, and a deviation where that is not all."""
    reading = read(text, steps, finish_reason=finish, refusal=refusal, reasoning=reasoning, tool_calls=tuple(calls))
    assert [claim.step for claim in reading.claims] == [step.id for step in steps][: len(reading.claims)]
    assert (reading.failed is None) == (len(reading.claims) == len(steps))
    assert reading.failed is None or reading.failed in reading.deviations
    for deviation in reading.deviations:
        assert deviation.kind in DEVIATION_KINDS
        f"{deviation.step}{deviation.reason}".encode()
    for claim in reading.claims:
        f"{claim.work}{claim.value}{claim.text}".encode()


ENTRIES = st.dictionaries(
    st.sampled_from(["a", "b", "c", "s", "answer", "A"]),
    st.one_of(
        st.text(max_size=20), st.integers(), st.booleans(), st.none(),
        st.builds(lambda n: f"2 * 3 = {n}", st.integers()),
        st.fixed_dictionaries({"work": st.text(max_size=9), "value": st.text(max_size=9) | st.integers()}),
    ),
)  # fmt: skip


@given(
    entries=ENTRIES,
    steps=STEP_SETS,
    wrap=st.sampled_from(["%s", "```\n%s\n```", "so: %s.", "<think>{</think>%s", "{x} %s"]),
    escape=st.booleans(),
)
@examples(300)
def test_a_claim_is_what_the_reply_says_of_that_step(
    entries: dict[str, object], steps: tuple[Step, ...], wrap: str, escape: bool
) -> None:
    """The parts of every claim stand literally in the entry of that very step."""
    reading = read(wrap.replace("%s", json.dumps(entries, ensure_ascii=escape)), steps)
    for claim in reading.claims:
        entry = entries[claim.step]
        said = list(entry.values()) if isinstance(entry, dict) else [entry]
        texts = [part if isinstance(part, str) else json.dumps(part) for part in said]
        assert all(any(part in text for text in texts) for part in (*claim.work, claim.value))


@given(at=st.integers(0, len(GOOD)), steps=STEP_SETS)
def test_no_beginning_of_an_answer_is_one(at: int, steps: tuple[Step, ...]) -> None:
    """A reply that ends anywhere before its end gives no claim at all."""
    reading = read(GOOD[:at], steps)
    assert reading.claims == () or at == len(GOOD)


@given(cut=st.tuples(st.integers(0, len(GOOD)), st.integers(0, 6)), put=st.text('{}[]",:\\ab=16 ', max_size=4))
@examples(300)
def test_a_mutated_answer_is_not_mended(cut: tuple[int, int], put: str) -> None:
    """What is claimed of a mutated answer stands in an object that plain JSON finds in it."""
    at, length = cut
    text = GOOD[:at] + put + GOOD[at + length :]
    reading = read(text)
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    said: list[tuple[str, object]] = []
    for start in (place for place, char in enumerate(text) if char == "{"):
        with suppress(ValueError):
            said += decoder.raw_decode(text, start)[0].items()
    assert all((claim.step, claim.text) in said for claim in reading.claims)
