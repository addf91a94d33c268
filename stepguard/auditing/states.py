"""The two states that a claim is judged against: what is true, and what the transcript itself says."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from stepguard.auditing.findings import StepAudit
from stepguard.auditing.names import Entry
from stepguard.checks import judge_claims
from stepguard.core.verdicts import Claim, DeviationKind
from stepguard.errors import EvaluationError, ValueRefused
from stepguard.language.evaluation import evaluate
from stepguard.language.expression_parsing import parse_expression
from stepguard.language.expressions import names_in
from stepguard.language.numerals import read_numeral
from stepguard.language.values import Value
from stepguard.procedure.steps import Step

_LETTER: Final = re.compile(r"[A-Za-z_]")
_NAME: Final = re.compile(r"[A-Za-z_]\w*\Z")
_SINGLE: Final = re.compile(r"[-+(]{0,3}[0-9.,]+\)?\Z")


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the checks say of one claim under one state: whether it passes (None: they cannot say), and why not."""

    passed: bool | None
    kind: DeviationKind | None = None
    reason: str = ""


class Claimed:
    """What a transcript says a variable is, at every place of it."""

    def __init__(self) -> None:
        self._places: dict[str, list[int]] = {}
        self._values: dict[str, list[Value]] = {}

    def add(self, name: str, place: int, value: Value) -> None:
        """Note a value; places come in rising order for each name."""
        self._places.setdefault(name, []).append(place)
        self._values.setdefault(name, []).append(value)

    def before(self, name: str, place: int) -> Value | None:
        """The last value that stands before a place, None where there is none."""
        at = bisect_left(self._places.get(name, []), place)
        return self._values[name][at - 1] if at else None


@dataclass(slots=True)
class Judge:
    """Judges claims about one step.

    Args:
        timeout: seconds that one check of the user's may take.
    """

    step: Step
    timeout: float | None = None
    _value_only: Step = field(init=False)
    _with_work: Step | None = field(init=False)

    def __post_init__(self) -> None:
        step = self.step
        self._with_work = None
        if step.expression is None:
            self._value_only = step
            return
        self._value_only = Step(step.id, step.expression, type=step.type, checks=step.checks, show_work=False)
        if step.show_work:
            self._with_work = Step(step.id, step.expression, type=step.type, show_work=True)

    def read(self, entry: Entry) -> Value | None:
        """The value of a claim, None where it is no value of the step's type."""
        if entry.value is None:
            return None
        try:
            return self.step.read(entry.value)
        except ValueRefused:
            return None

    def expected(self, values: Mapping[str, Value]) -> Value | None:
        """The exact value of the step, None where none can be computed."""
        if self.step.expression is None or any(name not in values for name in self.step.reads):
            return None
        try:
            return self.step.type.convert(evaluate(self.step.expression, values))
        except EvaluationError:
            return None

    def judge(self, entry: Entry, values: Mapping[str, Value]) -> Ruling:
        """Judge a claim against one state."""
        missing = [name for name in self.step.reads if name not in values]
        if missing:
            return Ruling(None, reason=f"the value of {missing[0]} is not known")
        assert entry.value is not None
        claim = Claim(self.step.id, (), entry.value, entry.value)
        judged = judge_claims((self._value_only,), (claim,), values, timeout=self.timeout)[0]
        verdict = judged.verdict
        if verdict is None:
            return Ruling(None, reason="no check applies")
        if verdict.outcome == "undecided":
            return Ruling(None, reason=verdict.reason)
        worked = self._work(entry, values, judged.value)
        if verdict.outcome == "pass":
            return worked or Ruling(True, reason=verdict.reason)
        if worked is not None and worked.kind == "wrong_operand":
            return worked
        return Ruling(False, verdict.kind or "wrong_value", verdict.reason)

    def _work(self, entry: Entry, values: Mapping[str, Value], value: Value | None) -> Ruling | None:
        """What is wrong with the working, None where nothing is, or none is shown."""
        if self._with_work is None or value is None:
            return None
        for links in _workings(entry.work):
            if links == (self.step.formula,):
                continue  # the formula itself, letter for letter
            claim = Claim(self.step.id, links, entry.value or "", entry.value or "")
            judged = judge_claims((self._with_work,), (claim,), values)[0].verdict
            if judged is not None and judged.kind in ("wrong_operand", "unfaithful_work"):
                return Ruling(False, judged.kind, judged.reason)
        unequal = next((side for side in entry.work if _SINGLE.match(side) and not self._equals(side, value)), None)
        return None if unequal is None else Ruling(False, "unfaithful_work", f"{unequal!r} is not {entry.value}")

    def _equals(self, side: str, value: Value) -> bool:
        """Whether one number in front of the value is the value, as it stands or rounded as the step is."""
        try:
            number = read_numeral(side).value
            return number == value or not self.step.type.numeric or self.step.type.convert(number) == value
        except (ValueRefused, EvaluationError):
            return True


def _workings(work: Sequence[str]) -> list[tuple[str, ...]]:
    """The workings in a chain: its formulas in names, and its calculation in numbers, each of which begins anew."""
    formulas: list[str] = []
    numbers: list[str] = []
    for side in work:
        if _LETTER.search(side) and names_in(parse_expression(side)):
            formulas.append(side)
        elif numbers or not _SINGLE.match(side):
            numbers.append(side)
    if len(formulas) > 1:
        formulas = [side for side in formulas if not _NAME.match(side)]
    return [links for links in (tuple(formulas[:1]), tuple(numbers)) if links]


def claims_of(steps: Iterable[tuple[Step, Judge, list[Entry]]]) -> Claimed:
    """What a transcript says of steps, at every place of it."""
    read = ((entry.start, step.id, judge.read(entry)) for step, judge, entries in steps for entry in entries)
    claimed = Claimed()
    for place, name, value in sorted(read, key=lambda each: each[0]):
        if value is not None:
            claimed.add(name, place, value)
    return claimed


def value_after(verdict: StepAudit, entries: list[Entry], judge: Judge, expected: Value | None) -> Value | None:
    """The value that the right run goes on with behind a step that is judged."""
    read = judge.read(entries[-1]) if entries and verdict.verdict in ("right", "not_judged") else None
    return read if expected is None or verdict.verdict == "right" else expected


def telling(entries: list[Entry], judge: Judge) -> Entry:
    """The entry that a step is judged by: the last one, or where that repeats a value, the one that worked it out."""
    last = entries[-1]
    if not last.work and len(entries) > 1:
        value = judge.read(last)
        for entry in reversed(entries[:-1]):
            if entry.work and value is not None and judge.read(entry) == value:
                return entry
    return last


def says_something(body: str) -> bool:
    """Whether a text has an equation in it, so that it carries out something, whatever it calls that."""
    return "=" in body and any(sign.isdigit() for sign in body)
