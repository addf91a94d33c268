"""What the grammar makes of a text: its statements and declarations as they are written, each with its line."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from stepguard.language.expressions import Expression


class CheckCall(NamedTuple):
    """``grounded(claim, beside="Total")`` behind a step."""

    name: str
    values: tuple[Expression, ...]
    options: tuple[tuple[str, Expression], ...]


class RawStep(NamedTuple):
    """A step, or the call of a procedure."""

    line: int
    id: str
    type: str | None
    content: Content
    checks: tuple[CheckCall, ...]
    label: int | None = None
    options: Mapping[str, Any] = MappingProxyType({})


class Content(NamedTuple):
    """The right-hand side of a step."""

    kind: Literal["formula", "code", "words", "person", "tool", "function", "call"]
    expression: Expression | None = None
    words: str | None = None
    reads: tuple[str, ...] = ()
    operation: str | None = None
    arguments: tuple[tuple[str, Expression], ...] = ()


class RawIf(NamedTuple):
    """``if``, its branches with the lines of their conditions, and ``else``."""

    line: int
    branches: tuple[tuple[int, Expression, tuple[RawStatement, ...]], ...]
    otherwise: tuple[RawStatement, ...]
    label: int | None = None


class RawForEach(NamedTuple):
    """``for each``."""

    line: int
    variable: str
    over: Expression
    body: tuple[RawStatement, ...]
    label: int | None = None


class RawRepeat(NamedTuple):
    """``repeat at most``."""

    line: int
    most: int
    until: Expression
    body: tuple[RawStatement, ...]
    label: int | None = None


RawStatement = RawStep | RawIf | RawForEach | RawRepeat


class TitleLine(NamedTuple):
    """``name:``."""

    line: int
    text: str


class InputLine(NamedTuple):
    """One input; its type and default, where they are given."""

    line: int
    name: str
    type: str | None
    default: Expression | None


class InputsBlock(NamedTuple):
    """``inputs:``."""

    line: int
    inputs: tuple[InputLine, ...]


class RecordBlock(NamedTuple):
    """``record Item:`` with its fields."""

    line: int
    name: str
    fields: tuple[tuple[int, str, str], ...]


class TableBlock(NamedTuple):
    """``table daily: country -> money(EUR)``; rows are lines with keys and a value, or stand in a file."""

    line: int
    name: str
    columns: tuple[tuple[str, str | None], ...]
    type: str
    rows: tuple[tuple[int, tuple[str, ...]], ...] = ()
    file: str | None = None


class ProcedureBlock(NamedTuple):
    """``procedure shipping:``, which other procedures of the text may call."""

    line: int
    name: str
    items: tuple[Any, ...]


class AnswerLine(NamedTuple):
    """``answer:``."""

    line: int
    expression: Expression
