"""The public face of the package: its names, and what importing it costs others."""

from __future__ import annotations

import subprocess
import sys

import pytest

import stepguard

NAMES = [
    "Budget",
    "Claim",
    "Guard",
    "Input",
    "Procedure",
    "Result",
    "Retries",
    "Run",
    "Segments",
    "Step",
    "StepguardError",
    "Transport",
    "Usage",
    "ValueType",
    "Verdict",
]


def test_the_public_names_are_these() -> None:
    """The names that users import are exactly these, and each is there."""
    assert list(stepguard.__all__) == NAMES
    assert all(getattr(stepguard, name).__name__ == name for name in stepguard.__all__)
    assert set(stepguard.__all__) <= set(dir(stepguard))


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A name that is not there is missing as anywhere in Python."""
    with pytest.raises(AttributeError, match="no attribute 'Gaurd'"):
        _ = stepguard.Gaurd  # type: ignore[attr-defined]


def test_importing_names_loads_nothing_heavy() -> None:
    """Neither the package nor its main names load the libraries that only a model call needs."""
    code = (
        "import sys; from stepguard import Guard, Procedure, Step, Budget\n"
        "heavy = {'openai', 'instructor', 'sympy', 'pydantic', 'structlog', 'rich', 'yaml', 'asyncio'}\n"
        "loaded = heavy & set(sys.modules)\n"
        "sys.exit(str(loaded) if loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
