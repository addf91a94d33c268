"""Families by name, with knobs: ``arithmetic(look_back=7, form=sentence)``.

Other packages add families by the entry point group ``stepguard.families``::

    [project.entry-points."stepguard.families"]
    sudoku = "my_package.sudoku:Sudoku"

What is named there is a `Family`, or a callable that makes one: its keyword arguments are the knobs, and it refuses
wrong ones with `ConfigError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from stepguard.errors import ConfigError
from stepguard.evaluation.families.base import Family
from stepguard.evaluation.knobs import knobs_of, read_name

__all__ = ["BUNDLED", "GROUP", "family_named", "family_names"]

GROUP: Final = "stepguard.families"

BUNDLED: Final[Mapping[str, tuple[str, str]]] = {
    "arithmetic": ("stepguard.evaluation.families.arithmetic", "Arithmetic"),
    "running_sum": ("stepguard.evaluation.families.running_sum", "RunningSum"),
    "roots": ("stepguard.evaluation.families.roots", "Roots"),
    "word_lists": ("stepguard.evaluation.families.word_lists", "WordLists"),
    "returns_desk": ("stepguard.evaluation.families.returns_desk", "ReturnsDesk"),
}
"""Name -> module and class, loaded when it is first asked for."""


def family_names() -> list[str]:
    """The names of all families: the bundled ones, then those of other packages."""
    return [*BUNDLED, *sorted({each.name for each in entry_points(group=GROUP)} - set(BUNDLED))]


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
    found, source = _find(name)
    if not callable(found):
        family: object = found
        allowed: list[str] = []
    else:
        allowed = knobs_of(found)
    unknown = [knob for knob in knobs if knob not in allowed]
    if unknown:
        takes = f"it takes {', '.join(allowed)}" if allowed else "it takes none"
        raise ConfigError(f"task {name!r} has no knob {unknown[0]!r}: {takes}", option="task")
    if callable(found):
        try:
            family = found(**knobs)
        except ConfigError as error:
            raise ConfigError(f"task {text.strip()!r}: {error}", option="task") from error
        except Exception as error:  # the family may be foreign code
            raise _broken(name, source, error) from error
    if not isinstance(family, Family):
        raise ConfigError(
            f"task {name!r}, {source}, is no family: it needs a name and make(seed, length)", option="task"
        )
    return family


def _find(name: str) -> tuple[object, str]:
    """What brings a family, and where it is from."""
    points = [each for each in entry_points(group=GROUP) if each.name == name]
    if name in BUNDLED:
        if points:
            raise ConfigError(
                f"task {name!r} is one of stepguard's own, and {_source(points[0])} brings another: one has to go",
                option="task",
            )
        module, attribute = BUNDLED[name]
        return getattr(import_module(module), attribute), "bundled"
    if not points:
        raise ConfigError(f"unknown task {name!r}: use {', '.join(family_names())}", option="task")
    if len(points) > 1:
        places = " and ".join(map(_source, points))
        raise ConfigError(f"task {name!r} is brought twice, by {places}: one has to go", option="task")
    (point,) = points
    try:
        return point.load(), _source(point)
    except Exception as error:  # whatever a foreign module raises when it is imported
        raise _broken(name, _source(point), error) from error


def _broken(name: str, source: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"task {name!r}, {source}, cannot be made: {type(error).__name__}: {error}; mend or remove that package",
        option="task",
    )


def _source(point: EntryPoint) -> str:
    package = point.dist.name if point.dist is not None else "an unknown package"
    return f"{package} ({point.value})"
