"""Patterns that are compiled when they are first used."""

from __future__ import annotations

import copy
import pickle
import re
from importlib import import_module
from pathlib import Path

import pytest

import stepguard
from stepguard.core.patterns import lazy_pattern

PACKAGE = Path(stepguard.__file__).parent


def test_every_lazy_pattern_can_be_compiled() -> None:
    """What is wrong with one would otherwise show at its first use."""
    count = 0
    for path in PACKAGE.rglob("*.py"):
        if "lazy_pattern(" not in path.read_text(encoding="utf-8") or path.stem == "patterns":
            continue
        module = import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
        for value in vars(module).values():
            if type(value) is type(lazy_pattern("")):
                assert isinstance(value.pattern, str)
                count += 1
    assert count > 100


def test_a_lazy_pattern_is_as_the_pattern() -> None:
    """Its methods and attributes are those of the compiled one, also after it was copied or pickled."""
    lazy, eager = lazy_pattern(r"(?P<n>\d+)", re.ASCII), re.compile(r"(?P<n>\d+)", re.ASCII)
    for each in (lazy, copy.copy(lazy), pickle.loads(pickle.dumps(lazy))):
        assert each.sub("x", "a12b3") == eager.sub("x", "a12b3") == "axbx"
        assert (each.pattern, each.flags, each.groupindex["n"]) == (eager.pattern, eager.flags, 1)
    with pytest.raises(re.error):
        _ = lazy_pattern("(").search
