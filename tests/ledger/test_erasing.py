"""What a ledger keeps is what was asked for, and what is erased is gone."""

from __future__ import annotations

import gc
import json
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ledger_harness import CHAIN, SURE, keep_ledger

from stepguard import Guard, Procedure
from stepguard.cli import main
from stepguard.errors import ConfigError, LedgerError, RunConflict
from stepguard.ledger import Ledger, read_run, verify_ledger

pytestmark = pytest.mark.usefixtures("quick_collections")


def test_erased_runs_leave_nothing_but_that_they_were(tmp_path: Path) -> None:
    """Erasing takes inputs, values and claims out of the file itself, keeps the chain whole, and frees no name."""
    path = tmp_path / "runs.db"
    procedure = Procedure.parse("inputs: letter: text, x\nn = x + 1")
    head = keep_ledger(path)
    Guard(SURE, ledger=path).run(procedure, {"letter": "Eleonore Grauzahn", "x": 4711}, run_id="case 1")
    with Ledger(path) as ledger:
        assert ledger.older_than(3600) == []
        under_way = Guard(SURE, ledger=ledger).start(CHAIN, {"x": 1}, run_id="under way")
        assert set(ledger.older_than(0)) == {"case 1", "chain", "loop", "paid", "waits"}
        del under_way
        gc.collect()  # as if its process were killed
        assert "under way" in ledger.older_than(0)
        ledger.erase(["under way"])
        assert (ledger.erase(["case 1"]), ledger.erase(["case 1"])) == (1, 0)
        with pytest.raises(ConfigError, match="a list of names"):
            ledger.erase("case 2")
        verified = verify_ledger(ledger, head=head)
        assert (verified.right, verified.rechecked, verified.erased) == (True, 4, 2)
        assert [each.run_id for each in ledger.runs() if each.status == "erased"] == ["under way", "case 1"]
        with pytest.raises(ConfigError, match="has no run 'case 2'"):
            ledger.erase(["case 2"])
    for file in tmp_path.iterdir():
        assert b"Grauzahn" not in file.read_bytes()
        assert b"4711 + 1" not in file.read_bytes()
    with pytest.raises(RunConflict, match="was erased"):
        Guard(SURE, ledger=path).run(procedure, {"letter": "x", "x": 1}, run_id="case 1")


def test_what_was_erased_leaves_the_log_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where somebody reads the file, what was erased still stands in it: that is said, and erasing again ends it."""
    path = tmp_path / "runs.db"
    procedure = Procedure.parse("inputs: letter: text, grauzahn\nn = grauzahn + 1")
    Guard(SURE, ledger=path).run(procedure, {"letter": "Eleonore", "grauzahn": 1}, run_id="case 1")
    reader = sqlite3.connect(path)
    reader.execute("begin")
    reader.execute("select * from runs").fetchall()
    with Ledger(path) as ledger:
        with monkeypatch.context() as short:
            short.setattr("stepguard.ledger.sqlite_file.BUSY_SECONDS", 0.05)
            with pytest.raises(LedgerError, match="another program is reading the ledger"):
                ledger.erase(["case 1"])
        reader.close()
        assert ledger.erase(["case 1"]) == 0
        for file in tmp_path.iterdir():
            assert b"Eleonore" not in file.read_bytes()
            assert b"grauzahn" not in file.read_bytes()


@pytest.mark.parametrize("keep", ["claims", "replies", "prompts"])
def test_prompts_and_replies_are_kept_on_request_and_keys_never(runs: Path | str, keep: Any, capsys: Any) -> None:
    """Claims are always kept; replies, and prompts with them, only where that was asked for, through a resumption as
    well; people read them, what looks like a key is in neither, and nothing of them is left behind an erasure."""

    class Leaking:
        def __init__(self, fails: int) -> None:
            self.calls, self.fails = 0, fails

        def complete(self, request: Any) -> Any:
            self.calls += 1
            if self.calls == self.fails:
                raise RuntimeError("401: wrong api_key=sk-verysecret123456")
            found = SURE.complete(request)
            return replace(found, text=f"<think>\napi_key=sk-verysecret\n</think>{found.text}")

    procedure = Procedure.parse("inputs: x\nt1 = x + 1\nt2 = t1 * 2\nt3 = t2 + 4711")
    with Ledger(runs, keep=keep) as ledger:
        assert not Guard(Leaking(2), segment=1, ledger=ledger).run(procedure, {"x": 12}, run_id="run").verified
        result = Guard(Leaking(0), segment=1, ledger=ledger).run(procedure, {"x": 12}, run_id="run")
    with Ledger(runs, read_only=True) as ledger:
        assert verify_ledger(ledger).right
        bodies = [json.loads(body) for (body,) in ledger.file.read("select body from records")]
        read = read_run(ledger, "run").result
    assert "verysecret" not in json.dumps(bodies)
    assert any("12 + 1 = 13" in str(body.get("claim")) for body in bodies)
    assert read is not None
    attempts = read.attempts
    kept = [keep != "claims" and each.error is None for each in attempts]
    assert [each.text is not None for each in attempts] == kept
    assert [bool(each.prompt) for each in attempts] == [keep == "prompts"] * len(attempts) == [keep == "prompts"] * 4
    assert [each.prompt for each in result.attempts] == [each.prompt for each in attempts]
    assert main(["show", "run", "--ledger", str(runs), "--calls"]) == 0
    shown = capsys.readouterr().out
    assert ("26 + 4711 = 4737" in shown.partition("call 4")[2]) is (keep != "claims")
    assert ("4711" in shown.partition("call 4")[2].partition("reply:")[0]) is (keep == "prompts")
    with Ledger(runs) as ledger:
        assert ledger.erase(["run"]) == 1
        assert verify_ledger(ledger).right
    if isinstance(runs, Path):
        assert not any(b"4711" in each.read_bytes() for each in runs.parent.iterdir())
