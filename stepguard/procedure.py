"""Procedures and their steps: what is to be done, in which order, from which values.

A `Procedure` is immutable and checked when it is made: every variable a step reads is an input or set by an earlier
step, and of a type that its expression can compute with, every id is unique, the answer is reachable. What each step
reads and writes is derived from its expression, so that a prompt can show exactly the values a step needs.

A procedure need not be held in memory: `Procedure.lazy` takes a function from index to step and a look-back, and
checks every step when it is reached.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isclass
from typing import TYPE_CHECKING, Literal, TypeVar, overload

from stepguard.errors import ConfigError, ExpressionError, InputError, ProcedureError, ValueRefused
from stepguard.expressions import RESERVED, Compare, Expression, Name, format_expression, names_in, parse_expression
from stepguard.value_types import NUMBER, ValueType
from stepguard.values import Value

if TYPE_CHECKING:
    from pathlib import Path

    from stepguard.checks import Check

__all__ = ["Input", "Performer", "Procedure", "Step"]

Performer = Literal["model", "code"]
_T = TypeVar("_T")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_MAX_NAME = 64
_AT_ONCE = 256
"""A run that makes its steps one by one holds on to so many, beside those that a step may read."""
_LEADS_ON = re.compile(r"(?:[:,]|\b(?:and|or|then))\Z", re.IGNORECASE)


def _check_name(name: object, what: str) -> None:
    if not isinstance(name, str) or not _NAME.match(name) or len(name) > _MAX_NAME:
        raise ProcedureError(
            f"{name!r} cannot be {what}: use letters, digits and underscores, not starting with a digit, "
            f"at most {_MAX_NAME} characters"
        )
    if name in RESERVED:
        raise ProcedureError(f"{name!r} cannot be {what}: it is a word of the expression language")


@dataclass(frozen=True, slots=True)
class Input:
    """A value the caller gives to every run.

    Args:
        name: the variable.
        type: its type, as a `ValueType` or as text (``"decimal(2)"``); a number by default.
    """

    name: str
    type: ValueType = NUMBER

    def __init__(self, name: str, type: ValueType | str = NUMBER) -> None:
        _check_name(name, "an input")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "type", ValueType.parse(type))


@dataclass(frozen=True, slots=True, init=False)
class Step:
    """One step: it sets one variable.

    Args:
        id: the name of the step and of the variable it sets.
        expression: the formal meaning, as text or parsed; None for a step that only words describe.
        instruction: what the model reads. None: the expression itself.
        type: the type of the value; by default a number where there is an expression, a boolean where that is a
            comparison, otherwise text.
        reads: the variables a step without expression reads (derived where there is one).
        checks: further checks, each a callable of (step, values, claim); see `stepguard.checks`.
        performer: ``"model"`` asks the model, ``"code"`` evaluates the expression.
        show_work: whether the reply must show this step's working. None: where there is an expression.
        with_next: whether its text is only understood with the next step's: the two are asked together, or this one
            is shown again when the next is asked alone. None: where the text ends in a colon or a comma, or in "and",
            "or", "then".

    Raises:
        ProcedureError: the step cannot be right.
        ExpressionError: the expression is not in the language.
    """

    id: str
    expression: Expression | None
    instruction: str | None
    type: ValueType
    reads: tuple[str, ...]
    checks: tuple[Check, ...]
    performer: Performer
    show_work: bool
    with_next: bool

    def __init__(
        self,
        id: str,
        expression: str | Expression | None = None,
        *,
        instruction: str | None = None,
        type: ValueType | str | None = None,
        reads: Iterable[str] | None = None,
        checks: Iterable[Check] = (),
        performer: Performer = "model",
        show_work: bool | None = None,
        with_next: bool | None = None,
    ) -> None:
        _check_name(id, "a step")
        tree = parse_expression(expression) if isinstance(expression, str) else expression
        if tree is None and not (instruction and instruction.strip()):
            raise ProcedureError(f"step {id!r} has neither an expression nor an instruction", step=id)
        if performer not in ("model", "code"):
            raise ProcedureError(f"step {id!r}: performer is 'model' or 'code', not {performer!r}", step=id)
        given = _listed(() if reads is None else reads, f"step {id!r}: reads", "['letter']")
        if tree is None:
            if performer == "code":
                raise ProcedureError(f"step {id!r}: code can only perform a step with an expression", step=id)
            if show_work:
                raise ProcedureError(f"step {id!r}: working can only be checked against an expression", step=id)
            named = tuple(dict.fromkeys(given))
        else:
            named = names_in(tree)
            if reads is not None and set(given) != set(named):
                raise ProcedureError(f"step {id!r}: reads follow from the expression; leave them out", step=id)
        for name in named:
            _check_name(name, f"a variable read by step {id!r}")
        checked = _listed(checks, f"step {id!r}: checks", "[Range(1, 10)]")
        for check in checked:
            if isclass(check):
                raise ProcedureError(f"step {id!r}: {check.__name__} is a class: pass an instance of it", step=id)
            if not callable(check):
                raise ProcedureError(f"step {id!r}: {check!r} is no check: it cannot be called", step=id)
            lacking = [name for name in getattr(check, "reads", ()) if name != id and name not in named]
            if lacking:
                raise ProcedureError(
                    f"step {id!r}: the check {check!r} needs {lacking[0]!r}, which the step does not read", step=id
                )
        default = "text" if tree is None else "boolean" if isinstance(tree, Compare) else "number"
        kind = ValueType.parse(type if type is not None else default)
        if tree is not None and not isinstance(tree, Name):  # a plain copy may be of any type
            truth = isinstance(tree, Compare)
            if not (kind.kind == "boolean" if truth else kind.numeric):
                what = "a truth value" if truth else "a number"
                raise ProcedureError(f"step {id!r}: its expression gives {what}, which is no {kind.kind}", step=id)
        put = object.__setattr__
        put(self, "id", id)
        put(self, "expression", tree)
        put(self, "instruction", instruction.strip() if instruction and instruction.strip() else None)
        put(self, "type", kind)
        put(self, "reads", named)
        put(self, "checks", checked)
        put(self, "performer", performer)
        put(self, "show_work", tree is not None if show_work is None else bool(show_work))
        leads = instruction is not None and _LEADS_ON.search(instruction.strip()) is not None
        put(self, "with_next", (leads and tree is None) if with_next is None else bool(with_next))
        for check in checked:
            misfit = getattr(check, "misfit", None)
            if callable(misfit) and (reason := misfit(self)) is not None:
                raise ProcedureError(f"step {id!r}: {reason}", step=id)

    @property
    def formula(self) -> str | None:
        """The expression as text, None where there is none."""
        return None if self.expression is None else format_expression(self.expression)

    @property
    def checkable(self) -> bool:
        """Whether at least one check applies to what the model claims for this step."""
        return self.expression is not None or bool(self.checks)


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
        held = _listed(steps, "steps", "[Step('t', 'x + 1')]")
        for number, each in enumerate(held, 1):
            _check_step(each, number)
        self._set(held, _as_inputs(inputs), answer, name, None)
        last_read: dict[str, int] = {}
        known: dict[str, Input | Step] = {each.name: each for each in self.inputs}
        for index, step in enumerate(held):
            if step.id in known:
                what = "an input" if isinstance(known[step.id], Input) else "an earlier step"
                raise ProcedureError(f"duplicate id: {step.id!r} is already {what}", step=step.id)
            for name_ in step.reads:
                if name_ not in known:
                    raise _unknown(step, name_, (later.id for later in held[index:]))
                last_read[name_] = index
            _check_operands(step, known)
            known[step.id] = step
        if self.answer not in known:
            raise ProcedureError(f"unreachable answer: no step sets {self.answer!r} and it is no input")
        last_read[self.answer] = len(held)
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
        declared = _as_inputs(inputs)
        procedure._set(LazySteps(step_at, length, look_back, declared), declared, None, name, look_back)
        return procedure

    @classmethod
    def parse(cls, text: str) -> Procedure:
        """Read a procedure from text; the notation is described in `stepguard.formats`.

        Raises:
            ProcedureError: the text is no procedure; `line` names where.
        """
        from stepguard.formats import parse_procedure

        if not isinstance(text, str):
            raise ProcedureError(
                f"Procedure.parse takes the text of a procedure, not a {type(text).__name__}; Procedure.load takes the "
                "path of a file"
            )
        return parse_procedure(text)

    @classmethod
    def load(cls, path: str | Path) -> Procedure:
        """Read a procedure from a file: YAML or JSON by its suffix (see `stepguard.yaml_format`), text otherwise.

        Raises:
            ProcedureError: the file holds no procedure, or is of an unknown kind.
            OSError: the file cannot be read.
        """
        from pathlib import Path

        from stepguard.formats import load_procedure

        return load_procedure(Path(path))

    def __str__(self) -> str:
        from stepguard.formats import format_procedure

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
        if name == self.answer or any(each.name == name for each in self.inputs):
            return True
        return any(self.steps[back].id == name for back in range(max(0, index - self.look_back), index))

    def accept_inputs(self, given: Mapping[str, object]) -> dict[str, Value]:
        """The inputs of a run as exact values.

        Raises:
            InputError: an input is missing, unknown or not of its type.
        """
        if not isinstance(given, Mapping):
            found = type(given).__name__
            raise InputError(f"the inputs of {self.name} are a mapping from name to value, not a {found}")
        names = [each.name for each in self.inputs]
        unknown = [name for name in given if name not in names]
        if unknown:
            declared = f"it declares {', '.join(names)}" if names else "it declares none"
            raise InputError(f"{self.name} has no input {unknown[0]!r}: {declared}", name=str(unknown[0]))
        accepted: dict[str, Value] = {}
        for each in self.inputs:
            if each.name not in given:
                raise InputError(f"input {each.name!r} of {self.name} is missing", name=each.name)
            try:
                accepted[each.name] = each.type.accept(given[each.name])
            except ValueRefused as error:
                raise InputError(f"input {each.name!r} of {self.name}: {error}", name=each.name) from error
        return accepted


class LazySteps(Sequence[Step]):
    """Steps by index, each checked against its look-back when it is made.

    Args:
        step_at: see `Procedure.lazy`.
        length: likewise.
        look_back: likewise.
        inputs: the inputs.
        memory: how many of the steps that were made last are held; nothing is by default, so that all who share a
            procedure can read it at the same time.
    """

    def __init__(
        self,
        step_at: Callable[[int], Step],
        length: int,
        look_back: int,
        inputs: tuple[Input, ...],
        *,
        memory: int = 0,
    ) -> None:
        self._step_at = step_at
        self._length = length
        self._look_back = look_back
        self._declared = inputs
        self._inputs = {each.name: each for each in inputs}
        self._memory = memory
        self._held: dict[int, Step] = {}

    def for_one_run(self) -> LazySteps:
        """The same steps, for one run alone: what it looks at again and again is made once."""
        memory = self._look_back + _AT_ONCE
        return LazySteps(self._step_at, self._length, self._look_back, self._declared, memory=memory)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | Sequence[Step]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(self._length))]
        at = index + self._length if index < 0 else index
        if not 0 <= at < self._length:
            raise IndexError(index)
        step = self._make(at)
        if step.id in self._inputs:
            raise ProcedureError(f"duplicate id: {step.id!r} is already an input", step=step.id)
        if step.id in step.reads:
            raise _unknown(step, step.id, ())
        known: dict[str, Input | Step] = {**self._inputs}
        wanted = set(step.reads) - self._inputs.keys()
        back = at
        while wanted and back > max(0, at - self._look_back):
            back -= 1
            earlier = self._make(back)
            if earlier.id == step.id:
                raise ProcedureError(f"duplicate id: {step.id!r} is already an earlier step", step=step.id)
            wanted.discard(earlier.id)
            known[earlier.id] = earlier
        if wanted:
            raise ProcedureError(
                f"step {step.id!r} reads {sorted(wanted)[0]!r}, which is no input and not set by the "
                f"{self._look_back} steps before it (its look_back)",
                step=step.id,
            )
        _check_operands(step, known)
        return step

    def _make(self, at: int) -> Step:
        if (held := self._held.get(at)) is not None:
            return held
        try:
            step: object = self._step_at(at)
        except ProcedureError:
            raise
        except Exception as error:  # the caller's code, long after the procedure was made
            raise ProcedureError(f"step {at + 1} cannot be made: {type(error).__name__}: {error}") from error
        made = _check_step(step, at + 1)
        if self._memory:
            self._held[at] = made
            if len(self._held) > self._memory:
                del self._held[next(iter(self._held))]
        return made


def check_procedure(given: object) -> None:
    """Refuse what is not a procedure, such as the text of one.

    Raises:
        ConfigError: it is something else.
    """
    if not isinstance(given, Procedure):
        raise ConfigError(
            f"procedure is a Procedure, not a {type(given).__name__}; Procedure.parse reads one from text, "
            "Procedure.load from a file",
            option="procedure",
        )


def _listed(given: Iterable[_T], what: str, example: str) -> tuple[_T, ...]:
    """What was given as a list. A text would be taken for its letters, and a mapping would lose its values."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise ProcedureError(f"{what} is a list such as {example}, not a {type(given).__name__}")
    return tuple(given)


def _check_step(given: object, number: int) -> Step:
    if not isinstance(given, Step):
        raise ProcedureError(f"step {number} is a {type(given).__name__}, not a Step")
    return given


def _as_inputs(inputs: Iterable[str | Input]) -> tuple[Input, ...]:
    listed = _listed(inputs, "inputs", "['x', Input('rate', 'decimal(2)')]")
    declared = tuple(each if isinstance(each, Input) else Input(each) for each in listed)
    seen: set[str] = set()
    for each in declared:
        if each.name in seen:
            raise ProcedureError(f"duplicate input {each.name!r}")
        seen.add(each.name)
    return declared


def _check_operands(step: Step, known: Mapping[str, Input | Step]) -> None:
    """Refuse an expression over values that it cannot compute with: no reply could ever be accepted."""
    if step.expression is None:
        return
    copies = isinstance(step.expression, Name)
    for name in step.reads:
        source = known[name]
        kind = source.type
        if _copied(kind, step.type) if copies else kind.numeric:
            continue
        number = f"`{name}: number`"
        if isinstance(source, Step) and source.expression is None:  # its words have no place for a type
            number = f'`{name}: number = "..."`, its words in the quotes,'
        does = "compares" if isinstance(step.expression, Compare) else "computes with"
        what, mend = f"{does} numbers only, and reads", f"declare {number} where it is one"
        if copies:
            what, mend = f"is {step.type} and copies", f"declare `{step.id}: {kind}`, or another type of {name!r}"
            if step.type.numeric and kind.kind == "text":
                mend = f"declare {number} where it is a number, `{step.id}: text` where it is not"
        raise ProcedureError(f"step {step.id!r} {what} {name!r}, which is {kind}: {mend}", step=step.id)


def _copied(source: ValueType, target: ValueType) -> bool:
    """Whether a value of one type can be one of another as it stands."""
    texts = ("text", "one_of")
    if source.options and target.options:
        return not set(source.options).isdisjoint(target.options)
    alike = (source.numeric and target.numeric) or source.kind == target.kind
    return alike or (source.kind in texts and target.kind in texts)


def _unknown(step: Step, name: str, later: Iterable[str]) -> ProcedureError:
    if name == step.id:
        return ProcedureError(f"step {step.id!r} reads its own value", step=step.id)
    if name in later:
        return ProcedureError(f"step {step.id!r} reads {name!r}, which only a later step sets", step=step.id)
    return ProcedureError(f"step {step.id!r} reads {name!r}, which is no input and set by no step", step=step.id)


def make_step_error(error: ExpressionError | ProcedureError, line: int) -> ProcedureError:
    """The same complaint with the line of the text it came from."""
    step = error.step if isinstance(error, ProcedureError) else None
    message = error.message if isinstance(error, ProcedureError) else str(error)
    return ProcedureError(message, line=line, step=step)
