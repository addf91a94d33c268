"""Dates in a document, and the order in which their parts are read."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from typing import Literal

import pytest
from constraint_harness import outcome
from hypothesis import given
from hypothesis import strategies as st
from tables import all_rows

from stepguard import Step
from stepguard.checks import judge_claims
from stepguard.checks.grounding import Grounded
from stepguard.core.verdicts import Claim
from stepguard.errors import ValueRefused
from stepguard.language.records import Record, RecordType
from stepguard.language.value_types import ValueType

pytestmark = pytest.mark.once


MONTHS = ("jan", "FEB", "Mar", "april", "May", "JUNE", "jul", "Aug", "sept", "October", "NOV", "dec")


@given(st.dates(date(1970, 1, 1), date(2068, 12, 31)), st.sampled_from(["/", ".", "-", " ", ""]), st.booleans())
def test_a_day_with_the_name_of_its_month_is_found(day: date, sign: str, short: bool) -> None:
    """With any sign between its parts; a year of two digits where the order is given and nothing else goes on."""
    year = f"{day.year % 100:02}" if short else str(day.year)
    written = f"{day.day}{sign}{MONTHS[day.month - 1]}{sign}{year}"
    for behind in ("", " 12:30", ")", "\nTotal"):
        expected = "pass" if sign or not short else "fail"
        check = Grounded("doc", order="dmy")
        assert outcome(check, day.isoformat(), type="date", doc=f"Date: {written}{behind}") == expected
    assert (outcome(Grounded("doc"), day.isoformat(), type="date", doc=written) == "pass") is not short
    for around in ("A{}", "{}/9", "{}-7", "{}_1", "not {}"):
        assert outcome(Grounded("doc", order="dmy"), day.isoformat(), type="date", doc=around.format(written)) == "fail"


@all_rows("doc, expected", [
    ("21/05/2018TIME 12:30", "pass"), ("21.05.2018Uhrzeit", "pass"), ("21/05/18TIME", "pass"),
    ("21/05/2018abc.pdf", "fail"), ("21/05/2018ab7", "fail"), ("21-05-2018TIME", "fail"), ("2018-05-21draft", "fail"),
    ("21 May 18 guests", "fail"), ("21 May 18 EUR", "fail"), ("21 May 18:30", "fail"), ("21 May 18, 30 guests", "fail"),
    ("21 MAY 18 9:05", "pass"), ("|21 MAY 18|", "pass"), ("no longer 21/05/2018", "fail"),
])  # fmt: skip
def test_what_stands_behind_a_day_is_no_part_of_it(doc: str, expected: str) -> None:
    """A word that is run into it or a time; behind hyphens it may be a name, and ``5 May 20`` may count guests."""
    assert outcome(Grounded("doc", order="dmy"), "2018-05-21", type="date", doc=doc) == expected


RECEIPT = "Receipt of 11/01/2018\nPaid on 12/01/2018\n"


@pytest.mark.parametrize(
    ("order", "day", "other"), [("dmy", "2018-01-11", "2018-11-01"), ("mdy", "2018-11-01", "2018-01-11")]
)
def test_a_date_is_claimed_in_the_order_that_the_step_declares(
    order: Literal["dmy", "mdy"], day: str, other: str
) -> None:
    """A copied date means what the document means by it; without an order it is refused by name."""
    step = Step("t", instruction="Which day?", type="date", reads=["doc"], checks=[Grounded("doc", order=order)])
    assert step.read("11/01/2018") == date.fromisoformat(day)
    for claimed, passes in (("11/01/2018", True), (day, True), (other, False), ("13/01/2018", False)):
        (judgement,) = judge_claims([step], [Claim("t", (), claimed, claimed)], {"doc": RECEIPT})
        assert (bool(judgement.verdicts) and all(each.outcome == "pass" for each in judgement.verdicts)) is passes
    for checks in ([], [Grounded("doc")], [Grounded("doc", order="dmy"), Grounded("doc", order="mdy")]):
        ambiguous = Step("t", instruction="Which day?", type="date", reads=["doc"], checks=checks)
        with pytest.raises(ValueRefused, match="11/01/2018"):
            ambiguous.read("11/01/2018")


def test_dates_in_records_and_lists_are_read_in_the_order_of_the_step() -> None:
    """The leaves of a structured claim, too."""
    payment = RecordType("Payment", (("day", ValueType.parse("date")), ("amount", ValueType.parse("money(USD)"))))
    kind = ValueType.parse("list of Payment", records={"Payment": payment})
    step = Step("t", instruction="Which?", type=kind, reads=["doc"], checks=[Grounded("doc", order="dmy")])
    assert step.read('[{"day": "11/01/2018", "amount": "5.00"}]') == (
        Record({"day": date(2018, 1, 11), "amount": Fraction(5)}),
    )
