"""The parts of a result: how a run ended, its steps, its calls and what stopped it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from stepguard.core.usage import Usage
from stepguard.core.verdicts import Deviation, Strength, Verdict
from stepguard.language.values import Value

Status = Literal["verified", "checked", "unverified", "waiting", "abstained", "exhausted", "failed"]
"""How a run ended.

==========  =======================================================================================
verified    completed; every step is proved: no other value would have passed
checked     completed; every step passed a check of its own, but for some other values would have passed, too
unverified  completed, but some steps had no applicable check, or rest on such (or the run only observed)
waiting     a person has to answer a step, and nobody was there to be asked: the run can be continued
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
        # A deviation of the reply as a whole names no step: the first open one stands for it.
        return tuple(where for where in self.steps if where.step in named) or (self.steps[self.committed],)


@dataclass(frozen=True, slots=True)
class Problem:
    """Where and why a run stopped before its end: the step it stopped at, and the last deviation or the reason."""

    occurrence: Occurrence
    reason: str
    deviation: Deviation | None = None

    def __str__(self) -> str:
        return f"step {self.occurrence}: {self.reason}"
