"""A rung: one way of asking a step; `stepguard.repair.rungs` has those that there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from stepguard.backends.base import Backend
from stepguard.core.arguments import check_count, check_number, check_seconds
from stepguard.errors import ConfigError
from stepguard.language.values import Value
from stepguard.repair.rewriting import StandIn
from stepguard.results import Assistance

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

RungWording = Literal["steps", "question"]


@dataclass(frozen=True, slots=True)
class Rung:
    """One way of asking a step.

    Attributes:
        name: what records call it.
        temperature: sampling temperature of the call.
        alone: whether the step is asked by itself instead of leading a segment.
        times: how often it is used for one step at most, before the next rung.
        assistance: what a step that was had in this way was given; see `stepguard.results.Assistance`.
        wording: how it is asked: as a step of the procedure, or as a plain question.
        draft: whether the model works in free text first.
        backend: who is asked; None: the run's own model.
        timeout: seconds that a call of a backend of its own may take; None waits for as long as the budget allows.
        once: whether a call that fails is not repeated, whatever the guard's `RetryPolicy` says.
    """

    name: str
    temperature: float = 0.0
    alone: bool = False
    times: int = 1
    assistance: Assistance = "none"
    wording: RungWording = "steps"
    draft: bool = False
    backend: Backend | None = None
    timeout: float | None = None
    once: bool = False

    def __post_init__(self) -> None:
        check_number(self.temperature, "repair", high=2, name=f"{self.name}: temperature")
        check_count(self.times, "repair", name=f"{self.name}: times")
        check_seconds(self.timeout, "repair", name=f"{self.name}: timeout", positive=True, optional=True)
        if self.backend is not None and self.assistance not in ("model", "person"):
            raise ConfigError(
                f"{self.name}: where somebody else answers, assistance is 'model' or 'person'", option="repair"
            )

    @property
    def independent(self) -> bool:
        """Whether another model or a person answers, whom the replies so far do not concern."""
        return self.backend is not None or self.waits

    @property
    def waits(self) -> bool:
        """Whether the person whom the guard knows is asked, and the run waits where it knows none."""
        return self.assistance == "person" and self.backend is None

    @property
    def plain(self) -> bool:
        """Whether the run's own model is asked the step as it stands."""
        in_steps = self.wording == "steps" and not self.draft
        return in_steps and not self.independent and self.assistance == "none"

    def applies(self, step: Step, values: Mapping[str, Value]) -> bool:
        """Whether the step, with these values, can be asked in this way."""
        return self.assistance != "code" or step.expression is not None

    def stand_in(self, step: Step, values: Mapping[str, Value]) -> StandIn | None:
        """What is asked in the place of the step, None where it is asked itself."""
        return None


FIRST: Final = Rung("ask")
"""How a step is asked for the first time: as it stands, greedily."""
