"""Whether what a tool returned is right: the values of steps that it claims, checked against what it was given.

A tool claims values in one of two ways: it returns one value, which is that of the answer, or an object that holds
values under the names of steps, as a mapping, a dataclass, a pydantic model, or as JSON text. The answer has to be
among them. A step between that is not claimed is computed where it has an expression; where it has none and a claimed
step reads it, nothing can be decided.

What is checked is all that is handed on: an object that holds anything else (a misspelt name, say) is refused unless
it is named in `ignore`, and an input that is repeated in it has to be the one that was given. Values are read as those
of a caller are: exactly, a float as the decimal that Python prints for it, a percentage as text with its sign. There is
no working in an output, so none is asked for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Literal

from stepguard.actions import deviation_of
from stepguard.checks import ajudge_claims
from stepguard.errors import ConfigError, EvaluationError, ValueRefused
from stepguard.exact import evaluate
from stepguard.expressions import Name
from stepguard.integrations.tool_arguments import accept_json
from stepguard.procedure import Procedure, Step
from stepguard.strict_json import JsonNumber, JsonObject, decode
from stepguard.value_types import NUMBER, TEXT, ValueType
from stepguard.values import Value
from stepguard.verdicts import STRENGTHS, Claim, DeviationKind, Strength, shorten

__all__ = ["OutputCheck", "OutputChecker", "Rejected"]

Rejected = DeviationKind | Literal["unverified"]
"""Why an output is rejected: a kind of deviation, or that nothing vouches for a step."""

_BREATH: Final = 64
_BLOCKS: Final = ("text", "input_text", "output_text")
"""What blocks of text are called that SDKs wrap around outputs."""
_BOOLEAN: Final = ValueType(kind="boolean")


@dataclasses.dataclass(frozen=True, slots=True)
class OutputCheck:
    """What came of checking one output.

    Attributes:
        verified: whether all that it claims is right. With `allow_unverified` there may be steps in `unverified`.
        procedure: the name of the procedure, or the id of the step.
        step: the step, or the input, that is to blame; None for the output as a whole, and where it is verified.
        kind: why it is rejected; None where it is not.
        reason: the same for people and logs; it may name the right value, and must not reach a model.
        values: the values that were accepted, inputs included.
        unverified: steps that no check vouches for.
    """

    verified: bool
    procedure: str
    step: str | None = None
    kind: Rejected | None = None
    reason: str = ""
    values: Mapping[str, Value] = dataclasses.field(default_factory=dict)
    unverified: tuple[str, ...] = ()

    def told(self) -> str:
        """Why it is rejected, in words that a model may be told: a name and a kind, no value and no reason."""
        return f"{self.step or 'the whole'} ({self.kind})"


class _No(Exception):
    """The output is not accepted."""

    def __init__(self, step: str | None, kind: Rejected, reason: str) -> None:
        super().__init__(reason)
        self.step, self.kind, self.reason = step, kind, reason


class OutputChecker:
    """Checks the outputs of a tool; immutable, and shared between calls.

    Args:
        procedure: what the tool claims to have carried out: a procedure, or a single step.
        inputs: values of inputs that are not among the arguments of the tool.
        ignore: names in an output that are not looked at.
        read: from an output to what it claims: a value, or a mapping of values by step.
        allow_unverified: accept steps that no check vouches for.
        at_least: what is to stand behind every step.
        check_timeout: seconds for one check of the user's; None waits for as long as it takes.

    Raises:
        ConfigError: an option cannot work.
    """

    def __init__(
        self,
        procedure: Procedure | Step,
        *,
        inputs: Mapping[str, object] | None = None,
        ignore: Collection[str] = (),
        read: Callable[[Any], object] | None = None,
        allow_unverified: bool = False,
        at_least: Strength = "grounded",
        check_timeout: float | None = 60.0,
    ) -> None:
        if at_least not in STRENGTHS:
            raise ConfigError(f"{at_least!r} is no strength: use one of {', '.join(STRENGTHS)}", option="at_least")
        if read is not None and not callable(read):
            raise ConfigError(f"read is called with an output; {read!r:.60} cannot be", option="read")
        if isinstance(ignore, str):
            raise ConfigError(f"ignore is a list of names, such as [{ignore!r}]", option="ignore")
        if isinstance(check_timeout, bool) or (check_timeout is not None and not check_timeout > 0):
            raise ConfigError("check_timeout is in seconds, above 0, or None for no limit", option="check_timeout")
        if isinstance(procedure, Step):
            self._types: Mapping[str, ValueType | None] = {name: _read_type(procedure) for name in procedure.reads}
            self.name, self._answer, steps = procedure.id, procedure.id, [procedure]
        else:
            if procedure.look_back is not None:
                raise ConfigError("the outputs of a lazy procedure cannot be checked", option="procedure")
            self._types = {each.name: each.type for each in procedure.inputs}
            self.name, self._answer, steps = procedure.name, procedure.answer, list(procedure.steps)
            if self._answer in self._types:
                raise ConfigError(f"the answer of {self.name} is an input: there is nothing to check", option="answer")
        for name in inputs or {}:
            if name not in self._types:
                raise ConfigError(f"{self.name} has no input {name!r}", option="inputs")
        # A function shows no working.
        self._steps: Final = tuple(dataclasses.replace(each, show_work=False) for each in steps)
        self._ids: Final = frozenset(each.id for each in steps)
        for name in ignore:
            if name in self._ids or name in self._types:
                raise ConfigError(f"{name!r} belongs to {self.name} and cannot be ignored", option="ignore")
        self._fixed: Final = {name: self._input(name, value, ConfigError) for name, value in (inputs or {}).items()}
        self._ignore: Final = frozenset(ignore)
        self._read: Final = read
        self._allow_unverified: Final = bool(allow_unverified)
        self._at_least: Final = STRENGTHS.index(at_least)
        self._timeout: Final = check_timeout

    async def check(self, arguments: str, output: object) -> OutputCheck:
        """Check one output. Whatever the output is, this returns.

        Args:
            arguments: those of the tool call, as the JSON text that came.
            output: what the tool returned.
        """
        values: dict[str, Value] = {}
        unverified: list[str] = []
        try:
            claims = self._claims(output)
            values |= self._given(arguments)
            await self._judge(claims, values, unverified)
        except _No as no:
            return OutputCheck(False, self.name, no.step, no.kind, no.reason, values, tuple(unverified))
        return OutputCheck(True, self.name, values=values, unverified=tuple(unverified))

    def _claims(self, output: object) -> Mapping[str, object]:
        """What an output claims, by step."""
        try:
            given = self._plain(output if self._read is None else self._read(output))
        except Exception as error:  # foreign code reads foreign objects
            raise _No(None, "undecided", f"the output cannot be read: {type(error).__name__}") from error
        if not isinstance(given, Mapping):
            return {self._answer: given}
        if isinstance(given, JsonObject) and given.repeated:
            name = min(given.repeated)
            raise _No(name if name in self._ids else None, "duplicate_step", f"{shorten(name)} stands in it twice")
        if self._answer not in given:
            raise _No(self._answer, "missing_step", "the output does not hold the answer")
        for name in given:
            if name not in self._ids and name not in self._types and name not in self._ignore:
                raise _No(None, "extra_step", f"{shorten(repr(name))} is neither a step nor an input, nor in ignore")
        return {name: value for name, value in given.items() if name not in self._ignore}

    def _plain(self, given: object) -> object:
        """An output without what an SDK or a model class wraps around it."""
        if isinstance(given, list | tuple) and len(given) == 1:
            given = given[0]
        dump = getattr(given, "model_dump", None)
        if callable(dump):
            given = dump()
        elif dataclasses.is_dataclass(given) and not isinstance(given, type):
            given = {each.name: getattr(given, each.name) for each in dataclasses.fields(given)}
        if isinstance(given, Mapping) and given.get("type") in _BLOCKS and isinstance(given.get("text"), str):
            rest = [value for name, value in given.items() if name not in ("type", "text")]
            if not any(rest) and self._ids.isdisjoint(given):
                given = given["text"]
        if isinstance(given, str) and given.lstrip().startswith("{"):
            try:
                found = decode(given.strip())
            except ValueError:
                return given
            # A text may be JSON itself.
            if isinstance(found, JsonObject) and not self._ids.isdisjoint(found):
                return found
        return given

    def _given(self, arguments: str) -> dict[str, Value]:
        """The values of the inputs."""
        try:
            found = decode(arguments.strip() or "{}")
        except ValueError:
            found = None
        if not isinstance(found, JsonObject):
            raise _No(None, "undecided", "the arguments of the call are no JSON object")
        values: dict[str, Value] = {}
        for name in self._types:
            if name in found.repeated or (name in found and name in self._fixed):
                raise _No(name, "undecided", "the input is given twice")
            if name not in found and name not in self._fixed:
                raise _No(name, "undecided", "the input is not among the arguments of the call: give it as inputs=")
            values[name] = self._fixed[name] if name in self._fixed else self._input(name, found[name], None)
        return values

    def _input(self, name: str, given: object, raises: type[ConfigError] | None) -> Value:
        kind = self._types[name] or (
            _BOOLEAN if isinstance(given, bool) else TEXT if type(given) is str else NUMBER
        )  # as JSON has it
        try:
            return accept_json(kind, given)
        except ValueRefused as error:
            if raises is not None:
                raise raises(f"input {name!r} of {self.name}: {error}", option="inputs") from error
            raise _No(name, "undecided", f"the input cannot be read: {error}") from error

    async def _judge(self, claims: Mapping[str, object], values: dict[str, Value], unverified: list[str]) -> None:
        """Judge every step up to the last that is claimed; `values` and `unverified` are filled on the way."""
        import asyncio

        for name in self._types.keys() & claims.keys():
            if self._input(name, claims[name], None) != values[name]:
                raise _No(name, "wrong_operand", "the output repeats an input, and another value of it")
        last = max(index for index, step in enumerate(self._steps) if step.id in claims)
        for index, step in enumerate(self._steps[: last + 1]):
            if index % _BREATH == _BREATH - 1:
                await asyncio.sleep(0)
            text = self._text(step, claims, values)
            if text is None:
                continue
            claim = Claim(step.id, (), text, text)
            (judgement,) = await ajudge_claims([step], [claim], values, timeout=self._timeout)
            deviation = deviation_of(judgement)
            if deviation is not None or judgement.value is None:
                kind, reason = (deviation.kind, deviation.reason) if deviation else ("undecided", "it cannot be read")
                raise _No(step.id, kind, reason)
            if judgement.verdict is None:
                unverified.append(step.id)
                if not self._allow_unverified:
                    raise _No(step.id, "unverified", "no check vouches for it")
            elif STRENGTHS.index(judgement.strength) < self._at_least:
                raise _No(step.id, "unverified", f"it is {judgement.strength}, not {STRENGTHS[self._at_least]}")
            values[step.id] = judgement.value

    def _text(self, step: Step, claims: Mapping[str, object], values: Mapping[str, Value]) -> str | None:
        """What is claimed for a step, or computed where nothing is; None where neither can be, and need not be."""
        lacking: Sequence[str] = [name for name in step.reads if name not in values]
        if step.id in claims:
            if lacking:
                raise _No(step.id, "undecided", f"it reads {lacking[0]}, which is neither claimed nor computed")
            given = claims[step.id]
            try:
                value = accept_json(step.type, given)
            except ValueRefused as error:
                raise _No(step.id, "malformed", str(error)) from error
            return given if isinstance(given, str) and not isinstance(given, JsonNumber) else step.type.write(value)
        if lacking or step.expression is None:
            return None
        try:
            return step.type.write(step.type.convert(evaluate(step.expression, values)))
        except EvaluationError as error:
            raise _No(step.id, "undecided", f"the step has no exact value: {error}") from error


def _read_type(step: Step) -> ValueType | None:
    """The type of what a single step reads; None: as the argument is, for a step in words."""
    if step.expression is None:
        return None
    return step.type if isinstance(step.expression, Name) and not step.type.numeric else NUMBER
