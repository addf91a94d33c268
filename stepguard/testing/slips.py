"""How often a simulated model slips, and what that depends on."""

from __future__ import annotations

import random
from dataclasses import dataclass, fields
from typing import Final, Self

from stepguard.core.arguments import check_number
from stepguard.engine.step_kinds import OPERATIONS, SIGNS, SIZES, Rates
from stepguard.errors import ConfigError

WAYS: Final = ("stopping", "missing_step", "extra_step", "premature_answer", "self_correction")
"""How a reply in free text can fail as a whole: it stops early and gives the value that it has come to; it leaves a
step out; it goes on with the result of a step that it made up; it guesses the answer before the steps are done; it
takes a right answer back."""

_ORIGINS: Final = ("given", "structured", "free")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slips:
    """How often a simulated model slips, as probabilities.

    The first group is per step, the second per reply. `systematic` is the share of value slips that repeat whenever
    the same step is asked in the same way, as a model's own weaknesses do; the others are drawn anew for each call.

    The defaults are round figures in the range that small open models were seen to show on integer arithmetic; they
    describe no particular model. `ModelSlips` can, and `stepguard.testing.profiles` has some.
    """

    wrong_value: float = 0.03
    wrong_operand: float = 0.01
    unfaithful_work: float = 0.0
    self_correction: float = 0.002
    missing_step: float = 0.002
    systematic: float = 0.2

    extra_step: float = 0.005
    duplicate_step: float = 0.0
    wrong_order: float = 0.0
    premature_answer: float = 0.002
    malformed: float = 0.005
    truncated: float = 0.002
    empty: float = 0.0
    refused: float = 0.0

    def __post_init__(self) -> None:
        for name in _rates():
            check_number(getattr(self, name), name, high=1, what="a probability")

    @classmethod
    def none(cls) -> Self:
        """A model that never slips."""
        return cls(**dict.fromkeys(_rates(), 0.0))

    @classmethod
    def all(cls, rate: float, *, systematic: float = 0.2) -> Self:
        """A model that slips in every known way, at one rate."""
        return cls(**{**dict.fromkeys(_rates(), rate), "systematic": systematic})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSlips(Slips):
    """The slips of a particular model: rates, and what they depend on. The defaults change nothing.

    Args:
        by_kind: how often the value of a step is wrong, by its kind
            (`stepguard.engine.step_kinds`); in place of `wrong_value` wherever an entry holds.
        by_origin: how often a step reads a wrong value, by where the right ones stand: ``given`` in the request, all
            of them; else in the reply itself, a ``structured`` one or a ``free`` text. In place of `wrong_operand`
            wherever an entry holds.
        self_conditioning: how much more often the value of a step is wrong for each unit of the share of wrong values
            among those that stand before it in the same reply: with 0.6, behind 5 wrong values of 10, by 0.3.
        stopping: how often a reply ends before a step, for each step.
        failing: the share of replies in free text that fail as a whole, however few steps there are.
        failing_ways: how those fail: weights of the ways in `WAYS`; all alike where none are given.

    Raises:
        ConfigError: a rate is no probability, a kind or a way does not exist or is given twice, or a weight or
            `self_conditioning` is negative.
    """

    by_kind: Rates = ()
    by_origin: Rates = ()
    self_conditioning: float = 0.0
    stopping: float = 0.0
    failing: float = 0.0
    failing_ways: Rates = ()

    def __post_init__(self) -> None:
        Slips.__post_init__(self)
        for name in ("by_kind", "by_origin", "failing_ways"):
            _check_pairs(getattr(self, name), name)
        for kind, rate in self.by_kind:
            if not _is_kind(kind):
                raise ConfigError(
                    f"by_kind: no kind of step is called {kind!r}; the words are one of {' '.join(OPERATIONS)}, "
                    f"then one of {' '.join(SIGNS)}, then one of {' '.join(SIZES)}, the last two if wanted",
                    option="by_kind",
                )
            check_number(rate, "by_kind", high=1, what="a probability", name=f"by_kind for {kind!r}")
        for origin, rate in self.by_origin:
            if origin not in _ORIGINS:
                named = ", ".join(_ORIGINS)
                raise ConfigError(f"by_origin: operands stand in one of {named}, not {origin!r}", option="by_origin")
            check_number(rate, "by_origin", high=1, what="a probability", name=f"by_origin for {origin!r}")
        for way, weight in self.failing_ways:
            if way not in WAYS:
                named = ", ".join(WAYS)
                raise ConfigError(f"failing_ways: no way is called {way!r}; use {named}", option="failing_ways")
            check_number(weight, "failing_ways")
        if self.failing_ways and not any(weight for _, weight in self.failing_ways):
            raise ConfigError("failing_ways: at least one weight is above 0", option="failing_ways")
        check_number(self.self_conditioning, "self_conditioning")
        check_number(self.stopping, "stopping", high=1, what="a probability")
        check_number(self.failing, "failing", high=1, what="a probability")


def _rates() -> list[str]:
    return [each.name for each in fields(Slips)]


def _check_pairs(given: object, option: str) -> None:
    pairs = given if isinstance(given, tuple) else (None,)
    if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in pairs):
        raise ConfigError(f'{option} is a tuple of pairs such as ("...", 0.1), not {given!r:.60}', option=option)
    names = [pair[0] for pair in pairs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ConfigError(f"{option} gives {twice[0]!r} twice: keep one", option=option)


def _is_kind(text: object) -> bool:
    words = text.split(" ") if isinstance(text, str) else []
    known = (OPERATIONS, SIGNS, SIZES)
    return 1 <= len(words) <= 3 and all(word in known[at] for at, word in enumerate(words))


@dataclass(frozen=True, slots=True)
class Failure:
    """How one reply fails: the way (see `stepguard.testing.slips.WAYS`), and the 0-based place of the step."""

    way: str
    place: int

    def ends_before(self, place: int) -> bool:
        """Whether the steps end before this one."""
        return self.way in ("stopping", "premature_answer") and place >= self.place

    def leaves_out(self, place: int) -> bool:
        """Whether this step is skipped."""
        return self.way == "missing_step" and place == self.place

    def makes_up_after(self, place: int) -> bool:
        """Whether the result of this step gives way to that of a step that is made up."""
        return self.way == "extra_step" and place == self.place


def draw_failure(slips: ModelSlips, steps: int, chance: random.Random) -> Failure | None:
    """Whether and how a reply in free text fails as a whole."""
    if not steps or not slips.failing or chance.random() >= slips.failing:
        return None
    ways, weights = zip(*(slips.failing_ways or [(way, 1.0) for way in WAYS]), strict=True)
    (way,) = chance.choices(ways, weights)
    # Whoever stops early has begun, where there is more than one step to begin with.
    first = min(1, steps - 1) if way == "stopping" else 0
    return Failure(way, chance.randrange(first, steps))
