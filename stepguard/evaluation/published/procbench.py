"""ProcBench: procedures over strings, lists and numbers (Fujisawa and others, arXiv 2410.03117).

The instructions say exactly what is to be done, and every state on the way is published. Code cuts a question into
steps (`CUTS`); their rules give every published state of every item, or the item is
left out. The authors measure how far the states are right (prefix accuracy) and whether all are (sequential match).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from operator import eq
from typing import TYPE_CHECKING, Any, ClassVar, Final

from stepguard.core.arguments import check_one_of
from stepguard.errors import ConfigError
from stepguard.evaluation.families import Task
from stepguard.evaluation.families.base import WORDS_SYSTEM, Line, PublishedTask, RuleCheck, Scores, TaskDraft
from stepguard.evaluation.published.items import FixedFamily, constant, read_items, read_json, understood
from stepguard.evaluation.published.proc_numbers import calculating, counting, moving, products, stepping
from stepguard.evaluation.published.proc_pieces import (
    comparing,
    decoding,
    pairing,
    replacing,
    rewriting,
    runs,
    splitting,
    strings_by_index,
    substrings,
)
from stepguard.evaluation.published.proc_replayed import merging, sorting
from stepguard.evaluation.published.proc_rows import pushing, removing, rotating, splitting_parts
from stepguard.evaluation.published.proc_steps import Cut, CutStep, ProcState
from stepguard.language.values import Value
from stepguard.procedure.examples import Example
from stepguard.procedure.inputs import Input
from stepguard.procedure.steps import Step

if TYPE_CHECKING:
    from collections.abc import Iterator


CUTS: Final[Mapping[str, Callable[[str, int], Cut]]] = {
    "task01": sorting, "task02": substrings, "task03": products, "task04": counting, "task05": strings_by_index,
    "task06": replacing, "task07": runs, "task08": splitting, "task09": splitting_parts, "task10": merging,
    "task11": rewriting, "task12": pairing, "task13": comparing, "task15": decoding, "task16": pushing,
    "task17": rotating, "task19": removing, "task21": calculating, "task22": moving, "task23": stepping,
}  # fmt: skip
"""How the questions of each task are cut, given also how many states there are."""

EXAMPLES: Final[Mapping[str, tuple[str, int]]] = {
    "task01": ("String: dkacakqawtkb", 6),
    "task02": ("Strings: [k3mza, qwe7r, tt9yu]\nSets of Numbers: [(1, 2, 2), (0, 1, 3)]\n", 2),
    "task03": ("Strings:\n['k4mz07q', 'aqwte']", 3),
    "task04": ("Strings: [kmqmz, qwert, akmt]\nSubstrings: [km, aq, we, zz]\n", 4),
    "task05": ("Strings: [k3m, qwe7, tt9yu]\nIndices: [2, 0]\n", 2),
    "task06": ("Pairs:\n(k, 3)\n(a, q)\n(7, w)\nString:\nk7a", 3),
    "task07": ("String:\n00000001111", 2),
    "task08": ("String:\nkmzaqwe\nPositions:\n4, 2, 5", 3),
    "task09": ("String:\nkmzaqwe\nIndices:\n(0, 4), (0, 2), (2, 1)", 3),
    "task10": ("Rules:\nk, m -> z\nz, a -> q\nInitial state:\nb, k, m, a, c, t, m", 2),
    "task11": ("characters: kbab\nrules:\nk -> mz\nt -> ss\na -> qw", 2),
    "task12": ("Sequence 1: 4, 7\nSequence 2: k, m, z\nN: 4", 4),
    "task13": ("Target: kmzaqwt\nCandidate: kmzaqtb, kmttat, kmzaqwt", 3),
    "task15": ("Sentence: 1x4 0x8\n", 2),
    "task16": ("Initial string: 472\nActions: pop_left, push_right(9), push_left(5), pop_right", 4),
    "task17": ("String:\nkmzaqwt\nIndices:\n(2, 6), (0, 2)", 2),
    "task19": ("String: kmzkaq\nSteps: \n1. k\n2. q", 2),
    "task21": ("N = 5\nOperations: [Add 7, Multiply 3]\n", 2),
    "task22": ("Initial array:\n-x-----\nOperations: [\n (left, 3),\n (right, 4),\n (left, 1)\n]\n", 3),
    "task23": ("String: k3mzaq\nCommand: ['m', '2']\n", 2),
}
"""A small question of our own for each task, and how many states it has: what demonstrations are made of."""


_FILE: Final = "procbench.jsonl"
_INSTRUCTIONS: Final = "procbench_instructions.json"
_FORM: Final = (
    'Reply with one JSON object and nothing else: {"intermediate": [every state before the final one], '
    '"final": the final state}'
)
_OBJECT: Final = re.compile(r"\{")  # where the object of a reply may begin, among whatever words


@dataclass(frozen=True, slots=True)
class _Question:
    """An item as it was read, with its task and its published states."""

    task: str
    text: str
    states: tuple[ProcState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcBench(FixedFamily):
    """The items of one task, or of all; ``checker=form`` knows a length, a permutation or a substring, and no rule.

    Args:
        number: which of the 20 tasks, as the authors count them: 1 to 13, 15 to 17, 19, 21 to 23; 0: all of them.

    Raises:
        ConfigError: there is no such task, or the items cannot be read.
    """

    word: ClassVar[str] = "procbench"
    SOURCE: ClassVar[str] = (
        f"{_FILE} is made by the generators of https://github.com/ifujisawa/proc-bench (MIT) as JSON lines with task, "
        f"question, intermediate and final, {_INSTRUCTIONS} holds the instructions by task"
    )
    PUBLISHED_FIGURES: ClassVar[str] = (
        "over all 23 tasks, prefix accuracy and sequential match: o1-preview 69.8 and 49.6 %, o1-mini 64.1 and 43.2 %, "
        "GPT-4o 44.3 % and in the twenties. 'authors' asks for JSON, where the authors let another model read the "
        "reply; the items are made again by their generators, and every other arm has the steps cut by code"
    )

    number: int = 0
    questions: tuple[_Question, ...] = field(init=False, repr=False, default=())
    instructions: Mapping[str, str] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.number != 0:
            check_one_of(
                f"task{self.number:02}" if isinstance(self.number, int) else self.number, tuple(CUTS), "number"
            )
        tasks = (f"task{self.number:02}",) if self.number else tuple(CUTS)
        fields = {"task": str, "question": str, "intermediate": list}
        items, digest = read_items(self.data, _FILE, self.SOURCE, fields)
        instructions = read_json(self.data, _INSTRUCTIONS, self.SOURCE)
        mine = [item for item in items if item["task"] in tasks]

        def read(item: Mapping[str, Any]) -> tuple[_Question, int]:
            task, text, states = item["task"], item["question"], (*item["intermediate"], item.get("final"))
            return _Question(task, text, states), _checked(task, text, states)

        questions, left_out = understood(mine, read, self.data / _FILE, self.SOURCE)
        for task in dict.fromkeys(question.task for question, _ in questions):
            if task not in instructions:
                lacking = f"{self.data / _INSTRUCTIONS} holds nothing of {task}. {self.SOURCE}"
                raise ConfigError(lacking, option="data")
        lengths = tuple(length for _, length in questions)
        self.keep(questions=tuple(question for question, _ in questions), lengths=lengths, left_out=left_out)
        self.keep(
            instructions={task: instructions[task].strip() for task in tasks if task in instructions}, digest=digest
        )

    def sample(self, count: int | None, seed: int) -> list[tuple[int, int]]:
        """As `FixedFamily.sample`, with as many items of each task, spread over the numbers of states.

        The items of all tasks together are of as many parts of that range as there are items: one of each.
        """
        by_task: dict[str, list[int]] = {}
        for number in sorted(range(len(self.questions)), key=lambda number: len(self.questions[number].states)):
            by_task.setdefault(self.questions[number].task, []).append(number)
        if count is None or count > len(by_task) * min(map(len, by_task.values())):
            return FixedFamily.sample(self, count, seed)
        chance = random.Random(f"items:{seed}")
        drawn: list[int] = []
        for turn in range(-(-count // len(by_task))):
            tasks = chance.sample(sorted(by_task), min(len(by_task), count - len(drawn)))
            for place, task in enumerate(tasks):
                numbers = by_task[task]
                wanted = int((turn * len(by_task) + place + chance.random()) / count * len(numbers))
                free = [at for at, number in enumerate(numbers) if number not in drawn]
                drawn.append(numbers[min(free, key=lambda at: abs(at - wanted))])
        return [(self.lengths[number], number) for number in sorted(drawn)]

    def task(self, number: int) -> Task:
        question = self.questions[number]
        name, rules = question.task, self.instructions[question.task]
        cut = CUTS[name](question.text, len(question.states))
        examples = _examples(name)
        shown = _draft(CUTS[name](*EXAMPLES[name]), "shown", rules, examples).demonstration(WORDS_SYSTEM)
        made = _draft(cut, f"{name}-{number}", rules, examples).task(self, number, shown)
        run = _ScoredStates(cut, question.states, dict(made.inputs))
        prompt = f"{rules}\n\n{question.text.strip()}\n\n{_FORM}"
        published = PublishedTask(prompt=prompt, read=run.read, score=run.score, plausible=run.plausible)
        return replace(made, published=published)


def _worked(cut: Cut) -> dict[str, Value]:
    """The inputs of a question and the right values of its steps."""
    values: dict[str, Value] = {**cut.inputs, **cut.numbers}
    for step in cut.steps:
        values[step.id] = step.rule(values)
    return values


def _checked(task: str, text: str, states: Sequence[ProcState]) -> int:
    """The number of steps of an item, whose published states are held against what they give.

    Raises ValueError: they give another one, or the question is of no form that we know.
    """
    cut = CUTS[task](text, len(states))
    values = _worked(cut)
    reached = cut.states([values[step.id] for step in cut.steps])
    if reached != list(states):
        at = sum(takewhile(bool, map(eq, reached, states)))
        raise ValueError(f"state {at + 1} of the published {len(states)} is not what the rule gives")
    return len(cut.steps)


def _examples(task: str) -> dict[tuple[str, str], list[Example]]:
    """Worked examples, four at most, for each kind of step, from the question of our own."""
    own = CUTS[task](*EXAMPLES[task])
    values = _worked(own)
    made: dict[tuple[str, str], list[Example]] = {}
    for step in own.steps:
        if step.formula is None and step.keeper is None:
            reads = {name: values[name] for name in step.reads}
            value = step.kind.write(values[step.id])
            examples = made.setdefault(_sort(step), [])
            if len(examples) < 4:
                shown = json.loads(value) if step.kind.structured else values[step.id]
                examples.append(Example(reads, shown, step.work(values)))
    return made


def _sort(step: CutStep) -> tuple[str, str]:
    return step.id.rpartition("_")[0], str(step.kind)


def _draft(cut: Cut, name: str, rules: str, examples: Mapping[tuple[str, str], Sequence[Example]]) -> TaskDraft:
    lines: list[Line] = []
    for each in cut.steps:
        if each.keeper is not None:
            step = Step(
                each.id,
                instruction=each.instruction,
                type=each.kind,
                performer="function",
                operation=each.id,
                arguments=dict(each.keeper.reads),
            )
        elif each.formula is not None:
            step = Step(each.id, each.formula, type=each.kind)
        else:
            step = Step(
                each.id,
                instruction=each.instruction,
                type=each.kind,
                reads=each.reads,
                checks=[RuleCheck("the rule", _follows, (each.rule,))],
                examples=examples.get(_sort(each), ()),
            )
        work = each.work if each.formula is None else constant(each.formula)
        lines.append(Line(step=step, solve=each.rule, work=work))
    longest = max(map(len, cut.inputs.values()), default=0)
    return TaskDraft(
        name=name,
        inputs=[*(Input(each, "text") for each in cut.inputs), *(Input(each, "integer") for each in cut.numbers)],
        given={**cut.inputs, **cut.numbers},
        lines=lines,
        functions={each.id: each.keeper.function for each in cut.steps if each.keeper is not None},
        material=f"{rules}\n\n",
        line_tokens=80 + 4 * longest,
    )


def _follows(value: Value, values: Mapping[str, Value], rule: Callable[[Mapping[str, Value]], Value]) -> bool:
    return value == rule(values)


@dataclass(frozen=True, slots=True)
class _ScoredStates:
    """Prefix accuracy and sequential match of a run's states."""

    cut: Cut
    states: tuple[ProcState, ...]
    inputs: Mapping[str, Value]

    def read(self, text: str) -> Scores:
        """The states of a reply in JSON: the first object with both entries."""
        for data in _objects(text):
            intermediate, final = data.get("intermediate"), data.get("final")
            if isinstance(intermediate, list):
                return self._scores([*intermediate, final])
        return self._scores([])

    def score(self, values: Mapping[str, Value]) -> Scores:
        """The states of the steps up to the first that is missing."""
        reached = [values[step.id] for step in takewhile(lambda step: step.id in values, self.cut.steps)]
        scores = self._scores(self.cut.states(reached) if reached else [])
        return scores if len(reached) == len(self.cut.steps) else {**scores, "sequential match": 0.0}

    def plausible(self, step: str, value: Value, accepted: Mapping[str, Value]) -> bool:
        """What form alone says of a value."""
        cut = next(each for each in self.cut.steps if each.id == step)
        return cut.form(value, {**self.inputs, **accepted})

    def _scores(self, reached: Sequence[ProcState]) -> Scores:
        states, truth = list(map(_as_texts, reached)), list(map(_as_texts, self.states))
        right = sum(takewhile(bool, map(eq, states, truth)))
        return {"sequential match": float(states == truth), "prefix accuracy": right / max(len(states), len(truth))}


def _as_texts(state: ProcState) -> ProcState:
    """A state with numbers as texts: a reply may write either."""
    if isinstance(state, list | tuple):
        return [_as_texts(each) for each in state]
    return str(state)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects that begin somewhere in a text; at most a hundred places are tried."""
    decoder = json.JSONDecoder()
    for count, match in enumerate(_OBJECT.finditer(text)):
        if count >= 100:
            return
        try:
            data, _ = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict):
            yield data
