"""Tasks of ProcBench in which every step adds a piece to what is there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from stepguard.evaluation.published.proc_steps import (
    Cut,
    CutStep,
    State,
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


def _grown(values: Sequence[Value]) -> list[State]:
    """What is there after each piece is added."""
    return ["".join(close(value) for value in values[: at + 1]) for at in range(len(values))]


def _pieces(
    inputs: Mapping[str, str],
    instruction: str,
    asked: Sequence[Piece],
    form: Callable[[Value, Values], bool],
    states: Callable[[Sequence[Value]], list[State]] = _grown,
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
        placed = [f"{place}:{each}" for place, each in enumerate(strings[which])]
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
        inputs[f"cut_{at}"] = f"place {position}"
        asked.append((("row", f"cut_{at}"), "", placed[position]))

    def states(values: Sequence[Value]) -> list[State]:
        cuts = [placed.index(str(value)) if value in placed else 0 for value in values]
        bounds = [[0, *sorted(cuts[:at]), len(row)] for at in range(1, len(cuts) + 1)]
        return [[row[low:high] for low, high in pairwise(each)] for each in bounds]

    instruction = "Before which letter is the row cut? Give it with its place."
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
    pairs = dict(re.findall(r"\((\w), (\w)\)", question))
    text = value_after(question, "String")
    inputs = {"pairs": "; ".join(f"{one} becomes {two}" for one, two in pairs.items())}
    asked: list[Piece] = []
    for at, letter in enumerate(text, 1):
        inputs[f"character_{at}"] = letter
        work = f"{letter} becomes {pairs[letter]}" if letter in pairs else f"{letter} stays"
        asked.append((("pairs", f"character_{at}"), work, pairs.get(letter, letter)))

    def states(values: Sequence[Value]) -> list[State]:
        done = list(map(close, values))
        return ["".join(done[: at + 1]) + text[at + 1 :] for at in range(len(done))]

    instruction = "What does the character become? It stays where no pair begins with it."
    return _pieces(inputs, instruction, asked, lambda value, values: len(close(value)) == 1, states)


def rewriting(question: str, count: int) -> Cut:
    """Every letter from the left is looked up; the authors leave out those that stay."""
    rules: dict[str, str] = dict(re.findall(r"(\w) -> (\w+)", question))
    row = value_after(question, "characters")
    if set(rules) & set("".join(rules.values())):
        raise ValueError("a rule writes letters that have rules themselves")
    inputs = {"rules": "; ".join(f"{one} becomes {spaced(two)}" for one, two in rules.items())}
    asked: list[Piece] = []
    for at, letter in enumerate(row, 1):
        inputs[f"letter_{at}"] = letter
        becomes = spaced(rules.get(letter, letter))
        work = f"{letter} becomes {becomes}" if letter in rules else f"{letter} stays"
        asked.append((("rules", f"letter_{at}"), work, becomes))

    def states(values: Sequence[Value]) -> list[State]:
        rows = [row]
        for at in range(1, len(values) + 1):
            whole = "".join(map(close, values[:at])) + row[at:]
            rows += [whole] if whole != rows[-1] else []
        return list(rows[1:])

    instruction = "What does the letter become? It stays where it has no rule."
    return _pieces(inputs, instruction, asked, lambda value, values: len(close(value)) in (1, 2), states)


def runs(question: str, count: int) -> Cut:
    text = value_after(question, "String")
    inputs: dict[str, str] = {}
    asked: list[Piece] = []
    for at, match in enumerate(re.finditer(r"(.)\1*", text), 1):
        run = match[0]
        inputs[f"run_{at}"] = spaced(run)
        counted = " ".join(str(number) for number in range(1, len(run) + 1))
        asked.append(((f"run_{at}",), counted, f"{run[0]}_{len(run)}"))

    def states(values: Sequence[Value]) -> list[State]:
        return [[str(value) for value in values[: at + 1]] for at in range(len(values))]

    def form(value: Value, values: Values) -> bool:
        return re.fullmatch(r"[01]_\d+", str(value)) is not None

    instruction = "Count the run: give its character, _ and how many there are."
    return _pieces(inputs, instruction, asked, form, states)


def pairing(question: str, count: int) -> Cut:
    first, second = listed_behind(question, "Sequence 1"), listed_behind(question, "Sequence 2")
    inputs = {"numbers": numbered(first, 1), "letters": numbered(second, 1)}
    asked: list[Piece] = []
    for at in range(int(value_after(question, "N"))):
        one, two = at % len(first), at % len(second)
        inputs[f"places_{at + 1}"] = f"number {one + 1}, letter {two + 1}"
        work = f"{one + 1}: {first[one]}, {two + 1}: {second[two]}"
        asked.append((("numbers", "letters", f"places_{at + 1}"), work, first[one] + second[two]))

    def form(value: Value, values: Values) -> bool:
        return str(value)[:-1] in first and str(value)[-1:] in second

    return _pieces(inputs, "Write that number and that letter behind each other.", asked, form)


def comparing(question: str, count: int) -> Cut:
    target, candidates = value_after(question, "Target"), listed_behind(question, "Candidate")
    candidates = candidates[: candidates.index(target) + 1] if target in candidates else candidates
    inputs: dict[str, str] = {}
    asked: list[Piece] = []
    for at, candidate in enumerate(candidates, 1):
        pairs = _pairs(target, candidate)
        inputs[f"pairs_{at}"] = ", ".join(pairs)
        asked.append(((f"pairs_{at}",), "", next(pair for pair in pairs if pair[0] != pair[-1])))

    def prefix(at: int, value: Value) -> str:
        """The letters before a pair."""
        pairs = _pairs(target, candidates[at])
        return target[: pairs.index(str(value))] if str(value) in pairs else target

    def states(values: Sequence[Value]) -> list[State]:
        prefixes: list[State] = [prefix(at, value) for at, value in enumerate(values)]
        return [*prefixes[:-1], prefixes] if len(values) == len(candidates) else prefixes

    def form(value: Value, values: Values) -> bool:
        return any(str(value) in _pairs(target, candidate) for candidate in candidates)

    return _pieces(inputs, "Which is the first pair of two different characters?", asked, form, states)


def _pairs(target: str, candidate: str) -> list[str]:
    """The letters of both by pairs, and at the end a pair that differs."""
    return [f"{one} {two}" for one, two in zip(f"{target}1", f"{candidate}2", strict=False)]


def decoding(question: str, count: int) -> Cut:
    parts = re.findall(r"(\w)x(\d+)", question)
    inputs: dict[str, str] = {}
    asked: list[Piece] = []
    for at, (letter, times) in enumerate(parts, 1):
        inputs[f"code_{at}"] = f"{letter}x{times}"
        counted = " ".join(f"{number}:{letter}" for number in range(1, int(times) + 1))
        asked.append(((f"code_{at}",), counted, spaced(letter * int(times))))
    instruction = "Write the character so many times as the number behind x says, with blanks between."
    return _pieces(inputs, instruction, asked, lambda value, values: len(set(close(value))) == 1)
