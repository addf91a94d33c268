"""A shop's returns desk: a written policy with tables, dates, thresholds and exceptions, and values of many types."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar, Final

from stepguard.core.arguments import check_number
from stepguard.evaluation.families.base import DraftedFamily, Line, RuleCheck, TaskDraft, work_through
from stepguard.evaluation.families.returns_policy import POLICY, follows_rule
from stepguard.language.values import Value, to_exact
from stepguard.procedure.inputs import Input
from stepguard.procedure.steps import Step

_STAGES: Final = ("days", "window", "in_time", "rate", "size", "fee", "refund", "total")
_TYPES: Final[Mapping[str, str]] = {
    "item": "one_of(book, clothing, electronics, furniture)",
    "condition": "one_of(unopened, opened, damaged)",
    "member": "boolean",
    "bought": "text",
    "returned": "text",
    "price": "money(USD)",
    "weight": "decimal(1)",
    "longest": "integer",
    "days": "integer",
    "window": "integer",
    "in_time": "boolean",
    "rate": "percent",
    "size": "one_of(small, medium, large)",
    "fee": "money(USD)",
    "refund": "money(USD)",
    "total": "money(USD)",
}
_READS: Final[Mapping[str, tuple[str, ...]]] = {
    "days": ("bought", "returned"),
    "window": ("item", "member"),
    "in_time": ("days", "window"),
    "rate": ("item", "condition", "in_time"),
    "size": ("weight", "longest"),
    "fee": ("size", "item", "member"),
    "refund": ("price", "rate", "fee"),
    "total": ("refund",),
}
_WINDOWS: Final = {"book": 14, "clothing": 30, "electronics": 21, "furniture": 45}
_RATES: Final = {"unopened": 100, "opened": 80, "damaged": 50}
_FEES: Final = {"small": 490, "medium": 990, "large": 2490}
_FIRST_DAY: Final = date(2024, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnsDesk(DraftedFamily):
    """Returns are settled one after the other, and what is paid out is added up: eight steps a return.

    ``days``, ``window``, ``in_time``, ``rate``, ``size``, ``fee``, ``refund`` and ``total``, of the types integer,
    boolean, percent, one_of and money. Comparisons and amounts have formulas; the rest is asked in words, with the
    rule that applies, and checked by a function. An arm that gets the whole problem at once reads the policy in
    front of the steps, and the steps refer to it. Where the length is no multiple of eight, the first return is one
    that a colleague has begun, and its results so far are inputs.

    As rules do, these can absorb an error: a return that is taken to be two days younger is as often in time as not.
    Every step matters: there is another value that would change the answer, and of ``in_time``, ``rate``, ``size``
    and the amounts every other one would. The share of runs with every step right says what the answer does not.

    Args:
        borderline: the share of returns that are on the last day of their window, or one day late.

    Raises:
        ConfigError: a knob is out of range.
    """

    example_steps: ClassVar[int] = len(_STAGES)  # one return

    borderline: float = 0.5

    def __post_init__(self) -> None:
        check_number(self.borderline, "borderline", high=1, what="a share")

    def draft(self, seed: int, length: int) -> TaskDraft:
        chance = random.Random(f"returns_desk:{float(self.borderline)!r}:{length}:{seed}")
        known: dict[str, Value] = {"paid": _dollars(chance.randint(0, 50_000))}
        types = {"paid": "money(USD)"}
        lines: list[Line] = []
        number = 0
        while len(lines) < length:
            number += 1
            left = (length - len(lines)) % len(_STAGES) or len(_STAGES)
            before = f"total_{number - 1}" if number > 1 else "paid"
            case = [_line(stage, number, before) for stage in _STAGES]
            facts = self._facts(chance, number)
            skipped = case[: len(_STAGES) - left]
            facts |= work_through(skipped, facts)
            wanted = {name for line in case[len(skipped) :] for name in line.step.reads}
            given = {name: value for name, value in facts.items() if name in wanted}
            known |= given
            types |= {name: _TYPES[name.rpartition("_")[0]] for name in given}
            lines += case[len(skipped) :]
        percentages = {name: _percent(value) for name, value in known.items() if types[name] == "percent"}
        return TaskDraft(
            name=f"returns_desk-{length}-{seed}",
            inputs=[Input(name, types[name]) for name in known],
            given={**known, **percentages},
            known=known,
            lines=lines,
            material="Policy of the returns desk:\n"
            + "".join(f"- {stage}: {rule}\n" for stage, rule in POLICY.items()),
            line_tokens=100,
        )

    def _facts(self, chance: random.Random, number: int) -> dict[str, Value]:
        """What is known about one return; no rounding of its refund is a tie."""
        while True:
            item, member = chance.choice(list(_WINDOWS)), chance.random() < 0.4
            window = _WINDOWS[item] + (10 if member else 0)
            edge = chance.random() < self.borderline
            days = window + chance.randint(0, 1) if edge else chance.randint(1, window + 20)
            bought = _FIRST_DAY + timedelta(days=chance.randint(0, 700))
            condition = chance.choice(list(_RATES))
            cents = chance.randint(20_000, 90_000)  # no refund is less than its postage
            facts: dict[str, Value] = {
                "item": item,
                "condition": condition,
                "member": member,
                "bought": bought.isoformat(),
                "returned": (bought + timedelta(days=days)).isoformat(),
                "price": _dollars(cents),
                "weight": Decimal(chance.randint(1, 300)).scaleb(-1),
                "longest": chance.randint(20, 160),
            }
            if cents * _rate(item, condition, days <= window) % 100 != 50:
                return {f"{name}_{number}": value for name, value in facts.items()}


def _line(stage: str, number: int, before: str) -> Line:
    reads = tuple(f"{name}_{number}" for name in _READS[stage])
    step_id, kind, rule = f"{stage}_{number}", _TYPES[stage], POLICY[stage]
    formulas = {"in_time": "{0} <= {1}", "refund": "{0} * {1} - {2}", "total": f"{before} + {{0}}"}
    if stage in formulas:
        step = Step(step_id, formulas[stage].format(*reads), instruction=rule.rstrip("."), type=kind)
        return Line(step=step, solve=_solver(stage, step.reads), work=_work(stage, step.reads), brief=_BRIEF[stage])
    instruction = f"{rule} Which is it for {', '.join(reads)}?"
    check = RuleCheck(stage, follows_rule, (stage, reads))
    step = Step(step_id, instruction=instruction, type=kind, reads=reads, checks=[check])
    brief = f"{_BRIEF[stage]} from {', '.join(reads)}, as the policy says"
    return Line(step=step, solve=_solver(stage, reads), work=_work(stage, reads), brief=brief)


_BRIEF: Final[Mapping[str, str]] = {
    "days": "The days", "window": "The return window in days", "in_time": "Whether it is in time",
    "rate": "The refund rate", "size": "The size of the parcel", "fee": "The postage", "refund": "The refund",
    "total": "Paid out so far",
}  # fmt: skip


def _solver(stage: str, reads: tuple[str, ...]) -> Callable[[Mapping[str, Value]], Value]:
    solve = _SOLVE[stage]
    return lambda values: solve(*(values[name] for name in reads))


def _work(stage: str, reads: tuple[str, ...]) -> Callable[[Mapping[str, Value]], str]:
    def show(values: Mapping[str, Value]) -> str:
        texts = [_text(values[name], _TYPES.get(name.rpartition("_")[0], "money(USD)")) for name in reads]
        return _WORK[stage].format(*texts)

    return show


_WORK: Final[Mapping[str, str]] = {
    "days": "from {0} to {1}",
    "window": "{0}, member {1}",
    "in_time": "{0} <= {1}",
    "rate": "{0}, {1}, in time {2}",
    "size": "{0} kg, longest side {1} cm",
    "fee": "{0}, {1}, member {2}",
    "refund": "{0} * {1} - {2}",
    "total": "{0} + {1}",
}


def _text(value: Value, kind: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return _percent(value) if kind == "percent" else str(value)


# The policy once more, as plain computation: the checks in `returns_policy` share nothing with it.


def _rate(item: str, condition: str, in_time: bool) -> int:
    percent = _RATES[condition]
    if item == "electronics" and condition == "opened":
        percent = 70
    return percent if in_time else percent - 30


def _days(bought: Value, returned: Value) -> Value:
    return (date.fromisoformat(str(returned)) - date.fromisoformat(str(bought))).days


def _window(item: Value, member: Value) -> Value:
    return _WINDOWS[str(item)] + (10 if member else 0)


def _rated(item: Value, condition: Value, in_time: Value) -> Value:
    percent = _rate(str(item), str(condition), bool(in_time))
    return 1 if percent == 100 else Fraction(percent, 100)


def _size(weight: Value, longest: Value) -> Value:
    if int(to_exact(longest)) > 120 or Decimal(str(weight)) > 20:
        return "large"
    return "small" if Decimal(str(weight)) <= 2 else "medium"


def _fee(size: Value, item: Value, member: Value) -> Value:
    cents = _FEES[str(size)]
    if member:
        cents //= 2
    return _dollars(cents + (1_500 if item == "furniture" else 0))


def _refund(price: Value, rate: Value, fee: Value) -> Value:
    hundredths = Fraction(str(price)) * Fraction(to_exact(rate)) * 100 - Fraction(str(fee)) * 100
    cents = int(abs(hundredths) + Fraction(1, 2))
    return _dollars(cents if hundredths >= 0 else -cents)


def _total(before: Value, refund: Value) -> Value:
    return Decimal(str(before)) + Decimal(str(refund))


_SOLVE: Final[Mapping[str, Callable[..., Value]]] = {
    "days": _days,
    "window": _window,
    "in_time": lambda days, window: int(days) <= int(window),
    "rate": _rated,
    "size": _size,
    "fee": _fee,
    "refund": _refund,
    "total": _total,
}


def _dollars(cents: int) -> Decimal:
    return Decimal(cents).scaleb(-2)


def _percent(value: Value) -> str:
    return f"{int(Fraction(to_exact(value)) * 100)}%"
