"""The command that audits: exit codes, output, misuse."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from audit_harness import RIGHT

from stepguard.cli import main

pytestmark = pytest.mark.once

VALUES = ["--input", "x=12", "--input", "y=7"]


@pytest.fixture
def procedure(tmp_path: Path) -> str:
    """A file with four steps."""
    file = tmp_path / "steps.txt"
    file.write_text("inputs: x, y\nt1 = x + y\nt2 = t1 * 3\nt3 = t2 - t1\nt4 = t3 + 5\n", encoding="utf-8")
    return str(file)


def written(tmp_path: Path, text: str) -> str:
    file = tmp_path / "transcript.txt"
    file.write_text(text, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (RIGHT + "Answer: 43", 0),
        ("12 + 7 = 19\nAnswer: 43", 1),
        (RIGHT.replace("= 57\n", "= 58\n") + "Answer: 43", 3),
        (RIGHT, 3),
    ],
)
def test_the_exit_code_says_what_was_found(
    procedure: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, code: int
) -> None:
    """0 where nothing is wrong, 1 where something could not be judged, 3 where something is wrong."""
    assert main(["audit", procedure, written(tmp_path, text), *VALUES]) == code
    printed = capsys.readouterr()
    assert "4 steps" in printed.out
    assert printed.err == ""


def test_every_error_is_named_with_its_line(procedure: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The table says what was claimed and what is right, and the findings where they stand."""
    text = RIGHT.replace("= 57\n", "= 58\n") + "Answer: 43"
    main(["audit", procedure, written(tmp_path, text), *VALUES])
    printed = capsys.readouterr().out
    assert "line 2: wrong_value at t2: t1 * 3 is 57, not 58" in printed
    assert "wrong: wrong_value" in printed


def test_json_is_one_document(procedure: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With --json the whole audit is one JSON document."""
    assert main(["audit", procedure, written(tmp_path, RIGHT + "Answer: 43"), *VALUES, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True


def test_a_transcript_is_read_from_stdin(
    procedure: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dash stands for stdin."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((RIGHT + "Answer: 43").encode()), encoding="utf-8"))
    assert main(["audit", procedure, "-", *VALUES]) == 0
    assert "4 right" in capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_transcript_in_the_encoding_that_it_names(procedure: str, tmp_path: Path, encoding: str) -> None:
    """A file that begins with a mark of its encoding is read in it, as shells write them on Windows."""
    file = tmp_path / "transcript.txt"
    file.write_text(RIGHT + "Answer: 43", encoding=encoding)
    assert main(["audit", procedure, str(file), *VALUES]) == 0


@pytest.mark.parametrize(
    "data",
    [
        (RIGHT + "Answer: 43").encode("utf-16-le"),
        (RIGHT + "Answer: 43").encode("utf-16") + b"!",
        bytes(range(256)) * 4,
        bytes(range(128, 256)) * 4,
    ],
    ids=["unmarked", "broken", "binary", "high"],
)
def test_a_transcript_that_is_no_text_is_refused(
    procedure: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], data: bytes
) -> None:
    """What cannot be read is not judged: it says nothing of what the model did."""
    file = tmp_path / "transcript.txt"
    file.write_bytes(data)
    assert main(["audit", procedure, str(file), *VALUES]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "save it as UTF-8" in printed.err


def test_no_encoding_makes_it_fail(procedure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signs that the terminal lacks, and bytes that are no text, do not end in a traceback."""
    file = tmp_path / "odd.txt"
    file.write_bytes(b"t1 = 12 + 7 = 20 \xff \xe2\x9c\x93\nWait \xe2\x80\x94 t\xe2\x82\x81\nAnswer: 1\n")
    streams = [io.TextIOWrapper(io.BytesIO(), "cp1252", write_through=True) for _ in range(2)]
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    assert main(["audit", procedure, str(file), *VALUES]) == 3


def test_one_step_is_counted_in_the_singular(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The summary of a procedure of one step speaks of one step."""
    path = tmp_path / "one.txt"
    path.write_text("t = 2 * 3\n", encoding="utf-8")
    main(["audit", str(path), written(tmp_path, "t = 6")])
    assert "1 step: 1 right" in capsys.readouterr().out
