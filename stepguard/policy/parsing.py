"""Parse policies: a text follows the grammar, or its line is refused with what could stand there.

The grammar is that of procedures with the rules of `grammar.lark` behind it, so that an expression means in a policy
what it means in a procedure. It is built when it is first needed and holds nothing between texts.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any, Final

from lark import Lark, Token
from lark.exceptions import UnexpectedInput

from stepguard.core.verdicts import shorten
from stepguard.errors import PolicyError, ProcedureError
from stepguard.policy.trees import PolicyTrees
from stepguard.procedure.notation.layout import Layout
from stepguard.procedure.notation.parsing import prepared
from stepguard.procedure.notation.slips import explain_place

# What editors and `str.splitlines` take for the end of a line, and the grammar does not.
_BREAKS: Final = re.compile("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_STARTS: Final = ("policy", "lone_demand", "lone_declaration", "lone_rule", "lone_target", "lone_pattern")

# The first with which a line begins is told.
_REMEDIES: Final[tuple[tuple[str, str], ...]] = (
    (
        "tool",
        "a tool is declared as `tool refund(order: text, amount: money(EUR)) -> Receipt`, or with `reads` behind it",
    ),
    ("fact", 'a fact is declared as `fact verified: boolean` or `fact reason[order: text]: text "Why?"`'),
    ("record", "a record is declared as `record Order:`, with its fields indented below, such as `paid: money(EUR)`"),
    ("allow", "what is free of conditions is listed as `allow think, calculate`"),
    ("never", 'what is forbidden is written as `never delete_account "words for the agent"`'),
    ("before", "a rule begins as `before refund(order, amount):`, with what it demands indented below"),
    ("seen", "write `seen get_order(id) as order`"),
    ("done", "write `done verify(customer)`"),
    ("not done", "write `not done refund(order=id)`"),
    ("earlier", "write `earlier refund(order=id) as refunds`"),
    ("require", 'write `require amount <= 100 "words for the agent"`'),
    ("only if", "write the condition as `require ...`; `only if` stands behind a demand"),
    ("unless", "`unless` stands behind a demand, as in `require a <= 5 unless b`"),
    ("refuse", 'write `refuse if amount > 100 "words for the agent"`'),
    ("confirm", "write `confirmed by user`"),
    ("at most", "write `at most once per order` or `at most 3 times within 24 hours`"),
    ("if", "write a condition as `if amount > 100:`, with what it demands indented below"),
    ("for", "write `for each item in items:`, with what is demanded indented below"),
)

_DEMANDS: Final = ("seen", "done", "not done", "earlier", "require", "refuse", "confirm", "at most")

_EXPECTED: Final = tuple(
    (frozenset({name}), words)
    for name, words in (
        ("_INDENT", "a block, indented below"), ("TYPE", "a type, such as `text`"), ("STRING", "words in quotes"),
        ("COMPARISON", "an operator"), ("UNLESS", "`unless` or `only if`"), ("AS", "`as`"), ("COLON", "a colon"),
        ("COMMA", "a comma"), ("RPAR", "a closing bracket"), ("RSQB", "`]`"), ("NAME", "a name"),
        ("_NL", "the end of the line"),
    )
)  # fmt: skip


@cache
def _parser() -> Lark:
    grammar = (files("stepguard.procedure.notation") / "grammar.lark").read_text(encoding="utf-8")
    own = (files("stepguard.policy") / "grammar.lark").read_text(encoding="utf-8")
    return Lark(
        grammar + own,
        parser="lalr",
        start=list(_STARTS),
        transformer=PolicyTrees(),
        postlex=Layout(),
        propagate_positions=False,
        maybe_placeholders=True,
    )


def parse_policy_items(text: str) -> list[Any]:
    """The declarations and rules of a text, in their order, as `stepguard.policy.trees` has them.

    Raises PolicyError: the text is no policy; `line` names where.
    """
    return _parsed(text, "policy")  # type: ignore[no-any-return]


def parse_rule_part(text: str, kind: str, line: int | None = None) -> Any:
    """One demand, declaration, target or pattern of a rule.

    Raises PolicyError: it is none.
    """
    try:
        return _parsed(text.strip(), f"lone_{kind}")
    except PolicyError as error:
        raise PolicyError(error.message, line=line) from None


def _parsed(text: str, start: str) -> Any:
    try:
        body = prepared(text)
        # Shown as two lines, such a text could hide a rule in what the grammar reads as a comment.
        hidden = _BREAKS.search(body)
        if hidden is not None:
            raise PolicyError(
                f"the character U+{ord(hidden[0]):04X} is shown as the end of a line and is none: begin a new line",
                line=body.count("\n", 0, hidden.start()) + 1,
            )
        if start in ("lone_target", "lone_pattern"):
            body = body.rstrip()
        return _parser().parse(body, start=start)
    except UnexpectedInput as error:
        raise _explained(body, error) from None
    except ProcedureError as error:
        raise PolicyError(error.message, line=error.line) from None


def _outermost(lines: list[str]) -> str:
    """The line without indentation under which the last one stands."""
    return next((line for line in reversed(lines) if line.strip() and not line[0].isspace() and line[0] != "#"), "")


def _explained(text: str, error: UnexpectedInput) -> PolicyError:
    """The error for a refused text, with its line and the remedy."""
    lines = text.split("\n")
    if not any(line.strip() and not line.lstrip().startswith("#") for line in lines):
        return PolicyError("no rule found: write one, such as `never delete_account`", line=1)
    token = getattr(error, "token", None)
    number = error.line if isinstance(error.line, int) and error.line > 0 else len(lines)
    if isinstance(token, Token) and token.type in ("_NL", "_INDENT") and token.line is not None:
        number = token.line + (token.type == "_INDENT")
    number = min(number, len(lines))
    line = " ".join(lines[number - 1].split())
    if isinstance(token, Token) and token.type == "_INDENT":
        return PolicyError(f"{shorten(line, 60)!r} is indented, and the line above it opens no block", line=number)
    place = explain_place(repr(shorten(line, 60)), line, error, lines[number - 1], _EXPECTED)
    remedy = next((words for word, words in _REMEDIES if line.startswith(word)), None)
    if remedy is None and error.column == 1:
        remedy = "this is no declaration and no rule"
    elif remedy is not None and error.column == 1 and line.startswith(_DEMANDS):
        remedy = f"it stands indented below a rule such as `before refund(order, amount):`; {remedy}"
    elif remedy is None and _outermost(lines[:number]).startswith("before"):
        remedy = "what a rule demands begins as `require amount <= 100`, or a name for a value as `rest = paid - 5`"
    if '"' in line and line.count('"') % 2:
        remedy = "the quoted words are not closed"
    return PolicyError(f"{place}{f'; {remedy}' if remedy else ''}", line=number)
