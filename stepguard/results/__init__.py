"""What a run gives back: status, answer, values, and the history of every step and every call.

`view` has the model that its JSON is written and read with.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from stepguard.core.profile import Profile
from stepguard.core.usage import Usage
from stepguard.core.verdicts import STRENGTHS, Deviation, Strength, Verdict, check_strength, shorten
from stepguard.errors import BudgetExhausted, RunFailed, RunUnverified, RunWaiting, StepNotVerified
from stepguard.language.values import Value, show_value

__all__ = [
    "ASSISTANCE",
    "COMPLETED",
    "Assistance",
    "Attempt",
    "AttemptOutcome",
    "Occurrence",
    "Problem",
    "Result",
    "Status",
    "StepRecord",
]

Status = Literal["verified", "checked", "unverified", "waiting", "abstained", "exhausted", "failed"]
"""How a run ended.

==========  =======================================================================================
verified    completed; every step is proved: no other value would have passed
checked     completed; every step passed a check of its own, but for some other values would have passed, too
unverified  completed, but some steps had no applicable check, or rest on such (or the run only observed)
waiting     a person has to answer a step, and nobody was there to be asked: the run can be gone on with
abstained   a step could not be verified: it is named, the verified part is kept
exhausted   a budget or deadline stopped it; the verified part is kept
failed      a backend, tool or procedure error stopped it; the verified part is kept
==========  =======================================================================================

The first three go by the weakest step; see `stepguard.core.verdicts.Strength`.
"""
COMPLETED: Final[tuple[Status, ...]] = ("verified", "checked", "unverified")
"""How a run ends that has come to the end of its procedure."""

Assistance = Literal["none", "rephrased", "rewritten", "split", "model", "person", "code"]
"""What the guard did for a step beyond asking it plainly, once or again.

=========  ==================================================================================
none       nothing
rephrased  it was asked in other words, or worked in free text first
rewritten  it was asked in another notation of the same value, which code mapped back
split      it was asked in smaller steps, each checked
model      another model was asked
person     a person was asked
code       code performed it
=========  ==================================================================================
"""

ASSISTANCE: Final[tuple[Assistance, ...]] = get_args(Assistance)


_LONGEST: Final = 200
"""Characters of an answer or a reason in the text of a result."""

AttemptOutcome = Literal["accepted", "partly", "rejected", "draft", "error"]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A step at its place in a run.

    Attributes:
        index: counted from 0.
        step: its id, which is its name in requests; in the rounds of a loop and in calls each has one of its own.
        path: its place in the procedure, such as ``items[2].paid``; empty where that is the id.
        site: which of the statements of the procedure it is, such as ``3.0.1``, counted from 0: the second one of the
            first branch of the fourth one. Empty in a procedure that is a mere list of steps, where `index` tells.
    """

    index: int
    step: str
    path: str = ""
    site: str = ""

    @property
    def place(self) -> str:
        """Its path, or its id where that is empty."""
        return self.path or self.step

    def __str__(self) -> str:
        return self.place


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One completed step.

    Attributes:
        occurrence: which step.
        value: its value.
        strength: what stands behind the value itself, whatever it rests on; see `stepguard.core.verdicts.Strength`.
            Code proves what it performs.
        support: the weakest strength among this step and all that it rests on, inputs being taken as given;
            ``unverified`` in a run that only observes.
        verdicts: what each check said of the accepted claim; empty for a step performed by code.
        claim: the accepted entry of the reply as it was written, None for a step performed by code.
        tries: how often the step was tried: 1, and one more for each time it was not accepted; for a step that code
            performed, how often it was not accepted before.
        assistance: what the guard did beyond asking plainly.
        deviations: why earlier replies about this step were not accepted, oldest first.
    """

    occurrence: Occurrence
    value: Value
    strength: Strength = "unverified"
    support: Strength = "unverified"
    verdicts: tuple[Verdict, ...] = ()
    claim: str | None = None
    tries: int = 1
    assistance: Assistance = "none"
    deviations: tuple[Deviation, ...] = ()

    @property
    def verified(self) -> bool:
        """Whether it is proved, and so is everything it rests on."""
        return self.support == "proved"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One model call.

    Attributes:
        number: counts the calls of the run from 1.
        steps: the occurrences that were asked.
        rung: the way of asking (``"ask"`` for the first time, see `stepguard.repair.rungs`).
        outcome: accepted (all steps), partly (some), rejected (none), draft (free text that the next call builds on)
            or error (no reply, or nobody to read it).
        committed: how many of the asked steps were committed: those before the first that was not accepted, and
            those behind it that do not rest on it, but for straight lines of formulas.
        deviations: what was wrong with the reply.
        usage: what the call cost.
        seconds: from sending the request to the reply.
        finish_reason: as the provider gave it.
        text: the reply as it came, without white space around it: its content, or the arguments of its tool calls, or
            the refusal.
        error: why there was no reply, or why a reply could not be used.
        backend: who was asked in the place of the guard's own model: a fallback, or another model or a person of the
            ladder; None for the guard's own.
        prompt: the messages that were sent, each its role and its text; None but where the run is kept in a ledger
            that keeps prompts.
    """

    number: int
    steps: tuple[Occurrence, ...]
    rung: str
    outcome: AttemptOutcome
    committed: int
    deviations: tuple[Deviation, ...]
    usage: Usage
    seconds: float
    finish_reason: str | None = None
    text: str | None = None
    error: str | None = None
    backend: str | None = None
    prompt: tuple[tuple[str, str], ...] | None = None

    @property
    def refused(self) -> tuple[Occurrence, ...]:
        """Those of the asked steps that were not accepted, without what was not judged because it rests on them."""
        if self.committed == len(self.steps):
            return ()
        named = {deviation.step for deviation in self.deviations}
        return tuple(where for where in self.steps if where.step in named) or (self.steps[self.committed],)


@dataclass(frozen=True, slots=True)
class Problem:
    """Where and why a run stopped before its end: the step it stopped at, and the last deviation or the reason."""

    occurrence: Occurrence
    reason: str
    deviation: Deviation | None = None

    def __str__(self) -> str:
        return f"step {self.occurrence}: {self.reason}"


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
