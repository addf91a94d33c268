"""Amounts in a document: the currency of each, wherever it stands."""

from __future__ import annotations

import pytest
from constraint_harness import outcome
from tables import all_rows

from stepguard.checks.grounding import Grounded

pytestmark = pytest.mark.once


@all_rows(
    "layout",
    [
        *("{}\n50.00", "{}\n\n50.00", "50.00\n{}\n", "Total {}\n50.00", "Amount in {}:\n50.00", "| {} |\n| 50.00 |"),
        *("{}\t50.00", "{}   50.00", "{}: 50.00", "{} | 50.00", "**{}** 50.00", "Amount ({}) 50.00", "50.00 ({})"),
        *(
            *("50.00 [{}]", "50.00\t{}", "50.00 | {}", "50.00, {}.", "50.00 in {}", "20.00 {}\n50.00 | {}"),
            "{}\n7\n{}\n50.00",
        ),
    ],
)
def test_a_currency_that_layout_sets_apart_is_that_of_the_amount(layout: str) -> None:
    """A currency on the line above, in the next cell, in brackets or behind a colon decides like one right beside."""
    for name in ("EUR", "\u20ac", "euros"):
        document = layout.replace("{}", name)
        types = ("money(EUR)", "money(USD)", "number")
        assert [outcome(Grounded("doc"), "50", type=each, doc=document) for each in types] == ["pass", "fail", "pass"]
    narrowed = layout.format("CAD", "CAD").replace("50.00", "$50.00")
    assert [outcome(Grounded("doc"), "50", type=f"money({each})", doc=narrowed) for each in ("CAD", "USD")] == [
        "pass",
        "fail",
    ]


@pytest.mark.parametrize(
    "document",
    [
        *("USD\n50.00\nEUR\n46.00", "| USD | 50.00 | EUR | 46.00 |", "50.00\nEUR accounts are free", "TOP\n50.00"),
        *("EUR\n$50.00", "see USD/EUR: 50.00", "Net 50.00", "| USD | 50.00 |\nEUR 46.00"),
    ],
)
def test_a_currency_of_another_amount_takes_none_away(document: str) -> None:
    """A currency that belongs to another amount leaves an amount with one of its own as it is."""
    assert outcome(Grounded("doc"), "50", type="money(USD)", doc=document) == "pass"


_OF_OTHERS = ("EUR 20.00", "20.00 EUR", "\u20ac20.00", "20.00 | EUR", "20 euros")


_FOREIGN = (
    "RM5", "Fr. 5.00", "500 won", "5 Ft", "BTC 0.5", "5 Canadian dollars", "Rs. 5", "\u20b15", "5 z\u0142",
    "500\u5186",
)  # fmt: skip


@all_rows("other", _OF_OTHERS)
@all_rows("layout", ["{}\n50.00", "Ship {} / Total 50.00", "| {} |\n| 50.00 |", "50.00\n\nFee {}"])
def test_an_amount_without_a_currency_is_in_that_of_the_others(other: str, layout: str) -> None:
    """Where only other amounts of a document have a currency, a bare one is in it, and in none where they differ."""
    document = layout.format(other)
    types = ("money(EUR)", "money(USD)", "number")
    assert [outcome(Grounded("doc"), "50", type=each, doc=document) for each in types] == ["pass", "fail", "pass"]
    mixed = f"{document}\nDuty $7.00"
    assert [outcome(Grounded("doc"), "50", type=each, doc=mixed) for each in types] == ["fail", "fail", "pass"]


@all_rows("written, type", [
    *(
        (written, "money(USD)")
        for written in (
            "50 cents", "50 cts", "50\u00a2", "50 yen", "50 Swiss francs", "50 Canadian dollars", "50 rupees",
            "Rs 50",
            "Rs. 50", "50 kr", "50 z\u0142", "eur 50", "50 eur", "\u20a650", "\u20b450", "\u0e3f50", "\u20bf50",
            "50 bitcoin", "$50 CAD", "CAD $50", "50 pounds", "50 Australian dollars", "Canadian $50", "50 HK dollars",
            "50.- CHF",
        )
    ),
    ("50 pence", "money(GBP)"), ("50p", "money(GBP)"), ("50 US dollars", "money(EUR)"), ("50 Rappen", "money(CHF)"),
    ("50 Swiss francs", "money(XOF)"), ("\u20ac 50", "money(USD)"),
])  # fmt: skip
def test_an_amount_in_another_currency_or_in_parts_of_one_is_not_found(written: str, type: str) -> None:
    """Names, small letters, rare signs and words for parts say in what an amount is, as codes do."""
    assert outcome(Grounded("doc"), "50", type=type, doc=f"to pay {written} now") == "fail"
    assert outcome(Grounded("doc"), "50", type="integer", doc=f"to pay {written} now") == (
        "fail" if "50p" in written else "pass"
    )


@all_rows(
    "written, type",
    [
        ("50 yen", "money(JPY)"), ("\uffe550", "money(JPY)"), ("50 Swiss francs", "money(CHF)"),
        ("50 kr", "money(SEK)"),
        ("50 z\u0142", "money(PLN)"), ("eur 50", "money(EUR)"), ("50 US dollars", "money(USD)"),
        ("Rs 50", "money(INR)"),
        ("$50 CAD", "money(CAD)"), ("\u20a650", "money(NGN)"), ("50 all in", "money(USD)"), ("50 items", "money(USD)"),
        ("\u20ac -50", "money(EUR)"),
    ],
)  # fmt: skip
def test_an_amount_in_the_currency_of_the_step_is_found_by_its_name(written: str, type: str) -> None:
    """A name, small letters or a rare sign of the step's own currency are no other one, and other words say nothing."""
    assert outcome(Grounded("doc"), "-50" if "-" in written else "50", type=type, doc=f"to pay {written} now") == "pass"


@all_rows("other", _FOREIGN)
def test_every_way_to_write_a_currency_counts_for_bare_amounts(other: str) -> None:
    """What the reader of amounts knows as a currency says that the document is not in dollars; 5 ft or cents do not."""
    for layout in ("Shipping {}\nTotal 50.00", "| Shipping | {} |\n| Total | 50.00 |", "Fee {} and total 50.00"):
        assert outcome(Grounded("doc"), "50", type="money(USD)", doc=layout.format(other)) == "fail"
        for unit in ("5 ft", "5 pounds", "30 cents", "5 items", "3 p"):
            assert outcome(Grounded("doc"), "50", type="money(USD)", doc=layout.format(unit)) == "pass"


@all_rows("gap", [" ", "  ", ": ", "   "])
@all_rows("before", ["Total", "final", "The total of all", "Sub", "tal", "beau"])
@all_rows("word", ["minus", "menos", "moins"])
def test_a_minus_in_words_counts_whatever_word_stands_in_front(word: str, before: str, gap: str) -> None:
    """Only in ``al menos`` and ``au moins`` it is none; a longer word that ends so is read to its beginning."""
    assert outcome(Grounded("doc"), "5", type="money(USD)", doc=f"{before} {word}{gap}$5.00") == "fail"


@pytest.mark.parametrize("claimed", ["100", "200", "300"])
def test_an_amount_with_its_own_currency_is_no_rest_of_the_one_before(claimed: str) -> None:
    """Each of a list stands by itself, and ``$1, 200.00`` is one amount."""
    assert outcome(Grounded("doc"), claimed, type="money(USD)", doc="Fees: $100, $200, $300") == "pass"
    assert outcome(Grounded("doc"), claimed, type="money(USD)", doc=f"Fee: $1, {claimed}.00") == "fail"


@all_rows("written, type, claimed, decimal, result", [
    ("Total 1.000 EUR", "money(EUR)", "1.00", ".", "fail"), ("Total: 2.500", "money(EUR)", "2.50", ".", "fail"),
    ("12.000 people", "integer", "12", ".", "fail"), ("Total 2.500 EUR", "money(EUR)", "2500", ",", "pass"),
    ("Rate 0.500 EUR", "money(EUR)", "0.50", ".", "pass"), ("Rate 1.500 KWD", "money(KWD)", "1.500", ".", "pass"),
    ("Mass 1.500", "decimal(3)", "1.500", ".", "pass"),
])  # fmt: skip
def test_a_point_that_may_group_thousands_makes_no_amount(
    written: str, type: str, claimed: str, decimal: str, result: str
) -> None:
    """1.000 of what has fewer than three places is one or a thousand, and no claim stands there."""
    assert outcome(Grounded("doc", decimal=decimal), claimed, type=type, doc=written) == result  # type: ignore[arg-type]


@all_rows("behind", [" is wrong", " was a typo", " is incorrect", " (sic)", " (wrong)", ", (error)", " is not right"])
@all_rows("type", ["money(EUR)", "number"])
def test_an_amount_that_is_called_wrong_does_not_stand_there(behind: str, type: str) -> None:
    """A denial behind an amount takes it away as one in front of it does."""
    assert outcome(Grounded("doc"), "80", type=type, doc=f"Total 80.00 EUR{behind}") == "fail"


@all_rows("behind", [" is due", " per day", " (net)", " was paid", " is a third", " to Anna", "\u201390.00 EUR"])
def test_what_says_nothing_against_an_amount_leaves_it(behind: str) -> None:
    """A rate, a remark and the other end of a range do not deny what stands there."""
    assert outcome(Grounded("doc"), "80", type="money(EUR)", doc=f"Total 80.00 EUR{behind}") == "pass"
