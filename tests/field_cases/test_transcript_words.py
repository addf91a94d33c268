"""Words beside and behind the claims of transcripts: they are understood, or they are named."""

from __future__ import annotations

import json
from itertools import product

import pytest
from tables import all_rows

from stepguard import Procedure, Step, audit
from stepguard.auditing import Audit

pytestmark = pytest.mark.once

STEPS = Procedure.parse("inputs: x, y\nt1 = x * y\nt2 = t1 + 5\nt3 = t2 + 5")
RIGHT = "t1 = 6 * 7 = 42\nt2 = 42 + 5 = 47\nt3 = 47 + 5 = 52\n"


def steps(text: str) -> Audit:
    return audit(STEPS, {"x": 6, "y": 7}, text)


STRANGE = (
    *("Kwame", "coolguy_99", "Vermutung", "R\u00e9ponse attendue", "Bozza", "Oczekiwane", "Borrador", "Taslak"),
    *(
        "\u0427\u0435\u0440\u043d\u043e\u0432\u0438\u043a",
        "\u4e0b\u66f8\u304d",
        "\u4f8b",
        "\uc608\uc0c1",
        "\u0645\u062b\u0627\u0644",
    ),
    *("Rejected", "Hearsay", "Fixture", "Peer review", "Counterfactual", "Not mine", "If only", "Wrong"),
)
PLACES = (
    *("{}: t1 = 42", "{} \u2014 t1 = 42", "{}, t1 = 42", "- **{}:** t1 = 42", "1. {}: 6 * 7 = 42", "{} t1 = 42"),
    *("{}:\nt1 = 42", "## {}\n\nt1 = 42", "{}\nt1 = 42", '{} "t1 = 42"', "{}: I added. t1 = 42", "Step 1: {}: 42"),
    *("t1 = 42 ({})", "t1 = 42 [{}]", "t1 = 42 \u2014 {}", "t1 = 42 - {}", "t1 = 42, {}", "t1 = 42 <- {}"),
    *("| step | {} |\n|--|--|\n| t1 | 42 |", '{{"{}": {{"t1": 42}}}}', '{}: {{"t1": 42}}'),
)  # fmt: skip


@all_rows("words, place", [*product(STRANGE, PLACES)])
def test_words_that_are_not_understood_are_named(words: str, place: str) -> None:
    """A04, A03: whoever speaks, in whatever language, a claim beside words that are not understood is not read."""
    first = steps(f"{place.format(words)}\nt2 = 42 + 5 = 47\nt3 = 47 + 5 = 52\nAnswer: 52").steps[0]
    assert first.verdict in ("not_judged", "missing")
    assert first.verdict == "missing" or "|" in place or "no value" in first.reason or words.split()[0] in first.reason
    assert not steps(f"{RIGHT}{words}: the answer is 52").answer_right


@all_rows("head", ["status", "valid", "analysis", "item", "explanation", "check", "definition"])
def test_a_column_that_denies_its_row_counts_whatever_it_is_called(head: str) -> None:
    """A05: a row that another column calls wrong claims nothing."""
    table = f"| step | value | {head} |\n|--|--|--|\n| t1 | 42 | {{}} |\nt2 = 42 + 5 = 47\nt3 = 47 + 5 = 52\nAnswer: 52"
    assert steps(table.format("wrong")).steps[0].verdict == "not_judged"
    assert steps(table.format("yes")).ok


@all_rows(
    "line",
    [
        *("First, we multiply the price by the quantity: {}", "Substituting x = 6 and y = 7, {}", "**Step 1:** {}"),
        *("Number of books: {}", "Then add the dogs of the farmer: {}", "## Solution\n\n{}", "After multiplying, {}"),
        *("According to the procedure, {}", "Since nobody sold a thing, {}", "{} (because Kwame has x)", "{} books"),
        *("{} (using x and y)", "{} \u2014 the product of x and y", "{}, so we go on", "Here are the steps:\n{}"),
        *("We start from the given values.\n{}", "Here are the given values:\n{}"),
        *("Let's carry out the procedure step by step.\n{}", "### Step 1: Multiply x by y\n{}", "Cost of the rent: {}"),
        *(
            "You get {}",
            "\u25b8 {}",
            "\U0001f4ca Results\n{}",
            "```python\n{}\n```",
            "Adding her fee: {}",
            "Item 1: {}",
        ),
        *("**Schritt 1:** {}", "Zuerst berechnen wir den Wert: {}", "Daraus folgt {}", "\u00c9tape 1 : {}", "Donc {}"),
        *("Nous obtenons {}", "Paso 1: {}", "Por lo tanto, {}", "El resultado es {}", "\u6b65\u9aa41\uff1a{}"),
    ],
)
def test_words_of_grammar_and_arithmetic_are_understood(line: str) -> None:
    """The other side: what a writer says of an own step leaves it right, and so do the words of the procedure."""
    text = line.format("t1 = 6 * 7 = 42")
    assert steps(f"{text}\nt2 = 42 + 5 = 47\nt3 = 47 + 5 = 52\nAnswer: 52").ok
    described = Procedure([Step("t1", "x * y", instruction="Fee of the pupil")], inputs=["x", "y"])
    assert audit(described, {"x": 6, "y": 7}, "Pupil fee: t1 = 42\nAnswer: 42").ok
    assert audit(described, {"x": 6, "y": 7}, "Teacher fee: t1 = 42\nAnswer: 42").steps[0].verdict == "not_judged"


@all_rows("words", ["gives", "gives us", ", we get", "makes", "is"])
def test_an_operand_in_words_is_no_side_of_the_equation_behind_them(words: str) -> None:
    """A05: ``Adding 5 gives 42 + 5 = 47`` claims one equation, and not that 5 is 47."""
    second = f"Step 2: Adding 5 {words} 42 + 5 = 47"
    assert steps(f"Step 1: 6 * 7 = 42\n{second}\nStep 3: 47 + 5 = 52\nAnswer: 52").ok
    wrong = steps(f"Step 1: 6 * 7 = 42\n{second.replace('42 + 5', '42 + 6')}\nStep 3: 47 + 5 = 52\nAnswer: 52")
    assert wrong.steps[1].verdict == "wrong"


@all_rows(
    "line",
    [
        *(
            "t3 = 52!",
            "t3 = 47 + 5 = 52!",
            "t3' = 52",
            "\u274c t3 = 52",
            "old t3 = 52",
            "unlike t3 = 52",
            "t3 = 52 vs. mine 53",
        ),
        *("t3 = 52 on paper, 53 in fact", "t3 = 52, nearly", "t3 = 52, at most", "t3 = 52\n\u00d710", "t3 = 52\n  + 1"),
        *("If x were 6, t3 = 52", "t3 = 52 for the sake of argument", "According to Bob, the t3 = 52", "t3 = 52/day"),
        *("step,expected,mine\nt3,52,53", "step\texpected\tmine\nt3\t52\t53", "t2,47\nt3,52,000", "t3 = 52 (21 * 2)"),
        "<table><tr><th>step<th>expected<th>mine</tr><tr><td>t3<td>52<td>53</tr></table>",
    ],
)
def test_a_number_that_is_not_the_steps_own_value_is_no_right_one(line: str) -> None:
    """Exclaimed equations, primes, other columns, bounds, contrasts and lines that go on are not the step's value."""
    assert steps(f"{RIGHT[:33]}{line}").steps[2].verdict != "right"


@all_rows(
    "end",
    [
        *(
            "\u274c Answer: 52",
            "According to Bob, the answer is 52",
            "There's no way the answer is 52.",
            "No answer is 52",
        ),
        *("Answer: 52\n\nHold on, it is 53.", "Answer: 52\nPlease ignore the above.", "Answer: 52\nEDIT 53"),
        *("Answer: 52, said the teacher", "Answer: 52 according to the old manual", "The answer is 52 \U0001f914"),
        *("$\\frac{1}{\\boxed{52}}$", "$\\frac{2}{3}\\boxed{52}$"),
        *("Answer: 52\nFinal: 53", "\\boxed{52!}", "\\boxed{52} (by Bob)", "The answer is anything but 52"),
    ],
)
def test_an_answer_of_another_or_that_is_denied_is_none(end: str) -> None:
    """A denial in front, a correction below and the name of its owner leave an answer without the value."""
    assert not steps(RIGHT + end).answer_right


@all_rows(
    "text",
    [
        "step,value\nt1,42\nt2,47\nt3,52",
        "step, working, value\nt1, 6*7, 42\nt2, 42+5, 47\nt3, 47+5, 52",
        '"step";"value"\n"t1";"42"\n"t2";"47"\n"t3";"52"',
        "step\tvalue\nt1\t42\nt2\t47\nt3\t52",
        "t1 | 42\nt2 | 47\nt3 | 52",
        "|===\n|step |value\n\n|t1 |42\n|t2 |47\n|t3 |52\n|===",
        "<table><tr><th>step</th><th>value</th></tr><tr><td>t1</td><td>42</td></tr><tr><td>t2</td><td>47</td></tr>"
        '<tr><td class="v">t3</td><td>52</td></tr></table>',
        "t1 = 42 (6 times 7)\nt2 = 47 (= 42 + 5)\nt3 = 52 (47 + 5)",
    ],
)
def test_tables_of_every_notation_and_workings_in_brackets_are_read(text: str) -> None:
    """Separated values, HTML and AsciiDoc tables are rows; a working in brackets behind its value is one."""
    assert steps(f"{text}\nAnswer: 52").ok


STRANGE_BEHIND = (
    *("Bob got that, not me.", "Everyone in class disputes it.", "This was before the price change.", "Kidding!"),
    *("It was true last year.", "Please disregard.", "Off by one.", "The book has another number.", "Void.", "Is it?"),
    *(
        "Only if x had been six.",
        "That figure dates from 2019.",
        "I copied it off the board.",
        "The customer disagrees.",
    ),
    *(
        "Two digits are swapped.",
        "It is 43.",
        "Das nehme ich zur\u00fcck.",
        "Laut Buch.",
        "Stand 2019.",
        "War ein Scherz.",
    ),
    *(
        "C'est ce que dit Paul.",
        "Sauf erreur.",
        "Bif\u00e9.",
        "Eso dice Juan.",
        "Es broma.",
        "Cos\u00ec dice Marco.",
        "Forse.",
    ),
)
PLACES_BEHIND = (
    "t1 = 6 * 7 = 42. {}",
    "t1 = 42\n{}",
    "t1 = 42; {}",
    "1. 6 * 7 = 42. {}",
    "t1 = 42 ({})",
    "t1 = 42, {}",
)


@all_rows("words, place", [*product(STRANGE_BEHIND, PLACES_BEHIND)])
def test_what_follows_a_claim_is_understood_or_named(words: str, place: str) -> None:
    """A03: a sentence or a remark behind a claim that is not understood, in any language, leaves it uncounted."""
    first = steps(f"{place.format(words)}\nt2 = 42 + 5 = 47\nt3 = 47 + 5 = 52\nAnswer: 52").steps[0]
    assert first.verdict == "not_judged"
    assert not steps(f"{RIGHT}Answer: 52. {words}").answer_right_lenient


@all_rows(
    "words",
    [
        *("This is the product of x and y.", "Now we add 5 to it.", "We use it in the next step.", "No remainder."),
        *("x times y gives this.", "Both inputs were used.", "Let us call it t1.", "Check: 42 / 7 = 6.", "Great!"),
        *("She buys six boxes of seven pens.", "The farmer has 6 fields with 7 sheep.", "Janet sells 9 * 2 = 18 eggs."),
        *("That means he pays 42 - 3 = 39 dollars.", "How many sheep are left?", "I multiplied the two inputs."),
        *("Jetzt addieren wir 5.", "On ajoute ensuite 5.", "Ahora sumamos 5.", "Ora sommiamo 5.", "Moving on."),
    ],
)
def test_sentences_about_a_claim_or_something_else_leave_it(words: str) -> None:
    """A03, the other side: what is understood, and what tells of something else, changes nothing."""
    for place in ("t1 = 6 * 7 = 42. {}", "t1 = 42\n{}", "1. 6 * 7 = 42. {}"):
        text = f"{place.format(words)}\nt2 = 42 + 5 = 47\nt3 = 47 + 5 = 52\nAnswer: 52"
        assert steps(text).steps[0].verdict == "right"


@all_rows(
    "text",
    [
        *("t1 = 42 [1]\n{}\n\n[1] This value is Bob's.", "t1 = 42*\n{}\n\n* disputed", "{}\n\nStep 1 is wrong."),
        *("{}\n\nNote on step 1: this is Bob's number.", "{}\n\nt1 is disputed.", "{}\n\nNone of this is mine."),
    ],
)
def test_what_names_a_step_later_counts_against_it(text: str) -> None:
    """A03: a footnote, or words at the end that name a step or all of them, are about its claim."""
    assert steps(text.format(f"{'' if text[0] == 't' else RIGHT}Answer: 52")).steps[0].verdict != "right"


@all_rows(
    "line",
    [
        *("|t1| = 42", "|t1| is 42", "so |t1| = 42", "||t1|| = 42", "- |t1| = 42", "2 t1 = 42", "t1 = 42 mg?"),
        *("t1 = 42 dollars in total?", "t1 = 42 in dollars of 1990", "t1 = 42 at 2010 prices", "t1 = 42 in hundreds"),
        *("t1 = 42 upside down", "t1 = 42 overdrawn", "Last year t1 = 42"),
        "====  ========  ====\nstep  expected  mine\n====  ========  ====\nt1    42        41\n====  ========  ====",
        "step   Bob\n-----  ----\nt1     42",
    ],
)
def test_another_quantity_a_question_and_anothers_column_are_no_claim(line: str) -> None:
    """A04: bars and factors around a name, questions, amounts of other years, and columns of plain text."""
    assert steps(f"{line}\nt2 = 42 + 5 = 47\nt3 = 47 + 5 = 52\nAnswer: 52").steps[0].verdict != "right"


@all_rows(
    "text",
    [
        "====  =====\nstep  value\n====  =====\nt1    42\nt2    47\nt3    52\n====  =====",
        "step  work    mine\n----  ------  ----\nt1    6 * 7   42\nt2    42 + 5  47\nt3    47 + 5  52",
        "Maria earns t1 = 42\nThe farmer sells t2 = 47\nThen she pays t3 = 52",
        "The number of pens is t1 = 42\nt2 = 47\nt3 = 52",
    ],
)
def test_columns_of_plain_text_and_actors_are_read(text: str) -> None:
    """A04, the other side: tables of reStructuredText, and whose amount a value is."""
    assert steps(f"{text}\nAnswer: 52").ok


@all_rows(
    "line",
    [
        *("t1 = half of 6 * 7 = 42", "t1 = not 6 * 7 = 42", "t1 = minus 6 * 7 = 42", "t1 = twice 6 * 7 = 42"),
        *("Step 1: half of 6 * 7 = 42", "Step 1: negative 6 * 7 = 42", "t1 = if 6 * 7 = 42"),
        *("t1 = 6 * 7 = 42 couples", "t1 = 42 twins", "t1 = 42 packs of 10", "t1 = 42 in 100", "t1 = 42, 43 with tax"),
        *("Step 1: 6 * 7 = 42 last year", "Step 1: 6 * 7 = 42 allegedly", "Step 1: 6 * 7 = 42 off"),
        *("t1 = 6! * 7 = 42", "t1 = 6 \\ 7 = 42", "t1 = 42 (21 * 3)"),
        *("t1 (2019) = 42", "t1 [2019] = 42", "t1 (100) = 42", "t1 (x 1000) = 42", "t1 (base 8) = 42"),
    ],
)
def test_words_within_a_claim_and_numbers_beside_it_are_understood_or_refuse_it(line: str) -> None:
    """A04: in front of the working, as the unit, in brackets behind the name, and behind a numbered line alike."""
    assert steps(f"{line}\nt2 = 42 + 5 = 47\nt3 = 47 + 5 = 52\nAnswer: 52").steps[0].verdict != "right"


@all_rows(
    "behind",
    [
        *(
            "A second run gave 59.",
            "I got 59 the second time.",
            "52 -> 59",
            "Check: 47 + 5 = 59",
            "It is for 9 people.",
        ),
        *("She adds 7 and gets 59.", "Next subtract 5, giving 47.", "Then multiply it by 2 to get 104."),
        *("The final answer is fifty-nine.", "Add 1 to it.", "Multiply it by 100 for cents.", "This is for x = 8."),
    ],
)
def test_another_number_behind_the_last_answer_takes_it_back(behind: str) -> None:
    """A03: only numbers that stand in front of it, and counts of steps, are understood there."""
    found = steps(f"{RIGHT}Answer: 52\n{behind}")
    assert found.answer is None or found.answer.value is None
    for usual in (
        "Check: 47 + 5 = 52",
        "She adds 47 and 5 and gets 52.",
        "All 3 steps are done.",
        "The final answer is fifty-two.",
    ):
        assert steps(f"{RIGHT}Answer: 52\n{usual}").ok


FRONTS = (
    *("The teacher marked", "Bob computed", "A common mistake gives", "We reject", "We rule out", "Ruling out"),
    *("As opposed to", "It differs from", "It exceeds", "It is just under", "Add one to", "No one obtains"),
    *("My first attempt gave", "It used to be", "Last year it was", "The given answer", "I am asked to verify"),
    *("What is", "The result was once", "Up to", "Around"),
    *("Angeblich", "Laut Bob", "Statt", "W\u00e4re x 6, so", "Selon Bob,", "Au lieu de", "On pourrait croire"),
    *("Seg\u00fan Bob,", "En vez de", "Quiz\u00e1s", "Secondo Bob,", "Invece di", "Forse", "Volgens Bob", "Em vez de"),
)


@all_rows("front", FRONTS)
def test_prose_in_front_of_a_box_or_a_numbered_step_is_understood_or_named(front: str) -> None:
    """A02, A03: a box, or a number in front of a line, makes no other's claim the writer's own."""
    for box in ("\\boxed{52}", "$\\boxed{52}$.", "$$\\boxed{52}$$"):
        assert not steps(f"{RIGHT}{front} {box}").answer_right
    numbered = steps(f"1. {front} 6 * 7 = 42\n2. 42 + 5 = 47\n3. 47 + 5 = 52\nAnswer: 52")
    assert numbered.steps[0].verdict != "right"


@all_rows(
    "front",
    [
        "Thus we get",
        "You end up with",
        "This leaves us with",
        "So she has",
        "The farmer sells",
        "In total, the shop pays",
        "Your total",
        "Quindi",
    ],
)
def test_prose_of_the_writers_own_leaves_a_box_and_a_numbered_step(front: str) -> None:
    """A02, the other side: actors, owners and words of conclusion."""
    assert steps(f"{RIGHT}{front} $\\boxed{{52}}$.").answer_right
    assert steps(f"1. {front} 6 * 7 = 42\n2. 42 + 5 = 47\n3. 47 + 5 = 52\nAnswer: 52").steps[0].verdict == "right"


@all_rows("front", ["For x = 7,", "With y = 8,", "Given y = 8,", "Make sure", "I hope", "I first wrote that"])
def test_an_answer_for_other_inputs_or_that_is_only_hoped_for_is_none(front: str) -> None:
    """A03: the inputs that stand in front of an answer are those that were given, or it answers something else."""
    assert not steps(f"{RIGHT}{front} the answer is 52.").answer_right
    assert steps(f"{RIGHT}With x = 6, the answer is 52.").answer_right


@all_rows("head", ["working", "calculation", "sum"])
def test_a_column_of_workings_is_judged_beside_its_values(head: str) -> None:
    """A05, the other side: a number under such a head is what was worked out, and no quantity."""
    table = f"| step | {head} | value |\n|---|---|---|\n| t1 | 41 | 42 |\n| t2 | 47 | 47 |\n| t3 | 52 | 52 |"
    assert [each.verdict for each in steps(table).steps] == ["wrong", "right", "right"]


@all_rows("announced", ["We will use t1.", "I have not computed t1."])
def test_a_line_that_names_a_step_without_a_number_hides_no_finding(announced: str) -> None:
    """A01: the figure in the name of a step is no value that cannot be read."""
    found = steps(f"{announced}\nt2 = 99\nt3 = 104\nAnswer: 104")
    assert {"missing_step", "wrong_value"} <= {finding.kind for finding in found.findings}


@all_rows("unread", ["t2 = forty-eight or so", "t2 = 4 8", "t2 = 48 (according to Bob)"])
def test_what_rests_on_a_value_that_cannot_be_read_is_not_blamed(unread: str) -> None:
    """A01: the next step is judged by its own working, or not at all."""
    found = steps(f"t1 = 42\n{unread}\nt3 = 53\nAnswer: 53")
    assert [each.verdict for each in found.steps] == ["right", "not_judged", "not_judged"]
    assert "rests on t2" in found.steps[2].reason
    assert steps(f"t1 = 42\n{unread}\nt3 = 47 + 5 = 53\nAnswer: 53").steps[2].verdict == "wrong"


@all_rows("beside", [
    *(("note", words) for words in ("This is wrong.", "not sure", "Multiply x and y. It should be 41.")),
    *(("error", said) for said in ("wrong operand", True)), ("status", "incorrect"), ("correction", "41"), ("edit", 41),
    ("correct", False),
])  # fmt: skip
def test_what_stands_beside_a_value_of_json_may_take_it_back(beside: tuple[str, object]) -> None:
    """A claim of a list of steps counts where no other key of its object denies, doubts or corrects it."""
    claims = [("t1", "6 * 7", 42), ("t2", "42 + 5", 47), ("t3", "47 + 5", 52)]
    rows: list[dict[str, object]] = [{"step": name, "work": work, "value": value} for name, work, value in claims]
    usual = {"error": None, "correct": True, "note": "Multiply the previous result.", "operation": "multiply"}
    assert steps(json.dumps([rows[0] | usual, *rows[1:]])).steps[0].verdict == "right"
    assert steps(json.dumps([rows[0] | dict([beside]), *rows[1:]])).steps[0].verdict == "not_judged"


@all_rows("work, verdict", [("(6)(7)", "right"), ("(6) (7)", "right"), ("(6)(8)", "wrong")])
def test_numbers_in_brackets_side_by_side_are_a_product(work: str, verdict: str) -> None:
    """A working is judged in the notation of mathematics, too."""
    assert steps(f"t1 = {work} = 42\nt2 = 42 + 5 = 47\nt3 = 47 + 5 = 52\nAnswer: 52").steps[0].verdict == verdict


@all_rows("answer", ["52 Tausend", "52,5", "52 mil", "52 or 53"])
def test_an_answer_in_a_sentence_that_cannot_be_read_is_not_that_of_its_step(answer: str) -> None:
    """Another number than the step's may stand there: read strictly or leniently, it is no right answer."""
    found = steps(f"{RIGHT}The answer is {answer}.")
    assert (found.answer_right, found.answer_right_lenient) == (False, False)
