"""Checks: is this claim about this step right?

A check is a function of the step, the values it reads and the claim. It says pass, fail, undecided or not
applicable. A step is verified when at least one check applies and all that apply pass; a check that raises, or takes
longer than ``Guard(check_timeout=...)``, is undecided: never a pass, never a crash, never a hang.

A check of your own is a plain callable::

    def in_stock(step, values, claim):
        return values["ordered"] <= values["stock"]     # True: pass, False: fail, None: not applicable

    Step("ordered", instruction="How many does the customer want?", reads=["stock"], type="integer", checks=[in_stock])

It may be async: an async run awaits it in its own event loop, any other run in a loop of the check's.

Checks that are here, each in a module of its own and, in a file, under a name (`stepguard.procedure.check_registry`):

=====================================================  ===============================================================
`Range`, `Holds`, `Requires`, `Distinct`               bounds, relations between values, preconditions, uniqueness
`DateIs`, `DateHolds`, `DaysBetween`, `DurationIs`     dates and durations
`Quantity`, `Measured`                                 amounts with units (extra ``units``)
`Grounded`, `Complete`, `Cites`                        what is read from a document, and what decides, stands there
`Pattern`, `OneOf`, `Schema`, `Forbidden`, `Length`    text, and JSON in it (a JSON Schema needs the extra ``schema``)
`Equivalent`, `Derivative`, `Integral`, `Substituted`  formulas
`Solves`, `SolvesSystem`, `SolvesInequality`           solutions
`SameMatrix`                                           matrices
=====================================================  ===============================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepguard.checks.constraints import Distinct, Holds, Range, Requires
from stepguard.checks.judging import Judgement, ajudge_claims, find_hopeless, judge_claims
from stepguard.checks.user import Check

if TYPE_CHECKING:
    from stepguard.checks.citation import Cites
    from stepguard.checks.completeness import Complete
    from stepguard.checks.dates import DateHolds, DateIs, DaysBetween
    from stepguard.checks.durations import DurationIs
    from stepguard.checks.formulas.equality import Derivative, Equivalent, Integral, Substituted
    from stepguard.checks.formulas.matrices import SameMatrix
    from stepguard.checks.formulas.solving import Solves, SolvesInequality, SolvesSystem
    from stepguard.checks.grounding import Grounded
    from stepguard.checks.schema import Schema
    from stepguard.checks.text import Forbidden, Length, OneOf, Pattern
    from stepguard.checks.units import Measured, Quantity

__all__ = [
    "Check",
    "Cites",
    "Complete",
    "DateHolds",
    "DateIs",
    "DaysBetween",
    "Derivative",
    "Distinct",
    "DurationIs",
    "Equivalent",
    "Forbidden",
    "Grounded",
    "Holds",
    "Integral",
    "Judgement",
    "Length",
    "Measured",
    "OneOf",
    "Pattern",
    "Quantity",
    "Range",
    "Requires",
    "SameMatrix",
    "Schema",
    "Solves",
    "SolvesInequality",
    "SolvesSystem",
    "Substituted",
    "ajudge_claims",
    "find_hopeless",
    "judge_claims",
]


if not TYPE_CHECKING:  # a type checker is to complain about names that are not there

    def __getattr__(name: str) -> object:
        from stepguard.procedure.check_registry import CHECKS

        found = globals()[name] = CHECKS.called(name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
