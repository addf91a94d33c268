"""Parse the language: a text follows the grammar, or its line is refused.

The parser is made from its tables when it is first needed (about 30 ms) and kept; it holds nothing between texts.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final, cast

from lark import Lark
from lark.exceptions import UnexpectedInput

from stepguard.errors import ExpressionError, ProcedureError
from stepguard.language.expression_parsing import MAX_LENGTH
from stepguard.language.expression_tokens import check_grouping, check_percent_signs, find_date
from stepguard.language.expressions import Expression
from stepguard.language.unseen import UNSEEN
from stepguard.procedure.notation.layout import Layout
from stepguard.procedure.notation.tables import build_parser, load_parser
from stepguard.procedure.notation.trees import Trees

_MAX_LINE: Final = 4 * MAX_LENGTH
_BREAK: Final = re.compile(r"\r\n|\r")
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_COMMENT: Final = re.compile(r"#.*")
_MARGIN: Final = re.compile(r"^( *)[^ \n#]", re.MULTILINE)
_UNSEEN: Final = re.compile(f"[{UNSEEN}]")
# Dates of this form are literals; any other is refused by name.
_ISO: Final = re.compile(r"(?<![\w.])[0-9]{4}-[0-9]{2}-[0-9]{2}(?![\w.-])")
# 2·5 in print is two and a half, or ten: neither is guessed.
_POINT: Final = re.compile("(?<=[0-9])[\u00b7\u22c5](?=[0-9])")

_MARKS: Final = re.compile(r"[%\t]|##|\.000")


@cache
def _parser() -> Lark:
    options = {"transformer": Trees(), "postlex": Layout()}
    return load_parser(**options) or build_parser(**options)


def parse_items(text: str) -> list[Any]:
    """The declarations and statements of a text, in their order, as `stepguard.procedure.notation.trees` has them.

    Raises ProcedureError: the text is not in the language; `line` names where.
    """
    body = prepared(text)
    try:
        return cast("list[Any]", _parser().parse(body, start="start"))
    except UnexpectedInput as error:
        from stepguard.procedure.notation.slips import explain  # which nothing else needs

        raise explain(body, error) from None


def prepared(text: str) -> str:
    """A text as the grammar takes it: with one kind of line ends, and one behind its last line.

    Raises ProcedureError: a line holds what no line may hold; `line` names it.
    """
    body = text.removeprefix("\ufeff")
    if "\r" in body:
        body = _BREAK.sub("\n", body)
    # The last line end carries the indent of the first line, so that a text indented as a whole closes its blocks.
    margin = _MARGIN.search(body)
    body = f"{body.rstrip()}\n{margin[1] if margin else ''}"
    check_lines(body)
    return body


def parse_term(text: str) -> Expression:
    """One expression, which may hold more than arithmetic: fields, items, tables, dates, choices.

    Raises ExpressionError: it is not in the language.
    """
    try:
        check_lines(text)
        return cast(Expression, _parser().parse(text, start="lone_expression"))
    except UnexpectedInput as error:
        from stepguard.procedure.notation.slips import explain_term

        raise ExpressionError(explain_term(text, error), text=text, position=max(0, (error.column or 1) - 1)) from None
    except ProcedureError as error:
        raise ExpressionError(error.message, text=text, position=0) from None


def check_lines(body: str) -> None:
    """Refuse what no line may hold, and signs that not every reader takes in the same way."""
    longest = len(body) > _MAX_LINE
    # The usual text holds none of the signs below: one search in place of a loop over the lines.
    if not longest and body.isascii() and not (_MARKS.search(body) or find_date(body)):
        return
    for at, line in enumerate(body.split("\n"), 1):
        if len(line) > _MAX_LINE:
            raise ProcedureError(f"the line is too long: {len(line)} characters, at most {_MAX_LINE}", line=at)
        start = line.lstrip()
        if start and "\t" in line[: len(line) - len(start)]:
            raise ProcedureError("a tab in front of the line: blocks are indented by blanks", line=at)
        if start.startswith("##") and start.strip("# \t"):
            raise ProcedureError(
                f"{start[:40]!r} looks like a heading: a comment begins with one #; `stepguard import` reads Markdown",
                line=at,
            )
        dated = find_date(line) is not None
        if line.isascii() and "%" not in line and ".000" not in line and not dated:
            continue
        # Quoted words may hold anything; their length stays, so that positions do too.
        plain = _STRING.sub(lambda match: f'"{"x" * (len(match[0]) - 2)}"', line)
        if (unseen := _UNSEEN.search(plain)) is not None:
            raise ProcedureError(f"the character U+{ord(unseen[0]):04X} cannot be seen", line=at)
        plain = _COMMENT.sub("", plain)
        if (point := _POINT.search(plain)) is not None:
            raise ProcedureError(
                f"{point[0]!r} between digits could be a decimal point: write a point, or * for a product", line=at
            )
        if dated and (date := find_date(_ISO.sub("", plain))) is not None:
            raise ProcedureError(f"{date[0]} looks like a date: write one as 2026-01-31", line=at)
        try:
            check_grouping(plain)
            if "%" in plain:
                check_percent_signs(plain)
        except ExpressionError as error:
            raise ProcedureError(str(error), line=at) from None
