"""Guarded execution: your model carries out the procedure, or you learn the exact step it could not.

from stepguard import Guard, Procedure

procedure = Procedure.parse("inputs: x, y\\nt1 = x + y\\nt2 = t1 * 3")
result = Guard("openai/gpt-4.1-mini").run(procedure, {"x": 12, "y": 7})
result.raise_for_status()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepguard.budget import Budget
    from stepguard.errors import StepguardError
    from stepguard.guard import Guard
    from stepguard.integrations.decorator import guarded
    from stepguard.integrations.openai_client import wrap
    from stepguard.ladder import Ladder
    from stepguard.procedure import Procedure
    from stepguard.profile import Profile
    from stepguard.results import Result
    from stepguard.runs import Run
    from stepguard.segments import Segments
    from stepguard.steps import Input, Step
    from stepguard.transcripts import audit
    from stepguard.transport import Transport
    from stepguard.usage import Price, Usage
    from stepguard.value_types import ValueType
    from stepguard.verdicts import Claim, Verdict

__all__ = [
    "Budget",
    "Claim",
    "Guard",
    "Input",
    "Ladder",
    "Price",
    "Procedure",
    "Profile",
    "Result",
    "Run",
    "Segments",
    "Step",
    "StepguardError",
    "Transport",
    "Usage",
    "ValueType",
    "Verdict",
    "audit",
    "guarded",
    "wrap",
]

_HOME = {
    "Budget": "stepguard.budget",
    "Claim": "stepguard.verdicts",
    "Guard": "stepguard.guard",
    "Input": "stepguard.steps",
    "Ladder": "stepguard.ladder",
    "Price": "stepguard.usage",
    "Procedure": "stepguard.procedure",
    "Profile": "stepguard.profile",
    "Result": "stepguard.results",
    "Run": "stepguard.runs",
    "Segments": "stepguard.segments",
    "Step": "stepguard.steps",
    "StepguardError": "stepguard.errors",
    "Transport": "stepguard.transport",
    "Usage": "stepguard.usage",
    "ValueType": "stepguard.value_types",
    "Verdict": "stepguard.verdicts",
    "audit": "stepguard.transcripts",
    "guarded": "stepguard.integrations.decorator",
    "wrap": "stepguard.integrations.openai_client",
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
