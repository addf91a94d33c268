"""The arithmetic family: pinned instances, every knob, and the proof that no error is erased."""

from __future__ import annotations

import hashlib
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from family_harness import feeding, rerun
from tables import all_rows

from stepguard.evaluation.families import Arithmetic, Task
from stepguard.evaluation.families.base import RuleCheck
from stepguard.language.expressions import format_expression
from stepguard.language.values import Value, to_exact

pytestmark = pytest.mark.once

KNOBS: list[dict[str, Any]] = [
    *({}, {"look_back": 1}, {"look_back": 2}, {"look_back": 7}, {"look_back": 1, "binding": True}),
    *({"look_back": 2, "binding": True}, {"look_back": 3, "binding": True}, {"look_back": 7, "binding": True}),
    *({"look_back": 4, "binding": True, "operations": "+-", "places": 3}, {"places": 2}),
    *({"places": 3, "input_low": 0, "input_high": 1}, {"places": 3, "operations": "+-*/"}),
    *({"look_back": 2, "places": 1, "operations": "+-/"}, {"look_back": 1, "places": 2, "operations": "+-*/"}),
    *({"input_low": 10, "input_high": 100, "limit": 1000}, {"operations": "-"}, {"operations": "+-"}),
    *({"distractors": 0.3}, {"look_back": 2, "distractors": 0.2}, {"look_back": 3, "distractors": 0.5}),
    {"binding": True, "distractors": 0.3},
    {"form": "sentence", "places": 2, "operations": "+-*/", "distractors": 0.1},
]

# Of the statements and truths that the first version of this family made.
FIRST = "cf2c041864fe7568cb48843a52076afc87333c9df429c27ad8998aaffcd0c33b"
FIRST_LONG = "4603ccb901a7aeac2cbf67d761461a1596c882f98b4db47089423d83dc6c726b"
WORDS = "ddcdcc7b730040184a96b0541246f98070bb379490bfbbf03ff8fe3e165f9f3d"
PINNED = [  # by statement and truth, in the order of KNOBS
    "42041ff9", "a78d957d", "82bc2e55", "73ffa7fb", "39970171", "a5176edf", "e11514f0", "01531e46",
    "4e42d8ab", "f0b15750", "047bfb01", "053db7f4", "1e71bc74", "c2d0eec3", "f574c19c", "c4177299",
    "4c69533d", "3f311056", "242bf585", "0deb7127", "bd1acb62", "42b1f350",
]  # fmt: skip


@pytest.fixture(params=KNOBS, ids=str)
def family(request: pytest.FixtureRequest) -> Arithmetic:
    return Arithmetic(**request.param)


def number(value: Value) -> Fraction:
    assert not isinstance(value, str | bool)
    return Fraction(to_exact(value))


def digest(family: Arithmetic, lengths: tuple[int, ...], seeds: int) -> str:
    made = hashlib.sha256()
    for length in lengths:
        for seed in range(seeds):
            task = family.make(seed, length)
            made.update(f"{task.statement}|{dict(task.truth)}\n".encode())
    return made.hexdigest()


@pytest.mark.slow
def test_the_first_programs_are_what_they_always_were() -> None:
    """Recorded outcomes of real models rest on these instances: not one byte of them may change."""
    assert digest(Arithmetic(), (1, 2, 3, 5, 8, 20, 50), 20) == FIRST
    assert digest(Arithmetic(), (95, 128), 1) == FIRST_LONG


def test_formulas_over_integers_are_asked_as_they_were() -> None:
    """An arm in free text gets the same example and the same words as in the recorded runs."""
    task = Arithmetic().make(0, 5)
    shown = task.demonstration
    words = hashlib.sha256(f"{shown.system}|{shown.question}|{shown.answer}".encode()).hexdigest()
    assert words == WORDS
    assert task.statement == "Values:\nx = 80\ny = 30\nSteps:\n" + "\n".join(
        ["t1 = x - y", "t2 = t1 * 2", "t3 = y * 5", "t4 = t2 - x", "t5 = t3 + t4"]
    )


def test_pinned_instances() -> None:
    """Whatever the knobs, a seed means the same instance on every machine and Python version."""
    found = [digest(Arithmetic(**knobs), (5, 30), 3)[:8] for knobs in KNOBS]
    assert found == PINNED


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 2, 3, 10, 41, 95])
def test_every_instance_can_be_solved(family: Arithmetic, length: int) -> None:
    """Results are within the limit, nothing is divided by a value, no result is a tie, and the truth is right."""
    for seed in range(3):
        task = family.make(seed, length)
        assert rerun(task) == dict(task.truth)
        assert all(abs(number(value)) <= family.limit for value in task.truth.values())
        assert all(family.input_low <= number(value) <= family.input_high for value in task.inputs.values())
        unit = Fraction(1, 10 ** (family.places or 0))
        for formula, state in formulas(task):
            left, sign, right = formula.split()
            if sign in "*/":
                assert right in "23456789"
            if sign == "/":
                exact = number(state[left]) / int(right)
                assert exact / unit % 1 != Fraction(1, 2)


@pytest.mark.slow
def test_a_thousand_steps(family: Arithmetic) -> None:
    """Every knob goes up to a thousand steps."""
    task = family.make(0, 1000)
    assert len(task.procedure) == 1000
    assert rerun(task) == dict(task.truth)
    assert len(feeding(task) & set(task.truth)) == 1000 - task.facts["distractors"]


def test_no_error_is_erased(family: Arithmetic) -> None:
    """A wrong value in any step that feeds the answer, with all after it done right, ends in a wrong answer."""
    unit = Fraction(1, 10 ** (family.places or 0))
    chance = random.Random(0)
    for seed in range(2):
        task = family.make(seed, 15)
        for name in sorted(feeding(task) & set(task.truth)):
            for by in (1, -1, -chance.randint(2, 99), chance.randint(100, 999)):
                wrong = typed(number(task.truth[name]) + by * unit, family)
                assert rerun(task, {name: wrong})[task.procedure.answer] != task.answer


def test_the_look_back_is_kept(family: Arithmetic) -> None:
    """No step reads further back than it may, the inputs counted as the values in front of the first step."""
    for seed in range(2):
        task = family.make(seed, 50)
        order = [*task.inputs, *task.truth]
        for step in task.procedure.steps:
            at = order.index(step.id)
            # With a look-back of one there is one input.
            assert all(at - order.index(name) <= family.look_back for name in step.reads)


@all_rows("look_back", range(1, 8))
def test_a_binding_look_back_binds(look_back: int) -> None:
    """Most sums read exactly that far back, whatever the look-back, and all steps lie on one chain."""
    family = Arithmetic(look_back=look_back, binding=True, operations="+-")
    for length in (40, 95):
        task = family.make(1, length)
        assert task.facts["depth"] == length
        assert task.facts["look_back"] == look_back
        assert task.facts["bound"] >= 0.75 * length
        order = [*task.inputs, *task.truth]
        for step in task.procedure.steps:
            assert order[order.index(step.id) - 1] in step.reads


def test_distractors_are_as_many_as_asked_for() -> None:
    """The share is kept over the whole length, and no step that feeds the answer reads a distractor."""
    for share in (0.1, 0.3, 0.5):
        task = Arithmetic(look_back=4, distractors=share).make(2, 100)
        idle = set(task.truth) - feeding(task)
        assert len(idle) == task.facts["distractors"] == round(100 * share)
        assert idle & set(list(task.truth)[:50])
        assert idle & set(list(task.truth)[50:])


def test_both_forms_ask_for_the_same_numbers() -> None:
    """The sentence form is the formula form in other words, and shows no formula to any arm."""
    knobs: dict[str, Any] = {"places": 2, "operations": "+-*/"}
    plain, worded = Arithmetic(**knobs).make(7, 30), Arithmetic(form="sentence", **knobs).make(7, 30)
    assert (plain.inputs, plain.truth, plain.facts) == (worded.inputs, worded.truth, worded.facts)
    for one, other in zip(plain.procedure.steps, worded.procedure.steps, strict=True):
        assert other.formula is None
        assert set(one.reads) == set(other.reads)
        assert one.formula is not None
        assert one.formula not in worded.statement
    assert len({step.instruction.split()[0] for step in worded.procedure.steps if step.instruction}) > 4


def test_decimals_state_how_they_are_rounded() -> None:
    """Every step of a program over decimals says its places, in the statement, too."""
    task = Arithmetic(places=3, operations="+-*/").make(0, 10)
    assert task.statement.count("rounded to 3 decimal places") == 10


def formulas(task: Task) -> list[tuple[str, dict[str, Value]]]:
    """The formula of each step, also where only a sentence is asked, and the values it is over."""
    state: dict[str, Value] = {**task.inputs, **task.truth}
    found: list[tuple[str, dict[str, Value]]] = []
    for step in task.procedure.steps:
        if step.formula is not None:
            found.append((step.formula, state))
        else:
            (check,) = step.checks
            assert isinstance(check, RuleCheck)
            found.append((format_expression(check.args[0]), state))  # type: ignore[arg-type]
    return found


def typed(value: Fraction, family: Arithmetic) -> Value:
    if family.places is None:
        return int(value)
    return (Decimal(value.numerator) / Decimal(value.denominator)).quantize(Decimal(1).scaleb(-family.places))
