"""Problems of the reasoning-gym package: their answers and their intermediate states, through a guard.

Each problem is answered rightly and, once more, with one step or state made wrong. What is right, the generator says:
its answer must be what comes out, its states must be accepted, and nothing that differs from them.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from importlib import import_module
from typing import Any

from certification.looks import Look, show
from certification.python_reading import tree_of, value_of
from certification.truth import Bin, Lit, Neg, Tree, Truth, Var, compute, number_text
from outside_states import accepted_states

from stepguard import Guard, Procedure, Step
from stepguard.backends import Completion, Request

__all__ = ["GENERATORS", "Counted", "generated"]

Problem = Mapping[str, Any]
_NAMES = Look(names=True)


@dataclass(slots=True)
class Counted:
    """What came of the problems of one generator."""

    counts: Counter[str] = field(default_factory=Counter)
    disagreements: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {**dict(sorted(self.counts.items())), "disagreements": self.disagreements}


def generated(name: str, size: int, seed: int) -> dict[str, Any]:
    """The figures of one generator.

    Raises:
        ImportError: the package is not installed.
    """
    dataset: Any = import_module("reasoning_gym").create_dataset(name, size=size, seed=seed)
    chance = random.Random(f"{name}:{seed}")
    counted = Counted()
    for index in range(size):
        counted.counts["problems"] += 1
        GENERATORS[name](dataset[index], chance, counted, dataset)
    return counted.to_dict()


@dataclass(frozen=True, slots=True)
class _Fixed:
    entries: Mapping[str, str]

    def complete(self, request: Request) -> Completion:
        return Completion(json.dumps({step.id: self.entries[step.id] for step in request.steps}))


def _operations(tree: Tree) -> Iterator[tuple[str, Tree]]:
    """The operations of an expression as steps, inner ones first."""
    number = 0
    steps: list[tuple[str, Tree]] = []

    def reduced(node: Tree) -> Tree:
        nonlocal number
        match node:
            case Bin(operator, left, right):
                one, two = reduced(left), reduced(right)
                number += 1
                steps.append((f"t{number}", Bin(operator, one, two)))
                return Var(f"t{number}")
            case Neg(operand):
                inner = reduced(operand)
                return Lit(-inner.value) if isinstance(inner, Lit) else Neg(inner)
            case _:
                return node

    last = reduced(tree)
    if not isinstance(last, Var):
        steps.append((f"t{number + 1}", last))
    yield from steps


def _arithmetic(problem: Problem, text: str, answer: str, chance: random.Random, counted: Counted) -> None:
    state: dict[str, Truth] = {}
    entries: dict[str, str] = {}
    steps: list[Step] = []
    for name, tree in _operations(tree_of(text)):
        value = compute(tree, state)
        assert isinstance(value, Fraction)
        steps.append(Step(name, show(tree, state, _NAMES)))
        entries[name] = f"{show(tree, state)} = {number_text(value)}"
        state[name] = value
    procedure = Procedure(steps)
    result = Guard(_Fixed(entries), segment=20, repair=0, seed=0).run(procedure)
    counted.counts["right_steps"] += len(steps)
    counted.counts["right_steps_accepted"] += sum(record.verified for record in result.steps)
    wanted = Fraction(answer)
    if result.verified and Fraction(str(result.answer)) != wanted and value_of(text.replace("/", "//")) == wanted:
        # The problem has a division that does not come out, and the generator cuts its result off.
        counted.counts["answers_of_a_floor_division_that_the_problem_does_not_name"] += 1
    elif not result.verified or Fraction(str(result.answer)) != wanted:
        counted.disagreements.append(f"{problem['metadata']['source_index']}: {result.answer} for {answer}")
    at = chance.randrange(len(steps))
    name = steps[at].id
    value = state[name]
    assert isinstance(value, Fraction)
    wrong = value + Fraction(chance.choice([10, -10, 100, -100, 1]), 10)
    entries[name] = f"{entries[name].rpartition(' = ')[0]} = {number_text(wrong)}"
    result = Guard(_Fixed(entries), segment=20, repair=0, seed=0).run(procedure)
    counted.counts["wrong_steps"] += 1
    counted.counts["wrong_steps_accepted"] += len(result.steps) > at


def _expression(problem: Problem, chance: random.Random, counted: Counted, dataset: object) -> None:
    _arithmetic(problem, problem["metadata"]["expression"], problem["answer"], chance, counted)


def _countdown(problem: Problem, chance: random.Random, counted: Counted, dataset: object) -> None:
    _arithmetic(problem, problem["answer"], str(problem["metadata"]["target"]), chance, counted)


def _fraction(problem: Problem, chance: random.Random, counted: Counted, dataset: object) -> None:
    """The answer in the generator's own notation, plain or LaTeX, inline or not."""
    facts = problem["metadata"]
    procedure = Procedure([Step("t", f"{facts['numerator']} / {facts['denominator']}")])
    work = f"{facts['numerator']} / {facts['denominator']}"
    over = str(facts["simplified_numerator"])
    wrong = problem["answer"].replace(over, str(facts["simplified_numerator"] + 1), 1)
    for answer, kind in ((problem["answer"], "right"), (wrong, "wrong")):
        result = Guard(_Fixed({"t": f"{work} = {answer}"}), repair=0, seed=0).run(procedure)
        counted.counts[f"{kind}_steps"] += 1
        counted.counts[f"{kind}_steps_accepted"] += result.status in ("verified", "checked")
        if kind == "right" and result.status not in ("verified", "checked"):
            counted.disagreements.append(f"{facts['source_index']}: a right answer in {facts['style']} was refused")


Move = Callable[[str], str | None]


def _states(
    problem: Problem, first: str, states: Sequence[str], moves: Sequence[Move], chance: random.Random, counted: Counted
) -> None:
    if not states:
        counted.counts["problems_without_moves"] += 1
        return
    right = accepted_states(first, states, moves)
    counted.counts["right_steps"] += len(states)
    counted.counts["right_steps_accepted"] += sum(right)
    if not all(right):
        counted.disagreements.append(
            f"{problem['metadata']['source_index']}: state {right.index(False) + 1} was refused"
        )
    at = chance.randrange(len(states))
    everything = [first, *states]
    wrong = chance.choice([_changed(states[at], chance), everything[at], chance.choice(everything), states[-1]])
    if wrong == states[at]:
        return
    found = accepted_states(first, [*states[:at], wrong, *states[at + 1 :]], moves)
    counted.counts["wrong_steps"] += 1
    counted.counts["wrong_steps_accepted"] += len(found) > at and found[at]


def _changed(state: str, chance: random.Random) -> str:
    at = chance.randrange(len(state)) if state else 0
    return state[:at] + ("b" if state[at : at + 1] == "a" else "a") + state[at + 1 :]


def _strings(problem: Problem, chance: random.Random, counted: Counted, dataset: Any) -> None:
    """States that the generator gives; its rules are its own functions."""
    facts = problem["metadata"]
    rules = [(text, rule) for text, rule in dataset.rules if text in facts["selected_rules"]]
    rules.sort(key=lambda each: facts["selected_rules"].index(each[0]))

    def move(state: str) -> str:
        for _, rule in rules:
            after, applied = rule(state)
            if applied:
                return str(after)
        return state

    states = facts["states"]
    if states[-1] != problem["answer"]:
        counted.disagreements.append(f"{facts['source_index']}: the last state is not the answer")
    _states(problem, states[0], states[1:], [move] * (len(states) - 1), chance, counted)


def _jugs(problem: Problem, chance: random.Random, counted: Counted, dataset: object) -> None:
    """Moves that the generator gives; the levels after each are worked out here, and the last must hold the target."""
    puzzle = problem["metadata"]["puzzle"]
    capacities = puzzle["jug_capacities"]

    def level(state: str, text: str) -> str:
        levels = [int(each) for each in state.split(", ")]
        kind, _, where = text.partition(" ")
        one, _, two = (where.replace("->", " ")).partition(" ")
        source = ord(one) - ord("A")
        if kind == "fill":
            levels[source] = capacities[source]
        elif kind == "empty":
            levels[source] = 0
        else:
            goal = ord(two) - ord("A")
            poured = min(levels[source], capacities[goal] - levels[goal])
            levels[source], levels[goal] = levels[source] - poured, levels[goal] + poured
        return ", ".join(map(str, levels))

    first = ", ".join(["0"] * len(capacities))
    moves = [partial(level, text=text) for text in json.loads(problem["answer"])]
    states = _followed(first, moves)
    if str(puzzle["target"]) not in states[-1].split(", "):
        counted.disagreements.append(f"{problem['metadata']['source_index']}: the moves do not reach the target")
    _states(problem, first, states, moves, chance, counted)


_HANOI = re.compile(r"Move disk (\d+) from Peg (\d+) to Peg (\d+)")


def _hanoi(problem: Problem, chance: random.Random, counted: Counted, dataset: object) -> None:
    """Moves that the generator gives; each must be allowed, and all discs end on the target."""
    facts = problem["metadata"]

    def moved(state: str, text: str) -> str | None:
        found = _HANOI.fullmatch(text)
        assert found is not None
        disc, source, target = (int(each) for each in found.groups())
        pegs = [int(each) for each in state.split(" ")]  # the peg of every disc, the smallest first
        if pegs[disc - 1] != source or any(peg in (source, target) for peg in pegs[: disc - 1]):
            return None
        pegs[disc - 1] = target
        return " ".join(map(str, pegs))

    first = " ".join([str(facts["start_peg"])] * facts["num_disks"])
    moves = [partial(moved, text=text) for text in problem["answer"].splitlines()]
    states = _followed(first, moves)
    if set(states[-1].split(" ")) != {str(facts["target_peg"])}:
        counted.disagreements.append(f"{facts['source_index']}: the moves do not end on the target")
    _states(problem, first, states, moves, chance, counted)


def _followed(first: str, moves: Sequence[Move]) -> list[str]:
    states = [first]
    for move in moves:
        states.append(move(states[-1]) or "not allowed")
        if states[-1] == "not allowed":
            break
    return states[1:]


GENERATORS: dict[str, Callable[[Problem, random.Random, Counted, Any], None]] = {
    "chain_sum": _expression,
    "decimal_chain_sum": _expression,
    "basic_arithmetic": _expression,
    "products": _expression,
    "countdown": _countdown,
    "fraction_simplification": _fraction,
    "string_manipulation": _strings,
    "jugs": _jugs,
    "tower_of_hanoi": _hanoi,
}
"""The generators, and what is done with a problem of each; the last three carry intermediate states."""
