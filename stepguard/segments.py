"""How many steps to ask at once."""

from __future__ import annotations

from dataclasses import dataclass

from stepguard.errors import ConfigError

__all__ = ["Segments"]


@dataclass(frozen=True, slots=True)
class Segments:
    """Segments of a fixed length.

    Args:
        size: the most steps that one call asks. A plain number stands for this object: ``Guard(..., segment=5)``.

    After a reply that was cut off, the run goes on with segments half as long.
    """

    size: int = 10

    def __post_init__(self) -> None:
        if isinstance(self.size, bool) or not isinstance(self.size, int) or self.size < 1:
            raise ConfigError(f"a segment has at least one step, not {self.size!r}", option="segment")
