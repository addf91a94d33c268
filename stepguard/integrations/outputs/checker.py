"""Check the output of an agent or a tool against a procedure: are the values in it those of its steps?

An output is a pydantic model, a dataclass or a mapping whose fields are called like steps; JSON text of the same; or
one value, which is the answer. Every field that is a step is checked, from the inputs and the steps before it, and so
is its working where it has one (`stepguard.integrations.outputs.values`). A step that is left out is computed and
checked as well; where it has no expression and something reads it, nothing can be decided. What rests on a step that
no check vouches for is itself not verified.

What is checked is all that is handed on: an object that holds anything else (a misspelt name, say) is refused unless
it is named in `ignore`. A field that is called like an input has to hold its value, and ``answer`` is the answer of
the procedure. A field of a model or dataclass that is None is left out; null in JSON is no value.

Nothing here belongs to a framework, and no model is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from stepguard.core.arguments import check_callable, check_mapping, check_names, check_seconds
from stepguard.core.verdicts import STRENGTHS, DeviationKind, Strength, check_strength, shorten
from stepguard.errors import ConfigError, InputError, ValueRefused
from stepguard.integrations.outputs.judging import Judging, NotAccepted, OutputCheck
from stepguard.integrations.outputs.values import has_class, is_one_value, read_fields, read_value
from stepguard.integrations.support import find_weak
from stepguard.language.expressions import Name
from stepguard.language.strict_json import JsonNumber, JsonObject
from stepguard.language.value_types import NUMBER, TEXT, ValueType
from stepguard.language.values import Value
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step
from stepguard.procedure.straight import check_straight
from stepguard.telemetry.logging import call_safely, log_event

ANSWER: Final = "answer"
"""A field of this name is the answer of the procedure, where no step or input has it."""

_BREATH: Final = 64  # a long procedure must not hold the event loop
_BOOLEAN: Final = ValueType(kind="boolean")


class OutputChecker:
    """Checks outputs against one procedure. It does not change, and may be shared.

    Args:
        procedure: what the output claims to have carried out: a procedure, or a single step.
        inputs: values of inputs that are the same for every output.
        steps: the steps that an output with fields must hold; the others are checked where they are given, and have to
            be such as code can compute. None: the answer alone, whatever the others are.
        ignore: names of fields that are not looked at.
        read: from an output to what it claims: a value, or something that has values by step.
        at_least: what is to stand behind every step.
        check_timeout: seconds that one check of the user's may take; None waits for as long as it takes.
        on_check: called with every `OutputCheck`; what it raises is logged and changes nothing.

    Raises:
        ConfigError: an option cannot work, or a step that is needed cannot be verified at all.
    """

    def __init__(
        self,
        procedure: Procedure | Step,
        *,
        inputs: Mapping[str, object] | None = None,
        steps: Iterable[str] | None = None,
        ignore: Iterable[str] = (),
        read: Callable[[Any], object] | None = None,
        at_least: Strength = "proved",
        check_timeout: float | None = 60.0,
        on_check: Callable[[OutputCheck], object] | None = None,
    ) -> None:
        check_strength(at_least)
        check_names(steps, "steps", optional=True)
        check_names(ignore, "ignore")
        check_callable(read, "read", optional=True)
        check_callable(on_check, "on_check", optional=True)
        check_seconds(check_timeout, "check_timeout", positive=True, optional=True)
        if isinstance(procedure, Step):
            self._types: Mapping[str, ValueType | None] = {name: _read_type(procedure) for name in procedure.reads}
            self._defaults: Mapping[str, Value] = {}
            self.name, self.answer, performed = procedure.id, procedure.id, [procedure]
        else:
            if procedure.look_back is not None:
                raise ConfigError("the outputs of a lazy procedure cannot be checked", option="procedure")
            check_straight(
                procedure,
                "the check of an output",
                "check it against one step, or against the plain steps of it as a procedure of their own",
            )
            self._types = {each.name: each.type for each in procedure.inputs}
            self._defaults = {each.name: each.default for each in procedure.inputs if each.default is not None}
            self.name, self.answer, performed = procedure.name, procedure.answer, list(procedure.steps)
            if self.answer in self._types:
                raise ConfigError(f"the answer of {self.name} is an input: there is nothing to check", option="answer")
        self.ids: Final = frozenset(each.id for each in performed)
        self.inputs: Final = frozenset(self._types)
        self._required: Final = (self.answer,) if steps is None else tuple(steps)
        if unknown := [name for name in self._required if name not in self.ids]:
            raise ConfigError(f"{self.name} has no step {unknown[0]!r}", option="steps")
        self._ignore: Final = frozenset(ignore)
        # Ignored, a wrong value of a step would be handed on unchecked.
        if hidden := sorted(self._ignore & (self.ids | self.inputs)):
            raise ConfigError(f"{hidden[0]!r} belongs to {self.name} and cannot be ignored", option="ignore")
        taken = self.ids | self.inputs | self._ignore
        answer = {} if ANSWER in taken else {ANSWER: self.answer}
        self._step_of_field: Final = {**{name: name for name in self.ids}, **answer}
        for name, most in find_weak([step for step in performed if step.id in self._required], at_least).items():
            raise ConfigError(
                f"step {name!r} can be {most} at most: give it a check that shows more, or pass at_least={most!r}",
                option="procedure",
            )
        for step in performed:
            if steps is not None and step.id not in self._required and step.expression is None:
                raise ConfigError(
                    f"step {step.id!r} has no expression that code could compute: the output has to hold it",
                    option="steps",
                )
        self._steps: Final = tuple(performed)
        try:
            self._fixed: Final = self._read_inputs({} if inputs is None else inputs)
        except InputError as error:
            raise ConfigError(str(error), option="inputs") from error
        self._read: Final = read
        self._at_least: Final = STRENGTHS.index(at_least)
        self._timeout: Final = check_timeout
        self._on_check: Final = on_check

    def accept(self, inputs: object = None) -> dict[str, Value]:
        """The inputs behind one output as exact values: the fixed ones, and these.

        Raises:
            InputError: one is missing, unknown, given twice or not of its type.
            ConfigError: they are no mapping.
        """
        given = self._read_inputs({} if inputs is None else inputs)
        for name in self._types:
            if name in given and name in self._fixed:
                raise InputError(f"input {name!r} of {self.name} is given twice", name=name)
            if name not in given and name not in self._fixed and name not in self._defaults:
                raise InputError(f"input {name!r} of {self.name} is missing: give it as inputs=", name=name)
        return {**self._defaults, **self._fixed, **given}

    def misfit(self, output: object) -> str | None:
        """Why no output of this type could be accepted, whatever its values are; None where one could."""
        fields = read_fields(output, self._field_names)
        if fields is not None:
            foreign = [name for name in fields if name not in self._field_names | self._ignore]
            if not foreign or not has_class(output):
                return None
            return (
                f"{foreign[0]!r} is no step of {self.name}: call the field like a step, or pass ignore=[{foreign[0]!r}]"
            )
        if not is_one_value(output):
            return (
                f"an output of type {type(output).__name__} holds no steps: use a model or dictionary whose fields are "
                "called like steps, or one value for the answer"
            )
        lost = [step.id for step in self._steps if step.expression is None and step.id != self.answer]
        if not lost:
            return None
        return (
            f"the output is one value, and code cannot compute step {lost[0]!r}: use an output type whose fields are "
            "called like the steps"
        )

    async def check(self, output: object, values: Mapping[str, Value]) -> OutputCheck:
        """Check one output against `values`, the inputs from `accept`; whatever the output is, this returns."""
        judging = Judging(values, self._timeout)
        no: NotAccepted | None = None
        try:
            await self._judge(self._claims(output, values), judging)
            self._weigh(judging)
        except NotAccepted as found:
            no = found
        return self._notified(judging.outcome(self.name, no))

    def rejected(self, kind: DeviationKind, reason: str, *, step: str | None = None) -> OutputCheck:
        """The result for an output that is rejected as a whole, before its values are compared."""
        return self._notified(OutputCheck(procedure=self.name, verified=False, step=step, kind=kind, reason=reason))

    @property
    def _field_names(self) -> frozenset[str]:
        return self.inputs | self._step_of_field.keys()

    def _notified(self, check: OutputCheck) -> OutputCheck:
        log_event("output_judged", procedure=check.procedure, verified=check.verified, step=check.step, kind=check.kind)
        if self._on_check is not None:
            call_safely(self._on_check, check, about="an output")
        return check

    def _read_inputs(self, inputs: Any) -> dict[str, Value]:
        check_mapping(inputs, "inputs")
        read: dict[str, Value] = {}
        for name, given in inputs.items():
            if name not in self._types:
                declared = ", ".join(self._types) or "none"
                raise InputError(f"{self.name} has no input {name!r}: it has {declared}", name=str(name))
            try:
                read[name] = read_value(self._types[name] or _type_of(given), given)
            except ValueRefused as error:
                raise InputError(f"input {name!r} of {self.name}: {error}", name=name) from error
        return read

    def _claims(self, output: object, values: Mapping[str, Value]) -> dict[str, list[object]]:
        """The claims of an output, by step."""
        try:
            given = output if self._read is None else self._read(output)
            fields = read_fields(given, self._step_of_field if isinstance(given, str) else self._field_names)
            if fields is not None and not isinstance(fields, JsonObject):
                fields = dict(fields)
        except Exception as error:  # foreign code reads foreign objects
            raise NotAccepted(None, "undecided", f"the output cannot be read: {type(error).__name__}") from error
        if fields is None:
            return {self.answer: [given]}
        if isinstance(fields, JsonObject) and fields.repeated:
            name = min(fields.repeated)
            raise NotAccepted(
                name if name in self.ids else None, "duplicate_step", f"{shorten(name)} stands in it twice"
            )
        claims: dict[str, list[object]] = {}
        for name, value in fields.items():
            if name in self._step_of_field:
                # A field that a class leaves None was not given; null in JSON was written by the model.
                if value is not None or not has_class(given):
                    claims.setdefault(self._step_of_field[name], []).append(value)
            elif name in self.inputs:
                self._repeat(name, value, values[name])
            elif name not in self._ignore:
                raise NotAccepted(
                    None, "extra_step", f"{shorten(repr(name))} is neither a step nor an input, nor in ignore"
                )
        for name in self._required:
            if name not in claims:
                raise NotAccepted(name, "missing_step", "the output has no value for it")
        return claims

    def _repeat(self, name: str, given: object, value: Value) -> None:
        """Check an input that stands in the output."""
        try:
            same = read_value(self._types[name] or _type_of(value), given) == value
        except ValueRefused:
            same = False
        if not same:
            raise NotAccepted(name, "wrong_operand", "it is an input, and has another value")

    async def _judge(self, claims: Mapping[str, list[object]], judging: Judging) -> None:
        """Judge every step up to the last that is claimed, and up to the answer."""
        # Steps behind it change nothing that is handed on.
        last = max(index for index, step in enumerate(self._steps) if step.id in claims or step.id == self.answer)
        for index, step in enumerate(self._steps[: last + 1]):
            if index % _BREATH == _BREATH - 1:
                await asyncio.sleep(0)
            await judging.step(step, claims.get(step.id, ()))

    def _weigh(self, judging: Judging) -> None:
        """Whether enough stands behind the steps."""
        for name, support in judging.weak.items():
            if STRENGTHS.index(support) < self._at_least:
                bare = support == "unverified"
                reason = (
                    f"nothing vouches for {name}" if bare else f"{name} is {support}, not {STRENGTHS[self._at_least]}"
                )
                raise NotAccepted(name, "unverified", reason, retry=False)


def _read_type(step: Step) -> ValueType | None:
    """The type of what a single step reads; None: as the argument is, for a step in words."""
    if step.expression is None:
        return None
    return step.type if isinstance(step.expression, Name) and not step.type.numeric else NUMBER


def _type_of(given: object) -> ValueType:
    if isinstance(given, bool):
        return _BOOLEAN
    return TEXT if isinstance(given, str) and not isinstance(given, JsonNumber) else NUMBER
