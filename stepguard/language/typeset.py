"""How people and models typeset arithmetic, rewritten as the expression language writes it.

`plain` keeps the length of a text, so that every offset in the result is an offset in the original.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

from stepguard.language.numerals import MINUS_SIGNS

__all__ = ["LABEL", "Lines", "Place", "plain"]

_SIGNS: Final = str.maketrans({
    **dict.fromkeys(MINUS_SIGNS, "-"), "\u00d7": "*", "\u00b7": "*",
    "\u22c5": "*", "\u2217": "*", "\u2022": "\u2022", "\u00f7": "/", "\u2215": "/", "\u2044": "/", "\u00a0": " ",
    "\u202f": " ", "\u2009": " ", "\u3000": " ", "`": " ", "\u2019": "'", "\t": " ", "\x0b": "\n", "\x0c": "\n",
    "\x1c": "\n", "\x1d": "\n", "\x1e": "\n", "\x85": "\n", "\u2028": "\n", "\u2029": "\n", "\uff1d": "=",
    "\uff1a": ":",
})  # fmt: skip
_COMMANDS: Final = {
    **dict.fromkeys(("times", "cdot", "ast"), "*"),
    "div": "/",
    **dict.fromkeys(("approx", "simeq", "sim"), "\u2248"),
    **dict.fromkeys(("ne", "neq"), "\u2260"),
    **dict.fromkeys(("Rightarrow", "implies", "therefore", "Longrightarrow", "newline"), ";"),
    **dict.fromkeys(("rightarrow", "to"), "\u2192"),
    **dict.fromkeys(("left", "right", "quad", "qquad", "displaystyle", "begin", "end", "hline"), " "),
}
_NUMERAL: Final = r"-?[0-9][0-9.,]{0,40}"
_LATEX: Final = re.compile(
    rf"\\[dt]?frac ?\{{(?P<over>{_NUMERAL})\}}\{{(?P<under>{_NUMERAL})\}}"
    r"|\\(?:text(?:bf|it|rm)?|math(?:rm|bf|it)|operatorname|boxed|fbox) ?\{(?P<inside>[^{}\n]{0,200})\}"
    r"|\\(?P<command>[A-Za-z]{1,20})(?P<environment>\{[a-z]{1,12}\*?\})?"
    r"|\\(?P<sign>[^A-Za-z\s])"
)
_BRACED: Final = re.compile(
    r"(?<=[A-Za-z])_\{(?P<index>[A-Za-z0-9]{1,20})\}|\^\{(?P<exponent>-?[0-9]{1,4})\}|(?<=[A-Za-z0-9])(?P<plain>(?:\\_[A-Za-z0-9]+)+)"
)
_SUBSCRIPTS: Final = str.maketrans("\u2080\u2081\u2082\u2083\u2084\u2085\u2086\u2087\u2088\u2089", "0123456789")
_INDEX: Final = re.compile(r"(?<=[A-Za-z])[\u2080-\u2089]+")  # not that of a number, which is its base
_BOLD: Final = re.compile(r"\*\*|__(?=\S)|(?<=\S)__")
_TIMES: Final = re.compile(r"(?<![\w.])([0-9][0-9.,]{0,40})[xX](?=\(?\$?[0-9])|(?<=[0-9)]) [xX] (?=[$(]{0,2}[-.0-9])")
_WORDS: Final = re.compile(
    r"(?<=[\w)] )(?:(?P<plus>plus)|(?P<minus>minus)|(?P<times>times|multiplied by)|(?P<over>divided by))(?= [-\w($.])"
    r"|(?<=%) of (?=[$0-9(])",
    re.IGNORECASE,
)
_AMPERSAND: Final = re.compile(r"&(?=[ ]{0,3}=)|(?<==)&")
_SPOKEN: Final = {"plus": "+", "minus": "-", "times": "*", "over": "/"}

LABEL: Final = re.compile(
    r"[ ]{0,40}(?:>[ ]?){0,3}(?:\#{1,6} )?(?:[-*+\u2022] +)?"
    r"(?:(?:\*\*|__)?"
    r"(?:(?:step|line|no\.?|number) ?\#?(?P<step>[0-9]{1,9})(?:\*\*|__)?[ ]{0,3}(?:[:.)=\u2014]|- |(?=\n)|\Z)"
    r"|\((?P<round>[0-9]{1,9})\)(?![-+/^(0-9])|\[(?P<square>[0-9]{1,9})\]"
    r"|(?P<number>[0-9]{1,9})(?:[.)](?=[ *_]|[A-Za-z])|:(?= )))"
    r"(?:\*\*|__)?[ ]*)?",
    re.IGNORECASE,
)
"""What may stand in front of a line: quotation marks, headings, bullets, ``Step 3:``, ``**3.**``, ``(3)``."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a text: the offsets of its first character and behind its last, its 1-based line."""

    start: int
    end: int
    line: int


class Lines:
    """The lines of a text, as an editor counts them."""

    def __init__(self, text: str) -> None:
        self.starts = [0, *(found.end() for found in re.finditer(r"\r\n|\r|\n", text))]
        self._end = len(text)

    def place(self, start: int, end: int) -> Place:
        """The place of a part of the text."""
        return Place(start, end, bisect_right(self.starts, start))

    def spans(self) -> list[tuple[int, int]]:
        """Start and end of every line, its break included."""
        return list(zip(self.starts, [*self.starts[1:], self._end], strict=True))


def plain(text: str) -> str:
    """A text of the same length with LaTeX, Markdown and words for operations as the expression language has them.

    What is not understood is left as it is, so that it cannot be read by mistake.
    """
    body = text if text.isascii() and "`" not in text and "\t" not in text else text.translate(_SIGNS)
    if not body.isascii():
        body = _INDEX.sub(lambda found: found[0].translate(_SUBSCRIPTS), body)
    if "\r" in body:
        body = body.replace("\r", " ") if "\n" in body else body.replace("\r", "\n")
    if "\\" in body or "{" in body:
        body = _BRACED.sub(_unbraced, body)
        body = _LATEX.sub(_latex, body)
    if "&" in body:
        body = _AMPERSAND.sub(" ", body)
    if "**" in body or "__" in body:
        body = _without_bold(body)
    body = _TIMES.sub(_times, body)
    return _WORDS.sub(_spoken, body)


def _pad(text: str, found: re.Match[str]) -> str:
    return text.ljust(len(found[0]))


def _unbraced(found: re.Match[str]) -> str:
    if found["exponent"] is not None:
        return f"^({found['exponent']})"
    return _pad(f"_{found['index']}" if found["index"] else found["plain"].replace("\\", ""), found)


def _latex(found: re.Match[str]) -> str:
    if found["over"] is not None:
        return f"(({found['over']})/{found['under']})".rjust(len(found[0]))
    if found["inside"] is not None:
        return f"{found['inside']} ".rjust(len(found[0]))
    if found["command"] is not None:
        sign = _COMMANDS.get(found["command"])
        return found[0] if sign is None else _pad(sign, found)
    sign = found["sign"]
    if sign in "%$*#&":
        return f" {sign}"
    return "; " if sign == "\\" else "  " if sign in "()[],;:! " else found[0]


def _without_bold(body: str) -> str:
    def replaced(found: re.Match[str]) -> str:
        if found[0] == "__":
            before, after = body[max(found.start() - 1, 0) : found.start()], body[found.end() : found.end() + 1]
            return found[0] if before.isalnum() and after.isalnum() else "  "
        before = body[max(found.start() - 2, 0) : found.start()]
        after = body[found.end() : found.end() + 2]
        even = before.endswith(" ") == after.startswith(" ")
        left, right = before.strip(" ")[-1:], after.strip(" ")[:1]  # a line break is neither
        power = even and (left.isalnum() or left == ")") and (right.isalnum() or right in ("(", "-"))
        return "**" if power else "  "

    return _BOLD.sub(replaced, body)


def _times(found: re.Match[str]) -> str:
    number = found[1]
    if number is None:
        return " * "
    return found[0] if number == "0" else f"{number}*"  # 0x10 is no product


def _spoken(found: re.Match[str]) -> str:
    return _pad(_SPOKEN[found.lastgroup] if found.lastgroup else " *", found)
