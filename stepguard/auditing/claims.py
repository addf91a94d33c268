"""One claim of a transcript: the sides of its equation, of which the last one is the value.

What cannot be read as working is left out; what cannot be read as a value leaves the claim without one.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Final

from stepguard.auditing.amounts import read_value
from stepguard.auditing.lenient import read_bare
from stepguard.auditing.names import Entry, Names
from stepguard.language.digits import VULGAR, format_exact, vulgar_fraction
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.expressions import Number
from stepguard.language.prose.following import unread_behind
from stepguard.language.prose.remarks import without_rounding
from stepguard.language.prose.retraction import contrast_length, goes_back
from stepguard.language.prose.spelled_numbers import spelled_number
from stepguard.language.sides import read_side
from stepguard.language.value_types import NUMBER, ValueType
from stepguard.language.values import round_exact
from stepguard.procedure.steps import Step

_SEPARATOR: Final = re.compile(
    r"(?<![<>=!:~/\u2260])=(?![=>~/])|\u2248|->|\u2192"
    r"|,? ?\b(?:which )?round(?:ed|s)(?: up| down)? to (?=\$?[0-9][0-9.,]*(?! ?\w))"
    r"|,? ?\b(?:which|that) (?:is|equals|gives|comes to|makes)\b"
    r"|\b(?:is equal to|is|equals|giv(?:es|ing)(?: us| me| you)?|becomes|makes|comes to|evaluates to|we get|gets?)\b",
    re.IGNORECASE,
)
_SIGNS: Final = "=\u2248-\u2192"  # that part sides; words part them, too
_MAX_SIDES: Final = 100
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_REACH: Final = 200
_UNITS_ONLY: Final = re.compile(r"(?: ?[A-Za-z%]{1,30}(?![A-Za-z%])){0,3} *")
_SCIENTIFIC: Final = re.compile(
    r"[-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4}"
    r"| ?\* ?10(?:(?:\^|\*\*)(?:[-+]?[0-9]{1,4}|\([-+]?[0-9]{1,4}\))"
    r"|[\u207b\u207a]?[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]{1,4}))"
)
_DECIMAL: Final = re.compile(r"-?[0-9]+\.[0-9]+")
_FRACTION: Final = re.compile(
    r"(?P<sign>-?) ?(?:\(\((?P<over>-?[0-9]{1,300})\)/(?P<under>[0-9]{1,300})\)"
    r"|(?P<open>\(?)(?P<plain>[0-9]{1,300})/(?P<below>[0-9]{1,300})(?P<close>\)?))"
)
_VULGAR: Final = re.compile(rf"(?P<whole>[0-9]{{1,9}})? ?(?P<part>[{VULGAR}])")
_DIGITS_GO_ON: Final = re.compile(r"-?[0-9]+\.[0-9]+(?:\.{1,3}|\u2026)")
_REMARK: Final = re.compile(
    r"(?<=[0-9%)]) {0,3}(?:[\u2713\u2714\u2705\u2611]\ufe0f? ?)?(?:\((?P<inside>[^()=\n]*(?:\([^()=\n]*\)[^()=\n]*)*"
    r"=[^()\n]*|(?:\u2248|~|about|approx[a-z.]*) ?-?[0-9.]+)\)|\|(?= ?[-+(]?[0-9][^=|\n]*=))"
)
"""Another equation, or an approximation, in brackets or in a column behind a value."""
_WORKED: Final = re.compile(
    r"(?P<value>(?<![\w.,])[-$]{0,2}[0-9][0-9.,]*) {0,3}\((?:= ?|that is,? |i\.e\.,? )?"
    r"(?P<inside>[-0-9 .,$]{1,60}[+*/^-][-+*/^0-9 .,$()]{0,200})\)(?=[ .,;]*(?:\n|\Z))"
)
"""How a value was worked out, in brackets behind it: ``42 (6 * 7)``."""
_ARITHMETIC: Final = frozenset("0123456789-(\u2248~")
_SAYS_A_NUMBER: Final = re.compile("[0-9]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_BEGINS_WITH_NUMBER: Final = re.compile(r"\W*[0-9]")


def read_claim(body: str, begin: int, end: int, names: Names, step: Step | None, *, leading: bool = False) -> Entry:
    """The working and the value in a part of a text.

    Args:
        step: the step that is meant, whose type says what a value is.
        leading: whether words may stand in front of the working.
    """
    entry = Entry("", True, begin, end)
    kind = NUMBER if step is None else step.type
    if not kind.numeric:
        return read_words(body, begin, end, entry, kind)
    for remark in _WORKED.finditer(body, begin, end):
        worked = names.expression(remark["inside"])
        if worked is not None and read_side(worked) is not None:
            claim = read_claim(body, begin, remark.end("value"), names, step, leading=leading)
            return replace(claim, work=claim.work or (worked,)) if claim.value is not None else claim
    for remark in _REMARK.finditer(body, begin, end):
        inside = remark["inside"] or ""
        if inside[:1] in _ARITHMETIC or not goes_back(inside):
            end = remark.start()
            break
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
        if final and step is not None:
            last = first + len(without_rounding(body[first:last].rstrip(" .\n"), kind, step.expression))
        side = body[first:last].strip(" \n,;:*_\"'")
        side = side.removesuffix(".").rstrip()
        if not side and final and number:
            return replace(entry, work=tuple(work), end=end, unread="(nothing)")
        if final and number and body[first - 1] == "\u2248" and (exact := _approximated(work, side, kind)) is not None:
            return replace(entry, work=tuple(work[:-1]), value=exact, end=last)
        if final and (literal := _literal(" ".join(side.split()), kind)) is not None:
            stop = first + len(body[first:last].rstrip())
            return replace(entry, work=tuple(work), value=literal, end=stop)
        if not final and _DIGITS_GO_ON.fullmatch(side):
            continue  # it says no more than the sides around it
        whole = names.expression(side.replace("\n", " "))
        if whole is None and leading and number == 0:
            whole = _trailing_expression(side, names)
            if whole is not None and len(bounds) > 2 and body[last] not in _SIGNS and _is_number(whole):
                continue  # of "adding 5 gives 42 + 5 = 47" the operand is no side
        if whole is None and not (leading or number or final):
            front = _SAYS_A_NUMBER.split(side, maxsplit=1)[0]
            arithmetic = _SAYS_A_NUMBER.search(side) and not _LETTER.search(side) and read_side(side) is None  # 6! * 7
            if arithmetic or names.understanding.unread_before(front):  # t1 = half of 6 * 7 = 42
                return replace(entry, unread=side[:60], doubt=True)
        if whole is not None and not final:
            work.append(whole)
            entry = replace(entry, end=last)
            continue
        if final and whole is not None and not _is_number(whole):
            work.append(whole)
            return _unfinished(replace(entry, end=first + len(body[first:last].rstrip())), work)
        value, stop = read_value(body, first, last, names, kind)
        if value is not None:
            if not final and _UNITS_ONLY.fullmatch(body, stop, last):
                other = read_value(body, *bounds[number + 1], names, kind)[0]
                if other is not None and read_bare(kind, other) != read_bare(kind, value):
                    return replace(entry, unread=f"{value} and {other}", doubt=True, end=stop)
            return replace(entry, work=tuple(work), value=value, end=stop)
        if final or (number and not leading):
            shown = side[:60]
            return _unfinished(replace(entry, unread=shown), work)
    return _unfinished(entry, work)


def words_behind(entry: Entry, behind: str, names: Names, *, followed: bool = False) -> str:
    """What is not understood of what stands behind a claim, up to the next one; empty where all is.

    Args:
        followed: whether another claim stands behind that.
    """
    step = names.steps.get(entry.name)
    if entry.value is None or not behind.strip(" \n,;.|") or (step is not None and not step.type.numeric):
        return ""
    behind = behind[contrast_length(entry.value, behind) :]
    claim = " ".join((*entry.work, entry.value))
    return unread_behind(names.understanding, behind, claim, followed=followed)


def disowned(entry: Entry, words: str, names: Names) -> Entry:
    """A claim, without its value where words behind it are not understood."""
    if not words:
        return entry
    return entry.without_value(f"what is said behind it, {names.understanding.shown(words)}, is not understood")


def _approximated(work: list[str], side: str, kind: ValueType) -> str | None:
    """The fraction that a decimal behind it only approximates, where an exact number is asked for."""
    fraction = "".join(work[-1].split()) if work and kind.kind == "number" else ""
    side = side.rstrip(".\u2026")
    if _FRACTION.fullmatch(fraction) is None or _DECIMAL.fullmatch(side) is None:
        return None
    exact, written = read_bare(kind, fraction.replace("(", "").replace(")", "")), read_bare(kind, side)
    places = len(side.partition(".")[2])
    if not isinstance(exact, int | Fraction) or not any(
        round_exact(exact, places, mode) == written for mode in ("half_up", "half_even", "down")
    ):
        return None
    return format_exact(exact)


def _unfinished(entry: Entry, work: list[str]) -> Entry:
    """A claim whose last side is no value; a number among the sides before it is one."""
    if work and not entry.unread and _is_number(work[-1]):
        return replace(entry, work=tuple(work[:-1]), value=work[-1])
    goes_on = _SAYS_A_NUMBER.search(entry.unread)
    if len(work) > 1 and entry.unread and not goes_on and _is_number(work[-1]):
        return replace(entry, work=tuple(work[:-1]), value=work[-1], unread="")
    said = bool(entry.unread and work) and _is_number(work[-1])  # t1 = 20 is not clear
    doubt = said or _BEGINS_WITH_NUMBER.match(entry.unread) is not None
    doubted = work[-1] if said and not goes_on else None
    return replace(entry, work=tuple(work), doubt=doubt, doubted=doubted)


def _is_number(side: str) -> bool:
    return side.isdigit() or type(parse_expression(side)) is Number


def _literal(side: str, kind: ValueType) -> str | None:
    """A side that is one number in scientific notation or in words, or a fraction; other divisions are working."""
    if _SCIENTIFIC.fullmatch(side):
        return side
    if side[-1:].isalpha() and (spelled := spelled_number(side)) is not None:
        return str(spelled)
    if (vulgar := _VULGAR.fullmatch(side)) is not None and kind.kind == "number":
        return str(int(vulgar["whole"] or 0) + vulgar_fraction(vulgar["part"]))
    match = _FRACTION.fullmatch(side) if kind.kind == "number" else None
    if match is None or (match["open"] is not None and len(match["open"]) != len(match["close"])):
        return None
    over, under = int(match["over"] or match["plain"]), int(match["under"] or match["below"])
    return None if not under or over % under == 0 else f"{-over if match['sign'] else over}/{under}"


def _trailing_expression(side: str, names: Names) -> str | None:
    """The expression that a side ends with, behind words."""
    start = len(side)
    while start and (side[start - 1] in "0123456789.,+-*/^()%$ "):
        start -= 1
    run = side[start:].lstrip(" .,")
    return names.expression(run) if run and run[0] not in "*/^%" else None


_REASON: Final = re.compile(r",|\(| (?:because|since|as|so)\b")
_OPPOSED: Final = re.compile(r"\b(?:not|no|never|or|but|wrong|unless|if|isn't|maybe|perhaps)\b|[?]", re.IGNORECASE)


def read_words(body: str, begin: int, end: int, entry: Entry, kind: ValueType) -> Entry:
    """The value of a step that is no number: what stands behind the last equals sign, up to the end of the sentence."""
    line = body[begin:end]
    sign = line.rfind("=")
    start = begin + sign + 1
    text = body[start:end]
    stop = re.search(r"[.;\n](?=\s|\Z)", text)
    text = text[: stop.start()] if stop else text
    value = text.strip(" *_\"'`|,")
    reason = _REASON.search(value) if kind.record is None and kind.choices is not None else None
    if reason is not None and read_bare(kind, value) is None:
        options = kind.options or ("true", "false")
        why = value[reason.start() :].lower()
        if not _OPPOSED.search(why) and not any(option.lower() in why for option in options):
            value = value[: reason.start()].rstrip(" *_")
    where = start + len(text.rstrip())
    return replace(entry, value=value or None, end=where, unread="" if value else "(nothing)")
