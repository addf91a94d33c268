"""Arms that go through the guard: the guard itself, and what it would be without a part of it.

``guard``  the guard; with ``checker=...`` one whose checker knows less
``chunk``  the guard's own segments and prompts with the checker off: every claim that can be read is taken as it
           stands. Only what cannot be read at all (no JSON, a step left out) is asked again, as the guard would
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal, get_args

from stepguard.backends.base import Backend
from stepguard.core.arguments import check_count, check_flag, check_number, check_one_of
from stepguard.errors import ConfigError
from stepguard.evaluation.arms.base import ArmOptions, Neighbour, TaskOutcome, nothing
from stepguard.evaluation.arms.guarded_run import run_guarded
from stepguard.evaluation.arms.limited import Limited
from stepguard.evaluation.arms.wording import PromptDecision, Reworded, check_decision, without_working
from stepguard.evaluation.families import Task
from stepguard.evaluation.knobs import Named
from stepguard.repair.ladder import Ladder

_RETRIES: Final = 4
_OF_FULL: Final = "what can be left out are decisions of full prompts: give --prompts full"

Checker = Literal["full", "operands", "range", "residue", "noisy", "form"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded(Named):
    """The guard, or one with a checker that knows less.

    Args:
        segment: steps a call; None as the benchmark's options say.
        retries: so many plain retries a step; None as the benchmark's options say.
        checker: ``full`` is the guard's own; any other is retried plainly, 4 times unless `retries` says otherwise.
            ``operands`` knows what is to be worked out, and no results; ``range``
            how large results can be, ``residue`` their remainder modulo `modulus`; ``noisy`` notices a wrong claim
            with probability `catch`; ``form``, of published items alone, whether a value can be one of the step at
            all (a legal change, a permutation, a length), whatever the rule makes of it.
        catch: see `checker`.
        modulus: see `checker`.
        without: a decision of the prompts that is left out; see `stepguard.evaluation.arms.wording`.
        adaptive: choose the length of segments by what the run shows, as `stepguard.Guard` does by default.
        stop_early: have a reply stopped at its first wrong step, where the model's backend can.

    Raises:
        ConfigError: a knob is out of range.
    """

    word: ClassVar[str] = "guard"

    segment: int | None = None
    retries: int | None = None
    adaptive: bool = False
    stop_early: bool = False
    without: PromptDecision | None = None
    checker: Checker = "full"
    catch: float = 0.9
    modulus: int = 9

    def __post_init__(self) -> None:
        check_knobs(self.segment, self.retries)
        check_one_of(self.checker, get_args(Checker), "checker")
        check_number(self.catch, "catch", high=1, what="a probability")
        check_count(self.modulus, "modulus", least=2, most=10**6)
        check_decision(self.without)
        check_flag(self.adaptive, "adaptive")
        check_flag(self.stop_early, "stop_early")
        if self.adaptive and self.segment is not None:
            raise ConfigError("adaptive chooses the length of segments: leave segment out", option="adaptive")
        if self.stop_early and self.checker != "full":
            raise ConfigError("only the guard's own checker stops replies: leave stop_early out", option="stop_early")
        if self.stop_early and self.without == "names":
            raise ConfigError("only replies keyed by names are stopped: leave stop_early out", option="stop_early")

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> TaskOutcome:
        mine = with_knobs(options, self.segment, self.retries)
        if self.adaptive:
            mine = replace(mine, segment=None)
        if self.without is not None and options.prompts != "full":
            return nothing(self.name, task, status="error", error=_OF_FULL)
        task, backend = _worded(task, backend, self.without)
        if self.checker == "full":
            mine = replace(mine, stop_early=self.stop_early or options.stop_early)
            return await run_guarded(self.name, task, backend, mine)
        if self.checker == "form" and (task.published is None or task.published.plausible is None):
            error = f"nothing but whole rules is known of the steps of {task.family}: leave checker=form out"
            return nothing(self.name, task, status="error", error=error)
        judging = Limited(self.checker, task, catch=self.catch, modulus=self.modulus)
        return await run_guarded(self.name, task, backend, plainly(mine), judging)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk(Named):
    """The guard without its checker.

    Args:
        segment: steps a call; None as the benchmark's options say.
        without: a decision of the prompts that is left out; see `stepguard.evaluation.arms.wording`.
    """

    segment: int | None = None
    without: PromptDecision | None = None

    def __post_init__(self) -> None:
        check_knobs(self.segment, None)
        check_decision(self.without)

    async def run(self, task: Task, backend: Backend, options: ArmOptions, neighbour: Neighbour) -> TaskOutcome:
        if self.without is not None and options.prompts != "full":
            return nothing(self.name, task, status="error", error=_OF_FULL)
        mine = plainly(with_knobs(options, self.segment, None))
        task, backend = _worded(task, backend, self.without)
        return await run_guarded(self.name, task, backend, replace(mine, observe=True))


def check_knobs(segment: int | None, retries: int | None) -> None:
    """Refuse a number of steps or retries that is out of range."""
    if segment is not None:
        check_count(segment, "segment", most=10**6)
    if retries is not None:
        check_count(retries, "retries", least=0, most=1000)


def _worded(task: Task, backend: Backend, without: PromptDecision | None) -> tuple[Task, Backend]:
    """The task and the model, where a decision of the prompts is left out."""
    if without is None:
        return task, backend
    task = without_working(task) if without == "working" else task
    return task, Reworded(backend, without, task.procedure)


def with_knobs(options: ArmOptions, segment: int | None, retries: int | None) -> ArmOptions:
    """The options with the knobs that were given."""
    segmented = options if segment is None else replace(options, segment=segment)
    return segmented if retries is None else replace(segmented, repair=retries)


def plainly(options: ArmOptions) -> ArmOptions:
    """The same with plain retries in place of a ladder, whose rungs ask for more than the step itself."""
    return replace(options, repair=Ladder.of(_RETRIES)) if isinstance(options.repair, Ladder) else options
