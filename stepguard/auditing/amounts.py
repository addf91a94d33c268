"""A number that a part of a transcript begins with: where it ends, and whether what follows makes it another."""

from __future__ import annotations

import re
from typing import Final

from stepguard.auditing.names import Names
from stepguard.language.currencies import CODES, SIGNS, WORDS
from stepguard.language.links import leading_run
from stepguard.language.prose.retraction import contrast_length, goes_back
from stepguard.language.surroundings import goes_on_below, stands_alone_after
from stepguard.language.value_types import NUMBER, ValueType

_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_REACH: Final = 200
_FRONT: Final = re.compile(
    rf"[-+]? ?(?:(?P<code>[A-Z]{{3}})|{'|'.join(re.escape(each) for each in SIGNS if len(each) > 1)}|[\u20a9-\u20bf])"
    r" ?(?=[-+]?[0-9.])"
)
"""A currency in front of an amount that is not part of a run of numbers."""
_UNIT: Final = re.compile(
    r" ?\(?(?:(?P<percent>%|(?i:percent|per cent)\b)|(?P<code>[A-Z]{3}\b)"
    rf"|(?P<word>(?i:US dollars?|{'|'.join(map(re.escape, WORDS))})\b))"
)
_MARKS: Final = re.compile(r"(?:[\"'*_]+!?[\"'*_]*)?(?: *[\u2713\u2714\u2705\u2611]\ufe0f?)*")
_WORD_BEHIND: Final = re.compile(r" *\(? *(?P<word>[A-Za-z][\w']*)")
_GOING_ON: Final = re.compile(
    r" *\(? *(?:for|after|as|at|because|before|by|due|from|including|excluding|on|since|so|such|that|the|then"
    r"|therefore|this|thus|total|altogether|overall|when|where|which|while|with|without|and|was|were|left|remaining|done"
    r"|in (?:total|all|sum))\b",
    re.IGNORECASE,
)
"""Words that go on with a sentence behind an amount, and are no unit of it."""
_OF_A_COUNTRY: Final = re.compile(r"[A-Z]|peso|yuan|yen|cent|renminbi")
_POINTS: Final = re.compile(r" *-?points?\b", re.IGNORECASE)
_CALCULATED_ON: Final = re.compile(
    r"(?: {1,9}[A-Za-z]{1,20})? {1,9}[-+*/] {0,9}[$(]{0,2}[0-9]"
    rf"| {{1,9}}(?!(?:[A-Z]{{3}}|(?i:percent|{'|'.join(map(re.escape, WORDS))}))\b)"
    r"(?i:[a-z]+(?: [a-z]+)? (?:at|@)) {0,9}"
    rf"(?:[A-Z]{{3}} ?|{'|'.join(map(re.escape, SIGNS))})?\(?[0-9]"
)
"""What makes a number an operand of what stands behind it: ``2 nights at 20``, but not ``40 EUR at 20 each``."""
_LAST_LETTER: Final = re.compile(r"[A-Za-z:] *\Z")
_UNSIGNED: Final = re.compile(r"\( ?[0-9][0-9.,]*%? ?\)")
_WORD_CHARACTER: Final = re.compile(r"\w")
_OPERAND: Final = re.compile(r" *[\w(]")
_NEW_SENTENCE: Final = re.compile(r"[.!]\s")
_AMOUNT: Final = re.compile(r"[-+]?[€£¥₹]?(?:[0-9][0-9.,]*|\.[0-9]+)(?:/[0-9]+|%|[€£¥₹])?|[-+]?[0-9]*[¼½¾⅓⅔]")
_MIXED: Final = re.compile(r"-?[0-9]+ [0-9]+/[0-9]+")


def read_value(body: str, first: int, last: int, names: Names, kind: ValueType = NUMBER) -> tuple[str | None, int]:
    """A number that a part begins with, if nothing that follows makes it another, and where it ends."""
    while first < last and body[first] in " *_\"'\n:":
        first += 1
    marked_up = body[first - 1 : first] in ("*", "_")
    front = ""
    prefix = _FRONT.match(body, first, last)
    if prefix is not None and (prefix["code"] is None or prefix["code"] in CODES):
        front, first = prefix[0], prefix.end()
    stop = leading_run(body, first, last)
    run = body[first:stop]
    if (run.endswith(")") and run.count("(") < run.count(")")) or (
        run[-1:] in ("-", "(", "[", "*", "/") and len(run) > 1
    ):
        operand = _NAME.match(body, stop + len(body[stop:last]) - len(body[stop:last].lstrip()))
        if operand is not None and run[-1] in "-*/" and names.find(operand[0]) is not None:
            return None, stop  # 10 - t3
        run = run[:-1].rstrip()
    if not run:
        return None, stop
    stop = first + len(run)
    behind = body[stop : min(last, stop + _REACH)].partition("\n")[0]
    behind = behind[contrast_length(run, behind) :]
    if behind[:1] == "!" and behind[1:2] in ("", " ") and _LAST_LETTER.search(body, max(first - 4, 0), first):
        behind = behind[1:]  # of "t1 is 42!", but "t1 = 42!" may be a factorial
    suffix = ""
    unit = _UNIT.match(behind)
    if unit is not None:
        if unit["percent"]:
            suffix = "%"
        elif unit["word"]:
            suffix = f" {unit['word'].lower()}" if kind.kind in ("money", "percent") else ""
            suffix = " USD" if suffix.startswith(" us ") else suffix
        elif unit["code"] in CODES:
            suffix = f" {unit['code']}"
        behind = behind[unit.end() :] if suffix else behind
    if not behind.strip() and goes_on_below(body, stop + len(behind)):
        return None, stop
    if not _left_alone(behind, marked_up=marked_up, primed=run[-1:] == ")"):
        return None, stop
    if kind.kind == "percent" and _POINTS.match(behind):
        return None, stop
    if kind.kind in ("money", "percent") and not suffix and "%" not in run:
        signed = bool(front) or any(sign in run for sign in "$\u20ac\u00a3\u00a5\u20b9")
        if _other_unit(behind, signed=signed):
            return None, stop
    bare = run
    while bare.startswith("(") and bare.endswith(")"):
        if kind.kind == "money" or _UNSIGNED.fullmatch(bare):
            return None, stop  # to accountants, below zero
        bare = bare[1:-1].strip()
    digits = bare.replace("$", "").replace(" ", "")
    if not _AMOUNT.fullmatch(digits) and not _MIXED.fullmatch(bare):
        return None, stop
    return front + bare + suffix, stop


def _left_alone(behind: str, *, marked_up: bool, primed: bool) -> bool:
    """Whether nothing that is said behind a number goes on with it, names another one, or takes it back."""
    marks = _MARKS.match(behind)
    assert marks is not None
    if marks[0][:1] == "'" and primed:
        return False
    rest = behind[marks.end() :]
    if marks[0] and _WORD_CHARACTER.match(rest):
        return False  # 19_000, 19'000, 19*half
    if "*" in marks[0] and not marked_up and _OPERAND.match(rest):
        return False  # 19* k
    if stands_alone_after(rest) == "no" or _CALCULATED_ON.match(behind):
        return False
    return _NEW_SENTENCE.match(behind) is not None or not goes_back(behind)  # a new sentence is read apart


def _other_unit(behind: str, *, signed: bool) -> bool:
    """Whether the word directly behind an amount may be its unit; a sign is one, but does not say of which country."""
    word = _WORD_BEHIND.match(behind)
    if word is None or _GOING_ON.match(behind):
        return False
    return not signed or _OF_A_COUNTRY.match(word["word"]) is not None
