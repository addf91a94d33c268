"""Judge facts that a rule needs and only judgement can tell: each is a step of a procedure, run by a guard.

``fact damaged[note: text]: boolean judged "Does the note say that the goods arrived damaged?"`` is asked as a step that
reads `note`, and has to quote what decides it there. The verdict is a fact of the conversation with the strength that
the guard found; what was not verified is none, and is asked of a person.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from stepguard.checks import Cites
from stepguard.core.arguments import check_instance
from stepguard.core.usage import Usage
from stepguard.core.verdicts import Strength
from stepguard.engine.budget import Budget
from stepguard.errors import ConfigError, InputError
from stepguard.guard import Guard
from stepguard.language.values import Value
from stepguard.policy.decisions import FactQuestion
from stepguard.policy.declarations import DeclaredFact
from stepguard.policy.policy import Policy
from stepguard.procedure.inputs import Input
from stepguard.procedure.procedure import Procedure
from stepguard.procedure.steps import Step
from stepguard.results import Result


class JudgedFact(NamedTuple):
    """A judged value, and what stands behind it."""

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
        guard: what runs the procedures: its model, its repair, and its budget for each.
        policy: the policy whose facts they are.
        budget: the calls, tokens and money of all judgements together; none is begun once a limit is reached, so that
            an agent that asks for ever new ones does not spend without end. None: there is no limit.

    Raises:
        ConfigError: the budget limits something else.
        ProcedureError: a fact cannot be asked as a step.
    """

    def __init__(self, guard: Guard, policy: Policy, budget: Budget | None = None) -> None:
        check_instance(guard, Guard, "guard", what="a Guard")
        check_instance(budget, Budget, "budget", what="a Budget such as Budget(calls=100)", optional=True)
        if budget is not None and (budget.seconds is not None or budget.per_step is not None):
            raise ConfigError("time is limited for each judgement, by the budget of the guard", option="budget")
        self._guard: Final = guard
        self._budget: Final = budget or Budget()
        self._spent = Usage()
        judged = [each for each in policy.facts.values() if each.judged]
        self._procedures: Final = {each.name: judgement_procedure(each) for each in judged}
        self._names: Final = {each.name: [key.name for key in each.keys] for each in judged}
        self._judged: Final[dict[tuple[object, ...], JudgedFact]] = {}
        self._unverified: Final[dict[tuple[object, ...], str]] = {}

    def decides(self, question: FactQuestion) -> bool:
        """Whether a fact is one of judgement, and nothing has shown yet that it cannot be verified."""
        return question.fact in self._procedures and _about(question) not in self._unverified

    def why_not(self, question: FactQuestion) -> str:
        """Why a judgement was not verified, for logs."""
        return self._unverified.get(_about(question), "")

    def judge(self, question: FactQuestion) -> JudgedFact | None:
        """The fact; None where it is not one of judgement, or could not be verified."""
        if (inputs := self._inputs(question)) is None:
            return self._judged.get(_about(question))
        try:
            return self._of(question, self._guard.run(self._procedures[question.fact], inputs))
        except InputError as error:  # the keys cannot be read as a document
            return self._of(question, error)

    async def ajudge(self, question: FactQuestion) -> JudgedFact | None:
        if (inputs := self._inputs(question)) is None:
            return self._judged.get(_about(question))
        try:
            return self._of(question, await self._guard.arun(self._procedures[question.fact], inputs))
        except InputError as error:
            return self._of(question, error)

    def _inputs(self, question: FactQuestion) -> Mapping[str, object] | None:
        about = _about(question)  # nothing is paid for the same again
        if question.fact not in self._procedures or about in self._judged or about in self._unverified:
            return None
        if (limit := self._budget.spent(self._spent)) is not None:
            self._unverified[about] = f"the {limit} of the conversation are spent"
            return None
        return dict(zip(self._names[question.fact], question.keys, strict=True))

    def _of(self, question: FactQuestion, result: Result | InputError) -> JudgedFact | None:
        about = _about(question)
        if isinstance(result, InputError):
            self._unverified[about] = str(result)
            return None
        self._spent += result.usage
        record = next((each for each in result.steps if each.occurrence.step == question.fact), None)
        if record is None or record.support == "unverified":
            self._unverified[about] = f"{result.status}, {result.error or 'nothing stands behind it'}"
            return None
        self._judged[about] = JudgedFact(record.value, record.support)
        return self._judged[about]


def _about(question: FactQuestion) -> tuple[object, ...]:
    return (question.fact, *question.keys)
