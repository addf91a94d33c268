"""Moments: a date and a time in a time zone, as rules compare them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Final, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from stepguard.errors import ValueRefused
from stepguard.language.records import Record, RecordType
from stepguard.language.value_types import ValueType

MOMENT: Final = ValueType(
    kind="record",
    record=RecordType(
        "moment",
        (("date", ValueType(kind="date")), ("time", ValueType(kind="time")), ("at", ValueType(kind="duration"))),
    ),
)
"""A date and a time, such as ``2026-01-31T14:30:00Z``: its ``date``, its ``time``, and ``at``, the time that has passed
since 1970, by which two moments are compared (``now.at - order.placed.at <= 24 hours``)."""
# `datetime.fromisoformat` alone takes much more: week dates, a date without its time, a comma for the point.
_WRITTEN: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[-+][0-9]{2}:[0-9]{2})?"
)
_EPOCH: Final = datetime(1970, 1, 1)


def read_moment(given: object, zone: tzinfo) -> Record:
    """A date and a time as a record; one without a time zone is one of `zone`. Raises ValueRefused: it is none."""
    if isinstance(given, str):
        if not _WRITTEN.fullmatch(given):
            raise ValueRefused("a date and a time such as 2026-01-31T14:30:00Z was expected", text=given)
        try:
            moment = datetime.fromisoformat(given)
        except ValueError:
            raise ValueRefused("there is no such moment", text=given) from None
        # Twice in a night when clocks are put back, never in one when they are put forward.
        if moment.tzinfo is None and zone.utcoffset(moment) != zone.utcoffset(moment.replace(fold=1)):
            raise ValueRefused("clocks are changed then: say it with its offset, such as +01:00", text=given)
    elif isinstance(given, datetime):
        moment = given
    else:
        raise ValueRefused("a date and a time was expected", text=type(given).__name__)
    local = moment.replace(tzinfo=zone) if moment.tzinfo is None else moment
    try:
        local = local.astimezone(zone)
        passed = local.replace(tzinfo=None) - cast(timedelta, local.utcoffset()) - _EPOCH
    except (OverflowError, ValueError):
        raise ValueRefused("a moment outside of the years 1 to 9999", text=str(given)) from None
    # To the second, as people write a time of day; `at` keeps the rest.
    clock = time(local.hour, local.minute, local.second)
    return Record({"date": local.date(), "time": clock, "at": passed})


def read_zone(name: str) -> tzinfo:
    """The time zone of a name such as ``Europe/Berlin``. Raises ValueRefused: there is none here."""
    try:
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # such as America, which is a folder of them
        raise ValueRefused("there is no such time zone", text=name) from None
