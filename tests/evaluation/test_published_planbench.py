"""PlanBench's plans as a family, on items of our own in the authors' form."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any, cast

import pytest
from family_harness import check_arms, published_of, run_arm

from stepguard import Guard
from stepguard.cli import main
from stepguard.errors import ConfigError
from stepguard.evaluation.families import Family, Task, family_named
from stepguard.evaluation.published import FixedFamily, published_named
from stepguard.language.records import Record
from stepguard.testing import Plant, ScriptedBackend, SimulatedModel

pytestmark = pytest.mark.once

RULES = {
    "blocksworld": "Rules of blocks.",
    "logistics": "Rules of parcels.",
    "mystery_blocksworld": "  Once Attack action is performed the following facts will be true: Pain object.",
}
COLOURS = {"a": "red", "b": "blue", "c": "orange", "d": "yellow"}
FILE = "planbench_execution.jsonl"


def blocks(chance: random.Random) -> tuple[str, list[str], list[str]]:
    """x stands on y, z beside them: y comes to lie on z."""
    x, y, z = chance.sample(sorted(COLOURS), 3)
    cx, cy, cz = (COLOURS[name] for name in (x, y, z))
    state = (
        f"the {cx} block is clear, the {cz} block is clear, the hand is empty, the {cx} block is on top of the {cy} "
        f"block, the {cy} block is on the table and the {cz} block is on the table"
    )
    actions = [
        f"unstack the {cx} block from on top of the {cy} block",
        f"put down the {cx} block",
        f"pick up the {cy} block",
        f"stack the {cy} block on top of the {cz} block",
    ]
    return state, actions, [f"on_{y}_{z}", f"ontable_{z}", f"ontable_{x}", f"clear_{x}", f"clear_{y}", "handempty"]


def mystery(chance: random.Random) -> tuple[str, list[str], list[str]]:
    """The same under other words."""
    x, y, z = chance.sample("abcd", 3)
    state = (
        f"object {x} craves object {y}, harmony, planet object {y}, planet object {z}, province object {x} and "
        f"province object {z}"
    )
    actions = [
        f"feast object {x} from object {y}",
        f"succumb object {x}",
        f"attack object {y}",
        f"overcome object {y} from object {z}",
    ]
    return (
        state,
        actions,
        [f"craves_{y}_{z}", f"planet_{z}", f"planet_{x}", f"province_{x}", f"province_{y}", "harmony"],
    )


def parcels(chance: random.Random) -> tuple[str, list[str], list[str]]:
    """A parcel goes by truck to the airport and by air to the other city."""
    p, t, a = chance.sample(range(5), 3)
    state = (
        f"location_0_0 is an airport, location_1_0 is an airport, airplane_{a} is at location_0_0, package_{p} is at "
        f"location_0_1, truck_{t} is at location_0_0, location_0_0 is in the city city_0, location_0_1 is in the city "
        "city_0 and location_1_0 is in the city city_1"
    )
    actions = [
        f"drive truck_{t} from location_0_0 to location_0_1 in city_0",
        f"load package_{p} into truck_{t} at location_0_1",
        f"drive truck_{t} from location_0_1 to location_0_0 in city_0",
        f"unload package_{p} from truck_{t} at location_0_0",
        f"load package_{p} into airplane_{a} at location_0_0",
        f"fly airplane_{a} from location_0_0 to location_1_0",
    ]
    truth = [
        *("airport_l0-0", "airport_l1-0", "in-city_l0-0_c0", "in-city_l0-1_c0", "in-city_l1-0_c1", "city_c0"),
        *(f"at_a{a}_l1-0", f"at_t{t}_l0-0", f"in_p{p}_a{a}", f"obj_p{p}", f"truck_t{t}"),
    ]
    return state, actions, truth


WORLDS = {"blocksworld": blocks, "logistics": parcels, "mystery_blocksworld": mystery}


def item(domain: str, seed: int) -> dict[str, Any]:
    """One item in the form of the file."""
    state, actions, truth = WORLDS[domain](random.Random(seed))
    query = (
        f"{RULES[domain]}\n\n[STATEMENT]\nAs initial conditions I have that, nothing.\n [ACTION SEQUENCE]\nnone\n\n"
        f"[STATEMENT]\nAs initial conditions I have that, {state}.\n I have executed the following action sequence:\n\n"
        "[ACTION SEQUENCE]\n" + "\n".join(actions) + "\n[ACTION SEQUENCE END]\n[RESULTING STATE]\n"
    )
    return {"domain": domain, "id": seed, "steps": len(actions), "query": query, "truth": truth, "gpt4_right": seed > 2}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Six items of each world."""
    items = [item(domain, seed) for seed in range(6) for domain in WORLDS]
    (tmp_path / FILE).write_text("\n".join(map(json.dumps, items)), encoding="utf-8")
    return tmp_path


@pytest.fixture(params=WORLDS)
def family(request: pytest.FixtureRequest, folder: Path) -> FixedFamily:
    return published_named(f"planbench(domain={request.param})", folder)


def test_every_arm_of_a_perfect_model_solves_every_item(family: FixedFamily) -> None:
    """Free text, structured replies and the guard come to the published final state."""
    assert isinstance(family, Family)
    check_arms(family, ("cot", "trace", "chunk", "guard", "guard(checker=form)"), {"final state": 1.0})


def test_no_wrong_change_is_accepted(family: FixedFamily) -> None:
    """Whichever field of whichever change is another one, the guard refuses it there."""
    task = family.make(0, family.lengths[0])
    published = published_of(task)
    names = sorted({str(each) for value in task.truth.values() if isinstance(value, Record) for each in value.values()})
    for step in task.procedure.steps:
        with SimulatedModel(plants=[Plant(step.id, "wrong_value")], answers=task.solvers) as model:
            result = Guard(model).run(task.procedure, task.inputs)
        assert [each.step for attempt in result.attempts for each in attempt.deviations] == [step.id]
        assert result.status == "checked"
        right = task.truth[step.id]
        assert isinstance(right, Record)
        assert step.type.record is not None
        for key, kind in step.type.record.fields:
            for other in (not right[key],) if kind.kind == "boolean" else (*names, "table", "nothing", "the hand"):
                wrong = Record({**right, key: other})
                assert (step.checks[0](step, {step.id: wrong}, None) is True) == (wrong == right)  # type: ignore[arg-type]
                if wrong != right:  # a state with something wrong in it is not the published one
                    assert published.score({**task.truth, step.id: wrong})["final state"] in (
                        0.0,
                        _undone(task, step.id),
                    )


def _undone(task: Task, step: str) -> float:
    """1 where a later action may set right what a wrong change did: every step but the last."""
    return float(step != task.procedure.answer)


@pytest.mark.parametrize(
    ("domain", "change", "legal"),
    [
        ("blocksworld", {"block": 0, "hand": 0, "place": "hand"}, True),
        ("blocksworld", {"block": 2, "hand": 2, "place": "hand"}, True),  # another legal action than the one asked
        ("blocksworld", {"block": 1, "hand": 1, "place": "hand"}, False),  # it is covered
        ("blocksworld", {"block": 0, "hand": "nothing", "place": "table"}, False),  # it was not held
        ("blocksworld", {"block": 0, "hand": "nothing", "place": "hand"}, False),
    ],
)
def test_legality_alone_lets_another_legal_action_pass(
    folder: Path, domain: str, change: dict[str, Any], legal: bool
) -> None:
    """The checker that knows the form accepts what some action could do in that state, and nothing else."""
    task = published_named(f"planbench(domain={domain})", folder).task(0)
    names = [COLOURS[name] for name in random.Random(0).sample(sorted(COLOURS), 3)]
    value = Record({key: names[each] if isinstance(each, int) else each for key, each in change.items()})
    plausible = published_of(task).plausible
    assert plausible is not None
    assert plausible("step_1", value, {}) is legal


def test_a_form_is_not_judged_where_a_step_before_is_refused(folder: Path) -> None:
    """Which changes are legal depends on those before: behind a refused one all are asked again."""
    task = published_named("planbench", folder).task(0)

    def reply(*names: str, **wrong: dict[str, str]) -> dict[str, Any]:
        right = {name: dict(cast(Record, task.truth[name])) for name in names}
        return {name: {"work": "", "value": wrong.get(name, right[name])} for name in names}

    steps = list(task.truth)
    nowhere = {"block": "red", "hand": "nothing", "place": "nowhere"}
    backend = ScriptedBackend(reply(*steps, step_2=nowhere), *(reply(*steps[at:]) for at in range(1, len(steps))))
    outcome = run_arm("guard(checker=form)", task, backend)
    assert (outcome.right, outcome.trace_right) == (True, True)


def test_the_authors_prompt_is_asked_and_scored_as_they_do(folder: Path) -> None:
    """One call with the query as it stands; the state that is named must be the true one, no fact more or less."""
    task = published_named("planbench", folder).task(0)
    x, y, z = (COLOURS[name] for name in random.Random(0).sample(sorted(COLOURS), 3))
    right = (
        f"the {y} block is on top of the {z} block, the {z} block is on the table, the {x} block is on the table, the "
        f"{x} block is clear, The {y} block is clear and the hand is empty.\n\n[STATEMENT]\nmore"
    )
    for text, score in ((right, 1.0), (right.replace(" and the hand is empty", ""), 0.0), ("", 0.0)):
        backend = ScriptedBackend(text)
        outcome = run_arm("authors", task, backend)
        assert (outcome.authors, outcome.right, outcome.calls) == ({"final state": score}, score == 1.0, 1)
        assert backend.requests[0].messages[-1].content == item("blocksworld", 0)["query"]


def test_the_bench_draws_items_and_goes_on(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`-n` draws the same items for the same seed; `--resume` pays for none twice; the table is over all of them."""
    out = tmp_path / "out"
    options = "-n 4 --seed 3 --arms cot,blind,guard"
    command = ["bench", "--task", "planbench", "--data", str(folder), *options.split()]
    assert main([*command, "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "GPT-4 in the authors' record: 3 of these 6 items" in " ".join(said.split())
    first = (out / "outcomes.jsonl").read_text(encoding="utf-8")
    assert main([*command, "--out", str(out), "--resume", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert sorted((out / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()) == sorted(first.splitlines())
    rows = {row["arm"]: row for row in results["whole"]["rows"]}
    assert (rows["guard"]["n"], rows["guard"]["length"], rows["guard"]["silent_errors"]) == (4, "4-4", 0)
    assert rows["guard"]["authors"]["final state"]["mean"] == 1.0


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"truth": ["clear_a"]}, "line 1: the published state is not what the rules give"),
        ({"query": "What now?"}, "line 1: the query does not end in a statement"),
        ({"truth": "clear_a"}, "line 1: 'truth' is a list in every item"),
        ({"domain": "chess"}, "holds no item of that kind"),
    ],
)
def test_an_item_that_is_none_is_refused(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    """An item whose answer is not what the rules give, or of another form, is named with its line."""
    (tmp_path / FILE).write_text(json.dumps({**item("blocksworld", 0), **changes}), encoding="utf-8")
    with pytest.raises(ConfigError, match=named):
        published_named("planbench", tmp_path)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--task", "planbench"], "name the folder that holds them with --data DIR. .*https://github.com"),
        (["--task", "planbench", "--data", "nowhere"], "there is no folder nowhere. .*https://github.com"),
        (["--task", "planbench", "--data", "{tmp}"], "planbench_execution.jsonl cannot be read: No such file"),
        (["--task", "arithmetic", "--data", "{tmp}"], "'arithmetic' is no published benchmark"),
        (["--data", "{tmp}"], "name it with --task planbench"),
        (["--task", "planbench", "--data", "{tmp}", "--lengths", "5"], "--lengths does not go with --data"),
        (["--task", "planbench(world=x)", "--data", "{tmp}"], "no knob 'world': it takes domain"),
        (["--task", "planbench(domain=x)", "--data", "{tmp}"], "domain is"),
    ],
)
def test_what_is_missing_is_named(
    arguments: list[str], named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing folder or file is named, and where it is to be had."""
    assert main(["bench", "--json", *(each.format(tmp=tmp_path) for each in arguments)]) == 2
    assert re.search(named, capsys.readouterr().err, re.DOTALL)


def test_more_items_than_there_are_cannot_be_drawn(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The number that there is is named."""
    assert main(["bench", "--json", "--task", "planbench", "--data", str(folder), "-n", "7"]) == 2
    assert "how many of the 6 items" in capsys.readouterr().err


def test_form_is_not_known_of_made_up_tasks() -> None:
    """Where nothing but whole rules is known, the arm says so."""
    task = family_named("arithmetic").make(0, 3)
    for arm in ("guard(checker=form)", "authors"):
        outcome = run_arm(arm, task, ScriptedBackend())
        assert outcome.error is not None
        assert "arithmetic" in outcome.error
