"""The options of a guard: what each means, its unit, its default and what it may be, in one place.

`GuardOptions` is what `stepguard.Guard` makes of its keywords. `GuardKeywords` names the same for type checkers and
editors, and `DropInKeywords` those of them that drop-ins take and hand on.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar, get_args

from stepguard.backends.base import Backend
from stepguard.backends.making import as_backend
from stepguard.backends.person import AskPerson
from stepguard.backends.retry import RetryPolicy
from stepguard.core.arguments import (
    check_count,
    check_flag,
    check_instance,
    check_one_of,
    check_run_id,
    check_seconds,
    check_seed,
)
from stepguard.core.profile import Profile
from stepguard.engine.budget import Budget
from stepguard.engine.prompts import Wording
from stepguard.engine.segments import Segments
from stepguard.engine.settings import Settings
from stepguard.errors import ConfigError
from stepguard.repair.ladder import Ladder
from stepguard.repair.policy import Repair
from stepguard.repair.rungs import person
from stepguard.replies.formats import EquationFormat, ReplyFormat
from stepguard.telemetry.hooks import Observer, as_observers

if TYPE_CHECKING:
    from stepguard.ledger import Ledger

_RETRIES: Final = 4  # an observing guard changes nothing: plain retries, no ladder
_SEED_BITS: Final = 32
_EQUATIONS: Final = EquationFormat()

_Callable = TypeVar("_Callable", bound=Callable[..., Any])


class DropInKeywords(TypedDict, total=False):
    """The options that every drop-in takes: all but `observe`, whose results nobody may take for answers, and `ledger`,
    which some take otherwise."""

    segment: int | Segments | None
    repair: int | Repair | None
    budget: Budget | None
    retry: RetryPolicy | None
    fallback: object | Sequence[object] | None
    person: AskPerson | None
    reply_format: ReplyFormat | None
    prompts: Wording
    parallel: int
    check_timeout: float | None
    stop_early: bool | None
    history: int | None
    profile: Profile | None
    seed: int | None
    observer: Observer | Sequence[Observer] | None


class KeptKeywords(DropInKeywords, total=False):
    """The options of drop-ins whose runs `named_run` names."""

    ledger: str | Path | Ledger | None


class GuardKeywords(KeptKeywords, total=False):
    """The options of `stepguard.Guard`; see `GuardOptions`."""

    observe: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardOptions:
    """Everything that shapes the runs of a guard, but for the model.

    Args:
        segment: how many steps one call asks: a number, or a `Segments`; chosen by what the run shows by default.
        repair: what is tried when a step is not accepted: a `Ladder`, a number of plain retries, or a policy of your
            own (`Repair`). By default `Ladder()` with its default rungs; with `observe` four retries.
        budget: what a run may spend; no limit by default.
        retry: when a request that got no answer is sent again, and how long an answer is waited for.
        fallback: who is asked where the model does not answer (it is down, refuses every request, or its server sends
            what nobody can read), or declines: a model, given as the guard's own is, or a list of them in their order.
            From its first failure that no retry mends a model is not asked again in that run. A step that the guard
            would give up is asked of each of them once. Another model in the ladder
            (`stepguard.repair.rungs.another_model`) stands in as well, behind them. The budget counts all of them
            together, `stepguard.backends.circuit.CircuitBreaker` each by itself; `Attempt.backend` says who was asked,
            and `StepRecord.assistance` which steps another model was asked for that would have been given up.
        person: who answers the steps of a procedure that ask a person, and approves calls of tools: a function, sync or
            async, called with the step and the values it reads, which gives the value of the step.
        reply_format: how replies are structured.
        prompts: how a procedure that has nothing but sums and products of whole numbers is asked: ``brief``, with
            little said of the form of the reply and the values in the formulas themselves, or ``full``, as all others.
        parallel: how many segments may be asked at the same time where steps do not depend on each other. `Guard.run`
            performs them one after the other.
        check_timeout: seconds after which a check of yours is given up; the claim is undecided then. Such a check runs
            in a thread of its own. None waits for as long as it takes, unless the budget has a limit on seconds; what
            that has left bounds checks in any case.
        stop_early: have a streamed reply stopped at its first wrong step, which saves what the model would write behind
            it; no such reply is stopped for a check of yours. None: where the backend streams in any case and counts as
            it goes (`LocalBackend`), and at an address on this machine or in a private network from 1 refused step in
            100 on, where whole replies are asked for once a stream has failed. Others that can (`OpenAIBackend`,
            `InstructorBackend` for Anthropic and chat completions, and recordings of them) do where that is true. The
            tokens of a stopped reply are estimated where the server does not count as it goes.
        observe: check and record, but take every claim that can be read as it stands. The result is never called
            verified. For measuring what a model does without the guard.
        history: how many of the last steps and attempts a result keeps; None keeps all.
        profile: what earlier runs have shown of the model (`Profile`): the run begins with it instead of nothing. It
            is not changed; `Result.profile` holds what the run itself has shown.
        seed: makes sampling seeds and jitter repeatable; a new one for every run by default.
        observer: what is notified while a run goes on: a function, called with every performed action and its
            event; `stepguard.telemetry.hooks.Hooks`, such as `stepguard.telemetry.opentelemetry.OpenTelemetry`; or a
            list of those. What they raise is logged and changes nothing.
        ledger: where runs are kept, so that one that was killed or waits goes on in another process: the path of a
            file, or a `stepguard.ledger.Ledger`.

    Raises:
        ConfigError: an option cannot work.
    """

    segment: int | Segments | None = None
    repair: int | Repair | None = None
    budget: Budget | None = None
    retry: RetryPolicy | None = None
    fallback: object | Sequence[object] | None = None
    person: AskPerson | None = None
    reply_format: ReplyFormat | None = None
    prompts: Wording = "brief"
    parallel: int = 1
    check_timeout: float | None = 60.0
    stop_early: bool | None = None
    observe: bool = False
    history: int | None = 10_000
    profile: Profile | None = None
    seed: int | None = None
    observer: Observer | Sequence[Observer] | None = None
    ledger: str | Path | Ledger | None = None

    def __post_init__(self) -> None:
        # Objects are made here for their checks alone: an option that cannot work fails now, not in a run.
        if not isinstance(self.segment, Segments):
            Segments(self.segment)
        if isinstance(self.repair, int):
            Ladder.of(self.repair)
        elif self.repair is not None and (
            isinstance(self.repair, type) or not callable(getattr(self.repair, "next", None))
        ):
            raise ConfigError(
                f"repair is a number of retries, or a policy such as Ladder([Resample()]), not {self.repair!r:.60}",
                option="repair",
            )
        check_instance(self.budget, Budget, "budget", what="a Budget such as Budget(calls=40)", optional=True)
        check_instance(
            self.retry, RetryPolicy, "retry", what="a RetryPolicy such as RetryPolicy(retries=4)", optional=True
        )
        if self.reply_format is not None and not callable(getattr(self.reply_format, "response_model", None)):
            raise ConfigError(
                f"reply_format is a ReplyFormat such as EquationFormat(), not {self.reply_format!r:.60}",
                option="reply_format",
            )
        check_one_of(self.prompts, get_args(Wording), "prompts")
        check_count(self.parallel, "parallel")
        check_seconds(self.check_timeout, "check_timeout", positive=True, optional=True)
        if self.stop_early is not None:
            check_flag(self.stop_early, "stop_early")
        check_flag(self.observe, "observe")
        check_count(self.history, "history", optional=True)
        check_instance(self.profile, Profile, "profile", what="a Profile, such as that of a result", optional=True)
        check_seed(self.seed)
        as_observers(self.observer)
        if self.person is not None and not callable(self.person):
            raise ConfigError(f"person is a function that asks one, not {self.person!r:.60}", option="person")
        self.fallbacks()
        if self.ledger is not None:
            from stepguard.ledger import Ledger

            check_instance(self.ledger, (str, Path, Ledger), "ledger", what="the path of a file, or a Ledger")
            if self.observe:
                raise ConfigError("an observing run verifies nothing that a ledger could keep", option="ledger")
        if self.observe and isinstance(self.repair, Ladder) and not all(rung.plain for rung in self.repair.rungs):
            raise ConfigError(
                "an observing run helps nobody: repair is a number of retries, or a Ladder of rungs that ask plainly",
                option="repair",
            )

    def fallbacks(self) -> list[Backend]:
        """The models of `fallback`, as backends."""
        given = self.fallback
        listed = given if isinstance(given, list | tuple) else () if given is None else (given,)
        return [as_backend(model) for model in listed]

    def open_ledger(self) -> Ledger | None:
        """The ledger, opened where its path was given; None where there is none.

        Raises:
            LedgerError: it cannot be opened.
        """
        if self.ledger is None or not isinstance(self.ledger, str | Path):
            return self.ledger
        from stepguard.ledger import Ledger

        return Ledger(self.ledger)

    def settings(self) -> Settings:
        """What shapes a run, with every default filled in, and a new seed where none is given."""
        repair = self.repair
        if repair is None:
            repair = Ladder.of(_RETRIES) if self.observe else Ladder()
        return Settings(
            segments=self.segment if isinstance(self.segment, Segments) else Segments(self.segment),
            repair=Ladder.of(repair) if isinstance(repair, int) else repair,
            budget=Budget() if self.budget is None else self.budget,
            retry=RetryPolicy() if self.retry is None else self.retry,
            fallbacks=(*self.fallbacks(), *_models_of(repair)),
            person=None if self.person is None else person(self.person),
            reply_format=_EQUATIONS if self.reply_format is None else self.reply_format,
            prompts=self.prompts,
            parallel=self.parallel,
            check_timeout=self.check_timeout,
            stop_early=self.stop_early,
            stopping="never",
            observe=self.observe,
            history=self.history,
            profile=self.profile,
            seed=new_seed() if self.seed is None else self.seed,
        )


def _models_of(repair: int | Repair) -> Iterator[Backend]:
    """The other models that a ladder asks; people are asked about steps, and not in the place of a model."""
    for rung in repair.rungs if isinstance(repair, Ladder) else ():
        if rung.backend is not None and rung.assistance == "model":
            yield rung.backend


def check_kept(run_id: object, *, kept: bool) -> None:
    """Refuse what cannot name a run, or would name one that is not kept.

    Raises:
        ConfigError: it is no name, or there is no ledger.
    """
    if run_id is None:
        return
    check_run_id(run_id)
    if not kept:
        raise ConfigError("run_id names a run in a ledger: Guard(..., ledger='runs.db')", option="run_id")


def new_seed() -> int:
    """A seed for one run, of the system's randomness: nothing that the program seeds has a hand in it."""
    return random.SystemRandom().getrandbits(_SEED_BITS)


def check_options(given: Iterable[str], *, of: str, allowed: type = DropInKeywords) -> None:
    """Refuse names that are no options of a guard; `of` is what was given them.

    Raises:
        ConfigError: one is unknown.
    """
    import difflib  # for this message alone

    known = allowed.__annotations__
    if unknown := sorted(set(given) - known.keys()):
        near = difflib.get_close_matches(unknown[0], known, 1)
        hint = f": write {near[0]}" if near else f": they are {', '.join(known)}"
        raise ConfigError(f"{unknown[0]!r} is no option of {of}{hint}", option=unknown[0])


def show_options(function: _Callable) -> _Callable:
    """Let `help` and notebooks show the options and defaults of a function that takes them as ``**options``."""
    shown = inspect.signature(function)
    options = [
        inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
        for field in fields(GuardOptions)
    ]
    own = [parameter for parameter in shown.parameters.values() if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    function.__signature__ = shown.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    return function
