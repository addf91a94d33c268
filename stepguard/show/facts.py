"""What became of each statement in a run: read from a `Result`, or from the JSON that one was written to.

Every statement of a procedure has a site (`stepguard.results.Occurrence.site`), also inside of the procedures that it
calls. What the rounds of a loop did at one site is added up, and a few of them are kept as examples, so that a run of
any length makes facts of the size of its procedure.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from stepguard.core.verdicts import STRENGTHS, Deviation, shorten
from stepguard.errors import ConfigError
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.statements import Statement, assigned, part_at
from stepguard.procedure.steps import Step
from stepguard.results import COMPLETED, Result
from stepguard.results.view import AttemptView, ProblemView, ResultView, StepView

_EXAMPLES: Final = 8
"""So many occurrences of a step are shown for themselves, and so many more that were not accepted at once."""
_MOST_SHOWN: Final = 3
_REASONS: Final = 3
_APPROVAL: Final = ".approval"
GOING_ON: Final = ("queued", "waiting", "answered", "running", "interrupted")
"""How a run stands that has not ended."""


@dataclass(slots=True)
class SiteFacts:
    """What became of one statement, in all rounds.

    Attributes:
        count: how often it was completed.
        supports: how often with which support.
        retried: how often it took more than one try.
        kinds: why replies were not accepted.
        examples: the first completions.
        notable: of the others the first that took more than one try, or have another support than those before.
    """

    count: int = 0
    supports: Counter[str] = field(default_factory=Counter)
    retried: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    examples: list[StepView] = field(default_factory=list)
    notable: list[StepView] = field(default_factory=list)

    def add(self, view: StepView) -> None:
        """Take in one more completion."""
        self.count += 1
        self.supports[view.support] += 1
        self.retried += view.tries > 1
        self.kinds.update(deviation.kind for deviation in view.deviations)
        if len(self.examples) < _EXAMPLES:
            self.examples.append(view)
        elif (_retried(view) or self.supports[view.support] == 1) and len(self.notable) < _EXAMPLES:
            self.notable.append(view)

    def merge(self, other: SiteFacts) -> None:
        """Add the counts of another statement."""
        self.count += other.count
        self.supports.update(other.supports)
        self.retried += other.retried
        self.kinds.update(other.kinds)

    @property
    def unlike(self) -> list[StepView]:
        """Those that are shown beside the first few: more than one try, or not the support that most have."""
        most = self.supports.most_common(1)[0][0]
        return [
            view for view in (*self.examples[_MOST_SHOWN:], *self.notable) if _retried(view) or view.support != most
        ]

    @property
    def weakest(self) -> str:
        """The weakest support."""
        return min(self.supports, key=STRENGTHS.index, default="unverified")


@dataclass(slots=True, kw_only=True)
class RunFacts:
    """A run as it is drawn on its procedure.

    Attributes:
        status: how it ended, or where it stands.
        answer: the answer as text, None where there is none.
        inputs: the inputs of the run as text, as far as it holds them.
        sites: what became of each statement, by site.
        ways: how often each branch and loop was entered, by site.
        stop: the site at which it stopped; None where it did not, or at no statement.
        place: the path of that.
        reason: why it stopped.
        refused: why replies about that step were not accepted.
        refusals: how many such replies there were.
        completed: how many steps were completed.
        kept: how many of them the result holds.
        cost: calls, tokens, money and seconds, in words.
        notes: what else there is to know.
    """

    status: str
    answer: str | None
    inputs: dict[str, str]
    sites: dict[str, SiteFacts]
    ways: dict[str, int]
    stop: str | None
    place: str | None
    reason: str | None
    refused: tuple[Deviation, ...]
    refusals: int
    completed: int
    kept: int
    cost: str
    notes: tuple[str, ...]

    @property
    def ended(self) -> bool:
        """Whether it came to the end of the procedure."""
        return self.status in COMPLETED

    @property
    def kind(self) -> str:
        """How it is shown: ``good``, ``weak`` or ``bad``."""
        return "good" if self.status == "verified" else "weak" if self.ended or self.status in GOING_ON else "bad"

    @property
    def whole(self) -> bool:
        """Whether the result holds every completed step."""
        return self.kept == self.completed


def read_run(procedure: Procedure, run: Result | Mapping[str, Any], standing: str | None = None) -> RunFacts:
    """The facts of a run of a procedure.

    Args:
        procedure: what was run.
        run: the result, or what `Result.to_dict` gave.
        standing: where it stands, if the result is only what is known of it so far.

    Raises:
        ConfigError: it is no result, or one of another procedure.
    """
    try:
        view = ResultView.model_validate(run)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise _no_result(f"{shorten('.'.join(map(str, first['loc'])), 80) or 'all of it'}: {first['msg']}") from None
    except RecursionError:
        raise _no_result("it is nested too deeply") from None
    if view.procedure != procedure.name:
        raise ConfigError(
            f"the result is one of {shorten(view.procedure, 60)!r}, and this procedure is {procedure.name!r}",
            option="run",
        )
    sites: dict[str, SiteFacts] = {}
    statements = _Statements(procedure)
    for record in view.steps:
        sites.setdefault(statements.check(record), SiteFacts()).add(record)
    refused = [] if view.problem is None else _refused(view.problem.step, view.attempts)
    return RunFacts(
        status=standing or view.status,
        answer=None if view.answer is None else shown_value(view.answer, 300),
        inputs={name: shown_value(view.values[name]) for name in _unchanged(procedure) if name in view.values},
        sites=sites,
        ways=view.ways,
        stop=statements.stop(view.problem),
        place=None if view.problem is None else view.problem.path,
        reason=None if view.problem is None else shorten(view.problem.reason, 400),
        refused=tuple(each for deviations in refused for each in deviations)[-_REASONS:],
        refusals=len(refused),
        completed=view.completed,
        kept=len(view.steps),
        cost=_cost(view),
        notes=tuple(view.notes),
    )


def _unchanged(procedure: Procedure) -> list[str]:
    """The inputs that no loop gives another value."""
    changed = frozenset() if procedure.straight else frozenset(assigned(procedure.body))
    return [each.name for each in procedure.inputs if each.name not in changed]


def shown_value(value: object, longest: int = 80) -> str:
    """A value of JSON as text of a bounded length."""
    if isinstance(value, str):
        return shorten(value, longest)
    return shorten(json.dumps(value, ensure_ascii=False), longest)


class _Statements:
    """The statements of a procedure by their sites."""

    def __init__(self, procedure: Procedure) -> None:
        self._procedure = procedure
        self._known: dict[str, Statement | Sequence[Statement] | None] = {}

    def check(self, record: StepView) -> str:
        """The site of a step of the run; refuses what is not in this procedure."""
        index, step, path, site = record.index, record.step, record.path, record.site
        if not site:
            there = index < len(self._procedure) and self._procedure.straight
            if not there or self._procedure.steps[index].id != step:
                raise self._foreign(path)
            return str(index)
        statement = self.find(site.removesuffix(_APPROVAL))
        last = path.rpartition(".")[2]
        named = f"approve_{statement.id}" if isinstance(statement, Step) and site.endswith(_APPROVAL) else None
        if not isinstance(statement, Step) or last not in (statement.id, named):
            raise self._foreign(path)
        return site

    def find(self, site: str) -> Statement | Sequence[Statement] | None:
        """The statement at a site, or the block of a branch; None where there is none."""
        if site not in self._known:
            self._known[site] = part_at(self._procedure.body, site)
        return self._known[site]

    def stop(self, problem: ProblemView | None) -> str | None:
        """The site at which a run stopped, where the procedure has it."""
        if problem is None:
            return None
        site = problem.site or (str(problem.index) if self._procedure.straight else "")
        return site if self.find(site.removesuffix(_APPROVAL)) is not None else None

    def _foreign(self, path: str) -> ConfigError:
        return ConfigError(
            f"the result has the step {shorten(path, 60)!r}, which {self._procedure.name} does not have there: it is "
            "of another version of the procedure",
            option="run",
        )


def _refused(step: str, attempts: Sequence[AttemptView]) -> list[list[Deviation]]:
    """Why each of the replies about the step at which a run stopped was not accepted."""
    return [
        [deviation for deviation in attempt.deviations if deviation.step in (step, None)]
        for attempt in attempts
        if _stops_at(attempt, step)
    ]


def _stops_at(attempt: AttemptView, step: str) -> bool:
    named = {deviation.step for deviation in attempt.deviations} - {None}
    return step in named if named else attempt.steps[attempt.committed : attempt.committed + 1] == [step]


def _retried(view: StepView) -> bool:
    """Whether a reply about a step was not accepted."""
    return view.tries > 1 or bool(view.deviations)


def in_words(deviations: Iterable[Deviation]) -> list[str]:
    """Why replies were not accepted: kind and reason of each."""
    return [f"{deviation.kind}: {shorten(deviation.reason, 300)}" for deviation in deviations]


def _cost(view: ResultView) -> str:
    calls, tokens = view.usage.calls, view.usage.input_tokens + view.usage.output_tokens
    parts = [f"{calls:,} model call{'' if calls == 1 else 's'}", f"{tokens:,} tokens"]
    if view.cost is not None:
        parts.append(f"cost {shorten(view.cost, 20)}")
    return ", ".join([*parts, f"{view.seconds:.1f} s"])


def _no_result(why: str) -> ConfigError:
    return ConfigError(f"this is no result as `stepguard run --json` prints it: {why}", option="run")
