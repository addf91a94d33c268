"""Chains of equalities in free text, link by link, without any procedure.

What is called false is false: a link is judged only where both sides can be read with certainty as numbers and nothing
around them (a word such as "half of", a unit of another size, a sign that is not understood) could change what they
mean, and it is false only where it is so in every way of reading it. Everything else is left unjudged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Final, Literal

from stepguard.core.verdicts import shorten
from stepguard.language.digits import format_exact
from stepguard.language.lines import LABEL, Lines, Span, logical_lines
from stepguard.language.sides import Side, SideComparison, compare, read_side
from stepguard.language.surroundings import stands_alone_after, stands_alone_before
from stepguard.language.typeset import plain

LinkVerdict = Literal["true", "rounded", "false", "unread"]
"""What is said of one link.

=======  ==================================================================================================
true     both sides are the same number
rounded  one side is the other, rounded or cut off to the digits that are written
false    both sides can be read with certainty, and they differ
unread   a side cannot be read with certainty, or the link can be read in ways that differ
=======  ==================================================================================================
"""

EQUALS: Final = re.compile(r"(?<![<>=!:~\u2248\u2260/+*-])=(?![=>~])")
_ANNOTATION: Final = re.compile(r"<<([^<>\n]{1,500})>>")
_VERDICTS: Final[dict[SideComparison, LinkVerdict]] = {
    "equal": "true",
    "rounded": "rounded",
    "different": "false",
    "unclear": "unread",
}
_SETTING: Final = re.compile(
    r"\b(?:mod(?:ulo|ulus|ular)?|binary|hex|hexadecimal|octal|ternary|clock arithmetic|on (?:a|the|this) clock"
    r"|[0-9]{1,2}[ -]?h(?:our|r)?s?[ -]clock"
    r"|(?:in|to|from|use) base (?:[0-9]+|two|three|four|five|six|seven|eight|nine|twelve|sixteen)|base-[0-9]+)\b",
    re.IGNORECASE,
)
"""What makes every number behind it mean something else."""
_DASHED: Final = re.compile(r"[0-9]{1,3} - ")
_MAX_LINE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Link:
    """Two neighbouring sides of a chain of equalities.

    Attributes:
        left: the left side as it was written.
        right: the right side as it was written.
        verdict: what is said of it.
        place: where it stands, from the start of the left side to the end of the right one.
        left_value: the exact value of the left side as text, None where it could not be read.
        right_value: the same of the right side.
    """

    left: str
    right: str
    verdict: LinkVerdict
    place: Span
    left_value: str | None = None
    right_value: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class FalseLink(Link):
    """A link that is false."""


def false_links(text: str) -> tuple[FalseLink, ...]:
    """Every equality in a text whose two sides are certainly numbers and certainly not equal."""
    return tuple(link for link in check_links(text) if isinstance(link, FalseLink))


def check_links(text: str) -> tuple[Link, ...]:
    """Every equality in a text, with what can be said of it, in the order of the text."""
    if "=" not in text:
        return ()
    lines = Lines(text)
    body = plain(text)
    links: list[Link] = []
    setting = _SETTING.search(body)
    certain = len(body) if setting is None else setting.start()
    if "<<" in body:
        for note in _ANNOTATION.finditer(body):
            links += _chain(text, body, note.start(1), note.end(1), lines, certain, exact=True)
        body = _ANNOTATION.sub(lambda note: " " * len(note[0]), body)
    for start, end in logical_lines(body):
        if EQUALS.search(body, start, end):
            links += _chain(text, body, start, end, lines, certain, exact=False)
    return tuple(sorted(links, key=lambda link: link.place.start))


@dataclass(frozen=True, slots=True)
class _LinkPart:
    """What stands between two equals signs: the side that ends it, and the side that begins it."""

    ending: Side | None
    ending_at: tuple[int, int]
    beginning: Side | None
    beginning_at: tuple[int, int]


def _chain(text: str, body: str, start: int, end: int, lines: Lines, certain: int, *, exact: bool) -> Iterator[Link]:
    if end - start > _MAX_LINE:
        return
    signs = [match.start() for match in EQUALS.finditer(body, start, end)]
    bounds = [start, *(at + 1 for at in signs)]
    ends = [*signs, end]
    last = len(signs)
    parts = [
        _part(body, begin, stop, start, first=index == 0, last=index == last, exact=exact)
        for index, (begin, stop) in enumerate(zip(bounds, ends, strict=True))
    ]
    calculated = False  # whether a side of this chain is more than a number
    for before, after in pairwise(parts):
        left, right = before.ending, after.beginning
        calculated = (calculated and before.ending is before.beginning) or (left is not None and not left.single)
        shown_left, shown_right = (
            _ANNOTATION.sub("", text[slice(*at)]) for at in (before.ending_at, after.beginning_at)
        )
        place = lines.place(before.ending_at[0], after.beginning_at[1])
        verdict: LinkVerdict = "unread"
        if left is not None and right is not None:
            verdict = _VERDICTS[compare(left, right)]
            if verdict == "false" and after.beginning_at[0] > certain:
                verdict = "unread"
            if verdict == "false" and right.single and not (calculated or exact):
                verdict = "unread"  # such as x=4=5
        kind = FalseLink if verdict == "false" else Link
        yield kind(
            shown_left if left is not None else shorten(shown_left),
            shown_right if right is not None else shorten(shown_right),
            verdict,
            place,
            None if left is None else format_exact(left.value),
            None if right is None else format_exact(right.value),
        )


def _part(body: str, begin: int, stop: int, line_start: int, *, first: bool, last: bool, exact: bool) -> _LinkPart:
    begin, stop = _trimmed(body, begin, stop)
    whole = body[begin:stop]
    if exact or not (first or last):
        side = read_side(whole)
        if side is not None or exact:
            return _LinkPart(side, (begin, stop), side, (begin, stop))
    beginning, beginning_at = (None, (begin, begin)) if first else _beginning(body, begin, stop)
    ending, ending_at = (None, (stop, stop)) if last else _ending(body, begin, stop, line_start, first=first)
    return _LinkPart(ending, ending_at, beginning, beginning_at)


def _trimmed(body: str, begin: int, stop: int) -> tuple[int, int]:
    while begin < stop and body[begin].isspace():
        begin += 1
    while stop > begin and body[stop - 1].isspace():
        stop -= 1
    return begin, stop


_RUN: Final = re.compile(r"(?:[0-9]+(?:[.,][0-9]+)*|\.[0-9]+|[-+*/^()\[\]%$€£¥₹¼½¾⅓⅔ ])*")
_RUN_CHARACTERS: Final = frozenset("0123456789.,-+*/^()[]%$€£¥₹¼½¾⅓⅔ ")
_CLAUSE_END: Final = re.compile(r"[.,](?= )")


def leading_run(body: str, begin: int, stop: int) -> int:
    """Where the numbers, operations and brackets end that a text begins with."""
    match = _RUN.match(body, begin, stop)
    assert match is not None
    return begin + len(match[0].rstrip())


def _beginning(body: str, begin: int, stop: int) -> tuple[Side | None, tuple[int, int]]:
    """The side that a part begins with, where what follows leaves it as it is."""
    run = body[begin : leading_run(body, begin, stop)]
    unit = run.endswith("/") and body[begin + len(run) : begin + len(run) + 3].isalpha()  # 700/week
    closing = run.endswith(")") and run.count("(") < run.count(")")  # (since 3 + 4 = 7)
    dash = run[-1:] in ("-", "(", "*") and run[:-1].endswith(" ")  # 15 - so, 15 (as before)
    run = run[: len(run) - (unit or closing or dash)].rstrip()
    at = begin, begin + len(run)
    alone = stands_alone_after(body[at[1] : at[1] + 160])
    if not run or alone == "no":
        return None, at
    return read_side(run, unit=alone == "unit"), at


def _ending(body: str, begin: int, stop: int, line_start: int, *, first: bool) -> tuple[Side | None, tuple[int, int]]:
    """The side that a part ends with, where what stands in front leaves it as it is."""
    start = stop
    while start > begin and body[start - 1] in _RUN_CHARACTERS:
        start -= 1
    label = LABEL.match(body, begin, stop) if first and begin < stop else None
    labelled = label is not None and (start < label.end() < stop or label.end() == start > begin)
    if label is not None and labelled:
        start = label.end()
    for match in _CLAUSE_END.finditer(body, start, stop):
        start, labelled = match.end(), False
    start, stop = _trimmed(body, start, stop)
    run = body[start:stop]
    while run.startswith("(") and run.count("(") > run.count(")"):
        start, stop = _trimmed(body, start + 1, stop)
        run, labelled = body[start:stop], False
    if not run or run[0] in "*/^%)" or (run[0] in "+-" and run[1:2] in (" ", "")):
        return None, (start, stop)
    side = read_side(run)
    if side is None or (labelled and (side.single or run[0] == "(")):  # (2) (3) + 1 may be a product
        return None, (start, stop)
    if first and not labelled and start == begin and (dashed := _DASHED.match(run)) is not None:
        item = read_side(run[dashed.end() :])  # the second item of a list: 2 - 8 * 2 = 16
        if item is not None and side.other is not None:
            return None, (start, stop)
        side = replace(side, other=side.other if item is None else item.value)
    if labelled:
        assert label is not None
        if label[0].strip() in ("-", "+"):  # a bullet, or a sign
            signed = read_side(f"{label[0].strip()}{run}")
            side = replace(side, other=None if signed is None else signed.value)
    elif not stands_alone_before(body, line_start, start, single=side.single):
        return None, (start, stop)
    return side, (start, stop)
