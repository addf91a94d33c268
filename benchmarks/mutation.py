"""Mutation testing: how many small faults in a module the tests notice.

    python benchmarks/mutation.py stepguard/replies/reading.py [--sample 200] [--seed 1] [--quick] [--line 120]

What is changed, and what is left out, `mutants.py` says; how many mutants a comment in the module leaves out
(``# no mutate: <why>``) is printed beside the result. The tests of the module run against every mutant, the quick
ones first, until one fails. A mutant that runs into the time limit counts as killed and is counted apart.

Where a change is inside a function, it is first made in a process that has collected the tests already: there the
functions of the module get the changed code, and the quick tests run. What survives that, and every other mutant, runs
in a process that imports the changed module from the start and takes all of the tests.

"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib.abc
import importlib.machinery
import inspect
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import types
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from mutants import Mutant, excused, mutants_of

ROOT = Path(__file__).resolve().parent.parent
CLIMBED = ["ladder", "climbs", "ladder_cost", "ladder_helpers", "guessing", "protocol", "requests"]
TAKEN_APART = ["stand_ins", "rewriting", "whole_numbers", "climbs"]
TESTS = {
    "language/strict_json": ["strict_json", "replies"],
    "replies/reading": ["reply_boundaries", "replies"],
    "replies/text": ["reply_boundaries", "replies"],
    "replies/formats": ["reply_formats", "replies", "decimal_comma", "working", "working_styles", "prompts"],
    "language/same_working": ["normal_form", "working", "working_styles", "checks"],
    "checks/arithmetic": ["arithmetic_verdicts", "checks", "working_styles", "value_types", "working"],
    "checks/judging": ["checks", "check_limits", "engine", "working"],
    "checks/user": ["check_limits", "checks"],
    "language/numerals": ["number_notations", "decimal_comma", "expressions", "values"],
    "language/evaluation": ["exact_arithmetic", "expressions", "working", "checks"],
    "language/expression_parsing": ["expression_limits", "expressions", "working", "procedure"],
    "language/expressions": ["expression_limits", "expressions", "working", "procedure"],
    "language/value_types": ["value_types", "values"],
    "language/values": ["values", "value_types"],
    "language/decimal_comma": ["decimal_comma"],
    "language/currencies": ["working_styles", "number_notations", "value_types"],
    "repair/ladder": ["ladder_decisions", *CLIMBED],
    "repair/policy": ["ladder_decisions", *CLIMBED, "fallbacks", "date_splitting", "learning", "resuming"],
    "repair/books": ["ladder_decisions", *CLIMBED, "fallbacks", "date_splitting", "learning", "resuming"],
    "repair/rungs": ["ladder_decisions", *CLIMBED, "evidence", "stand_ins", "fallbacks", "wrong_options"],
    "repair/rung": ["ladder_decisions", *CLIMBED, "evidence", "stand_ins", "fallbacks", "wrong_options"],
    "repair/stand_ins": ["ladder_decisions", *CLIMBED, "evidence", "stand_ins", "fallbacks", "wrong_options"],
    "repair/rewriting": [*TAKEN_APART, "ladder_cost", "ladder_decisions", "date_splitting", "evidence", "guessing"],
    "repair/small_steps": TAKEN_APART,
    "repair/splitting": [*TAKEN_APART, "date_splitting", "evidence", "ladder_cost"],
    "repair/whole_numbers": TAKEN_APART,
    "repair/date_splitting": ["date_splitting", "evidence", "climbs"],
    "repair/evidence": ["evidence", "guessing", "climbs"],
    "engine/control/unfolding": ["asked_steps", "places", "control_flow", "operations", "program_values"],
    "engine/control/lowering": ["asked_steps", "places", "control_flow", "operations", "program_values"],
    "engine/control/value_names": ["asked_steps", "places", "control_flow", "operations", "program_values"],
    "engine/control/person_questions": ["person_questions", "operations"],
    "engine/control/scopes": ["asked_steps", "control_flow", "operations", "audit_control_flow"],
    "engine/control/sources": ["asked_steps", "control_flow", "operations", "program_values"],
    "procedure/static_checks": ["flow_checks", "procedure", "notation", "currencies", "procedures", "asked_steps"],
    "language/terms/type_inference": [
        "operations_of_types",
        "terms",
        "currencies",
        "procedure",
        "notation",
        "procedures",
    ],
    "language/terms/evaluation": ["operations_of_types", "terms", "structured_types", "program_values", "control_flow"],
    "language/terms/operands": ["operations_of_types", "terms", "notation", "currencies", "asked_steps"],
    "language/terms/lookup_tables": ["lookup_tables", "terms", "notation", "procedures", "program_values"],
    "backends/direct_posts": ["openai_clients", "openai_backend", "responses", "wrap_passes"],
}
"""The test files of each module; every module of the package may be named, those not listed have
`test_<module>.py` in some folder of the tests."""
QUICK = 0.05
"""Tests that take less than so many seconds run first."""


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Serves one module from a tree."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self.name, self.path, self.tree = name, path, tree

    def find_spec(self, name: str, path: object, target: object = None) -> importlib.machinery.ModuleSpec | None:
        if name != self.name:
            return None
        package = self.path.name == "__init__.py"
        spec = importlib.machinery.ModuleSpec(name, self, origin=str(self.path), is_package=package)
        spec.has_location = True
        if package:
            spec.submodule_search_locations = [str(self.path.parent)]
        return spec

    def code(self) -> types.CodeType:
        return compile(ast.fix_missing_locations(self.tree), self.path, "exec")

    def exec_module(self, module: types.ModuleType) -> None:
        exec(self.code(), module.__dict__)


class _Order:
    """Runs the quick tests first, or alone, and remembers how long each of them took."""

    def __init__(self, known: dict[str, float], *, alone: bool = False) -> None:
        self.known, self.alone = known, alone
        self.seconds: dict[str, float] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self.known.get(item.nodeid, 0.0))
        if self.alone:
            items[:] = [item for item in items if self.known.get(item.nodeid, 0.0) < QUICK]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration


class _Collected(_Order):
    """Runs the quick tests in a child for each mutant, once they are collected, and keeps the exit statuses."""

    def __init__(self, known: dict[str, float], finder: _Finder, mutants: Sequence[Mutant]) -> None:
        super().__init__(known, alone=True)
        self.finder, self.mutants = finder, mutants
        self.statuses: dict[str, int] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        limit = max(5, int(5 * sum(seconds for seconds in self.known.values() if seconds < QUICK)))
        for index, mutant in enumerate(self.mutants):
            if mutant.local:
                self.statuses[str(index)] = in_child(partial(self.judge, mutant, session), limit)
        return True

    def judge(self, mutant: Mutant, session: pytest.Session) -> int:
        with mutant.applied():
            _install(self.finder)
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                return 1
        return 0


def _install(finder: _Finder) -> None:
    """Give the functions and methods of the imported module the code that the tree has for them."""
    stack = [finder.code()]
    while stack:
        for code in stack.pop().co_consts:
            if not isinstance(code, types.CodeType) or "<" in code.co_qualname:
                continue
            found: Any = sys.modules[finder.name]
            for name in code.co_qualname.split("."):
                found = vars(found)[name]
            if isinstance(found, type):
                stack.append(code)
                continue
            found = inspect.unwrap(getattr(found, "fget", None) or getattr(found, "__func__", found))
            if found.__code__.co_freevars == code.co_freevars:
                found.__code__ = code


def in_child(work: Callable[[], int], limit: int) -> int:
    """What `work` gives in a child of this process; 3 if it raises, minus the signal where one ended it."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 3
    try:
        signal.setitimer(signal.ITIMER_PROF, limit)  # its own time, whatever else the machine does
        signal.alarm(20 * limit)
        resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        status = work()
    finally:
        os._exit(status)


def run_tests(finder: _Finder, tests: list[str], order: _Order, record: str = "") -> int:
    """The exit status of pytest; `record` is the file for what was learnt about the tests or the mutants."""
    sys.meta_path.insert(0, finder)
    options = [
        "-o",
        "addopts=",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    ]
    status = int(pytest.main([*options, f"--rootdir={ROOT}", *tests], [order]))
    if record:
        Path(record).write_text(json.dumps(order.statuses if isinstance(order, _Collected) else order.seconds))
    return status


def main() -> None:
    """Run the mutants of one module, print those that survive and the share that is killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module", type=Path)
    parser.add_argument("--sample", type=int, help="so many mutants, drawn at random; without it all of them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="take the quick tests alone, to find weak places soon")
    parser.add_argument("--line", type=int, action="append", help="only the mutants of this line; may be repeated")
    args = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    os.environ.pop("CI", None)  # the tests would load a profile of their own
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    settings.register_profile("mutation", derandomize=True, database=None, phases=(Phase.explicit, Phase.generate))
    settings.load_profile("mutation")
    for needed in ("pydantic", "asyncio", "http.server", "structlog", "yaml", "hypothesis.strategies"):
        importlib.import_module(needed)
    gc.freeze()

    path = args.module.resolve().relative_to(ROOT)
    module = path.with_suffix("").as_posix().removeprefix("stepguard/")
    names = TESTS.get(module, [module.rpartition("/")[2]])
    tests = [str(path.relative_to(ROOT)) for name in names for path in ROOT.glob(f"tests/*/test_{name}.py")]
    source = path.read_text()
    tree = ast.parse(source)
    finder = _Finder(f"stepguard.{module.replace('/', '.')}".removesuffix(".__init__"), ROOT / path, tree)
    made = [mutant for mutant in mutants_of(tree) if not args.line or mutant.line in args.line]
    left_out = excused(source)
    mutants = [mutant for mutant in made if mutant.line not in left_out]
    total = len(mutants)
    if args.sample is not None and args.sample < total:
        mutants = [mutants[index] for index in sorted(random.Random(args.seed).sample(range(total), args.sample))]
    started = time.perf_counter()
    with tempfile.NamedTemporaryFile() as record:
        if status := in_child(lambda: run_tests(finder, tests, _Order({}), record.name), 600):
            raise SystemExit(f"the tests of the unchanged module fail (status {status})")
        known = json.loads(Path(record.name).read_text())
        limit = max(10, int(3 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime))
        if in_child(lambda: run_tests(finder, tests, _Collected(known, finder, mutants), record.name), 10**6):
            raise SystemExit("the tests cannot be collected")
        statuses = json.loads(Path(record.name).read_text())
    killed = slow = 0
    for index, mutant in enumerate(mutants):
        status = statuses.get(str(index), 0)
        if status == 0:
            with mutant.applied() as shown:
                if not (args.quick and mutant.local):
                    status = in_child(lambda: run_tests(finder, tests, _Order(known, alone=args.quick)), limit)
            if status == 0:
                print(f"{path}:{mutant.line}: {shown}", flush=True)
        killed += status != 0
        slow += status in (-signal.SIGPROF, -signal.SIGALRM)

    from stepguard.evaluation.statistics import wilson  # not before, or the children would inherit what it imports

    low, high = wilson(killed, len(mutants))
    share = f"{100 * killed / max(1, len(mutants)):.1f} % (95 % interval {100 * low:.1f} to {100 * high:.1f})"
    counts = f"{slow} by the time limit; {total} in all, and {len(made) - total} left out by a comment"
    print(f"{path}: {killed} of {len(mutants)} mutants killed, {share}; {counts}")
    print(f"{time.perf_counter() - started:.0f} s, time limit {limit} s a mutant")


if __name__ == "__main__":
    main()
