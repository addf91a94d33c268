"""What goes wrong with the file of a ledger is a clear error or a safe recovery."""

from __future__ import annotations

import errno
import gc
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ledger_harness import CHAIN, SURE, Counting, Nobody, change_ledger, faults_of, keep_ledger

from stepguard import Guard, Procedure
from stepguard.cli import main
from stepguard.engine.actions import Ask, Commit
from stepguard.errors import ConfigError, LedgerError, RunConflict
from stepguard.guard.calls import ask_model
from stepguard.ledger import Ledger, store, verify_ledger

pytestmark = pytest.mark.usefixtures("quick_collections")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"not a database, but longer than its magic", "is no ledger: it is no database"),
        (b"x", "is no ledger: it is no database"),
    ],
)
def test_another_file_is_refused_and_left_alone(tmp_path: Path, content: bytes, fault: str) -> None:
    """What is no ledger is named, and nothing is written into it."""
    path = tmp_path / "runs.db"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=fault):
        Guard(SURE, ledger=path)
    assert path.read_bytes() == content


@pytest.mark.skipif(sys.platform == "win32", reason="Windows allows no such names, and has no pipes")
def test_what_is_no_file_is_refused_and_odd_names_are_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, a pipe and a name with a NUL are refused at once; any other name is that of its own file."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe", "/dev/null"):
        for read_only in (True, False):
            with pytest.raises(LedgerError, match="it is no file"):
                Ledger(tmp_path / name, read_only=read_only)
    with pytest.raises(ConfigError, match="holds no NUL"):
        Ledger("a\0b")
    monkeypatch.chdir(tmp_path)
    names = ["file:x.db", "a?b#c%41.db", "-x.db"]
    if sys.getfilesystemencoding() == "utf-8":
        names.append("é b.db")
    else:
        with pytest.raises(ConfigError, match="no file can be called"):
            Ledger("é b.db")
    for name in names:
        Guard(SURE, ledger=name).run(CHAIN, {"x": 12}, run_id="run")
        assert (tmp_path / name).is_file()
        assert faults_of(Path(name)) == []


def test_a_file_that_was_only_half_made_is_made_again(tmp_path: Path) -> None:
    """A process that died while it made the file has left an empty one."""
    path = tmp_path / "runs.db"
    path.touch()
    with pytest.raises(LedgerError, match="is no ledger: it is empty"):
        Ledger(path, read_only=True)
    assert Guard(SURE, ledger=path).run(CHAIN, {"x": 12}, run_id="run").verified


def test_an_interruption_stays_one_where_nothing_can_be_written(tmp_path: Path) -> None:
    """Who presses Ctrl-C gets that, and not a complaint that the end of the run is not durable."""
    ledger = Ledger(tmp_path / "runs.db")

    class Pressed:
        def complete(self, request: Any) -> Any:
            ledger.close()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Guard(Pressed(), ledger=ledger).run(CHAIN, {"x": 12}, run_id="run")
    assert Guard(SURE, ledger=tmp_path / "runs.db").run(CHAIN, {"x": 12}, run_id="run").verified


def test_another_database_and_another_schema_are_refused(tmp_path: Path) -> None:
    """A database of something else, and a ledger of a later version, are named."""
    change_ledger(tmp_path / "other.db", "create table t (x)")
    with pytest.raises(LedgerError, match="is a database of something else"):
        Ledger(tmp_path / "other.db")
    keep_ledger(tmp_path / "runs.db")
    change_ledger(tmp_path / "runs.db", "pragma user_version = 99")
    for read_only in (True, False):
        with pytest.raises(LedgerError, match=r"has schema 99, and this version of stepguard reads 1.* or a later one"):
            Ledger(tmp_path / "runs.db", read_only=read_only)
    with pytest.raises(LedgerError, match="cannot be read: No such file"):
        Ledger(tmp_path / "none.db", read_only=True)
    with pytest.raises(LedgerError, match="cannot be opened"):
        Ledger(tmp_path / "no folder" / "runs.db")


def test_an_older_schema_is_migrated_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of an earlier version becomes one of this version when it is opened to write; its records stay."""
    path = tmp_path / "runs.db"
    head = keep_ledger(path)
    monkeypatch.setattr(store, "SCHEMA", 3)
    steps = {1: ("alter table runs add column note text",), 2: ("create table notes (text)", "no such statement")}
    monkeypatch.setattr(store, "MIGRATIONS", steps)
    with pytest.raises(LedgerError, match="syntax error"):
        Ledger(path)
    monkeypatch.setattr(store, "MIGRATIONS", {**steps, 2: ("create table notes (text)",)})
    with pytest.raises(
        LedgerError, match=r"has schema 1, and this version .* reads 3: it is migrated when it is first"
    ):
        Ledger(path, read_only=True)
    processes = [threading.Thread(target=lambda: Ledger(path).close()) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert Guard(Nobody(), ledger=path).run(CHAIN, {"x": 12}, run_id="chain").verified
    with Ledger(path, read_only=True) as ledger:
        assert verify_ledger(ledger, head=head).right
        assert ledger.file.read("select note from runs limit 1") == [(None,)]
    monkeypatch.setattr(store, "MIGRATIONS", {2: ("select 1",)})
    change_ledger(path, "pragma user_version = 1")
    for read_only in (True, False):
        with pytest.raises(LedgerError, match=r"has schema 1, and .* reads 3: use the version that wrote it$"):
            Ledger(path, read_only=read_only)


def test_a_truncated_file_is_an_error(tmp_path: Path) -> None:
    """Half a file is damaged, and no run is taken from it."""
    path = tmp_path / "runs.db"
    keep_ledger(path)
    change_ledger(path, "pragma wal_checkpoint(truncate)")
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[: size // 2])
    with pytest.raises(LedgerError, match="damaged"):
        faults_of(path)
    with pytest.raises(LedgerError, match="damaged"):
        Guard(Nobody(), ledger=path).run(CHAIN, {"x": 12}, run_id="chain")


def test_a_file_on_a_read_only_mount_is_named_and_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who would write is told at once what is wrong, before a model is asked; who reads is not held up."""
    path, opening = tmp_path / "runs.db", os.open
    keep_ledger(path)

    def mounted_to_read(file: Any, flags: int, *mode: Any, **options: Any) -> int:
        if flags & (os.O_RDWR | os.O_WRONLY):
            raise OSError(errno.EROFS, "Read-only file system", file)
        return opening(file, flags, *mode, **options)

    with Ledger(path, read_only=True):
        monkeypatch.setattr(os, "open", mounted_to_read)
        with pytest.raises(LedgerError, match=r"may not be written to: .* \(Read-only file system\)"):
            Guard(Nobody(), ledger=path)
        assert main(["erase", str(path), "chain"]) == 2
        assert "may not be written to" in capsys.readouterr().err
        assert main(["runs", str(path)]) == 0
        assert "chain" in capsys.readouterr().out


def _fill(ledger: Ledger) -> None:
    ((pages,),) = ledger.file.read("pragma page_count")
    ledger.file.read(f"pragma max_page_count = {pages}")


def _forbid(ledger: Ledger) -> None:
    ledger.file.read("pragma query_only = on")


@pytest.mark.parametrize(
    ("fault", "mend", "said"),
    [
        (_fill, "pragma max_page_count = 100000", "the disk is full: make room, and run again with the same run_id"),
        (_forbid, "pragma query_only = off", "it may not be written to"),
    ],
)
def test_what_cannot_be_written_is_not_used(
    tmp_path: Path, fault: Callable[[Ledger], None], mend: str, said: str
) -> None:
    """On a full or read-only disk a run ends before it uses what is not durable, and goes on when that is mended."""
    ledger = Ledger(tmp_path / "runs.db")
    asked = 0

    class Late:
        def complete(self, request: Any) -> Any:
            nonlocal asked
            asked += 1
            if asked == 3:
                fault(ledger)
            return SURE.complete(request)

    long = Procedure.parse("inputs: x\nt0 = x + 1\n" + "\n".join(f"t{n} = t{n - 1} + {n}" for n in range(1, 200)))
    result = Guard(Late(), segment=5, ledger=ledger).run(long, {"x": 1}, run_id="long")
    assert result.status == "failed"
    assert said in str(result.problem)
    assert isinstance(result.error, LedgerError)
    assert result.completed < 200
    ledger.file.read(mend)
    again = Guard(Counting(), segment=5, ledger=ledger).run(long, {"x": 1}, run_id="long")
    assert again.status == "verified"
    assert faults_of(tmp_path / "runs.db") == []


def test_nothing_is_written_behind_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that waits to write a step while its run is cancelled comes too late, and the ledger stays right."""
    ledger = Ledger(tmp_path / "runs.db")
    run = Guard(SURE, segment=1, ledger=ledger).start(CHAIN, {"x": 12}, run_id="run")
    writing = ledger.file.writing
    late: list[Any] = []

    def cancelled_first(**options: Any) -> Any:
        monkeypatch.setattr(ledger.file, "writing", writing)
        run.cancel()
        return writing(**options)

    while not late:
        action = run.next_action()
        if isinstance(action, Ask):
            run.send(ask_model(SURE, action))
        elif isinstance(action, Commit):
            monkeypatch.setattr(ledger.file, "writing", cancelled_first)
            late.append(run.perform(action))
        elif action is not None:
            run.send(run.perform(action))
    assert "has ended: nothing more is written" in str(late[0].error)
    assert verify_ledger(ledger).right
    assert Guard(SURE, ledger=ledger).run(CHAIN, {"x": 12}, run_id="run").verified


def test_a_locked_file_is_waited_for_and_then_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another program that holds the file is waited for; where it does not let go, that is said."""
    ledger = Ledger(tmp_path / "runs.db")
    other = sqlite3.connect(tmp_path / "runs.db", isolation_level=None, check_same_thread=False)
    other.execute("begin immediate")
    with monkeypatch.context() as short:
        short.setattr("stepguard.ledger.sqlite_file.BUSY_SECONDS", 0.05)
        with pytest.raises(LedgerError, match="another program has locked it"):
            Guard(SURE, ledger=ledger).run(CHAIN, {"x": 12}, run_id="run")
    timer = threading.Timer(0.1, lambda: other.execute("rollback"))
    timer.start()
    assert Guard(SURE, ledger=ledger).run(CHAIN, {"x": 12}, run_id="run").verified
    timer.join()
    other.close()


def test_a_file_that_is_held_alone_is_not_read_behind_its_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another program has it for itself, opening it to read says so, and works when it is let go."""
    path = tmp_path / "runs.db"
    with Ledger(path) as ledger:
        Guard(SURE, ledger=ledger).run(CHAIN, {"x": 12}, run_id="run")
    monkeypatch.setattr("stepguard.ledger.sqlite_file.BUSY_SECONDS", 0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("pragma locking_mode = exclusive")
    other.execute("begin immediate")
    other.execute("update runs set tokens = 1")
    with pytest.raises(LedgerError, match="another program has locked it"):
        Ledger(path, read_only=True)
    other.close()
    with Ledger(path, read_only=True) as ledger:
        assert [run.run_id for run in ledger.runs()] == ["run"]


def test_opening_a_file_twice_takes_its_log_from_nobody(tmp_path: Path) -> None:
    """What a process writes is there, however often it and others open and close the same file meanwhile."""
    path = tmp_path / "runs.db"
    guard = Guard(SURE, ledger=path)
    for number in range(2):
        guard.run(CHAIN, {"x": number}, run_id=f"run {number}")
        for read_only in (True, False):
            Ledger(path, read_only=read_only).close()
        another = "import sys, stepguard.ledger; print(len(stepguard.ledger.Ledger(sys.argv[1]).runs()))"
        done = subprocess.run([sys.executable, "-c", another, path], capture_output=True, encoding="utf-8", check=True)
        assert int(done.stdout) == number + 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not let a file go that is open")
@pytest.mark.parametrize("replaced", [True, False])
def test_a_file_that_was_taken_away_is_missed(tmp_path: Path, *, replaced: bool) -> None:
    """Who removes or replaces the file of an open ledger is told at the next step, and nothing is done that is lost."""
    path = tmp_path / "runs.db"
    ledger = Ledger(path)
    Guard(SURE, ledger=ledger).run(CHAIN, {"x": 12}, run_id="before")
    path.rename(tmp_path / "away.db")
    if replaced:
        with sqlite3.connect(path) as other:
            other.execute("create table t (x)")
        other.close()
    with pytest.raises(LedgerError, match="was removed or replaced while it was open"):
        Guard(Nobody(), ledger=ledger).run(CHAIN, {"x": 12}, run_id="run")
    (tmp_path / "away.db").rename(path)
    if replaced:  # whoever closed the other file took the log along, which had the name of its own
        with pytest.raises(LedgerError, match="-wal was removed or replaced while it was open"):
            Guard(Nobody(), ledger=ledger).run(CHAIN, {"x": 12}, run_id="run")
        ledger = Ledger(path)
    assert Guard(SURE, ledger=ledger).run(CHAIN, {"x": 12}, run_id="run").verified
    assert [each.run_id for each in ledger.runs()] == ["run", "before"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not let a file go that is open")
@pytest.mark.parametrize("end", ["-wal", "-shm"])
def test_a_file_beside_it_that_was_taken_away_is_missed(tmp_path: Path, end: str) -> None:
    """What SQLite keeps beside the file is as needed as that: who removes it is told, and what was written is there."""
    path, copy = tmp_path / "runs.db", tmp_path / "copy.db"
    ledger = Ledger(path)
    Guard(SURE, ledger=ledger).run(CHAIN, {"x": 12}, run_id="before")
    Path(f"{path}{end}").unlink()
    with pytest.raises(LedgerError, match=f"{end} was removed or replaced while it was open"):
        Guard(Nobody(), ledger=ledger).run(CHAIN, {"x": 12}, run_id="run")
    copy.write_bytes(path.read_bytes())  # as if this process died now
    if end == "-shm":
        Path(f"{copy}-wal").write_bytes(Path(f"{path}-wal").read_bytes())
    with Ledger(copy) as left:
        assert [(each.run_id, each.status) for each in left.runs()] == [("before", "verified")]
        assert verify_ledger(left).right


def test_a_forked_process_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that were forked with an open ledger neither use its file nor free its locks: two would write a run."""
    guard = Guard(SURE, ledger=tmp_path / "runs.db")
    run, dropped = (guard.start(CHAIN, {"x": 12}, run_id=name) for name in ("run", "dropped"))
    with monkeypatch.context() as forked:
        forked.setattr(os, "getpid", lambda: 1)
        with pytest.raises(LedgerError, match="opened before this process was forked"):
            guard.run(CHAIN, {"x": 12}, run_id="other")
        del dropped
        gc.collect()
    for name in ("run", "dropped"):
        with pytest.raises(RunConflict, match="is under way"):
            Guard(SURE, ledger=tmp_path / "runs.db").run(CHAIN, {"x": 12}, run_id=name)
    assert guard.drive(run).status == "verified"


def test_a_clock_that_goes_back_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall clock is for people: runs go on, and records keep their order, whatever it says."""
    times = iter(range(10**9, 0, -3600))
    monkeypatch.setattr(time, "time", lambda: float(next(times)))
    keep_ledger(tmp_path / "runs.db")
    assert Guard(Nobody(), ledger=tmp_path / "runs.db").run(CHAIN, {"x": 12}, run_id="chain").verified
    assert faults_of(tmp_path / "runs.db") == []


def test_a_run_that_could_not_be_begun_leaves_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the very first record does not become durable, the name is as free as before."""
    ledger = Ledger(tmp_path / "runs.db")
    commit: Any = ledger.file._connection  # type: ignore[attr-defined]

    class Full:
        def __getattr__(self, name: str) -> Any:
            return getattr(commit, name)

        def execute(self, sql: str, *arguments: Any) -> Any:
            if sql == "commit":
                raise sqlite3.OperationalError("database or disk is full")
            return commit.execute(sql, *arguments)

    with monkeypatch.context() as full:
        full.setattr(ledger.file, "_connection", Full())
        with pytest.raises(LedgerError, match="disk is full"):
            Guard(SURE, ledger=ledger).run(CHAIN, {"x": 12}, run_id="run")
    assert Guard(SURE, ledger=ledger).run(CHAIN, {"x": 12}, run_id="run").verified


def test_a_run_in_a_copy_of_the_file_is_under_way_nowhere(tmp_path: Path) -> None:
    """A backup that was made while a run was under way lists it as interrupted, and it can be gone on with there."""
    run = Guard(SURE, ledger=tmp_path / "runs.db").start(CHAIN, {"x": 12}, run_id="run")
    with sqlite3.connect(tmp_path / "runs.db") as source, sqlite3.connect(tmp_path / "copy.db") as copy:
        source.backup(copy)
    source.close()
    copy.close()
    statuses = []
    for name in ("runs.db", "copy.db"):
        with Ledger(tmp_path / name, read_only=True) as ledger:
            statuses.append(ledger.runs()[0].status)
    assert statuses == ["running", "interrupted"]
    assert Guard(SURE, ledger=tmp_path / "copy.db").run(CHAIN, {"x": 12}, run_id="run").verified
    run.cancel()
