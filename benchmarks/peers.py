"""The same ten steps through other libraries and through stepguard, against one scripted server, side by side.

    python benchmarks/peers.py --envs DIR [--libraries bare,instructor,stepguard] [-n 240] [--cold 12]

`DIR/NAME/bin/python` is the interpreter of each library's own environment (`peers_arms.py` says what it needs), which
for stepguard finds this checkout. Every library has a process of its own that is warm and waits; tasks are handed out
in random order, one at a time, so that whatever else the machine does meets all alike. A task is ten small sums in one
call, each value checked against what it has to be:

===========  =====================================================================
right        every value is right
slip         one value is wrong in the first reply, and right in every later one
never        one value is wrong in every reply; at most five calls, but for
             stepguard, whose default is its own
===========  =====================================================================

Printed are the processor time and the wall time of a task (median, and from the tenth to the ninetieth of a hundred),
its calls and tokens (four characters each; of requests all that is sent but for the parameters that are numbers), what
came of it, and with `--cold` what a fresh process takes from its start to its first answer.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from peers_arms import EXPECTED, SHOWN

LIBRARIES = ("bare", "forge", "instructor", "pydantic-ai", "mellea", "stepguard")
CALLS = {"right": 1, "slip": 2, "never": 5}
"""By kind of task how many calls it takes at least."""
SCENARIOS = tuple(CALLS)
_WRONG = "t4"
_ARMS = Path(__file__).with_name("peers_arms.py")


class Script:
    """What the server says in the running task, and what it was asked."""

    def __init__(self) -> None:
        self.begin("right")

    def begin(self, scenario: str) -> None:
        """A task begins."""
        self._scenario = scenario
        self.counts: Counter[str] = Counter()

    def answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a chat completion with an entry for every property of the schema that was sent."""
        self.counts["calls"] += 1
        sent = {name: part for name, part in body.items() if isinstance(part, list | dict)}
        self.counts["input"] += len(json.dumps(sent, ensure_ascii=False)) // 4
        tools = body.get("tools")
        function = tools[0]["function"] if tools else {}
        form = (body.get("response_format") or {}).get("json_schema") or {}
        schema = function.get("parameters") or form.get("schema") or {}
        text = json.dumps(self._entries(schema.get("properties") or {}))
        self.counts["output"] += len(text) // 4
        call = {"id": "call_1", "type": "function", "function": {"name": function.get("name"), "arguments": text}}
        message: dict[str, Any] = {"role": "assistant", "content": None if tools else text}
        message |= {"tool_calls": [call]} if tools else {}
        choice = {"index": 0, "finish_reason": "tool_calls" if tools else "stop", "message": message}
        usage = {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150}
        return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}

    def _entries(self, properties: Mapping[str, Any]) -> dict[str, Any]:
        bad = self._scenario == "never" or (self._scenario == "slip" and self.counts["calls"] == 1)
        entries: dict[str, Any] = {}
        for name, kind in properties.items():
            off = int(bad and name == _WRONG) if name in EXPECTED else 1  # smaller steps that take its place fail, too
            value = EXPECTED.get(name, 0) + off
            work = SHOWN.get(name, "0")
            if kind.get("type") == "object":
                entries[name] = {"work": work, "value": str(value)}
            else:
                entries[name] = value if kind.get("type") == "integer" else f"{work} = {value}"
        return entries


@contextmanager
def served(script: Script) -> Iterator[str]:
    """The scripted server in a thread of this process, and its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            data = json.dumps(script.answer(body)).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
            self.wfile.write(head.encode() + data)  # in one piece, or each call waits for an acknowledgement

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()


class Worker:
    """A library in its own environment, warm, that carries out one task at a time."""

    def __init__(self, python: Path, library: str, url: str) -> None:
        self.command = [str(python), str(_ARMS), library, url]
        self.environment = {**os.environ, "TQDM_DISABLE": "1"}
        self.environment["PYTHONPATH"] = str(_ARMS.parents[1]) if library == "stepguard" else ""
        self.process = subprocess.Popen(
            self.command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        self.version = self._line()["version"]

    def task(self) -> dict[str, Any]:
        """Seconds of the processor and of the clock, and what came of one task."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self._line()

    def _line(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line: dict[str, Any] = json.loads(self.process.stdout.readline() or '{"version": "it ended", "end": "gone"}')
        return line

    def cold(self) -> tuple[float, float]:
        """Processor and wall seconds of a process from its start to its first answer."""
        began = time.perf_counter()
        process = subprocess.Popen([*self.command, "--once"], env=self.environment, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        assert status == 0, self.command
        return used.ru_utime + used.ru_stime, time.perf_counter() - began


def spread(values: list[float]) -> str:
    """The median of milliseconds, and from the tenth to the ninetieth of a hundred."""
    low, *_, high = statistics.quantiles(values, n=10, method="inclusive")
    return f"{statistics.median(values):.2f} [{low:.2f}, {high:.2f}]"


def measure(options: argparse.Namespace, workers: Mapping[str, Worker], script: Script) -> None:
    """Hand out the tasks, and print the table."""
    tasks = [
        (library, scenario)
        for library in workers
        for scenario in SCENARIOS
        for _ in range(-(-options.n // CALLS[scenario]))
    ]
    random.Random(options.seed).shuffle(tasks)
    for library in workers:
        for scenario in SCENARIOS * 3:
            script.begin(scenario)
            workers[library].task()
    seen: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for library, scenario in tasks:
        script.begin(scenario)
        seen.setdefault((library, scenario), []).append({**workers[library].task(), **script.counts})
    base = statistics.median(task["cpu"] for task in seen[next(iter(workers)), "right"])
    print("\n| library | task | CPU ms | to the first | wall ms | calls | input | output | end |")
    print("|---|---|---|---|---|---|---|---|---|")
    for scenario in SCENARIOS:
        for library, worker in workers.items():
            rows = seen[library, scenario]
            cpu = [task["cpu"] * 1e3 for task in rows]
            costs = [f"{statistics.mean(task[name] for task in rows):.0f}" for name in ("calls", "input", "output")]
            ends = ", ".join(f"{end}" for end in Counter(task["end"] for task in rows))
            cells = [
                f"{library} {worker.version}",
                scenario,
                spread(cpu),
                f"{statistics.median(cpu) / base / 1e3:.2f}",
                spread([task["wall"] * 1e3 for task in rows]),
                *costs,
                ends,
            ]
            print(f"| {' | '.join(cells)} |")


def measure_cold(times: int, workers: Mapping[str, Worker], script: Script) -> None:
    """Start every library anew, in random order, and print what it took."""
    script.begin("right")
    order = [library for library in workers for _ in range(times)]
    random.Random(0).shuffle(order)
    seen: dict[str, list[tuple[float, float]]] = {library: [] for library in workers}
    for library in [*workers, *order]:  # the first time of each reads its files
        seen[library].append(workers[library].cold())
    print("\n| from the start of a process to its first answer | CPU s | wall s |\n|---|---|---|")
    for library, pairs in seen.items():
        cpu, wall = (statistics.median(column) for column in zip(*pairs[1:], strict=True))
        print(f"| {library} | {cpu:.2f} | {wall:.2f} |")


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--envs", type=Path, required=True, help="the folder of the environments")
    parser.add_argument("--prefix", default="", help="what stands before a library's name in that folder")
    parser.add_argument("--libraries", default=",".join(LIBRARIES))
    parser.add_argument("-n", type=int, default=240, help="calls of each library and kind of task, at least")
    parser.add_argument("--cold", type=int, default=0, help="fresh processes of each library")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    script = Script()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {options.n} calls of each kind")
    with served(script) as url:
        workers = {
            library: Worker(options.envs / f"{options.prefix}{library}" / "bin" / "python", library, url)
            for library in options.libraries.split(",")
        }
        try:
            measure(options, workers, script)
            if options.cold:
                measure_cold(options.cold, workers, script)
        finally:
            for worker in workers.values():
                worker.process.kill()


if __name__ == "__main__":
    main()
