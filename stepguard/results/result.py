"""One finished run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from stepguard.core.profile import Profile
from stepguard.core.usage import Usage
from stepguard.core.verdicts import STRENGTHS, Strength, check_strength, shorten
from stepguard.errors import BudgetExhausted, RunFailed, RunUnverified, RunWaiting, StepNotVerified
from stepguard.language.values import Value, show_value
from stepguard.results.records import Assistance, Attempt, Problem, Status, StepRecord

_LONGEST: Final = 200
"""Characters of an answer or a reason in the text of a result."""


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """One finished run; as a text it is one line, and `to_json` has everything.

    Attributes:
        status: see `Status`.
        answer: the value of the procedure's answer; None unless the run completed.
        output: the answer as what the procedure hands it on as (`Procedure.output`), such as the instance of a class;
            the answer itself where it declares nothing.
        values: inputs and the values of all completed steps, by name, read-only; of a lazy procedure only the values
            that the next step may read.
        steps: the completed steps, in the order of the procedure.
        attempts: every model call, in the order in which the calls were finished.
        usage: the sum over all attempts.
        cost: what they cost, in the unit of the budget's price; None where no price is declared.
        seconds: the length of the run.
        procedure: the name of the procedure.
        run_id: the id in every event of the run.
        problem: where and why it stopped, None when it completed.
        error: the exception behind ``failed``.
        completed: how many steps were completed; more than `steps` holds when the guard keeps a limited history.
        total: how many steps the procedure has; of one with branches or loops, how many have come up in the run.
        strength: what stands behind the weakest of the completed steps; ``proved`` where no step was to be done, and
            ``unverified`` where none is completed yet, or the run only observed.
        weak: the completed steps that are less than proved, or rest on such, each with its `StepRecord.support`; the
            first of them under a limited history.
        assisted: how many steps were completed with each assistance, without those that had none.
        profile: what this run has shown of the model; see `stepguard.core.profile`.
        profiled: whether the guard had been given a profile, so that the run began with what others had shown.
        notes: what the caller should know of how the run went, in words: that the form of the replies cost more than
            their content, say.
        ways: how often each branch and each loop was entered, by its `Occurrence.site`: a branch has that of its
            statement and its number, `otherwise` the number behind the others.
    """

    status: Status
    answer: Value | None
    values: Mapping[str, Value]
    steps: tuple[StepRecord, ...]
    attempts: tuple[Attempt, ...]
    usage: Usage
    seconds: float
    procedure: str
    run_id: str
    completed: int
    total: int
    cost: Decimal | None = None
    strength: Strength = "unverified"
    weak: Mapping[str, Strength] = field(default_factory=dict)
    assisted: Mapping[Assistance, int] = field(default_factory=dict)
    profile: Profile = field(default_factory=Profile)
    profiled: bool = False
    notes: tuple[str, ...] = ()
    ways: Mapping[str, int] = field(default_factory=dict)
    output: object = field(default=None, compare=False)
    problem: Problem | None = None
    error: Exception | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        # Copies, which nobody's later change reaches.
        object.__setattr__(self, "values", MappingProxyType(dict(self.values)))
        object.__setattr__(self, "weak", MappingProxyType(dict(self.weak)))
        object.__setattr__(self, "assisted", MappingProxyType(dict(self.assisted)))
        object.__setattr__(self, "ways", MappingProxyType(dict(self.ways)))

    def __reduce__(self) -> tuple[Any, ...]:
        # A read-only mapping cannot be pickled.
        facts = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {name: dict(facts[name]) for name in ("values", "weak", "assisted", "ways")}
        return _rebuild, ({**facts, **plain},)

    def __str__(self) -> str:
        if self.problem is not None:
            state = f"{self.status} at {self.problem}"
        else:
            state = self.status if self.answer is None else f"{self.status}, answer {show_value(self.answer)}"
        calls = "1 call" if self.usage.calls == 1 else f"{self.usage.calls} calls"
        state = shorten(state, _LONGEST)
        return f"{shorten(self.procedure)}: {state} ({self.completed} of {self.total} steps, {calls})"

    def __repr__(self) -> str:
        # All fields would be a screen of text for every few steps.
        return f"<Result {self}>"

    @property
    def verified(self) -> bool:
        """Whether every step is proved."""
        return self.status == "verified"

    @property
    def unverified(self) -> tuple[str, ...]:
        """The ids of the completed steps that no check vouches for, or that rest on such; see `weak`."""
        return tuple(step for step, support in self.weak.items() if support == "unverified")

    def raise_for_status(self, *, at_least: Strength = "proved") -> Result:
        """Return self if the run completed and every step is as strong as asked; raise what went wrong otherwise.

        Args:
            at_least: what is to stand behind every step. ``"proved"``, the default, takes ``verified`` alone; a weaker
                one takes also ``checked`` runs whose steps are all as strong as that, and ``"unverified"`` every
                completed run.

        Raises:
            RunUnverified: the run completed, and a step is weaker than asked.
            RunWaiting, StepNotVerified, BudgetExhausted, RunFailed: it did not complete, by status. Each carries this
                result.
            ConfigError: `at_least` is no strength.
        """
        check_strength(at_least)
        match self.status:
            case "verified" | "checked" | "unverified":
                if not _weaker(self.strength, at_least):
                    return self
                raise RunUnverified(f"{self.procedure}: {self.weakness(at_least)}", result=self)
            case "waiting":
                raise RunWaiting(f"{self.procedure}: {self.problem}", result=self)
            case "abstained":
                raise StepNotVerified(f"{self.procedure}: {self.problem}", result=self)
            case "exhausted":
                raise BudgetExhausted(f"{self.procedure}: {self.problem}", result=self)
            case "failed":
                raise RunFailed(f"{self.procedure}: {self.problem or self.error}", result=self) from self.error

    def weakness(self, at_least: Strength = "proved") -> str:
        """Which steps are weaker than asked, in words; of a run that only observed, that it did."""
        weak = {step: support for step, support in self.weak.items() if _weaker(support, at_least)}
        bare = [step for step, support in weak.items() if support == "unverified"]
        some = [f"{step} is {support}" for step, support in weak.items() if support != "unverified"]
        parts = [f"nothing vouches for {_listed(bare)}"] if bare else []
        parts += [f"{_listed(some)}, not {at_least}"] if some else []
        return "; ".join(parts) or f"the run is {self.strength}, not {at_least}"

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON data; numbers that JSON would round are text. `json_schema` says what it looks like."""
        from stepguard.results.view import ResultView  # not worth the time of every import

        return ResultView.model_validate(self).model_dump()

    def to_json(self) -> str:
        """`to_dict` as one line of valid JSON, ASCII only."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """The JSON Schema of what `to_dict` gives."""
        from stepguard.results.view import ResultView

        return ResultView.model_json_schema(mode="serialization")


def _weaker(strength: Strength, least: Strength) -> bool:
    return STRENGTHS.index(strength) < STRENGTHS.index(least)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")


def _rebuild(facts: dict[str, Any]) -> Result:
    return Result(**facts)
