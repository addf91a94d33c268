"""Final answers that a transcript marks as such, and places where it takes something back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from stepguard.auditing.lenient import bare, find_alone, last_side, read_bare
from stepguard.auditing.names import Names
from stepguard.language.prose.following import unread_behind
from stepguard.language.prose.mentioned import Mentions
from stepguard.language.prose.retraction import contrast_length, find_retractions, goes_back
from stepguard.language.prose.understanding import Understanding
from stepguard.language.surroundings import stands_alone_after
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value

_ELSEWHERE: Final = r"antwort|r\u00e9ponse|respuesta|risposta|resposta"
_MARKER: Final = re.compile(
    rf"(?P<final>final )?(?P<word>answer|result|{_ELSEWHERE})[*_\" ]{{0,6}}"
    r"(?:(?:(?:is|are|ist|lautet|est|es|\u00e8|\u00e9)(?!\w)|=(?!=)|[:\uff1a]|->|\u2192)[*_\": ]{0,8})+"
    r"(?P<rest>[^\n]*?[^\s*_][^\n]*)"
    r"|(?P<heading>(?:final )?answer)[*_#:\uff1a ]{0,6}\n[ \n]{0,4}(?P<next>[^\n]*)",
    re.IGNORECASE,
)
_LABEL: Final = re.compile(r"[\s*_#>\"-]*(?:the )?(?:final )?answer[*_\" ]*[:\uff1a]", re.IGNORECASE)
_BOXED: Final = re.compile(r"\\(?:boxed|fbox) ?\{(?P<rest>(?:[^{}\n]|\{[^{}\n]{0,60}\}){0,200})\}")
_TAGGED: Final = re.compile(r"<(?P<tag>(?:final_?)?answer)>(?P<rest>[^<]{0,200})</(?P=tag)>", re.IGNORECASE)
_CLOSED_TAG: Final = re.compile(r"<(?P<tag>[A-Za-z_]{1,20})>[^<\n]{0,99}</(?P=tag)>\s*\Z")
_HASHES: Final = re.compile(r"^#{4} ?(?P<rest>(?:\*\*)?[-+$(.0-9][^\n]{0,80})$", re.MULTILINE)
_STATED: Final = re.compile(
    r"(?:^|(?<=[.!?;] ))\W{0,9}(?:so |thus |therefore |hence )?,? ?(?:(?:the|my|die|la|a) )?"
    rf"(?:(?:final )?answer\b[^\n0-9]*|(?:{_ELSEWHERE})(?:[ :*_$]|\b(?:ist|lautet|est|es|\u00e8|\u00e9)\b){{1,20}})"
    r"[-+$]{0,2}[0-9][0-9.,]*%?\$?"
    r"(?: (?!(?:not|or|nor|is|was|in|at|per|no|if|but|by)\b)[a-z]+)?",
    re.IGNORECASE | re.MULTILINE,
)
_SENTENCE: Final = re.compile(r"[.!?](?=\s)")
_DIGIT: Final = re.compile("[0-9]")
_LONGEST: Final = 100
_MAX_WORDS: Final = 3
_SET_AROUND: Final = re.compile(r"(?:[\s$*_)\]]|\\(?:checkmark|blacksquare|square|qed)\b)*")
_IN_FRONT: Final = re.compile(
    r"(?:\\[A-Za-z]{1,20}|[-+/^%<>~\u2260\u221a\u00b1{\\]|(?<![*])\*|[0-9][.,]?|/[0-9.]+\)|[A-Za-z][({]+|\b(?:minus|negative|than|under|over|above|below"
    r"|twice|of|as|like|neq?|neg))[\s$_(]*\Z",
    re.IGNORECASE,
)
"""What changes a number that stands behind it in a box."""
_REACH: Final = 160
_STEP: Final = re.compile(r"^\W*(?:step ?)?[0-9]{1,3}[.):]\s", re.IGNORECASE | re.MULTILINE)
_NAMED: Final = re.compile(r"([A-Za-z_]\w*)[\"'*`$_ ]*(?:[=:|]|\bis\b)")
_NUMBER: Final = re.compile(r"[0-9](?:[0-9.,]*[0-9])?[\w%]*")


@dataclass(frozen=True, slots=True)
class Stated:
    """A marked answer.

    Attributes:
        text: what stands behind the marker.
        start: where it stands.
        end: where it ends.
        value: what it says, None where that cannot be read with certainty.
        strict: whether a value is all that stands there, and nothing takes it back.
        boxed: whether the marker encloses it, so that more may stand beside it.
    """

    text: str
    start: int
    end: int
    value: Value | None
    strict: bool
    boxed: bool = False


def find_answers(
    text: str, body: str, names: Names, kind: ValueType, answer: str, given: Mapping[str, str]
) -> list[Stated]:
    """Every marked answer, in the order of the text: those that hold a value, and those that were meant to.

    Args:
        body: the same as `stepguard.language.typeset.plain` gives it.
        names: the names of the procedure.
        kind: the type of the answer.
        answer: the name of the variable that is the answer.
        given: the inputs, as text.
    """
    reader = _AnswerReader(text, body, names, kind, answer)
    answers = [
        stated and replace(stated, end=match.end(), boxed=True)
        for marker in (_BOXED, _TAGGED)
        for match in marker.finditer(text)
        for stated in (reader.read(match.start(), match.start("rest"), match.end("rest")),)
    ]
    hashes = [reader.read(match.start(), match.start("rest"), match.end("rest")) for match in _HASHES.finditer(text)]
    answers += [each for each in hashes if each is not None and each.strict]  # others are headings
    own = {name.lower() for name in names.steps}
    for match in _MARKER.finditer(body):
        word = (match["word"] or "").lower()
        before = body[max(0, match.start() - 1) : match.start()]
        # `subtotal:` is another name, and a `result:` may stand in every line.
        if before.isalnum() or before == "_" or (word == "result" and not match["final"]):
            continue
        # A step may be called `total`: its line is a claim about it, unless that says that it is final.
        if word in own and not match["final"]:
            continue
        group = "rest" if match["rest"] is not None else "next"
        stated = reader.read(match.start(), match.start(group), match.end(group))
        if stated is not None and stated.value is None:
            line = body.rfind("\n", 0, match.start()) + 1
            if group == "next" or not (_LABEL.match(body, line) or _NUMBER.match(stated.text)):
                continue  # words about an answer
        answers.append(stated)
    outermost: list[Stated] = []
    for each in sorted((each for each in answers if each is not None), key=lambda each: each.start):
        if outermost and each.start < outermost[-1].end:  # such as a box behind "the answer is"
            if each.value is not None and (outermost[-1].value is None or each.strict > outermost[-1].strict):
                outermost[-1] = each
            continue
        outermost.append(each)
    outermost = list(_asserted(outermost, body, names, given))
    # An answer in front of a correction may be what is corrected: it says nothing for certain.
    taken_back = max((start for start, _ in find_corrections(body, names)), default=-1)
    return [each if taken_back < each.end else replace(each, value=None, strict=False) for each in outermost]


def without_answers(text: str, body: str) -> str:
    """A text of the same length with blanks for the final answers in it, which are read apart.

    Args:
        body: the same as `stepguard.language.typeset.plain` gives it.
    """
    marked = (found.span() for marker in (_BOXED, _TAGGED, _HASHES) for found in marker.finditer(text))
    parts: list[str] = []
    at = 0
    for start, end in sorted((*marked, *(found.span() for found in _STATED.finditer(body)))):
        if end > at:
            start = max(start, at)
            parts += (body[at:start], " " * (end - start))
            at = end
    return "".join((*parts, body[at:]))


def _asserted(found: list[Stated], body: str, names: Names, given: Mapping[str, str]) -> Iterator[Stated]:
    """The answers that are meant as such.

    One that is another's, or taken back behind it, has no value; another's goes where one was given before it.
    """
    last: Value | None = None
    ends = [*(each.start for each in found[1:]), len(body)]
    for each, end in zip(found, ends, strict=False):
        if each.value is None:
            yield each
        elif _is_anothers(each, body, names.understanding, given):
            if last is None or last == each.value:
                yield replace(each, value=None, strict=False)
        elif _goes_on(each, body, end, names, given):
            yield replace(each, value=None, strict=False)
        else:
            last = each.value
            yield each


def _is_anothers(stated: Stated, body: str, understanding: Understanding, given: Mapping[str, str]) -> bool:
    """Whether what stands in front of an answer denies it, reports it, or makes it another number."""
    line = body.rfind("\n", 0, stated.start) + 1
    front = _CLOSED_TAG.sub("", body[max(line, stated.start - _REACH) : stated.start])
    above = body[max(0, line - _REACH) : line].rstrip().rpartition("\n")[2]
    if understanding.unread_heading(above) or understanding.unread_before(front):
        return True
    if Mentions.of({}, given).misstated(front.rpartition(". ")[2]):
        return True
    if not stated.boxed:
        return False
    moved = body[stated.start : max(body.find(stated.text, stated.start, stated.end), stated.start)]
    # Notation is moved up to the number.
    return _IN_FRONT.search(front if moved[:1] == "<" else front + moved) is not None


def _mentions(value: str, front: str, rest: str, names: Names, given: Mapping[str, str]) -> Mentions | None:
    """The numbers that may be mentioned behind the last answer; None where a step stands there, which it forestalls."""
    if _STEP.search(rest) or any(names.find(each[1]) in names.steps for each in _NAMED.finditer(rest)):
        return None
    formulas = " ".join(step.formula or "" for step in names.steps.values())
    return Mentions.of({"answer": value}, {**given, "": f"{front} {formulas}"})


def _goes_on(stated: Stated, body: str, end: int, names: Names, given: Mapping[str, str]) -> bool:
    """Whether what stands behind an answer, up to the next one, makes it another number or is not understood."""
    if isinstance(stated.value, str | bool):
        return False
    value, rest = _parted(stated, body, end)
    last = end == len(body)
    mentions = _mentions(value, body[: end - len(rest)], rest, names, given) if last else None
    if unread_behind(names.understanding, rest[contrast_length(value, rest) :], value, mentions=mentions):
        return True
    behind = body[stated.end : stated.end + _REACH]
    head, _, below = behind.lstrip(" *_$").partition("\n")
    if not head and "=" not in below.partition("\n")[0] and stands_alone_after(f"\n{below}") == "no":
        return True
    if not stated.boxed:
        return False
    around = _SET_AROUND.match(behind.partition("\n")[0])
    assert around is not None
    rest = behind.partition("\n")[0][around.end() :]
    rest = rest[contrast_length(stated.text, rest) :]
    spaced = f" {rest}" if around[0][-1:].isspace() else rest
    return re.match(r"!(?:\s|\Z)", rest) is None and stands_alone_after(spaced) == "no"


def _parted(stated: Stated, body: str, end: int) -> tuple[str, str]:
    """The number of an answer as it is written, and all that stands behind it."""
    side = max(body.find(stated.text, stated.start, stated.end), stated.start) + stated.text.rfind("=") + 1
    number = None if stated.boxed or stated.strict else _NUMBER.search(body, side, stated.end)
    if number is None:
        return bare(stated.text), body[stated.end : end]
    return number[0], body[number.end() : end]


@dataclass(frozen=True, slots=True)
class _AnswerReader:
    """Reads what stands behind a marker."""

    whole: str
    body: str
    names: Names
    kind: ValueType
    answer: str

    def read(self, start: int, begin: int, end: int) -> Stated | None:
        """What stands from `begin` to `end`; None where that is where the steps begin."""
        kind, first = self.kind, begin
        if kind.numeric and self.whole[end - 1 : end + 1] == "!}":
            return Stated(self.whole[begin:end], start, end, None, False)  # a factorial in a box
        while self.body[first - 1 : first] == " " != self.whole[first - 1 : first]:  # notation that became blanks
            first -= 1
        written = bare(self.whole[first:end])
        if kind.numeric and (value := read_bare(kind, written)) is not None:  # as the guard reads it, LaTeX included
            return Stated(written, start, end, value, True)
        text, rest = bare(self.body[begin:end]), ""
        if kind.numeric:
            text, *more = _SENTENCE.split(text, maxsplit=1)
            text, rest = bare(text), bare("".join(more))
        name, sign, right = text.partition("=")
        if sign and (own := self.names.find(name.strip(" *_`$"))) is not None:
            if own != self.answer:
                return None
            text = bare(right)
        side = last_side(text) if kind.numeric else bare(text.rpartition("=")[2])
        whole = text if side is None or not sign else side
        value = read_bare(kind, whole)
        if value is not None and (side is not None or not kind.numeric):
            return Stated(whole, start, end, None if goes_back(rest) else value, not rest)
        if len(text) > _LONGEST or len(_DIGIT.split(text)[0].split()) > _MAX_WORDS or goes_back(rest):
            value = None  # more than an answer
        elif kind.numeric:
            value = find_alone(kind, text)
        else:
            value = read_bare(kind, re.split(r"[.,;(]", text)[0])
        return Stated(text, start, end, value, False)


def find_corrections(body: str, names: Names) -> list[tuple[int, int]]:
    """Where a transcript takes something back, in words."""
    # A variable may be called "correction".
    return [(start, end) for start, end, phrase in find_retractions(body) if names.find(phrase.rstrip(" :")) is None]
