"""Whether a document states an amount or a date that is written in it, or says that it is not so.

An amount stands there with what belongs to it. As its currency and its scale do, so does what makes it a guess
(``approx. 80 EUR``, ``80 EUR or so``), a question or a denial. And what is called void, wrong, old, an estimate or an
example, and what would only be so on a condition, is not stated, unless the question names just that: ``if paid late,
the fee is 90 EUR`` answers the question for the fee when paid late, and no other one. A condition does not touch what
is there without it (``the deposit of 90 EUR is kept if ...``), and what there is only on it may be named itself (``a
late fee of 90 EUR``). Ends of ranges and limits are stated.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import cache
from typing import Final

from stepguard.core.patterns import lazy_pattern
from stepguard.core.verdicts import shorten
from stepguard.documents import statement_words as words
from stepguard.documents.sentences import begun_before
from stepguard.documents.statement_words import CALLED, CONDITION, MONEY
from stepguard.documents.tables import Head, Heads
from stepguard.language.currencies import CODE, SIGN
from stepguard.language.prose.neighbours import guessed
from stepguard.language.prose.retraction import denied_before

_REACH: Final = 80
_ENDED: Final = lazy_pattern(r"(?<!\.)[;.!?]\s")
_ENTRY: Final = lazy_pattern(  # an entry in front, with its own amount: `Cancelled: 3, confirmed: `
    rf".*(?::|\s[-\u2013\u2014])\s?[\"']?{MONEY}[0-9][^|;:]*?(?:,|\||\s{{2}})(?=[^:|]*(?::|\s[-\u2013\u2014])\s)",
    re.DOTALL,
)
_OF_ANOTHER: Final = lazy_pattern(r"(?<=[0-9])(?:\s?[^\W\d_]{1,4}|[^\w\s])?\s?[(\[][^()\[\]]*[)\]](?=,| and\b| or\b)")
"""What stands in brackets right behind an amount."""
_PARTS: Final = lazy_pattern(r"(:|[|\t;()\[\]]|\s[-\u2013\u2014]\s|\s{2,}|\.{3,})")
_IN_BRACKETS: Final = lazy_pattern(r" ?\([^()\n0-9]{0,60}\)")
_BARE: Final = lazy_pattern("[0-9.,]+")
_WAS: Final = lazy_pattern(r"\W*(?:was|were|war)\W*", re.IGNORECASE)
_WHOLE: Final = lazy_pattern("[0-9]+")
_CELL: Final = lazy_pattern("[;|]")
_GUESSING: Final = lazy_pattern(r"\b(?:estimat|approx|guess|rough|provisional|circa)", re.IGNORECASE)
_SENTENCE_ENDS: Final = lazy_pattern(r"\s{0,9}(?:[.;|)\n]|\Z)")
_NOTE_MARKS: Final = "*\u2020\u2021\u00a7\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"
_NOTE_MARK: Final = lazy_pattern(rf"(?:[^\S\n]?(?:{SIGN}|{CODE}))?[^\S\n]?(?P<mark>[{_NOTE_MARKS}]+)(?!\w)")
_NOTE: Final = lazy_pattern(rf"^[^\S\n]*(?P<mark>[{_NOTE_MARKS}]+)[)\s]*(?P<note>.*)", re.MULTILINE)
_DOUBTING_NOTE: Final = lazy_pattern(
    rf"\b(?:estimate|approx|provisional|preliminary|thousands?\b|millions?\b|(?:{CALLED}|{CONDITION})\b)", re.IGNORECASE
)
_WORD: Final = lazy_pattern(r"[^\W\d_]{3,}")
_ENDING: Final = lazy_pattern("(?:e?s|e?d|ing|e)$")
_STEM: Final = 5
_COMMON: Final = frozenset((
    "the", "you", "your", "and", "are", "was", "were", "not", "has", "had", "have", "its", "for", "that", "this",
    "with", "from", "copy", "read", "what", "which", "who", "when", "how", "out", "much", "many", "does", "must",
    "shall", "will", "say", "says", "list", "every", "each", "all", "any", "there", "document", "text", "total",
    "sum", "amount", "price", "value", "figure", "number", "fee", "invoice", "bill", "paid", "pay", "payable",
    "due", "order", "money", "none",
))  # fmt: skip
"""Words that stand in many questions: they do not tell which amount is meant."""


class Statements:
    """What a document states.

    Args:
        text: the document, as it is seen.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        stamp = words.STAMP.search(text)
        self._stamp = "" if stamp is None else stamp[0]
        self._notes: dict[str, list[tuple[int, str]]] | None = None
        self._heads: Heads | None = None

    def against(self, span: tuple[int, int], question: str, *, money: bool = False, option: bool = False) -> str:
        """Why an amount or a date at a place is not stated, empty where it is.

        Args:
            span: the place.
            question: what is asked for: an instruction, a label, the name of a field.
            money: whether an amount of money is asked for, which no reference is.
            option: whether one of several options is asked for, which may be the word behind ``was``.
        """
        start, end = span
        front = f"{begun_before(self._text, start)} "
        if denied_before(self._text, start):
            return "denied"
        governed = words.GOVERNED.search(_CELL.split(front[-2 * _REACH :])[-1])
        named = _stems(question)
        if governed is not None and governed["not"] and words.DEFINITE.search(front):
            governed = None  # the fee of an amount is there, though it is not paid
        if governed is not None and named.isdisjoint(_stems(governed["told"] or "")):
            return f"behind {shorten(governed[0].strip(), 40)!r}"
        if guessed(self._text, start, end) and not _GUESSING.search(question):
            return "as a guess"
        counted = words.OFFSET.search(front[-_REACH:]) or words.OFFSET_BEHIND.match(self._text, end)
        if counted is not None and counted["way"].casefold() not in question.casefold():
            return f"as what {shorten(counted[0].strip(), 40)!r} is counted from"
        if words.ASKED.match(self._text, end):
            return "as part of a question"
        if (
            money
            and _WHOLE.fullmatch(self._text, start, end)
            and words.REFERENCE.search(self._text, max(start - 20, 0), start)
        ):
            return "as a reference"
        labels = self._labels(start, end)
        apart = " ".join(each for each in (*labels[:-2], labels[-1]) if not words.NEGATED.search(each))
        if any(_negates(question, stem, words.EXCLUDED) for stem in named & _stems(apart)):
            return f"beside {shorten(apart.strip(), 40)!r}, which the question excludes"
        for said in (*self._called(labels, front, start, end), self._note(end)):
            if option and _WAS.fullmatch(said):
                continue
            if said and named.isdisjoint(_stems(said)):
                return f"beside {shorten(said.strip(), 40)!r}, which the question does not name"
        condition = self._condition(front, start, end, question)
        if condition:
            return f"so only on a condition that the question does not name: {shorten(condition.strip(), 60)!r}"
        if self._stamp and _words(question).isdisjoint(_words(self._stamp)):
            return f"in a document that says {shorten(self._stamp.strip(), 40)!r}"
        return ""

    def _labels(self, start: int, end: int) -> list[str]:
        """The heads above an amount, the parts of its line in front of it, and what stands in brackets behind it."""
        line = self._text[max(self._text.rfind("\n", 0, start) + 1, start - 4 * _REACH) : start]
        line = _OF_ANOTHER.sub("", _ENDED.split(line)[-1])
        entry = _ENTRY.match(line)
        own = _IN_BRACKETS.match(self._text, end)
        above = [part for label in self._above(start, end) for part in _parts(label)]
        return [*above, *_parts(line if entry is None else line[entry.end() :]), "" if own is None else own[0]]

    def _called(self, labels: list[str], front: str, start: int, end: int) -> list[str]:
        """The words by which an amount is called none."""
        found = [label["said"] or label[0] for part in labels if (label := words.LABEL.fullmatch(part))]
        found += [part for part in labels[:-2] if words.CONDITIONAL.match(part)]
        before = words.CALLED_BEFORE.search(front, max(len(front) - 2 * _REACH, 0))
        if before is not None:
            found.append("-" if before["never"] or before["then"] else before[0])
        behind = words.CALLED_BEHIND.match(self._text, end)
        if behind is None and not _BARE.fullmatch(self._text, start, end):
            behind = words.REPLACED.match(self._text, end)
            texts = self._text[start:end], "" if behind is None else behind[0]
            currencies = {head.currencies for text in texts if (head := Head.read(text)) is not None}
            behind = None if len(currencies - {frozenset()}) > 1 else behind  # the same in another currency
        return found if behind is None else [*found, behind[0]]

    def _above(self, start: int, end: int) -> list[str]:
        """The heading above a place, a line above its paragraph that is a label, and the heads of its column."""
        above = self._text[max(start - 8 * _REACH, 0) : start].split("\n")[:-1]
        self._heads = self._heads or Heads(self._text)
        digit = next((at for at in range(start, end) if self._text[at].isdigit()), start)
        found: list[str] = []
        for head in self._heads.over(digit, end):
            condition = words.CONDITIONS.search(head)
            found += [f"{head}:", "" if condition is None else condition[0]]
        ended = apart = False
        rows = True  # nothing but lines of numbers between
        for line in reversed(above):
            if line.startswith("#"):
                return [*found, f"{line}:"]
            if line.strip():
                label = line.rstrip(" *_").endswith(":") or (rows and words.LABEL.fullmatch(line) is not None)
                if not ended and label:
                    found.append(line)
                ended = ended or apart or label
                rows = rows and any(char.isdigit() for char in line)
            else:
                apart = True
        return found

    def _condition(self, front: str, start: int, end: int, question: str) -> str:
        """The condition on which alone an amount would be so, empty where the question names it or there is none."""
        cell = _CELL.split(front)[-1]
        behind = words.CONDITION_BEHIND.match(self._text, end, end + 2 * _REACH)
        definite = words.DEFINITE.search(cell) is not None
        new = words.INDEFINITE.search(cell)
        said, negative = "", False
        other = words.OTHERWISE_BEFORE.search(cell) or words.OTHERWISE_BEHIND.match(self._text, end)
        if other is not None:
            earlier = list(words.CONDITIONS.finditer(self._text, max(start - 4 * _REACH, 0), start))
            said, negative = (earlier[-1][0], other["same"] is None) if earlier else ("", False)
        elif behind is not None:
            said = "" if definite and behind["verb"] else behind["said"]
        elif not definite:
            said = self._governing(cell, end)
        if not said:
            return ""
        if new is not None and not _stems(question).isdisjoint(_stems(new["said"])):
            return ""
        shared = _stems(question) & (_stems(words.SUBJECT.sub("", said)) or _stems(said))
        negative ^= words.NEGATED.search(said) is not None
        denied = any(_negates(question, stem, words.NEGATION) for stem in shared)
        return "" if shared and denied is negative else said

    def _governing(self, cell: str, end: int) -> str:
        """The condition in front of an amount that is one for it, empty where there is none."""
        for found in words.CONDITION_BEFORE.finditer(cell):
            closed = words.CONDITION_ENDS.search(cell, found.end())
            if closed is not None:
                return cell[found.start() : closed.start()]
            if found["case"] or (found["if"] and _SENTENCE_ENDS.match(self._text, end)):
                return cell[found.start() :]
        inside = words.CONDITION_INSIDE.search(cell)
        return "" if inside is None else inside["said"] or inside["label"]

    def _note(self, end: int) -> str:
        """The footnote of an amount, where it says that the amount is not so; else empty."""
        while self._text[end - 1] in _NOTE_MARKS:  # as a word that is found whole ends with them
            end -= 1
        mark = _NOTE_MARK.match(self._text, end)
        if mark is None:
            return ""
        if self._notes is None:
            self._notes = {}
            for line in _NOTE.finditer(self._text):
                note = line["note"][: 5 * _REACH]
                doubt = note if _DOUBTING_NOTE.search(note) else ""
                self._notes.setdefault(line["mark"], []).append((line.start(), doubt))
        notes = self._notes.get(mark["mark"], [])
        at = bisect_right(notes, (end, ""))
        return notes[at][1] if at < len(notes) else ""


@cache
def _common() -> frozenset[str]:
    return frozenset(_ENDING.sub("", word) for word in _COMMON)


def _parts(line: str) -> list[str]:
    """The parts of a line, each with the sign behind it."""
    parts = _PARTS.split(line.replace("_", " "))
    return [f"{part}{sign}" for part, sign in zip(parts[::2], [*parts[1::2], ""], strict=True)]


def _negates(question: str, stem: str, words_of_denial: str) -> bool:
    return re.search(rf"{words_of_denial}[\s-]+(?:\w+\s+){{0,2}}{stem}", _plain(question)) is not None


def _plain(text: str) -> str:
    letters = (each for each in unicodedata.normalize("NFD", text) if not unicodedata.combining(each))
    return "".join(letters).replace("_", " ").casefold()


def _words(text: str) -> set[str]:
    return {_ENDING.sub("", word) for word in _WORD.findall(_plain(text))} - _common()


def _stems(text: str) -> set[str]:
    return {word[:_STEM] for word in _words(text)}
