"""The memory of a gate: calls, results, facts, yeses, refusals and decisions of its conversation.

It is saved and gone on from as plain data, all of it or change by change (`stepguard.policy.journal`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import tzinfo
from typing import Any, Final, cast

from stepguard.errors import ConfigError, EvaluationError, LedgerError, ValueRefused
from stepguard.language.terms.evaluation import evaluate_term
from stepguard.language.values import Value, show_value, to_exact
from stepguard.policy.arguments import plain_data, read_arguments_of
from stepguard.policy.declarations import DeclaredTool, FactMissing
from stepguard.policy.history import CallHistory, LetThrough, Sight
from stepguard.policy.journal import GateChanges, GateLedger
from stepguard.policy.known_facts import KnownFacts
from stepguard.policy.policy import Policy
from stepguard.policy.reading import Reader, is_whole, result_data
from stepguard.policy.rules import tree_of
from stepguard.policy.spelling import KnownTexts, texts_in

MAX_ID: Final = 512
"""How many characters of an identifier count."""
_VERSION: Final = 1
_STATE: Final = ("facts", "calls", "yeses", "refused", "handed_over", "decisions")


class GateMemory:
    """The memory of one conversation; it is not safe for several threads.

    Args:
        policy: the policy.
        zone: the time zone of moments that name none.
        conversation: what the keys of its calls are made of.

    Attributes:
        history: the calls that were let through, with their results and limits.
        facts: what the host, persons and judgements have said.
        known: the texts that are known, by how a reader takes them.
        open: the numbers of the calls that may change something and are not answered.
        yeses: the yeses that were given and not used, see `yes_to`.
        refused: how often each tool was refused in a row.
        handed_over: whether a person has taken over.
        decisions: every decision, as plain data.
    """

    def __init__(self, policy: Policy, *, zone: tzinfo, conversation: str) -> None:
        self.policy: Final = policy
        self.conversation = conversation
        self.reader: Final = Reader(policy.defaults, zone)
        self.history: Final = CallHistory()
        self.facts: Final = KnownFacts(policy, zone)
        self.known: Final = KnownTexts(policy.known)
        self.open: Final[set[int]] = set()
        self.yeses: set[str] = set()
        self.refused: dict[str, int] = {}
        self.handed_over = False
        self.decisions: Final[list[dict[str, Any]]] = []
        self._durable: GateChanges | None = None

    # ---- calls

    def add(self, call: LetThrough, tool: DeclaredTool) -> None:
        """Add a call that was let through, now or in an earlier process."""
        self.history.add(call)
        self.note(call)
        if tool.reads:
            return
        # One that is declared to change nothing leaves no result in doubt.
        if call.status == "pending" and tool.changes != ():
            self.open.add(call.number)
        # What it changes is undeclared, or hangs on arguments that could not be read: anything may have changed.
        if tool.changes is None or call.values is None:
            self.history.changed_all(call.number)
            return
        for name, wanted in self.changes_of(tool, call):
            self.history.changed(name, wanted, call.number)

    def changes_of(self, tool: DeclaredTool, call: LetThrough) -> list[tuple[str, dict[str, Value]]]:
        """The calls whose results a call makes stale: the tool, and the arguments that are given."""
        values = cast("dict[str, Value]", call.values)
        stale: list[tuple[str, dict[str, Value]]] = []
        for pattern in tool.changes or ():
            target = self.policy.tools[pattern.tool]
            try:
                pairs = pattern.arguments(target.names)
                wanted = {name: evaluate_term(tree_of(tree), values, self.facts.tables) for name, tree in pairs}
            except (EvaluationError, FactMissing, KeyError):
                wanted = {}  # which ones is not known: all of this tool
            stale.append((pattern.tool, wanted))
        return stale

    def waiting(self, id: str) -> LetThrough:
        """The call that is answered now. Raises ConfigError: no such call waits for its result."""
        call = self.history.by_id.get(id[:MAX_ID] if isinstance(id, str) else id)
        if call is None or call.status != "pending":
            raise ConfigError(f"no call {id!r:.80} waits for its result", option="id")
        self.open.discard(call.number)
        self.note(call)
        return call

    def see(self, call: LetThrough, value: object) -> None:
        """Keep what a result says, for the rules to look at."""
        # No rule can ask for the result of arguments that nobody could read.
        if call.values is None:
            return
        tool = self.policy.tools[call.tool]
        read = None if tool.result is None else self.reader.result(tool.result, result_data(value))
        self.known.add(texts_in(read))
        call.whole = tool.result is None or is_whole(read)
        self.history.see(tool.name, Sight(call.values, read, call.whole, call.number, call.open))
        # An error that came back as a result says nothing of the new state.
        if tool.reads or tool.result is None or not call.whole:
            return
        # What a change gives back is the new state of the one thing that it changes; of two it is not known which.
        alike = [each for each in self.changes_of(tool, call) if self.policy.tools[each[0]].result == tool.result]
        if len(alike) == 1 and len(alike[0][1]) == len(self.policy.tools[alike[0][0]].parameters):
            self.history.see(alike[0][0], Sight(alike[0][1], read, True, call.number, call.open))

    # ---- what the host knows

    def learn(self, fact: str, keys: tuple[object, ...], value: object, strength: str) -> None:
        """A fact; see `stepguard.policy.PolicyGate.learn`."""
        self.known.add(texts_in(self.facts.learn(fact, keys, value, strength)))

    def learn_at_start(self, facts: Mapping[str, object]) -> None:
        """Add the facts that the host knows from the start; in a resumed conversation, only new ones."""
        known = {each["fact"]: each["value"] for each in self.facts.entries if not each["keys"]}
        for name, value in facts.items():
            if self._durable is None or name not in known or known[name] != plain_data(value):
                self.learn(name, (), value, "proved")
                self.write()

    def yes_to(self, by: str, tool: DeclaredTool, arguments: str | Mapping[str, Any]) -> str:
        """A yes to a call: to what its arguments say, however a number in them is written.

        Raises ValueRefused: the arguments cannot be read.
        """
        values, data = read_arguments_of(tool, arguments, self.reader)
        # Of the exact values: a yes to 5 holds for 5.00, and for no other amount.
        exact = {name: show_value(cast(Value, to_exact(each))) for name, each in values.items()}
        parts = [by, tool.name, as_json({**data, **exact})]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "backslashreplace")).hexdigest()

    def set_yes(self, yes: str, *, given: bool = True) -> None:
        """A yes was given; or was used, or taken back."""
        (self.yeses.add if given else self.yeses.discard)(yes)
        if self._durable is not None:
            self._durable.yes(yes, given=given)

    # ---- what is kept

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "version": _VERSION,
            "policy": self.policy.digest,
            "conversation": self.conversation,
            "calls": [call.to_dict() for call in self.history.calls],
            "facts": [dict(each) for each in self.facts.entries],
            "yeses": sorted(self.yeses),
            "refused": dict(self.refused),
            "handed_over": self.handed_over,
            "decisions": [dict(each) for each in self.decisions],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `to_dict` gave. Raises ConfigError: it is the state of another policy."""
        if state.get("version") != _VERSION or state.get("policy") != self.policy.digest:
            raise ConfigError(
                "the state is that of another policy or version: go on with the policy that it was saved under",
                option="state",
            )
        self.conversation = str(state["conversation"])
        self.apply({name: state[name] for name in _STATE})

    def apply(self, change: Mapping[str, Any]) -> None:
        """Take in what has happened in an earlier process: all of it, or what changed at one moment."""
        for each in change.get("facts", ()):
            self.learn(each["fact"], tuple(each["keys"]), each["value"], each["strength"])
        calls, answered = self.history.calls, []
        for each in change.get("calls", ()):
            number, tool = each.get("number", len(calls)), self.policy.tools[each["tool"]]
            # Numbers have no gaps: without a call that is left out, a limit could be used up twice.
            if not 0 <= number <= len(calls):
                raise ValueError(f"there is no call {number}")
            if number == len(calls):
                values = read_arguments_of(tool, each["arguments"], self.reader)[0] if each["read"] else None
                self.add(LetThrough.from_dict(each, number, values), tool)
            # Only an open call can change: a journal that was altered cannot turn an answer into another one.
            elif calls[number].status == "pending":
                call = calls[number]
                call.status, call.result, call.yeses = each["status"], each["result"], tuple(each["yeses"])
            else:
                continue
            if each["status"] != "pending":
                self.open.discard(number)
            if each["status"] == "succeeded":
                answered.append(number)
        # Behind all calls of the change: which results are stale depends on the calls around them.
        for number in answered:
            self.see(calls[number], calls[number].result)
        self.yeses = (self.yeses | {*change.get("yeses", ()), *change.get("given", ())}) - {*change.get("used", ())}
        self.refused = dict(change.get("refused", self.refused))
        self.handed_over = bool(change.get("handed_over", self.handed_over))
        self.decisions.extend(dict(each) for each in change.get("decisions", ()))

    def open_journal(self, ledger: GateLedger, run_id: str, options: Mapping[str, Any]) -> None:
        """Go on with a conversation of a ledger, and keep this one there with the options of its gate.

        Raises LedgerError: it cannot be read.
        """
        journal = ledger.open_gate(self.policy, run_id=run_id, conversation=self.conversation, options=options)
        self.conversation = journal.conversation
        try:
            for change in journal.changes:
                self.apply(change)
        except (ConfigError, ValueRefused, AttributeError, LookupError, TypeError, ValueError) as error:
            journal.close()
            raise LedgerError(
                f"the conversation {run_id!r} cannot be read from the ledger ({type(error).__name__}: {error}): "
                "`stepguard verify` tells what was altered"
            ) from error
        self._durable = GateChanges(journal, self.facts.entries, self.decisions)
        self.write()

    def note(self, call: LetThrough) -> None:
        """A call has changed."""
        if self._durable is not None:
            self._durable.call(call)

    def write(self) -> None:
        """Make what has changed durable, before anything is done with it.

        Raises LedgerError: it did not become durable, now or earlier; the gate is of no use any more.
        """
        if self._durable is not None:
            self._durable.write(refused=dict(self.refused), handed_over=self.handed_over)

    def close(self) -> None:
        if self._durable is not None:
            self._durable.journal.close()


def as_json(data: object) -> str:
    """Data as one text, whatever the order of its keys was."""
    return json.dumps(data, sort_keys=True, ensure_ascii=False, default=str)
