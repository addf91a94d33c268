"""Build a policy from the parts of a text or a YAML document."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stepguard.errors import ConfigError, PolicyError, ProcedureError
from stepguard.policy.moments import MOMENT
from stepguard.policy.policy import Policy
from stepguard.policy.rules import Fact, Rule, ToolSignature
from stepguard.policy.trees import ViewBlock
from stepguard.procedure.notation.building import ProcedureBuilder
from stepguard.procedure.notation.nodes import RecordBlock, TableBlock, TitleLine
from stepguard.procedure.notation.statement_building import ParsedProcedure


def assemble(items: Iterable[Any], *, name: str, folder: Path | None) -> Policy:
    """The policy of what was declared. Raises PolicyError: the parts do not make one; `line` names where."""
    try:
        return _Assembly(folder).policy(items, name)
    # Before the next clause: it is a ProcedureError too, and has its line already.
    except PolicyError:
        raise
    except ProcedureError as error:
        raise PolicyError(error.message, line=error.line) from None
    except ConfigError as error:
        raise PolicyError(str(error)) from None


class _Assembly:
    def __init__(self, folder: Path | None) -> None:
        self.made = ParsedProcedure()
        assert MOMENT.record is not None
        self.made.records["moment"] = MOMENT.record
        self.builder = ProcedureBuilder(self.made, folder, frozenset())
        self.defaults: dict[str, dict[str, object]] = {}
        self.tools: list[ToolSignature] = []
        self.facts: list[Fact] = []
        self.rules: list[Rule] = []
        self.title: str | None = None

    def policy(self, items: Iterable[Any], name: str) -> Policy:
        # Types are known wherever they stand, tools above and below the rules.
        for item in sorted(items, key=lambda each: not isinstance(each, ViewBlock)):
            self.add(item)
        return Policy(
            self.tools,
            self.rules,
            facts=self.facts,
            records=[each for key, each in self.made.records.items() if key != "moment"],
            tables=self.made.tables.values(),
            defaults=self.defaults,
            name=self.title or name,
        )

    def add(self, item: Any) -> None:
        match item:
            case TitleLine(line, text):
                if self.title is not None or not text:
                    raise PolicyError("a policy has one name, and it is not empty", line=line)
                self.title = text
            case ViewBlock(line, name, fields):
                lines = tuple((at, field.name, str(field.type)) for at, field in fields)
                self.builder.add(RecordBlock(line, name, lines))
                known = {field.name: field.default for _, field in fields if field.default is not None}
                if known:
                    self.defaults[name] = known
            case TableBlock():
                self.builder.add(item)
            case ToolSignature():
                self.tools.append(item)
            case Fact():
                self.facts.append(item)
            case Rule():
                self.rules.append(item)
