"""Tasks of ProcBench in which every step adds a piece to what is there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from stepguard.evaluation.published.proc_steps import (
    Cut,
    CutStep,
    State,
    Values,
    close,
    listed_behind,
    numbered,
    spaced,
    tuples_in,
    value_after,
)
from stepguard.language.value_types import TEXT
from stepguard.language.values import Value


def _grown(values: Sequence[Value]) -> list[State]:
    """What is there after each piece is added."""
    return ["".join(close(value) for value in values[: at + 1]) for at in range(len(values))]


def _pieces(
    inputs: Mapping[str, str],
    asked: Sequence[tuple[str, tuple[str, ...], str]],
    form: Callable[[Value, Values], bool],
    states: Callable[[Sequence[Value]], list[State]] = _grown,
) -> Cut:
    """Steps that each ask one piece: instruction, what is read, the piece."""

    def rule(piece: str) -> Callable[[Values], Value]:
        return lambda _: piece

    steps = [
        CutStep(f"piece_{at}", TEXT, instruction, reads, rule(piece), form)
        for at, (instruction, reads, piece) in enumerate(asked, 1)
    ]
    return Cut(inputs, tuple(steps), states)


def substrings(question: str, count: int) -> Cut:
    strings, sets = listed_behind(question, "Strings"), tuples_in(question.partition("Numbers")[2], 3)
    inputs = {"strings": numbered(strings)}
    asked = []
    for at, (which, first, size) in enumerate(sets, 1):
        inputs[f"set_{at}"] = f"string {which}, {size} characters from character {first} on"
        text = "Take those characters of that string, which are counted from 0. Write them alone, without blanks."
        asked.append((text, ("strings", f"set_{at}"), strings[which][first : first + size]))

    def form(value: Value, values: Values) -> bool:
        return any(close(value) in each for each in strings)

    return _pieces(inputs, asked, form)


def strings_by_index(question: str, count: int) -> Cut:
    strings, indices = listed_behind(question, "Strings"), listed_behind(question, "Indices")
    inputs = {"strings": numbered(strings)}
    asked = []
    for at, index in enumerate(indices, 1):
        inputs[f"index_{at}"] = index
        asked.append(("Which string has that index?", ("strings", f"index_{at}"), strings[int(index)]))
    return _pieces(inputs, asked, lambda value, values: str(value) in strings)


def replacing(question: str, count: int) -> Cut:
    pairs = dict(re.findall(r"\((\w), (\w)\)", question))
    text = value_after(question, "String")
    inputs = {"pairs": "; ".join(f"{one} becomes {two}" for one, two in pairs.items())}
    asked = []
    for at, letter in enumerate(text, 1):
        inputs[f"character_{at}"] = letter
        words = "What does the character become? It stays as it is where no pair begins with it."
        asked.append((words, ("pairs", f"character_{at}"), pairs.get(letter, letter)))

    def states(values: Sequence[Value]) -> list[State]:
        done = list(map(close, values))
        return ["".join(done[: at + 1]) + text[at + 1 :] for at in range(len(done))]

    return _pieces(inputs, asked, lambda value, values: len(close(value)) == 1, states)


def runs(question: str, count: int) -> Cut:
    text = value_after(question, "String")
    runs = [f"{match[0][0]}_{len(match[0])}" for match in re.finditer(r"(.)\1*", text)]
    inputs = {"string": text}
    asked = []
    for at, run in enumerate(runs, 1):
        inputs[f"run_{at}"] = f"run {at}"
        words = (
            "How long is that run of equal characters, counted from the left? Write the character, _ and the length."
        )
        asked.append((words, ("string", f"run_{at}"), run))

    def states(values: Sequence[Value]) -> list[State]:
        return [[str(value) for value in values[: at + 1]] for at in range(len(values))]

    return _pieces(inputs, asked, lambda value, values: re.fullmatch(r"[01]_\d+", str(value)) is not None, states)


def pairing(question: str, count: int) -> Cut:
    first, second = listed_behind(question, "Sequence 1"), listed_behind(question, "Sequence 2")
    inputs = {"numbers": ", ".join(first), "letters": ", ".join(second)}
    asked = []
    for at in range(int(value_after(question, "N"))):
        inputs[f"turn_{at + 1}"] = f"number {at + 1}, letter {at + 1}"
        words = (
            "Take that number and that letter, counted from 1; behind the last one the row begins again. Write the "
            "number and the letter, without a blank."
        )
        piece = first[at % len(first)] + second[at % len(second)]
        asked.append((words, ("numbers", "letters", f"turn_{at + 1}"), piece))

    def form(value: Value, values: Values) -> bool:
        return str(value)[:-1] in first and str(value)[-1:] in second

    return _pieces(inputs, asked, form)


def comparing(question: str, count: int) -> Cut:
    target, candidates = value_after(question, "Target"), listed_behind(question, "Candidate")
    candidates = candidates[: candidates.index(target) + 1] if target in candidates else candidates
    inputs = {"target": spaced(target)}
    asked = []
    for at, candidate in enumerate(candidates, 1):
        inputs[f"candidate_{at}"] = spaced(candidate)
        size = next((at for at, (a, b) in enumerate(zip(target, candidate, strict=False)) if a != b), len(target))
        words = (
            "With which letters do both begin alike, up to the first that differs? Write them with blanks between "
            "them; a dash where not even the first is alike."
        )
        asked.append((words, ("target", f"candidate_{at}"), spaced(target[:size])))

    def states(values: Sequence[Value]) -> list[State]:
        prefixes: list[State] = list(map(close, values))
        return [*prefixes[:-1], prefixes] if len(values) == len(candidates) else prefixes

    return _pieces(inputs, asked, lambda value, values: target.startswith(close(value)), states)


def decoding(question: str, count: int) -> Cut:
    parts = re.findall(r"(\w)x(\d+)", question)
    inputs: dict[str, str] = {}
    asked = []
    for at, (letter, times) in enumerate(parts, 1):
        inputs[f"code_{at}"] = f"{letter}x{times}"
        words = "Write the character so many times as the number behind x says, without blanks."
        asked.append((words, (f"code_{at}",), letter * int(times)))
    return _pieces(inputs, asked, lambda value, values: len(set(close(value))) == 1)
