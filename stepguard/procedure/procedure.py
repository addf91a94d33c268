"""Procedures and their steps: what is to be done, in which order, from which values.

A `Procedure` is immutable and checked when it is made: every variable a step reads is an input or set by an earlier
step, and of a type that its expression can compute with, every id is unique, the answer is reachable. What each step
reads and writes is derived from its expression, so that a prompt can show exactly the values a step needs.

A procedure need not be held in memory: `Procedure.lazy` takes a function from index to step and a look-back, and
checks every step when it is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from stepguard.errors import ConfigError, InputError, ProcedureError, ValueRefused
from stepguard.language.expressions import Expression, Name, format_expression
from stepguard.language.records import RecordType
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.terms.operands import is_variable
from stepguard.language.value_types import NUMBER, TypeLike, ValueType
from stepguard.language.values import Value
from stepguard.procedure.inputs import Input, as_inputs, instances, listed
from stepguard.procedure.lazy_steps import LazySteps
from stepguard.procedure.operands import check_operands, unknown_name
from stepguard.procedure.operations import Operation, Tool, operations_of
from stepguard.procedure.statements import (
    Body,
    ForEach,
    If,
    ProcedureCall,
    Repeat,
    as_expression,
    assigned,
    calls_in,
    check_body,
    performed_in,
    statements_in,
    steps_in,
)
from stepguard.procedure.steps import Step

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
        statements = check_body(listed(body, "steps", "[Step('t', 'x + 1')]"))
        steps = tuple(steps_in(statements))
        declared = as_inputs(inputs)
        term = as_expression(answer) if answer is not None else None
        named = {table.name: table for table in instances(tables, Table, "tables", "[Table(...)]")}
        straight = (
            all(isinstance(statement, Step) for statement in statements)
            and not named
            and output is None
            and (term is None or is_variable(term))
            and all(_is_straight(step) for step in steps)
            and all(each.type.scalar for each in declared)
        )
        self._set(steps, declared, term, name, None, body=statements)
        put = object.__setattr__
        put(self, "straight", straight)
        put(self, "tables", MappingProxyType(named))
        put(self, "records", instances(records, RecordType, "records", "[RecordType(...)]"))
        put(self, "output", None if output is None else ValueType.parse(output))
        put(self, "operations", operations_of({} if functions is None else functions, {} if tools is None else tools))
        if straight:
            self._check_straight(steps)
        else:
            from stepguard.procedure.static_checks import check_flow

            answered = check_flow(statements, declared, self.answer_term, self.tables)
            assert answered is not None
            put(self, "answer_type", answered[0])
            put(self, "answered", answered[1])
            put(self, "shown", answered[2])
        self._check_operations(self.operations)

    def _check_straight(self, steps: Sequence[Step]) -> None:
        # `known` has the steps as written, for names; `sources` what later ones read, perhaps as money.
        known: dict[str, Input | Step] = {each.name: each for each in self.inputs}
        sources = dict(known)
        for index, step in enumerate(steps):
            if step.id in known:
                what = "an input" if isinstance(known[step.id], Input) else "an earlier step"
                raise ProcedureError(f"duplicate id: {step.id!r} is already {what}", step=step.id)
            for name in step.reads:
                if name not in known:
                    raise unknown_name(step, name, (later.id for later in steps[index:]))
            sources[step.id] = check_operands(step, sources)
            known[step.id] = step
        if self.answer not in known:
            raise ProcedureError(f"unreachable answer: no step sets {self.answer!r} and it is no input")
        object.__setattr__(self, "answer_type", known[self.answer].type)
        object.__setattr__(self, "answered", sources[self.answer].type)

    def _set(
        self,
        steps: Sequence[Step],
        inputs: tuple[Input, ...],
        answer: Expression | None,
        name: str,
        look_back: int | None,
        *,
        body: Body | None = None,
    ) -> None:
        # Calls alone are enough: their steps are those of the other procedure.
        if len(steps) == 0 and next(calls_in(body or ()), None) is None:
            raise ProcedureError("a procedure needs at least one step")
        if not isinstance(name, str) or len(name.strip().splitlines()) != 1:
            raise ProcedureError(f"{name!r} cannot be the name of a procedure: one line of text is needed")
        term, kind = answer, NUMBER
        # A lazy procedure: the whole of its steps is never made, only its last one.
        if body is None:
            last = steps[len(steps) - 1]
            term, kind = Name(last.id), last.type
        elif term is None:
            term = Name(assigned(body)[-1])
        put = object.__setattr__
        put(self, "body", steps if body is None else body)
        put(self, "steps", steps)
        put(self, "inputs", inputs)
        put(self, "answer_term", term)
        put(self, "answer", format_expression(term))
        put(self, "name", name.strip())
        put(self, "look_back", look_back)
        put(self, "straight", True)
        put(self, "tables", MappingProxyType({}))
        put(self, "records", ())
        put(self, "output", None)
        put(self, "operations", MappingProxyType({}))
        put(self, "answer_type", kind)
        put(self, "answered", kind)
        put(self, "shown", {})

    @property
    def names(self) -> frozenset[str]:
        """Every name that is declared in it, and in the procedures that it calls."""
        procedures = [self, *calls_in(self.body)]
        inputs = (declared.name for procedure in procedures for declared in procedure.inputs)
        tables = (name for procedure in procedures for name in procedure.tables)
        statements = (statement for procedure in procedures for statement in statements_in(procedure.body))
        variables = (statement.variable for statement in statements if isinstance(statement, ForEach))
        return self.set_by_steps | self.calls | {*inputs, *tables, *variables}

    @property
    def words(self) -> tuple[str, ...]:
        """Its name and the names that it declares beside those of steps, for readers of what is said about it."""
        keys = (key for table in self.tables.values() for key, _ in table.keys)
        return (self.name, *(declared.name for declared in self.inputs), *self.tables, *keys)

    @property
    def calls(self) -> frozenset[str]:
        """The `names` that are set by calls of other procedures."""
        statements = (statement for each in (self, *calls_in(self.body)) for statement in statements_in(each.body))
        return frozenset(statement.id for statement in statements if isinstance(statement, ProcedureCall))

    @property
    def set_by_steps(self) -> frozenset[str]:
        """The `names` that are set by steps."""
        return frozenset(step.id for each in (self, *calls_in(self.body)) for step in steps_in(each.body))

    @property
    def all_operations(self) -> Mapping[str, Operation]:
        """The functions and tools that its steps call, and those of the procedures that it calls.

        Raises:
            ConfigError: one that a step calls is not registered.
        """
        known = dict(self.operations)
        if self.straight:  # nothing is called in it
            return known
        for called in calls_in(self.body):
            known = {**called.operations, **known}
        for step in performed_in(self.body):
            if step.operation is not None and step.operation not in known:
                raise ConfigError(
                    f"step {step.id!r} calls the {step.performer} {step.operation!r}, which is not registered: "
                    f"procedure.with_operations({step.performer}s={{{step.operation!r}: ...}})",
                    option="procedure",
                )
        return known

    def _check_operations(self, known: Mapping[str, Operation]) -> None:
        """Refuse an operation that a step cannot call, or that nothing calls."""
        called: set[str] = set()
        for step in () if self.straight else performed_in(self.body):
            if step.operation is not None and step.operation in known:
                known[step.operation].check_arguments(tuple(name for name, _ in step.arguments), step.id)
                called.add(step.operation)
        if unused := sorted(known.keys() - called):
            raise ProcedureError(f"no step calls {unused[0]!r}: leave it out, or call it by its name")

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
        # Not through __init__: everything but the operations has been checked.
        made = object.__new__(Procedure)
        for name in self.__dataclass_fields__:
            object.__setattr__(made, name, getattr(self, name))
        known = {**self.operations, **operations_of(functions or {}, tools or {})}
        made._check_operations(known)
        object.__setattr__(made, "operations", MappingProxyType(known))
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
        procedure = cls.__new__(cls)
        declared = as_inputs(inputs)
        procedure._set(LazySteps(step_at, length, look_back, declared), declared, None, name, look_back)
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

        if not isinstance(text, str):
            raise ProcedureError(
                f"Procedure.parse takes the text of a procedure, not a {type(text).__name__}; Procedure.load takes the "
                "path of a file"
            )
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
        from pathlib import Path

        from stepguard.procedure.notation import load_procedure

        return load_procedure(Path(path), functions=functions, tools=tools)

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
        if not isinstance(values, Mapping):
            raise InputError(
                f"the inputs of {self.name} are a mapping from name to value, not a {type(values).__name__}"
            )
        names = dict.fromkeys(declared.name for declared in self.inputs)
        unknown = [name for name in values if name not in names]
        if unknown:
            listing = f"it declares {', '.join(names)}" if names else "it declares none"
            raise InputError(f"{self.name} has no input {unknown[0]!r}: {listing}", name=str(unknown[0]))
        accepted: dict[str, Value] = {}
        for declared in self.inputs:
            if declared.name not in values:
                if declared.default is not None:
                    accepted[declared.name] = declared.default
                    continue
                raise InputError(f"input {declared.name!r} of {self.name} is missing", name=declared.name)
            try:
                accepted[declared.name] = declared.type.accept(values[declared.name])
            except ValueRefused as error:
                kind = declared.type
                hint = f"; its type is {kind}" if kind.numeric and kind.kind != "percent" else ""
                raise InputError(
                    f"input {declared.name!r} of {self.name}: {error}{hint}", name=declared.name
                ) from error
        return accepted


def _is_straight(step: Step) -> bool:
    return step.performer in ("model", "code") and not step.rich and (step.expression is None or step.type.scalar)


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


def check_straight(procedure: Procedure, what: str, remedy: str) -> None:
    """Refuse a procedure that is more than a list of plain steps, where all of them have to be known beforehand.

    Args:
        procedure: the procedure.
        what: what needs to know them, as the beginning of a sentence.
        remedy: what to do instead, as its end.

    Raises:
        ConfigError: it is; its first part that makes it so is named.
    """
    if not procedure.straight:
        raise ConfigError(
            f"{what} needs a procedure that is a list of plain steps, and {procedure.name} has {_more(procedure)}: "
            f"{remedy}",
            option="procedure",
        )


def _more(procedure: Procedure) -> str:
    """The first part that makes a procedure more than a list of plain steps."""
    for statement in procedure.body:
        match statement:
            case If():
                return "branches"
            case ForEach() | Repeat():
                return "a loop"
            case ProcedureCall(id):
                return f"a call of another procedure, {id!r}"
            case Step(id) if statement.performer not in ("model", "code"):
                return f"the step {id!r}, which a {statement.performer} performs"
            case Step(id) if not _is_straight(statement):
                return f"the step {id!r}, which computes with more than numbers"
    if procedure.tables:
        return "tables"
    if not is_variable(procedure.answer_term):
        return "an answer that is an expression"
    return "an input that is a list or a record"
