"""``--learned``: what runs have shown of a model, kept in a file; what it foretells, beside what was spent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stepguard import Profile
from stepguard.backends import Completion, Request
from stepguard.cli import main
from stepguard.testing import SimulatedModel

INVOICE = str(Path(__file__).parents[2] / "examples" / "invoice.txt")
INPUTS = [
    *("--input", "unit_price=12.50", "--input", "quantity=3", "--input", "discount=10%"),
    *("--input", "shipping=4.95", "--input", "tax_rate=19%"),
]


def test_runs_add_to_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first run makes the file, the second one begins with it and adds what it has shown; the result says so."""
    path = tmp_path / "model.json"
    profiled: list[bool] = []
    for _ in range(2):
        assert main(["run", INVOICE, *INPUTS, "--learned", str(path), "--json"]) == 0
        profiled.append(json.loads(capsys.readouterr().out)["profiled"])
    assert profiled == [False, True]
    assert Profile.load(path).asked.made == 12


@pytest.mark.parametrize(("fault", "code"), [(KeyboardInterrupt, 130), (BrokenPipeError, 141)])
def test_what_a_run_has_shown_is_kept_where_its_end_is_lost(
    fault: type[BaseException],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],  # a stdout that can be dropped: pytest's own belongs to all tests
) -> None:
    """Ctrl-C, or a reader that has gone, does not cost what the calls until then have shown of the model."""
    asked = SimulatedModel.complete
    calls: list[object] = []

    def complete(self: SimulatedModel, request: Request) -> Completion:
        calls.append(request)
        if fault is KeyboardInterrupt and len(calls) > 2:
            raise KeyboardInterrupt
        return asked(self, request)

    def gone(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(SimulatedModel, "complete", complete)
    if fault is BrokenPipeError:
        monkeypatch.setattr("stepguard.cli.report.print_result", gone)
    path = tmp_path / "model.json"
    assert main(["run", INVOICE, *INPUTS, "--segment", "1", "--learned", str(path)]) == code
    assert Profile.load(path).asked.made == (2 if fault is KeyboardInterrupt else 6)


def test_the_bench_prints_what_was_foretold_and_what_was_spent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a profile results.json and the table hold the forecast of the guard at each length, beside what it took."""
    path = tmp_path / "model.json"
    main(["run", INVOICE, *INPUTS, "--learned", str(path), "--quiet"])
    command = ["bench", "--lengths", "5,8", "-n", "3", "--arms", "cot,guard", "--learned", str(path)]
    capsys.readouterr()
    assert main([*command, "--json"]) == 0
    results = json.loads(capsys.readouterr().out)
    assert [row["length"] for row in results["forecast"]] == [5, 8]
    for row in results["forecast"]:
        spent = next(each for each in results["rows"] if (each["arm"], each["length"]) == ("guard", row["length"]))
        assert row["spent"]["calls"] == pytest.approx(spent["calls"] / spent["n"])
        assert row["forecast"]["calls"] >= 1
    assert results["meta"]["learned"]["version"] == 1
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "guard at 8 steps: forecast" in shown
