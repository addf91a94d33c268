"""Tasks of BIG-Bench-Hard as families, on items of our own in their form."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from family_harness import check_arms, published_of, run_arm

from stepguard import Guard
from stepguard.cli import main
from stepguard.errors import ConfigError
from stepguard.evaluation.published import FixedFamily, published_named
from stepguard.language.records import Record
from stepguard.testing import Plant, ScriptedBackend, SimulatedModel

pytestmark = pytest.mark.once

PEOPLE = ("Ann", "Ben", "Cleo", "Dan", "Ella", "Finn", "Gwen")
COLOURS = ("pink", "green", "white", "black", "brown", "blue", "red")
QUESTION = "If you follow these instructions, do you return to the starting point? "
NAMES = {
    "tracking": "tracking_shuffled_objects_seven_objects",
    "web_of_lies": "web_of_lies",
    "navigate": "navigate",
    "object_counting": "object_counting",
}


def tracking(chance: random.Random) -> tuple[str, str]:
    """Seven people, seven swaps."""
    held = dict(zip(PEOPLE, chance.sample(COLOURS, 7), strict=True))
    has = [f"{who} has a {what} ball" for who, what in held.items()]
    options = chance.sample(sorted(held.values()), 7)
    text = f"They hold balls. At the start they each have one: {', '.join(has[:-1])}, and {has[-1]}.\nThen they trade. "
    for number in range(7):
        one, other = chance.sample(PEOPLE, 2)
        held[one], held[other] = held[other], held[one]
        text += f"{'First' if not number else 'Finally' if number == 6 else 'Then'}, {one} and {other} swap balls. "
    asked = chance.choice(PEOPLE)
    listed = "\n".join(f"({chr(65 + at)}) {colour} ball" for at, colour in enumerate(options))
    text += f"At the end of the game, {asked} has the\nOptions:\n{listed}"
    return text, f"({chr(65 + options.index(held[asked]))})"


def web_of_lies(chance: random.Random) -> tuple[str, str]:
    """Five people, each about the one before."""
    people = chance.sample(PEOPLE, 5)
    honest = chance.random() < 0.5
    text = f"Question: {people[0]} {'tells the truth' if honest else 'lies'}."
    for about, who in pairwise(people):
        truth = chance.random() < 0.5
        text += f" {who} says {about} {'tells the truth' if truth else 'lies'}."
        honest = truth == honest
    return f"{text} Does {people[-1]} tell the truth?", "Yes" if honest else "No"


def navigate(chance: random.Random) -> tuple[str, str]:
    """There and back again, or not."""
    steps, back = chance.randint(2, 9), chance.randint(1, 2)
    ways = [
        f"Take {steps} steps. Turn around. Take {steps * back} steps.",
        f"Always face forward. Take {steps} steps left. Take 1 step right. Take {steps * back - 1} steps right.",
    ]
    return f"{QUESTION}{chance.choice(ways)}\nOptions:\n- Yes\n- No", "Yes" if back == 1 else "No"


def object_counting(chance: random.Random) -> tuple[str, str]:
    """Fruits among furniture."""
    words = ("a", "two", "three", "four")
    sizes = [chance.randint(1, 3) for _ in range(3)]
    fruits = ["peaches", "plums", "bananas"]
    items = [f"{words[size]} {thing}" for size, thing in zip(sizes, fruits, strict=True)]
    items.insert(1, "a stove")
    return f"I have {', '.join(items[:-1])}, and {items[-1]}. How many fruits do I have?", str(sum(sizes) + 3)


MAKERS = {"tracking": tracking, "web_of_lies": web_of_lies, "navigate": navigate, "object_counting": object_counting}


def item(part: str, seed: int) -> dict[str, Any]:
    """One item in the form of the file."""
    text, target = MAKERS[part](random.Random(f"{part}{seed}"))
    return {"task": NAMES[part], "id": seed, "input": text, "target": target}


def write(folder: Path, items: list[dict[str, Any]]) -> Path:
    """A folder with these items, and a prompt of each task."""
    (folder / "bbh_procedures.jsonl").write_text("\n".join(map(json.dumps, items)), encoding="utf-8")
    prompts = {name: f"canary\n-----\nTask {name}." for name in NAMES.values()}
    (folder / "bbh_cot_prompts.json").write_text(json.dumps(prompts), encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, [item(part, seed) for part in MAKERS for seed in range(5)])


@pytest.fixture(params=MAKERS)
def family(request: pytest.FixtureRequest, folder: Path) -> FixedFamily:
    return published_named(f"bbh(part={request.param})", folder)


def test_every_arm_of_a_perfect_model_solves_every_item(family: FixedFamily) -> None:
    """Free text, structured replies and the guard come to the published answer."""
    check_arms(family, ("cot", "trace", "chunk", "guard"), {"exact match": 1.0})


def test_no_wrong_state_is_accepted(family: FixedFamily) -> None:
    """A wrong value at any step is refused there and never handed on."""
    task = family.make(1, family.lengths[1])
    for step in task.procedure.steps:
        model = SimulatedModel(plants=[Plant(step.id, "wrong_value")], answers=task.solvers)
        with model:
            result = Guard(model).run(task.procedure, task.inputs)
        assert [each.step for attempt in result.attempts for each in attempt.deviations] == [step.id]
        assert all(record.value == task.truth[record.occurrence.step] for record in result.steps)


def test_the_form_of_a_swap_is_that_nothing_is_lost(folder: Path) -> None:
    """The checker that knows the form accepts the two things in either order, and no third one."""
    task = published_named("bbh", folder).task(0)
    plausible = published_of(task).plausible
    assert plausible is not None
    right = task.truth["swap_1"]
    assert isinstance(right, Record)
    one, other = right
    assert plausible("swap_1", right, {})
    assert plausible("swap_1", Record({one: right[other], other: right[one]}), {})
    assert not plausible("swap_1", Record({one: right[one], other: right[one]}), {})


@pytest.mark.parametrize(
    ("part", "text", "score"),
    [
        ("tracking", "(1) ...\nSo the answer is {target}.\n\nQ: more, so the answer is (Z).", 1.0),
        ("tracking", "the answer is {target} ball.", 1.0),
        ("tracking", "{target} is what I would say, but the answer is none.", 0.0),
        ("navigate", "So the answer is {target}.", 1.0),
        ("object_counting", "So the answer is {target}.", 1.0),
        ("object_counting", "So the answer is 1{target}.", 0.0),
        ("web_of_lies", "", 0.0),
    ],
)
def test_the_authors_prompt_is_asked_and_scored_as_they_do(folder: Path, part: str, text: str, score: float) -> None:
    """The item stands behind their examples, without the canary, and their reading finds the answer."""
    task = published_named(f"bbh(part={part})", folder).task(0)
    mine = item(part, 0)
    backend = ScriptedBackend(text.format(target=mine["target"]))
    assert run_arm("authors", task, backend).authors == {"exact match": score}
    said = f"Task {NAMES[part]}.\n\nQ: {mine['input']}\nA: Let's think step by step."
    assert backend.requests[0].messages[-1].content == said


def test_the_bench_runs_every_task(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each task runs by its name on the simulated model; nothing that is called verified is wrong."""
    for part in MAKERS:
        command = ["bench", "--task", f"bbh(part={part})", "--data", str(folder), "-n", "3", "--arms", "chunk,guard"]
        assert main([*command, "--json"]) == 0
        results = json.loads(capsys.readouterr().out)
        assert all(row["silent_errors"] == 0 and row["errors"] == 0 for row in results["whole"]["rows"])


@pytest.mark.parametrize(
    ("part", "changes", "named"),
    [
        ("tracking", {"target": "(H)"}, "line 1: the published answer is '.H.', but the steps give"),
        ("tracking", {"input": "Who has what?"}, "line 1: the item is not of the form"),
        ("web_of_lies", {"input": "Question: Ann lies. Ben says Cleo lies. Does Ben tell the truth?"}, "known of Cleo"),
        ("navigate", {"input": f"{QUESTION}Jump.\nOptions:\n- Yes\n- No"}, "form of navigate"),
        ("object_counting", {"input": "I have some fruits. How many fruits do I have?"}, "form of counting"),
        ("object_counting", {"input": "I have a quokka. How many animals do I have?"}, "kind of thing 'quokka' is"),
    ],
)
def test_an_item_that_is_none_is_refused(tmp_path: Path, part: str, changes: dict[str, str], named: str) -> None:
    """An item whose answer is not what its steps give, or of another form, is named with its line."""
    write(tmp_path, [{**item(part, 0), **changes}])
    with pytest.raises(ConfigError, match=named):
        published_named(f"bbh(part={part})", tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("Then, ", "Next, ", "something else than swaps"),
        ("Then, ", "Ann drops hers. Then, ", "something else than swaps"),
        ("Finally, ", "Finally, Zoe and Ann swap balls. Finally, ", "somebody swaps who has nothing"),
        ("Finally, ", "Finally, Ann and Ann swap balls. Finally, ", "somebody swaps who has nothing"),
        ("(A)", "(B)", "not lettered in order"),
    ],
)
def test_what_happens_beside_swaps_is_not_passed_over(tmp_path: Path, old: str, new: str, named: str) -> None:
    """Whatever the answer, an item is read whole or not at all."""
    made = item("tracking", 0)
    for target in "ABCDEFG":
        changed = {**made, "input": made["input"].replace(old, new, 1), "target": f"({target})"}
        with pytest.raises(ConfigError, match=named):
            published_named("bbh", write(tmp_path, [changed]))


def test_prompts_that_are_missing_are_named(folder: Path) -> None:
    """The file and where it is to be had."""
    (folder / "bbh_cot_prompts.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"bbh_cot_prompts.json has no prompt of navigate.*https://github.com"):
        published_named("bbh(part=navigate)", folder)
    (folder / "bbh_cot_prompts.json").unlink()
    with pytest.raises(ConfigError, match=r"bbh_cot_prompts.json cannot be read"):
        published_named("bbh(part=navigate)", folder)
