"""PlanBench, plan execution: which state is there after these actions? (Valmeekam and others, arXiv 2206.10498)

A step is an action, and asks only what it changes: in the world of blocks the block that moves, what the hand holds
and where the block is. The whole state is kept by code, which puts the changes together. That is a decomposition, and
said to be one: the authors ask for the whole final state in one text, and the arm ``authors`` does so in their words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, get_args

from stepguard.core.arguments import check_one_of
from stepguard.evaluation.families import Task
from stepguard.evaluation.families.base import WORDS_SYSTEM, Line, PublishedTask, RuleCheck, Scores, TaskDraft
from stepguard.evaluation.published.items import FixedFamily, read_items, understood
from stepguard.evaluation.published.plan_changes import (
    PlanDomain,
    applied,
    change_in_words,
    change_type,
    is_ruled_change,
    ruled_change,
)
from stepguard.evaluation.published.plan_rules import DOMAINS, Facts, PlanAction
from stepguard.language.records import Record
from stepguard.language.values import Value
from stepguard.procedure.examples import Example
from stepguard.procedure.inputs import Input
from stepguard.procedure.steps import Step

_FILE: Final = "planbench_execution.jsonl"
_ITEM: Final = re.compile(
    r"\s*As initial conditions I have that,? (?P<state>[^\n]*?)\.?\n\s*I have executed the following action sequence:"
    r"\s*\[ACTION SEQUENCE\]\n(?P<actions>.*?)\n\[ACTION SEQUENCE END\]\s*\[RESULTING STATE\]\s*",
    re.DOTALL,
)
_FIELDS: Final[Mapping[str, str]] = {
    "blocksworld": "Give the block that moves, what the hand holds then (a block or nothing), and where the block is "
    "then (hand, table, or the block that it is on).",
    "logistics": "Give what moves, and where it is then: the location, or the truck or airplane that it is in.",
    "mystery_blocksworld": "Give the object of every fact that is true then, and after no_ of every fact that is "
    "false then (of a fact about two objects both), and whether harmony is true then.",
}
_EXAMPLES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "blocksworld": (
        "the green block is clear, the white block is clear, the hand is empty, the white block is on top of the "
        "black block, the black block is on the table, the green block is on the table",
        (
            "unstack the white block from on top of the black block",
            "put down the white block",
            "pick up the black block",
            "stack the black block on top of the green block",
        ),
    ),
    "logistics": (
        "location_7_0 is an airport, location_8_0 is an airport, location_7_0 is in the city city_7, location_7_1 is "
        "in the city city_7, location_8_0 is in the city city_8, truck_7 is at location_7_0, airplane_7 is at "
        "location_7_0, package_7 is at location_7_1",
        (
            "drive truck_7 from location_7_0 to location_7_1 in city_7",
            "load package_7 into truck_7 at location_7_1",
            "drive truck_7 from location_7_1 to location_7_0 in city_7",
            "unload package_7 from truck_7 at location_7_0",
            "load package_7 into airplane_7 at location_7_0",
            "fly airplane_7 from location_7_0 to location_8_0",
            "unload package_7 from airplane_7 at location_8_0",
        ),
    ),
    "mystery_blocksworld": (
        "province object m, province object k, harmony, object k craves object n, planet object n, planet object m",
        ("feast object k from object n", "succumb object k", "attack object n", "overcome object n from object m"),
    ),
}
"""A small plan of our own for each world, with every kind of action: what demonstrations are made of."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """An item as it was read: its world, the rules in words, the first state, the actions, the final state."""

    domain: str
    material: str
    start: Facts
    actions: tuple[str, ...]
    query: str
    truth: Facts

    def parsed(self) -> list[PlanAction]:
        actions = [DOMAINS[self.domain].action(text) for text in self.actions]
        return [action for action in actions if action is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanBench(FixedFamily):
    """The plans of one world; ``checker=form`` of the guard knows which changes a legal action can make, not which.

    The rules, carried out by code, give the published final state of every item, or it is left out.

    Args:
        domain: ``blocksworld``, ``logistics``, or ``mystery_blocksworld``, the first one under meaningless words.

    Raises:
        ConfigError: there is no such world, or the items cannot be read.
    """

    word: ClassVar[str] = "planbench"
    SOURCE: ClassVar[str] = (
        f"{_FILE} is task 7 of PlanBench as JSON lines with domain, query, truth and gpt4_right, made from "
        "https://github.com/karthikv792/LLMs-Planning (plan-bench, MIT)"
    )
    PUBLISHED_FIGURES: ClassVar[str] = (
        "one-shot prompt, final state right, as the arm 'authors' asks; every other arm has the actions taken apart "
        "and the changes put together by code"
    )

    domain: PlanDomain = "blocksworld"
    plans: tuple[_Plan, ...] = field(init=False, repr=False, default=())
    recorded: tuple[int, int] = field(init=False, repr=False, default=(0, 0))

    def __post_init__(self) -> None:
        check_one_of(self.domain, get_args(PlanDomain), "domain")
        fields = {"domain": str, "query": str, "truth": list}
        items, digest = read_items(self.data, _FILE, self.SOURCE, fields)
        mine = [item for item in items if item["domain"] == self.domain]
        plans, left_out = understood(mine, _plan, self.data / _FILE, self.SOURCE)
        gpt4 = [item["gpt4_right"] for item in mine if isinstance(item.get("gpt4_right"), bool)]
        lengths = tuple(len(plan.actions) for plan in plans)
        self.keep(plans=tuple(plans), lengths=lengths, left_out=left_out, digest=digest)
        self.keep(recorded=(sum(gpt4), len(gpt4)))

    def describe(self) -> dict[str, Any]:
        right, count = self.recorded
        about = FixedFamily.describe(self)
        if count:
            about["published"] += f"; GPT-4 in the authors' record: {right} of these {count} items"
        return about

    def task(self, number: int) -> Task:
        plan = self.plans[number]
        shown = _draft(_example_plan(plan), "shown").demonstration(WORDS_SYSTEM)
        made = _draft(plan, f"{self.name}-{number}").task(self, number, shown)
        run = _Run(plan)
        published = PublishedTask(prompt=plan.query, read=run.read, score=run.score, plausible=run.legal)
        return replace(made, published=published)


@dataclass(frozen=True, slots=True)
class _Run:
    """What a run of a plan comes to as a state."""

    plan: _Plan

    def read(self, text: str) -> Scores:
        """The authors' score of a state in words: it is the true one, no fact more and none less."""
        state = text.rpartition("[RESULTING STATE]")[2].partition("[")[0]
        return {"final state": float(DOMAINS[self.plan.domain].read(state)[0] == self.plan.truth)}

    def score(self, values: Mapping[str, Value]) -> Scores:
        """The same of the state that the changes lead to."""
        names = [f"step_{at}" for at in range(1, len(self.plan.actions) + 1)]
        whole = all(name in values for name in names)
        return {"final state": float(whole and self.state(names, values) == self.plan.truth)}

    def state(self, names: Sequence[str], values: Mapping[str, Value]) -> Facts:
        """The state after some changes."""
        state = self.plan.start
        for name in names:
            value = values[name]
            if isinstance(value, Record):
                state = applied(self.plan.domain, state, value)
        return state

    def legal(self, step: str, value: Value, accepted: Mapping[str, Value]) -> bool:
        """Whether some legal action makes this change, in the state that the changes before lead to."""
        number = int(step.rpartition("_")[2])
        state = self.state([f"step_{at}" for at in range(1, number)], accepted)
        domain = DOMAINS[self.plan.domain]
        return any(ruled_change(self.plan.domain, action) == value for action in domain.legal_actions(state))


def _plan(item: Mapping[str, Any]) -> _Plan:
    """An item, with its published final state held against the rules.

    Raises ValueError: it is another one, or the item is of another form.
    """
    name = item["domain"]
    domain = DOMAINS[name]
    material, mark, last = item["query"].rpartition("[STATEMENT]")
    match = _ITEM.fullmatch(last)
    if not mark or match is None:
        raise ValueError("the query does not end in a statement of the benchmark's form")
    start, left = domain.read(match["state"])
    if left:
        raise ValueError(f"{left[0]!r} is no fact of {name}")
    actions = tuple(text.strip() for text in match["actions"].split("\n"))
    state = start
    for text in actions:
        action = domain.action(text)
        if action is None or not domain.legal(action, state):
            raise ValueError(f"{text!r} is no legal action of {name} there")
        state = domain.after(action, state)
    truth = domain.published(map(str, item["truth"]))
    if state != truth:
        odd = sorted(" ".join(fact) for fact in state ^ truth)
        raise ValueError(f"the published state is not what the rules give: they differ in {odd[:3]}")
    return _Plan(name, material.partition("[STATEMENT]")[0], start, actions, item["query"], truth)


def _draft(plan: _Plan, name: str) -> TaskDraft:
    """Every action a step."""
    examples = _examples(plan)
    rule = _FIELDS[plan.domain]
    lines: list[Line] = []
    for number, action in enumerate(plan.parsed(), 1):
        step = Step(
            f"step_{number}",
            instruction=f"{_effects(plan, action)}{rule}",
            type=change_type(plan.domain, action.kind),
            reads=[f"action_{number}"],
            checks=[RuleCheck("the action's effects", is_ruled_change, (plan.domain, action))],
            examples=examples.get(action.kind, ()),
        )
        lines.append(_line(plan.domain, step))
    return TaskDraft(
        name=name,
        inputs=[Input(f"action_{number}", "text") for number in range(1, len(plan.actions) + 1)],
        given={f"action_{number}": text for number, text in enumerate(plan.actions, 1)},
        lines=lines,
        material=f"{plan.material.strip()}\n\n{rule}\n",
        line_tokens=120,
    )


def _line(domain: str, step: Step) -> Line:
    """A step with what its action changes, by its words."""
    (action,) = step.reads
    return Line(
        step=step,
        solve=lambda values: change_in_words(domain, str(values[action])),
        work=lambda values: str(values[action]),
        brief="What the action changes",
    )


def _effects(plan: _Plan, action: PlanAction) -> str:
    """The effects of an action as the item's own text states them: "Once I pick up or unstack a block, I am ..."."""
    begins = f"Once {action.kind.capitalize()} action" if plan.domain == "mystery_blocksworld" else "Once I "
    lines = [" ".join(line.split()) for line in plan.material.splitlines()]
    stated = [line for line in lines if line.startswith(begins)]
    if plan.domain != "mystery_blocksworld":
        words = re.compile(rf"\b{action.kind.replace('-', ' ').replace('_', ' ')}\b")
        stated = [line for line in stated if words.search(line.partition(",")[0])]
    return "".join(f"{line} " for line in stated)


def _example_plan(plan: _Plan) -> _Plan:
    """The small plan that is shown for the world of another, under the same rules in words."""
    state, actions = _EXAMPLES[plan.domain]
    start = DOMAINS[plan.domain].read(state)[0]
    return replace(plan, start=start, actions=actions, truth=start)


def _examples(plan: _Plan) -> dict[str, list[Example]]:
    """One worked example for each kind of action."""
    own = _example_plan(plan)
    return {
        action.kind: [Example({"action": text}, dict(change_in_words(plan.domain, text)), text)]
        for text, action in zip(own.actions, own.parsed(), strict=True)
    }
