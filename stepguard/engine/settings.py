"""The settings of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stepguard.backends.base import Backend, Stopping
from stepguard.backends.retry import RetryPolicy
from stepguard.core.profile import Profile
from stepguard.engine.budget import Budget
from stepguard.engine.prompts import Wording
from stepguard.engine.segments import Segments
from stepguard.repair.policy import Repair
from stepguard.repair.rungs import Rung
from stepguard.replies.formats import ReplyFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that shapes a run; `Guard` makes it from its arguments."""

    segments: Segments
    repair: Repair
    budget: Budget
    retry: RetryPolicy
    fallbacks: Sequence[Backend]
    person: Rung | None
    reply_format: ReplyFormat
    prompts: Wording
    parallel: int
    check_timeout: float | None
    stop_early: bool | None
    stopping: Stopping
    observe: bool
    history: int | None
    seed: int
    profile: Profile | None
