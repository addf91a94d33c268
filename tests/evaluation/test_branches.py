"""The benchmark of procedures with decisions: its cases, its arms and how answers are read."""

from __future__ import annotations

import importlib
import sys
from decimal import Decimal
from pathlib import Path
from types import ModuleType

import pytest

from stepguard.backends.recorded import RecordedBackend
from stepguard.testing import ScriptedBackend, SimulatedModel

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def branches(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    for name in ("branches", "branch_cases"):
        sys.modules.pop(name, None)
    return importlib.import_module("branches")


@pytest.mark.parametrize(
    "name", ["returns", "doses", *(pytest.param(each, marks=pytest.mark.slow) for each in ("claims", "deadlines"))]
)
def test_the_guard_and_plain_python_come_to_the_same(branches: ModuleType, name: str) -> None:
    """A model that makes no slip ends at the answers that the benchmark holds to be right."""
    if name == "doses":
        pytest.importorskip("pint")
    desk = branches.DESKS[name]
    for seed in range(6):
        case = desk.case(seed, 1 + seed % 3)
        first, *lines = str(case.inputs.get("claim", "")).splitlines() or [""]
        items = [
            {"what": each[:20].strip(), "amount": f"{each[20:].split()[0]} EUR", "spent": each[-10:]} for each in lines
        ]
        model = SimulatedModel(seed=1, answers={"applicant": first.partition(": ")[2], "items": items} if items else {})
        run = branches.guarded(model, desk, case, seed, observe=False)
        assert run.right, (seed, run)
        wrong = branches.guarded(model, desk, branches.Case(case.inputs, case.answer + 1), seed, observe=False)
        assert wrong.given
        assert not wrong.right


def test_free_answers_are_read_kindly(branches: ModuleType) -> None:
    """By the line that was asked for, else by the last number; a trace by its answer."""
    read = branches.read_answer
    assert read("12 + 30 = 42.\n**Answer: 1,042.50 USD**, as of 2026", structured=False) == Decimal("1042.50")
    assert read("so it is 7", structured=False) == 7
    assert read("I cannot say", structured=False) is None
    assert read('{"steps": [], "answer": "12.5 ml"}', structured=True) == Decimal("12.5")
    assert read('{"steps": [{"value": "12"}', structured=True) is None


def test_an_unguarded_arm_shows_the_whole_procedure_and_no_answer(branches: ModuleType, tmp_path: Path) -> None:
    """What is asked in one call is the procedure as it is written and the inputs."""
    desk = branches.DESKS["deadlines"]
    case = desk.case(3, 2)
    model = ScriptedBackend(f"Answer: {case.answer}")
    run = branches.ask(RecordedBackend(tmp_path / "replies.sqlite", model), desk, case, "cot")
    assert run.right
    (request,) = model.requests
    assert desk.text in request.messages[0].content
    assert str(case.inputs["letters"][0]["received"]) in request.messages[0].content
