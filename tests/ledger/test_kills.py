"""Real processes that are killed at random points lose nothing, ask nothing again and call no tool twice."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "ledger_kills.py"


def _script() -> Any:
    spec = spec_from_file_location("ledger_kills", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules["ledger_kills"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
@pytest.mark.parametrize("kills", [4, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_processes_lose_nothing(tmp_path: Path, kills: int) -> None:
    """After every SIGKILL the next process goes on, and all runs end as if nobody had been killed."""
    report = _script().run_kills(kills, tmp_path, seed=kills)
    assert report.clean, report
    assert report.kills == kills
