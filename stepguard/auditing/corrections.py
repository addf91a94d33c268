"""What a transcript takes back: by words, or by striking it out."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from typing import Final

from stepguard.auditing.answers import find_corrections
from stepguard.auditing.entries import read_entries
from stepguard.auditing.findings import Finding
from stepguard.auditing.names import Entry, Names
from stepguard.core.verdicts import shorten
from stepguard.language.lines import Lines
from stepguard.language.prose.struck_text import struck_spans
from stepguard.language.typeset import plain

_REACH: Final = 200
_STRIKING: Final = re.compile(r"</?[A-Za-z][^<>]*>|<!--|-->|\{--|--\}|[~{}]|\\[A-Za-z]+")


def taken_back(
    text: str,
    body: str,
    names: Names,
    entries: Iterable[Entry],
    claims: Iterable[tuple[int, str]],
    findings: Iterable[Finding],
) -> list[Finding]:
    """A finding for each passage that takes something back, unless one says so already.

    Args:
        text: the transcript as it was given, in which struck passages stand.
        body: the same as it is read.
        entries: everything that it says about steps.
        claims: where those of them begin that a step is judged by, each with its step.
        findings: what is found so far.
    """
    lines = Lines(text)
    struck = [(span.start, span.end) for span in struck_spans(text) if text[span.start : span.end].strip()]
    spans = sorted([*find_corrections(body, names), *struck])
    if not spans:
        return []
    named = {span: _struck_step(text, *span, names) for span in struck}
    known: dict[str | None, list[int]] = {}
    corrected: set[tuple[int, str | None]] = set()
    for finding in findings:
        if finding.kind == "self_correction" and finding.place is not None:
            known.setdefault(finding.step, []).append(finding.place.line)
            corrected.add((finding.place.start, finding.step))
    claims = list(claims)
    read = {start for start, _ in claims}
    left = ((each.start, each.name) for each in entries if each.known and each.start not in read)
    said = sorted([*claims, *(each for each in left if each[1] in names.steps)])
    places = [place for place, _ in said]
    found: dict[int, Finding] = {}  # by line: several words of one correction stand beside each other
    for start, end in spans:
        behind = bisect_left(places, start)
        step = named.get((start, end)) or (said[behind - 1][1] if behind else None)
        place = lines.place(start, end)
        # That a step has two values was found where the second one stands, on this line or beside it.
        near = any(abs(line - place.line) <= 2 for line in known.get(step, ()))
        follows = behind < len(said) and said[behind] in corrected
        if not near and not follows:
            reason = f"something is taken back: {shorten(text[start:end])!r}"
            found.setdefault(place.line, Finding("self_correction", step, place, reason))
    return list(found.values())


def _struck_step(text: str, start: int, end: int, names: Names) -> str | None:
    """The step that a struck part of the text names, or whose line it stands in; None where there is none."""
    inside = read_entries(plain(_STRIKING.sub(" ", text[start:end])), names)
    line = max(text.rfind("\n", 0, start) + 1, start - _REACH)
    claims = inside or read_entries(plain(text[line:start]), names)
    return next((each.name for each in claims if each.known), None)
