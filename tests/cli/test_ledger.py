"""``stepguard runs``, ``answer``, ``verify``, ``erase``, and ``show`` of a ledger."""

from __future__ import annotations

import gc
import json
import sqlite3
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from ledger_harness import CHAIN, SURE, Counting, kill, payment

from stepguard import Guard, Policy, Procedure
from stepguard.cli import main
from stepguard.integrations.tool_gate import ToolGate


def _ledger(folder: Path) -> str:
    path = folder / "runs.db"
    guard = Guard(SURE, ledger=path)
    guard.run(CHAIN, {"x": 12}, run_id="chain")
    guard.run(payment([], approval=True), {"x": 3}, run_id="order 7")
    return str(path)


def test_runs_are_listed_and_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A list says who is waited for and what for; an answer lets that run go on."""
    path = _ledger(tmp_path)
    assert main(["runs", path]) == 0
    head, order, chain = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["run", "procedure", "status"]
    assert order.startswith("order 7  procedure  waiting   1 of 2")
    assert order.endswith("approve_receipt: Approve the call pay(amount=6)?")
    assert chain.startswith("chain")
    assert main(["answer", path, "order 7", "approve_receipt", "yes"]) == 0
    assert main(["runs", path, "--status", "answered", "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)
    assert (run["run_id"], run["completed"]) == ("order 7", 1)
    calls: list[tuple[Any, ...]] = []
    result = Guard(SURE, ledger=path).run(payment(calls, approval=True), {"x": 3}, run_id="order 7")
    assert (result.status, calls) == ("verified", [(6,)])
    assert main(["runs", path, "--limit", "0"]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chain", "t1", "5"], "has no open question 't1': it is verified"),
        (["nobody", "t1", "5"], "has no run 'nobody'"),
        (["order 7", "receipt", "5"], "it waits for approve_receipt"),
        (["order 7", "receipt", "--repeat"], "no open call of a tool 'receipt'"),
        (["order 7", "receipt"], "give a value, or --repeat"),
        (["order 7", "approve_receipt", "[NaN]"], "an answer holds NaN, which is no number"),
    ],
)
def test_answers_to_no_question_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    """Who answers what is not asked is told what the run waits for."""
    assert main(["answer", _ledger(tmp_path), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_answers_are_taken_as_they_are_written(tmp_path: Path) -> None:
    """A number in an answer that is JSON goes through no float."""
    path = str(tmp_path / "runs.db")
    text = 'inputs: x\namounts: list of number = ask person "Which?"\nlast: number = by code sum of amounts'
    guard = Guard(SURE, ledger=path)
    assert guard.run(Procedure.parse(text), {"x": 1}, run_id="run").status == "waiting"
    assert main(["answer", path, "run", "amounts", "[12345678901234567.89, 0.1]"]) == 0
    result = guard.run(Procedure.parse(text), {"x": 1}, run_id="run")
    assert result.answer == Fraction("12345678901234567.99")


def test_a_ledger_is_verified_and_erased(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code says whether all is right; the head that is printed can be given again."""
    path = _ledger(tmp_path)
    assert main(["verify", path]) == 0
    counts, head = capsys.readouterr().out.splitlines()
    assert counts.endswith("records, 2 runs checked again")
    assert main(["erase", path, "chain"]) == 0
    assert main(["erase", path, "--older-than", "1"]) == 0
    assert main(["erase", path]) == 2
    assert main(["verify", path, "--head", head.removeprefix("head ")]) == 0
    assert "1 runs checked again, 1 erased" in capsys.readouterr().out
    connection = sqlite3.connect(path)
    connection.execute("update records set kind = 'note' where number = 2")
    connection.commit()
    connection.close()
    assert main(["verify", path, "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["right"], found["faults"][0]["record"]) == (False, 2)
    assert main(["verify", str(tmp_path / "none.db")]) == 2


def test_a_run_is_kept_and_gone_on_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``stepguard run --ledger`` keeps a run under its name, and running it again asks nobody."""
    file, path = tmp_path / "sum.txt", str(tmp_path / "runs.db")
    file.write_text("inputs: x\nt1 = x + 1\nt2 = t1 * 2", encoding="utf-8")
    command = ["run", str(file), "--input", "x=12", "--ledger", path, "--run-id", "sum", "--json", "--quiet"]
    first, again = [(main(command), json.loads(capsys.readouterr().out))[1] for _ in range(2)]
    assert (first["status"], again["answer"], again["run_id"]) == ("verified", first["answer"], "sum")
    assert again["usage"] == first["usage"]
    assert main(["run", str(file), "--input", "x=13", "--ledger", path, "--run-id", "sum"]) == 2
    assert "begun with other inputs (x)" in capsys.readouterr().err
    assert main(["run", str(file), "--input", "x=13", "--run-id", "sum"]) == 2


def test_a_run_of_a_ledger_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """``stepguard show RUN --ledger`` draws every step of a run that ended, waits or was killed, with its cost."""
    path = _ledger(tmp_path)
    assert main(["show", "chain", "--ledger", path]) == 0
    shown = capsys.readouterr().out
    assert "VERIFIED: 6 steps completed; t6 = 59" in shown
    assert "1 model call" in shown
    assert "✓ 13  (verified)" in shown
    assert main(["show", "order 7", "--ledger", path]) == 0
    assert "WAITING: now at approve_receipt: Approve the call pay(amount=6)?" in capsys.readouterr().out
    loop = Procedure.parse("inputs: items: list of integer\nfor each item in items:\n  double = item * 2\nlast = 1 + 1")
    kill(Guard(Counting(die_at=3), segment=1, ledger=path), loop, {"items": [1, 2, 3]}, "killed")
    gc.collect()
    assert main(["show", "killed", "--ledger", path]) == 0
    shown = capsys.readouterr().out
    assert "✓ items[1].double = 4  (verified)" in shown
    assert "INTERRUPTED at items[2].double" in shown
    page = tmp_path / "run.html"
    assert main(["show", "chain", "--ledger", path, "--html", str(page)]) == 0
    assert "verified" in page.read_text(encoding="utf-8")


def test_a_conversation_of_a_ledger_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every call of an agent is printed with its arguments, what was decided, its key and what it gave."""
    policy = Policy.parse(
        'tool pay(to: text) changes nothing\nfact day: text\nbefore pay:\n  require day == "Mon"\n  at most once per to'
    )
    path = str(tmp_path / "runs.db")
    with ToolGate(policy, {"pay": "paid {}".format}, facts={"day": "Mon"}, ledger=path, run_id="c") as gate:
        key = gate.decide("pay", {"to": "a"}, id="1").key
        gate.gate.result("1", "done\x1b[31m")
        gate.call("pay", {"to": "a"}, id="2")
    assert main(["show", "c", "--ledger", path]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head == "c: policy policy, open"
    assert [line[21:] for line in lines] == [
        "fact day = Mon",
        f"call 1: pay(to=a): allow, key {key}",
        "call 1: succeeded: done\\x1b[31m",
        "call 2: pay(to=a): refuse, pay may be called at most once per to, and that limit is reached (policy line 5)",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nobody", "--ledger", "runs.db"], "has no run 'nobody'"),
        (["chain", "--ledger", "none.db"], "cannot be read"),
        (["chain", "--ledger", "runs.db", "--run", "x.json"], "the run is named in the place of the procedure"),
        (["chain", "--procedure", "x.txt"], "add --ledger"),
        (["gone", "--ledger", "runs.db"], "the run 'gone' was erased"),
    ],
)
def test_what_cannot_be_shown_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    """A run that is not there, or was erased, and options that do not go together."""
    path = _ledger(tmp_path)
    Guard(SURE, ledger=path).run(CHAIN, {"x": 1}, run_id="gone")
    assert main(["erase", path, "gone"]) == 0
    monkeypatch.chdir(tmp_path)
    assert main(["show", *arguments]) == 2
    assert said in capsys.readouterr().err
