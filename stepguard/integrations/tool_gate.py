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
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from stepguard.core.arguments import check_callable, check_instance
from stepguard.core.closing import Closing
from stepguard.engine.budget import Budget
from stepguard.errors import ConfigError, StepguardError
from stepguard.guard import Guard
from stepguard.integrations.asking_gate import AskingGate, CallAnswer, NothingDone, current_decision, failure_text
from stepguard.language.strict_json import JsonNumber
from stepguard.language.values import show_value
from stepguard.ledger import Ledger
from stepguard.policy.arguments import plain_data
from stepguard.policy.decisions import Decision, FactQuestion
from stepguard.policy.gate import PolicyGate
from stepguard.policy.policy import Policy
from stepguard.procedure.operations import KEY, Operation, Tool, operations_of

__all__ = ["AskedCall", "CallAnswer", "NothingDone", "ToolGate", "current_decision", "failure_text", "part_of"]


class AskedCall(NamedTuple):
    """A call as a model asks for it; one that is not `complete` may lack its end, and is not made."""

    id: str
    name: str
    arguments: str | Mapping[str, Any]
    complete: bool = True


class ToolGate(AskingGate, Closing):
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
        # Whatever can be wrong comes before the conversation is opened, which would stay locked in its ledger.
        for function, name in (
            (confirm, "confirm"), (answer, "answer"), (clock, "clock"), (on_decision, "on_decision"),
        ):  # fmt: skip
            check_callable(function, name, optional=True)
        if budget is not None and guard is None:
            raise ConfigError("a budget is that of the judgements of a guard: give one", option="budget")
        if isinstance(policy, PolicyGate) and (facts or options or ledger is not None):
            raise ConfigError("facts and options belong to the gate that is given", option="facts")
        self._tools: Mapping[str, Operation] = operations_of({}, tools)
        for name, each in self._tools.items():
            if each.approval:
                raise ConfigError(f"{name} waits for a yes: say so in the policy, `confirmed by ROLE`", option="tools")
        declared = (policy.policy if isinstance(policy, PolicyGate) else policy).tools
        again = tuple(repeatable)
        for option, names in (("tools", tools), ("repeatable", again)):
            for name in names:
                if name not in declared:
                    raise ConfigError(f"the policy declares no tool {name!r}: write `tool {name}(...)`", option=option)
        check_instance(ledger, (str, Path, Ledger), "ledger", what="the path of a file, or a Ledger", optional=True)
        opened = Ledger(ledger) if isinstance(ledger, str | Path) else ledger
        self._own_ledger: Final = None if opened is ledger else opened
        super().__init__(
            policy if isinstance(policy, PolicyGate) else policy.gate(facts=facts, ledger=opened, **options),
            confirm=confirm,
            answer=answer,
            guard=guard,
            budget=budget,
            clock=clock,
            on_decision=on_decision,
            repeatable={*again, *(each.name for each in self._tools.values() if each.keyed or each.idempotent)},
        )

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
        # What a step may pass is read from the signature: what the policy declares, and the key.
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

    def close(self) -> None:
        """Let another process go on with the conversation, where that is kept in a ledger."""
        self.gate.close()
        if self._own_ledger is not None:
            self._own_ledger.close()

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
