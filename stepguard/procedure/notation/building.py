"""Build the nodes of a procedure from a parsed text: make steps, resolve names, give errors their line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeVar

from stepguard.errors import ConfigError, ExpressionError, ProcedureError, ValueRefused
from stepguard.language.expressions import Expression, Name, format_expression
from stepguard.language.records import RecordType
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.terms.operands import LiteralTerm, operands_in, variables_in
from stepguard.language.terms.type_inference import type_of
from stepguard.language.value_types import NUMBER, TEXT, ValueType
from stepguard.procedure.check_registry import call_check
from stepguard.procedure.inputs import Input
from stepguard.procedure.notation.layout import MAX_BLOCKS
from stepguard.procedure.notation.settings import check_setting, constant
from stepguard.procedure.notation.trees import (
    AnswerLine,
    CheckCall,
    Content,
    InputsBlock,
    ProcedureBlock,
    RawForEach,
    RawIf,
    RawRepeat,
    RawStatement,
    RawStep,
    RecordBlock,
    TableBlock,
    TitleLine,
)
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.statements import Body, ForEach, If, ProcedureCall, Repeat, Statement
from stepguard.procedure.static_checks import check_flow
from stepguard.procedure.steps import Step

_T = TypeVar("_T")
_ROW: Final = re.compile(r", row ([0-9]+)")
_PERFORMERS: Final = {"formula": "model", "words": "model", "code": "code", "person": "person"}


@dataclass
class ParsedProcedure:
    """The declarations of a text, and the line of everything in it.

    Attributes:
        lines: the line of each statement, under the `id()` of it.
        procedures: the procedures that it may call.
        inherited: the records that are declared around it.
    """

    name: str | None = None
    inputs: dict[str, Input] = field(default_factory=dict)
    inputs_line: int = 0
    records: dict[str, RecordType] = field(default_factory=dict)
    inherited: frozenset[str] = frozenset()
    tables: dict[str, Any] = field(default_factory=dict)
    procedures: dict[str, Procedure] = field(default_factory=dict)
    body: list[Statement] = field(default_factory=list)
    answer: Expression | None = None
    answer_line: int = 0
    lines: dict[int, int] = field(default_factory=dict)


def located(line: int, make: Callable[..., _T], *given: Any, **options: Any) -> _T:
    """Call a function, and raise its errors as ProcedureError with a line."""
    try:
        return make(*given, **options)
    except ProcedureError as error:
        if error.line is not None:
            raise
        raise ProcedureError(error.message, line=line, step=error.step) from error
    except (ExpressionError, ConfigError) as error:
        raise ProcedureError(str(error), line=line) from error


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


def _as_value(content: Content, kind: ValueType) -> Content:
    """Words that are a value of the step's type and ask nobody anything: an option is that value.

    Raises ProcedureError: they are a value of another type, which stands without quotes.
    """
    words = content.words
    if content.kind != "words" or content.reads or words is None:
        return content
    # `verdict: one_of("yes", "no") = "yes"` sets the value; asked as an instruction it would cost a call.
    if words in kind.options:
        return Content("formula", LiteralTerm(words))
    if kind.options or kind.kind == "boolean" or (words[:1].isdigit() and kind.kind != "text"):
        try:
            value = kind.write(kind.read(words))
        except ValueRefused:
            if near := get_close_matches(words, kind.options, n=1):
                raise ProcedureError(f"{words!r} is none of the options: did you mean {near[0]!r}?") from None
            return content
        value = f'"{value}"' if kind.options else value
        raise ProcedureError(f"the words {words!r} are a value, and words are what is asked: write {value}")
    return content


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
    def __init__(self, made: ParsedProcedure, folder: Path | None, open: frozenset[str]) -> None:
        self.made = made
        self.folder = folder
        self.open = open
        self.labels = [-1]
        self.types: dict[str, ValueType] = {}

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
                    self.types[entry.name] = made.inputs[entry.name].type
            case RecordBlock(line, name, fields):
                self._new(name, line)
                kinds = tuple((key, self.read_type(kind, at)) for at, key, kind in fields)
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
                made.body.append(self._statement(item))

    def _new(self, name: str, line: int) -> None:
        if name in self.made.tables or (name in self.made.records):
            raise ProcedureError(f"{name!r} is already declared", line=line)

    def _input(self, entry: Any) -> Input:
        kind, default = NUMBER if entry.type is None else self.read_type(entry.type, entry.line), entry.default
        if default is None:
            return located(entry.line, Input, entry.name, kind)
        if entry.type is None and isinstance(default, LiteralTerm) and default.type is not None:
            kind = default.type  # limit = 500 EUR
        try:
            value = constant(default, kind)
        except ValueError as error:
            raise ProcedureError(str(error), line=entry.line) from None
        return located(entry.line, Input, entry.name, kind, default=value)

    def read_type(self, text: str, line: int) -> ValueType:
        records = self.made.records
        return (
            located(line, ValueType.parse, text, records=records) if records else located(line, ValueType.parse, text)
        )

    def _table(self, block: TableBlock) -> Any:
        keys = {name: TEXT if kind is None else self.read_type(kind, block.line) for name, kind in block.columns}
        if len(keys) < len(block.columns):
            raise ProcedureError(f"table {block.name!r} has two keys of one name", line=block.line)
        value = self.read_type(block.type, block.line)
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

    def _block(self, body: Iterable[RawStatement]) -> Body:
        self.labels.append(-1)
        made = tuple(map(self._statement, body))
        self.labels.pop()
        return made

    def _rounds(self, raw: RawForEach) -> Body:
        """The body of `for each`; what it sets is a list behind it."""
        known = dict(self.types)
        if known.keys() | self.made.tables.keys() >= set(variables_in(raw.over)):
            over = located(raw.line, type_of, raw.over, known, self.made.tables)
            if over.items is None:
                raise ProcedureError(
                    f"`for each` goes through a list, and {format_expression(raw.over)!r:.60} is {over}", line=raw.line
                )
            self.types[raw.variable] = over.items
        body = self._block(raw.body)
        new = self.types.keys() - known.keys() - {raw.variable}
        # The item and the body's own values end with the loop; outside, each is a list with one value a round.
        self.types = known | {name: ValueType(kind="list", items=self.types[name]) for name in new}
        return body

    def _statement(self, raw: RawStatement) -> Statement:
        if raw.label is not None:
            if raw.label <= self.labels[-1]:
                raise ProcedureError(
                    f"step number {raw.label} follows {self.labels[-1]}: numbers must increase", line=raw.line
                )
            self.labels[-1] = raw.label
        made: Statement
        match raw:
            case RawStep():
                made = self._step(raw)
            case RawIf(_, branches, otherwise):
                pairs = [(condition, self._block(body)) for _, condition, body in branches]
                made = located(raw.line, If, tuple(pairs), self._block(otherwise))
            case RawForEach(_, variable, over, _):
                made = located(raw.line, ForEach, variable, over, self._rounds(raw))
            case RawRepeat(_, most, until, body):
                made = located(raw.line, Repeat, most, self._block(body), until=until)
        self.made.lines[id(made)] = raw.line
        return made

    def _step(self, raw: RawStep) -> Statement:
        content = raw.content
        if content.kind == "call":
            return self._call(raw)
        options: dict[str, Any] = {}
        kind = self.read_type(raw.type, raw.line) if raw.type is not None else self._kind_of(raw)
        if kind is not None:
            options["type"] = kind
            content = located(raw.line, _as_value, content, kind)
        if content.operation is not None:
            options |= {"operation": content.operation, "arguments": content.arguments}
        if content.reads:
            options["reads"] = content.reads
        made = located(
            raw.line,
            Step,
            raw.id,
            content.expression,
            instruction=content.words,
            **{
                "performer": _PERFORMERS.get(content.kind, content.kind),
                "checks": [self._check(check, raw.line) for check in raw.checks],
                **options,
                **raw.options,
            },
        )
        self.types[raw.id] = made.type
        return made

    def _kind_of(self, raw: RawStep) -> ValueType | None:
        """The type of a step that declares none, where that is not simply a number or a truth value.

        What is set again in a loop stays of its type; what is made of operands is what they make.
        """
        if raw.id in self.types:
            return self.types[raw.id]
        tree = raw.content.expression
        if tree is None or (
            next(operands_in(tree), None) is None and not (type(tree) is Name and self._structured(tree.name))
        ):
            return None
        if not self.types.keys() | self.made.tables.keys() >= set(variables_in(tree)):
            return None  # which is complained of where the whole is checked
        return located(raw.line, type_of, tree, self.types, self.made.tables)

    def _structured(self, name: str) -> bool:
        return name in self.types and not self.types[name].scalar

    def _check(self, call: CheckCall, line: int) -> Any:
        values = [check_setting(each) for each in call.values]
        return located(line, call_check, call.name, values, {key: check_setting(each) for key, each in call.options})

    def _call(self, raw: RawStep) -> ProcedureCall:
        content = raw.content
        name = content.operation or ""
        if raw.checks:
            raise ProcedureError(
                f"step {raw.id!r} calls a procedure: its checks stand behind the step of {name!r} that sets the answer",
                line=raw.line,
            )
        # Recursion is not declared above, so it would get the less helpful message below.
        if name in self.open:
            raise ProcedureError(f"the procedure {name!r} calls itself: use `repeat` or `for each`", line=raw.line)
        if name not in self.made.procedures:
            known = f"there are {', '.join(self.made.procedures)}" if self.made.procedures else "none is"
            raise ProcedureError(
                f"no procedure {name!r} is declared above ({known}): write a block `procedure {name}:`", line=raw.line
            )
        called = self.made.procedures[name]
        if raw.type is not None and (declared := self.read_type(raw.type, raw.line)) != called.answer_type:
            raise ProcedureError(
                f"{raw.id!r} is {declared}, and the answer of {name!r} is {called.answer_type}: leave the type out",
                line=raw.line,
            )
        made = located(raw.line, ProcedureCall, raw.id, called, content.arguments)
        self.types[raw.id] = called.answer_type
        return made
