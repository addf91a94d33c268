"""The benchmark of very long runs, made short: nothing wrong, and it goes on where it stopped."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.once

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "million.py"


@pytest.fixture(scope="module")
def million() -> ModuleType:
    spec = importlib.util.spec_from_file_location("million", BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["million"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("discs", range(1, 8))
def test_the_moves_solve_the_towers(million: ModuleType, discs: int) -> None:
    """The rule and the closed form agree on every state, each move is legal, and the tower ends on another peg."""
    state = "A" * discs
    for index in range(1, 2**discs):
        after = million.right_move(index, state)
        assert million.legal(state, after)
        assert after == million.at_move(index, discs)
        state = after
    assert len(set(state)) == 1
    assert state[0] != "A"


@pytest.mark.parametrize("move", ["BAA", "AAB", "AA", "AAD", "ABA", "CBA"])
def test_illegal_moves_are_known(million: ModuleType, move: str) -> None:
    """A covered disc, a larger one on a smaller, two at a time and another length are no moves."""
    assert million.legal("AAA", move) is (move == "BAA")


@pytest.mark.slow
@pytest.mark.parametrize("task", ["sum", "hanoi-rule", "hanoi-legal"])
@pytest.mark.parametrize("segment", [1, None])
def test_no_step_is_wrong(million: ModuleType, task: str, segment: int | None) -> None:
    """Every committed value is right by other means than the checks; under legality alone other moves may pass."""
    state = million.run_all(million.State(task, segment, 10), 1000, part=300)
    assert state.done == 1000
    if task != "hanoi-legal":
        assert (state.wrong, state.broken) == (0, 0)
    assert state.usage.calls <= (1.02 * 1000 if segment == 1 else 150)


def test_a_run_that_was_stopped_goes_on(million: ModuleType, tmp_path: Path) -> None:
    """What is written after each part is where the next command begins, and the result is the same."""
    path = tmp_path / "sum.json"
    begun = million.State("sum", None, 20)
    million.run_all(begun, 400, part=200, path=path)
    resumed = million.run_all(begun, 800, part=200, path=path)
    whole: Any = million.run_all(begun, 800, part=200)
    assert (resumed.done, resumed.value, resumed.usage) == (whole.done, whole.value, whole.usage)
    with pytest.raises(SystemExit, match="another run"):
        million.run_all(million.State("hanoi-rule", None, 20), 800, path=path)
