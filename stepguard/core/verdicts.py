"""The words for judging a reply: claims, verdicts and deviations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, get_args

from stepguard.core.arguments import check_one_of, check_text
from stepguard.core.patterns import lazy_pattern
from stepguard.errors import ConfigError

DeviationKind = Literal[
    "missing_step",
    "premature_answer",
    "self_correction",
    "extra_step",
    "duplicate_step",
    "wrong_order",
    "wrong_operand",
    "wrong_value",
    "unfaithful_work",
    "malformed",
    "truncated",
    "empty",
    "refused",
    "undecided",
]
"""Why a reply, or a step in it, was not accepted.

=================  ===========================================================================================
missing_step       a step that was asked is not answered
premature_answer   a final answer is given although only a segment was asked
self_correction    the reply takes back what it wrote for a step
extra_step         something is answered that was not asked
duplicate_step     a step is answered twice
wrong_order        the steps are not answered in their order
wrong_operand      the working uses another value than the step names
wrong_value        the working is this step's, the result is not
unfaithful_work    the result is right, but the working shown is not this step's
malformed          no claim can be read from the reply, or from what it says about the step
truncated          the reply was cut off
empty              the reply holds nothing
refused            the model or the provider declined
undecided          a check could not decide
=================  ===========================================================================================
"""

DEVIATION_KINDS: Final[tuple[str, ...]] = get_args(DeviationKind)

FORMAL: Final[tuple[DeviationKind, ...]] = ("malformed", "unfaithful_work", "missing_step", "empty", "truncated")
"""Deviations of form: what is wrong is how the reply is written."""

Outcome = Literal["pass", "fail", "undecided", "not_applicable"]

Strength = Literal["unverified", "agreed", "grounded", "constrained", "proved"]
"""What stands behind an accepted value, from the weakest to the strongest.

===========  ===================================================================================
unverified   nothing
agreed       several answers, or another model, say the same: they may be wrong in the same way
grounded     it stands in the document that it was read from
constrained  it has properties that a right value has; another value may have them too
proved       it was worked out independently, or shown to be right: no other value would pass
===========  ===================================================================================
"""

STRENGTHS: Final[tuple[Strength, ...]] = get_args(Strength)
"""From the weakest to the strongest."""


def weakest(strengths: Iterable[Strength]) -> Strength:
    """The weakest of some strengths; ``proved`` where there is none."""
    least: Strength = "proved"
    for strength in strengths:
        if strength != "proved" and STRENGTHS.index(strength) < STRENGTHS.index(least):
            least = strength
    return least


_OUTCOMES: Final[tuple[str, ...]] = get_args(Outcome)
# Terminals obey them, encoders refuse them; tabs and line feeds may stay.
_UNSAFE = lazy_pattern("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def check_strength(at_least: object) -> None:
    """Refuse what is no strength, where one is asked for as `at_least`. Raises ConfigError: it is none."""
    check_one_of(at_least, STRENGTHS, "at_least")


def shorten(text: str, length: int = 80) -> str:
    """Foreign text as it may stand in a reason: at most `length` characters, and no line breaks or controls."""
    head = text[: length + 1]
    line = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in head)
    return line if len(line) <= length else f"{line[: length - 3]}..."


def _safe(reason: str) -> str:
    # Lone surrogates cannot be written to any stream, and control characters steer terminals.
    return _UNSAFE.sub(lambda match: ascii(match[0])[1:-1], reason) if _UNSAFE.search(reason) else reason


@dataclass(frozen=True, slots=True)
class Claim:
    """What a reply says about one step, as text.

    Attributes:
        step: the id of the step.
        work: the links of the working, first to last, without the value: ``("t1 * 3", "-21 * 3")``.
        value: the value as it was written.
        text: everything the reply says about the step, untouched.
    """

    step: str
    work: tuple[str, ...]
    value: str
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one check says of one claim.

    Attributes:
        outcome: pass, fail, undecided (the check could not tell) or not applicable.
        check: the name of the check.
        kind: for a failure, the kind of deviation.
        reason: for people and logs; it may name the right value and never enters a prompt.
        retry: whether asking again could change an undecided verdict.
        strength: what a pass means for the value: ``"constrained"`` unless the check says otherwise; None for every
            other outcome.

    Raises:
        ConfigError: the outcome, the kind or the strength is none of those, or `check` or `reason` is no text.
    """

    outcome: Outcome
    check: str
    kind: DeviationKind | None = None
    reason: str = ""
    retry: bool = True
    strength: Strength | None = None

    def __post_init__(self) -> None:
        check_one_of(self.outcome, _OUTCOMES, "outcome")
        check_one_of(self.kind, DEVIATION_KINDS, "kind", optional=True)
        for option in ("check", "reason"):
            check_text(getattr(self, option), option)
        if self.strength is None:
            object.__setattr__(self, "strength", "constrained" if self.outcome == "pass" else None)
        elif self.outcome != "pass" or self.strength not in STRENGTHS[1:]:
            raise ConfigError(
                f"a verdict of {self.outcome} has no strength {self.strength!r}: a pass is one of "
                f"{', '.join(STRENGTHS[1:])}, others have none",
                option="strength",
            )
        object.__setattr__(self, "reason", _safe(self.reason))


@dataclass(frozen=True, slots=True)
class Deviation:
    """Why a reply was not accepted: the kind, the step it concerns (None: the reply as a whole) and a reason.

    The reason is for people and logs and never enters a prompt.
    """

    kind: DeviationKind
    step: str | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", _safe(self.reason))
