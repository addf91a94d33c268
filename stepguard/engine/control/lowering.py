"""Lowering: from a step of a procedure to the step that is asked, whose operands are plain variables.

``paid = min(item.amount, daily[country])`` in the second round of a loop is asked as ``paid_1 = min(item_1_amount,
daily_country_1)``: a field, a row of a table, an item of a list are looked up by the guard and get a name of their
own; a choice becomes the side that is taken, ``sum of paid`` the sum ``paid_0 + paid_1 + paid_2``, and ``over / 1 day``
the number of days. A step that is a value which is there already, just as it is, is looked up as well. What is then
arithmetic is asked and checked like any other formula. What computes with dates, texts, quantities or records is asked
as it is written, and its value is checked against the exact one (`stepguard.checks.expression_values`).
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from operator import is_not
from types import MappingProxyType
from typing import Final

from stepguard.checks.expression_values import Evaluates
from stepguard.core.verdicts import Strength, weakest
from stepguard.engine.control.person_questions import told_to_person
from stepguard.engine.control.scopes import (
    Gathered,
    Known,
    NameBinding,
    Scope,
    ScopeValues,
    Variable,
    resolve,
    support_of,
)
from stepguard.engine.control.sources import State, asked_type
from stepguard.engine.control.value_names import Aggregated, ValueNames
from stepguard.errors import EvaluationError
from stepguard.language.expressions import (
    Call,
    Chain,
    Expression,
    Logic,
    Name,
    Number,
    format_expression,
    map_parts,
    truths_in,
)
from stepguard.language.terms.evaluation import evaluate_term
from stepguard.language.terms.operands import (
    Aggregate,
    Choice,
    Field,
    Item,
    LiteralTerm,
    Member,
    Operand,
    is_variable,
    operands_in,
    variables_in,
)
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value, show_value, to_exact
from stepguard.procedure.steps import PLACEHOLDER, Performer, Step

_SCALAR: Final = (int, Fraction, Decimal, bool, str)


class Lowering:
    """Turns one step of a procedure into the step that is asked.

    Args:
        names: names for values that have none.
        shown: the types of what a person is shown.

    Attributes:
        control: what stands behind the choices that were made on the way.
    """

    def __init__(
        self, scope: Scope, state: State, names: ValueNames, shown: Mapping[str, ValueType] = MappingProxyType({})
    ) -> None:
        self.control: Strength = "proved"
        self._scope = scope
        self._state = state
        self._names = names
        self._shown_as = shown
        self._reads: dict[str, ValueType | None] = {}
        self._renamed: dict[str, str] = {}

    def step(self, step: Step, id: str) -> Step:
        """The step that is asked, under an id of its own.

        Raises:
            Undecided: it depends on values that are not verified yet.
            EvaluationError: an operand has no value: there is no such item, row or field.
        """
        if step.operation is not None:
            passed = tuple((name, self.expression(value)) for name, value in step.arguments)
            return self._made(step, id, None, step.instruction, arguments=passed)
        if step.expression is None:
            return self._in_words(step, id)
        tree = self.expression(step.expression)
        self._read_by_checks(step)
        # Before the arithmetic: asked to copy a percentage, a small model failed in 14 of 24 runs.
        if self._copies(step, tree):
            return self._made(step, id, tree, step.instruction, performer="code")
        if step.performer == "code" or self._arithmetic(step, tree):
            kind = step.type if step.performer == "code" else asked_type(step.type, tree)
            if not self._renamed and tree == step.expression and id == step.id and kind is step.type:
                return step
            return self._made(step, id, tree, step.instruction, show_work=step.show_work, type=kind)
        # Dates, texts, quantities, records: asked in words, and the value is held against the exact one.
        text = step.instruction or f"Work out {format_expression(tree)}."
        return self._made(step, id, None, text, checks=(Evaluates(tree), *step.checks))

    def _read_by_checks(self, step: Step) -> None:
        for check in step.checks:
            # What a check reads has to be verified before the step is asked, too.
            for name in getattr(check, "reads", ()):
                if name != step.id:
                    self._variable(name)

    def _made(
        self,
        step: Step,
        id: str,
        tree: Expression | None,
        instruction: str | None,
        *,
        checks: tuple[object, ...] | None = None,
        show_work: bool = False,
        arguments: tuple[tuple[str, Expression], ...] = (),
        performer: Performer | None = None,
        type: ValueType | None = None,
    ) -> Step:
        return step.occurrence(
            id,
            self._renamed,
            expression=tree,
            instruction=instruction,
            reads=tuple(self._reads),
            checks=step.checks if checks is None else checks,  # type: ignore[arg-type]
            show_work=show_work,
            arguments=arguments,
            performer=performer,
            type=type,
        )

    def _copies(self, step: Step, tree: Expression) -> bool:
        """Whether the value is there already, just as it is: a row, a field, the side of a choice that was taken.

        Nobody has anything to work out then, and who is asked can only spoil it.
        """
        if step.performer != "model" or step.checks:
            return False
        if isinstance(tree, Number | LiteralTerm):
            value: Value = tree.value
        elif is_variable(tree):
            kind = self._reads[tree.name]
            if kind is not None:
                return kind == step.type
            value = self._state.values[tree.name]
        else:
            return False
        try:
            # The sum of nothing is a plain 0, also of amounts that have a unit.
            return step.type.convert(value) == value or (value == 0 and not step.type.scalar)
        except EvaluationError:
            return False

    def _in_words(self, step: Step, id: str) -> Step:
        for name in step.reads:
            self._variable(name)
        text = step.instruction or ""
        # A person sees the values, a model the names of this round.
        if step.performer == "person":
            text = PLACEHOLDER.sub(lambda match: self._shown(match[1]), text)
        elif self._renamed:
            renamed = self._renamed
            text = PLACEHOLDER.sub(lambda match: renamed.get(match[1], match[0]), text)
        if not self._renamed and text == step.instruction and id == step.id:
            return step
        return self._made(step, id, None, text)

    def _shown(self, name: str) -> str:
        return told_to_person(resolve(self._scope.get(name), self._state), self._shown_as[name])

    def expression(self, tree: Expression) -> Expression:
        """An expression whose operands are variables of the run, as far as it stays the same for the reader."""
        match tree:
            case LiteralTerm(value):
                return _number(value) or tree
            case Choice(then, condition, otherwise):
                view = ScopeValues(self._scope, self._state)
                # The other side is not looked at: it may have no value, and no prompt shows a way that was not taken.
                truth = evaluate_term(condition, view, self._scope.tables)
                self.control = weakest((self.control, view.support))
                return self.expression(then if truth else otherwise)
            case Aggregate():
                return self._aggregate(tree)
            case Operand():
                return self._looked_up(tree)
            case Name(name):
                return self._variable(name)
            case Chain(operands, operators):
                return self._chain(operands, operators)
        return map_parts(tree, self.expression)

    def _chain(self, operands: tuple[Expression, ...], operators: tuple[str, ...]) -> Expression:
        """A sum or product; ``over / 1 days`` in it is the number of days, which nobody has to work out."""
        parts: list[Expression] = []
        signs: list[str] = []
        place = 0
        while place < len(operands):
            before, behind = ("", *operators)[place], (*operators, "")[place]
            signs.append(before)
            divided = behind == "/" and before in ("", "*")  # a % b / 1 day is no remainder of days
            number = self._in_units(operands[place], operands[place + 1]) if divided else None
            parts.append(self.expression(operands[place]) if number is None else number)
            place += 1 if number is None else 2
        return Chain(tuple(parts), tuple(signs[1:])) if len(parts) > 1 else parts[0]

    def _in_units(self, amount: Expression, unit: Expression) -> Expression | None:
        """An amount that is there, as a number of units; None where that is more than a conversion."""
        if not isinstance(unit, LiteralTerm) or not (unit.text or "").startswith("1 "):
            return None
        if not isinstance(amount, Name) or isinstance(amount, Aggregate | Choice):
            return None
        view = ScopeValues(self._scope, self._state)
        value = evaluate_term(Chain((amount, unit), ("/",)), view, self._scope.tables)
        if _number(value) is None:  # such as a density
            return None
        label = f"{self._label(amount)}_in_{(unit.text or '').removeprefix('1 ')}"
        return Name(self._define(label, value, view.support))

    def _variable(self, name: str) -> Name:
        binding = self._scope.get(name)
        if isinstance(binding, Variable):
            self._reads[binding.name] = binding.type
            self.control = weakest((self.control, binding.control))
            if binding.name != name:
                self._renamed[name] = binding.name
            return Name(binding.name)
        label = binding.label if isinstance(binding, Known) else f"{name}{self._scope.suffix}"
        value, support = resolve(binding, self._state), support_of(binding, self._state)
        defined = self._define(label, value, support)
        self._renamed[name] = defined
        return Name(defined)

    def _looked_up(self, tree: Operand) -> Expression:
        read = tuple(self._scope.find(name) for name in variables_in(tree)) if isinstance(tree, Aggregate) else ()
        # Bindings are compared by identity: the same ones mean the same value, without going through the list again.
        known = self._names.aggregates.get(id(tree)) if read else None
        if known is None or len(known.read) != len(read) or any(map(is_not, known.read, read)):
            view = ScopeValues(self._scope, self._state)
            known = Aggregated(tree, read, evaluate_term(tree, view, self._scope.tables), view.support)
            if read:
                self._names.aggregates[id(tree)] = known
        return Name(self._define(self._label(tree), known.value, known.support))

    def _define(self, label: str, value: Value, support: Strength) -> str:
        name = self._names.define(label, value, support, self._scope, self._state)
        self._reads[name] = None
        return name

    def _label(self, tree: Expression) -> str:
        """A name for what an operand gives."""
        match tree:
            case Field(of, key):
                return f"{self._label(of)}_{key}"
            case Item(of, keys):
                return "_".join((self._label(of), *map(self._label, keys)))
            case Member(member, of):
                return f"{self._label(member)}_in_{self._label(of)}"
            case LiteralTerm(value):
                return show_value(value)
            case Operand():
                return f"{tree.name}{self._scope.suffix}"
            case Name(name):
                binding = self._scope.find(name)
                if isinstance(binding, Variable):
                    return binding.name
                return binding.label if isinstance(binding, Known) else name
            case Number():
                return format_expression(tree)
        return f"{format_expression(tree)}{self._scope.suffix}"

    def _aggregate(self, tree: Aggregate) -> Expression:
        """An aggregate as the sum, the least, the most of its parts; as a value where it is none of these."""
        parts = self._parts(tree)
        if parts is None:
            return self._looked_up(tree)
        if tree.function == "sum":
            return Chain(parts, ("+",) * (len(parts) - 1)) if len(parts) > 1 else parts[0] if parts else Number(0)
        if len(parts) == 1:
            return parts[0]
        if tree.function in ("min", "max"):
            return Call(tree.function, parts)
        return Logic("and" if tree.function == "all" else "or", parts)

    def _parts(self, tree: Aggregate) -> tuple[Expression, ...] | None:
        """What is aggregated, each as an operand; None where the aggregate is better looked up as a whole."""
        if tree.function in ("count", "first") or tree.variable is not None:
            return None
        binding: NameBinding | None = None
        if is_variable(tree.value):
            binding = self._scope.get(tree.value.name)
        if not isinstance(binding, Gathered) or not all(isinstance(item, Variable) for item in binding.items):
            return None
        # An empty sum is 0; for the others the evaluator decides whether that is an error, true or false.
        if tree.function != "sum" and not binding.items:
            return None
        parts: list[Expression] = []
        self.control = weakest((self.control, binding.control))
        for item in binding.items:
            assert isinstance(item, Variable)
            if not (item.type.numeric if tree.function in ("sum", "min", "max") else item.type.kind == "boolean"):
                return None
            parts.append(Name(item.name))
            self._reads[item.name] = item.type
            self.control = weakest((self.control, item.control))
        return tuple(parts)

    def _arithmetic(self, step: Step, tree: Expression) -> bool:
        """Whether a lowered expression is one of the arithmetic core."""
        if not step.type.scalar:
            return False
        if is_variable(tree):
            kind = self._reads[tree.name]
            return kind.scalar if kind is not None else isinstance(self._state.values[tree.name], _SCALAR)
        if next(operands_in(tree), None) is not None:
            return False
        truths = truths_in(tree)
        return all(self._numeric(name, truth=name in truths) for name in self._reads)

    def _numeric(self, name: str, *, truth: bool) -> bool:
        kind = self._reads[name]
        if kind is not None:
            return kind.numeric or (truth and kind.kind == "boolean")
        value = self._state.values[name]
        return _number(value) is not None or (truth and isinstance(value, bool))


def _number(value: Value) -> Number | None:
    if isinstance(value, bool) or not isinstance(value, int | Fraction | Decimal):
        return None
    exact = to_exact(value)
    assert not isinstance(exact, bool | str)
    return Number(exact)
