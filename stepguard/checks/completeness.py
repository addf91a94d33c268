"""Completeness of what was listed from a document: is an amount left out?"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from stepguard.checks.built import DocumentCheck, check_document
from stepguard.checks.grounded_parts import parts_in
from stepguard.core.arguments import check_one_of
from stepguard.core.verdicts import Claim, Strength, Verdict, shorten
from stepguard.documents.names import Words, fold
from stepguard.documents.view import View
from stepguard.errors import ConfigError
from stepguard.language.currencies import CODES
from stepguard.language.prose.amounts import FoundNumber, find_numbers
from stepguard.language.values import Value, show_value, to_exact

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

_NO_ITEM: Final = frozenset({
    "total", "totals", "subtotal", "sub-total", "grand", "balance", "tax", "taxes", "vat", "gst", "sst", "hst",
    "tendered", "rounding", "rounded", "discount", "savings", "saved", "tip", "gratuity", "summe", "gesamt",
    "gesamtsumme", "zwischensumme", "mwst", "ust", "netto", "brutto", "rückgeld", "montant", "tva", "sous-total",
    "remise", "importe", "suma", "iva", "totale", "subtotale",
})  # fmt: skip
"""Words of a line that holds no item of its own, whatever else stands there."""
_PAID_BY: Final = frozenset({
    "sum", "cash", "change", "tender", "paid", "payment", "amount", "due", "round", "adj", "adjustment", "net", "gross",
    "visa", "mastercard", "amex", "card", "credit", "debit", "nett", "betrag", "bar", "gegeben", "zahlung", "espèces",
    "monnaie", "efectivo", "cambio", "contanti", "resto", "carried", "brought", "forward", "übertrag", "by",
    "of", "incl", "excl", "rm", "myr",
})  # fmt: skip
"""Words that do the same where nothing else stands there: ``Visa 60.30`` was paid, a ``visa fee`` is an item."""
_WORD: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_PARTS: Final = re.compile(r"[.,]([0-9]+)\D*\Z")  # amounts of one column have as many places
# One line may list several amounts: each clause counts as a line.
_CLAUSE: Final = re.compile(r"[;,](?=\s)|(?<=\s)[/+](?=\s)|\band\b|\.(?=\s+[A-Z])")
_INCLUDED: Final = re.compile(r"\(?\b(?:incl|including|excl|excluding|plus|inkl|zzgl)\b[^\n)]{0,30}\)?", re.IGNORECASE)
"""What an amount includes says nothing of the line."""
_UNREAD: Final = re.compile(r"(?<![\w.,/:-])[0-9][0-9.,]*[.,][0-9]{2}(?![\w.,/:]|-\w)")
"""What looks like an amount of money, and may not be read as a number: with another separator."""


@dataclass(frozen=True, slots=True, init=False)
class Complete(DocumentCheck):
    """Nothing that looks like an item's amount was left out of a list that was read from a document.

    What looks like one is written as those that were taken: with as many decimals, or with its currency where they have
    none, on a line of its own. Lines of totals, taxes, payments and the like are no items, nor is what all items add up
    to. Where a line holds several items, what stands between commas and the like counts as a line.

    Args:
        document: the variable of type text that holds the document.
        field: the field of each item that holds its amount; None for a list of amounts.
        apart: further words of lines that hold no item, such as ``["carried", "forward"]``.
        decimal: the decimal separator of the document.

    A pass is ``"constrained"``. Where amounts have neither decimals nor a currency, any number looks like one, and the
    verdict is undecided.

    Raises:
        ConfigError: an option is none of those.
    """

    _strongest: ClassVar[Strength] = "constrained"
    document: str
    field: str | None
    apart: tuple[str, ...]
    decimal: Literal[".", ","]

    def __init__(
        self, document: str, field: str | None = None, *, apart: Iterable[str] = (), decimal: Literal[".", ","] = "."
    ) -> None:
        check_document(document)
        if field is not None and not isinstance(field, str):
            raise ConfigError(f"field is the name of a field of each item, not {field!r:.60}", option="field")
        if isinstance(apart, str) or not all(isinstance(each, str) and _WORD.fullmatch(each) for each in apart):
            raise ConfigError("apart is a list of words: ['carried', 'forward']", option="apart")
        check_one_of(decimal, (".", ","), "decimal")
        self._set(document=document, field=field, apart=tuple(apart), decimal=decimal)

    def _misfit(self, step: Step) -> str | None:
        items = step.type.items
        if items is None:
            return f"what can be incomplete is a list, and the step is of type {step.type}"
        kind = items
        if self.field is not None:
            found = None if items.record is None else items.record.get(self.field)
            if found is None:
                return f"{items} has no field {self.field!r}"
            kind = found
        elif items.record is not None:
            return f"say which field of {items} holds the amount: complete({self.document}, amount)"
        return None if kind.numeric and kind.kind != "percent" else f"an amount is a number, and {kind} is none"

    def _judge_by(self, document: str, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        parts = [part for part in parts_in(step.type, values[step.id]) if part.field == (self.field or "")]
        amounts = [Fraction(to_exact(part.value)) for part in parts]
        apart = frozenset({*_NO_ITEM, *map(fold, self.apart)})
        texts = {show_value(part.value) for part in parts_in(step.type, values[step.id]) if part.kind.kind == "text"}
        lines = _AmountLines(View(document).text, self.decimal, apart, amounts, texts)
        total = next((part for part, amount in zip(parts, amounts, strict=True) if lines.only_apart(amount)), None)
        if total is not None:
            shown = f"{total.place}: {show_value(total.value)}"
            return self._fail(f"{shown} stands on a line that holds no item, in {self.document}")
        if lines.any_number:
            return self._undecided(f"amounts without decimals or a currency look like any number in {self.document}")
        left = list(lines.left_out(amounts))
        if left:
            named = ", ".join(repr(shorten(each, 50)) for each in left[:3])
            more = f" and {len(left) - 3} more" if len(left) > 3 else ""
            return self._fail(f"{named}{more} in {self.document} looks like an item, and was not taken")
        return self._pass(f"{len(amounts)} amounts, and none of {self.document} is left out")


class _AmountLines:
    """The numbers of a document by its lines.

    Words that stand beside every amount that was taken, such as ``Amount: 24.50 EUR``, are the label of an item's.
    """

    def __init__(
        self,
        text: str,
        decimal: Literal[".", ","],
        apart: frozenset[str],
        amounts: Sequence[Fraction],
        texts: Iterable[str],
    ) -> None:
        self._text = text
        self._apart = apart
        self._known: dict[int, bool] = {}
        self._paid = _PAID_BY | {code.lower() for code in CODES}
        self._numbers = list(find_numbers(text, decimal=decimal))
        sought = frozenset(amounts)
        self._ends = [at for at, char in enumerate(text) if char == "\n"]
        self._breaks = self._broken(sought)
        words = Words(text)
        for each in texts:  # a line that holds what was listed holds an item, whatever else it says
            if not {fold(word) for word in _WORD.findall(each)} <= apart | self._paid:
                self._known |= {bisect_left(self._breaks, span[0]): False for span in words.find(each)}
        self._taken = [each for each in self._numbers if each.value in sought]
        self._label = self._item_label()
        self._lines = {self._line(each) for each in self._taken if not self._is_apart(each)}
        styles = {self._style(each) for each in self._taken if not self._is_apart(each)}
        self._styles = styles or {(2, False), (2, True)}

    @property
    def any_number(self) -> bool:
        """Whether amounts are written so that every number looks like one."""
        return (0, False) in self._styles

    def only_apart(self, amount: Fraction) -> bool:
        """Whether an amount stands on lines of totals only."""
        found = [each for each in self._taken if each.value == amount]
        return bool(found) and all(map(self._is_apart, found))

    def left_out(self, amounts: Sequence[Fraction]) -> Iterator[str]:
        """The lines with an amount that was not taken, or not so often, once each."""
        total = sum(amounts, Fraction(0))
        held: dict[Fraction, dict[int, None]] = {}
        for each in self._taken:
            if not self._is_apart(each):
                held.setdefault(Fraction(each.value), {})[self._line(each)] = None
        counts = Counter(amounts)
        for amount, lines in held.items():
            named = [line for line in lines if amount != total or _WORD.search(self._piece(line))]
            for line in named[counts[amount] :]:
                yield f"{' '.join(self._piece(line).split())} (once more)"
        seen: set[int] = set()
        for each in self._numbers:
            line = self._line(each)
            if line in self._lines or line in seen or self._is_apart(each):
                continue
            if self._style(each) in self._styles and each.value not in (0, total) and each.unit != "%":
                seen.add(line)
                if _WORD.search(self._piece(line)) or self._alone(line):
                    yield " ".join(self._piece(line).split())
        spans = [(each.start, each.end) for each in self._numbers]
        for match in _UNREAD.finditer(self._text):
            line = bisect_left(self._breaks, match.start())
            near = spans[max(bisect_left(spans, (match.end(), 0)) - 1, 0) :][:1]
            unread = not near or near[0][1] <= match.start()
            if unread and line not in self._lines and line not in seen and not self._apart_line(line):
                seen.add(line)
                yield " ".join(self._piece(line).split())

    def _broken(self, amounts: frozenset[Fraction]) -> list[int]:
        """Where lines and clauses end; of a line with several items also where a number does."""
        held: dict[int, set[Fraction]] = {}
        for each in self._numbers:
            if each.value in amounts:
                held.setdefault(bisect_left(self._ends, each.start), set()).add(Fraction(each.value))
        several = {line for line, values in held.items() if len(values) > 1}
        numbers = [each.end for each in self._numbers if bisect_left(self._ends, each.start) in several]
        clauses = [match.end() - 1 for match in _CLAUSE.finditer(self._text)]
        return sorted({*self._ends, *clauses, *numbers})

    def _item_label(self) -> frozenset[str]:
        """The words beside each amount that was taken, where no other words for payments stand on as many lines."""
        named: dict[Fraction, set[frozenset[str]]] = {}
        for each in self._taken:
            named.setdefault(Fraction(each.value), set()).add(self._words(self._line(each)))
        lines = map(self._words, {self._line(each) for each in self._numbers})
        counted = Counter(words for words in lines if words and words <= self._paid).most_common(2)
        if len(named) < 2 or not counted or (len(counted) > 1 and counted[0][1] == counted[1][1]):
            return frozenset()
        return counted[0][0] if all(counted[0][0] in words for words in named.values()) else frozenset()

    def _line(self, number: FoundNumber) -> int:
        return bisect_left(self._breaks, number.start)

    def _piece(self, line: int) -> str:
        start = self._breaks[line - 1] + 1 if line else 0
        return self._text[start : self._breaks[line] if line < len(self._breaks) else len(self._text)]

    def _alone(self, line: int) -> bool:
        """Whether a piece is a whole line: one of numbers only belongs to what stands beside it."""
        start = self._breaks[line - 1] if line else -1
        end = self._breaks[line] if line < len(self._breaks) else len(self._text)
        return (start < 0 or self._text[start] == "\n") and (end == len(self._text) or self._text[end] == "\n")

    def _is_apart(self, number: FoundNumber) -> bool:
        return self._apart_line(self._line(number))

    def _apart_line(self, line: int) -> bool:
        if line not in self._known:
            words = self._words(line)
            paid = bool(words) and words <= self._paid and words != self._label
            self._known[line] = paid or not self._apart.isdisjoint(words)
        return self._known[line]

    def _words(self, line: int) -> frozenset[str]:
        return frozenset(fold(word) for word in _WORD.findall(_INCLUDED.sub(" ", self._piece(line))))

    def _style(self, number: FoundNumber) -> tuple[int, bool]:
        decimals = _PARTS.search(self._text[number.start : number.end])
        places = len(decimals[1]) if decimals is not None else 0
        return (places, number.unit is not None) if places == 0 else (places, False)
