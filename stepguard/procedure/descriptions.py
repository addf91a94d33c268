"""The words beside a formula, which may describe it and say nothing else."""

from __future__ import annotations

from stepguard.core.verdicts import shorten
from stepguard.errors import ProcedureError
from stepguard.language.expressions import Expression
from stepguard.language.prose.descriptions import struck, unclear
from stepguard.language.prose.stated_operations import contradicts
from stepguard.language.value_types import ValueType


class UnclearWords(ProcedureError):
    """Words say more than a description does, and nobody would carry that out or check it."""


def check_words(instruction: str, id: str, named: tuple[str, ...], tree: Expression, kind: ValueType) -> None:
    """Refuse words beside a formula that say whether, when or how often it applies, or what it does not do."""
    if (mark := struck(instruction)) is not None:
        raise UnclearWords(f"step {id!r}: {shorten(mark, 40)!r} is struck out or hidden beside its formula", step=id)
    if (word := unclear(instruction, (id, *named), tree, "field")) is not None:
        reads = f" (reads {shorten(', '.join(named), 60)})" if named else ""
        raise UnclearWords(
            f"step {id!r}: its formula is carried out always, and once, and {word!r} in {shorten(instruction, 60)!r} "
            "may change whether, when or how often it applies: let the words beside a formula only say what is worked "
            f'out, or leave the formula out and let words alone say all of it, `{id}: number = "..."{reads}`',
            step=id,
        )

    whole = kind.kind == "integer"
    if (phrase := contradicts(instruction, tree, kind.places, kind.rounding, whole=whole)) is not None:
        raise UnclearWords(
            f"step {id!r}: {phrase!r} in {shorten(instruction, 60)!r} is not what its formula does, which is carried "
            "out: write it in the formula or the type, such as `round(x, 2)`, `min(x, 50)` or `decimal(2, half_up)`, "
            "or leave it out",
            step=id,
        )
