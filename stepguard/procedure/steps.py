"""Steps of a procedure: their names, types, and the values they read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from inspect import isclass
from typing import TYPE_CHECKING, Literal, get_args

from stepguard.errors import ProcedureError
from stepguard.language.expressions import (
    TRUTHS,
    Expression,
    Logic,
    Not,
    Number,
    format_expression,
    inner_comparison,
    names_in,
)
from stepguard.language.terms.operands import LiteralTerm, is_variable, operands_in, variables_in
from stepguard.language.terms.percentages import check_value
from stepguard.language.value_types import TypeLike, ValueType
from stepguard.language.values import Value
from stepguard.procedure.attached_checks import attached
from stepguard.procedure.descriptions import check_words
from stepguard.procedure.examples import Example, read_examples
from stepguard.procedure.expressions import read_expression
from stepguard.procedure.inputs import check_name, listed

if TYPE_CHECKING:
    from stepguard.checks import Check

Performer = Literal["model", "code", "function", "tool", "person"]
"""Who performs a step.

========  ==========================================================================================================
model     the model is asked, and what it claims is checked
code      the expression is evaluated
function  a Python function of the host's is called (`Step.operation`, `Step.arguments`): same values, same answer
tool      the same with effects outside: called once for a step, with an idempotency key, after an approval if declared
person    a person is asked; what the person says is the value
========  ==========================================================================================================
"""

PERFORMERS: tuple[Performer, ...] = get_args(Performer)

EFFECTIVE: frozenset[Performer] = frozenset({"tool", "person"})
"""Those whose steps are performed in the order of writing, when everything before them is completed."""

PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A value that an instruction names in braces."""
# "Look up the rate, then": without the next step it says nothing.
_LEADS_ON = re.compile(r"(?:[:,]|\b(?:and|or|then))\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Origin:
    """Which step of a procedure one of a run is, and under which names its variables have their values there."""

    step: Step
    names: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, init=False)
class Step:
    """One step of a procedure, which sets one variable.

    Args:
        id: the name of the step and of the variable it sets.
        expression: the formal meaning, as text or parsed; None for a step that only words describe.
        instruction: what the model reads. None: the expression itself. Beside an expression, which is carried out
            always and once, it only describes what is worked out.
        type: the type of the value; by default a number where there is an expression, a boolean where that is a
            comparison, otherwise text.
        reads: the variables that the step reads; with an expression they follow from it and are left out.
        checks: further checks, each a callable of (step, values, claim); see `stepguard.checks`.
        performer: who performs it, see `Performer`.
        operation: the name of the function or tool that performs it, registered at the procedure.
        arguments: what that is called with: name -> expression.
        show_work: whether the reply must show this step's working. None: yes where there is an expression, unless
            that joins truth values with ``and``, ``or`` or ``not``.
        with_next: whether its text is only understood with the next step's: the two are asked together, or this one
            is shown again when the next is asked alone. None: where the text ends in a colon or a comma, or in "and",
            "or", "then".
        examples: answers to such a step, of which the one that fits is shown before it in place of a built-in one; as
            `Example` or as mappings with ``reads``, ``value`` and ``work``.

    Raises:
        UnclearWords: the instruction may say whether, when or how often the expression applies.
        ProcedureError: the step cannot be right.
        ExpressionError: the expression is not in the language.
    """

    id: str
    expression: Expression | None
    instruction: str | None
    type: ValueType
    reads: tuple[str, ...]
    checks: tuple[Check, ...]
    performer: Performer
    show_work: bool
    with_next: bool
    operation: str | None
    arguments: tuple[tuple[str, Expression], ...]
    origin: Origin | None = dataclass_field(compare=False, init=False)  # `dataclasses.replace` makes a step of its own
    examples: tuple[Example, ...]

    def __init__(
        self,
        id: str,
        expression: str | Expression | None = None,
        *,
        instruction: str | None = None,
        type: TypeLike | None = None,
        reads: Iterable[str] | None = None,
        checks: Iterable[Check] = (),
        performer: Performer = "model",
        show_work: bool | None = None,
        with_next: bool | None = None,
        operation: str | None = None,
        arguments: Mapping[str, str | Expression] | Iterable[tuple[str, Expression]] = (),
        examples: Iterable[Example | Mapping[str, object]] = (),
    ) -> None:
        check_name(id, "a step")
        if not isinstance(expression, str | Expression | None):
            raise ProcedureError(
                f"step {id!r}: an expression is text such as 'x + 1', not {_kind_of(expression)}: a function can "
                "be one of the checks that judge an answer, `Step(..., instruction='...', checks=[function])`",
                step=id,
            )
        if not isinstance(instruction, str | None):
            raise ProcedureError(f"step {id!r}: an instruction is text, not {_kind_of(instruction)}", step=id)
        tree = read_expression(expression) if isinstance(expression, str) else expression
        if performer not in PERFORMERS:
            raise ProcedureError(
                f"step {id!r}: performer is one of {', '.join(PERFORMERS)}, not {performer!r}", step=id
            )
        passed = _arguments_of(id, operation, arguments, performer, tree)
        if tree is None and operation is None and not (instruction and instruction.strip()):
            raise ProcedureError(f"step {id!r} has neither an expression nor an instruction", step=id)
        listing = listed(() if reads is None else reads, f"step {id!r}: reads", "['letter']")
        rich = tree is not None and next(operands_in(tree), None) is not None
        if operation is not None:
            named = tuple(dict.fromkeys(name for _, value in passed for name in variables_in(value)))
            if reads is not None and set(listing) != set(named):
                raise ProcedureError(f"step {id!r}: reads follow from the arguments; leave them out", step=id)
        elif tree is None:
            if performer == "code":
                raise ProcedureError(f"step {id!r}: code can only perform a step with an expression", step=id)
            if show_work:
                raise ProcedureError(f"step {id!r}: working can only be checked against an expression", step=id)
            placed = PLACEHOLDER.findall(instruction or "") if performer == "person" else ()
            named = tuple(dict.fromkeys((*listing, *placed)))
        else:
            # (x > 3) * 2 has no value whatever is claimed: no reply could ever complete the step.
            if (inner := inner_comparison(tree)) is not None:
                raise ProcedureError(
                    f"step {id!r} computes with {format_expression(inner)!r}, a truth value, which is no number: join "
                    "those with `and`, `or`, `not`, use min and max of numbers, or say in words what depends on it, "
                    f'`{id}: number = "..."`',
                    step=id,
                )
            named = variables_in(tree) if rich else names_in(tree)
            if reads is not None and set(listing) != set(named):
                raise ProcedureError(f"step {id!r}: reads follow from the expression; leave them out", step=id)
        for name in named:
            check_name(name, f"a variable read by step {id!r}")
        checked = attached(checks, id, named)
        default = "text" if tree is None else "boolean" if isinstance(tree, TRUTHS) else "number"
        kind = ValueType.parse(type if type is not None else default)
        if tree is not None and instruction is not None:
            check_words(instruction, id, named, tree, kind)
        if isinstance(tree, TRUTHS) and kind.scalar and kind.kind != "boolean":
            raise ProcedureError(f"step {id!r}: its expression gives a truth value, which is no {kind.kind}", step=id)
        if tree is not None:
            try:
                check_value(tree, kind)
            except ProcedureError as error:
                raise ProcedureError(f"step {id!r} {error.message}", step=id) from None
        put = object.__setattr__
        put(self, "id", id)
        put(self, "expression", tree)
        put(self, "instruction", instruction.strip() if instruction and instruction.strip() else None)
        put(self, "type", kind)
        put(self, "reads", named)
        put(self, "checks", checked)
        put(self, "performer", performer)
        shows = tree is not None and not isinstance(tree, Logic | Not)
        put(self, "show_work", shows if show_work is None else bool(show_work))
        leads = instruction is not None and _LEADS_ON.search(instruction.strip()) is not None
        put(self, "with_next", (leads and tree is None) if with_next is None else bool(with_next))
        put(self, "operation", operation)
        put(self, "arguments", passed)
        put(self, "origin", None)
        put(self, "examples", read_examples(examples, id, kind, tree))
        for check in checked:
            # Last, since a check looks at the finished step.
            misfit = getattr(check, "misfit", None)
            if callable(misfit) and (reason := misfit(self)) is not None:
                raise ProcedureError(f"step {id!r}: {reason} (the check {check!r})", step=id)

    def __repr__(self) -> str:
        performer = self.performer if self.operation is not None else "model"
        # What the constructor would make by itself is left out of the text.
        plain = Step(
            self.id, self.expression, instruction=self.instruction, performer=performer, operation=self.operation
        )
        arguments = [repr(argument) for argument in (self.id, self.formula) if argument is not None]
        arguments += [] if self.instruction is None else [f"instruction={self.instruction!r}"]
        if self.operation is not None:
            passed = {name: format_expression(value) for name, value in self.arguments}
            arguments += [f"performer={self.performer!r}", f"operation={self.operation!r}", f"arguments={passed!r}"]
        reads = () if self.operation is not None else ("reads",)
        for name in ("type", *reads, "checks", "performer", "show_work", "with_next", "examples"):
            value = getattr(self, name)
            if value != getattr(plain, name):
                value = str(value) if name == "type" else list(value) if isinstance(value, tuple) else value
                arguments.append(f"{name}={value!r}")
        return f"Step({', '.join(arguments)})"

    @property
    def rich(self) -> bool:
        """Whether its expression holds more than numbers and variables (`stepguard.language.terms.operands`)."""
        return self.expression is not None and next(operands_in(self.expression), None) is not None

    def occurrence(
        self,
        id: str,
        names: Mapping[str, str],
        *,
        expression: Expression | None,
        instruction: str | None,
        reads: tuple[str, ...],
        checks: tuple[Check, ...],
        show_work: bool,
        arguments: tuple[tuple[str, Expression], ...] = (),
        performer: Performer | None = None,
        type: ValueType | None = None,
    ) -> Step:
        """The step as it comes up in a run: under the id and the names of values that it has there.

        What it is made of was checked when the procedure was made. `names` are the variables of the procedure that it
        reads, with the names of their values in the run; `performer` is who performs it there and `type` what its value
        is read as, by default its own.
        """
        return self._changed(
            id=id,
            expression=expression,
            instruction=instruction,
            type=type or self.type,
            reads=reads,
            checks=checks,
            performer=performer or self.performer,
            show_work=show_work,
            arguments=arguments,
            origin=Origin(self, tuple(names.items())),
        )

    def in_place_of(self, other: Step) -> Step:
        """This step, with no checks of its own, as one that is asked in the place of another."""
        return self._changed(origin=other.origin or Origin(other, ()))

    def unworked(self) -> Step:
        """The same step, asked for its value alone."""
        origin = self.origin or Origin(self, ())
        return self._changed(show_work=False, performer=origin.step.performer, origin=origin)

    def _changed(self, **changes: object) -> Step:
        # Not through __init__: the parts were checked when the procedure was made.
        made = object.__new__(Step)
        for name in Step.__slots__:
            object.__setattr__(made, name, changes[name] if name in changes else getattr(self, name))
        return made

    @property
    def exact(self) -> Expression | None:
        """The expression that checks hold its value against (see `Evaluates`); None where there is none."""
        if not self.checks:
            return None
        return next((check.expression for check in self.checks if getattr(check, "name", None) == "evaluates"), None)  # type: ignore[attr-defined]

    def read(self, text: str) -> Value:
        """A value that is claimed for the step; dates in the order that the step declares for its document.

        Raises:
            ValueRefused: the text is no value of the step's type, or could be read in more than one way.
        """
        if not self.checks:
            return self.type.read(text)
        # 03/04/2026 is read as the document is: only the step's own check knows in which order.
        grounded = (check for check in self.checks if getattr(check, "name", None) == "grounded")
        orders = {order for check in grounded if (order := getattr(check, "order", None)) is not None}
        return self.type.read(text, order=orders.pop() if len(orders) == 1 else None)

    @property
    def copied(self) -> bool:
        """Whether its value is that of one variable or a constant: it is looked up, and nothing is decided."""
        tree = self.expression or self.exact
        return tree is not None and (is_variable(tree) or isinstance(tree, LiteralTerm | Number))

    @property
    def words(self) -> tuple[str, ...]:
        """Its id, its instruction, its formula and what it reads, for readers of what is said about it."""
        return (self.id, self.instruction or "", self.formula or "", *self.reads)

    @property
    def formula(self) -> str | None:
        """The expression as text, None where there is none."""
        return None if self.expression is None else format_expression(self.expression)


def _kind_of(value: object) -> str:
    return "a function" if callable(value) and not isclass(value) else f"a {type(value).__name__}"


def _arguments_of(
    id: str,
    operation: str | None,
    arguments: Mapping[str, str | Expression] | Iterable[tuple[str, Expression]],
    performer: Performer,
    tree: Expression | None,
) -> tuple[tuple[str, Expression], ...]:
    """The arguments of a function or tool as expressions."""
    calls = performer in ("function", "tool")
    if calls != (operation is not None):
        lacks = "needs the name of its operation, such as operation='pay'" if calls else "calls no operation"
        raise ProcedureError(f"step {id!r}: performer={performer!r} {lacks}", step=id)
    given = arguments.items() if isinstance(arguments, Mapping) else arguments
    pairs = listed(given, "arguments", "{'amount': 'total'}")
    if operation is None:
        if pairs:
            raise ProcedureError(f"step {id!r}: only a function or a tool takes arguments", step=id)
        return ()
    check_name(operation, f"the operation of step {id!r}")
    if tree is not None:
        raise ProcedureError(f"step {id!r} has an expression and an operation: leave one out", step=id)
    for name, _ in pairs:
        check_name(name, f"an argument of step {id!r}")
    return tuple((name, read_expression(value) if isinstance(value, str) else value) for name, value in pairs)


def check_step(value: object, number: int) -> Step:
    """Raise unless the value is a step; `number` is its place in the list, from 1."""
    if not isinstance(value, Step):
        raise ProcedureError(f"step {number} is a {type(value).__name__}, not a Step")
    return value
