"""Tasks of ProcBench in which every step changes a row of letters."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from stepguard.evaluation.published.proc_steps import (
    Cut,
    CutStep,
    State,
    Values,
    behind,
    close,
    spaced,
    tuples_in,
)
from stepguard.language.value_types import TEXT
from stepguard.language.values import Value

__all__ = ["pushing", "removing", "rewriting", "rotating", "sorting"]


def _plain(values: Sequence[Value]) -> list[State]:
    return [close(each) for each in values]


def _changing(
    start: str,
    operands: Sequence[str],
    instruction: str,
    change: Callable[[str, int], str],
    form: Callable[[str, str, int], bool],
    extra: Mapping[str, str] | None = None,
) -> Cut:
    """Letters that every step changes.

    Args:
        start: the first state.
        operands: what each step does, in words; empty texts where they are no inputs.
        instruction: what every step asks.
        change: the state after a step, from the state before and the number of the step, from 0.
        form: whether a state could follow another.
        extra: further inputs that every step reads.
    """
    inputs = {"start": spaced(start), **(extra or {})}
    steps: list[CutStep] = []
    before = "start"
    for at, operand in enumerate(operands):
        reads = [before, *(extra or {})]
        if operand:
            inputs[f"action_{at + 1}"] = operand
            reads.append(f"action_{at + 1}")
        steps.append(
            CutStep(
                f"state_{at + 1}",
                TEXT,
                instruction,
                tuple(reads),
                _changed(change, before, at),
                _formed(form, before, at),
            )
        )
        before = f"state_{at + 1}"
    return Cut(inputs, tuple(steps), _plain)


def _changed(change: Callable[[str, int], str], before: str, at: int) -> Callable[[Values], Value]:
    return lambda values: spaced(change(close(values[before]), at))


def _formed(form: Callable[[str, str, int], bool], before: str, at: int) -> Callable[[Value, Values], bool]:
    return lambda value, values: form(close(values[before]), close(value), at)


def sorting(question: str, count: int) -> Cut:
    def change(text: str, at: int) -> str:
        ordered = sorted(text)
        first = next((at for at, letter in enumerate(text) if letter != ordered[at]), None)
        if first is None:
            return text
        second = text.index(ordered[first], first + 1)
        letters = list(text)
        letters[first], letters[second] = letters[second], letters[first]
        return "".join(letters)

    return _changing(
        behind(question, "String"),
        [""] * count,
        "Find the first place that has not the letter it has in alphabetical order. Swap its letter with the first "
        "later place that holds the right one. Write all letters, with blanks between them.",
        change,
        lambda before, after, _: sorted(before) == sorted(after),
    )


def rewriting(question: str, count: int) -> Cut:
    rules: dict[str, str] = dict(re.findall(r"(\w) -> (\w+)", question))

    def change(text: str, at: int) -> str:
        for place, letter in enumerate(text):
            if letter in rules:
                return text[:place] + rules[letter] + text[place + 1 :]
        return text

    return _changing(
        behind(question, "characters"),
        [""] * count,
        "Replace the leftmost letter for which there is a rule, and only that one, as its rule says. Write all "
        "letters, with blanks between them; a dash where none is left.",
        change,
        lambda before, after, _: len(after) == len(before) + 1,
        {"rules": "; ".join(f"{one} becomes {spaced(two)}" for one, two in rules.items())},
    )


def pushing(question: str, count: int) -> Cut:
    actions: list[str] = re.findall(r"pop_left|pop_right|push_left\(.\)|push_right\(.\)", question)

    def change(text: str, at: int) -> str:
        action = actions[at]
        if action == "pop_left":
            return text[1:]
        if action == "pop_right":
            return text[:-1]
        return action[-2] + text if action.startswith("push_left") else text + action[-2]

    return _changing(
        behind(question, "Initial string"),
        actions,
        "Do the action: pop takes a letter away at that end, push adds one there. Write all letters, with blanks "
        "between them; a dash where none is left.",
        change,
        lambda before, after, at: len(after) == len(before) + (-1 if actions[at].startswith("pop") else 1),
    )


def rotating(question: str, count: int) -> Cut:
    pairs = tuples_in(question.partition("Indices")[2], 2)

    def change(text: str, at: int) -> str:
        low, high = pairs[at]
        part = text[low:high]
        return text[:low] + part[-1:] + part[:-1] + text[high:]

    return _changing(
        behind(question, "String"),
        [f"places {low} to {high - 1}" for low, high in pairs],
        "Move the letters of those places, counted from 0, by one to the right: the last of them goes to the first of "
        "these places, all others stay. Write all letters, with blanks between them.",
        change,
        lambda before, after, _: sorted(before) == sorted(after),
    )


def removing(question: str, count: int) -> Cut:
    letters = re.findall(r"\d+\. (\w)", question)
    return _changing(
        behind(question, "String"),
        [f"remove {letter}" for letter in letters],
        "Remove the first such letter, and only that one. Write all letters, with blanks between them.",
        lambda text, at: text.replace(letters[at], "", 1),
        lambda before, after, _: len(after) == len(before) - 1,
    )
