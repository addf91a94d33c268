"""What the engine asks for, and what it is told in return.

The engine emits actions, each with an id, and accepts one event for each of them, in any order. Whoever drives it
performs the actions: `Guard.run` and `Guard.arun` do, a loop of your own can.

========  ====================================================  ==============================
action    what is to be done                                    event
========  ====================================================  ==============================
`Ask`     send a request to the model                           `Replied` or `Failed`
`Check`   judge the claims of a reply                           `Checked`
`Act`     perform a step by code                                `Performed` or `Failed`
`Wait`    let some seconds pass                                 `Woke`
`Commit`  make verified steps durable before they are used      `Committed` or `Failed`
========  ====================================================  ==============================

`Clock` tells the time without answering anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stepguard.backends.base import Completion, Request
from stepguard.checks import Judgement
from stepguard.procedure import Step
from stepguard.results import StepRecord
from stepguard.values import Value
from stepguard.verdicts import Claim

__all__ = [
    "Act",
    "Action",
    "Ask",
    "Check",
    "Checked",
    "Clock",
    "Commit",
    "Committed",
    "Event",
    "Failed",
    "Performed",
    "Replied",
    "Wait",
    "Woke",
]


@dataclass(frozen=True, slots=True)
class Ask:
    """Send `request` to the model."""

    id: str
    request: Request


@dataclass(frozen=True, slots=True)
class Check:
    """Judge `claims` about `steps`; `values` is the verified state before the first of them.

    `foreign` says that checks of the user are among them, which may block. `beyond_failure` is for observing runs.
    """

    id: str
    steps: tuple[Step, ...]
    claims: tuple[Claim, ...]
    values: Mapping[str, Value]
    foreign: bool
    beyond_failure: bool


@dataclass(frozen=True, slots=True)
class Act:
    """Perform `step` by code, from `values`."""

    id: str
    step: Step
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Wait:
    """Let `seconds` pass before the next try; `reason` says why."""

    id: str
    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class Commit:
    """Make `records` durable. No later step is asked before this is acknowledged."""

    id: str
    records: tuple[StepRecord, ...]


Action = Ask | Check | Act | Wait | Commit


@dataclass(frozen=True, slots=True)
class Replied:
    """The model answered `Ask` `id`."""

    id: str
    completion: Completion


@dataclass(frozen=True, slots=True)
class Failed:
    """Action `id` could not be performed."""

    id: str
    error: Exception


@dataclass(frozen=True, slots=True)
class Checked:
    """The judgements on the claims of `Check` `id`, in order, up to the first that is not accepted."""

    id: str
    judgements: tuple[Judgement, ...]


@dataclass(frozen=True, slots=True)
class Performed:
    """The value that code found for `Act` `id`."""

    id: str
    value: Value


@dataclass(frozen=True, slots=True)
class Woke:
    """The time of `Wait` `id` has passed."""

    id: str


@dataclass(frozen=True, slots=True)
class Committed:
    """`Commit` `id` is durable."""

    id: str


@dataclass(frozen=True, slots=True)
class Clock:
    """The time, in seconds of a monotonic clock."""

    now: float


Event = Replied | Failed | Checked | Performed | Woke | Committed | Clock
