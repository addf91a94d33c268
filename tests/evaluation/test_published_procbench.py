"""ProcBench's tasks as families, on questions of our own in the authors' form."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from family_harness import check_arms, published_of, run_arm

from stepguard import Guard
from stepguard.cli import main
from stepguard.errors import ConfigError
from stepguard.evaluation.published import FixedFamily, published_named
from stepguard.evaluation.published.procbench import ProcBench
from stepguard.testing import ScriptedBackend, SimulatedModel, Slips
from stepguard.testing.working import wrong_value

pytestmark = pytest.mark.once

ITEMS: dict[int, tuple[str, list[Any], Any]] = {
    1: ("String: ecab", ["aceb", "abec"], "abce"),
    2: (
        "Strings: [abc12, zz9, q4kk]\nSets of Numbers: [(2, 1, 3), (0, 3, 2), (1, 0, 1)]\n",
        ["4kk", "4kk12"],
        "4kk12z",
    ),
    3: ("Strings:\n['a2b', 'xyz']", [["a2b", "2", "2", "4"], ["xyz", "3", "0", "0"]], 4),
    4: ("Strings: [aaa, baab, c]\nSubstrings: [aa, b]\n", [[1, 1, 0]], [1, 3, 0]),
    5: ("Strings: [ab, c9, zz]\nIndices: [1, 1, 2]\n", ["c9", "c9c9"], "c9c9zz"),
    6: ("Pairs:\n(a, 3)\n(b, a)\nString:\nbax", ["aax", "a3x"], "a3x"),
    7: ("String:\n0110", [["0_1"], ["0_1", "1_2"]], ["0_1", "1_2", "0_1"]),
    8: ("String:\nabcdef\nPositions:\n4, 1", [["abcd", "ef"]], ["a", "bcd", "ef"]),
    9: ("String:\nabcdef\nIndices:\n(0, 4), (1, 1)", [["abcd", "ef"]], ["abcd", "e", "f"]),
    10: ("Rules:\na, b -> c\nc, c -> d\nInitial state:\na, b, a, b", [["a", "b", "c"], ["c", "c"]], ["d"]),
    11: ("characters: xaby\nrules:\na -> cq\nb -> zz", ["xcqby"], "xcqzzy"),
    12: ("Sequence 1: 5, 6\nSequence 2: x, y, z\nN: 3", ["5x", "5x6y"], "5x6y5z"),
    13: ("Target: abc\nCandidate: abx, zbc, abc, abc", ["ab", ""], ["ab", "", "abc"]),
    15: ("Sentence: 0x2 1x1\n", ["00"], "001"),
    16: ("Initial string: ab\nActions: pop_left, pop_right, push_left(q), push_right(z)", ["b", "", "q"], "qz"),
    17: ("String:\nabcdef\nIndices:\n(1, 4), (0, 2)", ["adbcef"], "dabcef"),
    19: ("String: abcab\nSteps: \n1. b\n2. b", ["acab"], "aca"),
    21: ("N = 3\nOperations: [Add 4, Multiply 2]\n", [7], 14),
    22: ("Initial array:\nx----\nOperations: [\n (left, 2),\n (right, 6)\n]\n", ["---x-"], "----x"),
    23: ("String: a7k\nCommand: ['7', '3']\n", [["k", "2"], ["a", "1"]], "7"),
}


def rows(number: int) -> list[dict[str, Any]]:
    """The item of a task in the form of the file."""
    question, intermediate, final = ITEMS[number]
    return [{"task": f"task{number:02}", "question": question, "intermediate": intermediate, "final": final}]


def write(folder: Path, items: list[dict[str, Any]]) -> Path:
    """A folder as the authors' generators fill it."""
    (folder / "procbench.jsonl").write_text("\n".join(map(json.dumps, items)), encoding="utf-8")
    instructions = {f"task{number:02}": f"Instructions of {number}." for number in ITEMS}
    (folder / "procbench_instructions.json").write_text(json.dumps(instructions), encoding="utf-8")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, [row for number in ITEMS for row in rows(number)])


@pytest.fixture(params=ITEMS)
def family(request: pytest.FixtureRequest, folder: Path) -> FixedFamily:
    return published_named(f"procbench(number={request.param})", folder)


WHOLE = {"sequential match": 1.0, "prefix accuracy": 1.0}


def test_a_perfect_model_comes_to_every_published_state(family: FixedFamily) -> None:
    """The guard, its segments alone and a structured reply give the states that the authors publish."""
    check_arms(family, ("trace", "chunk", "guard", "guard(checker=form)"), WHOLE)


def test_no_wrong_state_is_accepted(family: FixedFamily) -> None:
    """Whatever another value of a step is, its check refuses it."""
    task = family.task(0)
    published = published_of(task)
    chance = random.Random(1)
    state = {**task.procedure.accept_inputs(task.inputs), **task.truth}
    for step in task.procedure.steps:
        assert published.plausible is not None
        assert published.plausible(step.id, task.truth[step.id], task.truth)
        for _ in range(20):
            wrong = wrong_value(step.type, task.truth[step.id], chance)
            if wrong == task.truth[step.id]:
                continue
            for check in step.checks:
                assert check(step, {**state, step.id: wrong}, None) is False  # type: ignore[arg-type]


def test_slips_are_found(family: FixedFamily) -> None:
    """A model that slips often is never silently wrong."""
    task = family.task(0)
    for seed in range(3):
        model = SimulatedModel(seed, slips=Slips(wrong_value=0.4), answers=task.solvers)
        result = Guard(model).run(task.procedure, task.inputs)
        assert all(record.value == task.truth[record.occurrence.step] for record in result.steps)


@pytest.mark.parametrize(
    ("number", "step", "value", "form"),
    [
        (1, "sorted_1", "02b 05e", True),
        (1, "sorted_1", "24x", False),
        (2, "piece_1", "kk", True),
        (2, "piece_1", "k4", False),
        (3, "marked_1", "a digit; 2 letter; b letter", True),
        (3, "marked_1", "a letter; b letter", False),
        (4, "found_1", "s2", True),
        (4, "found_1", "s4", False),
        (10, "becomes_1", "q", True),
        (10, "becomes_1", "q z", False),
        (16, "change_1", {"where": "end", "letter": "q"}, True),
        (16, "change_1", {"where": "end", "letter": "q z"}, False),
        (19, "change_1", "c02", True),
        (19, "change_1", "b02", False),
        (22, "place_1", 4, True),
        (22, "place_1", 5, False),
    ],
)
def test_form_knows_no_rule(folder: Path, number: int, step: str, value: Any, form: bool) -> None:
    """A permutation, a substring, a length: what could stand there passes, be it right or not."""
    task = published_named(f"procbench(number={number})", folder).task(0)
    plausible = published_of(task).plausible
    assert plausible is not None
    given = task.procedure.steps[0].type.accept(value)
    assert plausible(step, given, {}) is form


@pytest.mark.parametrize(
    ("reply", "match", "prefix"),
    [
        ('{"intermediate": ["aceb", "abec"], "final": "abce"}', 1.0, 1.0),
        ('Here: ```json\n{"intermediate": ["aceb", "abec"], "final": "abec"}\n```', 0.0, 2 / 3),
        ('{"intermediate": ["aceb"], "final": "abce"}', 0.0, 1 / 3),
        ('{"intermediate": ["aceb", "abec", "abce"], "final": "abce"}', 0.0, 3 / 4),
        ("abce", 0.0, 0.0),
        ("{" * 5000, 0.0, 0.0),
    ],
)
def test_replies_are_scored_as_the_authors_do(folder: Path, reply: str, match: float, prefix: float) -> None:
    """Prefix accuracy is the right states before the first wrong one, of the longer of both sequences."""
    task = published_named("procbench(number=1)", folder).task(0)
    backend = ScriptedBackend(reply)
    assert run_arm("authors", task, backend).authors == {
        "sequential match": match,
        "prefix accuracy": pytest.approx(prefix),
    }
    assert (
        backend.requests[0].messages[-1].content.startswith("Instructions of 1.\n\nString: ecab\n\nReply with one JSON")
    )


def test_all_tasks_are_one_family(tmp_path: Path) -> None:
    """A sample has as many items of each task, none twice, spread over the numbers of states."""
    moves = ["(right, 1)"] * 12
    cells = ["-" * (at % 5) + "x" + "-" * (4 - at % 5) for at in range(13)]
    items: list[dict[str, Any]] = []
    for count in range(2, 13):
        question = f"Initial array:\nx----\nOperations: [{', '.join(moves[:count])}]\n"
        items.append({"task": "task22", "question": question, "intermediate": cells[1:count], "final": cells[count]})
        shown = f"Sentence: {' '.join(['1x1'] * count)}\n"
        grown = ["1" * at for at in range(1, count)]
        items.append({"task": "task15", "question": shown, "intermediate": grown, "final": "1" * count})
    family = published_named("procbench", write(tmp_path, items))
    assert isinstance(family, ProcBench)
    for seed in range(5):
        drawn = [number for _, number in family.sample(8, seed)]
        tasks = [family.questions[number].task for number in drawn]
        assert len(set(drawn)) == 8
        assert tasks.count("task22") == tasks.count("task15") == 4
        states = sorted(len(family.questions[number].states) for number in drawn)
        assert states[0] <= 3
        assert states[-1] >= 11
    assert len(set(family.sample(22, 0))) == len(family.sample(None, 0)) == 22


def test_what_is_kept_by_code_follows_what_was_claimed(folder: Path) -> None:
    """Without a checker a wrong change leads to wrong states, which the authors' score counts as such."""
    task = published_named("procbench(number=16)", folder).task(0)
    replies = [
        {"change_1": {"work": "", "value": {"where": "front", "letter": "a"}}},
        {"change_2": {"work": "", "value": {"where": "front", "letter": "b"}}},
        {"change_3": {"work": "", "value": {"where": "end", "letter": "q"}}},
        {"change_4": {"work": "", "value": {"where": "front", "letter": "z"}}},
    ]
    outcome = run_arm("chunk", task, ScriptedBackend(*map(json.dumps, replies)))
    assert outcome.authors == {"sequential match": 0.0, "prefix accuracy": 0.75}


def test_a_run_that_stops_is_scored_by_its_prefix(folder: Path) -> None:
    """What was accepted before a run abstained counts."""
    task = published_named("procbench(number=17)", folder).task(0)
    reached = {name: task.truth[name] for name in ("change_1", "row_1")}
    assert published_of(task).score(reached) == {"sequential match": 0.0, "prefix accuracy": 0.5}


def test_every_prefix_of_right_steps_is_a_prefix_of_the_states(family: FixedFamily) -> None:
    """No state that was reached is lost because the run stopped behind it."""
    task = family.task(0)
    assert isinstance(family, ProcBench)
    names, score = list(task.truth), published_of(task).score
    parts = [{name: task.truth[name] for name in names[:count]} for count in range(len(names) + 1)]
    shares = [score(part)["prefix accuracy"] for part in parts]
    assert shares == sorted(shares)
    assert all(round(share * (len(ITEMS[family.number][1]) + 1), 6).is_integer() for share in shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)


def test_the_bench_runs_a_task(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both measures stand in the results."""
    command = ["bench", "--task", "procbench(number=16)", "--data", str(folder), "--arms", "chunk,guard", "--json"]
    assert main(command) == 0
    (_, guard) = json.loads(capsys.readouterr().out)["whole"]["rows"]
    assert guard["authors"]["sequential match"]["mean"] == guard["authors"]["prefix accuracy"]["mean"] == 1.0


@pytest.mark.parametrize(
    ("number", "changes", "named"),
    [
        (1, {"intermediate": ["aceb", "acbe"]}, "line 1: state 2 of the published 3 is not what the rule gives"),
        (1, {"question": "What?"}, "line 1: the question has no 'String'"),
        (2, {"final": 3}, "line 1: state 3"),
        (1, {"task": "task02"}, "holds no item of that kind"),
        (3, {"question": "Strings:\n['a"}, "line 1: "),
        (10, {"final": ["d"], "intermediate": [*ITEMS[10][1], ["d"]]}, "line 1: no pair has a rule at state 4 of 4"),
    ],
)
def test_an_item_that_is_none_is_refused(tmp_path: Path, number: int, changes: dict[str, Any], named: str) -> None:
    """An item whose states are not what its rule gives, or of another form, is named with its line."""
    write(tmp_path, [{**rows(number)[0], **changes}])
    with pytest.raises(ConfigError, match=named):
        published_named(f"procbench(number={number})", tmp_path)


def test_a_task_that_is_not_there_is_named(folder: Path) -> None:
    """Three of the authors' tasks need sentences of an encyclopaedia."""
    with pytest.raises(ConfigError, match="number"):
        published_named("procbench(number=14)", folder)
