"""Real processes that are killed at random points lose nothing, ask nothing again and call no tool twice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "ledger_kills.py"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
@pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_processes_lose_nothing(kills: int) -> None:
    """After every SIGKILL the next process goes on, and all runs end as if nobody had been killed."""
    command = [sys.executable, str(SCRIPT), "--kills", str(kills), "--seed", str(kills)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, (done.stdout, done.stderr)
    report = json.loads(done.stdout)
    assert report["kills"] == kills
    assert report["kinds"] >= min(kills // 2, 4)  # of the six kinds of runs
    assert [report[name] for name in ("asked_again", "called_twice", "wrong", "faults")] == [0] * 4
