"""Transcripts with planted failures: what is planted, and everything that must then be found."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Final, Literal, get_args

from transcripts import STYLES, Answer, StepLine, Style, write_step, write_transcript, written_correctly

from stepguard import Procedure
from stepguard.errors import EvaluationError
from stepguard.evaluation.families import Arithmetic
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.same_working import normal_form
from stepguard.language.values import Value, show_value

__all__ = ["PLANTS", "Expected", "Plant", "Planted", "planted"]

Plant = Literal[
    "right",
    "wrong_value",
    "wrong_operand",
    "unfaithful_work",
    "missing_step",
    "stopped_early",
    "missing_answer",
    "premature_answer",
    "self_correction",
    "extra_step",
    "duplicate_step",
    "wrong_order",
    "wrong_answer",
    "truncated",
]
PLANTS: Final[tuple[Plant, ...]] = get_args(Plant)

Expected = set[tuple[str, str | None]]

_INVOICE: Final = Procedure.parse(
    "name: invoice\ninputs: price: decimal(2), quantity: integer, rate: integer\nsubtotal = price * quantity\n"
    "discount: decimal(2) = subtotal * 10 / 100\nreduced = subtotal - discount\n"
    "tax: decimal(2) = reduced * rate / 100\ntotal = reduced + tax\nrate_per_item: decimal(3) = total / quantity"
)
_TAKING_BACK: Final = ("Wait, that is not right.", "Actually, let me redo this step.", "Hmm, I made a mistake.")


@dataclass
class Planted:
    """A transcript, and what must be found in it.

    Attributes:
        plant: what was planted.
        style: how it is written.
        procedure, inputs: what was to be carried out.
        text: the transcript.
        expected: every finding, as kind and step; a step of None stands for any.
        wrong: the ids of the steps whose last value is wrong.
    """

    plant: Plant
    style: Style
    procedure: Procedure
    inputs: Mapping[str, object]
    text: str
    expected: Expected
    wrong: set[str] = field(default_factory=set)


def planted(seed: int, each: int) -> Iterator[Planted]:
    """Transcripts for every plant, `each` of them, over all styles in turn that can show it."""
    for plant in PLANTS:
        chance = random.Random(f"audit:{seed}:{plant}")
        made = tried = 0
        while made < each:
            style = STYLES[tried % len(STYLES)]
            tried += 1
            found = _make(chance, plant, style)
            if found is not None:
                made += 1
                yield found


def _make(chance: random.Random, plant: Plant, style: Style) -> Planted | None:
    procedure, inputs = _task(chance)
    told, values = written_correctly(procedure, inputs)
    last = len(told) - 1
    at = chance.randrange(len(told))
    step = procedure.steps[at]
    true = show_value(values[procedure.answer])
    answer = Answer(true)
    expected: Expected = set()
    wrong: set[str] = set()
    items: list[StepLine | Answer | str] = [*told]
    is_json = style in ("json", "array")
    match plant:
        case "right":
            items.append(answer)
        case "wrong_value":
            told, changed = _continued(procedure, values, told, at, _off(chance, values[step.id]))
            wrong = {name for name in changed if changed[name] != values[name]}
            expected = {("wrong_value", step.id)} | {("inherited", name) for name in wrong if name != step.id}
            items = [*told, Answer(show_value(changed[procedure.answer]))]
            if procedure.answer in wrong:
                expected.add(("wrong_answer", None))
        case "wrong_operand":
            numeric = [name for name in step.reads if isinstance(values[name], int)]
            if not numeric:
                return None
            name = chance.choice(numeric)
            other = {**values, name: _off(chance, values[name])}
            try:
                one, value = write_step(step, at + 1, other)
            except EvaluationError:  # it would divide by zero
                return None
            if value == values[step.id]:
                return None
            told[at] = one
            told, changed = _continued(procedure, values, told, at, value)
            wrong = {each for each in changed if changed[each] != values[each]}
            expected = {("wrong_operand", step.id)} | {("inherited", each) for each in wrong if each != step.id}
            items = [*told, Answer(show_value(changed[procedure.answer]))]
            if procedure.answer in wrong:
                expected.add(("wrong_answer", None))
        case "unfaithful_work":
            value = values[step.id]
            if not isinstance(value, int):
                return None
            part = chance.randint(2, 40)
            work = f"{value - part} + {part}"
            items[at] = replace(told[at], filled=work)
            assert step.expression is not None
            if normal_form(parse_expression(work), {}) == normal_form(step.expression, values):
                return None
            expected = {("unfaithful_work", step.id)}
            items.append(answer)
        case "missing_step":
            if step.id == procedure.answer:
                return None
            del items[at]
            expected = {("missing_step", step.id)}
            items.append(answer)
        case "stopped_early":
            if at == last:
                return None
            items = [*told[: at + 1]]
            expected = {("missing_step", each.name) for each in told[at + 1 :]}
            if chance.random() < 0.5:
                items.append(Answer(told[at].value))
                expected.add(("premature_answer", None))
                if told[at].value != true:
                    expected.add(("wrong_answer", None))
            elif style == "json":
                return None
            else:
                expected.add(("missing_answer", None))
        case "missing_answer":
            if style == "json":
                return None
            expected = {("missing_answer", None)}
        case "premature_answer":
            if at == last or style == "array":
                return None
            items.insert(at + 1, answer)
            if chance.random() < 0.5 and not is_json:
                items.append(answer)
            expected = {("premature_answer", None)}
        case "self_correction":
            slip = replace(told[at], value=show_value(_off(chance, values[step.id])))
            if is_json or chance.random() < 0.4:
                items[at : at + 1] = [slip, told[at]]
            else:
                items[at : at + 1] = [slip, chance.choice(_TAKING_BACK), told[at]]
            expected = {("self_correction", step.id)}
            items.append(answer)
        case "extra_step":
            number = len(told) + 1
            named = style not in ("steps", "round", "blocks")
            invoice = procedure.steps[0].id == "subtotal"
            if invoice and (is_json or style in ("table", "prose")):
                return None
            name = "rounded_up" if invoice else f"t{number}"
            extra = StepLine(name, number, "7 + 8", "7 + 8", "15")
            items.append(extra)
            items.append(answer)
            expected = {("extra_step", name if named else f"step {number}")}
        case "duplicate_step":
            items.insert(chance.randint(at + 1, len(items)), told[at])
            expected = {("duplicate_step", step.id)}
            items.append(answer)
        case "wrong_order":
            if at == last or told[at + 1].name == procedure.answer:
                return None
            items[at], items[at + 1] = items[at + 1], items[at]
            expected = {("wrong_order", step.id)}
            items.append(answer)
        case "wrong_answer":
            items.append(Answer(show_value(_off(chance, values[procedure.answer]))))
            expected = {("wrong_answer", None)}
        case "truncated":
            if at == last or is_json or style in ("table", "latex"):
                return None
            text = write_transcript(style, told[: at + 1])
            text = text[: text.rindex("=") + 1]
            expected = {("missing_step", each.name) for each in told[at + 1 :]}
            expected |= {("truncated", step.id), ("missing_answer", None)}
            return Planted(plant, style, procedure, inputs, text, expected)
    text = write_transcript(style, items)
    if chance.random() < 0.5:
        text = _untidy(chance, style, text, procedure, inputs, told, recap=plant in _RECAPPED)
    return Planted(plant, style, procedure, inputs, text, expected, wrong)


_RECAPPED: Final = ("right", "wrong_value", "wrong_operand", "missing_answer", "unfaithful_work", "wrong_answer")
_PREAMBLES: Final = (
    "Let's carry out the procedure step by step.",
    "Sure! Here is the procedure, executed exactly as written:",
    "We start from the given values and go on one step at a time, using each result in the next.",
)
_REMARKS: Final = (
    "So far so good.",
    "Now the next step.",
    "(using the value from before)",
    "This uses the result of an earlier step.",
    "Let's move on.",
)
_UNITS: Final = ("units", "points", "items in total", "\u2713", "(done)")


def _untidy(
    chance: random.Random,
    style: Style,
    text: str,
    procedure: Procedure,
    inputs: Mapping[str, object],
    told: list[StepLine],
    *,
    recap: bool,
) -> str:
    """The same transcript with what models put around it: none of it changes what is claimed."""
    whole = text
    if style not in ("json", "array", "table", "latex", "prose"):
        gap = "\n\n" if style in ("bold", "blocks") else "\n"
        pieces: list[str] = []
        for piece in text.split(gap):
            if chance.random() < 0.15 and "nswer" not in piece and "####" not in piece:
                piece += f" {chance.choice(_UNITS)}"
            pieces.append(piece)
            if chance.random() < 0.15:
                pieces.append(chance.choice(_REMARKS))
        whole = gap.join(pieces)
    if recap and style not in ("json", "array", "prose") and chance.random() < 0.3:
        *body, end = whole.split("\n")
        said = f"In summary: {', '.join(f'{each.name} = {each.value}' for each in told)}."
        marked = any(mark in end for mark in ("nswer", "####", "boxed"))
        whole = "\n".join([*body, said, end] if marked else [*body, end, said])
    if chance.random() < 0.2 and style in ("lines", "steps", "bullets", "table"):
        whole = f"```\n{whole}\n```"
    if chance.random() < 0.3 and style not in ("steps", "round", "blocks"):
        formulas = "\n".join(f"{step.id} = {step.formula}" for step in procedure.steps)
        whole = f"The steps are:\n{formulas}\n\n{whole}"
    if chance.random() < 0.3:
        whole = f"Given: {', '.join(f'{name} = {value}' for name, value in inputs.items())}.\n\n{whole}"
    if chance.random() < 0.5:
        whole = f"{chance.choice(_PREAMBLES)}\n\n{whole}"
    if chance.random() < 0.2:
        whole = whole.replace("\n", "\r\n")
    return whole


def _task(chance: random.Random) -> tuple[Procedure, Mapping[str, object]]:
    if chance.random() < 0.3:
        price = f"{chance.randint(100, 9999) / 100:.2f}"
        return _INVOICE, {"price": price, "quantity": chance.randint(2, 12), "rate": chance.choice((5, 7, 19, 20))}
    task = Arithmetic().make(chance.randrange(10**6), chance.randint(4, 15))
    return task.procedure, task.inputs


def _off(chance: random.Random, value: Value) -> Value:
    """Another value of the same type."""
    if isinstance(value, int):
        return value + chance.choice((-1, 1)) * chance.choice((1, 2, 9, 10, 100))
    if isinstance(value, Fraction):
        return value + chance.choice((1, 2, 10))
    assert isinstance(value, Decimal)
    return value + chance.choice((1, 2, 10))


def _continued(
    procedure: Procedure, values: Mapping[str, Value], told: list[StepLine], at: int, value: Value
) -> tuple[list[StepLine], dict[str, Value]]:
    """What a transcript goes on to say after a step with a wrong value, all else done rightly."""
    state = dict(values)
    state[told[at].name] = value
    again = [*told[:at], replace(told[at], value=show_value(value))]
    for number, step in enumerate(procedure.steps[at + 1 :], at + 2):
        one, state[step.id] = write_step(step, number, state)
        again.append(one)
    return again, state
