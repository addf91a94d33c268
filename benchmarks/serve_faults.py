"""What honest clients of `stepguard serve` feel of others that idle, trickle and flood, and what that costs the server.

    python benchmarks/serve_faults.py [--idle 500] [--trickling 200] [--flood 800] [--seconds 20] [--files N]

The server is a process as a user starts it, in front of a scripted endpoint. Each kind of client has an address of its
own on loopback. Honest clients ask one guarded and one passed question after another, beside

===========  ==========================================================================================
nobody       the base line
idle         connections on which nothing is said, opened again when they are closed
trickling    uploads of which a byte comes every half second, opened again when they are closed
flood        so many requests at once from one address, each of which takes the upstream a second
===========  ==========================================================================================

all at once at the end. Printed are the honest clients' answers and times, what became of the requests of the flood, and
the memory and the log of the server. The exit code is 1 if an honest request failed or took longer than `--within`, no
request of the flood was refused, or memory or log grew by more than they may.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from serving import PROCEDURE, answer, process, resident

HONEST, IDLE, TRICKLING, FLOOD = "127.0.0.10", "127.0.0.20", "127.0.0.30", "127.0.0.40"
REPLY_SECONDS = 1.0
Attack = Callable[[float], Coroutine[Any, Any, None]]
MESSAGES = [{"role": "user", "content": "Go."}]
MIB_GROWN, LINES = 150.0, 100
"""What the server may take more at the end than at the start, and write of what was not answered."""


async def upstream(scope: Any, receive: Any, send: Any) -> None:
    """An ASGI application that answers at once, or after a second as the model ``slow``."""
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    asked = json.loads(body or b"{}")
    if asked.get("model") == "slow":
        await asyncio.sleep(REPLY_SECONDS)
    status, kind, said = answer(asked)
    headers = [(b"content-type", kind), (b"content-length", str(len(said)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": said})


def serve_upstream() -> None:
    """Run it on a free port, which is printed."""
    import socket

    import uvicorn

    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(1024)
        print(f"at http://127.0.0.1:{listening.getsockname()[1]}/v1", flush=True)
        config = uvicorn.Config(upstream, lifespan="off", log_config=None, access_log=False)
        asyncio.run(uvicorn.Server(config).serve([listening]))


@contextmanager
def server(url: str, folder: str, log: IO[bytes], files: int | None) -> Iterator[tuple[int, int]]:
    """``stepguard serve``: the id of the process and its port."""

    def bounded() -> None:
        if files is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    command = ["-m", "stepguard.cli", "serve", "--port", "0", "--upstream", url, "--procedures", folder]
    running = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, stderr=log, preexec_fn=bounded)
    assert running.stdout is not None
    try:
        line = running.stdout.readline().decode().split()
        yield running.pid, int(line[2].rpartition(":")[2].partition("/")[0])
    finally:
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=120)


# Clients


@dataclass
class Seen:
    """What clients of one kind saw: seconds of their answers, and how often which status came."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)


async def ask(port: int, address: str, model: str, seen: Seen) -> None:
    """One request on a connection of its own."""
    inputs = {"inputs": {"x": 12, "y": 7}} if "@" in model else {}
    sent = json.dumps({"model": model, "messages": MESSAGES, **inputs}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(sent)}\r\n\r\n"
    began = time.perf_counter()
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
        try:
            writer.write(head.encode() + sent)
            response = await asyncio.wait_for(reader.read(), 60)
        finally:
            writer.close()
        status = response[9:12].decode() or "closed"
        if status == "200" and b"answer: 57" not in response and b"t1" not in response:
            status = "wrong"
    except (OSError, TimeoutError) as error:
        status = type(error).__name__
    seen.seconds.append(time.perf_counter() - began)
    seen.statuses[status] += 1


async def honest(port: int, number: int, seen: Seen, until: float) -> None:
    """Ask guarded and passed questions one after the other, with a pause between."""
    address = f"127.0.0.{int(HONEST.rpartition('.')[2]) + number}"
    while time.perf_counter() < until:
        for model in ("sums@m", "m"):
            await ask(port, address, model, seen)
        await asyncio.sleep(random.uniform(0.05, 0.15))


async def idle(port: int, until: float) -> None:
    """Hold a connection on which nothing is said, and open another when it is closed."""
    while time.perf_counter() < until:
        with suppress(OSError, TimeoutError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(IDLE, 0))
            try:
                await asyncio.wait_for(reader.read(), max(0.0, until - time.perf_counter()))
            finally:
                writer.close()
        await asyncio.sleep(0.1)


async def trickle(port: int, until: float) -> None:
    """Announce a body and send a byte of it now and then; begin again when the connection is closed."""
    while time.perf_counter() < until:
        with suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(TRICKLING, 0))
            try:
                writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{")
                while time.perf_counter() < until and not writer.transport.is_closing():
                    await asyncio.sleep(0.5)
                    writer.write(b" ")
                    await writer.drain()
            finally:
                writer.close()
        await asyncio.sleep(0.1)


# What is measured


async def scene(port: int, seconds: float, attacks: list[Attack]) -> Seen:
    """What honest clients see beside attacks that have begun a second before."""
    until = time.perf_counter() + seconds
    running = [asyncio.create_task(attack(until)) for attack in attacks]
    await asyncio.sleep(1.0)
    seen = Seen()
    await asyncio.gather(*(honest(port, number, seen, until) for number in range(4)))
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    return seen


async def measure(options: argparse.Namespace, pid: int, port: int, log: Path) -> bool:
    """Play the scenes, print what came of them, and say whether all was well."""
    flooded = Seen()

    async def flood(until: float) -> None:
        while time.perf_counter() < until:
            await asyncio.gather(*(ask(port, FLOOD, "slow", flooded) for _ in range(options.flood)))
            await asyncio.sleep(0.2)

    async def idles(until: float) -> None:
        await asyncio.gather(*(idle(port, until) for _ in range(options.idle)))

    async def trickles(until: float) -> None:
        await asyncio.gather(*(trickle(port, until) for _ in range(options.trickling)))

    scenes: dict[str, list[Attack]] = {
        "nobody": [],
        "idle": [idles],
        "trickling": [trickles],
        "flood": [flood],
        "all of them": [idles, trickles, flood],
    }
    await scene(port, 3.0, [])  # what is made once is made
    before, well = resident(pid), True
    print(f"{'beside':<12} {'answers':>8} {'failed':>7} {'median s':>9} {'slowest s':>10} {'MiB':>6} {'log KiB':>8}")
    for name, attacks in scenes.items():
        seen = await scene(port, options.seconds, attacks)
        failed = seen.statuses.total() - seen.statuses["200"]
        slowest, middle = max(seen.seconds), statistics.median(seen.seconds)
        size, written = resident(pid), log.stat().st_size / 1024
        row = f"{name:<12} {seen.statuses['200']:>8} {failed:>7} {middle:>9.3f} {slowest:>10.3f}"
        print(f"{row} {size:>6.0f} {written:>8.1f}", flush=True)
        well = well and not failed and slowest <= options.within
    print(f"\nthe flood got {dict(sorted(flooded.statuses.items()))}")
    lines = log.read_text(encoding="utf-8").splitlines()
    other = [line for line in lines if "run_id=" not in line or "handling='refused'" in line]
    print(f"the log has {len(lines)} lines, {len(other)} of them of no request that was answered")
    refused = flooded.statuses.total() > flooded.statuses["200"] or not options.flood
    return well and refused and len(other) <= LINES and resident(pid) - before < MIB_GROWN


def main() -> int:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--idle", type=int, default=500, metavar="N", help="idle connections")
    parser.add_argument("--trickling", type=int, default=200, metavar="N", help="trickling uploads")
    parser.add_argument("--flood", type=int, default=800, metavar="N", help="requests at once of one client")
    parser.add_argument("--seconds", type=float, default=20.0, metavar="S", help="for each scene")
    parser.add_argument("--within", type=float, default=1.0, metavar="S", help="how long an honest answer may take")
    parser.add_argument("--files", type=int, metavar="N", help="how many files the server may open")
    parser.add_argument("--upstream", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.upstream:
        serve_upstream()
        return 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "procedures").mkdir()
        (folder / "procedures" / "sums.txt").write_text(PROCEDURE, encoding="utf-8")
        log = stack.enter_context((folder / "log").open("wb"))
        _, url = stack.enter_context(process(__file__, "--upstream"))
        pid, port = stack.enter_context(server(url, str(folder / "procedures"), log, options.files))
        return 0 if asyncio.run(measure(options, pid, port, folder / "log")) else 1


if __name__ == "__main__":
    sys.exit(main())
