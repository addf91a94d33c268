"""The house: which rooms there are, and that imports run one way through them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import pytest
from tables import all_rows

import stepguard

PACKAGE: Final = Path(stepguard.__file__).parent
FLOORS: Final = (
    *(("errors",), ("core",), ("language",), ("backends", "documents", "formulas", "procedure", "results")),
    *(
        ("checks", "policy", "repair", "replies", "show"),
        ("engine",),
        ("auditing", "ledger", "telemetry", "testing"),
        ("guard",),
    ),
    *(("batches", "evaluation", "integrations"), ("serve",), ("cli",), ("__init__",)),
)
"""From the ground up: a room imports from the floors below its own, and from itself."""
FLOOR_OF: Final = {room: number for number, floor in enumerate(FLOORS) for room in floor}
MODULES: Final = sorted(PACKAGE.rglob("*.py"))


def room_of(module: str) -> str:
    """The room of a module: the first name below the package; the package itself, run or imported, is its face."""
    return module.split(".")[1].replace("__main__", "__init__") if "." in module else "__init__"


@dataclass(frozen=True)
class Module:
    """What a module holds, of one walk over what Python reads.

    Attributes:
        described: whether it begins with what lives in it.
        imports: the modules of this package that it imports when it runs, at its top or later; not for types alone.
        later: those of them that only a function of it imports.
        types: the names of its classes and of its aliases of types.
        texts: what is between quotes in it.
    """

    described: bool
    imports: tuple[str, ...]
    later: frozenset[str]
    types: tuple[str, ...]
    texts: tuple[str, ...]


@cache
def module_at(path: Path) -> Module:
    """A module as Python reads it."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports: list[str] = []
    early: list[str] = []
    types: list[str] = []
    texts: list[str] = []
    waiting: list[tuple[ast.AST, bool]] = [(tree, True)]
    while waiting:
        node, runs = waiting.pop()
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                texts.append(node.value)
            continue
        if isinstance(node, ast.Name | ast.Load | ast.Store):
            continue
        if isinstance(node, ast.ClassDef):
            types.append(node.name)
        elif isinstance(node, ast.Assign) and node.col_offset == 0 and isinstance(node.targets[0], ast.Name):
            types.extend(re.findall(r"\A_?[A-Z]\w*[a-z]\w*\Z", node.targets[0].id))
            waiting.append((node.value, runs))
            continue
        elif isinstance(node, ast.ImportFrom) and runs and (node.module or "").partition(".")[0] == "stepguard":
            folder = PACKAGE.parent.joinpath(*(node.module or "").split("."))
            (first, *_) = (each.name for each in node.names)
            imports.append(f"{node.module}.{first}" if (folder / f"{first}.py").is_file() else node.module or "")
            early.extend(imports[-1:] if node.col_offset == 0 else [])
        elif isinstance(node, ast.Import) and runs:
            imports.extend(each.name for each in node.names if each.name.partition(".")[0] == "stepguard")
        elif isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            waiting.extend((each, False) for each in node.body)
            waiting.extend((each, runs) for each in node.orelse)
            continue
        waiting.extend((each, runs) for each in ast.iter_child_nodes(node))
    described = ast.get_docstring(tree) is not None
    return Module(described, tuple(imports), frozenset(imports) - frozenset(early), tuple(types), tuple(texts))


def test_every_room_has_a_floor() -> None:
    """A new folder or file at the top has to be given its place in the order, and there are few of both."""
    folders = {each.name for each in PACKAGE.iterdir() if (each / "__init__.py").is_file()}
    files = {each.stem for each in PACKAGE.glob("*.py")} - {"__main__"}
    assert folders | files == set(FLOOR_OF)
    assert len(files) <= 8
    assert len(FLOORS) <= 13
    assert len(folders | files) <= 25


def test_tests_mirror_the_rooms() -> None:
    """Each folder has its tests in one of the same name; beside them stand those of the whole."""
    tests = {each.name for each in Path(__file__).parents[1].iterdir() if any(each.glob("test_*.py"))}
    assert tests == {each.name for each in PACKAGE.iterdir() if (each / "__init__.py").is_file()} | {
        *("documentation", "field_cases", "package")
    }


@all_rows("path", MODULES)
def test_imports_run_downwards(path: Path) -> None:
    """No module imports, at any time, from its own floor's other rooms or from above."""
    room = room_of(f"stepguard.{path.relative_to(PACKAGE).parts[0].removesuffix('.py')}")
    for module in module_at(path).imports:
        taken = room_of(module)
        assert taken == room or FLOOR_OF[taken] < FLOOR_OF[room], f"{room} takes {module}"


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Only a class that makes itself of a text, or makes its gate, takes what knows it, and takes that when asked."""
    makers = {"procedure.procedure", "policy.policy", "language.value_types", "language.structures"}
    taken: dict[str, frozenset[str]] = {}
    for path in MODULES:
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        module = module_at(path)
        left_out = module.later if name.removeprefix("stepguard.") in makers else frozenset()
        taken[name] = frozenset(module.imports) - left_out - {name}
    TopologicalSorter(taken).prepare()  # raises a CycleError, which names them


@all_rows("path", sorted((PACKAGE / "backends").glob("*.py")))
def test_backends_carry_bytes(path: Path) -> None:
    """A backend knows no procedure, reads no claim and checks nothing: what it needs of that comes with a request."""
    foreign = {"checks", "documents", "formulas", "procedure", "replies"}
    assert foreign.isdisjoint(map(room_of, module_at(path).imports))
    # For types, steps are all that it knows of them.
    assert not re.search(r"from stepguard\.(checks|documents|formulas|replies)", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("page", "row", "names"),
    [
        ("architecture.md", r"^\| \d+ \| (.*?) \|", r"`(\w+)`"),
        ("architecture.svg", r'^.*font-weight="600".*$', r">(\w+)<"),
    ],
)
def test_the_pages_show_the_floors(page: str, row: str, names: str) -> None:
    """The table and the picture of the architecture hold every room, in the order of the floors."""
    text = (Path(__file__).parents[2] / "docs" / page).read_text(encoding="utf-8")
    shown = [name for line in re.finditer(row, text, re.MULTILINE) for name in re.findall(names, line[0])]
    assert shown == [room for floor in reversed(FLOORS) for room in floor if room != "__init__"]


def test_every_room_says_what_lives_in_it() -> None:
    """Each folder's `__init__` begins with what is to be found there."""
    for init in PACKAGE.rglob("__init__.py"):
        assert module_at(init).described, init


def test_the_name_of_a_type_stands_once() -> None:
    """Who reads the name of a class, or of an alias of a type, anywhere knows which one is meant."""
    homes: dict[str, list[str]] = {}
    for path in MODULES:
        for name in module_at(path).types:
            homes.setdefault(name, []).append(str(path.relative_to(PACKAGE)))
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Python 3.11.0 to 3.11.4 match those wrongly: a text would be read otherwise there than elsewhere."""
    possessive = re.compile(r"\)(?:[*+?]|\{[0-9,]+\})\+")
    for path in MODULES:
        if path.name != "paths.py":
            assert not [text for text in module_at(path).texts if possessive.search(text)], path
