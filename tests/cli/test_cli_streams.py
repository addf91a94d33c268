"""The command line: terminals, encodings, and streams that break."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import cli_harness
import pytest
from cli_harness import RIGHT, Replies

from stepguard.cli import main

procedure = cli_harness.procedure
replies = cli_harness.replies
words = cli_harness.words

INVOICE = str(Path(__file__).parents[2] / "examples" / "invoice.txt")
INVOICE_INPUTS = [
    f"--input={pair}" for pair in ("unit_price=12.50", "quantity=3", "discount=10%", "shipping=4.95", "tax_rate=19%")
]


def in_a_process(*arguments: str, into: Path | None = None, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a process of its own that prints to pipes, or to files in a folder.

    An empty value takes a variable away.
    """
    given = [argument.encode() for argument in arguments]  # as a terminal sends them, whatever the locale
    command: list[str | bytes] = [sys.executable, "-W", "error", "-m", "stepguard.cli", *given]
    combined = {**os.environ, **environment}
    env = {name: value for name, value in combined.items() if value}
    if into is None:
        return subprocess.run(command, env=env, capture_output=True, timeout=60, check=False)
    out, err = into / "stdout", into / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        done = subprocess.run(command, env=env, stdout=stdout, stderr=stderr, timeout=60, check=False)
    return subprocess.CompletedProcess(command, done.returncode, out.read_bytes(), err.read_bytes())


class Streams:
    """A stdout and a stderr that write bytes, as a process has them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, encoding: str, errors: str = "strict") -> None:
        self._written = (io.BytesIO(), io.BytesIO())
        out, err = (io.TextIOWrapper(each, encoding, errors, write_through=True) for each in self._written)
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)

    @property
    def stdout(self) -> bytes:
        return self._written[0].getvalue()

    @property
    def stderr(self) -> bytes:
        return self._written[1].getvalue()


class TestTerminal:
    def test_help(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Without a command the help is printed."""
        assert main([]) == 0
        out = capsys.readouterr().out
        assert "run a procedure from a file" in out
        assert "bench" in out

    def test_version(self, capsys: pytest.CaptureFixture[str]) -> None:
        """--version prints the version of the installed package."""
        assert main(["--version"]) == 0
        assert capsys.readouterr().out.startswith("stepguard ")

    def test_model_text_is_shown_as_it_is(
        self, words: str, replies: Replies, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Markup and control characters in a reply are printed as text and never reach the terminal."""
        replies([{"t1": "4 + 1 = 5", "step2": {"work": "", "value": "[bold]red[/bold] :smile: \x1b[2J"}}])
        assert main(["run", words, "--input", "x=4"]) == 1
        out = capsys.readouterr().out
        assert "[bold]red[/bold] :smile: \\x1b[2J" in out
        assert "\x1b" not in out

    @pytest.fixture
    def signs(self, tmp_path: Path) -> str:
        """A file with a procedure whose name no ASCII terminal shows."""
        file = tmp_path / "words.txt"
        file.write_text("name: größe → ✓\ninputs: x\nt1 = by code x + 1\n", encoding="utf-8")
        return str(file)

    @pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
    def test_encodings(self, signs: str, monkeypatch: pytest.MonkeyPatch, errors: str) -> None:
        """Characters that a stream cannot show do not end a run, nor an error message."""
        streams = Streams(monkeypatch, "ascii", errors)
        assert main(["run", signs, "--input", "x=4"]) == 0
        assert b"VERIFIED" in streams.stdout
        assert main(["run", signs, "--input", "✓=4"]) == 2
        assert b"has no input" in streams.stderr
        assert b"Traceback" not in streams.stderr

    def test_arguments_in_the_c_locale(self, signs: str) -> None:
        """Characters that a locale lacks stand in arguments, and end in an error message."""
        done = in_a_process("run", signs, "--input", "✓=4", PYTHONIOENCODING="", PYTHONUTF8="0", LC_ALL="C")
        assert done.returncode == 2, done.stderr
        assert b"has no input" in done.stderr
        assert b"Traceback" not in done.stderr

    @pytest.mark.parametrize(
        ("arguments", "code", "printed", "where"),
        [
            (["run", INVOICE, *INVOICE_INPUTS], 0, "VERIFIED: all 6 steps", "pipe"),
            (["run", INVOICE, *INVOICE_INPUTS, "--max-calls", "0"], 4, "EXHAUSTED: stopped before step", "here"),
            (["run", INVOICE], 2, "", "here"),
            pytest.param(
                *(["bench", "--lengths", "5", "-n", "2", "--out", "NEW"], 0, "95 % Wilson intervals", "file"),
                marks=pytest.mark.slow,
            ),
        ],
        ids=["verified", "exhausted", "misused", "bench"],
    )
    def test_cp1252_without_a_terminal(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, printed: str, where: str
    ) -> None:
        """Under cp1252 and in CI a command exits as elsewhere and writes plain lines, to a pipe and to a file."""
        into = tmp_path if where == "file" else None
        arguments = [str(tmp_path / "new") if each == "NEW" else each for each in arguments]
        done: Streams | subprocess.CompletedProcess[bytes]
        if where == "here":
            monkeypatch.setenv("CI", "true")
            done = Streams(monkeypatch, "cp1252")
            ended = main(arguments)
        else:
            done = in_a_process(*arguments, into=into, PYTHONIOENCODING="cp1252", PYTHONUTF8="0", CI="true")
            ended = done.returncode
        assert ended == code, done.stderr
        assert printed in done.stdout.decode("cp1252")
        assert not {b"\r", b"\x1b"} & {bytes([byte]) for byte in done.stdout + done.stderr}

    def test_plain_progress(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        """Where stderr is no terminal, progress is a few plain lines without carriage returns."""
        monkeypatch.delenv("CI", raising=False)
        assert main(["run", INVOICE, *INVOICE_INPUTS, "--seed", "1"]) == 0
        shown = capsys.readouterr().err
        lines = shown.splitlines()
        assert "\r" not in shown
        assert "\x1b" not in shown
        assert lines[1] == "invoice on SIMULATED MODEL: 6 steps"
        assert len(lines) < 14

    @pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
    @pytest.mark.parametrize("ci", ["", "true"])
    def test_progress_bar(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ci: str) -> None:
        """A bar is drawn only where stderr is a terminal that somebody watches; stdout has no part in it."""
        import pty

        monkeypatch.setenv("CI", ci)
        monkeypatch.setenv("TERM", "xterm")
        control, terminal = pty.openpty()
        os.set_blocking(control, False)
        with os.fdopen(control, "rb", buffering=0) as shown, os.fdopen(terminal, "w", encoding="utf-8") as stderr:
            with monkeypatch.context() as patch:
                patch.setattr(sys, "stderr", stderr)
                assert main(["run", INVOICE, *INVOICE_INPUTS, "--json"]) == 0
            stderr.flush()
            assert (b"\x1b[" in (shown.read(100_000) or b"")) is (ci == "")
        assert json.loads(capsys.readouterr().out)["procedure"] == "invoice"

    @pytest.mark.skipif(sys.platform == "win32", reason="pipes")
    @pytest.mark.parametrize("how", ["--json", pytest.param("--quiet", marks=pytest.mark.slow)])
    def test_reader_gone(self, how: str) -> None:
        """When nobody reads stdout, the command ends quietly, and not with a code that means an outcome."""
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [sys.executable, "-m", "stepguard", "run", INVOICE, *INVOICE_INPUTS, how],
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
        os.close(writer)
        assert done.returncode == 141
        assert b"Broken" not in done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["audit", INVOICE, "-", *INVOICE_INPUTS],
        ["import", "-"],
        ["import-policy", "-"],
        ["run", "-"],
        ["run", INVOICE, "--input", "unit_price=@-"],
        ["show", INVOICE, "--run", "-"],
    ],
    ids=lambda command: str(command[0]),
)
def test_a_closed_stdin_is_refused(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dash without a stdin is no empty text, wherever a text is read."""
    monkeypatch.setattr(sys, "stdin", None)
    assert main(command) == 2
    assert "stdin is closed" in capsys.readouterr().err


@pytest.mark.parametrize("text", [b"inputs: x, y\nt = x + y", b"\xef\xbb\xbfinputs: x, y\r\nt = x + y\r\n"])
def test_a_procedure_is_read_from_stdin(
    text: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dash stands for stdin, read as a file is: UTF-8 in any locale, with or without its mark, any ends of lines."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text), encoding="ascii"))
    assert main(["run", "-", "--input", "x=1", "--input", "y=2"]) == 0
    assert "t = 3" in capsys.readouterr().out


@pytest.mark.parametrize("columns", ["0", "1", "12"])
def test_no_width_takes_the_letters_from_a_table(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where COLUMNS says nothing, or next to nothing, a result is as wide as it needs to be read."""
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["run", INVOICE, *INVOICE_INPUTS]) == 0
    assert "VERIFIED" in (out := capsys.readouterr().out)
    assert "goods" in out


class TestStreams:
    class Full(io.StringIO):
        """A stream on a disk that is full."""

        def write(self, text: str) -> int:
            raise OSError(28, "No space left on device")

        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    @pytest.mark.parametrize("stderr", [None, Full()], ids=["closed", "full"])
    @pytest.mark.parametrize(
        "command", [["run"], ["bench", "--json", "--lengths", "3", "-n", "1"]], ids=["run", "bench"]
    )
    def test_stderr_that_takes_nothing(
        self,
        procedure: str,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        stderr: io.StringIO | None,
        command: list[str],
    ) -> None:
        """Progress that cannot be shown is lost, and nothing else is: the result stands on stdout."""
        monkeypatch.setattr(sys, "stderr", stderr)
        arguments = [*command, procedure, "--input", "x=4", "--json"] if command == ["run"] else command
        assert main(arguments) == 0
        assert json.loads(capsys.readouterr().out)
        assert sys.stderr is stderr

    def test_a_fault_is_not_told_on_stdout(
        self, procedure: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Where stderr is closed a traceback is lost, instead of standing where the result should."""

        def fault(*_: object) -> object:
            raise ZeroDivisionError("a fault")

        monkeypatch.setattr("stepguard.guard.Guard.drive", fault)
        monkeypatch.setattr(sys, "stderr", None)
        assert main(["run", procedure, "--input", "x=4", "--json"]) == 70
        assert capsys.readouterr().out == ""

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
    @pytest.mark.parametrize(
        "how", ["2>/dev/full", *(pytest.param(each, marks=pytest.mark.slow) for each in ("2>&-", "2> >(true)"))]
    )
    def test_stderr_of_a_process(self, how: str) -> None:
        """The exit code is that of the run, also where Python flushes stderr at its end."""
        shell = ["bash", "-c", f'"$@" {how}', "bash", sys.executable, "-m", "stepguard.cli"]
        done = subprocess.run(
            [*shell, "run", INVOICE, *INVOICE_INPUTS, "--json"], stdout=subprocess.PIPE, timeout=60, check=False
        )
        assert done.returncode == 0
        assert json.loads(done.stdout)["status"] == "verified"

    def test_closed_stdout(
        self, procedure: str, replies: Replies, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Without a stdout nothing is asked that would be paid for."""
        requests = replies([RIGHT])
        monkeypatch.setattr(sys, "stdout", None)
        assert main(["run", procedure, "--input", "x=4"]) == 2
        assert "stdout is closed" in capsys.readouterr().err
        assert not requests
