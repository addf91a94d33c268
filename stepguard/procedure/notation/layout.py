"""Turn indentation into block tokens, and check what brackets hold.

Indentation becomes tokens, as in Python: a line further in than the one above begins a block, one further out ends it.
Inside of brackets line ends mean nothing. Behind a label, ``3. if a:``, the block's ``else:`` may stand below the label
or below the word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from lark import Token
from lark.lark import PostLex

from stepguard.errors import ProcedureError
from stepguard.language.expression_parsing import MAX_DEPTH

MAX_BLOCKS: Final = 20
"""How deep blocks may be nested."""
_OPENING: Final = {"LPAR": "call", "READS": "call", "LSQB": "list", "LBRACE": "list"}
_CLOSING: Final = frozenset({"RPAR", "RSQB", "RBRACE"})
_NUMBERS: Final = frozenset({"NUMBER", "PERCENT", "QUANTITY"})
_ZEROS: Final = re.compile("0[0-9]")
_WORD_TOKENS: Final = frozenset({"FUNCTION", "NAME"})


class Layout(PostLex):
    """Turns indentation into ``_INDENT`` and ``_DEDENT``; holds nothing between texts, so that threads may share it."""

    always_accept = ("_NL",)

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        """Yield the tokens of a text, with block tokens added.

        Raises ProcedureError: a line stands at a depth that no line above has, or nests too deep.
        """
        levels: list[tuple[int, int]] = []  # columns of each open block: of its lines, of what stands behind a label
        brackets: list[str] = []
        before = ""
        first = True
        token = None
        for token in stream:
            kind = token.type
            if kind == "_NL":
                if brackets:
                    continue
                column = len(token) - token.rindex("\n") - 1
                if first:
                    levels.append((column, column))
                    if before:
                        yield token
                else:
                    yield token
                    yield from _blocks(token, column, levels)
                first = False
                before = kind
                continue
            if first and not levels:
                start = (token.column or 1) - 1
                levels.append((start, start))
            first = False
            if kind == "LABEL":
                # `3. if a:` may have its `else:` below the number or below the word.
                levels[-1] = (levels[-1][0], (token.end_column or 1) - 1)
            elif kind in _OPENING:
                # A bracket behind a name holds arguments, where a comma separates; one around a sum does not.
                plain = kind == "LPAR" and before not in _WORD_TOKENS
                brackets.append("group" if plain else _OPENING[kind])
                if len(brackets) > MAX_DEPTH:
                    raise ProcedureError(f"nested deeper than {MAX_DEPTH} levels", line=token.line)
            elif kind in _CLOSING and brackets:
                brackets.pop()
            # max(1,000, x) could be three values.
            elif kind in _NUMBERS and "," in token and any(bracket != "group" for bracket in brackets):
                raise ProcedureError(
                    f"digits grouped by a comma in {token!s} among values that commas separate: leave the comma out",
                    line=token.line,
                )
            # `code=007`, `["007", 008]`: a text, more likely than the number 7 that it would be.
            elif (
                kind == "NUMBER" and brackets and (before == "EQUAL" or brackets[-1] == "list") and _ZEROS.match(token)
            ):
                raise ProcedureError(
                    f'{token} has zeros in front, which a number has not: leave them out, or write "{token}"',
                    line=token.line,
                )
            before = kind
            yield token
        while len(levels) > 1:
            levels.pop()
            assert token is not None
            yield Token.new_borrow_pos("_DEDENT", "", token)


def _blocks(token: Token, column: int, levels: list[tuple[int, int]]) -> Iterator[Token]:
    """The tokens that begin or end blocks where the next line begins at a column."""
    if column > levels[-1][0]:
        if len(levels) > MAX_BLOCKS:
            raise ProcedureError(f"blocks are nested deeper than {MAX_BLOCKS} levels", line=token.end_line)
        levels.append((column, column))
        yield Token.new_borrow_pos("_INDENT", "", token)
        return
    while len(levels) > 1 and column < levels[-1][0]:
        levels.pop()
        yield Token.new_borrow_pos("_DEDENT", "", token)
        if column == levels[-1][1]:  # below what stands behind the label
            return
    if column != levels[-1][0]:
        raise ProcedureError(
            "the line is indented like none of the blocks above it: begin it where the block begins that it belongs to",
            line=token.end_line,
        )
