"""Declare an agent's tools for a policy, from the JSON that a model or an MCP client is given."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeGuard

from stepguard.errors import ConfigError
from stepguard.language.expressions import RESERVED

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema")
_TYPES: Final = {"string": "text", "integer": "integer", "number": "number", "boolean": "boolean"}
_FORMATS: Final = {"date": "date", "date-time": "moment", "time": "time"}
_MAX_DEPTH: Final = 8


@dataclass(slots=True)
class ToolDeclarations:
    """Declarations as lines of the language.

    Attributes:
        tools: the declaration of each tool, by its name.
        arguments: the types of the arguments that are declared, by tool and name.
        reads: the tools that say of themselves that they only read.
        records: the records that arguments need, each with its fields below it.
        left_out: what could not be declared, and why.
    """

    tools: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, dict[str, str]] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)
    records: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def declare_tools(text: str) -> ToolDeclarations:
    """The declarations of tools.

    Args:
        text: a JSON list of tools, or an object with ``tools``, as OpenAI, Anthropic or MCP have them.

    Raises:
        ConfigError: it is no such list.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    listed = data.get("tools") if isinstance(data, dict) else data
    if not isinstance(listed, list) or not listed or not all(isinstance(each, dict) for each in listed):
        raise ConfigError("a JSON list of tools was expected, each with a name and a schema", option="tools")
    made = ToolDeclarations()
    for each in listed:
        # OpenAI wraps a tool in `function`; Anthropic and MCP do not.
        given = each.get("function")
        _declare(given if isinstance(given, dict) else each, made)
    return made


def _declare(tool: Mapping[str, Any], made: ToolDeclarations) -> None:
    name = tool.get("name")
    if not _is_name(name) or name in made.tools:
        made.left_out.append(f"the tool {str(name)[:60]!r}: its name cannot stand in a policy, or stands twice")
        return
    schema: Mapping[str, Any] = next((tool[key] for key in _SCHEMAS if isinstance(tool.get(key), dict)), {})
    properties = schema.get("properties")
    required = _required(schema)
    arguments: dict[str, str] = {}
    more = schema.get("additionalProperties", False) is not False  # where nothing is said, nobody means further ones
    for key, kind in (properties if isinstance(properties, dict) else {}).items():
        written = _type(kind, f"{name}_{key}", made, 0) if _is_name(key) and key in required else None
        if written is None:
            why = "it may be left out" if key not in required else "it has no type or name of a policy"
            made.left_out.append(f"the argument {key[:60]!r} of {name}: {why}, so that it is passed on unread")
            more = True
        else:
            arguments[key] = written
    hints = tool.get("annotations")
    # A hint of the server, which need not be true: it is listed for the person who reads the draft.
    reads = isinstance(hints, dict) and hints.get("readOnlyHint") is True
    if reads:
        made.reads.append(name)
    shown = [f"{key}: {kind}" for key, kind in arguments.items()] + (["..."] if more else [])
    made.arguments[name] = arguments
    made.tools[name] = f"tool {name}({', '.join(shown)}){' reads' if reads else ''}"


def _type(schema: object, name: str, made: ToolDeclarations, depth: int) -> str | None:
    """A type of the language; None where the schema says something else."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return None
    options = schema.get("enum")
    if options is not None:
        plain = isinstance(options, list) and all(isinstance(each, str) and _NAME.fullmatch(each) for each in options)
        # Options that differ only in case would be other spellings of each other.
        apart = plain and len({each.casefold() for each in options}) == len(options) > 1
        return f"one_of({', '.join(options)})" if apart else None
    kind = schema.get("type")
    if kind == "array":
        items = _type(schema.get("items"), name, made, depth + 1)
        return None if items is None else f"list of {items}"
    if kind == "object":
        return _record(schema, name, made, depth)
    if kind == "string":
        return _FORMATS.get(str(schema.get("format")), "text")
    return _TYPES.get(kind) if isinstance(kind, str) else None


def _record(schema: Mapping[str, Any], name: str, made: ToolDeclarations, depth: int) -> str | None:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties or set(properties) != _required(schema):
        return None  # a record has all of its fields, and no others
    fields = {key: _type(each, f"{name}_{key}", made, depth + 1) for key, each in properties.items()}
    if None in fields.values() or not all(map(_is_name, fields)):
        return None
    title = "".join(part.capitalize() for part in name.split("_"))
    made.records.append("\n".join([f"record {title}:", *(f"  {key}: {kind}" for key, kind in fields.items())]))
    return title


def _is_name(given: object) -> TypeGuard[str]:
    """Whether a name can stand in a policy."""
    return isinstance(given, str) and _NAME.fullmatch(given) is not None and given not in RESERVED


def _required(schema: Mapping[str, Any]) -> set[str]:
    given = schema.get("required")
    return {each for each in given if isinstance(each, str)} if isinstance(given, list) else set()
