"""JSON in a text, by a JSON Schema or a pydantic model.

The text is one JSON document and nothing else: no fence, no comment, no NaN, no key that stands twice. Numbers are
compared exactly. Later steps read the text as it was written.

A JSON Schema is checked by jsonschema (``pip install "stepguard[schema]"``), with what could hang or reach out taken
away: its patterns run in linear time (see `stepguard.checks.text`), references stay inside the document, and what
would silently not be checked (an unknown format, ``patternProperties``) is refused when the check is made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from stepguard.checks.built import BuiltCheck
from stepguard.checks.json_schemas import exactly, validator_of
from stepguard.checks.text import FAILURES, MAX_TEXT, unless_text
from stepguard.core.arguments import check_flag
from stepguard.core.verdicts import Claim, Strength, Verdict, shorten
from stepguard.errors import ConfigError
from stepguard.language.strict_json import decode
from stepguard.language.values import Value, encodable, show_value

if TYPE_CHECKING:
    from pydantic import BaseModel

    from stepguard.procedure.steps import Step

_FLOAT_LIMIT: Final = 10**308  # above it no float holds a number, and jsonschema compares floats
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
            validator_of(document)
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
            plain = exactly(decode(text))
        except ValueError as error:
            return f"no JSON document: {shorten(str(error), 200)}"
        if self.document is not None:
            return _against_schema(validator_of(self.document), plain)
        assert self.model is not None
        return _against_model(self.model, text, plain)


def _number(given: object) -> float:
    """A decimal number of a schema, as JSON writes it."""
    if isinstance(given, Decimal) and given.is_finite() and Decimal(repr(float(given))) == given:
        return float(given)
    raise TypeError(f"{given!r:.60} cannot stand in JSON")


class _Unresolved(Exception):
    """The schema leads nowhere for this document."""


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
