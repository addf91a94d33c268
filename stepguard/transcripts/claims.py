"""One claim of a transcript: the sides of its equation, of which the last one is the value.

What cannot be read as working is left out; what cannot be read as a value leaves the claim without one.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from stepguard.currencies import CODES
from stepguard.expressions import Number, parse_expression
from stepguard.procedure import Step
from stepguard.transcripts.links import leading_run
from stepguard.transcripts.names import Entry, Names
from stepguard.transcripts.surroundings import stands_alone_after

__all__ = ["read_claim", "read_value", "read_words"]

_SEPARATOR: Final = re.compile(
    r"(?<![<>=!:~\u2260])=(?![=>~])|\u2248|->|\u2192|,? ?\b(?:which|that) (?:is|equals|gives|comes to|makes)\b"
    r"|\b(?:is equal to|is|equals|gives|giving|becomes|makes|comes to|evaluates to|we get|gets?)\b",
    re.IGNORECASE,
)
_MAX_SIDES: Final = 100
_NAME: Final = re.compile(r"[A-Za-z_]\w*")


def read_claim(body: str, begin: int, end: int, names: Names, step: Step | None, *, leading: bool = False) -> Entry:
    """The working and the value in a part of a text.

    Args:
        body: the plain text.
        begin: where the part begins.
        end: where it ends.
        names: the names of the procedure.
        step: the step that is meant, whose type says what a value is.
        leading: whether words may stand in front of the working.
    """
    entry = Entry("", True, begin, end)
    if step is not None and not step.type.numeric:
        return read_words(body, begin, end, entry)
    work: list[str] = []
    bounds: list[tuple[int, int]] = []
    at = begin
    for sign in _SEPARATOR.finditer(body, begin, end):
        if len(bounds) >= _MAX_SIDES:
            return replace(entry, unread="too many sides")
        bounds.append((at, sign.start()))
        at = sign.end()
    bounds.append((at, end))
    for number, (first, last) in enumerate(bounds):
        final = number == len(bounds) - 1
        side = body[first:last].strip(" \n,;:*_\"'")
        side = side.removesuffix(".").rstrip()
        if not side and final and number:
            return replace(entry, work=tuple(work), end=end, unread="(nothing)")
        whole = names.expression(side.replace("\n", " "))
        if whole is None and leading and number == 0:
            whole = _trailing_expression(side, names)
        if whole is not None and not final:
            work.append(whole)
            entry = replace(entry, end=last)
            continue
        if final and whole is not None and not _is_number(whole):
            work.append(whole)
            return _unfinished(replace(entry, end=first + len(body[first:last].rstrip())), work)
        value, stop = read_value(body, first, last, names)
        if value is not None:
            return replace(entry, work=tuple(work), value=value, end=stop)
        if final or (number and not leading):
            shown = side[:60]
            return _unfinished(replace(entry, unread=shown), work)
    return _unfinished(entry, work)


def _unfinished(entry: Entry, work: list[str]) -> Entry:
    """A claim whose last side is no value; a number among the sides before it is one."""
    if work and not entry.unread and _is_number(work[-1]):
        return replace(entry, work=tuple(work[:-1]), value=work[-1])
    if len(work) > 1 and entry.unread and _is_number(work[-1]):
        return replace(entry, work=tuple(work[:-1]), value=work[-1], unread="")
    return replace(entry, work=tuple(work))


def _is_number(side: str) -> bool:
    return type(parse_expression(side)) is Number


def _trailing_expression(side: str, names: Names) -> str | None:
    """The expression that a side ends with, behind words."""
    start = len(side)
    while start and (side[start - 1] in "0123456789.,+-*/^()%$ "):
        start -= 1
    run = side[start:].lstrip(" .,")
    return names.expression(run) if run and run[0] not in "*/^%" else None


def read_words(body: str, begin: int, end: int, entry: Entry) -> Entry:
    """The value of a step that is no number: what stands behind the last equals sign, up to the end of the sentence."""
    line = body[begin:end]
    sign = line.rfind("=")
    start = begin + sign + 1
    text = body[start:end]
    stop = re.search(r"[.;\n](?=\s|\Z)", text)
    text = text[: stop.start()] if stop else text
    value = text.strip(" *_\"'`|,")
    where = start + len(text.rstrip())
    return replace(entry, value=value or None, end=where, unread="" if value else "(nothing)")


def read_value(body: str, first: int, last: int, names: Names) -> tuple[str | None, int]:
    """A number that a part begins with, if nothing that follows makes it another, and where it ends."""
    while first < last and body[first] in " *_\"'\n:":
        first += 1
    stop = leading_run(body, first, last)
    run = body[first:stop]
    if (run.endswith(")") and run.count("(") < run.count(")")) or (run[-1:] in ("-", "(", "*", "/") and len(run) > 1):
        operand = _NAME.match(body, stop + len(body[stop:last]) - len(body[stop:last].lstrip()))
        if operand is not None and run[-1] in "-*/" and names.find(operand[0]) is not None:
            return None, stop  # 10 - t3
        run = run[:-1].rstrip()
    if not run:
        return None, stop
    stop = first + len(run)
    behind = body[stop : stop + 60].partition("\n")[0]
    suffix = ""
    word = re.match(r" ?(%|percent\b|per cent\b|[A-Z]{3}\b)", behind)
    if word is not None:
        if word[1] in CODES:
            suffix = f" {word[1]}"
        elif word[1].lower().startswith("per"):
            suffix = "%"
        behind = behind[word.end() :] if suffix else behind
    if stands_alone_after(behind.lstrip("\"'*_!")) == "no" and not re.match(
        r" *[!?\"'*_\u2713\u2714\u2705\u2611]", behind
    ):
        return None, stop
    bare = run
    while bare.startswith("(") and bare.endswith(")"):
        bare = bare[1:-1].strip()
    digits = bare.replace("$", "").replace(" ", "")
    if not re.fullmatch(
        r"[-+]?[€£¥₹]?(?:[0-9][0-9.,]*|\.[0-9]+)(?:/[0-9]+|%|[€£¥₹])?|[-+]?[0-9]*[¼½¾⅓⅔]", digits
    ) and not re.fullmatch(r"-?[0-9]+ [0-9]+/[0-9]+", bare):
        return None, stop
    return bare + suffix, stop
