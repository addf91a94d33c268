"""The JSON of a result: one model for each part writes it, reads it, and is its schema."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, AliasChoices, AliasPath, BaseModel, BeforeValidator, ConfigDict, Field

from stepguard.core.profile import Profile
from stepguard.core.redaction import error_words
from stepguard.core.verdicts import Deviation, DeviationKind, Outcome, Strength
from stepguard.language.records import Record
from stepguard.language.value_json import INEXACT_IN_JSON
from stepguard.language.values import show_value
from stepguard.results.records import Assistance, AttemptOutcome, Occurrence, Status


def _as_json(value: object) -> object:
    if isinstance(value, Record):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_as_json(item) for item in value]
    # What JSON itself has is one already: a result may be read back.
    if value is None or isinstance(value, bool | str | float | list | dict):
        return value
    # Readers that take numbers for floats would round what is larger.
    return value if type(value) is int and abs(value) < INEXACT_IN_JSON else show_value(value)  # type: ignore[arg-type]


def _as_error(error: object) -> object:
    if isinstance(error, BaseException):
        return {"type": type(error).__name__, "message": error_words(error)}
    return error


JsonValue = Annotated[bool | int | str | list[Any] | dict[str, Any], BeforeValidator(_as_json)]
"""A value of a run; numbers that JSON would round are text."""
Count = Annotated[int, Field(ge=0, lt=INEXACT_IN_JSON, strict=True)]
Seconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False), AfterValidator(lambda seconds: round(seconds, 3))]
Money = Annotated[str, BeforeValidator(lambda cost: f"{cost:f}" if isinstance(cost, Decimal) else cost)]
StepId = Annotated[str, BeforeValidator(lambda step: step.step if isinstance(step, Occurrence) else step)]


def _of(name: str, inner: str | None = None, part: str = "occurrence") -> AliasChoices:
    """Where a field of the JSON is in Python: in a part of what is shown."""
    return AliasChoices(name, AliasPath(part, inner or name))


class JsonView(BaseModel):
    """A part of the JSON, made of the object in Python with the same fields, or of what was JSON already."""

    model_config = ConfigDict(from_attributes=True)


class UsageView(JsonView):
    """What calls cost; see `stepguard.core.usage.Usage`."""

    calls: Count
    input_tokens: Count
    output_tokens: Count
    cached_tokens: Count
    reasoning_tokens: Count


class VerdictView(JsonView):
    """What a check said; see `stepguard.core.verdicts.Verdict`."""

    check: str
    outcome: Outcome
    strength: Strength | None
    kind: DeviationKind | None
    reason: str


class PlaceView(JsonView):
    """A step at its place in a run; see `Occurrence`. The path is never empty."""

    step: str = Field(validation_alias=_of("step"))
    index: Count = Field(validation_alias=_of("index"))
    path: str = Field(validation_alias=_of("path", "place"))
    site: str = Field(validation_alias=_of("site"))


class StepView(PlaceView):
    """A completed step; see `StepRecord`."""

    value: JsonValue
    verified: bool
    strength: Strength
    support: Strength
    claim: str | None
    tries: Count
    assistance: Assistance
    verdicts: list[VerdictView]
    deviations: list[Deviation]


class AttemptView(JsonView):
    """A model call; see `Attempt`."""

    number: Count
    steps: list[StepId]
    rung: str
    outcome: AttemptOutcome
    committed: Count
    deviations: list[Deviation]
    usage: UsageView
    seconds: Seconds
    finish_reason: str | None
    text: str | None
    error: str | None
    backend: str | None
    prompt: list[tuple[str, str]] | None = None


class ProblemView(PlaceView):
    """Where and why a run stopped; see `Problem`."""

    reason: str
    kind: DeviationKind | None = Field(None, validation_alias=_of("kind", part="deviation"))


class ErrorView(JsonView):
    """The class and the words of an exception, without secrets."""

    type: str
    message: str


class ResultSummary(JsonView):
    """What every report on a run holds; see `Result`."""

    status: Status
    strength: Strength
    answer: JsonValue | None
    procedure: str
    run_id: str
    completed: Count
    total: Count
    unverified: list[str]
    weak: dict[str, Strength]
    usage: UsageView
    cost: Money | None
    seconds: Seconds


class ResultView(ResultSummary):
    """Everything of a run; see `Result`."""

    values: dict[str, JsonValue]
    assisted: dict[Assistance, Count]
    profiled: bool
    notes: list[str]
    ways: dict[str, Count]
    profile: Annotated[dict[str, Any], BeforeValidator(lambda of: of.to_dict() if isinstance(of, Profile) else of)]
    problem: ProblemView | None
    error: Annotated[ErrorView | None, BeforeValidator(_as_error)]
    steps: list[StepView]
    attempts: list[AttemptView]
