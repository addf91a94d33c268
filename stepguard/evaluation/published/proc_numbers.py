"""Tasks of ProcBench in which steps count, reckon or move."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from stepguard.evaluation.published.proc_steps import (
    INTEGER,
    INTEGERS,
    PAIR,
    Cut,
    CutStep,
    State,
    Values,
    anything,
    listed_behind,
    spaced,
    value_after,
)
from stepguard.language.records import Record
from stepguard.language.value_types import TEXT
from stepguard.language.values import Value


def counting(question: str, count: int) -> Cut:
    strings, parts = listed_behind(question, "Strings"), listed_behind(question, "Substrings")

    def rule(at: int) -> Callable[[Values], Value]:
        return lambda values: tuple(string.count(parts[at]) for string in strings)

    steps = tuple(
        CutStep(
            f"counts_{at + 1}",
            INTEGERS,
            "How often does the part occur in each of the strings? Write one number for each string, in order.",
            ("strings", f"part_{at + 1}"),
            rule(at),
            lambda value, values: (
                isinstance(value, tuple)
                and len(value) == len(strings)
                and all(isinstance(each, int) and each >= 0 for each in value)
            ),
        )
        for at in range(len(parts))
    )

    def states(values: Sequence[Value]) -> list[State]:
        totals = [0] * len(strings)
        sums: list[State] = []
        for counts in values:
            numbers = [int(str(each)) for each in counts] if isinstance(counts, tuple) else []
            alike = len(numbers) == len(strings)
            totals = [a + b for a, b in zip(totals, numbers, strict=False)] if alike else numbers
            sums.append(totals)
        return sums

    inputs = {"strings": ", ".join(strings), **{f"part_{at + 1}": part for at, part in enumerate(parts)}}
    return Cut(inputs, steps, states)


def products(question: str, count: int) -> Cut:
    strings = ast.literal_eval(question.partition(":")[2].strip())
    inputs: dict[str, str] = {}
    steps: list[CutStep] = []

    def letters(text: str) -> Callable[[Values], Value]:
        return lambda _: sum(each.isalpha() for each in text)

    def digits(text: str) -> Callable[[Values], Value]:
        return lambda _: int("".join(each for each in text if each.isdigit()) or "0")

    def product(at: int) -> Callable[[Values], Value]:
        return lambda values: int(str(values[f"letters_{at}"])) * int(str(values[f"digits_{at}"]))

    for at, text in enumerate(strings, 1):
        inputs[f"string_{at}"] = spaced(text)
        read = (f"string_{at}",)
        counted = "How many letters, not digits, has it?"
        joined = "Which number do its digits make when they are written one behind the other? 0 where it has none."
        steps += [
            CutStep(f"letters_{at}", INTEGER, counted, read, letters(text), _at_most(len(text))),
            CutStep(f"digits_{at}", INTEGER, joined, read, digits(text), _digits_of(text)),
            CutStep(f"product_{at}", INTEGER, "", (), product(at), anything, f"letters_{at} * digits_{at}"),
        ]
    names = [f"product_{at}" for at in range(1, len(strings) + 1)]
    total = " + ".join(names)
    steps.append(
        CutStep("total", INTEGER, "", (), lambda values: sum(int(str(values[name])) for name in names), anything, total)
    )

    def states(values: Sequence[Value]) -> list[State]:
        rows: list[State] = []
        for at, text in enumerate(strings):
            row = values[3 * at : 3 * at + 3]
            if len(row) == 3:
                rows.append([text, *map(str, row)])
        return [*rows, values[-1]] if len(values) == 3 * len(strings) + 1 else rows

    return Cut(inputs, tuple(steps), states)


def _at_most(size: int) -> Callable[[Value, Values], bool]:
    return lambda value, values: isinstance(value, int) and 0 <= value <= size


def _digits_of(text: str) -> Callable[[Value, Values], bool]:
    return lambda value, values: isinstance(value, int) and set(str(value)) <= {*text, "0"}


def calculating(question: str, count: int) -> Cut:
    match = re.search(r"N = (-?\d+)", question)
    if match is None:
        raise ValueError("the question has no N")
    start = int(match[1])
    operations = re.findall(r"(Add|Multiply) (-?\d+)", question)
    steps: list[CutStep] = []
    before = "n"

    def rule(name: str, word: str, number: int) -> Callable[[Values], Value]:
        return lambda values: int(str(values[name])) * number if word == "Multiply" else int(str(values[name])) + number

    for at, (word, number) in enumerate(operations, 1):
        sign = "*" if word == "Multiply" else "+"
        shown = f"({number})" if number.startswith("-") else number
        steps.append(
            CutStep(f"n_{at}", INTEGER, "", (), rule(before, word, int(number)), anything, f"{before} {sign} {shown}")
        )
        before = f"n_{at}"
    return Cut({}, tuple(steps), list, {"n": start})


def moving(question: str, count: int) -> Cut:
    row = value_after(question, "Initial array")
    moves = re.findall(r"\((left|right), (\d+)\)", question)
    inputs = {f"move_{at}": f"{way} by {size}" for at, (way, size) in enumerate(moves, 1)}
    steps: list[CutStep] = []
    before = "place"

    def rule(name: str, by: int) -> Callable[[Values], Value]:
        return lambda values: (int(str(values[name])) + by) % len(row)

    for at, (way, size) in enumerate(moves, 1):
        steps.append(
            CutStep(
                f"place_{at}",
                INTEGER,
                f"Places are 0 to {len(row) - 1}; right counts up, left down. Right of the last place is place 0, left "
                "of place 0 is the last one. At which place is it after the move?",
                (before, f"move_{at}"),
                rule(before, int(size) if way == "right" else -int(size)),
                lambda value, values: isinstance(value, int) and 0 <= value < len(row),
            )
        )
        before = f"place_{at}"

    def states(values: Sequence[Value]) -> list[State]:
        places = [int(str(value)) for value in values]
        return ["-" * place + "x" + "-" * (len(row) - place - 1) for place in places]

    return Cut(inputs, tuple(steps), states, {"place": row.index("x")})


def stepping(question: str, count: int) -> Cut:
    text = value_after(question, "String")
    match = re.search(r"\['(\w)', '(\d+)'\]", question)
    if match is None:
        raise ValueError("the question has no command")
    letter, left = match[1], int(match[2])
    steps: list[CutStep] = []
    before = "start"

    def was(values: Values, name: str) -> tuple[str, int]:
        value = values[name]
        return (str(value["letter"]), int(str(value["left"]))) if isinstance(value, Record) else (letter, left)

    def following(values: Values, name: str) -> tuple[str, int]:
        now, rest = was(values, name)
        return text[(text.index(now) + 1) % len(text)], rest - 1

    def step(at: int, name: str) -> CutStep:
        words = "Go one character to the right in the string, and behind its last one to its first. Which one is it"
        if at == left:  # the published final state is the character alone
            return CutStep(
                "last", TEXT, f"{words}?", ("string", name), lambda values: following(values, name)[0],
                lambda value, values: value in list(text),
            )  # fmt: skip
        return CutStep(
            f"found_{at}", PAIR, f"{words}, and how many moves are left then?", ("string", name),
            lambda values: Record(dict(zip(("letter", "left"), following(values, name), strict=True))),
            lambda value, values: isinstance(value, Record)
            and value["letter"] in list(text)
            and value["left"] == was(values, name)[1] - 1,
        )  # fmt: skip

    for at in range(1, left + 1):
        steps.append(step(at, before))
        before = steps[-1].id

    def states(values: Sequence[Value]) -> list[State]:
        return [
            [str(value["letter"]), str(value["left"])] if isinstance(value, Record) else str(value) for value in values
        ]

    return Cut({"string": spaced(text), "start": f"letter {letter}, {left} moves left"}, tuple(steps), states)
