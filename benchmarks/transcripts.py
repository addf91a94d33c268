"""Transcripts of unguarded runs in the styles that models write, right or with what a test plants in them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from stepguard.language.evaluation import evaluate, substitute
from stepguard.language.values import Value, show_value
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step

Style = Literal[
    "lines", "steps", "bold", "numbered", "round", "bullets", "blocks", "table", "latex", "prose", "json", "array"
]
STYLES: Final[tuple[Style, ...]] = get_args(Style)


@dataclass(frozen=True, slots=True)
class StepLine:
    """A step as a transcript tells it: its name, its number, its formula, that with numbers, and the value."""

    name: str
    number: int
    formula: str
    filled: str
    value: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A marked final answer."""

    value: str


def write_step(
    step: Step, number: int, values: Mapping[str, Value], value: Value | None = None
) -> tuple[StepLine, Value]:
    """A step told from the given values, with its right value or another one, and that value.

    Args:
        value: the value that it is to get; None: the right one.
    """
    assert step.expression is not None
    claimed = step.type.convert(evaluate(step.expression, values)) if value is None else value
    shown = show_value(claimed)
    return StepLine(step.id, number, step.formula or "", substitute(step.expression, values), shown), claimed


def written_correctly(procedure: Procedure, inputs: Mapping[str, object]) -> tuple[list[StepLine], dict[str, Value]]:
    """Every step of a procedure, told rightly, and the values."""
    values: dict[str, Value] = dict(procedure.accept_inputs(inputs))
    lines: list[StepLine] = []
    for number, step in enumerate(procedure.steps, 1):
        line, values[step.id] = write_step(step, number, values)
        lines.append(line)
    return lines, values


def write_transcript(style: Style, items: Sequence[StepLine | Answer | str]) -> str:
    """A transcript in one of the styles; a string among the items is a remark.

    Raises:
        ValueError: the style is JSON, in which no remark can stand.
    """
    match style:
        case "json":
            return _json(items)
        case "array":
            return _array(items)
        case "prose":
            return " ".join(_prose(item, at) for at, item in enumerate(items))
        case "table":
            return _table(items)
        case "latex":
            return _latex(items)
        case _:
            gap = "\n\n" if style in ("bold", "blocks") else "\n"
            return gap.join(_line(style, item) for item in items)


def _line(style: Style, item: StepLine | Answer | str) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, Answer):
        value = item.value
        return {
            "steps": f"The answer is {value}.",
            "bold": f"**Answer: {value}**",
            "numbered": f"#### {value}",
            "round": f"Final answer: {value}",
            "bullets": f"**Final Answer:** {value}",
            "blocks": f"So the final answer is $\\boxed{{{value}}}$.",
        }.get(style, f"Answer: {value}")
    head = f"{item.filled} = " if item.filled else ""
    return {
        "lines": f"{item.name} = {item.formula} = {head}{item.value}",
        "steps": f"Step {item.number}: {head}{item.value}",
        "bold": f"**Step {item.number}:** {item.name} = {head.replace('*', '×').replace(' - ', ' − ')}**{item.value}**",
        "numbered": f"{item.number}. {item.name} = {head}{item.value}",
        "round": f"({item.number}) {head}{item.value}",
        "bullets": f"- {item.name}: {head}{item.value}",
        "blocks": f"Step {item.number}: work out {item.formula}\n{item.filled}\n= {item.value}",
    }[style]


_OPENINGS: Final = ("First,", "Next,", "Then", "After that,", "Now", "With that,")


def _prose(item: StepLine | Answer | str, at: int) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, Answer):
        return f"So the answer is {item.value}."
    opening = _OPENINGS[0] if at == 0 else _OPENINGS[1 + at % (len(_OPENINGS) - 1)]
    if at % 2:
        return f"{opening} {item.name} = {item.formula} = {item.filled} = {item.value}."
    return f"{opening} {item.name} is {item.formula}, which is {item.filled} = {item.value}."


def _table(items: Sequence[StepLine | Answer | str]) -> str:
    head = ["| step | working | value |", "|---|---|---|"]
    lines: list[str] = []
    for item in items:
        if isinstance(item, StepLine):
            if not lines or not lines[-1].startswith("|"):
                lines += head
            lines.append(f"| {item.name} | {item.filled} | {item.value} |")
        else:
            lines += ["", item if isinstance(item, str) else f"Answer: {item.value}", ""]
    return "\n".join(lines)


def _latex(items: Sequence[StepLine | Answer | str]) -> str:
    lines: list[str] = []
    opened = False
    for item in items:
        if isinstance(item, StepLine) != opened:
            lines.append("\\begin{align*}" if not opened else "\\end{align*}")
            opened = not opened
        if isinstance(item, StepLine):
            work = item.filled.replace("*", "\\times")
            lines.append(f"{_latex_name(item.name)} &= {work} = {item.value} \\\\")
        elif isinstance(item, Answer):
            lines.append(f"\\[\\boxed{{{item.value}}}\\]")
        else:
            lines.append(item)
    return "\n".join([*lines, *(["\\end{align*}"] if opened else [])])


def _latex_name(name: str) -> str:
    index = re.fullmatch(r"([A-Za-z])([0-9]+)", name)
    return f"\\text{{{name}}}" if index is None else f"{index[1]}_{{{index[2]}}}"


def _json(items: Sequence[StepLine | Answer | str]) -> str:
    fields: list[str] = []
    for item in items:
        if isinstance(item, str):
            raise ValueError("no remark can stand in JSON")
        key, value = (
            ("answer", item.value) if isinstance(item, Answer) else (item.name, f"{item.filled} = {item.value}")
        )
        fields.append(f"{json.dumps(key)}: {json.dumps(value)}")
    return "```json\n{" + ", ".join(fields) + "}\n```"


def _array(items: Sequence[StepLine | Answer | str]) -> str:
    steps: list[str] = []
    texts: list[str] = []
    for item in items:
        if isinstance(item, StepLine):
            steps.append(json.dumps({"step": item.name, "work": item.filled, "value": item.value}))
        elif isinstance(item, Answer) and steps:
            texts.append(f"Answer: {item.value}")
        elif isinstance(item, str):
            raise ValueError("no remark can stand in JSON")
    return "\n".join(["[" + ",\n ".join(steps) + "]", *texts])
