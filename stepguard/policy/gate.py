"""The gate between an agent and its tools: it is offered every call, and told every result. It does no I/O itself.

::

    gate = policy.gate(conversation="c-17", facts={"customer": "C-1"})
    decision = gate.offer("refund", '{"order": "A1", "amount": 20}', id="call_1", now=datetime.now(UTC))
    if decision.allowed:
        gate.result("call_1", refund(**decision.arguments, idempotency_key=decision.key))
    else:
        tell_the_agent(decision.message)

Two calls that are offered at once are judged one after the other, and one that was let through counts from then on,
answered or not: a limit cannot be used up twice.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from threading import Lock
from typing import Any, Final, cast

from stepguard.core.arguments import check_count, check_flag, check_text
from stepguard.errors import ConfigError, EvaluationError, LedgerError, ValueRefused
from stepguard.language.measure_arithmetic import same_value
from stepguard.language.term_evaluation import evaluate_term
from stepguard.language.values import Value, show_value, to_exact
from stepguard.policy.arguments import given_data, plain_data, read_arguments_of
from stepguard.policy.decisions import Decision, Reason
from stepguard.policy.history import CallHistory, LetThrough, Sight
from stepguard.policy.journal import GateChanges, GateLedger
from stepguard.policy.judging import judge_call
from stepguard.policy.known_facts import KnownFacts
from stepguard.policy.policy import DeclaredTool, FactMissing, Policy
from stepguard.policy.reading import Reader, read_moment, result_data
from stepguard.policy.rules import tree_of
from stepguard.policy.spelling import KnownTexts, texts_in

__all__ = ["PolicyGate"]

_VERSION: Final = 1
_MAX_ID: Final = 512
_STATE: Final = ("facts", "calls", "yeses", "refused", "handed_over", "decisions")


class PolicyGate:
    """The gate of one conversation; see `Policy.gate`. It may be used from several threads.

    Attributes:
        policy: the policy.
        decisions: every decision so far, as plain data, with the arguments as they were read and its moment.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        conversation: str | None = None,
        zone: tzinfo = UTC,
        refusals: int = 3,
        observe: bool = False,
        reused_ids: bool = False,
        facts: Mapping[str, object] | None = None,
        state: Mapping[str, Any] | None = None,
        ledger: GateLedger | None = None,
        run_id: str | None = None,
    ) -> None:
        check_text(conversation, "conversation", optional=True)
        check_count(refusals, "refusals")
        check_flag(observe, "observe")
        check_flag(reused_ids, "reused_ids")
        self.policy = policy
        self.decisions: list[dict[str, Any]] = []
        self._conversation = conversation or secrets.token_hex(16)
        self._refusals = refusals
        self._observe = observe
        self._reused_ids = reused_ids
        self._reader = Reader(policy.defaults, zone)
        self._zone = zone
        self._lock = Lock()
        self._history = CallHistory()
        self._open: set[int] = set()
        self._facts = KnownFacts(policy, zone)
        self._yeses: set[str] = set()
        self._reached: tuple[tuple[str, str], ...] = ()  # the limits of the call that is judged
        self._in_a_row: dict[str, int] = {}
        self._handed_over = False
        self._known = KnownTexts(policy.known)
        self._durable: GateChanges | None = None
        if (ledger is None) != (run_id is None) or (ledger is not None and state is not None):
            raise ConfigError("a ledger and a run_id go together, and in the place of a state", option="ledger")
        if state is not None:
            self._resume(state)
        if ledger is not None and run_id is not None:
            self._open_journal(ledger, run_id)
        try:
            self._learn_at_start(facts or {})
        except BaseException:
            self.close()
            raise

    # ---- calls

    def offer(self, tool: str, arguments: str | Mapping[str, Any], *, id: str, now: datetime | None = None) -> Decision:
        """What becomes of a call. It is not made here.

        The same call under the same `id` gets the same decision again where it was let through, so that nothing is done
        twice; where it was not, it is judged anew.

        Args:
            tool: the name of the tool, as the agent gave it.
            arguments: the arguments, as JSON text or as what was read from that. Text is better: it still shows a key
                that stands twice.
            id: the identifier of the call, such as that of OpenAI.
            now: the moment; needed where rules read the clock.
        """
        check_text(id, "id")
        with self._lock:
            self._reached = ()
            decision = self._decide(tool, arguments, id[:_MAX_ID], now)
            if self._observe and not decision.allowed:
                decision = self._made_anyway(decision, arguments, now)
            moment = None if now is None else now.isoformat()
            self.decisions.append({**decision.to_dict(), "arguments": dict(decision.arguments), "at": moment})
            self._write()
            return decision

    def result(self, id: str, value: object = None) -> None:
        """What a call gave back: it succeeded.

        Args:
            id: the identifier of a call that was let through and is not answered yet.
            value: the result, as JSON text or as data.

        Raises:
            ConfigError: no such call waits for its result.
        """
        with self._lock:
            call = self._waiting(id)
            call.status = "succeeded"
            with suppress(ValueRefused):  # what cannot be kept is not looked at, neither now nor behind a resumption
                call.result = plain_data(value)
            self._see(call, call.result)
            self._write()

    def failed(self, id: str, *, done: bool = True) -> None:
        """A call has failed.

        Args:
            id: as for `result`.
            done: whether it may have done something all the same; False only where the tool says that it has not.

        Raises:
            ConfigError: no such call waits for its result.
        """
        with self._lock:
            call = self._waiting(id)
            call.status = "failed" if done else "not_done"
            if not done:
                for by in call.yeses:
                    self._set_yes(self._yes(by, self.policy.tools[call.tool], call.data))
            self._write()

    @property
    def pending(self) -> tuple[Decision, ...]:
        """The calls that were let through and are not answered: after a crash make them again, with the same key."""
        return tuple(_allowed(call) for call in self._history.calls if call.status == "pending")

    def recorded(self, decision: Decision) -> str | None:
        """The result of a call that is offered again after it was answered, as text; None of every other one."""
        call = self._history.by_id.get(decision.call)
        if call is None or call.status != "succeeded" or all(each.kind != "repeated" for each in decision.reasons):
            return None
        values = None
        with suppress(ValueRefused):
            values, _ = read_arguments_of(self.policy.tools[call.tool], decision.arguments, self._reader)
        if not _same_call(call, decision.tool, values, decision.arguments):
            return None
        return call.result if isinstance(call.result, str) else _dumped(call.result)

    # ---- what the host knows

    def learn(self, fact: str, *keys: object, value: object, strength: str = "proved") -> None:
        """What the host, a person or a checked judgement says; it replaces what was known before.

        Args:
            fact: the name of the fact.
            keys: what it is about.
            value: the value.
            strength: how strong a judgement is (``Result.steps[...].strength``); one that nothing checked is refused.

        Raises:
            ConfigError: there is no such fact, or the value is not of its type.
        """
        with self._lock:
            self._learn(fact, keys, value, strength)
            self._write()

    def _learn(self, fact: str, keys: tuple[object, ...], value: object, strength: str) -> None:
        self._known.add(texts_in(self._facts.learn(fact, keys, value, strength)))

    def confirm(self, decision: Decision, *, by: str) -> None:
        """Somebody has said yes to this very call; it counts once.

        Args:
            decision: the decision that asked for it.
            by: who, by the name that the rule has.
        """
        self._check_role(by, decision.tool)
        with self._lock, suppress(KeyError, ValueRefused):
            self._set_yes(self._yes(by, self.policy.tools[decision.tool], decision.arguments))
            self._write()

    def confirm_call(self, tool: str, arguments: str | Mapping[str, Any], *, by: str) -> None:
        """Somebody has said yes to a call that is not offered yet; arguments that cannot be read agree to nothing."""
        declared = self.policy.tools.get(tool)
        if declared is None:
            return
        self._check_role(by, tool)
        with self._lock, suppress(ValueRefused):
            self._set_yes(self._yes(by, declared, arguments))
            self._write()

    def withdraw(self, decision: Decision, *, by: str) -> None:
        """A yes does not hold any more, also where the call that it let through turns out to have done nothing."""
        with self._lock, suppress(KeyError, ValueRefused):
            tool = self.policy.tools[decision.tool]
            withdrawn = self._yes(by, tool, decision.arguments)
            self._set_yes(withdrawn, given=False)
            for call in self._history.by_tool.get(tool.name, ()):
                if call.status == "pending" and by in call.yeses and self._yes(by, tool, call.data) == withdrawn:
                    call.yeses = tuple(each for each in call.yeses if each != by)
                    self._note(call)
            self._write()

    @property
    def observe(self) -> bool:
        """Whether calls are made whatever is decided of them."""
        return self._observe

    @property
    def handed_over(self) -> bool:
        """Whether a person has taken over: no call that changes something is let through until `take_back`."""
        return self._handed_over

    def take_back(self) -> None:
        """The person hands the conversation back to the agent."""
        with self._lock:
            self._handed_over = False
            self._in_a_row.clear()
            self._write()

    # ---- state

    def close(self) -> None:
        """Let another process go on with the conversation, where that is kept in a ledger; nothing more is written."""
        if self._durable is not None:
            self._durable.journal.close()

    def to_dict(self) -> dict[str, Any]:
        """Everything of the conversation as plain data, for `Policy.gate(state=...)`."""
        with self._lock:
            return {
                "version": _VERSION,
                "policy": self.policy.digest,
                "conversation": self._conversation,
                "calls": [call.to_dict() for call in self._history.calls],
                "facts": [dict(each) for each in self._facts.entries],
                "yeses": sorted(self._yeses),
                "refused": dict(self._in_a_row),
                "handed_over": self._handed_over,
                "decisions": [dict(each) for each in self.decisions],
            }

    def _resume(self, state: Mapping[str, Any]) -> None:
        try:
            self._restore(state)
        except ConfigError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"the state was changed: {type(error).__name__}: {error}", option="state") from None

    def _restore(self, state: Mapping[str, Any]) -> None:
        if state.get("version") != _VERSION or state.get("policy") != self.policy.digest:
            raise ConfigError(
                "the state is that of another policy or version: go on with the policy that it was saved under",
                option="state",
            )
        self._conversation = str(state["conversation"])
        self._apply({name: state[name] for name in _STATE})

    def _apply(self, change: Mapping[str, Any]) -> None:
        """Take in what has happened in an earlier process: all of it, or what changed at one moment."""
        for each in change.get("facts", ()):
            self._learn(each["fact"], tuple(each["keys"]), each["value"], each["strength"])
        calls, answered = self._history.calls, []
        for each in change.get("calls", ()):
            number, tool = each.get("number", len(calls)), self.policy.tools[each["tool"]]
            if not 0 <= number <= len(calls):
                raise ValueError(f"there is no call {number}")
            if number == len(calls):
                values = read_arguments_of(tool, each["arguments"], self._reader)[0] if each["read"] else None
                self._add(LetThrough.from_dict(each, number, values), tool)
            elif calls[number].status == "pending":
                call = calls[number]
                call.status, call.result, call.yeses = each["status"], each["result"], tuple(each["yeses"])
            else:
                continue
            if each["status"] != "pending":
                self._open.discard(number)
            if each["status"] == "succeeded":
                answered.append(number)
        for number in answered:
            self._see(calls[number], calls[number].result)
        self._yeses = (self._yeses | {*change.get("yeses", ()), *change.get("given", ())}) - {*change.get("used", ())}
        self._in_a_row = dict(change.get("refused", self._in_a_row))
        self._handed_over = bool(change.get("handed_over", self._handed_over))
        self.decisions += [dict(each) for each in change.get("decisions", ())]

    def _open_journal(self, ledger: GateLedger, run_id: str) -> None:
        journal = ledger.open_gate(self.policy, run_id=run_id, conversation=self._conversation)
        self._conversation = journal.conversation
        try:
            for change in journal.changes:
                self._apply(change)
        except (ConfigError, ValueRefused, AttributeError, LookupError, TypeError, ValueError) as error:
            journal.close()
            raise LedgerError(
                f"the conversation {run_id!r} cannot be read from the ledger ({type(error).__name__}: {error}): "
                "`stepguard verify` tells what was altered"
            ) from error
        self._durable = GateChanges(journal, self._facts.entries, self.decisions)
        self._write()

    def _learn_at_start(self, facts: Mapping[str, object]) -> None:
        known = {each["fact"]: each["value"] for each in self._facts.entries if not each["keys"]}
        for name, value in facts.items():
            if self._durable is None or name not in known or known[name] != plain_data(value):
                self.learn(name, value=value)

    def _set_yes(self, yes: str, *, given: bool = True) -> None:
        (self._yeses.add if given else self._yeses.discard)(yes)
        if self._durable is not None:
            self._durable.yes(yes, given=given)

    def _note(self, call: LetThrough) -> None:
        if self._durable is not None:
            self._durable.call(call)

    def _write(self) -> None:
        """Make what has changed durable, before anything is done with it.

        Raises:
            LedgerError: it did not become durable, now or earlier; the gate is of no use any more.
        """
        if self._durable is not None:
            self._durable.write(refused=dict(self._in_a_row), handed_over=self._handed_over)

    # ---- the parts of a decision

    def _decide(self, name: str, arguments: str | Mapping[str, Any], id: str, now: datetime | None) -> Decision:
        tool = self.policy.tools.get(name)
        if tool is None:
            shown = " ".join(str(name).split())[:60]
            return self._refused(shown, id, {}, Reason("unknown_tool", "", f"There is no tool {shown!r}"))
        free = tool.reads and not tool.rules
        values: dict[str, Value] | None = None
        try:
            values, data = read_arguments_of(tool, arguments, self._reader)
        except ValueRefused as error:
            if not free:
                words = f"Its arguments cannot be taken as they are: {error.reason}"
                return self._refused(name, id, {}, Reason("arguments", name, words))
            data = given_data(arguments)
        before = self._history.by_id.get(id)
        if before is not None and (before.status == "pending" or not (self._reused_ids or before.status == "not_done")):
            if before.status == "pending" and _same_call(before, name, values, data):
                return _allowed(before)
            words = "A call with this identifier was made already"
            detail = "a provider that uses identifiers again needs a gate with reused_ids=True"
            return self._refused(name, id, data, Reason("repeated", name, words, detail=detail), counted=False)
        if free or not any(rule.demands for rule in tool.rules):
            if self._handed_over and not tool.reads:
                return self._over(name, id, data)
            return self._let(tool, id, values, data, now)
        if self._handed_over:
            return self._over(name, id, data)
        assert values is not None
        return self._judged(tool, id, values, data, now)

    def _judged(
        self, tool: DeclaredTool, id: str, values: dict[str, Value], data: dict[str, Any], now: datetime | None
    ) -> Decision:
        for name in tool.compared:
            if self._known.misspelt(values[name]):
                words = f"Its arguments cannot be taken as they are: {name} is spelt otherwise than what is known"
                return self._refused(
                    tool.name, id, data, Reason("arguments", tool.name, words, "Copy it as it is known.")
                )
        roles = frozenset(by for by in tool.roles if self._yes(by, tool, data) in self._yeses)
        clock = None if now is None else read_moment(now, self._zone)
        judgement = judge_call(
            self.policy, tool, values, self._history, known=self._facts, clock=clock, confirmed=roles
        )
        self._reached = tuple(judgement.spent)
        if judgement.reasons:
            return self._refused(tool.name, id, data, *judgement.reasons)
        if judgement.pending:
            questions = tuple(self._facts.question(name, keys) for name, keys in judgement.open)
            waiting = tuple(by for by in judgement.yeses if by not in roles)
            return Decision(
                "ask", tool.name, id, data, reasons=tuple(judgement.pending), questions=questions, confirmations=waiting
            )
        for by in judgement.yeses:
            self._set_yes(self._yes(by, tool, data), given=False)
        return self._let(tool, id, values, data, now, spent=self._reached, yeses=tuple(judgement.yeses))

    def _made_anyway(self, decision: Decision, arguments: object, now: datetime | None) -> Decision:
        """A call that is only observed: it is made whatever was decided of it."""
        tool = self.policy.tools.get(decision.tool)
        if tool is None:
            return replace(decision, arguments=given_data(arguments))
        if any(reason.kind == "repeated" for reason in decision.reasons):
            return decision
        values, data = None, given_data(arguments)
        with suppress(ValueRefused):
            values, data = read_arguments_of(tool, arguments, self._reader)
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
        number = len(self._history.calls)
        text = "\0".join([self._conversation, str(number), tool.name, _dumped(data)])
        key = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]
        at = None if now is None else cast(timedelta, read_moment(now, self._zone)["at"])
        waiting = tuple(sorted(self._open))
        call = LetThrough(number, id, tool.name, values, data, key, "pending", at, spent, yeses, None, waiting)
        self._add(call, tool)
        self._in_a_row.pop(tool.name, None)
        return _allowed(call)

    def _add(self, call: LetThrough, tool: DeclaredTool) -> None:
        self._history.add(call)
        self._note(call)
        if tool.reads:
            return
        if call.status == "pending" and tool.changes != ():
            self._open.add(call.number)
        if tool.changes is None or call.values is None:
            self._history.changed_all(call.number)
            return
        for name, wanted in self._changes(tool, call):
            self._history.changed(name, wanted, call.number)

    def _changes(self, tool: DeclaredTool, call: LetThrough) -> list[tuple[str, dict[str, Value]]]:
        """The calls whose results a call makes stale: the tool, and the arguments that are given."""
        values = cast("dict[str, Value]", call.values)
        stale: list[tuple[str, dict[str, Value]]] = []
        for pattern in tool.changes or ():
            target = self.policy.tools[pattern.tool]
            try:
                pairs = pattern.arguments(target.names)
                wanted = {name: evaluate_term(tree_of(tree), values, self._facts.tables) for name, tree in pairs}
            except (EvaluationError, FactMissing, KeyError):
                wanted = {}  # which ones is not known: all of this tool
            stale.append((pattern.tool, wanted))
        return stale

    def _waiting(self, id: str) -> LetThrough:
        call = self._history.by_id.get(id[:_MAX_ID] if isinstance(id, str) else id)
        if call is None or call.status != "pending":
            raise ConfigError(f"no call {id!r:.80} waits for its result", option="id")
        self._open.discard(call.number)
        self._note(call)
        return call

    def _see(self, call: LetThrough, value: object) -> None:
        """Keep what a result says, for the rules to look at."""
        if call.values is None:
            return
        tool = self.policy.tools[call.tool]
        read = None if tool.result is None else self._reader.result(tool.result, result_data(value))
        self._known.add(texts_in(read))
        self._history.see(tool.name, Sight(call.values, read, call.number, call.open))
        if tool.reads or read is None:
            return
        # What a change gives back is the new state of the one thing that it changes; of two it is not known which.
        alike = [each for each in self._changes(tool, call) if self.policy.tools[each[0]].result == tool.result]
        if len(alike) == 1 and len(alike[0][1]) == len(self.policy.tools[alike[0][0]].parameters):
            self._history.see(alike[0][0], Sight(alike[0][1], read, call.number, call.open))

    def _check_role(self, by: str, tool: str) -> None:
        check_text(by, "by")
        roles = self.policy.roles(tool)
        if by not in roles:
            raise ConfigError(
                f"no rule of {tool} asks for a yes of {by!r:.60}: {', '.join(roles) or 'nobody'} is asked", option="by"
            )

    def _yes(self, by: str, tool: DeclaredTool, arguments: str | Mapping[str, Any]) -> str:
        """A yes to a call: to what its arguments say, however a number in them is written.

        Raises:
            ValueRefused: the arguments cannot be read.
        """
        values, data = read_arguments_of(tool, arguments, self._reader)
        exact = {name: show_value(cast(Value, to_exact(each))) for name, each in values.items()}
        parts = [by, tool.name, _dumped({**data, **exact})]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()

    def _refused(self, tool: str, id: str, data: dict[str, Any], *reasons: Reason, counted: bool = True) -> Decision:
        counter = tool if tool in self.policy.tools else ""
        if counted and not self._observe:
            self._in_a_row[counter] = self._in_a_row.get(counter, 0) + 1
        if self._in_a_row.get(counter, 0) >= self._refusals and not self._observe:
            self._handed_over = True
            return Decision("hand_over", tool, id, data, reasons=reasons)
        return Decision("refuse", tool, id, data, reasons=reasons)

    def _over(self, tool: str, id: str, data: dict[str, Any]) -> Decision:
        words = "A person has taken over this conversation"
        return Decision("hand_over", tool, id, data, reasons=(Reason("handed_over", tool, words),))


def _same_call(call: LetThrough, tool: str, values: Mapping[str, Value] | None, data: Mapping[str, Any]) -> bool:
    """Whether arguments say what those of a call say, however their numbers are written."""
    if call.tool != tool or call.values is None or values is None:
        return (call.tool, call.data) == (tool, data)
    further = [{name: each for name, each in given.items() if name not in values} for given in (call.data, data)]
    return further[0] == further[1] and all(same_value(call.values[name], value) for name, value in values.items())


def _allowed(call: LetThrough) -> Decision:
    # A tool may change its arguments; what the rules look at stays.
    return Decision("allow", call.tool, call.id, deepcopy(call.data), key=call.key, number=call.number)


def _dumped(data: object) -> str:
    return json.dumps(data, sort_keys=True, ensure_ascii=False, default=str)
