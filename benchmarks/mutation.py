"""How much of a module's behaviour its tests hold fast: change the module in one place, and see whether a test fails.

    python benchmarks/mutation.py stepguard/replies.py --tests tests/test_replies.py [--sample 300] [--seed 0]

What is changed, and what is not, stands in `mutants.py`. A mutant is killed when a test fails or runs into its time
limit. One that cannot even be imported says nothing about the tests and is not counted.

The tests run in a forked process for each mutant, those first that killed most mutants before, quick ones before slow
ones. Printed are the survivors, and the share killed with its 95 % Wilson interval.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import gc
import importlib
import importlib.util
import json
import os
import random
import resource
import signal
import sys
import time
from collections import Counter
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import hypothesis
import pytest
from mutants import Mutant, mutants_of, mutated

from stepguard.evaluation.statistics import wilson

_NOT_IMPORTED = 99
_OPTIONS = ["-xq", "--tb=no", "--assert=plain"]
_OPTIONS += [f"-pno:{each}" for each in ("cacheprovider", "unraisableexception", "threadexception")]


class _Served(SourceFileLoader):
    """Finds one module, and runs the given code for it."""

    def __init__(self, name: str, path: str, code: CodeType) -> None:
        super().__init__(name, path)
        self._code = code

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str) -> CodeType:
        return self._code


class _Plugin:
    """Orders the tests, limits the time of each, and tells how long each took, or at once which one failed."""

    def __init__(self, seconds: dict[str, float], kills: Counter[str], telling: int) -> None:
        self.seconds, self.kills, self.telling = seconds, kills, telling
        self.took: dict[str, float] = {}

    def tell(self, found: object) -> None:
        with os.fdopen(self.telling, "wb") as pipe:
            pipe.write(json.dumps(found).encode())

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: (-self.kills[item.nodeid], self.seconds.get(item.nodeid, 0.0)))

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        signal.alarm(10 + int(5 * self.seconds.get(item.nodeid, 60.0)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.took[report.nodeid] = self.took.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.tell({"failed": report.nodeid})
            os._exit(1)


class Runner:
    """Runs the tests on one version of the module after the other, each in a process of its own."""

    def __init__(self, path: Path, tests: list[str]) -> None:
        self.path, self.tests = path, tests
        self.name = ".".join(path.with_suffix("").parts)
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.seconds: dict[str, float] = {}
        self.kills: Counter[str] = Counter()
        status, seen = self.run(self.tree)
        if status != "survived":
            raise SystemExit(f"the tests fail without any change: {seen}")
        self.seconds = seen["took"]
        for name in seen["modules"]:  # what every process would import again
            if name.split(".")[0] not in ("stepguard", "tests", "conftest", "harness", "__main__"):
                try:
                    importlib.import_module(name)
                except Exception:  # noqa: BLE001 - made while running, or not importable on its own: left to the child
                    continue
        gc.freeze()

    def run(self, tree: ast.Module) -> tuple[str, dict[str, Any]]:
        """``survived``, ``killed``, ``timeout`` or ``void`` (cannot be imported), and what the process told."""
        code = compile(tree, str(self.path), "exec")
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os._exit(self._child(code, writing))
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            told = pipe.read()
        status = os.waitpid(child, 0)[1]
        seen = json.loads(told) if told.endswith(b"}") else {}
        if os.WIFSIGNALED(status):
            return "timeout" if os.WTERMSIG(status) == signal.SIGALRM else "killed", seen
        if "failed" in seen:
            self.kills[seen["failed"]] += 1
        return {0: "survived", _NOT_IMPORTED: "void"}.get(os.waitstatus_to_exitcode(status), "killed"), seen

    def _child(self, code: CodeType, writing: int) -> int:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        for name in [name for name in sys.modules if name.split(".")[0] == "stepguard"]:
            del sys.modules[name]
        sys.meta_path.insert(0, _Served(self.name, str(self.path), code))
        os.environ.pop("CI", None)  # the profile below is as repeatable, and does not shrink what it finds
        try:
            importlib.import_module(self.name)
        except BaseException:  # noqa: BLE001 - whatever it is, there is nothing to test
            return _NOT_IMPORTED
        plugin = _Plugin(self.seconds, self.kills, writing)
        result = pytest.main([*_OPTIONS, *self.tests], plugins=[plugin])
        plugin.tell({} if self.seconds else {"took": plugin.took, "modules": list(sys.modules)})
        return int(result)

    def difference(self, mutant: Mutant) -> str:
        """The lines that a mutant changes."""
        before, after = ast.unparse(self.tree).splitlines(), ast.unparse(mutated(self.tree, mutant)).splitlines()
        lines = [line for line in difflib.unified_diff(before, after, n=0, lineterm="") if line[:1] in "+-"][2:]
        if len(lines) == 2:  # of long lines, what stands around the change
            same = next((at for at, (one, other) in enumerate(zip(*lines, strict=False)) if at and one != other), 1)
            lines = [f"{line[0]} {line[max(1, same - 50) :][:120].strip()}" for line in lines]
        return "\n".join(f"    {line}" for line in lines)


def main() -> None:
    """Run, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module", type=Path, help="a source file, as seen from the root of the repository")
    parser.add_argument("--tests", nargs="+", required=True)
    parser.add_argument("--sample", type=int, help="how many mutants, drawn at random (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lines", type=int, nargs=2, metavar=("FIRST", "LAST"), help="only mutants of these lines")
    parser.add_argument("--list", action="store_true", help="print the mutants and run nothing")
    args = parser.parse_args()
    sys.path.insert(0, os.getcwd())
    calm = [hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large]
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
    hypothesis.settings.register_profile(
        "mutation", derandomize=True, database=None, deadline=None, phases=phases, suppress_health_check=calm
    )
    hypothesis.settings.load_profile("mutation")
    started = time.monotonic()
    runner = Runner(args.module, args.tests)
    mutants = mutants_of(runner.tree)
    first, last = args.lines or (0, sys.maxsize)
    mutants = [each for each in mutants if first <= each.line <= last]
    total = len(mutants)
    if args.sample and args.sample < total:
        mutants = sorted(random.Random(args.seed).sample(mutants, args.sample), key=lambda each: each.line)
    counts: Counter[str] = Counter()
    for mutant in mutants:
        status = "listed" if args.list else runner.run(mutated(runner.tree, mutant))[0]
        counts[status] += 1
        if status in ("survived", "listed"):
            print(f"{args.module}:{mutant.line}\n{runner.difference(mutant)}", flush=True)
    killed = counts["killed"] + counts["timeout"]
    tried = killed + counts["survived"]
    low, high = wilson(killed, tried)
    print(
        f"{args.module}: {total} mutants, {tried} tried, {killed} killed ({counts['timeout']} by the time limit), "
        f"{counts['void']} could not be imported, {time.monotonic() - started:.0f} s\n"
        f"killed: {killed / max(tried, 1):.1%} (95 % interval {low:.1%} to {high:.1%}, seed {args.seed})"
    )


if __name__ == "__main__":
    main()
