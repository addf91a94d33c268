"""What models say around an answer: what rests on the talk or the task costs nothing, what speaks of it is heeded."""

from __future__ import annotations

import json
from itertools import product

from reply_harness import FORMAT, kinds, values
from tables import all_rows

from stepguard import Guard, Procedure
from stepguard.backends.base import Completion
from stepguard.procedure.steps import Step
from stepguard.replies.reading import Reading, read_reply
from stepguard.testing import ScriptedBackend

LETTER = "Invoice 4711 from Hansen Logistik GmbH\nNet 1,250.00 EUR\nPlease pay within 30 days."
PROVED = [Step("goods", "price * quantity"), Step("total", "goods + shipping")]
GOODS = {"goods": "12 * 7 = 84", "total": "84 + 5 = 89"}
ORDER = {"price": 12, "quantity": 7, "shipping": 5}
COPIED = [
    Step("net", instruction="Copy the net amount.", reads=["letter"], type="money(EUR)"),
    Step("decision", instruction="Decide: approve or decline.", reads=["letter"], type="one_of(approve, decline)"),
]
INVOICE = {"net": {"work": "Net 1,250.00 EUR", "value": "1250.00"}, "decision": {"work": "", "value": "approve"}}


def order(front: str = "", behind: str = "", entry: dict[str, object] | None = None) -> Reading:
    text = f"{front}\n{json.dumps({**GOODS, **(entry or {})})}\n\n{behind}"
    return read_reply(Completion(text), PROVED, FORMAT, ORDER)


def invoice(front: str = "", behind: str = "", entry: dict[str, object] | None = None) -> Reading:
    text = f"{front}\n{json.dumps({**INVOICE, **(entry or {})})}\n\n{behind}"
    return read_reply(Completion(text), COPIED, FORMAT, {"letter": LETTER})


COURTESIES = (
    "Let me know if you'd like me to walk through any of the calculations!",
    "Please don't hesitate to reach out if you need further assistance.",
    "If you want, I can also show how the figures would look on a payslip.",
    "Would you like me to compute anything else for this order?",
    "Thanks for sharing the document!",
    "Have a wonderful day!",
    "Happy calculating!",
    "I hope that's useful.",
    "Best wishes!",
    "Sag mir gern Bescheid, wenn du noch Fragen hast.",
    "Ich hoffe, das hilft dir weiter!",
    "N'hésitez pas à me contacter si vous avez d'autres questions.",
    "J'espère que cela vous aide.",
    "Si necesitas algo más, no dudes en preguntar.",
    "Espero que te sea útil.",
)
ALTERING = (
    *("wrong", "mistake", "real", "guess", "instead", "placeholder", "thousand", "negative", "actually", "joke"),
    *("estimate", "another", "old", "pretend", "not", "Fehler", "Scherz", "erreur", "fictif", "broma", "miles"),
)


@all_rows("sentence", COURTESIES)
def test_what_is_said_to_the_reader_is_nothing_of_an_answer(sentence: str) -> None:
    """Thanks, wishes and offers may use any words, behind what is proved and behind what is not."""
    assert values(order(behind=sentence)) == ["84", "89"]
    assert values(invoice(behind=sentence)) == ["1250.00", "approve"]


def test_a_word_that_alters_is_heeded_in_whatever_it_is_said() -> None:
    """An offer that speaks of a mistake, a guess, a scale or a joke is no mere offer, in four languages."""
    for sentence, word in product(COURTESIES, ALTERING):
        said = f"{sentence[:-1]}, {word}{sentence[-1]}"
        for reading in (order(behind=said), invoice(behind=said)):
            assert kinds(reading) == [("self_correction", None)], said


@all_rows(
    "front, behind",
    [
        ("Hello! I've worked through the procedure using the inputs you gave me. Please find the result below.", ""),
        ("", "First, the price is multiplied by the quantity. The warehouse then sends the parcel for 5."),
        ("Zuerst multiplizieren wir den Preis mit der Menge, danach addieren wir die Versandkosten.", ""),
        ("D'accord, procédons étape par étape :", ""),
        ("Let me start by restating the task: given a price and a quantity, find the total.", ""),
        ("", "The keys appear in the order in which the steps were listed."),
        ("You can copy the JSON straight into your application:", ""),
    ],
)
def test_words_that_neither_alter_nor_point_do_no_harm_beside_what_is_proved(front: str, behind: str) -> None:
    """How the work was done, and what the things are that are counted, makes no proved value another one."""
    assert values(order(front, behind)) == ["84", "89"]


TOLD = (
    *("Sloane packs 12 * 7 = 84 lamps for the shop.", "Each lamp costs $12, so Ned spends $12 x 7 = $84 on them."),
    *("That makes 84 + 5 = 89 miles on Monday.", "Er zahlt also 12 \u00d7 7 = 84 Euro f\u00fcr die Lampen."),
)
ANSWERING = (
    *("deny", "reject", "guess", "invented", "wrongly write", "denied", "disputed", "refute"),
    *("allege", "wrote", "made up", "doubt", "overrule", "jokingly write", "thousand times", "hallucinated ~"),
)


def test_a_sentence_that_works_a_proved_value_out_again_may_tell_of_anything() -> None:
    """Who pays what for which things is nothing against a value that a sentence works out as it was proved."""
    for sentence in TOLD:
        assert values(order(front=sentence)) == ["84", "89"], sentence
        assert values(order(behind=sentence)) == ["84", "89"], sentence


def test_a_sentence_that_works_a_value_out_and_disowns_it_is_heeded() -> None:
    """Whoever denies, doubts, passes on or scales the calculation that is proved does not answer with it."""
    for word in ANSWERING:
        said = f"The clerks {word} 12 * 7 = 84 there."
        for reading in (order(front=said), order(behind=said)):
            assert kinds(reading) == [("self_correction", None)], said


@all_rows("said", ["12 + 7 = 84", "In all 12 * 7 = 85 lamps.", "It costs 84 + 5 = 98 then.", "84 + 5 = -89."])
def test_a_false_equation_about_an_answer_is_heeded(said: str) -> None:
    """Another result for the working of an answer, or another working for its result, contradicts it."""
    for reading in (order(front=said), order(behind=said)):
        assert kinds(reading) == [("self_correction", None)]


@all_rows(
    "front, behind",
    [
        ("", "The invoice was sent by Hansen Logistik GmbH."),
        ("", "The letter also mentions the 30 days, which weren't requested."),
        ("I searched the letter for the sender's name and the line that begins with Net.", ""),
        ("Thanks for sharing the invoice! I have copied the net amount.", ""),
        ("", "The net amount should be approved."),
        ("Sure, here's the extracted data in JSON format:", ""),
    ],
)
def test_words_of_the_task_and_of_its_documents_are_understood(front: str, behind: str) -> None:
    """What only tells of the work, or what the letter says, is no remark on a value that was copied from it."""
    assert values(invoice(front, behind)) == ["1250.00", "approve"]


@all_rows(
    "words",
    [
        *("The letter is a forgery.", "Somebody changed the letter.", "These are the values of the logistics."),
        *("The invoice comes from Hansen Spedition.", "I pulled the net out of a hat.", "The net is in crowns."),
        *("Decision: decline", "I would decline it.", "The claim was declined.", "A careless clerk would write this."),
        *("In yen.", "Net of what?", "It is in another currency.", "The clerk writes this.", "Values in k EUR."),
        *("The sender disputes the amount.", "Das ist nicht meine Meinung.", "Ce sont des exemples."),
    ],
)
def test_what_speaks_of_an_answer_is_heeded(words: str) -> None:
    """What points at a value, chooses another option or says what a document is has to be understood as a whole."""
    assert kinds(invoice(behind=words)) == [("self_correction", None)]
    assert kinds(invoice(front=words)) == [("self_correction", None)]


@all_rows("entry", [
    *({"legend": said} for said in ("values in k EUR", "in thousands", "amounts in cents")), {"sign": "-"},
    *({key: "89"} for key in ("total%", "-total", "total*10", "1/total", "~total", "total\u00b2", "ex-total")),
    *({key: 10} for key in ("factor", "multiplied_by", "exponent", "offset", "tolerance", "adjustment", "total_min")),
    *({key: True} for key in ("total_is_negative", "placeholder", "simulated", "approximate", "deprecated")),
    *({key: ["total"]} for key in ("withdrawn", "uncertain", "negate")), {"all": "estimates"}, {"prefix": "-"},
    {"footnote": "the total was rounded down from 89.6"}, {"then": "subtract 5"}, {"result": "invalid"},
    {"confidence": "none, I guessed"}, {"conditional_on": "proof of payment"}, {"for": "another order"},
])  # fmt: skip
def test_a_key_that_changes_a_value_is_heeded_beside_what_is_proved(entry: dict[str, object]) -> None:
    """A sign, a scale, a doubt, another use or a withdrawal costs another call, under whatever key it stands."""
    assert kinds(order(entry=entry)) == [("self_correction", None)]


@all_rows("entry", [
    {"explanation": "Price times quantity, plus shipping."}, {"status": "completed"}, {"model": "gpt-4o"}, {"id": 7},
    {"message": "Here you go! Let me know if you need anything else."}, {"thoughts": "Simple multiplication."},
    {"reasoning": ["12 * 7 = 84", "84 + 5 = 89"]}, {"sign": "+"}, {"check": "89 - 5 = 84"}, {"title": "Order"},
    {"total_explanation": "goods plus shipping"}, {"work": "12 * 7 = 84; 84 + 5 = 89"}, {"verified": True},
])  # fmt: skip
def test_a_key_that_explains_a_value_is_surplus(entry: dict[str, object]) -> None:
    """The other side: explanations, messages and checks of a proved answer cost nothing."""
    assert [kind for kind, _ in kinds(order(entry=entry))] == ["extra_step"]
    assert values(order(entry=entry)) == ["84", "89"]


@all_rows("entry", [{"final_decision": "decline"}, {"override": "decline"}, {"decision_note": "decline"}])
def test_another_option_is_another_answer(entry: dict[str, object]) -> None:
    """What a step might have chosen, and did not, stands under no key of a reply."""
    assert kinds(invoice(entry=entry)) == [("self_correction", None)]
    assert values(invoice(entry={"sender": "Hansen Logistik GmbH"})) == ["1250.00", "approve"]


SUM = Procedure.parse("inputs: spent\nleft: decimal(2) = 500 - spent")
SHARE = Procedure.parse("inputs: total\nshare: decimal(2) = total / 3")


def verified(procedure: Procedure, entry: str, **inputs: str) -> bool:
    reply = ScriptedBackend({procedure.steps[0].id: entry})
    return Guard(reply, repair=0).run(procedure, inputs).status == "verified"


@all_rows(
    "procedure, entry, proved",
    [
        *((SUM, entry, True) for entry in (
            "So, 500 - 140 = 360", "Let me compute: 500 - 140 = 360", "The result is 500 - 140 = 360",
            "500 - 140 = 360 units", "500 - 140 = 360 items.", "500 - 140 = 360 left", "500 - 140 == 360",
        )),
        *((SUM, entry, False) for entry in (
            "Let me recompute: 500 - 140 = 360", "I doubt that 500 - 140 = 360", "is 500 - 140 = 360",
            "not: 500 - 140 = 360", "I decide 500 - 140 = 360", "The spent is 500 - 140 = 360",
            "500 - 140 = 360 dozen", "500 - 140 = 360 k units", "500 - 140 = 360 units short",
            "500 - 140 == 360 == 361", "500 - 140 != 360", "500 - 140 = 350, rounded to 360",
            "500 - 140 = 360 overdrawn",
        )),
        *((SHARE, entry, True) for entry in (
            "10 / 3 = 3.333, rounded to 3.33", "10 / 3 = 3.3333 which rounds to 3.33",
            "10 / 3 = 3.333..., rounded to 3.33",
        )),
        *((SHARE, entry, False) for entry in (
            "10 / 3 = 3.334, rounded to 3.33", "10 / 3 = 3.3, rounded to 3.33", "10 / 3 = 3.333, rounded to 3.34",
            "10 / 3 = 3.333, not rounded to 3.33", "10 / 3 = 3.333, rounded to 3.34, or 3.33",
        )),
    ],
)  # fmt: skip
def test_an_entry_says_its_equation_and_no_more(procedure: Procedure, entry: str, *, proved: bool) -> None:
    """What leads to an equation, what is counted and how it is rounded is read; whatever else is refused."""
    inputs = {"spent": "140"} if procedure is SUM else {"total": "10"}
    assert verified(procedure, entry, **inputs) is proved


@all_rows("said, taken", [("two", True), ("2", True), ("3", False), ("one", False)])
def test_how_a_value_was_rounded_is_read_as_the_step_declares_it(said: str, *, taken: bool) -> None:
    """Another number of decimals than the step's is another value."""
    reply = f'{{"share": "10 / 3 = 3.33"}}\n\nNote: the result was rounded to {said} decimal places.'
    status = Guard(ScriptedBackend(reply), repair=0).run(SHARE, {"total": "10"}).status
    assert (status == "verified") is taken
