"""The command line: exit codes, what goes to which stream, and what it survives."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import stepguard.testing
from stepguard.backends.base import Completion, Request
from stepguard.cli import main
from stepguard.core.usage import Usage
from stepguard.errors import BackendRejected

INVOICE = str(Path(__file__).parents[2] / "examples" / "invoice.txt")
INVOICE_INPUTS = [
    f"--input={pair}" for pair in ("unit_price=12.50", "quantity=3", "discount=10%", "shipping=4.95", "tax_rate=19%")
]
RIGHT = {"t1": "x + 1 = 4 + 1 = 5", "t2": "5 * 2 = 10"}
WRONG = {"t1": "4 + 1 = 5", "t2": "5 * 2 = 11"}

Replies = Callable[[Sequence[object]], list[Request]]


@pytest.fixture
def procedure(tmp_path: Path) -> str:
    """A file with a procedure of two steps over one input."""
    file = tmp_path / "steps.txt"
    file.write_text("name: doubling\ninputs: x: integer\nt1 = x + 1\nt2 = t1 * 2\n", encoding="utf-8")
    return str(file)


def a_model(*_: object) -> tuple[Any, str]:
    """What `--model` would name: whoever the fixture `replies` lets answer."""
    return stepguard.testing.SimulatedModel(), "a model"


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch) -> Replies:
    """Make the simulated model answer with these: JSON data, text, an exception to raise or a signal to send.

    The last one repeats.
    """

    def script(given: Sequence[object]) -> list[Request]:
        left = list(given)
        requests: list[Request] = []

        class Scripted:
            def __init__(self, **_: object) -> None:
                """Take what the simulated model takes."""

            def complete(self, request: Request) -> Completion:
                requests.append(request)
                reply = left.pop(0) if len(left) > 1 else left[0]
                if isinstance(reply, BaseException):
                    raise reply
                if isinstance(reply, signal.Signals):
                    signal.raise_signal(reply)
                text = reply if isinstance(reply, str) else json.dumps(reply)
                return Completion(text, usage=Usage(calls=1, input_tokens=1000, output_tokens=20))

        monkeypatch.setattr(stepguard.testing, "SimulatedModel", Scripted)
        return requests

    return script


class Endpoint:
    """What a loopback server answers, and the requests it got."""

    url = ""

    def __init__(self) -> None:
        self.models: tuple[int, object] = (200, {"object": "list", "data": [{"id": "tiny", "object": "model"}]})
        self.reply: object = RIGHT
        self.requests: list[dict[str, Any]] = []

    def answer(self, body: dict[str, Any] | None) -> tuple[int, object]:
        """The status and the data for a GET of the models, or a POST of a chat."""
        if body is None:
            return self.models
        self.requests.append(body)
        message = {"role": "assistant", "content": json.dumps(self.reply)}
        return 200, {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020},
        }


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """An OpenAI-compatible server on loopback, and no key in the environment."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    given = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: dict[str, Any] | None) -> None:
            status, data = given.answer(body)
            text = data if isinstance(data, str) else json.dumps(data)
            self.send_response(status)
            self.send_header("Content-Type", "text/html" if isinstance(data, str) else "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        given.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield given
        server.shutdown()
        thread.join()


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


class TestOutcome:
    def test_verified(self, procedure: str, replies: Replies, capsys: pytest.CaptureFixture[str]) -> None:
        """A verified run exits with 0 and prints every step, the answer and the cost."""
        replies([RIGHT])
        assert main(["run", procedure, "--input", "x=4"]) == 0
        out = capsys.readouterr().out
        assert "t1 * 2" in out
        assert "VERIFIED: all 2 steps of doubling; t2 = 10" in out
        assert "1 call, 1,000 + 20 tokens" in out

    def test_endpoint(self, procedure: str, endpoint: Endpoint, capsys: pytest.CaptureFixture[str]) -> None:
        """With --base-url alone the endpoint's only model is asked, without a key; nothing is simulated."""
        assert main(["run", procedure, "--input", "x=4", "--base-url", endpoint.url]) == 0
        captured = capsys.readouterr()
        assert [request["model"] for request in endpoint.requests] == ["tiny"]
        assert f"tiny at {endpoint.url}" in captured.out
        assert "SIMULATED" not in captured.out + captured.err

    def test_named_model(self, procedure: str, endpoint: Endpoint) -> None:
        """A model that is named is asked under that name, and the list of models is not needed."""
        endpoint.models = (404, {})
        assert main(["run", procedure, "--input", "x=4", "--base-url", endpoint.url, "--model", "org/m"]) == 0
        assert [request["model"] for request in endpoint.requests] == ["org/m"]

    def test_no_key(self, procedure: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        """A named model without an endpoint and a key exits with 2 and says which variable to set."""
        monkeypatch.delenv("OPENAI_API_KEY", raising=False)
        assert main(["run", procedure, "--input", "x=4", "--model", "openai/gpt-4.1-mini"]) == 2
        assert "OPENAI_API_KEY" in capsys.readouterr().err

    def test_repaired(self, procedure: str, replies: Replies, capsys: pytest.CaptureFixture[str]) -> None:
        """A step that was wrong at first is shown with its tries and its deviation, and the run is verified."""
        replies([WRONG, {"t2": "5 * 2 = 10"}])
        assert main(["run", procedure, "--input", "x=4"]) == 0
        assert "verified on try 2 after wrong_value" in capsys.readouterr().out

    def test_nobody_answers_words_without_a_model(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """The simulated model makes no words up: the command says so, and how to name who can answer."""
        file = tmp_path / "words.txt"
        file.write_text("inputs: x\nt1 = x + 1\n2. Name a colour.\n", encoding="utf-8")
        assert main(["run", str(file), "--input", "x=4"]) == 2
        complaint = capsys.readouterr().err
        assert "step2 is described in words" in complaint
        assert "--model" in complaint

    def test_unverified(
        self,
        tmp_path: Path,
        replies: Replies,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """A run with a step that nothing could check exits with 1 and names the step."""
        monkeypatch.setattr("stepguard.cli.models.choose_backend", a_model)
        file = tmp_path / "words.txt"
        file.write_text("inputs: x\nt1 = x + 1\n2. Name a colour.\n", encoding="utf-8")
        replies([{"t1": "4 + 1 = 5", "step2": {"work": "", "value": "red"}}])
        assert main(["run", str(file), "--input", "x=4"]) == 1
        out = capsys.readouterr().out
        assert "UNVERIFIED" in out
        assert "no check vouches for step2" in out

    def test_abstained(self, procedure: str, replies: Replies, capsys: pytest.CaptureFixture[str]) -> None:
        """A step that is never right makes the run exit with 3; the step and what is kept are named, no answer is."""
        replies([WRONG, {"t2": "5 * 2 = 11"}])
        assert main(["run", procedure, "--input", "x=4", "--retries", "1"]) == 3
        out = capsys.readouterr().out
        assert "ABSTAINED: step t2 (2 of 2) could not be verified (wrong_value" in out
        assert "1 of 2 steps are completed and verified" in out
        assert "NOT VERIFIED in 2 tries: wrong_value" in out
        assert "t2 = " not in out

    def test_exhausted(self, procedure: str, replies: Replies, capsys: pytest.CaptureFixture[str]) -> None:
        """A spent budget makes the run exit with 4."""
        replies([{"t1": "4 + 1 = 5"}])
        assert main(["run", procedure, "--input", "x=4", "--segment", "1", "--max-calls", "1"]) == 4
        assert "EXHAUSTED: stopped before step t2 (2 of 2)" in capsys.readouterr().out

    def test_money(self, procedure: str, replies: Replies, capsys: pytest.CaptureFixture[str]) -> None:
        """With a price the cost is printed, and a limit on it exhausts the run."""
        replies([{"t1": "4 + 1 = 5"}])
        limits = ["--price", "0.40,1.60", "--max-cost", "0.0004"]
        assert main(["run", procedure, "--input", "x=4", "--segment", "1", *limits]) == 4
        out = capsys.readouterr().out
        assert "the budget of 0.0004 cost is spent" in out
        assert "cost 0.000432" in out

    def test_one_step(self, procedure: str, replies: Replies, capsys: pytest.CaptureFixture[str]) -> None:
        """A step that stops as many calls as one step may exhausts the run."""
        replies([WRONG, {"t2": "5 * 2 = 12"}])
        assert main(["run", procedure, "--input", "x=4", "--max-step-calls", "2"]) == 4
        assert "the budget of 2 calls for one step is spent" in capsys.readouterr().out

    def test_units(self, tmp_path: Path, replies: Replies, capsys: pytest.CaptureFixture[str]) -> None:
        """A percentage is shown as one, and the table says the currency, the places and the tolerance."""
        file = tmp_path / "units.txt"
        file.write_text(
            "inputs: x: money(EUR), y: percent(1)\nfee: money(EUR) = x * y\nt1: number(within 0.1) = fee / 3\n"
            "share: percent(1, down) = fee / x\n",
            encoding="utf-8",
        )
        replies([{"fee": "80 * 12.5% = 10", "t1": "10 / 3 = 3.3", "share": "10 / 80 = 12.5%"}])
        assert main(["run", str(file), "--input", "x=80", "--input", "y=12.5%"]) == 0
        out = capsys.readouterr().out
        assert "fee / x, percent, 1 places down" in out
        assert "x * y, EUR, 2 places" in out
        assert "fee / 3, within 0.1" in out
        assert "share = 12.5%" in out

    def test_failed(self, procedure: str, replies: Replies, capsys: pytest.CaptureFixture[str]) -> None:
        """A model that cannot be asked makes the run exit with 5 and say why, without a traceback."""
        replies([BackendRejected("no such model")])
        assert main(["run", procedure, "--input", "x=4"]) == 5
        captured = capsys.readouterr()
        assert "FAILED: stopped at step t1 (1 of 2): BackendRejected: no such model" in captured.out
        assert "Traceback" not in captured.err

    def test_quiet(self, procedure: str, replies: Replies, capsys: pytest.CaptureFixture[str]) -> None:
        """--quiet leaves the outcome and the warning that no real model was asked."""
        replies([RIGHT])
        assert main(["run", procedure, "--input", "x=4", "--quiet"]) == 0
        captured = capsys.readouterr()
        assert captured.out.startswith("VERIFIED")
        assert captured.err.splitlines()[0].startswith("SIMULATED MODEL")
        assert len(captured.err.splitlines()) == 1

    def test_interrupted(self, procedure: str, replies: Replies, capsys: pytest.CaptureFixture[str]) -> None:
        """Ctrl-C exits with 130 and one line that says how far the run had come."""
        replies([{"t1": "4 + 1 = 5"}, KeyboardInterrupt()])
        assert main(["run", procedure, "--input", "x=4", "--segment", "1"]) == 130
        assert capsys.readouterr().err.splitlines()[-1] == "stepguard: interrupted after 1 of 2 steps"

    @pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_what_was_verified_before_a_signal_is_printed(
        self, procedure: str, replies: Replies, capsys: pytest.CaptureFixture[str], number: signal.Signals, code: int
    ) -> None:
        """Ctrl-C and SIGTERM end a run alike: the result so far is on stdout, whole, and the code says which it was."""
        replies([{"t1": "4 + 1 = 5"}, number])
        assert main(["run", procedure, "--input", "x=4", "--segment", "1", "--json"]) == code
        captured = capsys.readouterr()
        result = json.loads(captured.out)
        assert (result["status"], result["values"]["t1"]) == ("failed", 5)
        assert captured.err.splitlines()[-1] == "stepguard: interrupted after 1 of 2 steps"
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

    def test_a_fault_is_not_an_exit_of_1(
        self, procedure: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """An unexpected exception shows its traceback and exits with 70: 1 would read as "unverified"."""

        def fault(*_: object) -> object:
            raise ZeroDivisionError("a fault")

        monkeypatch.setattr("stepguard.guard.Guard.drive", fault)
        assert main(["run", procedure, "--input", "x=4"]) == 70
        assert "ZeroDivisionError: a fault" in capsys.readouterr().err


class TestJson:
    @pytest.mark.parametrize(("answers", "code"), [([RIGHT], 0), ([WRONG, {"t2": "5 * 2 = 11"}], 3)])
    def test_one_document(
        self, procedure: str, replies: Replies, capsys: pytest.CaptureFixture[str], answers: list[object], code: int
    ) -> None:
        """--json prints exactly one JSON document to stdout, whatever the outcome."""
        replies(answers)
        assert main(["run", procedure, "--input", "x=4", "--json"]) == code
        out = capsys.readouterr().out
        assert out.count("\n") == 1
        assert json.loads(out)["completed"] == (2 if code == 0 else 1)

    def test_nothing_before_a_run(self, procedure: str, capsys: pytest.CaptureFixture[str]) -> None:
        """When nothing was run, stdout stays empty."""
        assert main(["run", procedure, "--json"]) == 2
        assert capsys.readouterr().out == ""


class TestUsageErrors:
    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            ([], "needs more inputs: x (integer); add --input x=..."),
            (["--input", "x"], "write it as NAME=VALUE"),
            (["--input", "=4"], "write it as NAME=VALUE"),
            (["--input", "x=4", "--input", "x=5"], "--input x is given twice: '4' and '5'"),
            (["--input", "y=4"], "has no input 'y': it declares x"),
            (["--input", "x=4.5"], "4.5 is not an integer"),
            (["--input", "x=four"], "input 'x' of doubling: 'four'"),
            (
                ["--input", "x=4", "--segment", "0"],
                "the number of steps in a segment is a whole number of 1 or more, or None, not 0",
            ),
            (["--input", "x=4", "--retries", "-1"], "0 or more, not -1"),
            (["--input", "x=4", "--max-calls", "-1"], "0 or more"),
            (["--input", "x=4", "--max-seconds", "nan"], "not nan"),
            (["--input", "x=4", "--max-cost", "1"], "add --price IN,OUT"),
            (["--input", "x=4", "--price", "1"], "write IN,OUT"),
            (["--input", "x=4", "--price", "1,x"], "the price of output tokens"),
            (["--input", "x=4", "--price", "1,2", "--max-cost", "-1"], "budget cost is an amount"),
            (["--input", "x=4", "--max-step-calls", "-1"], "0 or more"),
            (["--input", "x=4", "--gguf", "m.gguf", "--model", "m"], "leave out --model and --base-url"),
            (["--input", "x=4", "--gguf", "no-such.gguf"], "cannot read the model file no-such.gguf"),
            (["--input", "x=4", "--base-url", "localhost:1"], "--base-url is a full address"),
            (["--input", "x=4", "--segment", "many"], "invalid int value: 'many'"),
            (["--inp", "x=4"], "unrecognized arguments"),
        ],
    )
    def test_arguments(
        self, procedure: str, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
    ) -> None:
        """A wrong argument exits with 2, and the message names it and what to do; there is no traceback."""
        assert main(["run", procedure, *arguments]) == 2
        captured = capsys.readouterr()
        assert complaint in captured.err
        assert "Traceback" not in captured.err
        assert captured.out == ""

    def test_missing_file(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A procedure that is not there is named."""
        assert main(["run", "no-such.txt"]) == 2
        assert "cannot read no-such.txt: No such file" in capsys.readouterr().err

    def test_wrong_file(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A procedure that is wrong is named with the line."""
        file = tmp_path / "wrong.txt"
        file.write_text("inputs: x\nt1 = x + y\n", encoding="utf-8")
        assert main(["run", str(file), "--input", "x=1"]) == 2
        assert f"{file}: line 2: step 't1' reads 'y'" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("models", "complaint"),
        [
            ((200, {"object": "list", "data": []}), "lists no model: name one with --model"),
            (
                (200, {"object": "list", "data": [{"id": "a"}, {"id": "b"}]}),
                "has 2 models: choose one with --model (a, b)",
            ),
            ((401, {"error": "sk-SECRET123"}), "did not say which models it has (HTTP status 401)"),
            ((200, "<html>hello</html>"), "did not say which models it has"),
        ],
    )
    def test_which_model(
        self,
        procedure: str,
        endpoint: Endpoint,
        capsys: pytest.CaptureFixture[str],
        models: tuple[int, object],
        complaint: str,
    ) -> None:
        """An endpoint that has not exactly one model to tell asks for --model."""
        endpoint.models = models
        assert main(["run", procedure, "--input", "x=4", "--base-url", endpoint.url]) == 2
        captured = capsys.readouterr()
        assert f"{endpoint.url} {complaint}" in captured.err
        assert "SECRET" not in captured.err

    def test_unreachable_endpoint(self, procedure: str, capsys: pytest.CaptureFixture[str]) -> None:
        """An endpoint that does not say which models it has is named, without the secrets in its address."""
        url = "http://user:sk-SECRET123@127.0.0.1:9/v1?key=sk-SECRET123"
        assert main(["run", procedure, "--input", "x=4", "--base-url", url]) == 2
        captured = capsys.readouterr()
        assert "http://127.0.0.1:9/v1 did not say which models it has" in captured.err
        assert "SECRET" not in captured.err + captured.out

    @pytest.mark.parametrize("model", [[], ["--model", "m"]], ids=["lookup", "named"])
    @pytest.mark.parametrize(
        ("variable", "value"),
        [("ALL_PROXY", "foo://x"), ("SSL_CERT_FILE", "/nowhere/at/all.pem"), ("OPENAI_API_KEY", "sk\u2013SECRET")],
    )
    def test_environment(
        self,
        procedure: str,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        variable: str,
        value: str,
        model: list[str],
    ) -> None:
        """A proxy, a certificate or a key that cannot work ends with 2 and is named, whether a model is or not."""
        if not value.isascii() and sys.getfilesystemencoding() == "ascii":
            pytest.skip("the locale has no such character")
        monkeypatch.setenv(variable, value)
        assert main(["run", procedure, "--input", "x=4", "--base-url", "https://127.0.0.1:9/v1", *model]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert "API key" in captured.err or variable in captured.err
        assert "SECRET" not in captured.err

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            (["--lengths", "1000000000000"], "--lengths takes numbers up to 1,000,000"),
            (["--lengths", "3", "-n", "1000000000000"], "--n takes numbers up to 1,000,000"),
            (["--lengths", "3", "-n", "1", "--out", "FILE"], "--out takes a folder, but"),
            (["--lengths", "3", "-n", "1", "--out", "FILE/below"], "--out takes a folder, but"),
        ],
    )
    def test_bench(
        self, procedure: str, capsys: pytest.CaptureFixture[str], arguments: list[str], complaint: str
    ) -> None:
        """A benchmark that cannot be made or kept is refused before anything is run."""
        assert main(["bench", *(each.replace("FILE", procedure) for each in arguments)]) == 2
        captured = capsys.readouterr()
        assert complaint in captured.err
        assert captured.out == ""

    def test_inputs_before_the_model(self, procedure: str, replies: Replies) -> None:
        """Wrong inputs are found before any model is asked."""
        requests = replies([RIGHT])
        assert main(["run", procedure, "--input", "x=no"]) == 2
        assert not requests


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

    def test_help_is_light(self) -> None:
        """Help and version import nothing heavy."""
        code = (
            "import sys; from stepguard.cli import main\n"
            "for asked in ([], ['--help'], ['run', '--help'], ['bench', '--help'], ['--version']):\n"
            "    assert main(asked) == 0\n"
            "heavy = {'openai', 'instructor', 'sympy', 'rich', 'pydantic', 'structlog', 'yaml'} & set(sys.modules)\n"
            "sys.exit(str(heavy) if heavy else 0)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr

    def test_model_text_is_shown_as_it_is(
        self,
        tmp_path: Path,
        replies: Replies,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Markup and control characters in a reply are printed as text and never reach the terminal."""
        monkeypatch.setattr("stepguard.cli.models.choose_backend", a_model)
        file = tmp_path / "words.txt"
        file.write_text("1. Name a colour.\n", encoding="utf-8")
        replies([{"step1": {"work": "", "value": "[bold]red[/bold] :smile: \x1b[2J"}}])
        assert main(["run", str(file)]) == 1
        out = capsys.readouterr().out
        assert "[bold]red[/bold] :smile: \\x1b[2J" in out
        assert "\x1b" not in out

    @pytest.mark.parametrize(
        "environment",
        [
            {"PYTHONIOENCODING": "ascii"},
            {"PYTHONIOENCODING": "", "PYTHONUTF8": "0", "LC_ALL": "C"},
        ],
        ids=["ascii", "C locale"],
    )
    def test_encodings(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str]) -> None:
        """Characters that a stream cannot show do not end a run, nor an error message."""
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        file = tmp_path / "words.txt"
        file.write_text("name: größe → ✓\ninputs: x\nt1 = by code x + 1\n", encoding="utf-8")
        done = in_a_process("run", str(file), "--input", "x=4")
        assert done.returncode == 0, done.stderr
        assert b"VERIFIED" in done.stdout
        done = in_a_process("run", str(file), "--input", "✓=4")
        assert done.returncode == 2, done.stderr
        assert b"has no input" in done.stderr
        assert b"Traceback" not in done.stderr

    @pytest.mark.parametrize(
        ("arguments", "code", "printed", "where"),
        [
            (["run", INVOICE, *INVOICE_INPUTS], 0, "VERIFIED: all 6 steps", "pipe"),
            (["run", INVOICE, *INVOICE_INPUTS, "--max-calls", "0"], 4, "EXHAUSTED: stopped before step", "file"),
            (["run", INVOICE], 2, "", "pipe"),
            (["bench", "--lengths", "5", "-n", "2", "--out", "NEW"], 0, "95 % Wilson intervals", "file"),
        ],
        ids=["verified", "exhausted", "misused", "bench"],
    )
    def test_cp1252_without_a_terminal(
        self, tmp_path: Path, arguments: list[str], code: int, printed: str, where: str
    ) -> None:
        """Under cp1252 and in CI a command exits as elsewhere and writes plain lines, to a pipe and to a file."""
        into = tmp_path if where == "file" else None
        arguments = [str(tmp_path / "new") if each == "NEW" else each for each in arguments]
        done = in_a_process(*arguments, into=into, PYTHONIOENCODING="cp1252", PYTHONUTF8="0", CI="true")
        assert done.returncode == code, done.stderr
        assert printed in done.stdout.decode("cp1252")
        assert not {b"\r", b"\x1b"} & {bytes([byte]) for byte in done.stdout + done.stderr}

    def test_plain_progress(self) -> None:
        """Where stderr is no terminal, progress is a few plain lines without carriage returns."""
        done = in_a_process("run", INVOICE, *INVOICE_INPUTS, "--seed", "1", CI="")
        lines = done.stderr.decode().splitlines()
        assert b"\r" not in done.stderr
        assert b"\x1b" not in done.stderr
        assert lines[1] == "invoice on SIMULATED MODEL: 6 steps"
        assert len(lines) < 14

    @pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
    @pytest.mark.parametrize("ci", ["", "true"])
    def test_progress_bar(self, ci: str) -> None:
        """A bar is drawn only where stderr is a terminal that somebody watches; stdout has no part in it."""
        import pty

        control, terminal = pty.openpty()
        environment = {**os.environ, "CI": ci, "TERM": "xterm"}
        done = subprocess.run(
            [sys.executable, "-m", "stepguard.cli", "run", INVOICE, *INVOICE_INPUTS, "--json"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=terminal,
            timeout=60,
            check=False,
        )
        os.set_blocking(control, False)
        shown = os.read(control, 100_000)
        os.close(terminal)
        os.close(control)
        assert (b"\x1b[" in shown) is (ci == "")
        assert json.loads(done.stdout)["procedure"] == "invoice"

    @pytest.mark.skipif(sys.platform == "win32", reason="pipes")
    @pytest.mark.parametrize("how", ["--json", "--quiet"])
    def test_reader_gone(self, how: str) -> None:
        """When nobody reads stdout, the command ends quietly, and not with a code that means an outcome."""
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [sys.executable, "-m", "stepguard.cli", "run", INVOICE, *INVOICE_INPUTS, how],
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
        os.close(writer)
        assert done.returncode == 141
        assert b"Broken" not in done.stderr


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
    @pytest.mark.parametrize("how", ["2>/dev/full", "2>&-", "2> >(true)"])
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
