"""What to write where the types of an expression do not go together, and the name that was meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from stepguard.language.quantities import write_unit
from stepguard.language.terms.type_relations import TEXTS
from stepguard.language.value_types import ValueType

VERBS: Final = {"+": "adds", "-": "subtracts", "*": "multiplies", "/": "divides", "//": "divides", "%": "divides"}


def remedy(left: ValueType, right: ValueType) -> str:
    """What to write instead of an operation or a comparison of two types, behind a colon; empty where nothing helps."""
    kinds = {left.kind, right.kind}
    if (left.currency or right.currency) and kinds & {"duration", "quantity"}:
        return ": give the measure as a number, such as `(due - today) / 1 day` or `weight / 1 kg`"
    if "period" in kinds and kinds & {"duration", "period"} == kinds:
        how = "how long months and working days are depends on the date"
        return f": {how}: compare dates, `due <= bought + 1 month`, or count days"
    if kinds in ({"date"}, {"time"}):
        return ": two of them have a difference, such as `due - today`, and no sum"
    if "date" in kinds and (left.numeric or right.numeric):
        return ": say what the number counts, such as `30 days` or `n * 1 day`"
    if "duration" in kinds and (left.numeric or right.numeric):
        return ": say what the number counts, such as `30 days`, or divide the duration, `(due - today) / 1 day`"
    if "quantity" in kinds and (left.numeric or right.numeric):
        unit = write_unit((left if left.unit is not None else right).unit or ())
        return f": give the number its unit, such as `5 {unit}`"
    if kinds == {"quantity"}:
        return ": they do not measure the same"
    if kinds & TEXTS and kinds - TEXTS:
        return ": give the text its type where it is set"
    return ": join truth values with `and` or `or`" if kinds == {"boolean"} else ""


def suggestion(name: str, known: Mapping[str, object] | Sequence[str]) -> str:
    """Suggest the known name nearest to a misspelt one, as a question in brackets; empty where none is near."""
    near = get_close_matches(name, list(known), 1)
    return f" (did you mean {near[0]!r}?)" if near else ""
