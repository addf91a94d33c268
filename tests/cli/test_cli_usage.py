"""The command line: what is misused is refused with exit code 2 and what to do."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import cli_harness
import pytest
from cli_harness import RIGHT, Endpoint, Replies
from tables import all_rows

from stepguard import Profile
from stepguard.cli import main

procedure = cli_harness.procedure
replies = cli_harness.replies
endpoint = cli_harness.endpoint


FILES = {
    "prose.txt": "Late deliveries\n1. Look up the order.\n2. If it is late, refund 10% of the price.\n",
    "steps.txt": "name: doubling\ninputs: x: integer\nt1 = x + 1\nt2 = t1 * 2\n",
    "wrong.txt": "inputs: x\nt1 = x + y\n",
    "rows.csv": "id,x\nr0,0\nr1,1\n",
    "cases.jsonl": '{"inputs": {"x": 4}, "expected": 10}\n{"inputs": {"x": 5}, "expected": 12}\n',
    **{"list.json": "[1]", "twice.json": '{"x": 1, "x": 2}', "null.json": '{"x": null}', "broken.json": "{"},
    **{"no-profile.json": "{}", "unseen.json": json.dumps(Profile().to_dict())},
    "desk.policy": "tool pay(to: text) changes nothing\nallow pay",
    "judging.policy": "tool pay(note: text) changes nothing\n"
    'fact broken[note: text]: boolean judged "Does the note say that it broke?"\n'
    "before pay(note):\n  require broken[note]\n",
}
REFUSED = {
    "run steps.txt": [
        *(("", "needs more inputs: x (integer); add --input x=..."), ("--input x", "write it as NAME=VALUE")),
        *(("--input =4", "write it as NAME=VALUE"), ("--input y=4", "has no input 'y': it declares x")),
        ("--input x=4 --input x=5", "--input x is given twice: '4' and '5'"),
        ("--inp x=4", "unrecognized arguments"),
        *(("--input x=4.5", "4.5 is not an integer"), ("--input x=four", "input 'x' of doubling: 'four'")),
        *(("--input x=@nowhere.txt", "cannot be read"), ("--inputs nowhere.json", "cannot be read")),
        *(("--inputs list.json", "a JSON object is needed"), ("--inputs twice.json", "stands in it twice")),
        *(("--inputs null.json", "'x' is null; leave out"), ("--inputs broken.json", "not valid JSON")),
        *(("--out out.jsonl", "goes with --inputs ROWS"), ("--resume", "goes with --inputs ROWS")),
        *(("--inputs rows.csv", "--out"), ("--inputs rows.csv --out results.xlsx", ".jsonl or .csv")),
        *(("--inputs none.csv --out out.csv", "cannot be read"), ("--procedure x.txt", "unrecognized arguments")),
        ("--inputs rows.csv --out out.csv --concurrency 0", "concurrency"),
        ("--inputs rows.csv --out out.csv --learned p.json", "--learned"),
    ],
    "run steps.txt --input x=4": [
        ("--segment 0", "the number of steps in a segment is a whole number of 1 or more, or None, not 0"),
        *(("--segment many", "invalid int value: 'many'"), ("--retries -1", "0 or more, not -1")),
        *(("--max-calls -1", "0 or more"), ("--max-step-calls -1", "0 or more"), ("--max-seconds nan", "not nan")),
        *(("--max-cost 1", "add --price IN,OUT"), ("--price 1", "write IN,OUT")),
        *(("--price 1,x", "the price of output tokens"), ("--price 1,2 --max-cost -1", "budget cost is an amount")),
        ("--gguf m.gguf --model m", "leave out --model and --base-url"),
        ("--gguf no-such.gguf", "cannot read the model file no-such.gguf"),
        ("--base-url localhost:1", "--base-url is a full address"),
        *(("--learned none/m.json", "--learned"), ("--learned .", "--learned")),
        ("--learned no-profile.json", "profile"),
    ],
    "run": [
        ("no-such.txt", "cannot read no-such.txt: No such file"),
        ("wrong.txt", "wrong.txt: line 2: step 't1' reads 'y'"),
        ("prose.txt", "`stepguard import prose.txt` reads those"),
    ],
    "bench": [
        *(("--lengths five", "--lengths"), ("--lengths 0", "--lengths"), ("--task geometry", "geometry")),
        *(("--lengths 5,5", "--lengths 5,5: a length stands twice"), ("-n 1,2 --lengths 5", "-n")),
        *(("--arms guard,magic", "unknown arm 'magic'"), ("--arms 'guard,guard(segment=0)'", "segment")),
        *(("--arms 'guard(speed=2)'", "it takes segment"), ("--arms guard,guard", "--arms")),
        *(("--arms program", "needs a model"), ("--arms 'guard)('", "names no arm")),
        ("--lengths 1000000000000", "--lengths takes numbers up to 1,000,000"),
        ("--lengths 3 -n 1000000000000", "-n takes numbers up to 1,000,000"),
        *((f"--lengths 3 -n 1 --out {out}", "--out takes a folder, but") for out in ("steps.txt", "steps.txt/below")),
        ("--profile study --model m --base-url http://127.0.0.1:9/v1", "--profile is for the simulated model"),
        ("--profile typical", "--profile is one of qwen2.5-coder-1.5b, study, not 'typical'"),
        *(("--max-cost 1", "add --price"), ("--price 1", "write IN,OUT")),
        ("--price 1,two", "the price of output tokens"),
        ("--price 1,2 --max-cost much", "the limit on the cost is an amount"),
        ("--price 1,2 --max-cost 1 --replay replies.sqlite", "--replay pays for nothing"),
        ("--lengths 3 -n 1 --json --learned no-profile.json", "profile"),
        ("--lengths 3 -n 1 --json --learned none.json", "none.json"),
        ("--cases cases.jsonl", "--procedure is missing"),
        ("--lengths 3 -n 1 --json --learned unseen.json", "has seen no calls"),
        ("--procedure steps.txt", "--cases is missing"),
    ],
    "bench --procedure steps.txt --cases cases.jsonl": [
        ("--lengths 5", "--lengths says what to make up, but --procedure brings its own"),
        *(("--task arithmetic", "--task says what to make up"), ("-n 1,2", "-n takes how many of the 2 cases")),
        ("-n 0", "-n takes whole numbers above 0"),
    ],
    "audit": [
        *(("", "required"), ("missing.txt -", "missing.txt"), ("steps.txt missing.txt --input x=1", "missing.txt")),
        *(("steps.txt - --input y=1", "'y'"), ("steps.txt - --input x=1 --segment 3", "--segment")),
    ],
    "show steps.txt": [
        *(("--run nowhere.json", "cannot read nowhere.json"), ("--run steps.txt", "is no JSON")),
        ("--width 10", "width"),
        ("--html out.html --ascii", "leave them out beside --html"),
    ],
    "mcp-gate --policy desk.policy": [
        *(("", "name one server"), ("--url http://127.0.0.1:1/mcp -- cat", "name one server")),
        ("-- no-such-command", "cannot start 'no-such-command'"),
        ("--ask manager -- cat", "asks nobody for 'manager'"),
        ("--model m -- cat", "declares no fact as judged"),
    ],
    "mcp-gate --policy judging.policy": [("--model m --observe -- cat", "nothing is judged")],
}  # fmt: skip


@all_rows("command, complaint", [(f"{name} {given}", said) for name, rows in REFUSED.items() for given, said in rows])
def test_what_is_misused_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, complaint: str
) -> None:
    """It exits with 2, and the message names it and what to do; nothing is run, printed or written, nor a traceback."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert main(shlex.split(command)) == 2
    captured = capsys.readouterr()
    assert complaint in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert {each.name for each in tmp_path.iterdir()} == set(FILES)


class TestUsageErrors:
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

    def test_inputs_before_the_model(self, procedure: str, replies: Replies) -> None:
        """Wrong inputs are found before any model is asked."""
        requests = replies([RIGHT])
        assert main(["run", procedure, "--input", "x=no"]) == 2
        assert not requests
