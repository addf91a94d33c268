"""Tables with a row for each round, and the steps of a loop as the heads of their columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Final

from stepguard.auditing.claims import read_claim
from stepguard.auditing.names import Entry, Names
from stepguard.auditing.occurrences import Labels, Round
from stepguard.language.attribution import heads_another

_RULE: Final = re.compile(r"[ |:+=-]*\Z")
_COUNTED: Final = frozenset(("#", "no", "no.", "nr", "index", "row", "round", "iteration", "pass", "cycle"))
_NUMBER: Final = re.compile(r"#?([0-9]{1,9})[.):]?\Z")


def read_round_tables(body: str, names: Names, labels: Labels) -> tuple[str, list[Entry]]:
    """The text without its tables of rounds, of the same length, and the claims in them.

    A row is the next round, or the one that its first column counts, under a head such as ``#`` or ``Round``.
    """
    parts: list[str] = []
    found: list[Entry] = []
    heads: list[str | None] = []
    counted = False
    at = 0
    for line in body.splitlines(keepends=True):
        cells = list(_cells(line, at))
        texts = [body[first:last].strip(" *_\"'`$") for first, last in cells]
        if not cells:
            heads = []
        elif heads and (_RULE.match("".join(texts)) or len(cells) == len(heads)):
            if not _RULE.match("".join(texts)):
                found += _row(body, cells, texts, heads, names, labels, counted=counted)
            line = _blank(line)
        else:
            steps = [names.label(text) for text in texts]
            # The first column says which round it is; a single step could be a row of another kind of table.
            known = [
                name if name in names.steps and name in labels.repeated and column else None
                for column, name in enumerate(steps)
            ]
            heads = known if any(known) and steps[0] not in names.steps else []
            if heads and len(cells) == 2 and _NUMBER.match(texts[1]):
                heads = []
            counted = texts[0].lower() in _COUNTED
            if heads:
                line = _blank(line)
                labels.end(at)
        parts.append(line)
        at += len(line)
    return "".join(parts), found


def _cells(line: str, start: int) -> Iterator[tuple[int, int]]:
    text = line.rstrip()
    edges = [start + each.start() for each in re.finditer(r"\|", text)]
    if len(edges) >= (2 if text.lstrip().startswith("|") else 1):
        if not text.lstrip().startswith("|"):
            edges.insert(0, start - 1)
        if not text.endswith("|"):
            edges.append(start + len(text))
        yield from ((left + 1, right) for left, right in pairwise(edges))


def _row(
    body: str,
    cells: list[tuple[int, int]],
    texts: list[str],
    heads: list[str | None],
    names: Names,
    labels: Labels,
    *,
    counted: bool,
) -> Iterator[Entry]:
    number = _NUMBER.match(texts[0]) if counted else None
    for (first, last), text, name in zip(cells, texts, heads, strict=True):
        if name is None or not text or heads_another(text):
            continue
        claim = read_claim(body, first, last, names, names.steps[name])
        label = () if number is None else (Round("round", int(number[1])),)
        named = labels.alias(name, label) if label else name
        yield replace(claim, name=named or name, known=True, start=first)


def _blank(line: str) -> str:
    return re.sub(r"[^\r\n]", " ", line)
