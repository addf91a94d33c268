"""What is wrong with a procedure whatever its inputs are: found when it is made, with the remedy.

Every variable that is read has a value on every way there, is of a type that can be computed with, and is set once
(only `repeat` sets one again); conditions are truth values, lists are lists, the answer is reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from stepguard.core.verdicts import shorten
from stepguard.errors import ProcedureError
from stepguard.language.expressions import Expression, format_expression
from stepguard.language.lookup_tables import Table
from stepguard.language.term_types import type_of
from stepguard.language.terms import variables_in
from stepguard.language.type_relations import fits
from stepguard.language.value_types import ValueType
from stepguard.procedure.statements import Body, ForEach, If, ProcedureCall, Repeat, Statement, assigned
from stepguard.procedure.steps import Input, Step, check_operands

__all__ = ["check_flow"]


@dataclass
class _State:
    """What is known where a statement stands.

    Attributes:
        types: the variables that have a value, with their types.
        partial: those that have one on some ways only, with the way on which it is missing.
        fresh: those that were set in this round of a loop.
        carried: those that may be set again, since a loop carries them over.
        outside: those that stand outside of the `for each` around, whose rounds do not see each other.
    """

    types: dict[str, ValueType]
    partial: dict[str, str] = field(default_factory=dict)
    fresh: set[str] = field(default_factory=set)
    carried: frozenset[str] = frozenset()
    outside: frozenset[str] = frozenset()

    def copy(self) -> _State:
        return _State(dict(self.types), dict(self.partial), set(self.fresh), self.carried, self.outside)


def check_flow(
    body: Body,
    inputs: Iterable[Input],
    answer: Expression | None,
    tables: Mapping[str, Table],
    lines: Mapping[int, int] | None = None,
) -> ValueType | None:
    """Check a body with everything in it.

    Args:
        body: the steps and statements.
        inputs: what the caller gives.
        answer: the result.
        tables: what expressions look up in.
        lines: the line of each statement under its `id()`, where it stands in a text.

    Returns:
        the type of the answer, None where there is none.

    Raises:
        ProcedureError: something cannot be right.
    """
    state = _State({each.name: each.type for each in inputs})
    checker = _Checker(tables, lines or {}, frozenset(assigned(body)))
    for name in tables:
        if name in state.types:
            raise ProcedureError(f"{name!r} is an input and a table: call one of them otherwise")
    checker.body(body, state)
    if answer is None:
        return None
    return checker.value(answer, state, "the answer", None)


class _Checker:
    def __init__(self, tables: Mapping[str, Table], lines: Mapping[int, int], names: frozenset[str]) -> None:
        self.tables = tables
        self.lines = lines
        self.names = names

    def error(self, message: str, statement: Statement | None) -> ProcedureError:
        step = statement.id if isinstance(statement, Step | ProcedureCall) else None
        return ProcedureError(message, line=self.lines.get(id(statement)), step=step)

    def body(self, body: Body, state: _State) -> None:
        """Check statements one after the other; `state` becomes what is known behind them."""
        for statement in body:
            match statement:
                case Step():
                    self.step(statement, state)
                case If():
                    self.branches(statement, state)
                case ForEach():
                    self.rounds(statement, state)
                case Repeat():
                    self.repeated(statement, state)
                case ProcedureCall():
                    self.call(statement, state)

    def value(self, tree: Expression, state: _State, what: str, statement: Statement | None) -> ValueType:
        """The type of an expression whose variables all have values."""
        self.reads(variables_in(tree), state, what, statement)
        try:
            return type_of(tree, state.types, self.tables)
        except ProcedureError as error:
            if error.line is not None:
                raise
            raise self.error(f"{what}: {error.message}", statement) from error

    def reads(self, names: Iterable[str], state: _State, what: str, statement: Statement | None) -> None:
        """Refuse a variable that may have no value here."""
        for name in names:
            if name in state.types or name in self.tables:
                continue
            if name in state.partial:
                raise self.error(
                    f"{what} reads {name!r}, which is not set {state.partial[name]}: set it there, too", statement
                )
            if isinstance(statement, Step) and name == statement.id:
                raise self.error(f"{what} reads its own value", statement)
            if name in self.names:
                raise self.error(
                    f"{what} reads {name!r}, which only a later step sets, or one of another block", statement
                )
            near = get_close_matches(name, [*state.types, *self.tables], n=1)
            hint = f": did you mean {near[0]!r}?" if near else ""
            if what == "the answer":
                raise self.error(f"unreachable answer: no step sets {name!r} and it is no input{hint}", statement)
            raise self.error(f"{what} reads {name!r}, which is no input and set by no step{hint}", statement)

    def set(self, name: str, kind: ValueType, state: _State, statement: Statement) -> None:
        """Note that a variable is set."""
        if name in self.tables:
            raise self.error(f"{name!r} is a table, and no step can set it", statement)
        if name in state.partial:
            raise self.error(
                f"{name!r} is already set above on some ways, not {state.partial[name]}: set it once on each way",
                statement,
            )
        if name in state.types:
            if name in state.fresh or name not in state.carried:
                raise self.error(
                    f"duplicate id: {name!r} is already set above; `repeat` alone sets one again, once a round",
                    statement,
                )
            if state.types[name] != kind:
                raise self.error(
                    f"{name!r} is {state.types[name]} and becomes {kind} in a loop: declare one type for both",
                    statement,
                )
        state.types[name] = kind
        state.fresh.add(name)

    def step(self, step: Step, state: _State) -> None:
        what = f"step {step.id!r}"
        self.reads(step.reads, state, what, step)
        for _, argument in step.arguments:
            self.value(argument, state, what, step)
        sources = {name: Input(name, state.types[name]) for name in step.reads if name in state.types}
        plain = not step.rich and all(each.type.scalar for each in sources.values()) and step.type.scalar
        if step.expression is None or plain:
            try:
                check_operands(step, sources)
            except ProcedureError as error:
                raise self.error(error.message, step) from error
        else:
            found = self.value(step.expression, state, what, step)
            if not fits(found, step.type):
                raise self.error(
                    f"{what} is {step.type}, and its expression gives {found}: declare `{step.id}: {found}`", step
                )
        self.set(step.id, step.type, state, step)

    def condition(self, tree: Expression, state: _State, word: str, statement: Statement) -> None:
        kind = self.value(tree, state, f"the condition of `{word}`", statement)
        if kind.kind != "boolean":
            shown = shorten(format_expression(tree), 60)
            raise self.error(
                f"the condition of `{word}` is a truth value, and {shown!r} is {kind}: compare it", statement
            )

    def branches(self, statement: If, state: _State) -> None:
        ends: list[tuple[str, _State]] = []
        for condition, body in statement.branches:
            self.condition(condition, state, "if", statement)
            end = state.copy()
            self.body(body, end)
            ends.append((f"where `{shorten(format_expression(condition), 60)}` holds", end))
        end = state.copy()
        self.body(statement.otherwise, end)
        ends.append(
            (
                "in the `else` branch"
                if statement.otherwise
                else "where no condition of the `if` holds, which has no `else`",
                end,
            )
        )
        line = self.lines.get(id(statement))
        place = "" if line is None else f" (`if` in line {line})"
        for _, end in ends:
            state.fresh |= end.fresh
            state.partial.update(end.partial)
        for name in dict.fromkeys(name for _, end in ends for name in end.types):
            kinds = [end.types.get(name) for _, end in ends]
            missing = next((way for way, end in ends if name not in end.types), None)
            if missing is not None:
                state.partial.setdefault(name, f"{missing}{place}")
            elif kinds.count(kinds[0]) < len(kinds):
                shown = " and ".join(dict.fromkeys(map(str, kinds)))
                raise self.error(
                    f"{name!r} is {shown} in different branches: declare one type in all of them", statement
                )
            elif kinds[0] is not None:
                state.types[name] = kinds[0]

    def rounds(self, statement: ForEach, state: _State) -> None:
        over = self.value(statement.over, state, "`for each`", statement)
        if over.items is None:
            shown = shorten(format_expression(statement.over), 60)
            raise self.error(f"`for each` goes through a list, and {shown!r} is {over}", statement)
        if (
            statement.variable in state.types
            or statement.variable in state.partial
            or statement.variable in self.tables
        ):
            raise self.error(
                f"{statement.variable!r} has a value already: call the item of `for each` otherwise", statement
            )
        types = {**state.types, statement.variable: over.items}
        inner = _State(types, dict(state.partial), outside=frozenset(types))
        self.body(statement.body, inner)
        for name, kind in inner.types.items():
            if name not in state.types and name != statement.variable:
                state.types[name] = ValueType(kind="list", items=kind)
                state.fresh.add(name)
        state.partial.update(inner.partial)

    def repeated(self, statement: Repeat, state: _State) -> None:
        carried = frozenset(state.types) - state.outside
        inner = _State(dict(state.types), dict(state.partial), set(), carried, state.outside)
        self.body(statement.body, inner)
        self.condition(statement.until, inner, "repeat", statement)
        state.types, state.partial = inner.types, inner.partial
        state.fresh |= inner.fresh

    def call(self, statement: ProcedureCall, state: _State) -> None:
        what = f"step {statement.id!r}"
        called = statement.procedure
        declared = {each.name: each.type for each in called.inputs}
        for name, argument in statement.arguments:
            found = self.value(argument, state, what, statement)
            if not fits(found, declared[name]):
                raise self.error(
                    f"{what} gives {called.name} {name!r} as {found}, and it is {declared[name]} there", statement
                )
        self.set(statement.id, called.answer_type, state, statement)
