"""What an audit reads as a value, as a claim and as JSON, and what it leaves unread."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tables import all_rows

from stepguard import Procedure, audit
from stepguard.auditing import Audit, false_links

pytestmark = pytest.mark.once

PROCEDURE = Procedure.parse("inputs: x, y\nt1 = x + y\nt2 = t1 * 3")
INPUTS = {"x": 12, "y": 7}
REST = "t2 = 19 * 3 = 57\nAnswer: 57"

MONEY = Procedure.parse("inputs: x, y\nt1: money(USD) = x * y")
SHARE = Procedure.parse("inputs: x, y\nt1: percent = x / y")
QUOTIENT = Procedure.parse("inputs: x, y\nt1 = x / y")
TRUTH = Procedure.parse("inputs: x, y\nt1: boolean = x > y")
NAMED = Procedure.parse("inputs: unit_price, quantity\nsub_total = unit_price * quantity")


def audited(first: str) -> Audit:
    return audit(PROCEDURE, INPUTS, f"{first}\n{REST}")


def verdict(procedure: Procedure, inputs: Mapping[str, object], text: str) -> str:
    return audit(procedure, inputs, text).steps[0].verdict


@all_rows(
    "written",
    [
        *("19_000", "19'000", "19\u2019000", "19_k", "19''6", "19!!", "19!2"),
        *("19 lakh", "19 crore", "19 grand", "19 Mio.", "19 Mrd", "19 Millionen", "19 Tausend", "19 mil"),
        *("19 hundredths", "19 eighths", "19 twentieths", "19 thousandths", "19 tens", "19 zeros", "19 basis points"),
        *("19 negative", "19 (negative)", "19 doubled", "19 halved", "19 promille", "19 below zero", "19 short of 38"),
        *("19 * k", "19*half", "19* rate", "19 * ten", "19 R2", "19 i", "19/half"),
        *("19 => 20", "19, no, 20", "19, or maybe 20", "19 (should be 20)", "19; 20", "19, i.e. 20"),
        *("19!", "19?", "19 apples?", "19 = 20 thousand", "19 apples = 20 apples", "19, which is wrong", "19 is wrong"),
        *("19 apples + 1", "19 -> 20 lakh", "19. No, 20", "19. Make that 20."),
    ],
)
def test_what_goes_on_behind_a_value_makes_it_none(written: str) -> None:
    """A number that is grouped, scaled, calculated with, asked about or replaced behind it is not the step's value."""
    found = audited(f"t1 = 12 + 7 = {written}")
    assert found.steps[0].verdict == "not_judged"
    assert not found.ok


@all_rows(
    "written",
    [
        *("19", "19.", "**19**", "*19* apples", "_19_", "'19'", "19 \u2713", "19 apples in total", "19 points"),
        *("19 m2", "19 km/h", "19 (done)", "19, which leaves room", "19. 2 more steps follow", "19; done"),
        *("12 apples + 7 apples = 19 apples", "1.9e1", "1.9 \u00d7 10^1", "1.9 \\times 10^{1}", "1.9\u00d710\u00b9"),
    ],
)
def test_what_only_surrounds_a_value_leaves_it(written: str) -> None:
    """Markup, units, remarks and the sentence that goes on change nothing."""
    assert audited(f"t1 = {written}").ok


@all_rows("word", [
    *("wrong", "false", "incorrect", "allegedly", "probably", "supposedly", "kidding", "nope", "untrue", "guess"),
    "sometimes",
    *("falsch", "nicht", "vielleicht", "geraten", "ungepr\u00fcft", "faux", "jamais", "presque", "nunca", "casi"),
    "typo",
])  # fmt: skip
def test_a_single_word_that_is_no_unit_may_doubt_a_value(word: str) -> None:
    """Only a unit, or the plural of what is counted, leaves a value as it is; any other word is not understood."""
    assert audited(f"t1 = 19 {word}").steps[0].verdict == "not_judged"
    assert all(audited(f"t1 = 19 {unit}").ok for unit in ("eggs", "manzanas", "people", "km/h", "m2"))


def test_a_supposition_of_the_same_value_changes_nothing() -> None:
    """A value that was claimed may be supposed again."""
    assert audited("t1 = 12 + 7 = 19\nIf t1 = 19, all is well.").ok


@pytest.mark.parametrize(
    "said",
    [
        *("It is not true that t1 = 19.", "I don't think t1 = 19.", "Suppose t1 = 19.", "If t1 = 19 then all is well."),
        *("Is t1 = 19? I am not sure.", "expected t1 = 19, got 20", "t1 =/= 19", "It is false that t1 = 19."),
        *("Assume that t1 = 19.", "Maybe t1 = 19.", "Step 1: I doubt that 12 + 7 = 19", "Step 1: Suppose 12 + 7 = 19"),
    ],
)
def test_what_is_denied_or_supposed_is_no_claim(said: str) -> None:
    """A claim that its own clause denies, supposes or asks for is not the step's."""
    found = audited(said)
    assert found.steps[0].verdict != "right"
    assert not found.ok


@all_rows("mark", ["", "- ", "* ", "**"])
@all_rows(
    "label",
    ["Student A", "Student 2", "My friend", "Classmate", "Hint", "Bob said", "He wrote", "The other model says"],
)
def test_what_another_says_is_no_claim(label: str, mark: str) -> None:
    """Whoever speaks in front of it, in a list too."""
    assert audited(f"{mark}{label}:{mark.strip(' -')} t1 = 19").steps[0].verdict != "right"
    assert audited(f"{mark}{label} is gone, so t1 = 19").ok


@all_rows(
    "word",
    [
        "when",
        "Whenever",
        "until",
        "As long as",
        "as soon as the",
        "provided that",
        "in case",
        "once",
        "while",
        "till my",
    ],
)
def test_a_condition_that_is_a_claim_claims_nothing(word: str) -> None:
    """The claim is all that it says; behind other words, or where it was claimed before, it stands."""
    assert audited(f"{word} t1 = 19").steps[0].verdict != "right"
    assert audited(f"t1 = 19\n{word} t1 = 19, we are done").ok


@all_rows("word", ["When", "whenever", "Once", "after", "While"])
def test_the_time_of_an_operation_is_no_condition(word: str) -> None:
    """What is claimed behind the operation that gives it is claimed."""
    assert audited(f"{word} we add x and y, t1 = 19").ok


@all_rows("behind", [", said Bob", ", says my friend", " provided that x is 12", ", if x = 5", " (only if x is 5)"])
def test_what_another_says_behind_is_no_claim(behind: str) -> None:
    """Speakers and conditions behind a value; what follows from it is no condition."""
    assert audited(f"t1 = 19{behind}").steps[0].verdict != "right"
    assert audited("t1 = 19, so we go on from there").ok


@pytest.mark.parametrize("said", ["Since it is not zero, t1 = 19", "It is not zero so t1 = 19", "Not bad: t1 = 19"])
def test_a_denial_in_another_clause_is_none(said: str) -> None:
    """What is denied in front of a claim's own clause does not touch it."""
    assert audited(said).ok


PRICE = {"x": "24.90", "y": 3}


@all_rows("procedure, inputs, text, expected", [
    # Repeated keys, keys that differ in case only, and several names or values are never settled by the order.
    *((PROCEDURE, INPUTS, text, "not_judged") for text in (
        *('[{"id":"t1","value":20,"value":19}]', '[{"id":"t1","Value":20,"value":19}]'),
        *('[{"id":"t1","value":19,"result":20}]', '{"t1":{"work":"12 + 7","value":20,"value":19}}'),
        *('{"t1":{"value":19,"output":"19 or 20"}}', '[{"id":"t1","name":"t2","value":19}]'),
        *('[{"id":"t2","id":"t1","value":19}]', '{"step":"t1","value":20,"value":19}'),
        *('{"t1":"19_000"}', '{"t1":"12 + 7 = 19_000"}', '[{"id":"t1","value":19,"unit":"million"}]'),
    )),
    # A word directly behind an amount may be a currency that is not known; the declared one may stand at either end.
    *((MONEY, PRICE, f"t1 = {written}", "not_judged") for written in (
        *("74.70 euros", "74.70 pounds", "74.70 yen", "74.70 eur", "74.70 francs", "74.70 kr", "74.70 rupees"),
        *("74.70 (yen)", "74.70 in euros", "74.70 EUR", "$74.70 Canadian", "$74.70 pesos", "EUR 74.70", "R$74.70"),
    )),
    *((MONEY, PRICE, f"t1 = {written}", "right") for written in (
        *("74.70", "$74.70", "74.70 dollars", "74.70 US dollars", "74.70 USD", "74.70 (USD)", "USD 74.70", "US$74.70"),
        *("74.70 for the order", "74.70, which the customer pays", "74.70 in total", "$74.70 discount"),
    )),
    *((Procedure.parse(str(MONEY).replace("USD", code)), PRICE, f"t1 = {written}", "right") for code, written in (
        ("CHF", "CHF 74.70"), ("BRL", "R$74.70"), ("TRY", "\u20ba74.70"),
    )),
    # Another unit behind a percentage makes it none.
    *((SHARE, {"x": 7, "y": 25}, f"t1 = {written}", expected) for written, expected in (
        *(("28%", "right"), ("28 percent", "right"), ("28", "right"), ("7/25 = 28% for the week", "right")),
        *(("28 basis points", "not_judged"), ("28 promille", "not_judged"), ("28 points", "not_judged")),
        *(("28% points", "not_judged"), ("28 per mille", "not_judged"), ("7/25", "not_judged")),
    )),
    # A fraction or a power of ten is a value as the guard reads it; what a later line makes of it goes before it.
    *((QUOTIENT, {"x": 57, "y": 2}, text, expected) for text, expected in (
        *(("t1 = 57/2", "right"), ("t1 = \\frac{57}{2}", "right"), ("t1 = (57/2)", "right"), ("t1 = 2.85e1", "right")),
        *(('{"t1": "57 / 2 = 57/2"}', "right"), ("t1 = 57/4", "wrong"), ("t1 = 57 / 2 = 57/4", "wrong")),
        *(("t1 = 57 / 2", "not_judged"), ("t1 = 57/2 = 28.4", "wrong"), ("t1 = 57/2\nResult: 28.4", "wrong")),
        *(("Step 1: 57/2\nResult: 28.4", "wrong"), ("t1 = 57/2\nResult: 28 thousand", "not_judged")),
    )),
    # The reason behind true or false is not part of it, unless it names another.
    *((TRUTH, INPUTS, f"t1 = {written}", expected) for written, expected in (
        *(("true because 12 > 7", "right"), ("true (12 > 7)", "right"), ("true, since 12 > 7", "right")),
        *(("false (12 < 7)", "wrong"), ("true or false", "not_judged"), ("true, not false", "not_judged")),
    )),
    # A name of several words is found with blanks, a hyphen or an escaped underscore between them.
    *((NAMED, {"unit_price": 2, "quantity": 3}, text, "right") for text in (
        *("Sub total: 6", "So the sub total is 6.", "Sub-total = 6", "sub\\_total = 2 * 3 = 6", "| Sub total | 6 |"),
        "sub_total = 6",
    )),
    # A later claim that denies or changes a value in a way that cannot be read leaves the step not judged.
    *((PROCEDURE, INPUTS, f"t1 = 12 + 7 = 19\n{later}\n{REST}", "not_judged") for later in (
        "t1 = 19_000", "I don't think t1 = 19.", "Whether t1 = 20 is not clear.",
    )),
])  # fmt: skip
def test_a_value_is_what_its_type_and_its_place_make_of_it(
    procedure: Procedure, inputs: Mapping[str, object], text: str, expected: str
) -> None:
    """What is said of a step is read as its declared type says, in its own unit and notation, or not judged."""
    assert verdict(procedure, inputs, text) == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"step":"t1","value":19}\n{"step":"t2","value":57}\nAnswer: 57',
        '{"step":1,"work":"12 + 7","result":19}\n{"step":2,"work":"19 * 3","result":57}\nAnswer: 57',
        '[{"id":"t1","value":19,"result":"19.0","unit":"kg"},{"id":"t2","value":57,"Value":57}]\nAnswer: 57',
        '{"t1":19.0,"t2":5.7e1}',
    ],
)
def test_json_that_says_one_thing_is_read(text: str) -> None:
    """JSON Lines, the same value under two keys, and numbers with an exponent are right where they are."""
    assert audit(PROCEDURE, INPUTS, text).ok


def test_an_object_with_an_id_is_no_step_for_that() -> None:
    """A number that is not called one of a step does not make an object a step."""
    found = audit(PROCEDURE, INPUTS, '{"id": 2, "steps": ["t1 = 19", "t2 = 57"], "result": 57}')
    assert [step.verdict for step in found.steps] == ["right", "right"]


@pytest.mark.parametrize("count", [150])
def test_json_lines_are_read_to_the_end(count: int) -> None:
    """A long run in JSON Lines has no missing steps."""
    procedure = Procedure.parse("inputs: x\n" + "\n".join(f"t{at} = x + {at}" for at in range(1, count + 1)))
    lines = "\n".join(f'{{"step": "t{at}", "value": {at}}}' for at in range(1, count + 1))
    assert audit(procedure, {"x": 0}, f"{lines}\nAnswer: {count}").ok


@all_rows("value, expected", [(19, "right"), (20, "wrong")])
@all_rows(
    "line",
    [
        *("t1 = 12 + 7 = **{}**", "**t1** = **{}**", "- t1 = 12 + 7 = **{}**\n", "x = 12\n**t1** = {}"),
        *("$t_1 = 12 + 7 = {}$", "$$t_1 = 12 + 7 = {}$$", "$t_1$ = 12 + 7 = {}", "$t_1$ = $12 + 7 = {}$"),
        *("$t_{{1}} = {}$", "$ t_1 = {} $", "t\u2081 = 12 + 7 = {}", "t1\uff1a{}", "t1 \u21d2 {}", "t1 \u2190 {}"),
        *("<t1>{}</t1>", "Step 1 (t1): 12 + 7 = {}", "**Step 1 (t1):** {}"),
    ],
)
def test_layouts_are_read(line: str, value: int, expected: str) -> None:
    """The same claim is judged alike in every layout."""
    found = audited(line.format(value))
    assert found.steps[0].verdict == expected
    assert found.ok == (expected == "right")


@pytest.mark.parametrize("text", ["f(t1) = 19", "(x + t1) = 19", "<t2>19</t2>", "t-1 = 19"])
def test_other_uses_of_a_name_are_no_claims(text: str) -> None:
    """An argument, a part of an expression and another name do not set a step."""
    assert audit(PROCEDURE, INPUTS, text).steps[0].verdict in ("missing", "not_judged")


@pytest.mark.parametrize(
    "text",
    [
        *("2026-03-15 - 2026-03-01 = 14", "2024-01-31 + 1 = 2024-02-01", "03/15/2026 - 03/01/2026 = 14"),
        *("(2)(3) + 1 = 7", "(2) (3) + 1 = 7", "1 - 5 + 3 = 8\n2 - 8 * 2 = 16", "1 \u2013 5 + 3 = 8"),
        *("Working modulo 7, we get 3 + 5 = 1.", "We use mod 12. So 10 + 5 = 3.", "In base 8 we add:\n7 + 1 = 10"),
        *("On a 12-hour clock, so 10 + 5 = 3.", "total -3*2 = 4", "2 + 3 = 19 * k", "77\u2088 + 1\u2088 = 100\u2088"),
    ],
)
def test_other_arithmetic_is_not_called_false(text: str) -> None:
    """Dates, products in brackets, numbered items, remainders, clocks and other bases are left unread."""
    assert false_links(text) == ()


@all_rows("text", ["12 - 5 = 8", "100/10/5 = 3", "1500-120-3 = 1", "so -3*2 = 4", "(2) 3 + 1 = 7"])
def test_what_only_looks_like_it_is_called_false(text: str) -> None:
    """Plain arithmetic is judged all the same."""
    assert len(false_links(text)) == 1


@all_rows("unit", ["nights at 20", "nights at 20 each", "hotel nights at EUR 20", "rooms @ $20 a night"])
@all_rows("place", ["lodging is 2 {}: lodging = 40", "Lodging: 2 {} = 40", "lodging = 2 {}, so lodging = 40"])
def test_a_count_at_a_price_is_no_value(unit: str, place: str) -> None:
    """What is multiplied by a price behind it is an operand: neither the value of the step nor a correction."""
    stay = Procedure.parse("inputs: nights\nlodging = nights * 20")
    assert audit(stay, {"nights": 2}, f"{place.format(unit)}\nAnswer: 40").ok
    assert verdict(stay, {"nights": 2}, "lodging = 41 EUR at 20 each") in ("wrong", "not_judged")


@all_rows("word", ["is therefore", "is, thus,", "is exactly", "is simply", "will be", "equals just"])
def test_an_adverb_behind_the_verb_leaves_a_claim(word: str) -> None:
    """A word that only joins a value to its name, or stresses it, leaves the claim its writer's own."""
    assert audited(f"t1 {word} 19").ok
    assert audited(f"t1 {word} 18").steps[0].verdict == "wrong"
    for behind in ("half of 38", "under 19", "not 19", "19 if y rises"):
        assert audited(f"t1 {word} {behind}").steps[0].verdict == "not_judged"


def test_the_word_that_is_not_understood_is_named() -> None:
    """The first word that is new is named, and a procedure that has it makes the remark understood."""
    text = "As this exceeds the limit of the guest, paid = 80\nAnswer: 80"
    described = Procedure.parse('inputs: price\npaid = min(price, 80)  "What a guest gets back"')
    bare = Procedure.parse("inputs: price\npaid = min(price, 80)")
    assert audit(described, {"price": 95}, text).ok
    assert "('guest' is no word of the procedure)" in audit(bare, {"price": 95}, text).steps[0].reason
