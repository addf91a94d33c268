"""How the server ends: as a process with a signal, with requests in flight."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from conftest import ChatServer, Reply, completion_body
from serve_harness import GOOD, KEY, MODEL, VALUES
from tables import all_rows

from stepguard.cli import main

pytestmark = pytest.mark.once

MESSAGES: Any = [{"role": "user", "content": VALUES}]


@contextmanager
def command(upstream: str, folder: Path, *options: str, environment: dict[str, str] | None = None) -> Iterator[Any]:
    """``stepguard serve`` on a free port: the process and its address."""
    (folder / "sums.txt").write_text("inputs: x, y\nt2 = x + y\nt1 = t2 * 3\n", encoding="utf-8")
    arguments = ["--upstream", upstream, "--procedures", str(folder), "--port", "0", *options]
    process = subprocess.Popen(
        [sys.executable, "-m", "stepguard.cli", "serve", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=environment,
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().split()[2]
    finally:
        process.kill()
        process.communicate(timeout=30)


def healthy(url: str) -> bool:
    """Whether the server takes requests in."""
    try:
        with urllib.request.urlopen(url.replace("/v1", "/health"), timeout=30):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return False
    except OSError:
        return False


def asked(url: str, found: list[Any], **more: Any) -> threading.Thread:
    """Ask in a thread; what comes of it is put into `found`."""

    def ask() -> None:
        with openai.OpenAI(base_url=url, api_key=KEY, max_retries=0, timeout=60) as client:
            try:
                answer: Any = client.chat.completions.create(
                    model=MODEL, messages=MESSAGES, extra_body={"inputs": {"x": 12, "y": 7}}, **more
                )
                found.append(list(answer) if more else answer)
            except openai.APIError as error:
                found.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of this kind end a process at once")
@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT], ids=["term", "int"])
def test_a_signal_lets_requests_end(chat_server: ChatServer, tmp_path: Path, which: signal.Signals) -> None:
    """A signal ends the process with code 0 once the run in flight has been answered; it is new to nobody else."""
    arrived, ended = threading.Event(), threading.Event()

    def script(_: object) -> Reply:
        arrived.set()
        assert ended.wait(30)
        return Reply(completion_body(GOOD))

    chat_server.play(script)
    found: list[Any] = []
    with command(chat_server.url, tmp_path) as (process, url):
        thread = asked(url, found)
        assert arrived.wait(30)
        process.send_signal(which)
        while healthy(url):  # until it has heard the signal
            pass
        ended.set()
        thread.join(30)
        _, log = process.communicate(timeout=30)
    assert found[0].choices[0].message.content.endswith("answer: 57")
    assert process.returncode == 0
    assert "Traceback" not in log
    assert KEY not in log


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of this kind end a process at once")
@pytest.mark.parametrize("stream", [False, True])
def test_what_does_not_end_in_time_is_told(chat_server: ChatServer, tmp_path: Path, stream: bool) -> None:
    """After the seconds of grace a run is cancelled, and its caller gets an error with what it had cost."""
    arrived = threading.Event()

    def script(_: object) -> Reply:
        arrived.set()
        return Reply(completion_body(GOOD), drip=0.05)

    chat_server.play(script)
    found: list[Any] = []
    with command(chat_server.url, tmp_path, "--grace-seconds", "0.2") as (process, url):
        thread = asked(url, found, **({"stream": True} if stream else {}))
        assert arrived.wait(30)
        process.send_signal(signal.SIGTERM)
        thread.join(30)
        _, log = process.communicate(timeout=30)
    assert found[0].status_code == 503
    assert found[0].body["code"] == "server_stopping"
    assert found[0].body["stepguard"]["usage"]["calls"] == 1
    assert process.returncode == 0
    assert "Traceback" not in log


@all_rows(
    "option, value, told",
    [
        *(
            ("--procedures", "/nowhere/at/all", "no folder"),
            ("--port", "99999", "99999"),
            ("--segment", "0", "segment"),
        ),
        *(("--max-seconds", "0", "seconds"), ("--upstream", "localhost", "https://")),
    ],
)
def test_a_wrong_option_serves_nothing(option: str, value: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot work ends the command with code 2 and says why."""
    assert main(["serve", "--upstream", "http://127.0.0.1:9/v1", option, value]) == 2
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(("variable", "value"), [("ALL_PROXY", "foo://x"), ("SSL_CERT_FILE", "/nowhere/at/all.pem")])
def test_an_environment_that_cannot_work_serves_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, value: str
) -> None:
    """A proxy or a certificate that cannot work is named before the command says that it serves."""
    monkeypatch.setenv(variable, value)
    assert main(["serve", "--upstream", "https://127.0.0.1:9/v1", "--port", "0"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert variable in printed.err
