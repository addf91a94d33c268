"""pydantic-ai: agents whose requests run guarded, or whose output is checked (extra ``pydantic-ai``)."""

from __future__ import annotations

from stepguard.integrations.outputs.judging import OutputCheck
from stepguard.integrations.pydantic_ai.agent import GuardedProcedures, NotVerified, result_of
from stepguard.integrations.pydantic_ai.output import OutputNotVerified, VerifiedOutput, check_of

__all__ = [
    "GuardedProcedures",
    "NotVerified",
    "OutputCheck",
    "OutputNotVerified",
    "VerifiedOutput",
    "check_of",
    "result_of",
]
