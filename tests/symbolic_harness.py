"""The verdict of one symbolic check, for the tests of all of them."""

from __future__ import annotations

from stepguard.checks import Check, judge_claims
from stepguard.core.verdicts import Claim, Verdict
from stepguard.language.values import Value
from stepguard.procedure.steps import Step

PASS, FAIL, OPEN = "pass", "fail", "undecided"


def judge(check: Check, claim: str, *, type: str = "text", step_id: str = "answer", **reads: Value) -> Verdict:
    """The verdict of a check on a claim of a step that reads these variables."""
    step = Step(step_id, instruction="Work it out.", type=type, reads=list(reads), checks=[check])
    (judgement,) = judge_claims([step], [Claim(step_id, (), claim, claim)], reads)
    assert judgement.verdict is not None
    return judgement.verdict
