"""Many agents at once over one policy, each with a gate of its own: the benchmark of it, made short."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from stepguard.ledger import Ledger

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def gate_times(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module("gate_times")
    del sys.modules["gate_times"]


@pytest.mark.parametrize(("agents", "kept"), [pytest.param(100, False, marks=pytest.mark.slow), (25, True)])
def test_an_agent_among_many_is_judged_as_it_is_alone(gate_times: Any, tmp_path: Path, agents: int, kept: bool) -> None:
    """From 16 threads, mixed, in memory or over one ledger, every decision and key is that of the agent alone."""
    with Ledger(tmp_path / "agents.db") as ledger:
        figures = gate_times.agents_at_once(agents, 10, ledger=ledger if kept else None)
    assert figures["calls"] == agents * 10
    assert min(figures["allow"], figures["refuse"]) > agents


def test_every_way_through_the_gate_is_measured(gate_times: Any) -> None:
    """The calls of a session pass each of them, with the gate and without it."""
    figures = gate_times.added_times(2, 4)
    assert {name: row["calls"] for name, row in figures.items()} == {"gate": 8, "ToolGate": 8, "MCP gate": 8}
