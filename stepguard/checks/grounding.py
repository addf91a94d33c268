"""Grounding: does a value that was read from a document stand in it?

A pass is ``"grounded"``, and that is less than it sounds: the value stands in the document, whether or not it is the
one that was asked for. The net amount of an invoice is grounded where the total was asked, and so is the number of a
street. Two things narrow that down: `beside`, and a second check (``Holds("total == net + tax")``), which makes the
step as strong as that is. What such a check catches for certain is the worst: a value that was made up, or misread.

What counts as standing there, `stepguard.language.amounts` says of numbers, `stepguard.documents.names` of names,
`stepguard.language.dates` of dates.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, Literal, cast, get_args

from stepguard.checks.built import BuiltCheck
from stepguard.core.arguments import check_one_of
from stepguard.core.verdicts import Claim, Strength, Verdict, shorten
from stepguard.documents.currency_layout import currencies_apart, currencies_named
from stepguard.documents.names import Words
from stepguard.documents.places import Place
from stepguard.documents.tables import Head, Heads
from stepguard.documents.view import View
from stepguard.errors import ConfigError, ValueRefused
from stepguard.language.amounts import FoundNumber, find_numbers
from stepguard.language.currencies import compatible
from stepguard.language.dates import DateOrder, check_order, find_dates, read_date
from stepguard.language.numerals import Exact, read_numeral
from stepguard.language.retraction import denied_before
from stepguard.language.values import Value, show_value, to_exact

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

__all__ = ["Grounded", "GroundedKind"]

GroundedKind = Literal["number", "date", "text"]
"""What is looked for: a number or a date by value, or text by its words."""

MAX_DOCUMENT: Final = 2_000_000
_MAX_NAME: Final = 1000
_AROUND: Final = " \t\r\n\"'`*“”‘’"


@dataclass(frozen=True, slots=True, init=False)
class Grounded(BuiltCheck):
    """The value stands in a document that the step reads. The verdict's reason says where.

    Args:
        document: the variable of type text that holds the document.
        kind: ``"number"``, ``"date"`` or ``"text"``; None: a number where the step's type is one, otherwise text.
        beside: words that must stand on the same line as the value, such as ``"Total"``; None: anywhere.
        order: how dates such as ``03/04/2026`` are meant, in the document and in the claim; None does not count them.
        decimal: the decimal separator of the document, ``"."`` or ``","``.

    The document is read as it is seen: what is struck out or hidden does not stand in it (`stepguard.documents.view`).
    A percentage is found as such (28% is not 28) or as the ratio that it is, an amount of money in its own currency and
    scale, also where the head of its column or a caption above says it (`stepguard.documents.tables`). An amount with
    no currency beside it, above it or in the next cell is in that of the document's headings; in none for certain where
    they name several, and in any where they name none. Every other number is found whatever stands beside it, unless
    that denies it (``not 5``). What `beside` finds is not the value itself. A name is found as whole words and whole
    numbers, without regard to case, white space and the kind of quotes, unless what stands beside it makes it another
    one (``not approved``, ``up to 10 mg``); at most 1,000 characters. A document of more than 2,000,000 characters is
    not searched: the verdict is undecided.

    Raises:
        ConfigError: an option is none of those.
    """

    name: ClassVar[str] = "grounded"
    document: str
    kind: GroundedKind | None
    beside: str | None
    order: DateOrder | None
    decimal: Literal[".", ","]

    def __init__(
        self,
        document: str,
        *,
        kind: GroundedKind | None = None,
        beside: str | None = None,
        order: DateOrder | None = None,
        decimal: Literal[".", ","] = ".",
    ) -> None:
        check_order(order)
        if not isinstance(document, str) or not document.isidentifier():
            raise ConfigError(f"document is the name of a variable, not {document!r:.60}", option="document")
        check_one_of(kind, get_args(GroundedKind), "kind", optional=True)
        if beside is not None and not (isinstance(beside, str) and any(char.isalnum() for char in beside)):
            raise ConfigError(f"beside is words such as 'Total', not {beside!r}", option="beside")
        check_one_of(decimal, (".", ","), "decimal")
        put = object.__setattr__
        put(self, "document", document)
        put(self, "kind", kind)
        put(self, "beside", beside)
        put(self, "order", order)
        put(self, "decimal", decimal)

    @property
    def reads(self) -> tuple[str, ...]:
        """The document."""
        return (self.document,)

    def places(self, step: Step, values: Mapping[str, Value]) -> tuple[Place, ...]:
        """Where the step's value, under its id in `values`, stands in the document.

        Raises:
            ValueRefused: the value is none of the kind that is looked for.
        """
        document = values[self.document]
        if not isinstance(document, str) or len(document) > MAX_DOCUMENT:
            return ()
        view = View(document)
        labels = None if self.beside is None else _Labels(self.beside, view.text)
        spans = self._spans(step, values[step.id], view.text, None if labels is None else labels.on_line)
        if labels is not None:
            spans = filter(labels.beside, spans)
        return Place.all_of(document, (view.span(*span) for span in spans))

    def _misfit(self, step: Step) -> str | None:
        if self.document == step.id:
            return f"{step.id!r} is the step's own value: name the document that it is read from"
        if step.type.kind == "boolean":
            return "a truth value does not stand in a document"
        if step.type.numeric and self.kind in ("date", "text"):
            return f"the step is of type {step.type}, so a number is looked for and no {self.kind}"
        return None

    @property
    def strongest(self) -> Strength:
        """See `BuiltCheck`."""
        return "grounded"

    def _judge(self, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        document = values[self.document]
        if not isinstance(document, str):
            return self._undecided(f"{self.document} is no text", retry=False)
        if len(document) > MAX_DOCUMENT:
            return self._undecided(f"{self.document} has more than {MAX_DOCUMENT} characters", retry=False)
        try:
            places = self.places(step, values)
        except ValueRefused as error:
            return self._fail(str(error), "malformed")
        if not places:
            shown = shorten(show_value(values[step.id]))
            where = f"{self.document} beside {self.beside!r}" if self.beside else self.document
            return self._fail(f"{shown!r} does not stand in {where}")
        more = f" (and {len(places) - 1} more)" if len(places) > 1 else ""
        return self._pass(f"{self.document}, {places[0]}{more}", strength="grounded")

    def _spans(
        self, step: Step, value: Value, document: str, wanted: Callable[[int], bool] | None
    ) -> Iterator[tuple[int, int]]:
        if step.type.numeric:
            unit = "%" if step.type.kind == "percent" else step.type.currency
            number = cast(Exact, to_exact(value))
            return self._numbers(number, unit, document, wanted)
        text = show_value(value)
        if self.kind == "number":
            numeral = read_numeral(text, decimal=self.decimal)
            return self._numbers(numeral.value, numeral.unit, document, wanted)
        if self.kind == "date":
            day = read_date(text, order=self.order)
            found = find_dates(document, order=self.order)
            return (
                (each.start, each.end)
                for each in found
                if each.value == day and not denied_before(document, each.start)
            )
        return self._names(text, document)

    def _numbers(
        self, number: Exact, unit: str | None, text: str, wanted: Callable[[int], bool] | None
    ) -> Iterator[tuple[int, int]]:
        layout: _Layout | None = None
        for found in find_numbers(text, decimal=self.decimal, like=number, wanted=wanted):
            layout = layout or _Layout(text)
            if _is_claimed(found, number, unit, layout.heads_of(found, money=unit not in (None, "%"))):
                yield found.start, found.end

    def _names(self, text: str, document: str) -> Iterator[tuple[int, int]]:
        name = text.strip(_AROUND)
        if len(name) > _MAX_NAME:
            raise ValueRefused(f"too long for a name ({len(name)} characters)", text=text)
        if not any(char.isalnum() for char in name):
            raise ValueRefused("no letter and no digit to look for", text=text)
        name = View(name).text
        words = Words(document)
        spans = list(words.find(name))
        return iter(spans or words.find(name.removesuffix(".")))


class _Labels:
    """Where a label stands in a text, by lines."""

    def __init__(self, label: str, text: str) -> None:
        self._lines = [at for at, char in enumerate(text) if char == "\n"]
        self._found: dict[int, list[tuple[int, int]]] = {}
        for span in Words(text).find(View(label).text):
            self._found.setdefault(bisect_left(self._lines, span[0]), []).append(span)

    def on_line(self, start: int) -> bool:
        """Whether it stands on the line of a place."""
        return bool(self._found) and bisect_left(self._lines, start) in self._found

    def beside(self, span: tuple[int, int]) -> bool:
        """Whether it stands on the line of a span and outside it: a label is not its own value."""
        held = self._found.get(bisect_left(self._lines, span[0]), ())
        # Of many labels on one line the first or the last lies outside a span that is not the whole line.
        return any(end <= span[0] or start >= span[1] for start, end in (*held[:1], *held[-1:]))


class _Layout:
    """What the layout of a text says of its numbers."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._heads = Heads(text)
        self._named = [frozenset({each}) for each in currencies_named(text)]

    def heads_of(self, found: FoundNumber, *, money: bool) -> tuple[Head, ...]:
        """What is said of a number: the nearest says it, on its line, in a head, on the next lines, or anywhere."""
        above = self._heads.of(found.start, found.end)
        said = currencies_apart(self._text, found.start, found.end, across=False)
        if not said and any(head.currencies for head in above):
            return above
        said = said or currencies_apart(self._text, found.start, found.end)
        if money and found.unit is None and not said and not any(head.percent for head in above):
            powers = above or (Head(),)
            return tuple(replace(head, currencies=named) for head in powers for named in self._named or [frozenset()])
        return tuple(replace(head, currencies=said or head.currencies) for head in above or (Head(),))


def _is_claimed(found: FoundNumber, number: Exact, unit: str | None, heads: tuple[Head, ...]) -> bool:
    """Whether a number of the document is the claimed one, with the unit that the claim or its type has.

    `heads` are those that may be meant for it; where they contradict each other, every one has to allow it.
    """
    return all(_is_number(found, number, unit, head) for head in heads)


def _is_number(found: FoundNumber, number: Exact, unit: str | None, head: Head) -> bool:
    own = found.unit is not None  # what stands at the number itself counts more
    value = found.value
    if unit == "%":
        if found.unit == "%" or (head.percent and not own):
            return Fraction(value, 100) == number
        return not own and not head.currencies and value == number
    if unit is not None:
        if not own and (head.percent or not _may_be(head.currencies, unit)):
            return False
        narrowed = [each for each in head.currencies if found.unit in ("$", "¥") and compatible(found.unit, each)]
        same = not own or compatible(found.unit or "", unit) or compatible(unit, found.unit or "")
        return same and _may_be(frozenset(narrowed), unit) and value * 10**head.power == number
    scaled = value * 10**head.power == number and found.unit != "%"
    return value == number or scaled or (found.unit == "%" and Fraction(value, 100) == number)


def _may_be(currencies: frozenset[str], unit: str) -> bool:
    return not currencies or any(compatible(each, unit) or compatible(unit, each) for each in currencies)
