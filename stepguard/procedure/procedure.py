"""Procedures and their steps: what is to be done, in which order, from which values.

A `Procedure` is immutable and checked when it is made: every variable a step reads is an input or set by an earlier
step, and of a type that its expression can compute with, every id is unique, the answer is reachable. What each step
reads and writes is derived from its expression, so that a prompt can show exactly the values a step needs.

A procedure need not be held in memory: `Procedure.lazy` takes a function from index to step and a look-back, and
checks every step when it is reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stepguard.errors import ConfigError, ExpressionError, InputError, ProcedureError, ValueRefused
from stepguard.language.values import Value
from stepguard.procedure.lazy_steps import LazySteps
from stepguard.procedure.steps import Input, Step, as_inputs, check_operands, check_step, listed, unknown_name

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Procedure", "check_procedure", "make_step_error"]


@dataclass(frozen=True, init=False, eq=False)
class Procedure:
    """A named sequence of steps with declared inputs and an answer.

    Args:
        steps: the steps, in order.
        inputs: the inputs, as names or `Input`.
        answer: the variable that is the result; the last step's by default.
        name: a name for people and logs.

    Raises:
        ProcedureError: an unknown or later variable, or one that an expression cannot compute with, a duplicate id,
            an unreachable answer, no steps, something else than a list.
    """

    steps: Sequence[Step]
    inputs: tuple[Input, ...]
    answer: str
    name: str
    look_back: int | None
    _last_read: Mapping[str, int] = field(repr=False)

    def __init__(
        self,
        steps: Iterable[Step],
        *,
        inputs: Iterable[str | Input] = (),
        answer: str | None = None,
        name: str = "procedure",
    ) -> None:
        listing = listed(steps, "steps", "[Step('t', 'x + 1')]")
        for number, entry in enumerate(listing, 1):
            check_step(entry, number)
        self._set(listing, as_inputs(inputs), answer, name, None)
        last_read: dict[str, int] = {}
        names: dict[str, Input | Step] = {entry.name: entry for entry in self.inputs}
        for index, step in enumerate(listing):
            if step.id in names:
                earlier = "an input" if isinstance(names[step.id], Input) else "an earlier step"
                raise ProcedureError(f"duplicate id: {step.id!r} is already {earlier}", step=step.id)
            for name_ in step.reads:
                if name_ not in names:
                    raise unknown_name(step, name_, (later.id for later in listing[index:]))
                last_read[name_] = index
            check_operands(step, names)
            names[step.id] = step
        if self.answer not in names:
            raise ProcedureError(f"unreachable answer: no step sets {self.answer!r} and it is no input")
        last_read[self.answer] = len(listing)
        object.__setattr__(self, "_last_read", last_read)

    def _set(
        self, steps: Sequence[Step], inputs: tuple[Input, ...], answer: str | None, name: str, look_back: int | None
    ) -> None:
        if len(steps) == 0:
            raise ProcedureError("a procedure needs at least one step")
        if len(name.strip().splitlines()) != 1:
            raise ProcedureError(f"{name!r} cannot be the name of a procedure: one line of text is needed")
        put = object.__setattr__
        put(self, "steps", steps)
        put(self, "inputs", inputs)
        put(self, "answer", answer if answer is not None else steps[len(steps) - 1].id)
        put(self, "name", name.strip())
        put(self, "look_back", look_back)
        put(self, "_last_read", {})

    @classmethod
    def lazy(
        cls,
        step_at: Callable[[int], Step],
        length: int,
        *,
        look_back: int,
        inputs: Iterable[str | Input] = (),
        name: str = "procedure",
    ) -> Procedure:
        """A procedure whose steps are made when they are needed, for lengths that memory should not hold.

        Args:
            step_at: gives the step at an index from 0 to `length` - 1, always the same one.
            length: how many steps there are.
            look_back: a step reads inputs and the values of at most this many steps before it. Checked for every
                step when it is reached; a step that reads further back raises `ProcedureError` then.
            inputs: the inputs, as names or `Input`.
            name: a name for people and logs.

        The answer is the value of the last step.
        """
        if length < 1 or look_back < 1:
            raise ProcedureError("a lazy procedure needs a length and a look-back of at least 1")
        procedure = cls.__new__(cls)
        declared = as_inputs(inputs)
        procedure._set(LazySteps(step_at, length, look_back, declared), declared, None, name, look_back)
        return procedure

    @classmethod
    def parse(cls, text: str) -> Procedure:
        """Read a procedure from text; the notation is described in `stepguard.procedure.text_format`.

        Raises:
            ProcedureError: the text is no procedure; `line` names where.
        """
        from stepguard.procedure.text_format import parse_procedure

        if not isinstance(text, str):
            raise ProcedureError(
                f"Procedure.parse takes the text of a procedure, not a {type(text).__name__}; Procedure.load takes the "
                "path of a file"
            )
        return parse_procedure(text)

    @classmethod
    def load(cls, path: str | Path) -> Procedure:
        """Read a procedure from a file: YAML or JSON by its suffix, text otherwise (see `stepguard.procedure`).

        Raises:
            ProcedureError: the file holds no procedure, or is of an unknown kind.
            OSError: the file cannot be read.
        """
        from pathlib import Path

        from stepguard.procedure.text_format import load_procedure

        return load_procedure(Path(path))

    def __repr__(self) -> str:
        count = f"{len(self)} step{'' if len(self) == 1 else 's'}"
        inputs = f"from {', '.join(declared.name for declared in self.inputs)} " if self.inputs else ""
        return f"<Procedure {self.name!r}: {count} {inputs}to {self.answer}>"

    def __str__(self) -> str:
        from stepguard.procedure.text_format import format_procedure

        return format_procedure(self)

    def __len__(self) -> int:
        return len(self.steps)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Procedure):
            return NotImplemented
        mine = (self.steps, self.inputs, self.answer, self.name, self.look_back)
        return mine == (other.steps, other.inputs, other.answer, other.name, other.look_back)

    def __hash__(self) -> int:
        return hash((self.name, self.inputs, self.answer, len(self.steps)))

    def live(self, name: str, index: int) -> bool:
        """Whether the step at `index`, or any later one, can still read `name` (the answer is read at the end).

        Of a lazy procedure its look-back decides: later steps are not made to find out.
        """
        if self.look_back is None:
            return self._last_read.get(name, -1) >= index
        if name == self.answer or any(declared.name == name for declared in self.inputs):
            return True
        return any(self.steps[back].id == name for back in range(max(0, index - self.look_back), index))

    def accept_inputs(self, values: Mapping[str, object]) -> dict[str, Value]:
        """The inputs of a run as exact values.

        Raises:
            InputError: an input is missing, unknown or not of its type.
        """
        if not isinstance(values, Mapping):
            raise InputError(
                f"the inputs of {self.name} are a mapping from name to value, not a {type(values).__name__}"
            )
        names = dict.fromkeys(declared.name for declared in self.inputs)
        unknown = [name for name in values if name not in names]
        if unknown:
            listing = f"it declares {', '.join(names)}" if names else "it declares none"
            raise InputError(f"{self.name} has no input {unknown[0]!r}: {listing}", name=str(unknown[0]))
        accepted: dict[str, Value] = {}
        for declared in self.inputs:
            if declared.name not in values:
                raise InputError(f"input {declared.name!r} of {self.name} is missing", name=declared.name)
            try:
                accepted[declared.name] = declared.type.accept(values[declared.name])
            except ValueRefused as error:
                kind = declared.type
                hint = f"; its type is {kind}" if kind.numeric and kind.kind != "percent" else ""
                raise InputError(
                    f"input {declared.name!r} of {self.name}: {error}{hint}", name=declared.name
                ) from error
        return accepted


def check_procedure(value: object) -> None:
    """Refuse what is not a procedure, such as the text of one.

    Raises:
        ConfigError: it is something else.
    """
    if not isinstance(value, Procedure):
        raise ConfigError(
            f"procedure is a Procedure, not a {type(value).__name__}; Procedure.parse reads one from text, "
            "Procedure.load from a file",
            option="procedure",
        )


def make_step_error(error: ExpressionError | ProcedureError, line: int) -> ProcedureError:
    """The same complaint with the line of the text it came from."""
    step = error.step if isinstance(error, ProcedureError) else None
    message = error.message if isinstance(error, ProcedureError) else str(error)
    return ProcedureError(message, line=line, step=step)
