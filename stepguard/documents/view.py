r"""A document as its reader sees it: without what is struck or hidden, without marks, full-width signs as plain ones.

::

    Price: ~~80.00~~ **70.00** EUR      is seen as      Price:           70.00 EUR
    <td>5&nbsp;000</td><td>EUR</td>                      5 000| EUR|
    $5 **million**, ５．25 EUR                          $5 million, 5.25 EUR
    <input type="radio" checked> card                   \u2612 card
    Item,Qty,Price                                      Item|Qty|Price
    Tea,2,345.00                                        Tea|2|345.00

Every place in what is seen leads back to a place in the document.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Final

from stepguard.language.currencies import CODES, WORD_CODES
from stepguard.language.prose.struck_text import without_struck
from stepguard.language.unseen import UNSEEN

_UNSEEN: Final = re.compile(f"[{UNSEEN}]+")
_CELLS: Final = frozenset({"td", "th"})
_LINE_NAMES: Final = (
    "address article aside blockquote br caption dd div dl dt figure footer form h1 h2 h3 h4 h5 h6 header hr li main"
    " nav ol p pre section table tr ul select fieldset legend optgroup textarea"
)
_ROWS: Final = frozenset({"tr", "table", "li", "dd", "dt"})
"""What has a line of its own, and no blank one behind it."""
_INLINE_NAMES: Final = (
    "a abbr b bdi bdo big body button cite code col colgroup data del dfn em font html i img ins kbd label mark"
    " meter output progress q samp small span strong sub sup tbody tfoot thead time tt u var wbr"
)
_LINES: Final = frozenset(_LINE_NAMES.split())
_INLINE: Final = frozenset(_INLINE_NAMES.split())
_TAG: Final = re.compile(
    r"<(?P<close>/?)(?P<tag>[A-Za-z][A-Za-z0-9]*+)"
    r"(?:[\s/][^<>\"']*+(?:(?:\"[^\"]*+\"|'[^']*+')[^<>\"']*+)*)?>"
    r"|&(?P<entity>#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});"
)
_HEAD: Final = r"(?:\"[^\"\n]+\"|[^\W\d][^\n,:;|=(){}\[\]\t]{0,40})"
_CSV: Final = re.compile(  # heads with no blank behind a comma, and at least one row
    rf"^(?![^\n]*, ){_HEAD}(?:,{_HEAD})+[ \r]?\n(?:[^\n]*,[^\n]*(?:\n|\Z))+", re.MULTILINE
)
_CSV_CELL: Final = re.compile(r"(?:\"(?:[^\"\n]|\"\")*\"|[^,\n]*+)(?P<end>,|(?=\n)|\Z)")
_QUOTED: Final = re.compile(r"\"[^\"]*+\"|'[^']*+'")
_CHOSEN: Final = re.compile(r"(?<![\w-])(?:checked|selected)(?![\w-])", re.IGNORECASE)
_TYPE: Final = re.compile(r"(?<![\w-])type\s?=\s?[\"']?(\w+)", re.IGNORECASE)
_VALUE: Final = re.compile(r"(?<![\w-])value\s?=\s?(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'>]+))", re.IGNORECASE)
_CELL_SPACE: Final = re.compile(r"(?<!\s)\s++(?=</?t[dhr]\b)|(?P<tag><t[dh](?:\s[^<>]{0,200})?>)\s++", re.IGNORECASE)
"""White space around the tags of cells, where lines mean nothing."""
_TABLES: Final = re.compile(  # LaTeX: rows end with a double backslash, cells with an ampersand
    r"\\(?P<begin>begin)\{(?:tabular[xy]?|longtable|supertabular|tabu|array)\*?\}(?:\[[^\]\n]{0,20}\])?"
    r"(?:\{(?:[^{}\n]|\{[^{}\n]{0,40}\}){0,200}\}){0,2}|\\(?P<end>end)\{(?:tabular[xy]?|longtable|supertabular|tabu"
    r"|array)\*?\}"
    r"|(?P<row>\\\\(?:\[[^\]\n]{0,20}\])?|\\tabularnewline(?![A-Za-z]))[ \t]{0,99}\n?|(?<!\\)(?P<cell>&)"
    r"|(?P<rule>\\(?:[hc]line|toprule|midrule|bottomrule|cmidrule)(?:\([lr]{1,2}\))?(?:\{[0-9-]{1,9}\})?)[ \t]{0,99}\n?"
)
_ATTRIBUTES: Final = (
    r"(?:(?:[ \t]*+[a-z-]{1,20}[ \t]?=[ \t]?(?:\"[^\"\n]{0,80}\"|[^\s|\"]{1,40})){1,6}[ \t]*+\|(?!\|))?"
)
_WIKI: Final = re.compile(  # each cell on a line of its own, or behind two bars
    r"(?P<begin>(?:\n|\A)[ \t:]{0,9}\{\|[^\n]*)|(?P<end>\n[ \t]{0,9}\|\})|(?P<rule>\n[ \t]{0,9}\|-[^\n]*)"
    rf"|(?P<caption>\n[ \t]{{0,9}}\|\+)|(?P<line>\n[ \t]{{0,9}}[|!]{_ATTRIBUTES})|(?P<next>(?:\|\||!!){_ATTRIBUTES})"
)
_GROUPED: Final = re.compile(r"(?<=[0-9])(?:\{,\}|\\(?:[,;: ]|thinspace ?))(?=[0-9]{3})")
"""Between groups of digits in LaTeX."""
_KEYED: Final = re.compile(
    r"(?<=[a-z0-9])(?:_(?P<low>[a-z]{3}|[A-Z]{3})|(?P<camel>[A-Z][a-z]{2}|[A-Z]{3}))"
    r"(?=[\"']?[ \t]{0,9}(?:[:=,;|\t\r\n]|\Z))"
)
"""The end of a key or a head that may be a currency: ``amount_usd``, ``amountUsd``."""
_EMPHASIS: Final = re.compile(  # signs in arithmetic have a digit, a letter or a blank on both sides
    r"(?<![\w)\]}*_`\s])[*_`]++(?!\s|\Z|[*_`])|(?<!\S)[*_`]++(?!\s|\Z|[*_`])"
    r"|(?<=[^\s*_`])[*_`]++(?![\w(*_`\\+$€£-])|(?<=[^\w\s)\]}*_`])[*_`]++(?!\s)|\\(?=[$%.+#-])"
)
_LONGEST: Final = 3
"""Signs of one emphasis, or of a fence; more of them stand for what is masked, such as the digits of a card."""
_ASCII_LOOKS: Final = {
    **{code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)},
    **{0x1D7CE + at: 0x30 + at % 10 for at in range(50)},
    **{ord(one): ord(other) for one, other in zip("￥￡￦￠﹩﹪﹣﹢", "¥£₩¢$%-+", strict=True)},
}


_NEAR: Final = 200
"""Within how many characters, on its line, a sign of emphasis has another one."""


class View:
    """What is seen of a document.

    Args:
        document: the text.
        csv: whether the commas between the cells of CSV are seen as bars.

    Attributes:
        text: what is seen.
    """

    def __init__(self, document: str, *, csv: bool = True) -> None:
        self._maps: list[tuple[list[int], list[int]]] = []
        text = document
        if not text.isascii():
            text = self._edited(text, _UNSEEN, lambda _: "").translate(_ASCII_LOOKS)
        text = without_struck(text)
        text = _CSV.sub(lambda rows: _with_cells(rows[0]), text) if csv and "," in text else text
        if "\\" in text or "{,}" in text:
            text = self._edited(text, _GROUPED, lambda mark: "," if mark[0] == "{,}" else "\u202f")
        text = self._edited(text, _KEYED, _keyed)
        if "\\begin{" in text:
            text = self._edited(text, _TABLES, _TableRows().shown)
        if "{|" in text:
            text = self._edited(text, _WIKI, _WikiRows().shown)
        if "<t" in text or "<T" in text:
            text = self._edited(text, _CELL_SPACE, lambda space: f"{space['tag'] or ''} ")
        text = self._edited(text, _TAG, _visible_mark)
        self.text: str = self._edited(text, _EMPHASIS, _without_emphasis)

    def _edited(self, text: str, pattern: re.Pattern[str], shown: Callable[[re.Match[str]], str]) -> str:
        """The text with other characters, or none, for what a pattern matches; remembers what was where."""
        pieces: list[str] = []
        news, olds = [0], [0]
        at = length = 0
        for match in pattern.finditer(text):
            piece = shown(match)
            if piece == match[0]:
                continue
            pieces += [text[at : match.start()], piece]
            length += match.start() - at + len(piece)
            at = match.end()
            if news[-1] == length:
                olds[-1] = at
            else:
                news.append(length)
                olds.append(at)
        if not pieces:
            return text
        self._maps.append((news, olds))
        return "".join((*pieces, text[at:]))

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where in the document stands what is seen from offset `start` up to `end`."""
        return self._offset(start), max(self._offset(start) + 1, self._offset(end - 1) + 1)

    def _offset(self, at: int) -> int:
        for news, olds in reversed(self._maps):
            piece = bisect_right(news, at) - 1
            at = olds[piece] + at - news[piece]
        return at


class _TableRows:
    """Shows the rows and cells of LaTeX tables as those of Markdown; elsewhere their signs are text."""

    def __init__(self) -> None:
        self._depth = 0

    def shown(self, mark: re.Match[str]) -> str:
        if mark["begin"] or mark["end"]:
            self._depth = max(self._depth + (1 if mark["begin"] else -1), 0)
            return "\n|" if mark["begin"] else "\n"
        if not self._depth:
            return mark[0]
        return "\n|" if mark["row"] else "|" if mark["cell"] else ""


class _WikiRows:
    """Shows the rows and cells of a wiki's tables as those of Markdown; elsewhere their signs are text."""

    def __init__(self) -> None:
        self._depth = 0
        self._begun = False

    def shown(self, mark: re.Match[str]) -> str:
        kind = mark.lastgroup
        if kind == "begin":
            self._depth, self._begun = self._depth + 1, False
            return "\n"
        if not self._depth:
            return mark[0]
        if kind in ("rule", "caption", "end"):
            self._depth -= kind == "end"
            self._begun = False
            return "" if kind == "rule" else "\n"
        goes_on, self._begun = self._begun or kind == "next", True
        return "|" if goes_on else "\n|"


def _keyed(mark: re.Match[str]) -> str:
    code = (mark["low"] or mark["camel"]).upper()
    return f" {code}" if code in CODES and code.lower() not in WORD_CODES else mark[0]


def _without_emphasis(mark: re.Match[str]) -> str:
    """Nothing for a sign of emphasis; the sign itself where it is none, but masks digits or leads to a footnote."""
    around = mark.string[max(mark.start() - _NEAR, 0) : mark.start()].rpartition("\n")[2].lstrip(" *")
    behind = mark.string[mark.end() : mark.end() + _NEAR].partition("\n")[0]
    footnote = mark[0] == "*" and "*" not in around + behind and around[-1:].strip() != ""
    return mark[0] if footnote or len(mark[0]) > _LONGEST else ""


def _visible_mark(mark: re.Match[str]) -> str:
    if mark["entity"]:
        return html.unescape(mark[0])
    tag = mark["tag"].lower()
    if tag in ("input", "option"):
        return "" if mark["close"] else _control(tag, mark[0])
    if tag in _CELLS:
        return "|" if mark["close"] else " "
    if tag in _LINES:
        return "" if mark["close"] and tag in _ROWS else "\n"
    if tag in ("sup", "sub") and not mark["close"]:
        return "^" if tag == "sup" else "_"
    return "" if tag in _INLINE else mark[0]


def _control(tag: str, written: str) -> str:
    """What is seen of a control of a form: a box, ticked or empty, or the value that is in it."""
    kind = _TYPE.search(written)
    sort = "" if kind is None else kind[1].lower()
    if tag == "option" or sort in ("checkbox", "radio"):
        box = "\u2612" if _CHOSEN.search(_QUOTED.sub("", written)) else "\u2610"
        return f"\n{box} " if tag == "option" else f" {box} "
    value = None if sort in ("password", "file", "image", "range", "color") else _VALUE.search(written)
    return " " if value is None else f" {html.unescape(next(filter(None, value.groups()), ''))} "


def _with_cells(rows: str) -> str:
    """Rows of CSV, with a bar for each comma that ends a cell, where a row has as many cells as heads."""
    shown: list[str] = []
    heads = 0
    for row in rows.split("\n"):
        ends = [cell.end() - 1 for cell in _CSV_CELL.finditer(row) if cell["end"]]
        heads = heads or len(ends)
        if len(ends) != heads:
            shown.append(row)
            continue
        marks = list(row)
        for at in ends:
            marks[at] = "|"
        shown.append("".join(marks))
    return "\n".join(shown) if any("|" in row for row in shown[1:]) else rows
