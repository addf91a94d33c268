"""The tasks of ProcBench by number, and a small question of our own for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from stepguard.evaluation.published.proc_letters import pushing, removing, rewriting, rotating, sorting
from stepguard.evaluation.published.proc_lists import merging, splitting, splitting_parts
from stepguard.evaluation.published.proc_numbers import calculating, counting, moving, products, stepping
from stepguard.evaluation.published.proc_pieces import (
    comparing,
    decoding,
    pairing,
    replacing,
    runs,
    strings_by_index,
    substrings,
)
from stepguard.evaluation.published.proc_steps import Cut

CUTS: Final[Mapping[str, Callable[[str, int], Cut]]] = {
    "task01": sorting, "task02": substrings, "task03": products, "task04": counting, "task05": strings_by_index,
    "task06": replacing, "task07": runs, "task08": splitting, "task09": splitting_parts, "task10": merging,
    "task11": rewriting, "task12": pairing, "task13": comparing, "task15": decoding, "task16": pushing,
    "task17": rotating, "task19": removing, "task21": calculating, "task22": moving, "task23": stepping,
}  # fmt: skip
"""How the questions of each task are cut, given also how many states there are."""

SHOWN: Final[Mapping[str, tuple[str, int]]] = {
    "task01": ("String: dacb", 2),
    "task02": ("Strings: [k3mza, qwe7r, tt9yu]\nSets of Numbers: [(1, 2, 2), (0, 1, 3)]\n", 2),
    "task03": ("Strings:\n['a4b07', 'kq']", 3),
    "task04": ("Strings: [abab, cab, dd]\nSubstrings: [ab, d]\n", 2),
    "task05": ("Strings: [k3m, qwe7, tt9yu]\nIndices: [2, 0]\n", 2),
    "task06": ("Pairs:\n(k, 3)\n(7, w)\nString:\nk7b", 3),
    "task07": ("String:\n00010", 3),
    "task08": ("String:\nkmzaqwe\nPositions:\n4, 2", 2),
    "task09": ("String:\nkmzaqwe\nIndices:\n(0, 4), (0, 2)", 2),
    "task10": ("Rules:\nk, m -> z\nz, a -> q\nInitial state:\nb, k, m, a, c", 2),
    "task11": ("characters: bka\nrules:\nk -> mz\na -> qw", 2),
    "task12": ("Sequence 1: 4, 7\nSequence 2: k, m, z\nN: 3", 3),
    "task13": ("Target: kmza\nCandidate: kmqq, kzma, kmza", 3),
    "task15": ("Sentence: 1x3 0x2\n", 2),
    "task16": ("Initial string: kmz\nActions: pop_left, push_right(q), push_left(w), pop_right", 4),
    "task17": ("String:\nkmzaq\nIndices:\n(1, 4), (0, 2)", 2),
    "task19": ("String: kmzkaq\nSteps: \n1. k\n2. q", 2),
    "task21": ("N = 5\nOperations: [Add 7, Multiply 3]\n", 2),
    "task22": ("Initial array:\n-x---\nOperations: [\n (left, 3),\n (right, 4)\n]\n", 2),
    "task23": ("String: k3mz\nCommand: ['z', '2']\n", 2),
}
"""A small question of our own for each task, and how many states it has: what demonstrations are made of."""
