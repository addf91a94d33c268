"""Decide on one call after the other: read it, judge it by the rules, and count it where it is let through."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, cast

from stepguard.errors import ValueRefused
from stepguard.language.values import Value
from stepguard.policy.arguments import given_data, read_arguments_of
from stepguard.policy.decisions import Decision, Reason
from stepguard.policy.declarations import DeclaredTool
from stepguard.policy.history import LetThrough
from stepguard.policy.judging import judge_call
from stepguard.policy.memory import GateMemory, as_json
from stepguard.policy.moments import read_moment


class CallDecider:
    """Decides on the calls of one conversation from its memory, and notes there what it decides.

    It is not safe for several threads.

    Args:
        memory: the memory.
        refusals: after so many refusals of one tool in a row a person takes over.
        observe: whether calls are made whatever is decided of them.
        reused_ids: whether the identifier of a call that was answered may stand for a new one.
    """

    def __init__(self, memory: GateMemory, *, refusals: int, observe: bool, reused_ids: bool) -> None:
        self._memory: Final = memory
        self._refusals: Final = refusals
        self._observe: Final = observe
        self._reused_ids: Final = reused_ids
        self._reached: tuple[tuple[str, str], ...] = ()  # the limits of the call that is judged

    def decide(self, name: str, arguments: str | Mapping[str, Any], id: str, now: datetime | None) -> Decision:
        """Decide on a call; see `stepguard.policy.PolicyGate.offer`."""
        self._reached = ()
        decision = self._decide(name, arguments, id, now)
        if self._observe and not decision.allowed:
            # An observed call counts as made, or limits would be reached later than in a gate that refuses.
            decision = self._made_anyway(decision, arguments, now)
        return decision

    def _decide(self, name: str, arguments: str | Mapping[str, Any], id: str, now: datetime | None) -> Decision:
        # The name is the agent's: it may be anything JSON has, and an unhashable one must not raise.
        tool = self._memory.policy.tools.get(name) if isinstance(name, str) else None
        if tool is None:
            shown = " ".join(str(name).split())[:60]
            reason = Reason("unknown_tool", "", f"There is no tool {shown!r}", "Use a tool that you were given.")
            return self._refused(shown, id, {}, reason)
        free = tool.reads and not tool.rules
        values: dict[str, Value] | None = None
        try:
            values, data = read_arguments_of(tool, arguments, self._memory.reader)
        except ValueRefused as error:
            # A tool that only reads and has no rules can do no harm: its arguments go on as they came.
            if not free:
                words = f"Its arguments cannot be used as they are: {error.reason}"
                return self._refused(name, id, {}, Reason("arguments", name, words, "Correct them and call it again."))
            data = given_data(arguments)
        before = self._memory.history.by_id.get(id)
        # One identifier, one call: where the first is not answered, a second would be made twice.
        if before is not None and (before.status == "pending" or not (self._reused_ids or before.status == "not_done")):
            if before.status == "pending" and before.says(name, values, data):
                return before.allowed()
            words = "A call with this identifier was already made"
            detail = "a provider that uses identifiers again needs a gate with reused_ids=True"
            return self._refused(name, id, data, Reason("repeated", name, words, detail=detail), counted=False)
        unruled = not any(rule.demands for rule in tool.rules)
        if self._memory.handed_over and not (unruled and tool.reads):
            words = "A person has taken over this conversation"
            return Decision("hand_over", name, id, data, reasons=(Reason("handed_over", name, words),))
        if unruled:
            return self._let(tool, id, values, data, now)
        assert values is not None
        return self._judged(tool, id, values, data, now)

    def _judged(
        self, tool: DeclaredTool, id: str, values: dict[str, Value], data: dict[str, Any], now: datetime | None
    ) -> Decision:
        memory = self._memory
        for name in tool.compared:
            # The tool may take "a1" for "A1", while the rules about A1 would not apply to it.
            if memory.known.misspelt(values[name]):
                words = f"Its argument {name} is spelled differently from the value that is known"
                return self._refused(
                    tool.name, id, data, Reason("arguments", tool.name, words, "Copy that value exactly.")
                )
        roles = frozenset(by for by in tool.roles if memory.yes_to(by, tool, data) in memory.yeses)
        clock = None if now is None else read_moment(now, memory.reader.zone)
        judgement = judge_call(
            memory.policy, tool, values, memory.history, known=memory.facts, clock=clock, confirmed=roles
        )
        # Kept for an observing gate, whose call counts against these limits although it was refused.
        self._reached = tuple(judgement.spent)
        if judgement.reasons:
            return self._refused(tool.name, id, data, *judgement.reasons)
        if judgement.pending:
            questions = tuple(memory.facts.question(name, keys) for name, keys in judgement.open)
            waiting = tuple(by for by in judgement.yeses if by not in roles)
            return Decision(
                "ask", tool.name, id, data, reasons=tuple(judgement.pending), questions=questions, confirmations=waiting
            )
        for by in judgement.yeses:
            memory.set_yes(memory.yes_to(by, tool, data), given=False)
        return self._let(tool, id, values, data, now, spent=self._reached, yeses=tuple(judgement.yeses))

    def _made_anyway(self, decision: Decision, arguments: object, now: datetime | None) -> Decision:
        """Count an observed call as made, whatever was decided."""
        tool = self._memory.policy.tools.get(decision.tool)
        if tool is None:
            return replace(decision, arguments=given_data(arguments))
        if any(reason.kind == "repeated" for reason in decision.reasons):
            return decision
        values, data = None, given_data(arguments)
        with suppress(ValueRefused):
            values, data = read_arguments_of(tool, arguments, self._memory.reader)
        made = self._let(tool, decision.call, values, data, now, spent=self._reached)
        return replace(decision, arguments=made.arguments, key=made.key, number=made.number)

    def _let(
        self,
        tool: DeclaredTool,
        id: str,
        values: dict[str, Value] | None,
        data: dict[str, Any],
        now: datetime | None,
        *,
        spent: tuple[tuple[str, str], ...] = (),
        yeses: tuple[str, ...] = (),
    ) -> Decision:
        number = len(self._memory.history.calls)
        # The number makes the key another one for each call, and the same one for a call that is offered again.
        text = "\0".join([self._memory.conversation, str(number), tool.name, as_json(data)])
        key = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]
        at = None if now is None else cast(timedelta, read_moment(now, self._memory.reader.zone)["at"])
        waiting = tuple(sorted(self._memory.open))
        call = LetThrough(number, id, tool.name, values, data, key, "pending", at, spent, yeses, None, waiting)
        self._memory.add(call, tool)
        self._memory.refused.pop(tool.name, None)
        return call.allowed()

    def _refused(self, tool: str, id: str, data: dict[str, Any], *reasons: Reason, counted: bool = True) -> Decision:
        # All unknown names share one counter: an agent that makes names up is handed over, too.
        counter = tool if tool in self._memory.policy.tools else ""
        if counted and not self._observe:
            self._memory.refused[counter] = self._memory.refused.get(counter, 0) + 1
        if self._memory.refused.get(counter, 0) >= self._refusals and not self._observe:
            self._memory.handed_over = True
            return Decision("hand_over", tool, id, data, reasons=reasons)
        return Decision("refuse", tool, id, data, reasons=reasons)
