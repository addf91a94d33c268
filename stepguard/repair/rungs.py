"""Rungs: the ways of asking a step again, each a small object with its own bound.

A rung says how one call asks a step that was not accepted, always in a clean context. It never sees what a checker
knows: what is asked follows from the step and the verified values it reads. `stepguard.repair.ladder` puts rungs in
order.
================  =============================================================  =============
rung              asks                                                           assistance
================  =============================================================  =============
`Resample`        the step by itself, with some randomness                       none
`Isolate`         the step by itself, greedily                                   none
`Question`        a plain question in words, with the operands                   rephrased
`Draft`           for working in free text first, and then for the reply         rephrased
`Rewrite`         the same without double signs, the larger number first         rewritten
`Split`           smaller steps, each checked                                    split
`Reorder`         the options in the other order                                 rephrased
`Passage`         the passage that decides first, then the step from it alone    split
`Fields`          the fields of a record, each a step                            split
`Parts`           a list from a long document, part by part                      split
`Eliminate`       whether each option applies, one call each                     split
`Vote`            several times, where no check decides                          none
`another_model`   another model                                                  model
`person`          a person                                                       person
`Code`            nobody: the expression is evaluated                            code
================  =============================================================  =============
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stepguard.backends.making import as_backend
from stepguard.backends.person import AskPerson, as_person
from stepguard.core.arguments import check_count
from stepguard.language.expressions import Name
from stepguard.language.values import Value
from stepguard.repair.rung import FIRST, Rung, RungWording
from stepguard.repair.stand_ins import Eliminate, Fields, Parts, Passage, Reorder, Rewrite, Split
from stepguard.results import Assistance

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step

__all__ = [
    "FIRST",
    "Code",
    "Draft",
    "Eliminate",
    "Fields",
    "Isolate",
    "Parts",
    "Passage",
    "Question",
    "Reorder",
    "Resample",
    "Rewrite",
    "Rung",
    "RungWording",
    "Split",
    "Vote",
    "another_model",
    "person",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resample(Rung):
    """The step by itself, with some randomness. Cures slips that are drawn anew; what is systematic stays.

    With ``alone=False`` it leads what is left of its segment: as good a cure, for a call less, on simulated models and
    on 15 steps of a real one. The ladder asks so where the step reads a document, which would be sent twice.
    """

    name: str = "resample"
    temperature: float = 0.8
    alone: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolate(Rung):
    """The step by itself, greedily. Cures operands that were looked up wrongly in a long reply.

    Once is enough, whatever `times` says: the same question would bring the same reply.
    """

    name: str = "isolate"
    alone: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Rung):
    """A plain question in words: "Subtract -106 from -96."."""

    name: str = "question"
    alone: bool = True
    assistance: Assistance = "rephrased"
    wording: RungWording = "question"

    def applies(self, step: Step, values: Mapping[str, Value]) -> bool:
        """See `Rung.applies`: a copy is no question."""
        return not isinstance(step.expression, Name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft(Rung):
    """Worked in free text first, without any form; then the reply is asked with that text. Two calls."""

    name: str = "draft"
    alone: bool = True
    assistance: Assistance = "rephrased"
    draft: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote(Rung):
    """For steps that no check decides: asked until one value is `ahead` of every other.

    What a vote decides is completed, and not verified: the model may be wrong the same way every time.

    Args:
        ahead: by how many votes.
    """

    name: str = "vote"
    temperature: float = 0.8
    alone: bool = True
    times: int = 9
    ahead: int = 2

    def __post_init__(self) -> None:
        Rung.__post_init__(self)
        check_count(self.ahead, "repair", most=self.times, name="vote: ahead")


@dataclass(frozen=True, slots=True, kw_only=True)
class Code(Rung):
    """The expression is evaluated by code, and the record says so. Not in the default ladder."""

    name: str = "code"
    alone: bool = True
    assistance: Assistance = "code"

    @property
    def independent(self) -> bool:
        """See `Rung.independent`."""
        return True


def another_model(backend: object, *, model: str | None = None, times: int = 1, timeout: float | None = 600.0) -> Rung:
    """A rung that asks the step by itself, greedily, of another model.

    Its calls and tokens count for the run's budget and usage; a price there is taken to hold for this model, too. Where
    it does not answer, the next rung is tried.

    Args:
        backend: whatever `Guard` takes as one.
        model: the model to ask for, with a client as backend.
        times: see `Rung`.
        timeout: seconds that one call may take.

    Raises:
        ConfigError: nothing of this kind can be asked.
    """
    return Rung(
        "another_model",
        alone=True,
        times=times,
        assistance="model",
        backend=as_backend(backend, model=model),
        timeout=timeout,
    )


def person(ask: AskPerson | None = None, *, times: int = 1, timeout: float | None = None) -> Rung:
    """A rung that asks a person, through a callback: plain, or async (then with `Guard.arun`).

    Without a callback the guard's own person is asked (``Guard(person=...)``); where it has none the run waits (status
    ``waiting``), and `Run.answer` goes on. An answer counts as a call of the run, without tokens.

    Where the callback raises, or takes too long, the next rung is tried.

    Args:
        ask: called with the step and the values it reads; gives the value of the step, as text or as a number, or
            None where the person does not know. It is checked like any other claim; no working is asked for, and
            where a check wants one (`Cites`), both are given: ``{"value": True, "work": '"within 30 days"'}``.
        times: see `Rung`.
        timeout: seconds; by default a person may take as long as the budget allows.

    Raises:
        ConfigError: `ask` cannot be called.
    """
    backend = None if ask is None else as_person(ask)
    return Rung("person", alone=True, times=times, assistance="person", backend=backend, timeout=timeout, once=True)
