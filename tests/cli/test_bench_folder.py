"""Where the benchmark writes to when nobody says where."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from conftest import ChatServer, Received, Reply

from stepguard.cli import main

pytestmark = pytest.mark.once

BENCH = ["bench", "--lengths", "3", "-n", "1", "--arms", "guard"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The default folder, in a current directory of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path / "stepguard-bench"


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def test_the_bench_writes_to_a_new_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --out results and report are written to a new folder, and the table says where."""
    assert main(BENCH) == 0
    assert names(folder) == {"results.json", "report.html", "accuracy.svg", "outcomes.jsonl"}
    assert f"written: {Path('stepguard-bench', 'results.json')}" in capsys.readouterr().out


def test_an_earlier_simulated_run_is_overwritten_and_nothing_else(folder: Path) -> None:
    """A second run takes the place of the first, whatever its options; other files there stay as they are."""
    assert main(BENCH) == 0
    (folder / "notes.txt").write_text("mine", encoding="utf-8")
    assert main([*BENCH, "--seed", "7", "--profile", "study"]) == 0
    meta = json.loads((folder / "results.json").read_text(encoding="utf-8"))["meta"]
    assert (meta["seed"], meta["profile"]) == (7, "study")
    assert (folder / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_a_simulated_run_that_was_killed_is_overwritten(folder: Path) -> None:
    """Outcomes alone, without results, are those of a run that did not end."""
    assert main(BENCH) == 0
    (folder / "results.json").unlink()
    assert main(BENCH) == 0
    assert (folder / "results.json").exists()


def test_an_empty_folder_is_written_to(folder: Path) -> None:
    """An empty folder of that name holds nothing that could be lost."""
    folder.mkdir()
    assert main(BENCH) == 0
    assert (folder / "report.html").exists()


@pytest.mark.parametrize("name", ["results.json", "outcomes.jsonl", "report.html", "replies.sqlite", "notes.txt"])
def test_whatever_else_is_there_is_left_alone(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder with a run of a model, or with anything else, is not written to."""
    folder.mkdir()
    (folder / name).write_text('{"configuration": {"model": "m"}, "meta": {"simulated": false}}\n', encoding="utf-8")
    before = (folder / name).read_bytes()
    assert main(BENCH) == 2
    assert "is left alone: say where to write with --out" in capsys.readouterr().err
    assert names(folder) == {name}
    assert (folder / name).read_bytes() == before


@pytest.mark.parametrize("name", ["results.json", "replies.sqlite"])
def test_a_run_of_a_model_beside_a_simulated_one_is_left_alone(folder: Path, name: str) -> None:
    """Results or replies of a model are kept, even where the outcomes are of a simulated one."""
    assert main(BENCH) == 0
    (folder / name).write_text('{"meta": {"simulated": false}}', encoding="utf-8")
    assert main(BENCH) == 2
    assert (folder / name).read_text(encoding="utf-8") == '{"meta": {"simulated": false}}'


def test_a_file_of_that_name_is_left_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file where the folder would be is named."""
    folder.write_text("mine", encoding="utf-8")
    assert main(BENCH) == 2
    assert "is a file" in capsys.readouterr().err


def test_misuse_deletes_nothing(folder: Path) -> None:
    """An earlier run goes only when the next one starts."""
    assert main(BENCH) == 0
    before = {each.name: each.read_bytes() for each in folder.iterdir()}
    assert main([*BENCH, "--profile", "typical"]) == 2
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == before


def test_json_and_replay_write_nothing(tmp_path: Path) -> None:
    """What goes to standard output, or was written by an earlier run, needs no folder."""
    assert main([*BENCH, "--json"]) == 0
    assert names(tmp_path) == set()


def test_a_file_that_cannot_be_written_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be written ends the command with its path, not only with the cause."""
    (folder.parent / "out").mkdir()
    (folder.parent / "out" / "results.json").symlink_to(Path("nowhere", "results.json"))
    assert main([*BENCH, "--out", "out"]) == 74
    assert f"cannot write {Path('out', 'results.json')}: " in capsys.readouterr().err


@pytest.mark.parametrize("ignoring", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_run_that_is_told_to_end_says_how_it_goes_on(
    folder: Path, chat_server: ChatServer, capsys: pytest.CaptureFixture[str], ignoring: bool
) -> None:
    """SIGTERM ends it with 143, what is done is kept, and the command that the message names goes on.

    So it does where SIGINT is ignored, as it is in a job that a shell runs in the background.
    """

    def end(received: Received) -> Reply:
        os.kill(os.getpid(), signal.SIGTERM)
        return Reply({"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "{}"}}]})

    chat_server.play(end)
    command = [*BENCH, "--retries", "0", "--model", "m", "--base-url", chat_server.url]
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if ignoring else signal.getsignal(signal.SIGINT)
    try:
        assert main(command) == 143
    finally:
        signal.signal(signal.SIGINT, before)
    assert "interrupted after 0 of 1 runs; what is done is kept: the same" in capsys.readouterr().err
    chat_server.play(lambda received: Reply({"choices": [{"message": {"role": "assistant", "content": "{}"}}]}))
    assert main([*command, "--out", folder.name, "--resume"]) == 0


@pytest.mark.parametrize("name", ["results.json", "outcomes.jsonl", "report.html", "replies.sqlite"])
def test_a_folder_where_a_file_is_to_be_written_is_refused_first(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is paid for that could not be written."""
    (folder / name).mkdir(parents=True)
    assert main([*BENCH, "--out", folder.name]) == 2
    assert f"{Path(folder.name, name)} is a folder, where a file" in capsys.readouterr().err
