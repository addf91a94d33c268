"""One claim of one step, judged by one check, that the tests of the built checks share."""

from __future__ import annotations

import pytest

from stepguard import Guard, Procedure, Result, Step
from stepguard.checks import judge_claims
from stepguard.checks.built import BuiltCheck
from stepguard.core.verdicts import Claim, Verdict
from stepguard.errors import ProcedureError
from stepguard.language.values import Value
from stepguard.procedure.inputs import Input
from stepguard.testing import ScriptedSteps


def judge(check: BuiltCheck, claimed: str, *, type: str = "number", **values: Value) -> Verdict:
    """The verdict on a claim of step ``t`` that reads these values."""
    step = Step("t", instruction="Say it.", type=type, reads=list(values), checks=[check])
    (judgement,) = judge_claims([step], [Claim("t", (), claimed, claimed)], values)
    assert judgement.value is not None, judgement.verdicts
    (verdict,) = judgement.verdicts
    return verdict


def unfit(check: BuiltCheck, claimed: str, *, type: str = "number", **values: Value) -> Verdict:
    """The verdict where a check that does not fit the step is called all the same: the step itself refuses it."""
    with pytest.raises(ProcedureError):
        Step("t", instruction="Say it.", type=type, reads=list(values), checks=[check])
    step = Step("t", instruction="Say it.", type=type, reads=list(values))
    return check(step, {**values, "t": step.type.read(claimed)}, Claim("t", (), claimed, claimed))


def outcome(check: BuiltCheck, claimed: str, *, type: str = "number", **values: Value) -> str:
    """The outcome of that verdict."""
    return judge(check, claimed, type=type, **values).outcome


def guarded(check: BuiltCheck, *claimed: str, type: str = "text", **inputs: str) -> Result:
    """A run of a procedure with this one step, whose model gives these answers in turn; the last one stays."""
    step = Step("t", instruction="Say it.", type=type, reads=list(inputs), checks=[check])
    procedure = Procedure([step], inputs=[Input(name, "text") for name in inputs])
    answers = [*claimed, *[claimed[-1]] * 20]
    return Guard(ScriptedSteps({"t": answers}), repair=4).run(procedure, inputs)
