"""What field cases of the guard share: a run by either driver, the command, a script in a process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ChatServer
from openai_harness import KEY

from stepguard.cli import main

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def steps_file(tmp_path: Path) -> str:
    file = tmp_path / "sums.txt"
    file.write_text("name: sums\ninputs: x, y\nt2 = x + y\nt1 = t2 * 3\n", encoding="utf-8")
    return str(file)


@pytest.fixture
def command(
    chat_server: ChatServer, steps_file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """`stepguard run` of the file at the server: its exit code, and what it prints to either stream."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    given = ["run", steps_file, "--input=x=12", "--input=y=7", "--model=some-model", f"--base-url={chat_server.url}"]

    def run(*more: str) -> tuple[int, str, str]:
        code = main([*given, *more])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return run
