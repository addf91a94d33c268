"""Grounding: values that must stand in a document, and where they stand."""

from __future__ import annotations

import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from constraint_harness import guarded, judge, outcome
from hypothesis import given
from hypothesis import strategies as st
from tables import all_rows

from stepguard import Step
from stepguard.checks.grounding import Grounded

pytestmark = pytest.mark.once

INVOICE = """Invoice A-1234 of 28 November 2026
Smith & Sons Ltd., 12 O'Brien Street, Jean-Claude's office

Net      1,234.50
VAT 20 %   246.90
Total  $1,481.40, due Dec 5, 2026
Balance -17 (hers −18); range 30–40, 7-9 pieces, room Q3, at 10:45, v2.5.1, tel. 555-0199
1.5 million units, 3rd of 5km, code 007, 1 234 567 seen, 3/4 done, #88, half of 61%.
"""


def found(check: Grounded, claimed: str, *, type: str = "number", doc: str = INVOICE) -> str:
    return outcome(check, claimed, type=type, doc=doc)


@all_rows("claimed, type", [
    ("1234.5", "number"), ("1,234.50", "decimal(2)"), ("246.9", "number"), ("12", "integer"), ("-17", "integer"),
    ("-18", "integer"), ("30", "integer"), ("40", "integer"), ("1,500,000", "integer"), ("3", "integer"),
    ("5", "integer"), ("2026", "integer"), ("28", "integer"), ("20%", "percent"), ("61%", "percent(1)"),
    ("0.2", "number"), ("20", "number"), ("$1481.40", "money(USD)"), ("1481.40", "money(CAD)"),
    ("246.90", "money(CAD)"),
])  # fmt: skip
def test_numbers_are_found_by_value(claimed: str, type: str) -> None:
    """A number that stands in the document in another notation passes as grounded."""
    verdict = judge(Grounded("doc"), claimed, type=type, doc=INVOICE)
    assert (verdict.outcome, verdict.strength) == ("pass", "grounded")


@all_rows("claimed, type", [
    ("1234", "integer"), ("1235", "integer"), ("17", "integer"), ("18", "integer"), ("-30", "integer"),
    ("-40", "integer"), ("7", "integer"), ("9", "integer"), ("-9", "integer"), ("10", "integer"), ("45", "integer"),
    ("2.5", "number"), ("1", "integer"), ("1.5", "number"), ("555", "integer"), ("199", "integer"),
    ("-199", "integer"),
    ("234", "integer"), ("567", "integer"), ("1234567", "integer"), ("0", "integer"), ("88", "integer"),
    ("4", "integer"), ("0.75", "number"), ("50", "integer"), ("2000%", "percent"), ("12%", "percent"),
    ("1481.40", "money(EUR)"), ("246.90", "money(EUR)"), ("20", "money(USD)"), ("1481.4", "percent"), ("6", "integer"),
])  # fmt: skip
def test_numbers_that_do_not_stand_alone_are_not_found(claimed: str, type: str) -> None:
    """Parts of ids, versions, times, ranges and other numbers, other signs, units and currencies do not count."""
    assert found(Grounded("doc"), claimed, type=type) == "fail"


@all_rows("document, holds, not_held", [
    *(("x=5; y: -6, z:7", ["5", "-6", "7"], ["6", "-7"]), ("Paris,8,Lyon", ["8"], [])),
    *(("- 5 apples\n- 6 pears", ["5", "6"], ["-5", "-6"]), ("5 - 3", ["5", "3"], ["-3", "2"])),
    ("-$5, $-6, −€7", ["-5", "-6", "-7"], ["5", "6", "7"]),
    ("£2bn or $1.5M", ["2000000000", "1500000"], ["2", "1.5"]),
    ("1.2M people, 7K", [], ["1.2", "7", "1200000", "7000"]),
    ("a 30-day trial, COVID-19, F-16", ["30"], ["19", "16", "-19"]),
    *(("1e3 and 2E-1", ["1000", "0.2"], ["1", "3", "2"]), ("1\u202f234\u202f567", ["1234567"], ["1", "234"])),
    *(("10 20 3000", ["10", "20", "3000"], ["1020"]), ("250 300 400", [], ["250", "300", "400", "250300400"])),
    ("https://a.b/12?x=13", ["13"], ["12"]),
    ("report_14.pdf u15@c.d 2026-11-16 28/11/2026", [], ["14", "15", "16", "11", "28", "2026", "-11"]),
    *(("５ and ٣ and ²", ["5"], ["3", "2"]), ("1.000 or 1,000", ["1", "1000"], ["0"]), ("12.", ["12"], [])),
    ("1.5 × 10^6, 2*10**3, 3 x 10⁻³", [], ["1.5", "2", "3", "10", "6", "1500000"]),
    *(("5 ½ and 1 3/4 and 7½", [], ["5", "1", "3", "4", "7"]), ("1'234.50", [], ["1", "234.5", "1234.5"])),
    *(("5 hundred thousand", [], ["5", "500"]), ("**6** and *7*", ["6", "7"], [])),
    ("€(45.3) million, (4) million, $(17), (18)", ["18", "-17"], ["45.3", "4", "17", "45300000"]),
    ("$0.75/share, 9/b, 3%/year, 11/12", ["0.75", "3"], ["9", "11", "12"]),
    *(("6 times 7 x 8", ["6", "7", "8"], []), ("", [], ["0"])),
    # What groups digits, divides them or raises them makes another number: neither side of it stands alone.
    *((f"a fee of 5{sign}123 here", [], ["5", "123"]) for sign in (
        "\u00b4", "`", "\u02bc", "\u066c", "\u2044", "\u2215", "**",
    )),
    ("a fee of 5 \u2044 123 here", [], ["5"]),
    # Words that make a number larger, a minus behind it, parts of a thousand: what is not read leaves no number.
    *((f"worth 5{blank}{word} in all", [], ["5"]) for blank in (" ", "\u00a0", "") for word in (
        "lakh", "Lakhs", "crore", "crores", "dozen", "Mio", "Mio.", "Mrd.", "mln", "bln",
    )),
    *((f"a balance of {written}{behind}", [], ["5"]) for behind in ("", " today", ", say", ")", "\n") for written in (
        "5.00-", "5-", "5\u2212", "EUR 5.00-", "$5-", "minus 5", "Minus 5", "negative 5", "negative $5", "minus\u00a05",
    )),
    *((f"a rate of {written} in all", [], ["5"]) for written in (
        "5\u2030", "5 \u2030", "5\u2031", "5 bps", "5bps", "5 bp", "5 basis points",
    )),
    *((f"a value of {written} in all", [], ["2"]) for written in (
        "\u00a32 bn", "$2 M", "$2 MM", "$2mm", "$2 k", "2 mn", "2 Milliarden", "2 milliards", "2 mil", "2 Tsd.",
    "2 Mill.",
    "2 tys.", "2 \u0442\u044b\u0441.", "2 \u043c\u043b\u043d", "2 \u4e07\u5186", "2 \u5104\u5186", "2 miljoner",
    "2 miljard", "2 mila", "2 milh\u00f5es", "2 milho\u0303es", "2 bilh\u00f5es", "2 millones", "2 milioni",
    "2 milyon",
    "2 lac", "2 Cr", "2 permille", "2 per mille", "2 per thousand", "2-million", "2\nmillion", "2 M\u20ac",
    "2 Mio EUR",
    "TEUR 2", "\u20acm 2", "USD million 2", "2 and a half", "2 * 10 ** 3", "2 \u22c5 10^3", "2 ^ 3",
    )),
    # What only begins like such a word, and a dash that says nothing of the number, leave it.
    *((f"a value of {written} in all", ["2"], []) for written in (
        "2 millimetres", "2 milligrams", "2 mm", "2 bins", "2 miles", "$2 T-shirts", "2 biology",
    )),
    *((document, ["5"], []) for document in (
        "5 - as agreed", "5 items", "the total: 5.\n- next", "5 -> 7", "5 bpm", "5\n-", "5 millstones, 6 dozenal",
    )),
    # A number below zero grounds itself and never its opposite, whichever dash is written.
    *(
        (f"change: {written.format(minus)}", [f"{minus}2"], ["2"])
        for minus in "-\u2212\u2010\u2011\u2012\u2013\ufe63\uff0d" for written in ("{}2 %", "{}$2", "${}2", "({}2)")
    ),
    # The sides of a plus-minus, and digits that only look apart to a machine, do not stand alone.
    ("5\u00b11", [], ["5", "1"]), ("5+/-1", [], ["5"]), ("5\u200b0", [], ["5", "0"]),
])  # fmt: skip
def test_numbers_in_other_documents(document: str, holds: list[str], not_held: list[str]) -> None:
    """Signs, scales, separators, words and neighbours decide which numbers stand in a document."""
    assert [found(Grounded("doc"), each, doc=document) for each in holds] == ["pass"] * len(holds)
    assert [found(Grounded("doc"), each, doc=document) for each in not_held] == ["fail"] * len(not_held)


@all_rows("larger", ["5 ft", "5 feet", "2 h", "2 hours", "1 m", "11 lb", "3 years", "2 kg"])
def test_a_quantity_of_several_units_is_one(larger: str) -> None:
    """The larger unit alone does not stand where a smaller one goes on, whether that is named or not."""
    for behind in (" 10", " 10.", " 10 in all", "-10", ", 10", " 10\u00bd"):
        assert found(Grounded("doc"), larger, type="text", doc=f"It is {larger}{behind}") == (
            "pass" if behind == ", 10" else "fail"
        )
    for behind in ("", ".", " 10 EUR", " 10.50", "\n10", "   10 people", " and 10 people", " $10"):
        assert found(Grounded("doc"), larger, type="text", doc=f"It is {larger}{behind}") == "pass"


@pytest.mark.parametrize("front", ["50 ", "2 ", "Give 3 ", "50\t"])
def test_a_number_right_in_front_of_an_amount_may_belong_to_it(front: str) -> None:
    """Behind another number an amount is two of it, the rest of it or one by itself: it does not stand there."""
    for type in ("text", "quantity(mg)"):
        assert found(Grounded("doc"), "10 mg", type=type, doc=f"{front}10 mg tablets") == "fail"
        for other in ("order 50\n", "50: ", "08:00 ", "2026-11-28 ", "28 November 2026 ", "1. ", "| 3 | ", "3   "):
            assert found(Grounded("doc"), "10 mg", type=type, doc=f"{other}10 mg tablets") == "pass"


@all_rows("document, claimed, held", [
    # Text that is cut out of a longer number, amount or address does not stand in the document.
    *((document, claimed, False) for document, claimed in (
        ("Give 0.5 mg once", "5 mg"), ("Give .5 mg once", "5 mg"), ("0,5 mg", "5 mg"), ("at 12.5%", "5%"),
    ("Total 1,234.50 EUR", "234.50 EUR"), ("Total 1,234.50 EUR", ",234.50"), ("Total 12.50", ".50"),
    ("Total 1,234.50", "1,234"), ("Total 1 234 EUR", "234 EUR"), ("Total 1\u202f234 EUR", "1"),
    ("\u20ac1,000", "000"),
    ("1/2 tablet", "2 tablet"), ("\u00bd tablet", "2 tablet"), ("2 1/2 tablets", "1/2 tablets"), ("2 1/2", "2"),
    ("10^5 cells", "5 cells"), ("10\u2075 cells", "105 cells"), ("2 * 10^5", "2"), ("at 12:30", "30"),
    ("at 12:30", "12"),
    ("file 2024/0017", "0017"), ("file 2024/0017", "2024"), ("v 1.2.3", "2.3"), ("v 1.2.3", "1.2"),
    ("a -$5 fee", "$5"),
    ("HK$5", "$5"), ("$-5", "5"), ("minus 5 \u00b0C", "5 \u00b0C"), ("5 km/hour", "5 km"), ("5 mg/kg", "5 mg"),
    ("5 m\u00b2", "5 m"), ("$5 million", "$5"), ("$5 M", "$5"), ("5\u00b11", "1"), ("12 lakh", "12"),
    ("INV-24-17", "INV-24"),
    ("ann@example.com", "ann"), ("ann@example.com", "example.com"), ("www.example.com", "example"), ("AB/17", "AB"),
    *((f"now {minus}5 \u00b0C", "5 \u00b0C") for minus in "-\u2212\u2010\u2011\u2012\u2013\ufe63\uff0d"),
    )),
    # Text that stands in the document as a whole passes, whatever marks stand around it.
    *((document, claimed, True) for document, claimed in (
        ("Give 0.5 mg once", "0.5 mg"), ("**5 mg**, twice", "5 mg"), ("Dose: 5 mg.", "5 mg"), ("(5 mg)", "5 mg"),
        ("Total 1 234 EUR", "1 234 EUR"), ("room 12, 3 beds", "12"), ("order #88", "88"), ("+5 \u00b0C", "5 \u00b0C"),
        ("Price:$5", "$5"), ("5 m\u00b2", "5 m\u00b2"), ("10\u2075 cells", "10\u2075 cells"),
        ("take 2 1/2 now", "2 1/2"),
        ("5 km/h", "5 km/h"), ("Total/Summe 5", "Summe"), ("Ann/Bob Ltd.", "Ann"),
        ("see https://example.com.", "example.com"),
        ("on 28 November 2026", "28 November"), ("so\u00adft\u200bware", "software"), ("- 5 mg", "5 mg"),
    )),
    # A name passes without regard to case, white space and the kind of quotes; parts of words and other orders fail.
    *((INVOICE, claimed, True) for claimed in (
        *("Smith & Sons Ltd.", "smith & sons", "SMITH", "O'Brien Street", "O’Brien", "Jean-Claude", "  net "),
        *('"Total"', "12"),
    )),
    *((INVOICE, claimed, False) for claimed in (
        *("Smit", "mith", "Sons Smith", "Brien", "Claude", "Jean", "Smith Sons", "otal", "", " ", "...", "&"),
        *("Error: tool not available", "1234", "x" * 5000, "�", "Smith & Sons Ltd. & Co", "million unit"),
    )),
    # Equal characters are the same however they are encoded, and accents belong to their letter.
    *(("Caf\u00e9 Z\u00fcrich", "cafe\u0301 Z\u00dcRICH", True), ("Cafe\u0301 bar", "Cafe", False)),
    *(("Ann\u00a0Lee", "Ann Lee", True), ("Ann\nLee", "Ann  Lee", True), ("Smith's car", "Smith", True)),
    *(("Smithson", "Smith", False), ("東京 タワー", "東京", True), ("東京タワー", "東京", False)),
    *(("soft\u00adware", "software", True), ("“quoted” name", 'the "quoted"', False)),
    *(("“quoted” name", '"quoted" name', True), ("a_b", "a", False), ("(Ann)", "Ann", True)),
    ("STRASSE", "straße", True),
])  # fmt: skip
def test_texts_and_names_are_found_as_a_whole(document: str, claimed: str, held: bool) -> None:
    """A text stands in a document where it is all of its words, numbers and names there."""
    assert found(Grounded("doc"), claimed, type="text", doc=document) == ("pass" if held else "fail")


def test_a_document_with_decimal_commas() -> None:
    """With a decimal comma the point groups thousands, in the document."""
    document = "Summe 1.234,50 EUR, 3,5 %"
    assert found(Grounded("doc", decimal=","), "1234.5", doc=document) == "pass"
    assert found(Grounded("doc", decimal=","), "3.5%", type="percent", doc=document) == "pass"
    assert found(Grounded("doc", decimal=","), "3,5", type="text", doc=document) == "pass"
    assert found(Grounded("doc"), "1234.5", doc=document) == "fail"


@pytest.mark.parametrize(
    ("claimed", "outcome_"),
    [
        *(("2026-11-28", "pass"), ("Nov 28, 2026", "pass"), ("5 December 2026", "pass"), ("5/12/2026", "fail")),
        *(("2026-11-29", "fail"), ("28 November 2025", "fail"), ("28 November", "fail"), ("soon", "fail")),
    ],
)
def test_dates_are_found_by_value(claimed: str, outcome_: str) -> None:
    """A date that stands in the document in another notation passes; one that could be two dates does not."""
    assert found(Grounded("doc", kind="date"), claimed, type="text") == outcome_
    assert found(Grounded("doc", kind="date", order="dmy"), "5/12/2026", type="text") == "pass"


@all_rows(
    "check, claimed, type, line, text",
    [
        (Grounded("doc"), "1234.5", "number", 4, "1,234.50"),
        (Grounded("doc"), "smith", "text", 2, "Smith"),
        (Grounded("doc"), "Sons  Ltd", "text", 2, "Sons Ltd"),
        (Grounded("doc", kind="date"), "2026-12-05", "text", 6, "Dec 5, 2026"),
        (Grounded("doc", kind="number"), "1,481.40 USD", "text", 6, "$1,481.40"),
        (Grounded("doc"), "-18", "number", 7, "−18"),
    ],
)
def test_the_place_is_recorded(check: Grounded, claimed: str, type: str, line: int, text: str) -> None:
    """The verdict names the line, the character and the words around it; `places` gives them as data."""
    step = Step("t", instruction="Say it.", type=type, reads=["doc"])
    (place,) = check.places(step, {"doc": INVOICE, "t": step.type.read(claimed)})
    assert (place.line, INVOICE[place.offset : place.offset + place.length]) == (line, text)
    reason = judge(check, claimed, type=type, doc=INVOICE).reason
    assert f"line {line}, character {place.offset}" in reason
    assert text.split()[0] in reason


def test_every_place_is_counted() -> None:
    """A value that stands in several places is found in all of them, and the reason says how many more there are."""
    assert "and 2 more" in judge(Grounded("doc"), "5", doc="5 and 5\nand 5.0").reason


def test_beside_narrows_it_down() -> None:
    """With `beside` a value counts only on a line with these words."""
    assert found(Grounded("doc", beside="Total"), "1481.40") == "pass"
    assert found(Grounded("doc", beside="total"), "1234.50") == "fail"
    assert found(Grounded("doc", beside="Tot"), "1481.40") == "fail"
    assert found(Grounded("doc", beside="Smith & Sons"), "Jean-Claude", type="text") == "pass"
    assert found(Grounded("doc", beside="due", kind="date"), "2026-11-28", type="text") == "fail"


def test_a_wrong_value_may_be_grounded() -> None:
    """A number that stands elsewhere in the document passes, and is called grounded, never proved."""
    assert judge(Grounded("doc"), "246.90", doc=INVOICE).strength == "grounded"


@pytest.mark.parametrize("document", [5, True, Fraction(1, 2), "5 " * 1_100_000])
def test_what_is_no_document_is_undecided(document: Any) -> None:
    """Where there is no text to search, or too much of it, no claim passes and asking again is pointless."""
    verdict = judge(Grounded("doc"), "5", doc=document)
    assert (verdict.outcome, verdict.retry) == ("undecided", False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "document",
    [
        *("1," * 100000, "1\xa0234" * 50000, "a " * 150000, "$" * 200000, "1-" * 100000, "9" * 200000),
        *("Monday, " * 40000, "1 jan " * 50000, "-" * 200000, "1e" * 100000, " " * 300000),
    ],
)
@pytest.mark.parametrize(
    ("check", "claimed", "type"),
    [
        (Grounded("doc"), "17", "number"),
        (Grounded("doc"), "a " * 400 + "b", "text"),
        (Grounded("doc", kind="date"), "2026-11-28", "text"),
    ],
)
def test_no_document_takes_long(document: str, check: Grounded, claimed: str, type: str) -> None:
    """Searching is linear in the document, whatever stands in it."""
    began = time.monotonic()
    assert found(check, claimed, type=type, doc=document) == "fail"
    assert time.monotonic() - began < 20


NUMBERS = st.fractions(-10_000, 10_000, max_denominator=1).map(int) | st.decimals(-10_000, 10_000, places=2)
WRITTEN: list[Callable[[Any], str]] = [lambda n: f"{n}", lambda n: f"{n:,}", lambda n: f"{n:,.2f}", lambda n: f"{n} kg"]


@given(st.lists(st.tuples(NUMBERS, st.sampled_from(WRITTEN)), max_size=6), NUMBERS)
def test_only_numbers_of_the_document_pass(held: list[tuple[Any, Callable[[Any], str]]], planted: Any) -> None:
    """Every number of a document passes, and a planted one passes only if it is one of them."""
    document = "\n".join(f"Item A-{at}x: {write(number)} in all." for at, (number, write) in enumerate(held))
    for number, _ in held:
        assert found(Grounded("doc"), str(number), doc=document) == "pass"
    values = [Fraction(number) for number, _ in held]
    assert found(Grounded("doc"), str(planted), doc=document) == ("pass" if Fraction(planted) in values else "fail")


def test_a_document_verifies_a_step_of_words() -> None:
    """Through a guard, a value read from the document is kept, and one that is made up is not."""
    check = Grounded("doc", beside="Total")
    assert guarded(check, "$1,234.50", "$1,481.40", type="money(USD)", doc=INVOICE).status == "checked"
    made_up = guarded(check, "$1,500.00", type="money(USD)", doc=INVOICE)
    assert (made_up.status, made_up.answer) == ("abstained", None)


@all_rows("written", ["28 %-points", "28%points", "28 percent points", "28 % pts", "28 percentage points"])
def test_a_difference_of_percentages_is_no_percentage(written: str) -> None:
    """Percentage points ground their number, and not the percentage."""
    check, doc = Grounded("doc"), f"Up {written} on the year."
    assert found(check, "28%", type="percent", doc=doc) == "fail"
    assert found(check, "28", type="number", doc=doc) == "pass"
    assert found(check, "28%", type="percent", doc=f"{doc} The 28% points to growth.") == "pass"
