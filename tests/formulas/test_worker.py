"""The worker process: what takes too long is killed, and nothing else suffers from it."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stepguard.errors import ConfigError
from stepguard.formulas import worker
from stepguard.formulas.deciding import Decider
from stepguard.formulas.parsing import parse_formula
from stepguard.formulas.trees import to_data
from stepguard.formulas.worker import WorkerFailed, WorkerPool, shared_pool

pytestmark = pytest.mark.once

HARD = "(sin(x) + cos(y) + tan(x*y))^40*(x + sqrt(y^2 + 1))^40"
"""What sympy expands for longer than anyone waits."""

LINUX = sys.platform == "linux"

EASY = "sin(x)^2 + cos(x)^2 - 1"


def zero(text: str) -> dict[str, object]:
    """The question whether a formula is zero."""
    return {"op": "zero", "tree": to_data(parse_formula(text)), "assume": {}}


def alive(pid: int) -> bool:
    """Whether a process runs, and is not only waiting to be forgotten."""
    try:
        if LINUX:
            return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> bool:
    """Whether a condition comes true in time."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    """A pool whose worker, once started, answers the tests one after the other; started with a secret around."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "secret")
        made = WorkerPool(size=4, spare=1)
        made.ask(zero(EASY), seconds=20)
    yield made
    made.close()


def test_it_proves_and_does_not_refute(pool: WorkerPool) -> None:
    """An identity is proved; of what is none nothing is said."""
    assert pool.ask(zero(EASY), seconds=20) == {"proved": True}
    assert pool.ask(zero("sin(x) - x"), seconds=20) == {"proved": False}


@pytest.mark.skipif(not LINUX, reason="the environment of a process is read from /proc")
def test_secrets_are_not_handed_on(pool: WorkerPool) -> None:
    """A worker gets none of the environment but what it needs to start."""
    (pid,) = pool.pids
    assert b"secret" not in Path(f"/proc/{pid}/environ").read_bytes()


def test_one_worker_answers_many_requests(pool: WorkerPool) -> None:
    """A worker is kept, so that sympy is loaded once."""
    pids = pool.pids
    pool.ask(zero("sin(x) - x"), seconds=20)
    assert pool.pids == pids
    assert len(pids) == 1


@pytest.mark.slow
def test_what_takes_too_long_is_killed_and_the_next_request_answered(pool: WorkerPool) -> None:
    """A request that hangs ends in time, its process is gone, and the next one finds another."""
    (pid,) = pool.pids
    began = time.monotonic()
    with pytest.raises(WorkerFailed, match="within") as caught:
        pool.ask(zero(HARD), seconds=0.3)
    assert caught.value.late
    assert time.monotonic() - began < 15
    assert not alive(pid)
    assert pool.ask(zero(EASY), seconds=20) == {"proved": True}


@pytest.mark.slow
def test_hanging_requests_do_not_keep_others_waiting() -> None:
    """Four requests hang on a pool of more; an easy one is answered meanwhile, and all of them end."""
    pool = WorkerPool(size=5, spare=2)
    try:
        with ThreadPoolExecutor(5) as threads:
            hanging = [threads.submit(_outcome, pool, HARD, 8.0) for _ in range(4)]
            assert wait_until(lambda: len(pool.pids) == 4, 60)
            assert pool.ask(zero(EASY), seconds=8) == {"proved": True}
            assert [each.result() for each in hanging] == ["late"] * 4
        assert len(pool.pids) <= 2
    finally:
        pool.close()


def _outcome(pool: WorkerPool, text: str, seconds: float) -> str:
    try:
        return str(pool.ask(zero(text), seconds=seconds)["proved"])
    except WorkerFailed as error:
        return "late" if error.late else str(error)


@pytest.mark.slow
def test_a_full_pool_is_waited_for_only_so_long() -> None:
    """Where every worker is busy, a request waits as long as it may work, and then says so."""
    pool = WorkerPool(size=1, spare=1)
    try:
        with ThreadPoolExecutor(1) as threads:
            hanging = threads.submit(_outcome, pool, HARD, 5.0)
            assert wait_until(lambda: len(pool.pids) == 1, 60)
            with pytest.raises(WorkerFailed, match="busy"):
                pool.ask(zero(EASY), seconds=0.2)
            assert hanging.result() == "late"
        assert pool.ask(zero(EASY), seconds=20) == {"proved": True}
    finally:
        pool.close()


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="other systems may not keep limits of memory")
def test_memory_is_limited() -> None:
    """A request that takes too much memory fails, and the next one is answered."""
    pool = WorkerPool(size=1, spare=1, memory=1 << 28)
    tree = to_data(parse_formula("(a + b + c + d + f + g)^300"))
    try:
        with pytest.raises(WorkerFailed, match="memory"):
            pool.ask({"op": "zero", "tree": tree, "assume": {}}, seconds=60)
        assert pool.ask(zero(EASY), seconds=20) == {"proved": True}
    finally:
        pool.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "tree",
    [
        *(["v", 3], ["f", "__import__", ["v", "x"]], ["f", "Symbol", ["v", "x"]], ["n", "1", 1], "x + 1"),
        *(["eval", "1"], None, ["n", 1]),
    ],
)
def test_only_known_trees_are_built(pool: WorkerPool, tree: object) -> None:
    """Data that is no formula is an answer that failed, whatever it names."""
    assert "failed" in pool.ask({"op": "zero", "tree": tree, "assume": {}}, seconds=20)
    assert "failed" in pool.ask({"op": "os.system", "tree": tree}, seconds=20)


@pytest.mark.slow
def test_deep_trees_are_no_crash(pool: WorkerPool) -> None:
    """A tree that is nested too deeply fails, and the next request is answered."""
    tree: list[object] = ["v", "x"]
    for _ in range(300):
        tree = ["f", "sin", tree]
    with contextlib.suppress(WorkerFailed):
        pool.ask({"op": "zero", "tree": tree, "assume": {}}, seconds=1)
    assert pool.ask(zero(EASY), seconds=20) == {"proved": True}


def test_a_worker_that_died_while_it_waited_is_replaced(pool: WorkerPool) -> None:
    """A worker that was ended from outside is noticed before it is used."""
    (pid,) = pool.pids
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: not alive(pid))
    assert pool.ask(zero(EASY), seconds=20) == {"proved": True}
    assert pool.pids != (pid,)


def test_ctrl_c_does_not_reach_a_worker(pool: WorkerPool) -> None:
    """A worker ignores an interrupt of the terminal; the program that started it decides."""
    (pid,) = pool.pids
    os.kill(pid, signal.SIGINT)
    time.sleep(0.2)
    assert pool.ask(zero(EASY), seconds=20) == {"proved": True}
    assert pool.pids == (pid,)


@pytest.mark.slow
def test_closing_ends_every_worker() -> None:
    """A closed pool has no processes, also where one of them is at work, and takes no requests."""
    pool = WorkerPool(size=2, spare=2)
    with ThreadPoolExecutor(1) as threads:
        pool.ask(zero(EASY), seconds=20)
        hanging = threads.submit(_outcome, pool, HARD, 30.0)
        time.sleep(0.3)
        pids = pool.pids
        pool.close()
        assert hanging.result() not in ("late", "True", "False")
    assert pids
    assert wait_until(lambda: not any(alive(pid) for pid in pids))
    with pytest.raises(WorkerFailed, match="closed"):
        pool.ask(zero(EASY), seconds=1)


@pytest.mark.slow
@pytest.mark.skipif(not LINUX, reason="open files are counted in /proc")
def test_no_file_is_left_open() -> None:
    """Workers that are killed and closed leave no pipes behind."""
    before = len(os.listdir("/proc/self/fd"))
    pool = WorkerPool(size=2, spare=0)
    for _ in range(2):
        pool.ask(zero(EASY), seconds=20)
        with pytest.raises(WorkerFailed):
            pool.ask(zero(HARD), seconds=0.3)
    pool.close()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_no_python_to_start_is_a_clear_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no process can be started, the reason says so and the check is undecided."""
    for path in ("", "/nowhere/python", "/dev/null"):
        monkeypatch.setattr(sys, "executable", path)
        pool = WorkerPool()
        with pytest.raises(WorkerFailed, match="worker process"):
            pool.ask(zero(EASY), seconds=5)
        pool.close()
    monkeypatch.setattr(worker, "shared_pool", lambda: pool)
    monkeypatch.setattr("stepguard.formulas.deciding.shared_pool", lambda: WorkerPool())
    finding = Decider({}, 5).equal(parse_formula(EASY), parse_formula("0"))
    assert finding.answer == "open"
    assert "worker process" in finding.reason


@pytest.mark.parametrize("options", [{"size": 0}, {"spare": -1}, {"memory": 1}, {"size": 1.5}])
def test_bad_options_are_refused(options: dict[str, int]) -> None:
    """A pool that could not work is not made."""
    with pytest.raises(ConfigError):
        WorkerPool(**options)


def proved() -> bool:
    """Whether an identity that takes sympy is proved."""
    return Decider({}, 20).equal(parse_formula("sin(x)^2 + cos(x)^2"), parse_formula("1")).yes


def test_threads_and_async_code_get_the_same_answer() -> None:
    """A check decides the same in the main thread, in other threads, in a pool of them and under asyncio."""
    assert proved()
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(proved()))
    thread.start()
    thread.join()
    with ThreadPoolExecutor(3) as threads:
        found += threads.map(lambda _: proved(), range(2))

    async def several() -> list[bool]:
        return await asyncio.gather(*(asyncio.to_thread(proved) for _ in range(2)))

    assert found + asyncio.run(several()) == [True] * 5


@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_daemonic_processes_can_check(method: str) -> None:
    """A daemonic process of `multiprocessing` decides too, forked with threads running or spawned."""
    assert proved()
    before = set(shared_pool().pids)
    context = multiprocessing.get_context(method)
    queue = context.SimpleQueue()
    process = context.Process(target=_child, args=(queue,), daemon=True)  # type: ignore[attr-defined]
    process.start()
    answer, pids = queue.get()
    process.join(30)
    assert process.exitcode == 0
    assert answer is True
    assert not before & set(pids)
    assert wait_until(lambda: not any(alive(pid) for pid in pids))
    assert proved()
    assert before & set(shared_pool().pids)


def _child(queue: multiprocessing.SimpleQueue[tuple[bool, tuple[int, ...]]]) -> None:
    queue.put((proved(), shared_pool().pids))


def test_a_script_without_a_main_guard_can_check(tmp_path: Path) -> None:
    """A plain script checks once, starts nothing twice, ends cleanly and leaves no process behind; sympy is loaded by
    workers only, and never in the program itself, whatever of the checks it imports."""
    script = tmp_path / "plain.py"
    script.write_text(
        textwrap.dedent("""
        import sys
        from stepguard.checks.formulas import equality, matrices, solving
        from stepguard.formulas.deciding import Decider
        from stepguard.formulas.worker import shared_pool
        from stepguard.formulas.parsing import parse_formula
        print(Decider({}, 20).equal(parse_formula("sin(x)^2 + cos(x)^2"), parse_formula("1")).answer)
        print('sympy' in sys.modules, 'mpmath' in sys.modules)
        print(*shared_pool().pids)
        """),
        encoding="utf-8",
    )
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-W", "error", "-X", "dev", str(script)],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=True,
    )
    answer, loaded, pid = run.stdout.splitlines()
    assert (answer, loaded, run.stderr) == ("yes", "False False", "")
    assert wait_until(lambda: not alive(int(pid)))


@pytest.mark.slow
def test_a_worker_ends_with_the_program_that_started_it(tmp_path: Path) -> None:
    """A worker in the middle of something ends when its program is killed."""
    script = tmp_path / "killed.py"
    script.write_text(
        textwrap.dedent(f"""
        import threading
        from stepguard.formulas.trees import to_data
        from stepguard.formulas.worker import WorkerPool
        from stepguard.formulas.parsing import parse_formula
        pool = WorkerPool()
        request = {{"op": "zero", "tree": to_data(parse_formula("{HARD}")), "assume": {{}}}}
        threading.Thread(target=pool.ask, args=(request,), kwargs={{"seconds": 600}}, daemon=True).start()
        while not pool.pids:
            pass
        print(*pool.pids, flush=True)
        input()
        """),
        encoding="utf-8",
    )
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(root)},
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.kill()
    assert wait_until(lambda: not alive(pid))
