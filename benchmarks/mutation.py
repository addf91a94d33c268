"""Mutation testing: how many small faults in a module the tests notice.

    python benchmarks/mutation.py stepguard/replies.py [--sample 200] [--seed 1] [--line 120]

Every mutant is the module with one change: a comparison, an arithmetic or a boolean operator swapped, a bound shifted,
a `not` or a sign removed, a number one more or less, a string changed, a truth value or None swapped, what is returned
replaced by None, a statement deleted, a condition always true or always false, the bound of a slice left out. The
tests of the module run against it, the quick ones first, until one fails. A mutant that runs into the time limit
counts as killed and is counted apart.

Left out is what is no behaviour: docstrings, annotations, assertions (`zip(strict=True)` is one), decorators, `__all__`
and `__slots__`, aliases of types, deleted statements of a module or class body, and the wording of messages (strings
of more than one word, strings in the arguments of an error, Deviation or Verdict, and in names and functions that
only hold or make wording). The kind of a deviation is behaviour, and becomes another kind.
"""

from __future__ import annotations

import argparse
import ast
import gc
import importlib.abc
import importlib.machinery
import json
import os
import random
import re
import resource
import signal
import sys
import tempfile
import time
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).resolve().parent.parent
TESTS = {
    "strict_json": ["strict_json", "replies"],
    "replies": ["replies", "working"],
    "reply_formats": ["replies", "decimal_comma", "working", "working_styles", "prompts"],
    "normal_form": ["working", "working_styles", "checks"],
    "checks/arithmetic": ["checks", "working_styles", "working"],
    "checks/__init__": ["checks", "check_limits", "engine"],
    "numerals": ["numerals", "decimal_comma", "expressions", "values"],
    "exact": ["expressions", "working", "checks"],
    "expressions": ["expressions", "working", "procedure"],
    "value_types": ["value_types", "values"],
    "values": ["values", "value_types"],
}
"""The test files of each module; every module of the package may be named, those not listed have `test_<module>.py`."""

KINDS = re.findall(r'^    "(\w+)",$', (ROOT / "stepguard/verdicts.py").read_text(), re.MULTILINE)
MESSAGE_CALLS = {"Deviation", "Verdict", "_fail", "_error", "_unexpected", "_cut_off"}
MESSAGE_NAMES = {"reason", "why", "what", "where", "hint", "ignored", "said", "signed", "broken"}
MESSAGE_FUNCTIONS = {"_why_not", "_why", "_describe", "_thoughts", "_short"}
SENTENCE = re.compile(r"[A-Za-z`'>]{2,},? [A-Za-z`'{]")

SWAPPED: dict[type[ast.AST], list[type[ast.AST]]] = {
    ast.Lt: [ast.LtE, ast.GtE], ast.LtE: [ast.Lt, ast.Gt], ast.Gt: [ast.GtE, ast.LtE], ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.Is: [ast.IsNot], ast.IsNot: [ast.Is], ast.In: [ast.NotIn],
    ast.NotIn: [ast.In], ast.And: [ast.Or], ast.Or: [ast.And], ast.Add: [ast.Sub], ast.Sub: [ast.Add],
    ast.Mult: [ast.Add, ast.FloorDiv], ast.Div: [ast.Mult], ast.FloorDiv: [ast.Mult, ast.Div], ast.Mod: [ast.Mult],
    ast.Pow: [ast.Mult], ast.BitOr: [ast.BitAnd], ast.BitAnd: [ast.BitOr], ast.BitXor: [ast.BitOr, ast.BitAnd],
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: `new` in place of what stands in a field of a node, or at a place in a field that is a list."""

    line: int
    parent: ast.AST
    field: str
    index: int | None
    new: ast.AST

    def apply(self) -> str:
        """Change the tree, and say how."""
        owner = self.parent
        if self.index is None:
            before = _shown(owner, owner)
            setattr(owner, self.field, self.new)
            return f"{before}   ->   {_shown(owner, owner)}"
        before = _shown(getattr(owner, self.field)[self.index], owner)
        getattr(owner, self.field)[self.index] = self.new
        return f"{before}   ->   {_shown(self.new, owner)}"


def _shown(node: ast.AST, parent: ast.AST) -> str:
    shown = node if isinstance(node, ast.stmt | ast.expr) and not isinstance(parent, ast.JoinedStr) else parent
    lines = ast.unparse(shown).splitlines() or [""]
    return lines[0] if len(lines[0]) < 150 else f"{lines[0][:147]}..."


def mutants_of(node: ast.AST, line: int = 0, *, wording: bool = False, local: bool = False) -> Iterator[Mutant]:
    """Every mutant of a module; `wording` and `local`: whether the node is in a message, in a function."""
    line = getattr(node, "lineno", line)
    wording = wording or _is_wording(node)
    local = (local or isinstance(node, ast.FunctionDef)) and not isinstance(node, ast.ClassDef)
    if isinstance(node, ast.Return) and node.value is not None and ast.unparse(node.value) != "None":
        yield Mutant(line, node, "value", None, ast.Constant(None))
    if isinstance(node, ast.If | ast.While | ast.IfExp | ast.match_case):
        field = "guard" if isinstance(node, ast.match_case) else "test"
        test = getattr(node, field)
        for forced in (True, False) if test is not None and not isinstance(test, ast.Constant) else ():
            yield Mutant(line, node, field, None, ast.Constant(forced))
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "cause", "ctx", "conversion", "format_spec"):
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or _is_left_out(node, field, child):
                continue
            if isinstance(child, ast.JoinedStr) and wording:
                continue
            for new in _replacements(node, child, wording=wording, local=local):
                yield Mutant(getattr(child, "lineno", line), node, field, index, new)
            yield from mutants_of(child, line, wording=wording, local=local)


def _replacements(parent: ast.AST, child: ast.AST, *, wording: bool, local: bool) -> Iterator[ast.AST]:
    yield from (swapped() for swapped in SWAPPED.get(type(child), []))
    match child:
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value)):
            yield ast.Constant(value + 1)
            yield ast.Constant(value - 1)
        case ast.Constant(str(value)):
            if value in KINDS:
                yield ast.Constant("extra_step" if value != "extra_step" else "malformed")
            elif not wording and (not SENTENCE.search(value) or "\\" in value):
                letters = any(char.isalnum() for char in value)
                yield ast.Constant(f"XX{value}" if letters or not value else value[:-1])
        case ast.Constant(None) if not isinstance(parent, ast.Return):
            yield ast.Constant(True)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand) if not isinstance(operand, ast.Constant):
            yield operand
        case ast.Slice(lower, upper, step):
            if lower is not None:
                yield ast.Slice(None, upper, step)
            if upper is not None:
                yield ast.Slice(lower, None, step)
        case ast.Assign() | ast.AugAssign() | ast.AnnAssign() | ast.Expr() | ast.Raise() | ast.Continue() | ast.Break():
            if local:
                yield ast.Pass()
    if isinstance(parent, ast.comprehension) and isinstance(child, ast.expr) and child in parent.ifs:
        yield ast.Constant(True)
        yield ast.Constant(False)


def _is_wording(node: ast.AST) -> bool:
    match node:
        case ast.Raise():
            return True
        case ast.Call(ast.Name(name) | ast.Attribute(_, name)) | ast.Assign([ast.Name(name)]):
            return name in MESSAGE_CALLS | MESSAGE_NAMES
        case ast.FunctionDef(name):
            return name in MESSAGE_FUNCTIONS
    return False


def _is_left_out(parent: ast.AST, field: str, child: ast.AST) -> bool:
    match child:
        case (
            ast.Expr(ast.Constant())
            | ast.Assert()
            | ast.Import()
            | ast.ImportFrom()
            | ast.If(ast.Name("TYPE_CHECKING"))
        ):
            return True
        case ast.Assign([ast.Name("__all__" | "__slots__")]) | ast.keyword("strict"):
            return True
        case ast.Assign([ast.Name()], ast.BinOp(_, ast.BitOr())):
            return isinstance(parent, ast.Module)
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and field == "args":  # types
        place = {"cast": 0, "isinstance": 1}.get(parent.func.id)
        return place is not None and child is parent.args[place]
    return False


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

    def exec_module(self, module: types.ModuleType) -> None:
        exec(compile(ast.fix_missing_locations(self.tree), self.path, "exec"), module.__dict__)


class _Order:
    """Runs the quick tests first, and remembers how long each of them took."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self.known = seconds
        self.seconds: dict[str, float] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self.known.get(item.nodeid, 0.0))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration


def run_tests(finder: _Finder, tests: list[str], known: dict[str, float], limit: int, record: str = "") -> int:
    """The exit status of pytest in a child of this process; minus the signal where that ended it."""
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
        sys.meta_path.insert(0, finder)
        order = _Order(known)
        options = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        status = int(pytest.main([*options, f"--rootdir={ROOT}", *tests], [order]))
        if record:
            Path(record).write_text(json.dumps(order.seconds))
    finally:
        os._exit(status)


def main() -> None:
    """Run the mutants of one module, print those that survive and the share that is killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module", type=Path)
    parser.add_argument("--sample", type=int, help="so many mutants, drawn at random; without it all of them")
    parser.add_argument("--seed", type=int, default=1)
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
    tests = [f"tests/test_{name}.py" for name in TESTS.get(module, [module])]
    tree = ast.parse(path.read_text())
    finder = _Finder(f"stepguard.{module.replace('/', '.')}".removesuffix(".__init__"), ROOT / path, tree)
    started = time.perf_counter()
    with tempfile.NamedTemporaryFile() as record:
        if status := run_tests(finder, tests, {}, 600, record.name):
            raise SystemExit(f"the tests of the unchanged module fail (status {status})")
        known = json.loads(Path(record.name).read_text())
    limit = max(10, int(3 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime))

    mutants = [mutant for mutant in mutants_of(tree) if not args.line or mutant.line in args.line]
    total = len(mutants)
    if args.sample is not None and args.sample < len(mutants):
        chosen = sorted(random.Random(args.seed).sample(range(len(mutants)), args.sample))
        mutants = [mutants[index] for index in chosen]
    killed = slow = 0
    for mutant in mutants:
        held = getattr(mutant.parent, mutant.field)
        kept = list(held) if isinstance(held, list) else held
        shown = mutant.apply()
        status = run_tests(finder, tests, known, limit)
        setattr(mutant.parent, mutant.field, kept)
        killed += status != 0
        slow += status in (-signal.SIGPROF, -signal.SIGALRM)
        if status == 0:
            print(f"{path}:{mutant.line}: {shown}", flush=True)

    from stepguard.evaluation.statistics import wilson  # not before, or the children would inherit what it imports

    low, high = wilson(killed, len(mutants))
    share = f"{100 * killed / max(1, len(mutants)):.1f} % (95 % interval {100 * low:.1f} to {100 * high:.1f})"
    print(f"{path}: {killed} of {len(mutants)} mutants killed, {share}; {slow} by the time limit; {total} in all")
    print(f"{time.perf_counter() - started:.0f} s, time limit {limit} s a mutant")


if __name__ == "__main__":
    main()
