"""Checks on text: patterns, lists, lengths, forbidden words, JSON by a schema."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from constraint_harness import guarded, judge, outcome
from pydantic import BaseModel, ConfigDict, Field
from tables import all_rows

from stepguard.checks.built import BuiltCheck
from stepguard.checks.schema import Schema
from stepguard.checks.text import Forbidden, Length, OneOf, Pattern
from stepguard.errors import ConfigError

ERROR = "Error: tool not available"
DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}
LINE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "item": {"type": "string", "pattern": "^[A-Z]+$"},
        "price": {"type": "number", "minimum": 0, "multipleOf": 0.01},
        "tags": {"type": "array", "uniqueItems": True},
        "next": {"$ref": "#"},
        "day": {"type": "string", "format": "date"},
    },
    "required": ["item", "price"],
    "additionalProperties": False,
}


class Line(BaseModel):
    model_config = ConfigDict(extra="forbid")
    item: str
    count: int
    price: float = 0.0


class Loose(BaseModel):
    item: str = ""


def text(check: BuiltCheck, claimed: str) -> str:
    return outcome(check, claimed, type="text")


@pytest.mark.parametrize(
    ("pattern", "right", "wrong"),
    [
        ("[A-Z]{2}[0-9]{4}", ["AB1234"], ["AB12345", "xAB1234", "AB1234\n", "\nAB1234", "ab1234", "", ERROR]),
        ("red|green", ["red", "green"], ["redgreen", "reds", "a green"]),
        ("(?i)yes", ["YES", "yes"], ["yes!", "yess"]),
        (r"[0-9]+ km\z", ["5 km"], ["5 km\n", "５ km"]),
        ("(?:a+)+b", ["aaab"], ["a" * 50_000, "a" * 50_000 + "c"]),
        ("(?:a|a?)*(?:a|aa)+c", ["aac"], ["a" * 50_000]),
        ("é+", ["é", "éé"], ["e\u0301", "\ud800"]),
    ],
)
def test_a_pattern_matches_the_whole_text(pattern: str, right: list[str], wrong: list[str]) -> None:
    """A text that matches from end to end passes as constrained, any other fails, and none takes long."""
    began = time.monotonic()
    check = Pattern(pattern)
    assert [judge(check, each, type="text").strength for each in right] == ["constrained"] * len(right)
    assert [text(check, each) for each in wrong] == ["fail"] * len(wrong)
    assert time.monotonic() - began < 20


@pytest.mark.parametrize(
    "pattern", ["(", "a)|(b", "(?=a)b", r"(a)\1", r"a\Z", "a{1000}{1000}{100}", "x" * 20_000, 3, None, ["a"], "\ud800"]
)
def test_a_pattern_that_cannot_work_is_refused(pattern: Any) -> None:
    """What the engine does not know, or is too large, is refused when the check is made."""
    with pytest.raises(ConfigError):
        Pattern(pattern)
    with pytest.raises(ConfigError):
        Forbidden(patterns=[pattern])


@pytest.mark.parametrize(
    "pattern", [".*", "(?s).*", ".+", r"[\w :]+", "[A-Z].*", "Error.*", "|a", "[^0-9]*", "N/A|none"]
)
def test_a_pattern_for_failures_supports_nothing(pattern: str) -> None:
    """A pattern that the text of a failure matches is refused; as a veto it never passes a text."""
    if pattern != "|a":
        with pytest.raises(ConfigError, match="veto"):
            Pattern(pattern)
    check = Pattern(pattern, veto=True)
    assert {text(check, each) for each in (ERROR, "N/A", "1\n2", "")} <= {"fail", "not_applicable"}


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (OneOf("Ann Lee", "Bo"), ["Ann Lee", " Bo\n"], ["ann lee", "Ann  Lee", "Ann", "", ERROR, "Bo."]),
        (OneOf("Ann Lee", "Bo", ignore_case=True), ["ANN LEE", "bo"], ["boo"]),
        (OneOf("\u00e9"), ["e\u0301", "\u00e9"], ["e"]),
        (OneOf(*map(str, range(5000))), ["4999"], ["5000", "-1"]),
    ],
)
def test_one_of_a_list(check: OneOf, right: list[str], wrong: list[str]) -> None:
    """A text of the list passes as constrained, and any other fails."""
    assert [judge(check, each, type="text").strength for each in right] == ["constrained"] * len(right)
    assert [text(check, each) for each in wrong] == ["fail"] * len(wrong)


@pytest.mark.parametrize(
    ("check", "fine", "wrong"),
    [
        (Forbidden("sorry", "as an AI"), ["sorrily", "unsorry", "as  an aid"], ["I am SORRY.", "as\nan\u00a0ai, I"]),
        (Forbidden("c++"), ["c+", "abc++"], ["C++ code"]),
        (Forbidden(patterns=["[0-9]{16}"]), ["123"], ["card 1234567812345678", "\ud800"]),
        (Forbidden("ß"), ["straße"], ["ẞ", "ss"]),
        (Length(3, 5), ["abc", " abcde "], ["ab", "abcdef", "   "]),
        (Length(), ["a"], ["", " \n"]),
        (Length(0, 2), [""], ["abc"]),
    ],
)
def test_objections(check: BuiltCheck, fine: list[str], wrong: list[str]) -> None:
    """Forbidden words and lengths fail a text or say nothing for it; they never pass it."""
    assert [text(check, each) for each in fine] == ["not_applicable"] * len(fine)
    assert [text(check, each) for each in wrong] == ["fail"] * len(wrong)


@all_rows(
    "word, text_",
    [
        ("can't", "We can\u2019t refund this."), ("can\u2019t", "We can't refund this."), ("can't", "We can\u00b4t."),
        ('the "best"', "the \u201cbest\u201d"), ("state-of-the-art", "state\u2011of\u2013the\u2012art"),
        ("sorry", "so\u00adrry"), ("sorry", "so\u200brry\ufeff"), ("sorry", "_sorry_"), ("sorry", "~~sorry~~"),
        ("as an AI", "As an **AI**, I"), ("as an AI", "*As* __an__ AI"), ("sorry", "**so**rry"),
        ("__init__", "in __init__"),
        ("2*3", "is 2*3 six"), ("**bold**", "is **bold** set"), ("snake_case", "a snake_case name"),
    ],
)  # fmt: skip
def test_a_forbidden_word_is_found_however_it_is_typeset(word: str, text_: str) -> None:
    """Quotes, dashes, Markdown and characters that are not seen hide no forbidden word."""
    assert text(Forbidden(word), text_) == "fail"


@pytest.mark.parametrize(
    ("word", "text_"),
    [("snake", "a snake_case name"), ("23", "2**3"), ("cant", "can't"), ("ab", "a_b and a~b"), ("re", "re-do-it-re_")],
)
def test_signs_inside_a_word_are_no_markup(word: str, text_: str) -> None:
    """What joins two words is not taken off, so that no other word comes out."""
    assert text(Forbidden(word), text_) == ("fail" if word == "re" else "not_applicable")


def test_quotes_and_dashes_make_no_other_option() -> None:
    """An option passes with the quotes and dashes of print, and two that differ in nothing else are one."""
    assert text(OneOf("don't know", "yes"), "don\u2019t know") == "pass"
    assert text(OneOf("A\u2013B"), "A-B") == "pass"
    with pytest.raises(ConfigError):
        OneOf("don't", "don\u2019t")


@pytest.mark.parametrize(
    "check",
    [
        Forbidden("sorry"),
        Length(1, 200),
        Pattern("[A-Z][a-z]+"),
        Pattern(".*", veto=True),
        OneOf("Lyon", "Paris"),
        Schema(Line),
        Schema(Loose, veto=True),
    ],
)
@pytest.mark.parametrize(
    "failure", [ERROR, "", "N/A", "null", "x" * 200_000, "\ud800", json.dumps({"error": "no tool"})]
)
def test_the_text_of_a_failure_never_passes(check: BuiltCheck, failure: str) -> None:
    """Whatever check a step of text has, a failure that arrives as text is not accepted."""
    assert text(check, failure) != "pass"


def test_a_step_that_nothing_supports_stays_unverified() -> None:
    """A step of text with nothing but objections is unverified, never verified."""
    assert guarded(Forbidden("sorry"), ERROR).status == "unverified"
    assert guarded(OneOf("Lyon"), ERROR, "Lyon").status == "checked"
    assert guarded(OneOf("Lyon"), ERROR).status == "abstained"


@pytest.mark.parametrize("number", ["1.00000000000000000001", "0.1000000000000000055511151231257827", "1e-400"])
def test_a_number_that_a_float_would_round_is_no_field_of_a_model(number: str) -> None:
    """A decimal number with more digits than a float holds fails, so that no bound is passed by rounding."""

    class Share(BaseModel):
        share: float = Field(ge=0, le=1)

    assert text(Schema(Share), f'{{"share": {number}}}') == "fail"
    assert text(Schema(Share), '{"share": 0.1}') == "pass"


@pytest.mark.parametrize(
    ("address", "found"),
    [
        ("ann.lee+x@example.com", "pass"), ("a@b", "pass"), ("a@", "fail"), ("@b.de", "fail"),
        ("not an @ email", "fail"),
        ("a@b@c", "fail"), ("a..b@c.de", "fail"), ("a@-b.de", "fail"), ("a@b..de", "fail"),
        (f"{'a' * 65}@b.de", "fail"),
        (f"a@{'b.' * 130}de", "fail"), ("a@b.de\\n", "fail"),
    ],
)  # fmt: skip
def test_an_email_address_is_more_than_a_sign(address: str, found: str) -> None:
    """The format of an address is checked as a whole."""
    pytest.importorskip("jsonschema")
    mail = {"type": "object", "required": ["m"], "properties": {"m": {"type": "string", "format": "email"}}}
    assert text(Schema(mail), f'{{"m": "{address}"}}') == found


@pytest.mark.parametrize(
    ("claimed", "found"),
    [
        *(('{"item": "x", "count": 1}', "pass"), (' {"count": 1, "item": "x", "price": 1.5}\n', "pass")),
        *(('{"item": "x", "count": "1"}', "fail"), ('{"item": "x", "count": 1.0}', "fail")),
        *(('{"item": "x", "count": true}', "fail"), ('{"item": "x"}', "fail")),
        *(('{"item": "x", "count": 1, "more": 2}', "fail"), ('{"item": "x", "count": 1, "count": 2}', "fail")),
        *(('{"item": "x", "count": 1, "price": NaN}', "fail"), ('{"item": "x", "count": 1, "price": 1e400}', "fail")),
        ('{"item": "x", "count": 1, "price": 1e999999999}', "fail"),
        ('```json\n{"item": "x", "count": 1}\n```', "fail"),
        *(('{"item": "x", "count": 1} {"item": "x", "count": 1}', "fail"), ("[" * 90_000, "fail")),
        ("[" * 60 + "]" * 60, "fail"),
    ],
)
def test_json_by_a_model(claimed: str, found: str) -> None:
    """A document by a pydantic model passes; what would have to be converted, repaired or rounded does not."""
    assert text(Schema(Line), claimed) == found


@pytest.mark.parametrize(
    ("claimed", "found"),
    [
        ('{"item": "AB", "price": 1.25}', "pass"),
        ('{"item": "AB", "price": 0.07, "tags": [1, true, "1", [1], {"a": 1}], "day": "2026-11-28"}', "pass"),
        ('{"item": "AB", "price": 1, "next": {"item": "C", "price": 2.00}}', "pass"),
        *(('{"item": "AB", "price": 1.255}', "fail"), ('{"item": "ab", "price": 1}', "fail")),
        *(('{"item": "AB", "price": -0.01}', "fail"), ('{"item": "AB", "price": "1"}', "fail")),
        ('{"item": "AB", "price": 1, "tags": [1, 1.0]}', "fail"),
        ('{"item": "AB", "price": 1, "tags": [{"a": [1]}, {"a": [1]}]}', "fail"),
        ('{"item": "AB", "price": 1, "day": "28 November"}', "fail"),
        ('{"item": "AB", "price": 1, "next": {"item": "C"}}', "fail"),
        *(('{"item": "AB", "price": 1, "price": 1}', "fail"), ('{"price": 1}', "fail"), (ERROR, "fail")),
    ],
)
def test_json_by_a_schema(claimed: str, found: str) -> None:
    """A document by a JSON Schema passes, with exact numbers, and others fail."""
    pytest.importorskip("jsonschema")
    assert text(Schema(LINE), claimed) == found


@all_rows(
    "schema",
    [
        *({}, {"type": "object"}, {"type": "string"}, {"type": "object", "properties": {"item": {"type": "string"}}}),
        *({"type": "objekt"}, {"type": "integer", "minimun": 3}),
        {"type": "string", "format": "no-such-format", "maxLength": 3},
        *({"type": "string", "format": "idn-email", "maxLength": 3}, {"$ref": "https://example.com/schema.json"}),
        *({"$ref": "other.json#/a"}, {"type": "object", "patternProperties": {"^a": {}}, "required": ["a"]}),
        *({"type": "string", "pattern": "(?=a)"}, {"type": "integer", "default": float("nan")}),
        *({"type": "integer", "default": object()}, {"enum": [1], "properties": {"a": {"minimun": 1}}}),
        *({"type": "integer", "then": {"minimum": 1}}, {"type": "integer", "else": {"minimum": 1}}),
        *({"type": "array", "minContains": 2}, {"type": "array", "maxContains": 2}),
        {**DRAFT_7, "type": "array", "contains": {"const": 1}, "minContains": 2},
        {**DRAFT_7, "type": "array", "items": {"type": "integer"}, "additionalItems": False},
        {**DRAFT_7, "$ref": "#/definitions/whole", "maximum": 7, "definitions": {"whole": {"type": "integer"}}},
    ],
)
def test_a_schema_that_cannot_work_is_refused(schema: dict[str, Any]) -> None:
    """A schema that an error satisfies, that reaches out, or with what would not be checked is refused at once."""
    pytest.importorskip("jsonschema")
    with pytest.raises(ConfigError):
        Schema(schema)


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"$ref": "#/$defs/whole", "maximum": 7, "$defs": {"whole": {"type": "integer"}}}, "7", "8"),
        ({"type": "array", "contains": {"const": 1}, "minContains": 2}, "[1, 1]", "[1]"),
        ({"type": "integer", "if": {"minimum": 5}, "then": {"maximum": 7}, "else": {"maximum": 3}}, "7", "4"),
        ({**DRAFT_7, "type": "array", "items": [{"type": "integer"}], "additionalItems": False}, "[1]", "[1, 2]"),
        ({**DRAFT_7, "$ref": "#/definitions/whole", "definitions": {"whole": {"type": "integer"}}}, "7", "7.5"),
    ],
)
def test_keywords_that_work_together_are_checked_together(schema: dict[str, Any], right: str, wrong: str) -> None:
    """A keyword that its draft applies together with another one is applied."""
    pytest.importorskip("jsonschema")
    assert (text(Schema(schema), right), text(Schema(schema), wrong)) == ("pass", "fail")


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/none"},
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"required": ["a"], "properties": {"a": {"$ref": "#/$defs/none"}}},
    ],
)
def test_a_schema_that_leads_nowhere_is_refused(schema: dict[str, Any]) -> None:
    """A reference to nothing, or to itself, is refused when the check is made."""
    pytest.importorskip("jsonschema")
    with pytest.raises(ConfigError):
        Schema(schema, veto=True)


def test_a_schema_that_leads_nowhere_for_a_document_is_undecided() -> None:
    """A schema that a document sends in circles does not decide, and asking again is pointless."""
    pytest.importorskip("jsonschema")
    check = Schema({"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/properties/a"}}})
    found = judge(check, '{"a": 1}', type="text")
    assert (found.outcome, found.retry) == ("undecided", False)


@pytest.mark.parametrize(
    ("schema", "claimed"),
    [
        ({"type": "string", "pattern": "^(a+)+$", "minLength": 30}, json.dumps("a" * 50_000 + "!")),
        (
            {"type": "array", "uniqueItems": True, "items": {"type": "object"}},
            json.dumps([{"a": n} for n in range(7000)] * 2),
        ),
    ],
)
def test_no_document_takes_long(schema: dict[str, Any], claimed: str) -> None:
    """Patterns and uniqueness are linear, whatever the document."""
    pytest.importorskip("jsonschema")
    began = time.monotonic()
    assert text(Schema(schema), claimed) == "fail"
    assert time.monotonic() - began < 20
