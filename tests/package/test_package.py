"""The public face of the package: its names, and what importing it costs others."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import stepguard
from stepguard.procedure.check_registry import CHECKS

ROOT = Path(__file__).parents[2]
NAMES = [
    *("Budget", "Claim", "Guard", "Input", "Ladder", "Policy", "Price", "Procedure", "Profile", "Result"),
    *("RetryPolicy", "Run", "Segments", "Step", "StepguardError", "Trust", "Usage", "ValueType", "Verdict"),
    *("audit", "guarded", "wrap"),
]


def test_the_public_names_are_these() -> None:
    """The names that users import are exactly these, and each is there."""
    assert list(stepguard.__all__) == NAMES
    assert all(getattr(stepguard, name).__name__ == name for name in stepguard.__all__)
    assert set(stepguard.__all__) <= set(dir(stepguard))


def test_public_is_a_list() -> None:
    """Each module that the reference lists as public hands on exactly the names beside it."""
    page = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(stepguard[\w.]*)` \| (.*) \|$", page, re.MULTILINE)
    assert len(rows) > 20
    for module, names in rows:
        path = ROOT.joinpath(*module.split("."))
        source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        tree = ast.parse(source.read_text(encoding="utf-8"))
        values = [
            node.value
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        ]
        (listed,) = map(ast.literal_eval, values)
        assert [f"`{name}`" for name in listed] == names.split(", "), module


def test_every_check_stands_in_the_reference() -> None:
    """The page of the checks has the module of each."""
    page = (ROOT / "docs" / "reference" / "checks.md").read_text(encoding="utf-8")
    modules = {CHECKS.own(name).__module__ for name in CHECKS.bundled()}
    missing = modules - set(re.findall(r"^::: (\S+)$", page, re.MULTILINE))
    assert not missing, f"write a line `::: {min(missing)}` in docs/reference/checks.md"


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A name that is not there is missing as anywhere in Python."""
    with pytest.raises(AttributeError, match="no attribute 'Gaurd'"):
        _ = stepguard.Gaurd  # type: ignore[attr-defined]


HEAVY = "openai instructor sympy pydantic structlog rich yaml asyncio pint jsonschema"
LIGHT = {
    "the package": ("import stepguard", HEAVY),
    "its names": (f"import stepguard; [getattr(stepguard, name) for name in {NAMES}]", HEAVY),
    "the checks": (
        "from stepguard.checks import constraints, dates, durations, grounding, schema, text, units",
        "pint jsonschema sympy openai",
    ),
    "a backend": (
        "import stepguard.backends.openai as o; o.OpenAIBackend.from_name('openai/m')",
        "openai instructor pydantic",
    ),
    "drop-ins": (
        "import stepguard.integrations.openai.client, stepguard.integrations.decorator",
        "openai instructor pydantic structlog asyncio",
    ),
    "help": (
        "from stepguard.cli import main\n"
        "for asked in ([], ['--help'], ['run', '--help'], ['bench', '--help'], ['--version']): assert main(asked) == 0",
        "openai instructor sympy rich pydantic structlog yaml",
    ),
}


@pytest.mark.parametrize(("code", "heavy"), LIGHT.values(), ids=LIGHT)
def test_nothing_heavy_is_loaded_before_it_is_used(code: str, heavy: str) -> None:
    """What is imported, made or asked for help loads none of the libraries that only its work needs."""
    code = f"import sys\n{code}\nsys.exit(str(loaded) if (loaded := {set(heavy.split())} & set(sys.modules)) else 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr


def test_the_lowest_versions_that_are_tested_are_those_that_are_declared() -> None:
    """Every lower bound of what a run needs stands in the constraints of the lowest versions, and none that is not."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / ".ci" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    lowest = {line for line in lines if not line.startswith("#")}
    required = {bound.replace(">=", "==") for bound in project["dependencies"]}
    tools = {bound.replace(">=", "==") for bound in project["optional-dependencies"]["dev"]}
    assert required <= lowest <= required | tools


def test_the_checks_are_in_one_place() -> None:
    """Every check of the public list can be imported from `stepguard.checks`, and what is not there is not."""
    import stepguard.checks

    for name in stepguard.checks.__all__:
        assert getattr(stepguard.checks, name).__name__ == name
    assert set(stepguard.checks.__all__) <= set(dir(stepguard.checks))
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        getattr(stepguard.checks, "Nothing")  # noqa: B009


def test_what_docstrings_refer_to_by_its_path_is_there() -> None:
    """A module, a class or a function that the source names by its full path is where it says."""
    for path in sorted((ROOT / "stepguard").rglob("*.py")):
        for name in re.findall(r"(?<!`)`(stepguard\.[\w.]+)`(?!`)", path.read_text(encoding="utf-8")):
            place, rest = ROOT, name.split(".")
            while rest and (place / rest[0]).is_dir():
                place /= rest.pop(0)
            module = place / f"{rest[0]}.py" if rest else place / "__init__.py"
            rest = rest[1:] if module.is_file() else rest
            source = (module if module.is_file() else place / "__init__.py").read_text(encoding="utf-8")
            assert not rest or re.search(rf"\b{rest[0]}\b", source), f"{path.relative_to(ROOT)} refers to {name}"
