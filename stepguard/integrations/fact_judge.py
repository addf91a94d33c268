"""Facts that a rule needs and that only judgement can tell: each is a step of a procedure, run by a guard.

``fact damaged[note: text]: boolean judged "Does the note say that the goods arrived damaged?"`` is asked as a step that
reads `note`, and has to quote what decides it there. The verdict is a fact of the conversation with the strength that
the guard found; what was not verified is none, and is asked of a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from stepguard.checks import Cites
from stepguard.core.verdicts import Strength
from stepguard.errors import InputError
from stepguard.guard import Guard
from stepguard.language.values import Value
from stepguard.policy.decisions import FactQuestion
from stepguard.policy.policy import DeclaredFact, Policy
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Input, Step
from stepguard.results import Result


class JudgedFact(NamedTuple):
    """What was judged, and what stands behind it."""

    value: Value
    strength: Strength


def judgement_procedure(fact: DeclaredFact) -> Procedure:
    """The procedure of one step that tells a fact from its keys.

    Where a key is text, the first such is the document that the answer has to quote.
    """
    documents = [each.name for each in fact.keys if each.type.kind == "text"]
    step = Step(
        fact.name,
        instruction=fact.question,
        type=fact.type,
        reads=[each.name for each in fact.keys],
        checks=[Cites(each) for each in documents[:1]],
    )
    return Procedure([step], inputs=[Input(each.name, each.type) for each in fact.keys], name=fact.name)


class FactJudge:
    """Judges the facts of one conversation; of each fact about the same once.

    Args:
        guard: what runs the procedures: its model, repair and budget.
        policy: the policy whose facts they are.

    Raises:
        ProcedureError: a fact cannot be asked as a step.
    """

    def __init__(self, guard: Guard, policy: Policy) -> None:
        self._guard: Final = guard
        judged = [each for each in policy.facts.values() if each.judged]
        self._procedures: Final = {each.name: judgement_procedure(each) for each in judged}
        self._names: Final = {each.name: [key.name for key in each.keys] for each in judged}
        self._undecided: Final[set[tuple[object, ...]]] = set()

    def judge(self, question: FactQuestion) -> JudgedFact | None:
        """The fact; None where it is not one of judgement, or could not be verified."""
        if (inputs := self._inputs(question)) is None:
            return None
        try:
            result = self._guard.run(self._procedures[question.fact], inputs)
        except InputError:  # the keys cannot be read as a document
            return self._of(question, None)
        return self._of(question, result)

    async def ajudge(self, question: FactQuestion) -> JudgedFact | None:
        """The twin of `judge`."""
        if (inputs := self._inputs(question)) is None:
            return None
        try:
            result = await self._guard.arun(self._procedures[question.fact], inputs)
        except InputError:
            return self._of(question, None)
        return self._of(question, result)

    def _inputs(self, question: FactQuestion) -> Mapping[str, object] | None:
        if question.fact not in self._procedures or (question.fact, *question.keys) in self._undecided:
            return None
        return dict(zip(self._names[question.fact], question.keys, strict=True))

    def _of(self, question: FactQuestion, result: Result | None) -> JudgedFact | None:
        steps = () if result is None else result.steps
        record = next((each for each in steps if each.occurrence.step == question.fact), None)
        if record is None or record.support == "unverified":
            self._undecided.add((question.fact, *question.keys))  # nothing is paid for the same again
            return None
        return JudgedFact(record.value, record.support)
