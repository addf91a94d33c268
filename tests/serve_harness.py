"""What the tests of the server share: the application on a real socket, and clients that nobody here wrote."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import openai
import pytest
from conftest import ChatServer, Reply

from stepguard import Procedure
from stepguard.backends.pacing import Pace
from stepguard.integrations.chat.trust import Trust

pytest.importorskip("prometheus_client")
pytest.importorskip("uvicorn")

import uvicorn.server

from stepguard.cli.listening import bounded_server
from stepguard.serve import Limits, create_app
from stepguard.serve.connections import Connections

KEY = "sk-SECRET-caller-1"
PROCEDURE = Procedure.parse("name: sums\ninputs: x, y\nt2 = x + y\nt1 = t2 * 3")
VALUES = '{"x": 12, "y": 7}'
GOOD = '{"t2": "12 + 7 = 19", "t1": "19 * 3 = 57"}'
WRONG = '{"t2": "12 + 7 = 18", "t1": "18 * 3 = 54"}'
MODEL = "sums@some-model"
TRUST = Trust(procedures=("system", "user"), inputs=("user",))


@dataclass(frozen=True)
class Answer:
    """One response: its status, its headers with names in lower case, its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON, which a server may not fill with NaN."""

        def refuse(name: str) -> object:
            raise ValueError(name)

        return json.loads(self.body, parse_constant=refuse)

    @property
    def error(self) -> dict[str, Any]:
        """The error, which must be of OpenAI's shape."""
        error = self.json["error"]
        assert {"message", "type", "param", "code"} <= error.keys()
        assert isinstance(error["message"], str)
        assert error["message"]
        return dict(error)


class Served:
    """A running server."""

    def __init__(self, app: Any, port: int, server: Any) -> None:
        self.app = app
        self.service = app.state.stepguard
        self.port = port
        self.server = server
        self.url = f"http://127.0.0.1:{port}/v1"

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        *,
        address: str = "127.0.0.1",
    ) -> Answer:
        """Send one request on a connection of its own; `body` as JSON, or as it is where it is bytes."""
        sent = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        given = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}", **(headers or {})}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30, source_address=(address, 0))
        try:
            connection.request(method, path, sent, given)
            response = connection.getresponse()
            return Answer(
                response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
            )
        finally:
            connection.close()

    def chat(self, content: object = VALUES, *, model: str = MODEL, **more: Any) -> Answer:
        """One chat completion."""
        body = {"model": model, "messages": [{"role": "user", "content": content}], **more}
        return self.request("POST", "/v1/chat/completions", body)

    def client(self, **options: Any) -> openai.OpenAI:
        """The SDK, as a user has it: only the address is another."""
        return openai.OpenAI(**{"base_url": self.url, "api_key": KEY, "max_retries": 0, **options})

    def metrics(self) -> dict[str, float]:
        """The samples by name and labels."""
        lines = self.request("GET", "/metrics").body.decode().splitlines()
        samples = (line.rpartition(" ") for line in lines if not line.startswith("#"))
        return {name: float(value) for name, _, value in samples}

    def settle(self, name: str, value: float) -> None:
        """Wait until a metric has a value."""
        deadline = time.monotonic() + 20
        while self.metrics().get(name, 0) != value:
            assert time.monotonic() < deadline, f"{name} is {self.metrics().get(name, 0)}, not {value}"
            time.sleep(0.02)


class _ManyLooks(ModuleType):
    """The module `asyncio` as uvicorn uses it to look, every 0.1 s, whether it is to stop: far more often."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / 20)


@contextmanager
def serving(upstream: str, **options: Any) -> Iterator[Served]:
    """The application behind the command's server, in a thread; by default with ``sums``, and users are trusted."""
    app = create_app(upstream, **{"procedures": {"sums": PROCEDURE}, "trust": TRUST, **options})
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(256)
        uvicorn.server.asyncio = _ManyLooks("asyncio")  # type: ignore[attr-defined]
        server = bounded_server(app, Connections(options.get("limits") or Limits()), last_seconds=20)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])), name="serve")
        thread.start()
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.005)
        try:
            yield Served(app, listening.getsockname()[1], server)
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive()


def fixtures_of_a_server(*, reply: Reply | Sequence[Reply] = (), **options: Any) -> tuple[Any, Any, Any, Any]:
    """The fixtures `endpoint`, `chat_server`, `running` and `served` of a module: one server for all of its tests.

    `endpoint` is the scripted upstream and `running` the server in front of it, set up by `options`; `chat_server` and
    `served` are the same for one test, the upstream as new, with `reply` as its script.
    """

    @pytest.fixture(scope="module")
    def endpoint() -> Iterator[ChatServer]:
        server = ChatServer()
        yield server
        server.close()

    @pytest.fixture
    def chat_server(endpoint: ChatServer, monkeypatch: pytest.MonkeyPatch) -> ChatServer:
        monkeypatch.setattr(Pace, "wait", lambda self, now: 0.0)  # which remembers the rate limits of other tests
        endpoint.play(reply)
        endpoint.requests.clear()
        return endpoint

    @pytest.fixture(scope="module")
    def running(endpoint: ChatServer) -> Iterator[Served]:
        with serving(endpoint.url, **options) as served:
            yield served

    @pytest.fixture
    def served(running: Served, chat_server: ChatServer) -> Served:
        return running

    return endpoint, chat_server, running, served


def events_of(body: bytes) -> list[tuple[str | None, str]]:
    """The server-sent events of a body: the name and the data of each, comments left out."""
    found: list[tuple[str | None, str]] = []
    for block in body.decode().split("\n\n"):
        lines = block.splitlines()
        data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
        names = [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]
        if data:
            found.append((names[0] if names else None, "\n".join(data)))
    return found


def chunk(content: str | None = None, finish: str | None = None) -> dict[str, Any]:
    """A chunk of a streamed chat completion."""
    delta = {} if content is None else {"content": content}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
