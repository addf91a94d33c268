"""A result as people read it: a table of the steps, what became of the run, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, assert_never

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from stepguard.cli.console import ResultConsole
from stepguard.cli.text import printable, shortened
from stepguard.language.expressions import format_expression
from stepguard.language.values import Value, show_value
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.statements import find_statement
from stepguard.procedure.steps import Step
from stepguard.results import Occurrence, Result, StepRecord
from stepguard.show.words import STRENGTH_WORDS

_LONGEST: Final = 300
"""Characters of one value or instruction that are shown; ``--json`` has all."""

_HELPED: Final = {"model": "by another model", "person": "by a person"}

_MOST_ROWS: Final = 200
"""Of a procedure with branches or loops so many steps stand in the table."""

StepRow = tuple[str, str, str, Text]


def print_result(result: Result, procedure: Procedure, *, model: str, table: bool = True) -> None:
    """Print a result to stdout.

    Args:
        model: what to call the model.
        table: show every step; otherwise only the outcome and the cost.
    """
    console = ResultConsole()
    if table:
        console.print(_table(result, procedure))
    colour = {"verified": "green", "checked": "yellow", "unverified": "yellow"}.get(result.status, "red")
    status = Text(result.status.upper(), style=f"bold {colour}")
    console.print(Text.assemble(status, ": ", printable(_sentence(result, procedure))), soft_wrap=True)
    console.print(Text(f"{_cost(result)}; {printable(model)}"), soft_wrap=True)
    for note in result.notes:
        console.print(Text(printable(note), style="yellow"), soft_wrap=True)


def _table(result: Result, procedure: Procedure) -> Table:
    table = Table(box=SIMPLE_HEAD, title=Text(printable(procedure.name)), title_justify="left", pad_edge=False)
    table.add_column("step", overflow="fold")
    table.add_column("what it says", overflow="fold")
    table.add_column("value", overflow="fold", justify="right")
    table.add_column("how it went", overflow="fold")
    for step, what, value, how in _rows(result, procedure):
        table.add_row(Text(step), Text(what), Text(value), how)
    return table


def _rows(result: Result, procedure: Procedure) -> Iterator[StepRow]:
    if not procedure.straight:
        yield from _rows_taken(result, procedure)
        return
    records = {record.occurrence.index: record for record in result.steps}
    stop = None if result.problem is None else result.problem.occurrence.index
    unreached = 0
    for index, step in enumerate(procedure.steps):
        record = records.get(index)
        if record is not None:
            yield step.id, _what(step), _fitted(step.type.write(record.value)), _how(record)
        elif index == stop:
            yield step.id, _what(step), "", Text(_stopped(result), style="red")
        else:
            unreached += 1
    if unreached:
        yield "...", f"{unreached} more {_steps(unreached)}", "", Text("not reached", style="dim")


def _rows_taken(result: Result, procedure: Procedure) -> Iterator[StepRow]:
    """The steps of the way that was taken; of many the first and the last."""
    left_out = max(0, len(result.steps) - _MOST_ROWS)
    for number, record in enumerate(result.steps):
        if left_out and number == _MOST_ROWS // 2:
            yield "...", f"{left_out} more {_steps(left_out)}: --json has them, stepguard show draws them", "", Text("")
        if _MOST_ROWS // 2 <= number < _MOST_ROWS // 2 + left_out:
            continue
        step = _step_at(record.occurrence, procedure)
        value = show_value(record.value) if step is None else step.type.write(record.value)
        yield printable(str(record.occurrence)), "" if step is None else _what(step), _fitted(value), _how(record)
    if result.problem is not None:
        at = result.problem.occurrence
        step = _step_at(at, procedure)
        yield printable(str(at)), "" if step is None else _what(step), "", Text(_stopped(result), style="red")


def _step_at(place: Occurrence, procedure: Procedure) -> Step | None:
    """The step of the procedure that an occurrence is one of; None where it is none, such as an approval."""
    statement = find_statement(procedure.body, place.site)
    return statement if isinstance(statement, Step) else None


def _what(step: Step) -> str:
    if step.operation is not None:
        passed = ", ".join(f"{name}={format_expression(value)}" for name, value in step.arguments)
        return _fitted(f"{step.performer} {step.operation}({passed})")
    if step.formula is None:
        return _fitted(" ".join((step.instruction or "").split()))
    kind = step.type
    unit = f", {kind.currency or 'percent'}" if kind.kind in ("money", "percent") else ""
    places = f", {kind.places} places" if kind.places is not None else ""
    rounding = f" {kind.rounding}" if kind.rounding not in (None, "half_up") else ""
    within = f", within {kind.within}" if kind.within is not None else ""
    return _fitted(step.formula) + unit + places + rounding + within


def _answer_text(answer: Value, procedure: Procedure) -> str:
    if not procedure.straight:  # what a step sets in a loop is a list behind it
        return show_value(answer)
    # The step that is the answer is most often the last one.
    for index in range(len(procedure) - 1, -1, -1):
        if procedure.steps[index].id == procedure.answer:
            return procedure.steps[index].type.write(answer)
    return show_value(answer)


def _how(record: StepRecord) -> Text:
    if record.assistance == "code":
        text = "by code" if record.verified else f"by code, from what is {STRENGTH_WORDS[record.support]}"
        return Text(text, style="green" if record.verified else "yellow")
    text = STRENGTH_WORDS[record.strength]
    if record.support != record.strength:
        text += f", from what is {STRENGTH_WORDS[record.support]}"
    if record.assistance != "none":
        text += f", {_HELPED.get(record.assistance, record.assistance)}"
    if record.deviations:
        kinds = ", ".join(dict.fromkeys(deviation.kind for deviation in record.deviations))
        text += f" on try {record.tries} after {kinds}" if record.tries > 1 else f": {kinds}"
    return Text(text, style="green" if record.verified and not record.deviations else "yellow")


def _stopped(result: Result) -> str:
    match result.status:
        case "abstained":
            assert result.problem is not None
            at, deviation = result.problem.occurrence, result.problem.deviation
            blocked = [attempt for attempt in result.attempts if at in attempt.refused]
            if not blocked:  # nobody was there to answer, or somebody said no
                return "NOT VERIFIED"
            tries = f"{len(blocked)} {'try' if len(blocked) == 1 else 'tries'}"
            return f"NOT VERIFIED in {tries}: {deviation.kind}" if deviation else f"NOT VERIFIED in {tries}"
        case "exhausted":
            return "not reached: budget spent"
        case "waiting":
            return "waits for a person"
        case _:
            return "failed here"


def _sentence(result: Result, procedure: Procedure) -> str:
    answer = "" if result.answer is None else f"{procedure.answer} = {_fitted(_answer_text(result.answer, procedure))}"
    total = f"all {result.total} steps" if result.total > 1 else "the one step"
    match result.status:
        case "verified":
            return f"{total} of {result.procedure}; {answer}"
        case "checked":
            named = ", ".join(f"{step} is {support}" for step, support in list(result.weak.items())[:5])
            more = " ..." if len(result.weak) > 5 else ""
            return f"{result.procedure} completed, each step checked, but not all proved: {named}{more}; {answer}"
        case "unverified":
            names = ", ".join(result.unverified[:5]) + (" ..." if len(result.unverified) > 5 else "")
            why = f"no check vouches for {names}" if names else "the run only observed"
            return f"{result.procedure} completed, but {why}; {answer}"
        case "abstained":
            return f"{_where(result)} could not be verified ({_reason(result)}). {_kept_steps(result)}"
        case "waiting":
            return f"{_where(result)} waits for a person: {_reason(result)}. {_kept_steps(result)}"
        case "exhausted":
            return f"stopped before {_where(result)}: {_reason(result)}. {_kept_steps(result)}"
        case "failed":
            return f"stopped at {_where(result)}: {_reason(result)}. {_kept_steps(result)}"
        case _:
            assert_never(result.status)


def _where(result: Result) -> str:
    assert result.problem is not None
    at = result.problem.occurrence
    if at.path or at.site:  # there is no telling how many would have followed
        return f"step {at}"
    return f"step {at.step} ({at.index + 1} of {result.total})"


def _reason(result: Result) -> str:
    assert result.problem is not None
    return _fitted(result.problem.reason.rstrip(". "))


def _kept_steps(result: Result) -> str:
    if not result.completed:
        return "No step was completed"
    weak = len(result.weak)
    checked = f", {weak} of them not proved" if weak else " and verified"
    of = "" if result.ways else f" of {result.total}"
    return f"{result.completed}{of} steps are completed{checked}"


def _cost(result: Result) -> str:
    usage = result.usage
    calls = f"{usage.calls} call{'' if usage.calls == 1 else 's'}"
    cost = "" if result.cost is None else f", cost {result.cost:f}"
    cached = f" ({usage.cached_share:.0%} of the prompts from a cache)" if usage.cached_tokens else ""
    return f"{calls}, {usage.input_tokens:,} + {usage.output_tokens:,} tokens{cached}{cost}, {result.seconds:.1f} s"


def _steps(count: int) -> str:
    return "step" if count == 1 else "steps"


def _fitted(text: str) -> str:
    return shortened(printable(text), _LONGEST)
