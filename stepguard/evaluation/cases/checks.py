"""Cases held against their procedure: inputs, right values, and that both agree with the formulas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from stepguard.errors import ConfigError, EvaluationError, InputError, ValueRefused
from stepguard.evaluation.arms.reading import reads_back
from stepguard.evaluation.cases.files import RawCase, refuse
from stepguard.language.evaluation import evaluate
from stepguard.language.strict_json import JsonNumber
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value, encodable
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step
from stepguard.procedure.straight import check_straight

_LONGEST: Final = 80  # a message names a case, and does not print it


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case, checked against its procedure.

    Attributes:
        line: where it begins in its file.
        id: what its file calls it, None where it does not.
        inputs: as exact values.
        given: the right values that stand in the case, by step.
        truth: all right values that are known: these, and what formulas give.
    """

    line: int
    id: str | None
    inputs: Mapping[str, Value]
    given: Mapping[str, Value]
    truth: Mapping[str, Value]


def check_procedure(procedure: Procedure) -> None:
    """Refuse a procedure that cannot be measured by cases.

    Raises ConfigError: it is more than a list of plain steps, its answer is an input, or a step may be near its exact
    value, so that nothing after it is exact.
    """
    check_straight(
        procedure,
        "a benchmark",
        "measure the steps of one way through it, as a procedure of their own, or run it with `Guard` on your cases "
        "and compare `Result.answer`",
    )
    if all(step.id != procedure.answer for step in procedure.steps):
        raise ConfigError(
            f"the answer of {procedure.name} is its input {procedure.answer!r}, which nothing has to be done for: name "
            "a step as the answer",
            option="procedure",
        )
    for step in procedure.steps:
        if step.type.within is not None:
            raise ConfigError(
                f"step {step.id!r} of {procedure.name} may be within {step.type.within} of its exact value, but the "
                "benchmark compares values exactly: declare places there, such as decimal(2)",
                option="procedure",
            )


def check_case(raw: RawCase, procedure: Procedure) -> Case:
    """A case with its values read and its truth completed.

    Raises ConfigError: inputs or right values are missing, unknown or of a wrong type, or a right value is not what the
    formulas give; the file and the line are named.
    """
    inputs = _inputs(raw, procedure)
    given = _known_values(raw, procedure)
    if procedure.answer not in given and any(step.expression is None for step in procedure.steps):
        in_words = next(step.id for step in procedure.steps if step.expression is None)
        raise refuse(
            raw.path,
            raw.line,
            f'"expected" is missing: step {in_words!r} has no formula, so that the answer cannot be computed; add '
            f"the right value of {procedure.answer!r}",
        )
    truth = _truth(raw, procedure, inputs, given)
    return Case(line=raw.line, id=_id(raw), inputs=inputs, given=given, truth=truth)


def _inputs(raw: RawCase, procedure: Procedure) -> dict[str, Value]:
    types = {each.name: each.type for each in procedure.inputs}
    written = dict(raw.inputs)
    try:
        for name in [name for name in written if name in types]:
            try:
                written[name] = _file_value(written[name], types[name])
            except ValueRefused as error:
                raise InputError(f"input {name!r} of {procedure.name}: {error}", name=name) from error
        return procedure.accept_inputs(written)
    except InputError as error:
        raise refuse(raw.path, raw.line, f"{error}; mend the inputs of this case") from error


def _known_values(raw: RawCase, procedure: Procedure) -> dict[str, Value]:
    """The right values that a case names."""
    types = {step.id: step.type for step in procedure.steps}
    named: list[tuple[str, str, object]] = []
    if "expected" in raw.data:
        named.append((f"expected, the right value of {procedure.answer!r},", procedure.answer, raw.data["expected"]))
    for step, value in raw.steps.items():
        if step not in types:
            near = get_close_matches(step, types, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(types)}"
            raise refuse(raw.path, raw.line, f"{procedure.name} has no step {step[:40]!r}: {hint}")
        named.append((f"the right value of step {step!r}", step, value))
    values: dict[str, Value] = {}
    for what, step, value in named:
        try:
            value_read = types[step].accept(_file_value(value, types[step]))
        except ValueRefused as error:
            raise refuse(raw.path, raw.line, f"{what} is no {types[step]}: {error}; mend it") from error
        if values.setdefault(step, value_read) != value_read:
            first, second = (_short(types[step].write(each)) for each in (values[step], value_read))
            raise refuse(raw.path, raw.line, f"{step!r} is expected to be {first} and {second}; keep one")
    return values


def _file_value(value: object, kind: ValueType) -> object:
    """A value from a file as `ValueType.accept` takes it; the digits of a number stay as they are."""
    if type(value) is JsonNumber:
        if kind.numeric:
            return str(value)
        raise ValueRefused(f"a value of type {kind} was expected, found a number", text=value)
    if isinstance(value, str | bool):
        return value
    json_kind = "null" if value is None else "a list" if isinstance(value, list) else "an object"
    raise ValueRefused(f"a value of type {kind} was expected", text=json_kind)


def _truth(
    raw: RawCase, procedure: Procedure, inputs: Mapping[str, Value], given: Mapping[str, Value]
) -> dict[str, Value]:
    """All right values that are known; those that stand in the case are held against the formulas."""
    truth: dict[str, Value] = {}
    state = dict(inputs)
    for step in procedure.steps:
        value = given.get(step.id)
        if step.expression is not None and all(name in state for name in step.reads):
            try:
                computed = step.type.convert(evaluate(step.expression, state))
            except EvaluationError as error:
                what = f"step {step.id!r} has no value with these inputs ({error}), so that nothing is right"
                raise refuse(raw.path, raw.line, f"{what}; leave the case out, or mend the procedure") from error
            if value is not None and value != computed:
                raise refuse(raw.path, raw.line, _contradiction(step, value, computed, procedure))
            value = computed
        if value is not None:
            _check_readable(raw, step, value)
            truth[step.id] = state[step.id] = value
    return truth


def _check_readable(raw: RawCase, step: Step, value: Value) -> None:
    """Refuse a value that no free transcript could be given credit for: the arms would not be judged alike."""
    written = step.type.write(value)
    if not reads_back(step, value):
        what = f"the value {_short(written)!r} of step {step.id!r} cannot be read back from a line of a free transcript"
        how = "take one line of text without an equals sign, or quotes or a full stop around it, or one_of options"
        raise refuse(raw.path, raw.line, f"{what}, so that unguarded runs would always count as wrong: {how}")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _contradiction(step: Step, value: Value, computed: Value, procedure: Procedure) -> str:
    source = "expected is" if step.id == procedure.answer else "the case says"
    return (
        f"{source} {_short(step.type.write(value))} for {step.id!r}, but the formulas of {procedure.name} give exactly "
        f"{_short(step.type.write(computed))}; mend the case or the procedure"
    )


def _id(raw: RawCase) -> str | None:
    value = raw.data.get("id")
    if "id" not in raw.data:
        return None
    if not isinstance(value, str) or not value.strip() or not encodable(value):  # a number of JSON is text here
        raise refuse(raw.path, raw.line, '"id" is text or a number: mend it, or leave it out')
    return str(value)
