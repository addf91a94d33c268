"""JSON in a text, by a JSON Schema or a pydantic model.

The text is one JSON document and nothing else: no fence, no comment, no NaN, no key that stands twice. Numbers are
compared exactly. Later steps read the text as it was written.

A JSON Schema is checked by jsonschema (``pip install "stepguard[schema]"``), with what could hang or reach out taken
away: its patterns run in linear time (see `stepguard.checks.text`), references stay inside the document, and what
would silently not be checked (an unknown format, ``patternProperties``) is refused when the check is made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from stepguard.checks.built import BuiltCheck
from stepguard.checks.text import FAILURES, MAX_TEXT, compile_pattern, unless_text
from stepguard.core.arguments import check_flag
from stepguard.core.verdicts import Claim, Strength, Verdict, shorten
from stepguard.errors import ConfigError, MissingExtraError, ValueRefused
from stepguard.language.numerals import read_numeral
from stepguard.language.strict_json import JsonNumber, JsonObject, decode
from stepguard.language.values import Value, encodable, show_value

if TYPE_CHECKING:
    from pydantic import BaseModel

    from stepguard.procedure.steps import Step

_MAX_DEPTH: Final = 50
_FLOAT_LIMIT: Final = 10**308  # above it no float holds a number, and jsonschema compares floats
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
# The shapes in which tools report failure: a schema that they satisfy supports no claim.
_PROBES: Final = tuple(
    json.dumps(each)
    for failure in FAILURES
    for each in (failure, {"error": failure}, {"message": failure}, {"status": "error", "message": failure})
)


@dataclass(frozen=True, slots=True, init=False)
class Schema(BuiltCheck):
    """The text is a JSON document by a schema. A pass is ``"constrained"``.

    Args:
        schema: a JSON Schema as a mapping (draft 2020-12 unless ``$schema`` names another), or a pydantic model class,
            which is applied strictly: ``"3"`` is no integer. What a model ignores (keys it does not declare, unless
            its configuration says ``extra="forbid"``) is not looked at. A model compares floats, so a decimal number
            with more digits than a float holds fails; whole numbers above 2^53 in a float field are rounded.
        veto: whether a document by the schema supports nothing, for schemas that an error message satisfies as well.

    Raises:
        ConfigError: the schema is none, asks for what is not checked, or passes the text of a failure
            (``{"error": "tool not available"}`` where no key is required) while `veto` is not set.
        MissingExtraError: a JSON Schema is given and jsonschema is not installed.
    """

    document: str | None
    model: type[BaseModel] | None
    veto: bool

    def __init__(self, schema: Mapping[str, Any] | type[BaseModel], *, veto: bool = False) -> None:
        from pydantic import BaseModel

        document: str | None = None
        model: type[BaseModel] | None = None
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            model = schema
        elif isinstance(schema, Mapping):
            try:
                # As text: it can be hashed and cached, and a caller who changes the mapping later changes nothing here.
                document = json.dumps(dict(schema), sort_keys=True, allow_nan=False, default=_number)
            except (TypeError, ValueError, RecursionError) as error:
                raise ConfigError(f"a schema is plain JSON data: {error}", option="schema") from None
            _validator(document)
        else:
            raise ConfigError(f"a schema is a mapping or a pydantic model class, not {schema!r:.60}", option="schema")
        check_flag(veto, "veto")
        self._set(document=document, model=model, veto=veto)
        try:
            failure = next((probe for probe in _PROBES if self._wrong(probe) is None), None)
        except _Unresolved as error:
            raise ConfigError(str(error), option="schema") from None
        if failure is not None and not veto:
            raise ConfigError(
                f"the schema is satisfied by {failure}, so a match would say nothing: require its keys or forbid "
                "others, or give veto=True, with which it can only object",
                option="schema",
            )

    @property
    def strongest(self) -> Strength:
        return "unverified" if self.veto else "constrained"

    def _misfit(self, step: Step) -> str | None:
        return unless_text(step)

    def _judge(self, step: Step, values: Mapping[str, Value], claim: Claim) -> Verdict:
        text = show_value(values[step.id])
        try:
            wrong = self._wrong(text)
        except _Unresolved as error:
            return self._undecided(str(error), retry=False)
        if wrong is not None:
            return self._fail(wrong, "malformed")
        return self._no_objection() if self.veto else self._pass()

    def _wrong(self, text: str) -> str | None:
        """Find what is wrong with a text; None if nothing is."""
        if len(text) > MAX_TEXT:
            return f"{len(text)} characters, at most {MAX_TEXT} are looked at"
        # Neither pydantic nor the pattern engine reads such text.
        if not encodable(text):
            return "half of a character (a lone surrogate)"
        try:
            plain = _exactly(decode(text))
        except ValueError as error:
            return f"no JSON document: {shorten(str(error), 200)}"
        if self.document is not None:
            return _against_schema(_validator(self.document), plain)
        assert self.model is not None
        return _against_model(self.model, text, plain)


def _number(given: object) -> float:
    """A decimal number of a schema, as JSON writes it."""
    if isinstance(given, Decimal) and given.is_finite() and Decimal(repr(float(given))) == given:
        return float(given)
    raise TypeError(f"{given!r:.60} cannot stand in JSON")


class _Unresolved(Exception):
    """The schema leads nowhere for this document."""


def _exactly(decoded: object, depth: int = 0) -> object:
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
            return {key: _exactly(each, depth + 1) for key, each in decoded.items()}
        case list():
            return [_exactly(each, depth + 1) for each in decoded]
        case _:
            return decoded


def _against_model(model: type[BaseModel], text: str, plain: object) -> str | None:
    from pydantic import ValidationError

    for leaf in _leaves(plain):
        # A float would take such a number for infinity, and 1.00000000000000000001 for 1.
        if not isinstance(leaf, int | Fraction):
            continue
        if abs(Fraction(leaf)) >= _FLOAT_LIMIT:
            return "a number is too large"
        if isinstance(leaf, Fraction) and Fraction(repr(float(leaf))) != leaf:
            return "a number has more digits than a float holds"
    try:
        model.model_validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return shorten(f"{'.'.join(map(str, first['loc'])) or 'the document'}: {first['msg']}", 300)
    return None


def _leaves(plain: object) -> Iterator[object]:
    stack = [plain]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            stack += node.values()
        elif isinstance(node, list):
            stack += node
        else:
            yield node


def _against_schema(validator: Any, plain: object) -> str | None:
    unresolvable = import_module("referencing.exceptions").Unresolvable
    try:
        # The first is enough; listing all of them takes time that the document decides.
        error = next(validator.iter_errors(plain), None)
    # A schema may refer to itself without end.
    except (RecursionError, unresolvable) as cause:
        raise _Unresolved(f"the schema cannot be applied: {type(cause).__name__}") from None
    if error is None:
        return None
    place = ".".join(map(str, error.absolute_path)) or "the document"
    return shorten(f"{place}: {error.message[:300]}", 300)


@lru_cache(maxsize=64)
def _validator(document: str) -> Any:
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
        exact_schema = _exactly(decode(document))
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
