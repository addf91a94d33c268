"""The way that a procedure takes over given values: its steps as they come up, each with its place."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from stepguard.auditing.occurrences import LoopChain, Places
from stepguard.auditing.states import Judge
from stepguard.checks.expression_values import Evaluates
from stepguard.core.verdicts import Strength
from stepguard.engine.control import Pending, State, Unfolding
from stepguard.engine.control.scopes import Known, Scope, ScopeValues, Undecided, Variable
from stepguard.errors import EvaluationError, ExpressionError, ProcedureError, ValueRefused
from stepguard.language.expressions import Expression, Name, Number, format_expression, walk
from stepguard.language.terms.evaluation import evaluate_term
from stepguard.language.terms.operands import Aggregate, Choice, Item, ListTerm, Member, RecordTerm
from stepguard.language.values import Value
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.statements import ProcedureCall
from stepguard.procedure.steps import Step

_ROUND: Final = re.compile(r"\[([0-9]+)\]")

Key = tuple[str, tuple[str, ...], tuple[int, ...]]
"""The name of a step, the sites of the loops and calls around it, and the round of each."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A step that a way comes to.

    Attributes:
        key: its place, which is the same on every way.
        path: its place, as results show it.
        chain: the loops and calls around it.
        rounds: the 0-based round of each of them; 0 of a call.
        step: the step, over the values of the way.
        answers_call: whether it only gives the answer of a call its name.
        site: which statement it is.
        scope: what the names of the procedure stand for there.
        state: the values of the way.
        callers: the scopes of the calls around it, the outermost first.
    """

    key: Key
    path: str
    chain: LoopChain
    rounds: tuple[int, ...]
    step: Step
    answers_call: bool
    site: str
    scope: Scope
    state: State
    callers: tuple[Scope, ...]

    @property
    def name(self) -> str:
        """The name that the procedure gives the step."""
        return self.key[0]

    @property
    def item(self) -> Value | None:
        """What the innermost loop over a list is about in this round, None where that is not known."""
        variable = next((loop.variable for loop in reversed(self.chain) if loop.variable), "")
        for scope in (self.scope, *reversed(self.callers)):
            with suppress(KeyError, Undecided):
                return ScopeValues(scope, self.state)[variable]
        return None

    def otherwise(self, branches: Iterable[tuple[str, Step]]) -> Iterator[tuple[str, Value]]:
        """What the step would come to where a condition was decided the other way: the condition, and the value.

        Args:
            branches: the steps of the same name in other branches, each with the condition that leads to it.
        """
        declared = written(self.step)
        others: list[tuple[str, Expression, Step]] = [
            (condition, step.expression, step) for condition, step in branches if step.expression is not None
        ]
        if isinstance(declared.expression, Choice):
            then, decided, other = (
                declared.expression.then,
                declared.expression.condition,
                declared.expression.otherwise,
            )
            others += [(format_expression(decided), side, declared) for side in (then, other)]
        for condition, tree, step in others:
            with suppress(EvaluationError, KeyError, ProcedureError, ValueRefused, Undecided):  # not all is set there
                value = evaluate_term(tree, ScopeValues(self.scope, self.state), self.scope.tables)
                yield condition, step.type.convert(value) if step.type.numeric else step.type.accept(value)


@dataclass(slots=True)
class _Values:
    """The values of a way; see `stepguard.engine.control.State`."""

    values: dict[str, Value]
    frontier: int = 0  # nothing is dropped

    def support(self, names: Iterable[str]) -> Strength:
        del names
        return "proved"

    def define(self, name: str, value: Value, support: Strength) -> None:
        del support
        self.values[name] = value

    def drop(self, names: Iterable[str]) -> None:
        del names


class _Calls(Unfolding):
    """Unfolding in which the answer of a call comes up as a step, too, for transcripts that name it.

    Attributes:
        here: the scope of the step that came up last.
        callers: the scopes of the calls around it.
    """

    here: Scope
    callers: tuple[Scope, ...] = ()

    def _step(self, step: Step, scope: Scope, control: Strength, site: str) -> Iterator[Pending | tuple[str, ...]]:
        for pending in super()._step(step, scope, control, site):
            self.here = scope
            yield pending

    def _call(
        self, call: ProcedureCall, scope: Scope, control: Strength, site: str
    ) -> Iterator[Pending | tuple[str, ...]]:
        around, self.callers = self.callers, (*self.callers, scope)
        yield from super()._call(call, scope, control, site)
        self.callers = around
        binding, id = scope.get(call.id), f"{call.id}{scope.suffix}"
        kind = call.procedure.answer_type
        match binding:
            case Variable(name, type):
                step = _copy(Step(call.id, instruction=call.id, type=type), id, Name(name), (name,))
            case Known(int() | Fraction() as value) if kind.numeric:
                step = _copy(Step(call.id, instruction=call.id, type=kind), id, Number(Fraction(value)), ())
            case _:
                return
        self.here = scope
        yield Pending(step, f"{scope.path}{call.id}", f"{site}=")
        scope.bind(call.id, Variable(id, step.type))


def _copy(step: Step, id: str, tree: Name | Number, reads: tuple[str, ...]) -> Step:
    return step.occurrence(
        id, {}, expression=tree, instruction=None, reads=reads, checks=(), show_work=False, performer="code"
    )


@dataclass(slots=True)
class Way:
    """A way through a procedure.

    Attributes:
        values: the values on it.
        reached: the steps that it comes to, in the order of the run.
        failure: why it ends before the end of the procedure: an error, or a bound; None where it does not.
        open: whether a value is missing without which it cannot go on.
        place: where it ended, with a failure.
        answer: the answer, None where there is none.
    """

    values: dict[str, Value]
    reached: list[Reached] = field(default_factory=list)
    failure: Exception | None = None
    open: bool = False
    place: str = ""
    answer: Value | None = None


def take(
    procedure: Procedure,
    places: Places,
    inputs: dict[str, Value],
    value: Callable[[Reached, dict[str, Value]], Value | None],
) -> Way:
    """The way of a procedure.

    Args:
        places: where its names are set.
        value: the value of a step that is reached, given the values before it; None where there is none.
    """
    state = _Values(dict(inputs))
    way = Way(state.values)
    source = _Calls(procedure, state)
    while True:
        at = source.known
        source.advance(at + 1)
        if source.known == at:
            break
        pending = source.at(at)
        if pending.site.endswith(".approval"):  # an unguarded run has none
            state.values[pending.step.id] = True
            continue
        chain = places.chain(pending.site.removesuffix("="))
        path = pending.path or pending.step.id
        numbers = map(int, _ROUND.findall(path))
        rounds = tuple(next(numbers) if loop.rounds else 0 for loop in chain)
        name = path.rpartition(".")[2]
        key = name, tuple(loop.site for loop in chain), rounds
        reached = Reached(
            key,
            path,
            chain,
            rounds,
            pending.step,
            pending.site.endswith("="),
            pending.site,
            source.here,
            state,
            source.callers,
        )
        way.reached.append(reached)
        claimed = value(reached, state.values)
        if claimed is not None:
            state.values[pending.step.id] = claimed
    way.failure, way.open = source.failure, not source.ended
    way.place = source.place[0]
    if source.ended and source.failure is None:
        with suppress(EvaluationError, ProcedureError, ValueRefused, Undecided):
            way.answer = source.answer()
    return way


def written(step: Step) -> Step:
    """The step of the procedure that one of a run is."""
    return step if step.origin is None else step.origin.step


def judge_of(step: Step, timeout: float | None) -> Judge:
    """The judge of a step that is reached: by exact evaluation where its formula is no arithmetic.

    Working is compared only where the formula is the one that is written: no choice, no look-up, no aggregate.
    """
    if step.expression is None:
        return Judge(step, timeout)
    formula = written(step).expression
    decided = (Aggregate, Choice, Item, ListTerm, Member, RecordTerm)
    shown = step.show_work and formula is not None and not any(isinstance(node, decided) for node in walk(formula))
    plain = step.occurrence(
        step.id, {}, expression=step.expression, instruction=None, reads=step.reads, checks=step.checks, show_work=shown
    )
    with suppress(ProcedureError, ExpressionError):
        if step.type.numeric or step.type.kind == "boolean":
            return Judge(plain, timeout)
    return Judge(
        step.occurrence(
            step.id,
            {},
            expression=None,
            instruction=step.id,
            reads=step.reads,
            checks=(Evaluates(step.expression), *step.checks),
            show_work=False,
            performer="model",
        ),
        timeout,
    )


def computed(judge: Judge, values: dict[str, Value]) -> Value | None:
    """The exact value of a step that is reached, None where none can be computed."""
    for check in judge.step.checks:
        if isinstance(check, Evaluates):
            try:
                return judge.step.type.accept(evaluate_term(check.expression, values, {}))
            except (EvaluationError, ValueRefused):
                return None
    return judge.expected(values)
