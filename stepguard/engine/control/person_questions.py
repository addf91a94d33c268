"""What a person is asked, and how values stand in the question: each amount with its currency, text that cannot lie."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from stepguard.language.quantities import Amount
from stepguard.language.records import Record
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value, show_value, to_decimal, to_exact
from stepguard.procedure.steps import Step

_PLAIN: Final = re.compile(r"[\w][\w .'-]{0,80}")
"""Text that may stand in a question as it is: it can end no quote, no line and no list."""


def approval(id: str, step: Step, arguments: Mapping[str, Value], kinds: Mapping[str, ValueType]) -> Step:
    """The step that asks a person whether a tool may be called with these arguments, which are of these types."""
    # Text is always quoted: an argument cannot pass for another one, or for the end of the question.
    shown = (f"{name}={told_to_person(value, kinds[name], plain=False)}" for name, value in arguments.items())
    question = f"Approve the call {step.operation}({', '.join(shown)})?"
    # As an occurrence, whose instruction is taken as it is: in that of a new step a brace would be a placeholder.
    return Step(id, instruction="Approve?", type="boolean", performer="person").occurrence(
        id, {}, expression=None, instruction=question, reads=(), checks=(), show_work=False
    )


def told_to_person(value: Value, kind: ValueType, *, plain: bool = True) -> str:
    """A value in a question to a person: each amount with its currency; text in quotes, unless it is `plain`."""
    if isinstance(value, str):
        return value if plain and _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)
    if kind.items is not None and isinstance(value, tuple):
        return f"[{', '.join(told_to_person(each, kind.items, plain=False) for each in value)}]"
    if kind.record is not None and isinstance(value, Record):
        parts = ((key, told_to_person(value[key], each, plain=False)) for key, each in kind.record.fields)
        return f"{{{', '.join(f'{json.dumps(key)}: {text}' for key, text in parts)}}}"
    number = to_exact(value.value if isinstance(value, Amount) else value)
    if kind.scale is not None and isinstance(number, int | Fraction):
        # What was computed may have more places than its type: all of them are shown, and none is rounded.
        if (number * 10**kind.scale).denominator != 1:
            text = ValueType(kind="percent").write(number) if kind.kind == "percent" else show_value(value)
        else:
            text = kind.write(value if isinstance(value, Amount) else to_decimal(number, kind.scale))
        return text if kind.currency is None else f"{text} {kind.currency}"
    return kind.write(value)
