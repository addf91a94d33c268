"""Build the nodes of a procedure from a parsed text: make steps, resolve names, give errors their line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from stepguard.errors import ProcedureError
from stepguard.language.expressions import Name
from stepguard.language.records import RecordType
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.terms.operands import LiteralTerm
from stepguard.language.value_types import NUMBER, TEXT
from stepguard.procedure.inputs import Input
from stepguard.procedure.notation.layout import MAX_BLOCKS
from stepguard.procedure.notation.nodes import (
    AnswerLine,
    InputsBlock,
    ProcedureBlock,
    RecordBlock,
    TableBlock,
    TitleLine,
)
from stepguard.procedure.notation.settings import constant
from stepguard.procedure.notation.statement_building import ParsedProcedure, StatementBuilder, located
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.static_checks import check_flow
from stepguard.procedure.steps import Step

_ROW: Final = re.compile(r", row ([0-9]+)")


def build(
    items: Iterable[Any],
    *,
    folder: Path | None = None,
    outer: ParsedProcedure | None = None,
    open: frozenset[str] = frozenset(),
) -> ParsedProcedure:
    """The nodes of a procedure.

    Args:
        folder: where the files of tables lie.
        outer: the procedure in whose text this one is declared; its records and procedures are known here, too.
        open: the names of the procedures that this one stands in.

    Raises:
        ProcedureError: a declaration stands twice or too late, or something cannot be made; `line` names where.
    """
    made = ParsedProcedure()
    if outer is not None:
        made.records.update(outer.records)
        made.inherited = frozenset(outer.records)
        made.procedures.update(outer.procedures)
    builder = ProcedureBuilder(made, folder, open)
    for item in _records_first(items):
        builder.add(item)
    if not made.body:
        raise ProcedureError("no step found: write one step a line, such as `t1 = x + y`", line=1)
    return made


def _records_first(items: Iterable[Any]) -> list[Any]:
    """Put records first, each behind those it holds: a type may be used above its declaration."""
    items = list(items)
    records = {item.name: item for item in items if isinstance(item, RecordBlock)}
    order: dict[int, RecordBlock] = {}

    def declare(record: RecordBlock, within: tuple[str, ...]) -> None:
        if record.name in within or len(within) > MAX_BLOCKS:
            raise ProcedureError(f"the record {record.name} holds itself, or too many others", line=record.line)
        for _, _, kind in record.fields:
            inner = records.get(kind.split()[-1])
            if inner is not None and id(inner) not in order:
                declare(inner, (*within, record.name))
        order[id(record)] = record

    for item in items:
        if isinstance(item, RecordBlock) and id(item) not in order:
            declare(item, ())
    return [*order.values(), *(item for item in items if not isinstance(item, RecordBlock))]


def finish(parsed: ParsedProcedure, *, unnamed: str, **host: Any) -> Procedure:
    """The procedure, checked as a whole; a complaint names the line of the statement that it is about.

    Args:
        unnamed: the name of a procedure that declares none.

    Raises:
        ProcedureError: the nodes do not make a procedure.
    """
    options: dict[str, Any] = {
        "inputs": tuple(parsed.inputs.values()),
        "name": unnamed if parsed.name is None else parsed.name,
    }
    options |= {"tables": tuple(parsed.tables.values())} if parsed.tables else {}
    # Only its own: inherited ones are printed where they are declared.
    options["records"] = tuple(record for name, record in parsed.records.items() if name not in parsed.inherited)
    if parsed.answer is not None:
        options["answer"] = parsed.answer.name if type(parsed.answer) is Name else parsed.answer
    # Here as well as in Procedure, since only here the lines of the statements are known.
    if not all(isinstance(statement, Step) for statement in parsed.body):
        check_flow(tuple(parsed.body), parsed.inputs.values(), None, parsed.tables, parsed.lines)
    try:
        body: Any = parsed.body
        return Procedure(body, **options, **host)
    except ProcedureError as error:
        if error.line is not None:
            raise
        raise ProcedureError(error.message, line=_line_of(parsed, error), step=error.step) from error


def _cell(text: str) -> str:
    return str(json.loads(text)) if text.startswith('"') else text


def _line_of(parsed: ParsedProcedure, error: ProcedureError) -> int:
    """The line of an error: that of the step it names, of the first misplaced step, or of the answer."""
    steps = [each for each in parsed.body if isinstance(each, Step)]
    # Two steps of one id are the error itself: the loop below finds the second.
    own = [step for step in steps if step.id == error.step]
    if len(own) == 1:
        return parsed.lines[id(own[0])]
    names = set(parsed.inputs)
    for step in steps:
        if step.id in names or not names.issuperset(step.reads):
            return parsed.lines[id(step)]
        names.add(step.id)
    return parsed.answer_line or parsed.lines[id(parsed.body[-1])]


class ProcedureBuilder:
    """Takes in the declarations and statements of a text, one after the other."""

    def __init__(self, made: ParsedProcedure, folder: Path | None, open: frozenset[str]) -> None:
        self.made = made
        self.folder = folder
        self.open = open
        self.statements = StatementBuilder(made, open)

    def add(self, item: Any) -> None:
        made = self.made
        match item:
            case TitleLine(line, text):
                if made.name is not None:
                    raise ProcedureError(f"the procedure already has the name {made.name!r}", line=line)
                if made.body:
                    raise ProcedureError("the name stands before the first step", line=line)
                if not text:
                    raise ProcedureError("name: nothing follows", line=line)
                made.name = text
            case InputsBlock(line, inputs):
                if made.inputs_line or made.body:
                    raise ProcedureError("inputs are declared once, before the first step", line=line)
                made.inputs_line = line
                for entry in inputs:
                    if entry.name in made.inputs:
                        raise ProcedureError(f"duplicate input {entry.name!r}", line=entry.line)
                    made.inputs[entry.name] = self._input(entry)
                    self.statements.types[entry.name] = made.inputs[entry.name].type
            case RecordBlock(line, name, fields):
                self._new(name, line)
                kinds = tuple((key, self.made.read_type(kind, at)) for at, key, kind in fields)
                made.records[name] = located(line, RecordType, name, kinds)
            case TableBlock():
                self._new(item.name, item.line)
                made.tables[item.name] = self._table(item)
            case ProcedureBlock(line, name, items):
                if name in made.procedures:
                    raise ProcedureError(f"there is already a procedure {name!r}", line=line)
                inner = build(items, folder=self.folder, outer=made, open=self.open | {name})
                made.procedures[name] = finish(inner, unnamed=name)
            case AnswerLine(line, expression):
                if made.answer is not None:
                    raise ProcedureError(f"the answer is already declared in line {made.answer_line}", line=line)
                made.answer, made.answer_line = expression, line
            case _:
                made.body.append(self.statements.statement(item))

    def _new(self, name: str, line: int) -> None:
        if name in self.made.tables or (name in self.made.records):
            raise ProcedureError(f"{name!r} is already declared", line=line)

    def _input(self, entry: Any) -> Input:
        kind, default = NUMBER if entry.type is None else self.made.read_type(entry.type, entry.line), entry.default
        if default is None:
            return located(entry.line, Input, entry.name, kind)
        if entry.type is None and isinstance(default, LiteralTerm) and default.type is not None:
            kind = default.type  # limit = 500 EUR
        try:
            value = constant(default, kind)
        except ValueError as error:
            raise ProcedureError(str(error), line=entry.line) from None
        return located(entry.line, Input, entry.name, kind, default=value)

    def _table(self, block: TableBlock) -> Any:
        keys = {name: TEXT if kind is None else self.made.read_type(kind, block.line) for name, kind in block.columns}
        if len(keys) < len(block.columns):
            raise ProcedureError(f"table {block.name!r} has two keys of one name", line=block.line)
        value = self.made.read_type(block.type, block.line)
        if block.file is not None:
            return located(block.line, Table.from_csv, block.name, self._file(block), keys=keys, value=value)
        try:
            return Table(block.name, keys, value, [[*row[:-1], _cell(row[-1])] for _, row in block.rows])
        except ProcedureError as error:
            number = _ROW.search(error.message)
            line = block.line if number is None else block.rows[int(number[1]) - 1][0]
            raise ProcedureError(error.message, line=line) from error

    def _file(self, block: TableBlock) -> str:
        """The text of the file that a table is read from."""
        if self.folder is None:
            raise ProcedureError(
                f"table {block.name!r} stands in a file, which only a procedure in a file can name: write its rows",
                line=block.line,
            )
        path = self.folder / str(block.file)
        # A procedure from elsewhere must not read any file of the machine by "../".
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise ProcedureError(f"{block.file!r} lies outside of the folder of the procedure", line=block.line)
        try:
            return path.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise ProcedureError(f"{block.file!r} cannot be read: {error}", line=block.line) from error
