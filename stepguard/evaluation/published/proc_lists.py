"""Tasks of ProcBench in which every step changes a list."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

from stepguard.evaluation.published.proc_steps import TEXTS, Cut, Row, behind, texts_of, tuples_in

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
        [behind(question, "String")],
        [f"position {each}" for each in positions],
        "Split where the letter of that position begins. Letters are counted from 0 over all pieces together. Write "
        "all pieces in order.",
        change,
        lambda before, after, _: "".join(before) == "".join(after) and len(after) == len(before) + 1,
    )


def splitting_parts(question: str, count: int) -> Cut:
    pairs = tuples_in(question.partition("Indices")[2], 2)

    def change(items: list[str], at: int) -> list[str]:
        which, place = pairs[at]
        item = items[which] if which < len(items) else ""
        return [*items[:which], item[:place], item[place:], *items[which + 1 :]]

    return _LISTS.cut(
        [behind(question, "String")],
        [f"piece {which}, position {place}" for which, place in pairs],
        "Split that piece where the letter of that position begins; pieces and letters are counted from 0. Write all "
        "pieces in order.",
        change,
        lambda before, after, _: "".join(before) == "".join(after) and len(after) == len(before) + 1,
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
