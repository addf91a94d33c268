"""What stands in a document stands there as its reader sees it, with everything that belongs to it."""

from __future__ import annotations

import itertools
import threading
from decimal import Decimal

import pytest
from constraint_harness import outcome
from tables import all_rows

from stepguard import Step
from stepguard.checks import judge_claims
from stepguard.checks.grounding import Grounded
from stepguard.checks.text import Forbidden
from stepguard.core.verdicts import Claim
from stepguard.errors import ConfigError, ValueRefused
from stepguard.language.date_expressions import parse_date_expression
from stepguard.language.value_types import ValueType

pytestmark = pytest.mark.once


def grounded(document: str, claimed: str, type: str = "number") -> bool:
    return outcome(Grounded("doc"), claimed, type=type, doc=document) == "pass"


CASES = [
    # code, document, claim, type, whether it stands there
    ("G03-tildes", "Price: ~~80.00~~ 70.00 EUR", "80.00", "money(EUR)", False),
    ("G03-kept", "Price: ~~80.00~~ 70.00 EUR", "70.00", "money(EUR)", True),
    ("G03-hidden", '<p style="display:none">80.00</p> 70.00', "80.00", "number", False),
    ("G03-name", "Tenant: ~~Ann Lee~~ Bob", "Ann Lee", "text", False),
    ("G03-date", "Due <del>2026-11-28</del> 2026-11-29", "2026-11-28", "text", False),
    ("G03-unclosed", "Price: ~~80.00 EUR", "80.00", "money(EUR)", False),
    ("G03-inside", "12~~3~~4 EUR", "12", "money(EUR)", False),
    ("G04-plus", "Net loss ($1,204)", "1204", "money(USD)", False),
    ("G04-cell", "| Net loss | ($1,204) |", "1204", "money(USD)", False),
    ("G04-minus", "| Net loss | ($1,204) |", "-1204", "money(USD)", True),
    ("G04-code", "Net loss (EUR 1,204.00) this year", "1204", "money(EUR)", False),
    ("G04-name", "Net loss (RM 1,204.00) this year", "1204", "money(MYR)", False),
    ("G04-behind", "Balance 5.00 CR", "5", "money(EUR)", False),
    ("G04-before", "Balance DR 5.00", "5", "money(EUR)", False),
    ("G04-trailing", "Balance 5.00 -\n", "5", "money(EUR)", False),
    ("G04-rate", "Tax (8.25%): 6.26", "8.25%", "percent", True),
    ("G05-cents", "Fee 99 US cents", "99", "money(USD)", False),
    ("G05-euro-cents", "Fee 99 euro cents", "99", "money(EUR)", False),
    ("G05-and-cents", "Fee 5 dollars and 20 cents", "5", "money(USD)", False),
    ("G05-rmb", "Fee RMB 5", "5", "money(USD)", False),
    ("G05-rmb-right", "Fee RMB 5", "5", "money(CNY)", True),
    ("G05-minus", "-**5 EUR**", "5", "money(EUR)", False),
    ("G05-minus-right", "-**5 EUR**", "-5", "money(EUR)", True),
    ("G05-million", "$5 **million**", "5", "money(USD)", False),
    ("G05-million-right", "$5 **million**", "5000000", "money(USD)", True),
    ("G05-thousand", "$5 (thousand)", "5", "money(USD)", False),
    ("G05-in-thousands", "5 EUR (in thousands)", "5", "money(EUR)", False),
    ("G05-figure-space", "5\u2007000 EUR", "5", "money(EUR)", False),
    ("G05-figure-space-right", "5\u2007000 EUR", "5000", "money(EUR)", True),
    ("G05-entity", "5&nbsp;000 EUR", "5", "money(EUR)", False),
    ("G05-minus-entity", "&minus;5 EUR", "5", "money(EUR)", False),
    ("G05-full-width", "5．25 EUR", "25", "money(EUR)", False),
    ("G05-full-width-right", "5．25 EUR", "5.25", "money(EUR)", True),
    ("G05-middle-dot", "5·25 EUR", "25", "money(EUR)", False),
    ("G05-glued", "Total RM60.30", "60.30", "money(MYR)", True),
    ("G05-label-scale", "Sum (in thousands): 5 EUR", "5", "money(EUR)", False),
    ("G05-label-scale-right", "Sum (in thousands): 5 EUR", "5000", "money(EUR)", True),
    ("G05-label-zeros", "Sum (in 000s): 5 EUR", "5", "money(EUR)", False),
    ("G05-label-millions", "Umsatz in Mio. EUR: 5", "5", "money(EUR)", False),
    ("G05-label-prefix", "Sum (kEUR): 5", "5", "money(EUR)", False),
    ("G05-label-of-milliers", "CA en milliers : 5 EUR", "5", "money(EUR)", False),
    ("G05-label-rate", "Price (per thousand): 5 EUR", "5", "money(EUR)", True),
    ("G05-label-name", "Thousand Oaks branch: 5 EUR", "5", "money(EUR)", True),
    ("G05-con", "5 euros con 50", "5", "money(EUR)", False),
    ("G10-par", "10 mg par kg", "10 mg", "text", False),
    ("G10-por", "10 EUR por hora", "10 EUR", "text", False),
    ("G10-power-of-a-unit", "10 mg kg⁻¹", "10 mg", "text", False),
    ("G10-product-of-units", "10 N · m", "10 N", "text", False),
    ("G10-times-behind", "10 mg, 5 times", "10 mg", "text", False),
    ("G10-times-in-words", "three times 10 mg", "10 mg", "text", False),
    ("G10-al", "Paid 10 EUR, al contado", "10 EUR", "text", True),
    ("G10-root", "√5 cm", "5", "number", False),
    ("G10-latex-root", r"\sqrt{5}", "5", "number", False),
    ("G10-latex-over", r"\frac{1}{5}", "5", "number", False),
    ("G10-latex-mixed", r"5\frac{1}{2}", "5", "number", False),
    ("G06-yen", "合計12,800円", "12800", "money(JPY)", True),
    ("G06-yen-no-euro", "合計12,800円", "12800", "money(EUR)", False),
    ("G06-pieces", "数量：3個", "3", "integer", True),
    ("G06-full-width", "合計１２，８００円", "12800", "money(JPY)", True),
    ("G06-won", "총액 5,000원", "5000", "money(KRW)", True),
    ("G06-ten-thousands", "合計5万円", "50000", "money(JPY)", True),
    ("G06-ten-thousands-not-5", "合計5万円", "5", "money(JPY)", False),
    ("G06-compound", "合計3億5000万円", "50000000", "money(JPY)", False),
    ("G06-share", "5割引", "5", "integer", False),
    ("G10-per", "10 mg per kg", "10 mg", "text", False),
    ("G10-slash", "Aspirin 10 mg / kg", "Aspirin 10 mg", "text", False),
    ("G10-each", "10 EUR each", "10 EUR", "text", False),
    ("G10-times", "2×10 mg", "10 mg", "text", False),
    ("G10-times-letter", "2 x 10 mg", "10 mg", "text", False),
    ("G10-minus", "-(10 mg)", "10 mg", "text", False),
    ("G10-minus-number", "-(10 mg)", "10", "number", False),
    ("G10-power", "10⁻³ mol", "10", "number", False),
    ("G10-range", "5-10 mg", "10 mg", "text", False),
    ("G10-less", "<10 mg", "10 mg", "text", False),
    ("G10-rest", "2 h 30 min", "2 h", "text", False),
    ("G10-torque", "Torque: 10 N m", "10 N", "quantity(N)", False),
    ("G10-torque-text", "Torque: 10 N m", "10 N", "text", False),
    ("G10-torque-right", "Torque: 10 N m", "10 N m", "quantity(N*m)", True),
    ("G10-energy", "5 kW h a day", "5 kW", "quantity(kW)", False),
    ("G10-energy-words", "5 watt hours", "5 watt", "quantity(W)", False),
    ("G10-foot-pounds", "5 lb ft", "5 lb", "quantity(lb)", False),
    ("G10-degrees", "5 degrees C", "5 degrees", "quantity(degree)", False),
    ("G10-in", "5 m in length", "5 m", "quantity(m)", True),
    ("G10-bar", "a 250 g bar", "250 g", "quantity(g)", True),
    ("G10-behind-per", "1 tablet per 10 mg", "10 mg", "quantity(mg)", False),
    ("G10-every", "a drop every 10 mg", "10 mg", "text", False),
    ("G10-for-every", "10 mg for every kg", "10 mg", "quantity(mg)", False),
    ("G10-sum", "10 mg + 5 mg", "10 mg", "text", False),
    ("G10-right", "Give 10 mg, twice (10 mg)", "10 mg", "text", True),
    ("G11-seen-through", "3\ufe0f5\u3164 EUR", "35", "money(EUR)", True),
]  # fmt: skip


@all_rows("document, claimed, type, held", [case[1:] for case in CASES])
def test_an_amount_stands_there_with_all_that_belongs_to_it(document: str, claimed: str, type: str, held: bool) -> None:
    """Sign, currency, scale, rate and all parts of a number decide what stands in a document."""
    assert grounded(document, claimed, type) is held


@all_rows("document, held", [
    ("| Drug | Dose (mg) | Days |\n|---|---|---|\n| A | 10 | 3 |", True), ("| Dose (mg) |\n|---|\n| 10 |", True),
    ("| Drug | mg |\n| A | 10 |", True), ("| Drug | Dose [mg] |\n| A | 10 |", True), ("Dose / mg: 10", True),
    ("Drug;Dose in mg\nA;10", True), ("Drug  Dose, mg\nA     10", True), ("Dose (mg) : 10\n", True),
    ("Dose (\u00b5g): 10000", True), ("| Drug | Dose (g) |\n| A | 1 |\n\n| Drug | Dose (mg) |\n| B | 10 |", True),
    ("| Drug | Dose (g) | Days |\n|---|---|---|\n| A | 10 | 3 |", False), ("Dose (g): 10", False),
    ("| Drug | Dose (mg/kg) |\n| A | 10 |", False), ("Dose (mg per kg): 10", False), ("Dose per kg (mg): 10", False),
    ("| per kg |\n| Dose (mg) |\n| 10 |", False), ("| Dose (mg) | Dose (g) |\n| 1 | 10 |", False),
    ("| Drug | Dose (mg) | Unit |\n| A | 10 | g |", False), ("Dose (mg): 10 per kg", False),
    ("Dose (mg): <10", False), ("Dose (mg): 10-20", False), ("Dose (mg): -10", False), ("Dose (mg): (10)", False),
    ("Dose (10^3 mg): 10", False), ("Dose (thousand mg): 10", False), ("Old dose (mg): 10", False),
    ("~~Dose (mg): 10~~", False), ("| Drug | Dose (mg) |\n\n10 tablets", False),
])  # fmt: skip
def test_a_bare_number_is_in_the_unit_of_its_head_or_label(document: str, held: bool) -> None:
    """`Dose (mg)` says what a number alone is an amount of; a rate or a scale makes it another."""
    assert grounded(document, "10 mg", "quantity(mg)") is held


@pytest.mark.parametrize("mark", ["~~{}~~", "<s>{}</s>", r"\sout{{{}}}", "[deleted: {}]", "<!-- {} -->"])
@pytest.mark.parametrize("sign", ["", "EUR ", "€", "- ", "**"])
def test_what_is_struck_grounds_nothing_whatever_stands_around_it(mark: str, sign: str) -> None:
    """A struck amount does not stand in a document, and what is written instead of it does."""
    for old, new in (("80.00", "70.00"), ("1,250.00", "1,205.00"), ("5", "6")):
        document = f"Rent: {mark.format(sign + old)} {new} EUR per month"
        assert not grounded(document, old, "money(EUR)")
        assert grounded(document, new, "money(EUR)")


TABLES = {
    "markdown": "| Item | USD | EUR |\n|---|---|---|\n| Net | 108.00 | 100.00 |",
    "plain pipes": "Item | USD | EUR\nNet | 108.00 | 100.00",
    "names": "| Item | Price (USD) | Price (EUR) |\n|--|--|--|\n| Tax | 8.00 | 7.00 |\n| Net | 108.00 | 100.00 |",
    "signs": "| Item | $ | \u20ac |\n|--|--|--|\n| Net | 108.00 | 100.00 |",
    "two rows": "| Item | USD | EUR |\n| | 2025 | 2024 |\n| Net | 108.00 | 100.00 |",
    "html": (
        "<table><tr><th>Item</th><th>USD</th><th>EUR</th></tr>"
        "<tr><td>Net</td><td>108.00</td><td>100.00</td></tr></table>"
    ),
    "tabs": "Item\tUSD\tEUR\nNet\t108.00\t100.00",
    "semicolons": "Item;USD;EUR\nNet;108.00;100.00",
    "aligned": "Item        USD     EUR\nNet      108.00  100.00",
    "blanks": "Item USD EUR\nNet 108.00 100.00",
    "rows": "| Net EUR | 90.00 | 100.00 |\n| Net USD | 99.00 | 108.00 |",
}


@pytest.mark.parametrize("layout", TABLES)
def test_the_head_of_a_column_says_the_currency(layout: str) -> None:
    """G02: an amount in a table is in the currency of its column or row, and in no other one."""
    document = TABLES[layout]
    assert grounded(document, "108.00", "money(USD)")
    assert grounded(document, "100.00", "money(EUR)")
    assert not grounded(document, "108.00", "money(EUR)")
    assert not grounded(document, "100.00", "money(USD)")


@pytest.mark.parametrize(
    "caption",
    ["(in EUR thousands)", "In thousands of EUR", "Amounts in TEUR", "EUR '000", "(\u20ac in thousands)", "\u20ac000"],
)
@pytest.mark.parametrize(
    "layout", ["{}\nSales   1,234\nTax   200", "{}\n\n| Sales | 1,234 |", "| Item | {} |\n|--|--|\n| Sales | 1,234 |"]
)
def test_a_scale_that_is_said_above_belongs_to_the_amounts_below(caption: str, layout: str) -> None:
    """G02: under "in thousands" an amount of money is a thousand times what is printed."""
    document = layout.format(caption)
    assert grounded(document, "1234000", "money(EUR)")
    assert not grounded(document, "1234", "money(EUR)")
    assert not grounded(document, "1234000", "money(USD)")


@all_rows("head", [
    "EUR k", "k EUR", "kEUR", "EUR (k)", "EURk", "K\u20ac", "\u20ack", "EUR x 1,000", "x1000 EUR", "EUR K", "Net EUR k",
])  # fmt: skip
def test_a_scale_beside_the_currency_of_a_column_counts(head: str) -> None:
    """G02: the letter or factor stands on either side of the currency, with a blank or without."""
    document = f"| Item | {head} |\n|--|--|\n| Sales | 1,234 |"
    assert grounded(document, "1234000", "money(EUR)")
    assert not grounded(document, "1234", "money(EUR)")


@all_rows("head", ["EUR", "Amount EUR", "EUR net", "k. A. EUR", "M. Miller EUR", "EUR/unit", "EUR 2024", "EUR Mar"])
def test_other_words_beside_a_currency_are_no_scale(head: str) -> None:
    """G02: initials, units and years leave the amounts as they are."""
    assert grounded(f"| Item | {head} |\n|--|--|\n| Sales | 1,234 |", "1234", "money(EUR)")


def test_percentages_under_their_head() -> None:
    """G02: under a percent sign a number is a percentage and no money; a row that does not fit is doubtful."""
    document = "| Item | % | EUR |\n|--|--|--|\n| VAT | 20 | 100.00 |\n| Low | 0.5 | 3.00 |"
    assert grounded(document, "20%", "percent")
    assert not grounded(document, "20", "money(EUR)")
    assert not grounded(document, "50%", "percent")
    assert not grounded("| Item | USD | EUR |\n|--|--|--|\n| Net | 108.00 |", "108", "money(EUR)")
    assert grounded("We may also be paid in EUR.\n\nTotal 50.00", "50", "money(USD)")
    assert grounded(
        "(in EUR thousands)\n\nThe fee for the account is EUR 50 and it is due at once.", "50", "money(EUR)"
    )


BETWEEN = ["", " ", "\u00a0", "\u2007", "\u202f", "**", " **", "_", " (", " [", ' "', "\u200b", " \u2060"]
SCALES = ["million", "thousand", "bn", "Mio.", "lakh", "crore", "billion", "k", "万"]


@all_rows("between, scale", list(itertools.product(BETWEEN, SCALES)))
def test_a_scale_belongs_to_its_number_whatever_stands_between(between: str, scale: str) -> None:
    """An amount in millions never grounds the bare number in front of the word."""
    closing = {" (": ")", " [": "]", ' "': '"', "**": "**", " **": "**", "_": "_"}.get(between, "")
    assert not grounded(f"Sales of $5{between}{scale}{closing} a year", "5", "money(USD)")


@pytest.mark.parametrize("label", ["Applicant", "applicant", "**Applicant**"])
def test_a_label_is_not_its_own_value(label: str) -> None:
    """G07: what must stand beside the value is not the value, unless it stands there twice."""
    check = Grounded("doc", beside=label)
    assert outcome(check, "Applicant", type="text", doc="Applicant: Ann Lee") == "fail"
    assert outcome(check, "Applicant: Ann", type="text", doc="Applicant: Ann Lee") == "fail"
    assert outcome(check, "Ann Lee", type="text", doc="Applicant: Ann Lee") == "pass"
    assert outcome(check, "Applicant", type="text", doc="Applicant: Mr Applicant") == "pass"
    assert outcome(Grounded("doc", beside="Line 5"), "5", doc="Line 5: 7") == "fail"


@all_rows("unseen", ["\ufe0f", "\u3164", "\u115f", "\u180e", "\u034f", "\u200b", "\U000e0100", "\x00"])
def test_unseen_characters_hide_no_forbidden_word(unseen: str) -> None:
    """G11: a forbidden word is found whatever characters that nobody sees are put into it."""
    for text in (f"so{unseen}rry", f"{unseen}sorry", unseen.join("sorry")):
        assert outcome(Forbidden("sorry"), f"I am {text}.", type="text") == "fail"
    assert outcome(Forbidden(patterns=["[0-9]{8}"]), unseen.join("12345678"), type="text") == "fail"


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["5, ", "5, Total ", "(5) ", "  ($5)", "~~5~~ ", "**5** ", "<b>5</b> "])
def test_a_long_document_is_read(piece: str) -> None:
    """G09: a document of one long line is searched to its end, beside a label, too."""
    document = piece * (200_000 // len(piece)) + "\nTotal 17"
    assert outcome(Grounded("doc", beside="Total"), "17", doc=document) == "pass"
    assert outcome(Grounded("doc", beside="Total"), "18", doc=document) == "fail"


def test_a_search_that_was_given_up_ends() -> None:
    """G09: once nobody waits for a check any more, it stops using the processor."""
    step = Step("t", instruction="Copy it.", type="number", reads=["doc"], checks=[Grounded("doc")])
    values = {"doc": "5 million, " * 60_000}
    (judgement,) = judge_claims([step], [Claim("t", (), "5", "5")], values, timeout=0.05)
    assert judgement.verdicts[0].outcome == "undecided"
    for thread in [each for each in threading.enumerate() if each.name == "stepguard-check"]:
        thread.join(60)
        assert not thread.is_alive()


@all_rows("written", ["$1.6 million", "1.6 million USD", "$1.6M", "US$1.6 million", "1,600 thousand dollars"])
def test_an_amount_in_millions_is_a_value(written: str) -> None:
    """N04: a value of a money step may have a scale, as an amount in a document has."""
    money = ValueType.parse("money(USD)")
    assert money.read(written) == 1_600_000
    for refused in (f"{written} 5", f"({written})", f"3/4 {written}", f"{written}s"):
        with pytest.raises(ValueRefused):
            money.read(refused)
    with pytest.raises(ValueRefused):
        ValueType.parse("number").read("1.6M")


@all_rows("zeros", [1, 8, 9, 30, 300])
def test_no_digit_of_a_number_of_days_is_left_unread(zeros: int) -> None:
    """U04: zeros in front change nothing, and a number that is too large is refused whatever its length."""
    assert parse_date_expression(f"d + {'0' * zeros}15 days") == parse_date_expression("d + 15 days")
    with pytest.raises(ConfigError):
        parse_date_expression(f"d + 1{'0' * zeros}00015 days")


MORE_TABLES = {
    "latex": "\\begin{tabular}{lrr}\nItem & USD & EUR \\\\\n\\hline\nNet & 108.00 & 100.00 \\\\\n\\end{tabular}",
    "latex on a line": r"\begin{tabular}{@{}lrr@{}} Item & USD & EUR \\ Net & 108.00 & 100.00 \\ \end{tabular}",
    "latex array": r"\begin{array}{l|r|r} & \text{USD} & \text{EUR} \\[2pt] \hline Net & 108.00 & 100.00 \end{array}",
    "grid": "+-----+--------+--------+\n| It. | USD | EUR |\n+=====+========+========+\n| Net | 108.00 | 100.00 |",
    "asciidoc": "[cols=3]\n|===\n|Item |USD |EUR\n\n|Net |108.00 |100.00\n|===",
    "quoted": '"Item","USD","EUR"\n"Net","108.00","100.00"',
    "pretty html": (
        "<table>\n<tr>\n <th>Item</th>\n <th>USD</th>\n <th>EUR</th>\n</tr>\n"
        "<tr>\n <td>\n  Net\n </td>\n <td>108.00</td>\n <td>100.00</td>\n</tr>\n</table>"
    ),
    "json": '[{"amount": 108.00, "currency": "USD"}, {"amount": 100.00, "currency": "EUR"}]',
    "pretty json": (
        '[\n {\n  "amount": 108.00,\n  "currency": "USD"\n },\n {\n  "amount": 100.00,\n  "currency": "EUR"\n }\n]'
    ),
    "wiki": '{| class="wikitable"\n|+ Net\n! Item !! USD !! EUR\n|-\n| Net || 108.00 || align="right" | 100.00\n|}',
    "wiki lines": '{|\n! Item\n! scope="col" | USD\n! EUR\n|-\n| Net\n| 108.00\n| 100.00\n|}',
    "bars": "|| Item || USD || EUR ||\n| Net | 108.00 | 100.00 |",
    "json keys": '{"USD": 108.00, "EUR": 100.00}',
    "yaml": "- amount: 108.00\n  currency: USD\n- amount: 100.00\n  currency: EUR",
    "xml": '<amount currency="USD">108.00</amount><amount currency="EUR">100.00</amount>',
    "headings": "## USD\nNet: 108.00\n\n## EUR\nNet: 100.00",
    "sections": "Prices in USD\nNet 108.00\n\nPrices in EUR\nNet 100.00",
}


@all_rows("layout", MORE_TABLES)
def test_every_layout_says_the_currency_of_its_amounts(layout: str) -> None:
    """G02: tables of LaTeX, grids and records are read by their heads and keys as those of Markdown are."""
    document = MORE_TABLES[layout]
    assert grounded(document, "108.00", "money(USD)")
    assert grounded(document, "100.00", "money(EUR)")
    assert not grounded(document, "108.00", "money(EUR)")
    assert not grounded(document, "100.00", "money(USD)")


@pytest.mark.parametrize(
    "head",
    [
        *("Invoice (EUR)", "All prices EUR", "Invoice in euros", "Currency: EUR", "ACME GmbH, EUR invoice"),
        *("Konto in EUR gef\u00fchrt", "\u20ac price list", "Betrag in Euro", "EUR", "Amounts in EUR"),
    ],
)  # fmt: skip
def test_a_heading_says_the_currency_of_amounts_without_one(head: str) -> None:
    """G02: a bare amount is in the currency of the document's headings, and in any where nothing names one."""
    document = f"{head}\n\nItem 1\nTotal 50.00"
    assert grounded(document, "50", "money(EUR)")
    assert not grounded(document, "50", "money(USD)")
    for silent in ("Invoice", "SDN BHD LTD", "Shipping $5.00", "You can also pay in EUR", "Weight 5 pounds"):
        assert grounded(f"{silent}\n\nItem 1\nTotal 50.00", "50", "money(USD)")
    for head in (
        "Amount (yen)",
        "YEN",
        "| Yen |",
        "Japanese Yen",
        "in z\u0142",
        "Kwoty w z\u0142",
        "\uff08\u5186\uff09",
        "\u20b1",
        "$",
    ):
        assert not grounded(f"{head}\n\nItem 1\nTotal 50.00", "50", "money(EUR)")
    for name in ("EURO FOODS LTD", "Yen Yen Restaurant", "sterling silver", "Games won", "Tooth crowns", "Peso: 5 kg"):
        assert grounded(f"{name}\n\nItem 1\nTotal 50.00", "50", "money(USD)")
    assert not grounded("USD\nNet: 108.00\n\nEUR\nNet: 100.00", "100.00", "money(USD)")  # which is meant is not said


@pytest.mark.parametrize(
    ("document", "claimed", "held"),
    [
        *(("Total: 1 448.60 EUR", "1448.60", True), ("Montant : 12 345.60 \u20ac", "12345.60", True)),
        *(("| Total | 1 448.60 EUR |", "1448.60", True), ("EUR 1 448.60", "1448.60", True)),
        *(("Widgets 2 448.60 EUR", "2448.60", False), ("Total: 1 448.60 EUR", "448.60", False)),
        *(("2 448.60 EUR", "448.60", False), ("Total: 1 448", "1448", False)),
    ],
)
def test_a_common_blank_groups_digits_behind_a_label(document: str, claimed: str, held: bool) -> None:
    """G05: behind a label or a currency an amount with two places is one; else there may be two numbers."""
    assert grounded(document, claimed, "money(EUR)") is held


@all_rows(
    "written, type, value",
    [
        *(
            ("12,800\u5186", "money(JPY)", 12800),
            ("5 yen", "money(JPY)", 5),
            ("RM60.30", "money(MYR)", Decimal("60.30")),
        ),
        *(
            ("5\u4e07\u5186", "money(JPY)", 50000),
            ("5 Canadian dollars", "money(CAD)", 5),
            ("1 448.60 EUR", "money(EUR)", Decimal("1448.60")),
            *((f"1{blank}448,60 \u20ac", "money(EUR)", Decimal("1448.60")) for blank in " \u00a0\u202f\u2009"),
            *(("1\u00a0448,6", "number", Decimal("1448.6")), ("1\u00a0448,600 \u20ac", "money(EUR)", None)),
            *(("1448,60 \u20ac", "money(EUR)", None), ("1 44,60 \u20ac", "money(EUR)", None)),
        ),
        *(("5 yen", "money(EUR)", None), ("99 cents", "money(USD)", None), ("5 yen", "number", None)),
        *(("5 yen 3", "money(JPY)", None), ("5 apples", "money(USD)", None), ("1 448 EUR", "money(EUR)", None)),
    ],
)
def test_a_value_is_read_as_a_document_is(written: str, type: str, value: object) -> None:
    """G06: names of currencies and groups of digits are read in a value by the reader that finds them in a document."""
    if value is not None:
        assert ValueType.parse(type).read(written) == value
        assert grounded(f"Total: {written}", written, type)
        return
    with pytest.raises(ValueRefused):
        ValueType.parse(type).read(written)


@pytest.mark.parametrize("mask", ["****", "************", "**** **** **** ", "\u2022\u2022\u2022\u2022 "])
def test_what_is_left_of_a_masked_number_is_no_amount(mask: str) -> None:
    """G05: the last digits of a card are none; emphasis around an amount changes nothing."""
    assert not grounded(f"VISA {mask}1234 paid", "1234", "money(USD)")
    assert grounded("Total **1234** USD", "1234", "money(USD)")
    assert grounded("Total ***1234*** USD", "1234", "money(USD)")


SPLIT = [
    "1, 234.00", "1 ,234.00", "1 , 234.00", "1\\,234.00", "1{,}234.00", "1\\ 234.00", "1\\thinspace 234.00",
    "1,\n234.00",
]  # fmt: skip


@pytest.mark.parametrize("currency", ["EUR {}", "\u20ac{}", "{} EUR", "Total: {} \u20ac"])
@pytest.mark.parametrize("written", SPLIT)
def test_an_amount_that_a_blank_or_a_command_splits_is_one(written: str, currency: str) -> None:
    """G05: no part of an amount stands there where scanning or LaTeX put something between its digits."""
    document = f"Paid {currency.format(written)} today"
    assert not grounded(document, "234.00", "money(EUR)")
    assert not grounded(document, "1", "money(EUR)") or not currency.startswith(("EUR", "\u20ac"))
    if "\\" in written or "{" in written:
        assert grounded(document, "1234.00", "money(EUR)")
    for kept in ("We paid EUR 5, 25 people came, and EUR 7.", "Paid EUR 5.00, 250.00 and 7.00"):
        assert grounded(kept, "5", "money(EUR)")
    assert grounded("Paid EUR 5.00, 250.00 and 7.00", "250", "money(EUR)")


@all_rows(
    "document, claimed, type, held",
    [
        *(("Net: - $1,204", "1204", "money(USD)", False), ("| Net | - 5.00 |", "5", "money(EUR)", False)),
        *(("- 5.00 EUR for tea", "5", "money(EUR)", True), ("moins 5 EUR", "5", "money(EUR)", False)),
        *(("au moins 5 EUR", "5", "money(EUR)", True), ("Growth \u2193 12%", "12%", "percent", False)),
        *(("Net loss $(1,204)", "-1204", "money(USD)", True), ("Net loss $(1,204)", "1204", "money(USD)", False)),
        *(("Net loss $ (1,204) million", "-1204", "money(USD)", False), ("<1,204.00>", "1204", "money(USD)", False)),
        *(("Saldo 12.50 S", "12.50", "money(EUR)", False), ("Balance 12.50 OD", "12.50", "money(EUR)", False)),
        *(
            ("(000's omitted)\nNet $383", "383", "money(USD)", False),
            ("(000s)\nNet $383", "383000", "money(USD)", True),
        ),
        *(
            ("(thousands of dollars)\nNet 383", "383", "money(USD)", False),
            ("Net ($m)  383", "383", "money(USD)", False),
        ),
        *(("Net in million dollars: 383", "383", "money(USD)", False), ("Net (USD)  383", "383", "money(USD)", True)),
        *(
            ("amount_usd: 8.00\namount_eur: 7.00", "8", "money(EUR)", False),
            ("priceEur = 7.00", "7", "money(EUR)", True),
        ),
        *(("amount_usd,amount_eur\n8.00,7.00", "8", "money(EUR)", False), ("last_all: 7.00", "7", "money(EUR)", True)),
        ('{"currency": "USD", "lines": [{"amount": 8.00}, {"amount": 5.00}]}', "8", "money(EUR)", False),
        *(
            ("Total 8.00\n\nAll prices are in USD unless stated otherwise.", "8", "money(EUR)", held)
            for held in (False,)
        ),
        *(("$5 (Canadian)", "5", "money(USD)", False), ("$5 (Canadian)", "5", "money(CAD)", True)),
        *(("5 dollars (Canadian)", "5", "money(USD)", False), ("99 US-cents", "99", "money(USD)", False)),
        *(
            ("99 GBp", "99", "money(GBP)", False),
            ("5 GBP", "5", "money(GBP)", True),
            ("99 gr", "99", "money(PLN)", False),
        ),
        *(("5 \u043b\u0432", "5", "money(EUR)", False), ("5 \u0435\u0432\u0440\u043e", "5", "money(EUR)", True)),
        *(
            ("5\u5757", "5", "money(EUR)", False),
            ("Dhs 5", "5", "money(EUR)", False),
            ("5 KSh", "5", "money(EUR)", False),
        ),
        *(
            ("{{strike|80.00}} 70.00", "80.00", "number", False),
            ("\\iffalse 80.00 \\fi 70.00", "80.00", "number", False),
        ),
        *(("\\iffalse 80.00 \\fi 70.00", "70.00", "number", True), ("{{strike|8.00}} 7.00", "7.00", "number", True)),
        ("\\begin{comment}80.00\\end{comment} 70.00", "80.00", "number", False),
        ("<text:deletion>80.00</text:deletion> 70.00", "80.00", "number", False),
        ('<b style="color:#fff">80.00</b> 70.00', "80.00", "number", False),
        ('<b style="background:#333;color:#fff">80.00</b>', "80.00", "number", True),
        ('<input type="hidden" value="80.00"> 70.00', "80.00", "number", False),
        *(
            ("10^-3 mol", "10", "number", False),
            ("10^{-3}", "10", "number", False),
            ("10 \u207b\u00b3", "10", "number", False),
        ),
        *(("10**-3", "10", "number", False), ("10! ways", "10", "number", False), ("10!!", "10", "number", False)),
        *(("10 squared", "10", "number", False), ("10-fold", "10", "number", False), ("10 : 1", "10", "number", False)),
        *(
            ("We won 10!", "10", "number", True),
            ("Won 10! Well done.", "10", "number", True),
            ("at 10: 1", "10", "number", True),
        ),
    ],
)
def test_signs_scales_currencies_and_powers_in_other_notations(
    document: str, claimed: str, type: str, held: bool
) -> None:
    """What accountants, programs, scanners and other scripts write beside a number belongs to it as well."""
    assert grounded(document, claimed, type) is held
