"""Policies as text and in Python: what is read, and what is refused when a policy is made, with its line."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest
from policy_harness import SHOP
from tables import all_rows

from stepguard import Policy
from stepguard.errors import PolicyError
from stepguard.language.records import RecordType
from stepguard.language.value_types import ValueType
from stepguard.policy import (
    Binding,
    Branching,
    CallPattern,
    Confirmation,
    Exemption,
    Fact,
    Limit,
    Parameter,
    Prohibition,
    Requirement,
    Rule,
    Seen,
    ToolSignature,
    yaml_format,
)


def test_python_says_the_same_as_text() -> None:
    """Nodes made in Python are those that the text has, and the policies are equal."""
    text = Policy.parse("""
    name: p
    record Order:
      paid: money(EUR)
    tool get_order(id: text) -> Order reads
    tool refund(order: text, amount: money(EUR)) changes get_order(order)
    tool drop()
    fact vip: boolean
    never drop "No."
    before refund(id):
      seen get_order(id) as order
      rest = order.paid - amount
      require rest >= 0 unless vip "Too much."
      if amount > 100:
        confirmed by manager
      at most 2 times per id within 24 hours
    """)
    made = Policy(
        [
            ToolSignature("get_order", (Parameter("id"),), "Order", "reads"),
            ToolSignature(
                "refund",
                (Parameter("order"), Parameter("amount", "money(EUR)")),
                changes=(CallPattern("get_order", ("order",)),),
            ),
            ToolSignature("drop"),
        ],
        [
            Rule("drop", (Prohibition(words="No."),)),
            Rule(
                "refund",
                (
                    Seen((CallPattern("get_order", ("id",)),), "order"),
                    Binding("rest", "order.paid - amount"),
                    Requirement("rest >= 0", exemption=Exemption("vip"), words="Too much."),
                    Branching((("amount > 100", (Confirmation("manager"),)),)),
                    Limit(2, ("id",), "24 hours"),
                ),
                ("id",),
            ),
        ],
        facts=[Fact("vip", "boolean")],
        records=[RecordType("Order", (("paid", ValueType.parse("money(EUR)")),))],
        name="p",
    )
    assert text == made
    assert text.digest == made.digest
    assert text.rules == made.rules


BASE = """record Order:
  paid: money(EUR)
  days: integer
tool get_order(id: text) -> Order reads
tool refund(order: text, amount: money(EUR)) changes get_order(order)
"""
WRONG = [
    ("before refnd: require amount > 1", 6, "did you mean 'refund'"),
    ("before refund: require amnt > 1", 6, "did you mean 'amount'"),
    ("before refund(id):\n  seen get_order(id) as o\n  require o.payd > 1", 8, "did you mean 'paid'"),
    ("before refund(id):\n  seen get_ordr(id)", 7, "did you mean 'get_order'"),
    ("before refund(id):\n  seen get_order(number=id)", 7, "has no argument 'number'"),
    ("before refund(id):\n  seen get_order(id, id)", 7, "takes 1 arguments"),
    ("before refund(id):\n  seen get_order(amount)", 7, "is text, and 'amount' is money"),
    ("before refund(id):\n  seen get_order(id) as o\n  require amount > 0", 7, "nothing reads 'o'"),
    ("before refund:\n  x = amount + 1\n  require amount > 0", 7, "nothing reads 'x'"),
    ("before refund: require amount > \"much\"", 6, "never equal"),
    ("before refund: require amount", 6, "truth value"),
    ("before refund: require amount > 5 USD", 6, "two currencies"),
    ("before refund(a, a): require a == a", 6, "same name"),
    ("before refund(a, b, c): require b > 0", 6, "takes 2 arguments, the rule names 3"),
    ("before refund:\n  seen get_order(order) as now\n  require now.paid > 0", 7, "a meaning already"),
    ("before refund: at most 0 times", 6, "`never` forbids"),
    ("before refund: at most 3 times within 5", 6, "duration"),
    ("before refund: at most times", 6, "`at most once`"),
    ("before refund: seen drop(order) as x\ntool drop(order: text)\nallow drop", 6, "has no type"),
    ("fact ok[order: text]: boolean\nbefore refund: require order in ok", 7, "write `ok[...]`"),
    ("fact vip: boolean\nbefore refund: require amount > 0", 6, "no rule reads the fact 'vip'"),
    ("before refund(id):\n  x = amount + 1\n  require x > 1\nbefore refund: require x < 9", 9, "own rule"),
    ("before refund: require amount > 0\nallow refund", 7, "is of no use"),
    ("before refund: require amount > 0\nallow get_order", 7, "it only reads"),
    ("", 5, "no rule speaks of refund"),
    ("before refund require amount > 0", 6, "not expected"),
    ("before refund:\nrequire amount > 0", 7, "not expected"),
    ("require amount > 0", 6, "not expected"),
    ("befor refund: require amount > 0", 6, "no declaration and no rule"),
    *((f"{demand}", 6, "indented below a rule") for demand in ("require 1 <= 2", "at most once", "confirmed by user")),
    ("before refund(order, amount):\n  amount <= 100", 7, "begins as `require"),
    ("before refund: require amount > 0 \"open", 6, "quoted words are not closed"),
    ("before refund: require amount > 0 \"a\" \"b\"", 6, "not expected"),
    ("before refund: eval(\"1\")", 6, "not expected"),
    ("before refund: require amount > 0 and", 6, "not expected"),
    ("before refund:\n  for each x in amount:\n    require x > 0", 7, "goes through a list"),
    ("before refund(id):\n  seen get_order(id) as o unless amount > 5\n  require o.days > 1", 7, "`if` block"),
    ("tool refund(order: text)\nbefore refund: require amount > 0", 6, "two declarations"),
    ("tool x(a: txt)\nallow x\nbefore refund: require amount > 0", 6, "unknown type"),
    ("record Item:\n  what: text\nbefore refund: require amount > 0", None, "nothing is a record 'Item'"),
    ("table t: a -> integer\n  x: 1\nbefore refund: require amount > 0", None, "looks anything up"),
    ("fact get_order: text\nbefore refund: require amount > 0", None, "has a meaning already"),
    ("before refund: not done refund(order=amount)", 6, "is text, and"),
    ("before refund:\n  earlier refund(order=order) as all_of\n  require count of all_of < x", 8, "no argument, fact"),
]  # fmt: skip


@all_rows("text, line, words", WRONG)
def test_a_policy_that_cannot_be_right_is_refused(text: str, line: int | None, words: str) -> None:
    """What is wrong in a policy is said when it is made, with its line and what to do."""
    with pytest.raises(PolicyError) as caught:
        Policy.parse(BASE + text)
    assert words in str(caught.value)
    assert caught.value.line == line


@all_rows(
    "text",
    [
        "before refund(id): seen get_order(id)",
        "before refund(id, much): require much <= 5 unless much > 4 and today < 2027-01-01",
        "before refund: refuse if amount > 5% * 100",
        "before refund:\n  if amount > 1: confirmed by a\n  else if amount > 0: confirmed by b\n  else: done refund",
        "before refund(o):\n  seen get_order(o) or refund(order=o)",
        "before refund:\n  for each x in [1, 2]:\n    require amount > x  # why\n",
        "before refund: at most once per order, amount within 2 days unless amount < 5 \"words\"",
        "before refund: require amount > 0\nbefore refund: at most once\n",
        "before refund, drop:\n  require order == \"x\"\ntool drop(order: text)",
        "never refund only if today > 2027-01-01",
        "table most: order -> money(EUR)\n  A: 5\n  otherwise: 3\nbefore refund: require amount <= most[order]",
    ],
)  # fmt: skip
def test_rules_may_be_written_so(text: str) -> None:
    """What the language has can be written on one line or as a block, with exceptions, words and comments."""
    assert Policy.parse(BASE + text).rules


def test_a_policy_is_the_same_wherever_its_lines_stand() -> None:
    """Blank lines and comments change nothing, other words do."""
    policy = Policy.parse(SHOP)
    assert policy == Policy.parse("# a comment\n\n" + SHOP.replace("\nallow", "\n\n# free\nallow"))
    assert policy != Policy.parse(SHOP.replace("at most 2", "at most 3"))


def test_without_the_last_demand_every_other_one_still_counts() -> None:
    """No demand of the text is lost on the way to the nodes."""
    (rule,) = (each for each in Policy.parse(SHOP).rules if each.tool == "refund")
    assert [type(each).__name__ for each in rule.demands] == [
        *("Seen", "Requirement", "Requirement", "Requirement", "Branching", "Requirement", "Limit")
    ]


YAML = """
name: shop
records:
  Order:
    id: text
    customer: text
    paid: money(EUR)
    refunded: {type: money(EUR), default: 0}
    placed: moment
    status: {type: "one_of(open, sent, cancelled)", default: open}
tools:
  - "get_order(id: text) -> Order reads"
  - "refund(order: text, amount: money(EUR)) -> Order changes get_order(order)"
  - "mail(to: text, words: text) changes nothing"
  - "close_account(customer: text)"
facts:
  - "customer: text"
  - 'damaged[order: text]: boolean "Does the picture show damage?"'
rules:
  - allow: [mail]
  - never: close_account "Accounts are closed by the office."
  - before: refund(id, amount)
    demand:
      - seen get_order(id) as order
      - require: order.customer == customer
        words: Only orders of this customer are paid back.
      - require amount > 0
      - require amount <= order.paid - order.refunded "No more than what was paid."
      - if: amount > 100
        then:
          - confirmed by manager
      - require: now.at - order.placed.at <= 30 days
        unless: damaged[id]
        words: After 30 days only what is damaged.
      - at most 2 times per id
"""


def test_yaml_says_the_same_as_text(tmp_path: Path) -> None:
    """A policy in YAML is that of the text, its complaints have the lines of the document."""
    file = tmp_path / "shop.yaml"
    file.write_text(YAML, encoding="utf-8")
    assert Policy.load(file) == Policy.parse(SHOP)
    for old, new, line in (
        ("seen get_order(id)", "seen get_ordr(id)", 24),
        ("unless: damaged[id]", "unles: damaged[id]", 33),
        ("amount > 100", "amount > 'x", 29),
        ("  - allow: [mail]", "  - allow: [mail]\n    never: mail", 20),
        ("- confirmed by manager", "- {confirm: manager}", 31),
        ("get_order(id: text) -> Order reads", "get_order(id: text -> Order reads", 12),
    ):
        assert old in YAML
        file.write_text(YAML.replace(old, new), encoding="utf-8")
        with pytest.raises(PolicyError) as caught:
            Policy.load(file)
        assert caught.value.line == line, str(caught.value)


WRONG_YAML = [
    *(("tools:", "tool:"), ("rules:", "rulez:"), ("name: shop", "name: [shop]"), ("- allow: [mail]", "- allow: mail")),
    *(('"customer: text"', "customer: text"), ("default: 0}", "defalt: 0}"), ("{type: money(EUR), de", "{de")),
    *(("    paid: money(EUR)", "    paid: [money]"), ("  Order:", "  Order: text\n  Other:"), ("[mail]", "[[mail]]")),
    *(("unless: damaged[id]", "unles: damaged[id]"), ("words: Only", "word: Only"), ("damaged[id]", "[damaged]")),
    *(
        ("- allow: [mail]", "- allow: [mail]\n    never: mail"),
        ("- allow: [mail]", "- [mail]"),
        ("demand:", "demand_:"),
    ),
    *(("- confirmed by manager", "- {confirm: manager}"), ("  then:", "  than:"), ("- if: am", "- iff: am")),
    *(("\n          - confirmed by manager", " []"), ("- at most 2 times per id", "- {for each: x, do: [seen mail]}")),
]


def test_the_schema_has_the_keys_that_are_read() -> None:
    """What editors complete is what is read: the schema takes policies, and refuses what the reader refuses."""
    jsonschema = pytest.importorskip("jsonschema")
    import yaml

    schema = json.loads(Path(yaml_format.__file__).with_name("schema.json").read_text(encoding="utf-8"))
    kinds = {name: schema["$defs"][name.replace(" ", "_")]["properties"] for name in yaml_format.DEMANDS}
    assert {name: tuple(keys) for name, keys in kinds.items()} == yaml_format.DEMANDS
    for name, keys in (("policy", yaml_format.TOP), ("field", yaml_format.FIELD), ("table", yaml_format.TABLE)):
        assert tuple(schema["$defs"][name]["properties"]) == keys
    rules = [key for name in ("never", "allow", "before") for key in schema["$defs"][name]["properties"]]
    assert tuple(rules) == yaml_format.RULE
    jsonschema.Draft202012Validator.check_schema(schema)
    takes = jsonschema.Draft202012Validator(schema).is_valid
    example = dedent((yaml_format.__doc__ or "").split("::\n\n")[1].split("\n\n")[0])
    for text in (YAML, example):
        assert takes(yaml.safe_load(text))
        assert yaml_format.parse_policy_yaml(text).rules
    for old, new in WRONG_YAML:
        assert old in YAML
        text = YAML.replace(old, new)
        assert not takes(yaml.safe_load(text)), new
        with pytest.raises(PolicyError):
            yaml_format.parse_policy_yaml(text)
