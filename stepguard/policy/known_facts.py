"""The facts of one conversation: what the host, persons and checked judgements have said."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import Any, Final

from stepguard.errors import ConfigError, ValueRefused
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.value_types import ValueType
from stepguard.language.values import Value
from stepguard.policy.arguments import plain_data
from stepguard.policy.decisions import FactQuestion
from stepguard.policy.moments import MOMENT, read_moment
from stepguard.policy.policy import Policy

# All but `unverified`: what nothing vouches for is no fact.
_STRENGTHS: Final = ("proved", "constrained", "grounded", "agreed")
_KEPT_AS_TEXT: Final = ("percent", "duration", "quantity")
"""Types of keys that questions show as they are written: a bare number would not say its unit."""


class KnownFacts:
    """The known facts of a policy.

    Attributes:
        plain: the facts without keys that are known.
        tables: the tables of the policy, and the facts with keys.
        entries: what was learned, as plain data, in order.
    """

    def __init__(self, policy: Policy, zone: tzinfo) -> None:
        self._facts: Final = policy.facts
        self._zone: Final = zone
        self._keyed: Final[dict[str, dict[tuple[Value, ...], Value]]] = {
            fact.name: {} for fact in policy.facts.values() if fact.keys
        }
        self.plain: Final[dict[str, Value]] = {}
        self.tables: Final[Mapping[str, Table]] = {
            **policy.tables, **{name: policy.facts[name].table.over(known) for name, known in self._keyed.items()}
        }  # fmt: skip
        self.entries: Final[list[dict[str, Any]]] = []

    def learn(self, name: str, keys: tuple[object, ...], value: object, strength: str) -> Value:
        """Take in a fact, and return its value; see `stepguard.policy.PolicyGate.learn`."""
        fact = self._facts.get(name)
        if fact is None:
            raise ConfigError(
                f"the policy has no fact {name!r}: it has {', '.join(self._facts) or 'none'}", option="fact"
            )
        if strength not in _STRENGTHS:
            raise ConfigError(
                f"{name}: a value is given by the host, or by a judgement that was checked ({', '.join(_STRENGTHS)}), "
                f"not {strength!r}",
                option="strength",
            )
        if len(keys) != len(fact.keys):
            raise ConfigError(f"{name} is told by {len(fact.keys)} keys, {len(keys)} are given", option="keys")
        # Everything is read before anything is kept: a fact that is refused leaves no trace.
        read = self._read(fact.type, value, name)
        pairs = zip(fact.keys, keys, strict=True)
        place = tuple(self._read(each.type, key, f"{name}, {each.name}") for each, key in pairs)
        if fact.keys:
            self._keyed[name][fact.table.comparable(place)] = read
        else:
            self.plain[name] = read
        self.entries.append(
            {
                "fact": name,
                "keys": [key if isinstance(key, str) else plain_data(key) for key in keys],
                "value": plain_data(value),
                "strength": strength,
            }
        )
        return read

    def question(self, name: str, keys: tuple[Value, ...]) -> FactQuestion:
        """The question about a fact that is not known."""
        fact = self._facts[name]
        pairs = zip(fact.keys, keys, strict=True)
        written = tuple(each.type.write(key) if each.type.kind in _KEPT_AS_TEXT else key for each, key in pairs)
        return FactQuestion(name, written, fact.question or "", str(fact.type), fact.judged)

    def _read(self, kind: ValueType, value: object, what: str) -> Value:
        try:
            return read_moment(plain_data(value), self._zone) if kind == MOMENT else kind.accept(value)
        except ValueRefused as error:
            raise ConfigError(f"{what}: {error}", option="value") from None
