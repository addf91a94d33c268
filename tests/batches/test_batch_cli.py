"""`stepguard run FILE --inputs ROWS --out RESULTS`: the command over many rows, killed and gone on with."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from batch_harness import CALLS, TEXT, answer_to, results, rows

from stepguard.backends import Message, Request
from stepguard.backends.limiter import SHARED_LIMITERS
from stepguard.cli import main


@pytest.fixture
def sums(tmp_path: Path) -> str:
    """A file with the procedure, and one with six rows."""
    (tmp_path / "sums.txt").write_text(TEXT, encoding="utf-8")
    (tmp_path / "rows.csv").write_text("id,x\n" + "".join(f"r{x},{x}\n" for x in range(6)), encoding="utf-8")
    return str(tmp_path / "sums.txt")


def run(sums: str, *more: str, inputs: str = "rows.csv", out: str = "out.jsonl") -> int:
    folder = Path(sums).parent
    return main(["run", sums, "--inputs", str(folder / inputs), "--out", str(folder / out), "--key", "id", *more])


def test_rows_from_a_file(sums: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every row stands in the results, the summary and the exit code tell how they ended, and resume adds nothing."""
    assert run(sums) == 0
    out = Path(sums).with_name("out.jsonl")
    assert [each["answer"] for each in results(out)] == [3 * x + 3 for x in range(6)]
    said = capsys.readouterr()
    assert "6 of 6 rows: 6 verified" in said.out
    assert "6 of 6 rows" in said.err
    assert run(sums) == 2
    assert "--resume" in capsys.readouterr().err
    assert run(sums, "--resume", "--json", "--quiet") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["taken_over"], facts["spent"]["calls"]) == (6, 6, 0)


def test_bad_rows_show_in_the_exit_code(sums: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A row that cannot be run costs no other, and the command says by its exit code that there was one."""
    rows_file = Path(sums).with_name("rows.jsonl")
    rows_file.write_text('{"id": 1, "x": 1}\n{"id": 2, "y": 1}\n{"id": 3, "x"', encoding="utf-8")
    assert run(sums, inputs="rows.jsonl") == 2
    assert "3 rows: 2 invalid, 1 verified" in capsys.readouterr().out
    assert [each["key"] for each in results(Path(sums).with_name("out.jsonl"))] == [1, 2, None]


def test_inputs_that_are_the_same_for_all_rows(sums: str, capsys: pytest.CaptureFixture[str]) -> None:
    """`--input` goes to every row; a row that gives it as well is refused; columns can be left out by name."""
    folder = Path(sums).parent
    (folder / "keys.csv").write_text("id,colour\na,red\nb,blue\n", encoding="utf-8")
    assert run(sums, "--input", "x=5", "--ignore", "colour", inputs="keys.csv") == 0
    assert [each["answer"] for each in results(folder / "out.jsonl")] == [18, 18]
    assert run(sums, "--input", "x=5", out="twice.jsonl") == 2
    assert "keep one" in results(folder / "twice.jsonl")[0]["error"]["message"]


def test_declared_limits_hold_for_the_command(sums: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a minute may see at an endpoint is declared for all that the command asks there, and for nothing behind."""
    declared: list[dict[str, int]] = []
    declare = SHARED_LIMITERS.declare

    def noted(**limits: int) -> None:
        declared.append(limits)
        declare(**limits)

    monkeypatch.setattr(SHARED_LIMITERS, "declare", noted)
    assert run(sums, "--requests-per-minute", "30", "--tokens-per-minute", "5000") == 0
    assert declared == [{"requests_per_minute": 30, "tokens_per_minute": 5000}, {}]
    assert SHARED_LIMITERS.of("anywhere", "key").estimate(Request(messages=(Message("user", "hello"),))) == 0
    assert run(sums, "--requests-per-minute", "0", out="none.jsonl") == 2


# Kills


class Server:
    """Answers as `batch_harness.answer_to` does, and counts what it was asked."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.reached = threading.Event()
        self.until = 0
        self.url = ""

    def answer(self, prompt: str) -> dict[str, object]:
        self.asked[prompt] += 1
        if self.asked.total() >= self.until:
            self.reached.set()
        time.sleep(0.005)
        content = json.dumps(answer_to(prompt))
        return {
            "id": "1",
            "object": "chat.completion",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }


@pytest.fixture
def server() -> Iterator[Server]:
    """A server on loopback."""
    given = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = json.dumps(given.answer(body["messages"][-1]["content"])).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:
                """The other side was killed."""

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        listening.daemon_threads = True
        given.url = f"http://127.0.0.1:{listening.server_address[1]}/v1"
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield given
        listening.shutdown()
        thread.join()


@pytest.mark.slow
def test_twenty_kills(tmp_path: Path, server: Server) -> None:
    """Killed at twenty random points a batch ends with every row once, and only what was in flight was paid twice."""
    count, concurrency, kills = 200, 8, 20
    chance = random.Random(20)
    (tmp_path / "sums.txt").write_text(TEXT, encoding="utf-8")
    lines = (json.dumps(row) + "\n" for row in rows(count))
    (tmp_path / "rows.jsonl").write_text("".join(lines), encoding="utf-8")
    command = [sys.executable, "-m", "stepguard.cli", "run", "sums.txt", "--inputs", "rows.jsonl", "--key", "id"]
    command += ["--out", "out.jsonl", "--resume", "--segment", "1", "--concurrency", str(concurrency), "--quiet"]
    command += ["--model", "m", "--base-url", server.url]
    for _ in range(kills):
        server.reached.clear()
        server.until = server.asked.total() + chance.randint(1, CALLS * count // kills)
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as child:
            assert server.reached.wait(120)
            time.sleep(chance.random() / 50)
            child.kill()
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"^{count} of {count} rows: {count} verified", done.stdout)
    found = results(tmp_path / "out.jsonl")
    assert [(each["key"], each["answer"]) for each in found] == [(f"r{x}", 3000 * x + 3) for x in range(count)]
    assert len(server.asked) == CALLS * count
    assert server.asked.total() - CALLS * count <= kills * concurrency
