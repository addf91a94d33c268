"""What is no result, no text and no time is none to a rule, whatever it looks like; calls at once share a limit."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from policy_harness import NOW, Desk, days, kinds
from tables import all_rows

from stepguard import Policy
from stepguard.errors import ConfigError
from stepguard.integrations.tool_gate import ToolGate
from stepguard.policy.arguments import plain_data

ORDERS = """
record Order:
  paid: integer
  id: text = ""
tool get(id: text) -> Order reads
tool order(id: text) -> Order changes get(id)
tool other(id: text) reads
tool pay(id: text) changes nothing
allow order
before pay(id):
  {demand}
"""
ERRORS = [
    '"Error: there is none"',
    '{"error": "none"}',
    '{"error": "none", "id": "A"}',
    "null",
    "[]",
    '{"paid": "x"}',
    "",
]


@all_rows("demand, tool", [("seen get(id)", "get"), ("seen get(id)", "order"), ("done order(id)", "order")])
def test_an_error_in_the_place_of_a_result_counts_for_nothing(demand: str, tool: str) -> None:
    """What a tool gave back is of the type that is declared, or nothing was seen and nothing was done."""
    for result in [*ERRORS, '{"paid": 5}', '{"paid": 5, "id": null, "more": 1}']:
        desk = Desk(ORDERS.format(demand=demand))
        desk.gate.result(desk.offer(tool, id="A").call, result)
        assert desk.offer("pay", id="A").allowed is (result not in ERRORS), result
        resumed = desk.policy.gate(state=json.loads(json.dumps(desk.gate.to_dict())))
        assert resumed.offer("pay", {"id": "A"}, id="again", now=NOW).allowed is (result not in ERRORS), result


def test_of_a_tool_without_a_type_any_result_counts() -> None:
    """Nothing is known of what it gives back; of one that is bound the fields that are read have to be there."""
    desk = Desk(ORDERS.format(demand="seen other(id)"))
    desk.gate.result(desk.offer("other", id="A").call, "fine")
    assert desk.offer("pay", id="A").allowed
    desk = Desk(ORDERS.format(demand="seen get(id) as o\n  require o.id == id").replace('text = ""', "text"))
    desk.gate.result(desk.offer("get", id="A").call, {"id": "A"})
    assert desk.offer("pay", id="A").allowed
    desk.gate.result(desk.offer("get", id="A").call, {"name": "A"})
    assert kinds(desk.offer("pay", id="A")) == ["undecided"]


def test_a_limit_counts_within_one_call_while_its_exemption_is_unknown() -> None:
    """Five of the same in one list are five, whether or not it is known that the limit counts."""
    desk = Desk("""
tool pay(names: list of text)
fact free[name: text]: boolean "Is it free?"
before pay(names):
  for each name in names:
    at most 2 times per name unless free[name]
""")
    assert desk.offer("pay", names=["A", "A", "B"]).allowed
    assert desk.offer("pay", names=["B", "B"]).outcome == "ask"
    assert desk.offer("pay", names=["C"] * 5).outcome == "ask"


class Kind(str, Enum):  # noqa: UP042 - such a one is shown by its name
    """A text that Python shows as another."""

    GOLD = "gold"
    BLUE = "blue"


class Colour(Enum):
    """No text by itself."""

    GOLD = "gold"


@dataclass
class Item:
    """An object that stands for one of JSON."""

    kind: Kind
    amount: int = 5


@all_rows("type", ["text", "one_of(gold, blue)"])
def test_a_text_is_what_it_says_and_not_what_it_shows(type: str) -> None:
    """Members of enumerations are their values, to the rules and to the tool, among records and lists too."""
    policy = f"""
record Item:
  kind: {type}
  amount: integer
tool pay(kind: {type}, items: list of Item, ...)
before pay(kind, items):
  require kind != "gold" and not (any of (item.kind == "gold") for item in items)
"""
    for kind, other, allowed in [
        (Kind.GOLD, Kind.BLUE, False), (Colour.GOLD, Kind.BLUE, False), (Kind.BLUE, Kind.GOLD, False),
        (Kind.BLUE, Kind.BLUE, True), ("blue", Kind.BLUE, True),
    ]:  # fmt: skip
        given = {"kind": kind, "items": [{"kind": other, "amount": 5}], "more": {Kind.GOLD: Kind.GOLD}}
        desk = Desk(policy)
        for arguments in (given, plain_data({**given, "items": [Item(other)]})):
            decision = desk.gate.offer("pay", arguments, id=f"{len(desk.gate.decisions)}", now=NOW)
            assert decision.allowed is allowed
            if allowed:
                expected = {"kind": "blue", "items": [{"kind": "blue", "amount": 5}], "more": {"gold": "gold"}}
                assert decision.arguments == expected
                assert "Kind" not in repr(decision)


@pytest.mark.parametrize("moment", ["2025-10-26T02:30:00", "2026-03-29T02:30"])
def test_a_time_that_clocks_show_twice_or_never_is_none(moment: str) -> None:
    """It names no moment without its offset: an argument is refused, a result is not there, a fact is a mistake."""
    desk = Desk(
        """
record R:
  at: moment
tool look() -> R reads
tool pay(at: moment) changes nothing
fact until: moment
before pay(at):
  seen look() as r
  require r.at.at == at.at and at.at <= until.at
""",
        zone=ZoneInfo("Europe/Berlin"),
        facts={"until": NOW + days(90)},
    )
    assert kinds(desk.offer("pay", at=moment)) == ["arguments"]
    with pytest.raises(ConfigError, match="say it with its offset"):
        desk.gate.learn("until", value=datetime.fromisoformat(moment))
    for given in (moment, f"{moment}+01:00", "2025-10-26T03:30:00"):
        desk.gate.result(desk.offer("look").call, {"at": given})
        right = given if given != moment else f"{moment}+01:00"
        assert desk.offer("pay", at=right).allowed is (given != moment)


@all_rows("type, result, read", [
    ("money(EUR)", '"1.000"', False), ("money(EUR)", '"EUR 1.500"', False), ("integer", '"12.000"', False),
    ("money(JPY)", '"1.000"', False), ("money(KWD)", '"1.000"', True), ("money(EUR)", '"1000.00"', True),
    ("money(EUR)", '"1.0000"', True), ("money(EUR)", "1.000", True), ("money(EUR)", '"0.500"', True),
    ("number", '"1.125"', True), ("money(EUR)", '"1,000"', True), ("money(EUR)", '"1,234.56"', True),
])  # fmt: skip
def test_an_amount_that_could_be_thousands_is_none(type: str, result: str, read: bool) -> None:
    """Text with a point before three digits, where the unit has fewer places, is one or a thousand: it is not read."""
    desk = Desk(f"tool look() -> {type} reads\ntool pay()\nbefore pay:\n  seen look() as most\n  require most > 0\n")
    desk.gate.result(desk.offer("look").call, result)
    assert desk.offer("pay").allowed is read


@all_rows("name", ["ACC\u20119", "ACC\u22129", "ACC\u20139", "ACC-9\u2800", "O\u2019B"])
def test_dashes_and_apostrophes_of_other_shapes_make_no_other_text(name: str) -> None:
    """A reader takes them for the plain ones."""
    policy = 'tool pay(a: text)\nbefore pay(a):\n  require a != "ACC-9" and a != "O\'B"\n'
    assert kinds(Desk(policy).offer("pay", a=name)) == ["arguments"]


def test_a_name_that_is_no_text_names_no_tool() -> None:
    """Whatever stands in its place."""
    names: list[Any] = [["pay"], {}, None, 5]
    for name in names:
        assert kinds(Desk("tool pay(a: text)\nnever pay").gate.offer(name, {}, id="1")) == ["unknown_tool"]


def test_calls_at_once_share_what_is_left() -> None:
    """Of ten, each of which would be permitted alone, as many are made as their sum allows."""
    policy = Policy.parse("""
tool pay(to: text, amount: integer)
before pay(to, amount):
  earlier pay() as old
  require amount > 0 and amount + (sum of each.amount for each in old) <= 90
""")
    made: list[Any] = []

    def pay(to: str, amount: int) -> str:
        made.append((to, amount))
        return "paid"

    gate = ToolGate(policy, {"pay": pay})
    with ThreadPoolExecutor(5) as pool:
        list(pool.map(lambda number: gate.call("pay", {"to": f"x{number}", "amount": 30}, id=str(number)), range(10)))
    assert len(made) == 3


def test_what_was_done_to_one_spelling_was_not_done_to_another() -> None:
    """Whether the tool takes them for the same is not known."""
    desk = Desk(ORDERS.format(demand="done order(id)"))
    for name, allowed in (("a", False), ("A", True)):
        desk.do("order", {"paid": 5}, id=name)
        assert desk.offer("pay", id="A").allowed is allowed
