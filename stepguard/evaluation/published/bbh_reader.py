"""What the tasks of BIG-Bench-Hard have in common: how an item becomes steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stepguard.evaluation.families.base import Line, TaskDraft
from stepguard.language.records import Record
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value
from stepguard.procedure.inputs import Input
from stepguard.procedure.steps import Step

Plausible = Callable[[str, Value, Mapping[str, Value]], bool]
Solve = Callable[[Mapping[str, Value]], Value]


@dataclass(frozen=True, slots=True)
class BbhReader:
    """One task.

    Attributes:
        name: as the file has it.
        shown: a small item of our own.
        draft: an item as steps.
        written: the answer as the file writes it, from the value of the last step.
        plausible: what a checker of the form knows, from the item; see `PublishedTask`.
    """

    name: str
    shown: str
    draft: Callable[[str, str], TaskDraft]
    written: Callable[[Value], str]
    plausible: Callable[[str], Plausible] | None = None


def draft_of(
    name: str, given: Mapping[str, tuple[str | ValueType, Value]], lines: Sequence[Line], rules: str
) -> TaskDraft:
    return TaskDraft(
        name=name,
        inputs=[Input(each, kind) for each, (kind, _) in given.items()],
        given={each: value for each, (_, value) in given.items()},
        lines=lines,
        material=f"{rules}\n",
        line_tokens=100,
    )


def line_of(step: Step, solve: Solve) -> Line:
    def work(values: Mapping[str, Value]) -> str:
        return "; ".join(f"{name} is {words_of(values[name])}" for name in step.reads)

    return Line(step=step, solve=solve, work=work)


def words_of(value: Value) -> str:
    if isinstance(value, Record):
        return ", ".join(f"{key} {words_of(each)}" for key, each in value.items())
    return str(value).lower() if isinstance(value, bool) else str(value)
