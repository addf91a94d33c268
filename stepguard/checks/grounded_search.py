"""Where values stand in a document, and why one that stands there is not stated.

One value is sought by the functions, the values of a list or a record by a `Search`, which reads its document once.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from fractions import Fraction
from typing import Final, Literal, cast

from stepguard.checks.grounded_parts import CharRange, Part
from stepguard.documents.claimed_numbers import NumberLayout, is_claimed
from stepguard.documents.labels import FieldLabels
from stepguard.documents.measured import Measures
from stepguard.documents.names import Words
from stepguard.documents.options import Options
from stepguard.documents.standing import Statements
from stepguard.documents.view import View
from stepguard.errors import ValueRefused
from stepguard.language.dates import DateOrder, find_dates
from stepguard.language.decimal_comma import with_point
from stepguard.language.digits import Exact, exact, format_exact
from stepguard.language.measures import MEASURES
from stepguard.language.prose.amounts import FoundNumber, find_numbers
from stepguard.language.prose.neighbours import begins_amount
from stepguard.language.terms.measure_arithmetic import same_value
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value, show_value, to_exact

_MAX_NAME: Final = 1000  # every name is folded and searched in the whole document
_UNIT_WORDS: Final = 3
_SPAN_WORDS: Final = 8
"""How many words an amount with its unit has, and a span such as ``1 year 6 months and 3 days``."""
_BEHIND_SIGN: Final = re.compile(r"[0-9][.,]([0-9]+)\D*\Z")  # whichever sign it is: 1.50 and 1,50 have two
_AROUND: Final = " \t\r\n\"'`*“”‘’"


def dates_in(document: str, order: DateOrder | None) -> Iterator[tuple[CharRange, date]]:
    """Every date of a document, with where it stands."""
    found_dates = find_dates(document, order=order, short_years=True)
    return (((found_date.start, found_date.end), found_date.value) for found_date in found_dates)


def numbers_in(
    text: str, number: Exact, unit: str | None, decimal: Literal[".", ","], wanted: Callable[[int], bool] | None
) -> Iterator[CharRange]:
    """Where a number stands: as a percentage for the unit ``"%"``, as an amount of money for the code of a currency."""
    layout: NumberLayout | None = None
    for found in find_numbers(text, decimal=decimal, like=number, wanted=wanted):
        layout = layout or NumberLayout(text)
        if is_claimed(found, number, unit, layout.heads_of(found, money=unit not in (None, "%"))):
            yield found.start, found.end


def find_measures(measures: Measures, kind: ValueType, value: Value, decimal: Literal[".", ","]) -> Iterator[CharRange]:
    """Where an amount with its unit, a time or a span stands."""

    def read(written: str) -> Value:
        return kind.read(written if decimal == "." else with_point(written))

    units = kind.kind in ("quantity", "duration")
    most = _UNIT_WORDS if kind.kind == "quantity" else _SPAN_WORDS
    return measures.find(read, lambda found: same_value(found, value), units=units, most_words=most)


def is_clear(kind: ValueType, text: str, span: CharRange, decimal: Literal[".", ","]) -> bool:
    """Whether a number of a document is meant in one way: not 1.000 of what has fewer places."""
    return decimal == "," or not kind.may_group(text[slice(*span)])


def names_in_text(text: str, words: Words) -> Iterator[CharRange]:
    """Where a name stands, as whole words. Raises ValueRefused: it is none, or too long."""
    name = text.strip(_AROUND)
    if len(name) > _MAX_NAME:
        raise ValueRefused(f"too long for a name ({len(name)} characters)", text=text)
    if not any(char.isalnum() for char in name):
        raise ValueRefused("no letter and no digit to look for", text=text)
    name = View(name).text
    spans = list(words.find_exactly(name))
    # A full stop may belong to the name, `Acme Inc.`, or to the sentence that a model wrote.
    return iter(spans or words.find_exactly(name.removesuffix(".")))


class Search:
    """Looks for the values of a list or a record in one document, which is read once."""

    def __init__(
        self, text: str, instruction: str | None, *, order: DateOrder | None, decimal: Literal[".", ","]
    ) -> None:
        self.text = text
        self._instruction = instruction
        self._order = order
        self._decimal = decimal
        self._words = Words(text)
        self._weigh = Weighing(text, self._words)
        self._measures = Measures(text, self._words)
        self._found: dict[tuple[str, str, str, str | None], list[CharRange]] = {}
        self._layout: NumberLayout | None = None
        self._numbers: dict[str, list[FoundNumber]] | None = None
        self._ordered: list[CharRange] | None = None
        self._dates: list[tuple[CharRange, date]] | None = None

    def spans(self, part: Part, label: str | None = None) -> list[CharRange]:
        """Where a value stands, in order."""
        key = (str(part.kind), show_value(part.value), part.field, label)
        if key not in self._found:
            self._found[key] = sorted(span for span, against in self._weighed(part, label) if not against)
        return self._found[key]

    def against(self, part: Part, label: str | None) -> str:
        """Why a value is not stated where it stands first, empty where it stands nowhere."""
        return next((against for _, against in self._weighed(part, label)), "")

    def _weighed(self, part: Part, label: str | None) -> Iterator[tuple[CharRange, str]]:
        found = self._look(part)
        if label is not None:
            found = filter(FieldLabels(label, self.text).beside, found)
        question = f"{self._instruction} {part.field} {label}"
        several = part.item is not None
        return ((span, self._weigh.against(part.kind, span, question, several=several)) for span in found)

    def rival(self, part: Part, span: CharRange) -> str | None:
        """A number or a date on the line of a span, written as a part is, where that is not; None where it is."""
        start, end = self.text.rfind("\n", 0, span[0]) + 1, self.text.find("\n", span[1])
        end = len(self.text) if end < 0 else end
        own = self.spans(part)
        if any(start <= each[0] < end for each in own):
            return None
        if part.kind.kind == "date":
            self._look(part)
            found = [each for each, _ in self._dates or () if start <= each[0] < end]
        elif part.kind.numeric:
            places = {decimals_of(self.text[slice(*each)]) for each in own}
            found = [
                number
                for number in self._all_numbers(start, end)
                if decimals_of(self.text[slice(*number)]) in places - {0}
            ]
        else:
            return None
        return self.text[slice(*found[0])] if found else None

    def _all_numbers(self, start: int, end: int) -> list[CharRange]:
        if self._ordered is None:
            self._ordered = sorted((each.start, each.end) for near in (self._numbers or {}).values() for each in near)
        return self._ordered[bisect_left(self._ordered, (start, 0)) : bisect_left(self._ordered, (end, 0))]

    def _look(self, part: Part) -> Iterable[CharRange]:
        kind, value = part.kind, part.value
        if kind.numeric:
            return self._of_number(kind, cast(Exact, to_exact(value)))
        if kind.kind == "date":
            if self._dates is None:
                self._dates = list(dates_in(self.text, self._order))
            return [span for span, day in self._dates if day == value]
        if kind.kind in MEASURES:
            return find_measures(self._measures, kind, value, self._decimal)
        return names_in_text(show_value(value), self._words)

    def _of_number(self, kind: ValueType, number: Exact) -> list[CharRange]:
        unit = "%" if kind.kind == "percent" else kind.currency
        if self._numbers is None:
            self._numbers = {}
            self._layout = NumberLayout(self.text)
            for each in find_numbers(self.text, decimal=self._decimal):
                self._numbers.setdefault(_digits(each.value), []).append(each)
        assert self._layout is not None
        money = unit not in (None, "%")
        near = self._numbers.get(_digits(number), ())
        return [
            (each.start, each.end)
            for each in near
            if is_claimed(each, number, unit, self._layout.heads_of(each, money=money))
            and is_clear(kind, self.text, (each.start, each.end), self._decimal)
        ]


class Weighing:
    """Says why a document does not state a value where it stands; a name is stated in any case."""

    def __init__(self, text: str, words: Words) -> None:
        self._text = text
        self._words = words
        self._statements = Statements(text)
        self._options: dict[tuple[str, ...], Options] = {}

    def against(self, kind: ValueType, span: CharRange, question: str, *, several: bool = False) -> str:
        """Why it is not stated there, empty where it is; `several` options may be chosen in one sentence."""
        if kind.options:
            if kind.options not in self._options:
                self._options[kind.options] = Options(self._text, self._words, kind.options)
            said = self._options[kind.options].against(*span, question=question, several=several)
            named = " ".join((question, *kind.options))  # what is said of other options, these have been asked
            return said or self._statements.against(span, named, option=True)
        if kind.numeric or kind.kind == "date" or kind.kind in MEASURES or begins_amount(self._text, *span):
            return self._statements.against(span, question, money=kind.currency is not None)
        return ""


def decimals_of(written: str) -> int:
    """How many digits stand behind the last sign between digits, 0 where there is none."""
    behind = _BEHIND_SIGN.search(written)
    return 0 if behind is None else len(behind[1])


def _digits(number: Exact) -> str:
    """The digits of a number, whatever power of ten it is multiplied by."""
    return format_exact(exact(abs(Fraction(number)))).replace(".", "").strip("0")
