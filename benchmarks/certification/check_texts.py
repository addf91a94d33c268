"""Claims in words and in JSON; judged with Python's own means and with predicates written for each schema."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict

from certification.families import Family, Problem, Said
from stepguard.checks.schema import Schema
from stepguard.checks.text import Forbidden, Length, OneOf, Pattern

__all__: list[str] = []

# Patterns


def _draw(chance: random.Random, letters: str, number: int) -> str:
    return "".join(chance.choice(letters) for _ in range(number))


_UPPER, _DIGITS, _LOWER = "ABCDEFGHKLMNPRSTUVWXYZ", "0123456789", "abcdefghijklmnoprstuvwxyz"
_PATTERNS: dict[str, Callable[[random.Random], str]] = {
    "[A-Z]{2}-[0-9]{4}": lambda chance: f"{_draw(chance, _UPPER, 2)}-{_draw(chance, _DIGITS, 4)}",
    "[0-9]{5}(-[0-9]{4})?": lambda chance: _draw(chance, _DIGITS, 5) + chance.choice(["", "-1234"]),
    "yes|no|unknown": lambda chance: chance.choice(["yes", "no", "unknown"]),
    "[a-z][a-z0-9_]{2,15}": lambda chance: _draw(chance, _LOWER, 1) + _draw(chance, _LOWER + _DIGITS + "_", 6),
    "[A-Z][a-z]+ [A-Z][a-z]+": lambda chance: f"{_draw(chance, _LOWER, 4)} {_draw(chance, _LOWER, 5)}".title(),
    "(0|[1-9][0-9]*)[.][0-9]{2} EUR": lambda chance: f"{chance.randint(0, 999)}.{_draw(chance, _DIGITS, 2)} EUR",
    "#[0-9a-fA-F]{6}": lambda chance: f"#{_draw(chance, 'abcdef' + _DIGITS, 6)}",
}


def _pattern(chance: random.Random) -> Problem:
    pattern = chance.choice(list(_PATTERNS))
    return Problem((Pattern(pattern),), pattern)


PATTERN = Family("Pattern", _pattern, lambda problem, text: re.fullmatch(problem.truth, text, re.ASCII) is not None)


@PATTERN.put("right", "what matches")
def _matching(chance: random.Random, problem: Problem) -> Said | None:
    text = _PATTERNS[problem.truth](chance)
    return Said(text, text)


def _spoilt(family: Family, text_of: Callable[[random.Random, Problem], str]) -> None:
    def spoil(name: str, change: Callable[[random.Random, str], str]) -> None:
        @family.put("wrong", name)
        def kind(chance: random.Random, problem: Problem) -> Said | None:
            text = change(chance, text_of(chance, problem))
            return Said(text, text.strip(" \t\r\n"))  # blanks around it are not handed on

    spoil("something in front of it", lambda chance, text: chance.choice(["x", "The ", "= ", "not ", "1"]) + text)
    spoil(
        "something behind it", lambda chance, text: text + chance.choice(["x", " or so", "\nno", "!", "\n\n9", ", 2"])
    )
    spoil("twice", lambda chance, text: text + chance.choice([" ", "\n", ", ", ""]) + text)
    spoil("a character left out", _left_out)
    spoil("a character changed", _changed)
    spoil("the case", lambda chance, text: text.swapcase())
    spoil("letters and digits that look alike", _look_alike)
    spoil(
        "a failure as text", lambda chance, text: chance.choice(["Error: tool not available", "N/A", "", "I'm sorry."])
    )
    spoil("a line between", lambda chance, text: f"{text[: len(text) // 2]}\n{text[len(text) // 2 :]}")


def _left_out(chance: random.Random, text: str) -> str:
    at = chance.randrange(len(text))
    return text[:at] + text[at + 1 :]


def _changed(chance: random.Random, text: str) -> str:
    at = chance.randrange(len(text))
    return text[:at] + chance.choice("xQ7-_. é") + text[at + 1 :]


def _look_alike(chance: random.Random, text: str) -> str:
    return text.translate(str.maketrans("oaecO01249AEyn", "оаесО०१२४９ΑΕуп"))


_spoilt(PATTERN, lambda chance, problem: _PATTERNS[problem.truth](chance))

# One of a list

_LISTS = (
    ("north", "south", "east", "west"),
    ("Approve", "Refuse", "Ask for more"),
    ("Q1 2026", "Q2 2026", "Q3 2026"),
    ("Zürich", "Genève", "Basel"),
)


def _options(chance: random.Random) -> Problem:
    options = chance.choice(_LISTS)
    ignore = chance.random() < 0.3
    return Problem((OneOf(*options, ignore_case=ignore),), (options, ignore))


def _listed(problem: Problem, text: str) -> bool:
    options, ignore = problem.truth
    plain = text.strip()
    return plain in options or (ignore and plain.lower() in [each.lower() for each in options])


ONE_OF = Family("OneOf", _options, _listed)


@ONE_OF.put("right", "one of them")
def _option(chance: random.Random, problem: Problem) -> Said | None:
    options, ignore = problem.truth
    text = chance.choice(options)
    text = chance.choice([text, f" {text}\n", text.upper() if ignore else text])
    return Said(text, text)


@ONE_OF.put("wrong", "several of them")
def _several(chance: random.Random, problem: Problem) -> Said | None:
    options = problem.truth[0]
    text = chance.choice([" or ", ", ", "/", " "]).join(chance.sample(options, 2))
    return Said(text, text)


_spoilt(ONE_OF, lambda chance, problem: chance.choice(problem.truth[0]))

# What must not be in a text, and how long it may be: a second check supports the text

_LETTER = Pattern(r"(?s)Dear .*")
_WORDS = ("we will send the parcel", "to you on Monday", "and thank you", "for the kind letter", "about it")


def _letter(chance: random.Random, words: int = 12) -> str:
    return "Dear Ms Ito, " + " ".join(chance.choice(_WORDS) for _ in range(words))


_FORBIDDEN = ("sorry", "guarantee", "no refund", "free")
_CARD = "[0-9]{16}"


def _forbidden(chance: random.Random) -> Problem:
    return Problem((Forbidden(*_FORBIDDEN, patterns=[_CARD]), _LETTER), None)


def _clean(problem: Problem, text: str) -> bool:
    plain = " ".join(text.lower().split())
    words = any(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", plain) for word in _FORBIDDEN)
    return text.startswith("Dear ") and not words and re.search(_CARD, text) is None


FORBIDDEN = Family("Forbidden", _forbidden, _clean)


def _planted(where: str, name: str, plant: Callable[[random.Random], str], *, hidden: bool = False) -> None:
    @FORBIDDEN.put(where, name)
    def kind(chance: random.Random, problem: Problem) -> Said | None:
        words = _letter(chance).split(" ")
        words.insert(chance.randrange(3, len(words) + 1), plant(chance))
        text = " ".join(words)
        return Said(text) if hidden else Said(text, text)


_planted("right", "nothing of it", lambda chance: "gladly")
_planted(
    "right",
    "part of another word or number",
    lambda chance: chance.choice(
        ["freely", "guaranteed", "sorrily", "carefree", "123456789012345", "freedom", "no refunds"]
    ),
)
_planted("wrong", "a word of it", lambda chance: chance.choice(_FORBIDDEN))
_planted("wrong", "in capitals", lambda chance: chance.choice([str.upper, str.title])(chance.choice(_FORBIDDEN)))
_planted(
    "wrong",
    "between signs",
    lambda chance: chance.choice("(*-,.") + chance.choice(_FORBIDDEN) + chance.choice(")!,.;-:"),
)
_planted(
    "wrong",
    "over the end of a line",
    lambda chance: chance.choice(["no\nrefund", "no \n  refund", "no\u00a0refund", "No  Refund"]),
)
_planted(
    "wrong",
    "a number of that many digits",
    lambda chance: chance.choice(["", "no. ", "x"]) + _draw(chance, _DIGITS, 16),
)
_planted(
    "wrong",
    "in wide letters",
    lambda chance: chance.choice(["ｓｏｒｒｙ", "ｆｒｅｅ", "ＦＲＥＥ", "ｎｏ ｒｅｆｕｎｄ"]),
    hidden=True,
)


@FORBIDDEN.put("wrong", "nothing forbidden, and no letter")
def _no_letter(chance: random.Random, problem: Problem) -> Said | None:
    text = chance.choice(["Error: tool not available", "", "Hello", "dear you"])
    return Said(text, text)


def _length(chance: random.Random) -> Problem:
    least = chance.randint(20, 60)
    most = least + chance.randint(1, 60)
    return Problem((Length(least, most), _LETTER), (least, most))


LENGTH = Family("Length", _length, lambda problem, text: problem.truth[0] <= len(text.strip()) <= problem.truth[1])


def _long(where: str, name: str, number: Callable[[random.Random, int, int], int], pad: str = "") -> None:
    @LENGTH.put(where, name)
    def kind(chance: random.Random, problem: Problem) -> Said | None:
        wanted = number(chance, *problem.truth)
        body = ("Dear Ms Ito, " + _draw(chance, "abcdeéü€", 200))[: max(wanted, 0)]
        text = body + pad
        return Said(text, text) if text.startswith("Dear ") else None


_long("right", "the shortest", lambda chance, least, most: least)
_long("right", "the longest", lambda chance, least, most: most)
_long("right", "with blanks behind it", lambda chance, least, most: most, pad="  \n")
_long("wrong", "one too few", lambda chance, least, most: least - 1)
_long("wrong", "one too many", lambda chance, least, most: most + 1)
_long("wrong", "far too many", lambda chance, least, most: most + 70)
_long("wrong", "filled up with blanks", lambda chance, least, most: least - 3, pad="      ")

# JSON


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid")
    item: str
    count: int
    paid: bool


_SCHEMA = {
    "type": "object",
    "properties": {
        "item": {"type": "string", "minLength": 1},
        "count": {"type": "integer", "minimum": 1, "maximum": 99},
        "paid": {"type": "boolean"},
        "tags": {"type": "array", "items": {"enum": ["new", "old"]}, "uniqueItems": True},
        "price": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.01},
    },
    "required": ["item", "count", "paid"],
    "additionalProperties": False,
}


def _schema(chance: random.Random) -> Problem:
    model = chance.random() < 0.4
    return Problem((Schema(_Line if model else _SCHEMA),), model)


def _fits(problem: Problem, document: Any) -> bool:
    if type(document) is not dict or not {"item", "count", "paid"} <= document.keys():
        return False
    allowed = {"item", "count", "paid"} | (set() if problem.truth else {"tags", "price"})
    if document.keys() - allowed or type(document["item"]) is not str or type(document["paid"]) is not bool:
        return False
    if type(document["count"]) is not int:
        return False
    if problem.truth:
        return True
    if not document["item"] or not 1 <= document["count"] <= 99:
        return False
    tags, price = document.get("tags", []), document.get("price", 1)
    if type(tags) is not list or any(each not in ("new", "old") for each in tags) or len(set(tags)) < len(tags):
        return False
    return type(price) in (int, float) and price > 0 and abs(price * 100 - round(price * 100)) < 1e-9


SCHEMA = Family("Schema", _schema, _fits)


def _right_document(chance: random.Random, problem: Problem) -> dict[str, Any]:
    document: dict[str, Any] = {
        "item": chance.choice(["pen", "Tür", 'a "b"', "x\ny"]),
        "count": chance.randint(1, 99),
        "paid": chance.random() < 0.5,
    }
    if not problem.truth and chance.random() < 0.6:
        document["tags"] = chance.sample(["new", "old"], chance.randint(0, 2))
    if not problem.truth and chance.random() < 0.6:
        document["price"] = chance.choice([0.01, 0.07, 19.99, 3, 1.1, 0.29])
    keys = list(document)
    chance.shuffle(keys)
    return {key: document[key] for key in keys}


def _dumped(chance: random.Random, document: Any) -> str:
    return json.dumps(document, indent=chance.choice([None, 2]), ensure_ascii=chance.random() < 0.5)


@SCHEMA.put("right", "a document by the schema")
def _document(chance: random.Random, problem: Problem) -> Said | None:
    document = _right_document(chance, problem)
    return Said(_dumped(chance, document), document)


def _document_kind(name: str, change: Callable[[random.Random, dict[str, Any]], Any]) -> None:
    @SCHEMA.put("wrong", name)
    def kind(chance: random.Random, problem: Problem) -> Said | None:
        document = change(chance, _right_document(chance, problem))
        return Said(_dumped(chance, document), document)


_document_kind("a key missing", lambda chance, doc: {key: doc[key] for key in chance.sample(list(doc), len(doc) - 1)})
_document_kind("a key too many", lambda chance, doc: {**doc, chance.choice(["note", "Item", "count ", ""]): 1})
_document_kind("a number as text", lambda chance, doc: {**doc, "count": str(doc["count"])})
_document_kind("a truth value for a number", lambda chance, doc: {**doc, "count": True})
_document_kind("a number for a truth value", lambda chance, doc: {**doc, "paid": chance.choice([0, 1, "true", None])})
_document_kind("a broken number", lambda chance, doc: {**doc, "count": doc["count"] + 0.5})
_document_kind("out of bounds", lambda chance, doc: {**doc, "count": chance.choice([0, -1, 100, 10**30])})
_document_kind(
    "not in the list, or twice",
    lambda chance, doc: {**doc, "tags": chance.choice([["New"], ["new", "new"], "new", [1]])},
)
_document_kind(
    "a part of a cent", lambda chance, doc: {**doc, "price": chance.choice([0.005, 19.999, 0, -0.01, 0.0100001])}
)
_document_kind("null", lambda chance, doc: {**doc, chance.choice(["item", "count", "paid"]): None})
_document_kind("a list around it", lambda chance, doc: [doc])
_document_kind("text around it", lambda chance, doc: json.dumps(doc))
_document_kind(
    "something else", lambda chance, doc: chance.choice([None, 1, "pen", [], {}, {"error": "tool not available"}])
)


@SCHEMA.put("wrong", "no JSON")
def _broken(chance: random.Random, problem: Problem) -> Said | None:
    text = json.dumps(_right_document(chance, problem))
    count = re.search(r'"count": ([0-9]+)', text)
    assert count is not None
    ways = [
        text[:-1],
        text[1:],
        text + text,
        f"```json\n{text}\n```",
        f"Here it is: {text}",
        f"{text} // done",
        text.replace('"', "'"),
        text[:-1] + ",}",
        text.replace(count[0], '"count": NaN'),
        text.replace(count[0], '"count": 0x10'),
        text.replace(count[0], '"count": 012'),
        text.replace(count[0], '"count": 1_0'),
        f'{text[:-1]}, "count": 5}}',
        f'{text[:-1]}, "paid": true}}',
        "",
    ]
    return Said(chance.choice(ways))
