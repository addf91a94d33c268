"""A user's own procedure as a task family: their inputs, their expected answers.

What is right is what the cases say. Where formulas give a value, too, the two have to agree: a case that contradicts
its procedure is refused, since a benchmark against a wrong truth measures nothing. Values of steps that the cases do
not name are computed by the formulas. There the truth shares its evaluator with the checker, so that an error of it
cannot show as a silent error; `CaseFamily.describe` says how much of the truth is of this kind.

Of a step in words only a case can say what is right. Steps whose right value is not known in every case are not
judged in any, so that all runs are judged alike: the answer always is, and "every step right" is claimed of no run
then. A guarded run of such steps ends unverified, for files hold no checks of words.

Values are compared exactly, text character by character; text that a line of a free transcript could not give back is
refused, since all arms are to be judged alike. Unguarded runs are given steps by code as well: nobody
performs them there but the model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from stepguard.engine.demonstrations import EXAMPLE_VALUES, demonstrated_kind, example_steps
from stepguard.engine.prompts import describe_steps
from stepguard.errors import ConfigError
from stepguard.evaluation.cases.checks import Case, check_case, check_procedure
from stepguard.evaluation.cases.files import read_cases, refuse
from stepguard.evaluation.families import Demonstration, Task, family_names
from stepguard.evaluation.families.base import FORMULA_SYSTEM, WORDS_SYSTEM, Solver
from stepguard.language.evaluation import evaluate, substitute
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value, show_value
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step

_LAST: Final = "the value of the last step"
_ANSWER_WORDS: Final = "the value that is asked for"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CaseFamily:
    """The cases of a procedure, as a `Family`: the instance for a seed is the case of that number, from 0 on.

    Args:
        cases: at least one, as `load_cases` makes them.
        judged: the steps whose right value is known in every case, the answer last.
    """

    name: str
    procedure: Procedure
    cases: tuple[Case, ...]
    judged: tuple[str, ...]

    @property
    def length(self) -> int:
        """The one length that there is: the number of steps."""
        return len(self.procedure)

    def make(self, seed: int, length: int) -> Task:
        """The case with the number `seed`. Raises ConfigError: there is none of that number or length."""
        if length != self.length or not 0 <= seed < len(self.cases):
            raise ConfigError(
                f"{self.name} has cases 0 to {len(self.cases) - 1} of {self.length} steps, not case {seed!r} of "
                f"{length!r} steps",
                option="cases",
            )
        case, procedure = self.cases[seed], self.procedure
        types = {each.name: each.type for each in procedure.inputs}
        in_words = [step.id for step in procedure.steps if step.expression is None and step.id in case.truth]
        return Task(
            family=self.name,
            seed=seed,
            procedure=procedure,
            inputs={name: _as_input(value, types[name]) for name, value in case.inputs.items()},
            truth={name: case.truth[name] for name in self.judged},
            statement=_statement(procedure.steps, case.inputs, _answer_step(procedure)),
            demonstration=_demonstration(procedure),
            solvers={name: _always(case.truth[name]) for name in in_words},
            # A line restates its formula with numbers, which may be longer than their names.
            line_tokens=60 + max(len(step.formula or step.instruction or "") for step in procedure.steps),
        )

    def fingerprint(self) -> dict[str, str]:
        """Hashes of the procedure and of all cases, without what means nothing: comments, blank lines, notation."""
        procedure = self.procedure
        cases = [
            (case.id, sorted(case.inputs.items()), sorted(case.given.items()), list(case.truth.items()))
            for case in self.cases
        ]
        return {
            "procedure_hash": _hash((procedure.name, procedure.inputs, tuple(procedure.steps), procedure.answer)),
            "cases_hash": _hash(cases),
        }

    def describe(self, count: int) -> dict[str, Any]:
        """What a report has to say about the truth of the first `count` cases.

        ``truth`` says where the right values come from, ``steps_judged`` how many steps have one; ``case_ids`` are in
        the order of the seeds, where a case has an id; ``warning`` is there where answers are computed.
        """
        used, answer = self.cases[:count], self.procedure.answer
        computed = sum(answer not in case.given for case in used)
        named = [step for step in self.judged if all(step in case.given for case in used)]
        others = len(self.judged) - len(named)
        parts = [f"{len(used) - computed} of {len(used)} expected answers stand in the cases"]
        parts.append(f"{len(self.judged)} of {self.length} steps are judged")
        if len(self.judged) < self.length:
            parts[-1] += ", since no right value is known of the others, and of no run every step is said to be right"
        if others:
            parts.append(f"the right values of {others} of them are computed by the evaluator that the checker uses")
        about: dict[str, Any] = {"truth": "; ".join(parts), "steps_judged": len(self.judged)}
        if any(case.id is not None for case in used):
            about["case_ids"] = [case.id or f"line {case.line}" for case in used]
        if computed:
            about["warning"] = (
                f"TRUTH COMPUTED: {computed} of {len(used)} cases name no expected answer, so that the procedure's own "
                "formulas give it, by the evaluator that the guard checks with. An error of a formula or of the "
                'evaluator cannot show as a silent error there. Add "expected" to the cases.'
            )
        return about


def load_cases(procedure: Procedure, path: str | Path) -> CaseFamily:
    """The cases of a file, every one checked.

    Args:
        path: JSON lines, or a list in a ``.json``, or a ``.csv``; see `stepguard.evaluation.cases.files`.

    Raises:
        ConfigError: the procedure cannot be measured by cases, or a case does not fit it or contradicts it; the file
            and the line are named.
    """
    check_procedure(procedure)
    file = Path(path)
    cases = [check_case(raw, procedure) for raw in read_cases(file, procedure)]
    _check_different(cases, file)
    judged = [step.id for step in procedure.steps if all(step.id in case.truth for case in cases)]
    judged.sort(key=lambda step: step == procedure.answer)
    called = procedure.name if procedure.name != "procedure" else file.stem  # one that declares none is called so
    if called.partition("(")[0].strip() in family_names():
        called = f"procedure {called}"  # whoever reads the outcomes must not take them for those of that family
    return CaseFamily(name=called, procedure=procedure, cases=tuple(cases), judged=tuple(judged))


def _check_different(cases: Iterable[Case], path: Path) -> None:
    """Refuse a case that is there twice: counted twice it would make every interval too narrow."""
    ids: dict[str, int] = {}
    inputs: dict[object, int] = {}
    for case in cases:
        if case.id is not None:
            if case.id in ids:
                what = f"the id {case.id!r} is that of the case in line {ids[case.id]}, too: give it another"
                raise refuse(path, case.line, what)
            ids[case.id] = case.line
        key = tuple(case.inputs.items())
        if key in inputs:
            what = f"has the same inputs as the case in line {inputs[key]} and would count twice; drop one"
            raise refuse(path, case.line, what)
        inputs[key] = case.line


def _as_input(value: Value, kind: ValueType) -> Value:
    # A bare number is refused where a percentage is declared.
    return kind.write(value) if kind.kind == "percent" else value


def _always(value: Value) -> Solver:
    return lambda _: value


def _hash(content: object) -> str:
    return hashlib.sha256(repr(content).encode("utf-8", "backslashreplace")).hexdigest()[:16]  # lone surrogates too


def _answer_step(procedure: Procedure) -> str | None:
    """The step that is the answer, where it is not the last one."""
    last = procedure.steps[len(procedure) - 1].id
    return None if procedure.answer == last else procedure.answer


def _statement(steps: Sequence[Step], values: Mapping[str, Value], asked: str | None) -> str:
    """A whole problem as text, in the words and notation of the guard's prompts."""
    given = describe_steps(steps, values).partition("Steps:\n")[0]  # values that are text are quoted, on one line
    lines = describe_steps(steps, {}).partition("Steps:\n")[2]
    return f"{given}Steps:\n{lines}" + ("" if asked is None else f"\nAsked for: {asked}")


def _demonstration(procedure: Procedure) -> Demonstration:
    """The kinds of steps that the procedure has, done right: the steps that the guard's prompts demonstrate with."""
    examples = example_steps(map(demonstrated_kind, procedure.steps))
    steps = [example.step for example in examples]
    at = -1 if _answer_step(procedure) is None or len(steps) == 1 else -2
    asked = None if _answer_step(procedure) is None else steps[at].id
    read = (name for step in steps for name in step.reads)
    state: dict[str, Value] = {name: EXAMPLE_VALUES[name] for name in read if name in EXAMPLE_VALUES}
    question = _statement(steps, state, asked)
    rows: list[str] = []
    shown: list[str] = []
    for step, words in ((example.step, example.value) for example in examples):
        if step.expression is None:
            work = ", ".join(f"{name} is {show_value(state[name])}" for name in step.reads)
            state[step.id] = step.type.read(words)
        else:
            work = f"{step.formula} = {substitute(step.expression, state)}"
            state[step.id] = step.type.convert(evaluate(step.expression, state))
        shown.append(step.type.write(state[step.id]))
        rows.append(f"{step.id} = {work} = {shown[-1]}")
    system = FORMULA_SYSTEM if all(step.expression is not None for step in procedure.steps) else WORDS_SYSTEM
    return Demonstration(
        system if asked is None else system.replace(_LAST, _ANSWER_WORDS),
        question,
        "\n".join([*rows, f"Answer: {shown[at]}"]),
        "\n".join(f"{step.id} = {step.formula}" for step in steps) if all(step.formula for step in steps) else None,
    )
