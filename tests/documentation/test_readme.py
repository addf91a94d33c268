"""What the README shows is what happens."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from documentation_harness import ROOT, Block, blocks_of, shown_by

from stepguard import Procedure
from stepguard.cli import main
from stepguard.evaluation.arms import TaskOutcome
from stepguard.evaluation.report.results_file import make_results

README = (ROOT / "README.md").read_text(encoding="utf-8")
BENCHMARKS = "\n".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "benchmarks").glob("*.md")))
BLOCKS = blocks_of(ROOT / "README.md")
RESULTS = ROOT / "benchmarks" / "results"
MEASURED = {
    "sums, 20 steps": ("1.5b-arithmetic", 20, "cot"),
    "sums, 50 steps": ("1.5b-arithmetic", 50, "cot"),
    "plans of PlanBench, 1 to 8 actions": ("1.5b-planbench", "1-8", "authors"),
    "ProcBench, 2 to 25 states": ("1.5b-procbench-fresh", "2-144", None),
    "seven things tracked (BIG-Bench-Hard)": ("1.5b-tracking", "8-8", "authors"),
    "scanned receipts, three fields": ("1.5b-receipts", "3-3", "authors"),
}
"""Rows of the README's table: the folder of their results, the length of their programs, the arm that is one call."""


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.kind == "python"])
def test_every_python_block_runs_alone(block: Block) -> None:
    """Each Python block runs by itself and prints the text block below it."""
    assert shown_by(block.code, {}, "README.md") == block.output


def test_it_is_short() -> None:
    """A newcomer gives it two minutes."""
    assert len(README.splitlines()) <= 180


def test_the_example_with_a_real_model_names_what_exists() -> None:
    """The block that needs a key compiles and uses only names that the package has."""
    (block,) = [block for block in BLOCKS if block.kind == "python no-run"]
    tree = compile(block.code, "README.md", "exec")
    import stepguard

    assert {"Guard", "Budget", "Procedure"} <= set(tree.co_names) & set(stepguard.__all__)


def test_the_procedure_in_the_readme_parses() -> None:
    """The notation that the README shows is the one that is read."""
    (text,) = [block.code for block in BLOCKS if block.kind == "text" and block.code.startswith("inputs:")]
    assert Procedure.parse(str(Procedure.parse(text))) == Procedure.parse(text)


def test_every_link_leads_somewhere() -> None:
    """What the README links to is there."""
    for target in re.findall(r"\]\(([^)#\s]+)\)", README):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_the_first_command_runs_without_a_key(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The README's first command runs its example to a verified end, and says that the model is simulated."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.chdir(ROOT)
    (command,) = [block.code for block in BLOCKS if block.kind == "bash" and "stepguard run" in block.code]
    words = shlex.split(command.split("&&")[1])
    assert words[0] == "stepguard"
    assert main(words[1:]) == 0
    printed = capsys.readouterr()
    assert "SIMULATED MODEL" in printed.err
    assert "VERIFIED" in printed.out


def test_the_commands_of_the_readme_are_those_that_ci_runs() -> None:
    """What is promised is what is tested: both commands of the README stand in the CI script."""
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for block in BLOCKS:
        if block.kind == "bash" and "pip install" in block.code:
            for part in block.code.strip().split(" && "):
                wanted = part.replace("pip install", "python -m pip install --quiet")
                assert wanted in script


RECORDED = sorted(RESULTS.glob("*-arithmetic*"))
SMALLEST = RESULTS / "qwen2.5-coder-0.5b-adaptive"
COSTS = {"calls": 1, "input_tokens": 0, "output_tokens": 0}
"""What a run takes, and with how many decimal places it is shown."""
OF_EACH = pytest.mark.parametrize("folder", RECORDED, ids=[folder.name for folder in RECORDED])


def share(value: float, interval: list[float]) -> str:
    return f"{value:.0%} [{100 * interval[0]:.0f}, {100 * interval[1]:.0f}]"


@OF_EACH
def test_the_measured_tables_are_the_recorded_ones(folder: Path) -> None:
    """Every row of the recorded runs stands in the tables of the benchmarks as measured, and no placeholder is left."""
    for row in json.loads((folder / "results.json").read_text(encoding="utf-8"))["rows"]:
        n = row["n"]
        silent = str(row["silent_errors"]) if row["arm"] == "guard" else "-"
        traces = "-" if row["trace_accuracy"] is None else share(row["trace_accuracy"], row["trace_interval"])
        cells = [str(row["length"]), row["arm"], str(n), share(row["accuracy"], row["interval"])]
        assisted = f"{sum(row['assisted'].values()) / n:.1f}" if row["arm"] == "guard" else "-"
        cells += [traces, assisted, f"{row['abstained']:.0%}", silent]
        calls, read, written = (f"{row[key] / n:.{digits}f}" for key, digits in COSTS.items())
        assert f"| {' | '.join([*cells, calls, read, written])} |" in BENCHMARKS
    assert not re.search(r"@\w+@", README + BENCHMARKS)


@pytest.mark.parametrize("task", MEASURED)
def test_the_table_of_the_readme_is_what_was_recorded(task: str) -> None:
    """Each row of the README's table has the figures of its recorded runs, those of the guard and of the others."""
    folder, length, call = MEASURED[task]
    results = json.loads((RESULTS / f"qwen2.5-coder-{folder}" / "results.json").read_text(encoding="utf-8"))
    rows = {row["arm"]: row for row in results.get("rows") or results["whole"]["rows"] if row["length"] == length}

    def right(arm: str | None) -> str:
        return share_right(rows[arm]) if arm else "-"

    guard = rows["guard"]
    n = guard["n"]
    costs = [f"{guard[key] / n:.{digits}f}" for key, digits in COSTS.items()]
    ends = [f"{n * guard['abstained']:.0f}", str(guard["silent_errors"])]
    cells = [task, str(n), right(call), right("chunk"), f"**{right('guard')}**", *ends, *costs]
    assert f"| {' | '.join(cells)} |" in README


def test_the_returns_and_the_longest_sums_of_the_readme_are_what_was_recorded() -> None:
    """Their rows, whose one call has other programs or another file than the guard, have the recorded figures."""
    table = (RESULTS / "qwen2.5-coder-1.5b-decisions" / "fresh-602.txt").read_text(encoding="utf-8")
    line = re.compile(
        r"^returns +3 (\w+) +10 +(\d+) +\[ *(\d+), *(\d+)\] +(\d+) +(\d+) .* (\S+) +(\d+) +(\d+)$", re.MULTILINE
    )
    rows = {
        arm: (f"{int(right) / 10:.0%} [{low}, {high}]", rest) for arm, right, low, high, *rest in line.findall(table)
    }
    right, (wrong, given_up, *costs) = rows["guard"]
    cells = [rows["cot"][0], rows["chunk"][0], f"**{right}**", given_up, wrong, *costs]
    assert f"exceptions, 28 steps | 10 | {' | '.join(cells)} |" in README

    long, once = (
        json.loads((RESULTS / f"qwen2.5-coder-1.5b-arithmetic-95{end}" / "results.json").read_text(encoding="utf-8"))
        for end in ("", "-trace")
    )
    (guard,), (trace,) = long["rows"], once["rows"]
    costs = [f"{guard[key] / guard['n']:.{digits}f}" for key, digits in COSTS.items()]
    cells = [str(guard["n"]), f"{share_right(trace)}, n = {trace['n']}", "-", f"**{share_right(guard)}**"]
    assert f"| sums, 95 steps | {' | '.join([*cells, '0', str(guard['silent_errors']), *costs])} |" in README


def share_right(row: dict[str, Any]) -> str:
    """The share of runs that are right as their benchmark's authors count, else in their answer."""
    scored = next(iter((row.get("authors") or {}).values()), None)
    return share(scored["mean"], scored["interval"]) if scored else share(row["accuracy"], row["interval"])


def test_what_is_said_of_brief_prompts_was_recorded() -> None:
    """All programs were right, for the calls, tokens and wrong claims that stand beside those in full."""
    recorded = (("1.5b-arithmetic", "larger | in full"), ("1.5b-brief", "larger | in brief"))
    for folder, way in (*recorded, ("0.5b-brief", "smaller | in brief")):
        results = json.loads((RESULTS / f"qwen2.5-coder-{folder}" / "results.json").read_text(encoding="utf-8"))
        (row,) = (each for each in results["rows"] if each["arm"].startswith("guard") and each["length"] == 50)
        n, right = row["n"], round(row["n"] * row["accuracy"])
        counted = [row["calls"] / n, row["input_tokens"] / n, row["output_tokens"] / n]
        shown = f"| {way} | {n} | {right} | {counted[0]:.1f} | {counted[1]:.0f} | {counted[2]:.0f} |"
        assert shown in BENCHMARKS
        assert (row["silent_errors"], row["trace_accuracy"]) == (0, 1.0)


def test_what_is_said_of_the_smallest_model_was_recorded() -> None:
    """The sentence under the table has the figures of the recorded run."""
    results = json.loads((SMALLEST / "results.json").read_text(encoding="utf-8"))
    (row,), (checked,) = results["rows"], results["probes"]["checkers"]
    n, said = row["n"], " ".join(BENCHMARKS.split())
    low, high = (round(100 * bound) for bound in row["interval"])
    assert f"of whose claims {checked['wrong_claims'] / checked['claims']:.0%}".replace("%", " %") in said
    assert f"ended {round(n * row['accuracy'])} of {n} programs of {row['length']} steps right [{low}, {high}]" in said
    assert (row["silent_errors"], checked["wrong_accepted"]) == (0, 0)
    assert f"in {row['calls'] / n:.1f} calls and {row['output_tokens'] / n:.0f} output tokens" in said
    assert f"{sum(row['assisted'].values()) / n:.1f} of the {row['length']} steps were assisted" in said


@pytest.mark.parametrize("folder", [*RECORDED, SMALLEST], ids=lambda folder: folder.name)
def test_the_recorded_figures_follow_from_the_recorded_outcomes(folder: Path) -> None:
    """The rows and comparisons of results.json are what the raw outcomes beside it give."""
    first, *lines = (folder / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert json.loads(first)["configuration"].items() <= results["meta"].items()
    outcomes = [TaskOutcome.from_dict(json.loads(line)) for line in lines]
    again = json.loads(json.dumps(make_results(outcomes, {})))
    assert again["rows"] == results["rows"]
    assert again["paired"] == results["paired"]
