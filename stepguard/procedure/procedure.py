"""Procedures and their steps: what is to be done, in which order, from which values.

A `Procedure` is immutable and checked when it is made: every variable a step reads is an input or set by an earlier
step, and of a type that its expression can compute with, every id is unique, the answer is reachable. What each step
reads and writes is derived from its expression, so that a prompt can show exactly the values a step needs.

A procedure need not be held in memory: `Procedure.lazy` takes a function from index to step and a look-back, and
checks every step when it is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from stepguard.errors import ConfigError, ProcedureError
from stepguard.language.expressions import Expression, Name, format_expression
from stepguard.language.records import RecordType
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.value_types import TypeLike, ValueType
from stepguard.language.values import Value
from stepguard.procedure.expressions import as_expression
from stepguard.procedure.inputs import Input, accept_inputs, as_inputs, instances
from stepguard.procedure.lazy_steps import LazySteps
from stepguard.procedure.operations import Operation, Tool, check_called, check_registered, operations_of
from stepguard.procedure.statements import (
    Body,
    ForEach,
    If,
    ProcedureCall,
    Repeat,
    Statement,
    assigned,
    calls_in,
    check_body,
    performed_in,
    statements_in,
    steps_in,
)
from stepguard.procedure.steps import Step
from stepguard.procedure.straight import check_steps, is_straight

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, init=False, eq=False)
class Procedure:
    """A named body of steps, branches and loops with declared inputs and an answer.

    Args:
        body: the steps and statements (`stepguard.procedure.statements`), in order.
        inputs: the inputs, as names or `Input`.
        answer: the variable that is the result, or an expression such as ``{total, approved}``; by default what the
            last step sets.
        name: a name for people and logs.
        tables: the tables that expressions look up in.
        records: the record types that are declared; types refer to them by name.
        functions: the Python functions that steps call, by name.
        tools: likewise those with effects, as functions or `Tool`.
        output: what the answer is handed on as (`Result.output`): a class with fields, whose validators judge it, or
            another annotation of `stepguard.language.models`; None: as it is.

    Attributes:
        steps: every step as it is written, in the order of writing; of a straight procedure, also the order of a run.
        straight: whether it is a mere list of steps whose expressions are arithmetic, so that every run performs each
            of them once. What needs to know all steps beforehand needs a straight procedure.
        answer_type: the type of the answer.
        answered: the type of the answer with the currencies that it is in, also where its own names none (``net * 2``).
        shown: the types of what a person is shown, with their currencies: by the site of the step, and by name.

    Raises:
        ProcedureError: an unknown or later variable, or one that an expression cannot compute with, a variable that is
            set twice or not on every way, an unreachable answer, no steps, something else than a list.
    """

    body: Body
    steps: Sequence[Step]
    inputs: tuple[Input, ...]
    answer: str
    answer_term: Expression
    name: str
    look_back: int | None
    straight: bool
    tables: Mapping[str, Table]
    records: tuple[RecordType, ...]
    operations: Mapping[str, Operation]
    output: ValueType | None
    answer_type: ValueType
    answered: ValueType
    shown: Mapping[str, Mapping[str, ValueType]]

    def __init__(
        self,
        body: Iterable[Step | If | ForEach | Repeat | ProcedureCall],
        *,
        inputs: Iterable[str | Input] = (),
        answer: str | Expression | None = None,
        name: str = "procedure",
        tables: Iterable[Table] = (),
        records: Iterable[RecordType] = (),
        functions: Mapping[str, Callable[..., object]] | None = None,
        tools: Mapping[str, Callable[..., object] | Tool] | None = None,
        output: TypeLike | None = None,
    ) -> None:
        statements, declared = check_body(body), as_inputs(inputs)
        steps = tuple(steps_in(statements))
        # Calls alone are enough: their steps are those of the other procedure.
        if not steps and next(calls_in(statements), None) is None:
            raise ProcedureError("a procedure needs at least one step")
        term = Name(assigned(statements)[-1]) if answer is None else as_expression(answer)
        named = {table.name: table for table in instances(tables, Table, "tables", "[Table(...)]")}
        straight = not named and output is None and is_straight(statements, declared, term)
        self._put(
            body=statements,
            steps=steps,
            inputs=declared,
            answer_term=term,
            answer=format_expression(term),
            name=_title(name),
            look_back=None,
            straight=straight,
            tables=MappingProxyType(named),
            records=instances(records, RecordType, "records", "[RecordType(...)]"),
            output=None if output is None else ValueType.parse(output),
            operations=operations_of({} if functions is None else functions, {} if tools is None else tools),
            shown={},
        )
        if straight:
            answer_type, answered_in = check_steps(steps, declared, self.answer)
            self._put(answer_type=answer_type, answered=answered_in)
        else:
            from stepguard.procedure.static_checks import check_flow

            answered = check_flow(statements, declared, self.answer_term, self.tables)
            assert answered is not None
            self._put(answer_type=answered[0], answered=answered[1], shown=answered[2])
        check_called(self.operations, () if straight else performed_in(self.body))

    def _put(self, **parts: object) -> None:
        for name, part in parts.items():
            object.__setattr__(self, name, part)

    @property
    def names(self) -> frozenset[str]:
        """Every name that is declared in it, and in the procedures that it calls."""
        procedures = [self, *calls_in(self.body)]
        inputs = (declared.name for procedure in procedures for declared in procedure.inputs)
        tables = (name for procedure in procedures for name in procedure.tables)
        variables = (statement.variable for statement in self._statements() if isinstance(statement, ForEach))
        return self.set_by_steps | self.calls | {*inputs, *tables, *variables}

    @property
    def words(self) -> tuple[str, ...]:
        """Its name and the names that it declares beside those of steps, for readers of what is said about it."""
        keys = (key for table in self.tables.values() for key, _ in table.keys)
        return (self.name, *(declared.name for declared in self.inputs), *self.tables, *keys)

    @property
    def calls(self) -> frozenset[str]:
        """The `names` that are set by calls of other procedures."""
        return frozenset(statement.id for statement in self._statements() if isinstance(statement, ProcedureCall))

    @property
    def set_by_steps(self) -> frozenset[str]:
        """The `names` that are set by steps."""
        return frozenset(statement.id for statement in self._statements() if isinstance(statement, Step))

    def _statements(self) -> Iterator[Statement]:
        """Every statement in it, and in the procedures that it calls."""
        return (statement for each in (self, *calls_in(self.body)) for statement in statements_in(each.body))

    @property
    def all_operations(self) -> Mapping[str, Operation]:
        """The functions and tools that its steps call, and those of the procedures that it calls.

        Raises:
            ConfigError: one that a step calls is not registered.
        """
        if self.straight:  # nothing is called in it
            return self.operations
        known = dict(self.operations)
        for called in calls_in(self.body):
            known = {**called.operations, **known}
        check_registered(known, performed_in(self.body))
        return known

    def with_operations(
        self,
        *,
        functions: Mapping[str, Callable[..., object]] | None = None,
        tools: Mapping[str, Callable[..., object] | Tool] | None = None,
    ) -> Procedure:
        """The same procedure with these functions and tools, which the host registers.

        Raises:
            ProcedureError: one cannot be called with the arguments that a step gives it, or nothing calls it.
        """
        known = {**self.operations, **operations_of(functions or {}, tools or {})}
        check_called(known, () if self.straight else performed_in(self.body))
        made = copy(self)  # not through __init__: everything but the operations has been checked
        made._put(operations=MappingProxyType(known))
        return made

    @classmethod
    def lazy(
        cls,
        step_at: Callable[[int], Step],
        length: int,
        *,
        look_back: int,
        inputs: Iterable[str | Input] = (),
        name: str = "procedure",
    ) -> Procedure:
        """A procedure whose steps are made when they are needed, for lengths that memory should not hold.

        Args:
            step_at: gives the step at an index from 0 to `length` - 1, always the same one.
            length: how many steps there are.
            look_back: a step reads inputs and the values of at most this many steps before it. Checked for every
                step when it is reached; a step that reads further back raises `ProcedureError` then.
            inputs: the inputs, as names or `Input`.
            name: a name for people and logs.

        The answer is the value of the last step.
        """
        if length < 1 or look_back < 1:
            raise ProcedureError("a lazy procedure needs a length and a look-back of at least 1")
        procedure, declared = cls.__new__(cls), as_inputs(inputs)
        steps = LazySteps(step_at, length, look_back, declared)
        last = steps[length - 1]  # the whole of its steps is never made
        procedure._put(
            body=steps,
            steps=steps,
            inputs=declared,
            answer_term=Name(last.id),
            answer=last.id,
            name=_title(name),
            look_back=look_back,
            straight=True,
            tables=MappingProxyType({}),
            records=(),
            output=None,
            operations=MappingProxyType({}),
            answer_type=last.type,
            answered=last.type,
            shown={},
        )
        return procedure

    @classmethod
    def parse(
        cls,
        text: str,
        *,
        functions: Mapping[str, Callable[..., object]] | None = None,
        tools: Mapping[str, Callable[..., object] | Tool] | None = None,
    ) -> Procedure:
        """Read a procedure from text; the language is that of `stepguard.procedure.notation`.

        Args:
            text: the text.
            functions: the Python functions that its steps call, by name.
            tools: likewise those with effects.

        Raises:
            ProcedureError: the text is no procedure; `line` names where.
        """
        from stepguard.procedure.notation import read_procedure

        return read_procedure(text, functions=functions, tools=tools)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        functions: Mapping[str, Callable[..., object]] | None = None,
        tools: Mapping[str, Callable[..., object] | Tool] | None = None,
    ) -> Procedure:
        """Read a procedure from a file: YAML or JSON by its suffix, text otherwise (see `stepguard.procedure`).

        Args:
            path: the file. One that declares no name is called as it, without the suffix.
            functions: the Python functions that its steps call, by name.
            tools: likewise those with effects.

        Raises:
            ProcedureError: the file holds no procedure, or is of an unknown kind.
            OSError: the file cannot be read.
        """
        from stepguard.procedure.notation import load_procedure

        return load_procedure(path, functions=functions, tools=tools)

    def __repr__(self) -> str:
        count = f"{len(self)} step{'' if len(self) == 1 else 's'}"
        inputs = f"from {', '.join(declared.name for declared in self.inputs)} " if self.inputs else ""
        return f"<Procedure {self.name!r}: {count} {inputs}to {self.answer}>"

    def __str__(self) -> str:
        from stepguard.procedure.notation import print_procedure

        return print_procedure(self)

    def __len__(self) -> int:
        return len(self.steps)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Procedure):
            return NotImplemented
        compared = ("body", "inputs", "answer_term", "name", "look_back", "tables", "records", "output")
        return all(getattr(self, name) == getattr(other, name) for name in compared)

    def __hash__(self) -> int:
        return hash((self.name, self.inputs, self.answer, len(self.steps)))

    def accept_inputs(self, values: Mapping[str, object]) -> dict[str, Value]:
        """The inputs of a run as exact values.

        Raises:
            InputError: an input is missing, unknown or not of its type.
        """
        return accept_inputs(self.inputs, values, of=self.name)


def _title(name: str) -> str:
    if not isinstance(name, str) or len(name.strip().splitlines()) != 1:
        raise ProcedureError(f"{name!r} cannot be the name of a procedure: one line of text is needed")
    return name.strip()


def check_procedure(value: object) -> None:
    """Raise unless the value is a procedure (rather than, say, the text of one).

    Raises:
        ConfigError: it is something else.
    """
    if not isinstance(value, Procedure):
        raise ConfigError(
            f"procedure is a Procedure, not a {type(value).__name__}; Procedure.parse reads one from text, "
            "Procedure.load from a file",
            option="procedure",
        )
