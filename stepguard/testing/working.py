"""What a double says: the working of a step, a wrong value, a reply as a completion with an estimated usage."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import cast

from stepguard.backends.base import Completion, Request
from stepguard.core.usage import Usage
from stepguard.core.verdicts import shorten
from stepguard.errors import ConfigError, EvaluationError, ValueRefused
from stepguard.language.evaluation import evaluate, substitute
from stepguard.language.expressions import format_expression
from stepguard.language.periods import Period
from stepguard.language.quantities import Amount
from stepguard.language.records import Record
from stepguard.language.terms.evaluation import evaluate_term
from stepguard.language.value_types import ValueType
from stepguard.language.values import LONG_TEXT, Value, show_value
from stepguard.procedure.steps import Step
from stepguard.repair.evidence import asked_option

_DONE_WORD = "done"


def work_out(step: Step, values: Mapping[str, Value], answers: Mapping[str, object]) -> tuple[str, Value] | None:
    """Working and value of a step; None where a value that it needs is not there or makes no sense.

    Args:
        answers: what to say for steps that only words describe, or a function that gives it from the values;
            ``"done"`` for the others. A function makes nothing of values that make no sense by raising `LookupError`,
            `TypeError` or `ValueError`.

    Raises:
        ConfigError: an answer is no value of its step, or the step has a formula.
    """
    if (exact := step.exact) is not None:
        try:
            return format_expression(exact), step.type.convert(evaluate_term(exact, values, {}))
        except (EvaluationError, KeyError):
            return None
    if step.expression is None:
        # In the rounds of a loop a step has other names, and the answers are those to the step as it is written.
        name = step.origin.step.id if step.origin is not None and step.id not in answers else step.id
        answer = answers.get(name, _DONE_WORD)
        if (option := asked_option(step)) is not None and name in answers:
            try:
                return "as asked", (answer(values) if callable(answer) else answer) == option
            except (LookupError, TypeError, ValueError):
                return None
        if callable(answer):
            return _carried_out(step, values, answer)
        if step.type.structured and name not in answers:
            raise ConfigError(
                f"step {step.id!r} is asked in words, and its value is {step.type}: say what the simulated model "
                f"answers, answers={{{name!r}: ...}}",
                option="answers",
            )
        try:
            return "as asked", step.type.accept(answer) if name in answers else _DONE_WORD
        except ValueRefused as error:
            raise ConfigError(f"the answer for {step.id!r} is no {step.type}: {error}", option="answers") from None
    if step.id in answers:
        raise ConfigError(
            f"step {step.id!r} has a formula, which is carried out: answers= is for steps in words", option="answers"
        )
    try:
        value = step.type.convert(evaluate(step.expression, values))
        return substitute(step.expression, values), value
    except (EvaluationError, KeyError):
        return None


def _carried_out(step: Step, values: Mapping[str, Value], answer: Callable[..., object]) -> tuple[str, Value] | None:
    try:
        work = "; ".join(f"{name} is {_value_words(values[name])}" for name in step.reads) or "as asked"
        given = answer(values)
    except (LookupError, TypeError, ValueError):
        return None
    if step.type.holds(given):
        return work, cast(Value, given)
    try:
        return work, step.type.accept(given)
    except ValueRefused as error:
        raise ConfigError(f"the answer for {step.id!r} is no {step.type}: {error}", option="answers") from None


def _value_words(value: Value) -> str:
    text = show_value(value).replace("\n", " ")  # a line of working is one line
    return text if len(text) <= LONG_TEXT else shorten(text, LONG_TEXT)  # nobody works on a document by copying it


def reply_value(step: Step, value: Value) -> str:
    """A value as a reply writes it."""
    # What is made up need not be of the step's type.
    return value if isinstance(value, str) else step.type.write(value)


def completion_of(
    request: Request, text: str | None, *, finish_reason: str = "stop", refusal: str | None = None
) -> Completion:
    """A completion with this text; usage is counted at four characters a token."""
    asked = sum(len(message.content) for message in request.messages)
    usage = Usage.estimate(asked, len(text or ""))
    return Completion(text, finish_reason, refusal=refusal, usage=usage, model="simulated")


def wrong_value(kind: ValueType, value: Value, chance: random.Random) -> Value:
    """Another value of a type; the value itself only where there is no other, as of an empty list."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        others = [option for option in kind.options if option != value]
        return chance.choice(others) if others else value + "?"
    if isinstance(value, int | Fraction | Decimal):
        if value and chance.random() < 0.2:
            return -value
        return value + chance.choice([-100, -10, -2, -1, 1, 2, 10, 100])
    if isinstance(value, date):
        return value + timedelta(days=1 if value < date.max else -1)
    if isinstance(value, timedelta):
        return value + timedelta(days=chance.choice([-1, 1]))
    if isinstance(value, Period):
        return replace(value, days=value.days + (1 if min(value.months, value.working_days) >= 0 else -1))
    if isinstance(value, Amount):
        return replace(value, value=value.value + chance.choice([-10, -1, 1, 10]))
    if isinstance(value, tuple | Record):
        return _wrong_part(kind, value, chance)
    return value.replace(minute=(value.minute + 1) % 60)


def _wrong_part(kind: ValueType, value: tuple[Value, ...] | Record, chance: random.Random) -> Value:
    if isinstance(value, Record):
        assert kind.record is not None
        key, inner = chance.choice(kind.record.fields)
        return Record({**value, key: wrong_value(inner, value[key], chance)})
    if not value:
        return value
    assert kind.items is not None
    at = chance.randrange(len(value))
    changed = () if chance.random() < 0.3 else (wrong_value(kind.items, value[at], chance),)
    return (*value[:at], *changed, *value[at + 1 :])
