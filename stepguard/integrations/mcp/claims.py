"""Judge one claim about one step from values that a caller gives, for the tool ``verify_step``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from stepguard.checks import Judgement, ajudge_claims
from stepguard.checks.arithmetic import check_arithmetic
from stepguard.core.verdicts import Claim, Deviation, DeviationKind
from stepguard.errors import ConfigError, InputError, ValueRefused
from stepguard.language.values import Value, show_value
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step
from stepguard.procedure.straight import check_straight
from stepguard.replies.formats import EquationFormat

_EQUATIONS = EquationFormat()


@dataclass(frozen=True, slots=True)
class ClaimContext:
    """The context of a claim.

    Attributes:
        step: the step.
        values: the values that were given, by name.
        unchecked: the earlier steps that it rests on whose values nothing here vouches for.
        wrong: an earlier step that it rests on and whose value is not that of its formula; None where there is none.
    """

    step: Step
    values: Mapping[str, Value]
    unchecked: tuple[str, ...]
    wrong: str | None


def accept_values(procedure: Procedure, step_id: str, given: Mapping[str, object]) -> ClaimContext:
    """Read the values that a caller gives for a step, as exact ones.

    What the step rests on is checked as far as it is given: a step whose formula and operands are there is not taken
    as it stands.

    Raises:
        ConfigError: the procedure has no such step, or is more than a list of plain steps.
        InputError: a value is unknown, not of its type, or missing.
    """
    check_straight(
        procedure,
        "verify_step",
        "run it with run_procedure, which checks every step, or give the plain steps alone as a procedure",
    )
    steps = {step.id: step for step in procedure.steps}
    step = steps.get(step_id)
    if step is None:
        names = ", ".join(list(steps)[:20]) + (" ..." if len(steps) > 20 else "")
        raise ConfigError(f"{procedure.name} has no step {step_id[:64]!r}: it has {names}", option="step")
    types = {each.name: each.type for each in procedure.inputs}
    for each in procedure.steps:
        if each.id == step_id:
            break
        types[each.id] = each.type
    values: dict[str, Value] = {}
    for name, value in given.items():
        if name not in types:
            known = ", ".join(list(types)[:20]) or "nothing"
            raise InputError(f"{name[:64]!r} is no input and no step before {step_id}: there is {known}", name=name)
        try:
            values[name] = types[name].accept(value)
        except ValueRefused as error:
            raise InputError(f"the value of {name!r}: {error}", name=name) from error
    for name in step.reads:
        if name not in values:
            raise InputError(f"step {step_id} reads {name!r}: give its value in `values`", name=name)
    unchecked: list[str] = []
    for name in _rested_on(step, steps, values):
        before = steps[name]
        if before.expression is None or any(each not in values for each in before.reads):
            unchecked.append(name)
        # A right step from a wrong operand would pass, and the mistake before it go unseen.
        elif not _follows(before, values):
            return ClaimContext(step, values, tuple(unchecked), name)
    return ClaimContext(step, values, tuple(unchecked), None)


def _rested_on(step: Step, steps: Mapping[str, Step], values: Mapping[str, Value]) -> Iterable[str]:
    """The earlier steps that a step reads, directly or through others, as far as their values are given."""
    wanted = [name for name in step.reads if name in steps]
    seen: dict[str, None] = {}
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen[name] = None
        wanted += [each for each in steps[name].reads if each in steps and each in values]
    return seen


def _follows(step: Step, values: Mapping[str, Value]) -> bool:
    shown = show_value(values[step.id])
    claim = Claim(step.id, (), shown, shown)
    return check_arithmetic(_value_only(step), values, claim, values[step.id]).outcome == "pass"


def _value_only(step: Step) -> Step:
    if step.expression is None:
        return step
    return Step(step.id, step.expression, type=step.type, checks=step.checks, show_work=False)


async def judge_claim(
    given: ClaimContext, value: str, working: str | None, *, timeout: float | None
) -> tuple[Judgement | DeviationKind, bool]:
    """Judge a claim; or say why there is none to judge. Also tells whether its working was judged.

    Args:
        given: what it is judged from.
        value: the value as it was written.
        working: how it was worked out, as text such as ``"24.90 * 3"``; None judges the value alone.
        timeout: seconds that the checks of users may take together.
    """
    step = given.step
    if given.wrong is not None:
        return "wrong_operand", False
    worked = bool(working and working.strip()) and step.show_work
    claim = Claim(step.id, (), value, value)
    if worked:
        read = _EQUATIONS.claim(step, f"{working} = {value}")
        if isinstance(read, Deviation):
            return read.kind, True
        claim = replace(read, value=value)  # a value that holds an equals sign is none, and was split
    judged_as = step if worked else _value_only(step)
    judged = await ajudge_claims((judged_as,), (claim,), given.values, timeout=timeout, remaining=timeout)
    return judged[0], worked
