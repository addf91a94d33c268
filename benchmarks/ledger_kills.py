"""Runs that are killed again and again: is anything lost, asked again, or done twice?

    python benchmarks/ledger_kills.py                   # 1,000 kills
    python benchmarks/ledger_kills.py --kills 20 --seed 7 --folder /somewhere

Real processes carry out runs and are sent SIGKILL after a random time; the next one goes on, until the run has ended.
There are six kinds: a chain of steps run blocking, the calls of an agent at the gate of a policy, several branching
runs at a time on one event loop, a run whose tool must not be called twice and takes no idempotency key, one that waits
for an approval, and a batch. The agent's tool must not be called twice either. The model is a
function that answers rightly after a short while and writes down what it is asked before it answers; the tool writes
down what it does. Counted are, over all kills:

    asked_again    steps that were durable when a process was killed, and were asked of the model after that
    called_twice   calls of the tool for one step, or one call of the agent, beyond the first
    wrong          runs that ended otherwise than one that nobody killed
    kinds          in how many of the kinds somebody was killed
    unsettled      calls that were cut off: the run said so, and what the tool had done was told to the ledger
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from stepguard import Guard, Policy, Procedure
from stepguard.backends import Completion, Request
from stepguard.integrations.tool_gate import ToolGate
from stepguard.ledger import Ledger, read_run, verify_ledger
from stepguard.ledger.journal import load_run
from stepguard.procedure import Tool
from stepguard.testing import SimulatedModel, Slips

KINDS: Final = ("chain", "agent", "async", "tool", "gate", "batch")
MODEL: Final = SimulatedModel(seed=1, slips=Slips.none())
_CHAIN: Final = "inputs: x\nt1 = x + 1\n" + "\n".join(f"t{n} = t{n - 1} + {n % 7 - 2}" for n in range(2, 13))
_LOOP: Final = """\
inputs: items: list of integer
for each item in items:
  double = item * 2
  if double > 4:
    fee = double + 1
  else:
    fee = double - 1
total = sum of fee
"""
_PAY: Final = "inputs: x\na = x * 2\nb = a + 1\nreceipt: text = tool pay(amount=b)\nc = b + 3\nd = c * 2"
_ITEMS: Final = (1, 2, 3, 4)
_POLICY: Final = "tool pay(amount: integer) changes nothing\nbefore pay(amount):\n  at most once per amount"
_CALLS: Final = 5
"""What an agent calls in one conversation."""


@dataclass(slots=True)
class Report:
    """What was counted."""

    kills: int = 0
    kinds: int = 0
    runs: int = 0
    lives: int = 0
    asked_again: int = 0
    called_twice: int = 0
    wrong: int = 0
    unsettled: int = 0
    faults: int = 0
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        """Whether nothing went wrong."""
        return not (self.asked_again or self.called_twice or self.wrong or self.faults)


class Noting:
    """The model: notes what it is asked, then takes a moment."""

    def __init__(self, log: Path, pause: float) -> None:
        self._file: Final = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._pause: Final = pause

    def note(self, request: Request) -> None:
        """Write down what is asked: the ids of the steps with the values that they read tell runs apart."""
        entry = {"steps": [step.id for step in request.steps], "values": {n: str(v) for n, v in request.values.items()}}
        os.write(self._file, (json.dumps(entry) + "\n").encode())

    def complete(self, request: Request) -> Completion:
        """See `SyncBackend.complete`."""
        self.note(request)
        time.sleep(self._pause)
        return MODEL.complete(request)


class _Awaited(Noting):
    is_async = True

    async def acomplete(self, request: Request) -> Completion:
        """See `AsyncBackend.acomplete`."""
        self.note(request)
        await asyncio.sleep(self._pause)
        return MODEL.complete(request)


def _paying(effects: Path, pause: float) -> Callable[..., str]:
    """A tool that adds a line to a file, in the middle of the time that it takes."""

    def pay(amount: int) -> str:
        time.sleep(pause)
        file = os.open(effects, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(file, f"{amount}\n".encode())
        os.close(file)
        time.sleep(pause)
        return f"paid {amount}"

    return pay


def procedure_of(kind: str, effects: Path, *, pause: float = 0.0) -> Procedure:
    """The procedure of a kind."""
    pay = _paying(effects, pause)
    if kind in ("tool", "gate"):
        return Procedure.parse(_PAY, tools={"pay": Tool(pay, approval=kind == "gate")})
    return Procedure.parse(_LOOP if kind == "async" else _CHAIN)


def inputs_of(kind: str, number: int) -> list[Mapping[str, object]]:
    """The inputs of the runs of one job, which no other job has."""
    if kind == "async":
        return [{"items": [number * 100 + each * 10 + item for item in _ITEMS]} for each in range(3)]
    return [{"x": number * 100 + each} for each in range(4 if kind == "batch" else 1)]


def run_id(kind: str, number: int, row: int) -> str:
    """The names of its runs."""
    return f"{kind}-{number}/{row}"


def live(kind: str, number: int, folder: Path, pause: float) -> None:
    """One life of a job, until it ends or is killed."""
    if kind == "agent":
        _converse(number, folder, pause)
        return
    procedure = procedure_of(kind, folder / "effects", pause=8 * pause)
    log, given = folder / "asked", inputs_of(kind, number)
    model = _Awaited(log, pause) if kind in ("async", "batch") else Noting(log, pause)
    guard = Guard(model, segment=2, parallel=2 if kind == "async" else 1, ledger=folder / "runs.db")
    if kind == "async":

        async def together() -> None:
            await asyncio.gather(
                *(guard.arun(procedure, each, run_id=run_id(kind, number, row)) for row, each in enumerate(given))
            )

        asyncio.run(together())
    elif kind == "batch":
        for _ in guard.map(procedure, given, concurrency=3, run_id=f"{kind}-{number}"):
            pass
    else:
        guard.run(procedure, given[0], run_id=run_id(kind, number, 0))


def _converse(number: int, folder: Path, pause: float) -> list[str]:
    """What an agent that calls a tool several times is told."""
    tools = {"pay": _paying(folder / "effects", 8 * pause)}
    name = run_id("agent", number, 0)
    with ToolGate(Policy.parse(_POLICY), tools, ledger=folder / "runs.db", run_id=name) as gate:
        return [gate.call("pay", {"amount": amount}, id=f"call {amount}") for amount in _amounts(number)]


def _amounts(number: int) -> range:
    return range(number * 100, number * 100 + _CALLS)


def _settle_calls(folder: Path, number: int, report: Report) -> None:
    """Tell what the calls of an agent have done in which a process died."""
    name = run_id("agent", number, 0)
    if not (folder / "runs.db").exists():
        return
    with Ledger(folder / "runs.db") as ledger:
        if all(each.run_id != name for each in ledger.runs()):
            return
        calls = {call["id"]: call for change in read_run(ledger, name).changes for call in change.get("calls", ())}
        for id_ in [id_ for id_, call in calls.items() if call["status"] == "pending"]:
            report.unsettled += 1
            amount = id_.removeprefix("call ")
            if amount in lines_of(folder / "effects"):
                ledger.answer(name, id_, f"paid {amount}")
            else:
                ledger.repeat(name, id_)


def run_conversation(
    number: int, folder: Path, chance: random.Random, windows: dict[str, float], pause: float, report: Report, most: int
) -> None:
    """Carry the conversation of an agent to its end, killing it as long as there are kills left."""
    report.runs += 1
    ended = False
    while not ended:
        _settle_calls(folder, number, report)
        report.lives += 1
        ended = _one_life("agent", number, folder, chance, windows, pause, report, most)
    report.wrong += _converse(number, folder, pause) != [f"paid {amount}" for amount in _amounts(number)]
    report.called_twice += sum(abs(lines_of(folder / "effects").count(str(amount)) - 1) for amount in _amounts(number))


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@dataclass(frozen=True, slots=True)
class Known:
    """What is durable of a job: its steps with the values that they read, and how its runs stand."""

    steps: frozenset[tuple[str, str]]
    standing: Mapping[str, tuple[str, str | None]]


def look(place: Path | str, names: Collection[str]) -> Known:
    """What is durable of runs in a ledger."""
    steps: set[tuple[str, str]] = set()
    standing: dict[str, tuple[str, str | None]] = {}
    if isinstance(place, str) or place.exists():
        with Ledger(place) as ledger:  # a file that was only half made is made again
            standing = {each.run_id: (each.status, each.place) for each in ledger.runs() if each.run_id in names}
            for number, name in ledger.file.read("select number, name from runs"):
                if name in names:
                    rows = ledger.file.read("select body from records where run = ? and kind = 'step'", number)
                    bodies = [json.loads(body) for (body,) in rows]
                    steps |= {(each["id"], _reads(each["reads"])) for each in bodies if each["claim"] is not None}
    return Known(frozenset(steps), standing)


def _reads(values: Mapping[str, object]) -> str:
    return json.dumps({name: str(value) for name, value in sorted(values.items())})


def _asked_again(lines: list[str], known: Known) -> int:
    """How many steps of these requests were durable before. A step's own operands are among a request's values."""
    count = 0
    for line in lines:
        entry = json.loads(line)
        for id_, reads in known.steps:
            values = json.loads(reads)
            if id_ in entry["steps"] and values and values.items() <= entry["values"].items():
                count += 1
    return count


def settle(folder: Path, kind: str, number: int, known: Known, report: Report, *, at: Path | str | None = None) -> None:
    """Be the person: approve what is asked, and tell what a call that was cut off has done."""
    name = run_id(kind, number, 0)
    status, place = known.standing.get(name, ("", None))
    with Ledger(folder / "runs.db" if at is None else at) as ledger:
        if status == "waiting" and place is not None:
            ledger.answer(name, place, "yes")
        elif status == "failed":
            report.unsettled += 1
            amount = str(2 * number * 100 + 1)
            if amount in lines_of(folder / "effects"):
                ledger.answer(name, "receipt", f"paid {amount}")
            else:
                ledger.repeat(name, "receipt")


def run_job(
    kind: str,
    number: int,
    folder: Path,
    chance: random.Random,
    windows: dict[str, float],
    pause: float,
    report: Report,
    most: int,
) -> None:
    """Carry a job to its end, killing it as long as there are kills left."""
    given = inputs_of(kind, number)
    names = [run_id(kind, number, row) for row in range(len(given))]
    report.runs += len(given)
    for _ in range(10_000):
        known = look(folder / "runs.db", names)
        if len(known.standing) == len(names) and all(each[0] == "verified" for each in known.standing.values()):
            break
        if kind in ("tool", "gate"):
            _settle_if_stopped(folder, kind, number, known, report)
        asked = len(lines_of(folder / "asked"))
        report.lives += 1
        _one_life(kind, number, folder, chance, windows, pause, report, most)
        report.asked_again += _asked_again(lines_of(folder / "asked")[asked:], known)
    compare(kind, number, folder, names, report)


def _settle_if_stopped(folder: Path, kind: str, number: int, known: Known, report: Report) -> None:
    if any(status in ("waiting", "failed") for status, _ in known.standing.values()):
        settle(folder, kind, number, known, report)


def _one_life(
    kind: str,
    number: int,
    folder: Path,
    chance: random.Random,
    windows: dict[str, float],
    pause: float,
    report: Report,
    most: int,
) -> bool:
    """One life, whether it came to its own end."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            live(kind, number, folder, pause)
            code = 0
        finally:
            os._exit(code)
    started = time.monotonic()
    if report.kills >= most:
        _, status = os.waitpid(child, 0)
        windows[kind] = 1.2 * (time.monotonic() - started)
        report.faults += status != 0
        return True
    until = started + chance.uniform(0.0, windows[kind])
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            windows[kind] = 1.2 * (time.monotonic() - started)
            report.faults += status != 0
            return True
        time.sleep(0.0005)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    windows[kind] *= 1.1  # so that every kind gets to its end
    if os.WIFSIGNALED(status):
        report.kills += 1
        return False
    report.faults += status != 0
    return True


def compare(
    kind: str, number: int, folder: Path, names: list[str], report: Report, *, at: Path | str | None = None
) -> None:
    """Hold every run of a job against one that nobody killed."""
    procedure = procedure_of(kind, folder / "unkilled")
    guard = Guard(MODEL, person=lambda *_: True)
    wholes = [guard.run(procedure, each) for each in inputs_of(kind, number)]
    with Ledger(folder / "runs.db" if at is None else at, read_only=True) as ledger:
        numbers = {name: row for row, name in ledger.file.read("select number, name from runs")}
        for name, whole in zip(names, wholes, strict=True):
            kept = load_run(ledger.file, numbers[name])
            end = kept.end or {}
            report.wrong += (end.get("status"), end.get("answer")) != (whole.status, whole.answer)
    if kind in ("tool", "gate"):
        amount = str(2 * number * 100 + 1)
        report.called_twice += abs(lines_of(folder / "effects").count(amount) - 1)


def run_kills(most: int, folder: Path, *, seed: int = 1, pause: float = 0.002) -> Report:
    """Kill so many processes, and count."""
    report, chance, started = Report(), random.Random(seed), time.monotonic()
    gc.collect()
    number, windows, killed = 0, dict[str, float](), set[str]()
    while report.kills < most:
        number += 1
        kind = KINDS[number % len(KINDS)]
        # The first of each kind is killed by nobody, which tells how long a life is here; few kills are shared by all.
        before = report.kills
        until = min(most, report.kills + max(1, most // len(KINDS))) if kind in windows else 0
        if kind == "agent":
            run_conversation(number, folder, chance, windows, pause, report, until)
        else:
            run_job(kind, number, folder, chance, windows, pause, report, until)
        killed |= {kind} if report.kills > before else set()
    report.kinds = len(killed)
    with Ledger(folder / "runs.db", read_only=True) as ledger:
        verified = verify_ledger(ledger)
        report.faults += len(verified.faults) + sum(not name.startswith("agent") for name in verified.unchecked)
    report.seconds = round(time.monotonic() - started, 1)
    return report


def main() -> int:
    """Print the report as JSON; 1 where anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        report = run_kills(options.kills, options.folder or Path(made), seed=options.seed)
    print(json.dumps(asdict(report)))
    return 0 if report.clean else 1


if __name__ == "__main__":
    sys.exit(main())
