"""What forms, records, tables and revisions say of a value: boxes, fields, cells, diffs and numbers in groups."""

from __future__ import annotations

from typing import Any

import pytest
from constraint_harness import outcome
from tables import all_rows

from stepguard.checks.grounding import Grounded

pytestmark = pytest.mark.once


def stands(document: str, type: str, claimed: str, **options: Any) -> bool:
    """Whether a claim stands in a document."""
    return outcome(Grounded("doc", **options), claimed, type=type, doc=document) == "pass"


PAYMENTS = ("cash", "card", "transfer")
LISTED = (  # {} is one that is offered and not chosen, card is chosen
    "Payment\n( ) {0}\n(X) Card\n( ) {1}", "\u25fb {0}\n\u25fc Card\n\u25fb {1}", "1. [ ] {0}\n2. [X] card\n3. [ ] {1}",
    "{0} [ ]\nCard [x]\n{1} [ ]", "Paid by:\n[ ]\n{0}\n[x]\nCard\n[ ]\n{1}", "\uf0a8 {0}\n\uf0fe Card\n\uf0a8 {1}",
    "\U0001f532 {0}\n\u2705 Card\n\U0001f532 {1}", "$\\square$ {0}\n$\\boxtimes$ Card\n$\\square$ {1}",
    "{{ }} {0}\n{{x}} card\n{{ }} {1}", "< > {0}\n<x> card\n< > {1}", "O {0}\nX card\nO {1}",
    "o {0}\n\u25cf card\no {1}",
    "| Way | Chosen |\n|---|---|\n| {0} | |\n| Card | X |\n| {1} | |", "Way;Chosen\n{0};0\ncard;1\n{1};0",
    "| Way | Chosen |\n| {0} | no |\n| card | yes |\n| {1} | no |",
    "Way,Chosen\n{0},FALSE\ncard,TRUE\n{1},FALSE", "Way    Chosen\n{0}   no\ncard   yes\n{1}   no",
    "{0}: Off\ncard: On\n{1}: Off", "{0}: unchecked\ncard: checked\n{1}: unchecked",
    "{0} (not selected)\ncard (selected)\n{1} (not selected)", "{0}: -\ncard: X\n{1}: -",
    "{0} - not chosen\ncard - chosen",
    "{0}:\nCard: 5 March 2026, Ann Lee\n{1}:", "{0}: n/a\nCard: 5 March\n{1}: n/a",
    "Ways:\n1 = {0}\n2 = card\n3 = {1}\n\nWay: card",
    '{{\n "ways": [\n  "{0}",\n  "card",\n  "{1}"\n ],\n "way": "card"\n}}',
    "ways:\n  - {0}\n  - card\n  - {1}\nway: card",
    "{0}\ncard\n{1}\n\nPaid by card", "2026-03-01 {0}\n2026-03-02 card\n2026-03-03 {1}\nAt last: card",
    '<label><input type="radio" name="a"> {0}</label><br>\n<label><input type="radio" checked> Card</label><br>{1}',
    '<p><input type="checkbox"/> {0} <input type="checkbox" checked="checked"/> card</p>',
    '<select><option value="1">{0}</option>\n<option value="2" selected>Card</option><option>{1}</option></select>',
    "Delivery  [ ] {0} (free)  [x] card (9 EUR)", "Way: {0} \u2610 card \u2612 {1} \u2610; reading: 4512",
    "Way\uff1a \u25a1{0}  \u2611card", "| Way | Fee | Chosen |\n| {0} | 5 EUR | no |\n| card | 9 EUR | yes |",
    "[ ] Way: {0}\n[x] Way: card\n[ ] Way: {1}", "| {0} | 5 EUR | |\n| card | 9 EUR | \u2713 |\n| {1} | 7 EUR | |",
)  # fmt: skip


@all_rows("document", LISTED)
def test_of_options_in_a_list_the_one_is_chosen_that_the_list_says_so_of(document: str) -> None:
    """One below the other or in a line, ticked, crossed, said yes to or filled in; in no other case is it chosen."""
    for others in (("cash", "transfer"), ("transfer", "cash")):
        written = document.format(*others)
        kind = f"one_of({', '.join(PAYMENTS)})"
        assert stands(written, kind, "card")
        for other in others:
            assert not stands(written, kind, other)


@all_rows("document", [
    "Choose: cash | card | transfer", "Ways:\n- cash\n- card\n- transfer", "[ ] cash\n[ ] card\n[ ] transfer",
    "[x] cash\n[x] card\n[ ] transfer", "a) cash\nb) card\nAnswer: b", "[ ] cash [x] card [ ]",
    "cash [ ] 5 [x] card",
    "Unless cash is paid, card.", "Only cash payments are free.\nPaid by card",
    "To get cash, use your card.", "cash:\ncard:",
])  # fmt: skip
def test_where_nothing_says_which_option_is_chosen_none_is(document: str) -> None:
    """A list that is only offered, two that are ticked, boxes that may be those of others, a condition."""
    assert not any(stands(document, "one_of(cash, card, transfer)", each) for each in ("cash", "transfer"))


def test_items_of_a_list_may_be_asked_for_together_or_by_number() -> None:
    """A list of options is answered by all that are listed, or by all that are ticked, and a row by its number."""
    kind = "list of one_of(cash, card, transfer)"
    assert stands("- cash\n- card", kind, '["cash", "card"]')
    assert stands("[x] cash\n[x] card\n[ ] transfer", kind, '["cash", "card"]')
    assert not stands("[x] cash\n[ ] card\n[ ] transfer", kind, '["cash", "card"]')
    rows = "4711 approved\n4712 rejected"
    for claimed, held in (("approved", True), ("rejected", False)):
        assert stands(rows, "one_of(approved, rejected)", claimed, beside="4711") is held


FIELDS = (
    ("Net: 100.00 EUR, VAT: 19.00 EUR, Total: 119.00 EUR", "Total", "119.00", ("100.00", "19.00")),
    ("Qty: 12 | Unit price: 3.50 EUR | Line total: 42.00 EUR", "Unit price", "3.50", ("42.00",)),
    ('{"net": 100.00, "total": 119.00, "currency": "EUR"}', "total", "119.00", ("100.00",)),
    ('{"order":{"net":"100.00 EUR","gross":"119.00 EUR"}}', "gross", "119.00", ("100.00",)),
    ("rent=800 EUR; deposit=1600 EUR; fee=90 EUR", "deposit", "1600", ("800", "90")),
    ("Total: EUR 42.00 (incl. VAT: EUR 6.71)", "Total", "42.00", ("6.71",)),
    ("Invoice 7: Total: 42.00 EUR", "Invoice 7", "42.00", ()),
    ("Total: net: 100.00 EUR, gross: 119.00 EUR", "Total", "119.00", ()),
    ("Total (3 items): 42.00 EUR", "Total", "42.00", ()),
    ("net,gross,item\n100.00 EUR,119.00 EUR,Tea\n50.00 EUR,59.50 EUR,Milk", "Tea", "119.00", ("59.50",)),
)


@all_rows("document, label, right, wrong", FIELDS)
def test_a_label_stands_beside_the_values_of_its_own_field(
    document: str, label: str, right: str, wrong: tuple[str, ...]
) -> None:
    """Where a line has several fields, the value of another one is not beside it."""
    assert stands(document, "money(EUR)", right, beside=label)
    assert not any(stands(document, "money(EUR)", each, beside=label) for each in wrong)


def test_dates_of_several_fields_are_told_apart_and_yes_and_no() -> None:
    """The same for a date, and for a word that stands in many sentences."""
    document = "Born: 5 March 1980   Admitted: 4 April 2026   Discharged: 9 April 2026"
    for day, held in (("2026-04-04", True), ("1980-03-05", False), ("2026-04-09", False)):
        assert stands(document, "date", day, beside="Admitted") is held
    assert stands("Name,City\nAnn,Rome\nBob,Oslo", "text", "Rome", beside="Ann")
    for answer, held in (("no", True), ("yes", False)):
        assert stands("Smoker: no, driver: yes", "one_of(yes, no)", answer, beside="Smoker") is held


@all_rows("document, kind, right, wrong", [
    ("Item,Qty,Price EUR\nTea,2,345.00\nMilk,1,200.00", "money(EUR)", ("345.00", "200.00"), ("2345.00", "1200.00")),
    ("Item,Qty,Price\nTea,1,200\nMilk,3,900", "number", ("200", "900"), ("1200", "3900")),
    ("Item,Price USD,Price EUR\nTea,108.00,100.00", "money(EUR)", ("100.00",), ("108.00",)),
    ('Item,Price\n"Tea, green","1,200.00 EUR"', "money(EUR)", ("1200.00",), ("200.00",)),
    ("To Smith,Jones and Lee\nThe price is 1,250.00 EUR, as agreed.", "money(EUR)", ("1250.00",), ("250.00",)),
    ("-Total: 80 EUR\n+Total: 90 EUR", "money(EUR)", ("90",), ("80",)),
    ("@@ -1,2 +1,2 @@\n-Net: 70\n-Total: 80\n+Net: 75\n+Total: 90", "number", ("90", "75"), ("80", "70")),
    ("- costs 80 EUR\n+ fast", "money(EUR)", ("80",), ()),
    ("- Milk: 3 EUR\n- Tea: 5 EUR", "money(EUR)", ("3", "5"), ()),
    ("<<<<<<< ours\nTotal: 80\n=======\nTotal: 90\n>>>>>>> theirs\nTax: 5", "number", ("5",), ("80", "90")),
    ('Total <input type="text" value="80.00" placeholder="70.00"> EUR', "money(EUR)", ("80.00",), ("70.00",)),
    ('Quantity <input type="number" min="5" max="90" value="12">', "number", ("12",), ("5", "90")),
    ('<button data-price="80">Buy for 75 EUR</button>', "money(EUR)", ("75",), ("80",)),
    ("IBAN DE89 3704 0044 0532 0130 00", "text", ("DE89 3704 0044 0532 0130 00",), ("DE89 3704 0044", "3704 0044")),
    ("Card 4111 1111 1111 1234", "text", ("4111 1111 1111 1234",), ("4111 1111 1111", "1111 1234")),
    ("Phone +49 30 1234567", "text", ("+49 30 1234567",), ("1234567", "30 1234567")),
    ("Sodium | 140 | mmol/L | 135-145", "quantity(mmol/l)", ("140 mmol/l",), ("135 mmol/l", "145 mmol/l")),
    ("Sodium   140    mmol/L    135-145", "quantity(mmol/l)", ("140 mmol/l",), ("135 mmol/l", "145 mmol/l")),
    ("DE12 5001 0517 0648 4898 90, 80 EUR, Tel. +49 30 1234567", "number", ("80",), ("5001", "90", "30", "1234567")),
    ("| Width (cm) | 80 |\nHeight (cm) | 120", "quantity(cm)", ("80 cm", "120 cm"), ()),
    ("dose=10 mg; rate=5 mg/h", "quantity(mg)", ("10 mg",), ("5 mg",)),
    ("Smoker: yes\nNo claims were made.", "one_of(yes, no)", ("yes",), ()),
    ("Approved. If it had been rejected, call.", "one_of(approved, rejected)", ("approved",), ("rejected",)),
    ("Duration (min): 90", "duration", ("90 min",), ("90 h",)),
    ("The meeting of 5 March 2026 was brought forward to 3 March 2026.", "date", ("2026-03-03",), ("2026-03-05",)),
])  # fmt: skip
def test_what_a_layout_says_is_read(document: str, kind: str, right: tuple[str, ...], wrong: tuple[str, ...]) -> None:
    """Cells of CSV, replaced lines, both sides of a conflict, controls of a form, ids in groups, units in a cell."""
    for claimed in right:
        assert stands(document, kind, claimed)
    for claimed in wrong:
        assert not stands(document, kind, claimed)


@all_rows("document, right, wrong", [
    ("Dosis: 1,500 mg", "1.5 mg", "1500 mg"), ("Dosis: 1.500 mg", "1500 mg", "1.5 mg"),
    ("Dosis: 2,5 mg", "2.5 mg", "25 mg"),
    ("Dosis (mg): 2,5", "2.5 mg", "5 mg"),
])  # fmt: skip
def test_a_quantity_has_the_decimal_separator_of_its_document(document: str, right: str, wrong: str) -> None:
    """As numbers and money have."""
    assert stands(document, "quantity(mg)", right, decimal=",")
    assert not stands(document, "quantity(mg)", wrong, decimal=",")
