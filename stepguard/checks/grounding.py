"""Grounding: does a value that was read from a document stand in it?

A pass is ``"grounded"``, and that is less than it sounds: the value stands in the document, whether or not it is the
one that was asked for. The net amount of an invoice is grounded where the total was asked, and so is the number of a
street. Two things narrow that down: `beside`, and a second check (``Holds("total == net + tax")``), which makes the
step as strong as that is. What such a check catches for certain is the worst: a value that was made up, or misread.

What counts as standing there, `stepguard.language.prose.amounts` says of numbers, `stepguard.documents.names` of names,
`stepguard.language.dates` of dates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal, cast, get_args

from stepguard.checks.built import MAX_DOCUMENT, DocumentCheck, check_document
from stepguard.checks.citation import Copied
from stepguard.checks.grounded_parts import MOST_PARTS, CharRange, crossing, parts_in
from stepguard.checks.grounded_search import (
    Search,
    Weighing,
    dates_in,
    decimals_of,
    find_measures,
    is_clear,
    names_in_text,
    numbers_in,
)
from stepguard.core.arguments import check_flag, check_one_of
from stepguard.core.verdicts import Claim, Strength, Verdict, shorten
from stepguard.documents.labels import FieldLabels
from stepguard.documents.measured import Measures
from stepguard.documents.names import Words
from stepguard.documents.places import Place
from stepguard.documents.view import View
from stepguard.errors import ConfigError, ValueRefused
from stepguard.language.dates import DateOrder, check_order, find_dates, read_date
from stepguard.language.digits import Exact
from stepguard.language.measures import MEASURES
from stepguard.language.numerals import read_numeral
from stepguard.language.prose.amounts import find_numbers
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value, show_value, to_exact

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

GroundedKind = Literal["number", "date", "text"]
"""What is looked for: a number or a date by value, or text by its words."""


@dataclass(frozen=True, slots=True, init=False)
class Grounded(DocumentCheck):
    """The value stands in a document that the step reads. The verdict's reason says where.

    Args:
        document: the variable of type text that holds the document.
        kind: ``"number"``, ``"date"`` or ``"text"``; None: a number where the step's type is one, otherwise text.
        beside: words that must stand on the same line as the value, such as ``"Total"``; for a record a mapping from
            some of its fields to such words; None: anywhere.
        sole: whether the value must be the only one of its kind that stands beside these words. Where several do, as
            with a total before and after rounding, the verdict is undecided.
        order: how dates such as ``03/04/2026`` are meant, in the document and in the claim, and in the document
            ``03/04/26``, from 1969 to 2068; None does not count them.
        decimal: the decimal separator of the document, ``"."`` or ``","``.

    Of a list or a record every value in it has to stand there, and the items of a list one after the other, each amount
    at a place of its own (`stepguard.checks.grounded_parts`). A truth value stands nowhere: judge it by another step.

    The document is read as it is seen: what is struck out or hidden does not stand in it (`stepguard.documents.view`).
    A percentage is found as such (28% is not 28) or as the ratio that it is, an amount of money in its own currency and
    scale, also where the head of its column or a caption above says it (`stepguard.documents.tables`). An amount with
    no currency beside it, above it or in the next cell is in that of the document's headings, or, where they name none,
    of its other amounts; in none for certain where these are several, and in any where there are none. A bare number is
    an amount in the unit that its head or its label ends with: ``Dose (mg): 10``. Every other number is found whatever
    stands beside it, unless the document does not state it: it is denied, asked, called wrong, void, old, an estimate
    or an example, only a guess (``about 5``), or so only on a condition that the step's words do not name
    (`stepguard.documents.standing`); the reason then says which. An end of a range and a limit are stated, a date that
    another one is counted from (``10 days after``) is not. Of options in a list or in one sentence the one is chosen
    that is ticked or said yes to (`stepguard.documents.options`). What `beside` finds is not the value itself, nor the
    label of another field on its line (`stepguard.documents.labels`). A name is found as whole words and whole numbers,
    without regard to case, white space and the kind of quotes, unless what stands beside it makes it another one (``not
    approved``, ``up to 10 mg``, ``5 ft`` in ``5 ft 10``); at most 1,000 characters. A document of more than 2,000,000
    characters is not searched: the verdict is undecided.

    Raises:
        ConfigError: an option is none of those.
    """

    _strongest: ClassVar[Strength] = "grounded"
    document: str
    kind: GroundedKind | None
    beside: str | tuple[tuple[str, str], ...] | None
    order: DateOrder | None
    decimal: Literal[".", ","]
    sole: bool

    def __init__(
        self,
        document: str,
        *,
        kind: GroundedKind | None = None,
        beside: str | Mapping[str, str] | None = None,
        order: DateOrder | None = None,
        decimal: Literal[".", ","] = ".",
        sole: bool = False,
    ) -> None:
        check_order(order)
        check_document(document)
        check_one_of(kind, get_args(GroundedKind), "kind", optional=True)
        labels = beside if isinstance(beside, Mapping) else {} if beside is None else {"": beside}
        for label in labels.values():
            if not (isinstance(label, str) and any(char.isalnum() for char in label)):
                raise ConfigError(f"beside is words such as 'Total', not {label!r}", option="beside")
        check_flag(sole, "sole")
        if sole and not labels:
            raise ConfigError("sole goes with beside: the only value beside these words", option="sole")
        check_one_of(decimal, (".", ","), "decimal")
        self._set(
            document=document,
            kind=kind,
            beside=tuple(beside.items()) if isinstance(beside, Mapping) else beside,
            sole=sole,
            order=order,
            decimal=decimal,
        )

    def places(self, step: Step, values: Mapping[str, Value]) -> tuple[Place, ...]:
        """Where the step's value, under its id in `values`, stands in the document.

        Raises:
            ValueRefused: the value is none of the kind that is looked for.
        """
        document = values[self.document]
        if not isinstance(document, str) or len(document) > MAX_DOCUMENT:
            return ()
        view = View(document)
        if step.type.structured:
            search = self._search(step, view.text)
            spans: Iterable[CharRange] = (
                span for part in parts_in(step.type, values[step.id]) for span in search.spans(part)[:1]
            )
        else:
            spans = (span for span, against in self._weighed(step, values[step.id], view.text) if not against)
        return Place.all_of(document, (view.span(*span) for span in spans))

    def for_passage(self, document: str) -> Copied:
        """The check of a step that copies the passage before the value is asked."""
        return Copied(document)

    def for_field(self, key: str, document: str) -> Grounded:
        """The check of a field of a record that is asked by itself."""
        label = dict(self.beside).get(key) if isinstance(self.beside, tuple) else None
        sole = self.sole and label is not None
        return Grounded(document, beside=label, order=self.order, decimal=self.decimal, sole=sole)

    def _misfit(self, step: Step) -> str | None:
        if self.document == step.id:
            return f"{step.id!r} is the step's own value: name the document that it is read from"
        if step.type.kind == "boolean":
            return "a truth value does not stand in a document"
        if step.type.structured:
            return self._structure_misfit(step.type)
        if isinstance(self.beside, tuple):
            return f"the step is of type {step.type}: beside is words such as 'Total', and a mapping for a record"
        if step.type.numeric and self.kind in ("date", "text"):
            return f"the step is of type {step.type}, so a number is looked for and no {self.kind}"
        return None

    def _structure_misfit(self, kind: ValueType) -> str | None:
        truth = next((part for part in _types_in(kind) if part[1].kind == "boolean"), None)
        if truth is not None:
            return f"{truth[0]} is a truth value, which does not stand in a document: let a step of its own judge it"
        if self.kind is not None or isinstance(self.beside, str):
            return (
                f"kind and words beside are for one value, and the step is of type {kind}: beside={{'total': 'Total'}}"
            )
        fields = {key for key, _ in kind.record.fields} if kind.record is not None else set[str]()
        unknown = [key for key, _ in self.beside or () if key not in fields]
        return f"{kind} has no field {unknown[0]!r} that stands beside something" if unknown else None

    def _judge(self, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        document = values[self.document]
        if not isinstance(document, str):
            return self._undecided(f"{self.document} is no text", retry=False)
        if len(document) > MAX_DOCUMENT:
            return self._undecided(f"{self.document} has more than {MAX_DOCUMENT} characters", retry=False)
        if step.type.structured:
            return self._judge_parts(step, values[step.id], document)
        try:
            places = self.places(step, values)
        except ValueRefused as error:
            return self._fail(str(error), "malformed")
        if not places:
            weighed = self._weighed(step, values[step.id], View(document).text)
            return self._fail(self._absent(values[step.id], self.beside, next((each for _, each in weighed), "")))
        if self.sole and (other := self._other(step.type, values[step.id], View(document).text, self.beside)):
            return self._undecided(f"several values stand beside {self.beside!r} in {self.document}, {other} too")
        more = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
        return self._pass(f"{self.document}, {places[0]}{more}", strength="grounded")

    def _judge_parts(self, step: Step, value: Value, document: str) -> Verdict:
        search = self._search(step, View(document).text)
        parts = list(islice(parts_in(step.type, value), MOST_PARTS + 1))
        if len(parts) > MOST_PARTS:
            return self._undecided(f"more than {MOST_PARTS} values to look for", retry=False)
        if not parts:
            return self._no_objection()
        labels = dict(self.beside) if isinstance(self.beside, tuple) else {}
        for part in parts:
            label = labels.get(part.place)
            try:
                found = search.spans(part, label)
            except ValueRefused as error:
                return self._fail(f"{part.place}: {error}", "malformed")
            if not found:
                return self._fail(f"{part.place}: {self._absent(part.value, label, search.against(part, label))}")
            if self.sole and label and (other := self._other(part.kind, part.value, search.text, label)):
                return self._undecided(f"{part.place}: several values stand beside {label!r}, {other} too")
        complaint = crossing(parts, search.spans, search.rival)
        if complaint is not None:
            return self._fail(f"{complaint}, in {self.document}")
        return self._pass(f"{self.document}, {len(parts)} values at their places", strength="grounded")

    def _search(self, step: Step, text: str) -> Search:
        return Search(text, step.instruction, order=self.order, decimal=self.decimal)

    def _absent(self, value: Value, beside: object, against: str) -> str:
        where = f"{self.document} beside {beside!r}" if beside else self.document
        claimed = f"{shorten(show_value(value))!r}"
        if against:
            return f"{claimed} is not stated in {where}: it stands there {against}"
        return f"{claimed} does not stand in {where}"

    def _weighed(self, step: Step, value: Value, text: str) -> Iterator[tuple[CharRange, str]]:
        """Where the step's value stands in a text, each with why it is not stated there."""
        spans = self._beside(step.type, value, text, self.beside)
        question = f"{step.instruction} {self.beside}"
        weigh = Weighing(text, Words(text))
        return ((span, weigh.against(step.type, span, question)) for span in spans)

    def _beside(self, kind: ValueType, value: Value, text: str, label: object) -> Iterator[CharRange]:
        """The spans of a value, those beside a label where there is one."""
        if not isinstance(label, str):
            return self._spans(kind, value, text, None)
        labels = FieldLabels(label, text)
        return filter(labels.beside, self._spans(kind, value, text, labels.on_line))

    def _other(self, kind: ValueType, value: Value, text: str, label: object) -> str | None:
        """What stands beside a label as well, and is another number or date; None where nothing does."""
        labels = FieldLabels(str(label), text)
        own = set(self._beside(kind, value, text, label))
        if kind.numeric:
            numbers = find_numbers(text, decimal=self.decimal, wanted=labels.on_line)
            places = {decimals_of(text[slice(*span)]) for span in own}  # a number of pieces is no other total
            spans = [
                (number.start, number.end)
                for number in numbers
                if (number.unit == "%") == (kind.kind == "percent")
                and decimals_of(text[number.start : number.end]) in places
            ]
        elif kind.kind == "date" or self.kind == "date":
            spans = [(each.start, each.end) for each in find_dates(text, order=self.order, short_years=True)]
        else:
            return None
        other = next((span for span in spans if span not in own and labels.beside(span)), None)
        return None if other is None else shorten(text[other[0] : other[1]], 30)

    def _spans(
        self, kind: ValueType, value: Value, document: str, wanted: Callable[[int], bool] | None
    ) -> Iterator[CharRange]:
        if kind.numeric:
            unit = "%" if kind.kind == "percent" else kind.currency
            spans = numbers_in(document, cast(Exact, to_exact(value)), unit, self.decimal, wanted)
            return (span for span in spans if is_clear(kind, document, span, self.decimal))
        if kind.kind == "date":
            return (each for each, day in dates_in(document, self.order) if day == value)
        if kind.kind in MEASURES:
            return find_measures(Measures(document, Words(document)), kind, value, self.decimal)
        text = show_value(value)
        if self.kind == "number":
            numeral = read_numeral(text, decimal=self.decimal)
            return numbers_in(document, numeral.value, numeral.unit, self.decimal, wanted)
        if self.kind == "date":
            sought = read_date(text, order=self.order)
            return (each for each, day in dates_in(document, self.order) if day == sought)
        return names_in_text(text, Words(document))


def _types_in(kind: ValueType, place: str = "it") -> Iterator[tuple[str, ValueType]]:
    """The types of the values in a list or a record, each with where it is."""
    if kind.items is not None:
        yield from _types_in(kind.items, place)
    elif kind.record is not None:
        for key, inner in kind.record.fields:
            yield from _types_in(inner, key)
    else:
        yield place, kind
