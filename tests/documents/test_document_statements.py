"""What a document says of an amount belongs to it: denied, bounded, a guess, void, an example, on a condition."""

from __future__ import annotations

import itertools

import pytest
from constraint_harness import outcome
from tables import all_rows

from stepguard import Step
from stepguard.checks import judge_claims
from stepguard.checks.grounding import Grounded
from stepguard.core.verdicts import Claim

pytestmark = pytest.mark.once


def grounded(document: str, claimed: str, type: str = "number", *, question: str = "Copy it.") -> bool:
    """Whether a claim stands in a document, for a question."""
    step = Step("t", instruction=question, type=type, reads=["doc"], checks=[Grounded("doc")])
    (judgement,) = judge_claims([step], [Claim("t", (), claimed, claimed)], {"doc": document})
    return judgement.verdicts[0].outcome == "pass"


IN_FRONT = (
    *(
        "not",
        "is not",
        "never",
        "instead of",
        "nicht",
        "up to",
        "at most",
        "no more than",
        "less than",
        "over",
        "about",
    ),
    *(
        "max.",
        "~",
        "\u2264",
        "half of",
        "a third of",
        "twice",
        "three times",
        "3 tablets of",
        "two doses of",
        "5\u2026",
        "5...",
    ),
    *("5 to", "5 mg to", "5 mg \u2013", "between 5 and", "between 5 mg and", "\u221a", "exceeds", "environ", "bis zu"),
)
BEHIND = (
    *(
        " or more",
        " and above",
        "+",
        " to 20 mg",
        " \u2013 20 mg",
        "\u2026 20 mg",
        " at most",
        " max",
        " \u00b1 1",
        " per kg",
        " a day",
    ),
    *(" each", " less", " three times daily", "\u00b2", " x 3", ", 3 times", " par jour", " pro Tag"),
)


@all_rows("document", [f"{front} 10 mg" for front in IN_FRONT] + [f"10 mg{behind}" for behind in BEHIND])
def test_a_quantity_in_words_is_found_as_a_whole(document: str) -> None:
    """G10: what is denied, bounded, a range, a share, a multiple or a rate of a quantity is not that quantity."""
    assert not grounded(document, "10 mg", "text")
    assert not grounded(f"Give {document} today.", "10 mg", "text")
    assert grounded(f"Give {document} today, later 10 mg.", "10 mg", "text")


@all_rows(
    "document, claimed, held",
    [
        *(("5 ft 10 in", "10 in", False), ("2 h 30 min", "30 min", False), ("5 lb, 3 oz", "3 oz", False)),
        *(("3 years and 6 months", "6 months", False), ("1 g 10 mg", "10 mg", False), ("5'10 in", "10 in", False)),
        *(("not approved", "approved", False), ("no insurance", "insurance", False), ("isn't valid", "valid", False)),
        *(("not Ann Lee but Bob", "Ann Lee", False), ("instead of Ann Lee", "Ann Lee", False)),
        *(("Ann Lee, not Bob", "Ann Lee", True), ("not applicable", "not applicable", True)),
        *(("Maximum: 10 mg", "10 mg", True), ("reduced to 10 mg", "10 mg", True), ("a tablet of 10 mg", "10 mg", True)),
        *(("within 30 days", "30 days", True), ("sugar 100 g, salt 5 g", "5 g", True)),
        *(("No Name Ltd", "No Name Ltd", True), ("Notary Lee", "Lee", True)),
        *(("10 mg, twice a day", "10 mg", True), ("10 Main Street", "10 Main Street", True)),
    ],
)  # fmt: skip
def test_what_stands_beside_a_text_belongs_to_it(document: str, claimed: str, held: bool) -> None:
    """G10: a denial and the larger unit in front of a text make it another one; labels and lists do not."""
    assert grounded(document, claimed, "text") is held


@pytest.mark.parametrize("written", ["28 November 2026", "2026-11-28"])
def test_a_date_that_is_denied_does_not_stand_there(written: str) -> None:
    """G10: a denial right in front of a date takes it away; a term does not."""
    for front, held in (
        ("not ", False),
        ("not on ", False),
        ("instead of ", False),
        ("not later than ", True),
        ("due ", True),
    ):
        verdict = outcome(Grounded("doc", kind="date"), "2026-11-28", type="text", doc=f"Delivery {front}{written}.")
        assert (verdict == "pass") is held


@pytest.mark.parametrize("amount", ["10 EUR", "\u20ac10", "EUR 10.00"])
def test_an_amount_of_money_counts_unless_it_is_denied_or_shared(amount: str) -> None:
    """G10: a number that is bounded stands there, one that is denied or only shared does not."""
    for front in ("not ", "is not ", "instead of ", "nicht ", "half of ", "twice ", "a third of ", "minus "):
        assert not grounded(f"We pay {front}{amount}", "10", "money(EUR)")
    for front in ("up to ", "at most ", "not ", "half of ", "5 to ", "over "):
        assert not grounded(f"We pay {front}{amount}", amount, "text")
    for front in ("", "up to ", "at most ", "no more than ", "between 5 and ", "Not paid: ", "20% of "):
        assert grounded(f"We pay {front}{amount}", "10", "money(EUR)")
    assert grounded("invoice no 10", "10")


CHANGED = (
    *("10 mg in 5 mL", "10 mg q8h", "10 mg daily", "10 mg bid", "10 mg x2", "10 mg twice", "10 mg or 20 mg", "10 mg%"),
    *("10 mg or so", "10 mg approx.", "10 mg (\u00b11)", "10 mg +/- 1", "10 mg (?)", "10 mg is wrong", "10 mg (wrong)"),
    *("10 mg was a typo", "10 mg, no: 20 mg", "10 mg (correction: 20 mg)", "2 tabs \u00d7 10 mg", "2(10 mg)"),
    *("two 10 mg tablets", "\u226a10 mg", "\u2a7d10 mg", "\\leq 10 mg", "maximum 10 mg", "as much as 10 mg"),
    *("some 10 mg", "close to 10 mg", "up to a total of 10 mg", "in place of 10 mg", "without 10 mg"),
)


@all_rows("document", CHANGED)
def test_a_quantity_is_bounded_repeated_or_corrected_by_what_stands_beside_it(document: str) -> None:
    """G10: schedules, factors, bounds and corrections make a quantity another one; plain words do not."""
    assert not grounded(document, "10 mg", "text")
    assert not grounded(f"Dose: {document}; see below", "10 mg", "text")


@all_rows(
    "document",
    ["10 mg", "10 mg once", "10 mg tablets", "10 mg, orally", "10 mg in water", "Maximum: 10 mg", "10 mg. Or rest."],
)
def test_plain_words_beside_a_quantity_leave_it(document: str) -> None:
    """G10: what is said of a quantity changes nothing."""
    assert grounded(document, "10 mg", "text")


UNSTATED = (
    # a guess
    *("approx. {}", "Total: approximately {}", "about {}", "~{}", "\u2248 {}", "ca. {}", "estimated at {}", "etwa {}"),
    *("{} or so", "{} (approx.)", "{} (estimated)", "{} \u00b1 5", "{}, give or take", "maybe {}", "{}?", "{} (?)"),
    *("The total would be {}", "I think {}", "nearly {}.", "{}-ish"),
    *("{} (tbc)", "{} plus/minus 5", "{}-odd", "Is it 70 EUR or {}?", "We first thought it was {}"),
    # an example
    *("Example: Total {}", "e.g. {}", "(e.g. a fee of {})", "for example {}", "such as {}", "Sample: {}", "z.B. {}"),
    *("## Example\n\nTotal: {}", "Example:\n\nTotal: {}", "Example:\nNet: 1\nTotal: {}", "| Example | {} |"),
    # what another amount changes by
    *("The fee was cut by {}.", "The price rose by {}.", "{} more than last year", "{} off!", "Fee: {} discount"),
    *("Discount: {}", "Your refund: {}", "{} is deducted", "{} cheaper"),
    # void
    *("A fee of {} does not exist.", "{} was a misprint."),
    *("VOID\nTotal {}", "*** VOID ***\n\nTotal {}", "Invoice (DRAFT)\nTotal {}", "Total {} VOID", "VOID: Total {}"),
    *("Total {} (cancelled)", "Total {} - not valid", "Wrong total: {}", "Cancelled:\n- {}\n- 9", "Draft total: {}"),
    *("This invoice is void.\nTotal {}", "This is a sample invoice.\nTotal {}", "Cancelled invoice\n\nTotal {}"),
    *("Diese Rechnung ist storniert.\nSumme {}", "Facture annul\u00e9e\nTotal {}", "Total {} (expired)"),
    *("Total {}; this is incorrect", "Total {}. Sorry, 70 EUR.", "Total {}\nCorrected total: 70 EUR"),
    *("Rent {} (proposed)", "Rent {} is no longer charged", "Placeholder: {}", "{} would be due"),
    *("{} is void", "{} [sic]", "{}, which is wrong", "Total {} *** VOID ***", "No longer valid: {}"),
    *("{} cancelled on 2 May", "TRAINING MODE\nTotal {}"),
    # old
    *("was {}", "Price 5 (was {})", "Total was {} but is now 70", "formerly {}", "Old price: {}", "{}, now 70 EUR"),
    *("reduced from {} to 70 EUR", "instead of the usual {}", "{} \u2192 70 EUR", "{} (should be 70 EUR)"),
    *("{} corrected to 70 EUR", "Until 2025 the limit was {}", "Read 70 EUR for {}"),
    *("| Item | Old price |\n|--|--|\n| Tea | {} |", "Alter Preis: {}", "Ancien prix : {}", "fr\u00fcher {}"),
    *("Die Miete stieg von {} auf 90 EUR", "The rent was {} until May, since then 90 EUR", "Rent: {} (old)"),
    # denied
    *("Le total n'est pas de {}", "in no way {}", "We do not charge a fee of {}", "He denied that it is {}"),
    *("no fee of {}", "The total cannot be {}", "It is false that the total is {}", "anything but {}"),
    *("the fee of {} does not apply", "neither 5 EUR nor {}"),
    # on a condition
    *("Si vous payez en retard, {}", "En cas de retard : {}", "Im Falle eines Verzugs: {}", "Let's say it is {}"),
    *("if paid late, {}", "{} if paid late", "If paid late: {}", "| If late | {} |"),
    *("Total 70 EUR, or {} if paid late", "Total 70 EUR; unless paid today, {}", "Suppose the total is {}"),
    # thought, asked, or to be ignored
    *("I believe the rent is {}.", "We think it comes to {}.", "Perhaps we should say {}.", "As far as I know, {}."),
    *("The cost is expected to be {}.", "Le prix serait de {}.", "Unos {}", "Guess: {}", "Co\u00fbt estim\u00e9 : {}"),
    *("Shall I transfer {} today?", "She asked if the rent is {}.", "I asked whether the rent is {}."),
    *("Ignore the {}.", "We never agreed to pay {}.", "{} is not the total.", "Il totale non \u00e8 {}"),
    *("I was told it is {}.", "He mentioned {}.", "Apparently {}", "I heard the fee is {}.", "I'd say {}."),
    *("{}, I suppose", "I wish it were {}.", "From memory: {}", "Please let me know if {} is right."),
    "{}, as far as I know",
    # what might be, or did not come about
    *("We would charge {}.", "You might get {} back.", "You would have paid {} then.", "The fee was to be {}."),
    *("It does not cost {}.", "We have not yet received the {}.", "He refused to pay the {}."),
    *("Nothing obliges us to pay {}.", "We waived the {}.", "Please remove the {} for tea."),
    "It was decided not to raise it to {}.",
    *("short of {}", "The fee of {} has been abolished.", "Payment {}: failed", "The fee of {} was sent by mistake."),
    *("We were going to charge {}.", "It used to cost {}.", "The transfer of {} could not be executed."),
    *("2% discount if paid by Friday: {}", "Total : {} (estimation)", "QUOTE - EXPIRED\nTotal {}"),
    # taken back
    *("{}, I mean 70 EUR", "{} - no, 70 EUR", "{}. This figure is wrong.", "{} (Correction: 70 EUR)"),
    *("{}, make that 70 EUR", "{}, or maybe 70 EUR", "Either {} or 70 EUR", "Change {} to 70 EUR."),
    "{}, which should be 70 EUR",
    # in further places
    *("Clause (repealed): fee {}", "Total, superseded: {}", "Price (last year): {}", "Old fee ...... {}"),
    "old_fee: {}",
    *("Before: {}\nAfter: 70 EUR", "Status: cancelled\nTotal {}", "Example 1: a lamp for {}"),
    "{} (out of stock, removed)",
    *("| Plan | Monthly (old) |\n|---|---|\n| Pro | {} |", "Plan\tPrice if late\nPro\t{}", "Total {} [old price]"),
    *("(old) rent {}", "Rent {}, crossed out;", "<h2>Example</h2><p>Total: {}</p>", "## Old tariff\n\nBasic: {}"),
    *("Item;Old price\nTea; {}", "Item    Old price\nTea       {}", "Item,Old price,Price\nTea,{},70 EUR"),
    *("The fee of {} was increased to 90 EUR", "Moved from {} to 90 EUR", "For {} read 90 EUR"),
    "von {} auf 90 EUR erh\u00f6ht",
    # in a footnote
    *("Total {}*\n\n* estimated", "Total {}\u00b9\n\n\u00b9 in thousands", "Total {}\u2020\n\u2020 if paid late"),
)  # fmt: skip
STATED = (
    *("Total: {}", "up to {}", "at least {}", "between 70 EUR and {}", "no more than {}", "Limit: {}", "{} each"),
    *("Cancellation fee: {}", "Draft beer {}", "Sample kit {}", "Example Ltd\nTotal {}", "Void where prohibited\n{}"),
    *("Total after discount: {}", "{} with a discount card", "Paid by card {}", "{} discount of 3 EUR included"),
    *("The amount was {}.", "The price rose from 70 EUR to {}", "{} instead of 90 EUR", "{} (was 90 EUR)"),
    *("Not paid: {}", "Deposit {} unless the flat is damaged", "| Item | Old price | Price |\n| Tea | 70 EUR | {} |"),
    *("This contract is void if unsigned. Fee {}", "This receipt is not valid for exchange. Total {}", "SI units: {}"),
    *("Total {}. Sorry for the delay, 3 days.", "Kaution {}, falls gew\u00fcnscht", "You need not pay the fee of {}"),
    *("Old price: 70 EUR, new price: {}", "Expected: 70 EUR | Actual: {}", "{}. It is wrong to smoke here."),
    *("Don't miss a saving of {}!", "The fee of {} would be waived for members.", "Fee (formerly 70 EUR): {}"),
    *("Musterfirma GmbH\nBeispielweg 3\nSumme {}", "Si vous avez des questions, appelez-nous. Total {}"),
    *("If you have questions, call. Total {}", "If the order is over {}, shipping is free", "How much? {}"),
    *("We paid {} about a week ago", "{}, probably in cash", "{}. If paid late, 90 EUR.", "{}, or 90 EUR if paid late"),
    *("IF: {}", "Egg {}", "Discount, if any: {}", "Rent {} unless otherwise agreed", "It is {}. Any questions?"),
    *("The rent is {}. Is that right?", "Total {} - questions? Call us.", "What is the rent?\n{}", "All about tea {}"),
    *("Not only tea but cake: {}", "Do not forget that the rent is {}.", "We never charge more than {}."),
    *("IF Award {}", "Rent: 70 EUR (old), {} (new)", "Old Fashioned {}", "{} \u2192 108 USD"),
    *("Void where prohibited\n{}", "Call us if you need help. Rent {}", "Unless otherwise agreed, the rent is {}."),
    *("If you cancel late, the deposit of {} is kept.", "The deposit of {} is due if you sign.", "In any case {}"),
    *("We do not refund the fee of {}.", "You have not paid the fee of {}.", "It does not cost 70 EUR, it costs {}."),
    *("The buyer, who is no consumer, pays {}.", "He did not come because it costs {}."),
    "I did not know that it is {}.",
    *("We would like to remind you that {} are due.", "Even if you do not come, the fee is {}."),
    "{} even if you cancel",
    *("If you have not paid yet, please pay {}.", "When you have time, please pay {}."),
    "There is no doubt that it is {}.",
    *("Before tax: {}", "Growth {} (expected: 70)", "Price: 90 EUR ({} for members)"),
    "We cancelled the trip and got {} back.",
    *("Old Vine Red | {}", "Item | Old | Price\nTea | 70 EUR | {}", '{{"old_fee": "70 EUR", "fee": "{}"}}'),
    *("<dl><dt>Old fee</dt><dd>70 EUR</dd><dt>Fee</dt><dd>{}</dd></dl>", "Compared to last year: {}", "Change: {}"),
    *("When we arrived, we paid {}.", "We paid {} when we arrived."),
    *("Free shipping if the order is over {}, else 5 EUR", "This is not a receipt\n{}"),
    *("a. tea\nb. milk\nc. {}", "Total {}*\n\n* incl. tax", "Example:\nTotal 70 EUR\n\nTotal {}"),
)  # fmt: skip
AMOUNTS = [("80.00 EUR", "money(EUR)"), ("\u20ac80", "money(EUR)"), ("80 mg", "quantity(mg)"), ("80%", "percent")]


@all_rows("document, amount", list(itertools.product(UNSTATED, AMOUNTS)))
def test_an_amount_that_a_document_does_not_state_does_not_stand_in_it(document: str, amount: tuple[str, str]) -> None:
    """A guess, an example, what is void, old or denied, and what hangs on a condition is no amount of a document."""
    written, kind = amount
    assert not grounded(document.format(written), written, kind)


@all_rows("document, amount", list(itertools.product(STATED, AMOUNTS[:2])))
def test_words_that_leave_an_amount_stated(document: str, amount: tuple[str, str]) -> None:
    """Ends of ranges, limits, new prices and names that only look like such words take nothing away."""
    written, kind = amount
    assert grounded(document.format(written), written, kind)


@all_rows(
    "document, question, held",
    [
        *(("Total 70 EUR. If paid late, 80 EUR.", question, held) for question, held in (
            ("Copy the late fee.", True), ("Copy the total.", False))),
        *(("If you cancel within 30 days, the fee is 80 EUR.", question, held) for question, held in (
            ("How much is the cancellation fee?", True), ("What is the price?", False))),
        *(("En cas de retard, une p\u00e9nalit\u00e9 de 80 EUR est due.", question, held) for question, held in (
            ("Copy the penalty.", True), ("Copy the total.", False))),
        *(("If not paid in time, a late fee of 80 EUR is added.", question, held) for question, held in (
            ("Copy the late fee.", True), ("Copy the total.", False))),
        *((document, question, held) for document in (  # a condition governs its clause, whatever that is about
            "If you cancel late, the {} is 80 EUR.", "The {} is 80 EUR when you cancel late.", "Cancelled late: 80 EUR",
            "The {} if you cancel late is 80 EUR.", "As {}, 80 EUR is charged if you cancel late.",
            "In the event of late cancellation the {} is 80 EUR.", "(if you cancel late) {} 80 EUR",
            ) for question, held in (("Copy the rental deposit.", False), ("What if the guest cancels?", True))),
        *((f"80 EUR if you are a member, {behind}", question, held) for behind in ("100 EUR otherwise.", "else 100 EUR")
            for question, held in (("the price for members", True), ("the price for non-members", False),
                ("what those who are not members pay", False), ("the price", False))),
        *((f"100 EUR if you are a member, {behind}", question, held) for behind in ("80 EUR otherwise.", "else 80 EUR")
            for question, held in (("the price for members", False), ("the price for non-members", True),
                ("what those who are not members pay", True), ("the price", False))),
        *((f"{label}: 80 EUR\nNew rent: 90 EUR", question, held) for label, question, held in (
            ("Old rent", "the rent", False), ("Previous rent", "the rent", False), ("Alte Miete", "the rent", False),
            ("Precio anterior", "the price", False), ("Previous rent", "the previous rent", True))),
        *(("The fee was cut by 80 EUR. Discount: 80 EUR", question, held) for question, held in (
            ("the fee", False), ("the discount", True), ("by how much the fee was cut", True))),
        *(("Should the goods arrive damaged, you receive 80 EUR.", question, held) for question, held in (
            ("the price of the goods", False), ("what you receive for damaged goods", True))),
        *((document, question, held) for document in (  # what the question excludes
            "With breakfast: 80 EUR", "Only with breakfast: 80 EUR", "80 EUR (breakfast only)") for question, held in (
                ("the price with breakfast", True), ("the price without breakfast", False))),
        *((f"{label} 80", question, False) for label in ("Invoice no.", "Room", "See section", "Article", "Tel:")
            for question in ("Copy the price.",)),
        *(("There is no deposit of 80 EUR", q, h) for q, h in (("How much is the deposit?", False),)),
        *((f"{called}: 80 EUR", question, False) for called, question in (  # words that only begin alike
            ("Incorrect", "Copy the income."), ("Expected", "Copy the expenses."), ("Proposed", "the property tax"))),
        *(("SPECIMEN\nPrice 80 EUR", question, held) for question, held in (
            ("Copy the special price.", False), ("Copy the price of the specimen.", True))),
        *(("The cost is estimated at 80 EUR.", question, held) for question, held in (
            ("Copy the estimated cost.", True), ("Copy the cost.", False))),
        *((document, "Copy the rent.", True) for document in (  # what is said of another line
            "* Rent: 80 EUR\n* Late fee if paid late: 20 EUR", "Express shipping (cancelled)\nRent 80 EUR",
            "Rent: 80 EUR (if paid in cash: 75 EUR)", "Rent 80 EUR, if not already paid.",
            "Rent: 80 EUR*\n* incl. VAT; if you have questions, call us",
            "| item | price | old |\n|---|---|---|\n| a \\| b | 80 EUR | 90 EUR |")),
        *(("Old price: 80 EUR", question, held) for question, held in (
            ("Copy the former or old price.", True), ("Copy the price.", False))),
        *(("Example: 80 EUR", question, held) for question, held in (
            ("Which amount is the example for?", True), ("Copy the amount.", False))),
    ],
)  # fmt: skip
def test_a_question_may_ask_for_what_is_old_or_conditional(document: str, question: str, held: bool) -> None:
    """What is called something stands there for the question that names it, and for no other one."""
    assert grounded(document, "80", "money(EUR)", question=question) is held


@all_rows(
    "document, said",
    [
        *(("approx. 80 EUR", "as a guess"), ("never ask for 80 EUR", "behind"), ("Void: 80 EUR", "beside 'Void'")),
        *(("Is it 80 EUR now?", "as part of a question"), ("If paid late, 80 EUR", "'If paid late'")),
        *(("VOID\nTotal 80 EUR", "'VOID'"), ("I think 80 EUR", "behind 'I think'"), ("Page 80", "as a reference")),
        ("8 EUR", "does not stand in"),
    ],
)  # fmt: skip
def test_why_an_amount_is_not_stated_is_said(document: str, said: str) -> None:
    """What stands beside the amount is named, so that the step can be asked for what it means."""
    step = Step("t", instruction="Copy the rent.", type="money(EUR)", reads=["doc"], checks=[Grounded("doc")])
    (judgement,) = judge_claims([step], [Claim("t", (), "80", "80")], {"doc": document})
    assert said in judgement.verdicts[0].reason


@all_rows(
    "document",
    [
        "(Amounts in 1,000 EUR)\nTotal 80.00",
        *("80.00 EUR in thousands", "Total EUR '000 80.00", "80.00 EUR (x1000)", "80.00 EUR x 1,000"),
        *("80.00 (in k EUR)", "Total 80.00 (EUR k)", "Total 80.00 (\u20ack)", "Total;80.00;TEUR"),
        *("All amounts in tEUR\nTotal 80.00", "Total of 80.00, in millions of EUR"),
    ],
)  # fmt: skip
def test_a_scale_behind_an_amount_belongs_to_it(document: str) -> None:
    """G05: the scale may stand behind the amount, in brackets or in the next cell."""
    assert not grounded(document, "80", "money(EUR)")


@all_rows("document", [
    "10 days after 5 March 2026", "the day before 5 March 2026", "two weeks from the 5 March 2026",
    "within 14 days of 5 March 2026", "5 March 2026 plus 10 days", "2026-03-05 + 3 months", "drei Tage nach 2026-03-05",
    "30 calendar days following Thursday, 5 March 2026", "dix jours apr\u00e8s le 2026-03-05",
])  # fmt: skip
def test_a_date_that_another_one_is_counted_from_answers_no_other_question(document: str) -> None:
    """Ten days after the 5th is not the 5th, unless it is asked what is counted from."""
    assert not grounded(f"Due: {document}.", "2026-03-05", "date", question="Copy the day on which it is due.")
    assert not grounded(document, "2026-03-05", "date", question="Copy the due date.")
    way = next((way for way in ("after", "before", "from", "of", "plus", "following") if f" {way} " in document), None)
    if way is not None:
        assert grounded(document, "2026-03-05", "date", question=f"The date {way} which is counted.")
    for plain in ("by 5 March 2026", "in 10 days, on 5 March 2026", "5 March 2026, 10 days"):
        assert grounded(plain, "2026-03-05", "date")


CHOSEN = (
    "[x] {yes} [ ] {no}", "[ ] {no}  [x] {yes}", "\u2612 {yes} \u2610 {no}", "{yes} [X]  {no} [ ]",
    "{yes}: yes, {no}: no", "Status: \u2610 {no} \u2611 {yes}", "Decision (tick one): ( ) {no} (X) {yes}",
    "| \u2610 | {no} |\n| \u2612 | {yes} |", "| {no} | \u2610 |\n| {yes} | \u2612 |", "- [ ] {no}\n- [x] {yes}",
    '{{"{yes}": true, "{no}": false}}', "{no}=false\n{yes}=true", "{yes} ........ yes\n{no} ........ no",
    "\u25cb {no} \u25cf {yes}", "\u2717 {no} \u2713 {yes}", "{yes} [Y] {no} [N]",
    "\u2610 urgent   Status: {yes}; {no} (no)", "[1] {yes}\n{no} - no",
)  # fmt: skip


@all_rows("form", CHOSEN)
@pytest.mark.parametrize("pair", [("approved", "rejected"), ("very high", "low")])
def test_an_option_beside_an_empty_box_is_not_the_one_that_is_chosen(form: str, pair: tuple[str, str]) -> None:
    """Boxes stand in front or behind, on a line or in a table, and a no or a false does the same."""
    kind = f"one_of({pair[0]}, {pair[1]})"
    for yes, no in (pair, pair[::-1]):
        document = f"Form 7\n{form.format(yes=yes.capitalize(), no=no)}\nsigned"
        assert grounded(document, yes, kind)
        assert not grounded(document, no, kind)


@all_rows("document", [
    "It was approved, now rejected.", "changed from approved to rejected", "approved -> rejected",
    "approved or rejected?", "pending: approved or rejected", "approved. Correction: rejected",
    "neither approved nor rejected", "approved by mistake", "| approved | rejected |\n|---|---|\n| | x |",
    "I think it was approved.", "would be approved", "yet to be approved", "previously approved", "approved if paid",
    "approved (draft)", "It was never approved.", "Was it approved?", "approved / rejected (delete as applicable)",
    "hardly approved", "approved, sorry, rejected",
])  # fmt: skip
def test_an_option_that_a_document_does_not_choose_is_not_grounded(document: str) -> None:
    """It names another one as well, or says that this one is not, was, or would be so."""
    assert not grounded(document, "approved", "one_of(approved, rejected)", question="Copy the decision.")


@all_rows("document", [
    "The request was approved on 5 March.", "It is not rejected but approved.", "was approved", "Outcome - approved",
    "status: approved; before: rejected", '{"status": "approved", "before": "rejected"}', "Approved with thanks",
    "The other one was rejected.\nThis one is approved.", "Approved on behalf of the board",
    "All three invoices approved",
])  # fmt: skip
def test_an_option_that_a_document_chooses_is_grounded(document: str) -> None:
    """In words, in a field, and where another one is denied, in another field or on another line."""
    assert grounded(document, "approved", "one_of(approved, rejected)", question="Copy the decision.")


def test_an_option_that_is_a_part_of_another_one_is_not_chosen_with_it() -> None:
    """`high` does not stand in `very high` where that is an option, and items of a list may share a sentence."""
    kind = 'one_of(high, "very high")'
    assert not grounded("Risk: very high", "high", kind)
    assert grounded("Risk: very high", "very high", kind)
    assert grounded("Risk: high", "high", kind)
    assert grounded("red and blue", '["red", "blue"]', "list of one_of(red, blue, green)")


@pytest.mark.parametrize(
    "item", ["approved or rejected, ", "[ ] approved [x] rejected ", "approved: no, ", "rejected "]
)
def test_options_on_one_long_line_are_weighed_by_what_stands_near_them(item: str) -> None:
    """The work does not grow with the line, and where the boxes of so long a line stand is not guessed."""
    document = item * (100_000 // len(item))
    assert not grounded(document, "approved", "one_of(approved, rejected)")
    assert not grounded(f"[x] approved [ ] rejected {'x' * 500} [x] approved", "rejected", "one_of(approved, rejected)")
