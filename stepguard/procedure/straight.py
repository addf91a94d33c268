"""Straight procedures: mere lists of plain steps, of which every run performs each once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from stepguard.errors import ConfigError, ProcedureError
from stepguard.language.expressions import Expression
from stepguard.language.terms.operands import is_variable
from stepguard.language.value_types import ValueType
from stepguard.procedure.inputs import Input
from stepguard.procedure.operands import check_operands, unknown_name
from stepguard.procedure.statements import Body, ForEach, If, ProcedureCall, Repeat
from stepguard.procedure.steps import Step

if TYPE_CHECKING:
    from stepguard.procedure.procedure import Procedure


def is_plain(step: Step) -> bool:
    """Whether a step is one of such a list: asked or computed, from numbers and variables alone."""
    return step.performer in ("model", "code") and not step.rich and (step.expression is None or step.type.scalar)


def is_straight(body: Body, inputs: Iterable[Input], answer: Expression) -> bool:
    """Whether a body is such a list, from inputs that are one value each to an answer that is a variable."""
    plain = all(isinstance(statement, Step) and is_plain(statement) for statement in body)
    return plain and is_variable(answer) and all(each.type.scalar for each in inputs)


def check_steps(steps: Sequence[Step], inputs: Iterable[Input], answer: str) -> tuple[ValueType, ValueType]:
    """Check a list of plain steps: what each reads is there, and no name is set twice.

    Returns:
        the type of the answer, and the same with the currency that it is in.

    Raises:
        ProcedureError: something cannot be right.
    """
    # `known` has the steps as written, for names; `sources` what later ones read, perhaps as money.
    known: dict[str, Input | Step] = {each.name: each for each in inputs}
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
    if answer not in known:
        raise ProcedureError(f"unreachable answer: no step sets {answer!r} and it is no input")
    return known[answer].type, sources[answer].type


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
            case Step(id) if not is_plain(statement):
                return f"the step {id!r}, which computes with more than numbers"
    if procedure.tables:
        return "tables"
    if not is_variable(procedure.answer_term):
        return "an answer that is an expression"
    return "an input that is a list or a record"
