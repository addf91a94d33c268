"""The bundled benchmark: tasks with known truth, honest extraction, right statistics, runs that survive a kill."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tables import all_rows

from stepguard.backends.base import Completion, Request
from stepguard.backends.recorded import RecordedBackend
from stepguard.cli import main
from stepguard.errors import BackendError, ConfigError
from stepguard.evaluation.arms import ArmOptions, TaskOutcome, arm_named, read_run
from stepguard.evaluation.families import Arithmetic, Task, family_named
from stepguard.evaluation.report.results_file import make_results
from stepguard.evaluation.runner import Plan, SimulatedTasks, run_plan
from stepguard.evaluation.statistics import compare, wilson
from stepguard.language.values import to_exact
from stepguard.testing import SimulatedModel, Slips
from stepguard.testing.profiles import PROFILES

pytestmark = pytest.mark.once

FAMILY = Arithmetic()
TWO = FAMILY.make(0, 2)


def recompute(task: Task) -> dict[str, int]:
    """The values of a program read from its own text."""
    state = {name: int(to_exact(value)) for name, value in task.inputs.items()}
    for line in str(task.procedure).splitlines():
        name, _, formula = line.partition(": integer = ")
        if not formula:
            continue
        left, sign, right = (str(state.get(part, part)) for part in formula.split())
        a, b = int(left), int(right)
        state[name] = {"+": a + b, "-": a - b, "*": a * b}[sign]
    return state


# Tasks


@all_rows("length", [1, 2, 5, 20, 50])
def test_a_task_is_what_its_text_computes(length: int) -> None:
    """The truth of every instance is what its own text gives, within the declared limits."""
    for seed in range(10):
        task = FAMILY.make(seed, length)
        state = recompute(task)
        assert {name: state[name] for name in task.truth} == dict(task.truth)
        assert all(abs(int(to_exact(value))) <= FAMILY.limit for value in task.truth.values())
        order = ["x", "y", *task.truth]
        for at, step in enumerate(task.procedure.steps):
            assert all(at + 2 - order.index(name) <= FAMILY.look_back for name in step.reads)


def test_unknown_families_and_arms_are_named() -> None:
    """A family or arm that does not exist is refused with the ones that do."""
    with pytest.raises(ConfigError, match="arithmetic"):
        family_named("geometry")
    with pytest.raises(ConfigError, match="cot, authors, trace"):
        arm_named("oracle")


# Reading a transcript


def test_a_trace_is_read_by_step_names() -> None:
    """A step's value is the right end of its own line, the last one where there are several; none shifts another."""
    text = "t1 = x + y = 1 + 2 = 3\n- t3: 4 * 2 = 8\nt4 = 1\nt4 = 2\nt9 = 9"
    assert read_run(FAMILY.make(0, 4), text).values == {"t1": 3, "t3": 8, "t4": 2}


# Statistics


@all_rows(
    "successes, n, low, high",
    [(0, 0, 0.0, 1.0), (0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (19, 20, 0.7639, 0.9911), (1, 1, 0.2065, 1.0)],
)
def test_wilson_at_and_inside_the_boundaries(successes: int, n: int, low: float, high: float) -> None:
    """The Wilson interval has its published values, also for none, all and one."""
    assert wilson(successes, n) == pytest.approx((low, high), abs=1e-4)


def test_paired_comparison_counts_and_bounds() -> None:
    """Differences, rescued, harmed and the exact test follow from the pairs; the interval holds the difference."""
    first = [True] * 15 + [False] * 2 + [True] * 3
    second = [True] * 10 + [False] * 5 + [True] * 2 + [False] * 3
    found = compare(first, second)
    assert (found.n, found.rescued, found.harmed) == (20, 8, 2)
    assert found.difference == pytest.approx(0.3)
    assert found.interval[0] < 0.3 < found.interval[1]
    assert found.p_value == pytest.approx(2 * (1 + 10 + 45) / 2**10)
    assert found.recovered == pytest.approx(1 - 2 / 8)
    assert found.recovered_interval is not None
    assert found.recovered_interval[0] <= 0.75 <= found.recovered_interval[1]


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("n", [1, 12])
def test_paired_comparison_without_discordant_pairs(n: int, right: bool) -> None:
    """Equal outcomes give a difference of zero, p = 1, and no ratio where the baseline has no errors."""
    found = compare([right] * n, [right] * n)
    assert (found.difference, found.p_value, found.rescued, found.harmed) == (0, 1, 0, 0)
    assert found.interval[0] <= 0 <= found.interval[1]
    assert (found.recovered is None) == right


def test_paired_comparison_needs_pairs() -> None:
    """Nothing to compare is an error, not a figure."""
    with pytest.raises(ValueError, match="paired outcomes"):
        compare([], [])
    with pytest.raises(ValueError, match="paired outcomes"):
        compare([True], [])


# Arms and runner


class Failing:
    """A model whose endpoint refuses some programs."""

    def __init__(self, model: SimulatedModel, seeds: set[int]) -> None:
        self._model = model
        self._bad = {json.dumps(dict(FAMILY.make(seed, 5).inputs)) for seed in seeds}

    def complete(self, request: Request) -> Completion:
        if json.dumps({name: request.values.get(name) for name in ("x", "y")}) in self._bad:
            raise BackendError("no", retryable=False)
        return self._model.complete(request)


def plan(n: int = 3, arms: tuple[str, ...] = ("cot", "chunk", "guard"), lengths: tuple[int, ...] = (5, 8)) -> Plan:
    return Plan(family=FAMILY, cells=dict.fromkeys(lengths, n), arms=arms, seed=0, options=ArmOptions(segment=3))


def run(what: Plan, backend: Any, *, concurrency: int = 4, **options: Any) -> list[TaskOutcome]:
    return asyncio.run(run_plan(what, backend, configuration={"v": 1}, concurrency=concurrency, **options))


@pytest.mark.slow
def test_the_chunk_arm_shows_what_the_guard_repairs() -> None:
    """On a slipping model the guard is never silently wrong and ends right more often than its own unchecked chunks."""
    outcomes = run(plan(30, lengths=(12,)), SimulatedModel(5, slips=replace(Slips(), wrong_value=0.08)))
    results = make_results(outcomes, {})
    by_arm = {row["arm"]: row for row in results["rows"]}
    assert by_arm["guard"]["silent_errors"] == 0
    assert by_arm["guard"]["accuracy"] > by_arm["chunk"]["accuracy"]
    assert by_arm["guard"]["accuracy"] == by_arm["guard"]["verified"]
    assert by_arm["chunk"]["verified"] == 0
    assert by_arm["chunk"]["deviations"]["wrong_value"] > 0
    assert {pair["baseline"] for pair in results["paired"]} == {"cot", "chunk"}


def test_errors_stay_in_the_denominator() -> None:
    """A run that failed counts as wrong; the share without errors is given beside it."""
    outcomes = run(plan(10, arms=("cot",), lengths=(5,)), Failing(SimulatedModel(slips=Slips.none()), {0, 1}))
    (row,) = make_results(outcomes, {})["rows"]
    assert (row["n"], row["accuracy"], row["errors"], row["accuracy_without_errors"]) == (10, 0.8, 2, 1.0)


def test_concurrency_changes_nothing() -> None:
    """One at a time and eight at a time give the same outcomes but for the seconds."""
    one, eight = (run(plan(), SimulatedModel(1), concurrency=each) for each in (1, 8))
    assert [replace(each, seconds=0) for each in one] == [replace(each, seconds=0) for each in eight]


def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    """After a kill, also in the middle of a line, a resumed run does only what is missing and ends the same."""
    whole = run(plan(), SimulatedModel(2), folder=tmp_path / "whole")
    lines = (tmp_path / "whole" / "outcomes.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "outcomes.jsonl").write_text("".join(lines[:10]) + lines[10][:40], encoding="utf-8")
    newly: list[TaskOutcome] = []
    again = run(
        plan(),
        SimulatedModel(2),
        folder=tmp_path / "cut",
        resume=True,
        progress=lambda done, total, newest: newly.append(newest),
    )
    assert len(newly) == len(whole) - 9
    assert [replace(each, seconds=0) for each in again] == [replace(each, seconds=0) for each in whole]
    run(plan(), SimulatedModel(2), folder=tmp_path / "cut", resume=True, progress=lambda *_: pytest.fail("done twice"))


@pytest.mark.parametrize(
    "damage", [b"garbage\n", b"\0" * 200 + b"\n", b"\xe9\n", b'{"arm": "cot"}\n', b"[]\n", b"\n", b'"\xff"\n{\n']
)
def test_a_damaged_line_is_run_again(tmp_path: Path, damage: bytes) -> None:
    """It stands for no outcome: the run goes on, says how many lines were left out, and ends the same."""
    whole = run(plan(), SimulatedModel(2), folder=tmp_path)
    path = tmp_path / "outcomes.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"\xef\xbb\xbf" + b"".join(lines[:3]) + damage + b"".join(lines[4:]))
    newly: list[TaskOutcome] = []
    damaged: list[int] = []
    again = run(
        plan(),
        SimulatedModel(2),
        folder=tmp_path,
        resume=True,
        progress=lambda done, total, newest: newly.append(newest),
        damaged=damaged.append,
    )
    assert len(newly) == 1
    assert damaged == ([damage.count(b"\n")] if damage.strip() else [])
    assert [replace(each, seconds=0) for each in again] == [replace(each, seconds=0) for each in whole]
    assert len(path.read_bytes().splitlines()) == len(lines)


@pytest.mark.parametrize("first", [b"garbage\n", b"\xff\xfe{\0\n", b"\n"])
def test_outcomes_of_an_unknown_configuration_are_left_alone(tmp_path: Path, first: bytes) -> None:
    """Where the line with the configuration is damaged, nothing is run or changed."""
    run(plan(1), SimulatedModel(), folder=tmp_path)
    path = tmp_path / "outcomes.jsonl"
    path.write_bytes(first + path.read_bytes())
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="is damaged"):
        run(plan(1), SimulatedModel(), folder=tmp_path, resume=True)
    assert path.read_bytes() == before


def test_a_kill_at_the_beginning_of_a_resumed_run_loses_no_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcomes that are taken over replace the old file in one piece."""
    whole = run(plan(), SimulatedModel(2), folder=tmp_path)
    before = (tmp_path / "outcomes.jsonl").read_bytes()

    def killed(path: Path, text: str, **_: object) -> int:
        path.write_bytes(text.encode()[: len(text) // 2])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", killed)
        with pytest.raises(KeyboardInterrupt):
            run(plan(), SimulatedModel(2), folder=tmp_path, resume=True)
    assert (tmp_path / "outcomes.jsonl").read_bytes() == before
    again = run(plan(), SimulatedModel(2), folder=tmp_path, resume=True, progress=lambda *_: pytest.fail("done twice"))
    assert again == whole


def test_what_ended_in_an_error_is_run_again(tmp_path: Path) -> None:
    """A resumed run tries the programs again that the endpoint had failed, and only those."""
    model = SimulatedModel(slips=Slips.none())
    broken = run(plan(lengths=(5,)), Failing(model, {0, 2}), folder=tmp_path)
    assert [each.seed for each in broken if each.error is not None] == [0, 0, 0, 2, 2, 2]
    asked: list[TaskOutcome] = []
    again = run(
        plan(lengths=(5,)),
        Failing(model, set()),
        folder=tmp_path,
        resume=True,
        progress=lambda done, total, newest: asked.append(newest),
    )
    assert sorted({each.seed for each in asked}) == [0, 2]
    assert not any(each.error for each in again)


class Killed:
    """A model whose program is killed at a call."""

    def __init__(self, model: SimulatedModel, at: int) -> None:
        self.name, self.signature = model.name, model.signature
        self.calls = 0
        self._model, self._at = model, at

    def complete(self, request: Request) -> Completion:
        self.calls += 1
        if self.calls == self._at:
            raise KeyboardInterrupt
        return self._model.complete(request)


def test_a_killed_run_pays_for_no_reply_twice(tmp_path: Path) -> None:
    """Killed in the middle of a program, a resumed run asks only what was not answered, and ends the same."""
    model = SimulatedModel(3, slips=Slips(wrong_value=0.2, systematic=0.0))
    whole = Killed(model, at=0)
    expected = run(plan(), whole, concurrency=1)
    first, second = Killed(model, at=whole.calls // 2), Killed(model, at=0)
    with pytest.raises(KeyboardInterrupt):
        run(plan(), first, folder=tmp_path, concurrency=1)
    again = run(plan(), second, folder=tmp_path, concurrency=1, resume=True)
    assert first.calls - 1 + second.calls == whole.calls
    assert [replace(each, seconds=0) for each in again] == [replace(each, seconds=0) for each in expected]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_killed_processes_lose_only_what_was_in_flight(tmp_path: Path) -> None:
    """E08: of 100 programs, killed at about 60 and again before anything new, the report is that of one run."""
    whole = plan(50, arms=("guard",), lengths=(4, 5))
    model, log = SimulatedModel(5, slips=Slips(wrong_value=0.1)), tmp_path / "log"

    class Noting:
        name, signature = model.name, model.signature

        def __init__(self, die_at: int | None) -> None:
            self._die_at, self._calls = die_at, 0

        def complete(self, request: Request) -> Completion:
            self._calls += 1
            if self._calls == self._die_at:
                os.kill(os.getpid(), signal.SIGKILL)
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps([each.content for each in request.messages]) + "\n")
            return model.complete(request)

    expected = run(whole, Noting(None))
    asked = len(log.read_text(encoding="utf-8").splitlines())
    log.unlink()
    for die_at in (asked * 6 // 10, 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: the child starts its own
            child = os.fork()
        if child == 0:
            try:
                run(whole, Noting(die_at), folder=tmp_path / "run", resume=(tmp_path / "run").exists())
            finally:
                os._exit(1)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    again = run(whole, Noting(None), folder=tmp_path / "run", resume=True)
    assert [replace(each, seconds=0) for each in again] == [replace(each, seconds=0) for each in expected]
    assert len(again) == 100
    assert len(log.read_text(encoding="utf-8").splitlines()) <= asked + 4


def test_a_run_is_replayed_from_its_replies(tmp_path: Path) -> None:
    """The replies of a run, as they were kept or exported, give the same outcomes without the model."""
    model = SimulatedModel(4, slips=Slips(wrong_value=0.2))
    made = run(plan(), model, folder=tmp_path)
    with RecordedBackend(tmp_path / "replies.sqlite") as recording:
        recording.export(tmp_path / "replies.jsonl")
    for name in ("replies.sqlite", "replies.jsonl"):
        with RecordedBackend(tmp_path / name) as replay:
            again = run(plan(), replay)
        assert [replace(each, seconds=0) for each in again] == [replace(each, seconds=0) for each in made]


def test_outcomes_of_unlike_runs_are_not_mixed(tmp_path: Path) -> None:
    """A folder with outcomes is not overwritten, and not resumed under another configuration."""
    run(plan(1), SimulatedModel(), folder=tmp_path)
    with pytest.raises(ConfigError, match="--resume"):
        run(plan(1), SimulatedModel(), folder=tmp_path)
    with pytest.raises(ConfigError, match="another configuration"):
        asyncio.run(
            run_plan(plan(1), SimulatedModel(), configuration={"v": 2}, concurrency=1, folder=tmp_path, resume=True)
        )


# The command


def test_the_bench_command_prints_a_table_and_writes_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a model the bench runs on the simulated one, says so in every output, and writes results.json."""
    assert main(["bench", "--lengths", "3,6", "-n", "2,1", "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr()
    assert "SIMULATED MODEL" in printed.err
    assert "SIMULATED MODEL" in printed.out
    assert "guard" in printed.out
    results = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert results["meta"]["simulated"] is True
    assert [(row["arm"], row["length"], row["n"]) for row in results["rows"]] == [
        (arm, length, n) for length, n in ((3, 2), (6, 1)) for arm in ("cot", "chunk", "guard")
    ]


@pytest.mark.parametrize(("options", "profile"), [([], "qwen2.5-coder-1.5b"), (["--profile", "study"], "study")])
def test_the_simulated_model_slips_as_a_profile_says(
    options: list[str], profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """--profile chooses how the simulated model slips, and stands in results.json."""
    assert main(["bench", "--lengths", "5", "-n", "15", "--arms", "cot", "--json", *options]) == 0
    results = json.loads(capsys.readouterr().out)
    assert results["meta"]["profile"] == profile
    right = run(plan(15, arms=("cot",), lengths=(5,)), SimulatedTasks(slips=PROFILES[profile]))
    assert results["rows"][0]["accuracy"] == sum(each.right for each in right) / 15


def test_the_bench_command_replays_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--replay prints the table of an earlier run without a model, and names what was not asked then."""
    options = Plan(family=FAMILY, cells={4: 2}, arms=("cot", "guard"), seed=0, options=ArmOptions())
    run(options, SimulatedModel(1), folder=tmp_path)
    arguments = ["bench", "--replay", str(tmp_path / "replies.sqlite"), "--arms", "cot,guard", "--lengths", "4"]
    assert main([*arguments, "-n", "2", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert (results["meta"]["model"], results["meta"]["simulated"]) == ("simulated", False)
    assert [row["n"] for row in results["rows"]] == [2, 2]
    assert main([*arguments, "-n", "3", "--json"]) == 2
    printed = capsys.readouterr()
    assert "2 of 6 runs have no reply in" in printed.err
    assert "seed 2" in printed.err
    assert printed.out == ""
    assert main([*arguments, "--model", "m"]) == 2
    assert "leave out --model" in capsys.readouterr().err


def test_the_bench_command_shows_names_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder whose name looks like markup is printed as it is called."""
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "--lengths", "3", "-n", "1", "--arms", "guard", "--out", "[/red]"]) == 0
    assert f"written: {Path('[/red]', 'results.json')}" in capsys.readouterr().out


def test_the_bench_command_prints_one_json_document(capsys: pytest.CaptureFixture[str]) -> None:
    """With --json standard output holds results.json and nothing else."""
    assert main(["bench", "--lengths", "3", "-n", "1", "--arms", "guard", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["arm"] == "guard"
