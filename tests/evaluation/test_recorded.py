"""The replies of a real model, recorded once, go through the guard as they did then."""

from __future__ import annotations

import json
import os
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stepguard import Guard
from stepguard.cli import main
from stepguard.evaluation.arms import read_run
from stepguard.evaluation.families import Arithmetic
from stepguard.testing import ScriptedBackend, no_real_requests

pytestmark = pytest.mark.once

RECORDED = Path(__file__).parents[2] / "benchmarks" / "results" / "qwen2.5-coder-1.5b-arithmetic" / "outcomes.jsonl"
LONG = RECORDED.parents[1] / "qwen2.5-coder-1.5b-arithmetic-95" / "outcomes.jsonl"


def outcomes_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()[1:]]


OUTCOMES = [*outcomes_of(RECORDED), *outcomes_of(LONG)[:4]]


def of(*arms: str) -> list[Any]:
    found = [each for each in OUTCOMES if each["arm"] in arms]
    return [pytest.param(each, id=f"{each['arm']}-{each['length']}-{each['seed']}") for each in found]


@pytest.mark.parametrize("outcome", of("guard", "chunk"))
def test_recorded_replies_end_as_they_did(outcome: dict[str, Any]) -> None:
    """A guarded run over the recorded replies makes the same calls, ends alike, and vouches for nothing wrong."""
    task = Arithmetic().make(outcome["seed"], outcome["length"])
    with ScriptedBackend(*outcome["texts"]) as backend:
        guard = Guard(backend, segment=10, observe=outcome["arm"] == "chunk", seed=outcome["seed"])
        result = guard.run(task.procedure, task.inputs)
    assert (result.status, result.usage.calls) == (outcome["status"], outcome["calls"])
    right = [record.value == task.truth[record.occurrence.step] for record in result.steps]
    assert sum(right) == outcome["steps_right"]
    assert all(value for record, value in zip(result.steps, right, strict=True) if record.verified)


@pytest.mark.parametrize("outcome", of("cot"))
def test_recorded_transcripts_are_read_as_they_were(outcome: dict[str, Any]) -> None:
    """A free transcript gives the same answer and the same steps from its recorded text."""
    task = Arithmetic().make(outcome["seed"], outcome["length"])
    found = read_run(task, outcome["texts"][0])
    assert (found.strict == task.answer) == outcome["right"]
    assert sum(found.right(task)) == outcome["steps_right"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder",
    [
        "qwen2.5-coder-1.5b-arithmetic",
        "qwen2.5-coder-0.5b-adaptive",
        "qwen2.5-coder-1.5b-brief",
        "qwen2.5-coder-0.5b-brief",
        "qwen2.5-coder-1.5b-returns-words",
    ],
)
def test_one_command_makes_the_recorded_table_again(
    folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the recorded replies alone, without model or network, the benchmark gives the figures that it gave."""
    monkeypatch.chdir(RECORDED.parents[3])
    assert_made_again(folder, capsys)


def assert_made_again(folder: str, capsys: pytest.CaptureFixture[str], items: str = "DIR") -> None:
    results = json.loads((RECORDED.parents[1] / folder / "results.json").read_text(encoding="utf-8"))
    name, *command = shlex.split(results["meta"]["reproduce"])
    assert name == "stepguard"
    with no_real_requests():
        assert main([*(part.replace("DIR", items) for part in command), "--json"]) == 0
    again, recorded = (found.get("whole", found) for found in (json.loads(capsys.readouterr().out), results))
    assert [timeless(row) for row in again["rows"]] == [timeless(row) for row in recorded["rows"]]
    assert again["paired"] == recorded["paired"]


def timeless(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "seconds"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder",
    [
        f"qwen2.5-coder-1.5b-{name}"
        for name in (
            *("planbench", "procbench", "procbench-fresh", "procbench-second", "web-of-lies"),
            *("tracking", "navigate", "object-counting", "receipts"),
        )
    ],
)
def test_recorded_runs_on_the_items_of_others_end_as_they_did(
    folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the items are at hand, their recorded replies give the figures again; the items are not in this project."""
    items = os.environ.get("STEPGUARD_PUBLISHED")
    if items is None:
        pytest.skip("STEPGUARD_PUBLISHED names no folder with the items of published benchmarks")
    monkeypatch.chdir(RECORDED.parents[3])
    assert_made_again(folder, capsys, items)


@pytest.mark.slow
def test_the_table_of_rungs_follows_from_the_recorded_replies() -> None:
    """Which rung cured which really failed step: the table is made again from the replies, line by line."""
    benchmarks = Path(__file__).parents[2] / "benchmarks"
    folder = benchmarks / "results" / "qwen2.5-coder-1.5b-rungs"
    command = [sys.executable, str(benchmarks / "rungs.py"), "--replay", str(folder / "replies.jsonl")]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    table = (folder / "table.txt").read_text(encoding="utf-8")
    assert done.stdout.endswith(table)
    assert table.startswith("117 failed steps of 640 asked")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("desk", "size", "first", "cases", "file"),
    [
        ("returns", 1, 0, 30, "table.txt"),
        ("deadlines", 1, 0, 24, "table.txt"),
        ("doses", 1, 0, 24, "table.txt"),
        ("returns", 1, 30, 16, "again.txt"),
        ("returns", 2, 100, 20, "again.txt"),
        ("returns", 2, 300, 16, "fresh-300.txt"),
        ("returns", 2, 400, 16, "fresh-400.txt"),
        ("returns", 3, 500, 8, "fresh-500.txt"),
        ("returns", 3, 600, 2, "fresh-600.txt"),
        ("returns", 3, 602, 10, "fresh-602.txt"),
        ("claims", 2, 200, 16, "fresh-claims.txt"),
        ("returns", 1, 0, 24, "../qwen2.5-coder-0.5b-returns/table.txt"),
    ],
)
def test_the_table_of_decisions_follows_from_the_recorded_replies(
    desk: str, size: int, first: int, cases: int, file: str
) -> None:
    """Procedures that branch, look up and count days end as they did, with the same calls and tokens."""
    benchmarks = Path(__file__).parents[2] / "benchmarks"
    path = benchmarks / "results" / "qwen2.5-coder-1.5b-decisions" / file
    folder = path.parent
    table = path.read_text(encoding="utf-8").splitlines()
    rows = [line for line in table if line.split()[:2] == [desk, str(size)]]
    command = [sys.executable, str(benchmarks / "branches.py"), "--store", str(folder / "replies.jsonl")]
    command += ["--desks", desk, "--sizes", str(size), "--seed", str(first), "-n", str(cases)]
    command += ["--arms", ",".join(row.split()[2] for row in rows)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith(desk)] == rows


@pytest.mark.slow
def test_stopping_replies_early_changes_no_recorded_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every recorded run ends as it did, with as many calls, and the recorded share of what was written is saved."""
    folder = RECORDED.parent
    monkeypatch.setattr(sys, "argv", ["early_stop.py", str(folder)])
    runpy.run_path(str(folder.parents[1] / "early_stop.py"), run_name="__main__")
    assert capsys.readouterr().out.strip() in (folder.parent / "early_stop.txt").read_text(encoding="utf-8")
