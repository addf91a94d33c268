"""Other ways to write a name in front of a claim, rewritten as ``name = ...`` or ``name: ...``.

``<t1>19</t1>``, ``Step 1 (t1): 19``, ``Sub total: 74.70`` and ``Tax (8.25%): 6.16`` say the same as ``t1 = 19``,
``sub_total: 74.70`` and ``tax: 6.16``. The length of the text is kept, so that every offset in the result is an offset
in the original.
"""

from __future__ import annotations

import re
from typing import Final

from stepguard.auditing.names import Names

_TAG: Final = re.compile(r"<(?P<name>[A-Za-z_]\w{0,63})>(?P<inside>[^<>\n]{1,200})</(?P=name)>")
_NAMED_NUMBER: Final = re.compile(
    r"(?P<head>\b(?:step|line) ?\#?[0-9]{1,9}) ?\((?P<name>[A-Za-z_]\w{0,63})\)(?=[*_ ]{0,4}:)", re.IGNORECASE
)
_LABELLED: Final = re.compile(
    r"^(?P<front>[ \t>#*_+-]{0,12}(?:(?:[0-9]{1,3}[.)]|(?:step|line) ?[0-9]{1,3} ?[:.)]) )?[*_]{0,2})"
    r"(?P<label>[A-Za-z0-9][^:=|\n]{1,80}?)"
    r"(?P<sign>[*_'\"$ ]{0,6}(?::(?![=:/])|:?=(?![=>~/])|\b(?:is|equals|comes to)\b))",
    re.MULTILINE | re.IGNORECASE,
)
_PERCENT: Final = re.compile(r"%|\bper ?cent\b")
_QUOTED: Final = re.compile(r'"[^"\n]*"')
_HTML_CELL: Final = re.compile(r"<(?:(?P<close>/)t[dh]|t[dh](?:\s[^<>]{0,200})?|(?P<row>/tr))>", re.IGNORECASE)
_AROUND_ROWS: Final = re.compile(
    r"</?(?:table|t(?:head|body|foot))(?:\s[^<>]{0,200})?>|<caption(?:\s[^<>]{0,200})?>|(?P<closed></caption>)"
    r"|\\caption\{(?P<said>[^{}\n]{0,200})\}",
    re.IGNORECASE,
)
_TABULAR: Final = re.compile(
    r"\\(?:begin\{(?:(?:long)?tabular[xy]?\*?|longtable|array)\}"
    r"(?:\[[^\]\n]{0,20}\]|\{(?:[^{}\n]|\{[^{}\n]{0,40}\}){0,200}\}){0,3}"
    r"|(?P<end>end\{(?:(?:long)?tabular[xy]?\*?|longtable|array)\}))"
)
_TABULAR_SIGN: Final = re.compile(
    r"(?<!\\)&|\\\\(?:\[[^\]\n]*\])?|\\(?:[hc]line|(?:top|mid|bottom)rule)(?:\{[^{}\n]*\})?"
    r"|\\multicolumn\{[0-9]{1,3}\}\{[^{}\n]{0,20}\}\{(?P<said>[^{}\n]{0,200})\}"
)
_BOX: Final = str.maketrans(
    dict.fromkeys(map(chr, range(0x2500, 0x2580)), "-")
    | dict.fromkeys("\u2502\u2503\u2506\u2507\u250a\u250b\u2551", "|")
)
"""Lines and corners that boxes are drawn with."""
_INLINE: Final = re.compile(r"</?(?:b|i|u|em|strong|code|span|p|div|[ou]l|li)(?:\s[^<>]{0,200})?>", re.IGNORECASE)
_COLUMN_RULE: Final = re.compile(r"[ \t]*(?:=+|-+)(?: +(?:=+|-+))+[ \t]*")
_LED: Final = re.compile(
    r"^(?P<label>[ \t>*_+-]{0,12}[A-Za-z][^\n|=:]{0,60}?)(?P<gap> {2,20}| ?\.{3,80} ?)"
    r"(?=[-+$\u20ac\u00a3(]{0,3}[0-9][0-9.,]*(?<![.,])%?\)?[ \t]*$)",
    re.MULTILINE,
)
"""A label, and blanks or dots up to a number that ends the line."""
_ABOVE: Final = re.compile(
    r"^(?P<front>[ \t>#*_+-]{0,12}(?:(?:[0-9]{1,3}[.)]|step [0-9]{1,3}[:.)]) )?"
    r"(?:(?:compute|calculate|find|work out) )?[*_ ]{0,4})"
    r"(?P<name>[A-Za-z_]\w{0,63})(?P<end>[*_ ]{0,4}:?[*_ ]{0,4})\n(?P<gap>(?:[ \t]*\n)?[ \t]*(?:[-*+\u2022] +)?)"
    r"(?=(?P<line>[^\n]{1,200})(?:\n[ \t>#*_+-]*(?P<next>[^\n]{0,200})|\Z))",
    re.MULTILINE | re.IGNORECASE,
)
"""The name of a step on a line of its own, above its value or its equation."""
_VALUE_LINE: Final = re.compile(
    r"[-+$(]{0,3}[0-9][0-9.,]*(?<![.,])%?\)?[ \t.*]*|[-+*/\u00d7\u00f7^()0-9.,$ %=\w]*=[-+*/^()0-9.,$ %=]*"
)
_REVERSED: Final = re.compile(
    r"^(?P<front>[ \t>*+-]{0,12})(?P<sides>\(?-?[0-9(][-+*/()0-9.,$ %=]*?)(?P<sign> ?(?:=|->|\u2192|=>) ?)"
    r"(?P<name>[A-Za-z_]\w{0,63})(?P<end>[ \t.;]*)$",
    re.MULTILINE,
)
"""The value or the equation of a step in front of its name: ``6 * 7 = 42 = t1``."""
_SPELLED: Final = re.compile(
    r"(?<![\w-])[A-Za-z]{2,20}(?:[ -][A-Za-z]{2,20}){1,3}(?=['\"*$]{0,2} {0,9}(?::|=|(?:is|equals)\b))"
)


def as_claims(body: str, names: Names) -> str:
    """A text of the same length in which claims about steps begin with the name of the step.

    Args:
        body: the text as `stepguard.language.typeset.plain` gives it.
    """

    def untagged(found: re.Match[str]) -> str:
        if names.find(found["name"]) not in names.steps:
            return found[0]
        return f" {found['name']}={found['inside']}".ljust(len(found[0]))

    def above(found: re.Match[str]) -> str:
        line = found["line"]
        own = names.find(found["name"]) in names.steps and _VALUE_LINE.fullmatch(line.rstrip()) is not None
        named = any(names.find(word) in names.steps for word in re.findall(r"([A-Za-z_]\w*) ?=", line))
        if not own or named or _VALUE_LINE.fullmatch((found["next"] or "").rstrip()):
            return found[0]
        name = f"{found['front']}{found['name']}"
        end = found["end"] if ":" in found["end"] else " " * len(found["end"]) + ":"
        return f"{name}{end}".ljust(len(found[0]))

    def turned(found: re.Match[str]) -> str:
        if names.find(found["name"]) not in names.steps:
            return found[0]
        return f"{found['front']}{found['name']}{'='.center(len(found['sign']))}{found['sides']}{found['end']}"

    def unnumbered(found: re.Match[str]) -> str:
        if names.find(found["name"]) not in names.steps:
            return found[0]
        return f"{found['head']}: {found['name']}".ljust(len(found[0]))

    def unremarked(found: re.Match[str]) -> str:
        name = (
            names.label(found["label"])
            if _PERCENT.search(found["label"]) or found["label"].rstrip(" *_")[-1:] in ")]"
            else None
        )
        if name not in names.steps or names.find(found["label"]) is not None:
            return found[0]
        sign = found["sign"].strip()
        return f"{found['front']}{name}{' ' * sign.isalpha()}{sign}".ljust(len(found[0]))

    if "(" in body or "[" in body or _PERCENT.search(body):
        body = _LABELLED.sub(unremarked, body)
    if "</" in body:
        body = _TAG.sub(untagged, body)
    if "(" in body:
        body = _NAMED_NUMBER.sub(unnumbered, body)
    if "\n" in body:
        body = _ABOVE.sub(above, body)
    body = _REVERSED.sub(turned, body)
    if any("_" in name for name in names.steps):
        body = _SPELLED.sub(lambda found: _joined(found[0], names), body)
    return body


def _joined(written: str, names: Names) -> str:
    """Words of which the last ones are the name of a step, written as that name."""
    for word in re.finditer(r"(?<![A-Za-z])[A-Za-z]", written):
        name = written[word.start() :]
        parts = re.split("[ -]", name)
        if len(parts) < 2 or names.find("_".join(parts)) not in names.steps:
            continue
        if "-" in name and any(names.find(part) is not None for part in parts):
            continue  # a difference of two names
        return written[: word.start()] + "_".join(parts)
    return written


def with_cells(text: str, names: Names) -> str:
    """A text of the same length in which cells of separated values, of HTML, of LaTeX and under ruled columns stand
    between bars, and boxes are drawn with bars and dashes.

    Values are separated by tabs, semicolons or commas where two lines or more that follow one another have as many of
    them, and all of these lines, or all but the first, begin with the name of a step.
    """
    if "<td" in text or "<th" in text:
        text = _HTML_CELL.sub(_html_cell, text)
    if not text.isascii():
        text = text.translate(_BOX)
    if "<table" in text or "caption" in text:
        text = _AROUND_ROWS.sub(_around_rows, text)
    if "\\end{" in text:
        text = _with_bars(text)
    if "</" in text:
        text = _INLINE.sub(lambda tag: " " * len(tag[0]), text)
    if "== " in text or "-- " in text:
        text = _with_columns(text)
    if "  " in text or "..." in text:
        text = _LED.sub(lambda found: _led(found, names), text)
    for delimiter in "\t;,":
        if delimiter not in text:
            continue
        lines = text.split("\n")
        block: list[int] = []
        count = 0
        for number, line in enumerate([*lines, ""]):
            fields = _QUOTED.sub(lambda cell: "x" * len(cell[0]), line).count(delimiter)
            if fields and fields == count:
                block.append(number)
                continue
            if len(block) > 1 and all(_begins_row(lines[each], delimiter, names) for each in block[1:]):
                for each in block:
                    inside = re.split(rf"({_QUOTED.pattern})", lines[each])
                    lines[each] = "".join(
                        part if at % 2 else part.replace(delimiter, "|") for at, part in enumerate(inside)
                    )
            block, count = [number], fields
        text = "\n".join(lines)
    return text


def _led(found: re.Match[str], names: Names) -> str:
    """A bar in front of the blanks or dots behind the name of a step."""
    if names.label(found["label"].strip(" \t>*_+-")) not in names.steps:
        return found[0]
    label = re.sub(r"\A[ \t]*\+ ", lambda plus: " " * len(plus[0]), found["label"])  # of a sum in columns
    return f"{label}|{' ' * (len(found['gap']) - 1)}"


def _around_rows(found: re.Match[str]) -> str:
    """Of a caption in LaTeX becomes a label, and a line ends behind one in HTML."""
    end = ":" if found["said"] else "\n" if found["closed"] else ""
    return f"{found['said'] or ''}{end}".rjust(len(found[0]))


def _with_bars(text: str) -> str:
    """A text of the same length in which bars part the cells of tables in LaTeX."""
    parts: list[str] = []
    at, inside = 0, False
    for mark in _TABULAR.finditer(text):
        rows = text[at : mark.start()]
        parts += (_TABULAR_SIGN.sub(_tabular_sign, rows) if inside else rows, " " * len(mark[0]))
        at, inside = mark.end(), mark["end"] is None
    return "".join((*parts, text[at:]))


def _tabular_sign(found: re.Match[str]) -> str:
    """Of the end of a row becomes a bar and the end of a line: more rows may stand in it."""
    sign = found[0]
    if found["said"]:
        return str(found["said"]).rjust(len(sign))
    return "|" if sign == "&" else "|\n".ljust(len(sign)) if sign.startswith("\\\\") else " " * len(sign)


def _with_columns(text: str) -> str:
    """A text of the same length in which bars part the columns that rules stand over or under, up to a blank line."""
    lines = text.split("\n")
    starts: list[int] = []
    for number, line in enumerate(lines):
        if _COLUMN_RULE.fullmatch(line):
            starts = [found.start() for found in re.finditer(r"(?<= )[=-]", line)]
            if number and not _COLUMN_RULE.fullmatch(lines[number - 1]):
                lines[number - 1] = _parted(lines[number - 1], starts)
        elif not line.strip():
            starts = []
        else:
            lines[number] = _parted(line, starts)
    return "\n".join(lines)


def _parted(line: str, starts: list[int]) -> str:
    """A line with bars in front of its columns; as it is where one of them does not begin there."""
    if not starts or any(line[at - 1 : at] not in (" ", "|") for at in starts if at <= len(line)):
        return line
    characters = list(line)
    for at in starts:
        for gap in (at - 1, at - 2):  # two, so that a row of two columns is one
            if characters[gap : gap + 1] == [" "]:
                characters[gap] = "|"
    return "".join(characters)


def _begins_row(line: str, delimiter: str, names: Names) -> bool:
    return names.find(line.partition(delimiter)[0].strip(" *_\"'`$")) in names.steps


def _html_cell(tag: re.Match[str]) -> str:
    if tag["row"]:
        return "\n".rjust(len(tag[0]))
    return ("" if tag["close"] else "|").ljust(len(tag[0]))
