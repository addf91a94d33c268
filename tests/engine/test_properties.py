"""Whatever a model replies, no wrong step is ever committed.

Programs are those of the certification, made together with their truth: nothing of the checker, the expression
language or the values module has a hand in it.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import islice

import pytest
from certification import steps  # type: ignore[import-not-found, unused-ignore]
from certification.traces import Trace, make_trace
from certification.truth import Truth
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from stepguard import Guard, Procedure, Result, Step
from stepguard.backends import Completion, Request
from stepguard.testing import SimulatedModel, Slips

assert steps  # its kinds of steps are those of the programs


def make_program(seed: int) -> Trace:
    """A procedure of up to six steps that no words and no tolerance settle, with the truth about each."""
    chance = random.Random(f"program:{seed}")
    length = chance.randint(1, 6)
    while True:
        trace = make_trace(chance, length=length)
        if all(made.tree is not None and made.spec.within is None for made in trace.steps):
            return trace


def wrong_steps(program: Trace, result: Result) -> list[str]:
    """The steps whose committed value is not the truth, in the records and in the values alike."""
    wrong: list[str] = []
    truth = {made.id: made.truth for made in program.steps}
    for record in result.steps:
        name = record.occurrence.step
        if not _same(record.value, truth[name]) or not _same(result.values[name], truth[name]):
            wrong.append(name)
    return wrong


def _same(found: object, truth: Truth) -> bool:
    if not isinstance(truth, Fraction):
        return type(found) is type(truth) and found == truth
    return isinstance(found, int | Fraction | Decimal) and not isinstance(found, bool) and Fraction(found) == truth


def consistent(program: Trace, result: Result) -> bool:
    """Whether status, answer and counts say the same."""
    finished = result.status == "verified"
    order = [record.occurrence.index for record in result.steps]
    return (
        (result.completed == result.total) == finished
        and (result.answer is not None) == finished
        and (result.problem is None) == finished
        and result.completed == len(result.steps)
        and order == sorted(set(order))
        and len(result.attempts) == result.usage.calls
        and sum(attempt.committed for attempt in result.attempts) == result.completed
        and set(result.values) == set(program.inputs) | {record.occurrence.step for record in result.steps}
    )


def _random_slips(chance: random.Random) -> Slips:
    names = Slips.__slots__
    chosen = chance.sample(names, chance.randint(1, 5))
    return replace(Slips.none(), **{name: chance.choice([0.02, 0.1, 0.3, 0.6]) for name in chosen})


def _guards(chance: random.Random) -> Iterator[Guard]:
    """Guards of every shape, each with a model of its own."""
    while True:
        seed = chance.getrandbits(30)
        slips = Slips.all(chance.choice([0.01, 0.05, 0.2, 0.5]), systematic=chance.random())
        if chance.random() < 0.5:
            slips = _random_slips(chance)
        yield Guard(
            SimulatedModel(seed, slips=slips),
            segment=chance.randint(1, 12),
            parallel=chance.randint(1, 4),
            repair=chance.randint(0, 3),
            seed=seed,
        )


@pytest.mark.slow
@pytest.mark.once
def test_ten_thousand_runs_commit_no_wrong_step() -> None:
    """Over random programs, guards and slips, no committed step is wrong, and the books agree with the status."""
    statuses: Counter[str] = Counter()
    for seed in range(500):
        program = make_program(seed)
        for guard in islice(_guards(random.Random(f"guards:{seed}")), 20):
            result = guard.run(program.procedure, program.inputs)
            assert wrong_steps(program, result) == [], (seed, result)
            assert consistent(program, result), (seed, result)
            statuses[result.status] += 1
    assert statuses.total() == 10_000
    assert set(statuses) == {"verified", "abstained"}
    assert min(statuses.values()) > 1_000  # neither outcome is rare, or this would show little


def test_the_same_runs_without_checking_do_commit_wrong_steps() -> None:
    """The test above has something to find: an observing guard takes wrong values, and its runs are not verified."""
    wrong = 0
    for seed in range(60):
        program = make_program(seed)
        guard = Guard(SimulatedModel(seed, slips=replace(Slips.none(), wrong_value=0.3)), observe=True)
        result = guard.run(program.procedure, program.inputs)
        assert result.status == "unverified"
        assert not any(record.verified for record in result.steps)
        wrong += bool(wrong_steps(program, result))
    assert wrong > 24


def test_a_model_that_does_not_slip_is_verified_at_once() -> None:
    """Right replies are accepted on the first try, in every shape of guard."""
    for seed in range(120):
        program = make_program(seed)
        guard = Guard(SimulatedModel(seed, slips=Slips.none()), segment=1 + seed % 12, parallel=1 + seed % 4)
        result = guard.run(program.procedure, program.inputs)
        assert result.status == "verified", (seed, result.problem)
        assert wrong_steps(program, result) == []
        assert {attempt.outcome for attempt in result.attempts} == {"accepted"}


class _Mangler:
    """A right reply with characters changed, dropped, doubled or swapped at random."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._right = SimulatedModel(slips=Slips.none())

    def complete(self, request: Request) -> Completion:
        text = list(self._right.complete(request).text or "")
        for _ in range(self._chance.randint(0, 3)):
            at = self._chance.randrange(len(text))
            match self._chance.randrange(5):
                case 0:
                    del text[at]
                case 1:
                    text.insert(at, text[at])
                case 2:
                    text[at] = self._chance.choice('0123456789-+*/=<>().,:" {}%e_tx\u2212\u00bd')
                case 3:
                    text.insert(at, self._chance.choice("0123456789-+.,="))
                case _:
                    text.insert(0, text.pop(at))
        return Completion("".join(text))


@pytest.mark.slow
@pytest.mark.once
def test_mangled_replies_commit_no_wrong_step() -> None:
    """Right replies with random damage never lead to a wrong step."""
    statuses: Counter[str] = Counter()
    for seed in range(2_000):
        program = make_program(seed % 400)
        guard = Guard(_Mangler(seed), segment=1 + seed % 5, repair=2, seed=seed)
        result = guard.run(program.procedure, program.inputs)
        assert wrong_steps(program, result) == [], (seed, result)
        statuses[result.status] += 1
    assert min(statuses["verified"], statuses["abstained"]) > 50


@examples(100)
@given(texts=st.lists(st.text(max_size=60), min_size=1, max_size=4))
def test_any_text_ends_in_a_result(texts: list[str]) -> None:
    """Whatever text a model returns, the run ends in a result that is valid JSON, and names the step."""
    procedure = Procedure([Step("t1", "x + y"), Step("t2", "t1 * 3")], inputs=["x", "y"])
    left = iter(texts)
    result = Guard(lambda messages: next(left, None), repair=3).run(procedure, {"x": 12, "y": 7})
    assert result.status == "abstained"
    assert result.problem is not None
    assert result.problem.occurrence.step == "t1"
    assert result.to_json().isascii()
