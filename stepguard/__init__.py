"""Guarded execution: your model carries out the procedure, or you learn the exact step it could not.

from stepguard import Guard, Procedure

procedure = Procedure.parse("inputs: x, y\\nt1 = x + y\\nt2 = t1 * 3")
result = Guard("openai/gpt-4.1-mini").run(procedure, {"x": 12, "y": 7})
result.raise_for_status()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepguard.auditing import audit
    from stepguard.backends.retry import RetryPolicy
    from stepguard.core.profile import Profile
    from stepguard.core.usage import Price, Usage
    from stepguard.core.verdicts import Claim, Verdict
    from stepguard.engine.budget import Budget
    from stepguard.engine.run import Run
    from stepguard.engine.segments import Segments
    from stepguard.errors import StepguardError
    from stepguard.guard import Guard
    from stepguard.integrations.chat.trust import Trust
    from stepguard.integrations.decorator import guarded
    from stepguard.integrations.openai.client import wrap
    from stepguard.language.value_types import ValueType
    from stepguard.policy.policy import Policy
    from stepguard.procedure.inputs import Input
    from stepguard.procedure.procedure import Procedure
    from stepguard.procedure.steps import Step
    from stepguard.repair.ladder import Ladder
    from stepguard.results import Result

__all__ = [
    "Budget",
    "Claim",
    "Guard",
    "Input",
    "Ladder",
    "Policy",
    "Price",
    "Procedure",
    "Profile",
    "Result",
    "RetryPolicy",
    "Run",
    "Segments",
    "Step",
    "StepguardError",
    "Trust",
    "Usage",
    "ValueType",
    "Verdict",
    "audit",
    "guarded",
    "wrap",
]

_HOME = {
    "Budget": "stepguard.engine.budget",
    "Claim": "stepguard.core.verdicts",
    "Guard": "stepguard.guard",
    "Input": "stepguard.procedure.inputs",
    "Ladder": "stepguard.repair.ladder",
    "Policy": "stepguard.policy.policy",
    "Price": "stepguard.core.usage",
    "Procedure": "stepguard.procedure.procedure",
    "Profile": "stepguard.core.profile",
    "Result": "stepguard.results",
    "RetryPolicy": "stepguard.backends.retry",
    "Run": "stepguard.engine.run",
    "Segments": "stepguard.engine.segments",
    "Step": "stepguard.procedure.steps",
    "StepguardError": "stepguard.errors",
    "Trust": "stepguard.integrations.chat.trust",
    "Usage": "stepguard.core.usage",
    "ValueType": "stepguard.language.value_types",
    "Verdict": "stepguard.core.verdicts",
    "audit": "stepguard.auditing",
    "guarded": "stepguard.integrations.decorator",
    "wrap": "stepguard.integrations.openai.client",
}
"""Where each name lives: a module is loaded when its first name is asked for, so that importing this one is cheap."""

if not TYPE_CHECKING:  # a type checker is to complain about names that are not there

    def __getattr__(name: str) -> object:
        if name not in _HOME:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        found: object = getattr(import_module(_HOME[name]), name)
        globals()[name] = found
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
