"""From a segment and the verified values to the messages that ask it.

Every prompt has a prefix that is byte-identical for a whole run (instructions and one fitting demonstration), so that
providers' prompt caches hit, and then only what this segment needs: the values its steps read, and its steps with
their operands restated. The model never sees a step that is not asked, a rejected reply, or anything a checker knows:
a prompt is a function of the steps, the verified state and the way of asking.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from stepguard.backends.base import Message
from stepguard.exact import evaluate
from stepguard.expressions import Call, Chain, Compare, Expression, Name, Negate, Number, Power, format_expression
from stepguard.procedure import Procedure, Step
from stepguard.reply_formats import ReplyFormat
from stepguard.values import Value, show_value

__all__ = ["Prompter", "describe_steps", "substitute"]

_INTRODUCTION: Final = (
    "You carry out a part of a longer procedure, exactly as written: every step, in order, with the values given. "
    "Do not skip, add, reorder, simplify or correct steps."
)
_SAMPLE: Final = 50
"""How many steps of a procedure decide which kinds its demonstration shows."""


class Prompter:
    """Writes the prompts of one run.

    Args:
        procedure: decides the demonstration: one step of each kind the procedure has.
        reply_format: how replies are structured.
    """

    def __init__(self, procedure: Procedure, reply_format: ReplyFormat) -> None:
        sample = procedure.steps[: min(len(procedure), _SAMPLE)]
        kinds = frozenset(_kind(step) for step in sample)
        self.prefix: Final[tuple[Message, ...]] = _prefix(kinds, reply_format)

    def messages(self, steps: Sequence[Step], values: Mapping[str, Value]) -> tuple[Message, ...]:
        """The messages that ask `steps`; `values` holds at least what they read."""
        return (*self.prefix, Message("user", describe_steps(steps, values)))


def describe_steps(steps: Sequence[Step], values: Mapping[str, Value]) -> str:
    """The live part of a prompt: the values these steps read, then the steps with their operands restated."""
    shown: dict[str, str] = {}
    lines: list[str] = []
    for step in steps:
        known: list[str] = []
        for name in step.reads:
            if name in values:
                text = shown.get(name)
                if text is None:
                    text = shown[name] = _shown(values[name])
                known.append(f"{name} = {text}")
        lines.append(_line(step, known))
    given = "\n".join(f"{name} = {text}" for name, text in shown.items()) or "(none)"
    return f"Values:\n{given}\nSteps:\n" + "\n".join(lines)


def _line(step: Step, known: list[str]) -> str:
    where = f"   ({', '.join(known)})" if known else ""
    if step.expression is None:
        return f"{step.id}: {step.instruction}{where}"
    rounding = f", rounded to {step.type.places} decimal places" if step.type.kind == "decimal" else ""
    if step.type.rounding is not None and step.type.rounding != "half_up":
        rounding += f" ({step.type.rounding.replace('_', ' ')})"
    words = f"{step.instruction}: " if step.instruction else ""
    return f"{words}{step.id} = {step.formula}{rounding}{where}"


def _shown(value: Value) -> str:
    # Text is quoted, so that a value can never be mistaken for a line of the prompt.
    return json.dumps(value, ensure_ascii=False) if type(value) is str else show_value(value)


def substitute(tree: Expression, values: Mapping[str, Value]) -> str:
    """The formula with numbers filled in, as a careful person would write it: ``-96 - (-106)``."""
    return format_expression(_filled(tree, values))


def _filled(tree: Expression, values: Mapping[str, Value]) -> Expression:
    match tree:
        case Name(name):
            found = evaluate(tree, values)
            return Name(name) if isinstance(found, bool | str) else Number(found)
        case Number():
            return tree
        case Negate(operand):
            return Negate(_filled(operand, values))
        case Chain(operands, operators):
            return Chain(tuple(_filled(each, values) for each in operands), operators)
        case Power(base, exponent):
            return Power(_filled(base, values), _filled(exponent, values))
        case Compare(operator, left, right):
            return Compare(operator, _filled(left, values), _filled(right, values))
        case Call(function, arguments, mode):
            return Call(function, tuple(_filled(each, values) for each in arguments), mode)


def _kind(step: Step) -> str:
    if step.expression is None:
        return "words"
    if not step.show_work:
        return "value"
    return step.type.kind if step.type.kind in ("decimal", "boolean") else "formula"


_VALUES: Final[Mapping[str, Value]] = {"a": -14, "b": 36, "c": "Lyon, France"}


def _examples(kinds: Iterable[str]) -> list[tuple[Step, str]]:
    """Demonstration steps, with the answer of those that only words describe."""
    has = frozenset(kinds)
    examples = [(Step("s1", "a + b"), ""), (Step("s2", "s1 * 3"), ""), (Step("s3", "a - s1"), "")]
    if has == {"words"}:
        examples = []
    if "decimal" in has:
        examples.append((Step("s4", "s2 / b", type="decimal(2)"), ""))
    if "boolean" in has:
        examples.append((Step("s5", "s2 > b", type="boolean"), ""))
    if "value" in has:
        examples.append((Step("s6", "b * 2", show_work=False), ""))
    if "words" in has:
        examples.append((Step("s7", instruction="Name the country in c.", reads=["c"]), "France"))
    return examples


@lru_cache(maxsize=64)
def _prefix(kinds: frozenset[str], reply_format: ReplyFormat) -> tuple[Message, ...]:
    examples = _examples(kinds)
    steps = [step for step, _ in examples]
    read = {name for step in steps for name in step.reads}
    state: dict[str, Value] = {name: value for name, value in _VALUES.items() if name in read}
    question = describe_steps(steps, state)
    answer: dict[str, object] = {}
    for step, words in examples:
        if step.expression is None:
            answer[step.id] = reply_format.answer(step, f"c is {_VALUES['c']}", words)
            continue
        value = step.type.convert(evaluate(step.expression, state))
        answer[step.id] = reply_format.answer(step, substitute(step.expression, state), show_value(value))
        state[step.id] = value
    return (
        Message("system", f"{_INTRODUCTION}\n{reply_format.instructions}"),
        Message("user", question),
        Message("assistant", json.dumps(answer)),
    )
