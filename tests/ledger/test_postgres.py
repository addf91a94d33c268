"""What goes wrong with a ledger in Postgres is a clear error or a safe recovery."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from multiprocessing import get_context
from typing import Any

import pytest
from ledger_harness import CHAIN, CUT_OFF, SURE, Counting, Nobody, change_ledger, faults_of, keep_ledger

from stepguard import Guard, Procedure
from stepguard.cli import main
from stepguard.errors import ConfigError, LedgerError, RunConflict
from stepguard.ledger import Ledger, store, verify_ledger

SETTLE = "select pg_sleep(0.05)"
"""A connection that is ended is so a moment later."""


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://u:hunter2@127.0.0.1:1/base", "connection"),
        ("postgresql://u:hunter2@127.0.0.1:x/base", "port"),
        ("postgresql://u:hunter2@127.0.0.1:1/base?password=hunter2", "connection"),
        ("postgresql://u:hunter2@127.0.0.1:1/base?shema=x", "shema"),
        ("postgresql://u:hunter2@127.0.0.1:1/base?schema=x;drop table runs", "no ledger can be kept in a schema"),
        ("postgresql://u:hunter2@127.0.0.1:1/base?schema=pg_catalog", "no ledger can be kept in a schema"),
        (f"postgresql://u:hunter2@127.0.0.1:1/base?schema={'x' * 56}", "at most 55"),
        ("postgresql://u:hunter2@[::1/base", "no address"),
    ],
)
def test_an_address_that_leads_nowhere_is_named_without_its_password(address: str, said: str) -> None:
    """What is no address, and a server that is not there, are said, and no password is in it."""
    pytest.importorskip("psycopg")
    with pytest.raises((ConfigError, LedgerError)) as caught:
        Ledger(address)
    assert said in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_password_is_shown_nowhere(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What people see of a ledger, in Python and of a command that prints where it is, holds no password."""
    keep_ledger(database)
    address = database.replace("postgres:@", "postgres:hunter2@")
    with Ledger(address) as ledger, pytest.raises(ConfigError) as caught:
        ledger.answer("nobody", "step", 1)
    assert "hunter2" not in f"{ledger!r} {ledger.path} {caught.value}"
    assert main(["runs", address]) == 0
    assert main(["answer", address, "nobody", "step", "1"]) == 2
    assert "hunter2" not in "".join(capsys.readouterr())


def test_what_is_no_ledger_is_refused_and_left_alone(postgres: str, database: str) -> None:
    """A schema of something else, one that is not there and one of a later version are named."""
    with pytest.raises(LedgerError, match="is not there, or empty"):
        Ledger(database, read_only=True)
    schema = database.rpartition("=")[2]
    change_ledger(f"{postgres}&schema=public", f"create schema {schema}", f"create table {schema}.runs (x integer)")
    with pytest.raises(LedgerError, match="is of something else"):
        Ledger(database)
    change_ledger(database, "drop table runs")
    keep_ledger(database)
    change_ledger(database, "update stepguard_ledger set version = 99")
    for read_only in (True, False):
        with pytest.raises(LedgerError, match=r"has schema 99, and this version of stepguard reads 1.* or a later one"):
            Ledger(database, read_only=read_only)
    with pytest.raises(LedgerError, match="does not exist"):
        Ledger(database.replace("/postgres?", "/nowhere?"))


def test_an_older_schema_is_migrated_whole_or_not_at_all(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger of an earlier version becomes one of this version when it is opened to write; its records stay."""
    head = keep_ledger(database)
    monkeypatch.setattr(store, "SCHEMA", 3)
    steps = {1: ("alter table runs add column note blob",), 2: ("create table notes (x text)", "no such statement")}
    monkeypatch.setattr(store, "MIGRATIONS", steps)
    with pytest.raises(LedgerError, match="syntax error"):
        Ledger(database)
    monkeypatch.setattr(store, "MIGRATIONS", {**steps, 2: ("create table notes (x text)",)})
    with pytest.raises(LedgerError, match="it is migrated when it is first"):
        Ledger(database, read_only=True)
    processes = [threading.Thread(target=lambda: Ledger(database).close()) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert Guard(Nobody(), ledger=database).run(CHAIN, {"x": 12}, run_id="chain").verified
    with Ledger(database, read_only=True) as ledger:
        assert verify_ledger(ledger, head=head).right
        assert ledger.file.read("select note from runs limit 1") == [(None,)]


def test_a_user_needs_rights(postgres: str, database: str) -> None:
    """Who may only read can read and verify, and is told so where writing is needed; who may not even that, as well."""
    keep_ledger(database)
    schema = database.rpartition("=")[2]
    name = f"reader_{schema}"
    change_ledger(database, f"create role {name} login")
    theirs = database.replace("//postgres:", f"//{name}:")
    with pytest.raises(LedgerError, match=r"this user may not do that: grant it"):
        Ledger(theirs)
    change_ledger(
        database,
        f"grant usage on schema {schema} to {name}",
        f"grant select on all tables in schema {schema} to {name}",
    )
    with Ledger(theirs, read_only=True) as ledger:
        assert (verify_ledger(ledger).right, len(ledger.runs())) == (True, 4)
    with pytest.raises(LedgerError, match=r"this user may not do that: grant it"):
        Guard(SURE, ledger=theirs).run(CHAIN, {"x": 1}, run_id="new")
    change_ledger(database, f"grant insert, update, delete on all tables in schema {schema} to {name}")
    assert Guard(SURE, ledger=theirs).run(CHAIN, {"x": 1}, run_id="new").verified
    with Ledger(theirs) as ledger, pytest.raises(LedgerError, match="were not rewritten and still hold what was eras"):
        ledger.erase(["new"])
    with Ledger(database) as ledger:
        assert ledger.erase(["new"]) == 0
    change_ledger(database, f"drop owned by {name}", f"drop role {name}")


class Cutting:
    """A model during whose third call every connection is cut off."""

    def __init__(self, database: str) -> None:
        self.database = database
        self.asked = 0

    def complete(self, request: Any) -> Any:
        self.asked += 1
        if self.asked == 3:
            change_ledger(self.database, CUT_OFF)
        return SURE.complete(request)


def test_a_connection_that_was_lost_is_made_again(database: str) -> None:
    """Between two records a lost connection costs nothing: the next one is written over a new one, with the locks."""
    ledger = Ledger(database)
    model = Cutting(database)
    assert Guard(model, segment=1, ledger=ledger).run(CHAIN, {"x": 12}, run_id="run").verified
    assert model.asked == 6
    under_way = Guard(SURE, segment=1, ledger=ledger).start(CHAIN, {"x": 1}, run_id="under way")
    change_ledger(database, CUT_OFF, SETTLE)
    assert ledger.runs()[0].status == "running"  # which connects anew
    with pytest.raises(RunConflict, match="is under way"):
        Guard(SURE, ledger=database).run(CHAIN, {"x": 1}, run_id="under way")
    under_way.cancel()
    assert faults_of(database) == []


class _Cut:
    """A connection that is cut off around a commit."""

    def __init__(self, connection: Any, cut: Callable[[Any], None]) -> None:
        self._connection = connection
        self._cut = cut

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, sql: str, *given: Any) -> Any:
        if sql == "commit":
            self._cut(self._connection)
        return self._connection.execute(sql, *given)


@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_whose_connection_was_lost_is_looked_up(database: str, *, committed: bool) -> None:
    """Where nobody said whether a step was committed, the ledger looks: it goes on, or says that nothing was."""
    ledger = Ledger(database)
    file: Any = ledger.file

    def cut(connection: Any) -> None:
        if committed:
            connection.execute("commit")
        pid = connection.info.backend_pid
        change_ledger(database, f"select pg_terminate_backend({pid})", SETTLE)

    class Late:
        asked = 0

        def complete(self, request: Any) -> Any:
            self.asked += 1
            if self.asked == 3:
                file._connection = _Cut(file._connection, cut)
            return SURE.complete(request)

    result = Guard(Late(), segment=1, ledger=ledger).run(CHAIN, {"x": 12}, run_id="run")
    if committed:
        assert result.status == "verified"
    else:
        assert (result.status, isinstance(result.error, LedgerError)) == ("failed", True)
        assert "the connection was lost, and nothing was written" in str(result.problem)
    again = Counting()
    assert Guard(again, segment=1, ledger=database).run(CHAIN, {"x": 12}, run_id="run").verified
    assert not {"t1", "t2"} & {*again.asked}
    assert faults_of(database) == []


def test_a_server_that_does_not_come_back_leaves_no_doubt(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a commit cannot be looked up either, that is said, and the ledger is of use when the server is back."""
    monkeypatch.setattr("stepguard.ledger.postgres._LOST_SECONDS", 0.2)
    ledger = Ledger(database)
    file: Any = ledger.file
    options = dict(file._options)

    def cut(connection: Any) -> None:
        file._options["host"] = "/nowhere"
        connection.close()

    def write() -> None:
        with ledger.file.writing():
            file._connection = _Cut(file._connection, cut)

    with pytest.raises(LedgerError, match="nobody can say whether it was"):
        write()
    file._options.update(options)
    assert Guard(SURE, ledger=ledger).run(CHAIN, {"x": 12}, run_id="run").verified


def _race(database: str, number: int, answers: Any) -> None:
    guard = Guard(SURE, segment=1, ledger=database)
    for run in range(8):
        try:
            answers.put((run, guard.run(CHAIN, {"x": run}, run_id=f"run {run}").answer))
        except RunConflict:
            answers.put((run, None))
    guard.run(CHAIN, {"x": 100 + number}, run_id=f"own {number}")


def test_processes_race_for_runs_and_share_the_chain(database: str) -> None:
    """Of many processes one drives each run; all write into one chain, which is right afterwards."""
    context = get_context("spawn")
    answers = context.Queue()
    Ledger(database).close()
    processes = [context.Process(target=_race, args=(database, number, answers)) for number in range(3)]
    for process in processes:
        process.start()
    given = [answers.get(timeout=60) for _ in range(24)]
    for process in processes:
        process.join()
    right = {run: Guard(SURE).run(CHAIN, {"x": run}).answer for run in range(8)}
    assert {run for run, answer in given if answer is not None} == {*range(8)}
    assert all(answer in (None, right[run]) for run, answer in given)
    with Ledger(database, read_only=True) as ledger:
        verified = verify_ledger(ledger)
    assert (verified.right, verified.rechecked) == (True, 11)


def test_what_was_erased_is_no_longer_in_the_tables(database: str) -> None:
    """Erasing rewrites the tables: nothing of the run stands in their files."""
    procedure = Procedure.parse("inputs: letter: text, x\nn = x + 1")
    Guard(SURE, ledger=database).run(procedure, {"letter": "Eleonore Grauzahn", "x": 4711}, run_id="case 1")

    def files(ledger: Ledger) -> bytes:
        change_ledger(database, "checkpoint")
        names = ("records", "runs", "procedures")
        sql = "select pg_read_binary_file(pg_relation_filepath('{0}')), pg_relation_size('{0}')"
        return b"".join(ledger.file.read(sql.format(name))[0][0] for name in names)

    with Ledger(database) as ledger:
        assert b"Grauzahn" in files(ledger)
        ledger.erase(["case 1"])
        assert b"Grauzahn" not in files(ledger)
        assert verify_ledger(ledger).right


def test_odd_texts_are_kept(database: str) -> None:
    """What Postgres does not hold as text, such as NUL, is escaped, and what looks like a mark for a value is none."""
    procedure = Procedure.parse("name: odd\ninputs: letter: text, x\nn = x + 1")
    letter = "a\0b ? %s %% é"
    for _ in range(2):
        result = Guard(SURE, ledger=database).run(procedure, {"letter": letter, "x": 1}, run_id="50% ?")
        assert (result.status, result.answer) == ("verified", 2)
    assert faults_of(database) == []
    with Ledger(f"{database.rpartition('=')[0]}=order") as ledger:  # a word of SQL
        assert ledger.runs() == []
    assert importlib.import_module("stepguard.ledger.records").storable("a\0b\ud800") == "a\\x00b\\ud800"
