"""Right traces: procedures of steps of every kind, with the truth about each step."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from certification.looks import Look, show
from certification.truth import Spec, Tree, Truth, Undefined, compute
from stepguard import Input, Procedure, Step
from stepguard.checks import Check
from stepguard.errors import ProcedureError

__all__ = ["STEP_KINDS", "Made", "Plan", "Trace", "make_trace", "step_kind"]

_LARGEST = Fraction(10**40)
_FINEST = 10**9
_NAMES = Look(names=True)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a kind of step is made of: an expression, or the truth about a step in words and a check of it."""

    tree: Tree | None
    spec: Spec
    instruction: str = ""
    truth: Truth | None = None
    reads: tuple[str, ...] = ()
    check: Check | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """One step and the truth about it.

    Attributes:
        kind: the name of its kind.
        id: its variable.
        tree: its expression; None for a step in words.
        spec: its type.
        exact: the exact result, before any rounding.
        truth: its value.
        work: whether working is asked for.
        step: the step as the package has it.
    """

    kind: str
    id: str
    tree: Tree | None
    spec: Spec
    exact: Truth
    truth: Truth
    work: bool
    step: Step


@dataclass(frozen=True, slots=True)
class Trace:
    """A procedure, its inputs, its steps, and the values that hold before each step."""

    procedure: Procedure
    inputs: Mapping[str, object]
    steps: tuple[Made, ...]
    states: tuple[Mapping[str, Truth], ...]


Maker = Callable[[random.Random, Mapping[str, Truth]], Plan | None]
STEP_KINDS: dict[str, Maker] = {}
"""How a step of each kind is made from the values before it; None where these do not allow it."""


def step_kind(name: str) -> Callable[[Maker], Maker]:
    """Register a kind of step."""

    def register(maker: Maker) -> Maker:
        assert name not in STEP_KINDS
        STEP_KINDS[name] = maker
        return maker

    return register


def make_trace(chance: random.Random, *, focus: str | None = None, length: int = 4) -> Trace:
    """A trace of so many steps; one of them is of the kind `focus`."""
    state: dict[str, Truth] = {
        "x": Fraction(chance.choice([-1, 1, 1]) * chance.randint(2, 99)),
        "y": Fraction(chance.randint(2, 999)),
        "z": Fraction(chance.randint(100, 9_999), 100),
        "label": chance.choice(["blue", "dark red", "green"]),
    }
    z = state["z"]
    assert isinstance(z, Fraction)
    inputs: dict[str, object] = {"x": int(str(state["x"])), "y": int(str(state["y"])), "z": z, "label": state["label"]}
    declared = [Input("x", "integer"), Input("y", "integer"), Input("z"), Input("label", "text")]
    steps: list[Made] = []
    states: list[Mapping[str, Truth]] = []
    where = chance.randrange(length)
    kinds = list(STEP_KINDS)
    while len(steps) < length:
        kind = focus if focus is not None and len(steps) == where else chance.choice(kinds)
        made = _make(chance, kind, f"t{len(steps) + 1}", state)
        if made is None:
            if kind == focus and chance.random() < 0.02:  # these values never allow it
                return make_trace(chance, focus=focus, length=length)
            continue
        if not _fits([*(each.step for each in steps), made.step], declared):
            continue
        steps.append(made)
        states.append(dict(state))
        state[made.id] = made.truth
    procedure = Procedure([each.step for each in steps], inputs=declared, name="trace")
    return Trace(procedure, inputs, tuple(steps), tuple(states))


def _fits(steps: list[Step], declared: list[Input]) -> bool:
    """Whether the steps are a procedure: no currencies are mixed, no money multiplied, no ratio is a percentage."""
    try:
        Procedure(steps, inputs=declared)
    except ProcedureError as error:
        if any(said in error.message for said in ("currenc", "money", " is in ", "percentage")):
            return False
        raise
    return True


def _make(chance: random.Random, kind: str, name: str, state: Mapping[str, Truth]) -> Made | None:
    try:
        plan = STEP_KINDS[kind](chance, state)
        if plan is None:
            return None
        exact = plan.truth if plan.tree is None else compute(plan.tree, state)
        assert exact is not None
        truth = plan.spec.settle(exact)
    except Undefined:
        return None
    for each in (exact, truth):
        if isinstance(each, Fraction) and (abs(each) > _LARGEST or each.denominator > _FINEST):
            return None
    if plan.tree is None:
        checks = () if plan.check is None else (plan.check,)
        step = Step(name, instruction=plan.instruction, type=plan.spec.text, reads=plan.reads, checks=checks)
        return Made(kind, name, None, plan.spec, exact, truth, False, step)
    work = chance.random() < 0.9
    step = Step(name, show(plan.tree, state, _NAMES), type=plan.spec.text, show_work=work)
    return Made(kind, name, plan.tree, plan.spec, exact, truth, work, step)
