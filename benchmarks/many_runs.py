"""Many small documents over one limiter, against a server that answers 429 beyond a rate that nobody is told.

    python benchmarks/many_runs.py [--documents 10000] [--rate 50] [--latency 0.2] [--concurrency 64] [--no-retry-after]

The server runs in a process of its own: a bucket that fills with `--rate` requests a second and holds those of one
second. Printed are the throughput beside the rate, how many requests were refused, how runs ended, and the resident
memory after each tenth of the documents.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stepguard import Guard, Procedure
from stepguard.backends.openai import OpenAIBackend

PROCEDURE = "inputs: net: integer\ngross = net + 19"
_NET = re.compile(r"gross = (\d+) \+ 19")


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: Server) -> None:
    """Answer requests on one connection until it is closed."""
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
            body = json.loads(await reader.readexactly(int(found[1]) if found else 0))
            status, more, data = await server.reply(body)
            text = json.dumps(data).encode()
            line = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n{more}\r\n"
            writer.write(line.encode() + text)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        writer.close()


class Server:
    """A chat endpoint with a bucket of requests."""

    def __init__(self, rate: float, latency: float, *, retry_after: bool) -> None:
        self.rate, self.latency, self.retry_after = rate, latency, retry_after
        self.level, self.at = rate, time.monotonic()
        self.taken = self.refused = 0

    async def reply(self, body: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
        """Status, further headers and body."""
        if body["messages"][-1]["content"] == "count":
            return "200 OK", "", {"taken": self.taken, "refused": self.refused}
        now = time.monotonic()
        self.level, self.at = min(self.rate, self.level + (now - self.at) * self.rate), now
        if self.level < 1:
            self.refused += 1
            return (
                "429 Too Many Requests",
                "Retry-After: 1\r\n" if self.retry_after else "",
                {"error": {"message": "no"}},
            )
        self.level -= 1
        self.taken += 1
        await asyncio.sleep(self.latency)
        net = int(_NET.findall(body["messages"][-1]["content"])[-1])
        message = {"role": "assistant", "content": json.dumps({"gross": f"{net} + 19 = {net + 19}"})}
        return (
            "200 OK",
            "",
            {
                "id": "1",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
            },
        )


async def serve(options: argparse.Namespace) -> None:
    """Serve on a free port, which is printed."""
    server = Server(options.rate, options.latency, retry_after=not options.no_retry_after)
    listening = await asyncio.start_server(lambda reader, writer: answer(reader, writer, server), "127.0.0.1", 0)
    print(listening.sockets[0].getsockname()[1], flush=True)
    await listening.serve_forever()


def resident() -> float:
    """The resident memory of this process in MiB."""
    try:
        text = Path("/proc/self/status").read_text(encoding="utf-8")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    return next(int(line.split()[1]) / 1024 for line in text.splitlines() if line.startswith("VmRSS:"))


def count_at(url: str) -> dict[str, int]:
    """What the server has taken and refused."""
    import openai

    with openai.OpenAI(base_url=url, api_key="sk-none") as client:
        raw = client.chat.completions.with_raw_response.create(
            model="m", messages=[{"role": "user", "content": "count"}]
        )
    counts: dict[str, int] = json.loads(raw.text)
    return counts


def documents(count: int) -> Iterator[dict[str, object]]:
    """The rows, each made when it is read."""
    for number in range(count):
        yield {"net": 1000 + number}


def measure(options: argparse.Namespace, url: str) -> None:
    """Run all documents, and print what came of them."""
    guard = Guard(OpenAIBackend("m", base_url=url, api_key="sk-none"))
    procedure = Procedure.parse(PROCEDURE)
    ends: Counter[str] = Counter()
    started, cpu = time.monotonic(), time.process_time()
    rows = guard.map(procedure, documents(options.documents), concurrency=options.concurrency, ordered=False)
    for number, row in enumerate(rows, 1):
        ends[row.status] += 1
        if number % max(1, options.documents // 10) == 0:
            rate = number / (time.monotonic() - started)
            print(f"{number:>7} documents  {rate:7.1f} a second so far  {resident():6.1f} MiB", flush=True)
    seconds, cpu = time.monotonic() - started, time.process_time() - cpu
    counts = count_at(url)
    sent = counts["taken"] + counts["refused"]
    print(f"ends: {dict(ends)}; {seconds:.1f} s, {cpu / options.documents * 1e3:.1f} ms CPU a document")
    print(f"throughput: {counts['taken'] / seconds / options.rate:.1%} of the rate of {options.rate:g} a second")
    print(f"refused: {counts['refused']} of {sent} requests ({counts['refused'] / sent:.2%})")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=50.0, help="requests a second that the server bears")
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that an answer takes")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--no-retry-after", action="store_true", help="the server does not say how long to wait")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options))
        return
    with subprocess.Popen([sys.executable, __file__, *sys.argv[1:], "--serve"], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            measure(options, f"http://127.0.0.1:{int(server.stdout.readline())}/v1")
        finally:
            server.kill()


if __name__ == "__main__":
    main()
