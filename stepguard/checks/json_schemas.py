"""JSON Schemas of which every keyword is checked, and the validators made of them.

What jsonschema would skip in silence, hang in or fetch is refused when the check is made, or replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

from stepguard.checks.text import compile_pattern
from stepguard.core.verdicts import shorten
from stepguard.errors import ConfigError, MissingExtraError, ValueRefused
from stepguard.language.numerals import read_numeral
from stepguard.language.strict_json import JsonNumber, JsonObject, decode

_MAX_DEPTH: Final = 50
_MAX_ADDRESS: Final = 254  # the longest path of RFC 5321, without its brackets
_ADDRESS: Final = re.compile(
    r"(?=[^@]{1,64}@)[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)
"""A mailbox of RFC 5321, without quoted names and addresses of machines in brackets."""
_MAPS: Final = frozenset({"properties", "$defs", "definitions", "dependentSchemas", "dependencies"})
"""Keywords whose values are schemas by name."""
_DATA: Final = frozenset({"enum", "const", "default", "examples", "dependentRequired"})
"""Keywords whose values are no schemas."""


def exactly(decoded: object, depth: int = 0) -> object:
    """A decoded document with exact numbers.

    Raises:
        ValueError: a key stands twice, a number is too long, or it is nested too deeply.
    """
    if depth > _MAX_DEPTH:
        raise ValueError("it is nested too deeply")
    match decoded:
        case JsonNumber():
            try:
                return read_numeral(str(decoded)).value
            except ValueRefused as error:
                raise ValueError(error.reason) from None
        case JsonObject():
            if decoded.repeated:
                raise ValueError(f"the key {min(decoded.repeated)!r:.60} stands twice")
            return {key: exactly(each, depth + 1) for key, each in decoded.items()}
        case list():
            return [exactly(each, depth + 1) for each in decoded]
        case _:
            return decoded


@lru_cache(maxsize=64)
def validator_of(document: str) -> Any:
    """The validator of a schema.

    Raises:
        ConfigError: the schema is none, or asks for what is not checked.
        MissingExtraError: jsonschema is not installed.
    """
    try:
        jsonschema = import_module("jsonschema")
        referencing = import_module("referencing")
    except ImportError as error:
        raise MissingExtraError("checking JSON by a JSON Schema", extra="schema") from error
    plain = json.loads(document)
    draft = jsonschema.validators.validator_for(plain, default=jsonschema.Draft202012Validator)
    try:
        draft.check_schema(plain)
    except jsonschema.exceptions.SchemaError as error:
        place = ".".join(map(str, error.absolute_path)) or "the schema"
        raise ConfigError(f"no JSON Schema: {place}: {error.message}", option="schema") from None
    # Only what the installed extras can check: jsonschema passes an unknown format in silence.
    formats = _formats(draft)
    # An empty registry: no reference is ever fetched.
    registry = referencing.Registry()
    specification = import_module("referencing.jsonschema").DRAFT202012
    resource = referencing.Resource.from_contents(plain, default_specification=specification)
    resolver = registry.with_resource("", resource).resolver()
    for node in _schemas(plain):
        _require_checked(node, frozenset(formats.checkers), draft)
        try:
            resolver.lookup(node.get("$ref", "#"))
        except referencing.exceptions.Unresolvable:
            raise ConfigError(f"the schema refers to {node['$ref']!r}, which is not in it", option="schema") from None
    # jsonschema matches patterns with `re`, which can hang.
    ours = {"pattern": _pattern, "uniqueItems": _unique, "multipleOf": _multiple}
    try:
        exact_schema = exactly(decode(document))
    except ValueError as error:
        raise ConfigError(f"the schema cannot be used: {error}", option="schema") from None
    return jsonschema.validators.extend(draft, ours)(exact_schema, registry=registry, format_checker=formats)


def _formats(draft: Any) -> Any:
    """The formats that are checked. Of an address jsonschema itself only looks for an @."""
    checker = import_module("jsonschema").FormatChecker(formats=())
    checker.checkers = {name: check for name, check in draft.FORMAT_CHECKER.checkers.items() if name != "idn-email"}
    checker.checkers["email"] = (_is_address, ())
    return checker


def _is_address(instance: object) -> bool:
    return not isinstance(instance, str) or (len(instance) <= _MAX_ADDRESS and _ADDRESS.fullmatch(instance) is not None)


def _require_checked(node: Mapping[str, Any], formats: frozenset[str], draft: Any) -> None:
    for keyword in ("patternProperties", "unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"):
        if keyword in node:
            hint = ": use propertyNames with a pattern" if keyword == "patternProperties" else ""
            raise ConfigError(f"the schema has {keyword}, which is not checked here{hint}", option="schema")
    unknown = [key for key in node if key not in draft.VALIDATORS and key not in _SILENT]
    if unknown:
        raise ConfigError(f"the schema has the unknown keyword {unknown[0]!r}, which checks nothing", option="schema")
    # Before draft 2019-09 everything beside $ref is skipped in silence, and so is minContains.
    older = "dependentSchemas" not in draft.VALIDATORS
    beside = [key for key in node if older and "$ref" in node and key not in _SILENT and key != "$ref"]
    if beside:
        raise ConfigError(
            f"the schema has {beside[0]!r} beside $ref, which its draft does not check: put both into allOf",
            option="schema",
        )
    for keyword, needed in _TOGETHER.items():
        alone = needed not in node or (older and needed == "contains")
        if keyword in node and (alone or (needed == "items" and not isinstance(node["items"], list))):
            raise ConfigError(f"the schema has {keyword!r}, which checks nothing here", option="schema")
    if "pattern" in node:
        compile_pattern(node["pattern"])
    if "format" in node and node["format"] not in formats:
        raise ConfigError(
            f"the format {node['format']!r} is not checked by the installed jsonschema: leave it out, or install "
            "jsonschema[format]",
            option="schema",
        )
    if not str(node.get("$ref", "#")).startswith("#"):
        found = f"the schema refers to {node['$ref']!r}"
        raise ConfigError(f"{found}: references stay inside it, as '#/$defs/line'", option="schema")


_SILENT: Final = frozenset({
    "$schema", "$id", "id", "$anchor", "$comment", "$defs", "definitions", "title", "description", "default",
    "examples", "deprecated", "readOnly", "writeOnly", "then", "else", "minContains", "maxContains", "discriminator",
})  # fmt: skip
"""Keywords that say nothing of a document by themselves."""
_TOGETHER: Final = {
    "then": "if", "else": "if", "minContains": "contains", "maxContains": "contains", "additionalItems": "items",
}  # fmt: skip
"""Keywords that only say something together with another one: ``additionalItems`` with a list of ``items``."""


def _schemas(root: object) -> Iterator[Mapping[str, Any]]:
    """Every schema in a schema."""
    stack = [root]
    while stack:
        node = stack.pop()
        if not isinstance(node, dict):
            continue
        yield node
        for key, each in node.items():
            # An example may look like a schema without being one.
            if key in _DATA:
                continue
            if key in _MAPS and isinstance(each, dict):
                stack += each.values()
            elif isinstance(each, list):
                stack += each
            else:
                stack.append(each)


def _pattern(validator: Any, pattern: str, instance: object, _: object) -> Iterator[Any]:
    if isinstance(instance, str) and not compile_pattern(pattern)(instance):
        yield _error(f"{shorten(instance)!r} does not match {shorten(pattern)!r}")


def _unique(validator: Any, wanted: bool, instance: object, _: object) -> Iterator[Any]:
    if wanted and isinstance(instance, list) and len(set(map(_key, instance))) < len(instance):
        yield _error("elements are repeated")


def _multiple(validator: Any, divisor: Any, instance: Any, _: object) -> Iterator[Any]:
    if validator.is_type(instance, "number") and instance % divisor:
        yield _error(f"{shorten(str(instance))} is no multiple of {divisor}")


def _key(plain: object) -> object:
    """A key that is equal for equal JSON values only."""
    if isinstance(plain, dict):
        return "object", frozenset((key, _key(each)) for key, each in plain.items())
    if isinstance(plain, list):
        return "array", tuple(map(_key, plain))
    # True == 1 in Python, but not in JSON.
    return type(plain) is bool, plain


def _error(message: str) -> Any:
    return import_module("jsonschema").ValidationError(message)
