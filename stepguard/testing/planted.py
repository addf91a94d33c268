"""Replies that are right but for what is planted.

A reply is composed, then read and judged as the guard does it. What is not found to be a deviation of the planted
kind is not sent, so that a test never rests on a failure that was none.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from typing import Final

from stepguard.backends.base import Completion, Request
from stepguard.checks import judge_claims
from stepguard.core.verdicts import Deviation, shorten
from stepguard.engine.actions import deviation_of
from stepguard.errors import BackendError, EvaluationError, ExpressionError, InexactError, UnexpectedRequest
from stepguard.language.digits import exact
from stepguard.language.evaluation import evaluate
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.values import Value, to_exact
from stepguard.procedure.steps import Step
from stepguard.replies.formats import ReplyFormat
from stepguard.replies.reading import read_reply
from stepguard.testing.plants import SURPLUS, Due, Plant
from stepguard.testing.working import completion_of, reply_value, work_out, wrong_value

_ANSWER_KEYS: Final = ("final_answer", "answer", "result", "solution")
_DIGITS: Final = re.compile(r"[0-9]+")
_ADVICE: Final[Mapping[str, str]] = {
    "wrong_order": "the step has to be asked together with others",
    "wrong_value": "the step needs a check that refuses wrong values",
}
_CHECK_SECONDS: Final = 60.0
"""How long a check of the user's may take: as long as a guard gives it by default."""
_OTHERWISE: Final = "plant another kind, or write the reply yourself for a ScriptedBackend"


def planted_reply(request: Request, due: Sequence[Due], answers: Mapping[str, object]) -> Completion:
    """A reply that is right but for what is planted.

    Args:
        request: what is asked; it must have a reply format.
        due: what is to fail: any number of surplus things, and at most one thing that spoils the reply, the last.
        answers: what to say for steps that only words describe.

    Raises:
        BackendError: that is what was planted.
        UnexpectedRequest: at this step of this request no reply shows the failure.
    """
    last = due[-1].plant
    if isinstance(last.failure, BackendError):
        raise copy.copy(last.failure)  # an instance that is raised again would collect tracebacks
    planting = _Planting(request, due, answers)
    tried = ""
    for completion in planting.drafts():
        deviations = planting.read(completion)
        if planting.shows(deviations):
            return completion
        read = "; ".join(f"{each.kind} at {each.step!r}: {each.reason}" for each in deviations) or "right"
        tried = tried or f"{shorten(completion.text or '', 300)} would be read as {read}"
    tried = tried or "the step has no formula that could be mistaken"
    raise UnexpectedRequest(f"{last} cannot be planted: {tried}; {_ADVICE.get(last.failure, _OTHERWISE)}")


_Fields = list[tuple[str, object]]


@dataclass(frozen=True, slots=True)
class _Entry:
    """What stands in the reply for a step, and the value that later steps are worked out from.

    `taken_back` is what replaces the entry behind the object.
    """

    fields: tuple[object, ...]
    believed: Value
    taken_back: object = None


class _Planting:
    """One reply in the making."""

    def __init__(self, request: Request, due: Sequence[Due], answers: Mapping[str, object]) -> None:
        assert request.reply_format is not None
        self._request = request
        self._format = request.reply_format
        self._answers = answers
        self._spoiling = due[-1] if due[-1].plant.failure not in SURPLUS else None
        self._surplus = [each.plant for each in due if each.plant.failure in SURPLUS]
        self._kinds = {each.plant.failure for each in due}

    def read(self, completion: Completion) -> list[Deviation]:
        """Everything that the guard will find wrong with a reply."""
        reading = read_reply(completion, self._request.steps, self._format)
        steps = self._request.steps[: len(reading.claims)]
        judged = judge_claims(steps, reading.claims, self._request.values, timeout=_CHECK_SECONDS)
        return [*reading.deviations, *filter(None, map(deviation_of, judged))]

    def shows(self, deviations: Sequence[Deviation]) -> bool:
        """Whether that is what was planted, where it was planted, and nothing else."""
        if {deviation.kind for deviation in deviations} != self._kinds:
            return False
        if self._spoiling is None:
            return True
        plant = self._spoiling.plant
        return any(deviation.kind == plant.failure and deviation.step in (plant.step, None) for deviation in deviations)

    def drafts(self) -> Iterator[Completion]:
        """Replies that may show it, the most natural first."""
        state: dict[str, Value] = dict(self._request.values)
        fields: _Fields = []
        steps = self._request.steps
        for number, step in enumerate(steps):
            work, value = work_out(step, state, self._answers) or ("0 + 0", 0)
            if self._spoiling is not None and step.id == self._spoiling.plant.step:
                for entry in _entries(step, self._spoiling, work, value, self._format):
                    known = {**state, step.id: entry.believed}
                    own = [(step.id, each) for each in entry.fields]
                    rest = self._fields(steps[number + 1 :], known)
                    yield self._spoilt(self._spoiling.plant, [*fields, *own], rest, entry)
                return
            fields += self._fields([step], state)
        yield completion_of(self._request, _json(self._with_surplus(fields)))

    def _fields(self, steps: Sequence[Step], state: dict[str, Value]) -> _Fields:
        """The right entries of steps; `state` takes their values."""
        fields: _Fields = []
        for step in steps:
            work, value = work_out(step, state, self._answers) or ("0 + 0", 0)
            state[step.id] = value
            fields.append((step.id, self._format.answer(step, work, reply_value(step, value))))
        return fields

    def _spoilt(self, plant: Plant, fields: _Fields, rest: _Fields, entry: _Entry) -> Completion:
        match plant.failure:
            case "refused":
                return completion_of(self._request, None, refusal="I cannot help with that.")
            case "empty":
                return completion_of(self._request, "")
            case "truncated":  # inside the entry of the step
                return completion_of(self._request, _json(fields)[:-3], finish_reason="length")
        text = _json(self._with_surplus([*fields, *rest]))
        if entry.taken_back is not None:
            text += f"\nWait, that is wrong: {_json([(plant.step, entry.taken_back)])}"
        return completion_of(self._request, text)

    def _with_surplus(self, fields: _Fields) -> _Fields:
        asked = {step.id for step in self._request.steps}
        for plant in self._surplus:
            own = [field for field in fields if field[0] == plant.step]
            others = [field for field in fields if field[0] != plant.step]
            match plant.failure:
                case "wrong_order":
                    fields = [*others, *own] if fields[0] in own else [*own, *others]
                case "extra_step":
                    taken = asked | {name for name, _ in fields}
                    # A key that names a step would be read as words about it.
                    name = next(name for name in map("extra{}".format, count(1)) if name not in taken)
                    behind = fields.index(own[-1]) + 1
                    fields = [*fields[:behind], (name, "1 + 1 = 2"), *fields[behind:]]
                case "premature_answer":
                    name = next(key for key in _ANSWER_KEYS if key not in asked)
                    fields = [*(field for field in fields if field[0] != name), (name, "42")]
        return fields


def _json(fields: _Fields) -> str:
    """An object in which a key may stand twice."""
    return "{" + ", ".join(f"{json.dumps(key)}: {json.dumps(field)}" for key, field in fields) + "}"


def _entries(step: Step, due: Due, work: str, value: Value, reply_format: ReplyFormat) -> Iterator[_Entry]:
    """The entries that may show a failure at a step, the most natural first."""
    shown = reply_value(step, value)
    right = reply_format.answer(step, work, shown)
    match due.plant.failure:
        case "truncated" | "empty" | "refused":
            yield _Entry((right,), value)
        case "missing_step":
            yield _Entry((), value)
        case "duplicate_step":
            yield _Entry((right, right), value)
        case "malformed":
            yield _Entry((None,), value)
        case "self_correction":
            wrong = reply_value(step, next(_wrong_values(step, value, due.time), value))
            if not step.type.structured:
                yield _Entry((reply_format.answer(step, work, f"{wrong}, wait, {shown}"),), value)
            yield _Entry((reply_format.answer(step, work, wrong),), value, taken_back=right)
        case "wrong_value":
            for each in _wrong_values(step, value, due.time):
                yield _Entry((reply_format.answer(step, work, reply_value(step, each)),), each)
        case "wrong_operand":
            for other in _other_operands(work, due.time) if step.expression is not None else ():
                believed = _value_of(step, other, value)
                yield _Entry((reply_format.answer(step, other, reply_value(step, believed)),), believed)
        case "unfaithful_work":
            for other in (f"{work} + 0", ""):  # it comes to the same, or is not there
                yield _Entry((reply_format.answer(step, other, shown),), value)


def _wrong_values(step: Step, value: Value, time: int) -> Iterator[Value]:
    """Values that are not this one; others each time, since a guard gives up on a step that insists."""
    right = to_exact(value)
    if isinstance(right, bool):
        yield not right
    elif isinstance(right, str):
        others = [option for option in step.type.options if option != right]
        yield from others[time - 1 :] + others[: time - 1]
        yield right + "?" * time
    elif not isinstance(right, int | Fraction):  # a date, a record, a list
        yield wrong_value(step.type, value, random.Random(time))
    else:
        number = Fraction(right)
        for by in (time, -time, 1000 * time, -1000 * time, abs(number) * time):  # the last is beyond any tolerance
            with suppress(InexactError):  # a value that was made up need not be of the step's type
                yield step.type.convert(exact(number + by))


def _other_operands(work: str, time: int) -> Iterator[str]:
    """The working with another number in place of one of its own."""
    numbers = list(_DIGITS.finditer(work))
    for number in numbers:
        old = int(number[0])
        for new in (old + time, old + 1000 * time, 10 ** len(number[0]) * 10 + time, 0, *(int(n[0]) for n in numbers)):
            if new != old:
                yield f"{work[: number.start()]}{new}{work[number.end() :]}"


def _value_of(step: Step, work: str, otherwise: Value) -> Value:
    try:
        return step.type.convert(evaluate(parse_expression(work), {}))
    except (EvaluationError, ExpressionError, KeyError):
        return otherwise
