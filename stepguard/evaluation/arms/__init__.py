"""The ways of running a task that the benchmark compares.

All arms see the same instances at temperature 0 (retries and further chains apart), and are judged alike. An arm is
called by its name, with knobs in brackets: ``guard``, ``guard(segment=5, retries=2)``, ``resample(k=5)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from stepguard.core.plugins import options_of
from stepguard.errors import ConfigError
from stepguard.evaluation.arms.base import Arm, ArmOptions, Neighbour, TaskOutcome
from stepguard.evaluation.arms.blind import Blind
from stepguard.evaluation.arms.by_code import ByCode, Offload
from stepguard.evaluation.arms.floor import Copy, Guess
from stepguard.evaluation.arms.guarded import Chunk, Guarded
from stepguard.evaluation.arms.primed import Primed
from stepguard.evaluation.arms.reading import TranscriptReading, read_run
from stepguard.evaluation.arms.transcripts import (
    AuthorsPrompt,
    ChainOfThought,
    Direct,
    ResampledChains,
    StructuredTrace,
)
from stepguard.evaluation.knobs import check_knobs, read_name

__all__ = [
    "ARMS",
    "Arm",
    "ArmKind",
    "ArmOptions",
    "Neighbour",
    "TaskOutcome",
    "TranscriptReading",
    "arm_named",
    "kind_of",
    "read_run",
]

ARMS: Final[Mapping[str, Callable[..., Arm]]] = {
    "offload": Offload, "program": ByCode, "direct": Direct, "cot": ChainOfThought, "authors": AuthorsPrompt,
    "trace": StructuredTrace, "resample": ResampledChains, "chunk": Chunk, "blind": Blind, "guard": Guarded,
    "guess": Guess, "copy": Copy, "primed": Primed,
}  # fmt: skip
"""Name -> what makes the arm from its knobs."""

ArmKind = Literal["unguarded", "guarded", "by code", "floor", "probe"]
_KINDS: Final[Mapping[str, ArmKind]] = {
    "offload": "by code",
    "program": "by code",
    "guard": "guarded",
    "guess": "floor",
    "copy": "floor",
    "primed": "probe",
}


def kind_of(arm: str) -> ArmKind:
    """What an arm is compared as, by its name.

    ``unguarded``: it asks a model and vouches for nothing, a rival of the guard. ``guarded``: it vouches for what it
    says. ``by code``: an interpreter does the sums. ``floor`` and ``probe`` are compared with nothing.
    """
    name, _, knobs = arm.partition("(")
    if name == "resample" and "checked=true" in knobs:
        return "guarded"
    return _KINDS.get(name, "unguarded")


def arm_named(text: str) -> Arm:
    """The arm that a name means, with the knobs that stand in brackets behind it.

    Raises ConfigError: there is no such arm, or it has no such knob or not that value of it.
    """
    read = read_name(text)
    if read is None:
        raise ConfigError(f"{text!r} names no arm: write a name, or knobs behind it as in resample(k=5)", option="arms")
    name, knobs = read
    if name not in ARMS:
        raise ConfigError(f"unknown arm {name!r}: use {', '.join(ARMS)}", option="arms")
    check_knobs(f"arm {name!r}", knobs, options_of(ARMS[name]), "arms")
    try:
        return ARMS[name](**knobs)
    except ConfigError as error:
        raise ConfigError(f"arm {text.strip()!r}: {error}", option="arms") from error
