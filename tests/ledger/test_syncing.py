"""What is written is on the disk before it counts, also where many write at once."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from ledger_harness import CHAIN, SURE, Nobody, faults_of

from stepguard import Guard
from stepguard.errors import LedgerError
from stepguard.ledger import Ledger, store

pytestmark = pytest.mark.usefixtures("quick_collections")


def test_a_disk_that_does_not_sync_is_trusted_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a sync fails the run ends, and so does every later one: the next sync would not miss what was lost."""
    path = tmp_path / "runs.db"
    ledger = Ledger(path)

    def broken(_: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as failing:
        failing.setattr("stepguard.ledger.sqlite_file._sync", broken)
        result = Guard(SURE, segment=2, ledger=ledger).run(CHAIN, {"x": 12}, run_id="run")
    assert (result.status, result.completed, type(result.error)) == ("failed", 0, LedgerError)
    assert "the disk does not answer" in str(result.problem)
    with pytest.raises(LedgerError, match="the disk does not answer"):
        Guard(Nobody(), ledger=ledger).run(CHAIN, {"x": 12}, run_id="other")
    ledger.close()
    assert Guard(SURE, ledger=path).run(CHAIN, {"x": 12}, run_id="run").verified
    assert faults_of(path) == []


def test_a_log_that_cannot_be_shortened_costs_no_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the disk is too full to bring the log into the file, what stands in the log is durable all the same."""
    monkeypatch.setattr("stepguard.ledger.sqlite_file._LONG", 20_000)

    class Full:
        tried = 0

        def __init__(self, connection: Any) -> None:
            self.connection = connection

        def __getattr__(self, name: str) -> Any:
            return getattr(self.connection, name)

        def execute(self, sql: str, *given: Any) -> Any:
            if "wal_checkpoint" in sql:
                Full.tried += 1
                raise sqlite3.OperationalError("database or disk is full")
            return self.connection.execute(sql, *given)

    ledger = Ledger(tmp_path / "runs.db")
    file: Any = ledger.file
    file._connection = Full(file._connection)
    assert Guard(SURE, segment=1, ledger=ledger).run(CHAIN, {"x": 12}, run_id="run").verified
    assert Full.tried > 0
    assert faults_of(tmp_path / "runs.db") == []


def test_who_fails_or_is_interrupted_in_a_shared_transaction_fails_alone(tmp_path: Path) -> None:
    """The others are written, once each; what was interrupted while it waited is not written behind its back."""
    file: Any = Ledger(tmp_path / "runs.db").file
    begun, go_on = threading.Event(), threading.Event()
    outcomes: dict[str, BaseException | None] = {}

    def write(name: str, *errors: BaseException, once: bool = False) -> threading.Thread:
        raised = list(errors)

        def change(transaction: store.Transaction) -> None:
            begun.set()
            go_on.wait(20)
            transaction.execute("insert into turns values (?, 0)", name)
            if raised:
                raise raised.pop() if once else raised[0]

        def work() -> None:
            outcomes[name] = None
            try:
                file.write(change)
            except BaseException as error:  # noqa: BLE001 - looked at below
                outcomes[name] = error

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    threads = [write("first")]
    assert begun.wait(20)
    failing = {3: OverflowError("too large"), 6: sqlite3.DataError("too big")}
    interruptions = {1: KeyboardInterrupt(), 8: SystemExit(3)}  # of whoever writes for the others then
    for number in range(12):
        errors = [error for errors in (failing, interruptions) if (error := errors.get(number))]
        threads.append(write(f"{number}", *errors, once=number in interruptions))
        while len(file._writes._waiting) <= number:
            time.sleep(0.001)
    file._writes._waiting[-1].done = True  # as one is that was interrupted while it waited
    go_on.set()
    for thread in threads:
        thread.join(20)
    interrupted = {name for name, error in outcomes.items() if error in interruptions.values()}
    assert interrupted  # who of them depends on whom the system lets write
    for name in {f"{number}" for number in failing} - interrupted:
        assert str(failing[int(name)]) in str(outcomes[name])
    assert {name for name, error in outcomes.items() if error} <= interrupted | {f"{number}" for number in failing}
    written = sorted(endpoint for (endpoint,) in file.read("select endpoint from turns"))
    assert written == sorted(name for name, error in outcomes.items() if error is None and name != "11")


def test_what_is_waited_for_is_in_a_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads share syncs of the disk: each waits for one that began behind its write. An event loop waits for none."""
    ledger, read = Ledger(tmp_path / "runs.db"), Ledger(tmp_path / "runs.db", read_only=True)
    covered, loops = [0], [0]

    def noting(_: int) -> None:
        head = int(read.head().partition(":")[0])
        time.sleep(0.02)  # others write meanwhile, and this sync is none for them
        loops[0] += threading.current_thread() is looping
        covered[0] = head

    monkeypatch.setattr("stepguard.ledger.sqlite_file._sync", noting)
    sync = ledger.file.sync

    def checked() -> None:
        head = int(ledger.head().partition(":")[0])
        sync()
        assert covered[0] >= head

    monkeypatch.setattr(ledger.file, "sync", checked)
    guard = Guard(SURE, segment=1, ledger=ledger)
    looping: object = None
    with ThreadPoolExecutor(8) as threads:
        runs = [threads.submit(guard.run, CHAIN, {"x": number}, run_id=f"run {number}") for number in range(16)]
        assert all(each.result().verified for each in runs)
    assert covered[0] == int(ledger.head().partition(":")[0])
    looping = threading.current_thread()
    assert asyncio.run(guard.arun(CHAIN, {"x": 12}, run_id="async")).verified
    assert (covered[0], loops) == (int(ledger.head().partition(":")[0]), [0])


@pytest.mark.slow
def test_a_log_stays_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What two write in turn comes into the file, also where somebody reads an earlier state for a while."""
    monkeypatch.setattr("stepguard.ledger.sqlite_file._LONG", 100_000)
    path = tmp_path / "runs.db"
    with Ledger(path) as first, Ledger(path) as second, Ledger(path, read_only=True) as reader:

        def fill(numbers: range) -> int:
            for number in numbers:
                Guard(SURE, ledger=(first, second)[number % 2]).run(CHAIN, {"x": 12}, run_id=f"run {number}")
            return path.with_name("runs.db-wal").stat().st_size

        assert fill(range(20)) < 200_000
        with reader.file.snapshot():
            reader.head()
            fill(range(20, 40))
        assert fill(range(40, 60)) < 500_000
    assert faults_of(path) == []
