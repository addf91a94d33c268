"""Reading replies: what a completion says about the steps that were asked, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import all_rows

from stepguard.backends.base import Completion, ToolCall
from stepguard.core.verdicts import DEVIATION_KINDS
from stepguard.procedure.steps import Step
from stepguard.replies.formats import EquationFormat
from stepguard.replies.reading import TOOL_NAME, Reading, read_reply

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


def one(field: object, step: Step = PAIR[0]) -> Reading:
    return read(json.dumps({step.id: field}), [step])


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
    Case("interval in prose", f"For x in [0, 10) we have {GOOD} [1]"),
    Case("foreign broken object in prose", f'I write {{"key": value}} now: {GOOD}'),
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
    Case("the same answers, other order", f'{GOOD} {{"b": "6 + 4 = 10", "a": "2 * 3 = 6"}}', "malformed", "differ"),
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


@pytest.mark.parametrize(
    "text",
    [
        *('{"a": "2 * 3 = 6", "b', f"```json\n{GOOD[:-1]}", "{" + '"a": 6' + "0" * 150, "", None, f"<think>{GOOD}"),
        *("The answer", f"Here: {GOOD}", json.dumps(GOOD)[:-3]),
    ],
)
@pytest.mark.parametrize("finish", ["length", "MAX_TOKENS"])
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


@pytest.mark.parametrize("text", RUNAWAYS.values(), ids=RUNAWAYS)
def test_a_reply_that_runs_away_is_held_against_its_first_step(text: str) -> None:
    """Where the limit cut a first entry that goes on and on, no higher limit would help, and its step is named."""
    reading = read(text, finish_reason="length")
    assert reading.runaway
    assert kinds(reading) == [("truncated", "a")]
    assert not read(text).runaway


@pytest.mark.parametrize("text", RUNAWAYS.values(), ids=RUNAWAYS)
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


@pytest.mark.parametrize("text", [None, GOOD])
@pytest.mark.parametrize(
    "fields", [{"refusal": "cannot\nhelp \ud800"}, {"finish_reason": "content_filter"}, {"finish_reason": "SAFETY"}]
)
def test_a_refusal_is_told_apart(text: str | None, fields: dict[str, Any]) -> None:
    """A refusal and a content filter are refused, and nothing beside them is used."""
    reading = read(text, **fields)
    assert kinds(reading) == [("refused", None)]
    reading.deviations[0].reason.encode()


def call(arguments: str, name: str = TOOL_NAME) -> ToolCall:
    return ToolCall(name, arguments)


@pytest.mark.parametrize(
    ("text", "calls"),
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


@pytest.mark.parametrize(
    ("text", "calls", "kind", "says"),
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


A, B, C = '"a": "2 * 3 = 6"', '"b": "6 + 4 = 10"', '"c": "10 * 2 = 20"'

PROTOCOL: list[tuple[list[str], list[str], list[tuple[str, str | None]]]] = [
    ([A, C], ["6"], [("missing_step", "b")]),
    ([B, C], [], [("missing_step", "a")]),
    ([A], ["6"], [("missing_step", "b")]),
    ([C], [], [("missing_step", "a")]),
    ([], [], [("missing_step", "a")]),
    ([A, B, C, '"d": "1"'], ["6", "10", "20"], [("extra_step", "d")]),
    ([A, '"1b": "7"', B, C], ["6", "10", "20"], [("extra_step", "1b")]),
    ([A, B, C, '"final_answer": "20"'], ["6", "10", "20"], [("premature_answer", "final_answer")]),
    ([A, B, C, '"Final Answer": 20'], ["6", "10", "20"], [("premature_answer", "Final Answer")]),
    ([A, B, C, '"finalAnswer": 20'], ["6", "10", "20"], [("premature_answer", "finalAnswer")]),
    (
        [A, '"d": "1"', '"answer": 1'],
        ["6"],
        [("extra_step", "d"), ("premature_answer", "answer"), ("missing_step", "b")],
    ),
    ([B, A, C], ["6", "10", "20"], [("wrong_order", None)]),
    ([A, A, B, C], [], [("duplicate_step", "a")]),
    ([A, B, C, B], ["6"], [("duplicate_step", "b")]),
    ([A, B, C, '"d": "1"', '"d": "2"'], ["6", "10", "20"], [("extra_step", "d")]),
    ([A.replace("a", "A"), B, C], [], [("extra_step", "A"), ("missing_step", "a")]),
    ([A.replace("a", "step a"), B, C], [], [("extra_step", "step a"), ("missing_step", "a")]),
    ([A.replace('"a"', '" a"'), B, C], [], [("extra_step", " a"), ("missing_step", "a")]),
    (['"steps": {' + A + "}"], [], [("extra_step", "steps"), ("missing_step", "a")]),
    (['"\\ud800": 1', A, B, C], ["6", "10", "20"], [("extra_step", "\\ud800")]),
    (['"\\u001b[2J\\n": 1', A, B, C], ["6", "10", "20"], [("extra_step", "\\x1b[2J\\n")]),
]


@all_rows("entries, claimed, deviations", PROTOCOL)
def test_entries_are_matched_by_id(
    entries: list[str], claimed: list[str], deviations: list[tuple[str, str | None]]
) -> None:
    """Entries belong to the step whose id is their key; claims reach to the first step without one."""
    reading = read("{" + ", ".join(entries) + "}", TRIPLE)
    assert values(reading) == claimed
    assert [claim.step for claim in reading.claims] == ["a", "b", "c"][: len(claimed)]
    assert kinds(reading) == deviations
    assert reading.failed == (reading.deviations[-1] if len(claimed) < 3 else None)
    json.dumps([deviation.step for deviation in reading.deviations], ensure_ascii=False).encode()


def test_an_asked_step_may_be_called_answer() -> None:
    """A step that was asked is no premature answer, whatever its name."""
    reading = read('{"answer": "2 * 3 = 6"}', [Step("answer", "2*3")])
    assert (values(reading), reading.deviations) == (["6"], ())


def test_a_flood_of_extra_entries_is_summed_up() -> None:
    """However many entries were not asked for, few deviations are kept."""
    reading = read("{" + ", ".join([A, B, *(f'"{"k" * 200}{index}": 1' for index in range(5_000))]) + "}")
    assert values(reading) == ["6", "10"]
    assert len(reading.deviations) <= 21
    assert "4980 more" in reading.deviations[-1].reason
    assert all(len(deviation.step or "") <= 80 for deviation in reading.deviations)


@pytest.mark.parametrize(
    ("field", "work", "value"),
    [
        *(("2 * 3 = 6", ("2 * 3",), "6"), ("a = 2 * 3 = 6", ("2 * 3",), "6"), ("2*3=1+5=6", ("2*3", "1+5"), "6")),
        *(("2 * 3 \u2248 6", ("2 * 3",), "6"), ("6", (), "6"), ("2 * 3 = **6**\n", ("2 * 3",), "**6**")),
        *(("2 * 3 = $6", ("2 * 3",), "$6"), ("2 * 3 == 6", (), "2 * 3 == 6")),
        *(("2 * 3 = 130,000", ("2 * 3",), "130,000"), ("2 * 3 = no", ("2 * 3",), "no")),
    ],
)
def test_reads_an_equation(field: str, work: tuple[str, ...], value: str) -> None:
    """An equation gives its links as working and its last side as the value, as they were written."""
    (claim,) = one(field).claims
    assert (claim.work, claim.value, claim.text) == (work, value, field)


@pytest.mark.parametrize("digits", ["9007199254740993", "0.29999999999999998", "1e400", "-0", "1E+3", "9" * 5_000])
def test_numbers_of_json_stay_text(digits: str) -> None:
    """A bare number is claimed digit by digit; no float rounds it and none is too long."""
    reading = read(f'{{"a": {digits}, "b": "6 + 4 = 10"}}')
    assert reading.claims[0].value == digits
    assert type(reading.claims[0].value) is str
    assert reading.claims[0].work == ()


@all_rows(
    "field, kind, says",
    [
        (True, "malformed", "a truth value"),
        (None, "malformed", "null"),
        ([6], "malformed", "a list"),
        ({"value": "6"}, "malformed", "an object"),
        ("", "malformed", "empty side"),
        ("  ", "malformed", "empty side"),
        ("2 * 3 =", "malformed", "empty side"),
        ("= 6", "malformed", "empty side"),
        ("2 * 3 = = 6", "malformed", "empty side"),
        ("\frac{12}{2} \times 1 = 6", "malformed", "bad escaping"),
        ("2 \times 3 = 6", "malformed", "bad escaping"),
        ("2 * 3\n= 6", "malformed", "bad escaping"),
        ("2 * 3 = 6\u0000", "malformed", "bad escaping"),
        ("2 * 3 = 6 \ud800", "malformed", "bad escaping"),
        ("=".join("6" * 5_000), "malformed", "more than 100 sides"),
        ("2 * 3 = 5, no wait, = 6", "self_correction", "takes something back"),
        ("2 * 3 = 5; no, 6", "self_correction", "takes something back"),
        ("2 * 3 = 5 no = 6", "self_correction", "takes something back"),
        ("2 * 3 = 5. Actually 2 * 3 = 6", "self_correction", "takes something back"),
        ("2 * 3 = 5 (correction: 6)", "self_correction", "takes something back"),
        ("2 * 3 = 5, I mean 6", "self_correction", "takes something back"),
        ("2 * 3 = 5 Hmm, let's recompute = 6", "self_correction", "takes something back"),
        ("2 * 3 = ~~5~~ 6", "self_correction", "takes something back"),
        ("OOPS 6", "self_correction", "takes something back"),
    ],
)
def test_refuses_an_entry_that_is_no_equation(field: object, kind: str, says: str) -> None:
    """What is no line of text, is badly escaped or takes itself back gives no claim for its step."""
    reading = one(field)
    assert reading.claims == ()
    assert kinds(reading) == [(kind, "a")]
    assert says in reading.deviations[0].reason
    assert len(reading.deviations[0].reason) < 250
    reading.deviations[0].reason.encode()


def test_a_variable_may_have_the_name_of_a_correction() -> None:
    """Words that take something back are names where the step reads or sets them."""
    step = Step("wait", "correction * 2 + rather")
    assert values(one("wait = correction * 2 + rather = 3 * 2 + 1 = 7", step)) == ["7"]


@pytest.mark.parametrize(
    ("field", "work", "value"),
    [
        *(("Lyon, France", (), "Lyon, France"), ("name = Lyon", ("name",), "Lyon")),
        *(("t = name = Lyon", ("name",), "Lyon"), ("t = Lyon", (), "Lyon"), ("name = a = b", ("name",), "a = b")),
        ("Sorry, no, wait: correction", (), "Sorry, no, wait: correction"),
        *(("two\nlines = one", (), "two\nlines = one"), ("", (), "")),
    ],
)
def test_a_copied_text_is_verbatim(field: str, work: tuple[str, ...], value: str) -> None:
    """A step that copies a text claims it as it stands: equals signs, line breaks and harmless words are text."""
    (claim,) = one(field, Step("t", "name", type="text")).claims
    assert (claim.work, claim.value) == (work, value)


@pytest.mark.parametrize("step", [Step("t", "x > 1"), Step("t", "x > 1", show_work=False)])
def test_truth_values_are_for_steps_of_truth_values(step: Step) -> None:
    """JSON's own true and false are claims of a boolean step, and of no other."""
    assert values(one(True, step)) == ["true"]
    assert kinds(one(True, Step("t", "x", type="number"))) == [("malformed", "t")]


WORDS = Step("s", instruction="Name the country.")
COUNT = Step("s", instruction="Count them.", type="integer")
TRUTH = Step("s", instruction="Is it so?", type="boolean")


@pytest.mark.parametrize(
    ("step", "field", "work", "value"),
    [
        (WORDS, {"work": "It is in Europe.", "value": "France"}, ("It is in Europe.",), "France"),
        *((WORDS, {"value": " France\n", "work": ""}, (), "France"), (WORDS, {"work": "", "value": ""}, (), "")),
        (
            WORDS,
            {"work": "No, wait, actually: sorry.", "value": "Sorry, no"},
            ("No, wait, actually: sorry.",),
            "Sorry, no",
        ),
        (WORDS, {"work": "", "value": "Error: tool not available"}, (), "Error: tool not available"),
        (WORDS, {"work": "a\tb\nan\te", "value": 'x = y\n{"}"}'}, ("a\tb\nan\te",), 'x = y\n{"}"}'),
        (WORDS, {"work": "use ``` here", "value": "<think>"}, ("use ``` here",), "<think>"),
        (COUNT, {"work": "", "value": "0"}, (), "0"),
        (TRUTH, {"work": "", "value": True}, (), "true"),
        (WORDS, '{"work": "", "value": "France"}', (), "France"),
    ],
)
def test_reads_work_and_value(step: Step, field: object, work: tuple[str, ...], value: str) -> None:
    """A step in words is answered by its working and its value, untouched but for the space around the value."""
    (claim,) = one(field, step).claims
    assert (claim.work, claim.value) == (work, value)


@pytest.mark.parametrize("wrap", ["{}", "```json\n{}\n```", "Here:\n```\n{}\n```\nDone.", "````\n{}\n```", "x {}"])
def test_strings_hold_anything(wrap: str) -> None:
    """Backticks, braces, quotes and tags inside strings end nothing, however the object is wrapped."""
    nasty = '``` } { "} ]\\ </think> <think> ```json {"a": 1}'
    reading = read(wrap.replace("{}", json.dumps({"a": "2 * 3 = 6", "s": {"work": nasty, "value": "x"}})), MIXED)
    assert reading.deviations == ()
    assert reading.claims[1].work == (nasty,)


@pytest.mark.parametrize(
    ("step", "field", "kind", "says"),
    [
        (WORDS, "France", "malformed", "found text"),
        (WORDS, "{broken", "malformed", "found text"),
        (WORDS, {"work": "x"}, "malformed", "missing key 'value'"),
        (WORDS, {"work": "x", "vlaue": "y"}, "malformed", "missing key 'value'"),
        (WORDS, {"work": "x", "value": "y", "value2": "z"}, "malformed", "unexpected key 'value2'"),
        (WORDS, {"work": "x", "value": "y", "\ud800": "z"}, "malformed", "unexpected key"),
        (WORDS, {"work": "x", "value": None}, "malformed", "null"),
        (WORDS, {"work": "x", "value": True}, "malformed", "a truth value"),
        (WORDS, {"work": ["x"], "value": "y"}, "malformed", "a list"),
        (WORDS, {"work": "", "value": "\frac{12}{2}"}, "malformed", "bad escaping"),
        (WORDS, {"work": "2 \times 3", "value": "6"}, "malformed", "bad escaping"),
        (WORDS, {"work": "", "value": "a\right"}, "malformed", "bad escaping"),
        (WORDS, {"work": "", "value": "\ud800"}, "malformed", "bad escaping"),
        (WORDS, '{"work": "", "value": "x", "value": "y"}', "malformed", "twice"),
        (WORDS, json.dumps(json.dumps({"work": "", "value": "x"})), "malformed", "found text"),
        (COUNT, {"work": "x", "value": True}, "malformed", "a truth value"),
        (COUNT, {"work": "", "value": "18, no wait, 19"}, "self_correction", "takes something back"),
        (TRUTH, {"work": "", "value": 1}, "", ""),
    ],
)
def test_refuses_an_entry_without_work_and_value(step: Step, field: object, kind: str, says: str) -> None:
    """An entry of a step in words has exactly two texts: nothing is defaulted, renamed or dropped."""
    reading = one(field, step)
    if not kind:  # read here, and refused by the type of the step
        assert values(reading) == ["1"]
        return
    assert kinds(reading) == [(kind, "s")]
    assert reading.claims == ()
    assert says in reading.deviations[0].reason
    json.dumps(reading.deviations[0].reason, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("text", "claimed", "failed"),
    [
        ('{"a": "2 * 3 = 7", "a": "2 * 3 = 6", "s": {"work": "", "value": "x"}}', 0, ("duplicate_step", "a")),
        ('{"a": "2 * 3 = 6", "s": {"work": "", "value": "x", "value": "y"}}', 1, ("malformed", "s")),
        ('{"a": "2 * 3 = 6", "s": {"work": "", "value": "x", "value": "x"}}', 1, ("malformed", "s")),
        ('{"a": "2 * 3 = 6", "s": {"work": [{"k": 1, "k": 2}], "value": "x"}}', 1, ("malformed", "s")),
        ('{"a": {"": 1, "": 2}, "s": {"work": "", "value": "x"}}', 0, ("malformed", "a")),
    ],
)
def test_a_repeated_key_is_never_resolved(text: str, claimed: int, failed: tuple[str, str]) -> None:
    """A key that stands twice spoils its step at any depth, and its first and last values alike are not used."""
    reading = read(text, MIXED)
    assert len(reading.claims) == claimed
    assert kinds(reading) == [failed]
    assert "twice" in reading.deviations[0].reason


def test_the_response_model_has_exactly_the_steps() -> None:
    """The schema that is sent requires the asked steps in order and allows nothing else, and is built once."""
    model = FORMAT.response_model(MIXED)
    schema = model.model_json_schema(by_alias=True)
    assert list(schema["properties"]) == schema["required"] == ["a", "s"]
    assert schema["additionalProperties"] is False
    assert model.__name__ == TOOL_NAME
    assert FORMAT.response_model(MIXED) is model


@pytest.mark.parametrize("step", [*PAIR, WORDS, Step("v", "2*3", show_work=False), Step("t", "x > 1")])
def test_an_answer_is_read_back(step: Step) -> None:
    """What the format shows in a demonstration it reads as that working and value."""
    (claim,) = one(FORMAT.answer(step, "2 * 3", "6"), step).claims
    assert claim.value == "6"
    assert claim.work == (() if step.id == "v" else ("2 * 3",))


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
@settings(max_examples=500)
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
@settings(max_examples=300)
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
@settings(max_examples=300)
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
