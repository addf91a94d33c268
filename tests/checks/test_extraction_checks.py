"""Records and lists that are read from a document: every part at its place, nothing twice, nothing left out."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples
from tables import all_rows

from stepguard import Guard, Input, Procedure, Step
from stepguard.backends.base import Completion, Request
from stepguard.checks import Cites, Complete, Grounded, Holds
from stepguard.core.verdicts import Claim, Verdict
from stepguard.engine.prompts import describe_steps
from stepguard.errors import ConfigError, ProcedureError
from stepguard.language.records import RecordType
from stepguard.language.value_types import ValueType
from stepguard.procedure.notation import read_procedure
from stepguard.replies.formats import EquationFormat
from stepguard.testing import SimulatedModel
from stepguard.testing.working import completion_of, wrong_value

parse = ValueType.parse
ITEM = RecordType("Item", (("what", parse("text")), ("amount", parse("money(EUR)")), ("spent", parse("date"))))
ITEMS = parse("list of Item", records={"Item": ITEM})
RECEIPT = RecordType(
    "Receipt",
    (("shop", parse("text")), ("total", parse("money(EUR)")), ("day", parse("date")), ("open", parse("time"))),
)
CLAIM = """Claim of Ann Smith, for the trip to Lyon
Taxi to the airport      2026-01-02     12.50
Hotel Bellevue           2026-01-03     80.00
Taxi to the airport      2026-01-05     12.50
Total                                  105.00
"""
RIGHT = [
    {"what": "Taxi to the airport", "amount": "12.50", "spent": "2026-01-02"},
    {"what": "Hotel Bellevue", "amount": "80.00", "spent": "2026-01-03"},
    {"what": "Taxi to the airport", "amount": "12.50", "spent": "2026-01-05"},
]


def judged(check: Any, kind: ValueType, value: object, document: str, work: str = "", **further: Any) -> Verdict:
    """What a check says of a claimed value."""
    step = Step("own", instruction="Read it.", reads=["doc", *further], type=kind, checks=[check])
    values = {"doc": document, **further, "own": kind.accept(value)}
    verdict = check(step, values, Claim("own", (work,) if work else (), "", ""))
    assert isinstance(verdict, Verdict)
    return verdict


def test_a_list_that_stands_in_the_document_is_grounded() -> None:
    """Every part has its place, also of two items that are nearly the same."""
    verdict = judged(Grounded("doc"), ITEMS, RIGHT, CLAIM)
    assert (verdict.outcome, verdict.strength) == ("pass", "grounded")
    assert judged(Complete("doc", "amount"), ITEMS, RIGHT, CLAIM).outcome == "pass"


@all_rows(
    "value, reason",
    [
        ([RIGHT[0], {**RIGHT[1], "amount": "90.00"}], "[1].amount: '90.00' does not stand"),
        ([RIGHT[0], {**RIGHT[1], "what": "Hotel Bellevue Lyon"}], "[1].what"),
        ([RIGHT[0], {**RIGHT[1], "spent": "2026-01-04"}], "[1].spent"),
        ([*RIGHT, RIGHT[1]], "no place of its own"),
        ([*RIGHT, RIGHT[2]], "no place of its own"),
        ([{**RIGHT[0], "amount": "80.00"}, {**RIGHT[1], "amount": "12.50"}], "beside that item stands '12.50'"),
        ([RIGHT[0], {**RIGHT[1], "spent": "2026-01-05"}, RIGHT[2]], "beside that item stands '2026-01-03'"),
    ],
)
def test_a_part_that_does_not_stand_there_or_has_no_place_of_its_own_is_refused(value: Any, reason: str) -> None:
    """What was made up, listed twice, or belongs to another item."""
    verdict = judged(Grounded("doc"), ITEMS, value, CLAIM)
    assert verdict.outcome == "fail"
    assert reason in verdict.reason


@all_rows("form, closing", [
    ("Item: {what}\nSpent: {spent}\nAmount: {amount} EUR\n", "Total: 105.00 EUR"),
    ('{{"item": "{what}", "day": "{spent}",\n"eur": {amount}}},\n', '{{"total": 105.00}}'),
    ("{what}, {spent}\nBetrag: {amount}\n", "Summe 105.00"),
    ("| {what} | {spent} | {amount} |\n", "| carried forward | | 105.00 |"),
])  # fmt: skip
def test_a_label_that_every_amount_has_makes_no_total_of_it(form: str, closing: str) -> None:
    """`Amount:` in front of each item's is its label; one that is left out, and one that closes, are still told."""
    document = "".join(form.format(**item) for item in RIGHT) + closing
    for check in (Grounded("doc"), Complete("doc", "amount")):
        assert judged(check, ITEMS, RIGHT, document).outcome == "pass"
    assert judged(Complete("doc", "amount"), ITEMS, RIGHT[:2], document).outcome == "fail"
    paid = f"{document}\nAmount due 99.00\nCash 110.00\nCash 5.00\n"
    assert judged(Complete("doc", "amount"), ITEMS, RIGHT, paid).outcome == "pass"
    cash = [{**RIGHT[0], "amount": amount} for amount in ("110.00", "5.00")]
    assert judged(Complete("doc", "amount"), ITEMS, cash, paid).outcome == "fail"


def test_items_may_be_listed_in_another_order_and_share_what_stands_once() -> None:
    """The order is that of the document, and a date in the heading belongs to all of them."""
    assert judged(Grounded("doc"), ITEMS, RIGHT[::-1], CLAIM).outcome == "pass"
    document = "Expenses of 2 January 2026\ntaxi 12.50\nbus 3.00\n"
    shared = [
        {"what": what, "amount": amount, "spent": "2026-01-02"} for what, amount in (("taxi", "12.50"), ("bus", 3))
    ]
    assert judged(Grounded("doc"), ITEMS, shared, document).outcome == "pass"
    assert judged(Grounded("doc"), ITEMS, [], document).outcome == "not_applicable"


_WORDS = ["Taxi", "Hotel", "Lunch", "Train", "Parking", "Tolls", "Printing", "Visa fee"]


@st.composite
def _documents(draw: st.DrawFn) -> tuple[str, list[dict[str, str]]]:
    """A document with items on lines of their own, and those items."""
    count = draw(st.integers(1, 6))
    names = draw(st.lists(st.sampled_from(_WORDS), min_size=count, max_size=count, unique=True))
    cents = draw(st.lists(st.integers(101, 99_999), min_size=count, max_size=count, unique=True))
    days = draw(st.lists(st.integers(1, 28), min_size=count, max_size=count))
    items = [
        {"what": name, "amount": f"{cent // 100}.{cent % 100:02}", "spent": f"2026-03-{day:02}"}
        for name, cent, day in zip(names, cents, days, strict=True)
    ]
    form = draw(
        st.sampled_from(
            ["{what}  {spent}  {amount}", "| {spent} | {what} | {amount} EUR |", "{what}: EUR {amount} ({spent})"]
        )
    )
    total = sum(cents)
    head = draw(st.sampled_from(["Claim no. 4711\n", "Expenses, room 1204\n\n", ""]))  # no amount is so large
    lines = "\n".join(form.format(**item) for item in items)
    return f"{head}{lines}\nTotal {total // 100}.{total % 100:02}\n", items


@examples(300)
@given(_documents(), st.integers(0, 2**32))
def test_no_list_with_a_wrong_part_passes_both_checks(made: tuple[str, list[dict[str, str]]], seed: int) -> None:
    """The right list passes; one with a changed part, an item more or an item less does not."""
    document, items = made
    checks = (Grounded("doc"), Complete("doc", "amount"))
    for check in checks:
        assert judged(check, ITEMS, items, document).outcome == "pass", document
    chance = random.Random(seed)
    right = ITEMS.accept(items)
    wrong = wrong_value(ITEMS, right, chance)
    if wrong != right:
        assert any(judged(check, ITEMS, wrong, document).outcome == "fail" for check in checks), (document, wrong)
    swapped = [dict(item) for item in items]
    if len(items) > 1:
        swapped[0]["amount"], swapped[1]["amount"] = swapped[1]["amount"], swapped[0]["amount"]
        assert judged(checks[0], ITEMS, swapped, document).outcome == "fail"
    doubled = [*items, chance.choice(items)]
    assert any(judged(check, ITEMS, doubled, document).outcome == "fail" for check in checks)


@all_rows(
    "document, amounts, outcome, reason",
    [
        ("taxi 12.50\nhotel 80.00\nTotal 92.50", ["12.50"], "fail", "'hotel 80.00'"),
        ("taxi 12.50\nhotel 80.00\nTotal 92.50", ["12.50", "80.00"], "pass", "2 amounts"),
        ("Room 12\ntaxi 12.00", ["12.00"], "undecided", "look like any number"),
        ("taxi 12.50\nhotel 80.00\nTotal 92.50", ["12.50", "92.50"], "fail", "holds no item"),
        ("taxi 12.50, hotel 80.00 and lunch 9.00", ["12.50", "80.00"], "fail", "lunch 9.00"),
        ("taxi 12.50, hotel 80.00 and lunch 9.00", ["12.50", "80.00", "9.00"], "pass", "3 amounts"),
        ("2 X 9.00  18.00\nbus 3.00\n21.00\ncash 25.00\nchange 4.00", ["18.00", "3.00"], "pass", ""),
        ("taxi 12 EUR\nroom 412\nhotel 80 EUR", ["12"], "fail", "hotel 80 EUR"),
        ("taxi 12 EUR\nroom 412", ["12"], "pass", ""),
        ("taxi 12\nhotel 80", ["12"], "undecided", "any number"),
        ("nothing was spent", [], "pass", "0 amounts"),
        ("taxi 12.50", [], "fail", "taxi 12.50"),
        ("taxi 5.00\nbus 5.00\nTotal 10.00", ["5.00"], "fail", "bus 5.00"),
        ("visa fee 5.00\nbus 5.00\nVisa 10.00", ["5.00", "5.00"], "pass", "2 amounts"),
        ("taxi 5.00\n\n5.00", ["5.00"], "pass", "1 amounts"),
        ("taxi 12.50\nVAT 19% 2.00\nTip 1.00", ["12.50"], "pass", ""),
        ("taxi 5.00 and bus 6.00", ["5.00"], "fail", "'bus 6.00'"),
        ("taxi 5.00 bus 6.00 tram 7.00", ["5.00", "6.00"], "fail", "tram 7.00"),
        ("Hotel, 2 nights, 80.00, 160.00", ["160.00"], "pass", ""),
        ("taxi 5.00\nbus 6.00\ntram 7,00", ["5.00", "6.00"], "fail", "tram 7,00"),
        ("taxi 5.00 (incl. VAT)\nbus 6.00 (incl. VAT)", ["5.00"], "fail", "bus 6.00"),
        ("taxi 5.00\n~~bus 6.00~~", ["5.00"], "pass", ""),
        ("taxi 5.00\nrefund 6.00-", ["5.00"], "fail", "refund 6.00-"),
        ("taxi 5.00 / bus 6.00", ["5.00"], "fail", "bus 6.00"),
        ("taxi 5.00 + bus 6.00 = 11.00", ["5.00", "6.00"], "pass", ""),
        ("taxi 5.00 + VAT 0.95", ["5.00"], "pass", ""),
    ],
)
def test_an_amount_that_was_left_out_is_named(document: str, amounts: list[str], outcome: str, reason: str) -> None:
    """What is written as the amounts that were taken, on a line of its own that is no total, tax or payment."""
    verdict = judged(Complete("doc"), parse("list of money(EUR)"), amounts, document)
    assert (verdict.outcome, reason in verdict.reason) == (outcome, True), verdict


LETTER = """Bellevue Ltd, open from 9:30 am
Total before rounding: 12.52
Total: 12.50 EUR
paid on 02/01/26
"""
READ = {"shop": "Bellevue Ltd", "total": "12.50", "day": "2026-01-02", "open": "09:30"}


def test_a_record_is_grounded_field_by_field() -> None:
    """Dates in the declared order, also with a year of two digits; times, durations and amounts in any notation."""
    kind = ValueType(kind="record", record=RECEIPT)
    assert judged(Grounded("doc", order="dmy"), kind, READ, LETTER).outcome == "pass"
    assert judged(Grounded("doc"), kind, READ, LETTER).outcome == "fail"
    for field, value in (("shop", "Belle Ltd"), ("total", "12.51"), ("day", "2026-02-01"), ("open", "21:30")):
        verdict = judged(Grounded("doc", order="dmy"), kind, {**READ, field: value}, LETTER)
        assert (verdict.outcome, field in verdict.reason) == ("fail", True)


def test_of_several_totals_none_is_taken_for_granted() -> None:
    """With `sole`, the verdict is undecided where another value stands beside the words as well."""
    kind = ValueType(kind="record", record=RECEIPT)
    check = Grounded("doc", order="dmy", beside={"total": "Total"}, sole=True)
    verdict = judged(check, kind, READ, LETTER)
    assert verdict.outcome == "undecided"
    assert "12.52 too" in verdict.reason
    assert judged(check, kind, READ, LETTER.replace("12.52", "12.50")).outcome == "pass"
    assert (
        judged(Grounded("doc", beside="Total", sole=True), parse("money(EUR)"), "12.50", LETTER).outcome == "undecided"
    )


@pytest.mark.parametrize(
    ("kind", "value", "document", "outcome"),
    [
        ("duration", "90 minutes", "It took 1 h 30 min.", "pass"),
        ("duration", "30 minutes", "It took 1 h 30 min.", "fail"),
        ("period", "18 months", "a lease of 1 year and 6 months", "pass"),
        ("quantity(kg)", "0.5 kg", "a parcel of 500 g", "pass"),
        ("quantity(kg)", "5 kg", "a parcel of 2.5 kg", "fail"),
        ("time", "20:13", "8:13 PM", "pass"),
        ("time", "20:13", "20:13:39", "fail"),
        ("date", "2026-01-02", "on 2 January 2026", "pass"),
        ("list of text", ["Ann", "Bob"], "Ann, Bob", "pass"),
        ("list of text", ["Ann", "Ann"], "Ann, Bob", "fail"),
    ],
)
def test_values_of_every_type_are_found_by_what_they_are(kind: str, value: Any, document: str, outcome: str) -> None:
    """In whatever notation they stand there, and not inside a longer one."""
    if kind.startswith("quantity"):
        pytest.importorskip("pint")
    assert judged(Grounded("doc"), parse(kind), value, document).outcome == outcome


POLICY = "Travel is paid. Meals are paid up to 30 EUR a day. Alcohol is never paid, whoever orders it."


@all_rows(
    "work, outcome, reason",
    [
        ('The policy says "Alcohol is never paid", so no.', "pass", "line 1"),
        ("The policy says \u201cmeals are paid up to 30 EUR a day\u201d.", "pass", ""),
        ('"Alcohol is never paid ... whoever orders it"', "pass", ""),
        ('"Travel is paid ... Alcohol is never paid"', "pass", ""),
        ('"Travel is paid ... whoever orders it"', "fail", "cut"),
        ('"whoever orders it ... Travel is paid"', "fail", "does not stand"),
        ('"Travel ... is paid up to 30 EUR a day"', "fail", ""),
        ('"Alcohol is always paid"', "fail", "does not stand"),
        ('The item is "wine for two", and "Alcohol is never paid".', "pass", ""),
        ('The item is "beer for two", and "Alcohol is never paid".', "fail", "beer for two"),
        ("Alcohol is never paid, so no.", "fail", "quotes nothing"),
        ('It is about "Alcohol".', "fail", "no passage of 3 words"),
        ("", "fail", "quotes nothing"),
    ],
)
def test_what_a_judgement_rests_on_is_quoted_and_stands_there(work: str, outcome: str, reason: str) -> None:
    """A passage of some words, in quotes; what is quoted and stands nowhere was made up."""
    verdict = judged(Cites("doc"), parse("boolean"), False, POLICY, work, item="wine for two")
    assert (verdict.outcome, reason in verdict.reason) == (outcome, True), verdict
    if outcome == "pass":
        assert verdict.strength == "constrained"


RULES = """Opened goods are not taken back. Books are taken back within 30 days of the purchase.

Not covered:
- water damage to books
- theft of toys

Unless agreed in writing, refunds are paid in cash. If the seal is broken, no refund is paid at all. Fees are waived
if the order was late. Toys are taken back only when sealed. Customers sometimes claim: "refunds are paid twice".
Customer: I was told that shipping is always free.

The following no longer applies:
Gifts can be sent back.
"""


@all_rows(
    "work, outcome",
    [
        ('"refunds are paid in cash"', "fail"),
        ('"no refund is paid at all"', "fail"),
        ('"Fees are waived"', "fail"),
        ('"Toys are taken back"', "fail"),
        ('"water damage to books"', "fail"),
        ('"Gifts can be sent back"', "fail"),
        ('"refunds are paid twice"', "fail"),
        ('"shipping is always free"', "fail"),
        ('"Opened goods are ... taken back within 30 days"', "fail"),
        ('"Unless agreed in writing, refunds are paid in cash."', "pass"),
        ('"If the seal is broken, no refund is paid at all"', "pass"),
        ('"Fees are waived if the order was late"', "pass"),
        ('"Not covered: ... water damage to books"', "pass"),
        ('"As the rules say, books are taken back within 30 days"', "pass"),
        ('As the rules say, "[b]ooks are taken back within **30 days**".', "pass"),
        ('"Books are taken back [...] of the purchase"', "pass"),
    ],
)
def test_a_passage_is_not_cut_from_what_governs_it(work: str, outcome: str) -> None:
    """A condition in front or behind, a label above, whose words they are and what dots leave out belong to it."""
    assert judged(Cites("doc"), parse("boolean"), False, RULES, work).outcome == outcome


def test_a_citation_is_asked_for_beside_the_step() -> None:
    """The model reads what it is to quote; nothing that the check knows stands there."""
    step = Step("paid", instruction="Is it paid?", reads=["policy"], type="boolean", checks=[Cites("policy")])
    assert '(true or false; quote in "work" the words of policy that decide it)' in describe_steps(
        [step], {"policy": "p"}
    )


def test_totals_are_reconciled_with_the_items_that_were_read() -> None:
    """A relation between the list and the total that stands in the document, or between fields of one record."""
    step = Step(
        "items", instruction="List them.", reads=["total"], type=ITEMS, checks=[Holds("sum of items.amount == total")]
    )
    (check,) = step.checks
    for total, outcome in ((Decimal("105.00"), "pass"), (Decimal("92.50"), "fail")):
        verdict = check(step, {"total": total, "items": ITEMS.accept(RIGHT)}, Claim("items", (), "", ""))
        assert isinstance(verdict, Verdict)
        assert verdict.outcome == outcome
    kind = ValueType(kind="record", record=RecordType("R", (("total", parse("number")), ("cash", parse("number")))))
    for cash, outcome in ((50, "pass"), (40, "fail")):
        value = {"total": "33.90", "cash": cash}
        verdict = judged(Holds("own.total == own.cash - change"), kind, value, "", change=Decimal("16.10"))
        assert verdict.outcome == outcome


@all_rows(
    "make",
    [
        lambda: Step("s", instruction="i", reads=["d"], type="text", checks=[Complete("d")]),
        lambda: Step("s", instruction="i", reads=["d"], type=ITEMS, checks=[Complete("d")]),
        lambda: Step("s", instruction="i", reads=["d"], type=ITEMS, checks=[Complete("d", "price")]),
        lambda: Step("s", instruction="i", reads=["d"], type=ITEMS, checks=[Complete("d", "what")]),
        lambda: Step("s", instruction="i", reads=["d"], type="list of boolean", checks=[Grounded("d")]),
        lambda: Step("s", instruction="i", reads=["d"], type=ITEMS, checks=[Grounded("d", beside="Total")]),
        lambda: Step("s", instruction="i", reads=["d"], type="date", checks=[Grounded("d", beside={"a": "Total"})]),
        lambda: Step("s", instruction="i", reads=["x"], type="date", checks=[Cites("d")]),
        lambda: Step("s", "d + 1", checks=[Cites("d")]),
        lambda: Step("s", instruction="i", reads=["total"], type="text", checks=[Holds("s == total")]),
    ],
)
def test_a_check_that_cannot_judge_its_step_is_refused(make: Any) -> None:
    """When the step is made."""
    with pytest.raises((ProcedureError, ConfigError)):
        make()


def test_a_run_that_lists_items_commits_the_right_list_only() -> None:
    """A model that leaves one out, and would again, is abstained from; one that does not is checked."""
    step = Step(
        "items",
        instruction="List every expense.",
        reads=["doc"],
        type=ITEMS,
        checks=[Grounded("doc"), Complete("doc", "amount")],
    )
    procedure = Procedure([step], inputs=[Input("doc", "text")])
    right = Guard(SimulatedModel(answers={"items": RIGHT})).run(procedure, {"doc": CLAIM})
    assert right.status == "checked"
    wrong = Guard(SimulatedModel(answers={"items": RIGHT[:2]})).run(procedure, {"doc": CLAIM})
    assert wrong.status == "abstained"


EXPENSES = """
record Item:
  what: text
  amount: money(EUR)
  spent: date

inputs:
  claim: text
  policy: text

table daily: kind -> money(EUR)
  taxi: 10 EUR
  otherwise: 90 EUR

items: list of Item = "List every expense of the claim." (reads claim)  check: grounded(claim); complete(claim, amount)
for each item in items:
  travel: boolean = "Is it a travel expense under the policy?" (reads item, policy)  check: cites(policy)
  if not travel or item.spent < 2026-01-01:
    paid: money(EUR) = by code 0 EUR
  else:
    paid: money(EUR) = by code min(item.amount, daily[item.what])
total = by code sum of paid
answer: total
"""


class Clerk:
    """A model that lists what it is given to list, and judges items by a policy that it quotes."""

    def __init__(self, items: list[dict[str, str]]) -> None:
        self.items = items

    def complete(self, request: Request) -> Completion:
        """Answer the steps of a request."""
        form, answer = EquationFormat(), dict[str, object]()
        for step in request.steps:
            if step.type == ITEMS:
                answer[step.id] = form.answer(step, "", json.dumps(self.items))
            else:
                (item,) = [request.values[name] for name in step.reads if name != "policy"]
                assert isinstance(item, Mapping)
                wine = item["what"] == "wine"
                quoted = "Alcohol is never paid" if wine else "Taxi, train and hotel are travel"
                answer[step.id] = form.answer(step, f'The policy says "{quoted}".', "false" if wine else "true")
        return completion_of(request, json.dumps(answer))


def test_an_expense_claim_is_read_judged_and_added_up() -> None:
    """Items from the document, one judgement for each with its citation, a table and a sum, all of it by rounds."""
    claim = "taxi 2026-01-02 12.50\nhotel 2026-01-03 80.00\nwine 2026-01-03 9.00\ntaxi 2025-12-31 8.00\nTotal 109.50\n"
    policy = "Taxi, train and hotel are travel. Alcohol is never paid."
    rows = [("taxi", "12.50", "2026-01-02"), ("hotel", "80.00", "2026-01-03"), ("wine", "9.00", "2026-01-03")]
    items = [{"what": what, "amount": amount, "spent": spent} for what, amount, spent in rows]
    items.append({"what": "taxi", "amount": "8.00", "spent": "2025-12-31"})
    procedure = read_procedure(EXPENSES)
    result = Guard(Clerk(items)).run(procedure, {"claim": claim, "policy": policy})
    assert (result.status, result.answer) == ("checked", 90)
    incomplete = Guard(Clerk(items[:3])).run(procedure, {"claim": claim, "policy": policy})
    assert incomplete.status == "abstained"
