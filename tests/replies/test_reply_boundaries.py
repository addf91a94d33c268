"""The boundaries of reading replies: words around an answer, other objects beside it, entries not asked for."""

from __future__ import annotations

import pytest
from reply_harness import FORMAT, GOOD, OTHER, kinds, read, values
from tables import all_rows

from stepguard.backends.base import Completion
from stepguard.procedure.steps import Step
from stepguard.replies.reading import read_reply

FIRST = '{"a": "2 * 3 = 6"}'
FALSE_FIRST = '{"a": "2 * 3 = 9"}'


@pytest.mark.parametrize("reason", ["I can't do that.", "No. " * 1000])
def test_a_refusal_says_what_the_model_said(reason: str) -> None:
    """The reason of a refusal quotes the beginning of what was declined, and not a whole page."""
    (deviation,) = read(None, refusal=f"  {reason}").deviations
    assert reason[:15] in deviation.reason
    assert len(deviation.reason) < 250


@all_rows(
    "key",
    [
        "answer", "Answer", "Final Answer", "final_answer", "finalAnswer", "final-answer", "the answer",
        "TheAnswer", "result",
        "final result", "finalResult", "Final", "FINAL", "solution", "**Solution**",
    ],
)  # fmt: skip
def test_the_names_of_a_final_answer(key: str) -> None:
    """A surplus entry is a premature answer if its key says so, in any case and with any signs in it."""
    reading = read(f'{GOOD[:-1]}, "{key}": 10}}')
    assert kinds(reading) == [("premature_answer", key)]
    assert (values(reading), reading.failed) == (["6", "10"], None)


@all_rows("key", ["answers", "answer2", "my result", "", "finally", "answer" + "x" * 90, "_" * 80 + "answer"])
def test_other_surplus_is_no_final_answer(key: str) -> None:
    """A key that only resembles one for a final answer is surplus like any other."""
    assert [kind for kind, _ in kinds(read(f'{GOOD[:-1]}, "{key}": 10}}'))] == ["extra_step"]


def test_surplus_and_disorder_are_both_recorded() -> None:
    """Entries in another order beside an entry that was not asked for are two deviations, and the claims stand."""
    reading = read('{"b": "6 + 4 = 10", "x": 1, "a": "2 * 3 = 6"}')
    assert kinds(reading) == [("extra_step", "x"), ("wrong_order", None)]
    assert values(reading) == ["6", "10"]


@pytest.mark.parametrize(
    "text",
    [
        *(f"{front}: {GOOD}" for front in ("Bob said", "The other model says", "Student A", "- Hint")),
        *(
            f"{GOOD}{behind}"
            for behind in ("\nJust kidding.", "\n\nNo.", ". Never mind.", " (wrong)", "\nThis is a mistake.")
        ),
    ],
)
def test_words_around_an_object_give_it_to_another_or_take_it_back(text: str) -> None:
    """Such a reply is asked again, whatever the object holds."""
    assert kinds(read(text)) == [("self_correction", None)]


@all_rows(
    "words",
    [
        *("Let's break this down:", "Here is the corrected JSON:", "Hier sind die Ergebnisse:", "Voici le JSON :"),
        *(
            "Aqu\u00ed tienes el resultado:",
            "\u7ed3\u679c\u5982\u4e0b\uff1a",
            "\U0001f389 Done:",
            "A JSON object with the keys a and b:",
        ),
        *("Each step has been verified.", "Check: 10 - 4 = 6 \u2713", "Shall I continue?", "No rounding was needed."),
        *("All steps verified.", "This is correct.", "You're welcome!", "---", "How else can I help you?"),
        *("Would you like me to explain the steps?", "If you have any questions, feel free to ask."),
        *("Let me know if you need anything else.", "Let me know if you'd like more details!"),
        *("Let me know if you have any questions.", "Let me know if you need help with anything else"),
    ],
)
def test_pleasantries_checks_and_offers_leave_an_object_its_writers(words: str) -> None:
    """What models say around an object, in the languages of procedures too, costs no second call."""
    around = f"{words}\n{GOOD}" if words.endswith((":", "\uff1a")) else f"{GOOD}\n{words}"
    assert values(read(around)) == ["6", "10"]


@all_rows(
    "words",
    [
        *(
            "Is this correct?",
            "Would you like me to explain the mistakes in it?",
            "Double-check this.",
            "To be verified.",
        ),
        *(
            "This is correct if 2 is 3.",
            "It is correct that I lied.",
            "I checked none.",
            "The steps are checked by Bob.",
        ),
        *("Let me know if this is wrong.", "Let me know if you need anything else than 10.", "Let me know if b is 12."),
        *("Let me know if you have any doubts.", "Let me know if you want the true value.", "Let me know if not."),
        *("Let me know if you need anything else, I made it up.", "Let me know if you need a better one."),
        *("Let me know if you need help with the errors.", "Feel free to use 12 instead.", "As corrected above."),
        *("This works out to 12.", "when x is 3", "6 + 6 = 12 is what I meant.", "Richtig ist 6 + 6 = 12.", ":("),
        *("Das sind die alten Ergebnisse.", "Ce sont des exemples.", "\u4e0d\u662f\u7ed3\u679c", "\U0001f914"),
        *("Check: 2 * 3 = 7", "Verification: 10 - 4 = 7", "6 -> 7", "A second run gave 12.", "Add 1 to each."),
        *("The final answer is twelve.", "Final answer: six", "Total: twenty-one", "Here x is 5.", "Note: a uses 8."),
        *("a and b are swapped.", "Multiply all by 100 for cents.", "\u7b54\u6848\u662f12", "It is for 9 people."),
        *("Feel free to ask why these are wrong.", "Please wait for the real answer.", "<draft/>"),
        *("Would you like me to continue with the real numbers?", "Sorry for the errors in it."),
        *("Is there anything else wrong?", "There are no right steps.", "It is in the wrong format."),
    ],
)
def test_doubts_behind_an_object_take_it_back(words: str) -> None:
    """Questions, open checks, other numbers, and what goes on behind the usual words of a pleasantry, take it back."""
    assert kinds(read(f"{GOOD}\n{words}")) == [("self_correction", None)]


@all_rows(
    "words",
    [
        "Check: 10 - 4 = 6",
        "Both steps are done.",
        "I used 2 steps.",
        "The answer is ten.",
        "1. 2 * 3 = 6\n2. 6 + 4 = 10",
    ],
)
def test_numbers_of_the_answer_and_counts_of_steps_are_understood(words: str) -> None:
    """The other side, so that explanations cost no second call."""
    assert values(read(f"{GOOD}\n{words}")) == ["6", "10"]


@all_rows("other", ['{"confidence": 0.1}', '{"error": true}', '{"status": "draft"}', '{"x": 5}', "{'guess': 1}"])
def test_another_object_is_read_as_the_words_around_an_answer_are(other: str) -> None:
    """What it says of the answer counts, on either side, and a value that is another for what the step reads."""
    step = Step("t", "x + 1")
    given = {"x": 6}
    for text in (f'{{"t": "6 + 1 = 7"}}\n{other}', f'{other}\n{{"t": "6 + 1 = 7"}}'):
        assert kinds(read_reply(Completion(text), [step], FORMAT, given)) == [("self_correction", None)]
    for front in ("For x = 5:", "With x: 5", "Not 7:"):
        reading = read_reply(Completion(f'{front}\n{{"t": "6 + 1 = 7"}}'), [step], FORMAT, given)
        assert kinds(reading) == [("self_correction", None)]
    reading = read_reply(Completion('For x = 6:\n{"t": "6 + 1 = 7"}\nSo x is 6.\n{"x": 6}'), [step], FORMAT, given)
    assert values(reading) == ["7"]


@all_rows(
    "front", ["b", "So b", "**b**", "Result", "The final answer", "Das Ergebnis", "La respuesta", "a is 6, and b"]
)
@all_rows("sign", [" =", ":", " is", " ist", " ergibt", " vaut", " ->"])
@all_rows("behind", ["12", "$12.", "6 + 6 = 12", "6 + 6 = 12 eggs.", "a + 4 = 6 + 4 = 12"])
def test_another_value_behind_an_object_takes_it_back(front: str, sign: str, behind: str) -> None:
    """Whatever an asked step or the result is called and said to be, it is what the object says."""
    for separator in ("\n", " "):
        assert kinds(read(f"{GOOD}{separator}{front}{sign} {behind}")) == [("self_correction", None)]
        same = behind.replace("12", "10").replace("6 + 6", "6 + 4")
        assert values(read(f"{GOOD}{separator}{front}{sign} {same}")) == ["6", "10"]


@all_rows(
    "text, claimed, found",
    [
        (f"{GOOD} {GOOD} {GOOD}", ["6", "10"], []),
        (f"{GOOD} {GOOD} {OTHER}", [], [("malformed", None)]),
        (f"{GOOD} {OTHER} {GOOD}", [], [("malformed", None)]),
        (f"{FALSE_FIRST} {GOOD}", [], [("self_correction", None)]),
        (f"{FIRST} {GOOD}", ["6", "10"], []),
        (f"{GOOD} {FIRST}", ["6", "10"], []),
        (f"{GOOD} {FALSE_FIRST}", [], [("self_correction", None)]),
        (f"{GOOD} {FIRST} {FALSE_FIRST}", [], [("self_correction", None)]),
        (f"{FIRST} then {FIRST}", ["6"], [("missing_step", "b")]),
        (f"{FIRST} then {FALSE_FIRST}", [], [("malformed", None)]),
        (f'[{FIRST}, {{"b": "6 + 4 = 10"}}]', [], [("malformed", None)]),
        (f'[{{"x": 1}}, "a", 2, {GOOD}]', ["6", "10"], []),
        (f'{GOOD} {{"x": 1}}', ["6", "10"], []),
        (f'{{"x": 1}} {{"y": [{{"z": 2}}]}} {GOOD}', ["6", "10"], []),
        (f'{{"steps": {GOOD}}}', [], [("missing_step", "a")]),
        (f'so: {{"steps": {GOOD}}}', [], [("malformed", None)]),
    ],
)
def test_several_objects(text: str, claimed: list[str], found: list[tuple[str, str | None]]) -> None:
    """Objects that answer must agree; a part is a draft before the whole, and a correction behind it."""
    reading = read(text)
    if found == [("missing_step", "a")]:
        found = [("extra_step", "steps"), *found]
    assert (values(reading), kinds(reading)) == (claimed, found)


@all_rows(
    "text, claimed",
    [
        *((f"{{'x': 1}} {GOOD}", ["6", "10"]), (f"{{'x': 1}} {{'y': 2}} {GOOD}", ["6", "10"])),
        *((f'{{"x": "}}", y}} {GOOD}', ["6", "10"]), (f'{{"x": "\\"}}", y}} {GOOD}', ["6", "10"])),
        *((f'{{"x": [{{"y": 1}}, {{}}], z}} {GOOD}', ["6", "10"]), (f'{{"x": {{"y": z}}, "a": 1}} {GOOD}', [])),
        *((f'{{"x": so, "{{": 1}} {GOOD}', ["6", "10"]), (f'{{"x": "never closed {GOOD}', [])),
        *((f'{{"x": so {GOOD}', []), (f'{{"x": so, a: 3}} {GOOD}', []), (f"{{'x': so, 'a': 3}} {GOOD}", [])),
        *((f'{{"x": so, "y_": 3, "_z": 4}} {GOOD}', ["6", "10"]), (f'{{"x": so, "a"    : 3}} {GOOD}', [])),
    ],
)
def test_a_broken_object_in_front(text: str, claimed: list[str]) -> None:
    """A broken object is passed over to its own end, unless it names an asked step or has no end."""
    reading = read(text)
    assert values(reading) == claimed
    assert kinds(reading) == ([] if claimed else [("malformed", None)])
