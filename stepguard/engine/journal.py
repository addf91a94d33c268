"""The journal of a run: what is durable of it, and the protocol that makes it so.

A run that continues in another process gets what earlier ones made durable: verified steps, calls of tools, answers of
persons and the calls of the model. A verified step is known by its place in the run, its definition
and the values that it reads; which model said it, in which segment and after how many tries is not asked. It is judged
again by its checks before it is used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Final, Protocol

from stepguard.core.usage import Usage
from stepguard.core.verdicts import Claim, Deviation, Strength
from stepguard.engine.actions import Commit, OperationCall
from stepguard.language.expressions import format_expression
from stepguard.language.terms.evaluation import evaluate_term
from stepguard.language.value_json import to_data
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value
from stepguard.procedure.steps import Step
from stepguard.results import Assistance, Attempt, Occurrence, Result

_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))
_ADDRESS: Final = re.compile(r" at 0x[0-9A-Fa-f]+(?=>)")  # as in <function fee at 0x7f00>, and not in a text


@dataclass(frozen=True, slots=True)
class KeptStep:
    """A verified step that is durable.

    Attributes:
        digest: what it was a step of; see `step_digest`.
        value: its value.
        claim: what was accepted for it; None where code, a function or a tool performed it.
        strength: what stood behind the value.
        tries: as in `stepguard.results.StepRecord`, and so are the others.
    """

    digest: str
    value: Value
    claim: Claim | None = None
    strength: Strength = "unverified"
    tries: int = 1
    assistance: Assistance = "none"
    deviations: tuple[Deviation, ...] = ()


class Journal(Protocol):
    """Where one run is made durable.

    What it raises is a `stepguard.errors.LedgerError`.
    """

    @property
    def steps(self) -> Mapping[str, KeptStep]:
        """The verified steps of earlier processes, by `place_of`."""
        ...

    @property
    def calls(self) -> Mapping[str, OperationCall]:
        """The calls of tools that were begun, by their idempotency keys, with what they gave where that is known."""
        ...

    @property
    def answers(self) -> Mapping[str, tuple[str, Value]]:
        """What persons have answered while the run was parked: question and answer, by the text of the place."""
        ...

    @property
    def attempts(self) -> Sequence[Attempt]:
        """The model calls of earlier processes."""
        ...

    @property
    def usage(self) -> Usage:
        """What earlier processes spent."""
        ...

    @property
    def prompts(self) -> bool:
        """Whether it keeps what was sent: attempts hold it then."""
        ...

    def commit(self, commit: Commit) -> None:
        """Make steps, or a call of a tool, durable."""
        ...

    def book(self, attempts: Sequence[Attempt]) -> None:
        """Take in model calls that are done with."""
        ...

    def close(self, result: Result) -> None:
        """Record that the run has ended, or waits; durable after `settle`. Nothing follows unless it is reopened."""
        ...

    def settle(self) -> None:
        """Have everything durable that was written."""
        ...

    def reopen(self) -> None:
        """The run goes on, in this process, from where it was closed."""
        ...


def place_of(where: Occurrence) -> str:
    """The name of a place in a run that every run of the procedure on the same values gives it."""
    return f"{where}@{where.site}" if where.site else f"{where.index}:{where.step}"


def step_digest(step: Step, values: Mapping[str, Value]) -> str:
    """What a step is and reads, as a short text: its definition without how it is asked, and the values."""
    # Not how it is asked (model, prompts, budget): another guard may go on with the run, and judges the value again.
    definition = (
        step.id,
        step.formula,
        step.instruction,
        _type_text(step.type),
        step.performer,
        step.operation,
        [(name, format_expression(value)) for name, value in step.arguments],
        [without_addresses(repr(check)) for check in step.checks],
        [(name, to_data(values[name])) for name in step.reads if name in values],
    )
    return blake2b(_ENCODER.encode(definition).encode(), digest_size=16).hexdigest()


def call_digest(step: Step, values: Mapping[str, Value]) -> str:
    """What a tool is called with, as a short text.

    Raises EvaluationError: an argument has no value; nothing can be called then.
    """
    given = [(name, to_data(evaluate_term(value, values, {}))) for name, value in step.arguments]
    return blake2b(json.dumps((step.operation, given)).encode(), digest_size=16).hexdigest()


def without_addresses(text: str) -> str:
    """The text of an object without where it lies in memory, which every process has elsewhere."""
    return _ADDRESS.sub("", text) if " at 0x" in text else text


@lru_cache(maxsize=256)
def _type_text(kind: ValueType) -> str:
    return repr(kind)
