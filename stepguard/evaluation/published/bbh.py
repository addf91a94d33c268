"""Four tasks of BIG-Bench-Hard that are procedures (Suzgun and others, arXiv 2210.09261).

The arm ``authors`` asks an item behind the authors' own chain-of-thought prompt and reads the reply as they do. The
other arms get the item cut into steps by code: every swap, statement, move or kind of thing is one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Literal, get_args

from stepguard.core.arguments import check_one_of
from stepguard.errors import ConfigError
from stepguard.evaluation.families import Task
from stepguard.evaluation.families.base import WORDS_SYSTEM, PublishedTask, Scores
from stepguard.evaluation.published.bbh_people import permutes, tracking, web
from stepguard.evaluation.published.bbh_places import QUESTION, counting, navigate
from stepguard.evaluation.published.bbh_reader import BbhReader
from stepguard.evaluation.published.items import FixedFamily, read_items, read_json, understood
from stepguard.language.values import Value

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
        "object_counting", "I have a kiwi, two vases, and three mangoes. How many fruits do I have?", counting, str
    ),
}
"""The tasks by the names of the knob."""


_FILE: Final = "bbh_procedures.jsonl"
_PROMPTS: Final = "bbh_cot_prompts.json"

BbhPart = Literal["tracking", "web_of_lies", "navigate", "object_counting"]

_OPTION: Final = re.compile(r"\([A-Z]\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class BigBenchHard(FixedFamily):
    """The items of one task. The steps, worked out by plain code, give the published answer of each, or it is left out.

    Args:
        part: ``tracking`` (seven objects, seven swaps), ``web_of_lies``, ``navigate`` or ``object_counting``. Of the
            last one, items with things of which we know no kind are left out.

    Raises:
        ConfigError: there is no such task, or the items or prompts cannot be read.
    """

    word: ClassVar[str] = "bbh"
    SOURCE: ClassVar[str] = (
        f"{_FILE} holds items of https://github.com/suzgunmirac/BIG-Bench-Hard (MIT) as JSON lines with task, input "
        f"and target, {_PROMPTS} its cot-prompts by task"
    )
    PUBLISHED_FIGURES: ClassVar[str] = (
        "three-shot chain of thought, exact match, as the arm 'authors' asks; every other arm has the steps cut by code"
    )

    part: BbhPart = "tracking"
    items: tuple[tuple[str, str], ...] = field(init=False, repr=False, default=())
    prompt: str = field(init=False, repr=False, default="")

    def __post_init__(self) -> None:
        check_one_of(self.part, get_args(BbhPart), "part")
        reader = PARTS[self.part]
        items, digest = read_items(self.data, _FILE, self.SOURCE, {"task": str, "input": str, "target": str})
        prompts = read_json(self.data, _PROMPTS, self.SOURCE)
        if reader.name not in prompts:
            raise ConfigError(f"{self.data / _PROMPTS} has no prompt of {reader.name}. {self.SOURCE}", option="data")
        mine = [item for item in items if item["task"] == reader.name]

        def read(item: Mapping[str, Any]) -> tuple[str, str, int]:
            return item["input"], item["target"], _checked(reader, item["input"], item["target"])

        kept, left_out = understood(mine, read, self.data / _FILE, self.SOURCE)
        lengths = tuple(length for *_, length in kept)
        self.keep(items=tuple((text, target) for text, target, _ in kept), lengths=lengths, left_out=left_out)
        self.keep(digest=digest, prompt=prompts[reader.name].partition("-----\n")[2] or prompts[reader.name])

    def task(self, number: int) -> Task:
        text, target = self.items[number]
        reader = PARTS[self.part]
        shown = reader.draft(reader.shown, "shown").demonstration(WORDS_SYSTEM)
        draft = reader.draft(text, f"{self.name}-{number}")
        made = draft.task(self, number, shown)
        run = _Scored(reader, draft.lines[-1].step.id, target)
        prompt = f"{self.prompt.strip()}\n\nQ: {text}\nA: Let's think step by step."
        plausible = None if reader.plausible is None else reader.plausible(text)
        published = PublishedTask(prompt=prompt, read=run.read, score=run.score, plausible=plausible)
        return replace(made, published=published)


def _checked(reader: BbhReader, text: str, target: str) -> int:
    """The number of steps of an item, whose answer is held against what they give.

    Raises ValueError: they give another one, or it is of no form that we know.
    """
    draft = reader.draft(text, "read")
    state: dict[str, Value] = dict(draft.given)
    for line in draft.lines:
        state[line.step.id] = line.solve(state)
    answer = reader.written(state[draft.lines[-1].step.id])
    if answer != target:
        raise ValueError(f"the published answer is {target!r}, but the steps give {answer!r}")
    return len(draft.lines)


@dataclass(frozen=True, slots=True)
class _Scored:
    """Exact match, as the authors judge it."""

    reader: BbhReader
    last: str
    target: str

    def read(self, text: str) -> Scores:
        """What stands behind the last "answer is", an option where the item has some."""
        answer = text.partition("\n\nQ:")[0].rpartition("answer is ")[2].strip()
        option = _OPTION.search(answer)
        if option is not None and self.target.startswith("("):
            answer = option[0]
        return {"exact match": float(answer.removesuffix(".") == self.target)}

    def score(self, values: Mapping[str, Value]) -> Scores:
        """Whether the last step gives the answer."""
        right = self.last in values and self.reader.written(values[self.last]) == self.target
        return {"exact match": float(right)}
