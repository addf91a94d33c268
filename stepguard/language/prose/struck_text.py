r"""Text that is struck out or hidden: what a careful reader passes over, because its writer took it back.

::

    ~~80.00~~   <s>80.00</s>   <del>80.00</del>   8̶0̶.̶0̶0̶   \sout{80.00}   <!-- 80.00 -->   [deleted: 80.00]
    <p hidden>80.00</p>   <b style="display:none">80.00</b>   {--80.00--}   80.00 (struck out)
    -Price: 80.00         (a line of a diff, with one for it: +Price: 70.00)

A mark that is opened and never closed is not understood: what follows it counts as struck, to the end of the paragraph
for marks of plain text and to the end of the text for tags. One pass, linear in the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from stepguard.core.patterns import lazy_pattern

JOINT: Final = "\ufffc"
"""Stands where something between two characters was struck: what is left and right of it belongs together."""

_STRIKING_TAGS: Final = frozenset({"s", "strike", "del", "deltext", "movefrom", "deletion"})
_HIDDEN_TAGS: Final = frozenset({"script", "style", "template", "head", "noscript"})
_VOID_TAGS: Final = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr",
})  # fmt: skip
_HIDING: Final = lazy_pattern(
    r"(?<![\w-])hidden(?![\w-])|\A(?!.*background).*\bcolor\s*[:=]\s*[\"']?(?:#fff(?:fff)?|white|transparent)\b|(?:display|visibility|content-visibility)\s*:\s*(?:none|hidden|collapse)"
    r"|(?:font-size|opacity)\s*:\s*0*\.?0*(?:[a-z%]+)?\s*(?:[;\"'!]|\Z)|line-through"
    r"|class\s*=[^=]*?(?<![\w-])(?:strike(?:through|d)?|struck|deleted|d-none|sr-only|visually-hidden|invisible)(?![\w-])",
    re.IGNORECASE,
)
_OVERLAY: Final = "\u0335-\u0338\u20d2\u20d3\u20e5\u20e6\u20eb"
"""Strokes and lines that are drawn over the character in front of them."""
_COMMANDS: Final = "sout|st|xout|[bx]?cancel(?:to)?|hcancel|textst|[hv]?phantom|strikeout|strike"
_NOTED: Final = (
    "(?:deleted|removed|struck(?:[ -]?(?:out|through))?|crossed[ -]out|strikethrough|(?:durch)?gestrichen|void(?:ed)?)"
)
_MARK: Final = lazy_pattern(
    r"(?P<comment><!--)|(?P<conflict><{7}(?= ))"
    r"|(?P<diff>(?m:^)-[^\S\n]?(?P<word>[^\W\d_]{3,40})\b[^\n]*(?=(?:\n[-+][^\n]*){0,20}?\n\+[^\S\n]?(?P=word)\b))"
    r"|<(?P<close>/?)(?P<tag>[A-Za-z][A-Za-z0-9:_-]*)(?P<attributes>[^<>\"']*+(?:(?:\"[^\"]*+\"|'[^']*+')[^<>\"']*+)*)>"
    rf"|(?P<overlaid>(?:[^\n{_OVERLAY}][{_OVERLAY}]++)+)"
    r"|(?P<critic>\{(?:--|~~|>>))|(?P<wdiff>\[-(?=\S)[^\n\[\]]++(?<=-)\])"
    r"|(?P<tildes>~~++)|(?<![\w~)])(?P<tilde>~(?=[^\s~])[^~\n]*+(?<!\s)~(?![\w~(]))"
    r"|(?P<ignored>\\begin\{comment\}|\\iffalse(?![A-Za-z]))|\{\{(?P<wiki>strike(?:through)?|s|del)\|"
    rf"|\\(?P<latex>{_COMMANDS})(?![A-Za-z])\s*+|(?P<typst>#strike)(?=\[)"
    rf"|\[(?P<bbcode>s|strike|del)\]|\[{_NOTED}\s*:(?P<noted>)"
    rf"|(?P<postfix>[\[(]{_NOTED}[\])])",
    re.IGNORECASE,
)
_BREAK: Final = r"\n[^\S\n]*+\n"
_PARAGRAPH: Final = f"|{_BREAK}"
_ENDS: Final = {"{--": "--\\}", "{~~": "~>", "{>>": "<<\\}"}
_CUT_BACK: Final = lazy_pattern(r"[:;|\t\n]|[,.!?] |  ")
_REACH: Final = 60
_OPENING: Final = "([{<|:=\"'«„“‘/"
_CLOSING: Final = ")]}>|,;:!?\"'»“”’"


@dataclass(frozen=True, slots=True)
class StruckSpan:
    """A part of a text that is struck out or hidden, its marks included, from offset `start` up to `end`.

    Attributes:
        start: its first character.
        end: the character behind its last one.
        closed: False where the mark that closes it is missing, so that how far it reaches is a guess.
    """

    start: int
    end: int
    closed: bool = True


def struck_spans(text: str) -> tuple[StruckSpan, ...]:
    """Every part of a text that is struck out or hidden, in order, none inside another."""
    return tuple(_spans(text))


def without_struck(text: str) -> str:
    """The text, as long as it is, with blanks for what is struck out or hidden; line breaks stay.

    Where that leaves the rest of one word or number on both sides (``1~~2~~3``), a `JOINT` stands between them.
    """
    pieces: list[str] = []
    at = 0
    for span in _spans(text):
        pieces.append(text[at : span.start])
        blank = "".join("\n" if char == "\n" else " " for char in text[span.start : span.end])
        left, right = text[max(span.start - 1, 0) : span.start], text[span.end : span.end + 1]
        if _holds_on(left, _OPENING) and _holds_on(right, _CLOSING) and "\n" not in blank:
            blank = JOINT * len(blank)
        pieces.append(blank)
        at = span.end
    return "".join((*pieces, text[at:])) if pieces else text


def _holds_on(char: str, open_ends: str) -> bool:
    """Whether a character beside a struck part belongs to what stands on its other side."""
    return bool(char) and not char.isspace() and char not in open_ends and not _is_wide(char)


def _is_wide(char: str) -> bool:
    """Whether a character belongs to a script that writes words without blanks between them."""
    return unicodedata.east_asian_width(char) in "WF"


def _spans(text: str) -> Iterator[StruckSpan]:
    at = 0
    while (mark := _MARK.search(text, at)) is not None:
        span = _span_at(text, mark, at)
        if span is None:
            at = mark.end()
            continue
        yield span
        at = max(span.end, mark.end())


def _span_at(text: str, mark: re.Match[str], floor: int) -> StruckSpan | None:
    """What a mark strikes; None where it strikes nothing. `floor` is the end of the span before."""
    start, end = mark.span()
    if mark["conflict"]:  # of two versions, neither is settled
        return _until(text, start, end, r">{7}(?: [^\n]*)?", _PARAGRAPH)
    if mark["comment"]:
        return _until(text, start, end, "-->")
    if mark["ignored"]:
        return _until(text, start, end, r"\\end\{comment\}" if mark["ignored"][1] == "b" else r"\\fi(?![A-Za-z])")
    if mark["wiki"]:
        return _until(text, start, end, r"\}\}", _PARAGRAPH)
    if mark["tag"]:
        return _element(text, mark)
    if mark["overlaid"]:
        return None if unicodedata.normalize("NFC", mark[0])[1:] == "" else StruckSpan(start, end)  # = and / are ≠
    if mark["tilde"] or mark["wdiff"] or mark["diff"]:
        return StruckSpan(start, end)
    if mark["tildes"]:
        return _tildes(text, mark)
    if mark["critic"]:  # of a substitution, {~~old~>new~~}, only the old is struck
        return _until(text, start, end, _ENDS[mark[0]], _PARAGRAPH)
    if mark["latex"] or mark["typst"]:
        return _argument(text, mark)
    if mark["bbcode"]:
        return _until(text, start, end, rf"\[/{mark['bbcode']}\]")
    if mark["postfix"]:
        return _noted_behind(text, mark, floor)
    return _until(text, start, end, r"\]", _PARAGRAPH)


def _until(text: str, start: int, behind: int, closing: str, within: str = "") -> StruckSpan:
    """From a mark to what closes it, or, unclosed, to the end of the text or of what it is written within."""
    match = re.compile(f"(?P<closing>{closing}){within}", re.IGNORECASE).search(text, behind)
    if match is None:
        return StruckSpan(start, len(text), False)
    return StruckSpan(start, match.end()) if match["closing"] else StruckSpan(start, match.start(), False)


def _tildes(text: str, mark: re.Match[str]) -> StruckSpan | None:
    start, end = mark.span()
    if len(mark[0]) > 2 and not text[text.rfind("\n", 0, start) + 1 : start].strip():
        return None  # the fence of a block of code
    if text[end : end + 1] == "}":
        return StruckSpan(start, end + 1)  # the end of a substitution
    if not text[end : end + 1].isspace():
        span = _until(text, start, end, "(?<!\\s)~~+", rf"|(?<=\s)~~+|{_BREAK}")
        if span.closed:
            return span
    paragraph = re.compile(_BREAK).search(text, end)
    return StruckSpan(start, len(text) if paragraph is None else paragraph.start(), False)


def _argument(text: str, mark: re.Match[str]) -> StruckSpan:
    start, at = mark.start(), mark.end()
    opening = text[at : at + 1]
    if opening not in ("{", "["):
        return StruckSpan(start, min(at + 1, len(text)), at < len(text))
    closing = "}" if opening == "{" else "]"
    groups = 2 if (mark["latex"] or "").lower() == "cancelto" else 1
    depth = 0
    for brace in re.compile(rf"\\.|[{{}}\[\]]|{_BREAK}", re.DOTALL).finditer(text, at):
        if brace[0][0] == "\n":
            return StruckSpan(start, brace.start(), False)
        if brace[0] == opening:
            depth += 1
        elif brace[0] == closing:
            depth -= 1
            groups -= depth == 0
            if depth == 0 and (groups == 0 or text[brace.end() : brace.end() + 1] != opening):
                return StruckSpan(start, brace.end())
    return StruckSpan(start, len(text), False)


def _noted_behind(text: str, mark: re.Match[str], floor: int) -> StruckSpan:
    """What a note such as ``(struck out)`` behind it strikes: back to the break in front of the last phrase."""
    begin = reach = max(mark.start() - _REACH, floor)
    phrase = text[reach : mark.start()].rstrip()
    for cut in _CUT_BACK.finditer(phrase):
        if cut.end() < len(phrase):
            begin = reach + cut.end()
    if not phrase or phrase[-1] in ":;|":  # nothing in front: "Price: (deleted) 80.00, 70.00"
        behind = _CUT_BACK.search(text, mark.end())
        return StruckSpan(mark.start(), len(text) if behind is None else behind.start())
    return StruckSpan(begin, mark.end())


def _element(text: str, mark: re.Match[str]) -> StruckSpan | None:
    if mark["close"]:
        return None
    name = mark["tag"].lower()
    local = name.rpartition(":")[2]
    attributes = mark["attributes"]
    if local in _VOID_TAGS or attributes.endswith("/"):
        hidden = local == "input" and re.search(r"type\s*=\s*[\"']?hidden", attributes, re.IGNORECASE)
        return StruckSpan(*mark.span()) if hidden else None
    if local not in _STRIKING_TAGS and local not in _HIDDEN_TAGS and not (attributes and _HIDING.search(attributes)):
        return None
    # Elements of its own name may stand inside it.
    depth = 1
    for tag in re.compile(rf"<(/?){re.escape(name)}(?![\w:.-])[^<>]*>", re.IGNORECASE).finditer(text, mark.end()):
        depth += -1 if tag[1] else (0 if tag[0].endswith("/>") else 1)
        if depth == 0:
            return StruckSpan(mark.start(), tag.end())
    return StruckSpan(mark.start(), len(text), False)
