"""Replies: the answer is found in what surrounds it, and what is none is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from reply_harness import GOOD, OTHER, kinds, read, values
from tables import all_rows

from stepguard.backends.base import ToolCall
from stepguard.procedure.steps import Step
from stepguard.replies.reading import TOOL_NAME
from stepguard.replies.text import MAX_REPLY


@dataclass(frozen=True)
class Case:
    name: str
    text: str | None
    kind: str = ""
    says: str = ""

    def __str__(self) -> str:
        return self.name


ACCEPTED = [
    Case("bare", GOOD),
    Case("fence", f"```json\n{GOOD}\n```"),
    Case("fence without language", f"```\n{GOOD}\n```"),
    Case("long fence, short end", f"````json\n{GOOD}\n```"),
    Case("tildes", f"~~~~ JSON5\n{GOOD}\n~~~~"),
    Case("unclosed fence", f"```json\n{GOOD}"),
    Case("one-line fence", f"```json {GOOD}```"),
    Case("fence of a quoted object", f"```json\n{json.dumps(GOOD)}\n```"),
    Case("another block first", f'```bash\necho {{"steps":[]}}\n```\n```json\n{GOOD}\n```'),
    Case("a python block first", f"```python\nd = {{'x': 1}}\n```\n{GOOD}"),
    Case("braces in prose", f"Here you go: {GOOD}. Hope {{this}} helps }}"),
    Case("unbalanced brace in prose", f"Let S = {{1, 2 and so on. {GOOD}"),
    Case("a smile in prose", f"Done :-{{ {GOOD}"),
    Case("LaTeX in prose", rf"So \frac{{1}}{{2}} and {{{{x}}}} hold. {GOOD}"),
    Case("interval in prose", f"For x in [0, 10) we have {GOOD}"),
    Case("foreign broken object in prose", f'I write {{"step": value}} now: {GOOD}'),
    Case("foreign object in prose", f'Given {{"x": 1}}: {GOOD}'),
    Case("list of one", f"[{GOOD}]"),
    Case("closed thinking", f"<think>2*3=6 then {OTHER}</think>{GOOD}"),
    Case("thinking with a broken draft", f'<think>{{"a": "9</think>{GOOD}'),
    Case("upper case and attributes", f'<THINK effort="low">{OTHER}</THINK >\n{GOOD}'),
    Case("reasoning", f"<reasoning>{OTHER}</reasoning>{GOOD}"),
    Case("namespaced tag", f"<seed:think>{OTHER}</seed:think>{GOOD}"),
    Case("bracket tag", f"[THINK]{OTHER}[/THINK]{GOOD}"),
    Case("triangle tag", f"\u25c1think\u25b7{OTHER}\u25c1/think\u25b7{GOOD}"),
    Case("pipe tag", f"<|START_THINKING|>{OTHER}<|END_THINKING|>{GOOD}"),
    Case(
        "channels",
        f"<|channel|>analysis<|message|>{OTHER}<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>"
        f"{GOOD}",
    ),
    Case("swallowed opening tag", f"first {OTHER}, so\n</think>\n{GOOD}"),
    Case("swallowed opening tag, broken draft", f'first {{"a": "2 * \n</think>\n{GOOD}'),
    Case("several blocks", f"<think>{OTHER}</think> and <think>{OTHER}</think>{GOOD}"),
    Case("nested blocks", f"<think>x<think>y</think>{OTHER}</think>{GOOD}"),
    Case("stuttered tag", f"<think>\n<think>{OTHER}</think>{GOOD}"),
    Case("empty block", f"<think>\n\n</think>\n\n{GOOD}"),
    Case("thinking behind", f"{GOOD}<think>{OTHER}</think>"),
    Case("repeated", f"{GOOD}\nAgain:\n{GOOD}"),
    Case("repeated in another spelling", f'{GOOD} {{"a":"2 \\u002a 3 = 6","b":"6 + 4 = 10"}}'),
    Case("byte order mark", f"\ufeff{GOOD}"),
    Case("byte order mark in a fence", f"\ufeff```json\n{GOOD}\n```"),
    Case("encoded twice", json.dumps(GOOD)),
    Case("encoded twice, with thinking", json.dumps(f"<think>{OTHER}</think>{GOOD}")),
    Case("endless line breaks", GOOD + "\n" * 50_000),
    Case("endless spaces before", " " * 50_000 + GOOD),
    Case("escaped letters", GOOD.replace("2", "\\u0032")),
    Case("a part first, that says the same", f'First {{"a": "2 * 3 = 6"}}. In full: {GOOD}'),
    Case("quote marks in prose", f'The "sum" and the "product" are {GOOD}'),
]
AROUND = [
    *(f"~~~\n\n{GOOD}\n\n~~~", f"{GOOD}\n```", f"<think>```</think>```json\n{GOOD}\n```", f" \ufeff \n{GOOD}"),
    *(f"\0{GOOD}\0", f"<think>a</think>{GOOD}<think>b</think>", f"a</think>b</think>{GOOD}"),
    *(f"<think>a<think>b</think>c</think>{GOOD}", f"<think> \n <think>b</think>{GOOD}"),
    *(f"<think>a</think><think><think>b</think>{GOOD}", f'<think>{{"x": "</think>{GOOD}'),
    *(f'{OTHER[:-1]}, "x": {{</think>{GOOD}', f'{{"x": "<think>"}} {GOOD}', f'{{"x": "</think>"}} {GOOD}'),
    *(f"<think>{OTHER}<|channel|>final<|message|>{GOOD}", f"{OTHER}<|channel|>final<|message|>{GOOD}"),
    *(f"<think>a<think>{OTHER}<|channel|>final<|message|>{GOOD}", f'a: see {{"step": value}}. {GOOD}'),
    *(f"{GOOD}<think>a</think> <think>{OTHER}</think>", f"{OTHER}<think>x</think>y</think>{GOOD}"),
    *(f'<think>{{"t": "</think>"}}{GOOD}', f'{{"b": "6 + 4 = 10"}} {{"a": "2 * 3 = 6"}} {GOOD}'),
    *(f"<think {OTHER}>\n</think>{GOOD}", f"[think]{OTHER}[/think]{GOOD}", f"[thinking]{OTHER}[/thinking]{GOOD}"),
    *(f"<|begin_of_thought|>{OTHER}<|end_of_thought|>{GOOD}", f"<|think|>{OTHER}<|/think|>{GOOD}"),
    *(f"<thoughts>{OTHER}</thoughts>{GOOD}", f"{OTHER}<|channel|> final<|message|>{GOOD}"),
    f"{OTHER}<|channel|>analysis<|message|>x<|channel|>final<|message|>{GOOD}",
    f"<|channel|>analysis<|message|>x<|channel|>commentary<|message|>y<|channel|>final<|message|>{GOOD}",
    f"<|channel|>commentary to=x <|constrain|>json<|message|>{OTHER}<|channel|>final<|message|>{GOOD}",
    *(f"<think>a<think>b</think><think>c</think></think>{GOOD}", f"<think/>{GOOD}", f"<think />{GOOD}"),
]


@all_rows("text", [*(case.text for case in ACCEPTED), *AROUND])
def test_finds_the_answer_in_what_surrounds_it(text: str | None) -> None:
    """The object that answers the steps is found in fences, prose, thinking and a second layer of quotes."""
    reading = read(text)
    assert values(reading) == ["6", "10"]
    assert (reading.failed, reading.deviations) == (None, ())


REFUSED = [
    Case("ignored schema", "The answer is 6 and 10.", "malformed", "may ignore the response format"),
    Case("ignored schema, braces", "The answers are {6} and {10}.", "malformed", "may ignore the response format"),
    Case("another object", 'Sure: {"steps": [{"id": 1}]}', "malformed", "may ignore the response format"),
    Case("a number", "42", "malformed", "no JSON object"),
    Case("a list", "[1, 2]", "malformed", "no JSON object"),
    Case("null", "null", "malformed", "no JSON object"),
    Case("encoded three times", json.dumps(json.dumps(json.dumps(GOOD))), "malformed"),
    Case("two answers", f"{GOOD} or {OTHER}", "malformed", "differ"),
    Case("two fenced answers", f"```json\n{GOOD}\n```\n```json\n{OTHER}\n```", "malformed", "differ"),
    Case("two answers in a list", f"[{GOOD}, {OTHER}]", "malformed", "differ"),
    Case("parts", '{"a": "2 * 3 = 6"} {"b": "6 + 4 = 10"}', "malformed", "differ"),
    Case("one of two has a key twice", f'{GOOD} {{"a": "1", "a": "2 * 3 = 6", "b": "6 + 4 = 10"}}', "malformed"),
    Case("answers around thinking", f"{OTHER}<think>no</think>{GOOD}", "malformed", "differ"),
    Case("unclosed thinking", f"<think>perhaps {GOOD}", "malformed", "thinking"),
    Case("unclosed second block", f"<think>x</think><think>{GOOD}", "malformed", "thinking"),
    Case("nested and unclosed", f"<think>x<think>y</think>{GOOD}", "malformed", "thinking"),
    Case("unclosed channel", f"<|channel|>analysis<|message|>{GOOD}<|end|>", "malformed", "thinking"),
    Case("grown together", GOOD.replace(", ", ", <think>x</think>"), "malformed"),
    Case("cut string", '{"a": "2 * 3 = 6", "b": "6 + 4 = 1', "malformed", "not closed"),
    Case("cut object", '{"a": "2 * 3 = 6"', "malformed", "not closed"),
    Case("cut behind an answer", f'{GOOD} {{"a": "2 * 3', "malformed", "not closed"),
    Case("cut list", f"[{GOOD}", "malformed", "not closed"),
    Case("cut wrapper", f'{{"steps": {GOOD}', "malformed", "not closed"),
    Case("cut fence", f'```json\n{{"x": {GOOD}\n```', "malformed", "not closed"),
    Case("broken wrapper", f'{{"x": nothing, "y": {GOOD}}}', "malformed", "not valid JSON"),
    Case("unquoted wrapper", f"{{steps: {GOOD}}}", "malformed", "not valid JSON"),
    Case("numbered wrapper", f"{{1: {GOOD}}}", "malformed", "not valid JSON"),
    Case("doubled braces", f"{{{GOOD}}}", "malformed", "not valid JSON"),
    Case("a comment", f"{{/* x */ {GOOD[1:]}", "malformed", "not valid JSON"),
    Case("trailing comma", GOOD.replace("}", ",}"), "malformed", "not valid JSON"),
    Case("single quotes", GOOD.replace('"', "'"), "malformed", "not valid JSON"),
    Case("a broken draft, then an answer", f"{OTHER.replace('}', ',}')} {GOOD}", "malformed", "not valid JSON"),
    Case("a Python draft, then an answer", f"{OTHER.replace(chr(34), chr(39))} {GOOD}", "malformed", "not valid JSON"),
    Case("NaN", '{"a": NaN, "b": "6 + 4 = 10"}', "malformed", "NaN"),
    Case("Infinity", '{"a": "2 * 3 = 6", "b": -Infinity}', "malformed", "Infinity"),
    Case("nested NaN", '{"a": "2 * 3 = 6", "b": {"value": [NaN]}}', "malformed", "NaN"),
    Case("invalid escape", r'{"a": "\sqrt{36} = 6", "b": "6 + 4 = 10"}', "malformed", "bad escaping"),
    Case("raw line break", '{"a": "2 * 3\n = 6", "b": "6 + 4 = 10"}', "malformed", "bad escaping"),
    Case("nested lists", "[" * 100_000, "malformed"),
    Case("nested objects", '{"a":' * 50_000, "malformed"),
    Case("nested and closed", f'{{"a": {"[" * 50_000}{"]" * 50_000}}}', "malformed", "nested"),
    Case("too many objects", "{} " * 5_000 + GOOD, "malformed", "objects"),
    Case("too long", '{"a": "' + "9" * 2_000_001 + '"}', "malformed", "too long"),
    Case("nothing", None, "empty", "empty"),
    Case("white space", "   \n", "empty", "empty"),
    Case("byte order mark alone", "\ufeff", "empty", "empty"),
    Case("thinking alone", f"<think>{GOOD}</think>", "empty", "52 characters of reasoning"),
]
THOUGHT = [
    *("<thinking>{}", "<|channel|>analysis to=x<|message|>{}", "<|begin_of_thought|>{}", "<|start_thinking|>{}"),
    *("<|begin_reasoning|>{}", "<think>a<think>b</think><think>c</think>{}", "[think]{}", "{}<think>b"),
    *("<think><think>{}</think></think><think>", "<think>a<think>b<think>c</think></think>{}", "<think><think>{}"),
]
TAGGED = '{"a": "2 * 3 = 6", "s": {"work": "</think> <think>", "value": "x"}}'
BROKEN = [
    *((f"[ {GOOD}", "not closed"), (f'{{"x": oops}} {TAGGED}', "thinking"), ('{"x": "never closed', "not closed")),
    *((f'{{"a" : 2 * 3}} {GOOD}', "not valid JSON"), ('{"x": "\\q"} {"y": nothing}', "bad escaping")),
    *(('{"x": "\\q"} {"y": nothing}', "answers a step"), ("{\"a': 1}", "not closed"), ('{"x": so}', "not valid JSON")),
    *(('{"c": {"d": [1, {"a": 1}, }', "not closed"), ('{"x": so', "not closed"), ('{"x": 1', "not closed")),
    *(('{"x": so} {"y": 1', "not valid JSON"), ("```json\n```", ""), ("```\n \n```", "")),
    ('{"a": "2 * 3 = 6", <think>x</think> "b": "6 + 4 = 10"}', ""),
]
NOTHING = [
    *(("\0 \0", ""), ("<think>a</think>\n<think>b</think>\r\n\t", "33 characters of reasoning")),
    *((f"<think>{GOOD}<|channel|>final<|message|>", ""), (f"{GOOD}</think>", "")),
    *(("<think>x</think>", "16 characters of reasoning"), ("so\n</think>\n", "11 characters of reasoning")),
]


@all_rows(
    "text, kind, says",
    [
        *((case.text, case.kind, case.says) for case in REFUSED),
        *((text.replace("{}", GOOD), "malformed", "thinking") for text in THOUGHT),
        *((text, "malformed", says) for text, says in BROKEN),
        *((text, "empty", says) for text, says in NOTHING),
        (f'{GOOD} {{"a": "2 * 3 = 7"}}', "self_correction", "again, and differs"),
        (f'{GOOD} {{"b": "6 + 4 = 11", "c": "1"}}', "self_correction", "again, and differs"),
    ],
)
def test_refuses_what_is_no_answer(text: str | None, kind: str, says: str) -> None:
    """A reply that is broken, ambiguous or no answer gives one deviation and no claim; the first fault is named."""
    reading = read(text)
    assert reading.claims == ()
    assert kinds(reading) == [(kind, None)]
    assert reading.failed == reading.deviations[0]
    assert says in reading.failed.reason
    assert len(reading.failed.reason) < 300
    assert reading.failed.reason[0].isalpha()


@all_rows("before", ["", "Here: ", "<think>no</think>", "<think>{}</think> So:\n"])
@all_rows("blank", ["", " ", "\n  "])
def test_tags_inside_the_strings_of_an_answer_are_text(before: str, blank: str) -> None:
    """A tag inside a string of the answer starts and ends nothing, whatever stands before it."""
    worded = (Step("a", "2*3"), Step("s", instruction="Name the country in a.", reads=["a"]))
    reading = read(f"{before}{{{blank}{TAGGED[1:]}", worded)
    assert reading.deviations == ()
    assert reading.claims[1].work == ("</think> <think>",)


@all_rows("key", ["a", "value", "b c"])
def test_the_key_that_stands_twice_is_named(key: str) -> None:
    """A reply with an entry whose key stands twice is told which key it is, of several the first in order."""
    (deviation,) = read(f'{{"a": {{"z": 1, "{key}": 1, "z": 2, "{key}": 2}}, "b": "6 + 4 = 10"}}').deviations
    assert repr(key) in deviation.reason


@all_rows("surplus", [19, 20, 21, 22])
def test_twenty_surplus_entries_are_listed_and_the_rest_counted(surplus: int) -> None:
    """Up to twenty entries that were not asked for are listed; of more only the number is told."""
    entries = {"a": "2 * 3 = 6", "b": "6 + 4 = 10", **{f"k{index}": "1" for index in range(surplus)}}
    reading = read(json.dumps(entries))
    assert values(reading) == ["6", "10"]
    listed = [each.step for each in reading.deviations if each.step and each.kind == "extra_step"]
    assert listed == [f"k{index}" for index in range(min(surplus, 20))]
    more = [deviation.reason for deviation in reading.deviations if not deviation.step]
    assert [f"and {surplus - 20} more" in reason for reason in more] == [True] * (surplus > 20)


@all_rows("finish", ["stop", "length"])
def test_the_size_of_a_reply_is_limited(finish: str) -> None:
    """A thousand objects and two million characters are read, whatever blanks are around them; one more is not."""
    longest = GOOD[:-1] + " " * (MAX_REPLY - len(GOOD)) + "}"
    assert values(read('{"x": 1} ' * 999 + GOOD)) == ["6", "10"]
    assert values(read(f"  {longest}\n\n", finish_reason=finish)) == ["6", "10"]
    assert "more than 1000 objects" in read('{"x": 1} ' * 1000 + GOOD).deviations[0].reason
    (deviation,) = read(longest[:-1] + " }", finish_reason=finish).deviations
    assert deviation.kind == ("truncated" if finish == "length" else "malformed")
    assert str(MAX_REPLY + 1) in deviation.reason
    assert MAX_REPLY == 2_000_000


@all_rows(
    "text, where",
    [
        *((None, "before it began"), ("", "before it began"), ('{"a"', "after 4 characters"), ("The answer", "")),
        *((f"<think>{GOOD}", "inside its own thinking"), ("<think>x</think> so", "after 19 characters")),
        *(('{"a": "2 * 3 = 6", "b', ""), (f"```json\n{GOOD[:-1]}", ""), ("{" + '"a": 6' + "0" * 150, "")),
        *((f"Here: {GOOD}", ""), (json.dumps(GOOD)[:-3], "")),
    ],
)
@all_rows(
    "finish",
    [
        *("length", "LENGTH", "MAX_TOKENS", "MAX_OUTPUT_TOKENS", "model_length", "model_context_window_exceeded"),
        *("incomplete", "token_limit_reached", "truncated"),
    ],
)
def test_a_cut_off_reply_is_truncated(text: str | None, where: str, finish: str) -> None:
    """What a token limit cut, whatever it is called, is truncated; the reason says where, and echoes nothing."""
    reading = read(text, finish_reason=finish)
    assert kinds(reading) == [("truncated", None)]
    assert reading.claims == ()
    assert where in reading.deviations[0].reason
    assert len(reading.deviations[0].reason) < 100


RUNAWAYS = {
    "digits": "{" + '"a": 6' + "0" * 20_000,
    "a loop": '{"a": "2 * 3 is 2 and 3 ' + "more, so we have 2 and 3 " * 99,
    "other words": '{"a": "' + " ".join(f"and {number * number} more" for number in range(99)),
    "blanks": '{"a":' + "\n" * 999,
    "no object": "Sure! " * 200,
}


@all_rows("text", RUNAWAYS.values())
def test_a_reply_that_runs_away_is_held_against_its_first_step(text: str) -> None:
    """Where the limit cut a first entry that goes on and on, no higher limit would help, and its step is named."""
    reading = read(text, finish_reason="length")
    assert reading.runaway
    assert kinds(reading) == [("truncated", "a")]
    assert not read(text).runaway


@all_rows("text", RUNAWAYS.values())
def test_a_reply_that_is_stopped_where_it_runs_away_is_read_up_to_there(text: str) -> None:
    """The entries before it stand; a reply that the limit cut there is refused as a whole, as any other."""
    text = text.replace('{"a":', '{"a": "2 * 3 = 6", "b":').replace("Sure", '{"a": "2 * 3 = 6", Sure')
    stopped = read(text, finish_reason="stopped_early")
    assert (values(stopped), stopped.runaway) == (["6"], True)
    cut = read(text, finish_reason="length")
    assert (cut.claims, cut.runaway, kinds(cut)) == ((), False, [("truncated", None)])


@all_rows("text", [GOOD + "\n" * 1000, *(wrap.format(json.dumps(f" {GOOD} ")) for wrap in ("{}", "~~~\n{}\n~~~"))])
def test_a_complete_object_is_not_truncated(text: str) -> None:
    """An object that was complete before the limit was reached is read, below a second layer of quotes, too."""
    assert values(read(text, finish_reason="length")) == ["6", "10"]


@all_rows(
    "text, more, characters",
    [
        *(("", {"finish_reason": "length"}, 9), ("", {}, 9), (None, {}, 9), (" \n", {}, 9), ("\0", {}, 9 + 1)),
        *(("<think>abc</think>", {}, 9 + 18), ("Words.", {"tool_calls": (ToolCall(TOOL_NAME, " "),)}, 9)),
    ],
)
def test_an_empty_reply_says_how_much_was_thought(text: str | None, more: dict[str, Any], characters: int) -> None:
    """The reasoning beside a reply that is cut or empty, and the thinking in it, are counted together."""
    (deviation,) = read(text, reasoning="x" * 9, **more).deviations
    assert f"{characters} characters of reasoning" in deviation.reason
    assert "reasoning" not in read("").deviations[0].reason


def test_reasoning_is_never_the_answer() -> None:
    """An answer in the reasoning field alone is an empty reply that names the reasoning."""
    reading = read("", reasoning=GOOD)
    assert kinds(reading) == [("empty", None)]
    assert f"{len(GOOD)} characters of reasoning are present" in reading.deviations[0].reason
    assert values(read(GOOD, reasoning=OTHER)) == ["6", "10"]


@all_rows("text", [None, GOOD])
@all_rows(
    "fields",
    [
        {"refusal": "cannot\nhelp \ud800"},
        *(
            {"finish_reason": each}
            for each in (
                *("content_filter", "content-filter", "content_filtered", "guardrail_intervened", "refusal", "SAFETY"),
                *("blocklist", "PROHIBITED_CONTENT", "sensitive", "spii"),
            )
        ),
    ],
)
def test_a_refusal_is_told_apart(text: str | None, fields: dict[str, Any]) -> None:
    """A refusal and a content filter, whatever it is called, are refused, and nothing beside them is used."""
    reading = read(text, **fields)
    assert kinds(reading) == [("refused", None)]
    assert reading.claims == ()
    reading.deviations[0].reason.encode()


@all_rows("refusal", ["", "  \n", None])
def test_an_empty_refusal_is_none(refusal: str | None) -> None:
    """A refusal field without a word in it does not refuse the reply."""
    assert values(read(GOOD, refusal=refusal)) == ["6", "10"]


def call(arguments: str, name: str = TOOL_NAME) -> ToolCall:
    return ToolCall(name, arguments)


@all_rows(
    "text, calls, finish",
    [
        (None, [call(GOOD)], "tool_calls"),
        ("", [call(GOOD), call(GOOD)], "tool_calls"),
        ("Let me submit {this}.", [call(GOOD)], "tool_calls"),
        (f"<think>{OTHER}</think>", [call(GOOD)], "tool_calls"),
        (GOOD, [call(GOOD)], "tool_calls"),
        (None, [call(json.dumps(GOOD))], "tool_calls"),
        ("", [call(GOOD)], "length"),
        ('{"x": 1} I call the tool.', [call(GOOD)], "stop"),
    ],
)
def test_a_tool_call_is_read(text: str | None, calls: list[ToolCall], finish: str) -> None:
    """A call of the offered tool is an answer, also where the limit left no text; words beside it may hold the same."""
    assert values(read(text, tool_calls=tuple(calls), finish_reason=finish)) == ["6", "10"]


@all_rows(
    "text, calls, kind, says, finish",
    [
        *(
            (*row, "tool_calls")
            for row in (
                (None, [call(GOOD, "final_answer")], "malformed", f"'final_answer'; the tool is '{TOOL_NAME}'"),
                (None, [call(GOOD), call(GOOD, "steps")], "malformed", "'steps'"),
                (GOOD, [call("{}", "\ud800\x1b[2J")], "malformed", "tool"),
                (None, [call(GOOD), call(GOOD), call(OTHER)], "malformed", "differ"),
                (GOOD, [call(OTHER)], "malformed", "differ"),
                (GOOD[:-2], [call(GOOD)], "malformed", "not closed"),
                (None, [call(GOOD[:-2])], "malformed", "not closed"),
                (None, [call(GOOD), call("{")], "malformed", "no JSON object"),
                (GOOD, [call("")], "empty", "empty"),
                (f"<think>{GOOD}", [call(GOOD)], "malformed", "thinking"),
                (GOOD, [call("{} and no object")], "malformed", ""),
                (None, [call(GOOD), call("")], "empty", ""),
                (GOOD[:-2], [call("")], "malformed", ""),
                ('{"x": 1} {"a": "2 * 3 = 6"}', [call(GOOD)], "malformed", ""),
            )
        ),
        (None, [call(GOOD[:-3])], "truncated", "", "length"),
        ("Let me", [call(GOOD)], "truncated", "", "length"),
        (f"<think>{GOOD}", [call(GOOD)], "truncated", "", "length"),
        (None, [call(""), call(GOOD)], "truncated", "", "length"),
    ],
)
def test_a_doubtful_tool_call_is_refused(
    text: str | None, calls: list[ToolCall], kind: str, says: str, finish: str
) -> None:
    """A wrong tool, a broken or cut call, and calls that differ from each other or the content refuse the reply."""
    reading = read(text, tool_calls=tuple(calls), finish_reason=finish)
    assert reading.claims == ()
    assert kinds(reading) == [(kind, None)]
    assert says in reading.deviations[0].reason
