"""Separates what a model only thought from what it answers, by the marks around it: the one reader of such marks.

Marks are known by their shape and not by their names, of which every new model brings others: ``<think>``,
``<|channel>thought``, ``<seed:think>``, ``[THINK]``, a fence called ``thinking``, a line that begins ``Thought:``. What
stands behind an opening mark is not the answer until the mark is closed. The names that are known are the few that do
not hide anything: those of the answer itself, of code, and of the turns of a conversation.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from stepguard.core.patterns import lazy_pattern
from stepguard.language.strict_json import decode_at

_OPENERS: Final = "<\uff1c\u2039\xab\u27e8\u3008\u300a\u25c1\u25c0\u3010\u3014\u27e6"
_CLOSERS: Final = ">\uff1e\u203a\xbb\u27e9\u3009\u300b\u25b7\u25b6\u3011\u3015\u27e7"
_BAR: Final = "|\uff5c\u2502\u2503\u2223\u2758\xa6"
_TRIM: Final = "[%$#@!*_:.~^&+-]{0,2}"
_NAME: Final = r"[^\W\d_][\w.:\u2581-]{0,60}+"

# Every repetition is bounded or possessive, so the scan is linear.
_MARKS: Final = (
    rf"(?P<channel><[{_BAR}]channel[{_BAR}]>\s{{0,9}}(?P<to>\w{{1,40}})(?:[^<>]|<\|constrain\|>){{0,99}}<\|message\|>)"
    rf"|(?P<mark>[{_OPENERS}](?P<slash>/?\s?)(?P<bar>[{_BAR}]{{0,2}})(?P<slashed>/?){_TRIM}(?P<name>{_NAME})"
    rf"(?P<more>(?:[\s=/][^<>]{{0,200}}?)?){_TRIM}(?P<bars>[{_BAR}]{{0,2}})[{_CLOSERS}])"
    rf"|(?P<torn>[{_OPENERS}][{_BAR}]{{0,2}}(?P<stem>{_NAME}))"
    r"|(?P<bracket>[\[{(*](?P<ended>/?)(?P<called>[^\W\d_][\w-]{2,40}+)[\]})*](?!\())"
    r"|(?P<comment><!--|-->)"
)
_FRAMES: Final = (
    r"|(?P<fence>`{3,}|~{3,})[ \t]{0,9}(?P<info>[^\W\d_][\w+.-]{0,40}+)?"
    r"|(?P<blank>\n[ \t\r]{0,99}\n)"
    r"|^(?P<label>[ \t]{0,9}(?P<rule>[>#*_=\u2022-]{0,6})[ \t]{0,9}(?:\d{1,3}[.)][ \t]{1,9})?"
    r"(?P<words>[^\W\d_][^\n:\uff1a<>{}\[\]\"`]{0,60}+)"
    r"(?:[:\uff1a]|(?=\n|\Z)))"
)
_OBJECT: Final = r"|(?P<object>\{(?=\s*\"))"
_MARK = lazy_pattern(_MARKS, re.IGNORECASE | re.MULTILINE)
_MARK_OR_OBJECT = lazy_pattern(_MARKS + _OBJECT, re.IGNORECASE | re.MULTILINE)
_FRAME = lazy_pattern(_MARKS + _FRAMES, re.IGNORECASE | re.MULTILINE)
_FRAME_OR_OBJECT = lazy_pattern(_MARKS + _FRAMES + _OBJECT, re.IGNORECASE | re.MULTILINE)

_WORD = lazy_pattern(r"[^\W_]+")
_WORDS_ON = lazy_pattern(r"[,.!?;'\u2019]|[ \t]{1,9}\w")
_NEXT_WORD = lazy_pattern(r"\s{0,9}([^\W\d_]+)")
_SQUARE_END = lazy_pattern(r"\[/([^\W\d_][\w-]{2,40}+)\]")
_JSON = lazy_pattern(r"[{\[]\s{0,9}[\"{\[]")

_ANSWER: Final = frozenset(
    {
        *("answer", "answers", "final", "json", "output", "reply", "response", "result", "results", "solution"),
        *("code", "pre", "text", "txt", "plain", "plaintext", "jsonc", "json5", "js", "javascript", "py", "python"),
    }
)
_TURN: Final = frozenset(
    {
        *("assistant", "bos", "bot", "br", "constrain", "document", "eom", "eop", "eos", "eot", "file", "gmask"),
        *("header", "hr", "id", "im", "inst", "message", "model", "pad", "prompt", "return", "s", "sentence", "sep"),
        *("sequence", "sop", "turn", "unk", "utterance", "endoftext", "endofprompt", "beginoftext", "startoftext"),
    }
)
_BEGINS: Final = frozenset({"begin", "open", "start"})
_ENDS: Final = frozenset({"close", "end", "stop"})
_SPEAKERS: Final = _ANSWER | {"ai", "assistant", "bot", "gpt", "model"}
_NO_MARK: Final = frozenset({"true", "false", "null", "nan", "infinity"})
_DRAFT = lazy_pattern(
    r"(?:think|thought|reason(?:ing|s)?$|analy[sz]|scratch|draft|plan(?:ning)?$|reflect|monolog|brainstorm|rough|tentativ"
    r"|guess|attempt|trial|deliberat|ponder|musing|sketch|rationale|cot$|working|provisional|preliminar"
    r"|gedanke|\u00fcberleg|entwurf|brouillon|r\u00e9flexion|borrador|razonamiento|pensamiento"
    r"|\u601d|\u63a8\u7406|\u8349\u7a3f|\u5206\u6790|\u043c\u044b\u0441\u043b|\u0440\u0430\u0441\u0441\u0443\u0436|\u0447\u0435\u0440\u043d\u043e\u0432\u0438\u043a)"
)
# "draft answer": a label with both words is no answer.
_NOT_FINAL = lazy_pattern(r"draft|tentativ|rough|scratch|guess|attempt|trial|sketch|provisional|preliminar")
_LABEL: Final = ":"
_FENCE: Final = "`"


@dataclass(frozen=True, slots=True)
class Unclosed:
    """A text that ends inside its own thinking. `mark` is the mark that is never closed."""

    mark: str


@dataclass(slots=True)
class _Scan:
    """How far a text was read: what is kept, and the marks that are open, the outermost first."""

    body: str
    kept: list[str] = field(default_factory=list)
    stack: list[str] = field(default_factory=list)
    count: Counter[str] = field(default_factory=Counter)
    begin: int = 0
    opened: int = 0
    outermost: tuple[int, int] = (0, 0)

    def open(self, name: str, start: int, end: int) -> None:
        """A mark opens; one right behind another of its name is a stutter."""
        if not self.stack:
            self.kept.append(self.body[self.begin : start])
            self.outermost = (start, end)
        elif self.stack[-1] == name != _FENCE and not self.body[self.opened : start].strip():
            self.opened = end
            return
        self.stack.append(name)
        self.count[name] += 1
        self.opened = end

    def close(self, name: str, end: int) -> None:
        """A mark closes what it opened. What stands before one that nothing has opened was thinking, too."""
        if self.count[name]:
            closed = ""
            while closed != name:
                closed = self.stack.pop()
                self.count[closed] -= 1
            if not self.stack:
                self.begin = end
        elif not self.stack or self.stack == [_LABEL]:
            self.answer_begins(end)

    def answer_begins(self, end: int) -> None:
        """All that came before was thinking."""
        self.kept.clear()
        self.stack.clear()
        self.count.clear()
        self.begin = end


def without_thinking(body: str, *, framed: bool = False) -> str | Unclosed:
    """The text outside of what was only thought, its parts joined by NUL.

    A mark inside a string of a complete object is text. What stands before a closing mark without an opening one was
    thinking too: some servers swallow the opening mark.

    Args:
        framed: whether it is one answer that stands in a frame of words: then headings, labels (``Thought:``) and the
            names of fences are marks, too. They are not in free text and in code.
    """
    scan = _Scan(body)
    with_objects, without = (_FRAME_OR_OBJECT, _FRAME) if framed else (_MARK_OR_OBJECT, _MARK)
    scanner, at = with_objects, 0
    ended = frozenset(name.lower() for name in _SQUARE_END.findall(body))
    while (token := scanner.search(body, at)) is not None:
        at = max(token.end(), at + 1)
        match token.lastgroup if token["mark"] is None else "mark":
            case "object":
                if not scan.stack:
                    try:
                        at = decode_at(body, token.start())[1]
                    except ValueError:
                        scanner = without  # its strings cannot be told from the rest
            case "blank":
                at = token.start() + 1  # the line behind it may be a label
                if scan.stack == [_LABEL] and body[scan.opened : token.start()].strip():
                    scan.close(_LABEL, token.end())
            case "label":
                _take_label(scan, token)
            case "fence" | "info":
                _take_fence(scan, token)
            case _:
                _take_mark(scan, token, ended)
    if scan.stack:
        start, end = scan.outermost
        if scan.stack != [_LABEL] or _JSON.search(body, end):
            return Unclosed(body[start:end].strip()[:60])
        return "\0".join(scan.kept)
    # NUL is valid nowhere in JSON: no object can grow together across a block.
    return "\0".join([*scan.kept, body[scan.begin :]])


def _take_mark(scan: _Scan, token: re.Match[str], ended: frozenset[str]) -> None:
    start, end = token.span()
    if token["channel"] is not None:
        if token["to"].lower() in _ANSWER:
            scan.answer_begins(end)
        else:
            scan.open("channel", start, end)
        return
    if token["comment"] is not None:
        if token["comment"] == "<!--":
            scan.open("comment", start, end)
        elif scan.count["comment"]:
            scan.close("comment", end)
        return
    closes = False
    if token["bracket"] is not None:
        called, closes = token["called"], bool(token["ended"])
        square = token["bracket"][0] == "["
        # [Word] is mere text, unless it names thinking, is in capitals, or is closed by [/word].
        if not _is_draft(called) and not (square and (closes or called.isupper() or called.lower() in ended)):
            return
    elif token["torn"] is not None:
        # A mark without its end has to name thinking: `a<b` is a comparison.
        called = token["stem"]
        if not _is_draft(called):
            return
    else:
        called, more = token["name"], token["more"]
        itself = more.endswith("/") and not (more.count("'") % 2 or more.count('"') % 2)
        if itself or "://" in called + more or "@" in more or (token["slash"].isspace() and more.strip()):
            return  # it closes itself; an address; a comparison
        closes = "/" in token["slash"] + token["slashed"] or bool(token["bars"] and not token["bar"])
    words = [word.lower() for word in _WORD.findall(called)]
    if called.lower() in _NO_MARK:
        return
    begins = not _BEGINS.isdisjoint(words)
    closes = closes or (not _ENDS.isdisjoint(words) and not begins)
    if words != ["of"]:  # as in "end_of_turn"; alone it is a name like any other
        words = [word for word in words if word not in _BEGINS | _ENDS | {"of"}]
    follows = _NEXT_WORD.match(scan.body, end)
    if _ANSWER.issuperset(words) or (_ANSWER | _TURN).issuperset(words):
        if begins and follows is not None and {"im", "header", "turn"} & {*words, *([] if words else ["turn"])}:
            role = follows[1].lower()
            if role not in _SPEAKERS:
                scan.open(f"turn {role}", start, end)
        return
    name = "_".join(_stem(word) for word in words)
    if closes:
        scan.close(name, end)
    elif name == "channel" and follows is not None and follows[1].lower() in _ANSWER:
        scan.answer_begins(follows.end())
    else:
        scan.open(name, start, end)


def _take_fence(scan: _Scan, token: re.Match[str]) -> None:
    info = token["info"]
    if info and not _is_draft(info) and _WORDS_ON.match(scan.body, token.end()) and token[0][-len(info) - 1].isspace():
        info = None  # words behind a fence that ends, such as "``` Let me know"
    hidden = bool(scan.stack) and scan.stack != [_LABEL]
    if info is None and scan.count[_FENCE]:
        scan.close(_FENCE, token.end())
    elif hidden or hides(info or ""):
        scan.open(_FENCE, token.start(), token.end())


def hides(info: str) -> bool:
    """Whether a fence of this name holds something else than the answer."""
    return bool(info) and info.lower() not in _ANSWER


def _take_label(scan: _Scan, token: re.Match[str]) -> None:
    if scan.stack and scan.stack != [_LABEL]:
        return
    words = [word.lower() for word in _WORD.findall(token["words"])]
    heading = token[0][-1:] not in ":\uff1a"
    # A line of more words is a sentence, and no label.
    if len(words) > 4 + (not _ANSWER.isdisjoint(words)) * 4 or (heading and not token["rule"]):
        return
    if not _ANSWER.isdisjoint(words) and not any(map(_NOT_FINAL.match, words)):
        if scan.stack:
            scan.close(_LABEL, token.end())
    elif not scan.stack and any(map(_is_draft, words)):
        scan.open(_LABEL, token.start(), token.end())


def _is_draft(word: str) -> bool:
    return _DRAFT.match(word.lower()) is not None


def _stem(word: str) -> str:
    """``think`` for ``thinking``: the two ends of a block differ in some templates."""
    return word.removesuffix("ing").removesuffix("s") or word
