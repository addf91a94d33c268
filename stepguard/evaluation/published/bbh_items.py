"""The tasks of BIG-Bench-Hard by name, each with a small item of our own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stepguard.evaluation.published.bbh_people import permutes, tracking, web
from stepguard.evaluation.published.bbh_places import QUESTION, counting, navigate
from stepguard.evaluation.published.bbh_reader import BbhReader

PARTS: Final[Mapping[str, BbhReader]] = {
    "tracking": BbhReader(
        "tracking_shuffled_objects_seven_objects",
        "Ada, Bo, and Cy hold cards. At the start, they each have one: Ada has a star card, Bo has a moon card, and Cy "
        "has a sun card.\nFirst, Ada and Cy swap cards. Finally, Cy and Bo swap cards. At the end of the game, Bo has "
        "the\nOptions:\n(A) star card\n(B) moon card\n(C) sun card",
        tracking,
        lambda value: f"({value})",
        permutes,
    ),
    "web_of_lies": BbhReader(
        "web_of_lies",
        "Question: Ada lies. Bo says Ada lies. Cy says Bo lies. Does Cy tell the truth?",
        web,
        lambda value: "Yes" if value is True else "No",
    ),
    "navigate": BbhReader(
        "navigate",
        f"{QUESTION}Take 2 steps. Turn right. Take 3 steps. Turn around. Take 3 steps left.\nOptions:\n- Yes\n- No",
        navigate,
        str,
    ),
    "object_counting": BbhReader(
        "object_counting",
        "I have a kiwi, two vases, and three mangoes. How many fruits do I have?",
        counting,
        str,
    ),
}
"""The tasks by the names of the knob."""
