"""Replies: the answer is found in what surrounds it, and what is none is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from reply_harness import GOOD, OTHER, kinds, read, values
from tables import all_rows

from stepguard.backends.base import ToolCall
from stepguard.replies.reading import TOOL_NAME


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


@all_rows("case", ACCEPTED)
def test_finds_the_answer_in_what_surrounds_it(case: Case) -> None:
    """The object that answers the steps is found in fences, prose, thinking and a second layer of quotes."""
    reading = read(case.text)
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


@all_rows("case", REFUSED)
def test_refuses_what_is_no_answer(case: Case) -> None:
    """A reply that is broken, ambiguous or no answer gives one deviation and no claim."""
    reading = read(case.text)
    assert reading.claims == ()
    assert kinds(reading) == [(case.kind, None)]
    assert reading.failed == reading.deviations[0]
    assert case.says in reading.failed.reason
    assert len(reading.failed.reason) < 300


@all_rows(
    "text",
    [
        *('{"a": "2 * 3 = 6", "b', f"```json\n{GOOD[:-1]}", "{" + '"a": 6' + "0" * 150, "", None, f"<think>{GOOD}"),
        *("The answer", f"Here: {GOOD}", json.dumps(GOOD)[:-3]),
    ],
)
@all_rows("finish", ["length", "MAX_TOKENS"])
def test_a_cut_off_reply_is_truncated(text: str | None, finish: str) -> None:
    """What the token limit cut is truncated, whatever could be found in it, and is not echoed."""
    reading = read(text, finish_reason=finish)
    assert kinds(reading) == [("truncated", None)]
    assert reading.claims == ()
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


def test_a_complete_object_is_not_truncated() -> None:
    """An object that was complete before the limit was reached is read."""
    assert values(read(GOOD + "\n" * 1000, finish_reason="length")) == ["6", "10"]


def test_a_cut_reply_names_its_reasoning() -> None:
    """Where reasoning ate the token limit, the deviation says how long it was."""
    reading = read("", finish_reason="length", reasoning="x" * 77)
    assert "77 characters of reasoning" in reading.deviations[0].reason


def test_reasoning_is_never_the_answer() -> None:
    """An answer in the reasoning field alone is an empty reply that names the reasoning."""
    reading = read("", reasoning=GOOD)
    assert kinds(reading) == [("empty", None)]
    assert f"{len(GOOD)} characters of reasoning are present" in reading.deviations[0].reason
    assert values(read(GOOD, reasoning=OTHER)) == ["6", "10"]


@all_rows("text", [None, GOOD])
@all_rows(
    "fields", [{"refusal": "cannot\nhelp \ud800"}, {"finish_reason": "content_filter"}, {"finish_reason": "SAFETY"}]
)
def test_a_refusal_is_told_apart(text: str | None, fields: dict[str, Any]) -> None:
    """A refusal and a content filter are refused, and nothing beside them is used."""
    reading = read(text, **fields)
    assert kinds(reading) == [("refused", None)]
    reading.deviations[0].reason.encode()


def call(arguments: str, name: str = TOOL_NAME) -> ToolCall:
    return ToolCall(name, arguments)


@all_rows(
    "text, calls",
    [
        (None, [call(GOOD)]),
        ("", [call(GOOD), call(GOOD)]),
        ("Let me submit {this}.", [call(GOOD)]),
        (f"<think>{OTHER}</think>", [call(GOOD)]),
        (GOOD, [call(GOOD)]),
        (None, [call(json.dumps(GOOD))]),
    ],
)
def test_a_tool_call_is_read(text: str | None, calls: list[ToolCall]) -> None:
    """A call of the offered tool is an answer; words beside it may hold none or the same."""
    assert values(read(text, tool_calls=tuple(calls), finish_reason="tool_calls")) == ["6", "10"]


@all_rows(
    "text, calls, kind, says",
    [
        (None, [call(GOOD, "final_answer")], "malformed", f"'final_answer'; the tool is '{TOOL_NAME}'"),
        (None, [call(GOOD), call(GOOD, "steps")], "malformed", "'steps'"),
        (GOOD, [call("{}", "\ud800\x1b[2J")], "malformed", "tool"),
        (None, [call(GOOD), call(OTHER)], "malformed", "differ"),
        (GOOD, [call(OTHER)], "malformed", "differ"),
        (GOOD[:-2], [call(GOOD)], "malformed", "not closed"),
        (None, [call(GOOD[:-2])], "malformed", "not closed"),
        (None, [call(GOOD), call("{")], "malformed", "no JSON object"),
        (GOOD, [call("")], "empty", "empty"),
        (f"<think>{GOOD}", [call(GOOD)], "malformed", "thinking"),
    ],
)
def test_a_doubtful_tool_call_is_refused(text: str | None, calls: list[ToolCall], kind: str, says: str) -> None:
    """A wrong tool, a broken call, and calls that differ from each other or from the content refuse the reply."""
    reading = read(text, tool_calls=tuple(calls), finish_reason="tool_calls")
    assert reading.claims == ()
    assert kinds(reading) == [(kind, None)]
    assert says in reading.deviations[0].reason
