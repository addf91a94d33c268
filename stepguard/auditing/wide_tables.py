"""Tables whose columns are headed by steps: one row of values or, for the steps of a loop, a row for each round."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from stepguard.auditing.claims import disowned, read_claim, words_behind
from stepguard.auditing.labels import Labels
from stepguard.auditing.names import Entry, Names
from stepguard.auditing.occurrences import Round
from stepguard.auditing.tables import VALUE_HEADS, another_unit, cell_spans, cell_texts, corrects, is_rule
from stepguard.documents.tables import Head

_COUNTED: Final = frozenset(("#", "no", "no.", "nr", "index", "row", "round", "iteration", "pass", "cycle"))
_NUMBER: Final = re.compile(r"#?([0-9]{1,9})[.):]?\Z")
_NOTHING: Final = re.compile(r"(?:[-\u2013\u2014/.\u2026]|n/?a|none)*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Heads:
    """The heads of a table: the step of every column, None of another one.

    Attributes:
        steps: these steps.
        counted: whether the first column counts the rounds.
        contested: whether another column or row gives values of the same steps, so that it is not said which are meant.
        remarks: the heads of the columns that may say that a row is wrong.
        title: the head of the first column, which may say of all values in which scale or currency they are.
    """

    steps: list[str | None]
    counted: bool
    contested: bool
    remarks: dict[int, str]
    title: str


def read_wide_tables(body: str, names: Names, labels: Labels | None) -> tuple[str, list[Entry]]:
    """The text without its tables whose columns are steps, of the same length, and the claims in them.

    Args:
        labels: the labels of rounds in a procedure with loops, where a row is the next round, or the one that its first
            column counts, under a head such as ``#`` or ``Round``; None in others, which have one row of values.
    """
    parts: list[str] = []
    claims: list[Entry] = []
    heads: _Heads | None = None
    rows: list[list[Entry]] = []
    at = 0
    for line, below in pairwise((*body.splitlines(keepends=True), "")):
        bars = line.count("|")
        cells = cell_spans(line, at) if bars > line.lstrip().startswith("|") else []
        texts = cell_texts(body, cells)
        rule = is_rule(texts)
        if not cells:
            heads = None
        elif heads is not None and (rule or len(cells) == len(heads.steps)):
            titled = len([text for text in texts if text]) == 1 and bool(texts[0])  # it may say something of the rows
            if not (rule or titled):
                rows.append(list(_row(body, cells, texts, heads, names, labels)))
            line = line if titled else _blank(line)
        else:
            heads = _read_heads(texts, names, labels) if below.count("|") == bars or is_rule([below]) else None
            if heads is not None:
                line = _blank(line)
                if labels is not None:
                    labels.end(at)
        if heads is None:
            claims += _settled(rows, labels)
            rows = []
        parts.append(line)
        at += len(line)
    return "".join(parts), [*claims, *_settled(rows, labels)]


def _settled(rows: list[list[Entry]], labels: Labels | None) -> Iterator[Entry]:
    """The claims of a table; where several rows are none of rounds, it is not said which of them is meant."""
    several = labels is None and sum(any(each.value is not None for each in row) for row in rows) > 1
    for row in rows:
        for each in row:
            yield each.without_value("it stands in one of several rows") if several else each


def _read_heads(texts: list[str], names: Names, labels: Labels | None) -> _Heads | None:
    """The heads of such a table; None where it is none."""
    steps = [name if (name := names.label(text)) in names.steps else None for text in texts]
    if labels is None:
        # Among steps and inputs alone: another head could be the working or the value of the first one.
        foreign = any(
            name is None and names.label(text) is None for name, text in zip(steps[1:], texts[1:], strict=True)
        )
        known = [] if foreign or (steps[0] is None and names.label(texts[0]) is None and len(texts) < 3) else steps
    else:
        # The first column says which round it is; a single step could be a row of another kind of table.
        known = [name if name in labels.repeated and column else None for column, name in enumerate(steps)]
        if steps[0] is not None or (len(texts) == 2 and _NUMBER.match(texts[1])):
            return None
    named = [name for name in known if name is not None]
    if len(named) < 1 + (labels is None):
        return None
    titles = [frozenset(re.findall(r"[\w-]+", text.lower())) for text in texts]
    other_columns = [column for column, name in enumerate(steps) if name is None]
    contested = len(named) != len(set(named)) or any(titles[column] & VALUE_HEADS for column in other_columns if column)
    remarks = {column: texts[column] if column else "name" for column in other_columns}
    return _Heads(known, texts[0].lower() in _COUNTED, contested, remarks, "" if steps[0] else texts[0])


def _row(
    body: str, cells: list[tuple[int, int]], texts: list[str], heads: _Heads, names: Names, labels: Labels | None
) -> Iterator[Entry]:
    number = _NUMBER.match(texts[0]) if heads.counted else None
    item = labels.items.get(texts[0].lower()) if labels is not None else None
    label = (item,) if item else () if number is None else (Round("round", int(number[1])),)
    cells_beside = ((head, texts[column]) for column, head in heads.remarks.items())
    strange = next((cell for head, cell in cells_beside if names.understanding.is_strange_cell(head, cell)), "")
    if labels is None and heads.steps[0] is None:
        foreign = (text for text in (heads.title, texts[0]) if not names.understanding.is_own_head(text))
        strange = strange or next(foreign, "")
    for (first, last), text, name in zip(cells, texts, heads.steps, strict=True):
        if name is None or _NOTHING.match(text):
            continue
        claim = read_claim(body, first, last, names, names.steps[name])
        claim = disowned(claim, words_behind(claim, body[claim.end : last], names), names)
        if strange:
            claim = claim.without_value(f"another cell, {names.understanding.shown(strange)}, is not understood")
        elif any(corrects(head, texts[column], claim) for column, head in heads.remarks.items()):
            claim = claim.without_value("another cell of its row corrects it")
        elif another_unit(Head.read(heads.title), names.steps[name]):
            claim = claim.without_value(f"the first column is headed {heads.title!r}")
        elif heads.contested:
            claim = claim.without_value("it stands in one of its columns")
        named = labels.alias(name, label) if labels is not None and label else None
        yield replace(claim, name=named or name, known=True, start=first)


def _blank(line: str) -> str:
    return re.sub(r"[^\r\n]", " ", line)
