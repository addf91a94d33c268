"""Families of claims about steps with a check: what a kind of right or wrong claim is, and how it is tried.

A family belongs to one check. It makes problems (a step with the check, what the step reads, and the truth about it),
and has kinds of claims: right ones in the ways in which models write them, wrong ones, and right ones that the
documentation says are refused. A claim comes with what it says, in the benchmark's own terms, and the family judges
that without the package: a right claim must be true there and a wrong one untrue, or it is not used.

Families register themselves in the modules ``check_*``; `certification.kinds` imports these.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from certification.right_replies import RIGHT_REPLIES
from certification.tallies import Tally
from stepguard import Guard, Procedure, Result, Step
from stepguard.backends import Completion, Request
from stepguard.checks import Check
from stepguard.errors import MissingExtraError
from stepguard.language.values import Value
from stepguard.procedure.inputs import Input
from stepguard.replies.formats import EquationFormat

__all__ = ["FAMILIES", "NOTHING", "Claimed", "Family", "Problem", "Said", "certify_checks", "try_claim", "try_family"]

NOTHING: Final = object()
"""What a text says that is no value of the kind that is asked for: it is never right."""

_TRIES: Final = 400


@dataclass(frozen=True, slots=True)
class Problem:
    """A step with checks, and the truth about it.

    Attributes:
        checks: the checks of the step, whose id is ``t``.
        truth: what the family judges claims with.
        reads: the values of the variables that the step reads, by name.
        types: their types, where these are not text.
        type: the type of the step.
    """

    checks: tuple[Check, ...]
    truth: Any
    reads: Mapping[str, Value] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    type: str = "text"


@dataclass(frozen=True, slots=True)
class Said:
    """A claim as text, what it says, and where it is about another problem than the one given, that one."""

    text: str
    value: object = NOTHING
    problem: Problem | None = None


Kind = Callable[[random.Random, Problem], Said | None]
"""A claim of a kind about a problem; None where this problem allows none."""


class Family:
    """The claims of one check.

    Args:
        name: the class of the check.
        make: makes a problem.
        true: whether something said is right of a problem, by the benchmark's own means.
        share: which part of the usual number of claims is made of each kind, for checks that take long.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[random.Random], Problem],
        true: Callable[[Problem, Any], bool],
        *,
        share: float = 4,
    ) -> None:
        assert name not in FAMILIES
        self.name = name
        self.make = make
        self._true = true
        self.share = share
        self.right: dict[str, Kind] = {}
        self.wrong: dict[str, Kind] = {}
        self.refused: dict[str, Kind] = {}
        FAMILIES[name] = self

    def true(self, problem: Problem, value: object) -> bool:
        """Whether something said is right."""
        return value is not NOTHING and self._true(problem, value)

    def put(self, where: str, name: str) -> Callable[[Kind], Kind]:
        """Register a kind of claims: ``"right"``, ``"wrong"`` or ``"refused"``."""

        def register(kind: Kind) -> Kind:
            held: dict[str, Kind] = getattr(self, where)
            assert name not in held
            held[name] = kind
            return kind

        return register


FAMILIES: dict[str, Family] = {}
"""The families by the class of their check."""


@dataclass(frozen=True, slots=True)
class _Parrot:
    completion: Completion

    def complete(self, request: Request) -> Completion:
        return self.completion


@dataclass(frozen=True, slots=True)
class Claimed:
    """What became of a claim."""

    accepted: bool
    undecided: bool
    reason: str


def try_claim(problem: Problem, text: str, chance: random.Random) -> Claimed:
    """Send a claim through a guard as the reply of a model."""
    reads = list(problem.reads)
    step = Step("t", instruction="As asked.", type=problem.type, reads=reads, checks=problem.checks)
    inputs = [Input(name, problem.types.get(name, "text")) for name in reads]
    procedure = Procedure([step], inputs=inputs, name="claim")
    work = chance.choice(["as asked", "I read the text.", "step by step"])
    wrap = RIGHT_REPLIES[chance.choice(list(RIGHT_REPLIES))]
    guard = Guard(
        _Parrot(wrap([("t", {"work": work, "value": text})], chance)), repair=0, reply_format=EquationFormat(), seed=0
    )
    return _became(guard.run(procedure, dict(problem.reads)))


def _became(result: Result) -> Claimed:
    if result.status in ("verified", "checked"):
        return Claimed(True, False, "")
    if result.steps:  # committed without a check that supports it: not what was asked, and not called verified
        return Claimed(False, False, "unverified")
    deviation = result.problem.deviation if result.problem is not None else None
    if deviation is None:
        return Claimed(False, False, str(result.status))
    return Claimed(False, deviation.kind == "undecided", f"{deviation.kind}: {deviation.reason}")


def try_family(family: Family, where: str, seed: int, each: int) -> dict[str, dict[str, Any]]:
    """What became of the claims of every kind: ``"right"``, ``"wrong"`` or ``"refused"``.

    Args:
        family: the claims.
        where: which kinds of them.
        seed: what the claims are drawn from.
        each: how many claims of all kinds together, at least; of every kind one at least.
    """
    kinds: Mapping[str, Kind] = getattr(family, where)
    number = max(-(-int(each * family.share) // max(len(kinds), 1)), 1)
    return {name: _try_kind(family, where, name, seed, number).to_dict() for name in kinds}


def _try_kind(family: Family, where: str, name: str, seed: int, number: int) -> Tally:
    chance = random.Random(f"{where}:{seed}:{family.name}:{name}")
    kind: Kind = getattr(family, where)[name]
    tally = Tally()
    for _ in range(number * _TRIES):
        if tally.n >= number:
            break
        problem = family.make(chance)
        said = kind(chance, problem)
        if said is None:
            continue
        problem = said.problem or problem
        true = family.true(problem, said.value)
        if true == (where == "wrong"):
            if where != "wrong":
                raise AssertionError(f"{family.name}, {name}: {said.text!r} is not right of {problem.checks}")
            continue
        found = try_claim(problem, said.text, chance)
        wanted = where == "right"
        bad = found.accepted != wanted and not (wanted and found.undecided)
        tally.add(bad, f"{problem.checks} {_shown(problem)}: {said.text!r:.300} ({found.reason})", found.undecided)
    return tally


def _shown(problem: Problem) -> str:
    return json.dumps({name: str(value)[:200] for name, value in problem.reads.items()}, ensure_ascii=False)


def certify_checks(seed: int, each: int) -> dict[str, Any]:
    """What became of the claims of all families, by check and kind."""
    found: dict[str, Any] = {"skipped": {}}
    made: list[Family] = []
    for family in FAMILIES.values():
        try:
            family.make(random.Random(0))
        except MissingExtraError as error:  # what needs an extra that is not installed cannot be tried
            found["skipped"][family.name] = str(error)
        else:
            made.append(family)
    for where, number in (("wrong", each), ("right", each), ("refused", each // 4)):
        rows = {family.name: try_family(family, where, seed, number) for family in made}
        counted = {name: _sum(kinds.values()) for name, kinds in rows.items() if kinds}
        found[where] = {"all": _sum(counted.values()), "checks": counted, "kinds": rows}
    return found


def _sum(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    held = list(rows)
    total = Tally(*(sum(each[what] for each in held) for what in ("n", "bad")))
    total.undecided = sum(each.get("undecided", 0) for each in held)
    return total.to_dict()
