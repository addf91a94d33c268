"""Published benchmarks as families: items that others made, read from a folder that the user names.

`PUBLISHED` names them; none of their items is in this package. Each is a `FixedFamily`: the instance for a seed is the
item of that number in its file, its steps are a decomposition given by code, and its authors' own prompt and scoring
stand beside ours (`stepguard.evaluation.families.PublishedTask`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from stepguard.core.plugins import options_of
from stepguard.errors import ConfigError
from stepguard.evaluation.knobs import check_knobs, read_name
from stepguard.evaluation.published.bbh import BigBenchHard
from stepguard.evaluation.published.items import FixedFamily
from stepguard.evaluation.published.planbench import PlanBench
from stepguard.evaluation.published.procbench import ProcBench
from stepguard.evaluation.published.receipts import Receipts

__all__ = ["PUBLISHED", "FixedFamily", "published_named"]


PUBLISHED: Final[Mapping[str, Callable[..., FixedFamily]]] = {
    "planbench": PlanBench,
    "bbh": BigBenchHard,
    "procbench": ProcBench,
    "receipts": Receipts,
}
"""Name -> what makes the family from the folder of its items and its knobs."""


def is_published(text: str) -> bool:
    """Whether a name, with whatever knobs, is that of a published benchmark."""
    return text.partition("(")[0].strip() in PUBLISHED


def published_named(text: str, data: Path | None) -> FixedFamily:
    """The family that a name means, its items read.

    Args:
        text: such as ``planbench(domain=logistics)``.
        data: the folder that holds its file.

    Raises:
        ConfigError: there is no such benchmark or knob, or its items cannot be read.
    """
    read = read_name(text)
    if read is None or read[0] not in PUBLISHED:
        raise ConfigError(
            f"{text!r} is no published benchmark, whose items --data holds: --task takes {', '.join(PUBLISHED)}",
            option="task",
        )
    name, knobs = read
    make = PUBLISHED[name]
    if data is None:
        raise ConfigError(
            f"the items of {name} are not in this package: name the folder that holds them with --data DIR. "
            f"{getattr(make, 'SOURCE', '')}",
            option="data",
        )
    allowed = [option for option in options_of(make) if option != "data"]
    check_knobs(f"task {name!r}", knobs, allowed, "task")
    return make(data=data, **knobs)
