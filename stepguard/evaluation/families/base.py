"""What a task is, and how a family makes one out of lines.

A family writes down a `TaskDraft`: inputs and lines, each line a step together with the family's own plain
computation of its value. The truth is what these computations give. They are ordinary Python over ints, texts and
decimals and share no code with the checker, so that an error in the checker cannot hide in the truth.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Protocol, runtime_checkable

from stepguard.core.arguments import check_count
from stepguard.core.verdicts import Claim
from stepguard.engine.prompts import describe_steps
from stepguard.evaluation.knobs import Named
from stepguard.language.values import Value, show_value
from stepguard.procedure.inputs import Input
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step

Solver = Callable[[Mapping[str, Value]], Value]
"""The value of a step from the values that it reads."""

FORMULA_SYSTEM: Final = (
    "Carry out the procedure step by step, in order, exactly as written. Write one line for each step: its name, its "
    "formula, the formula with the numbers filled in, and the result, joined by equals signs. Write every step; do "
    "not skip, add or change any. After the last step write one more line: Answer: and the value of the last step."
)
WORDS_SYSTEM: Final = (
    "Carry out the procedure step by step, in order, exactly as written. Write one line for each step: its name, an "
    "equals sign, the working in short, an equals sign and the result. Write every step; do not skip, add or change "
    "any. After the last step write one more line: Answer: and the value of the last step."
)
DEMONSTRATION_SEED: Final = -1
"""No benchmark draws it: seeds of instances count up from the one that is given, 0 by default."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """One worked example for an arm that answers in free text.

    Attributes:
        system: what is to be done, and the form of the answer.
        question: a small task, stated as `Task.statement` states one.
        answer: its right transcript, which ends with a line ``Answer: ...``.
        program: its steps as formulas, one line each; None where some have none.
    """

    system: str
    question: str
    answer: str
    program: str | None = None


Scores = Mapping[str, float]
"""What the authors of a benchmark measure, by name, from 0 to 1; the first is whether the item counts as solved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedTask:
    """What the authors of an item ask and measure, beside what we do.

    Attributes:
        prompt: the item as they ask it, in one message.
        read: their scores of a reply to that prompt.
        score: their scores of a run, from the values of its steps, of which any may be missing.
        plausible: whether a value can be one of a step at all, whatever the rule makes of it: from the step's name,
            the value and the values accepted before it. What the guard's ``checker=form`` knows; None where there is
            no such knowledge.
    """

    prompt: str
    read: Callable[[str], Scores]
    score: Callable[[Mapping[str, Value]], Scores]
    plausible: Callable[[str, Value, Mapping[str, Value]], bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One instance.

    Attributes:
        family: the name of its family, knobs included.
        seed: what it was made from.
        procedure: what is to be run.
        inputs: the inputs of the run.
        truth: the right value of every step, by id, from the generator's own plain computation: it shares no code
            with the checker. `stepguard.evaluation.cases.cases` may know it of some steps only; the answer is always
            among them, and the last of them, by whose type the answer of a free transcript is read.
        statement: the whole problem as text, for an arm that gets it at once: extra material, values, steps.
        demonstration: an example of the same kind, from another seed.
        facts: what reports need to know: ``depth``, the number of steps on the longest chain of values that ends in
            the answer; ``look_back``, how many steps back a step reads at the most (inputs apart); and what the
            family adds.
        solvers: for every step that only words describe, the generator's computation of its value from the values it
            reads, where it has one. A simulated model answers by them; nothing of them enters a prompt or a check.
        line_tokens: how many tokens a line for one step may take in a free transcript, at the most.
        published: what its authors ask and measure, where others made it.
    """

    family: str
    seed: int
    procedure: Procedure
    inputs: Mapping[str, Value]
    truth: Mapping[str, Value]
    statement: str
    demonstration: Demonstration
    facts: Mapping[str, int] = field(default_factory=dict)
    solvers: Mapping[str, Solver] = field(default_factory=dict)
    line_tokens: int = 60
    published: PublishedTask | None = None

    @property
    def answer(self) -> Value:
        """The right answer."""
        return self.truth[self.procedure.answer]

    @property
    def whole(self) -> bool:
        """Whether the right value of every step is known."""
        return len(self.truth) == len(self.procedure)


@runtime_checkable
class Family(Protocol):
    """Makes instances of one kind of task: the same one for the same seed and length, on every machine."""

    @property
    def name(self) -> str:
        """What tables call it; families with other knobs have other names."""

    def make(self, seed: int, length: int) -> Task:
        """The instance for a seed and a number of steps.

        Raises:
            ConfigError: there is none of that length.
        """


class DraftedFamily(Named, ABC):
    """A family that writes drafts, and has one example for all of its tasks, of `example_steps` steps."""

    __slots__ = ()
    example_steps: ClassVar[int] = 5

    @abstractmethod
    def draft(self, seed: int, length: int) -> TaskDraft:
        """What a task is made of."""

    def demonstration(self) -> Demonstration:
        """A worked example with the same knobs."""
        return self.draft(DEMONSTRATION_SEED, self.example_steps).demonstration(WORDS_SYSTEM)

    def make(self, seed: int, length: int) -> Task:
        check_count(length, "lengths", name="the number of steps of a task")
        return self.draft(seed, length).task(self, seed, self.demonstration())


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """A check of a family's own: whether the claimed value is what its rule says, by the values that the step reads.

    Families of the same rules and arguments are equal, as functions made on the spot would not be.

    Args:
        name: what messages call it.
        holds: the rule, from the claimed value, all values, and `args`.
        args: what of the step it needs, such as the names of what it reads.
    """

    name: str
    holds: Callable[..., bool]
    args: tuple[object, ...] = ()

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, step: Step, values: Mapping[str, Value], claim: Claim, /) -> bool:
        """Whether the rule holds."""
        return self.holds(values[step.id], values, *self.args)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One step of a draft.

    Args:
        step: the step.
        solve: its value from the values it reads.
        work: the working that a demonstration shows, from the same values; no line break.
        brief: the instruction in the statement of the whole problem, where the extra material already holds what the
            step's own instruction has to say; None takes that one.
        formula: what the step comes to as a formula, where it is asked in words but has one.
    """

    step: Step
    solve: Solver
    work: Callable[[Mapping[str, Value]], str]
    brief: str | None = None
    formula: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDraft:
    """A task in the making.

    Args:
        name: the name of the procedure.
        inputs: the declared inputs, in order.
        given: what a run is given for them.
        lines: the steps, in order; the last one is the answer.
        known: the inputs as the solvers read them, where that is not as they are given (a percentage is given as
            text).
        material: what every step may need to know, in front of the statement; it ends with a line break.
        facts: what the family adds to ``depth`` and ``look_back``.
        line_tokens: see `Task`.
        functions: the code that performs some of the steps, by the name of the operation.
    """

    name: str
    inputs: Sequence[Input]
    given: Mapping[str, Value]
    lines: Sequence[Line]
    known: Mapping[str, Value] = field(default_factory=dict)
    material: str = ""
    facts: Mapping[str, int] = field(default_factory=dict)
    line_tokens: int = 60
    functions: Mapping[str, Callable[..., Value]] = field(default_factory=dict)

    def task(self, family: Family, seed: int, demonstration: Demonstration) -> Task:
        """The finished task."""
        return Task(
            family=family.name,
            seed=seed,
            procedure=Procedure(
                [line.step for line in self.lines], inputs=self.inputs, name=self.name, functions=self.functions
            ),
            inputs=dict(self.given),
            truth=work_through(self.lines, {**self.given, **self.known}),
            statement=self.statement(),
            demonstration=demonstration,
            facts={**self._facts(), **self.facts},
            solvers={line.step.id: line.solve for line in self.lines if line.step.expression is None},
            line_tokens=self.line_tokens,
        )

    def statement(self) -> str:
        """The whole problem as text, the steps worded as the guard words them."""
        given = "\n".join(f"{name} = {show_value(value)}" for name, value in self.given.items()) or "(none)"
        steps = [line.step if line.brief is None else _in_brief(line.step, line.brief) for line in self.lines]
        lines = describe_steps(steps, {}).partition("Steps:\n")[2]
        return f"{self.material}Values:\n{given}\nSteps:\n{lines}"

    def demonstration(self, system: str) -> Demonstration:
        """This draft as an example, all its steps done right."""
        state: dict[str, Value] = {**self.given, **self.known}
        rows: list[str] = []
        shown = ""
        for line in self.lines:
            step = line.step
            state[step.id] = line.solve(state)
            shown = step.type.write(state[step.id])
            parts = [step.id, *([step.formula] if step.formula else []), line.work(state), shown]
            rows.append(" = ".join(dict.fromkeys(parts)))  # what is only copied is written once
        formulas = [line.step.formula or line.formula for line in self.lines]
        program = [f"{line.step.id} = {formula}" for line, formula in zip(self.lines, formulas, strict=True)]
        return Demonstration(
            system,
            self.statement(),
            "\n".join([*rows, f"Answer: {shown}"]),
            "\n".join(program) if all(formulas) else None,
        )

    def _facts(self) -> dict[str, int]:
        depth: dict[str, int] = {}
        place: dict[str, int] = {}
        look_back = 0
        for at, line in enumerate(self.lines):
            read = [name for name in line.step.reads if name in place]
            look_back = max([look_back, *(at - place[name] for name in read)])
            depth[line.step.id] = 1 + max((depth[name] for name in read), default=0)
            place[line.step.id] = at
        return {"depth": depth[self.lines[-1].step.id], "look_back": look_back}


def work_through(lines: Sequence[Line], inputs: Mapping[str, Value]) -> dict[str, Value]:
    """The value of every line, each computed from those before it."""
    state = dict(inputs)
    for line in lines:
        state[line.step.id] = line.solve(state)
    return {line.step.id: state[line.step.id] for line in lines}


def _in_brief(step: Step, instruction: str) -> Step:
    reads = step.reads if step.expression is None else None
    return Step(
        step.id,
        step.expression,
        instruction=instruction,
        type=step.type,
        reads=reads,
        show_work=step.show_work,
        with_next=step.with_next,
    )
