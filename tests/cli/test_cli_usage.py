"""The command line: what is misused is refused with exit code 2 and what to do."""

from __future__ import annotations

import sys
from pathlib import Path

import cli_harness
import pytest
from cli_harness import RIGHT, Endpoint, Replies

from stepguard.cli import main

procedure = cli_harness.procedure
replies = cli_harness.replies
endpoint = cli_harness.endpoint


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
