"""Statements: what the body of a procedure is made of beside steps.

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

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepguard.language.expressions import Expression
from stepguard.procedure.steps import Step

if TYPE_CHECKING:
    from stepguard.procedure.procedure import Procedure

__all__ = ["Body", "ForEach", "If", "ProcedureCall", "Repeat", "Statement"]


@dataclass(frozen=True, slots=True)
class If:
    """The first branch whose condition holds is carried out, `otherwise` where none does."""

    branches: tuple[tuple[Expression, Body], ...]
    otherwise: Body = ()


@dataclass(frozen=True, slots=True)
class ForEach:
    """The body is carried out once for each item of the list `over`, under the name `variable`."""

    variable: str
    over: Expression
    body: Body


@dataclass(frozen=True, slots=True)
class Repeat:
    """The body is carried out until `until` holds, which is looked at behind each round; at most `most` times."""

    most: int
    body: Body
    until: Expression


@dataclass(frozen=True, slots=True)
class ProcedureCall:
    """Another procedure as a step; `arguments` are its inputs."""

    id: str
    procedure: Procedure
    arguments: tuple[tuple[str, Expression], ...]


Statement = Step | If | ForEach | Repeat | ProcedureCall
Body = tuple[Statement, ...]
