"""What a run gives back: status, answer, values, and the history of every step and every call.

`view` has the model that its JSON is written and read with.
"""

from __future__ import annotations

from stepguard.results.records import (
    ASSISTANCE,
    COMPLETED,
    Assistance,
    Attempt,
    AttemptOutcome,
    Occurrence,
    Problem,
    Status,
    StepRecord,
)
from stepguard.results.result import Result

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
