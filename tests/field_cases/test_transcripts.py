"""Transcripts that were read otherwise than a careful reader reads them."""

from __future__ import annotations

from itertools import product

import pytest
from tables import all_rows

from stepguard import Procedure, audit
from stepguard.auditing import Audit

pytestmark = pytest.mark.once

INVOICE = Procedure.parse("inputs: net, rate: percent\ntax: money(USD) = net * rate\ntotal: money(USD) = net + tax")
INVOICED = {"net": "74.70", "rate": "8.25%"}
STEPS = Procedure.parse("inputs: x, y\nt1 = x * y\nt2 = t1 + 5\nt3 = t2 + 5")
RIGHT = "t1 = 6 * 7 = 42\nt2 = 42 + 5 = 47\nt3 = 47 + 5 = 52\n"
QUOTIENT = Procedure.parse("inputs: x, y\nt1 = x - y\nt2 = t1 / 3")


def invoice(text: str) -> Audit:
    return audit(INVOICE, INVOICED, text)


def steps(text: str) -> Audit:
    return audit(STEPS, {"x": 6, "y": 7}, text)


@all_rows(
    "label",
    [
        *("Tax (8.25%):", "Tax 8.25%:", "Tax @ 8.25%:"),
        *("Tax at 8.25%:", "8.25% tax:", "Tax [8.25%]:", "Tax (8.25 %) ="),
        *("Tax (8.25% of 74.70):", "Tax (USD):", "**Tax (8.25%):**"),
        *("**Tax** (8.25%):", "- Tax (8.25%):", "tax(8.25%) ="),
        *("Tax (8.25%) is", "The tax (8.25%) is", "Tax (8.25\\%):", "Tax ($74.70 × 8.25%) =", "1. Tax (8.25%):"),
        *("Tax - 8.25%:", "| Tax (8.25%) |", "Step 1: Tax (8.25%):", "Tax (rate 8.25%):"),
        *("Tax at 8.25 percent:", "| Tax | 8.25% |", "tax | 8.25% |", "| Of | Rate | USD |\n|-|-|-|\n| Tax | 8.25% |"),
    ],
)  # fmt: skip
def test_an_amount_in_a_label_belongs_to_the_label(label: str) -> None:
    """A slip under a label with a percentage is named there, and what follows from it is inherited."""
    cell = " |" if label[-1] == "|" else ""
    found = invoice(f"{label} 6.26{cell}\nTotal: 80.96\nAnswer: 80.96")
    assert [(each.verdict, each.kind) for each in found.steps] == [("wrong", "wrong_value"), ("wrong", "inherited")]
    assert found.first_error is not None
    assert found.first_error.step == "tax"
    assert invoice(f"{label} 6.16{cell}\nTotal: 80.86\nAnswer: 80.86").ok


@all_rows("line", ["The tax (8.25%) comes to $6.26.", "Tax [8.25%] - 6.26", "Sales tax (at 8.25%) : 6.26"])
def test_a_sum_is_not_blamed_for_a_step_in_a_line_that_cannot_be_read(line: str) -> None:
    """Such a step is neither missing nor right, and what follows from it no slip of its own."""
    found = invoice(f"{line}\nTotal: 80.96\nAnswer: 80.96")
    assert [each.verdict for each in found.steps] == ["not_judged", "not_judged"]
    assert invoice("We tax nothing.\nTotal: 80.96\nAnswer: 80.96").steps[0].verdict == "missing"


def test_quantities_and_prices_in_columns_of_their_own_are_no_working() -> None:
    """A row of an invoice is right by its amount."""
    table = "| Item | Qty | Each | USD |\n|-|-|-|-|\n| t1 | 7 | 6.00 | 42 |\n| t2 | 1 | 5 | 47 |\n| t3 | 1 | 5 | 52 |"
    assert steps(f"{table}\nAnswer: 52").ok
    assert steps(f"{table.replace('42', '43')}\nAnswer: 52").steps[0].kind == "wrong_value"


@pytest.mark.parametrize(
    "label", ["Tax (expected 8.25%):", "Tax (should be 6.26):", "Tax (not 8.25%):", "Tax (if 8.25%):"]
)
def test_a_label_that_doubts_is_no_claim(label: str) -> None:
    """A remark in a label that denies or supposes leaves the step without a value."""
    assert invoice(f"{label} 6.16\nTotal: 80.86\nAnswer: 80.86").steps[0].verdict != "right"


BEFORE = (
    *("-", "−", "2 \\cdot ", "1", "0.", "\\text{not }", "not ", "minus ", "I doubt ", "\\neg ", "less than "),
    "\\sqrt",
)
BEHIND = (
    "\\times 10^{3}", "%", "\\%", " thousand", "/2", "^2", " + 1", ".5", "5", "e3", " is wrong", "?",
    "\\text{ million}", "\\ldots", " \\pm 1", ", no, 53", "\n000", " (wrong)",
)  # fmt: skip


ENDS = [f"{each}\\boxed{{52}}" for each in BEFORE] + [f"\\boxed{{52}}{each}" for each in BEHIND]


@all_rows("end, around", [*product(ENDS, ("{}", "$ {} $", "The answer is {}"))])
def test_a_box_is_read_with_what_stands_around_it(end: str, around: str) -> None:
    """A sign, a factor, digits, a scale or a denial beside a box belong to what it says."""
    found = steps(RIGHT + around.replace("{}", end))
    assert not found.answer_right
    assert not found.answer_right_lenient


@pytest.mark.parametrize(
    "end",
    [
        *("$-\\boxed{52}$", "\\boxed{52}\\times 10^{3}", "\\boxed{53} instead of \\boxed{52}"),
        *("The answer is not \\boxed{52} but 53", "\\frac{\\boxed{52}}{2}", "\\cancel{\\boxed{52}}", "~~\\boxed{52}~~"),
    ],
    ids=lambda each: f"A02-{each}",
)
def test_a_box_that_is_denied_or_changed_is_no_answer(end: str) -> None:
    """What is denied, struck out or calculated with is not the answer."""
    assert not steps(RIGHT + end).answer_right


@all_rows(
    "end",
    [
        *(
            *("\\boxed{52}", "$\\boxed{52}$", "\\[\\boxed{52}\\]", "= \\boxed{52}.", "**\\boxed{52}**"),
            "\\boxed{52} apples",
        ),
        *("The answer is $\\boxed{52}$.", "\\boxed{52}\n\nI hope this helps.", "\\boxed{52}\\quad\\checkmark"),
        *("Answer: 52\n\nDone.", "Answer: 52\n---", "Answer: 52\nVerified.", "Answer: 52\nNo further steps."),
        *("Not 53: the answer is 52.", "It is not 53, so the answer is 52.", "Answer: 53 is wrong.\nAnswer: 52"),
        *("There is no doubt that the answer is 52.", "#### 52", "<answer>52</answer>", "Answer: ~~53~~ 52"),
        *("Die Antwort lautet 52.", "La réponse est 52.", "Respuesta: **52**", "La risposta è 52.", "Resposta: 52"),
    ],
)
def test_a_plain_answer_stays_one(end: str) -> None:
    """Markup, remarks and denials of something else leave a right answer right."""
    assert steps(RIGHT + end).answer_right


@all_rows(
    "end",
    [
        *("It is false that the answer is 52.", "Answer: 52\nEdit: it should be 53", "Answer: 52\n000"),
        *("I do not think the answer is 52.", "It would be wrong to say the answer is 52.", "The wrong answer is 52."),
        *("Suppose the answer is 52.", "The expected answer is 52.", "Nobody says the answer is 52."),
        *("Answer: 52\nNo, 53.", "Answer: 52\n(typo: 53)", "Answer: 52\nERRATUM: 53", "Answer: 52\nUpdate: 53"),
        *("Answer: 52\nI take that back.", "Answer: 52\nOn reflection it is 53.", "Answer: 52\nDisregard that: 53."),
        *("Answer: 52\nThis answer is incorrect.", "Answer: 52\nFalse.", "Answer: 52\nMy bad, 53", "Answer: 52\nNope."),
        *("Answer: 52\nMake that 53.", "Answer: 52\n.5", "Answer: 52\n thousand", "Answer: 52\n× 10", "Answer: 52\n%"),
        *("Answer: 52\nScratch that.", "~~Answer: 52~~", "Answer: 52\nshould read 53", "#### 52\n000"),
        *("I doubt that the answer is 52.", "Previous answer: 52", "Old answer: 52", "Student's answer: 52"),
        *("Example: the answer is 52", "Answer: 52\nNo: 53", "Answer: 52\n= 53", "Answer: 52\n\u2192 53"),
        *("Answer: 52\nKorrektur: 53", "Die Antwort ist nicht 52.", "La réponse est peut-être 52."),
        *("La respuesta es 52, dice Bob.", "Die falsche Antwort ist 52.", "Antwort: 52\nKorrektur: 53"),
    ],
)
def test_an_answer_that_is_denied_taken_back_or_continued_is_none(end: str) -> None:
    """Denials in front, corrections behind and digits below an answer leave it without the value."""
    found = steps(RIGHT + end)
    assert not found.answer_right
    assert not found.answer_right_lenient or "~~" in end


@all_rows(
    "line",
    [
        *("t3 = 52.\\overline{3}", "t3 = 52 with a minus sign", "Expected: t3 = 52", "t3 = 52.(3)", "t3 = 52.3\u0305"),
        *("t3 = 52 (negative)", "t3 = 52, but negative", "t3 = 52 with the sign flipped", "Reference: t3 = 52"),
        *("**Expected:** t3 = 52", "t3 (expected) = 52", "t3 = 52 (expected)", "The book says t3 = 52"),
        *("t3 = 52 minus the tax", "t3 = 52\n000", "t3 = 52\n,5"),
        *("~~t3 = 52~~", "t3 = \\cancel{52}", "t3 = 52\\frac{1}{2}"),
        *("t3 = -\\boxed{52}", "t3 = 0.\\boxed{52}", "t3 = 52½"),
        *("t3 = 52 1/2", "t3 = 52\\%", "t3 = 52...", "t3 = 52 + ∞"),
        *("Erwartet: t3 = 52", "Musterl\u00f6sung: t3 = 52", "Attendu : t3 = 52", "Falsch: t3 = 52", "nicht t3 = 52"),
        *("t3 = 52 ist falsch", "t3 = 52 est faux", "Tom wrote t3 = 52", "Old: t3 = 52", "t3 = 53 = 52"),
    ],
)  # fmt: skip
def test_what_is_not_the_transcripts_own_value_is_not_right(line: str) -> None:
    """Digits that repeat, words that change a sign, and what is another's or struck out are no right value."""
    assert steps(f"t1 = 6 * 7 = 42\nt2 = 42 + 5 = 47\n{line}\nAnswer: 52").steps[2].verdict != "right"


TRUTHS = Procedure.parse("inputs: x, y\nt1: boolean = x < y\nt2: boolean = x > y")


@pytest.mark.parametrize(
    "text",
    [
        *("t1: true\nt2: false\nAnswer: false", "t1 = true.\nt2 = false.\nThe answer is false."),
        "It should be noted: t1 = 6 < 7 = true\nt2 = 6 > 7 = false\nAnswer:\nFalse",
    ],
)
def test_a_truth_value_takes_nothing_back(text: str) -> None:
    """False is a value where one is asked for, and no denial of what stands before it."""
    assert audit(TRUTHS, {"x": 6, "y": 7}, text).ok


OWN = ("mine", "my value", "result", "got", "computed", "actual")
OTHERS = ("expected", "correct value", "should be", "reference", "answer key", "check", "verification", "ground truth")


CORRECTED = (("result", "correct value"), ("result", "should be"))


@all_rows("own, other, swapped", [
    row for row in product(OWN, OTHERS, (False, True)) if row[:2] not in CORRECTED
])  # fmt: skip
def test_columns_of_others_are_not_the_transcripts_own(own: str, other: str, swapped: bool) -> None:
    """A table is read by its own column, wherever one with expected values or checks stands."""

    def table(mine: list[str], others: list[str]) -> str:
        columns = [others, mine] if swapped else [mine, others]
        heads = [other, own] if swapped else [own, other]
        rows = [f"| step | {' | '.join(heads)} |", "|---|---|---|"]
        names = ("t1", "t2", "t3")
        rows += [f"| {name} | {' | '.join(cells)} |" for name, *cells in zip(names, *columns, strict=True)]
        return "\n".join([*rows, "Answer: 52"])

    checks = ["42 / 7 = 6", "47 - 5 = 42", "52 - 5 = 47"]
    assert steps(table(["42", "47", "53"], ["42", "47", "52"])).steps[2].verdict == "wrong"
    assert steps(table(["42", "47", "52"], ["42", "47", "53"])).ok
    assert steps(table(["6 * 7 = 42", "42 + 5 = 47", "47 + 5 = 52"], checks)).ok


@pytest.mark.parametrize(
    "check", ["(check: {})", "({})", "✓ ({})", "| {}", ", check {}", "\n  check: {}", "\nVerification: {}"]
)
@pytest.mark.parametrize("label", ["t{} = ", "{}. ", "Step {}: "])
def test_checks_beside_right_steps_are_no_steps(check: str, label: str) -> None:
    """An equation that only checks a step leaves its value."""
    works = (("6 * 7 = 42", "42 / 7 = 6"), ("42 + 5 = 47", "47 - 5 = 42"), ("47 + 5 = 52", "52 - 5 = 47"))
    lines = [f"{label.format(at)}{work} {check.format(other)}" for at, (work, other) in enumerate(works, 1)]
    found = steps("\n".join([*lines, "Answer: 52"]))
    assert [each.verdict for each in found.steps if each.verdict != "not_judged"] == ["right"] * 3


@pytest.mark.parametrize(
    ("written", "verdict"),
    [
        *(("−19/3 ≈ −6.33", "right"), ("-19 / 3 = −19/3 ≈ −6.33", "right"), ("\\frac{-19}{3} \\approx -6.33", "right")),
        *(("-\\frac{19}{3} \\approx -6.333", "right"), ("−19/3 (≈ −6.33)", "right"), ("−6⅓ ≈ −6.33", "right")),
        *(("−19/3 ≈ −6.34", "wrong"), ("−17/3 ≈ −5.67", "wrong"), ("≈ −6.33", "wrong"), ("−19/3 = −6.33", "wrong")),
    ],
    ids=lambda each: f"A05-{each}",
)
def test_an_exact_value_may_be_approximated_behind_it(written: str, verdict: str) -> None:
    """Where an exact number is asked for, the fraction counts and not the decimal that approximates it."""
    assert audit(QUOTIENT, {"x": 1, "y": 20}, f"t1 = -19\nt2 = {written}").steps[1].verdict == verdict


@all_rows(
    "text, step",
    [
        ("~~tax = 6.26~~\ntax = 6.16\ntotal = 80.86", "tax"),
        ("tax = 6.16\n~~total = 80.96~~\ntotal = 80.86", "total"),
        ("Net: 74.70\n~~Tax (8.25%): 6.26~~\nTax (8.25%): 6.16\nTotal: 80.86", "tax"),
        ("tax = ~~6.26~~ 6.16\ntotal = 80.86", "tax"),
        ("<del>tax = 6.26</del>\ntax = 6.16\ntotal = 80.86", "tax"),
        ("tax = 6.16\n- ~~total = 80.96~~\n- total = 80.86", "total"),
    ],
)
def test_a_struck_line_corrects_the_step_that_it_names(text: str, step: str) -> None:
    """What is struck out is no claim, and is a correction of the step that stands in it."""
    found = invoice(f"{text}\nAnswer: 80.86")
    assert [each.verdict for each in found.steps] == ["right", "right"]
    assert [(each.kind, each.step) for each in found.findings] == [("self_correction", step)]


@all_rows("denial", ["No.", "Nope!", "Wrong.", "That's wrong.", "Nein.", "Das ist falsch.", "Incorrect."])
def test_a_sentence_that_only_denies_takes_back_the_claim_before_it(denial: str) -> None:
    """A03: a step whose value the next sentence denies is not right; a remark of another kind changes nothing."""
    assert steps(RIGHT.replace("= 42\n", f"= 42. {denial}\n")).steps[0].verdict != "right"
    assert steps(RIGHT.replace("= 42\n", "= 42. No remainder.\n")).steps[0].verdict == "right"


SOURCES = (
    *("the book", "a textbook", "the answer key", "my teacher", "the internet", "Wikipedia", "the solution manual"),
    *("Tom's notes", "the hint"),
)
REMARKS = (
    *(
        " (from {})",
        " [from {}]",
        ", from {}",
        " \u2014 from {}",
        " (according to {})",
        " (copied from {})",
        " (source: {})",
    ),
    *(", as given in {}", ", says {}", " (taken from {})", " (quoted from {})"),
)
LABELS = (
    *("Hint:", "Clue:", "My guess:", "Draft:", "Book:", "Answer key:", "Your value:", "Tom's answer:"),
    "Sample solution:",
    *("Suggested:", "Placeholder:", "Template:", "From the book:", "According to the book:", "According to Tom,"),
    *("As the teacher said,", "The hint says", "Originally,", "Incorrectly,", "A wrong approach:", "Not correct:"),
    *("A common mistake is", "Option A:", "Question: is", "Is"),
)  # fmt: skip
WITHDRAWALS = (
    *(". This is false.", ". That is not true.", ". This isn't right.", ". This was wrong.", ". I was wrong."),
    ". Untrue!",
    *(". This is only a guess.", ". This value is old.", ", which is wrong", ", wrongly", " (guess)"),
    *(" (not mine)", " \u2717"),
    *("\nThis is false.", "\nNot true.", "\n42 was the old one.", "\nThe value 42 is wrong.", "\nIt is not 42."),
)  # fmt: skip


@all_rows(
    "line",
    [
        *(f"{label} {work}" for label in LABELS for work in ("t1 = 42", "t1 = 6 * 7 = 42")),
        *(f"t1 = 42{remark.format(source)}" for remark in REMARKS for source in SOURCES),
        *(f"{work}{words}" for words in WITHDRAWALS for work in ("t1 = 42", "t1 = 6 * 7 = 42", "1. 6 * 7 = 42")),
        "> t1 = 42 (from the book)",
    ],
)
def test_what_is_anothers_or_withdrawn_is_no_right_step(line: str) -> None:
    """A04: a value under a label of another, with a source behind it, or called false behind it is not claimed."""
    assert steps(f"{line}\nt2 = 42 + 5 = 47\nt3 = 47 + 5 = 52\nAnswer: 52").steps[0].verdict != "right"


@all_rows(
    "line",
    [
        *("First, t1 = 6 * 7 = 42", "Units sold: t1 = 42", "Net value: t1 = 42", "Delivery fee: t1 = 6 * 7 = 42"),
        *("t1 = 42 (from x and y)", "t1 = 42 (using the formula above)", "> t1 = 42", "t1 = 42 (correct)"),
        *("t1 = 42. This is true.", "t1 = 42. That was easy.", "t1 = 42\nThis is an integer.", "Let's see: t1 = 42"),
        *("My answer for step 1: t1 = 42", "t1 = 42 (see above)", "According to the formula, t1 = 42", "So t1 = 42"),
    ],
)
def test_words_that_leave_a_claim_the_transcripts_own(line: str) -> None:
    """A04, the other side: labels and remarks about the step itself leave it right."""
    assert steps(f"{line}\nt2 = 42 + 5 = 47\nt3 = 47 + 5 = 52\nAnswer: 52").steps[0].verdict == "right"


@all_rows(
    "end",
    [
        *("Your answer: 52", "Tom's answer: 52", "Sample answer: 52", "Initial answer: 52", "Hint: the answer is 52"),
        *("Answer: 52 (from the book)", "Answer: 52 (copied)", "Answer: 52. This is false."),
        "The book says the answer is 52.",
        *("Answer: 52\n52 was the old one.", "\\boxed{52}\n52 was the old one", "\\boxed{52} was my first guess"),
        *("Answer: 52\nIt is not 52.", "\\boxed{52}\n\n52 is outdated.", "<answer>52</answer> is wrong"),
        "Answer: 52 \u2717",
    ],
)  # fmt: skip
def test_an_answer_that_is_anothers_or_withdrawn_is_none(end: str) -> None:
    """A03: whose answer it is, and what is said of it later, decide whether it is the transcript's."""
    assert not steps(RIGHT + end).answer_right
    assert steps(f"{RIGHT}{end}\nFinal answer: 52").answer_right or "52 " in end or "not" in end


VALUES = '{"t1": 42, "t2": 47, "t3": 52}'


@all_rows(
    "text",
    [
        *(f'{{"{key}": {VALUES}}}' for key in ("expected", "reference", "hint", "answer_key", "draft", "example")),
        *(f"{words}{VALUES}" for words in ("Expected: ", "Hint:\n", "// ", "Template: ", "Not this: ", "Book: ")),
        *(f"{VALUES}\nThis is wrong.", f"```json\n{VALUES}\n```\nThat is false."),
        *(f"| step | {head} |\n|--|--|\n| t1 | 42 |" for head in ("hint", "old", "your value", "Tom's value")),
        *(f"| step | value | ok |\n|--|--|--|\n| t1 | 42 | {cell} |" for cell in ("wrong", "no", "false")),
        '{"t1": "42 (from the book)"}',
    ],
)  # fmt: skip
def test_objects_and_columns_of_another_are_no_claims(text: str) -> None:
    """A04: keys, heads, remarks and the words around an object say whose its values are."""
    assert all(each.verdict != "right" for each in steps(text).steps)


@pytest.mark.parametrize(
    "text",
    [
        *(VALUES, f"Answer:\n{VALUES}", f'{{"steps": {VALUES}}}', f'{{"values": {VALUES}}}'),
        f"```json\n{VALUES}\n```\nDone.",
        "| step | value | status |\n|--|--|--|\n| t1 | 42 | ok |\n| t2 | 47 | right |\n| t3 | 52 | |",
        "| step | value | errors |\n|--|--|--|\n| t1 | 42 | no |\n| t2 | 47 | no |\n| t3 | 52 | no |",
    ],
)  # fmt: skip
def test_own_objects_and_columns_stay_claims(text: str) -> None:
    """A04, the other side: plain objects and columns that praise leave the steps right."""
    assert [each.verdict for each in steps(text).steps] == ["right"] * 3


@all_rows("denied", ["(not {})", ", not {}", "\u2014 not {}", "(and not {})", "(not {} or 44)", "not {}."])
def test_a_number_that_is_denied_beside_a_value_leaves_it(denied: str) -> None:
    """A03: "42 (not 41)" is 42, and "42 (not 42)" is none; the same of an answer and of a box."""
    working = RIGHT.replace("t1 = 6 * 7 = 42", f"t1 = 6 * 7 = 42 {denied}")
    assert steps(f"{working.format(41)}Answer: 52").ok
    assert steps(f"{working.format(42)}Answer: 52").steps[0].verdict != "right"
    for answer in ("Answer: 52 ", "The answer is 52 ", "\\boxed{{52}} "):
        assert steps(RIGHT + (answer + denied).format(53)).answer_right_lenient
        assert not steps(RIGHT + (answer + denied).format(52)).answer_right_lenient
        assert not steps(RIGHT + (answer.replace("52", "53") + denied).format(52)).answer_right_lenient


_FILLED = r"{}: \boxed{{52}}", r"{} is $\boxed{{52}}$", r"{} \boxed{{52}}", r"**{}:** \boxed{{52}}"


@pytest.mark.parametrize("shown", _FILLED)
def test_a_box_that_another_fills_is_no_answer(shown: str) -> None:
    """A02: whose box it is, and whether it only shows how, counts like the label of an answer."""
    for whose in ("Your box", "Their final box", "Anna's box", "The box of your friend", "Theirs", "Not my box"):
        assert not steps(RIGHT + shown.format(whose)).answer_right
    for whose in ("My box", "The final box", "Your total", "The farmer's total", "So it", "Therefore the result"):
        assert steps(RIGHT + shown.format(whose)).answer_right
    for how in ("Write it as", "For example", "Put your answer in a box like", "Answer format:", "e.g."):
        assert not steps(f"{RIGHT}{how} \\boxed{{52}}").answer_right


@pytest.mark.parametrize(
    "claim",
    [
        *(
            "t1 = 42, I guess",
            "t1 = 42 as a placeholder",
            "e.g. t1 = 42",
            "For example, t1 = 42",
            "t1 = 42 (at a guess)",
        ),
        *("t1 = 42 apples minus 1", "t1 = 42 apples plus 1", "t1 = 42 as an estimate"),
    ],
)
def test_a_guess_an_example_or_a_remainder_is_no_value(claim: str) -> None:
    """A03: a value that is called a guess or an example, or calculated on in words, is not the step's."""
    assert steps(RIGHT.replace("t1 = 6 * 7 = 42", claim) + "Answer: 52").steps[0].verdict == "not_judged"


def test_two_tagged_answers_on_one_line_differ() -> None:
    """A03: the last of two answers is the answer, also where the first one stands in front of it on the line."""
    found = steps(f"{RIGHT}<answer>52</answer> <answer>53</answer>")
    assert (found.answer_right, found.answer and found.answer.value) == (False, 53)


SPEAKERS = (
    *(
        "Bob",
        "Alice",
        "**Maria**",
        "- Tom",
        "[12:03] Bob",
        "Dr. Smith",
        "Bob (intern)",
        "Agent 2",
        "Assistant B",
        "GPT-4",
    ),
    *("Claude", "@kim", "J\u00fcrgen", "Anna Lee"),
)


@all_rows("speaker", SPEAKERS)
def test_what_another_says_in_a_conversation_is_no_claim(speaker: str) -> None:
    """A line that begins with the name of a speaker says what they say, about steps and about the answer."""
    assert steps(f"{RIGHT[:33]}{speaker}: t3 = 52").steps[2].verdict != "right"
    assert not steps(f"{RIGHT}{speaker}: the answer is 52").answer_right
    assert steps(f"{speaker}: t1 = 41\n{RIGHT}Answer: 52").ok


@pytest.mark.parametrize(
    ("text", "right"),
    [
        *(("| | EUR |\n| Tax | 6.16 |", False), ("| | USD |\n| Tax | 6.16 |", True)),
        *(("| | USD thousand |\n| Tax | 6.16 |", False), ("Tax: (6.16)", False), ("Tax: 6.16/item", False)),
    ],
)
def test_the_head_of_a_column_and_brackets_belong_to_an_amount(text: str, right: bool) -> None:
    """A head in another currency or scale, accountants' brackets and rates are not the amount of the step."""
    assert (invoice(f"{text}\nTotal: 80.86\nAnswer: 80.86").steps[0].verdict == "right") is right
