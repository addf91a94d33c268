"""What may stand around and beside an answer: limits, drafts, tags in strings, cut replies, tool calls."""

from __future__ import annotations

import json

import pytest
from reply_harness import GOOD, OTHER, read, values
from tables import all_rows

from stepguard.backends.base import ToolCall
from stepguard.procedure.steps import Step
from stepguard.replies.reading import TOOL_NAME, Reading
from stepguard.replies.text import MAX_REPLY

WORDED = (Step("a", "2*3"), Step("s", instruction="Name the country in a.", reads=["a"]))
TAGGED = '{"a": "2 * 3 = 6", "s": {"work": "</think> <think>", "value": "x"}}'


def only(reading: Reading) -> tuple[str, str]:
    """Kind and reason of the one deviation of a reply that gives no claim."""
    (deviation,) = reading.deviations
    assert reading.claims == ()
    assert reading.failed == deviation
    return deviation.kind, deviation.reason


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f'a: see {{"step": value}}. {GOOD}', id="a label before a foreign broken object"),
        pytest.param(f"{OTHER}<think>x</think>y</think>{GOOD}", id="a block inside swallowed thinking"),
        pytest.param(f'<think>{{"t": "</think>"}}{GOOD}', id="thinking ends at a closing tag between quotes too"),
        pytest.param(f'{GOOD} So {{"a": "2 * 3 = 6"}}.', id="a part again, the same"),
        pytest.param(f'{{"x": 1}} {GOOD} {{"y": 2}}', id="foreign objects around"),
        pytest.param(f'{{"b": "6 + 4 = 10"}} {{"a": "2 * 3 = 6"}} {GOOD}', id="parts, and the whole of them"),
        pytest.param(f"<think {OTHER}>\n</think>{GOOD}", id="a tag with attributes"),
        pytest.param(f"[think]{OTHER}[/think]{GOOD}", id="square tags"),
        pytest.param(f"[thinking]{OTHER}[/thinking]{GOOD}", id="long square tags"),
        pytest.param(f"<|begin_of_thought|>{OTHER}<|end_of_thought|>{GOOD}", id="tags with of"),
        pytest.param(f"<|think|>{OTHER}<|/think|>{GOOD}", id="tags between bars"),
        pytest.param(f"<thoughts>{OTHER}</thoughts>{GOOD}", id="thoughts"),
        pytest.param(f"{OTHER}<|channel|> final<|message|>{GOOD}", id="a final channel with a blank"),
        pytest.param(
            f"{OTHER}<|channel|>analysis<|message|>x<|channel|>final<|message|>{GOOD}", id="the final channel only"
        ),
        pytest.param(
            f"<|channel|>analysis<|message|>x<|channel|>commentary<|message|>y<|channel|>final<|message|>{GOOD}",
            id="two channels before the final one",
        ),
        pytest.param(f"<think>a<think>b</think><think>c</think></think>{GOOD}", id="two blocks inside a block"),
        pytest.param(f"<think/>{GOOD}", id="an empty tag that closes itself"),
        pytest.param(f"<think />{GOOD}", id="the same with a blank"),
        pytest.param(
            f"<|channel|>commentary to=x <|constrain|>json<|message|>{OTHER}<|channel|>final<|message|>{GOOD}",
            id="a channel with a recipient",
        ),
        pytest.param(f"{OTHER}<|channel|>final<|message|>{GOOD}", id="what stands before the final channel"),
    ],
)
def test_the_answer_is_told_from_drafts_and_labels(text: str) -> None:
    """Thinking, labels, foreign objects and parts that say the same do not hide the answer."""
    reading = read(text)
    assert values(reading) == ["6", "10"]
    assert reading.deviations == ()


@all_rows("before", ["", "Here: ", "<think>no</think>", "<think>{}</think> So:\n"])
@all_rows("blank", ["", " ", "\n  "])
def test_tags_inside_the_strings_of_an_answer_are_text(before: str, blank: str) -> None:
    """A tag inside a string of the answer starts and ends nothing, whatever stands before it."""
    reading = read(f"{before}{{{blank}{TAGGED[1:]}", WORDED)
    assert reading.deviations == ()
    assert reading.claims[1].work == ("</think> <think>",)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(f"[ {GOOD}", "not closed", id="a list with a blank, cut"),
        pytest.param(f'{{"x": oops}} {TAGGED}', "thinking", id="an open tag behind a broken object"),
        pytest.param(f"<thinking>{GOOD}", "thinking", id="thinking without end"),
        pytest.param(f"<|channel|>analysis to=x<|message|>{GOOD}", "thinking", id="a channel with a recipient"),
        pytest.param(f"<|begin_of_thought|>{GOOD}", "thinking", id="a thought without end"),
        pytest.param(f"<|start_thinking|>{GOOD}", "thinking", id="the start of thinking"),
        pytest.param(f"<|begin_reasoning|>{GOOD}", "thinking", id="the beginning of reasoning"),
        pytest.param(f"<think>a<think>b</think><think>c</think>{GOOD}", "thinking", id="an outer block without end"),
        pytest.param(f"[think]{GOOD}", "thinking", id="square thinking without end"),
        pytest.param(f'{{"a" : 2 * 3}} {GOOD}', "not valid JSON", id="a broken draft with a blank behind its key"),
        pytest.param(f"<think><think>{GOOD}</think></think><think>", "thinking", id="a block opened at the end"),
        pytest.param(f"<think>a<think>b<think>c</think></think>{GOOD}", "thinking", id="two of three closed"),
        pytest.param(f'{GOOD} {{"a": "2 * 3 = 7"}}', "again, and differs", id="a part again, differing"),
        pytest.param(f'{GOOD} {{"b": "6 + 4 = 11", "c": "1"}}', "again, and differs", id="another part, differing"),
        pytest.param('{"a": "2 * 3 = 6", "b": "6 + 4 = 10",}', "not valid JSON", id="a trailing comma"),
        pytest.param('{"x": "\\q"} {"y": nothing}', "bad escaping", id="the first of two broken objects"),
        pytest.param('{"x": "\\q"} {"y": nothing}', "answers a step", id="broken objects, and no answer"),
        pytest.param('{"x": "never closed', "not closed", id="a foreign object, cut"),
        pytest.param("{\"a': 1}", "not closed", id="mixed quotes"),
        pytest.param('{"c": {"d": [1, {"a": 1}, }', "not closed", id="one brace short"),
    ],
)
def test_the_reason_says_what_is_wrong_with_the_reply(text: str, says: str) -> None:
    """A reply that gives no answer is refused as a whole, and the reason names what stands in the way."""
    kind, reason = only(read(text))
    assert kind in ("malformed", "self_correction")
    assert says in reason
    assert ("bad escaping" in reason) == ("\\" in text)
    assert reason[0].isalpha()


@pytest.mark.parametrize("key", ["a", "value", "b c"])
def test_the_key_that_stands_twice_is_named(key: str) -> None:
    """A reply with an entry whose key stands twice is told which key it is, of several the first in order."""
    reading = read(f'{{"a": {{"z": 1, "{key}": 1, "z": 2, "{key}": 2}}, "b": "6 + 4 = 10"}}')
    assert repr(key) in only(reading)[1]


@pytest.mark.parametrize("surplus", [19, 20, 21, 22])
def test_twenty_surplus_entries_are_listed_and_the_rest_counted(surplus: int) -> None:
    """Up to twenty entries that were not asked for are listed; of more only the number is told."""
    entries = {"a": "2 * 3 = 6", "b": "6 + 4 = 10", **{f"k{index}": "1" for index in range(surplus)}}
    reading = read(json.dumps(entries))
    assert values(reading) == ["6", "10"]
    listed = [each.step for each in reading.deviations if each.step and each.kind == "extra_step"]
    assert listed == [f"k{index}" for index in range(min(surplus, 20))]
    more = [deviation.reason for deviation in reading.deviations if not deviation.step]
    assert [f"and {surplus - 20} more" in reason for reason in more] == [True] * (surplus > 20)


@pytest.mark.parametrize("objects", [999, 1000])
def test_the_number_of_objects_is_limited(objects: int) -> None:
    """A thousand objects are looked through, and one more is refused."""
    text = '{"x": 1} ' * objects + GOOD
    if objects < 1000:
        assert values(read(text)) == ["6", "10"]
    else:
        assert "more than 1000 objects" in only(read(text))[1]


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_the_length_of_a_reply_is_limited(finish: str) -> None:
    """The longest reply is read, whatever blanks are around it; a character more is refused, or truncated if cut."""
    assert MAX_REPLY == 2_000_000
    longest = GOOD[:-1] + " " * (MAX_REPLY - len(GOOD)) + "}"
    assert values(read(f"  {longest}\n\n", finish_reason=finish)) == ["6", "10"]
    kind, reason = only(read(longest[:-1] + " }", finish_reason=finish))
    assert kind == ("truncated" if finish == "length" else "malformed")
    assert str(MAX_REPLY + 1) in reason


CUT = [
    "length", "LENGTH", "max_tokens", "MAX_OUTPUT_TOKENS", "model_length", "model_context_window_exceeded",
    "incomplete", "token_limit_reached", "truncated",
]  # fmt: skip


@pytest.mark.parametrize("finish", CUT)
@pytest.mark.parametrize(
    ("text", "where"),
    [
        *((None, "before it began"), ("", "before it began"), ('{"a"', "after 4 characters")),
        *(("so <think>2 * 3", "inside its own thinking"), ("<think>x</think> so", "after 19 characters")),
    ],
)
def test_a_cut_reply_says_where_it_was_cut(text: str | None, where: str, finish: str) -> None:
    """Whatever a provider calls its token limit, the reply is truncated, and the reason says how far it came."""
    kind, reason = only(read(text, finish_reason=finish))
    assert kind == "truncated"
    assert where in reason
    assert "reasoning" not in reason


FILTERED = [
    "content_filter", "content-filter", "content_filtered", "guardrail_intervened", "refusal", "Safety", "blocklist",
    "PROHIBITED_CONTENT", "sensitive", "spii",
]  # fmt: skip


@pytest.mark.parametrize("finish", FILTERED)
def test_every_name_of_a_content_filter_is_known(finish: str) -> None:
    """Whatever a provider calls its filter, the reply is refused."""
    assert only(read(GOOD, finish_reason=finish))[0] == "refused"


@pytest.mark.parametrize("refusal", ["", "  \n", None])
def test_an_empty_refusal_is_none(refusal: str | None) -> None:
    """A refusal field without a word in it does not refuse the reply."""
    assert values(read(GOOD, refusal=refusal)) == ["6", "10"]


@pytest.mark.parametrize("wrap", ["{}", "```json\n{}\n```", "~~~\n{}\n~~~"])
def test_a_quoted_answer_that_is_complete_is_not_truncated(wrap: str) -> None:
    """A second layer of quotes is taken off before it is asked whether the token limit cut the answer."""
    assert values(read(wrap.replace("{}", json.dumps(f" {GOOD} ")), finish_reason="length")) == ["6", "10"]


def test_a_call_beside_a_cut_text() -> None:
    """A complete tool call stands where the limit left no text, and is not used where it cut a text short."""
    call = ToolCall(TOOL_NAME, GOOD)
    assert values(read(None, tool_calls=(call,), finish_reason="length")) == ["6", "10"]
    assert only(read('{"a": "2 * 3', tool_calls=(call,), finish_reason="length"))[0] == "truncated"


@pytest.mark.parametrize("text", ["<think>x</think>", "<think>x</think>\r\n\t <think>y</think>\n ", "so\n</think>\n"])
def test_thinking_with_nothing_behind_it_is_empty(text: str) -> None:
    """A reply of thinking and blanks alone is empty, and the reason tells how much thinking there was."""
    kind, reason = only(read(text))
    assert kind == "empty"
    assert f"{len(text.strip())} characters of reasoning" in reason


@pytest.mark.parametrize("text", [None, "Words."])
def test_reasoning_beside_an_empty_call_is_named(text: str | None) -> None:
    """A call without arguments is empty, and the reason tells how much reasoning there was."""
    reading = read(text, tool_calls=(ToolCall(TOOL_NAME, " "),), reasoning="x" * 31)
    assert "31 characters of reasoning" in only(reading)[1]
