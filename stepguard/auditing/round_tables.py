"""Tables with a row for each round, and the steps of a loop as the heads of their columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from stepguard.auditing.claims import disowned, read_claim, words_behind
from stepguard.auditing.entries import VALUE_HEADS, cell_spans
from stepguard.auditing.labels import Labels
from stepguard.auditing.names import Entry, Names
from stepguard.auditing.occurrences import Round

_RULE: Final = re.compile(r"[ |:+=-]*\Z")
_COUNTED: Final = frozenset(("#", "no", "no.", "nr", "index", "row", "round", "iteration", "pass", "cycle"))
_NUMBER: Final = re.compile(r"#?([0-9]{1,9})[.):]?\Z")
_NOTHING: Final = re.compile(r"(?:[-\u2013\u2014/.\u2026]|n/?a|none)*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Heads:
    """The heads of a table: the step of every column, None of another one.

    Attributes:
        steps: these steps.
        counted: whether the first column counts the rounds.
        contested: whether another column gives values of the same steps, so that it is not said which ones are meant.
        remarks: the heads of the columns that may say that a row is wrong.
    """

    steps: list[str | None]
    counted: bool
    contested: bool
    remarks: dict[int, str]


def read_round_tables(body: str, names: Names, labels: Labels) -> tuple[str, list[Entry]]:
    """The text without its tables of rounds, of the same length, and the claims in them.

    A row is the next round, or the one that its first column counts, under a head such as ``#`` or ``Round``.
    """
    parts: list[str] = []
    claims: list[Entry] = []
    heads: _Heads | None = None
    at = 0
    for line in body.splitlines(keepends=True):
        bars = line.count("|")
        cells = cell_spans(line, at) if bars > line.lstrip().startswith("|") else []
        texts = [body[first:last].strip(" *_\"'`$") for first, last in cells]
        rule = _RULE.match("".join(texts)) is not None
        if not cells:
            heads = None
        elif heads is not None and (rule or len(cells) == len(heads.steps)):
            if not rule:
                claims += _row(body, cells, texts, heads, names, labels)
            line = _blank(line)
        else:
            heads = _read_heads(texts, names, labels)
            if heads is not None:
                line = _blank(line)
                labels.end(at)
        parts.append(line)
        at += len(line)
    return "".join(parts), claims


def _read_heads(texts: list[str], names: Names, labels: Labels) -> _Heads | None:
    """The heads of a table of rounds; None where it is none."""
    steps = [name if (name := names.label(text)) in names.steps else None for text in texts]
    # The first column says which round it is; a single step could be a row of another kind of table.
    known = [name if name in labels.repeated and column else None for column, name in enumerate(steps)]
    named = [name for name in known if name is not None]
    if not named or steps[0] is not None or (len(texts) == 2 and _NUMBER.match(texts[1])):
        return None
    titles = [frozenset(re.findall(r"[\w-]+", text.lower())) for text in texts]
    other_columns = [column for column, name in enumerate(steps) if name is None]
    contested = len(named) != len(set(named)) or any(titles[column] & VALUE_HEADS for column in other_columns)
    remarks = {column: texts[column] if column else "name" for column in other_columns}
    return _Heads(known, texts[0].lower() in _COUNTED, contested, remarks)


def _row(
    body: str, cells: list[tuple[int, int]], texts: list[str], heads: _Heads, names: Names, labels: Labels
) -> Iterator[Entry]:
    number = _NUMBER.match(texts[0]) if heads.counted else None
    item = labels.items.get(texts[0].lower())
    label = (item,) if item else () if number is None else (Round("round", int(number[1])),)
    cells_beside = ((head, texts[column]) for column, head in heads.remarks.items())
    strange = next((cell for head, cell in cells_beside if names.understanding.is_strange_cell(head, cell)), "")
    for (first, last), text, name in zip(cells, texts, heads.steps, strict=True):
        if name is None or _NOTHING.match(text):
            continue
        claim = read_claim(body, first, last, names, names.steps[name])
        claim = disowned(claim, words_behind(claim, body[claim.end : last], names), names)
        if strange:
            claim = claim.without_value(f"another cell, {names.understanding.shown(strange)}, is not understood")
        elif heads.contested:
            claim = claim.without_value("it stands in one of its columns")
        yield replace(claim, name=(labels.alias(name, label) if label else None) or name, known=True, start=first)


def _blank(line: str) -> str:
    return re.sub(r"[^\r\n]", " ", line)
