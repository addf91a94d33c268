"""What the tests of the command share: a procedure in a file, scripted replies, an endpoint, a process."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import stepguard.testing
from stepguard.backends.base import Completion, Request
from stepguard.core.usage import Usage

RIGHT = {"t1": "x + 1 = 4 + 1 = 5", "t2": "5 * 2 = 10"}
Replies = Callable[[Sequence[object]], list[Request]]


@pytest.fixture
def procedure(tmp_path: Path) -> str:
    """A file with a procedure of two steps over one input."""
    file = tmp_path / "steps.txt"
    file.write_text("name: doubling\ninputs: x: integer\nt1 = x + 1\nt2 = t1 * 2\n", encoding="utf-8")
    return str(file)


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A file with a step in words, put to whoever the fixture `replies` lets answer, as if `--model` named it."""
    monkeypatch.setattr(
        "stepguard.cli.models.choose_backend", lambda *_: (stepguard.testing.SimulatedModel(), "a model")
    )
    file = tmp_path / "words.txt"
    file.write_text('inputs: x\nt1 = x + 1\nstep2 = "Name a colour."\n', encoding="utf-8")
    return str(file)


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
