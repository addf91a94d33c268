"""The actions that the engine emits, and the events that answer them.

Every action has an id and is answered by one event; events may come in any order. The driver performs the actions:
`Guard.run`, `Guard.arun`, or a loop of your own.

=============  ===============================================  ==============================
action         what is to be done                               event
=============  ===============================================  ==============================
`Ask`          send a request to the model                      `Replied` or `Failed`
`CheckClaims`  judge the claims of a reply                      `Checked` or `Failed`
`Act`          perform a step by code, a function or a tool     `Performed` or `Failed`
`Wait`         let some seconds pass                            `Woke`
`Commit`       make verified steps durable before they are used `Committed` or `Failed`
=============  ===============================================  ==============================

`Clock` gives the time and answers nothing. An event that does not fit is refused, and its action stays outstanding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from stepguard.backends.base import Backend, Completion, Request
from stepguard.checks import Judgement
from stepguard.core.verdicts import Claim, Deviation
from stepguard.language.values import Value
from stepguard.procedure.operations import Operation
from stepguard.procedure.steps import Step
from stepguard.results import Occurrence, StepRecord

__all__ = [
    "Act",
    "Action",
    "Ask",
    "CheckClaims",
    "Checked",
    "Clock",
    "Commit",
    "Committed",
    "Event",
    "Failed",
    "OperationCall",
    "Performed",
    "Replied",
    "Wait",
    "Woke",
    "deviation_of",
    "misfit",
]


@dataclass(frozen=True, slots=True)
class Ask:
    """Send `request` to the model, or to `backend` where another model or a person is to answer.

    `occurrences` are the steps of the procedure that it is about; the request may put others in the place of one.
    """

    id: str
    request: Request
    backend: Backend | None = None
    occurrences: tuple[Occurrence, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckClaims:
    """Judge `claims` about `steps`; `values` is the verified state before the first of them.

    `foreign` says that checks of the user are among them, which may block: each for `timeout` seconds, all together
    for `remaining` seconds (None: for as long as they take). `beyond_failure` is for observing runs, `independent` has
    the claims judged that do not rest on one that is not accepted: see `stepguard.checks.judge_claims`. With `stand_in`
    the steps are asked in the place of one of the procedure, which is judged itself when they are accepted.
    """

    id: str
    steps: tuple[Step, ...]
    claims: tuple[Claim, ...]
    values: Mapping[str, Value]
    foreign: bool
    beyond_failure: bool
    independent: bool = False
    timeout: float | None = None
    remaining: float | None = None
    stand_in: bool = False


@dataclass(frozen=True, slots=True)
class Act:
    """Perform `step` by code, from `values`. The value is of the step's type: see `stepguard.language.values`.

    A step of a function or a tool is performed by `operation`; `key` is the same whenever that step of that run is
    tried. `remaining` are the seconds that the run has left, None where that is not limited.
    """

    id: str
    step: Step
    values: Mapping[str, Value]
    operation: Operation | None = None
    key: str = ""
    remaining: float | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """Let `seconds` pass before the next try; `reason` says why."""

    id: str
    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class OperationCall:
    """A call of a tool, whose key stays the same however often that step of that run is tried.

    `digest` identifies its arguments (`stepguard.engine.journal.call_digest`); `value` is what it has `returned`.
    """

    key: str
    operation: str
    occurrence: Occurrence
    digest: str
    returned: bool = False
    value: Value | None = None


@dataclass(frozen=True, slots=True)
class Commit:
    """Make `records` durable. No later step is asked before this is acknowledged.

    `steps` are those of the records, `claims` what was accepted for each (None where nobody claimed anything), and
    `values` the verified state before the first of them. Where a run is kept in a ledger, calls of tools are made
    durable as well: `call` stands alone then, before the call is made, and again with what it has returned.
    """

    id: str
    records: tuple[StepRecord, ...] = ()
    steps: tuple[Step, ...] = ()
    claims: tuple[Claim | None, ...] = ()
    values: Mapping[str, Value] = field(default_factory=dict)
    call: OperationCall | None = None


Action = Ask | CheckClaims | Act | Wait | Commit


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
    """The judgements on the claims of `CheckClaims` `id`, in order: of all, or up to the first that ends the judging.

    That is the first that is not accepted; with `CheckClaims.beyond_failure` only one whose value cannot be read, and
    none with `CheckClaims.independent`. What `stepguard.checks.judge_claims` returns fits.
    """

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

_ANSWERS: Final[Mapping[type, tuple[type, ...]]] = {
    Ask: (Replied, Failed),
    CheckClaims: (Checked, Failed),
    Act: (Performed, Failed),
    Wait: (Woke,),
    Commit: (Committed, Failed),
}


def deviation_of(judgement: Judgement) -> Deviation | None:
    """Why a claim is not accepted, None where it is."""
    verdict = judgement.verdict
    if verdict is None or verdict.outcome == "pass":
        return None
    # A check of the user's need not name a kind.
    kind = (verdict.kind or "wrong_value") if verdict.outcome == "fail" else "undecided"
    return Deviation(kind, judgement.claim.step, verdict.reason)


def misfit(event: Event, action: Action) -> str | None:
    """Why an event is no answer to an action, None where it is one."""
    expected = _ANSWERS[type(action)]
    if not isinstance(event, expected):
        names = " or ".join(kind.__name__ for kind in expected)
        return f"{type(action).__name__} is answered by {names}"
    if isinstance(event, Replied) and not isinstance(event.completion, Completion):
        return f"it holds a {type(event.completion).__name__}, not a Completion"
    if isinstance(event, Performed) and isinstance(action, Act) and not action.step.type.holds(event.value):
        return f"{action.step.id} is of type {action.step.type}, not {type(event.value).__name__}"
    if isinstance(event, Checked) and isinstance(action, CheckClaims):
        # A driver may judge claims elsewhere: what it sends back is held to what `judge_claims` could have returned.
        return _misjudged(event.judgements, action)
    return None


def _misjudged(judgements: tuple[Judgement, ...], action: CheckClaims) -> str | None:
    if [item.claim for item in judgements] != list(action.claims[: len(judgements)]):
        return "the judgements are not on its claims, in their order"
    rejected: set[str] = set()
    # There may be fewer judgements than claims: the judging ends at the first refusal.
    for number, (step, judgement) in enumerate(zip(action.steps, judgements, strict=False), 1):
        if judgement.value is not None and not step.type.holds(judgement.value):
            return f"the value judged for {step.id} is not of type {step.type}"
        deviates = deviation_of(judgement) is not None
        # With `independent`, what reads a refused value must have been skipped, not judged.
        rests = not rejected.isdisjoint(step.reads)
        if judgement.value is None and not deviates and not rests:
            return f"{step.id} is accepted without a value"
        if rests and judgement.value is not None:
            return f"{step.id} is judged, though it rests on a claim that is not accepted"
        if judgement.value is None or (deviates and not action.beyond_failure):
            if action.independent:
                rejected.add(step.id)
                continue
            return None if number == len(judgements) else f"it judges claims behind {step.id}, which is not accepted"
    return None if len(judgements) == len(action.claims) else "not every claim is judged"
