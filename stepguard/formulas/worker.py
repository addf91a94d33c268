"""A process of its own for work that may never end: started when needed, killed when it takes too long.

sympy cannot be interrupted from inside. A worker is an ordinary child process that speaks JSON lines (see
`stepguard.formulas.sympy_worker`); it is started by `subprocess`, never by forking this program or by
`multiprocessing`, so that it can be used in threads, in async code, in daemonic processes and in programs without a
``__main__`` guard. The time limit is kept by killing it, the memory limit by the operating system where it can.

A worker is used by one thread at a time. One that was killed, or that failed in any way, is never used again.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from stepguard.core.arguments import check_count

_START_SECONDS: Final = 60.0
"""How long a worker may take to load sympy: it does so once, and machines are slow."""
_MEMORY: Final = 1 << 30  # a formula that a model wrote must not take the memory of the machine
_SCRIPT: Final = Path(__file__).with_name("sympy_worker.py")
_PASSED_VARIABLES: Final = (
    "PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SYSTEMROOT", "TEMP", "TMP", "LANG", "LC_ALL",
)  # fmt: skip
_MAX_ANSWER: Final = 1 << 20  # an answer is a verdict and a few numbers


class WorkerFailed(RuntimeError):
    """There is no answer: the reason says why. `late` tells whether the time was up."""

    def __init__(self, reason: str, *, late: bool = False) -> None:
        super().__init__(reason)
        self.late = late


class _Worker:
    """One process; the caller sees to it that only one thread uses it."""

    def __init__(self, memory: int | None) -> None:
        if getattr(sys, "frozen", False) or not sys.executable:
            raise WorkerFailed("this program has no Python interpreter to start a worker process with")
        environment = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
        # What can be imported here can be imported there. Nothing else of the environment is handed on: no keys.
        environment |= {
            "PYTHONPATH": os.pathsep.join(map(os.path.abspath, filter(None, sys.path))),
            "PYTHONHASHSEED": "0",
        }
        try:
            self._process = subprocess.Popen(
                # -P: without it the folder of the script, full of our own modules, would come first on the import path.
                [sys.executable, "-P", str(_SCRIPT), str(memory or 0)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd=os.path.abspath(os.sep),
            )
        except (OSError, ValueError) as error:
            raise WorkerFailed(f"a worker process cannot be started: {error}") from None
        try:
            ready = self._read(_START_SECONDS)
        except WorkerFailed as error:
            self.kill()
            raise WorkerFailed(f"a worker process could not be started: {error}", late=error.late) from None
        # Ctrl-C while it starts would leave the process behind.
        except BaseException:
            self.kill()
            raise
        if ready.get("ready") is not True:
            self.kill()
            raise WorkerFailed(f"a worker process cannot be started: {ready.get('error', 'it is no worker')}")

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def ask(self, request: Mapping[str, object], seconds: float) -> dict[str, Any]:
        """The answer to one request."""
        line = json.dumps({**request, "seconds": seconds}).encode() + b"\n"
        return self._read(seconds, line)

    def _read(self, seconds: float, line: bytes = b"") -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        lock = threading.Lock()
        answered = late = False

        def give_up() -> None:
            nonlocal late
            with lock:  # a worker that has answered may be someone else's by now
                if not answered:
                    late = True
                    self._process.kill()

        # readline() cannot be given a timeout on every system; killing the process ends it everywhere.
        timer = threading.Timer(seconds, give_up)
        timer.daemon = True
        timer.start()
        try:
            if line:
                stdin.write(line)
                stdin.flush()
            answer = stdout.readline(_MAX_ANSWER)
        except (OSError, ValueError):
            answer = b""
        finally:
            with lock:
                answered = True
            timer.cancel()
        if late:
            raise WorkerFailed(f"it was not decided within {seconds:.3g} s", late=True)
        try:
            data = json.loads(answer)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise WorkerFailed("the worker process ended: it may have run out of memory")
        return data

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End the process while another thread waits for its answer; that one cleans up."""
        self._process.kill()

    def kill(self) -> None:
        """End the process and give back everything it holds."""
        self._process.kill()
        self._process.wait()
        self.abandon()

    def abandon(self, *, inherited: bool = False) -> None:
        """Close the pipes, which ends a worker that waits; one that was inherited by a fork is someone else's."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        if inherited and self._process.returncode is None:
            self._process.returncode = 0  # the parent's child, not ours: never wait for it


class WorkerPool:
    """Workers that threads share. Each request has one for itself; a hanging one keeps nobody else waiting.

    Args:
        size: how many run at the same time; further requests wait.
        spare: how many are kept when there is nothing to do.
        memory: bytes that one worker may take, None for no limit. Only kept where the system has `resource` limits.

    Raises:
        ConfigError: a number is out of range.
    """

    def __init__(self, *, size: int = 8, spare: int = 2, memory: int | None = _MEMORY) -> None:
        check_count(size, "size")
        check_count(spare, "spare", least=0)
        check_count(memory, "memory", least=1 << 28, optional=True)
        self._size = size
        self._spare = spare
        self._memory = memory
        self._free = threading.Condition()
        self._idle: list[_Worker] = []
        self._running: list[_Worker] = []
        self._starting = 0
        self._closed = False

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of the processes that are alive."""
        with self._free:
            return tuple(worker.pid for worker in (*self._idle, *self._running))

    def ask(self, request: Mapping[str, object], *, seconds: float) -> dict[str, Any]:
        """The answer of a worker to one request.

        Args:
            seconds: how long the worker may work on it. It may take as long again until one is free, and a worker
                that has to be started first loads sympy, which counts for neither.

        Raises:
            WorkerFailed: there is no answer.
        """
        if not (math.isfinite(seconds) and seconds > 0):
            raise WorkerFailed("the time is up", late=True)
        end = time.monotonic() + seconds
        worker, waited = self._take(seconds)
        try:
            answer = worker.ask(request, seconds)
        except WorkerFailed as error:
            self._drop(worker)
            if error.late or not waited:
                raise
            # It was ended from outside while it waited, and that cannot always be seen beforehand.
            return self.ask(request, seconds=end - time.monotonic())
        except BaseException:  # also Ctrl-C: a worker in the middle of something is of no further use
            self._drop(worker)
            raise
        self._give_back(worker, usable="error" not in answer)
        if "error" in answer:
            raise WorkerFailed(str(answer["error"])[:300])
        return answer

    def close(self) -> None:
        """End all workers, also those that are at work; their requests fail."""
        with self._free:
            self._closed = True
            idle, self._idle = self._idle, []
            for worker in self._running:
                worker.stop()
            self._free.notify_all()
        for worker in idle:
            worker.kill()

    def forget(self) -> None:
        """Let go of workers that a fork has handed on: they belong to the parent."""
        for worker in (*self._idle, *self._running):
            worker.abandon(inherited=True)
        self._idle, self._running = [], []

    def _take(self, seconds: float) -> tuple[_Worker, bool]:
        """A worker, and whether it had waited."""
        end = time.monotonic() + seconds
        with self._free:
            while not self._idle and len(self._running) + self._starting >= self._size and not self._closed:
                left = end - time.monotonic()
                if left <= 0 or not self._free.wait(left):
                    raise WorkerFailed(f"all {self._size} worker processes were busy for {seconds:.3g} s", late=True)
            if self._closed:
                raise WorkerFailed("the worker processes have been closed")
            while self._idle:
                worker = self._idle.pop()
                if worker.alive:
                    self._running.append(worker)
                    return worker, True
                worker.kill()  # ended from outside while it waited
            # Counted now and started outside the lock: loading sympy takes seconds, and others may have idle workers to
            # take.
            self._starting += 1
        try:
            worker = _Worker(self._memory)
        except BaseException:
            with self._free:
                self._starting -= 1
                self._free.notify()
            raise
        with self._free:
            self._starting -= 1
            self._running.append(worker)
        return worker, False

    def _give_back(self, worker: _Worker, *, usable: bool) -> None:
        with self._free:
            keep = usable and not self._closed and len(self._idle) < self._spare
            if keep:
                self._running.remove(worker)
                self._idle.append(worker)
                self._free.notify()
        if not keep:
            self._drop(worker)

    def _drop(self, worker: _Worker) -> None:
        worker.kill()
        with self._free:
            if worker in self._running:
                self._running.remove(worker)
            self._free.notify()


class _Shared:
    """The pool of this process: like its standard output, there is one. A forked child gets its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pool: WorkerPool | None = None
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def pool(self) -> WorkerPool:
        with self._lock:
            if self._pool is None:
                self._pool = WorkerPool()
            return self._pool

    def close(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _after_fork(self) -> None:
        self._lock = threading.Lock()  # another thread may have held it
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.forget()


_SHARED: Final = _Shared()


def shared_pool() -> WorkerPool:
    """The pool that the checks of this process share; its workers end with the program."""
    return _SHARED.pool()
