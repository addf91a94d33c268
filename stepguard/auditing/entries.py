"""What a transcript says about steps: names, workings and values, each with its place.

A claim begins with the name of its step (``t3 = ...``, ``t3: ...``, ``t3 is ...``, a row of a table) or, where no name
stands, with a number (``Step 3: ...``, ``3. ...``). What cannot be read as working is left out; what cannot be read as
a value leaves the claim without one. Nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from stepguard.auditing.amounts import read_value
from stepguard.auditing.assertions import asserted, understood
from stepguard.auditing.claims import read_claim, read_words
from stepguard.auditing.layouts import as_claims
from stepguard.auditing.names import Entry, Names
from stepguard.auditing.tables import RowReader
from stepguard.language.lines import LABEL, logical_lines
from stepguard.language.links import leading_run
from stepguard.language.value_types import NUMBER

_ANCHOR: Final = re.compile(
    r"(?<![\w.\\'])(?P<name>[A-Za-z_]\w{0,63})(?![\w(])['\"*$]{0,2} {0,9}"
    r"(?:(?P<equals>:=|=(?![=>~/])|->|=>|\u2192|\u2248|\u21d2|\u2190)|(?P<colon>:(?![=:/]))"
    r"|(?P<verb>(?:is equal to|is|will be|equals|becomes|comes to|comes out (?:to|as)|evaluates to|works out (?:to|as))"
    r"\b(?:,? (?:therefore|thus|hence|consequently|simply|just|exactly)\b,?)?))"
)
_TYPE: Final = re.compile(r" *(?:number|integer|int|float|decimal|percent|money|boolean|text)(?:\([^()\n]{0,60}\))? *=")
_BEFORE_COLON: Final = frozenset(
    ("compute", "calculate", "find", "evaluate", "now", "next", "then", "finally", "first")
)
_JOINING: Final = frozenset(
    ("of", "plus", "minus", "times", "by", "from", "to", "with", "than", "over", "between", "or", "into", "per")
)
_LAST_WORD: Final = re.compile(r"([A-Za-z]{1,30}) *\Z")
_VALUE_OF: Final = re.compile(r"\b(?:value|result) (?:of|for) *\Z", re.IGNORECASE)
_PART: Final = re.compile(
    r"(?:so|thus|then|the)? ?(?:substitut|calculat|comput|result|value|evaluat|plug|simplif|work)[a-z]*"
    r"[^:=\n]{0,30}: *",
    re.IGNORECASE,
)
_AIM: Final = re.compile(
    r"\b(?:find|get|compute|calculate|determine|obtain|evaluate|for) (?:the value of )?"
    r"(?P<name>[A-Za-z_]\w{0,63})\b(?! *[=+*/^-])",
    re.IGNORECASE,
)
_MATH_END: Final = re.compile(r"\$(?![0-9.])")
_OPEN_VALUE: Final = re.compile(r"[*/]")
_FACTOR: Final = re.compile(r"[^\w]*[0-9][0-9.,]*[ *]*")
_RESULT: Final = re.compile(
    r"(?:=|\bis|\bequals|\bgives|\bget|\bgot|:|\u2192) *(?P<value>[-+($€£]{0,3}[0-9.][0-9.,/%)]*)[.\s]*\Z"
)
_CHECKING: Final = re.compile(
    r"\W*(?:to |double.?|cross.?|sanity )?(?:check|verif|proof|prove|test|probe)\w*\b[^=\n:]{0,40}:", re.IGNORECASE
)
_PARTING: Final = re.compile(r"[,;.)]|\band\b")
"""What parts a claim from the one before it."""
_REACH: Final = 200
_UNNAMED_ANSWERS: Final = frozenset(
    ("answer", "answers", "final", "result", "results", "solution", "total", "output", "ans", "finalanswer", "so")
)


def read_entries(body: str, names: Names, *, around: str | None = None, read: Iterable[Entry] = ()) -> list[Entry]:
    """Everything that a text says about steps, in its order.

    Args:
        body: the text as `stepguard.language.typeset.plain` gives it.
        around: the same without what is read apart, for what stands behind claims; None where nothing is.
        read: the claims that are read already, in tables whose columns are steps.
    """
    around = body if around is None else around
    body = as_claims(body, names)
    claims = list(read)
    row_ends = {entry.start: entry.end for entry in claims}
    block: Entry | None = None
    block_named = False
    rows = RowReader(body, names)
    for start, end in logical_lines(body):
        row = rows.cells(start, end)
        if row:
            found = list(rows.row(row))
            claims += found
            row_ends |= {entry.start: end for entry in found}
            continue
        label = LABEL.match(body, start, end)
        begin = label.end() if label is not None else start
        number = _number(label)
        entries = list(_named_entries(body, start, begin, end, names))
        # A numbered line that names no step opens a block, whose lines are about it up to the next number; where one
        # of them names its step, the number is only a bullet.
        if number is not None:
            if block is not None and not block_named:
                claims.append(block)
            block, block_named = None, bool(entries)
            if not entries:
                block = _positional(body, begin, end, number, names)
        elif entries:
            if block is not None and (block.value is not None or block.doubt) and not block_named:
                claims.append(block)
            block, block_named = None, True
        elif claims and claims[-1].value is None and not (claims[-1].unread or claims[-1].strange):
            claims[-1] = _gone_on(body, begin, end, claims[-1], names)
        elif block is not None and not block_named and _may_go_on(block) and _PART.match(body, begin, end):
            block = _gone_on(body, begin, end, block, names)
        elif (block is None or block_named) and claims and _may_go_on(claims[-1]) and _PART.match(body, begin, end):
            claims[-1] = _gone_on(body, begin, end, claims[-1], names)
        elif block is not None and "=" in body[start:end] and not _CHECKING.match(body, begin, end):
            more = read_claim(body, begin, end, names, names.steps.get(block.name), leading=True)
            if more.value is not None or more.work:
                block = replace(block, end=more.end, work=block.work + more.work, value=more.value or block.value)
        claims += entries
    if block is not None and not block_named:
        claims.append(block)
    return asserted(sorted(_without_echoes(claims), key=lambda entry: entry.start), row_ends, body, around, names)


def _gone_on(body: str, begin: int, end: int, entry: Entry, names: Names) -> Entry:
    """A claim that has no value yet, with what a line such as ``Result: 19`` adds to it."""
    head = _PART.match(body, begin, end)
    if head is None:
        return entry
    more = read_claim(body, head.end(), end, names, names.steps.get(entry.name))
    if entry.value is not None and more.value is None:
        return replace(entry, value=None, unread=more.unread) if more.unread else entry
    if more.value is None and not more.work:
        return entry
    work = entry.work if entry.value is None else (*entry.work, entry.value)
    return replace(entry, end=more.end, work=(*work, *more.work), value=more.value)


def _may_go_on(entry: Entry) -> bool:
    """Whether a value is a fraction or a power of ten, which may be a calculation that the next line carries out."""
    return entry.value is not None and _OPEN_VALUE.search(entry.value) is not None


def _without_echoes(claims: list[Entry]) -> Iterator[Entry]:
    """Numbered claims without those whose step is carried out by its name, in front of it or with working of its own.

    A list may number something else than the steps, where the steps have names.
    """
    named: dict[str, int] = {}
    for entry in claims:
        if entry.known and not entry.numbered:
            named[entry.name] = min(named.get(entry.name, entry.start), 0 if entry.work else entry.start)
    for entry in claims:
        waits = named.get(entry.name, entry.start) >= entry.start and (entry.known or entry.value is not None)
        if waits or not entry.numbered:
            yield entry


def _number(label: re.Match[str] | None) -> int | None:
    if label is None:
        return None
    digits = label["step"] or label["round"] or label["square"] or label["number"]
    return None if digits is None else int(digits)


def _named_entries(body: str, line_start: int, begin: int, end: int, names: Names) -> Iterator[Entry]:
    """The claims of a line that name their step."""
    anchors: list[tuple[re.Match[str], str, bool]] = []
    for anchor in _ANCHOR.finditer(body, begin, end):
        mark = body[anchor.end("name")]
        if (mark == "'" != body[anchor.start() - 1 : anchor.start()]) or (
            mark == "*" and "*" not in body[line_start : anchor.start()]
        ):
            continue  # t1' is another one
        name = names.find(anchor["name"])
        first = not body[begin : anchor.start()].strip(" *_\"'`({[$")
        if name is None:
            unknown = names.unknown(anchor["name"])
            like = names.like_a_step(unknown)
            own = anchor["equals"] in ("=", ":=") or (anchor["colon"] and not unknown.isalpha())
            extra = like or (own and first and unknown.lower() not in _UNNAMED_ANSWERS)
            if extra and (first or _introduced(body, begin, anchor, first=first)):
                anchors.append((anchor, unknown, False))
        elif _introduced(body, begin, anchor, first=first):
            anchors.append((anchor, name, True))
    if not anchors:
        yield from _aimed(body, begin, end, names)
    reached, label = begin, ""
    for at, (anchor, name, known) in enumerate(anchors):
        stop = anchors[at + 1][0].start() if at + 1 < len(anchors) else end
        if (
            body[anchor.start() - 1 : anchor.start()] == "$"
            and (closed := _MATH_END.search(body, anchor.end(), stop)) is not None
        ):
            stop = closed.start()
        if name in names.inputs and name not in names.steps:
            continue
        content = anchor.end()
        if anchor["colon"] and (typed := _TYPE.match(body, content, stop)) is not None:
            content = typed.end()
        entry = read_claim(body, content, stop, names, names.steps.get(name))
        if not known and (entry.value is None or not (entry.work or names.like_a_step(name))):
            continue
        if entry.value is None and not entry.work and names.understanding.unread(entry.unread, behind=True):
            entry = replace(entry, doubt=True)  # t1 is disputed
        front = body[reached : anchor.start()]
        if reached > begin and (parting := _PARTING.search(front)) is not None:
            front = front[parting.end() :]
        strange = label or names.understanding.unread_before(_unquoted(front, body[anchor.end("name")]))
        label = strange if strange.endswith(":") and reached == begin else label
        entry = understood(entry, names, strange)
        reached = entry.end
        yield replace(entry, name=name, known=known, start=anchor.start())


def _unquoted(front: str, behind: str) -> str:
    """What stands in front of a name, without the mark that opens the quotes around that name alone."""
    return front[:-1] if front.endswith('"') and behind == '"' else front


def _aimed(body: str, begin: int, end: int, names: Names) -> Iterator[Entry]:
    """The claim of a line such as ``To find t1, we add x and y: 12 + 7 = 19``."""
    aims = [match for match in _AIM.finditer(body, begin, end) if names.find(match["name"]) in names.steps]
    if len(aims) == 1 and "=" in body[aims[0].end() : end]:
        name = names.find(aims[0]["name"])
        assert name is not None
        entry = read_claim(body, aims[0].end(), end, names, names.steps[name], leading=True)
        if entry.value is not None:
            between = re.split(r"[0-9=]", body[aims[0].end() : end], maxsplit=1)[0]
            front = f"{body[begin : aims[0].start()]}{aims[0][0]}{between}"
            entry = understood(entry, names, names.understanding.unread_before(front))
            yield replace(entry, name=name, start=aims[0].start())


def _introduced(body: str, begin: int, anchor: re.Match[str], *, first: bool) -> bool:
    """Whether a name begins a claim, and is not the end of an expression or of a phrase."""
    if first:
        return True
    if _FACTOR.fullmatch(body, begin, anchor.start()):
        return False  # 2 t1
    front = body[max(begin, anchor.start() - 60) : anchor.start()].rstrip(" _\"'`$")
    last = front[-1:]
    if front.endswith("=>"):
        return True
    if last in ("+", "-", "*", "/", "^", "=", "%", "<", ">", "|", "\u2192", ":="):
        return False
    word = _LAST_WORD.search(front)
    if word is None:
        if last == "(":
            return front[:-1].rstrip()[-1:] not in ("+", "-", "*", "/", "^", "=") and anchor["equals"] is not None
        return last != "," or anchor["colon"] is None
    said_word = word[1].lower()
    if anchor["colon"]:
        return said_word in _BEFORE_COLON and not front[: word.start()].strip(" .,;:!?")
    if said_word == "and":
        before = front[: word.start()].rstrip(" ,")[-1:]
        return before.isdigit() or before in (")", "%") or front[: word.start()].rstrip().endswith((",", ".", ";"))
    if said_word in ("of", "for"):
        return _VALUE_OF.search(front) is not None
    return said_word not in _JOINING


def _positional(body: str, begin: int, end: int, number: int, names: Names) -> Entry | None:
    """The claim of a numbered line that names no step."""
    name = names.numbered(number)
    if number == 0:
        return None
    step = None if name is None else names.steps[name]
    text = body[begin:end]
    unread = Entry(name or f"step {number}", name is not None, begin, end)
    if "=" in text or "\u2248" in text:
        claim = read_claim(body, begin, end, names, step, leading=True)
        front = re.split("[0-9=\u2248]", text, maxsplit=1)[0]
        claim = understood(claim, names, names.understanding.unread_before(front))
    elif leading_run(body, begin, end) >= begin + len(text.rstrip(" .\n*_")) > begin:
        claim = read_claim(body, begin, end, names, step)
    elif (result := _RESULT.search(text)) is not None:
        value, stop = read_value(body, begin + result.start("value"), end, names, NUMBER if step is None else step.type)
        claim = replace(unread, value=value, end=stop)
        claim = understood(claim, names, names.understanding.unread_before(text[: result.start("value")]))
    elif step is not None and not step.type.numeric and text.strip():
        claim = read_words(body, begin, end, unread, step.type)
    else:
        claim = unread
    shown = claim.unread or ("" if claim.value else text.strip()[:60])
    return replace(claim, name=unread.name, known=unread.known, start=begin, unread=shown, numbered=True)
