"""A ledger, and models for runs in it, that several test modules share."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from stepguard import Guard, Procedure, Result
from stepguard.backends import Completion, Request
from stepguard.ledger import Ledger, verify_ledger
from stepguard.ledger.store import GENESIS, chain_hash, digest_of
from stepguard.procedure import Tool
from stepguard.testing import SimulatedModel, Slips

CHAIN = Procedure.parse("inputs: x\nt1 = x + 1\nt2 = t1 * 2\nt3 = t2 - 3\nt4 = t3 + t1\nt5 = t4 * 2\nt6 = t5 - t1")
"""Six steps: 25 for 12."""

LOOP = """\
inputs: items: list of integer
for each item in items:
  double = item * 2
  if double > 4:
    fee = double + 1
  else:
    fee = 0
total = sum of fee
"""
"""A loop with branches, and the sum of what they give."""

SURE = SimulatedModel(seed=1, slips=Slips.none())
"""A model that makes no mistakes."""

PAYMENT = "inputs: x\ntotal = x * 2\nreceipt: text = tool pay(amount=total)\nlast = total + 1"
"""A call of a tool between two steps."""


CUT_OFF = (
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'stepguard'"
    " and pid in (select pid from pg_locks where locktype = 'advisory')"
)
"""Ends every connection to Postgres that holds the lock of a run."""


class Killed(BaseException):
    """Stands for the death of the process."""


class Counting:
    """A model that slips as often as asked, counts what it is asked, and dies at its n-th call where that is given.

    Attributes:
        asked: the ids of the steps that were asked, in order.
    """

    def __init__(self, *, die_at: int | None = None, slips: float = 0.0) -> None:
        self._model = SimulatedModel(seed=3, slips=Slips.all(slips) if slips else Slips.none())
        self._die_at = die_at
        self._calls = 0
        self.asked: list[str] = []

    def complete(self, request: Request) -> Completion:
        """See `SyncBackend.complete`."""
        self._calls += 1
        if self._calls == self._die_at:
            raise Killed
        self.asked += [step.id for step in request.steps]
        return self._model.complete(request)


class Nobody:
    """A model that must not be asked."""

    def complete(self, request: Request) -> Completion:
        """See `SyncBackend.complete`."""
        raise AssertionError(f"asked: {[step.id for step in request.steps]}")


def payment(calls: list[tuple[Any, ...]], *, die: bool = False, **options: Any) -> Procedure:
    """`PAYMENT` with a tool that notes its calls, and dies in them where it should."""

    def pay(amount: int) -> str:
        calls.append((amount,))
        if die:
            raise Killed
        return f"paid {amount}"

    return Procedure.parse(PAYMENT, tools={"pay": Tool(pay, **options)})


def kill(guard: Guard, procedure: Procedure, inputs: Mapping[str, object], run_id: str) -> None:
    """Run until the process would be dead; of what the dying process says of its end nothing is written."""
    run = guard.start(procedure, inputs, run_id=run_id)
    try:
        while not run.done:
            action = run.next_action()
            assert action is not None
            run.send(_perform(guard, run, action))
    except Killed:
        return
    raise AssertionError("it was not killed")


def _perform(guard: Guard, run: Any, action: Any) -> Any:
    from stepguard.engine.actions import Ask
    from stepguard.guard.calls import ask_model

    backend: Any = guard._backend
    return ask_model(backend, action) if isinstance(action, Ask) else run.perform(action)


def facts(result: Result) -> tuple[object, ...]:
    """What has to be the same, however often a run was killed."""
    steps = [(str(each.occurrence), each.value, each.strength, each.support, each.claim) for each in result.steps]
    return result.status, result.answer, dict(result.values), steps


@cache
def _kept() -> tuple[bytes, str]:
    """The file of a ledger with four runs, and its head."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "runs.db")
        head = _keep(path)
        with closing(sqlite3.connect(path)) as connection:
            return connection.serialize(), head


def keep_ledger(path: Path | str) -> str:
    """Put a ledger with four runs there; its head."""
    if isinstance(path, str):
        return _keep(path)
    made, head = _kept()
    path.write_bytes(made)
    return head


def _keep(path: Path | str) -> str:
    guard = Guard(SURE, segment=3, ledger=path)
    guard.run(CHAIN, {"x": 12}, run_id="chain")
    guard.run(Procedure.parse(LOOP), {"items": [1, 2, 3]}, run_id="loop")
    guard.run(payment([]), {"x": 3}, run_id="paid")
    guard.run(payment([], approval=True), {"x": 3}, run_id="waits")
    with Ledger(path, read_only=True) as ledger:
        return ledger.head()


def change_ledger(path: Path | str, *statements: str, given: tuple[object, ...] = ()) -> None:
    """Carry out statements of SQL on a ledger behind its back."""
    with _connected(path) as execute:
        for statement in statements:
            execute(statement, *given)


@contextmanager
def _connected(path: Path | str) -> Iterator[Callable[..., Any]]:
    """Carries out SQL on a file or a database, in one transaction."""
    if isinstance(path, Path):
        with closing(sqlite3.connect(path)) as connection:
            yield lambda sql, *given: connection.execute(sql, given)
            connection.commit()
        return
    psycopg: Any = import_module("psycopg")
    address, _, schema = path.rpartition("&schema=")
    with psycopg.connect(address) as other:
        other.execute(f"set search_path to {schema}")
        yield lambda sql, *given: other.execute(
            re.sub(r"zeroblob\((\d+)\)", lambda match: f"'\\x{'00' * int(match[1])}'", sql)
            .replace("instr(", "strpos(")
            .replace("?", "%s" if given else "?"),
            given or None,
        )


def faults_of(path: Path | str, head: str | None = None) -> list[str]:
    """What verifying a ledger finds wrong, as text."""
    with Ledger(path, read_only=True) as ledger:
        return [str(fault) for fault in verify_ledger(ledger, head=head).faults]


def chain_again(path: Path | str) -> None:
    """What somebody does who knows how the chain is made: every digest and hash is right again."""
    sql = "select records.number, run, kind, body, salt from records join runs on run = runs.number order by 1"
    before = GENESIS
    with _connected(path) as execute:
        for number, run, kind, body, salt in execute(sql).fetchall():
            digest = digest_of(salt, body)
            before = chain_hash(before, number, run, kind, digest)
            execute("update records set digest = ?, hash = ? where number = ?", digest, before, number)
