"""Receipts of shops as recognised text: date, company and total (ICDAR 2019, SROIE).

Nobody can compute what stands on a receipt: the checker knows only that a value has to stand there (`Grounded`), so
that a wrong amount of the same receipt passes. What that is worth, and what it lets through, is what is measured:
right, silently wrong, abstained, and the cost, beside one call for all three.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from decimal import Decimal
from typing import Any, ClassVar, Final

from stepguard.checks import Grounded
from stepguard.evaluation.families import Task
from stepguard.evaluation.families.base import WORDS_SYSTEM, Line, PublishedTask, Scores, TaskDraft
from stepguard.evaluation.published.items import FixedFamily, constant, read_items, understood
from stepguard.language.values import Value
from stepguard.procedure.examples import Example
from stepguard.procedure.inputs import Input
from stepguard.procedure.steps import Step

_FILE: Final = "receipts.jsonl"
_FIELDS: Final = ("date", "company", "total")
_QUESTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "date": ("date", "On which day was the receipt written? The day stands before the month."),
    "company": ("text", "Which company wrote the receipt? Copy its whole name as it stands there."),
    "total": ("decimal(2)", "How much was to be paid in all, after rounding?"),
}
_PROMPT: Final = (
    "Read this receipt of a shop. Reply with one JSON object and nothing else: date (as in 2018-12-31; on the receipt "
    "the day stands before the month), company (its whole name as it stands there), total (the amount to be paid in "
    "all, after rounding, as a number).\n\n"
)
_EXAMPLE_TEXT: Final = (
    "HALE & SONS HARDWARE\n12 MARKET LANE\nINVOICE 0042\nDATE 07/03/2019 10:12\nHAMMER  1  18.40\nNAILS  2  7.11\n"
    "SUBTOTAL  25.51\nROUNDING  -0.01\nTOTAL  25.50\nCASH  30.00\nCHANGE  4.50"
)
_FORMS: Final = (
    *("%d/%m/%Y", "%d-%m-%Y", "%d-%m-%y", "%d/%m/%y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d/%b/%Y", "%d %b %y"),
    *("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%y", "%d.%m.%Y"),
)
_AMOUNT: Final = re.compile(r"(?:RM|\$)?\s*(\d+(?:,\d{3})*\.\d\d)")


@dataclass(frozen=True, slots=True)
class _Receipt:
    """A receipt and what people read on it."""

    text: str
    truth: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipts(FixedFamily):
    """Three steps: the day, the company, the total, each of which has to stand on the receipt.

    Left out are receipts of which something in the key is not there to be read: it does not stand in the
    recognised text, or is no day or amount.
    """

    SOURCE: ClassVar[str] = (
        f"{_FILE} holds receipts of SROIE as JSON lines with text, date, company and total, made from "
        "https://github.com/zzzDavid/ICDAR-2019-SROIE (MIT)"
    )
    PUBLISHED_FIGURES: ClassVar[str] = (
        "systems trained on such receipts are measured by exact match of each field; 'authors' is one plain call for "
        "all fields, in words of ours: the authors asked no model"
    )

    receipts: tuple[_Receipt, ...] = field(init=False, repr=False, default=())

    def __post_init__(self) -> None:
        fields = {"text": str, "date": str, "company": str, "total": str}
        items, digest = read_items(self.data, _FILE, self.SOURCE, fields)
        kept, left_out = understood(items, _receipt, self.data / _FILE, self.SOURCE)
        lengths = (len(_FIELDS),) * len(kept)
        self.keep(receipts=tuple(kept), lengths=lengths, left_out=left_out, digest=digest)

    def task(self, number: int) -> Task:
        receipt = self.receipts[number]
        shown = _draft(_EXAMPLE, "shown").demonstration(WORDS_SYSTEM)
        made = _draft(receipt, f"{self.name}-{number}").task(self, number, shown)
        run = _ScoredFields(receipt)
        published = PublishedTask(prompt=f"{_PROMPT}{receipt.text}", read=run.read, score=run.score)
        return replace(made, published=published)


def _receipt(item: Mapping[str, Any]) -> _Receipt:
    """A receipt with its key as values. Raises ValueError: something of the key cannot be read in its text."""
    text, company = item["text"], " ".join(item["company"].split())
    day, amount = _day(item["date"]), _AMOUNT.fullmatch(item["total"].strip())
    flat = " ".join(text.split())
    if day is None or item["date"].strip() not in flat:
        raise ValueError("the day of the key is none, or does not stand in the text")
    if not company or company.upper() not in flat.upper():
        raise ValueError("the company of the key does not stand in the text")
    if amount is None or re.search(rf"(?<![\d.,]){re.escape(amount[1])}(?!\d)", flat) is None:
        raise ValueError("the total of the key is no amount, or does not stand in the text")
    return _Receipt(text, {"date": day, "company": company, "total": Decimal(amount[1].replace(",", ""))})


def _day(text: str) -> date | None:
    for form in _FORMS:
        try:
            return datetime.strptime(text.strip("() ").title(), form).date()
        except ValueError:
            continue
    return None


def _draft(receipt: _Receipt, name: str) -> TaskDraft:
    lines: list[Line] = []
    for each in _FIELDS:
        kind, words = _QUESTIONS[each]
        check = Grounded("receipt", kind="date", order="dmy") if each == "date" else Grounded("receipt")
        step = Step(
            each,
            instruction=words,
            type=kind,
            reads=["receipt"],
            checks=[check],
            examples=[Example({"receipt": _EXAMPLE_TEXT}, _EXAMPLE.truth[each], _WORK[each])],
        )
        lines.append(Line(step=step, solve=constant(receipt.truth[each]), work=constant(_WORK[each]), brief=words))
    return TaskDraft(
        name=name, inputs=[Input("receipt", "text")], given={"receipt": receipt.text}, lines=lines, line_tokens=120
    )


_EXAMPLE: Final = _Receipt(
    _EXAMPLE_TEXT, {"date": date(2019, 3, 7), "company": "HALE & SONS HARDWARE", "total": Decimal("25.50")}
)
_WORK: Final[Mapping[str, str]] = {
    "date": "the line with the day",
    "company": "the name at the top",
    "total": "the total after rounding, not the subtotal or the cash",
}


@dataclass(frozen=True, slots=True)
class _ScoredFields:
    """Exact match of each field, without regard to case and blanks in names."""

    receipt: _Receipt

    def read(self, text: str) -> Scores:
        """The fields of a reply in JSON."""
        match = re.search(r"\{.*\}", text, re.DOTALL)
        try:
            data = json.loads(match[0]) if match is not None else {}
        except (ValueError, RecursionError):
            data = {}
        data = data if isinstance(data, dict) else {}
        total = data.get("total")
        amount = _AMOUNT.fullmatch(f"{total:.2f}" if isinstance(total, int | float) else str(total))
        values: dict[str, Value] = {"company": str(data.get("company"))}
        if (day := _day(str(data.get("date")))) is not None:
            values["date"] = day
        if amount is not None:
            values["total"] = Decimal(amount[1].replace(",", ""))
        return self.score(values)

    def score(self, values: Mapping[str, Value]) -> Scores:
        """Every field, then each."""
        right = {name: float(_same(values.get(name), self.receipt.truth[name])) for name in _FIELDS}
        return {"all fields": min(right.values()), **right}


def _same(value: Value | None, truth: Value) -> bool:
    if isinstance(value, str) and isinstance(truth, str):
        return " ".join(value.upper().split()) == " ".join(truth.upper().split())
    return value == truth
