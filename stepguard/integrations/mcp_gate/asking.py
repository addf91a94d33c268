"""Ask the person at an MCP client (elicitation) for a yes to a call, or for a fact that a rule needs.

Only for the roles and facts that the host has named: who sits there is not known from the protocol.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from stepguard.core.markup import visible
from stepguard.errors import ConfigError
from stepguard.language.strict_json import JsonObject
from stepguard.language.value_types import ValueType
from stepguard.policy.arguments import plain_data
from stepguard.policy.decisions import Decision, FactQuestion
from stepguard.policy.gate import PolicyGate

_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
_FIELD: Final = "answer"
_MOST_SHOWN: Final = 500


@dataclass(frozen=True, slots=True)
class PersonQuestion:
    """A question that a call waits for.

    Attributes:
        decision: the decision on the call.
        fact: the fact that is asked for; None: `role` is asked for a yes.
        role: who has to say yes.
        params: the parameters of ``elicitation/create``.
    """

    decision: Decision
    fact: FactQuestion | None
    role: str
    params: Mapping[str, Any]


class PersonAtClient:
    """The person at the client of one session.

    Args:
        gate: the gate, which is told what they say.
        names: the roles and the facts that they answer for.

    Raises:
        ConfigError: the policy asks for no such role or fact.
    """

    def __init__(self, gate: PolicyGate, names: Iterable[str]) -> None:
        self._gate = gate
        self._names = frozenset(names)
        self._declined: set[str] = set()
        roles = {role for tool in gate.policy.tools.values() for role in tool.roles}
        facts = {fact.name for fact in gate.policy.facts.values() if fact.question is not None}
        for name in sorted(self._names - roles - facts):
            known = ", ".join(sorted(roles | facts)) or "none"
            raise ConfigError(f"the policy asks nobody for {name!r:.60}: it has {known}", option="ask")

    def question(self, decision: Decision) -> PersonQuestion | None:
        """The next question; None where somebody else has to answer, or they have said no to this already."""
        wanted = [each.fact for each in decision.questions] or list(decision.confirmations)
        # All or none: a call that also waits for somebody else is not half approved.
        if decision.outcome != "ask" or not self._names.issuperset(wanted):
            return None
        given = ", ".join(f"{_name(key)}={_argument_text(value)}" for key, value in decision.arguments.items())
        call = f"{decision.tool}({given})"
        if decision.questions:
            fact = decision.questions[0]
            about = f" ({', '.join(map(_argument_text, fact.keys))})" if fact.keys else ""
            form = _form(f"{fact.words}{about}", self._gate.policy.facts[fact.fact].type)
            question = PersonQuestion(decision, fact, "", form)
        else:
            role = decision.confirmations[0]
            words = " ".join(dict.fromkeys(each.words for each in decision.reasons if each.kind == "unconfirmed"))
            form = _form(f"Do you approve this call, as {role}: {call}? {words}", ValueType(kind="boolean"))
            question = PersonQuestion(decision, None, role, form)
        return None if _identity(question) in self._declined else question

    def answered(self, question: PersonQuestion, response: object) -> None:
        """Pass their answer to the gate; anything else counts as a no, and they are not asked the same again."""
        value: object = None
        if isinstance(response, JsonObject) and response.get("action") == "accept":
            content = response.get("content")
            value = content.get(_FIELD) if isinstance(content, JsonObject) and not content.repeated else None
        if question.fact is None:
            if value is True:
                self._gate.confirm(question.decision, by=question.role)
                return
        elif value is not None:
            with suppress(ConfigError):  # it is no value of its type
                self._gate.learn(question.fact.fact, *question.fact.keys, value=plain_data(value))
                return
        self._declined.add(_identity(question))


def can_ask(capabilities: object) -> bool:
    """Whether a client offers to ask the person at it by a form, which is what it means where it says no more."""
    offered = capabilities.get("elicitation") if isinstance(capabilities, JsonObject) else None
    return isinstance(offered, JsonObject) and (not offered or "form" in offered)


def declared_capabilities(meta: object) -> object:
    """The capabilities of a client that says them with each request; None where it does not."""
    return meta.get(_CAPABILITIES) if isinstance(meta, JsonObject) else None


def _form(message: str, kind: ValueType) -> dict[str, Any]:
    field: dict[str, Any] = {"type": "boolean" if kind.kind == "boolean" else "string", "title": _FIELD}
    if kind.kind == "one_of":
        field["enum"] = list(kind.options)
    schema = {"type": "object", "properties": {_FIELD: field}, "required": [_FIELD]}
    return {"message": message.strip(), "requestedSchema": schema}


def _name(key: str) -> str:
    """The name of an argument, quoted unless it is plain: the agent chooses it, and must not write the question."""
    return key if key.isidentifier() and key.isascii() else _argument_text(key)


def _argument_text(value: object) -> str:
    text = visible(json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."


def _identity(question: PersonQuestion) -> str:
    """A key that is equal for the same question about the same call."""
    if question.fact is not None:
        return json.dumps([question.fact.fact, *map(str, question.fact.keys)])
    call = [question.role, question.decision.tool, dict(question.decision.arguments)]
    return json.dumps(call, sort_keys=True, default=str)
