"""The rungs that ask something else in the place of a step, from which its value follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, get_args

from stepguard.core.arguments import check_one_of
from stepguard.errors import ProcedureError
from stepguard.language.values import Value
from stepguard.repair.evidence import by_fields, by_options, by_parts, other_order, passage_first
from stepguard.repair.rewriting import StandIn, rewrite
from stepguard.repair.rung import Rung
from stepguard.repair.splitting import SplitWay, split
from stepguard.results import Assistance

if TYPE_CHECKING:
    from stepguard.procedure.steps import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class StandInRung(Rung):
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
class Reorder(StandInRung):
    """The options in the other order. Cures a liking for the first or the last one."""

    name: str = "reorder"
    assistance: Assistance = "rephrased"
    builder = other_order


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage(StandInRung):
    """The sentence of the document that decides the step, which is checked to stand there; then the step from it alone.

    Where a check names the document: `Cites` of a judgement, `Grounded` of a value that is read. Two calls.
    """

    name: str = "passage"
    assistance: Assistance = "split"
    builder = passage_first


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields(StandInRung):
    """The fields of a record, each a step; those that pass their check are not asked again."""

    name: str = "fields"
    assistance: Assistance = "split"
    builder = by_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts(StandInRung):
    """A list from a long document, in a call for each part of it; what is listed is joined, and judged as a whole."""

    name: str = "parts"
    assistance: Assistance = "split"
    builder = by_parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Eliminate(StandInRung):
    """Whether each of three options or more applies, in a call for each; the value is the only one that does.

    A guess is right once in 2 to the power of their number.
    """

    name: str = "eliminate"
    assistance: Assistance = "split"
    builder = by_options


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite(StandInRung):
    """The same value written without what trips models (`stepguard.repair.rewriting.rewrite`), mapped back by code.

    Attributes:
        turned: the two numbers of a sum or product in the other order.
    """

    name: str = "rewrite"
    assistance: Assistance = "rewritten"
    turned: bool = False

    def build(self, step: Step, values: Mapping[str, Value]) -> StandIn | None:
        """See `StandInRung.build`."""
        return rewrite(step, values, turned=self.turned)


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(StandInRung):
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
        """See `StandInRung.build`."""
        return split(step, values, way=self.way)
