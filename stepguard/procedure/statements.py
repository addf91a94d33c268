"""Statements: branches, loops and calls, which a procedure's body is made of beside steps.

::

    If([(condition, body), ...], otherwise=body)      the first branch whose condition holds, or `otherwise`
    ForEach("item", "items", body)                    the body once for each item of a list
    Repeat(60, body, until="balance <= 0")            the body until a condition holds, at most so often
    ProcedureCall("fee", procedure, {"amount": "total"})       another procedure as a step, with names of its own

The guard evaluates conditions and lists itself, exactly, over verified values; a model never decides which way is
taken. What a body sets:

- in a branch, the variable is set from there on; a variable that is read afterwards must be set on every way there.
- in ``for each`` it is a list outside, with one value for each item. Rounds do not see each other's values.
- in ``repeat`` it carries over: the next round, and what follows, sees the newest value. Only there may a variable be
  set that already has a value. Reaching the bound without the condition ends the run and names the bound.
- of a call, the answer is the value of its `id`; nothing else is seen outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stepguard.errors import ProcedureError
from stepguard.language.expressions import Expression
from stepguard.procedure.expressions import as_expression
from stepguard.procedure.inputs import check_name, listed
from stepguard.procedure.steps import Step, check_step

if TYPE_CHECKING:
    from stepguard.procedure.procedure import Procedure


@dataclass(frozen=True, slots=True, init=False)
class If:
    """The first branch whose condition holds is carried out, `otherwise` where none does.

    Args:
        branches: pairs of a condition, as text or parsed, and what is carried out where it holds.
        otherwise: what is carried out where no condition holds; nothing by default.

    Raises:
        ProcedureError: there is no branch, or one with nothing in it.
        ExpressionError: a condition is not in the language.
    """

    branches: tuple[tuple[Expression, Body], ...]
    otherwise: Body

    def __init__(
        self, branches: Iterable[tuple[str | Expression, Iterable[Statement]]], otherwise: Iterable[Statement] = ()
    ) -> None:
        made = tuple((as_expression(condition), _block(body, "a branch of `if`")) for condition, body in branches)
        if not made:
            raise ProcedureError("`if` has no branch: give pairs of a condition and what is carried out")
        object.__setattr__(self, "branches", made)
        object.__setattr__(self, "otherwise", check_body(otherwise))


@dataclass(frozen=True, slots=True, init=False)
class ForEach:
    """The body is carried out once for each item of a list.

    Args:
        variable: stands for the item in the body.
        over: the list, as text or parsed.
        body: what is carried out.

    Raises:
        ProcedureError: the variable cannot be one, or the body is empty.
        ExpressionError: the list is not in the language.
    """

    variable: str
    over: Expression
    body: Body

    def __init__(self, variable: str, over: str | Expression, body: Iterable[Statement]) -> None:
        check_name(variable, "the variable of `for each`")
        object.__setattr__(self, "variable", variable)
        object.__setattr__(self, "over", as_expression(over))
        object.__setattr__(self, "body", _block(body, f"`for each {variable}`"))


@dataclass(frozen=True, slots=True, init=False)
class Repeat:
    """The body is carried out until a condition holds, which is looked at behind each round.

    Args:
        most: how many rounds there may be; a run that needs more ends there and says so.
        body: what is carried out.
        until: the condition, as text or parsed.

    Raises:
        ProcedureError: the bound is no whole number of 1 or more, or the body is empty.
        ExpressionError: the condition is not in the language.
    """

    most: int
    body: Body
    until: Expression

    def __init__(self, most: int, body: Iterable[Statement], *, until: str | Expression) -> None:
        if type(most) is not int or most < 1:
            raise ProcedureError(f"`repeat` has a bound, a whole number of 1 or more, not {most!r:.40}")
        object.__setattr__(self, "most", most)
        object.__setattr__(self, "body", _block(body, "`repeat`"))
        object.__setattr__(self, "until", as_expression(until))


@dataclass(frozen=True, slots=True, init=False)
class ProcedureCall:
    """Another procedure as a step: its answer is the value of `id`.

    Args:
        id: the variable that is set.
        procedure: what is carried out, with names of its own.
        arguments: its inputs: name -> expression, as text or parsed.

    Raises:
        ProcedureError: an argument is missing or unknown.
        ExpressionError: an argument is not in the language.
    """

    id: str
    procedure: Procedure
    arguments: tuple[tuple[str, Expression], ...]

    def __init__(
        self,
        id: str,
        procedure: Procedure,
        arguments: Mapping[str, str | Expression] | Iterable[tuple[str, str | Expression]] = (),
    ) -> None:
        check_name(id, "a step")
        pairs = arguments.items() if isinstance(arguments, Mapping) else arguments
        passed = {name: as_expression(value) for name, value in pairs}
        declared = {each.name: each for each in procedure.inputs}
        for name in passed:
            if name not in declared:
                raise ProcedureError(f"step {id!r}: {procedure.name} has no input {name!r}", step=id)
        for name, given in declared.items():
            if name not in passed and given.default is None:
                raise ProcedureError(
                    f"step {id!r} gives {procedure.name} no {name!r}, which is an input of it", step=id
                )
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "procedure", procedure)
        object.__setattr__(self, "arguments", tuple(passed.items()))


_DIGITS: Final = 9

Statement = Step | If | ForEach | Repeat | ProcedureCall
Body = tuple[Statement, ...]


def check_body(given: Iterable[Statement]) -> Body:
    """The body as a tuple, checked to hold steps and statements alone."""
    statements = listed(given, "steps", "[Step('t', 'x + 1')]")
    for number, statement in enumerate(statements, 1):
        if not isinstance(statement, If | ForEach | Repeat | ProcedureCall):
            check_step(statement, number)
    return statements


def _block(given: Iterable[Statement], what: str) -> Body:
    statements = check_body(given)
    if not statements:
        raise ProcedureError(f"{what} has nothing to carry out")
    return statements


def blocks_of(statement: Statement) -> tuple[Body, ...]:
    """The bodies in a statement: the branches of an `if`, with `otherwise` behind them, or that of a loop."""
    match statement:
        case If(branches, otherwise):
            return (*(branch for _, branch in branches), otherwise)
        case ForEach(_, _, inner) | Repeat(_, inner):
            return (inner,)
    return ()


def calls_in(body: Body) -> Iterator[Procedure]:
    """The procedures that a body calls, and those that they call, each once."""
    seen: set[int] = set()
    waiting = [body]
    while waiting:
        for statement in waiting.pop():
            if isinstance(statement, ProcedureCall) and id(statement.procedure) not in seen:
                seen.add(id(statement.procedure))
                yield statement.procedure
                waiting.append(statement.procedure.body)
            waiting.extend(blocks_of(statement))


def performed_in(body: Body) -> Iterator[Step]:
    """The steps of a body, and those of every procedure that it calls."""
    yield from steps_in(body)
    for called in calls_in(body):
        yield from steps_in(called.body)


def assigned(body: Body) -> tuple[str, ...]:
    """The variables that a body sets for what comes behind it, each once, in the order of writing."""
    names: dict[str, None] = {}
    for statement in body:
        if isinstance(statement, Step | ProcedureCall):
            names[statement.id] = None
        for block in blocks_of(statement):
            names.update(dict.fromkeys(assigned(block)))
    return tuple(names)


def find_statement(body: Body, site: str) -> Statement | None:
    """The statement at a site (`stepguard.results.Occurrence.site`), None where there is none."""
    part = part_at(body, site)
    return part if isinstance(part, Step | If | ForEach | Repeat | ProcedureCall) else None


def part_at(body: Body, site: str) -> Statement | Sequence[Statement] | None:
    """The statement at a site, or the block of a branch; None where there is none."""
    inside: Statement | Sequence[Statement] | None = body
    for number in site.split("."):
        # A site may come from a file of somebody else's: Python takes long for a number of many digits.
        if inside is None or not number.isdecimal() or len(number) > _DIGITS:
            return None
        inside = _part_of(inside, int(number))
    return inside


def _part_of(inside: Statement | Sequence[Statement], number: int) -> Statement | Sequence[Statement] | None:
    """The statement at an index of a body, loop or call; of an `if` the branch, with `otherwise` last."""
    held: Sequence[Statement | Sequence[Statement]]
    match inside:
        case Step():
            return None
        case If():
            held = blocks_of(inside)
        case ForEach(_, _, body) | Repeat(_, body):
            held = body
        case ProcedureCall():
            held = inside.procedure.body
        case _:
            held = inside
    return held[number] if number < len(held) else None


def statements_in(body: Body) -> Iterator[Statement]:
    """The statements of a body and of all bodies in it, in the order of writing; not those of procedures it calls."""
    for statement in body:
        yield statement
        for block in blocks_of(statement):
            yield from statements_in(block)


def steps_in(body: Body) -> Iterator[Step]:
    """The steps among `statements_in`."""
    return (statement for statement in statements_in(body) if isinstance(statement, Step))
