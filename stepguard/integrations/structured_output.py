"""The output of an agent, held against a procedure: are the values in it those of its steps?

An output is a pydantic model, a dataclass or a dictionary whose fields are called like the steps of a procedure; JSON
text of the same; or one value, which is the answer. Every field that is a step is checked against the step, from the
inputs and the fields before it. A step that is left out is computed by code. A field that is called like an input has
to hold its value, and ``answer`` is the procedure's answer. A value may be given with its working, as an equation
(``"24.90 * 3 = 74.70"``) or an object of ``work`` and ``value``: then the working is checked as well.

Nothing here belongs to a framework.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any, Final

from pydantic import BaseModel

from stepguard.actions import deviation_of
from stepguard.checks import Judgement, ajudge_claims
from stepguard.errors import ConfigError, EvaluationError, ValueRefused
from stepguard.exact import evaluate
from stepguard.procedure import Procedure, Step
from stepguard.reply_formats import EquationFormat
from stepguard.strict_json import JsonNumber, JsonObject, decode
from stepguard.values import Value
from stepguard.verdicts import STRENGTHS, Claim, Deviation, Strength, shorten

__all__ = ["ANSWER", "OutputCheck", "OutputChecker"]

ANSWER: Final = "answer"
"""A field of this name is the answer of the procedure, where no step or input has it."""

_FORMAT: Final = EquationFormat()


@dataclasses.dataclass(frozen=True, slots=True)
class OutputCheck:
    """What came of checking one output.

    Attributes:
        procedure: the name of the procedure.
        deviation: why the output is not accepted, None where it is. Its reason is for people: it may name the right
            value.
        judgements: the judged fields, in the order of the steps, up to the first that is not accepted.
        values: inputs and accepted values, those that code computed included, by name.
        unverified: the steps in the output that nothing vouches for, or that rest on such.
        strength: what stands behind the weakest of the judged fields.
        retry: whether asking the model again could change it.
    """

    procedure: str
    deviation: Deviation | None
    judgements: tuple[Judgement, ...]
    values: Mapping[str, Value]
    unverified: tuple[str, ...] = ()
    strength: Strength = "unverified"
    retry: bool = True


class OutputChecker:
    """Holds outputs against one procedure. It does not change, and may be shared.

    Args:
        procedure: what is carried out.
        steps: the steps that an output with fields must hold; None for all that the model performs. The others are
            checked where they are given.
        unchecked: names of fields that are no steps, and are not looked at.
        allow_unverified: whether steps may be among them that nothing can vouch for.
        check_timeout: seconds that one check of the user's may take; None waits for as long as it takes.

    Raises:
        ConfigError: an option cannot work, or a step cannot be verified at all.
    """

    def __init__(
        self,
        procedure: Procedure,
        *,
        steps: Iterable[str] | None = None,
        unchecked: Iterable[str] = (),
        allow_unverified: bool = False,
        check_timeout: float | None = 60.0,
    ) -> None:
        self.procedure: Final = procedure
        self.steps: Final = {step.id: step for step in procedure.steps}
        if isinstance(steps, str) or isinstance(unchecked, str):
            raise ConfigError("steps and unchecked are lists of names", option="steps")
        asked = [step.id for step in self.steps.values() if step.performer == "model"]
        self._required: Final = tuple(asked if steps is None else steps)
        if unknown := [name for name in self._required if name not in self.steps]:
            raise ConfigError(f"{procedure.name} has no step {unknown[0]!r}", option="steps")
        self._unchecked: Final = frozenset(unchecked)
        if hidden := sorted(self._unchecked & self.steps.keys()):
            raise ConfigError(f"{hidden[0]!r} is a step, and steps are checked", option="unchecked")
        for step in self.steps.values():
            if step.id in self._required and not step.checkable and not allow_unverified:
                raise ConfigError(
                    f"nothing can vouch for step {step.id!r}: give it checks, or pass allow_unverified=True",
                    option="procedure",
                )
            if step.id not in self._required and step.expression is None:
                raise ConfigError(
                    f"step {step.id!r} has no expression that code could compute: the output has to hold it",
                    option="steps",
                )
        if check_timeout is not None and (
            not isinstance(check_timeout, int | float)
            or isinstance(check_timeout, bool)
            or not 0 < check_timeout < math.inf
        ):
            raise ConfigError(
                f"check_timeout is in seconds, above 0, or None, not {check_timeout!r}", option="check_timeout"
            )
        self._timeout: Final = check_timeout

    def accept(self, inputs: object) -> dict[str, Value]:
        """The inputs of the procedure as exact values.

        Raises:
            InputError: they do not fit the procedure.
            ConfigError: they are no mapping.
        """
        if inputs is not None and not isinstance(inputs, Mapping):
            raise ConfigError(f"inputs is a mapping of names to values, not {type(inputs).__name__}", option="inputs")
        return self.procedure.accept_inputs(inputs or {})

    async def check(self, output: object, inputs: object = None) -> OutputCheck:
        """What is to be said of an output; it raises nothing for what a model can write.

        Raises:
            InputError: the inputs do not fit the procedure.
            ConfigError: the output is of a type that does not hold the steps.
        """
        accepted = self.accept(inputs)
        answer = self.procedure.answer
        required: tuple[str, ...] = self._required
        fields = _fields(output)
        if fields is None:
            fields, required = {answer: output}, (answer,)
            lost = [step.id for step in self.steps.values() if step.expression is None and step.id != answer]
            if lost:
                raise ConfigError(
                    f"the output is one value, and code cannot compute step {lost[0]!r}: use an output type whose "
                    "fields are called like the steps",
                    option="output_type",
                )
        checking = _Checking(self.procedure, accepted, self._timeout)
        if (deviation := self._surplus(fields, output, accepted)) is not None:
            return checking.told(deviation)
        given = {name: value for name, value in fields.items() if name in self.steps and value is not None}
        stated = None if self._is_known(ANSWER, accepted) else fields.get(ANSWER)
        if stated is not None and answer not in given:
            given[answer], stated = stated, None
        for step in self.steps.values():
            if step.id not in given and step.id in required:
                return checking.told(Deviation("missing_step", step.id, "the output has no value for it"))
            if (deviation := await checking.step(step, given.get(step.id))) is not None:
                return checking.told(deviation)
        if stated is not None and checking.differs(self.steps.get(answer), stated):
            return checking.told(Deviation("wrong_value", answer, "the field answer says another value"))
        return checking.told(None)

    def _is_known(self, name: str, inputs: Mapping[str, Value]) -> bool:
        return name in self.steps or name in inputs or name in self._unchecked

    def _surplus(self, fields: Mapping[str, object], output: object, inputs: Mapping[str, Value]) -> Deviation | None:
        """What an output holds that is no step, and should not be in it, or is not what it should be."""
        if isinstance(fields, JsonObject) and fields.repeated:
            return Deviation("duplicate_step", shorten(min(fields.repeated)), "the field stands twice in the output")
        declared = {each.name: each.type for each in self.procedure.inputs}
        for name, value in fields.items():
            if name in self.steps or name in self._unchecked:
                continue
            if name in declared:
                try:
                    right = declared[name].read(_written(value)) == inputs[name]
                except ValueRefused:
                    right = False
                if not right:
                    return Deviation("wrong_operand", name, "it is an input, and has another value")
            elif name != ANSWER:
                if isinstance(output, BaseModel) or dataclasses.is_dataclass(output):
                    raise ConfigError(
                        f"{name!r} is no step of {self.procedure.name}: call the field like a step, or pass "
                        f"unchecked=[{name!r}]",
                        option="unchecked",
                    )
                return Deviation("extra_step", shorten(name), "it was not asked for")
        return None


class _Checking:
    """The state while the fields of one output are checked in the order of the steps."""

    def __init__(self, procedure: Procedure, inputs: Mapping[str, Value], timeout: float | None) -> None:
        self._procedure: Final = procedure
        self._values: Final[dict[str, Value]] = dict(inputs)
        self._timeout: Final = timeout
        self._judged: Final[list[Judgement]] = []
        self._unsound: Final[list[str]] = []
        self._shaky: Final[set[str]] = set()
        self._retry = True

    async def step(self, step: Step, given: object) -> Deviation | None:
        """Check what is given for a step, or compute it where nothing is; why it is not accepted."""
        if given is None:
            return self._computed(step)
        claim = _claim(step, given)
        if isinstance(claim, Deviation):
            return claim
        judged_as = step if claim.work and step.show_work else _without_work(step)
        (judgement,) = await ajudge_claims([judged_as], [claim], self._values, timeout=self._timeout)
        self._judged.append(judgement)
        deviation = deviation_of(judgement)
        if deviation is not None:
            self._retry = judgement.verdict is None or judgement.verdict.retry
            return deviation
        assert judgement.value is not None
        self._values[step.id] = judgement.value
        weak = judgement.strength in ("unverified", "agreed")
        if weak or not self._shaky.isdisjoint(step.reads):
            self._unsound.append(step.id)
            self._shaky.add(step.id)
        return None

    def _computed(self, step: Step) -> Deviation | None:
        assert step.expression is not None
        try:
            self._values[step.id] = step.type.convert(evaluate(step.expression, self._values))
        except EvaluationError as error:
            self._retry = False
            return Deviation("undecided", step.id, f"the step has no exact value: {error}")
        if not self._shaky.isdisjoint(step.reads):
            self._shaky.add(step.id)
        return None

    def differs(self, step: Step | None, stated: object) -> bool:
        """Whether a field says another value than a step has."""
        if step is None:
            return True
        try:
            claim = _claim(step, stated)
            return isinstance(claim, Deviation) or step.type.read(claim.value) != self._values[step.id]
        except ValueRefused:
            return True

    def told(self, deviation: Deviation | None) -> OutputCheck:
        strengths = [each.strength for each in self._judged] or ["unverified"]
        return OutputCheck(
            procedure=self._procedure.name,
            deviation=deviation,
            judgements=tuple(self._judged),
            values=dict(self._values),
            unverified=tuple(self._unsound),
            strength=min(strengths, key=STRENGTHS.index),
            retry=self._retry,
        )


# Outputs as claims


def _fields(output: object) -> Mapping[str, object] | None:
    """The fields of an output; None where it is one value.

    Raises:
        ConfigError: it is neither.
    """
    if isinstance(output, BaseModel):
        found: dict[str, object] = {}
        for name, field in type(output).model_fields.items():
            found[field.alias or name] = getattr(output, name)
        return {**found, **(output.model_extra or {})}
    if isinstance(output, Mapping):
        return {str(name): value for name, value in output.items()}
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        return {field.name: getattr(output, field.name) for field in dataclasses.fields(output)}
    if isinstance(output, str):
        try:
            decoded = decode(output.strip())
        except ValueError:
            return None
        return decoded if isinstance(decoded, JsonObject) else None
    if output is None or isinstance(output, bool | int | float | Decimal | Fraction | Enum | date):
        return None
    raise ConfigError(
        f"an output of type {type(output).__name__} holds no steps: use a model or dictionary whose fields are called "
        "like steps, or one value for the answer",
        option="output_type",
    )


def _claim(step: Step, given: object) -> Claim | Deviation:
    field = _field(given)
    if step.expression is None and not isinstance(field, dict):
        field = {"work": "", "value": field}
    elif step.expression is not None and isinstance(field, dict) and field.keys() == {"work", "value"}:
        work, value = field["work"], field["value"]
        field = f"{work} = {value}" if isinstance(work, str) and work and isinstance(value, str) else value
    return _FORMAT.claim(step, field)


def _field(given: object) -> object:
    """A value as it would stand in a reply."""
    if isinstance(given, JsonObject):
        return given
    if isinstance(given, BaseModel | Mapping) or (dataclasses.is_dataclass(given) and not isinstance(given, type)):
        inner = _fields(given)
        return {name: _field(value) for name, value in (inner or {}).items()}
    if isinstance(given, Enum):
        return _field(given.value)
    if given is None or isinstance(given, bool | str):
        return given
    if isinstance(given, float):
        return JsonNumber(f"{Decimal(repr(given)):f}") if math.isfinite(given) else repr(given)
    if isinstance(given, Decimal):
        return JsonNumber(f"{given:f}")
    if isinstance(given, int):
        return JsonNumber(int(given))
    return given.isoformat() if isinstance(given, date) else str(given) if isinstance(given, Fraction) else given


def _written(given: object) -> str:
    field = _field(given)
    return ("true" if field else "false") if isinstance(field, bool) else str(field)


def _without_work(step: Step) -> Step:
    """The same step, of which the value alone is asked."""
    reads = step.reads if step.expression is None else None
    kept: dict[str, Any] = {"instruction": step.instruction, "type": step.type, "reads": reads, "checks": step.checks}
    return Step(step.id, step.expression, **kept, show_work=False)
