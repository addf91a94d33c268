"""Tasks of ProcBench in which every step changes a list."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from stepguard.evaluation.published.proc_steps import (
    TEXTS,
    Cut,
    CutStep,
    State,
    Values,
    behind,
    texts_of,
    tuples_in,
)
from stepguard.language.values import Value

__all__ = ["merging", "splitting", "splitting_parts"]


def _lists(values: Sequence[Value]) -> list[State]:
    return [texts_of(each) for each in values]


def _listing(
    start: Sequence[str],
    operands: Sequence[str],
    instruction: str,
    change: Callable[[list[str], int], list[str]],
    form: Callable[[list[str], list[str]], bool],
    extra: Mapping[str, str] | None = None,
) -> Cut:
    """The same of lists of texts."""
    inputs = {"start": ", ".join(start), **(extra or {})}
    steps: list[CutStep] = []
    before = "start"

    def was(values: Values, name: str) -> list[str]:
        return list(start) if name == "start" else texts_of(values[name])

    def step(at: int, name: str, reads: tuple[str, ...]) -> CutStep:
        return CutStep(
            f"state_{at + 1}",
            TEXTS,
            instruction,
            reads,
            lambda values: tuple(change(was(values, name), at)),
            lambda value, values: form(was(values, name), texts_of(value)),
        )

    for at, operand in enumerate(operands):
        reads = [before, *(extra or {})]
        if operand:
            inputs[f"action_{at + 1}"] = operand
            reads.append(f"action_{at + 1}")
        steps.append(step(at, before, tuple(reads)))
        before = f"state_{at + 1}"
    return Cut(inputs, tuple(steps), _lists)


def splitting(question: str, count: int) -> Cut:
    positions = [int(each) for each in re.findall(r"\d+", question.partition("Positions")[2])]

    def change(items: list[str], at: int) -> list[str]:
        whole, cuts = "".join(items), [0]
        for item in items:
            cuts.append(cuts[-1] + len(item))
        cuts = sorted({*cuts, positions[at]})
        return [whole[low:high] for low, high in pairwise(cuts)]

    return _listing(
        [behind(question, "String")],
        [f"position {each}" for each in positions],
        "Split where the letter of that position begins. Letters are counted from 0 over all pieces together. Write "
        "all pieces in order.",
        change,
        lambda before, after: "".join(before) == "".join(after) and len(after) == len(before) + 1,
    )


def splitting_parts(question: str, count: int) -> Cut:
    pairs = tuples_in(question.partition("Indices")[2], 2)

    def change(items: list[str], at: int) -> list[str]:
        which, place = pairs[at]
        item = items[which] if which < len(items) else ""
        return [*items[:which], item[:place], item[place:], *items[which + 1 :]]

    return _listing(
        [behind(question, "String")],
        [f"piece {which}, position {place}" for which, place in pairs],
        "Split that piece where the letter of that position begins; pieces and letters are counted from 0. Write all "
        "pieces in order.",
        change,
        lambda before, after: "".join(before) == "".join(after) and len(after) == len(before) + 1,
    )


def merging(question: str, count: int) -> Cut:
    rules = {(one, two): three for one, two, three in re.findall(r"(\w), (\w) -> (\w)", question)}
    start = re.search(r"Initial state:\s*([^\n]*)", question)
    if start is None:
        raise ValueError("the question has no initial state")

    def change(items: list[str], at: int) -> list[str]:
        for place in range(len(items) - 2, -1, -1):
            if (items[place], items[place + 1]) in rules:
                return [*items[:place], rules[items[place], items[place + 1]], *items[place + 2 :]]
        return items

    return _listing(
        [piece.strip() for piece in start[1].split(",")],
        [""] * count,
        "Find the rightmost two neighbours for which there is a rule, in that order, and replace these two by the one "
        "it says. Write all letters in order.",
        change,
        lambda before, after: len(after) == len(before) - 1,
        {"rules": "; ".join(f"{one}, {two} become {three}" for (one, two), three in rules.items())},
    )
