"""Batches on Ray: every row has its result, whatever becomes of another row or of its worker."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from batch_harness import TEXT, CountingModel, asked, rows

from stepguard import Guard, Procedure
from stepguard.batches import map_dataset
from stepguard.errors import ConfigError
from stepguard.procedure import Tool
from stepguard.testing import SimulatedModel, Slips

pytestmark = [
    *map(pytest.mark.filterwarnings, ("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::FutureWarning"))
]
"""Ray's own are none of ours."""


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """A Ray of this machine alone."""
    ray = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    paths = {"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}}
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR", runtime_env=paths)
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield ray
    ray.shutdown()


def test_rows_are_run_and_fail_for_themselves(ray: Any) -> None:
    """Answers are exact and of their rows; what is no input, or not answered, costs no other row."""

    def setup() -> tuple[Guard, Procedure]:
        text = "inputs: x, day: date = 2026-01-31\ny = x * 3\nnext_day: date = day + 1 days\nanswer: y"
        return Guard(SimulatedModel(seed=1, slips=Slips.none())), Procedure.parse(text)

    given: list[dict[str, Any]] = [
        {"name": f"r{n}", "x": n + 2**60, "day": None if n % 2 else date(2026, 2, 28), "note": "n"} for n in range(40)
    ]
    given[7]["x"] = None
    dataset = ray.data.from_items(given, override_num_blocks=4)
    done = map_dataset(dataset, setup, key="name", ignore=["note"], workers=2, batch_size=8).take_all()
    found = {row["name"]: row for row in done}
    assert len(done) == len(found) == 40
    assert (found["r7"]["status"], found["r7"]["calls"]) == ("invalid", None)
    assert "'x'" in found["r7"]["error"]
    right = [row for name, row in found.items() if name != "r7"]
    assert {row["status"] for row in right} == {"verified"}
    assert all(int(row["answer"]) == 3 * (int(row["name"][1:]) + 2**60) for row in right)
    assert '"next_day": "2026-03-01"' in found["r0"]["values"]
    assert all(row["calls"] >= 1 and row["error"] is None for row in right)


def test_a_batch_that_is_carried_out_again_pays_nothing_twice(ray: Any, tmp_path: Path) -> None:
    """A worker dies in the middle of a batch; the next one goes on from the ledger, and calls no tool again."""
    log, paid, died, runs = (tmp_path / name for name in ("log", "paid", "died", "runs.db"))

    class Mortal(CountingModel):
        def __call__(self, messages: list[dict[str, str]]) -> str:
            if len(asked(log)) >= 7 and not died.exists():
                died.touch()
                os._exit(1)
            return super().__call__(messages)

    def pay(amount: int) -> str:
        with paid.open("a", encoding="utf-8") as file:
            file.write(f"{amount}\n")
        return "paid"

    def setup() -> tuple[Guard, Procedure]:
        text = f"{TEXT}receipt: text = tool pay(amount=c)\nanswer: c\n"
        procedure = Procedure.parse(text, tools={"pay": Tool(pay, idempotent=True)})
        return Guard(Mortal(log), segment=1, ledger=runs), procedure

    dataset = ray.data.from_items(rows(6))
    done = map_dataset(dataset, setup, key="id", run_id="night", batch_size=6, concurrency=1).take_all()
    assert died.exists()
    assert sorted((row["id"], row["answer"]) for row in done) == [(f"r{n}", str(3000 * n + 3)) for n in range(6)]
    assert set(asked(log).values()) == {1}
    assert len(asked(log)) == 18
    assert sorted(map(int, paid.read_text().split())) == [3000 * n + 3 for n in range(6)]


def test_arguments_that_cannot_work_are_refused(ray: Any) -> None:
    """What is no dataset, a key that is no column or a result, no workers."""

    def setup() -> tuple[Guard, Procedure]:
        return Guard(SimulatedModel(seed=1, slips=Slips.none())), Procedure.parse("inputs: x\ny = x + 1")

    dataset = ray.data.from_items([{"id": "a", "x": 1, "answer": 2}])
    with pytest.raises(ConfigError, match="dataset"):
        map_dataset([{"x": 1}], setup, key="id")
    with pytest.raises(ConfigError, match="one of the results"):
        map_dataset(dataset, setup, key="answer")
    with pytest.raises(ConfigError, match="workers"):
        map_dataset(dataset, setup, key="id", workers=0)
    with pytest.raises(Exception, match="no column 'nobody'"):
        map_dataset(dataset, setup, key="nobody").take_all()
