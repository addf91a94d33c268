"""What the tests of batches share: a procedure, its rows, and a model that counts what it is asked."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

from stepguard import Procedure
from stepguard.errors import BackendError

TEXT: Final = "name: sums\ninputs: x: integer\na = x * 3\nb = a + 4\nc = b - 1\n"
SUMS: Final = Procedure.parse(TEXT)
CALLS: Final = 3
"""Of one row, with one step a call."""

# With its value in the formula where all steps are sums of whole numbers, else behind it: `c = b - 1  (b = 4)`.
_STEP: Final = re.compile(r"(\w+) = (-?\w+) ([*+-]) (\d+)(?:\s+\(\2 = (-?\d+)\))?")


def answer_to(prompt: str) -> dict[str, str]:
    """The right answer to a prompt that asks one step of `SUMS`."""
    asked = _STEP.search(prompt)
    assert asked is not None, prompt
    name, left, sign, right, value_of_left = asked.groups()
    one, other = int(value_of_left or left), int(right)
    value = {"*": one * other, "+": one + other, "-": one - other}[sign]
    return {name: f"{one} {sign} {other} = {value}"}


def rows(count: int) -> list[dict[str, object]]:
    """Rows whose prompts are all unlike, so that no reply serves two of them."""
    return [{"id": f"r{x}", "x": 1000 * x} for x in range(count)]


class CountingModel:
    """Answers rightly, and notes every prompt in a file, which a kill leaves; for `down` rows there is no answer."""

    name = "counting"

    def __init__(self, log: Path, down: frozenset[int] = frozenset()) -> None:
        self._log: Final = log
        self._down: Final = down

    def __call__(self, messages: list[dict[str, str]]) -> str:
        prompt = messages[-1]["content"]
        if any(f"a = {1000 * x} *" in prompt for x in self._down):
            raise BackendError("the endpoint is down", retryable=False)
        with self._log.open("ab", buffering=0) as file:
            file.write(json.dumps(prompt).encode() + b"\n")
        return json.dumps(answer_to(prompt))


def asked(log: Path) -> Counter[str]:
    """How often each prompt was asked."""
    return Counter(log.read_text(encoding="utf-8").splitlines()) if log.exists() else Counter()


def results(out: Path) -> list[dict[str, Any]]:
    """The results in a file of JSON lines, in the order of the rows."""
    return sorted(map(json.loads, out.read_text(encoding="utf-8").splitlines()), key=lambda each: each["index"])
