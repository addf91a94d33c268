"""JSON as it stands: what is decoded, what is refused, and when two values are the same."""

from __future__ import annotations

import pytest
from tables import all_rows

from stepguard.language.strict_json import JsonNumber, JsonObject, decode, decode_at, same


@all_rows(
    "one_text, other_text, equal",
    [
        *(('{"a": [1, {"b": "x"}]}', '{ "a":[1,{"b":"x"}] }', True), ('{"a": "x"}', '{"a": "\\u0078"}', True)),
        *(("null", "null", True), ("[]", "[]", True), ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', True)),
        *(('{"a": 1, "a": 2}', '{"a": 2}', False), ('{"a": 1, "a": 2}', '{"a": 3, "a": 2}', False)),
        *(('{"a": 1, "a": 2}', '{"a": 1, "a": 2}', True), ('{"a": 1}', '{"a": "1"}', False)),
        *(('{"a": 1}', '{"a": 2}', False), ("[1]", "[1, 2]", False), ("[1, 2]", "[1]", False)),
        *(('["1"]', "[1]", False), ("[true]", "[false]", False)),
        *(('[[{"a": 1, "b": 2}]]', '[[{"b": 2, "a": 1}]]', True), ("[1, 2]", "[2, 1]", False)),
        *(("[3, 1]", "[2, 1]", False), ("1", "1.0", False), ("true", "1", False), ("null", "false", False)),
        ("{}", "[]", False),
    ],
)
def test_values_are_the_same_as_they_were_written(one_text: str, other_text: str, equal: bool) -> None:
    """Two decoded values are the same if they were written so but for white space, escapes and the order of keys."""
    assert same(decode(one_text), decode(other_text)) is equal
    assert same(decode(other_text), decode(one_text)) is equal


def test_comparing_is_no_deeper_than_the_values() -> None:
    """Values nested as deeply as can be decoded are compared without recursion."""
    deep = "[" * 800 + "1" + "]" * 800
    assert same(decode(deep), decode(deep))
    assert not same(decode(deep), decode(deep.replace("1", "2")))


def test_decodes_at_an_offset() -> None:
    """A value inside a text is decoded with its numbers as text and the offset behind it."""
    value, end = decode_at('x {"n": 1.50} y', 2)
    assert value == {"n": "1.50"}
    assert isinstance(value, dict)
    assert type(value["n"]) is JsonNumber
    assert end == 13


@all_rows("text", ["7", "-0", "1.50", "1e400", "9007199254740993"])
def test_a_number_keeps_its_digits(text: str) -> None:
    """A number is the text that was written, told apart from a string by its class."""
    value = decode(text)
    assert value == text
    assert type(value) is JsonNumber


@all_rows("text", ["NaN", "Infinity", "[-Infinity]", "", "x", "{} {}", '{"a": 1,}', "{'a': 1}", "[1"])
def test_what_is_no_json_is_refused(text: str) -> None:
    """Constants that JSON does not have, more than one document and every mistake are refused."""
    with pytest.raises(ValueError):  # noqa: PT011 - each has words of its own
        decode(text)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000])
def test_too_deep_nesting_is_refused(text: str) -> None:
    """Nesting beyond what can be decoded is an error of the text, wherever the text begins."""
    with pytest.raises(ValueError, match="nested too deeply"):
        decode(text)
    with pytest.raises(ValueError, match="nested too deeply"):
        decode_at(f"so: {text}", 4)


@all_rows(
    "text, repeated",
    [
        ("{}", set()),
        ('{"a": 1, "b": 1}', set()),
        ('{"a": 1, "a": 1}', {"a"}),
        ('{"a": 1, "b": 2, "a": 3}', {"a"}),
        ('{"a": 1, "b": 2, "a": 3, "b": 4, "c": 5, "a": 6}', {"a", "b"}),
        ('{"": 1, "": 2}', {""}),
    ],
)
def test_an_object_remembers_its_repeated_keys(text: str, repeated: set[str]) -> None:
    """The keys that stand in an object more than once are known, and none besides."""
    value = decode(text)
    assert isinstance(value, JsonObject)
    assert value.repeated == repeated


def test_an_object_remembers_what_was_written() -> None:
    """Every pair of an object is kept in its order, repetitions included."""
    value = decode('{"b": 1, "a": "x", "b": 2}')
    assert isinstance(value, JsonObject)
    assert value.pairs == [("b", "1"), ("a", "x"), ("b", "2")]
