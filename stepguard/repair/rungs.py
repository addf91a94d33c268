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

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Literal, get_args

from stepguard.backends.base import Backend
from stepguard.backends.making import as_backend
from stepguard.backends.person import AskPerson, as_person
from stepguard.core.arguments import check_count, check_number, check_one_of, check_seconds
from stepguard.errors import ConfigError, ProcedureError
from stepguard.language.expressions import Name
from stepguard.language.values import Value
from stepguard.repair.evidence import by_fields, by_options, by_parts, other_order, passage_first
from stepguard.repair.rewriting import StandIn, rewrite
from stepguard.repair.splitting import SplitWay, split
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
class Instead(Rung):
    """Something else is asked in the place of the step, from which its value follows."""

    builder: ClassVar[Callable[[Step, Mapping[str, Value]], StandIn | None]]
    """What builds it, where that takes no options of the rung."""
    alone: bool = True

    def applies(self, step: Step, values: Mapping[str, Value]) -> bool:
        """See `Rung.applies`."""
        return self.stand_in(step, values) is not None

    def stand_in(self, step: Step, values: Mapping[str, Value]) -> StandIn | None:
        """See `Rung.stand_in`."""
        try:
            return self.build(step, values)
        except ProcedureError:  # such as a name that is too long, in a round of a loop, for a step of its own
            return None

    def build(self, step: Step, values: Mapping[str, Value]) -> StandIn | None:
        """What is asked in the place of a step, None where it is asked itself."""
        return type(self).builder(step, values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reorder(Instead):
    """The options in the other order. Cures a liking for the first or the last one."""

    name: str = "reorder"
    assistance: Assistance = "rephrased"
    builder = other_order


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage(Instead):
    """The sentence of the document that decides the step, which is checked to stand there; then the step from it alone.

    Where a check names the document: `Cites` of a judgement, `Grounded` of a value that is read. Two calls.
    """

    name: str = "passage"
    assistance: Assistance = "split"
    builder = passage_first


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields(Instead):
    """The fields of a record, each a step; those that pass their check are not asked again."""

    name: str = "fields"
    assistance: Assistance = "split"
    builder = by_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts(Instead):
    """A list from a long document, in a call for each part of it; what is listed is joined, and judged as a whole."""

    name: str = "parts"
    assistance: Assistance = "split"
    builder = by_parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Eliminate(Instead):
    """Whether each of three options or more applies, in a call for each; the value is the only one that does.

    A guess is right once in 2 to the power of their number.
    """

    name: str = "eliminate"
    assistance: Assistance = "split"
    builder = by_options


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite(Instead):
    """The same value written without what trips models (`stepguard.repair.rewriting.rewrite`), mapped back by code.

    Attributes:
        turned: the two numbers of a sum or product in the other order.
    """

    name: str = "rewrite"
    assistance: Assistance = "rewritten"
    turned: bool = False

    def build(self, step: Step, values: Mapping[str, Value]) -> StandIn | None:
        """See `Instead.build`."""
        return rewrite(step, values, turned=self.turned)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(Instead):
    """Smaller steps, each checked (`stepguard.repair.splitting.split`); the last one gives the value.

    Attributes:
        way: how two numbers are taken apart (`stepguard.repair.splitting.SplitWay`).

    Raises:
        ConfigError: there is no such way.
    """

    name: str = "split"
    assistance: Assistance = "split"
    way: SplitWay = "digits"

    def __post_init__(self) -> None:
        Rung.__post_init__(self)
        check_one_of(self.way, get_args(SplitWay), "repair", name="split: way")

    def build(self, step: Step, values: Mapping[str, Value]) -> StandIn | None:
        """See `Instead.build`."""
        return split(step, values, way=self.way)


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
