"""What `stepguard serve` and `stepguard.wrap` add to a call: latency, throughput and memory, beside the bare client.

    python benchmarks/serving.py [--requests 300] [--concurrency 16] [--memory 10000]

An upstream in a process of its own answers at once, so that what is measured is what stands between. The arms take
turns in one run:

===============  ======================================================================================
bare             the openai SDK asks the upstream
passed           the same through the server, which passes it on
wrap             the same through the SDK's client in `stepguard.wrap`, which passes it on
bare stream      as `bare`, with a streamed answer of 20 chunks
passed stream    the same through the server
guard            `Guard` in this process asks the upstream: two steps in one call, checked
guarded          the same procedure through the server, as NAME@MODEL
wrap guarded     the same procedure through the wrapped client, as ``procedure=`` and ``inputs=``
===============  ======================================================================================

Printed are milliseconds a request, one after the other, and requests a second with many at once. The client shares the
processors with the server and the upstream, so that throughput is a lower bound. With `--memory` so many requests of
all kinds are sent, failures among them, and the resident memory of the server is read on the way (Linux).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai

from stepguard import Guard, Procedure, wrap
from stepguard.backends.openai import OpenAIBackend

PROCEDURE = "inputs: x, y\nt2 = x + y\nt1 = t2 * 3\n"
INPUTS = {"x": 12, "y": 7}
CONTENT = json.dumps({"t2": "12 + 7 = 19", "t1": "19 * 3 = 57"})
MESSAGES: Any = [{"role": "user", "content": json.dumps(INPUTS)}]
KEY = "sk-nobody-00000000"
CHUNKS = 20

Ask = Callable[[], Awaitable[None]]


# The upstream


def answer(body: dict[str, Any]) -> tuple[int, bytes, bytes]:
    """The status, the content type and the body of what the upstream says."""
    if body.get("model") == "fails":
        return 500, b"text/html", b"<html>no</html>"
    if body.get("stream"):
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        chunks = [
            {**head, "choices": [{"index": 0, "delta": {"content": "word "}, "finish_reason": None}]}
            for _ in range(CHUNKS)
        ]
        chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        events = [*map(json.dumps, chunks), "[DONE]"]
        return 200, b"text/event-stream", b"".join(f"data: {each}\n\n".encode() for each in events)
    message = {"role": "assistant", "content": CONTENT}
    told = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }
    return 200, b"application/json", json.dumps(told).encode()


async def upstream(scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
    """An ASGI application that answers every request at once."""
    if scope["type"] != "http":
        return
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    status, kind, said = answer(json.loads(body or b"{}"))
    headers = [(b"content-type", kind), (b"content-length", str(len(said)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": said})


def serve_upstream() -> None:
    """Run it on a free port, which is printed."""
    import socket

    import uvicorn

    # With the protocol named, or asyncio leaves Nagle's algorithm on.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(1024)
        print(f"at http://127.0.0.1:{listening.getsockname()[1]}/v1", flush=True)
        server = uvicorn.Server(uvicorn.Config(upstream, lifespan="off", log_config=None, access_log=False))
        asyncio.run(server.serve([listening]))


@contextmanager
def process(*arguments: str) -> Iterator[tuple[int, str]]:
    """A process that prints a line with its address: its id and the address."""
    running = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, encoding="utf-8")
    assert running.stdout is not None
    try:
        line = running.stdout.readline().split()
        yield running.pid, next(word for word in line if word.startswith("http"))
    finally:
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=60)


# The arms


def make_arms(bare: openai.AsyncOpenAI, served: openai.AsyncOpenAI, backend: OpenAIBackend) -> dict[str, Ask]:
    """What each arm does for one request; every one sees to it that the answer is right."""
    procedure = Procedure.parse(PROCEDURE)
    guard = Guard(backend)
    wrapped = wrap(bare)

    async def whole(client: openai.AsyncOpenAI, model: str, wanted: str, **more: Any) -> None:
        answered = await client.chat.completions.create(model=model, messages=MESSAGES, **more)
        assert (answered.choices[0].message.content or "").endswith(wanted)

    async def stream(client: openai.AsyncOpenAI) -> None:
        chunks = [
            each async for each in await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
        ]
        assert len(chunks) == CHUNKS + 1

    async def run() -> None:
        assert (await guard.arun(procedure, INPUTS)).answer == 57

    async def passed() -> None:
        await whole(served, "m", CONTENT)

    return {
        "bare": lambda: whole(bare, "m", CONTENT),
        "passed": passed,
        "wrap": lambda: whole(wrapped, "m", CONTENT),
        "bare stream": lambda: stream(bare),
        "passed stream": lambda: stream(served),
        "guard": run,
        "guarded": lambda: whole(served, "sums@m", "answer: 57"),
        "wrap guarded": lambda: whole(wrapped, "m", "answer: 57", procedure=procedure, inputs=INPUTS),
    }


BASELINES = {
    "passed": "bare",
    "wrap": "bare",
    "passed stream": "bare stream",
    "guarded": "guard",
    "wrap guarded": "guard",
}


async def latencies(arms: dict[str, Ask], requests: int) -> dict[str, list[float]]:
    """Milliseconds of every request, arm by arm in turns of ten."""
    found: dict[str, list[float]] = {name: [] for name in arms}
    for _ in range(3):  # connections are opened, and what is made once is made
        for ask in arms.values():
            await ask()
    while len(found["bare"]) < requests:
        for name, ask in arms.items():
            for _ in range(10):
                began = time.perf_counter()
                await ask()
                found[name].append((time.perf_counter() - began) * 1000)
    return found


async def throughput(ask: Ask, requests: int, concurrency: int) -> float:
    """Requests a second, so many at once."""
    left = iter(range(requests))

    async def work() -> None:
        for _ in left:
            await ask()

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(concurrency)))
    return requests / (time.perf_counter() - began)


# Memory


def resident(pid: int) -> float:
    """The resident memory of a process in MiB, 0 where it cannot be told."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    return next(int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith("VmRSS:"))


async def memory(arms: dict[str, Ask], served: openai.AsyncOpenAI, pid: int, requests: int, concurrency: int) -> None:
    """Send requests of all kinds, and print what the server takes on the way."""

    async def fails(model: str) -> None:
        try:
            await served.chat.completions.create(model=model, messages=MESSAGES)
        except openai.APIStatusError:
            return
        raise AssertionError("no error came")

    kinds: list[Ask] = [arms["passed"], arms["passed stream"], arms["guarded"]]
    kinds += [lambda: fails("fails"), lambda: fails("nobody@m")]
    turn = 0

    async def mixed() -> None:
        nonlocal turn
        turn += 1
        await kinds[turn % len(kinds)]()

    print(f"\n{'requests':>10} {'MiB':>8}")
    sent = 0
    for tenth in range(11):
        print(f"{sent:>10} {resident(pid):>8.1f}", flush=True)
        if tenth < 10:
            await throughput(mixed, requests // 10, concurrency)
            sent += requests // 10


async def measure(options: argparse.Namespace, pid: int, url: str, server: str) -> None:
    """Run the arms and print what came of them."""
    backend = OpenAIBackend("m", base_url=url, api_key=KEY)
    async with (
        backend.session(),  # one client for all runs, as a server has
        openai.AsyncOpenAI(base_url=url, api_key=KEY, max_retries=0) as bare,
        openai.AsyncOpenAI(base_url=server, api_key=KEY, max_retries=0) as served,
    ):
        arms = make_arms(bare, served, backend)
        found = await latencies(arms, options.requests)
        print(f"{'arm':<14} {'median ms':>10} {'p95 ms':>8} {'added ms':>9} {'requests/s':>11}")
        for name, times in found.items():
            middle = statistics.median(times)
            base = BASELINES.get(name)
            added = "" if base is None else f"{middle - statistics.median(found[base]):.2f}"
            rate = await throughput(arms[name], options.requests, options.concurrency)
            high = statistics.quantiles(times, n=20)[-1]
            print(f"{name:<14} {middle:>10.2f} {high:>8.2f} {added:>9} {rate:>11.0f}", flush=True)
        if options.memory:
            await memory(arms, served, pid, options.memory, options.concurrency)


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=300, help="for each arm and measure")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--memory", type=int, default=0, metavar="N", help="send N requests of all kinds as well")
    parser.add_argument("--upstream", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.upstream:
        serve_upstream()
        return
    print(f"Python {platform.python_version()}, openai {openai.__version__}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "sums.txt").write_text(PROCEDURE, encoding="utf-8")
        with process(__file__, "--upstream") as (_, url):
            serve = ("-m", "stepguard.cli", "serve", "--port", "0", "--log-level", "warning", "--trust-inputs", "user")
            with process(*serve, "--upstream", url, "--procedures", folder) as (pid, server):
                asyncio.run(measure(options, pid, url, server))


if __name__ == "__main__":
    main()
