"""A gate that asks: each call is decided on with those who have to be asked, and what came of it is told to the gate.

Frameworks that call their tools themselves need no more than this; `ToolGate` calls functions besides.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import datetime
from threading import Lock
from typing import Any, Final, NamedTuple

from stepguard.engine.budget import Budget
from stepguard.errors import StepguardError, ValueRefused
from stepguard.guard import Guard
from stepguard.integrations.fact_judge import FactJudge, JudgedFact
from stepguard.policy.arguments import plain_data
from stepguard.policy.decisions import Decision, FactQuestion, Reason
from stepguard.policy.gate import PolicyGate
from stepguard.telemetry.logging import call_safely, log_event

_CURRENT: Final[ContextVar[Decision | None]] = ContextVar("stepguard_decision", default=None)

_MOST_ANSWERS: Final = 20
"""How many rounds of questions one call may take: each answer may bring the next."""


class NothingDone(StepguardError):
    """A tool raises it to say that it failed and has changed nothing: limits and yeses are then as before."""


def current_decision() -> Decision | None:
    """The decision on the call that is being made: inside of a tool that a framework calls, its key is ``.key``."""
    return _CURRENT.get()


class CallAnswer(NamedTuple):
    """The answer to a call for the model, and whether it is an error: a refusal, or a tool that failed."""

    text: str
    error: bool


class AskingGate:
    """The gate of one conversation, with those who are asked at it; see `stepguard.integrations.tool_gate.ToolGate`."""

    def __init__(
        self,
        gate: PolicyGate,
        *,
        confirm: Callable[[Decision, str], bool] | None,
        answer: Callable[[Decision, FactQuestion], object | None] | None,
        guard: Guard | None,
        budget: Budget | None,
        clock: Callable[[], datetime],
        on_decision: Callable[[Decision], object] | None,
        repeatable: Collection[str],
    ) -> None:
        self.gate: Final = gate
        self._confirm: Final = confirm
        self._answer: Final = answer
        self._judge: Final = None if guard is None else FactJudge(guard, gate.policy, budget)
        self._clock: Final = clock
        self._on_decision: Final = on_decision
        self._lock: Final = Lock()
        self._begun: Final[set[object]] = set()
        tools = gate.policy.tools
        again = {*repeatable, *(each.name for each in tools.values() if each.reads)}
        self._unsettled: Final = {each.number for each in gate.pending if each.tool not in again}
        """The calls in which another process died: nobody knows what came of them."""

    @property
    def handed_over(self) -> bool:
        """Whether a person has taken over."""
        return self.gate.handed_over

    def decide(self, name: str, arguments: str | Mapping[str, Any], *, id: str) -> Decision:
        """Decide on a call, after asking those who have to be asked."""
        decision = self.gate.offer(name, arguments, id=id, now=self._clock())
        for _ in range(_MOST_ANSWERS):
            if not self._waits(decision):
                break
            judged = {each: self._judge.judge(each) for each in decision.questions} if self._judge else {}
            if not self._asked(decision, judged):
                break
            decision = self.gate.offer(name, arguments, id=id, now=self._clock())
        return self._reported(self._begun_with(decision))

    async def adecide(self, name: str, arguments: str | Mapping[str, Any], *, id: str) -> Decision:
        """The twin of `decide`, which awaits judgements."""
        decision = self.gate.offer(name, arguments, id=id, now=self._clock())
        for _ in range(_MOST_ANSWERS):
            if not self._waits(decision):
                break
            judged = {each: await self._judge.ajudge(each) for each in decision.questions} if self._judge else {}
            if not self._asked(decision, judged):
                break
            decision = self.gate.offer(name, arguments, id=id, now=self._clock())
        return self._reported(self._begun_with(decision))

    def _reported(self, decision: Decision) -> Decision:
        """Report a decision to the log and the host, and return it."""
        log_event(
            "call_judged",
            policy=self.gate.policy.name,
            tool=decision.tool if decision.tool in self.gate.policy.tools else "(undeclared)",
            number=decision.number,
            outcome=decision.outcome,
            reasons=[reason.kind for reason in decision.reasons],
            rules=list(dict.fromkeys(reason.rule for reason in decision.reasons if reason.line is not None)),
        )
        if self._on_decision is not None:
            call_safely(self._on_decision, decision, about=f"a call of {decision.tool}")
        return decision

    def _waits(self, decision: Decision) -> bool:
        return decision.outcome == "ask" and not self.gate.observe

    def _begun_with(self, decision: Decision) -> Decision:
        """The decision for the caller: allowed once, and never for a call whose outcome is unknown."""
        if self.gate.observe and not any(reason.kind == "repeated" for reason in decision.reasons):
            decision = replace(decision, outcome="allow")  # what was decided of it is recorded, and stops nothing
        if not decision.allowed:
            return decision
        if decision.number in self._unsettled:
            return _refusal(decision, "It is not known whether this very call was made", "A person has to find out.")
        # By its number: identifiers may be used again in one conversation.
        begun = decision.call if decision.number is None else decision.number
        with self._lock:  # two at once under one identifier are one call
            known = begun in self._begun
            self._begun.add(begun)
        if known:
            return _refusal(decision, "This very call is already being made", "Wait for its result.")
        return decision

    @contextmanager
    def making(self, decision: Decision) -> Iterator[None]:
        """A call that was let through, while it is made: the gate is told if it raises, and what it raises goes on."""
        token = _CURRENT.set(decision)
        try:
            yield
        except BaseException as error:
            self.failed(decision, done=not isinstance(error, NothingDone))
            raise
        finally:
            _CURRENT.reset(token)

    def refusal(self, decision: Decision) -> str:
        """The text for an agent whose call is not let through; of one that was made already, its result."""
        return self.unmade(decision).text

    def unmade(self, decision: Decision) -> CallAnswer:
        """As `refusal`, with whether the model is told of an error."""
        recorded = self.gate.recorded(decision)
        return CallAnswer(decision.message, error=True) if recorded is None else CallAnswer(recorded, error=False)

    def finished(self, decision: Decision, value: object) -> str:
        """Tell the gate what a call that was let through gave back; the same as text for the model."""
        try:
            text = value if isinstance(value, str) else json.dumps(plain_data(value), ensure_ascii=False)
        except ValueRefused as error:
            text = f"The result of {decision.tool} cannot be shown: {error.reason}."
        if decision.number is not None:
            self.gate.result(decision.call, text)
        return text

    def failed(self, decision: Decision, *, done: bool = True) -> None:
        """Tell the gate that a call failed which was let through; `done`: whether it may have done something."""
        if decision.number is not None:  # a gate that observes keeps no record of tools that are not declared
            self.gate.failed(decision.call, done=done)

    def _asked(self, decision: Decision, judged: Mapping[FactQuestion, JudgedFact | None]) -> bool:
        """Ask those who have to be asked; return whether something new is known."""
        learned = False
        for question in decision.questions:
            if (verdict := judged.get(question)) is not None:
                self.gate.learn(question.fact, *question.keys, value=verdict.value, strength=verdict.strength)
                learned = True
                continue
            value = None if self._answer is None else self._answer(decision, question)
            if value is not None:
                self.gate.learn(question.fact, *question.keys, value=value)
                learned = True
        # A yes is asked for only once all facts are known: they may make it unnecessary.
        if decision.questions:
            return learned
        for role in decision.confirmations:
            if self._confirm is not None and self._confirm(decision, role) is True:
                self.gate.confirm(decision, by=role)
                learned = True
        return learned


def _refusal(decision: Decision, words: str, first: str) -> Decision:
    reason = Reason("repeated", decision.tool, words, first)
    return replace(decision, outcome="refuse", key=None, number=None, reasons=(reason,))


def failure_text(decision: Decision, error: Exception) -> str:
    """The text for an agent whose call was let through and failed."""
    rest = "Nothing was done." if isinstance(error, NothingDone) else "It may have taken effect all the same."
    return f"The call to {decision.tool} failed: {str(error).rstrip('.') or type(error).__name__}. {rest}"
