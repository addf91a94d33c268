"""Judge the steps of one output in order."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from stepguard.checks import Judgement, ajudge_claims
from stepguard.core.verdicts import Claim, Deviation, DeviationKind, Strength, weakest
from stepguard.engine.actions import deviation_of
from stepguard.errors import EvaluationError
from stepguard.integrations.outputs.values import read_claim
from stepguard.language.evaluation import evaluate
from stepguard.language.values import Value
from stepguard.procedure.steps import Step

Rejected = DeviationKind | Literal["unverified"]
"""Why an output is rejected: a kind of deviation, or that too little stands behind a step."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OutputCheck:
    """The result of checking one output.

    Attributes:
        procedure: the name of the procedure, or the id of the step.
        verified: whether all that it claims is right. With a weaker `at_least` there may be steps in `weak`.
        step: the step, or the input, that is to blame; None for the output as a whole, and where it is verified.
        kind: why it is rejected; None where it is not.
        reason: the same for people and logs; it may name the right value, and must not reach a model.
        values: inputs and accepted values, those that code computed included, by name.
        weak: the steps that are less than proved, or rest on such, with what stands behind them.
        strength: what stands behind the weakest of the judged steps.
        retry: whether another output could be accepted.
        judgements: on the steps in their order, up to the first that is not accepted.
    """

    procedure: str
    verified: bool
    step: str | None = None
    kind: Rejected | None = None
    reason: str = ""
    values: Mapping[str, Value] = dataclasses.field(default_factory=dict)
    weak: Mapping[str, Strength] = dataclasses.field(default_factory=dict)
    strength: Strength = "unverified"
    retry: bool = True
    judgements: tuple[Judgement, ...] = ()

    def summary(self) -> str:
        """Why it is rejected, in words that a model may be told: names and kinds, no value."""
        return self.reason if self.kind == "unverified" else f"{self.step or 'the whole'} ({self.kind})"


class NotAccepted(Exception):
    """The output is not accepted."""

    def __init__(self, step: str | None, kind: Rejected, reason: str, *, retry: bool = True) -> None:
        super().__init__(reason)
        self.step, self.kind, self.reason, self.retry = step, kind, reason, retry


class Judging:
    """The state while the steps of one output are judged in their order."""

    def __init__(self, values: Mapping[str, Value], timeout: float | None) -> None:
        self.values: Final[dict[str, Value]] = dict(values)
        self.judged: Final[list[Judgement]] = []
        self.weak: Final[dict[str, Strength]] = {}
        self._timeout: Final = timeout

    async def step(self, step: Step, given: Iterable[object]) -> None:
        """Judge the claims for a step, or the computed value where there are none."""
        lacking = [name for name in step.reads if name not in self.values]
        claims = [read_claim(step, each) for each in given]
        if lacking and claims:
            raise NotAccepted(step.id, "undecided", f"it reads {lacking[0]}, which is neither claimed nor computed")
        if not claims and (lacking or step.expression is None):
            return
        for claim in claims or [self._computed(step)]:
            # Another output cannot mend a value that code has computed.
            value = await self._one(step, claim, retry=bool(claims))
            # A field and `answer` may both claim the step: each may pass, within a tolerance, and still differ.
            if self.values.setdefault(step.id, value) != value:
                raise NotAccepted(step.id, "wrong_value", "the output says two values for it")

    async def _one(self, step: Step, claim: Claim | Deviation, *, retry: bool) -> Value:
        if isinstance(claim, Deviation):
            raise NotAccepted(step.id, claim.kind, claim.reason)
        # Working is judged where it is given, whether or not the step asks for it.
        judged_as = dataclasses.replace(step, show_work=bool(claim.work) and step.expression is not None)
        (judgement,) = await ajudge_claims([judged_as], [claim], self.values, timeout=self._timeout)
        self.judged.append(judgement)
        deviation = deviation_of(judgement)
        if deviation is not None or judgement.value is None:
            kind, reason = (deviation.kind, deviation.reason) if deviation else ("undecided", "it cannot be read")
            retry = retry and (judgement.verdict is None or judgement.verdict.retry)
            raise NotAccepted(step.id, kind, reason, retry=retry)
        support = weakest((judgement.strength, *(self.weak[name] for name in step.reads if name in self.weak)))
        if support != "proved":
            self.weak[step.id] = support
        return judgement.value

    def _computed(self, step: Step) -> Claim:
        assert step.expression is not None
        try:
            text = step.type.write(step.type.convert(evaluate(step.expression, self.values)))
        except EvaluationError as error:
            raise NotAccepted(step.id, "undecided", f"the step has no exact value: {error}", retry=False) from error
        return Claim(step.id, (), text, text)

    def outcome(self, name: str, no: NotAccepted | None) -> OutputCheck:
        return OutputCheck(
            procedure=name,
            verified=no is None,
            step=None if no is None else no.step,
            kind=None if no is None else no.kind,
            reason="" if no is None else no.reason,
            values=dict(self.values),
            weak=dict(self.weak),
            strength=weakest(each.strength for each in self.judged) if self.judged else "unverified",
            retry=no is None or no.retry,
            judgements=tuple(self.judged),
        )
