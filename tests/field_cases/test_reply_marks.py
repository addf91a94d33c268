"""Replies of the field: drafts behind marks of any name, answers given twice, tool calls that a server did not read."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import all_rows

from stepguard import Guard, Procedure, Result
from stepguard.backends import Completion, ToolCall
from stepguard.errors import BackendError
from stepguard.testing import ScriptedBackend

PROCEDURE = Procedure.parse("inputs: x, y\nt1 = x * y\nt2 = t1 + 5")
INPUTS = {"x": 6, "y": 7}
GOOD = '{"t1": "6 * 7 = 42", "t2": "42 + 5 = 47"}'


def run(text: str, **options: object) -> Result:
    """One reply, to a guard that does not ask again; the draft is right, so that no check refuses it."""
    return Guard(ScriptedBackend(text), repair=0, **options).run(PROCEDURE, INPUTS)  # type: ignore[arg-type]


OPENINGS = [
    *("<|channel>thought\n", "<longcat_think>", "<x>", "[THINK]", "```thinking\n", "Thought: ", "Thought:\n", "<R1>"),
    *(
        "<|thinking|>",
        "<inner_monologue>",
        "\u2039think\u203a",
        "\u3010\u601d\u8003\u3011",
        "<\u601d\u8003>",
        "<think\n>",
    ),
    *(
        "<|begin\u2581of\u2581thought|>",
        "<\uff5cthink\uff5c>",
        "< think>",
        "<|im_start|>think\n",
        "<!-- ",
        "~~~draft\n",
    ),
    *("### Thinking\n", "**Draft**\n", "**Thinking:**\n", "=== Draft ===\n", "Let me think: ", "[draft]", "<<think>>"),
    *('<Think id="1">', "<plan>\n<plan>", "<|channel|>analysis<|message|>", "<o1>", "<a.b:c>", "Draft answer: "),
    *(
        "1. Thought: ",
        "<%think%>",
        "<_think>",
        "(thinking) ",
        "{thinking}",
        "<think:",
        "<think\n",
        "\u601d\u8003\uff1a",
    ),
    *("<think></b>", "<think>x</b>", '<x y="/>">', "<answer><think>", "````think\n```json\n{}\n```\n", "Rough guess: "),
]


@all_rows("opening", OPENINGS)
def test_r07_a_draft_behind_an_opening_mark_is_no_answer(opening: str) -> None:
    """What stands behind a mark that is never closed is not the answer, and the mark is named."""
    result = run(opening + GOOD)
    assert result.status == "abstained"
    assert "inside its own thinking" in str(result.problem)


@all_rows(
    "text",
    [
        *(
            f"<longcat_think>D</longcat_think>{GOOD}",
            f"<|channel>thought\nD<channel|>{GOOD}",
            f"[SCRATCH]D[/SCRATCH]{GOOD}",
        ),
        *(f"```thinking\nD\n```\n```json\n{GOOD}\n```", f"Thought:\nD\nFinal answer:\n{GOOD}", f"<x>D</x>\n{GOOD}"),
        f"<|begin_of_thought|>D<|end_of_thought|><|begin_of_solution|>{GOOD}<|end_of_solution|>",
        f"<|start|>assistant<|channel|>analysis<|message|>D<|end|><|start|>assistant<|channel|>final<|message|>{GOOD}",
        *(
            *(f"D</novel_mark>{GOOD}", f"<think>a<b>D</think>{GOOD}", f"<!-- D -->{GOOD}"),
            f"<plan>D</plan><answer>{GOOD}</answer>",
        ),
    ],
)
def test_r07_a_closed_draft_is_skipped(text: str) -> None:
    """What stands behind a closed draft is the answer, whatever the mark is called."""
    wrong = '{"t1": "6 * 7 = 41", "t2": "41 + 5 = 46"}'
    assert run(text.replace("D", wrong)).status == "verified"


@all_rows(
    "text",
    [
        *(f"Sure! Here is the JSON you asked for:\n{GOOD}", f"**Answer:**\n{GOOD}", f"<answer>{GOOD}</answer>"),
        *(f"<|im_start|>assistant\n{GOOD}<|im_end|>", f"{GOOD}<|eot_id|>", f"{GOOD}</s>", f"{GOOD}<|endoftext|>"),
        *(f"Reasoning: 6 * 7 is 42.\n\n{GOOD}", f"{GOOD}\nReasoning: 6 * 7 is 42.", f"Given x < y and y > z: {GOOD}"),
        *(
            *(f"<pre><code>{GOOD}</code></pre>", f"<br/>{GOOD}", f"see <https://x.y> {GOOD}"),
            f"I think the answer is: {GOOD}",
        ),
        *(
            *(f"```JSON5\n{GOOD}\n```", f"### Final answer\n{GOOD}", f"Steps: [1, 2], [true]. {GOOD}"),
            f"<final_answer>{GOOD}",
        ),
    ],
)
def test_r07_words_and_marks_that_hide_nothing_do_not_harm(text: str) -> None:
    """Marks of the answer, of code and of turns, comparisons and explanations are no drafts."""
    assert run(text).status == "verified"


@all_rows("mark", ["<think>", "</think>", "<|channel>thought", "[THINK]", "```thinking", "<x>", "<!--"])
def test_r07_marks_inside_strings_are_text(mark: str) -> None:
    """A right answer whose values hold a mark is read as it stands."""
    procedure = Procedure.parse("inputs: document: text\nnote: text = document")
    result = Guard(ScriptedBackend(json.dumps({"note": f"{mark} as written"})), repair=0).run(
        procedure, {"document": f"{mark} as written"}
    )
    assert result.answer == f"{mark} as written"


NAMES = st.from_regex(r"\A[a-z][a-z0-9_]{1,12}\Z").filter(lambda name: name not in {"br", "hr", "id", "im", "js", "py"})


@given(NAMES, st.sampled_from(["<{}>", "<|{}|>", "<|{}>", "<{} a='1'>", "<seed:{}>", "\u25c1{}\u25b7", "< {}>"]))
def test_r07_of_any_name(name: str, shape: str) -> None:
    """An opening mark hides what follows whatever its name is; closed, it hides nothing behind it."""
    known = {"answer", "code", "final", "json", "output", "pre", "reply", "response", "result", "solution", "text", "s"}
    if not known.isdisjoint(name.split("_")) or {"end", "stop", "close", "start", "model"} & set(name.split("_")):
        return
    opening = shape.format(name)
    assert run(opening + GOOD).status == "abstained"
    closing = f"</{name}>" if shape.startswith("<") and "|" not in shape and ":" not in shape else None
    if closing is not None:
        assert run(f"{opening}no{closing}{GOOD}").status == "verified"


@pytest.mark.parametrize(
    ("first", "then"),
    [
        *(('{"t2": 11}', GOOD), (GOOD, '{"t2": 11}'), ('{"t1": "6 * 7 = 41"}', GOOD)),
        ('{"t1": 41} so', f"```json\n{GOOD}\n```"),
    ],
    ids=["R08-part-first", "R08-whole-first", "R08-other-part", "R08-fenced"],
)
def test_r08_a_part_that_says_something_else_is_a_conflict(first: str, then: str) -> None:
    """A part of the answer beside the whole of it may stand on either side, and may not differ."""
    result = run(f"{first} {then}")
    assert (result.status, result.problem and result.problem.deviation and result.problem.deviation.kind) == (
        "abstained",
        "self_correction",
    )


@all_rows(
    "entry",
    [
        *(
            '"T2": "42 + 5 = 46"',
            '"t2 ": "46"',
            '"t2\u200b": "46"',
            '"t2_corrected": "46"',
            '"ｔ2": "46"',
            '"valid": false',
        ),
        *('"note": "t2 is wrong"', '"correction": "t2 should be 46"', '"error": "could not compute"', '"t2_ok": "no"'),
        *(
            '"t2_final": "46"',
            '"correction": "t2 is 46"',
            '"reasoning": "42 + 5 = 46, so t2 is 46"',
            '"errors": ["t2"]',
        ),
        *('"note": ["t2 is wrong"]', '"meta": {"note": "t2 is a guess"}', '"updated": {"t2": "46"}'),
        *('"remark": "Das ist falsch."', '"note": "C\'est Bob qui le dit."', '"comment": "t2 is 46, to be exact"'),
    ],
)
def test_r08_an_entry_beside_the_answer_that_says_something_else_is_heeded(entry: str) -> None:
    """Another spelling of a step, and words that take back or are not understood, stand inside the object, too."""
    for text in (f"{GOOD[:-1]}, {entry}}}", f"{{{entry}, {GOOD[1:]}", f"Here it is: {GOOD[:-1]}, {entry}}}"):
        assert run(text).status == "abstained"


@all_rows(
    "entry",
    [
        *('"t3": "47 + 5 = 52"', '"T2": "42 + 5 = 47"', '"valid": true', '"note": ""', '"final_answer": "47"'),
        *('"t3": {"work": "t2 * 2", "value": "94"}', '"t3": "5 + t2 = 52"', '"order": ["t1", "t2"]'),
        *('"note": "All steps were carried out in sequence."', '"summary": "The final result is 47."'),
        *('"explanation": "I multiplied x and y and added 5."', '"note": "All steps are done."', '"error": null'),
    ],
)
def test_r08_an_entry_beside_the_answer_that_agrees_or_goes_on_is_surplus(entry: str) -> None:
    """The other side: further steps, and words that are understood, cost no second call."""
    assert run(f"{GOOD[:-1]}, {entry}}}").status == "verified"


@pytest.mark.parametrize("again", [GOOD.replace(": ", ":"), '{"t2": "42 + 5 = 47", "t1": "6 * 7 = 42"}'])
def test_r08_the_same_answer_twice_is_one(again: str) -> None:
    """White space and the order of keys say nothing."""
    assert run(f"```json\n{GOOD}\n```\n{again}").status == "verified"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        *(("That is wrong, it is 46.", "abstained"), ("Dummy values:", "abstained"), ("Das ist falsch:", "abstained")),
        ("The values below are invented.\n\nHere are the steps:", "abstained"),
        *(
            ("I'll call the Steps tool with the values.", "verified"),
            ("Thought: I multiply.", "verified"),
            ("", "verified"),
        ),
    ],
)
def test_r08_words_beside_a_tool_call_are_read_as_those_before_an_object(words: str, status: str) -> None:
    """What takes a call back, or is not understood, stands in the content beside it."""
    reply = Completion(words, "tool_calls", tool_calls=(ToolCall("Steps", GOOD),))
    assert Guard(ScriptedBackend(reply), repair=0).run(PROCEDURE, INPUTS).status == status


CALL = json.dumps({"name": "Steps", "arguments": json.loads(GOOD)})
UNREAD = [
    *(
        f"<tool_call>{CALL}</tool_call>",
        f"<tool_call>\n{CALL}\n",
        f"[TOOL_CALLS][{CALL}]",
        f"<|python_tag|>{CALL}",
        CALL,
    ),
    *(
        f"<function=Steps>{GOOD}</function>",
        f"[TOOL_CALLS]Steps[ARGS]{GOOD}",
        f"```tool_call\n{CALL}\n```",
        f"functools[{CALL}]",
    ),
    f"<|channel|>commentary to=functions.Steps <|constrain|>json<|message|>{GOOD}<|call|>",
    *(f"assistantcommentary to=functions.Steps json{GOOD}", f"<think>so</think><tool_call>{CALL}</tool_call>"),
    f"<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>function<\uff5ctool\u2581sep\uff5c>Steps\n```json\n{GOOD}\n```",
    f"<|tool_calls_section_begin|><|tool_call_begin|>functions.Steps:0<|tool_call_argument_begin|>{GOOD}<|tool_call_end|>",
    "<tool_call>Steps\n<arg_key>t1</arg_key>\n<arg_value>6 * 7 = 42</arg_value></tool_call>",
    '<function_calls><invoke name="Steps"><parameter name="t1">6 * 7 = 42</parameter></invoke></function_calls>',
    f"Action: Steps\nAction Input: {GOOD}",
]


@all_rows("text", UNREAD)
def test_r06_a_tool_call_left_in_the_content_is_the_servers_fault(text: str) -> None:
    """It ends the run after one call, names what is to be mended, and is not held against the model."""
    result = Guard(ScriptedBackend(text, text, text)).run(PROCEDURE, INPUTS)
    assert (result.status, result.usage.calls, result.attempts[0].deviations) == ("failed", 1, ())
    assert isinstance(result.error, BackendError)
    assert "left a tool call in the content" in str(result.error)


@pytest.mark.parametrize(
    "text",
    [
        GOOD.replace("6 * 7 = 42", "<tool_call> Steps"),
        *("<tool_call>{}</tool_call>", f"<think>I could write <tool_call>{CALL}</think>{GOOD}"),
        f"No tool is needed, neither Steps nor another. {GOOD}",
    ],
)
def test_r06_what_only_resembles_a_call_is_read_as_ever(text: str) -> None:
    """Words about tools, calls of other tools and calls that were only thought of are judged like any other reply."""
    result = run(text)
    assert result.status in ("verified", "abstained")


def test_r06_a_call_of_another_model_ends_its_rung() -> None:
    """Where somebody else was asked, the fault of their server ends the rung and not the run."""
    from stepguard import Ladder
    from stepguard.repair.rungs import Resample, another_model

    wrong = json.dumps({"t1": "6 * 7 = 41", "t2": "41 + 5 = 46"})
    ladder = Ladder(rungs=(another_model(ScriptedBackend(Completion(f"<tool_call>{CALL}"))), Resample()))
    result = Guard(ScriptedBackend(wrong, '{"t1": "6 * 7 = 42"}', '{"t2": "42 + 5 = 47"}'), repair=ladder).run(
        PROCEDURE, INPUTS
    )
    assert result.status == "verified"


@all_rows(
    "around",
    [
        *("~~{}~~", "<s>{}</s>", "<del>{}</del>", "[deleted: {}]", "Not this: {}", "This is wrong:\n{}"),
        *("Do not use this:\n```json\n{}\n```", "For example: {}", "Expected answer: {}", "The old answer: {}"),
        *("{}\nWait, that is wrong.", "{}\nIgnore the above.", "{}\nActually t2 is 48.", "{}\nCorrection: t2 = 48"),
        *("```json\n{}\n```\nScratch that.", "```json\n{}\n```\nSorry, t2 should be 48.", "{}\nThis is incorrect."),
        *("Falsch: {}", "Nicht verwenden: {}", "Beispiel: {}", "Rejected:\n{}", "{} \u274c", "{} (wrong)"),
        *(
            "{}\nDas ist falsch.",
            "{}\nt2 is wrong.",
            "{} is wrong",
            "{} may be wrong.",
            "{}?",
            "{} isn't right",
            "{}\nNo, t2 = 48.",
        ),
        *(
            *("Template: {}", "// {}", "# {}", "/* {} */", "-- {}", "; {}", "// answer: {}", "Schema:\n{}"),
            "Placeholder: {}",
        ),
        *(
            *("Output format:\n{}", "The format is: {}", "It should look like this: {}", "Your answer: {}"),
            "You wrote: {}",
        ),
        *("Tom's answer: {}", "From the book: {}", "Hint: {}", "Suppose {}", "Not {}", "Maybe {}", "Prompt: {}"),
    ],
)
def test_an_answer_that_is_struck_or_denied_is_not_given(around: str) -> None:
    """R07: words around the answer that strike it out, call it false or take it back are heeded."""
    assert run(around.format(GOOD)).status == "abstained"


@all_rows(
    "around",
    [
        *("Here is the JSON, not markdown:\n{}", "~~~json\n{}\n~~~", "I did not skip a step. Result:\n{}"),
        *("Sure! ```json\n{}\n``` Let me know if you need more.", "I first got 41, which was wrong. Now:\n{}"),
        *("{}\nThere is nothing wrong with it.", "{}\nPlease wait for the next step.", "~50 tokens: {}"),
        *(
            *("Sorry for the delay: {}", "{}\nSorry for the delay.", "{}\nNothing is wrong."),
            *("As in the example, my answer:\n{}", "In the requested format:\n{}", "I filled in the template:\n{}"),
            *("## Answer: {}", "Solution: {}"),
        ),
    ],
)
def test_words_that_only_frame_an_answer_leave_it(around: str) -> None:
    """R07, the other side: politeness, fences and notes about the answer are no retraction."""
    assert run(around.format(GOOD)).status == "verified"


INVOICE = Procedure.parse(
    "name: Customer invoice\ninputs: price, quantity, discount\n"
    'subtotal = price * quantity  "Multiply the unit price by the quantity"\n'
    'invoice_total = subtotal - discount  "Take the discount off the subtotal"'
)
INVOICED = '{"subtotal": "6 * 7 = 42", "invoice_total": "42 - 5 = 37"}'


def invoiced(text: str) -> str:
    backend = ScriptedBackend(text.format(INVOICED))
    return Guard(backend, repair=0).run(INVOICE, {"price": 6, "quantity": 7, "discount": 5}).status


@all_rows(
    "text",
    [
        *("{}\nThe discount is taken off the subtotal.", "{}\nThe customer pays the invoice total.", "Invoice:\n{}"),
        *("{}\nDone. With a discount of 5, the customer pays 37.", "The invoice for the customer:\n{}"),
        *("After the discount the customer pays:\n{}", "{}\nThe subtotal uses the price and the quantity."),
    ],
)
def test_words_of_the_procedure_are_understood_around_an_answer(text: str) -> None:
    """R07, the other side: chatter in the words of the task costs no second call."""
    assert invoiced(text) == "verified"


@all_rows(
    "text",
    [
        *("{}\nThe discount was never granted.", "{}\nPrice according to Bob.", "{}\nIs the price right?"),
        *("{}\nDone. I used the old price.", "{}\nThe total was 99.", "{}\nThis is the total. The customer denies it."),
        *("The customer says:\n{}", "Not the total:\n{}", "If the price is right:\n{}", "Alter Preis:\n{}"),
        *("{}\nDone.\n\nKidding!", "{}\nThe keys are exact. Das nehme ich zur\u00fcck.", "{}\nThe price may change."),
    ],
)
def test_words_of_the_procedure_neutralise_no_denial(text: str) -> None:
    """R07: a denial, a question, a source or a condition counts whatever words of the task stand beside it."""
    assert invoiced(text) == "abstained"
