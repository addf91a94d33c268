"""The ladder: what is tried when a step is not accepted, rung by rung, until it is or nothing is left.

The whole policy stands on this page. It is a function of how the step has failed: what was wrong, in which way it was
asked, and what the run (or an earlier one) has learned about steps of its kind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from stepguard.errors import ConfigError
from stepguard.repair import Failures
from stepguard.rungs import Draft, Question, Resample, Rewrite, Rung, Split, Vote

__all__ = ["DEFAULT_RUNGS", "Ladder"]

DEFAULT_RUNGS: Final[tuple[Rung, ...]] = (
    Resample(),
    Question(),
    Rewrite(),
    Split(),
    Draft(),
    Question(temperature=0.8),
    Rewrite(temperature=0.8),
    Split(temperature=0.8, times=2),
)
"""Cheap rungs first, as far as they cure; each way of asking once more with some randomness before the end."""

_WHOLE: Final = Resample(alone=False)
_LONGER: Final = Rung("longer")


@dataclass(frozen=True, slots=True)
class Ladder:
    """Rungs in order. A plain number stands for so many resamples: ``Guard(..., repair=2)``.

    Args:
        rungs: what is tried, the first one first.
        same: a rung is left at once when the same wrong value has been claimed this often: what repeats is
            systematic, and asking the same way again only costs.
        few: a step is not asked again after a wrong value when fewer values than this are left that it can have:
            "wrong" would be the answer. Rungs on which somebody else answers are tried all the same.

    Raises:
        ConfigError: the rungs are no rungs, or a number is out of range.
    """

    rungs: tuple[Rung, ...] = DEFAULT_RUNGS
    same: int = 2
    few: int = 4

    def __init__(self, rungs: Iterable[Rung] = DEFAULT_RUNGS, *, same: int = 2, few: int = 4) -> None:
        held: tuple[object, ...] = tuple(rungs)
        for rung in held:
            if not isinstance(rung, Rung):
                raise ConfigError(f"a ladder has rungs such as Resample(), not {rung!r}", option="repair")
            if held.count(rung) > 1:
                raise ConfigError(f"{rung.name} stands twice in the ladder: give it times=2", option="repair")
        for name, value in (("same", same), ("few", few)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ConfigError(f"{name} is a whole number of 1 or more, not {value!r}", option="repair")
        object.__setattr__(self, "rungs", held)
        object.__setattr__(self, "same", same)
        object.__setattr__(self, "few", few)

    @classmethod
    def of(cls, retries: int) -> Ladder:
        """A ladder that only asks again, so many times."""
        if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
            raise ConfigError(f"the number of retries is 0 or more, not {retries!r}", option="repair")
        return cls([Resample(times=retries)] if retries else [], same=3)

    @property
    def vote(self) -> Vote | None:
        """The rung that decides where no check does, None where there is none."""
        return next((rung for rung in self.rungs if isinstance(rung, Vote)), None)

    def next(self, failures: Failures) -> Rung | None:
        """See `stepguard.repair.Repair.next`."""
        last = failures.kinds[-1]
        if failures.hopeless or not self.rungs:
            return None
        if last == "truncated":
            return _LONGER  # as it was, with a higher cap; the engine ends this
        if failures.unread and len(failures.kinds) == 1 and last != "refused":
            return _WHOLE  # nothing could be read: no step is to blame more than another
        if last == "undecided" and self.vote is not None:
            return self.vote if failures.rungs.count(self.vote) < self.vote.times else None
        blind = last == "refused" or failures.kinds.count("empty") > 1 or self._gives_away(failures)
        for rung in self._from(failures):
            if isinstance(rung, Vote) or (blind and not rung.independent):
                continue
            if failures.can(rung):
                return rung
        return None

    def _gives_away(self, failures: Failures) -> bool:
        if failures.choices is None or failures.kinds[-1] != "wrong_value":
            return False
        return failures.choices - len(set(failures.wrong)) < self.few

    def _from(self, failures: Failures) -> tuple[Rung, ...]:
        """The rungs that are left: the last one again while its bound allows, and all above it."""
        tried = [self.rungs[0] if rung is _WHOLE else rung for rung in failures.rungs]
        used = [at for at, rung in enumerate(self.rungs) if rung in tried]
        if not used:
            return tuple(rung for rung in self.rungs if rung.name not in failures.useless)
        at = used[-1]
        again = tried.count(self.rungs[at]) < self.rungs[at].times
        repeats = failures.wrong and failures.wrong.count(failures.wrong[-1]) >= self.same
        return self.rungs[at if again and not repeats else at + 1 :]
