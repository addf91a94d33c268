"""Judge a kept conversation again: does the policy let through what its gate let through?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from stepguard.errors import ConfigError, StepguardError, ValueRefused
from stepguard.policy.gate import PolicyGate
from stepguard.policy.moments import read_zone
from stepguard.policy.policy import Policy


def rejudge(
    policy: Policy, changes: Iterable[Mapping[str, Any]], *, conversation: str, options: Mapping[str, Any]
) -> tuple[int, str] | None:
    """The first change that cannot be what it says: its place among the changes, and what is wrong.

    Every call that was let through is offered again, at its moment and after all that came before it: it has to be let
    through again, under the same key. What was not let through is taken as it is.

    Args:
        policy: the policy that the conversation was begun with.
        changes: what has happened; see `stepguard.policy.journal`.
        conversation: what the keys of its calls are made of.
        options: those of its gate: ``zone``, ``reused_ids`` and ``observe``.

    Raises:
        ConfigError: there is no such time zone here.
    """
    try:
        zone = read_zone(options["zone"])
    except ValueRefused:
        raise ConfigError(f"the time zone {options['zone']!r:.60} of its gate is not known here") from None
    gate = PolicyGate(policy, conversation=conversation, zone=zone, reused_ids=options["reused_ids"])
    known: set[int] = set()
    for place, change in enumerate(changes):
        try:
            wrong = _judge(gate, change, known, observed=options["observe"])
        # The record may have been altered in any way, so anything may be missing or of another type in it.
        except (StepguardError, AttributeError, LookupError, TypeError, ValueError) as error:
            wrong = f"it cannot be what happened ({type(error).__name__}: {error})"
        if wrong is not None:
            return place, wrong
    return None


def _judge(gate: PolicyGate, change: Mapping[str, Any], known: set[int], *, observed: bool) -> str | None:
    """Say what is wrong with a change; `known`, the numbers of the calls before it, is extended."""
    made: set[int] = set()
    for decision in change.get("decisions", ()):
        if decision["outcome"] != "allow":
            continue
        at = None if decision["at"] is None else datetime.fromisoformat(decision["at"])
        rejudged = gate.offer(decision["tool"], decision["arguments"], id=decision["call"], now=at)
        # The key too: it is made of the conversation, the number and the arguments, so altered ones show.
        if (rejudged.outcome, rejudged.number, rejudged.key) != ("allow", decision["number"], decision["key"]):
            outcome = f"{rejudged.outcome}: {rejudged.message}" if rejudged.outcome != "allow" else "another key"
            return f"the call {decision['call']!r} was let through, and the policy says {outcome}"
        made.add(decision["number"])
    fresh = {each["number"] for each in change.get("calls", ())} - known
    if (made - known) - fresh or (not observed and fresh - made):
        return "a call was made that nothing let through, or is not kept"
    known |= fresh
    calls = [each for each in change.get("calls", ()) if each["number"] not in made]
    gate.take_in({name: part for name, part in change.items() if name != "decisions"} | {"calls": calls})
    return None
