"""What became of each statement in a run: read from a `Result`, or from the JSON that one was written to.

Every statement of a procedure has a site (`stepguard.results.Occurrence.site`), also inside of the procedures that it
calls. What the rounds of a loop did at one site is added up, and a few of them are kept as examples, so that a run of
any length makes facts of the size of its procedure.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from stepguard.core.verdicts import STRENGTHS, shorten
from stepguard.errors import ConfigError
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.statements import Statement, assigned, part_of
from stepguard.procedure.steps import Step
from stepguard.results import Result

__all__ = ["CompletedStep", "RunFacts", "SiteFacts", "read_run"]

_EXAMPLES: Final = 8
"""So many occurrences of a step are shown for themselves, and so many more that were not accepted at once."""
_SHOWN: Final = 3
_REASONS: Final = 3
_APPROVAL: Final = ".approval"
_COMPLETED: Final = ("verified", "checked", "unverified")
_STATUSES: Final = (*_COMPLETED, "abstained", "exhausted", "failed")


@dataclass(frozen=True, slots=True)
class CompletedStep:
    """One completed step, as it is shown.

    Attributes:
        place: its path.
        value: its value as text.
        strength: what stands behind the value itself.
        support: what stands behind it and all that it rests on.
        tries: how often it was tried.
        assistance: what the guard did beyond asking plainly.
        deviations: why earlier replies were not accepted: kind and reason.
    """

    place: str
    value: str
    strength: str
    support: str
    tries: int
    assistance: str
    deviations: tuple[tuple[str, str], ...]

    @property
    def retried(self) -> bool:
        """Whether a reply about it was not accepted."""
        return self.tries > 1 or bool(self.deviations)


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
    examples: list[CompletedStep] = field(default_factory=list)
    notable: list[CompletedStep] = field(default_factory=list)

    def add(self, done: CompletedStep) -> None:
        """Take in one more completion."""
        self.count += 1
        self.supports[done.support] += 1
        self.retried += done.tries > 1
        self.kinds.update(kind for kind, _ in done.deviations)
        if len(self.examples) < _EXAMPLES:
            self.examples.append(done)
        elif (done.retried or self.supports[done.support] == 1) and len(self.notable) < _EXAMPLES:
            self.notable.append(done)

    def merge(self, other: SiteFacts) -> None:
        """Add the counts of another statement."""
        self.count += other.count
        self.supports.update(other.supports)
        self.retried += other.retried
        self.kinds.update(other.kinds)

    @property
    def unlike(self) -> list[CompletedStep]:
        """Those that are shown beside the first few: more than one try, or not the support that most have."""
        most = self.supports.most_common(1)[0][0]
        return [done for done in (*self.examples[_SHOWN:], *self.notable) if done.retried or done.support != most]

    @property
    def weakest(self) -> str:
        """The weakest support."""
        return min(self.supports, key=STRENGTHS.index, default="unverified")


@dataclass(slots=True, kw_only=True)
class RunFacts:
    """A run as it is drawn on its procedure.

    Attributes:
        status: how it ended.
        answer: the answer as text, None where there is none.
        inputs: the inputs of the run as text, as far as it holds them.
        sites: what became of each statement, by site.
        ways: how often each branch and loop was entered, by site.
        stop: the site at which it stopped; None where it did not, or at no statement.
        place: the path of that.
        reason: why it stopped.
        refused: why replies about that step were not accepted: kind and reason.
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
    refused: tuple[tuple[str, str], ...]
    refusals: int
    completed: int
    kept: int
    cost: str
    notes: tuple[str, ...]

    @property
    def ended(self) -> bool:
        """Whether it came to the end of the procedure."""
        return self.status in _COMPLETED

    @property
    def whole(self) -> bool:
        """Whether the result holds every completed step."""
        return self.kept == self.completed


def read_run(procedure: Procedure, run: Result | Mapping[str, Any]) -> RunFacts:
    """The facts of a run of a procedure.

    Args:
        procedure: what was run.
        run: the result, or what `Result.to_dict` gave.

    Raises:
        ConfigError: it is no result, or one of another procedure.
    """
    data = run.to_dict() if isinstance(run, Result) else run
    if not isinstance(data, Mapping):
        raise _no_result(f"it is a {type(data).__name__}, not an object")
    status = _get(data, "status", str)
    if status not in _STATUSES:
        raise _no_result(f"{shorten(status, 40)!r} is no status of a run")
    name = _get(data, "procedure", str)
    if name != procedure.name:
        raise ConfigError(
            f"the result is one of {shorten(name, 60)!r}, and this procedure is {procedure.name!r}", option="run"
        )
    sites: dict[str, SiteFacts] = {}
    statements = _Statements(procedure)
    records = _get(data, "steps", list)
    for record in records:
        site = statements.check(record)
        sites.setdefault(site, SiteFacts()).add(_completion(record))
    ways = _get(data, "ways", Mapping)
    for site, count in ways.items():
        if type(count) is not int or not isinstance(site, str):
            raise _no_result("'ways' holds no counts")
    stop, place, reason, refused, refusals = _stopped(data, statements)
    answer, values = data.get("answer"), _get(data, "values", Mapping)
    return RunFacts(
        status=status,
        answer=None if answer is None else shown_value(answer, 300),
        inputs={name: shown_value(values[name]) for name in _unchanged(procedure) if name in values},
        sites=sites,
        ways=dict(ways),
        stop=stop,
        place=place,
        reason=reason,
        refused=refused,
        refusals=refusals,
        completed=_get(data, "completed", int),
        kept=len(records),
        cost=_cost(data),
        notes=tuple(str(note) for note in _get(data, "notes", list)),
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

    def check(self, record: object) -> str:
        """The site of a step of the run; refuses what is not in this procedure."""
        if not isinstance(record, Mapping):
            raise _no_result("a step of it is no object")
        index, step, path = _get(record, "index", int), _get(record, "step", str), _get(record, "path", str)
        site: str = _get(record, "site", str)
        if not site:
            there = 0 <= index < len(self._procedure) and self._procedure.straight
            if not there or self._procedure.steps[index].id != step:
                raise self._foreign(path)
            return str(index)
        found = self.find(site.removesuffix(_APPROVAL))
        last: str = path.rpartition(".")[2]
        named = f"approve_{found.id}" if isinstance(found, Step) and site.endswith(_APPROVAL) else None
        if not isinstance(found, Step) or last not in (found.id, named):
            raise self._foreign(path)
        return site

    def find(self, site: str) -> Statement | Sequence[Statement] | None:
        """The statement at a site, or the block of a branch; None where there is none."""
        if site not in self._known:
            block, _, last = site.rpartition(".")
            inside = self.find(block) if block else self._procedure.body
            known = last.isdecimal() and inside is not None
            self._known[site] = part_of(inside, int(last)) if known and inside is not None else None
        return self._known[site]

    def _foreign(self, path: str) -> ConfigError:
        return ConfigError(
            f"the result has the step {shorten(path, 60)!r}, which {self._procedure.name} does not have there: it is "
            "of another version of the procedure",
            option="run",
        )


def _stopped(
    data: Mapping[str, Any], statements: _Statements
) -> tuple[str | None, str | None, str | None, tuple[tuple[str, str], ...], int]:
    problem = data.get("problem")
    if problem is None:
        return None, None, None, (), 0
    if not isinstance(problem, Mapping):
        raise _no_result("its problem is no object")
    step, site = _get(problem, "step", str), _get(problem, "site", str)
    if not site and statements._procedure.straight:
        site = str(_get(problem, "index", int))
    place, reason = _get(problem, "path", str), shorten(_get(problem, "reason", str), 400)
    refused: list[tuple[str, str]] = []
    count = 0
    for attempt in _get(data, "attempts", list):
        asked, done = _get(attempt, "steps", list), _get(attempt, "committed", int)
        if asked[done : done + 1] == [step]:
            count += 1
            refused += _deviations(attempt)
    return site or None, place, reason, tuple(refused[-_REASONS:]), count


def _completion(record: Mapping[str, Any]) -> CompletedStep:
    support, strength = _get(record, "support", str), _get(record, "strength", str)
    if support not in STRENGTHS or strength not in STRENGTHS:
        raise _no_result(f"{shorten(support, 40)!r} is no strength")
    return CompletedStep(
        place=_get(record, "path", str),
        value=shown_value(record.get("value")),
        strength=strength,
        support=support,
        tries=_get(record, "tries", int),
        assistance=_get(record, "assistance", str),
        deviations=_deviations(record),
    )


def _deviations(of: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (shorten(str(each.get("kind")), 40), shorten(str(each.get("reason") or ""), 300))
        for each in _get(of, "deviations", list)
        if isinstance(each, Mapping)
    )


def _cost(data: Mapping[str, Any]) -> str:
    usage = _get(data, "usage", Mapping)
    calls, tokens = _get(usage, "calls", int), _get(usage, "input_tokens", int) + _get(usage, "output_tokens", int)
    parts = [f"{calls:,} model call{'' if calls == 1 else 's'}", f"{tokens:,} tokens"]
    if data.get("cost") is not None:
        parts.append(f"cost {shorten(str(data['cost']), 20)}")
    seconds = data.get("seconds")
    if isinstance(seconds, int | float):
        parts.append(f"{seconds:.1f} s")
    return ", ".join(parts)


def _get(data: object, key: str, kind: type) -> Any:
    value = data.get(key) if isinstance(data, Mapping) else None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _no_result(f"{key!r} is {'not in it' if value is None else 'no ' + kind.__name__}")
    return value


def _no_result(why: str) -> ConfigError:
    return ConfigError(f"this is no result as `stepguard run --json` prints it: {why}", option="run")
