"""Where the steps of a run come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal, Protocol

from stepguard.core.verdicts import Strength
from stepguard.errors import ProcedureError, StepguardError
from stepguard.language.expressions import Chain, Expression, walk
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value
from stepguard.procedure.lazy_steps import LazySteps
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step
from stepguard.results import Occurrence


class Halt(StepguardError):
    """The procedure cannot go on here, whatever a model says: a bound is reached, an approval was refused.

    Attributes:
        status: how the run ends.
        path: the place in the procedure.
    """

    def __init__(self, reason: str, *, status: Literal["abstained", "exhausted", "failed"], path: str) -> None:
        super().__init__(reason)
        self.status: Literal["abstained", "exhausted", "failed"] = status
        self.path = path


@dataclass(frozen=True, slots=True)
class Pending:
    """A step that comes up in the run.

    Attributes:
        step: what is asked.
        path: its place, such as ``items[2].paid``; empty where that is the id of the step.
        site: which statement of the procedure it is, see `stepguard.results.Occurrence`.
        control: what stands behind the conditions and lists because of which it comes up.
    """

    step: Step
    path: str = ""
    site: str = ""
    control: Strength = "proved"

    def occurrence(self, index: int) -> Occurrence:
        """Its place in the run, with the index that it has there."""
        return Occurrence(index, self.step.id, self.path, self.site)


def asked_type(kind: ValueType, formula: Expression) -> ValueType:
    """What the value of a formula is read as: a percentage that is reduced, added to or multiplied as a number.

    Small models write ``1 - 0.3 = 0.7%`` whenever they are asked for a percentage; ``70%`` is read as the number, too.
    A share, and what is rounded, is worked out as a percentage: ``part / whole * 100 = 19%``.
    """
    if kind.kind != "percent" or kind.places is not None:
        return kind
    # Models work out part / whole * 100 = 19 %, which is right; only sums and products are asked as numbers.
    share = any(isinstance(node, Chain) and "/" in node.operators for node in walk(formula))
    return kind if share else replace(kind, kind="number")


def in_numbers(step: Step) -> Step:
    """A step of a straight procedure as it is asked; see `asked_type`."""
    if step.expression is None or step.performer != "model":
        return step
    kind = asked_type(step.type, step.expression)
    if kind is step.type:
        return step
    return step.occurrence(
        step.id,
        {},
        expression=step.expression,
        instruction=step.instruction,
        reads=step.reads,
        checks=step.checks,
        show_work=step.show_work,
        type=kind,
    )


class State(Protocol):
    """The verified values of a run, as its steps read them."""

    values: dict[str, Value]
    frontier: int

    def support(self, names: Iterable[str]) -> Strength:
        """What stands behind the weakest of these values."""
        ...

    def define(self, name: str, value: Value, support: Strength) -> None:
        """Give a value that follows from others a name of its own."""
        ...

    def drop(self, names: Iterable[str]) -> None:
        """These values are read by no later step."""
        ...


class StepSource(Protocol):
    """The steps of one run, by index, as far as they are decided."""

    @property
    def known(self) -> int:
        """How many steps have come up."""
        ...

    @property
    def ended(self) -> bool:
        """Whether no more will come up."""
        ...

    @property
    def failure(self) -> Exception | None:
        """Why no more will come up although the procedure is not at its end."""
        ...

    @property
    def place(self) -> tuple[str, str]:
        """The path and the site of what ended it, where there is a `failure`."""
        ...

    @property
    def ways(self) -> Mapping[str, int]:
        """How often each branch and each loop was entered; see `stepguard.results.Result`."""
        ...

    def advance(self, upto: int) -> None:
        """Let steps come up until there are `upto` of them, or the next one is not decided yet."""
        ...

    def at(self, index: int) -> Pending:
        """The step at an index below `known`. Raises ProcedureError: a lazy procedure is wrong there."""
        ...

    def variables(self) -> dict[str, Value]:
        """The inputs and the variables of the procedure that have a value."""
        ...

    def answer(self) -> Value:
        """The answer, at the end."""
        ...

    def output(self) -> object:
        """The answer as what the procedure hands it on as."""
        ...


class Straight:
    """The steps of a procedure that is a list of them: all are known from the start."""

    failure = None
    ended = True
    place = ("", "")
    ways: Mapping[str, int] = MappingProxyType({})

    def __init__(self, procedure: Procedure, state: State) -> None:
        steps = procedure.steps
        self._steps = steps.for_one_run() if isinstance(steps, LazySteps) else steps
        self._procedure = procedure
        self._state = state
        self.known = len(procedure)

    def advance(self, upto: int) -> None:
        """All steps are known."""

    def at(self, index: int) -> Pending:
        """See `StepSource.at`."""
        step = self._steps[index]
        if self._procedure.look_back is not None and index == self.known - 1 and step.id != self._procedure.answer:
            was = self._procedure.answer
            raise ProcedureError(f"the last step was {was!r} when the procedure was made", step=step.id)
        return Pending(in_numbers(step))

    def variables(self) -> dict[str, Value]:
        """See `StepSource.variables`."""
        return dict(self._state.values)

    def answer(self) -> Value:
        """See `StepSource.answer`."""
        return self._state.values[self._procedure.answer]

    def output(self) -> object:
        """See `StepSource.output`."""
        return self.answer()
