"""Unfolding: the steps of a run of a procedure with branches, loops and calls, in the order in which they come up.

The body is walked by generators, one inside the other as the blocks are. Each yields a `Pending` step, or the names of
the values that it awaits: a condition is looked at when what it reads is verified, and not before. The rounds of
``for each`` are walked side by side, so that steps of several rounds can be asked together; a round of ``repeat``
begins when the one before it is over. Nothing is held of what is over, so a million rounds take no more room than one.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Final

from stepguard.core.verdicts import Strength, weakest
from stepguard.engine.control.lowering import Lowering
from stepguard.engine.control.person_questions import approval
from stepguard.engine.control.scopes import (
    Gathered,
    Known,
    NameBinding,
    Scope,
    ScopeValues,
    Undecided,
    Variable,
    names_of,
    resolve,
    weakened,
)
from stepguard.engine.control.sources import Halt, Pending, State
from stepguard.engine.control.value_names import ValueNames
from stepguard.errors import EvaluationError, InexactError, ProcedureError, ValueRefused
from stepguard.language.expressions import Expression, format_expression
from stepguard.language.models import to_python
from stepguard.language.terms.evaluation import evaluate_term
from stepguard.language.terms.operands import is_variable
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value, show_value, to_exact
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.statements import Body, ForEach, If, ProcedureCall, Repeat, Statement, assigned, performed_in
from stepguard.procedure.steps import EFFECTIVE, Step

_WINDOW: Final = 32
"""How many rounds of a list are walked side by side, so that their steps can share a request."""

_KEPT_STEPS: Final = 32  # no mutate: a limit
"""How many steps before the frontier can still be looked up, for the text that leads into the next one."""

_Walk = Iterator[Pending | tuple[str, ...]]


class Unfolding:
    """The steps of one run; see `stepguard.engine.control.sources.StepSource`."""

    def __init__(self, procedure: Procedure, state: State) -> None:
        self.ended = False
        self.failure: Exception | None = None
        self.place = ("", "")
        self.ways: Counter[str] = Counter()
        self.known = 0
        self._procedure = procedure
        self._state = state
        self._operations = procedure.all_operations
        self._names = ValueNames(procedure.names, procedure.calls, procedure.set_by_steps)
        self._steps: dict[int, Pending] = {}
        self._oldest = 0
        self._awaited: tuple[str, ...] = ()
        self._drops: deque[tuple[int, tuple[str, ...]]] = deque()
        self._scope = Scope(None, tables=procedure.tables)
        for declared in procedure.inputs:
            self._scope.bind(declared.name, Variable(declared.name, declared.type))
        self._walk = self._whole(procedure)

    def advance(self, upto: int) -> None:
        """See `StepSource.advance`."""
        self._forget()
        while not self.ended and self.known < upto:
            # Walking on is pointless, and would evaluate the same condition again, until one of these values is
            # verified.
            if self._awaited and not any(name in self._state.values for name in self._awaited):
                return
            try:
                item = next(self._walk, None)
            except (EvaluationError, ProcedureError, ValueRefused, Halt) as error:
                self.failure, item = error, None
            if item is None:
                self.ended = True
                return
            self._awaited = () if isinstance(item, Pending) else item
            if isinstance(item, Pending):
                self._steps[self.known] = item
                self.known += 1

    def _forget(self) -> None:
        frontier = self._state.frontier
        for index in range(self._oldest, frontier - _KEPT_STEPS):
            del self._steps[index]
            self._oldest = index + 1
        while self._drops and self._drops[0][0] <= frontier:
            self._state.drop(self._names.release(self._drops.popleft()[1]))

    def at(self, index: int) -> Pending:
        """See `StepSource.at`."""
        return self._steps[index]

    def variables(self) -> dict[str, Value]:
        """See `StepSource.variables`."""
        shown: dict[str, Value] = {}
        for name, binding in self._scope.own.items():
            with suppress(Undecided):
                shown[name] = resolve(binding, self._state)
        return shown

    def output(self) -> object:
        """See `StepSource.output`."""
        kind, answer = self._procedure.output, self.answer()
        return answer if kind is None else to_python(kind, kind.accept(answer))

    def answer(self) -> Value:
        """See `StepSource.answer`."""
        term = self._procedure.answer_term
        if is_variable(term):
            return resolve(self._scope.get(term.name), self._state)
        return evaluate_term(term, ScopeValues(self._scope, self._state), self._scope.tables)

    def _whole(self, procedure: Procedure) -> _Walk:
        yield from self._body(procedure.body, self._scope, "proved")
        # The answer has to be there, too: a value that it needs may be on no way that was taken.
        self.place = ("the answer", "")
        answer, _ = yield from self._value(procedure.answer_term, self._scope)
        if procedure.output is not None:
            procedure.output.accept(answer)

    def _body(self, body: Body, scope: Scope, control: Strength, block: str = "") -> _Walk:
        """The statements of a block, whose site is that of the block and their number."""
        for number, statement in enumerate(body):
            site = f"{block}{number}"
            try:
                yield from self._statement(statement, scope, control, site)
            except (EvaluationError, ProcedureError, ValueRefused, Halt):
                if not self.place[1]:  # the innermost statement
                    self.place = (f"{scope.path}{_label(statement)}", site)
                raise

    def _statement(self, statement: Statement, scope: Scope, control: Strength, site: str) -> _Walk:
        match statement:
            case Step():
                yield from self._step(statement, scope, control, site)
            case If(branches, otherwise):
                taken, body = len(branches), otherwise
                for number, (condition, branch) in enumerate(branches):
                    truth, support = yield from self._value(condition, scope)
                    control = weakest((control, support))
                    if truth:
                        taken, body = number, branch
                        break
                self.ways[f"{site}.{taken}"] += 1
                yield from self._body(body, scope, control, f"{site}.{taken}.")
                # Also what the branch did not set: that it kept its value rests on the condition, too.
                self._weaken(assigned((statement,)), scope, control)
            case ForEach():
                yield from self._for_each(statement, scope, control, site)
            case Repeat():
                yield from self._repeat(statement, scope, control, site)
            case ProcedureCall():
                yield from self._call(statement, scope, control, site)

    def _step(self, step: Step, scope: Scope, control: Strength, site: str) -> _Walk:
        if step.operation is not None and self._operations[step.operation].approval:
            yield from self._approval(step, scope, control, site)
        id = f"{step.id}{scope.suffix}"
        while True:
            lowering = Lowering(scope, self._state, self._names, self._procedure.shown.get(site, {}))
            try:
                made = lowering.step(step, id)
                break
            except Undecided as undecided:
                yield undecided.names
        path = f"{scope.path}{step.id}" if scope.path else ""
        yield Pending(made, path, site, weakest((control, lowering.control)))
        # After lowering: the step itself reads what had its name before.
        scope.bind(step.id, Variable(id, step.type))

    def _weaken(self, names: tuple[str, ...], scope: Scope, control: Strength) -> None:
        """What a branch has set, or would have, is what it is because of a condition."""
        if control == "proved":
            return
        for name in names:
            if (binding := scope.find(name)) is not None:
                scope.bind(name, weakened(binding, control))

    def _approval(self, step: Step, scope: Scope, control: Strength, site: str) -> _Walk:
        """Ask a person before a tool is called; the run ends where the answer is no."""
        arguments = {}
        for name, tree in step.arguments:
            arguments[name], _ = yield from self._value(tree, scope)
        # It has a name of its own that no variable has, and is bound to none.
        id = self._names.free(f"approve_{step.id}{scope.suffix}", self._state)
        asked = approval(id, step, arguments, self._procedure.shown[site])
        yield Pending(asked, f"{scope.path}approve_{step.id}", f"{site}.approval", control)
        while id not in self._state.values:
            yield (id,)
        self._drop_later((id,))
        if not self._state.values[id]:
            reason = f"the call of {step.operation} was not approved"
            raise Halt(reason, status="abstained", path=f"{scope.path}{step.id}")

    def _drop_later(self, names: tuple[str, ...]) -> None:
        """These values are not needed any more when every step that has come up is completed."""
        self._drops.append((self.known, names))

    def _value(self, tree: Expression, scope: Scope) -> Generator[tuple[str, ...], None, tuple[Value, Strength]]:
        """The value of an expression and what stands behind it, when they are known."""
        while True:
            view = ScopeValues(scope, self._state)
            try:
                return evaluate_term(tree, view, scope.tables), view.support
            except Undecided as undecided:
                yield undecided.names

    def _for_each(self, loop: ForEach, scope: Scope, control: Strength, site: str) -> _Walk:
        items, support = yield from self._value(loop.over, scope)
        assert isinstance(items, tuple)
        control = weakest((control, support))
        of = loop.over.name if is_variable(loop.over) else loop.variable
        rounds: list[Scope] = []
        walks: dict[int, tuple[_Walk, tuple[str, ...]]] = {}
        begun = 0
        # What has effects is performed in the order of writing.
        window = 1 if any(step.performer in EFFECTIVE for step in performed_in(loop.body)) else _WINDOW
        loop_number = scope.begin_loop()
        while begun < len(items) or walks:
            while begun < len(items) and len(walks) < window:
                inner = self._round(scope, loop_number, begun, f"{of}[{begun}]")
                label = f"{loop.variable}{inner.suffix}"
                inner.bind(loop.variable, Known(items[begun], support, label))
                rounds.append(inner)
                self.ways[site] += 1
                walks[begun] = (self._body(loop.body, inner, control, f"{site}."), ())
                begun += 1
            for number, (walk, awaited) in list(walks.items()):
                if awaited and not any(name in self._state.values for name in awaited):
                    continue
                for item in walk:
                    if not isinstance(item, Pending):
                        walks[number] = (walk, item)
                        break
                    yield item
                else:
                    self._drop_later(tuple(rounds[number].given.values()))
                    del walks[number]
            if walks and (begun == len(items) or len(walks) == window):
                # Any of these lets one of the rounds go on.
                yield tuple(name for _, awaited in walks.values() for name in awaited)
        for name in assigned(loop.body):
            values = [binding for inner in rounds if (binding := inner.own.get(name)) is not None]
            if len(values) == len(rounds):  # what some rounds do not set is no list, and nothing behind may read it
                scope.bind(name, Gathered(tuple(values), control))

    def _round(self, scope: Scope, loop: int, number: int, path: str) -> Scope:
        """The scope of a round. What it sets has a name that no round of another loop has: `k_0`, then `k_b0`."""
        letters = ""
        while loop:
            loop, letter = divmod(loop, 26)
            letters = f"{chr(ord('a') + letter)}{letters}"
        suffix = f"{scope.suffix}{self._names.separator}{letters}{number}"
        return Scope(scope, suffix=suffix, path=f"{scope.path}{path}.", tables=scope.tables)

    def _repeat(self, loop: Repeat, scope: Scope, control: Strength, site: str) -> _Walk:
        carried, loop_number = assigned(loop.body), scope.begin_loop()
        scope.repeats += 1
        here = "repeat" if scope.repeats == 1 else f"repeat{scope.repeats}"
        for number in range(loop.most):
            inner = self._round(scope, loop_number, number, f"{here}[{number}]")
            self.ways[site] += 1
            yield from self._body(loop.body, inner, control, f"{site}.")
            over, support = yield from self._value(loop.until, inner)
            control = weakest((control, support))
            dead = [*inner.given.values()]
            for name in carried:
                binding = inner.own.get(name)
                if binding is None:
                    continue
                before = scope.bind(name, weakened(binding, control))
                # What the first round replaces was set outside of the loop, which must not drop it.
                if number and before is not None:
                    dead += names_of(before)
            if dead:
                self._drop_later(tuple(dead))
            if over:
                return
        until = format_expression(loop.until)
        raise Halt(
            f"`repeat at most {loop.most} times` is at its bound, and `{until}` does not hold",
            status="exhausted",
            path=f"{scope.path}{here}[{loop.most - 1}]",
        )

    def _call(self, call: ProcedureCall, scope: Scope, control: Strength, site: str) -> _Walk:
        called = call.procedure
        suffix = f"{scope.suffix}{self._names.separator}{call.id}"
        # No parent: a called procedure sees its arguments and nothing of its caller.
        inner = Scope(None, suffix=suffix, path=f"{scope.path}{call.id}.", tables=called.tables)
        passed = dict(call.arguments)
        result: NameBinding
        for declared in called.inputs:
            if declared.name not in passed:
                assert declared.default is not None
                inner.bind(declared.name, Known(declared.default, "proved", f"{declared.name}{suffix}"))
                continue
            value, support = yield from self._value(passed[declared.name], scope)
            value = _passed(value, declared.type)
            inner.bind(declared.name, Known(value, support, f"{declared.name}{suffix}"))
        self.ways[site] += 1
        yield from self._body(called.body, inner, control, f"{site}.")
        answer = called.answer_term
        if is_variable(answer):
            result = inner.get(answer.name)
        else:
            value, support = yield from self._value(answer, inner)
            result = Known(value, weakest((control, support)), f"{call.id}{scope.suffix}")
        scope.bind(call.id, weakened(result, control))
        kept = names_of(result)
        # The answer outlives the call under the name that it had there.
        own = (name for binding in inner.own.values() for name in names_of(binding) if name not in kept)
        self._drop_later((*own, *inner.given.values()))


def _passed(value: Value, kind: ValueType) -> Value:
    """An argument as the type of its input, without any rounding."""
    exact = to_exact(value)
    if isinstance(exact, bool) or not isinstance(exact, int | Fraction) or not kind.numeric:
        return kind.accept(value)
    made = kind.convert(exact)
    if to_exact(made) != exact:
        raise InexactError(f"{show_value(value)} is no {kind}: give it to the call as one, by a step of that type")
    return made


def _label(statement: Statement) -> str:
    """What a statement is called at the end of a path."""
    if isinstance(statement, Step | ProcedureCall):
        return statement.id
    return "if" if isinstance(statement, If) else "for each" if isinstance(statement, ForEach) else "repeat"
