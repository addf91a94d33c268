"""`Policy`: the rules about an agent's calls of tools, checked as a whole when they are made."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepguard.errors import ConfigError, PolicyError, ValueRefused
from stepguard.language.records import RecordType
from stepguard.language.terms.lookup_tables import Table
from stepguard.language.value_types import TypeLike, ValueType
from stepguard.language.values import Value
from stepguard.policy.declarations import DeclaredFact, DeclaredParameter, DeclaredTool, FactTable
from stepguard.policy.moments import MOMENT
from stepguard.policy.notes import notes_on
from stepguard.policy.rules import Confirmation, Fact, Parameter, Rule, ToolSignature, nodes_of
from stepguard.policy.spelling import KnownTexts, compared_names
from stepguard.policy.static_checks import check_rules

if TYPE_CHECKING:
    from stepguard.policy.gate import PolicyGate
    from stepguard.policy.journal import GateLedger


class Policy:
    """The rules that the calls of an agent have to keep.

    A policy never changes and may be shared between threads and conversations; each conversation has a gate of its own.

    Attributes:
        notes: what its author should look at: sums over amounts that may be negative, lines that change nothing.

    Args:
        tools: the tools that the agent may call; a call of any other one is refused.
        rules: the rules, in order. Every tool that may change something needs one; a `Rule` without demands allows it.
        facts: what the host, persons and judgements may say.
        records: the record types that tools and facts name.
        tables: the tables that rules look up.
        defaults: fields that may be missing in a record, by its name, with what holds then.
        name: a name for people.

    Raises:
        PolicyError: it cannot be right, or holds what is of no use; `line` names where it came from text.
    """

    __slots__ = (
        "defaults", "digest", "facts", "known", "name", "notes", "records", "rules", "signatures", "tables", "tools",
    )  # fmt: skip

    def __init__(
        self,
        tools: Iterable[ToolSignature],
        rules: Iterable[Rule] = (),
        *,
        facts: Iterable[Fact] = (),
        records: Iterable[RecordType] = (),
        tables: Iterable[Table] = (),
        defaults: Mapping[str, Mapping[str, object]] | None = None,
        name: str = "policy",
    ) -> None:
        self.name = name
        self.records = _by_name(records, "record")
        self.tables = _by_name(tables, "table")
        if "moment" in (*self.records, *self.tables):
            raise PolicyError("a record or table has a name of the language, 'moment': choose another one")
        self.defaults = self._defaults(defaults or {})
        self.rules = tuple(rules)
        self.signatures = (tuple(tools), tuple(facts))
        self.facts = {name: self._fact(each) for name, each in _by_name(self.signatures[1], "fact").items()}
        self.tools = {name: self._tool(each) for name, each in _by_name(self.signatures[0], "tool").items()}
        for kind in (self.facts, self.tables):
            for each in kind:
                if each in self.tools or each in ("now", "today") or (kind is self.facts and each in self.tables):
                    raise PolicyError(f"{each!r} has a meaning already: choose another name")
        checked = check_rules(self.rules, self.tools, self.facts, self.tables, self.records)
        self.notes = tuple(sorted((*checked, *notes_on(self.rules, self.tools)), key=lambda each: each.line or 0))
        self.known = KnownTexts.of_policy(self.rules, self.tables)
        self.digest = hashlib.sha256(repr(self._parts()).encode()).hexdigest()[:32]

    @classmethod
    def parse(cls, text: str, *, name: str = "policy", folder: Path | None = None) -> Policy:
        """The policy that a text is (`stepguard.policy`, and docs/how-to/policies.md).

        Args:
            text: the text.
            name: what it is called where it has no ``name:``.
            folder: where the files lie that its tables are read from; None: it may name no file.

        Raises:
            PolicyError: something in it is wrong; `line` names where.
        """
        from stepguard.policy.loading import build_policy

        return build_policy(text, name=name, folder=folder)

    @classmethod
    def load(cls, path: str | Path) -> Policy:
        """The policy in a UTF-8 file: YAML or JSON by its suffix, text otherwise.

        Raises:
            PolicyError: the file holds none.
            OSError: it cannot be read.
        """
        from stepguard.policy.loading import load_policy

        return load_policy(Path(path))

    def gate(
        self,
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
    ) -> PolicyGate:
        """A gate for one conversation.

        Args:
            conversation: what the keys of its calls are made of; something new for each conversation. None: made up.
            zone: the time zone of moments that name none, from tools and from the host.
            refusals: after so many refusals of one tool in a row a person takes over.
            observe: whether calls are made whatever the decisions say, which are only recorded: to measure a policy
                before it is switched on. The host makes every call then, and tells every result.
            reused_ids: whether the provider uses identifiers of calls again, such as one that counts those of each
                message anew: one that was answered is a new call then, and not the same one once more.
            facts: what the host knows from the start; of facts without keys.
            state: what `PolicyGate.to_dict` gave, to go on from there.
            ledger: a `stepguard.ledger.Ledger`, in which every decision, result, fact and yes is durable before
                anything is done with it.
            run_id: the name of the conversation in the ledger. One that is there already is gone on with, whoever was
                killed in it.

        Raises:
            ConfigError: an option cannot work, or the state is that of another policy.
            RunConflict: the conversation is under way elsewhere, or was begun with another policy.
            LedgerError: the ledger cannot be read or written.
        """
        from stepguard.policy.gate import PolicyGate

        return PolicyGate(
            self,
            conversation=conversation,
            zone=zone,
            refusals=refusals,
            observe=observe,
            reused_ids=reused_ids,
            facts=facts or {},
            state=state,
            ledger=ledger,
            run_id=run_id,
        )

    def roles(self, tool: str) -> tuple[str, ...]:
        """Who may have to say yes to a call of a tool."""
        declared = self.tools.get(tool)
        return () if declared is None else declared.roles

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"<Policy {self.name!r}: {len(self.tools)} tools, {len(self.rules)} rules>"

    def _parts(self) -> tuple[object, ...]:
        defaults = {name: dict(fields) for name, fields in self.defaults.items()}
        # Without lines and derived parts: a comment above a rule must not make it another policy.
        tools = [
            (each.name, each.parameters, each.result, each.reads, each.changes, each.more)
            for each in self.tools.values()
        ]
        facts = [(each.name, each.type, each.keys, each.question, each.judged) for each in self.facts.values()]
        # As text, in which no line stands: `line` is left out of the representations of nodes.
        rules = [(each.tool, each.names, repr(each.demands)) for each in self.rules]
        return (self.name, tools, rules, facts, dict(self.records), dict(self.tables), defaults)

    def _type(self, given: TypeLike, line: int | None) -> ValueType:
        try:
            return ValueType.parse(given, records={**self.records, "moment": MOMENT.record})  # type: ignore[dict-item]
        except ConfigError as error:
            raise PolicyError(str(error), line=line) from None

    def _parameters(self, given: Iterable[Parameter], line: int | None, owner: str) -> tuple[DeclaredParameter, ...]:
        made: list[DeclaredParameter] = []
        for each in given:
            kind = self._type(each.type, line)
            if any(other.name == each.name for other in made):
                raise PolicyError(f"{owner} has two arguments {each.name!r}", line=line)
            try:
                value = None if each.default is None else kind.accept(each.default)
            except ValueRefused as error:
                raise PolicyError(f"{owner}, {each.name}: {error}", line=line) from None
            made.append(DeclaredParameter(each.name, kind, value))
        return tuple(made)

    def _tool(self, tool: ToolSignature) -> DeclaredTool:
        parameters = self._parameters(tool.parameters, tool.line, tool.name)
        rules = tuple(each for each in self.rules if each.tool == tool.name)
        nodes = [node for rule in rules for node in nodes_of(rule)]
        try:
            record = (
                RecordType("arguments", tuple((each.name, each.type) for each in parameters)) if parameters else None
            )
        except ConfigError as error:
            raise PolicyError(str(error), line=tool.line) from None
        return DeclaredTool(
            tool.name,
            parameters,
            None if tool.result is None else self._type(tool.result, tool.line),
            record,
            tool.effect == "reads",
            () if tool.effect == "reads" else tool.changes,
            tool.more,
            rules,
            tuple(dict.fromkeys(node.by for node in nodes if isinstance(node, Confirmation))),
            compared_names(rules, [each.name for each in parameters]),
            tool.line,
        )

    def _fact(self, fact: Fact) -> DeclaredFact:
        kind = self._type(fact.type, fact.line)
        keys = self._parameters(fact.keys, fact.line, fact.name)
        for key in keys:
            if key.type.structured or key.type.kind == "period":
                raise PolicyError(f"the key {key.name!r} of {fact.name} is {key.type}: use its fields", line=fact.line)
        if fact.judged and not (keys and fact.question):
            raise PolicyError(
                f"{fact.name} is judged from its keys, by a question: write "
                f'`fact {fact.name}[note: text]: {kind} judged "Does the note say so?"`',
                line=fact.line,
            )
        table = FactTable(fact.name, {each.name: each.type for each in keys}, kind)
        return DeclaredFact(fact.name, kind, keys, fact.question, fact.judged, table, fact.line)

    def _defaults(self, given: Mapping[str, Mapping[str, object]]) -> dict[str, dict[str, Value]]:
        made: dict[str, dict[str, Value]] = {}
        for name, fields in given.items():
            record = self.records.get(name)
            for key, value in fields.items():
                kind = None if record is None else record.get(key)
                if kind is None:
                    raise PolicyError(f"there is no field {key!r} of a record {name!r} to have a default")
                try:
                    made.setdefault(name, {})[key] = kind.accept(value)
                except ValueRefused as error:
                    raise PolicyError(f"{name}.{key}: {error}") from None
        return made


def _by_name(given: Iterable[Any], role: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for each in given:
        if each.name in made:
            line = getattr(each, "line", None)
            raise PolicyError(f"there are two declarations of the {role} {each.name!r}", line=line)
        made[each.name] = each
    return made
