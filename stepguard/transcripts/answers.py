"""Final answers that a transcript marks as such, and places where it takes something back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from stepguard.errors import ValueRefused
from stepguard.transcripts.links import leading_run
from stepguard.transcripts.names import Names
from stepguard.value_types import ValueType
from stepguard.values import Value

__all__ = ["Stated", "find_answers", "find_corrections"]

_MARKER: Final = re.compile(
    r"(?P<final>final )?(?P<word>answer|result)[*_\" ]{0,6}"
    r"(?:(?:is|=|:|->|\u2192|are)(?![\w=])[*_\": ]{0,8})+(?P<rest>[^\n]*)"
    r"|(?P<heading>(?:final )?answer)[*_#: ]{0,6}\n[ \n]{0,4}(?P<next>[^\n]*)",
    re.IGNORECASE,
)
_BOXED: Final = re.compile(r"\\(?:boxed|fbox) ?\{(?P<rest>(?:[^{}\n]|\{[^{}\n]{0,60}\}){0,200})\}")
_HASHES: Final = re.compile(r"^#{4} ?(?P<rest>[-+$(.0-9][^\n]{0,80})$", re.MULTILINE)
_SENTENCE: Final = re.compile(r"[.!?](?=\s)")
_DIGIT: Final = re.compile("[0-9]")
_HEDGED: Final = re.compile(r"[0-9]\W{0,3}\b(?:or|to|and|not)\b\W{0,3}[-+$]?[0-9]", re.IGNORECASE)
_LONGEST: Final = 100
_MAX_WORDS: Final = 3
_AROUND: Final = " \t\r*_`\"'$.!"
_TAKEN_BACK: Final = re.compile(
    r"(?:^[ *_>#-]{0,9}|[.!?,;:)\u2014\u2026\n] {0,3}|- |\()"
    r"(?P<phrase>(?:oh|no|hmm+|but|ah),? wait\b|wait\b(?! for| until)|actually\b|scratch that|strike that|oops|whoops"
    r"|correction\b|sorry\b|my mistake|on second thought|no, (?:that|this|it|the|wait|i)\b|hmm+\b"
    r"|i (?:made|see) (?:a|an|my) (?:mistake|error)"
    r"|(?:that|this)(?:'s| is| was) (?:wrong|incorrect|not right|a mistake|not correct)"
    r"|let me (?:re\w{2,12}|correct|fix|redo|try (?:that |this )?again|double.check|start over)"
    r"|(?:re-?calculat|re-?comput|correct|re-?check)ing\b(?! the final))|~~[^~\n]{1,80}~~",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Stated:
    """A marked answer: what stands behind the marker, where, its value, and whether that is all that stands there."""

    text: str
    start: int
    end: int
    value: Value | None
    strict: bool


def find_answers(text: str, body: str, names: Names, kind: ValueType, answer: str) -> list[Stated]:
    """Every marked answer that holds a value, or was meant to, in the order of the text.

    Args:
        text: the transcript.
        body: the same as `stepguard.transcripts.notation.plain` gives it.
        names: the names of the procedure.
        kind: the type of the answer.
        answer: the name of the variable that is the answer.
    """
    found = [
        _stated(text, body, match.start("rest"), match.end("rest"), match.start(), names, kind, answer)
        for marker in (_BOXED, _HASHES)
        for match in marker.finditer(text)
    ]
    own = {name.lower() for name in names.steps}
    for match in _MARKER.finditer(body):
        word = (match["word"] or "").lower()
        before = body[max(0, match.start() - 1) : match.start()]
        if before.isalnum() or before == "_" or (word == "result" and not match["final"]):
            continue
        if word in own and not match["final"]:
            continue
        group = "rest" if match["rest"] is not None else "next"
        stated = _stated(text, body, match.start(group), match.end(group), match.start(), names, kind, answer)
        if group == "next" and stated.value is None:
            continue
        found.append(stated)
    found.sort(key=lambda each: each.start)
    kept: list[Stated] = []
    for each in found:
        if kept and each.start < kept[-1].end:  # such as a box behind "the answer is"
            if each.value is not None and (kept[-1].value is None or each.strict > kept[-1].strict):
                kept[-1] = each
            continue
        kept.append(each)
    return [each for each in kept if each.value is not None]


def _stated(
    whole: str, body: str, begin: int, end: int, start: int, names: Names, kind: ValueType, answer: str
) -> Stated:
    first = begin
    while body[first - 1 : first] == " " != whole[first - 1 : first]:  # notation that became blanks
        first -= 1
    written = whole[first:end].strip(_AROUND)
    if kind.numeric and (value := _read(kind, written)) is not None:  # as the guard reads values, LaTeX included
        return Stated(written, start, end, value, True)
    text = body[begin:end].strip(_AROUND)
    if kind.numeric:
        text = _SENTENCE.split(text, maxsplit=1)[0].strip(_AROUND)
    name, sign, rest = text.partition("=")
    if sign and (own := names.find(name.strip(_AROUND))) is not None:
        if own != answer:  # the steps begin behind "Answer:"
            return Stated(text, start, end, None, False)
        text = rest.rpartition("=")[2].strip(_AROUND)
    value = _read(kind, text)
    if value is not None:
        return Stated(text, start, end, value, True)
    if len(text) > _LONGEST or len(_DIGIT.split(text)[0].split()) > _MAX_WORDS:
        value = None  # more than an answer
    elif kind.numeric:
        last = text.rpartition("=")[2].strip(_AROUND)
        if _HEDGED.search(last):
            return Stated(text, start, end, None, False)
        number = re.search(r"[-+]?[$€£]?[0-9][0-9.,]*(?:/[0-9]+)?%?", last)
        run = last[: leading_run(last, 0, len(last))] if number is None else number[0]
        value = _read(kind, run.rstrip(".,"))
    else:
        value = _read(kind, re.split(r"[.,;(]", text)[0])
    return Stated(text, start, end, value, False)


def _read(kind: ValueType, text: str) -> Value | None:
    try:
        return kind.read(text) if text else None
    except ValueRefused:
        return None


def find_corrections(body: str, names: Names) -> list[tuple[int, int]]:
    """Where a transcript takes something back, in words."""
    found: list[tuple[int, int]] = []
    for match in _TAKEN_BACK.finditer(body):
        phrase = match["phrase"]
        if phrase is not None and names.find(phrase) is not None:
            continue  # a variable may be called "correction"
        group = "phrase" if phrase is not None else 0
        found.append(match.span(group))
    return found
