"""Families whose items are fixed: read from a file, in its order, each one checked before any model is asked."""

from __future__ import annotations

import hashlib
import json
import random
from abc import ABC, abstractmethod
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from stepguard.errors import ConfigError
from stepguard.evaluation.families import Task
from stepguard.evaluation.knobs import Named
from stepguard.language.values import Value

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedFamily(Named, ABC):
    """A family of items that others made: the instance for a seed is the item of that number, from 0 on.

    A subclass reads its items when it is made. One that is of no form it knows, or whose published answer is not what
    its rules give, is left out and told of: it is in no figure.

    Args:
        data: the folder that holds the items.

    Attributes:
        lengths: the number of steps of every item, in the order of the file.
        left_out: why items are left out, each with its line.
        digest: a hash of what was read.
    """

    SOURCE: ClassVar[str]
    """Which file is read, and where it is to be had."""
    PUBLISHED_FIGURES: ClassVar[str]
    """What others published on these items, and what of it can be compared."""

    data: Path = field(repr=False)
    lengths: tuple[int, ...] = field(init=False, repr=False, default=())
    left_out: tuple[str, ...] = field(init=False, repr=False, default=())
    digest: str = field(init=False, repr=False, default="")

    def keep(self, **fields: object) -> None:
        """Set what was read, once."""
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @abstractmethod
    def task(self, number: int) -> Task:
        """The item of a number as a task."""

    def make(self, seed: int, length: int) -> Task:
        """The item with the number `seed`.

        Raises ConfigError: there is none of that number or length.
        """
        if not 0 <= seed < len(self.lengths) or self.lengths[seed] != length:
            has = f"{self.lengths[seed]} steps" if 0 <= seed < len(self.lengths) else "no place"
            raise ConfigError(
                f"{self.name} has items 0 to {len(self.lengths) - 1}, and item {seed} has {has} there, not {length}",
                option="data",
            )
        return self.task(seed)

    def sample(self, count: int | None, seed: int) -> list[tuple[int, int]]:
        """(length, number) of so many items drawn by a seed, in the order of the file; None: of all."""
        numbers: Sequence[int] = range(len(self.lengths))
        if count is not None:
            numbers = sorted(random.Random(f"items:{seed}").sample(numbers, count))
        return [(self.lengths[number], number) for number in numbers]

    def describe(self) -> dict[str, Any]:
        """What a report has to say of the items; ``warning`` where some are left out."""
        about: dict[str, Any] = {"items": len(self.lengths), "source": self.SOURCE, "published": self.PUBLISHED_FIGURES}
        if self.left_out:
            count, total = len(self.left_out), len(self.left_out) + len(self.lengths)
            about["left_out"] = list(self.left_out)
            about["warning"] = f"LEFT OUT: {count} of {total} items, which are in no figure; {self.left_out[0]}"
        return about


def read_items(folder: Path, file: str, source: str, fields: Mapping[str, type]) -> tuple[list[dict[str, Any]], str]:
    """The items of a file of JSON lines, and a hash of the file.

    Args:
        source: where it is to be had, for the message that it is not there.
        fields: what every item has, and of which type.

    Raises:
        ConfigError: the file is not there or holds something else; the line is named.
    """
    raw = _bytes_of(folder, file, source)
    path = folder / file
    items: list[dict[str, Any]] = []
    for number, line in enumerate(raw.removeprefix(BOM_UTF8).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line.decode())
        except ValueError as error:
            raise _refuse(path, number, f"is no JSON: {error}. {source}") from error
        if not isinstance(item, dict):
            raise _refuse(path, number, f"an item is an object, found {line[:40]!r}. {source}")
        for name, kind in fields.items():
            if type(item.get(name)) is not kind:
                what = f"{name!r} is a {kind.__name__} in every item, found {item.get(name)!r:.60}. {source}"
                raise _refuse(path, number, what)
        items.append({**item, "line": number})
    if not items:
        raise ConfigError(f"{path} holds no items. {source}", option="data")
    return items, hashlib.sha256(raw).hexdigest()[:16]


def read_json(folder: Path, file: str, source: str) -> dict[str, str]:
    """A file that holds one JSON object of texts. Raises ConfigError: the file is not there or holds something else."""
    try:
        texts = json.loads(_bytes_of(folder, file, source).decode())
    except ValueError as error:
        raise ConfigError(f"{folder / file} is no JSON: {error}. {source}", option="data") from error
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise ConfigError(f"{folder / file} is one JSON object of texts. {source}", option="data")
    return texts


def understood(
    items: Iterable[Mapping[str, Any]], read: Callable[[Mapping[str, Any]], T], path: Path, source: str
) -> tuple[list[T], tuple[str, ...]]:
    """What was made of the items that could be read, and why others could not.

    Args:
        read: makes something of one; where it cannot, it raises `ValueError`, `LookupError`, `TypeError` or
            `SyntaxError`.
        path, source: the file, and where it is to be had.

    Raises:
        ConfigError: there are no items, or none could be read.
    """
    made: list[T] = []
    left_out: list[str] = []
    for item in items:
        try:
            made.append(read(item))
        except (ValueError, LookupError, TypeError, SyntaxError, RecursionError) as error:
            left_out.append(f"line {item['line']}: {error}")
    if not made:
        why = f", {left_out[0]}" if left_out else " holds no item of that kind"
        raise ConfigError(f"{path}{why}. {source}", option="data")
    return made, tuple(left_out)


def constant(value: T) -> Callable[[Mapping[str, Value]], T]:
    """What an item itself says, whatever a run has found so far."""
    return lambda _: value


def _refuse(path: Path, line: int, message: str) -> ConfigError:
    """An error in an item, with its place."""
    return ConfigError(f"{path}, line {line}: {message}", option="data")


def _bytes_of(folder: Path, file: str, source: str) -> bytes:
    if not folder.is_dir():
        raise ConfigError(f"--data: there is no folder {folder}. {source}", option="data")
    try:
        return (folder / file).read_bytes()
    except OSError as error:
        raise ConfigError(f"{folder / file} cannot be read: {error.strerror}. {source}", option="data") from error
