"""Rules that can never hold, or never be broken, are mistakes of a policy, and those that can do both are none."""

from __future__ import annotations

import random
from itertools import product

import pytest
from tables import all_rows

from stepguard import Policy
from stepguard.errors import PolicyError
from stepguard.language.expressions import COMPARISONS

TOOLS = """
record Order:
  paid: integer
  limit: integer
  kind: one_of(a, b, c)
  open: boolean
  notes: list of text
tool get(id: text) -> Order reads
tool pay(id: text, amount: integer, kind: one_of(a, b), due: date, price: money(EUR), {more})
before pay(id, amount, kind, due, price, share):
  seen get(id) as o
""".replace("{more}", "share: percent = 10%")
MOVE = "tool move(a: text, b: text, c: text)\nbefore move(a, b, c):\n"
MISTAKES = [
    "  require amount > 100\n  require amount < 50",
    "  refuse if amount <= 100\n  require 100 >= amount",
    "  require amount > 5 and amount < 9\n  require amount != 6 and amount != 7.5\n  require amount == 6",
    "  require o.paid > o.limit\n  require o.limit >= o.paid",
    "  require o.open\n  require o.paid > 5\n  require not o.open",
    '  require o.kind == "a"\n  require o.kind == "b"',
    "  require due < 2026-01-02\n  require due >= 2026-01-03",
    "before pay(x, y):\n  require y > 9\nbefore pay(z, y):\n  require y < 9",
    "  require amount == amount",
    "  require amount > 5 or amount <= 5",
    "  require not (amount > 5 and amount < 4)",
    '  refuse if kind != "a" and kind != "b"',
    "  require amount > 5 only if amount > 6",
    "  require amount > 5 unless amount <= 5",
    '  if amount > 5:\n    require id != "x"\n  else if amount >= 6:\n    require id != "y"',
    "  confirmed by boss\n  confirmed by boss",
    "  at most 2 times per id\n  at most 3 times per id",
    "  at most once within 0 hours",
    "  done pay(id)",
    "never pay",
    # however it is written
    "  require 2 * amount > 20\n  require amount + 5 < 10",
    "  require amount + o.paid > o.limit\n  require o.limit - amount >= o.paid",
    "  require amount >= o.limit + 1\n  require o.paid > amount\n  require o.limit > o.paid",
    "  require amount - amount == 0",
    "  rest = o.paid - amount\n  require rest >= 0 and rest < 10\n  require amount > o.paid",
    "  late = due > 2026-03-01\n  require late\n  require due < 2026-02-01",
    "  require due - today > 5 days\n  require today >= due",
    "  require share > 10%\n  require share < 0.05",
    # what numbers there are
    "  require amount > 5 and amount < 6",
    "  require price > 0.01\n  require price < 0.02",
    "  require o.paid == 1.5",
    "  require count of o.notes >= 0",
    "  require abs(o.paid) < 0",
    "  require max(amount, 5) < 5",
    '  require o.kind in ["a", "b"]\n  require o.kind == "c"',
    '  require o.kind in ["a", "b", "c"]',
    # parts, and what has no value
    '  require "a" == "a" or amount > 5',
    "  five = 5\n  require amount > five or five > 9",
    "  require all of (1 == 1) for note in o.notes",
    "  require any of (amount > 5) for note in o.notes",
    "  require amount / 0 > 5",
    "  require due + 5 hours > today",
    # exceptions and cases
    "  require amount > 5 unless amount > 3",
    "  require o.open unless o.open",
    "  require o.open only if not o.open",
    "  if amount > 5:\n    require amount < 5",
    "  if amount > 5:\n    at most once\n  else:\n    at most once",
    '  if kind == "a":\n    at most once\n  else if kind == "b":\n    at most 2 times\n  else:\n    at most 3 times',
    "  confirmed by boss\n  confirmed by boss unless amount < 5",
    "  confirmed by boss\n  if amount > 5:\n    confirmed by boss",
    '  confirmed by boss ""',
    # limits
    "  at most 2 times\n  at most 3 times per id",
    "  at most 3 times within 2 days\n  at most 2 times within 72 hours",
    "  not done pay(id)\n  at most 2 times per id",
    "  at most 2 times per 5",
    # calls
    "  done drop(id)\nnever drop\ntool drop(id: text)",
    "  not done drop(id)\nnever drop\ntool drop(id: text)",
    "  done drop(id)\nbefore drop: done pay(id)\ntool drop(id: text)",
    "  done drop(id)\nbefore drop: seen look(id)\nbefore look: done drop(id)\n"
    + "tool drop(id: text)\ntool look(id: text) reads",
    "  done get(id)\n  not done get()",
    "  not done get(id)",
    '  not done pay(kind="c")',
    "  not done pay(amount=1.5)",
    "allow mail, mail\ntool mail()",
    '  done drop("a")\nbefore drop(id): require id != "a"\ntool drop(id: text)',
    '  seen drop("a") unless o.open\nnever drop unless id == "b"\ntool drop(id: text)',
    "  earlier step(number=2) as steps\n  require count of steps < 5\nbefore step(n): refuse if n < 4\n"
    + "tool step(number: integer)",
    '  done drop(id)\nbefore drop:\n  if id == "a":\n    done pay(id)\n  else:\n    done pay()\ntool drop(id: text)',
    "  not done pay(id)\n  earlier pay(id) as others\n  require count of others < 5",
    "  earlier pay(id) as others\n  require count of others < 5\n  at most once per id",
    "allow drop\ntool drop(id: text) changes get(id), get()",
    # names
    f"{MOVE}  require a == b\n  require b == c\n  require a != c",
    f'{MOVE}  require a == "x"\n  require b == "y"\n  require a == b',
    'before move(b, a): require a == "x"\ntool move(a: text, b: text)',
    "  at most 2 times per id, id",
    "  at most 2 times per now.at",
    "  confirmed by boss\n  if amount > 5:\n    confirmed by Boss",
    "  require today > 2026-03-01\n  require now.date < 2026-03-01",
    # tables
    "  require most[kind] > 4\ntable most: kind -> integer\n  a: 5\n  b: 6",
    "  require amount < most[kind]\ntable most: kind -> integer\n  a: 5",
    "  require amount < most[kind]\ntable most: kind -> integer\n  a: 5\n  b: 6\n  otherwise: 7",
    "  require amount < most[kind]\ntable most: kind -> integer\n  a: 5\n  b: 6\n  c: 7",
    '  require amount < most["c"]\ntable most: kind -> integer\n  a: 5\n  b: 6',
]
SENSE = [
    f'{MOVE}  require a != b\n  require b != c\n  require a == c\n  require b == "x"',
    f"{MOVE}  require a == b or a == c\n  require b != c",
    '  done drop("a")\nbefore drop(id): require id != "b"\ntool drop(id: text)',
    '  done drop(id)\nbefore drop:\n  if id == "a":\n    done pay(id)\n  else:\n    done get(id)\ntool drop(id: text)',
    "  earlier pay(id) as others\n  require count of others < 5\n  at most once per id, amount",
    "  require most[kind] > 5\ntable most: kind -> integer\n  a: 5\n  b: 6",
    "  require amount > 100\n  require amount < 150",
    "  require amount > 5\n  require amount > 6",
    "  require amount > 5 or o.open\n  require amount < 5 or not o.open",
    '  require o.kind != "a" and o.kind != "b"',
    '  require o.kind == "a" or kind == "b"\n  require o.kind == "b" or kind == "a"',
    "  require o.paid >= o.limit\n  require o.limit >= o.paid",
    "  require amount > 5 unless amount == 3",
    "  require amount > 5 unless o.open\n  require amount < 5 only if o.open",
    "  if amount > 5:\n    require o.open\n  else if amount > 3:\n    require not o.open",
    "  at most 2 times per id\n  at most 3 times within 24 hours\n  at most 9 times",
    "  not done pay(id)\n  not done pay(amount=amount)",
    "before pay:\n  seen get(id) as r\n  require r.paid > 9\nbefore pay:\n  seen get(kind) as r\n  require r.paid < 8",
    "tool other()\nbefore pay, other:\n  confirmed by boss\nnever other",
    "  require amount > 5 and amount < 7\n  require share > 5% and share < 6%",
    "  require o.paid >= amount and o.limit >= o.paid\n  require amount >= o.limit",
    "  require count of o.notes > 0\n  require max(amount, 5) <= 5",
    "  if amount > 5:\n    confirmed by boss\n  else:\n    at most once",
    "  for each note in o.notes:\n    at most 3 times per note\n  at most 2 times",
    "  at most 2 times within 24 hours\n  at most 3 times within 48 hours",
    "before pay(a, b):\n  done look(a)\nbefore pay(b, a):\n  done look(b)\ntool look(id: text) reads",
    "  done get(id)\n  not done get(kind)",
    "  if amount > 5:\n    done get(kind)\n  else:\n    not done get(kind)",
    "  done drop(id) unless o.open\nbefore drop: done pay(id)\ntool drop(id: text)",
    "  require amount < most[kind]\ntable most: kind -> integer\n  a: 5\n  otherwise: 6",
    "  require id in most or amount < 5\ntable most: kind -> integer\n  a: 5\n  x: 6",
]
NOTED = [
    ("  require amount > 5\n  require amount > 3", 10, "sees to this already"),
    ("before pay(i, number):\n  require number > 3", 10, "sees to this already"),
    ("  if amount > 5:\n    refuse if amount == 3", 10, "sees to this already"),
    ("  require amount > 5\n  if amount < 4:\n    at most once", 10, "never comes up"),
    ("  require amount > 5\n  if amount > 4:\n    at most once", 10, "comes up always"),
    ("  require not o.open\n  confirmed by boss unless o.open", 10, "counts always"),
    ("  require o.open\n  confirmed by boss unless o.open", 10, "never counts"),
]


@all_rows("body", MISTAKES)
def test_what_cannot_hold_or_cannot_be_broken_is_a_mistake(body: str) -> None:
    """Lines that contradict one another, that say nothing, or that others leave no room for are named."""
    with pytest.raises(PolicyError) as raised:
        Policy.parse(f"{TOOLS}  require o.paid / o.limit >= share\n{body}\n")
    assert raised.value.line is not None or "table" in str(raised.value)


@all_rows("second, contradicts", [("weight < 3000 g", True), ("weight < 6000 g", False)])
def test_amounts_are_compared_in_whatever_units(second: str, contradicts: bool) -> None:
    """Bounds in two units leave room for one another, or none."""
    pytest.importorskip("pint")
    text = f"tool pay(weight: quantity(kg))\nbefore pay(weight):\n  require weight > 5 kg\n  require {second}\n"
    if contradicts:
        with pytest.raises(PolicyError, match="never hold together"):
            Policy.parse(text)
    else:
        Policy.parse(text)


@all_rows("body", SENSE)
def test_what_can_hold_and_be_broken_is_none(body: str) -> None:
    """However near to one another its bounds are."""
    Policy.parse(f"{TOOLS}  require o.paid >= 0\n{body}\n")


@all_rows("body, line, words", NOTED)
def test_what_changes_nothing_is_noted(body: str, line: int, words: str) -> None:
    """Lines that are right and of no use beside those above them are named, for their author to look at."""
    above = "amount > 5 and o.paid / o.limit >= share" if body.startswith("before") else "o.paid / o.limit >= share"
    (note,) = Policy.parse(f"{TOOLS}  require {above}\n{body}\n").notes
    assert words in note.text
    assert note.line is not None
    assert note.line >= line


NUMBERS = "x: number, y: integer", [
    f"{term} {operator} {bound}"
    for term in ("x", "y", "x + y", "x - y", "2 * x", "y - (x - 1)") for operator in COMPARISONS for bound in range(7)
], [{"x": x / 4, "y": y} for x in range(-24, 50) for y in range(-7, 15)]  # fmt: skip
TEXTS = "x: text, y: text, z: text, kind: one_of(a, b)", [
    f"{one} {operator} {other}"
    for one in ("x", "y", "z", "kind") for other in ("y", "z", '"a"', '"b"') for operator in ("==", "!=")
    if one != other and not (one == "kind" and other in "yz")
], [dict(zip(("x", "y", "z", "kind"), each, strict=True)) for each in product(*["abcd"] * 3, "ab")]  # fmt: skip


@pytest.mark.parametrize(("parameters", "conditions", "points"), [NUMBERS, TEXTS], ids=["numbers", "texts"])
def test_a_contradiction_is_found_in_no_rules_that_some_call_keeps(
    parameters: str, conditions: list[str], points: list[dict[str, object]]
) -> None:
    """Of any rules about numbers and their sums, or about texts: an error where no call keeps them, and only there."""
    chance = random.Random(1)
    refused = missed = 0
    wrong: list[str] = []
    for _ in range(150):
        rules = [(chance.random() < 0.5, each) for each in chance.sample(conditions, chance.randrange(2, 6))]
        lines = [f"  {'require' if holds else 'refuse if'} {condition}" for holds, condition in rules]
        text = "\n".join([f"tool pay({parameters})", "before pay:", *lines, ""])
        checks = [(holds, compile(condition, "rule", "eval")) for holds, condition in rules]
        kept = any(all(eval(code, {}, point) is holds for holds, code in checks) for point in points)
        try:
            Policy.parse(text)
            missed += not kept
        except PolicyError as error:
            refused += "never hold together" in str(error)
            wrong += [text] if kept and "always to the same" not in str(error) else []
    assert not wrong
    assert refused > 20
    assert missed < refused / 5
