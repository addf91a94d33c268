"""Foreign text by the million: nothing but values and errors of ours comes out, quickly, and nothing else happens.

Four kinds of items. ``grammar``: expressions made from a tree whose value is worked out independently; both must agree.
``mutant``: expressions with characters changed, and hostile ones; where the parser of Python reads the same text, the
value must be the one that it has there. ``entry``: right entries of steps with characters changed, judged; what passes
must be true. ``numeral`` and ``reply``: numbers and whole replies with characters changed. Of these, the first three
count as expressions.

While it runs, an audit hook watches for anything that executes code, opens files, starts processes or connects.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from certification.fuzz_entries import Entries, Replies
from certification.fuzz_expressions import Mutants, Numerals, grammar
from certification.fuzz_items import Found, Item
from stepguard.errors import EvaluationError, ExpressionError, ValueRefused
from stepguard.replies.reading import Reading

__all__ = ["EXPRESSIONS", "LIMIT", "TARGETS", "Found", "fuzz"]

LIMIT = 0.05
"""Seconds of processor time that one item may take, unless told otherwise."""
EXPRESSIONS = ("grammar", "mutant", "entry")
TARGETS = {"grammar": 0.45, "mutant": 0.45, "entry": 0.1, "numeral": 0.2, "reply": 0.02}
"""The targets, and how many items of each there are for every fuzzed expression."""

_OURS = (ExpressionError, EvaluationError, ValueRefused)
_SHOWN = 50


class _Watch:
    """What happens in this process besides computing, while it is on."""

    EVENTS = (
        "exec",
        "compile",
        "open",
        "os.",
        "subprocess.",
        "socket.",
        "shutil.",
        "ctypes.",
        "import",
        "pty.",
        "code.",
    )

    def __init__(self) -> None:
        self.on = False
        self.seen: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self.on and event.startswith(self.EVENTS):
            self.seen.append(f"{event} {arguments!r:.100}")


def fuzz(seed: int, expressions: int, limit: float = LIMIT) -> dict[str, Found]:
    """Fuzz so many expressions, and other text in proportion; `limit` is what one item may take, in seconds."""
    watch = _Watch()
    found: dict[str, Found] = {}
    for target, share in TARGETS.items():
        chance = random.Random(f"fuzz:{seed}:{target}")
        maker: Callable[[random.Random], Item]
        match target:
            case "grammar":
                maker = grammar
            case "mutant":
                maker = Mutants(chance).item
            case "entry":
                maker = Entries(chance, min(3000, expressions // 20 + 10)).item
            case "numeral":
                maker = Numerals(chance).item
            case _:
                maker = Replies(chance).item
        found[target] = each = Found()
        for _ in range(round(expressions * share)):
            item = maker(chance)
            each.n += 1
            _one(item, each, watch, limit)
    return found


def _one(item: Item, found: Found, watch: _Watch, limit: float) -> None:
    result: object = None
    watch.on = True
    start = time.thread_time()
    try:
        result = item.run(item.text)
    except _OURS as error:
        result = error
    except RecursionError as error:
        result = error
        found.escapes.append(f"RecursionError: {item.text[:200]!a}")
    except Exception as error:  # noqa: BLE001 - what is looked for
        result = error
        found.escapes.append(f"{type(error).__name__}: {str(error)[:100]!a}: {item.text[:200]!a}")
    took = time.thread_time() - start
    watch.on = False
    if watch.seen:
        found.escapes.append(f"{watch.seen[0]}: {item.text[:200]!a}")
        watch.seen.clear()
    if took > limit:
        took = min(took, *(_timed(item) for _ in range(2)))
        if took > limit:
            found.slow.append(f"{took * 1000:.0f} ms, {len(item.text)} characters: {item.text[:100]!a}")
    if took > found.slowest:
        found.slowest, found.slowest_item = took, f"{len(item.text)} characters: {item.text[:100]!a}"
    found.outcomes[_outcome(result)] += 1
    wrong = item.judge(result, found)
    if wrong is not None and len(found.disagreements) < _SHOWN:
        found.disagreements.append(f"{wrong}: {item.text[:300]!a}")


def _timed(item: Item) -> float:
    start = time.thread_time()
    with suppress(Exception):  # it was counted
        item.run(item.text)
    return time.thread_time() - start


def _outcome(result: object) -> str:
    if isinstance(result, Exception):
        return type(result).__name__
    if isinstance(result, Reading):
        return "read" if result.failed is None else result.failed.kind
    return result if isinstance(result, str) and result.startswith("judged ") else f"a value ({type(result).__name__})"
