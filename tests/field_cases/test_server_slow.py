"""A server that holds against the slow and the many: cases from the field, and generated ones of their kinds."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import ChatServer, Reply, completion_body
from serve_harness import Answer, Served, fixtures_of_a_server, serving

from stepguard.serve import Limits

OWN = "own-key-of-the-operator-1"
MESSAGES: Any = [{"role": "user", "content": "Hi"}]
PLAIN = {"model": "m", "messages": MESSAGES}
HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"


endpoint, chat_server, running, served = fixtures_of_a_server(reply=Reply(completion_body("hello")))


def connect(served: Served, sent: bytes, address: str = "127.0.0.2") -> socket.socket:
    """A connection from an address on which something was said."""
    made = socket.create_connection(("127.0.0.1", served.port), timeout=30, source_address=(address, 0))
    made.sendall(sent)
    return made


@contextlib.contextmanager
def attacked(upstream: str, sent: bytes, count: int, **limits: Any) -> Iterator[tuple[Served, list[socket.socket]]]:
    """A server beside so many connections of one address that say this and no more."""
    with serving(upstream, limits=Limits(**limits)) as served, contextlib.ExitStack() as stack:
        yield served, [stack.enter_context(connect(served, sent)) for _ in range(count)]


SLOW = {
    "nothing": b"",
    "half-a-head": HEAD,
    "half-a-body": HEAD + b"Content-Length: 1000\r\n\r\n{",
    "a-body-in-parts": HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("sent", SLOW.values(), ids=SLOW)
def test_s04_the_slow_hold_nobody_up(chat_server: ChatServer, sent: bytes) -> None:
    """S04: a hundred that send a byte and wait take no slot of others, which are answered meanwhile."""
    with attacked(chat_server.url, sent, 100, concurrent=2, waiting=2) as (served, _):
        for _ in range(3):
            assert served.chat(model="m").status == 200
        assert served.metrics()["stepguard_waiting"] == 0


@pytest.mark.parametrize("sent", SLOW.values(), ids=SLOW)
def test_s04_the_slow_are_closed(chat_server: ChatServer, sent: bytes) -> None:
    """S04: who does not send what was begun is closed or told so, and leaves nothing behind."""
    with attacked(chat_server.url, sent, 3, head_seconds=0.2, silence_seconds=0.2) as (served, made):
        for each in made:
            answer = each.recv(100)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 408 ")
        assert served.chat(model="m").status == 200


def test_s04_a_head_that_trickles_is_closed(chat_server: ChatServer) -> None:
    """S04: bytes that come one after the other, and make no request, win no time."""
    with attacked(chat_server.url, HEAD, 1, head_seconds=0.3) as (_, [made]):
        made.settimeout(0.02)
        for _ in range(1500):
            try:
                made.sendall(b"X")
                if made.recv(10) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        else:
            pytest.fail("nobody closed it")


def test_s04_a_caller_that_does_not_read_is_left(chat_server: ChatServer) -> None:
    """S04: a response that nobody reads holds its slot for a while and no longer."""
    chat_server.play(Reply({"choices": [], "filling": "x" * 30_000_000}))
    body = json.dumps(PLAIN).encode()
    sent = HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    with attacked(chat_server.url, sent, 1, send_seconds=0.2, concurrent=1) as (served, _):
        served.settle('stepguard_requests_total{endpoint="chat",handling="passed",outcome="gone"}', 1)
        assert served.metrics()["stepguard_in_flight"] == 0


def test_s04_the_oldest_idle_one_makes_room(chat_server: ChatServer) -> None:
    """S04: where there are too many connections the one that waited longest goes, of the client with the most first."""
    limits = Limits(connections=8, client_share=0.5)
    with serving(chat_server.url, limits=limits) as served, contextlib.ExitStack() as stack:
        other = stack.enter_context(connect(served, b"", "127.0.0.3"))
        made = [stack.enter_context(connect(served, b"")) for _ in range(20)]
        assert all(each.recv(1000).startswith(b"HTTP/1.1 429 ") for each in made[:16])
        for address in ("127.0.0.2", "127.0.0.4", "127.0.0.5"):
            assert served.request("POST", "/v1/chat/completions", PLAIN, address=address).status == 200
        other.settimeout(0.2)
        with pytest.raises(TimeoutError):
            other.recv(10)


def test_s04_connections_that_work_are_kept(chat_server: ChatServer) -> None:
    """S04: a connection whose request is worked on is not closed for another, which is refused instead."""
    arrived, ended = threading.Event(), threading.Event()

    def script(_: object) -> Reply:
        arrived.set()
        assert ended.wait(30)
        return Reply(completion_body("hello"))

    chat_server.play(script)
    with serving(chat_server.url, limits=Limits(connections=2, client_share=0.5)) as served:
        first: list[Answer] = []
        thread = threading.Thread(target=lambda: first.append(served.chat(model="m")))
        thread.start()
        assert arrived.wait(30)
        with connect(served, b"", "127.0.0.1") as refused:
            assert refused.recv(100).startswith(b"HTTP/1.1 429 ")
        ended.set()
        thread.join(30)
        assert first[0].status == 200


def test_s04_a_flood_is_refused_and_others_are_served(chat_server: ChatServer) -> None:
    """S04: one client gets its share of slots and of places to wait, and the next of its requests is refused."""
    arrived, ended = threading.Semaphore(0), threading.Event()

    def script(received: Any) -> Reply:
        if received.body["model"] == "slow":
            arrived.release()
            assert ended.wait(30)
        return Reply(completion_body("hello"))

    chat_server.play(script)
    with serving(chat_server.url, limits=Limits(concurrent=4, waiting=4)) as served:
        answers: list[int] = []

        def flood() -> None:
            answers.append(served.request("POST", "/v1/chat/completions", {**PLAIN, "model": "slow"}).status)

        threads = [threading.Thread(target=flood) for _ in range(10)]
        for thread in threads:
            thread.start()
        assert all(arrived.acquire(timeout=30) for _ in range(2))
        served.settle('stepguard_requests_total{endpoint="chat",handling="refused",outcome="429"}', 6)
        for number in range(3):
            assert served.request("POST", "/v1/chat/completions", PLAIN, address=f"127.0.0.{number + 5}").status == 200
        ended.set()
        for thread in threads:
            thread.join(30)
    assert sorted(answers) == [200] * 4 + [429] * 6


def test_s04_each_of_several_keys_is_a_client(chat_server: ChatServer) -> None:
    """S04: with several keys a client is a key, whatever addresses it has."""
    chat_server.play(Reply(completion_body("hello"), delay=20))
    limits = Limits(concurrent=2, waiting=0, seconds=0.5)
    with serving(chat_server.url, api_key=[OWN, f"{OWN}0"], limits=limits) as served:

        def chat(key: str, address: str) -> int:
            headers = {"Authorization": f"Bearer {key}"}
            return served.request("POST", "/v1/chat/completions", PLAIN, headers, address=address).status

        thread = threading.Thread(target=chat, args=(OWN, "127.0.0.5"))
        thread.start()
        served_key = {"Authorization": f"Bearer {OWN}"}
        while b"stepguard_in_flight 1.0" not in served.request("GET", "/metrics", None, served_key).body:
            pass
        assert (chat(OWN, "127.0.0.6"), chat(f"{OWN}0", "127.0.0.5")) == (429, 504)
        thread.join(30)


def test_s04_a_word_for_whom_one_speaks_is_not_believed(chat_server: ChatServer) -> None:
    """S04: a header that claims another address makes no other client of a caller."""
    with serving(chat_server.url, limits=Limits(concurrent=2, waiting=0, seconds=0.5)) as served:
        chat_server.play(Reply(completion_body("hello"), delay=20))
        answers: list[int] = []

        def chat(number: int) -> None:
            headers = {"X-Forwarded-For": f"10.0.0.{number}"}
            answers.append(served.request("POST", "/v1/chat/completions", PLAIN, headers).status)

        threads = [threading.Thread(target=chat, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert sorted(answers) == [429, 429, 504]


@pytest.mark.slow
@pytest.mark.once
@pytest.mark.skipif(sys.platform != "linux", reason="addresses of its own for each client, and files of a process")
@pytest.mark.parametrize("files", ["20000", "200"])
def test_s04_in_the_large(files: str) -> None:
    """S04: the benchmark in small, also with few files: all honest clients are answered, the log stays short."""
    command = [sys.executable, str(Path(__file__).parents[2] / "benchmarks" / "serve_faults.py"), "--files", files]
    options = ["--idle", "150", "--trickling", "50", "--flood", "330", "--seconds", "1.5", "--within", "60"]
    done = subprocess.run([*command, *options], capture_output=True, encoding="utf-8", check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_s13_memory_is_shared(chat_server: ChatServer) -> None:
    """S13: requests that together need more than there is wait outside, and what was taken is given back."""
    limits = Limits(body=40_000, memory=100_000, client_share=1)
    sent = HEAD + b"Content-Length: 40000\r\n\r\n" + b" " * 35_000
    with serving(chat_server.url, limits=limits) as served, contextlib.ExitStack() as stack:
        assert served.chat("x" * 20_000, model="m").status == 200
        made = [stack.enter_context(connect(served, sent)) for _ in range(2)]
        while served.chat("x" * 20_000, model="m").status != 429:
            pass
        assert served.chat("x", model="m").status == 200
        for each in made:
            each.close()
        while served.chat("x" * 20_000, model="m").status != 200:
            pass
