"""Rules that can never hold, or never be broken, are mistakes of a policy, and those that can do both are none."""

from __future__ import annotations

import random

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
tool get(id: text) -> Order reads
tool pay(id: text, amount: integer, kind: one_of(a, b), due: date)
before pay(id, amount, kind, due):
  seen get(id) as o
"""
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
]
SENSE = [
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
]


@pytest.mark.parametrize("body", MISTAKES)
def test_what_cannot_hold_or_cannot_be_broken_is_a_mistake(body: str) -> None:
    """Lines that contradict one another, that say nothing, or that others leave no room for are named."""
    with pytest.raises(PolicyError) as raised:
        Policy.parse(f"{TOOLS}  require o.paid >= amount\n{body}\n")
    assert raised.value.line is not None


@all_rows("body", SENSE)
def test_what_can_hold_and_be_broken_is_none(body: str) -> None:
    """However near to one another its bounds are."""
    Policy.parse(f"{TOOLS}  require o.paid >= 0\n{body}\n")


def test_a_contradiction_is_found_in_no_rules_that_some_call_keeps() -> None:
    """Of any rules about one number: an error where no number keeps them all, up to five lines, and only there."""
    chance = random.Random(1)
    refused = 0
    for _ in range(150):
        bounds = chance.sample(range(9), chance.randrange(2, 5))
        rules = [(chance.random() < 0.5, chance.choice(list(COMPARISONS)), each) for each in bounds]
        lines = [f"  {'require' if holds else 'refuse if'} amount {sign} {bound}" for holds, sign, bound in rules]
        text = "\n".join(["tool pay(amount: number)", "before pay(amount):", *lines, ""])
        kept = any(
            all(COMPARISONS[sign](number / 2, bound) is holds for holds, sign, bound in rules)
            for number in range(-2, 20)
        )
        if kept:
            Policy.parse(text)
        else:
            refused += 1
            with pytest.raises(PolicyError, match="never hold together"):
                Policy.parse(text)
    assert 10 < refused < 140
