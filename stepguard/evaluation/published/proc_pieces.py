"""Tasks of ProcBench in which every step adds a piece to what is there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, takewhile
from string import ascii_lowercase, ascii_uppercase

from stepguard.evaluation.published.proc_steps import (
    Cut,
    CutStep,
    ProcState,
    Values,
    close,
    listed_behind,
    numbered,
    numbered_letters,
    places_said,
    spaced,
    tuples_in,
    value_after,
)
from stepguard.language.value_types import TEXT
from stepguard.language.values import Value

Piece = tuple[tuple[str, ...], str, str]
"""What a step reads, the working that leads to a piece, and the piece."""


def _grown(values: Sequence[Value]) -> list[ProcState]:
    """What is there after each piece is added."""
    return ["".join(close(value) for value in values[: at + 1]) for at in range(len(values))]


def _pieces(
    inputs: Mapping[str, str],
    instruction: str,
    asked: Sequence[Piece],
    form: Callable[[Value, Values], bool],
    states: Callable[[Sequence[Value]], list[ProcState]] = _grown,
) -> Cut:
    """Steps that each ask one piece."""

    def said(text: str) -> Callable[[Values], str]:
        return lambda _: text

    steps = [
        CutStep(f"piece_{at}", TEXT, instruction, reads, said(piece), form, work=said(work))
        for at, (reads, work, piece) in enumerate(asked, 1)
    ]
    return Cut(inputs, tuple(steps), states)


def substrings(question: str, count: int) -> Cut:
    strings, sets = listed_behind(question, "Strings"), tuples_in(question.partition("Numbers")[2], 3)
    inputs: dict[str, str] = {}
    asked: list[Piece] = []
    for at, (which, first, size) in enumerate(sets, 1):
        placed = [f"{place:02}:{each}" for place, each in enumerate(strings[which])]
        inputs[f"string_{which}"] = " ".join(placed)
        inputs[f"part_{at}"] = places_said(first, first + size)
        piece = spaced(strings[which][first : first + size])
        asked.append(((f"string_{which}", f"part_{at}"), " ".join(placed[first : first + size]), piece))

    def form(value: Value, values: Values) -> bool:
        return any(close(value) in each for each in strings)

    return _pieces(inputs, "Which characters of the string stand at those places?", asked, form)


def splitting(question: str, count: int) -> Cut:
    positions = [int(each) for each in re.findall(r"\d+", question.partition("Positions")[2])]
    row = value_after(question, "String")
    placed = numbered_letters(row).split()
    inputs = {"row": numbered_letters(row)}
    asked: list[Piece] = []
    for at, position in enumerate(positions, 1):
        inputs[f"cut_{at}"] = f"{position:02}"
        asked.append((("row", f"cut_{at}"), "", placed[position]))

    def states(values: Sequence[Value]) -> list[ProcState]:
        cuts = [placed.index(str(value)) if value in placed else 0 for value in values]
        bounds = [[0, *sorted(cuts[:at]), len(row)] for at in range(1, len(cuts) + 1)]
        return [[row[low:high] for low, high in pairwise(each)] for each in bounds]

    instruction = "Which letter stands at that place? Give place and letter."
    return _pieces(inputs, instruction, asked, lambda value, values: value in placed, states)


def strings_by_index(question: str, count: int) -> Cut:
    strings, indices = listed_behind(question, "Strings"), listed_behind(question, "Indices")
    inputs = {"strings": numbered(strings)}
    asked: list[Piece] = []
    for at, index in enumerate(indices, 1):
        inputs[f"index_{at}"] = index
        asked.append((("strings", f"index_{at}"), "", strings[int(index)]))
    return _pieces(inputs, "Which string has that index?", asked, lambda value, values: str(value) in strings)


def replacing(question: str, count: int) -> Cut:
    text = value_after(question, "String")
    pairs = {**{each: each for each in text}, **dict(re.findall(r"\((\w), (\w)\)", question))}
    inputs = {"pairs": "; ".join(f"{one} is {two}" for one, two in pairs.items())}

    def states(done: Sequence[str]) -> list[ProcState]:
        return ["".join(done[: at + 1]) + text[at + 1 :] for at in range(len(done))]

    return _looked_up(inputs, text, pairs, states)


def rewriting(question: str, count: int) -> Cut:
    """Every letter from the left is looked up in rules for all letters; the authors leave out those that stay."""
    rules: dict[str, str] = dict(re.findall(r"(\w) -> (\w+)", question))
    row = value_after(question, "characters")
    if set(rules) & set("".join(rules.values())):
        raise ValueError("a rule writes letters that have rules themselves")
    rules = {each.upper(): rules.get(each, each) for each in ascii_lowercase}  # what has a rule looks like nothing else
    rules = {one: spaced(two) for one, two in rules.items()}
    inputs = {"rules": "; ".join(f"{one} is {two}" for one, two in rules.items())}

    def states(done: Sequence[str]) -> list[ProcState]:
        rows = [row]
        for at in range(1, len(done) + 1):
            whole = "".join(done[:at]) + row[at:]
            rows += [whole] if whole != rows[-1] else []
        return list(rows[1:])

    return _looked_up(inputs, row.upper(), rules, states)


def _looked_up(
    inputs: dict[str, str], row: str, table: Mapping[str, str], states: Callable[[Sequence[str]], list[ProcState]]
) -> Cut:
    """A letter a step: what the table makes of it."""
    asked: list[Piece] = []
    (name,) = inputs
    for at, letter in enumerate(row, 1):
        inputs[f"letter_{at}"] = letter
        asked.append(((name, f"letter_{at}"), f"{letter} is {table[letter]}", table[letter]))

    def form(value: Value, values: Values) -> bool:
        return len(str(value)) in (1, *map(len, table.values()))

    return _pieces(inputs, "What is the letter?", asked, form, lambda values: states([*map(close, values)]))


def runs(question: str, count: int) -> Cut:
    text = value_after(question, "String")
    inputs: dict[str, str] = {}
    asked: list[Piece] = []
    for at, match in enumerate(re.finditer(r"(.)\1*", text), 1):
        run = match[0]
        inputs[f"run_{at}"] = spaced(run)
        counted = " ".join(f"{each}{number}" for number, each in enumerate(run, 1))
        asked.append(((f"run_{at}",), counted, f"{run[0]}_{len(run)}"))

    def states(values: Sequence[Value]) -> list[ProcState]:
        return [[str(value) for value in values[: at + 1]] for at in range(len(values))]

    def form(value: Value, values: Values) -> bool:
        return re.fullmatch(r"[01]_\d+", str(value)) is not None

    instruction = "Count the run: give its character, _ and how many there are."
    return _pieces(inputs, instruction, asked, form, states)


def pairing(question: str, count: int) -> Cut:
    first, second = listed_behind(question, "Sequence 1"), listed_behind(question, "Sequence 2")
    numbers = [f"{_capital(at)}:{each}" for at, each in enumerate(first)]
    letters = [f"{at:02}:{each}" for at, each in enumerate(second, 1)]
    inputs = {"numbers": " ".join(numbers), "letters": " ".join(letters)}
    asked: list[Piece] = []
    for at in range(int(value_after(question, "N"))):
        one, two = at % len(first), at % len(second)
        inputs[f"places_{at + 1}"] = f"{_capital(one)} and {two + 1:02}"
        work = f"{numbers[one]} {letters[two]}"
        asked.append((("numbers", "letters", f"places_{at + 1}"), work, first[one] + second[two]))

    def form(value: Value, values: Values) -> bool:
        return str(value)[:-1] in first and str(value)[-1:] in second

    return _pieces(inputs, "Write that number and that letter behind each other.", asked, form)


def _capital(at: int) -> str:
    """Another name of a place: models take a number for what stands there."""
    return ascii_uppercase[at]


def comparing(question: str, count: int) -> Cut:
    target, candidates = value_after(question, "Target"), listed_behind(question, "Candidate")
    candidates = candidates[: candidates.index(target) + 1] if target in candidates else candidates
    inputs = {"target": spaced(target)}
    asked: list[Piece] = []
    for at, candidate in enumerate(candidates, 1):
        inputs[f"candidate_{at}"] = spaced(candidate)
        shared = "".join(
            one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(target, candidate, strict=True))
        )
        asked.append((("target", f"candidate_{at}"), "", spaced(shared)))

    def states(values: Sequence[Value]) -> list[ProcState]:
        prefixes: list[ProcState] = list(map(close, values))
        return [*prefixes[:-1], prefixes] if len(values) == len(candidates) else prefixes

    def form(value: Value, values: Values) -> bool:
        return target.startswith(close(value))

    instruction = "With which letters do both begin alike, up to where they differ?"
    return _pieces(inputs, instruction, asked, form, states)


def decoding(question: str, count: int) -> Cut:
    """What is repeated is counted down, so that it ends at 1."""
    parts = re.findall(r"(\w)x(\d+)", question)
    inputs: dict[str, str] = {}
    asked: list[Piece] = []
    for at, (letter, times) in enumerate(parts, 1):
        inputs[f"code_{at}"] = f"{letter} x {times}"
        asked.append(((f"code_{at}",), "", " ".join(f"{number}:{letter}" for number in range(int(times), 0, -1))))

    def states(values: Sequence[Value]) -> list[ProcState]:
        pieces = ["".join(each.partition(":")[2] for each in str(value).split()) for value in values]
        return ["".join(pieces[: at + 1]) for at in range(len(pieces))]

    instruction = "Write the character so many times, counting down to 1."
    return _pieces(inputs, instruction, asked, lambda value, values: ":" in str(value), states)
