"""Entries of a reply: matched by their ids, equations or work and value, and never mended."""

from __future__ import annotations

import json

import pytest
from reply_harness import FORMAT, MIXED, PAIR, TRIPLE, TRUTH, WORDS, A, B, C, kinds, read, values
from tables import all_rows

from stepguard import Guard, Input, Procedure
from stepguard.backends.base import Completion
from stepguard.checks import Grounded
from stepguard.procedure.steps import Step
from stepguard.replies.reading import TOOL_NAME, Reading, read_reply


def one(field: object, step: Step = PAIR[0]) -> Reading:
    return read(json.dumps({step.id: field}), [step])


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


@all_rows("text", ["-14 + 36 = 22", "3 * (-4) = -12", "(-3) - 4 / 2 = -5", "7 = 7", "1 - (-2) + 3 = 6"])
def test_a_sum_without_blanks_is_the_same_claim(text: str) -> None:
    """Models leave out blanks that examples do not show: what is claimed does not depend on them."""
    (spaced,), (compact,) = one(text).claims, one(text.replace(" ", "")).claims
    assert (compact.work, compact.value) == (spaced.work, spaced.value)


@all_rows("digits", ["9007199254740993", "0.29999999999999998", "1e400", "-0", "1E+3", "9" * 5_000])
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


@pytest.mark.parametrize("step", [Step("t", "x > 1"), Step("t", "x > 1", show_work=False)])
def test_truth_values_are_for_steps_of_truth_values(step: Step) -> None:
    """JSON's own true and false are claims of a boolean step, and of no other."""
    assert values(one(True, step)) == ["true"]
    assert kinds(one(True, Step("t", "x", type="number"))) == [("malformed", "t")]


EQUATION, COPY = PAIR[0], Step("t", "name", type="text")
COUNT = Step("s", instruction="Count them.", type="integer")


@all_rows("step, field, work, value", [
    # An equation gives its links as working and its last side as the value, as they were written.
    *((EQUATION, *row) for row in (
        *(("2 * 3 = 6", ("2 * 3",), "6"), ("a = 2 * 3 = 6", ("2 * 3",), "6"), ("2*3=1+5=6", ("2*3", "1+5"), "6")),
        *(("2 * 3 \u2248 6", ("2 * 3",), "6"), ("6", (), "6"), ("2 * 3 = **6**\n", ("2 * 3",), "**6**")),
        *(("2 * 3 = $6", ("2 * 3",), "$6"), ("2 * 3 == 6", ("2 * 3",), "6")),
        *(("2 * 3 = 130,000", ("2 * 3",), "130,000"), ("2 * 3 = no", ("2 * 3",), "no")),
    )),
    # A step that copies a text claims it as it stands: equals signs, line breaks and harmless words are text.
    *((COPY, *row) for row in (
        *(("Lyon, France", (), "Lyon, France"), ("name = Lyon", ("name",), "Lyon")),
        *(("t = name = Lyon", ("name",), "Lyon"), ("t = Lyon", (), "Lyon"), ("name = a = b", ("name",), "a = b")),
        ("Sorry, no, wait: correction", (), "Sorry, no, wait: correction"),
        *(("two\nlines = one", (), "two\nlines = one"), ("", (), "")),
    )),
    # A step in words is answered by its working and its value, untouched but for the space around the value.
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
])  # fmt: skip
def test_reads_work_and_value(step: Step, field: object, work: tuple[str, ...], value: str) -> None:
    """What is claimed is what was written: the working apart from the value, and nothing changed in either."""
    (claim,) = one(field, step).claims
    assert (claim.work, claim.value) == (work, value)
    assert claim.text == field or step is not EQUATION


@all_rows("wrap", ["{}", "```json\n{}\n```", "Here:\n```\n{}\n```\nDone.", "````\n{}\n```", "x {}"])
def test_strings_hold_anything(wrap: str) -> None:
    """Backticks, braces, quotes and tags inside strings end nothing, however the object is wrapped."""
    nasty = '``` } { "} ]\\ </think> <think> ```json {"a": 1}'
    reading = read(wrap.replace("{}", json.dumps({"a": "2 * 3 = 6", "s": {"work": nasty, "value": "x"}})), MIXED)
    assert reading.deviations == ()
    assert reading.claims[1].work == (nasty,)


@all_rows(
    "step, field, kind, says",
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


@all_rows(
    "text, claimed, failed",
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


STEPS = [Step("t1", "x + y"), Step("t2", "t1*3", type="money(EUR)")]
ASKED = {"t1": "12 + 7 = 19", "t2": "19 * 3 = 57"}


def beside(entry: dict[str, object]) -> Reading:
    text = json.dumps({**ASKED, **entry})
    return read_reply(Completion(text), STEPS, FORMAT, {"x": 12, "y": 7})


@all_rows("entry", [
    *({key: 60} for key in ("target", "gold")), {"note": "12 + 8 = 20"}, {"confidence": "high"},
    {"reasoning": "19% of 300 is 57"}, {"city": {"work": "It lies on the Seine.", "value": "Paris"}},
    {"date": "2026-01-01"}, {"\u6ce8": "\u5b8c\u6210"},
])  # fmt: skip
def test_what_is_not_understood_does_no_harm_beside_what_is_proved(entry: dict[str, object]) -> None:
    """It could not make a proved value another one, and refuses one whose check would pass other values, too."""
    assert values(beside(entry)) == ["19", "57"]
    weak = Step("t2", instruction="Copy the total.", reads=["x"], type="integer")
    reading = read_reply(Completion(json.dumps({"t2": {"work": "", "value": "57"}, **entry})), [weak], FORMAT, {"x": 1})
    assert kinds(reading) == [("self_correction", None)]


@all_rows("entry", [
    # A correction, a denial or a doubt under whatever key, at whatever depth.
    *({key: value} for key in ("correction", "actual", "should_be", "old", "t2_alt") for value in (60, "60")),
    *({key: {"t2": "60"}} for key in ("corrected", "revised", "option 2", "steps", "result")),
    *({"status": word} for word in ("wrong", "failed", "draft", "incomplete")),
    *({"valid": said} for said in (False, "no", 0)), {"final": False}, {"error": True}, {"has_errors": "yes"},
    *({key: ["t2"]} for key in ("errors", "skipped", "ignored", "incorrect", "pending")), {"wrong": "t2"}, {"not": 57},
    *({"note": words} for words in ("t2 = 57 is wrong", "t2 != 57", "~~57~~ 60", "t2: 57 \u2192 60")),
    {"exact": 60}, {"code": "t2 += 3"}, {"html": "<del>57</del>"},
    *({"t2 (thousands)": 57}, {"swap": {"t1": "t2"}}, {"\u6ce8": "t2\u9519\u8bef"}, {"unit": "%"}),
    # Another value of what is read, or another unit, scale or sign of all that is answered.
    *({"x": 13}, {"inputs": {"x": 12, "y": 8}}, {"given": "x = 13"}, {"scale": 1000}, {"base": "hex"}, {"radix": 2}),
    *({"unit": unit} for unit in ("cents", "USD", "EUR cents", "thousand EUR", "k", "apples")),
    {"units": {"t2": "thousands"}},
])  # fmt: skip
def test_what_is_said_beside_an_answer_is_heeded(entry: dict[str, object]) -> None:
    """A key and what stands below it are read together: what says otherwise than the answer costs another call."""
    assert kinds(beside(entry)) == [("self_correction", None)]


@all_rows("entry", [
    *({key: True} for key in ("success", "ok", "correct")), *({"error": no} for no in (False, None, "none")),
    *({"status": word} for word in ("ok", "success", "done", "complete")), {"mistakes": 0}, {"warnings": []},
    *({"T2": same} for same in (57, "57", "19 * 3 = 57")), {"steps": {"t1": 19, "t2": "57"}}, {"inputs": {"x": 12}},
    *({"unit": unit} for unit in ("EUR", "euros", "none", "")), {"t1_value": 19}, {"result": 57}, {"confidence": 0.9},
    *({"t3": more} for more in (38, "57 - 19 = 38", {"work": "57 - 19", "value": 38})), {"formula": {"t2": "t1 * 3"}},
    {"explanation": "The sum of 12 and 7 is 19. Tripling that gives 57."}, {"tax": 5}, {"tokens": 45},
    {"tax": "57 * 0.2 = 11.4"},
    {"explanation": "First add x and y, then triple it."}, {"reasoning": "12 + 7 = 19, and three times that is 57"},
])  # fmt: skip
def test_what_agrees_with_an_answer_or_goes_on_is_surplus(entry: dict[str, object]) -> None:
    """The other side: praise, the absence of faults, the same again and further steps cost nothing."""
    assert values(beside(entry)) == ["19", "57"]


def test_entries_of_later_steps_are_surplus_whatever_their_names_mean() -> None:
    """What a model goes on to is not used, and refuses nothing that was asked."""
    procedure = Procedure.parse("inputs: x, y\nnet = x + y\nresult = net * 2\ntotal = result - 8\nanswer: total")
    entries = {"net": "12 + 7 = 19", "result": "19 * 2 = 38", "total": "38 - 8 = 30"}
    run = Guard(lambda _: json.dumps(entries), segment=1).run(procedure, {"x": 12, "y": 7})
    assert (run.status, run.usage.calls) == ("verified", 3)
    assert {slip.kind for attempt in run.attempts for slip in attempt.deviations} <= {"extra_step", "premature_answer"}


@pytest.mark.parametrize(("final", "status"), [("60", "abstained"), ("57", "checked"), (57, "checked")])
def test_a_final_answer_agrees_with_the_step_that_is_the_answer(final: object, status: str) -> None:
    """Where the check would pass both values, the reply holds two claims for one step."""
    step = Step("total", instruction="Copy the total.", reads=["letter"], type="integer", checks=[Grounded("letter")])
    entries = {"total": {"work": "Total 57", "value": "57"}, "final_answer": final}
    procedure = Procedure([step], inputs=[Input("letter", "text")])
    result = Guard(lambda _: json.dumps(entries), repair=0).run(procedure, {"letter": "Net 60, total 57"})
    assert result.status == status


@pytest.mark.parametrize("key", ["sqrt(b", "b%", "-b", "b (old)", "max(a, b)", "b b"])
def test_a_key_around_the_name_of_a_step_without_an_answer_is_no_fault_of_the_reader(key: str) -> None:
    """What is asked has no answer in such a reply, and what stands under the other key is none."""
    assert "b" not in values(read(f'{{{A}, {json.dumps(key)}: "10", {C}}}', TRIPLE))
