"""Tasks of ProcBench in which steps count, reckon or move."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from stepguard.evaluation.published.proc_steps import (
    INTEGER,
    Cut,
    CutStep,
    Keeper,
    ProcState,
    Values,
    anything,
    listed_behind,
    spaced,
    value_after,
)
from stepguard.language.value_types import TEXT
from stepguard.language.values import Value


def counting(question: str, count: int) -> Cut:
    """For each part, in which strings it stands, by an index of all pieces; code adds up how often."""
    strings, parts = listed_behind(question, "Strings"), listed_behind(question, "Substrings")
    pieces = {string[at : at + len(part)] for string in strings for part in parts for at in range(len(string))}

    def found(part: str) -> str:
        return " ".join(f"s{at}" for at, string in enumerate(strings, 1) for _ in range(string.count(part))) or "none"

    entries = sorted({*parts, *(piece for piece in pieces if len(piece) in map(len, parts))})
    inputs = {"index": "; ".join(f"{spaced(piece)} in {found(piece)}" for piece in entries)}

    def step(at: int, part: str) -> CutStep:
        inputs[f"part_{at}"] = spaced(part)
        return CutStep(
            f"found_{at}",
            TEXT,
            "In which strings does the part stand, by the index?",
            ("index", f"part_{at}"),
            lambda values: found(part),
            lambda value, values: set(str(value).split()) <= {"none", *(f"s{at}" for at in range(1, len(strings) + 1))},
            work=lambda values: f"{spaced(part)} in {found(part)}",
        )

    def states(values: Sequence[Value]) -> list[ProcState]:
        totals = [0] * len(strings)
        sums: list[ProcState] = []
        for value in values:
            named = str(value).split()
            totals = [total + named.count(f"s{at}") for at, total in enumerate(totals, 1)]
            sums.append(totals)
        return sums

    return Cut(inputs, tuple(step(at, part) for at, part in enumerate(parts, 1)), states)


def products(question: str, count: int) -> Cut:
    """Every character is marked as a letter or a digit; code counts the letters and puts the digits together."""
    strings = ast.literal_eval(question.partition(":")[2].strip())
    inputs: dict[str, str] = {}
    steps: list[CutStep] = []

    def marked(text: str) -> Callable[[Values], Value]:
        return lambda _: "; ".join(f"{each} {'digit' if each.isdigit() else 'letter'}" for each in text)

    def each_once(text: str) -> Callable[[Value, Values], bool]:
        return lambda value, values: [each[:1] for each in str(value).split("; ")] == list(text)

    def product(at: int) -> Callable[[Values], Value]:
        return lambda values: int(str(values[f"letters_{at}"])) * int(str(values[f"number_{at}"]))

    def total(at: int) -> Callable[[Values], Value]:
        return lambda values: sum(int(str(values[f"product_{each}"])) for each in range(1, at + 1))

    for at, text in enumerate(strings, 1):
        inputs[f"string_{at}"] = spaced(text)
        steps += [
            CutStep(
                f"marked_{at}",
                TEXT,
                "Write behind every character whether it is a letter or a digit.",
                (f"string_{at}",),
                marked(text),
                each_once(text),
            ),
            Keeper(_letters_marked, ("row", f"marked_{at}")).step(f"letters_{at}", INTEGER),
            Keeper(_digits_marked, ("row", f"marked_{at}")).step(f"number_{at}", INTEGER),
            CutStep(f"product_{at}", INTEGER, "", (), product(at), anything, f"letters_{at} * number_{at}"),
        ]
    before = "product_1"
    for at in range(2, len(strings) + 1):
        steps.append(CutStep(f"total_{at}", INTEGER, "", (), total(at), anything, f"{before} + product_{at}"))
        before = f"total_{at}"

    def states(values: Sequence[Value]) -> list[ProcState]:
        rows: list[ProcState] = []
        for at, text in enumerate(strings):
            row = values[4 * at + 1 : 4 * at + 4]
            if len(row) == 3:
                rows.append([text, *map(str, row)])
        return [*rows, values[-1]] if len(values) == len(steps) else rows

    return Cut(inputs, tuple(steps), states)


def _letters_marked(row: Value) -> Value:
    return str(row).count(" letter")


def _digits_marked(row: Value) -> Value:
    return int("".join(re.findall(r"(\d) digit", str(row))) or "0")


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
    size = len(row)
    steps: list[CutStep] = []

    def moved(name: str, by: int) -> Callable[[Values], Value]:
        return lambda values: int(str(values[name])) + by

    def rule(name: str) -> Callable[[Values], Value]:
        return lambda values: int(str(values[name])) % size

    def form(value: Value, values: Values) -> bool:
        return isinstance(value, int) and 0 <= value < size

    before = "place"
    for at, (way, far) in enumerate(moves, 1):
        left = way == "left"  # a whole turn more, so that nothing is below 0
        term = f"- {far} + {size}" if left else f"+ {far}"
        steps += [
            CutStep(
                f"moved_{at}", INTEGER, "", (), moved(before, size - int(far) if left else int(far)), anything,
                f"{before} {term}",
            ),
            CutStep(f"place_{at}", INTEGER, "", (), rule(f"moved_{at}"), form, f"moved_{at} % {size}"),
        ]  # fmt: skip
        before = f"place_{at}"

    def states(values: Sequence[Value]) -> list[ProcState]:
        found = [int(str(value)) for value in values[1::2]]
        return ["-" * place + "x" + "-" * (size - place - 1) for place in found]

    return Cut({}, tuple(steps), states, {"place": row.index("x")})


def stepping(question: str, count: int) -> Cut:
    """Code writes the pairs of neighbours, and counts the moves down."""
    text = value_after(question, "String")
    match = re.search(r"\['(\w)', '(\d+)'\]", question)
    if match is None:
        raise ValueError("the question has no command")
    letter, left = match[1], int(match[2])

    def behind(one: Value) -> str:
        return text[(text.index(str(one)) + 1) % len(text)]

    def step(at: int) -> CutStep:
        before = f"found_{at}" if at else "start"
        return CutStep(
            f"found_{at + 1}",
            TEXT,
            "Which character comes behind that one?",
            ("pairs", before),
            lambda values: behind(values[before]),
            lambda value, values: value in list(text),
            work=lambda values: f"{values[before]} then {behind(values[before])}",
        )

    def states(values: Sequence[Value]) -> list[ProcState]:
        pairs = [[str(value), str(left - at)] for at, value in enumerate(values, 1)]
        return [*pairs[:-1], pairs[-1][0]] if len(pairs) == left else list(pairs)

    inputs = {"pairs": "; ".join(f"{one} then {behind(one)}" for one in text), "start": letter}
    return Cut(inputs, tuple(map(step, range(left))), states)
