"""What the statements of a procedure say, in the words of a picture."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from stepguard.core.verdicts import shorten
from stepguard.language.expressions import format_expression
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.value_types import NUMBER
from stepguard.procedure.inputs import Input
from stepguard.procedure.notation.settings import write_check
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.statements import Body, ForEach, If, ProcedureCall, Repeat
from stepguard.procedure.steps import Step
from stepguard.results.view import StepView
from stepguard.show.facts import GOING_ON, RunFacts, SiteFacts

_LONGEST: Final = 400
STRENGTH_WORDS: Final = {
    "proved": "verified",
    "constrained": "constrained",
    "grounded": "grounded",
    "agreed": "only agreed on",
    "unverified": "not checked",
}
_HELP: Final = {
    "model": "by another model",
    "person": "by a person",
    "rephrased": "asked in other words",
    "rewritten": "asked in another notation",
    "split": "asked in smaller steps",
    "code": "by code",
}
_FOLDED: Final = 40
"""So many steps in a row are all shown."""
_FIRST, _LAST, _NOTABLE = 12, 4, 12


def step_text(step: Step) -> str:
    """What a step says: the variable that it sets, its type, and what gives the value."""
    kind = "" if step.type == NUMBER else f": {step.type}"
    words = "" if step.instruction is None else json.dumps(step.instruction, ensure_ascii=False)
    if step.operation is not None:
        passed = ", ".join(f"{name}={format_expression(value)}" for name, value in step.arguments)
        says, words = f"{step.performer} {step.operation}({passed})", ""
    elif step.formula is None:
        says = f"ask person {words}" if step.performer == "person" else words
        words = ""
    else:
        says = f"by code {step.formula}" if step.performer == "code" else step.formula
    return shorten(f"{step.id}{kind} = {says}{f'  {words}' if words else ''}", _LONGEST)


def checks_of(step: Step) -> tuple[str, ...]:
    """What checks a step beside its own formula, and what a step in words reads."""
    worded = step.formula is None and step.operation is None
    reads = (f"reads {', '.join(step.reads)}",) if worded and step.reads else ()
    return tuple(shorten(read, 200) for read in (*reads, *map(_check_text, step.checks)))


def _check_text(check: object) -> str:
    if isinstance(name := getattr(check, "__name__", None), str):  # a function
        return f"check {name}"
    try:
        return f"check {write_check(check) or repr(check)}"
    except Exception:  # noqa: BLE001 - it is foreign code
        return f"check {type(check).__name__}"


def heading(statement: ForEach | Repeat | ProcedureCall) -> str:
    """The line above what a loop or a call carries out."""
    match statement:
        case ForEach(variable, over, _):
            text = f"for each {variable} in {format_expression(over)}"
        case Repeat(most, _, until):
            text = f"repeat at most {most:,} times until {format_expression(until)}"
        case ProcedureCall(id, called, arguments):
            passed = ", ".join(f"{name}={format_expression(value)}" for name, value in arguments)
            text = f"{id} = call {called.name}({passed})"
    return shorten(text, _LONGEST)


def branches_of(statement: If) -> Iterator[tuple[str, Body]]:
    """Each branch with the line above it; the last one is that where no condition holds."""
    for number, (condition, body) in enumerate(statement.branches):
        yield shorten(f"{'else if' if number else 'if'} {format_expression(condition)}", _LONGEST), body
    yield "else", statement.otherwise


def describe_input(declared: Input, run: RunFacts | None = None) -> str:
    """An input with its type: its value in a run, without one what it is where none is given."""
    default = "" if declared.default is None else f" = {declared.type.write(declared.default)}"
    if run is not None and declared.name in run.inputs:
        default = f" = {run.inputs[declared.name]}"
    return shorten(f"{declared.name}: {declared.type}{default}", _LONGEST)


def describe_table(table: Table) -> str:
    """A table: its keys and what it gives."""
    keys = ", ".join(f"{name}: {kind}" for name, kind in table.keys)
    count = "1 row" if len(table.rows) == 1 else f"{len(table.rows):,} rows"
    return shorten(f"{table.name}: {keys} -> {table.value}, {count}", _LONGEST)


def outcome(run: RunFacts, procedure: Procedure) -> str:
    """How a run ended, in a sentence."""
    answer = f"; {shorten(procedure.answer, 100)} = {run.answer}" if run.answer is not None else ""
    count = f"{run.completed:,} step{'' if run.completed == 1 else 's'}"
    if run.ended:
        return f"{count} completed{answer}"
    where = "" if run.place is None else f" at {shorten(run.place, 80)}"
    if run.status not in GOING_ON:
        return f"stopped{where}: {run.reason} ({count} completed)"
    question = f": {run.reason}" if run.status == "waiting" else ""
    return f"now{where}{question} ({count} completed)"


def halt_text(run: RunFacts) -> tuple[str, str]:
    """What is said where a run stopped or stands: a heading, and the reason."""
    where = f" at {run.place}" if run.place else ""
    if run.status in GOING_ON:
        return f"{run.status.upper()}{where}", f": {run.reason}" if run.status == "waiting" else ""
    tries = f" in {run.refusals} tr{'y' if run.refusals == 1 else 'ies'}" if run.refusals else ""
    return f"STOPPED{where}{tries}", f": {run.reason}"


def how_accepted(view: StepView, performer: str = "model") -> str:
    """What stands behind a value, and what it took."""
    if performer in ("function", "tool") and view.assistance == "code":
        return f"as the {performer} gave it"
    how = STRENGTH_WORDS[view.strength]
    if view.support != view.strength:
        how += f", from what is {STRENGTH_WORDS[view.support]}"
    if view.assistance != "none":
        how += f", {_HELP.get(view.assistance, view.assistance)}"
    if view.tries > 1:
        how += f", on try {view.tries}"
    if view.deviations:
        how += f" after {', '.join(dict.fromkeys(deviation.kind for deviation in view.deviations))}"
    return how


def summary_of(facts: SiteFacts) -> str:
    """What became of a statement in all rounds."""
    parts = [f"{count:,} {STRENGTH_WORDS[support]}" for support, count in facts.supports.most_common()]
    if facts.retried:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in facts.kinds.most_common(4))
        parts.append(f"{facts.retried:,} after more than one try" + (f" ({kinds})" if kinds else ""))
    return ", ".join(parts)


def taken_text(taken: int, passes: int) -> str:
    """How often a branch was taken, of how often its condition was looked at."""
    if not passes:
        return "not reached"
    if not taken:
        return "not taken"
    return "taken" if passes == 1 else f"taken {taken:,} of {passes:,} times"


@dataclass(frozen=True, slots=True)
class Group:
    """A statement of a body that is drawn, or a row of steps that are folded into one.

    Attributes:
        first: its number.
        end: the number behind it.
        folded: whether it stands for a row of steps.
    """

    first: int
    end: int
    folded: bool = False


def group(body: Body, block: str, run: RunFacts | None, *, lazy: bool = False) -> Iterator[Group]:
    """What of a body is drawn for itself: all of it, but of a long row of steps only its ends and what is notable.

    Args:
        block: what stands before the number of a statement in its site.
        lazy: the body is one row of steps, too long to look at each.
    """
    at = 0
    while at < len(body):
        end = len(body) if lazy else at
        while end < len(body) and isinstance(body[end], Step):
            end += 1
        if end == at:
            yield Group(at, at + 1)
            at += 1
            continue
        yield from _row(at, end, block, run)
        at = end


def _row(first: int, end: int, block: str, run: RunFacts | None) -> Iterator[Group]:
    if end - first <= _FOLDED:
        yield from (Group(at, at + 1) for at in range(first, end))
        return
    chosen = {*range(first, first + _FIRST), *range(end - _LAST, end)}
    if run is not None:
        notable = (at for at in range(first, end) if at not in chosen and _notable(f"{block}{at}", run))
        chosen.update(at for at, _ in zip(notable, range(_NOTABLE), strict=False))
        if run.stop is not None and run.stop.startswith(block) and run.stop[len(block) :].isdecimal():
            chosen.update({int(run.stop[len(block) :])} & {*range(first, end)})
    before = first
    for at in sorted(chosen):
        if at > before:
            yield Group(before, at, folded=at - before > 1)
        yield Group(at, at + 1)
        before = at + 1


def _notable(site: str, run: RunFacts) -> bool:
    facts = run.sites.get(site)
    return facts is not None and (facts.retried > 0 or facts.weakest != "proved")
