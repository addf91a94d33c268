"""Find what is wrong with a procedure whatever its inputs are, when it is made, with the remedy.

Every variable that is read has a value on every way there, is of a type that can be computed with, and is set once
(only `repeat` sets one again); conditions are truth values, lists are lists, the answer is reached.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Final

from stepguard.core.verdicts import shorten
from stepguard.errors import ProcedureError
from stepguard.language.expressions import Expression, format_expression
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.terms.operands import texts_in, variables_in
from stepguard.language.terms.percentages import check_value
from stepguard.language.terms.type_inference import type_of
from stepguard.language.terms.type_relations import fits, in_currencies, joined
from stepguard.language.unit_names import factors_of
from stepguard.language.value_types import NUMBER, ValueType
from stepguard.procedure.flow_state import FlowState
from stepguard.procedure.inputs import Input
from stepguard.procedure.operands import check_operands
from stepguard.procedure.statements import Body, ForEach, If, ProcedureCall, Repeat, Statement, assigned
from stepguard.procedure.steps import EFFECTIVE, Step

_BRACED: Final = re.compile(r"\{\s*([A-Za-z_]\w*)[^{}]*\}")

_TABLE: Final = re.compile(r"\{\s*([A-Za-z_]\w*)\s*(?:\[[^{}]*\]\s*)?\}")
"""A table in braces, or a row of it."""

Shown = Mapping[str, Mapping[str, ValueType]]
"""The types of what a person is shown, with their currencies: by the site of the step, and by name."""
FlowFound = tuple[ValueType, ValueType, Shown]
PricedCalls = dict[tuple[int, tuple[tuple[str, ValueType], ...]], FlowFound]


def check_flow(
    body: Body,
    inputs: Iterable[Input],
    answer: Expression | None,
    tables: Mapping[str, Table],
    lines: Mapping[int, int] | None = None,
    *,
    money: Mapping[str, ValueType] = MappingProxyType({}),
    calls: PricedCalls | None = None,
) -> FlowFound | None:
    """Check a body with everything in it.

    Args:
        lines: the line of each statement under its `id()`, where it stands in a text.
        money: the types of inputs that are given in a currency which their own type does not name.
        calls: what was found before for calls with such inputs.

    Returns:
        the type of the answer, the same with the currencies that it is in, and the types of what a person is shown, by
        site and name; None where there is no answer.

    Raises:
        ProcedureError: something cannot be right.
    """
    state = FlowState(ChainMap({each.name: each.type for each in inputs}), ChainMap({**money}))
    checker = _Checker(tables, lines or {}, frozenset(assigned(body)), {} if calls is None else calls)
    for name in tables:
        if name in state.types:
            raise ProcedureError(f"{name!r} is an input and a table: call one of them otherwise")
    checker.body(body, state)
    if answer is None:
        return None
    found = checker.value(answer, state, "the answer", None)
    return type_of(answer, state.types, tables), found, checker.shown


class _Checker:
    def __init__(
        self, tables: Mapping[str, Table], lines: Mapping[int, int], names: frozenset[str], calls: PricedCalls
    ) -> None:
        self.tables = tables
        self.lines = lines
        self.names = names
        self.calls = calls
        self.shown: dict[str, Mapping[str, ValueType]] = {}

    def error(self, message: str, statement: Statement | None) -> ProcedureError:
        step = statement.id if isinstance(statement, Step | ProcedureCall) else None
        return ProcedureError(message, line=self.lines.get(id(statement)), step=step)

    def body(self, body: Body, state: FlowState, block: str = "") -> None:
        """Check statements one after the other; `state` becomes what is known behind them.

        A site is that of the block and the number of the statement, as it is in a run.
        """
        for number, statement in enumerate(body):
            site = f"{block}{number}"
            match statement:
                case Step():
                    self.step(statement, state, site)
                case If():
                    self.branches(statement, state, site)
                case ForEach():
                    self.rounds(statement, state, site)
                case Repeat():
                    self.repeated(statement, state, site)
                case ProcedureCall():
                    self.call(statement, state, site)

    def value(
        self, tree: Expression, state: FlowState, what: str, statement: Statement | None, into: ValueType = NUMBER
    ) -> ValueType:
        """The type of an expression whose variables all have values; `into` as for `type_of`."""
        self.reads(variables_in(tree), state, what, statement)
        for text in texts_in(tree):
            braced = _BRACED.search(text)
            if braced is not None and braced[1] in state.types:
                raise self.error(
                    f"{what}: {braced[0]!r} in {shorten(text, 40)!r} would stand there as it is, since braces are "
                    "filled in for a person who is asked and nowhere else: let a function write the text",
                    statement,
                )
        try:
            return type_of(tree, state.known, self.tables, into=into)
        except ProcedureError as error:
            if error.line is not None:
                raise
            raise self.error(f"{what}: {error.message}", statement) from error

    def reads(self, names: Iterable[str], state: FlowState, what: str, statement: Statement | None) -> None:
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
            # Python's True is no name of the language.
            near = [name.lower()] if name.lower() in ("true", "false") else near
            hint = f": did you mean {near[0]!r}?" if near else ""
            if not near and factors_of(name) is not None:  # `5 mg/mL` is `5 mg` divided by a variable
                hint = f": a unit stands behind a number, such as `1 {name}`"
            if what == "the answer":
                raise self.error(f"unreachable answer: no step sets {name!r} and it is no input{hint}", statement)
            raise self.error(f"{what} reads {name!r}, which is no input and set by no step{hint}", statement)

    def set(self, name: str, kind: ValueType, state: FlowState, statement: Statement, found: ValueType | None) -> None:
        """Note that a variable is set; `found` is the type of its expression, which may be in a currency."""
        if name in self.tables:
            raise self.error(f"{name!r} is a table, and no step can set it", statement)
        if name in state.partial:
            raise self.error(
                f"{name!r} is already set above on some ways, not {state.partial[name]}: set it once on each way",
                statement,
            )
        if name in state.types:
            # Only `repeat` sets a variable again, and once a round: a second time would hide the first value.
            if name in state.fresh or not state.carries(name):
                raise self.error(
                    f"duplicate id: {name!r} is already set above, and only `repeat` sets one again, once a round: "
                    f"choose its value in one step (`{name} = a if c else b`), take `sum of` what a loop sets, "
                    "or give it another name",
                    statement,
                )
            if state.types[name] != kind:
                raise self.error(
                    f"{name!r} is {state.types[name]} and becomes {kind} in a loop: declare one type for both",
                    statement,
                )
        state.types[name] = kind
        state.fresh[name] = None
        if found is not None and (carried := in_currencies(kind, found)) != kind:
            state.money[name] = carried

    def step(self, step: Step, state: FlowState, site: str) -> None:
        what = f"step {step.id!r}"
        self.reads(step.reads, state, what, step)
        braced = _TABLE.findall(step.instruction or "")
        read = step.reads if step.expression is None and step.operation is None else ()
        table = next((name for name in (*read, *braced) if name in self.tables), None)
        if table is not None:
            raise self.error(
                f"{what} reads the table {table!r} in words: let a step look its row up before, such as "
                f"`row = {table}[...]`, and read that one, `(reads row)`",
                step,
            )
        arguments = {name: self.value(argument, state, what, step) for name, argument in step.arguments}
        known = state.known
        if step.performer in EFFECTIVE:
            self.shown[site] = arguments or {name: known[name] for name in step.reads}
        sources = {name: Input(name, known[name]) for name in step.reads if name in known}
        scalar = all(name in sources and sources[name].type.scalar for name in step.reads)  # and no table
        plain = not step.rich and scalar and step.type.scalar
        # Scalar arithmetic has its own checks, with messages about this step; terms are typed as a whole.
        if step.expression is None or plain:
            try:
                found = check_operands(step, sources).type
            except ProcedureError as error:
                raise self.error(error.message, step) from error
        else:
            found = self.value(step.expression, state, what, step, step.type)
            if not fits(found, step.type):
                divided = ", or divide it by `1 days`" if found.kind == "duration" and step.type.numeric else ""
                declared = f"declare `{step.id}: {found}`{divided}"
                raise self.error(f"{what} is {step.type}, and its expression gives {found}: {declared}", step)
        self.set(step.id, step.type, state, step, found)

    def condition(self, tree: Expression, state: FlowState, word: str, statement: Statement) -> None:
        kind = self.value(tree, state, f"the condition of `{word}`", statement)
        if kind.kind != "boolean":
            shown = shorten(format_expression(tree), 60)
            raise self.error(
                f"the condition of `{word}` is a truth value, and {shown!r} is {kind}: compare it", statement
            )

    def branches(self, statement: If, state: FlowState, site: str) -> None:
        ends: list[tuple[str, FlowState]] = []
        for number, (condition, body) in enumerate(statement.branches):
            self.condition(condition, state, "if", statement)
            end = state.branch()
            self.body(body, end, f"{site}.{number}.")
            ends.append((f"where `{shorten(format_expression(condition), 60)}` holds", end))
        end = state.branch()
        self.body(statement.otherwise, end, f"{site}.{len(statement.branches)}.")
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
            # Set in one branch is set in this round: a step behind the `if` must not set it again.
            state.fresh.update(end.fresh.maps[0])
            state.partial.update(end.partial.maps[0])
        for name in dict.fromkeys(name for _, end in ends for name in end.types.maps[0]):
            missing = next((way for way, end in ends if name not in end.types), None)
            if missing is not None:
                state.partial.setdefault(name, f"{missing}{place}")
                continue
            kinds = dict.fromkeys(end.types[name] for _, end in ends)
            if len(kinds) > 1:
                shown = " and ".join(map(str, kinds))
                raise self.error(
                    f"{name!r} is {shown} in different branches: declare one type in all of them", statement
                )
            (state.types[name],) = kinds
        self.currencies([end for _, end in ends], state, statement)

    def currencies(self, ends: list[FlowState], state: FlowState, statement: If) -> None:
        """Refuse a variable that is in one currency on one way and in another on another."""
        for name in dict.fromkeys(name for end in ends for name in end.money.maps[0]):
            kinds = [end.money[name] for end in ends if name in end.money]
            both = kinds[0]
            for kind in kinds:
                joint = joined(both, kind)
                if joint is None:
                    raise self.error(
                        f"{name!r} is {both} and {kind} in different branches: convert one by a product with a rate",
                        statement,
                    )
                both = joint
            state.money[name] = both

    def rounds(self, statement: ForEach, state: FlowState, site: str) -> None:
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
        inner = state.rounds(statement.variable, over.items)
        self.body(statement.body, inner, f"{site}.")
        for name, kind in inner.types.maps[0].items():
            # Outside, what a round sets is a list with one value for each item.
            state.types[name] = ValueType(kind="list", items=kind)
            if name in inner.money:
                state.money[name] = ValueType(kind="list", items=inner.money[name])
        state.partial.update(inner.partial.maps[0])

    def repeated(self, statement: Repeat, state: FlowState, site: str) -> None:
        inner = state.repeated()
        self.body(statement.body, inner, f"{site}.")
        # Within the round's state: `until` reads what the body has just set.
        self.condition(statement.until, inner, "repeat", statement)
        state.types.update(inner.types.maps[0])
        state.money.update(inner.money.maps[0])
        state.partial.update(inner.partial.maps[0])
        state.fresh.update(inner.fresh.maps[0])

    def call(self, statement: ProcedureCall, state: FlowState, site: str) -> None:
        what = f"step {statement.id!r}"
        called = statement.procedure
        declared = {each.name: each.type for each in called.inputs}
        money: dict[str, ValueType] = {}
        for name, argument in statement.arguments:
            kind = self.value(argument, state, what, statement, declared[name])
            try:
                check_value(argument, declared[name])
            except ProcedureError as error:
                raise self.error(f"{what} gives {called.name} {name!r}, which {error.message}", statement) from None
            if not fits(kind, declared[name]):
                raise self.error(
                    f"{what} gives {called.name} {name!r} as {kind}, and it is {declared[name]} there", statement
                )
            if (carried := in_currencies(declared[name], kind)) != declared[name]:
                money[name] = carried
        answered, shown = called.answered, called.shown
        if money:  # what is a number there by its type is an amount in this call
            key = id(called), tuple(money.items())
            if key not in self.calls:  # or calls in calls would be checked twice, four times, ...
                given = called.body, called.inputs, called.answer_term, called.tables
                try:
                    found = check_flow(*given, money=money, calls=self.calls)
                except ProcedureError as error:
                    raise self.error(f"{what}: in {called.name}, {error.message}", statement) from None
                assert found is not None
                self.calls[key] = found
            _, answered, shown = self.calls[key]
        self.shown.update({f"{site}.{inner}": kinds for inner, kinds in shown.items()})
        self.set(statement.id, called.answer_type, state, statement, answered)
