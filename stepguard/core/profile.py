"""What runs have shown of a model: how often steps of each kind fail, what cures them, and what calls cost.

A `Profile` is a frozen sum of observations. Every result carries that of its own run; the caller may add them up,
keep them in a file and give them to a guard, which then does not have to find the same things out again::

    profile = Profile.load("model.json") + result.profile
    guard = Guard(backend, profile=profile)

Nothing is kept in the guard itself. A profile holds counts by kind of step (`stepguard.engine.step_kinds.step_kind`),
and neither values nor texts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from stepguard.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from stepguard.core.usage import Usage

_VERSION: Final = 1
_SELDOM: Final = 0.3  # what helps less often costs more than it mends
_MANY: Final = 10**15  # a file with more was not counted by anybody


@dataclass(frozen=True, slots=True)
class Tries:
    """How often something was tried, and how often it came out well."""

    made: int = 0
    well: int = 0

    def __add__(self, other: Tries) -> Tries:
        return Tries(self.made + other.made, self.well + other.well)


@dataclass(frozen=True, slots=True)
class Calls:
    """What model calls cost together.

    Attributes:
        calls: how many.
        steps: the steps that were asked in them.
        input_tokens: tokens of the prompts; of them `fixed_tokens` for what every prompt begins with.
        output_tokens: tokens of the replies.
        seconds: the time they took.
        fixed_tokens: see `input_tokens`; estimated by the share of characters.
    """

    calls: int = 0
    steps: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    fixed_tokens: float = 0.0

    def __add__(self, other: Calls) -> Calls:
        return Calls(
            self.calls + other.calls,
            self.steps + other.steps,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.seconds + other.seconds,
            self.fixed_tokens + other.fixed_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What was seen of a model; see the module.

    Attributes:
        kinds: by kind of step: how often it was asked as it stands, and how often it was accepted then.
        rungs: by kind and what was wrong (``"- double, wrong_value"``), then by the name of the rung: how often it was
            tried, and how often it cured.
        first: the calls that asked steps as they stand.
        again: the calls that asked steps again.
        hard: steps that were not accepted at first, and how many of them were in the end.
    """

    kinds: Mapping[str, Tries] = field(default_factory=dict)
    rungs: Mapping[str, Mapping[str, Tries]] = field(default_factory=dict)
    first: Calls = Calls()
    again: Calls = Calls()
    hard: Tries = Tries()

    def __post_init__(self) -> None:
        rungs = {kind: MappingProxyType(dict(names)) for kind, names in self.rungs.items()}
        object.__setattr__(self, "kinds", MappingProxyType(dict(self.kinds)))
        object.__setattr__(self, "rungs", MappingProxyType(rungs))

    def __reduce__(self) -> tuple[Any, ...]:
        return Profile.from_dict, (self.to_dict(),)  # a read-only mapping cannot be pickled

    def __add__(self, other: Profile) -> Profile:
        learner = Learner()
        learner.add(self)
        learner.add(other)
        return learner.profile()

    @property
    def asked(self) -> Tries:
        """Steps that were asked as they stand, and how many of them were accepted then."""
        return sum(self.kinds.values(), Tries())

    @property
    def tells(self) -> bool:
        """Whether it has seen enough to foretell anything: calls, and steps that were asked in them."""
        return bool(self.first.calls and self.first.steps and self.asked.made)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON data."""
        return {
            "version": _VERSION,
            "kinds": {kind: [tries.made, tries.well] for kind, tries in sorted(self.kinds.items())},
            "rungs": {
                kind: {name: [tries.made, tries.well] for name, tries in sorted(names.items())}
                for kind, names in sorted(self.rungs.items())
            },
            "first": asdict(self.first),
            "again": asdict(self.again),
            "hard": [self.hard.made, self.hard.well],
        }

    @classmethod
    def from_dict(cls, data: object) -> Profile:
        """A profile from what `to_dict` gave.

        Raises ConfigError: it is something else.
        """
        try:
            assert isinstance(data, dict)
            if data.get("version") != _VERSION:
                raise ConfigError(f"a profile of version {_VERSION} is wanted, not {data.get('version')!r}")
            return cls(
                kinds={kind: _tries(pair) for kind, pair in data["kinds"].items()},
                rungs={
                    kind: {name: _tries(pair) for name, pair in names.items()} for kind, names in data["rungs"].items()
                },
                first=_calls(data["first"]),
                again=_calls(data["again"]),
                hard=_tries(data["hard"]),
            )
        except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"this is no profile: {type(error).__name__}: {error}") from None

    @classmethod
    def load(cls, path: str | Path) -> Profile:
        """Read a profile that `save` wrote.

        Raises:
            ConfigError: the file holds no profile.
            OSError: the file cannot be read.
        """
        from pathlib import Path

        try:
            data: object = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ConfigError(f"{path} is no profile: {error}") from None
        return cls.from_dict(data)

    def save(self, path: str | Path) -> None:
        """Write it as JSON: whole, or not at all."""
        import os
        from pathlib import Path

        # Renamed once it is complete: a kill leaves the old file. By process: two may save to one path.
        written = Path(f"{path}.{os.getpid()}.new")
        written.write_text(json.dumps(self.to_dict(), indent=1) + "\n", encoding="utf-8")
        written.replace(path)


def _tries(pair: Any) -> Tries:
    made, well = pair
    if type(made) is not int or type(well) is not int or not 0 <= well <= made <= _MANY:
        raise ValueError(f"{pair!r} is no pair of counts")
    return Tries(made, well)


def _calls(given: Any) -> Calls:
    for name, value in given.items():
        kinds = (int, float) if name in ("seconds", "fixed_tokens") else (int,)
        if type(value) not in kinds or not 0 <= value <= _MANY:
            raise ValueError(f"{name} is {value!r:.60}")
    return Calls(**given)


class Learner:
    """Adds up what a run shows.

    Args:
        known: a profile from before, which counts for `useless` beside what the run shows itself.
    """

    def __init__(self, known: Profile | None = None) -> None:
        self._known = known
        self._kinds: dict[str, Tries] = {}
        self._rungs: dict[str, dict[str, Tries]] = {}
        self._first = self._again = Calls()
        self._hard = Tries()

    def add(self, other: Profile) -> None:
        """Add what another profile holds."""
        for kind, tries in other.kinds.items():
            self._kinds[kind] = self._kinds.get(kind, Tries()) + tries
        for kind, names in other.rungs.items():
            for name, tries in names.items():
                self._count(kind, name, tries)
        self._first += other.first
        self._again += other.again
        self._hard += other.hard

    def asked(self, kind: str, *, well: bool) -> None:
        """Count a step that was asked as it stands."""
        tries = self._kinds.get(kind) or Tries()
        self._kinds[kind] = Tries(tries.made + 1, tries.well + int(well))

    def tried(self, kind: str, rung: str, *, well: bool) -> None:
        """Count a use of a rung on a step."""
        self._count(kind, rung, Tries(1, int(well)))

    def settled(self, *, well: bool) -> None:
        """Count a step that was not accepted at first: it was in the end, or was given up."""
        self._hard += Tries(1, int(well))

    def called(self, usage: Usage, *, steps: int, seconds: float, fixed: float, again: bool) -> None:
        """Count a call that was answered; `fixed` is the share of its prompt that every prompt begins with."""
        made = Calls(
            usage.calls, steps, usage.input_tokens, usage.output_tokens, seconds, round(fixed * usage.input_tokens, 1)
        )
        if again:
            self._again += made
        else:
            self._first += made

    def useless(self, kind: str) -> frozenset[str]:
        """The names of the rungs that seldom cured such steps: in less than 3 of 10 tries, as far as is known.

        The rate is smoothed, (cured + 1/2) / (tried + 1): one try that failed is enough to go on to the next rung.
        """
        known = {} if self._known is None else self._known.rungs.get(kind, {})
        tried = self._rungs.get(kind, {})
        counts = {name: known.get(name, Tries()) + tried.get(name, Tries()) for name in {*known, *tried}}
        return frozenset(name for name, tries in counts.items() if (tries.well + 0.5) / (tries.made + 1) < _SELDOM)

    def _count(self, kind: str, rung: str, tries: Tries) -> None:
        names = self._rungs.setdefault(kind, {})
        names[rung] = names.get(rung, Tries()) + tries

    @property
    def refused_share(self) -> float:
        """Of the steps that were asked as they stand, here and before, the share that was not accepted."""
        tries = sum(self._kinds.values(), Tries() if self._known is None else self._known.asked)
        return 1 - tries.well / tries.made if tries.made else 0.0

    def profile(self) -> Profile:
        """All that was seen."""
        return Profile(kinds=self._kinds, rungs=self._rungs, first=self._first, again=self._again, hard=self._hard)
