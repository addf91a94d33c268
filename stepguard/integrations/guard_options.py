"""The options of a guard that drop-ins take and hand on."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stepguard.budget import Budget
    from stepguard.hooks import Observer
    from stepguard.profile import Profile
    from stepguard.repair import Repair
    from stepguard.reply_formats import ReplyFormat
    from stepguard.segments import Segments
    from stepguard.transport import Transport

__all__ = ["GuardOptions"]


class GuardOptions(TypedDict, total=False):
    """Those of `stepguard.Guard`, but for the backend, and for `observe`, whose results nobody may take for answers."""

    segment: int | Segments | None
    repair: int | Repair | None
    budget: Budget | None
    transport: Transport | None
    reply_format: ReplyFormat | None
    parallel: int
    check_timeout: float | None
    stop_early: bool
    history: int | None
    profile: Profile | None
    seed: int | None
    observer: Observer | Sequence[Observer] | None
