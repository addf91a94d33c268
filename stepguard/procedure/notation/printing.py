"""Print procedures as text that reads back as an equal procedure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from stepguard.language.expressions import Expression, format_value
from stepguard.language.records import RecordType
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.terms.operands import LiteralTerm
from stepguard.language.value_types import NUMBER, TEXT, ValueType
from stepguard.procedure.inputs import Input
from stepguard.procedure.notation.settings import quoted, write_check
from stepguard.procedure.statements import Body, ForEach, If, ProcedureCall, Repeat, steps_in
from stepguard.procedure.steps import PLACEHOLDER, Step

if TYPE_CHECKING:
    from stepguard.procedure.procedure import Procedure

_NO_TEXT: Final = "text cannot hold it, YAML can"
_PLAIN_NAME: Final = re.compile(r"[^\W\d_](?:[\w ,.()/+\'&-]*[\w.)])?\Z")
# What reads back as the same key without quotes.
_PLAIN_KEY: Final = re.compile(r"""[^\W_](?:[\w .%+'/\u00b2\u00b3-]*\w)?%?\Z|[0-9]{1,2}:[0-9]{2}\Z""")
# Values that read back as they are without quotes.
_LITERAL: Final = re.compile(r"-?[0-9.]+(?:%| [^\W\d_]+)?\Z|[0-9:-]+\Z|(?:true|false)\Z|\[")
_HEADERS: Final = frozenset({"name", "inputs", "answer"})


def print_procedure(procedure: Procedure) -> str:
    """The text of a procedure.

    What text cannot hold (checks of your own, some options) stands in a line of its own below its step, which says so.
    Reading that again is refused, so that nothing is lost unseen.
    """
    return "\n".join(_Printer().lines(procedure)) + "\n"


class _Printer:
    def __init__(self) -> None:
        self.called: dict[int, str] = {}

    def lines(self, procedure: Procedure, *, name: str = "procedure") -> Iterator[str]:
        """The lines of a procedure; of one that is called without the block they stand in."""
        if procedure.name != name:
            plain = _PLAIN_NAME.match(procedure.name) is not None
            yield f"name: {procedure.name if plain else quoted(procedure.name)}"
        if procedure.inputs:
            yield f"inputs: {', '.join(map(_input, procedure.inputs))}"
        yield from _records(procedure)
        for table in procedure.tables.values():
            yield from _table(table)
        body: Any = getattr(procedure, "body", procedure.steps)
        yield from self._procedures(body)
        yield from self.body(body, "")
        answer = procedure.answer
        if answer != _last(body):
            yield f"answer: {answer}"

    def _procedures(self, body: Body) -> Iterator[str]:
        for statement in body:
            match statement:
                case ProcedureCall(_, procedure) if id(procedure) not in self.called:
                    name = _identifier(procedure.name, set(self.called.values()))
                    inner = list(self.lines(procedure, name=name))
                    self.called[id(procedure)] = name
                    yield f"procedure {name}:"
                    yield from (f"  {line}" for line in inner)
                case If(branches, otherwise):
                    for branch in (*(inner for _, inner in branches), otherwise):
                        yield from self._procedures(branch)
                case ForEach(_, _, inner) | Repeat(_, inner):
                    yield from self._procedures(inner)

    def body(self, body: Body, indent: str) -> Iterator[str]:
        deeper = f"{indent}  "
        label = 0
        for statement in body:
            match statement:
                case Step():
                    # A step called `answer` needs a number in front, or it would be read as the declaration.
                    label += (labelled := statement.id in _HEADERS)
                    lines = _step(statement)
                    yield f"{indent}{f'{label}. ' if labelled else ''}{lines[0]}"
                    yield from (f"{deeper}{line}" for line in lines[1:])
                case If(branches, otherwise):
                    word = "if"
                    for condition, inner in branches:
                        yield f"{indent}{word} {format_value(condition)}:"
                        yield from self.body(inner, deeper)
                        word = "else if"
                    if otherwise:
                        yield f"{indent}else:"
                        yield from self.body(otherwise, deeper)
                case ForEach(variable, over, inner):
                    yield f"{indent}for each {variable} in {format_value(over)}:"
                    yield from self.body(inner, deeper)
                case Repeat(most, inner, until):
                    yield f"{indent}repeat at most {most} times until {format_value(until)}:"
                    yield from self.body(inner, deeper)
                case ProcedureCall(name, procedure, arguments):
                    yield f"{indent}{name} = call {self.called[id(procedure)]}({_arguments(arguments)})"


def _records(procedure: Procedure) -> Iterator[str]:
    """The lines of the records that types refer to, of the caller's own classes, too, and of declared ones."""
    found: dict[str, RecordType] = {}
    lines: list[str] = []

    def add(kind: ValueType) -> None:
        if kind.items is not None:
            add(kind.items)
        if (record := kind.record) is None or found.get(record.name) == record:
            return
        for _, inner in record.fields:
            add(inner)
        # A record stands behind those that it names.
        lines.append(f"record {record.name}:" if record.name not in found else f"(another record is {record.name})")
        lines.extend(f"  {key}: {inner}" for key, inner in record.fields)
        found[record.name] = record

    for record in procedure.records:
        add(ValueType(kind="record", record=record))
    if procedure.look_back is None:
        for kind in (*(each.type for each in procedure.inputs), *(step.type for step in steps_in(procedure.body))):
            add(kind)
    return iter(lines)


def _last(body: Body) -> str:
    last = body[len(body) - 1]
    return last.id if isinstance(last, Step | ProcedureCall) else ""


def _identifier(name: str, reserved: set[str]) -> str:
    base = re.sub(r"[^A-Za-z0-9_]+", "_", name).strip("_") or "procedure"
    base = base if not base[0].isdigit() else f"p_{base}"
    identifier, number = base, 1
    while identifier in reserved:
        number += 1
        identifier = f"{base}_{number}"
    return identifier


def _input(declared: Input) -> str:
    text = declared.name if declared.type == NUMBER else f"{declared.name}: {declared.type}"
    return text if declared.default is None else f"{text} = {_default(declared, declared.default)}"


def _default(declared: Input, value: object) -> str:
    written = declared.type.write(value)  # type: ignore[arg-type]
    kind = declared.type.kind
    if kind == "money":
        return f"{written} {declared.type.currency}"
    bare = kind not in ("text", "one_of") and _LITERAL.match(written)
    return written if bare else quoted(written)


def _arguments(arguments: tuple[tuple[str, Expression], ...]) -> str:
    return ", ".join(f"{name}={format_value(value)}" for name, value in arguments)


def _step(step: Step) -> list[str]:
    # What is made of operands is, without a type, what they make: `count of xs` an integer.
    number = step.type == NUMBER and step.expression is not None and not step.rich
    line = step.id if number else f"{step.id}: {step.type}"
    option = False  # which would be read as the option, and asked of nobody
    words = None if step.instruction is None else quoted(step.instruction)
    if step.operation is not None:
        line = f"{line} = {step.performer} {step.operation}({_arguments(step.arguments)})"
    elif step.expression is not None:
        shown = format_value(step.expression)
        if isinstance(step.expression, LiteralTerm) and isinstance(step.expression.value, str):
            # Bare quotes behind = are words for the model; brackets make them a value.
            shown = f"({shown})" if step.expression.text is None else shown
        line = f"{line} = {'by code ' if step.performer == 'code' else ''}{shown}"
    else:
        line = f"{line} = {'ask person ' if step.performer == 'person' else ''}{words}"
        words = None
        read = _declared_reads(step)
        line += f" (reads {', '.join(read)})" if read else ""
        option = step.performer == "model" and not read and step.instruction in step.type.options
    line += "" if words is None else f"  {words}"
    written = [write_check(check) for check in step.checks]
    line += f"  check: {'; '.join(map(str, written))}" if written and None not in written else ""
    beside = [f"check {check!r}" for check in step.checks] if None in written else []
    usual = _usual(step)
    beside += [
        f"{name} {str(getattr(step, name)).lower()}" for name, value in usual.items() if getattr(step, name) != value
    ]
    lines = [line, *(f"({' '.join(each.split())}: {_NO_TEXT})" for each in beside)]
    return [*lines, "(the option is asked as an instruction: only Python can hold it)"] if option else lines


def _usual(step: Step) -> Mapping[str, bool]:
    if step.operation is not None:
        return {}
    instruction = None if step.expression is not None else step.instruction
    plain = Step("usual", step.expression, instruction=instruction)
    return {"show_work": plain.show_work, "with_next": plain.with_next}


def _declared_reads(step: Step) -> tuple[str, ...]:
    """The reads of a step in words that its text has to declare."""
    placed = tuple(dict.fromkeys(PLACEHOLDER.findall(step.instruction or "")))
    return () if step.performer == "person" and step.reads == placed else step.reads


def _table(table: Table) -> Iterator[str]:
    keys = (key if kind == TEXT else f"{key}: {kind}" for key, kind in table.keys)
    yield f"table {table.name}: {', '.join(keys)} -> {table.value}"
    for *row, value in table.rows:
        texts = table.value.kind in ("text", "one_of")
        yield f"  {', '.join(map(_key, row))}: {quoted(value) if texts else value}"


def _key(text: str) -> str:
    """A key of a row; what the notation has signs of its own for stands in quotes."""
    return text if text.startswith('"') or _PLAIN_KEY.match(text) else quoted(text)
