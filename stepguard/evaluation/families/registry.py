"""Families by name, with knobs: ``arithmetic(look_back=7, form=sentence)``.

Other packages add families by the entry point group ``stepguard.families``::

    [project.entry-points."stepguard.families"]
    sudoku = "my_package.sudoku:Sudoku"

What is named there is a `Family`, or a callable that makes one: its keyword arguments are the knobs, and it refuses
wrong ones with `ConfigError`.
"""

from __future__ import annotations

from typing import Final

from stepguard.core.plugins import Plugins, options_of
from stepguard.errors import ConfigError
from stepguard.evaluation.families.base import Family
from stepguard.evaluation.knobs import check_knobs, read_name

FAMILIES: Final = Plugins("stepguard.families", "task", "stepguard.evaluation.families")


def family_names() -> list[str]:
    """The names of all families: the bundled ones, then those of other packages."""
    return FAMILIES.names()


def family_named(text: str) -> Family:
    """The family that a name means, with the knobs that stand in brackets behind it.

    Args:
        text: such as ``running_sum`` or ``arithmetic(places=2, operations="+-*/")``.

    Raises:
        ConfigError: there is no such family, it has no such knob or not that value of it, or the package that brings
            it is broken.
    """
    read = read_name(text)
    if read is None:
        raise ConfigError(
            f"{text!r} names no task: write a name, or knobs behind it as in arithmetic(look_back=7, form=sentence)",
            option="task",
        )
    name, knobs = read
    entry, source = FAMILIES.find(name)
    if not callable(entry):
        family: object = entry
        allowed: list[str] = []
    else:
        allowed = options_of(entry)
    check_knobs(f"task {name!r}", knobs, allowed, "task")
    if callable(entry):
        try:
            family = entry(**knobs)
        except ConfigError as error:
            raise ConfigError(f"task {text.strip()!r}: {error}", option="task") from error
        except Exception as error:  # the family may be foreign code
            raise FAMILIES.broken(name, source, error) from error
    if not isinstance(family, Family):
        raise ConfigError(
            f"task {name!r}, {source}, is no family: it needs a name and make(seed, length), as DraftedFamily has",
            option="task",
        )
    return family
