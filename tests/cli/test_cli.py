"""The command line: exit codes and what is printed."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import cli_harness
import pytest
from cli_harness import RIGHT, Endpoint, Replies

from stepguard.cli import main
from stepguard.errors import BackendRejected

procedure = cli_harness.procedure
replies = cli_harness.replies
endpoint = cli_harness.endpoint
words = cli_harness.words

WRONG = {"t1": "4 + 1 = 5", "t2": "5 * 2 = 11"}


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
        file.write_text('inputs: x\nt1 = x + 1\nstep2 = "Name a colour."\n', encoding="utf-8")
        assert main(["run", str(file), "--input", "x=4"]) == 2
        complaint = capsys.readouterr().err
        assert "step2 is described in words" in complaint
        assert "--model" in complaint

    def test_unverified(self, words: str, replies: Replies, capsys: pytest.CaptureFixture[str]) -> None:
        """A run with a step that nothing could check exits with 1 and names the step."""
        replies([{"t1": "4 + 1 = 5", "step2": {"work": "", "value": "red"}}])
        assert main(["run", words, "--input", "x=4"]) == 1
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
