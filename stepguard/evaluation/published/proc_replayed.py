"""Tasks of ProcBench in which steps find out what becomes of a row, and code alone replays the changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from string import ascii_lowercase
from typing import Final

from stepguard.evaluation.published.proc_steps import (
    Cut,
    CutStep,
    Keeper,
    ProcState,
    Values,
    close,
    spaced,
    value_after,
)
from stepguard.language.value_types import TEXT
from stepguard.language.values import Value


def sorting(question: str, count: int) -> Cut:
    """Short parts are put in order, then two at a time; code swaps every place with where the next letter stands."""
    row = value_after(question, "String")
    inputs: dict[str, str] = {}
    steps: list[CutStep] = []

    def add(*reads: str) -> str:
        def letters(values: Values) -> set[str]:
            return {each for read in reads for each in str(values[read]).split()}

        steps.append(
            CutStep(
                name := f"sorted_{len(steps) + 1}",
                TEXT,
                "Put them in ascending order, and leave out what comes again.",
                reads,
                lambda values: " ".join(sorted(letters(values))),
                lambda value, values: {*str(value).split()} <= letters(values),
            )
        )
        return name

    parts: list[str] = []
    size = -(-len(row) // -(-len(row) // _SORTED))
    for at, low in enumerate(range(0, len(row), size), 1):
        inputs[f"part_{at}"] = _in_alphabet(row[low : low + size])
        parts.append(add(f"part_{at}"))
    while len(parts) > 1:
        pairs = list(zip(parts[::2], parts[1::2], strict=False))
        parts = [*(add(*pair) for pair in pairs), *parts[2 * len(pairs) :]]

    def states(values: Sequence[Value]) -> list[ProcState]:
        now, rows = row, [row]
        found = str(values[-1]).split() if len(values) == len(steps) else []
        in_order = [each for one in found for each in row if each == one[-1]]
        for place, letter in enumerate(in_order[: len(row)]):
            other = now.find(letter, place)
            if other > place:
                now = now[:place] + letter + now[place + 1 : other] + now[place] + now[other + 1 :]
                rows.append(now)
        return list(rows[1:])

    return Cut(inputs, tuple(steps), states)


_SORTED: Final = 7
"""The most letters that are put in order at once."""


def _in_alphabet(row: str) -> str:
    """Letters with their numbers in the alphabet, which models put in order more surely than letters."""
    return " ".join(f"{ascii_lowercase.index(each) + 1:02}{each}" for each in row)


def merging(question: str, count: int) -> Cut:
    """Pairs are looked up from the end, in rules with an entry for each; code leaves out those behind the one found."""
    rules: dict[str, str] = {one + two: three for one, two, three in re.findall(r"(\w), (\w) -> (\w)", question)}
    start = re.search(r"Initial state:\s*([^\n]*)", question)
    if start is None:
        raise ValueError("the question has no initial state")
    now = start[1].replace(",", "").replace(" ", "")
    inputs = {"row_0": spaced(now)}
    steps: list[CutStep] = []
    asked = 0

    def entries(row: Value) -> Value:
        pairs = sorted(set(_pairs_from_end(close(row))))
        return "; ".join(f"{spaced(pair)} is {rules.get(pair, '-')}" for pair in pairs) or "-"

    def ask(number: int, table: str) -> CutStep:
        def becomes(values: Values) -> str:
            return rules.get(close(values[f"pair_{number}"]), "-")

        return CutStep(
            f"becomes_{number}",
            TEXT,
            "What does the pair become, by the rules?",
            (table, f"pair_{number}"),
            becomes,
            lambda value, values: len(str(value)) == 1,
            work=lambda values: f"{values[f'pair_{number}']} is {becomes(values)}",
        )

    for change in range(1, count + 1):
        before, table = ("row", f"row_{change - 1}"), f"rules_{change}"
        pairs = _pairs_from_end(now)
        size = next((at for at, pair in enumerate(pairs, 1) if pair in rules), 0)
        if size == 0:
            raise ValueError(f"no pair has a rule at state {change} of {count}")
        numbers = range(asked + 1, asked + size + 1)
        steps += [
            Keeper(entries, before).step(table),
            *(Keeper(_pair_from_end(at), before).step(f"pair_{number}") for at, number in enumerate(numbers)),
            *(ask(number, table) for number in numbers),
            Keeper(_merged, before, *((f"pair_{at}", f"becomes_{number}") for at, number in enumerate(numbers))).step(
                f"row_{change}"
            ),
        ]
        now = close(_merged(now, **{f"pair_{size - 1}": rules[pairs[size - 1]]}))
        asked += size

    def states(values: Sequence[Value]) -> list[ProcState]:
        done = zip(steps, values, strict=False)
        return [list(close(value)) for step, value in done if step.id.startswith("row_")]

    return Cut(inputs, tuple(steps), states)


def _pair_from_end(at: int) -> Callable[[Value], Value]:
    return lambda row: next(iter(map(spaced, _pairs_from_end(close(row))[at:])), "-")


def _merged(row: Value, **becomes: Value) -> Value:
    """The row in which the first of the pairs from its end that becomes something is replaced."""
    letters = close(row)
    for name, value in becomes.items():
        place = len(letters) - 2 - int(name.rpartition("_")[2])
        if place >= 0 and close(value):
            return spaced(letters[:place] + close(value) + letters[place + 2 :])
    return row


def _pairs_from_end(row: str) -> list[str]:
    return [row[at : at + 2] for at in range(len(row) - 2, -1, -1)]
