"""Planted failures: what goes wrong, at which step, how often."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from stepguard.core.arguments import check_count, check_instance, check_text
from stepguard.core.verdicts import DEVIATION_KINDS, DeviationKind
from stepguard.errors import BackendError, ConfigError
from stepguard.procedure.steps import Step

SURPLUS: Final = ("extra_step", "premature_answer", "wrong_order")
"""What is said too much and never used: every step that was asked is answered all the same."""
_WHOLE_REPLY: Final = ("truncated", "empty", "refused")
"""What leaves nothing of a reply to read."""


@dataclass(frozen=True, slots=True)
class Plant:
    """A failure that is to happen at a step.

    Args:
        step: the id of the step.
        failure: a kind of deviation, which the reply then shows; or a `BackendError` such as
            ``RateLimited("slow down")``, which is raised instead of a reply.
        times: how many replies fail so: the first ones that ask the step and fail at no step before it.

    A reply that is ``truncated``, ``empty`` or ``refused`` fails as a whole, and the guard counts it against the first
    step that was asked. With ``extra_step``, ``premature_answer`` and ``wrong_order`` everything that was asked is
    there, and the guard records them and goes on.

    Raises:
        ConfigError: no reply can show this failure, or `times` is no number of 1 or more.
    """

    step: str
    failure: DeviationKind | BackendError
    times: int = 1

    def __post_init__(self) -> None:
        check_text(self.step, "step", what="the id of a step", filled=True)
        if self.failure == "undecided":
            raise ConfigError(
                "no reply is undecided, only a check is: give the step a check that raises", option="failure"
            )
        if not isinstance(self.failure, BackendError) and self.failure not in DEVIATION_KINDS:
            kinds = ", ".join(kind for kind in DEVIATION_KINDS if kind != "undecided")
            raise ConfigError(f"{self.failure!r} cannot be planted: use a BackendError or {kinds}", option="failure")
        check_count(self.times, "times")

    def __str__(self) -> str:
        return f"{self.failure if isinstance(self.failure, str) else repr(self.failure)} at {self.step!r}"


@dataclass(frozen=True, slots=True)
class Due:
    """A plant whose turn has come, and for the how many-th time."""

    plant: Plant
    time: int


class Plants:
    """The failures that are still to come; shared by the threads that ask a model."""

    def __init__(self, plants: Iterable[Plant]) -> None:
        self._plants: Final = tuple(plants)
        for each in self._plants:
            check_instance(each, Plant, "plants", name="a planted failure", what="a Plant")
        self._came: Final = [0] * len(self._plants)
        self._asked: Final[Counter[str]] = Counter()
        self._lock: Final = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._plants)

    def take(self, steps: Sequence[Step]) -> list[Due]:
        """What fails in the next reply, which these steps are asked of; the failures are counted as come.

        The failures of a step come in turn. Behind the first one that spoils the reply nothing would be looked at,
        so the failures of later steps wait until those are asked again.
        """
        with self._lock:
            self._asked.update(step.id for step in steps)
            due: list[int] = []
            for step in steps:
                for index, plant in enumerate(self._plants):
                    if plant.step == step.id and self._came[index] < plant.times:
                        due.append(index)
                        break
                else:
                    continue
                failure = self._plants[due[-1]].failure
                # Nothing of such a reply is read, so that nothing surplus in it would be seen.
                if isinstance(failure, BackendError) or failure in _WHOLE_REPLY:
                    due = due[-1:]
                if failure not in SURPLUS:
                    break
            for index in due:
                self._came[index] += 1
            return [Due(self._plants[index], self._came[index]) for index in due]

    def assert_planted(self) -> None:
        """Assert that every failure came to pass. Raises AssertionError: some did not; it names them."""
        with self._lock:
            left = [
                f"{plant} came {came} of {plant.times} times (the step was asked {self._asked[plant.step]} times)"
                for plant, came in zip(self._plants, self._came, strict=True)
                if came < plant.times
            ]
        assert not left, f"planted failures that never came to pass: {'; '.join(left)}"
