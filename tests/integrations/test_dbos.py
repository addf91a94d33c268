"""Runs in queues of DBOS: every run once, in order, to its end, whoever dies; nothing of it stands in the queues."""

from __future__ import annotations

import contextlib
import io
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ledger_harness import CHAIN, SURE, change_ledger, payment

from stepguard import Guard, Ladder, Procedure
from stepguard.backends import Completion, Request
from stepguard.cli import main
from stepguard.errors import BackendError, ConfigError, LedgerError, RunConflict
from stepguard.integrations.dbos import Jobs, Worker
from stepguard.integrations.dbos import jobs as jobs_module
from stepguard.ledger import Ledger, verify_ledger
from stepguard.procedure import Tool
from stepguard.repair.rungs import another_model

pytest.importorskip("dbos", reason="the extra dbos is not installed")

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "worker_kills.py"
SECONDS = 60.0
"""How long a test waits for what should come at once."""


@contextlib.contextmanager
def working(place: Path | str, /, *procedures: Procedure, model: Any = SURE, **options: Any) -> Iterator[Worker]:
    """A worker in this process."""
    worker = Worker(Guard(model, segment=1, ledger=place), procedures, **{"poll": 0.05, **options})
    worker.start()
    try:
        yield worker
    finally:
        worker.stop(seconds=10)


def until(reached: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + SECONDS
    while not reached():
        assert time.monotonic() < end, "it does not come about"
        time.sleep(0.02)


def status(jobs: Jobs, run_id: str) -> str:
    """That of a run in the ledger."""
    return str(next(each.status for each in jobs.ledger.runs() if each.run_id == run_id))


class Asked:
    """A model that notes the inputs and steps that it is asked, and may be held up.

    Attributes:
        steps: what was asked, in order.
        free: set where it answers.
    """

    def __init__(self) -> None:
        self.steps: list[tuple[str, str]] = []
        self.free = threading.Event()
        self.free.set()

    def complete(self, request: Request) -> Completion:
        """See `SyncBackend.complete`."""
        self.steps += [(str(request.values.get("x")), step.id) for step in request.steps]
        assert self.free.wait(SECONDS)
        return SURE.complete(request)


def test_runs_are_carried_out_and_parked(runs: Path | str) -> None:
    """A run that waits holds no worker; answered in any way it goes on. Its tool is called once, and its inputs stand
    in the ledger alone."""
    calls: list[tuple[Any, ...]] = []
    pay = payment(calls, approval=True)
    with Jobs(runs) as jobs, working(runs, pay, runs=1) as worker:
        jobs.enqueue(pay, {"x": 4711}, run_id="waits")
        until(lambda: status(jobs, "waits") == "waiting")
        jobs.enqueue(CHAIN, {"x": 12}, run_id="chain")
        until(lambda: status(jobs, "chain") == "verified")
        until(lambda: not worker.driving)
        with Ledger(runs) as other:
            other.answer("waits", "approve_receipt", "yes")
        until(lambda: status(jobs, "waits") == "verified")
        until(lambda: jobs.job("waits").status == "SUCCESS")  # type: ignore[union-attr]
        job = jobs.job("waits")
        assert job is not None
        assert (job.worker, job.queue, job.priority, job.error) == (worker.name, "stepguard", 100, None)
        assert calls == [(9422,)]
        verified = verify_ledger(jobs.ledger)
        assert (verified.right, verified.rechecked) == (True, 2)
        assert "4711" not in str([each.__dict__ for each in jobs._client.list_workflows()])
        jobs.forget(["waits"])
        assert jobs.job("waits") is None
        jobs.enqueue(CHAIN, {"x": 12}, run_id="chain")  # what has ended gives its result again
        until(lambda: jobs.job("chain").status == "SUCCESS")  # type: ignore[union-attr]
        assert jobs._newest("chain").workflow_id == "chain#2"


def test_a_name_is_of_one_run(tmp_path: Path) -> None:
    """The same run twice is one, however it is queued; another one under its name, and an erased one, are refused."""
    model = Asked()
    runs = tmp_path / "runs.db"
    with Jobs(runs) as jobs:
        pair = [Jobs(runs), jobs]
        threads = [
            threading.Thread(target=each.enqueue, args=(CHAIN, {"x": 1}), kwargs={"run_id": "r"}) for each in pair
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        pair[0].close()
        jobs.enqueue(CHAIN, {"x": "1"}, run_id="r")
        jobs.enqueue(CHAIN, {"x": 1}, run_id="r#1")  # which begins as the workflows of the other do
        with pytest.raises(RunConflict, match=r"begun with other inputs \(x\)"):
            jobs.enqueue(CHAIN, {"x": 2}, run_id="r")
        with pytest.raises(RunConflict, match="begun with another procedure"):
            jobs.enqueue(Procedure.parse("inputs: x\nt1 = x + 1"), {"x": 1}, run_id="r")
        jobs.enqueue(CHAIN, {"x": 5}, run_id="erased")
        jobs.ledger.erase(["erased"])
        with pytest.raises(RunConflict, match="was erased"):
            jobs.enqueue(CHAIN, {"x": 5}, run_id="erased")
        for wrong in ({"priority": 0}, {"priority": True}, {"queue": "a\nb"}, {"run_id": ""}):
            with pytest.raises(ConfigError):
                jobs.enqueue(CHAIN, {"x": 1}, **{"run_id": "new", **wrong})  # type: ignore[arg-type]
        with working(runs, model=model):
            until(lambda: {status(jobs, "r"), status(jobs, "r#1")} == {"verified"})
            until(lambda: jobs.job("erased").status == "ERROR")  # type: ignore[union-attr]
        assert "was erased" in str(jobs.job("erased"))
        assert len(model.steps) == 12
        assert verify_ledger(jobs.ledger).right


def test_erasing_takes_the_names_out_of_the_queues(runs: Path | str) -> None:
    """Who erases runs, or a person after whom one is named, need not think of the queues: no name of theirs is left."""
    with Jobs(runs) as jobs, working(runs):
        for name in ("mail to anna@example.com", "old", "kept"):
            jobs.enqueue(CHAIN, {"x": 1}, run_id=name)
        until(lambda: {each.status for each in jobs.ledger.runs()} == {"verified"})
        until(lambda: {each.status for each in map(jobs.job, ("old", "kept")) if each} == {"SUCCESS"})
    assert main(["erase", str(runs), "--person", "anna@example.com"]) == 0
    assert main(["erase", str(runs), "old"]) == 0
    with Jobs(runs) as jobs:
        assert jobs.job("kept") is not None
        assert [jobs.job(name) for name in ("mail to anna@example.com", "old")] == [None, None]
        assert verify_ledger(jobs.ledger).right
    if isinstance(runs, Path):
        assert not any(b"anna@" in each.read_bytes() for each in runs.parent.iterdir())


def test_urgent_runs_come_first_and_limits_hold(tmp_path: Path) -> None:
    """Runs begin by their priority, and no more at a time than all workers may together."""
    model = Asked()
    runs = tmp_path / "runs.db"
    with Jobs(runs) as jobs:
        for x, priority in ((1, 30), (2, 10), (3, 20), (4, 40)):
            jobs.enqueue(CHAIN, {"x": x}, run_id=f"run {x}", priority=priority)
        with working(runs, model=model, runs=4, total=1):
            until(lambda: status(jobs, "run 4") == "verified")
        assert [x for x, step in model.steps if step == "t1"] == ["2", "3", "1", "4"]
        assert [step for _, step in model.steps] == [f"t{number}" for number in range(1, 7)] * 4


def test_a_rate_counts_the_calls_of_all_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many runs and workers there are, the model is called no more often; who waits for a turn is not lost."""
    monkeypatch.setattr("stepguard.integrations.dbos.worker._AGAIN_SECONDS", 0.2)
    model, runs = Asked(), tmp_path / "runs.db"
    with Jobs(runs) as jobs:
        for x in range(3):
            jobs.enqueue(CHAIN, {"x": x}, run_id=f"run {x}")
        for _ in range(2):  # workers, of which the second finds the turn taken by the first
            with working(runs, model=model, rate=(1, 3600.0)) as worker:
                until(lambda: len(worker._driven) == 3)
                until(lambda: len(model.steps) == 1)
            assert len(model.steps) == 1
        with working(runs, model=model, rate=(1_000_000, 1.0)):
            until(lambda: {status(jobs, f"run {x}") for x in range(3)} == {"verified"})
        assert len(model.steps) == 18
        assert verify_ledger(jobs.ledger).right


def test_a_rate_counts_each_endpoint_by_itself_over_all_queues(tmp_path: Path) -> None:
    """A fallback and a rung count for their own endpoint; who asks the same one from another queue waits as well."""
    asked: list[str] = []
    runs, rate = tmp_path / "runs.db", (1, 3600.0)

    def named(name: str, reply: Callable[[Request], Completion]) -> Any:
        def complete(_: object, request: Request) -> Completion:
            asked.append(name)
            return reply(request)

        return type(name, (), {"name": name, "complete": complete})()

    def down(_: Request) -> Completion:
        raise BackendError("down", retryable=False)

    wrong = named("fallback", lambda request: Completion(json.dumps({each.id: "0 + 0 = 0" for each in request.steps})))
    rung = another_model(named("rung", SURE.complete))
    guard = Guard(named("main", down), fallback=wrong, repair=Ladder([rung]), segment=1, ledger=runs)
    with Jobs(runs) as jobs:
        for queue in ("stepguard", "other"):
            jobs.enqueue(CHAIN, {"x": 1}, run_id=queue, queue=queue)
        for queue in ("stepguard", "other"):
            worker = Worker(guard, queue=queue, rate=rate, poll=0.05)
            worker.start()
            try:
                until(lambda: len(asked) >= 3)
                until(lambda: status(jobs, queue) == "running")  # noqa: B023
                time.sleep(0.3)
                assert asked == ["main", "fallback", "rung"]
            finally:
                worker.stop(seconds=10)


def test_a_run_whose_process_died_before_it_was_queued_is_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that is in the ledger and in no queue is put into its own, and into no other; a cancelled one is not."""
    monkeypatch.setattr("stepguard.integrations.dbos.worker._UNCLAIMED_SECONDS", 0.0)
    runs = tmp_path / "runs.db"
    with Jobs(runs) as jobs:
        jobs.enqueue(CHAIN, {"x": 1}, run_id="cancelled")
        jobs.cancel("cancelled")
        for name, queue in (("left", "stepguard"), ("of others", "other")):
            with monkeypatch.context() as dying:
                dying.setattr(jobs, "_next", lambda *_, **__: None)
                jobs.enqueue(CHAIN, {"x": 2}, run_id=name, queue=queue, priority=7)
        with working(runs):
            until(lambda: status(jobs, "left") == "verified")
        assert (jobs.job("left").priority, jobs.job("of others")) == (7, None)  # type: ignore[union-attr]
        assert status(jobs, "cancelled") == "queued"


def test_a_run_that_kills_its_workers_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a dead worker left is queued behind that, until too many have died of it."""
    monkeypatch.setattr("stepguard.integrations.dbos.jobs._DEATHS", 1)
    with Jobs(tmp_path / "runs.db") as jobs:
        jobs.enqueue(CHAIN, {"x": 1}, run_id="run", priority=7)
        for workflows in (2, 2):
            jobs._take_over(jobs._newest("run"))
            assert len(jobs._workflows("run")) == workflows
        assert (jobs.job("run").status, jobs.job("run").priority) == ("CANCELLED", 7)  # type: ignore[union-attr]


def test_a_run_is_cancelled_where_nothing_is_cut_off(tmp_path: Path) -> None:
    """One that is queued never begins; one in a call of a tool ends behind it, with what the tool gave."""
    calling, go_on = threading.Event(), threading.Event()

    def pay(amount: int) -> str:
        calling.set()
        assert go_on.wait(SECONDS)
        return f"paid {amount}"

    procedure = Procedure.parse("inputs: x\nreceipt: text = tool pay(amount=x)\ny = x + 1", tools={"pay": Tool(pay)})
    model, runs = Asked(), tmp_path / "runs.db"
    with Jobs(runs) as jobs:
        jobs.enqueue(CHAIN, {"x": 1}, run_id="never")
        assert jobs.cancel("never")
        assert not jobs.cancel("never")
        assert not jobs.cancel("nobody")
        with working(runs, procedure, model=model) as worker:
            jobs.enqueue(procedure, {"x": 7}, run_id="paying")
            assert calling.wait(SECONDS)
            assert jobs.cancel("paying")
            until(lambda: "paying#1" in worker._cancelled)
            go_on.set()
            until(lambda: status(jobs, "paying") == "failed")
        assert model.steps == []
        summary = jobs.ledger.runs()[0]
        assert (summary.reason, status(jobs, "never")) == ("cancelled", "queued")
        assert verify_ledger(jobs.ledger, procedures=[procedure]).right
        with working(runs, procedure, model=model):  # who wants it after all has it gone on with
            go_on.clear()
            jobs.enqueue(procedure, {"x": 7}, run_id="paying")
            until(lambda: status(jobs, "paying") == "verified")


def test_a_worker_without_a_tool_says_so(tmp_path: Path) -> None:
    """A worker that lacks the tools of a procedure, or has it otherwise, names that; queued again another does it."""
    runs, calls = tmp_path / "runs.db", []  # type: tuple[Path, list[tuple[Any, ...]]]
    pay = payment(calls)
    with Jobs(runs) as jobs:
        jobs.enqueue(pay, {"x": 3}, run_id="run")
        for others, said in (([], "that are not known here"), ([payment(calls, approval=True)], "begun with another")):
            with working(runs, *others):
                until(lambda: jobs.job("run").status == "ERROR")  # type: ignore[union-attr]
                assert said in str(jobs.job("run"))
            jobs.enqueue(pay, {"x": 3}, run_id="run")
        with working(runs, pay):
            until(lambda: status(jobs, "run") == "verified")
    assert calls == [(6,)]


@pytest.mark.parametrize("lost", ["before", "within"])
def test_a_ledger_that_does_not_answer_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """Where the ledger fails, or somebody else drives the run, it is tried again in a while, and is not lost."""
    monkeypatch.setattr("stepguard.integrations.dbos.worker._AGAIN_SECONDS", 0.2)
    runs = tmp_path / "runs.db"
    with Jobs(runs) as jobs:
        elsewhere = Guard(SURE, ledger=runs)
        under_way = elsewhere.start(CHAIN, {"x": 12}, run_id="elsewhere")
        jobs.enqueue(CHAIN, {"x": 12}, run_id="elsewhere")
        with working(runs) as worker:
            file: Any = worker._ledger.file
            writing, failures = file.writing, [2]

            def failing(**options: Any) -> Any:
                if failures[0] and (lost == "before" or threading.current_thread() is not threading.main_thread()):
                    failures[0] -= 1
                    raise LedgerError("the disk is full")
                return writing(**options)

            monkeypatch.setattr(file, "writing", failing)
            jobs.enqueue(CHAIN, {"x": 1}, run_id="run")
            until(lambda: status(jobs, "run") == "verified")
            until(lambda: jobs_module.number_of(jobs._newest("elsewhere")) > 2)
            assert elsewhere.drive(under_way).status == "verified"
            until(lambda: jobs.job("elsewhere").status == "SUCCESS")  # type: ignore[union-attr]
        assert failures == [0]
        assert verify_ledger(jobs.ledger).right


def test_arguments_are_named(tmp_path: Path) -> None:
    """What cannot work is refused before anything is begun; a process has one worker."""
    guard = Guard(SURE, ledger=tmp_path / "runs.db")
    with pytest.raises(ConfigError, match="needs a guard with a ledger"):
        Worker(Guard(SURE))
    for wrong in ({"runs": 0}, {"total": 0}, {"rate": (0, 1.0)}, {"rate": (1, 0.0)}, {"poll": 0.0}, {"queue": ""}):
        with pytest.raises(ConfigError):
            Worker(guard, **wrong)
    with working(tmp_path / "runs.db"), pytest.raises(ConfigError, match="this process has a worker already"):
        Worker(guard).start()
    if "psycopg" in sys.modules:
        with pytest.raises(LedgerError) as caught:
            Jobs("postgresql://u:hunter2@127.0.0.1:1/base")
        assert "hunter2" not in str(caught.value)


def test_queues_lie_beside_their_ledger(database: str) -> None:
    """Two ledgers in one database have queues of their own, and the names of the runs are all that stands there."""
    other = f"{database}b"
    for place, x in ((database, 1), (other, 2)):
        with Jobs(place) as jobs:
            jobs.enqueue(CHAIN, {"x": x}, run_id="run")
    with Jobs(database) as jobs, Jobs(other) as others, working(database):
        until(lambda: status(jobs, "run") == "verified")
        assert status(others, "run") == "queued"
    change_ledger(database, f"drop schema {database.rpartition('=')[2]}_queue cascade")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent")
def test_the_commands_queue_and_carry_out(tmp_path: Path) -> None:
    """A worker is started and ended from the command line, and so are runs queued, cancelled and listed."""
    (tmp_path / "p.txt").write_text("name: demo\ninputs: x\na = x + 1", encoding="utf-8")
    runs = str(tmp_path / "runs.db")

    def stepguard(*arguments: str) -> tuple[int, str]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = main(arguments)
        return code, out.getvalue()

    enqueue = ("enqueue", runs, str(tmp_path / "p.txt"), "--input", "x=4", "--run-id")
    assert stepguard(*enqueue, "one") == (0, "one is queued\n")
    assert stepguard(*enqueue, "two") == (0, "two is queued\n")
    assert stepguard("cancel", runs, "two") == (0, "two is cancelled\n")
    assert stepguard("cancel", runs, "two") == (2, "stepguard: error: the run 'two' is neither queued nor under way\n")
    assert stepguard("worker", runs, "--rate", "fast")[0] == 2
    command = [sys.executable, "-m", "stepguard.cli", "worker", runs, "--runs", "2", "--rate", "50/1"]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with Ledger(runs) as ledger:
        until(lambda: ledger.runs()[-1].status == "verified")
    worker.send_signal(signal.SIGTERM)
    out, _ = worker.communicate(timeout=SECONDS)
    assert (worker.returncode, b"stepguard carries out stepguard with SIMULATED MODEL" in out) == (0, True)
    assert "queued" in stepguard("runs", runs, "--status", "queued")[1]


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
@pytest.mark.slow
@pytest.mark.parametrize("forget", [False, True])
def test_killed_workers_lose_nothing(database: str, *, forget: bool) -> None:
    """Two workers, one killed again and again: every run ends, nothing is done twice. Ones that forget are seen."""
    command = [sys.executable, str(SCRIPT), "--kills", "2" if forget else "5", "--address", database]
    done = subprocess.run([*command, *["--forget"] * forget], capture_output=True, encoding="utf-8", check=False)
    report = json.loads(done.stdout)
    assert (done.returncode, report["kills"]) == (int(forget), 2 if forget else 5), (report, done.stderr)
    counts = [report[name] for name in ("asked_again", "called_twice", "wrong", "faults")]
    assert (sum(counts[:2]) > 0) if forget else counts == [0] * 4, (report, done.stderr)
