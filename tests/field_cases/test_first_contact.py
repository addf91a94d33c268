"""What a newcomer runs first: a slip is seen and mended, and what cannot work says so before it costs anything."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from stepguard import Guard
from stepguard.cli import main
from stepguard.errors import ConfigError
from stepguard.evaluation.report.charts import SHAPES, look
from stepguard.evaluation.report.results_file import make_table
from stepguard.evaluation.statistics import compare

INVOICE = ["run", str(Path(__file__).parents[2] / "examples" / "invoice.txt")]
INVOICE += ["--input", "unit_price=12.50", "--input", "quantity=3", "--input", "discount=10%"]
INVOICE += ["--input", "shipping=4.95", "--input", "tax_rate=19%"]


@pytest.mark.usefixtures("at_once")
def test_b01_a_dead_endpoint_is_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No table of zeros: the command fails, and names the cause, after the first runs that reached nobody."""
    dead = ["bench", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--lengths", "5", "-n", "50"]
    assert main([*dead, "--arms", "cot", "--concurrency", "2", "--out", str(tmp_path / "out")]) == 2
    complaint = capsys.readouterr().err
    assert "no run has reached the model" in complaint
    assert "connection" in complaint


def test_b03_the_first_command_shows_a_slip_mended(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the seed, the simulated model slips once, and the table says on which try the step came right."""
    for seed in range(12):
        assert main([*INVOICE, "--seed", str(seed)]) == 0
        printed = capsys.readouterr().out
        assert re.search(r"verified on try \d", printed)
        assert "wrong_value" in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "p.txt", "--inptu", "x=1"], "did you mean --input?"),
        (["bench", "--length=5"], "did you mean --lengths?"),
        (["runs", "--ledger", "r.db"], "usage: stepguard runs"),
        (["bench", "-n", "0"], "error: -n takes"),
        (["import", "no.md"], "no.md: cannot be read: No such file or directory\n"),
        (["import", "bad.txt"], "bad.txt: it is not UTF-8 text (byte 0)\n"),
        (["run", "bad.txt"], "error: bad.txt: it is not UTF-8 text (byte 0): save it as UTF-8\n"),
    ],
)
def test_b02_a_slip_on_the_command_line_says_what_was_meant(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command's own usage, the option that is near, and a file by its name, once."""
    monkeypatch.chdir(tmp_path)
    Path("bad.txt").write_bytes("t = 1".encode("utf-16"))
    assert _exit_code(arguments) == 2
    assert said in capsys.readouterr().err


def _exit_code(arguments: list[str]) -> object:
    try:
        return main(arguments)
    except SystemExit as ended:
        return ended.code


def test_b02_a_model_file_or_nothing_in_the_place_of_a_name_is_told_how_to_go_on() -> None:
    """No advice that cannot work, such as the empty name of a model behind a provider."""
    for name, how in (("", "'openai/gpt-4.1-mini'"), ("./m.gguf", "LocalBackend('./m.gguf')"), ("m", "'openai/m'")):
        with pytest.raises(ConfigError, match=re.escape(how)):
            Guard(name)


ARMS = ("direct", "cot", "trace", "chunk", "blind", "resample(k=5)", "offload", "guard", "guard(retries=1)")


def test_b04_nine_arms_fit_eighty_columns() -> None:
    """The narrow table has no column of more than its share, keeps what is silently wrong, and splits no word."""
    row = {"task": "arithmetic", "length": 95, "n": 124, "accuracy": 1.0, "interval": [0.8, 1.0], "assisted": {}}
    row |= {"accuracy_lenient": 1.0, "trace_accuracy": 1.0, "trace_interval": [0.8, 1.0], "abstained": 0.0}
    row |= {"silent_errors": 0, "errors": 0, "calls": 3000, "input_tokens": 12_000_00, "output_tokens": 3_300_00}
    head, *rows = make_table({"rows": [{**row, "arm": arm} for arm in ARMS]}, narrow=True)
    assert "silently wrong" in head
    widths = [max(len(line) for row in rows for line in row[at].split("\n")) for at in range(len(head))]
    words = [max(map(len, name.split())) for name in head]
    assert sum(map(max, widths, words)) + len(head) <= 80


def test_b04_nine_arms_are_told_apart() -> None:
    """By colour and marker together, and without colours by marker and dash for as many as there are markers."""
    looks = [look(style) for style in range(len(ARMS))]
    assert len(set(looks)) == len(ARMS)
    assert len({mark for _, mark in looks[: len(SHAPES)]}) == len(SHAPES)


def test_b05_an_interval_without_width_is_marked(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Where all pairs are alike the interval has no width, and results.json says so as the report does."""
    found = compare([True] * 4, [True] * 4)
    out = tmp_path / "out"
    assert main(["bench", "--lengths", "5", "-n", "4", "--arms", "offload,guard", "--out", str(out)]) == 0
    pairs = json.loads((out / "results.json").read_text(encoding="utf-8"))["paired"]
    assert all(pair["no_width"] == (pair["interval"][0] == pair["interval"][1]) for pair in pairs)
    assert found.difference == 0
