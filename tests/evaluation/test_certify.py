"""The certification, made short: its promises hold, and it finds out a checker that breaks them."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path

import pytest
from tables import all_rows

import stepguard.checks
from stepguard.core.verdicts import Verdict
from stepguard.language.evaluation import evaluate
from stepguard.language.expressions import Expression
from stepguard.language.values import Value

pytestmark = pytest.mark.once

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{BENCHMARKS}{os.pathsep}{BENCHMARKS.parent}", "PYTHONIOENCODING": "utf-8"}


@pytest.mark.slow
def test_the_certification_holds(tmp_path: Path) -> None:
    """A small certification ends well: no wrong step accepted, nothing escapes, and every kind could be made."""
    out = tmp_path / "figures" / "results.json"
    command = [sys.executable, "-W", "error", str(BENCHMARKS / "certify.py")]
    ran = subprocess.run(
        [*command, "--seed", "5", "--each", "3", "--fuzz", "4000", "--limit-ms", "5000", "--json", str(out)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=ENVIRONMENT,
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["broken"] == []
    assert found["meta"]["seed"] == 5
    assert found["wrong_steps"]["all"]["n"] >= 300
    assert found["wrong_steps"]["all"]["bad"] == 0
    assert found["right_steps"]["all"]["n"] >= 200
    assert found["fuzzed"]["expressions"] == 4000
    checks = found["checks"]
    assert checks["skipped"] == {}
    assert len(checks["wrong"]["checks"]) == len(checks["right"]["checks"]) >= 24
    assert checks["wrong"]["all"]["n"] >= 200
    assert checks["wrong"]["all"]["bad"] == checks["right"]["all"]["bad"] == 0
    assert all(count > 0 for count in found["wrong_steps"]["planted_by_kind_of_step"].values())


def test_a_checker_that_lets_everything_pass_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the check of arithmetic accepts whatever it is given, wrong values and wrong working count as accepted."""
    from certification import kinds  # type: ignore[import-not-found, unused-ignore]
    from certification.running import wrong_steps

    assert kinds
    passes = Verdict("pass", "arithmetic", strength="proved")
    assert wrong_steps(1, 10, "off by one")[0].bad == 0
    monkeypatch.setattr("stepguard.checks.judging.check_arithmetic", lambda *_: passes)
    for kind in ("off by one", "another step's working", "stale operand, with its own working"):
        assert wrong_steps(1, 10, kind)[0].bad >= 5, kind


def test_a_checker_that_refuses_right_steps_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the check refuses what is right, right steps count as refused."""
    from certification import kinds
    from certification.running import right_steps

    assert kinds
    fails = Verdict("fail", "arithmetic", "wrong_value", "no")
    assert right_steps(1, 10, "variables first").bad == 0
    monkeypatch.setattr("stepguard.checks.judging.check_arithmetic", lambda *_: fails)
    assert right_steps(1, 10, "variables first").bad == 10


@pytest.mark.parametrize("name", ["DateIs", "Quantity", "Grounded", "Pattern", "Equivalent", "Solves", "SameMatrix"])
def test_a_check_that_lets_everything_pass_is_found_out(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Where a check accepts whatever it is given, wrong claims that can be read count as accepted."""
    from certification import kinds
    from certification.families import FAMILIES, try_family

    assert kinds
    check = getattr(stepguard.checks, name)
    passes = Verdict("pass", "all", strength="proved")
    monkeypatch.setattr(check, "_judge", lambda *_: passes)
    found = try_family(FAMILIES[name], "wrong", 1, 4)
    accepted = [kind for kind, row in found.items() if row["bad"] == row["n"] > 0]
    assert len(accepted) >= 0.7 * len(found)


def test_a_check_that_refuses_everything_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a check refuses whatever it is given, right claims count as refused."""
    from certification import kinds
    from certification.families import FAMILIES, try_family

    assert kinds
    fails = Verdict("fail", "none", "wrong_value", "no")
    monkeypatch.setattr(stepguard.checks.DateIs, "_judge", lambda *_: fails)
    found = try_family(FAMILIES["DateIs"], "right", 1, 4)
    assert all(row["bad"] == row["n"] > 0 for row in found.values())


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        *(("x + x", "2 x", True), ("x x", "x ^ 2", True), ("sqrt(x ^ 2)", "x", False)),
        *(("log(x ^ 2)", "2 log(x)", False), ("x", "x + 1e-20", False)),
    ],
)
def test_formulas_are_the_same_where_their_values_are(one: str, other: str, same: bool) -> None:
    """Values at random points tell formulas apart: other branches, other domains, and a difference of 1e-20."""
    from certification.formula_trees import Node, add, call, equal, mul, num, power, var

    x = var("x")
    trees: Mapping[str, Node] = {
        "x": x,
        "x + x": add(x, x),
        "2 x": mul(num(2), x),
        "x x": mul(x, x),
        "x ^ 2": power(x, 2),
        "sqrt(x ^ 2)": call("sqrt", power(x, 2)),
        "log(x ^ 2)": call("log", power(x, 2)),
        "2 log(x)": mul(num(2), call("log", x)),
        "x + 1e-20": add(x, num(Fraction(1, 10**20))),
    }
    assert equal(trees[one], trees[other]) is same


def test_an_evaluator_that_is_wrong_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where expressions come to other values, the fuzzer says so, since its values do not come from the package."""
    from certification import fuzz_expressions
    from certification.fuzz_items import Found

    def off_by_one(tree: Expression, values: Mapping[str, Value]) -> object:
        found = evaluate(tree, values)
        return found if isinstance(found, bool | str) else found + 1

    monkeypatch.setattr(fuzz_expressions, "evaluate", off_by_one)
    chance = random.Random(1)
    found = Found()
    wrong = 0
    for _ in range(20):
        item = fuzz_expressions.grammar(chance)
        try:
            result: object = item.run(item.text)
        except ArithmeticError as error:
            result = error
        wrong += item.judge(result, found) is not None
    assert wrong >= 10


def test_what_runs_during_a_fuzzed_item_is_an_escape() -> None:
    """An item that runs code, opens a file, or raises what is not ours, is listed."""
    script = """
from certification.fuzzing import _one, _Watch, Found
from certification.fuzz_items import Item
watch, found = _Watch(), Found()
for run in (eval, open, lambda text: 1 / 0, lambda text: int(text)):
    _one(Item("12", run, lambda result, found: None), found, watch, 5.0)
print(len(found.escapes), found.n, *found.outcomes)
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False, env=ENVIRONMENT
    )
    assert ran.stdout.startswith("4 "), ran.stdout + ran.stderr


@all_rows(
    "number, places, mode, rounded",
    [
        *(("2.5", 0, "half_up", "3"), ("2.5", 0, "half_even", "2"), ("2.5", 0, "half_down", "2")),
        *(("-2.5", 0, "half_up", "-3"), ("-2.5", 0, "half_down", "-2"), ("-3.5", 0, "half_even", "-4")),
        *(("-2.1", 0, "up", "-3"), ("-2.9", 0, "down", "-2"), ("-2.1", 0, "floor", "-3")),
        *(("-2.9", 0, "ceiling", "-2"), ("1250", -2, "half_even", "1200"), ("2.345", 2, "half_up", "2.35")),
        ("2.34", 2, "up", "2.34"),
    ],
)
def test_the_truth_rounds_as_the_modes_say(number: str, places: int, mode: str, rounded: str) -> None:
    """The roundings that the certification compares with are those of the decimal module's definitions."""
    from certification import truth

    assert truth.rounded(Fraction(number), places, mode) == Fraction(rounded)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("-7 // 2", "-4"), ("-7 % 3", "2"), ("7 % -3", "-2"), ("-2 ** 2", "-4"), ("2 ** 3 ** 2", "512")),
        *(("8 / 4 / 2", "1"), ("10 - 4 - 3", "3"), ("2 ** -2", "1/4"), ("1 / 0", None), ("0 ** 0", None)),
        *(("x + 1", None), ("1 +", None), ("f(1)", None)),
    ],
)
def test_the_second_reading_is_that_of_school(text: str, value: str | None) -> None:
    """Priorities, signs and floors of the independent reading, and what it has no value for."""
    from certification.python_reading import value_of

    assert value_of(text) == (None if value is None else Fraction(value))


def test_without_the_material_nothing_outside_is_judged_and_that_is_said(tmp_path: Path) -> None:
    """The command for outside material ends well on an empty folder and names what it skipped."""
    out = tmp_path / "results.json"
    ran = subprocess.run(
        [sys.executable, str(BENCHMARKS / "outside.py"), "--data", str(tmp_path), "--size", "2", "--json", str(out)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=ENVIRONMENT,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["broken"] == []
    assert [line.split(":")[0] for line in found["skipped"]][-3:] == ["annotations", "chains", "tracking"]


def test_made_up_transcripts_are_judged_as_they_are(tmp_path: Path) -> None:
    """False links and states are listed by their places; what cannot be read has a reason; nothing is unexplained."""
    chain = "Let's calculate A = (1 + 2 * 3) = (1 + 6) = 8.\nThen, the final equation is A - B = 8 - 2 = 6."
    notes = "He has 3 + 4 = <<3+4=7>>7.\nThen 7 * 2 = <<7*2=15>>15.\nA third: <<10/3=3.33>>3.33, <<1,000/4=250>>250"
    start = "(0) At the start: Ann: cup, Ben: hat."
    told = f"{start}\n(1) Ann and Ben swap: Ann: hat, Ben: cup.\n(2) Ann and Ben swap: Ann: hat, Ben: cup."
    question = "First, Ann and Ben swap hats. Finally, Ann and Ben swap hats."
    rows = {
        "bbh_arithmetic_transcripts.jsonl": {"id": 1, "transcript": chain},
        "gsm8k_solutions.jsonl": {"id": 2, "reference": notes, "solutions": {}},
        "bbh_tracking7_transcripts.jsonl": {"id": 3, "question": question, "transcript": told},
    }
    for name, row in rows.items():
        (tmp_path / name).write_text(json.dumps(row) + "\n", encoding="utf-8")
    from outside_links import chains, tracking  # type: ignore[import-not-found, unused-ignore]
    from outside_links import notes as annotations

    found = chains(tmp_path)
    assert found["false_links"] == {"1": [[1, 3]]}
    assert found["disagreements_unexplained"] == []
    found = annotations(tmp_path)
    assert (found["annotations"], found["false_links"]) == (4, {"2/reference": [[2, 2]]})
    assert found["disagreements_unexplained"] == found["as_steps"]["disagreements_unexplained"] == []
    assert found["as_steps"]["outcomes"] == {
        "accepted": 2,
        "refused, independently different": 1,
        "refused, independently rounded": 1,
    }
    found = tracking(tmp_path)
    assert (found["states"], found["false_states"]) == (2, {"3": [2]})
    assert found["disagreements_unexplained"] == []
