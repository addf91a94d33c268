"""Finds objects by name: those of this package, and those that other packages bring as entry points.

What is here has the name of its module: `fair_coin` is the class ``FairCoin`` of ``fair_coin.py`` in the folder of its
kind. A list names only what shares a module.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from stepguard.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def _brought(group: str) -> Iterable[EntryPoint]:
    # The path is a key of the cache: a program that adds to it finds the packages there.
    return _entry_points(group, tuple(sys.path))


@lru_cache(maxsize=8)
def _entry_points(group: str, path: tuple[str, ...]) -> Iterable[EntryPoint]:
    """What the packages on a path bring: read once, since a file of every installed package is opened for it."""
    from importlib.metadata import entry_points  # it takes longer than most of this package

    return entry_points(group=group)


@dataclass(frozen=True, slots=True)
class Plugins:
    """Objects of one kind by name.

    Attributes:
        group: the entry point group by which other packages bring theirs.
        what: what one of them is called in messages, which is also the option that errors name.
        folder: the package in which each of ours has a module called as it is, loaded when first asked for.
        shared: those of ours that share a module: name -> module and class.
    """

    group: str
    what: str
    folder: str
    shared: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def bundled(self) -> list[str]:
        """The names of those of this package."""
        places = import_module(self.folder).__path__
        return [*self.shared, *(module.name for module in iter_modules(places) if self.own(module.name) is not None)]

    def names(self) -> list[str]:
        """The names of all: the bundled ones, then those of other packages."""
        bundled = self.bundled()
        return [*bundled, *sorted({entry_point.name for entry_point in _brought(self.group)} - set(bundled))]

    def called(self, name: str) -> type:
        """The class of this package with this name in Python, such as `FairCoin`.

        Raises AttributeError: there is none.
        """
        shared = (key for key, (_, attribute) in self.shared.items() if attribute == name)
        own = self.own(next(shared, name_of_class(name)))
        if own is None or own.__name__ != name:
            raise AttributeError(f"module {self.folder!r} has no attribute {name!r}")
        return own

    def own(self, name: str) -> type | None:
        """The class of this package that has this name; None where there is none."""
        module, attribute = self.shared.get(name, (f"{self.folder}.{name}", name.title().replace("_", "")))
        if not name.isidentifier() or name.startswith("_") or find_spec(module) is None:
            return None
        own: type | None = getattr(import_module(module), attribute, None)
        return own if isinstance(own, type) else None

    def find(self, name: str) -> tuple[object, str]:
        """What has this name, and where it is from.

        Raises ConfigError: nothing has it, several packages bring it, or the one that does is broken.
        """
        points = [entry_point for entry_point in _brought(self.group) if entry_point.name == name]
        if (own := self.own(name)) is not None:
            if points:
                raise self._error(
                    f"{name!r} is one of stepguard's own, and {_source(points[0])} brings another: one has to go"
                )
            return own, "bundled"
        if not points:
            raise ConfigError(f"unknown {self.what} {name!r}: use {', '.join(self.names())}", option=self.what)
        if len(points) > 1:
            places = " and ".join(map(_source, points))
            raise self._error(f"{name!r} is brought twice, by {places}: one has to go")
        (point,) = points
        try:
            return point.load(), _source(point)
        except Exception as error:  # whatever a foreign module raises when it is imported
            raise self.broken(name, _source(point), error) from error

    def broken(self, name: str, source: str, error: Exception) -> ConfigError:
        """The error that says that a package cannot be used."""
        return self._error(
            f"{name!r}, {source}, cannot be made: {type(error).__name__}: {error}; mend or remove that package"
        )

    def _error(self, message: str) -> ConfigError:
        return ConfigError(f"{self.what} {message}", option=self.what)


def name_of_class(name: str) -> str:
    """What an object is called whose class has this name: `fair_coin` of ``FairCoin``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def options_of(make: Callable[..., object]) -> list[str]:
    """The names of the options that a callable takes, in their order."""
    taken = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [name for name, parameter in inspect.signature(make).parameters.items() if parameter.kind in taken]


def _source(point: EntryPoint) -> str:
    package = point.dist.name if point.dist is not None else "an unknown package"
    return f"{package} ({point.value})"
