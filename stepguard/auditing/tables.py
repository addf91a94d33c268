"""Tables with a row for each step: which of their columns is the writer's own value, and what the others say of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Final

from stepguard.auditing.claims import read_claim
from stepguard.auditing.names import Entry, Names
from stepguard.core.verdicts import shorten
from stepguard.documents.tables import Head
from stepguard.language.currencies import compatible
from stepguard.language.prose.lexicon import RIGHTING, UNITS
from stepguard.language.prose.vocabulary import QUANTITIES
from stepguard.language.value_types import NUMBER
from stepguard.procedure.steps import Step

VALUE_HEADS: Final = frozenset((
    "value", "result", "output", "answer", "final", "mine", "my", "ours", "our", "computed", "calculated", "obtained",
    "actual", "got", "claimed", "observed", "student", "attempt", "submitted", "model",
))  # fmt: skip
_WORK_HEADS: Final = frozenset(("working", "work", "calculation", "formula", "sum", "expression", "computation"))
_PERSONAL: Final = VALUE_HEADS - {"value", "result", "output", "answer"}
"""Heads that say that a column is the writer's own, whatever another one is."""
_REFERENCES: Final = frozenset(("expected", "reference", "key", "check", "verification", "truth", "target"))
"""Heads of what a value is compared with, and not corrected to."""
_DATA: Final = QUANTITIES - VALUE_HEADS | frozenset(
    ("qty", "each", "unit", "price", "rate", "count", "date", "day", "no")
)
"""Heads of numbers of another kind."""
_SCALES: Final = UNITS - {"unit", "units"} | {"factor", "exponent", "power"}
_NO_HEADS: Final = frozenset(("from", "to", "before", "until", "since", "than", "between", "min", "max"))
"""Heads that say of a number only where it lies."""
_EDGE: Final = re.compile(r"\|")
_MARKUP: Final = " *_\"'`$"
_DATUM: Final = re.compile(r"[-+]?[$\u20ac\u00a3]?(?P<digits>[0-9][0-9.,]*) ?(?P<rate>%)?")
_RULE: Final = re.compile(r"[ |:+=-]*\Z")
_STEP: Final = re.compile(r"(?:step )?\(?([0-9]{1,9})[.):]?\Z", re.IGNORECASE)
_SAYING: Final = re.compile(r"\|+\s*(?:[:=\u2248]|is\b|equals\b)")
_ITSELF: Final = re.compile(r"(?P<name>[A-Za-z_]\w*) ?=(?!=) ?")
_SIGNS: Final = re.compile(r"[-+/\u00b1\u0394\u2206 ]+")
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_DIGITS: Final = re.compile("[0-9]+")
_NUMBER: Final = re.compile("[0-9][0-9.,]*")
_OF_A_TIME: Final = re.compile(r"\W*(?:fy|q[1-4])? ?'?(?:[12][0-9])?[0-9]{2}[ea]?\W*\Z", re.IGNORECASE)
"""A head that says of which year its column is: ``2023``, ``FY24``."""


def is_rule(texts: list[str]) -> bool:
    """Whether the cells of a row only rule a line."""
    return _RULE.match("".join(texts)) is not None


def cell_texts(body: str, cells: list[tuple[int, int]]) -> list[str]:
    """What stands in cells, without the markup around it."""
    return [body[first:last].strip(_MARKUP) for first, last in cells]


def cell_spans(line: str, start: int) -> list[tuple[int, int]]:
    """Where the cells of a row stand that begins at an offset; bars at its ends may be left out."""
    line = line.rstrip()
    edges = [start + match.start() for match in _EDGE.finditer(line)]
    if not line.lstrip().startswith("|"):
        edges.insert(0, start - 1)
    if not line.endswith("|"):
        edges.append(start + len(line))
    return [(left + 1, right) for left, right in pairwise(edges)]


def another_unit(head: Head | None, step: Step | None) -> bool:
    """Whether a head or a caption says of numbers that they are in a scale, a currency or a percentage that the values
    of a step are not.
    """
    kind = NUMBER if step is None else step.type
    if head is None:
        return False
    foreign = kind.currency is not None and not any(compatible(each, kind.currency) for each in head.currencies)
    return bool(head.power or (head.currencies and foreign) or (head.percent and kind.kind != "percent"))


def corrects(head: str, cell: str, entry: Entry) -> bool:
    """Whether a cell beside a value gives another one as the right one."""
    return not RIGHTING.isdisjoint(_words(head)) and _is_another(cell, entry)


def _is_another(cell: str, entry: Entry) -> bool:
    found = _DATUM.fullmatch(cell)
    return found is not None and entry.value is not None and found["digits"] not in _NUMBER.findall(entry.value)


def _words(head: str) -> set[str]:
    return set(re.findall(r"[a-z]+", head.lower()))


class RowReader:
    """Reads the rows of tables, one after the other.

    Args:
        body: the text as `stepguard.language.typeset.plain` gives it.
    """

    def __init__(self, body: str, names: Names) -> None:
        self._body = body
        self._names = names
        self._heads: list[str] = []

    def cells(self, start: int, end: int) -> list[tuple[int, int]]:
        """The cells of a row; nothing where the line is none.

        A row of two cells without bars around them is one where its first cell, or that of the line below, is a step.
        """
        line = self._body[start:end].rstrip()
        if "|" not in line:
            return []
        if line.count("|") < 2 and not self._begins_with_step(line):
            below = self._body[end : end + len(line) + 200].partition("\n")[0]
            if below.count("|") != 1 or not self._begins_with_step(below):
                return []
        return cell_spans(line, start)

    def _begins_with_step(self, line: str) -> bool:
        return self._names.label(line.partition("|")[0].strip(_MARKUP)) is not None

    def row(self, row: list[tuple[int, int]]) -> Iterator[Entry]:
        """The claim of a row, or what keeps claims from being read; none where it is a rule or one of heads."""
        texts = cell_texts(self._body, row)
        names = self._names
        if is_rule(texts):
            return
        name, at, known = None, 0, True
        for column, text in enumerate(texts[:2]):
            name = names.label(text)
            if name is not None:
                at = column
                break
        else:
            number = _STEP.match(texts[0])
            if number is not None:
                name = names.numbered(int(number[1]))
                if name is None:
                    name, known = f"step {number[1]}", False
            elif names.like_a_step(names.unknown(texts[0])):
                name, known = names.unknown(texts[0]), False
            else:
                mentioned = self._mentioned(row, texts)
                if mentioned is None:
                    self._heads = texts
                else:
                    yield mentioned
                return
        if name in names.inputs and name not in names.steps:
            if not any(_DIGITS.search(text) for text in texts):
                self._heads = texts  # a quantity of the procedure may head a column
            return
        if row[at + 1 :]:
            yield from self._claim(row, texts, name, at, known=known)

    def _mentioned(self, row: list[tuple[int, int]], texts: list[str]) -> Entry | None:
        """The claim of a row whose label says more than the name of a step, without its value; None where none does."""
        found = {name for word in _WORD.findall(texts[0]) if (name := self._names.find(word)) in self._names.steps}
        if len(found) != 1 or not any(_DIGITS.match(text) for text in texts[1:]):
            return None
        name = next(name for name in found if name is not None)
        start, end = row[0][0], row[-1][1]
        shown = self._names.understanding.shown(texts[0])
        reason = f"the label of its row, {shown}, is not understood"
        return Entry(name, True, start, end, unread=texts[-1] or texts[0], doubt=True, strange=reason)

    def _claim(
        self, row: list[tuple[int, int]], texts: list[str], name: str, at: int, *, known: bool
    ) -> Iterator[Entry]:
        body, names, columns = self._body, self._names, row[at + 1 :]
        if body[columns[-1][1] : columns[-1][1] + 1] != "|" and _SAYING.match(body, row[at][1]):
            unread = Entry(name, known, row[at][0], columns[-1][1], unread="bars around the name", doubt=True)
            yield replace(unread, strange="bars stand around its name, as around an absolute value")
            return
        heads = self._heads[at + 1 : at + 1 + len(columns)]
        heads += [""] * (len(columns) - len(heads))
        titles = [set(re.findall(r"[\w-]+", head.lower())) for head in heads]
        own = frozenset(
            column
            for column, head in enumerate(heads)
            if names.understanding.is_own_head(head) and not titles[column] & _NO_HEADS and not _SIGNS.fullmatch(head)
        )
        if not own:
            return
        value_at = max((column for column in own if titles[column] & VALUE_HEADS), default=max(own))
        work: list[str] = []
        for column, cell in enumerate(texts[at + 1 :]):
            if column != value_at and column in own and not _is_datum(cell, titles[column]):
                cell = _ITSELF.sub("", cell, count=1) if _is_own(cell, name, names) else cell
                parts = [names.expression(each.strip(_MARKUP)) for each in cell.split("=")]
                work += [part for part in parts if part is not None]
        step = names.steps.get(name)
        claim = read_claim(body, *columns[value_at], names, step)
        start = row[at][0]
        start += len(body[start : row[at][1]]) - len(body[start : row[at][1]].lstrip())
        entry = replace(claim, name=name, known=known, start=start, work=(*work, *claim.work))
        if names.find(heads[value_at]) is None and another_unit(Head.read(heads[value_at]), step):
            entry = entry.without_value(f"its column is {shorten(heads[value_at])!r}")
        strange = next(self._strange(heads, texts[at + 1 :], own, value_at, entry), "")
        yield entry.without_value(strange) if strange else entry

    def _strange(
        self, heads: list[str], cells: list[str], own: frozenset[int], value_at: int, entry: Entry
    ) -> Iterator[str]:
        """What the other columns of a row say against its value, as reasons."""
        understanding = self._names.understanding
        written = heads[value_at].lower()
        for column, (head, cell) in enumerate(zip(heads, cells, strict=True)):
            if column == value_at:
                continue
            if understanding.is_strange_cell(head, cell):
                yield f"another cell of its row, {understanding.shown(cell)}, is not understood"
            words = _words(head)
            compared = (words & (_REFERENCES | _DATA) and not words & RIGHTING) or not _PERSONAL.isdisjoint(
                _words(written)
            )
            foreign = column not in own and not compared
            scaled = words & (UNITS | _SCALES) and (Head.read(cell) or Head()).power
            if ((foreign or words & _SCALES) and _is_another(cell, entry)) or scaled:
                yield f"its row has {shorten(cell)!r} under {shorten(head)!r}"
            alike = _DIGITS.sub("", head.lower()) == _DIGITS.sub("", written) != written
            if column in own and cell and (alike or (_OF_A_TIME.match(head) and head)):
                yield f"which of the columns {shorten(head)!r} and {shorten(heads[value_at])!r} is meant is not said"


def _is_own(cell: str, name: str, names: Names) -> bool:
    """Whether a cell says first of which step it is: ``t1 = 6 * 7`` in the row of t1."""
    found = _ITSELF.match(cell)
    return found is not None and names.find(found["name"]) == name


def _is_datum(cell: str, head: set[str]) -> bool:
    """Whether a cell is a rate, or a number in a column of its own, such as a quantity: no working."""
    found = _DATUM.fullmatch(cell)
    return found is not None and (found["rate"] is not None or bool(head and not head & (VALUE_HEADS | _WORK_HEADS)))
