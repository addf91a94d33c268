"""Tasks of ProcBench in which every step changes a row of letters, or a list."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from stepguard.evaluation.published.proc_steps import TEXTS, Cut, Row, close, spaced, texts_of, tuples_in, value_after
from stepguard.language.value_types import TEXT

_LETTERS: Final = Row(TEXT, spaced, close, spaced)


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

    return _LETTERS.cut(
        value_after(question, "String"),
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

    return _LETTERS.cut(
        value_after(question, "characters"),
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

    return _LETTERS.cut(
        value_after(question, "Initial string"),
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

    return _LETTERS.cut(
        value_after(question, "String"),
        [f"places {low} to {high - 1}" for low, high in pairs],
        "Move the letters of those places, counted from 0, by one to the right: the last of them goes to the first of "
        "these places, all others stay. Write all letters, with blanks between them.",
        change,
        lambda before, after, _: sorted(before) == sorted(after),
    )


def removing(question: str, count: int) -> Cut:
    letters = re.findall(r"\d+\. (\w)", question)
    return _LETTERS.cut(
        value_after(question, "String"),
        [f"remove {letter}" for letter in letters],
        "Remove the first such letter, and only that one. Write all letters, with blanks between them.",
        lambda text, at: text.replace(letters[at], "", 1),
        lambda before, after, _: len(after) == len(before) - 1,
    )


_LISTS: Final = Row(TEXTS, tuple, texts_of, ", ".join)


def splitting(question: str, count: int) -> Cut:
    positions = [int(each) for each in re.findall(r"\d+", question.partition("Positions")[2])]

    def change(items: list[str], at: int) -> list[str]:
        whole, cuts = "".join(items), [0]
        for item in items:
            cuts.append(cuts[-1] + len(item))
        cuts = sorted({*cuts, positions[at]})
        return [whole[low:high] for low, high in pairwise(cuts)]

    return _LISTS.cut(
        [value_after(question, "String")],
        [f"position {position}" for position in positions],
        "Split where the letter of that position begins. Letters are counted from 0 over all pieces together. Write "
        "all pieces in order.",
        change,
        _is_cut_once,
    )


def _is_cut_once(before: Sequence[str], after: Sequence[str], _: object) -> bool:
    return "".join(before) == "".join(after) and len(after) == len(before) + 1


def splitting_parts(question: str, count: int) -> Cut:
    pairs = tuples_in(question.partition("Indices")[2], 2)

    def change(items: list[str], at: int) -> list[str]:
        which, place = pairs[at]
        item = items[which] if which < len(items) else ""
        return [*items[:which], item[:place], item[place:], *items[which + 1 :]]

    return _LISTS.cut(
        [value_after(question, "String")],
        [f"piece {which}, position {place}" for which, place in pairs],
        "Split that piece where the letter of that position begins; pieces and letters are counted from 0. Write all "
        "pieces in order.",
        change,
        _is_cut_once,
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

    return _LISTS.cut(
        [piece.strip() for piece in start[1].split(",")],
        [""] * count,
        "Find the rightmost two neighbours for which there is a rule, in that order, and replace these two by the one "
        "it says. Write all letters in order.",
        change,
        lambda before, after, _: len(after) == len(before) - 1,
        {"rules": "; ".join(f"{one}, {two} become {three}" for (one, two), three in rules.items())},
    )
