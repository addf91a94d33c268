"""Checks what the bodies of records look like: one that was altered is named before it is used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, get_args

from stepguard.core.verdicts import DEVIATION_KINDS, STRENGTHS
from stepguard.results import Assistance, AttemptOutcome, Status


@dataclass(frozen=True, slots=True)
class _Maybe:
    """It may be null, or, in an object, not there."""

    shape: Any


@dataclass(frozen=True, slots=True)
class _Sometimes:
    """Of an object: it may not be there."""

    shape: Any


def _words(kinds: Any) -> frozenset[str]:
    return frozenset(get_args(kinds))


_TEXT: Final = _Maybe(str)
_PLACE: Final = {"index": int, "id": str, "path": str}
_DEVIATIONS: Final = [(frozenset(DEVIATION_KINDS), _TEXT, str)]
_DECISION: Final = {
    "outcome": frozenset({"allow", "refuse", "ask", "hand_over"}),
    **dict.fromkeys(("tool", "call"), str),
    **dict.fromkeys(("key", "at"), _TEXT),
    "number": _Maybe(int),
    "arguments": dict,
    "reasons": [{"words": str}],
    "confirmations": [str],
}
_OFFERED: Final = {
    **dict.fromkeys(("id", "tool", "key", "status"), str),
    "number": int,
    "arguments": dict,
    "read": bool,
    "at": _Maybe(int),
    "spent": [(str, str)],
    "yeses": [str],
    "open": [int],
    "result": object,
}
# As far as readers rely on it: what stands there besides does no harm.
_SHAPES: Final[dict[str, dict[str, Any]]] = {
    "begin": {
        **dict.fromkeys(("run", "procedure"), str),
        "inputs": _Maybe(dict),
        **dict.fromkeys(("conversation", "queue", "title"), _TEXT),
        **dict.fromkeys(("priority", "total", "epoch"), _Maybe(int)),
        "started": _Maybe(float),
        "options": _Maybe({"zone": str, "reused_ids": bool, "observe": bool}),
    },
    "step": {
        **_PLACE,
        "value": object,
        **dict.fromkeys(("place", "digest"), str),
        "claim": _Maybe(([str], str, str)),
        "strength": frozenset(STRENGTHS),
        "tries": int,
        "assistance": _words(Assistance),
        "deviations": _DEVIATIONS,
    },
    "call": {**_PLACE, **dict.fromkeys(("key", "operation", "digest"), str), "returned": bool},
    "repeat": {"key": str},
    "erased": {"at": str},
    "answer": {"path": str, "question": str, "value": object},
    "attempt": {
        **dict.fromkeys(("number", "committed"), int),
        "steps": [(int, str, str, str)],
        "rung": str,
        "outcome": _words(AttemptOutcome),
        "deviations": _DEVIATIONS,
        "usage": (int, int, int, int, int),
        "seconds": float,
        **dict.fromkeys(("finish_reason", "text", "error", "backend"), _TEXT),
        "prompt": _Maybe([(str, str)]),
    },
    "end": {
        "status": _words(Status),
        "completed": int,
        "total": _Maybe(int),
        "answer": object,
        "problem": _Maybe({**_PLACE, "reason": str}),
        "cost": _TEXT,
    },
    "gate": {
        "facts": _Sometimes([{"fact": str, "keys": list, "value": object, "strength": str}]),
        "decisions": _Sometimes([_DECISION]),
        "calls": _Sometimes([_OFFERED]),
        **{name: _Sometimes([str]) for name in ("yeses", "given", "used")},
        "refused": _Sometimes(dict),
        "handed_over": _Sometimes(bool),
        "at": _Sometimes(str),
    },
}


def check_shape(kind: str, body: object) -> None:
    """See that the body of a record is one of its kind, as far as its parts are of the right types.

    Raises ValueError: it is none; the part is named.
    """
    wrong = _fault(body, _SHAPES.get(kind, {}))
    if wrong is not None:
        raise ValueError(f"{wrong} of a record of the kind {kind!r} is not what is written there")


def _fault(data: Any, shape: Any, where: str = "the body") -> str | None:
    """The first part that has another shape."""
    match shape:
        case _Maybe():
            return None if data is None else _fault(data, shape.shape, where)
        case _Sometimes():
            return _fault(data, shape.shape, where)
        case dict():
            if not isinstance(data, dict):
                return where
            for name, part in shape.items():
                if name not in data and isinstance(part, _Maybe | _Sometimes):
                    continue
                if name not in data or (wrong := _fault(data[name], part, name)) is not None:
                    return name if name not in data else wrong
            return None
        case list():
            if not isinstance(data, list):
                return where
            return next((where for item in data if _fault(item, shape[0], where) is not None), None)
        case tuple():
            if not isinstance(data, list) or len(data) != len(shape):
                return where
            pairs = zip(data, shape, strict=True)
            return next((where for item, part in pairs if _fault(item, part, where) is not None), None)
        case frozenset():
            return None if isinstance(data, str) and data in shape else where
    if shape is float:
        return None if type(data) in (int, float) else where
    # By the very type: True is no number here.
    return None if shape is object or type(data) is shape else where
