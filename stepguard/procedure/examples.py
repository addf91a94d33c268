"""Examples of answers to a user's own step, shown to the model before it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, time, timedelta
from decimal import Decimal
from fractions import Fraction

from stepguard.errors import ProcedureError, ValueRefused
from stepguard.language.digits import exact
from stepguard.language.expressions import Expression
from stepguard.language.periods import Period
from stepguard.language.quantities import Amount
from stepguard.language.records import Record
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value
from stepguard.procedure.inputs import listed


@dataclass(frozen=True, slots=True, init=False)
class Example:
    """One answer to a step, which is shown in place of the built-in one.

    Args:
        reads: what the step reads in the example, by name, as Python values.
        value: the right value, as Python or as text.
        work: the working that leads to it; how long it is, the model will do, too.

    Raises:
        ProcedureError: a value is none that a step can read.
    """

    reads: tuple[tuple[str, Value], ...]
    value: object = field(hash=False)
    work: str

    def __init__(self, reads: Mapping[str, object], value: object, work: str = "") -> None:
        if not isinstance(reads, Mapping) or not isinstance(work, str):
            raise ProcedureError('an example is Example({"name": value}, value, "working")')
        put = object.__setattr__
        put(self, "reads", tuple((name, _value(given, name)) for name, given in reads.items()))
        put(self, "value", value)
        put(self, "work", work)

    @classmethod
    def of(cls, given: object) -> Example:
        """An example from a mapping with ``reads``, ``value`` and ``work``, as files have it.

        Raises ProcedureError: it is none.
        """
        if isinstance(given, Example):
            return given
        if not isinstance(given, Mapping) or not {"value"} <= set(given) <= {"reads", "value", "work"}:
            raise ProcedureError(f"an example has reads, value and work, not {given!r:.80}")
        return cls(given.get("reads", {}), given["value"], given.get("work", ""))


def _value(given: object, name: str) -> Value:
    """A Python value as the value of a variable that has no type here."""
    match given:
        case bool() | int() | str() | Decimal() | date() | time() | timedelta() | Period() | Amount() | Record():
            return given
        case Fraction():
            return exact(given)
        case float():
            # repr: 0.1 is meant as a tenth, not as the binary fraction next to it.
            return Decimal(repr(given))
        case list() | tuple():
            return tuple(_value(each, name) for each in given)
        case Mapping():
            return Record({str(key): _value(each, name) for key, each in given.items()})
    raise ProcedureError(f"an example reads {name!r} as a {type(given).__name__}, which no variable can have")


def read_examples(
    given: Iterable[Example | Mapping[str, object]], id: str, kind: ValueType, tree: Expression | None
) -> tuple[Example, ...]:
    """The examples of a step. Raises ProcedureError: it takes none, or one is no answer to it."""
    examples = tuple(map(Example.of, listed(given, f"step {id!r}: examples", "[Example({'c': 'Lyon'}, 'France')]")))
    if examples and tree is not None:
        raise ProcedureError(f"step {id!r}: a step with an expression needs no examples: it says what to do", step=id)
    for example in examples:
        try:
            kind.accept(example.value)
        except ValueRefused as error:
            raise ProcedureError(f"step {id!r}: the value of an example is no {kind}: {error}", step=id) from None
    return examples
