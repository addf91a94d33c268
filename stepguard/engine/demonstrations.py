"""Demonstrations: steps that stand, with their right answers, in front of those that are asked.

One of the same kind is shown for every kind of step: the author's own (`stepguard.procedure.examples`), the one whose
values have most words in common with those at hand, or a built-in one. Built-in ones read `EXAMPLE_VALUES`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from stepguard.language.evaluation import evaluate, substitute
from stepguard.language.expressions import Chain, Expression
from stepguard.language.records import RecordType
from stepguard.language.value_types import NUMBER, TEXT, ValueType
from stepguard.language.values import Value, is_document, show_value
from stepguard.procedure.examples import Example
from stepguard.procedure.steps import Step
from stepguard.replies.formats import ReplyFormat

EXAMPLE_VALUES: Final[Mapping[str, Value]] = {
    "a": -14,
    "b": 36,
    "c": "Lyon, France",
    "d": "Lease of 3 May 2024: a room of 35 m^2, keys at 9:30 am, for 18 months; deposit back within 14 days.",
    "e": "2 chairs at 40.00, 1 desk at 120.50",
    "f": date(2023, 12, 30),
    "g": date(2024, 3, 2),
    "h": timedelta(days=40),
    "i": timedelta(days=28),
}
"""What the steps of demonstrations read."""

PLAIN_KINDS: Final = frozenset({"words", "value", "fraction", "percent", "boolean", "formula", "decimal"})
"""The kinds of steps of arithmetic, and of words that are answered by a text or a number."""

_IN_WORDS: Final = frozenset(
    {"words", "date", "time", "duration", "period", "quantity", "record", "list", "records", "cited"}
    | {"elapsed", "later", "compared", "copied"}
)
_DATE: Final = ValueType(kind="date")
_LEASE: Final = ValueType(
    kind="record", record=RecordType("Lease", (("begins", _DATE), ("months", ValueType(kind="integer"))))
)
_GOODS: Final = ValueType(
    kind="list", items=ValueType(kind="record", record=RecordType("Good", (("what", TEXT), ("price", NUMBER))))
)
_BUILT_IN: Final[Mapping[str, tuple[str, str, ValueType, str, str]]] = {
    # kind: instruction, what is read, type, working, value
    "cited": (
        'Is the deposit paid back within a month? Quote in "work" the words of d that decide it.', "d",
        ValueType(kind="boolean"), 'd says "deposit back within 14 days", which is less than a month', "true",
    ),
    "date": ("Name the day of the lease in d.", "d", _DATE, 'd says "Lease of 3 May 2024"', "2024-05-03"),
    "time": ("When are the keys given in d?", "d", ValueType(kind="time"), 'd says "keys at 9:30 am"', "09:30"),
    "duration": (
        "Within which time is the deposit of d paid back?", "d", ValueType(kind="duration"),
        'd says "deposit back within 14 days"', "14 days",
    ),
    "period": ("For how long is the lease in d?", "d", ValueType(kind="period"), 'd says "for 18 months"', "18 months"),
    "quantity": (
        "How large is the room in d?", "d", ValueType(kind="quantity", unit=(("meter", 2),)),
        'd says "a room of 35 m^2"', "35 m^2",
    ),
    "record": (
        "Read the lease in d.", "d", _LEASE, 'd says "Lease of 3 May 2024" and "for 18 months"',
        '{"begins": "2024-05-03", "months": "18"}',
    ),
    "list": (
        "List the goods in e.", "e", ValueType(kind="list", items=ValueType(kind="text")), 'e says "chairs" and "desk"',
        '["chairs", "desk"]',
    ),
    "records": (
        "List the goods in e, each with its price.", "e", _GOODS, 'e says "chairs at 40.00" and "desk at 120.50"',
        '[{"what": "chairs", "price": "40.00"}, {"what": "desk", "price": "120.50"}]',
    ),
    "elapsed": (
        "Work out g - f.", "g f", ValueType(kind="duration"),
        "31 - 30 = 1 day is left of December, then 31 of January, 29 of February, 2 of March: 1 + 31 + 29 + 2 = 63",
        "63 days",
    ),
    "later": (
        "Work out f + h.", "f h", _DATE,
        "December 30 + 40 = 70; less the 31 days of December 39; less the 31 of January 8: February 8", "2024-02-08",
    ),
    "compared": ("Work out h <= i.", "h i", ValueType(kind="boolean"), "40 days is more than 28 days", "false"),
    "copied": ("Work out c.", "c", TEXT, "c is Lyon, France", "Lyon, France"),
}  # fmt: skip
_COMPUTED: Final = {"duration": "elapsed", "date": "later", "boolean": "compared", "text": "copied", "one_of": "copied"}
"""The kinds of steps that are worked out in words, by the type of their value."""
_FIRST: Final = 10
"""The number of the first built-in demonstration: `example_steps` has s1 to s9."""
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class DemonstratedStep:
    """A step with its right answer: of one with an expression both follow, of others they are given as text."""

    step: Step
    work: str = ""
    value: str = ""


def demonstrated_kind(step: Step) -> str:
    """The kind of a step, of which one is demonstrated."""
    if step.expression is None:
        kind = step.type.kind
        if step.exact is not None and kind in _COMPUTED:
            return _COMPUTED[kind]
        if not step.type.structured and any(getattr(check, "request", None) for check in step.checks):
            return "cited"
        if step.type.items is not None:
            return "records" if step.type.items.structured else "list"
        return kind if kind in _BUILT_IN else "words"
    if not step.show_work:
        return "value"
    kind = step.type.kind
    if kind == "number" and step.type.within is None and divides(step.expression):
        return "fraction"
    if kind in ("percent", "boolean"):
        return kind
    return "formula" if step.type.places is None else "decimal"


def divides(tree: Expression) -> bool:
    """Whether a sum or product has a division in it."""
    if type(tree) is not Chain:
        return False
    return "/" in tree.operators or any(divides(operand) for operand in tree.operands)


def example_steps(kinds: Iterable[str]) -> list[DemonstratedStep]:
    """Steps that demonstrate some kinds; they read `EXAMPLE_VALUES` and each other, and nothing of what is asked."""
    has = frozenset(kinds)
    examples: list[DemonstratedStep] = []
    if not has or not has <= _IN_WORDS:
        examples += [_computed("s1", "a + b"), _computed("s2", "s1 * 3"), _computed("s3", "a - s1")]
    if "decimal" in has:
        examples.append(_computed("s4", "s2 / b", type="decimal(2)"))
    if "fraction" in has:
        examples.append(_computed("s8", "a / b"))
    if "percent" in has:
        examples.append(_computed("s9", "s1 / b", type="percent(1)"))
    if "boolean" in has:
        examples.append(_computed("s5", "s2 > b", type="boolean"))
    if "value" in has:
        examples.append(DemonstratedStep(Step("s6", "b * 2", show_work=False)))
    if "words" in has:
        step = Step("s7", instruction="Name the country in c.", reads=["c"])
        examples.append(DemonstratedStep(step, f"c is {EXAMPLE_VALUES['c']}", "France"))
    return examples + [own_demonstration(kind) for kind in _BUILT_IN if kind in has]


def _computed(id: str, expression: str, type: str | None = None) -> DemonstratedStep:
    return DemonstratedStep(Step(id, expression, type=type))


def own_demonstration(kind: str) -> DemonstratedStep:
    """The built-in demonstration of a kind of step in words."""
    if kind not in _BUILT_IN:
        return example_steps({"words"})[0]
    instruction, reads, value_type, work, value = _BUILT_IN[kind]
    number = _FIRST + list(_BUILT_IN).index(kind)
    step = Step(f"s{number}", instruction=instruction, reads=reads.split(), type=value_type)
    return DemonstratedStep(step, work, value)


def authored(step: Step, example: Example, number: int) -> tuple[DemonstratedStep, dict[str, Value]]:
    """An example of the author's as a demonstration, and the values that it reads."""
    reads = dict(example.reads)
    shown = Step(f"e{number}", instruction=step.instruction, reads=list(reads), type=step.type)
    value = step.type.write(step.type.accept(example.value))
    return DemonstratedStep(shown, example.work, value), reads


def fitting_example(step: Step, values: Mapping[str, Value]) -> Example | None:
    """The example whose values have most words in common with those that a step reads now; of equals the first."""
    if len(step.examples) < 2:
        return step.examples[0] if step.examples else None
    now = _words(values[name] for name in step.reads if name in values)
    shared = [len(_words(value for _, value in example.reads) & now) for example in step.examples]
    return step.examples[shared.index(max(shared))]


def _words(values: Iterable[Value]) -> set[str]:
    """The words of short values: a document has too many to say anything."""
    return {word for value in values if not is_document(value) for word in _WORD.findall(show_value(value).lower())}


def answers(demonstrations: Sequence[DemonstratedStep], state: dict[str, Value], reply_format: ReplyFormat) -> str:
    """The reply that answers some demonstrations; `state` takes their values in."""
    answer: dict[str, object] = {}
    for demonstration in demonstrations:
        step = demonstration.step
        if step.expression is None:
            answer[step.id] = reply_format.answer(step, demonstration.work, demonstration.value)
            continue
        value = step.type.convert(evaluate(step.expression, state))
        answer[step.id] = reply_format.answer(step, substitute(step.expression, state), step.type.write(value))
        state[step.id] = value
    return json.dumps(answer)
