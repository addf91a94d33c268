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

import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from threading import Lock
from typing import Any, Final

from stepguard.core.arguments import check_count, check_flag, check_text
from stepguard.errors import ConfigError, ValueRefused
from stepguard.policy.arguments import plain_data, read_arguments_of
from stepguard.policy.call_decider import CallDecider
from stepguard.policy.decisions import Decision
from stepguard.policy.journal import GateLedger
from stepguard.policy.memory import MAX_ID, GateMemory, as_json
from stepguard.policy.policy import Policy


class PolicyGate:
    """The gate of one conversation; see `Policy.gate`. It may be used from several threads.

    Attributes:
        policy: the policy.
        observe: whether calls are made whatever is decided of them.
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
        self.policy: Final = policy
        self.observe: Final = observe
        self._lock = Lock()
        self._memory = GateMemory(policy, zone=zone, conversation=conversation or secrets.token_hex(16))
        self._decider = CallDecider(self._memory, refusals=refusals, observe=observe, reused_ids=reused_ids)
        if (ledger is None) != (run_id is None) or (ledger is not None and state is not None):
            raise ConfigError("a ledger and a run_id go together, and in the place of a state", option="ledger")
        if state is not None:
            self._resume(state)
        if ledger is not None and run_id is not None:
            options = {"zone": str(zone), "reused_ids": reused_ids, "observe": observe}
            self._memory.open_journal(ledger, run_id, options)
        try:
            # A fact that is refused must not leave the conversation locked in the ledger.
            self._memory.learn_at_start(facts or {})
        except BaseException:
            self.close()
            raise

    @property
    def decisions(self) -> list[dict[str, Any]]:
        """Every decision so far, as plain data, with the arguments as they were read and its moment."""
        return self._memory.decisions

    # ---- calls

    def offer(self, tool: str, arguments: str | Mapping[str, Any], *, id: str, now: datetime | None = None) -> Decision:
        """Decide on a call. It is not made here.

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
            decision = self._decider.decide(tool, arguments, id[:MAX_ID], now)
            moment = None if now is None else now.isoformat()
            self._memory.decisions.append({**decision.to_dict(), "arguments": dict(decision.arguments), "at": moment})
            # Durable before the host learns of it: after a crash, a call that may have been made is known.
            self._memory.write()
            return decision

    def result(self, id: str, value: object = None) -> None:
        """Report the result of a call that succeeded.

        Args:
            id: the identifier of a call that was let through and is not answered yet.
            value: the result, as JSON text or as data.

        Raises:
            ConfigError: no such call waits for its result.
        """
        with self._lock:
            call = self._memory.waiting(id)
            call.status = "succeeded"
            with suppress(ValueRefused):  # what cannot be kept is not looked at, neither now nor behind a resumption
                call.result = plain_data(value)
            self._memory.see(call, call.result)
            self._memory.write()

    def failed(self, id: str, *, done: bool = True) -> None:
        """Report that a call failed.

        Args:
            id: as for `result`.
            done: whether it may have done something all the same; False only where the tool says that it has not.

        Raises:
            ConfigError: no such call waits for its result.
        """
        with self._lock:
            call = self._memory.waiting(id)
            call.status = "failed" if done else "not_done"
            # The tool did nothing, so the yeses that let the call through may be used again.
            if not done:
                for by in call.yeses:
                    self._memory.set_yes(self._memory.yes_to(by, self.policy.tools[call.tool], call.data))
            self._memory.write()

    @property
    def pending(self) -> tuple[Decision, ...]:
        """The calls that were let through and are not answered: after a crash make them again, with the same key."""
        return tuple(call.allowed() for call in self._memory.history.calls if call.status == "pending")

    def recorded(self, decision: Decision) -> str | None:
        """The result of a call that is offered again after it was answered, as text; None of every other one."""
        call = self._memory.history.by_id.get(decision.call)
        # Only a call that was refused as a repetition: any other gets a decision of its own.
        if call is None or call.status != "succeeded" or all(each.kind != "repeated" for each in decision.reasons):
            return None
        values = None
        with suppress(ValueRefused):
            values, _ = read_arguments_of(self.policy.tools[call.tool], decision.arguments, self._memory.reader)
        if not call.says(decision.tool, values, decision.arguments):
            return None
        return call.result if isinstance(call.result, str) else as_json(call.result)

    # ---- what the host knows

    def learn(self, fact: str, *keys: object, value: object, strength: str = "proved") -> None:
        """Record a fact from the host, a person or a checked judgement; it replaces what was known before.

        Args:
            fact: the name of the fact.
            keys: what it is about.
            value: the value.
            strength: how strong a judgement is (``Result.steps[...].strength``); one that nothing checked is refused.

        Raises:
            ConfigError: there is no such fact, or the value is not of its type.
        """
        with self._lock:
            self._memory.learn(fact, keys, value, strength)
            self._memory.write()

    def confirm(self, decision: Decision, *, by: str) -> None:
        """Record somebody's yes to this very call; it counts once.

        Args:
            decision: the decision that asked for it.
            by: who, by the name that the rule has.
        """
        self._check_role(by, decision.tool)
        self.confirm_call(decision.tool, decision.arguments, by=by)

    def confirm_call(self, tool: str, arguments: str | Mapping[str, Any], *, by: str) -> None:
        """Record a yes to a call that is not offered yet; with unreadable arguments it is a yes to nothing."""
        declared = self.policy.tools.get(tool)
        if declared is None:
            return
        self._check_role(by, tool)
        with self._lock, suppress(ValueRefused):
            self._memory.set_yes(self._memory.yes_to(by, declared, arguments))
            self._memory.write()

    def withdraw(self, decision: Decision, *, by: str) -> None:
        """Take back a yes, also one whose call turns out to have done nothing, which would otherwise give it back."""
        with self._lock, suppress(KeyError, ValueRefused):
            tool = self.policy.tools[decision.tool]
            memory, withdrawn = self._memory, self._memory.yes_to(by, tool, decision.arguments)
            memory.set_yes(withdrawn, given=False)
            for call in memory.history.by_tool.get(tool.name, ()):
                if call.status == "pending" and by in call.yeses and memory.yes_to(by, tool, call.data) == withdrawn:
                    call.yeses = tuple(each for each in call.yeses if each != by)
                    memory.note(call)
            memory.write()

    @property
    def handed_over(self) -> bool:
        """Whether a person has taken over: no call that changes something is let through until `take_back`."""
        return self._memory.handed_over

    def take_back(self) -> None:
        """The person hands the conversation back to the agent."""
        with self._lock:
            self._memory.handed_over = False
            self._memory.refused.clear()
            self._memory.write()

    # ---- state

    def close(self) -> None:
        """Let another process go on with the conversation, where that is kept in a ledger; nothing more is written."""
        self._memory.close()

    def to_dict(self) -> dict[str, Any]:
        """Everything of the conversation as plain data, for `Policy.gate(state=...)`."""
        with self._lock:
            return self._memory.to_dict()

    def take_in(self, change: Mapping[str, Any]) -> None:
        """Take in a change at the gate of an earlier process; nothing is judged.

        Args:
            change: see `stepguard.policy.journal`. What is no change raises all kinds of errors.
        """
        with self._lock:
            self._memory.apply(change)

    def _resume(self, state: Mapping[str, Any]) -> None:
        try:
            self._memory.restore(state)
        except ConfigError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"the state was changed: {type(error).__name__}: {error}", option="state") from None

    def _check_role(self, by: str, tool: str) -> None:
        check_text(by, "by")
        roles = self.policy.roles(tool)
        if by not in roles:
            raise ConfigError(
                f"no rule of {tool} asks for a yes of {by!r:.60}: {', '.join(roles) or 'nobody'} is asked", option="by"
            )
