"""What the tests of the command share: a procedure in a file, scripted replies, an endpoint, a process."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from conftest import ChatServer, Received, Reply, completion_body

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

    def __init__(self, server: ChatServer) -> None:
        self.url = server.url
        self.models: tuple[int, object] = (200, {"object": "list", "data": [{"id": "tiny", "object": "model"}]})
        self.requests: list[dict[str, Any]] = []
        server.play(self.answer)

    def answer(self, received: Received) -> Reply:
        """The models, or a chat."""
        if received.path.endswith("/models"):
            status, data = self.models
            return Reply(data, status=status)
        self.requests.append(received.body)
        return Reply(completion_body(json.dumps(RIGHT)))


@pytest.fixture
def endpoint(chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """An OpenAI-compatible server on loopback, and no key in the environment."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return Endpoint(chat_server)
