"""Build the statements of a procedure from a parsed text: steps, branches, loops and calls, each with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final, TypeVar

from stepguard.errors import ConfigError, ExpressionError, ProcedureError, ValueRefused
from stepguard.language.expressions import Expression, Name, format_expression
from stepguard.language.records import RecordType
from stepguard.language.terms.operands import LiteralTerm, operands_in, variables_in
from stepguard.language.terms.type_inference import type_of
from stepguard.language.value_types import ValueType
from stepguard.procedure.check_registry import call_check
from stepguard.procedure.inputs import Input
from stepguard.procedure.notation.nodes import CheckCall, Content, RawForEach, RawIf, RawRepeat, RawStatement, RawStep
from stepguard.procedure.notation.settings import check_setting
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.statements import Body, ForEach, If, ProcedureCall, Repeat, Statement
from stepguard.procedure.steps import Step

_T = TypeVar("_T")
_PERFORMERS: Final = {"formula": "model", "words": "model", "code": "code", "person": "person"}


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

    def read_type(self, text: str, line: int) -> ValueType:
        """A type as it is written. Raises ProcedureError: it is none."""
        options = {"records": self.records} if self.records else {}
        kind: ValueType = located(line, ValueType.parse, text, **options)
        return kind


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


class StatementBuilder:
    """Makes statements, for a procedure whose declarations are known.

    Args:
        open: the names of the procedures that it stands in.

    Attributes:
        types: the types of the variables so far.
    """

    def __init__(self, made: ParsedProcedure, open: frozenset[str]) -> None:
        self.made = made
        self.open = open
        self.labels = [-1]  # the number in front of the last statement, of each block around
        self.types: dict[str, ValueType] = {}

    def _block(self, body: Iterable[RawStatement]) -> Body:
        self.labels.append(-1)
        made = tuple(map(self.statement, body))
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

    def statement(self, raw: RawStatement) -> Statement:
        """What a statement of the text is."""
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
        kind = self.made.read_type(raw.type, raw.line) if raw.type is not None else self._kind_of(raw)
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
        if raw.type is not None and (declared := self.made.read_type(raw.type, raw.line)) != called.answer_type:
            raise ProcedureError(
                f"{raw.id!r} is {declared}, and the answer of {name!r} is {called.answer_type}: leave the type out",
                line=raw.line,
            )
        made = located(raw.line, ProcedureCall, raw.id, called, content.arguments)
        self.types[raw.id] = called.answer_type
        return made
