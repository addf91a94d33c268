"""Gate tools: every call of an agent goes through its policy, and a refusal tells the model why.

A plain tool loop with an OpenAI client::

    gate = ToolGate(policy, {"get_order": get_order, "refund": refund}, facts={"customer": "C1"}, confirm=ask_the_user)
    while True:
        message = client.chat.completions.create(model=..., messages=messages, tools=schemas).choices[0].message
        messages.append(message)
        if not message.tool_calls or gate.handed_over:
            break
        messages += gate.answer(message)

Other frameworks are given `ToolGate.call`, or a file of their own beside this one.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self, cast

from stepguard.core.arguments import check_callable, check_instance
from stepguard.engine.budget import Budget
from stepguard.errors import ConfigError, StepguardError, ValueRefused
from stepguard.guard import Guard
from stepguard.integrations.fact_judge import FactJudge, JudgedFact
from stepguard.language.strict_json import JsonNumber
from stepguard.language.values import show_value
from stepguard.ledger import Ledger
from stepguard.policy.arguments import plain_data
from stepguard.policy.decisions import Decision, FactQuestion, Reason
from stepguard.policy.gate import PolicyGate
from stepguard.policy.policy import Policy
from stepguard.procedure.operations import KEY, Operation, Tool, operations_of
from stepguard.telemetry.logging import call_safely, log_event

__all__ = ["AskedCall", "CallAnswer", "NothingDone", "ToolGate", "current_decision", "failure_text", "part_of"]

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


class AskedCall(NamedTuple):
    """A call as a model asks for it; one that is not `complete` may lack its end, and is not made."""

    id: str
    name: str
    arguments: str | Mapping[str, Any]
    complete: bool = True


class ToolGate:
    """The tools of one conversation behind the gate of a policy.

    Args:
        policy: the policy, or a gate that was resumed.
        tools: the functions by name; one with a parameter ``idempotency_key`` is given the key of the call. A framework
            that calls its tools itself needs none.
        facts: what the host knows from the start, where a policy is given.
        confirm: asked for a yes: the decision and who has to say it. None: such calls wait, and the model is told so.
        answer: asked for a fact that is not known; None where that cannot be told.
        guard: runs the judgements that rules need, facts that are declared as ``judged``, with its model and budget;
            what it cannot verify is asked of `answer`. None: so are all.
        budget: the calls, tokens and money of all judgements of the conversation together. None: there is no limit.
        clock: the moment; by default the time of this machine.
        on_decision: told of every decision on a call, when all were asked who have to be; what it raises is logged and
            changes nothing. Each is a log event ``call_judged`` besides (`stepguard.telemetry.logging`).
        ledger: where the conversation is kept, so that it goes on in another process: the path of a file, or a
            `stepguard.ledger.Ledger`; with `run_id`. See `Policy.gate`.
        repeatable: the tools that a framework calls and that may be called again with the key of the call, after a
            process died in one. Of `tools` those are known: they have a parameter ``idempotency_key``, or are declared
            ``Tool(..., idempotent=True)``. No other is called again unless the policy says that it only reads.
        options: further options of `Policy.gate`.

    Raises:
        ConfigError: a tool is not declared in the policy, or an option cannot work.
    """

    def __init__(
        self,
        policy: Policy | PolicyGate,
        tools: Mapping[str, Callable[..., object] | Tool] = MappingProxyType({}),
        *,
        facts: Mapping[str, object] | None = None,
        confirm: Callable[[Decision, str], bool] | None = None,
        answer: Callable[[Decision, FactQuestion], object | None] | None = None,
        guard: Guard | None = None,
        budget: Budget | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        on_decision: Callable[[Decision], object] | None = None,
        ledger: Ledger | str | Path | None = None,
        repeatable: Iterable[str] = (),
        **options: Any,
    ) -> None:
        for function, name in (
            (confirm, "confirm"), (answer, "answer"), (clock, "clock"), (on_decision, "on_decision"),
        ):  # fmt: skip
            check_callable(function, name, optional=True)
        if isinstance(policy, PolicyGate) and (facts or options or ledger is not None):
            raise ConfigError("facts and options belong to the gate that is given", option="facts")
        self._tools: Mapping[str, Operation] = operations_of({}, tools)
        for name, each in self._tools.items():
            if each.approval:
                raise ConfigError(f"{name} waits for a yes: say so in the policy, `confirmed by ROLE`", option="tools")
        declared = (policy.policy if isinstance(policy, PolicyGate) else policy).tools
        for option, names in (("tools", tuple(tools)), ("repeatable", tuple(repeatable))):
            for name in names:
                if name not in declared:
                    raise ConfigError(f"the policy declares no tool {name!r}: write `tool {name}(...)`", option=option)
        self._repeatable: Final = {
            *repeatable,
            *(each.name for each in declared.values() if each.reads),
            *(each.name for each in self._tools.values() if each.keyed or each.idempotent),
        }
        check_instance(ledger, (str, Path, Ledger), "ledger", what="the path of a file, or a Ledger", optional=True)
        opened = Ledger(ledger) if isinstance(ledger, str | Path) else ledger
        self._own_ledger: Final = None if opened is ledger else opened
        if isinstance(policy, PolicyGate):
            self.gate = policy
        else:
            self.gate = policy.gate(facts=facts, ledger=opened, **options)
        self._confirm = confirm
        self._answer = answer
        if budget is not None and guard is None:
            raise ConfigError("a budget is that of the judgements of a guard: give one", option="budget")
        self._judge = None if guard is None else FactJudge(guard, self.gate.policy, budget)
        self._clock = clock
        self._on_decision = on_decision
        self._lock = Lock()
        self._begun: set[object] = set()
        self._unsettled: Final = {each.number for each in self.gate.pending if each.tool not in self._repeatable}
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
        if not self._begins(decision):
            return _refusal(decision, "This very call is already being made", "Wait for its result.")
        return decision

    def call(self, name: str, arguments: str | Mapping[str, Any], *, id: str) -> str:
        """Make a call if the policy lets it through.

        Returns:
            What the model is told: the result as text, or why there is none and what to do first.
        """
        return self.carry_out(name, arguments, id=id).text

    async def acall(self, name: str, arguments: str | Mapping[str, Any], *, id: str) -> str:
        """The twin of `call` for async tools."""
        return (await self.acarry_out(name, arguments, id=id)).text

    def carry_out(self, name: str, arguments: str | Mapping[str, Any], *, id: str) -> CallAnswer:
        """As `call`, with whether the model is told of an error."""
        decision = self.decide(name, arguments, id=id)
        if not decision.allowed:
            return self.unmade(decision)
        try:
            with self.making(decision):
                value = self._function(name)(**self._keyword_arguments(decision))
                if inspect.isawaitable(value):
                    # A coroutine that is never awaited would warn when it is collected.
                    getattr(value, "close", lambda: None)()
                    raise NothingDone(f"{name} is async: use `acall`")
        except Exception as error:  # noqa: BLE001 - the agent is told of it, whatever it is
            return CallAnswer(failure_text(decision, error), error=True)
        return CallAnswer(self.finished(decision, value), error=False)

    async def acarry_out(self, name: str, arguments: str | Mapping[str, Any], *, id: str) -> CallAnswer:
        """The twin of `carry_out` for async tools."""
        decision = await self.adecide(name, arguments, id=id)
        if not decision.allowed:
            return self.unmade(decision)
        try:
            with self.making(decision):
                value = self._function(name)(**self._keyword_arguments(decision))
                if inspect.isawaitable(value):
                    value = await value
        except Exception as error:  # noqa: BLE001 - as in `carry_out`
            return CallAnswer(failure_text(decision, error), error=True)
        return CallAnswer(self.finished(decision, value), error=False)

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

    def answer(self, message: Any) -> list[dict[str, Any]]:
        """The messages that answer the tool calls of an assistant's message, an object of OpenAI's or a mapping."""
        calls = _calls_of(message)
        return list(map(_message, calls, self.answers(calls)))

    async def aanswer(self, message: Any) -> list[dict[str, Any]]:
        """The twin of `answer` for async tools."""
        calls = _calls_of(message)
        return list(map(_message, calls, await self.aanswers(calls)))

    def answers(self, calls: Iterable[AskedCall]) -> list[CallAnswer]:
        """Carry out calls one after the other, and answer each for the model."""
        return [
            self.carry_out(each.name, each.arguments, id=each.id) if each.complete else cut_off(each.name)
            for each in calls
        ]

    async def aanswers(self, calls: Iterable[AskedCall]) -> list[CallAnswer]:
        """The twin of `answers` for async tools."""
        return [
            await self.acarry_out(each.name, each.arguments, id=each.id) if each.complete else cut_off(each.name)
            for each in calls
        ]

    def operations(self, *names: str) -> dict[str, Tool]:
        """The tools for a procedure: each call is judged by the same gate, and one that is refused fails its step.

        ::

            Procedure.parse(text).with_operations(tools=gate.operations("get_order", "refund"))

        A step is tried again (``Tool(retries=...)``) where its tool has raised `NothingDone`.

        Args:
            names: those that its steps call; all of them where none is given.

        Raises:
            ConfigError: there is no such tool here.
        """
        for name in names:
            if name not in self._tools:
                raise ConfigError(f"there is no function for {name}", option="names")
        return {name: self._step_tool(self._tools[name]) for name in names or self._tools}

    def _step_tool(self, tool: Operation) -> Tool:
        """A tool whose calls have the key of their step for an identifier."""

        def call(*, idempotency_key: str, **arguments: object) -> object:
            decision = self.decide(tool.name, _as_an_agent_writes(arguments), id=idempotency_key)
            if not decision.allowed:
                return self._known_result(decision)
            with self.making(decision):
                value = tool.function(**self._keyword_arguments(decision))
            self.finished(decision, value)
            return value

        async def acall(*, idempotency_key: str, **arguments: object) -> object:
            decision = await self.adecide(tool.name, _as_an_agent_writes(arguments), id=idempotency_key)
            if not decision.allowed:
                return self._known_result(decision)
            with self.making(decision):
                value = await cast("Awaitable[object]", tool.function(**self._keyword_arguments(decision)))
            self.finished(decision, value)
            return value

        made = acall if inspect.iscoroutinefunction(tool.function) else call
        declared = self.gate.policy.tools[tool.name]
        needed = inspect.Parameter.empty
        taken = {each.name: needed if each.value is None else each.value for each in declared.parameters}
        parameters = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
            for name, default in {**taken, KEY: needed}.items()
        ]
        more = [inspect.Parameter(f"{KEY}s", inspect.Parameter.VAR_KEYWORD)] if declared.more else []
        made.__signature__ = inspect.Signature([*parameters, *more])  # type: ignore[attr-defined]
        return Tool(made, retries=tool.retries)

    def _known_result(self, decision: Decision) -> object:
        """The result of a call that was made already.

        Raises:
            NothingDone: it was not, and is refused.
            StepguardError: it may have taken effect.
        """
        recorded = self.gate.recorded(decision)
        if recorded is None and any(reason.kind == "repeated" for reason in decision.reasons):
            raise StepguardError(f"the call to {decision.tool} was made before, and what came of it is not known")
        if recorded is None:
            raise NothingDone(decision.message)
        with suppress(ValueError):
            return json.loads(recorded)
        return recorded

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

    def close(self) -> None:
        """Let another process go on with the conversation, where that is kept in a ledger."""
        self.gate.close()
        if self._own_ledger is not None:
            self._own_ledger.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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

    def _begins(self, decision: Decision) -> bool:
        """Whether a call is made for the first time here: two at once under one identifier are one call."""
        with self._lock:
            # By its number: identifiers may be used again in one conversation.
            begun = decision.call if decision.number is None else decision.number
            known = begun in self._begun
            self._begun.add(begun)
        return not known

    def _function(self, name: str) -> Callable[..., object]:
        tool = self._tools.get(name)
        if tool is None:
            raise NothingDone(f"there is no function for {name}")
        return tool.function

    def _keyword_arguments(self, decision: Decision) -> dict[str, Any]:
        keyed = self._tools[decision.tool].keyed
        return {**decision.arguments, **({KEY: decision.key} if keyed else {})}


def _as_an_agent_writes(arguments: Mapping[str, object]) -> dict[str, Any]:
    """The arguments of a step as data, with numbers for its numbers."""
    return {
        name: JsonNumber(show_value(value)) if isinstance(value, Fraction) else plain_data(value)
        for name, value in arguments.items()
    }


def _refusal(decision: Decision, words: str, first: str) -> Decision:
    reason = Reason("repeated", decision.tool, words, first)
    return replace(decision, outcome="refuse", key=None, number=None, reasons=(reason,))


def failure_text(decision: Decision, error: Exception) -> str:
    """The text for an agent whose call was let through and failed."""
    rest = "Nothing was done." if isinstance(error, NothingDone) else "It may have taken effect all the same."
    return f"The call to {decision.tool} failed: {str(error).rstrip('.') or type(error).__name__}. {rest}"


def _calls_of(message: Any) -> list[AskedCall]:
    calls: list[AskedCall] = []
    for call in part_of(message, "tool_calls") or ():
        id, function = part_of(call, "id"), part_of(call, "function")
        if not (isinstance(id, str) and id):
            raise ConfigError("a tool call has no identifier: give each one of its own", option="message")
        calls.append(AskedCall(id, str(part_of(function, "name")), part_of(function, "arguments") or "{}"))
    return calls


def cut_off(name: str) -> CallAnswer:
    """The answer to a call whose end may be missing: it was not made."""
    return CallAnswer(f"The call to {name} was cut off and nothing was done. Make it again.", error=True)


def part_of(of: Any, name: str) -> Any:
    """A part of a message, an object of a library or a mapping; None where it is missing."""
    return of.get(name) if isinstance(of, Mapping) else getattr(of, name, None)


def _message(call: AskedCall, answer: CallAnswer) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call.id, "content": answer.text}
